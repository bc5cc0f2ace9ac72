//! Reading messages, telling formats apart, and replacing the text of a result.

use context_compactor_core::Code;
use context_compactor_core::error::ErrorParts;
use context_compactor_core::message::{Media, MediaKind, Message, Part, Role, ToolCall, ToolResult};
use context_compactor_core::wire::{Author, Format, detect, parse};
use context_compactor_store_tests::conversation::PLAIN;
use serde_json::{Value, json};
use std::borrow::Cow;

fn read<T>(format: Format, message: &Value, look: impl FnOnce(Message<'_>) -> T) -> T {
    let text = message.to_string();
    let parsed = parse(7, &text).unwrap();
    let read = format.wire().read(7, &parsed).unwrap_or_else(|error| panic!("{error}: {text}"));
    look(read)
}

fn refused(format: Format, message: &Value) -> String {
    let text = message.to_string();
    let parsed = parse(7, &text).unwrap();
    let ErrorParts { code, index, field, .. } = format.wire().read(7, &parsed).unwrap_err().into_parts();
    assert_eq!((code, index), (Code::InvalidMessage, Some(7)), "{text}");
    field.unwrap()
}

fn text(text: &str) -> Part<'_> {
    Part::Text(Cow::Borrowed(text))
}

fn result<'a>(call_id: &'a str, text: &'a str, media: &[Media]) -> Part<'a> {
    Part::ToolResult(ToolResult {
        call_id: call_id.into(),
        text: text.into(),
        is_error: false,
        media: media.to_vec(),
        mark: None,
    })
}

fn call<'a>(id: &'a str, name: &'a str, arguments: &'a str) -> Part<'a> {
    Part::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments: arguments.into(), caller: None })
}

const OPENAI: Format = Format::OpenaiChat;
const ANTHROPIC: Format = Format::Anthropic;

#[test]
fn text_is_borrowed_from_the_input() {
    let json = r#"{"role":"user","content":"안녕 👩‍👩‍👧 你好 שלום"}"#;
    let parsed = parse(0, json).unwrap();
    for format in PLAIN {
        let message = format.wire().read(0, &parsed).unwrap();
        let [Part::Text(Cow::Borrowed(text))] = message.parts.as_slice() else { panic!("{message:?}") };
        assert!(json.as_bytes().as_ptr_range().contains(&text.as_ptr()));
    }
}

#[test]
fn openai_roles_and_contents() {
    for (role, read_as) in [
        ("system", Role::System),
        ("developer", Role::System),
        ("user", Role::User),
        ("assistant", Role::Assistant),
    ] {
        read(OPENAI, &json!({ "role": role, "content": "x" }), |message| {
            assert_eq!((message.role, message.parts), (read_as, vec![text("x")]));
        });
    }
    let message = json!({ "role": "assistant", "content": null, "refusal": "No.", "audio": { "id": "a" },
        "reasoning_content": "hm", "unknown": { "x": 1 },
        "tool_calls": [
            { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{" } },
            { "id": "b", "type": "custom", "custom": { "name": "g", "input": "say \"x\"" } },
        ],
        "function_call": { "name": "old", "arguments": "{}" } });
    read(OPENAI, &message, |message| {
        assert_eq!(
            message.parts,
            [
                Part::Reasoning { text: "hm".into(), signed: false },
                text("No."),
                Part::Media(Media { kind: MediaKind::Audio, bytes: 0, pixels: None }),
                call("a", "f", "{"),
                call("b", "g", r#""say \"x\"""#),
                call("old", "old", "{}"),
            ]
        );
    });
    let details = json!({ "role": "assistant", "content": "x", "reasoning_details": [
        { "type": "reasoning.text", "text": "one", "signature": "s" }, { "type": "reasoning.text", "text": "two" }] });
    read(OPENAI, &details, |message| {
        assert_eq!(message.parts, [Part::Reasoning { text: "one\ntwo".into(), signed: true }, text("x")]);
    });
}

#[test]
fn openai_results() {
    let message = json!({ "role": "tool", "tool_call_id": "a", "content": [
        { "type": "text", "text": "one" }, { "type": "text", "text": "two" },
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAAAA==" } }] });
    read(OPENAI, &message, |message| {
        let image = Media { kind: MediaKind::Image, bytes: 4, pixels: None };
        assert_eq!((message.role, message.parts), (Role::Tool, vec![result("a", "one\ntwo", &[image])]));
    });
    read(OPENAI, &json!({ "role": "function", "name": "old", "content": "x" }), |message| {
        assert_eq!(message.parts, [result("old", "x", &[])]);
    });
}

// lesson: base64 in summary prompt
#[test]
fn media_are_measured_and_never_kept() {
    let message = json!({ "role": "user", "content": [
        { "type": "image_url", "image_url": { "url": "https://example.com/a.png" } },
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
        { "type": "input_audio", "input_audio": { "data": "AAAAAAA=", "format": "wav" } },
        { "type": "file", "file": { "file_data": "data:application/pdf;base64,AAAAAAAA" } },
        { "type": "file", "file": { "file_id": "f" } },
        { "type": "document_url", "document_url": "data:application/pdf;base64,AAAA" },
        { "type": "video_url", "video_url": { "url": format!("data:video/mp4;base64,{}", "A".repeat(9_000)) } },
    ] });
    read(OPENAI, &message, |message| {
        let media: Vec<_> = message
            .parts
            .iter()
            .map(|part| match part {
                Part::Media(Media { kind, bytes, .. }) => (*kind, *bytes),
                other => panic!("{other:?}"),
            })
            .collect();
        use MediaKind::*;
        assert_eq!(
            media,
            [(Image, 0), (Image, 3), (Audio, 5), (Document, 6), (Document, 0), (Document, 3), (Video, 6_750)]
        );
    });
    let bytes = json!({ "$cc": "bytes", "v": "AAAAAAAA" });
    let message = json!({ "role": "user", "content": [
        { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAA=" } },
        { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": bytes } },
        { "type": "document", "source": { "type": "text", "media_type": "text/plain", "data": "plain" } },
        { "type": "document", "source": { "type": "url", "url": "https://example.com/a.pdf" } },
    ] });
    read(ANTHROPIC, &message, |message| {
        let bytes: Vec<usize> = message
            .parts
            .iter()
            .map(|part| if let Part::Media(media) = part { media.bytes } else { panic!("{part:?}") })
            .collect();
        assert_eq!(bytes, [2, 6, 5, 0]);
    });
}

#[test]
fn anthropic_blocks() {
    let message = json!({ "role": "assistant", "content": [
        { "type": "thinking", "thinking": "hm", "signature": "s" },
        { "type": "redacted_thinking", "data": "xx" },
        { "type": "text", "text": "I look." },
        { "type": "tool_use", "id": "a", "name": "f", "input": { "z": 1, "a": [true, null] } },
        { "type": "server_tool_use", "id": "w", "name": "web_search", "input": {} },
        { "type": "web_search_tool_result", "tool_use_id": "w", "content": [] },
        { "type": "compaction", "content": "so far" },
    ] });
    read(ANTHROPIC, &message, |message| {
        assert_eq!(
            message.parts[..4],
            [
                Part::Reasoning { text: "hm".into(), signed: true },
                Part::Reasoning { text: "".into(), signed: true },
                text("I look."),
                call("a", "f", r#"{"a":[true,null],"z":1}"#),
            ]
        );
        let kinds: Vec<&str> = message.parts[4..]
            .iter()
            .map(|part| match part {
                Part::Opaque { kind, .. } => kind.as_ref(),
                Part::Compaction { .. } => "(compaction)",
                _ => panic!("{part:?}"),
            })
            .collect();
        assert_eq!(kinds, ["server_tool_use", "web_search_tool_result", "(compaction)"]);
    });
}

#[test]
fn anthropic_results_are_a_tools_message_unless_the_user_speaks_too() {
    let block = json!({ "type": "tool_result", "tool_use_id": "a", "is_error": true, "content": [
        { "type": "text", "text": "one" }, { "type": "text", "text": "two" },
        { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } }] });
    let image = json!({ "type": "image", "source": { "type": "url", "url": "https://example.com/a.png" } });
    read(ANTHROPIC, &json!({ "role": "user", "content": [image, block] }), |message| {
        assert_eq!(message.role, Role::Tool);
        let Part::ToolResult(result) = &message.parts[0] else { panic!("results come first") };
        assert!(result.is_error);
        assert_eq!((result.text.as_ref(), result.media[0].bytes), ("one\ntwo", 3));
    });
    let speaks = json!({ "role": "user", "content": [{ "type": "text", "text": "stop" }, block] });
    read(ANTHROPIC, &speaks, |message| {
        assert_eq!(message.role, Role::User);
        assert!(matches!(message.parts.as_slice(), [Part::ToolResult(_), Part::Text(_)]));
    });
}

#[test]
fn tagged_values_are_read_as_what_they_stand_for() {
    let undefined = json!({ "$cc": "undefined" });
    let ill = json!({ "$cc": "utf16", "v": "YQAA2GIA" });
    for format in PLAIN {
        read(format, &json!({ "role": "user", "content": ill, "tool_calls": undefined }), |message| {
            assert_eq!(message.text(), "a\u{FFFD}b");
        });
        assert_eq!(refused(format, &json!({ "role": undefined, "content": "x" })), "role");
    }
    let own = json!({ "$cc": "object", "v": { "role": "user", "content": "x", "$cc": "mine" } });
    read(OPENAI, &own, |message| assert_eq!(message.text(), "x"));
    let input = json!({ "at": { "$cc": "date", "v": "2026-01-01T00:00:00.000Z" }, "n": { "$cc": "number", "v": "NaN" },
        "u": undefined, "own": { "$cc": "object", "v": { "$cc": "mine" } } });
    let message = json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "a", "name": "f", "input": input }] });
    read(ANTHROPIC, &message, |message| {
        let arguments: Value = serde_json::from_str(&message.calls().next().unwrap().arguments).unwrap();
        assert_eq!(
            arguments,
            json!({ "at": "2026-01-01T00:00:00.000Z", "n": null, "own": { "$cc": "mine" } })
        );
    });
}

#[test]
fn what_cannot_be_understood_is_named() {
    let call = |call: Value| {
        json!({ "role": "assistant", "content": null, "tool_calls": [
        { "id": "a", "function": { "name": "f", "arguments": "{}" } }, call] })
    };
    for (message, field) in [
        (json!({}), "role"),
        (json!({ "role": 1 }), "role"),
        (json!({ "role": "robot" }), "role"),
        (json!({ "role": "user", "content": 1 }), "content"),
        (json!({ "role": "user", "content": { "text": "x" } }), "content"),
        (json!({ "role": "user", "content": ["x"] }), "content[0]"),
        (json!({ "role": "user", "content": [{ "text": "x" }] }), "content[0].type"),
        (json!({ "role": "user", "content": [{ "type": "text" }] }), "content[0].text"),
        (json!({ "role": "tool", "content": "x" }), "tool_call_id"),
        (json!({ "role": "tool", "tool_call_id": 1, "content": "x" }), "tool_call_id"),
        (json!({ "role": "function", "content": "x" }), "name"),
        (json!({ "role": "assistant", "tool_calls": {} }), "tool_calls"),
        (call(json!("x")), "tool_calls[1]"),
        (call(json!({ "function": { "name": "f", "arguments": "{}" } })), "tool_calls[1].id"),
        (call(json!({ "id": "b" })), "tool_calls[1].function"),
        (call(json!({ "id": "b", "function": { "arguments": "{}" } })), "tool_calls[1].function.name"),
        (
            call(json!({ "id": "b", "function": { "name": "f", "arguments": {} } })),
            "tool_calls[1].function.arguments",
        ),
    ] {
        assert_eq!(refused(OPENAI, &message), field, "{message}");
    }
    let block = |block: Value| json!({ "role": "user", "content": [{ "type": "text", "text": "x" }, block] });
    for (message, field) in [
        (json!({ "role": "tool", "content": "x" }), "role"),
        (json!({ "role": "user" }), "content"),
        (json!({ "role": "user", "content": null }), "content"),
        (json!({ "role": "user", "content": 1 }), "content"),
        (block(json!("x")), "content[1]"),
        (block(json!({ "type": "tool_use", "name": "f", "input": {} })), "content[1].id"),
        (block(json!({ "type": "tool_use", "id": "a", "input": {} })), "content[1].name"),
        (block(json!({ "type": "tool_use", "id": "a", "name": "f", "input": "{}" })), "content[1].input"),
        (block(json!({ "type": "tool_result", "content": "x" })), "content[1].tool_use_id"),
        (block(json!({ "type": "tool_result", "tool_use_id": "a", "content": 1 })), "content[1].content"),
        (
            block(json!({ "type": "tool_result", "tool_use_id": "a", "is_error": "no" })),
            "content[1].is_error",
        ),
        (
            block(
                json!({ "type": "tool_result", "tool_use_id": "a", "content": [{ "type": "text", "text": 1 }] }),
            ),
            "content[1].content[0].text",
        ),
        (block(json!({ "type": "thinking" })), "content[1].thinking"),
    ] {
        assert_eq!(refused(ANTHROPIC, &message), field, "{message}");
    }
    for json in ["[]", "\"x\"", "", "{", &format!("{{\"role\":{}", "[".repeat(200))] {
        assert_eq!(parse(3, json).unwrap_err().index, Some(3));
    }
}

#[test]
fn new_messages_are_prose_of_their_author() {
    for format in PLAIN {
        let json = format.wire().text_message(Author::User, "say \"hi\"\n$1 \u{2028}", "", None);
        assert_eq!(json, r#"{"role":"user","content":"say \"hi\"\n$1 "#.to_owned() + "\u{2028}\"}");
        assert!(format.wire().text_message(Author::Assistant, "x", "", None).contains("assistant"));
    }
}

fn replaced(format: Format, message: &Value, nth: usize, text: &str) -> Option<Value> {
    let json = message.to_string();
    let parsed = parse(0, &json).unwrap();
    let edited = format.rules().with_result_text(&parsed, nth, text)?;
    Some(serde_json::from_str(&edited).unwrap())
}

#[test]
fn a_results_text_is_replaced_and_nothing_else() {
    let media = json!({ "type": "image_url", "image_url": { "url": "u" } });
    let block = |text: &str| json!({ "type": "text", "text": text, "mine": 0.30000000000000004 });
    let message = json!({ "role": "tool", "tool_call_id": "a", "content": "long", "mine": [1, 2.5e300] });
    let expected = json!({ "role": "tool", "tool_call_id": "a", "content": "short", "mine": [1, 2.5e300] });
    assert_eq!(replaced(OPENAI, &message, 0, "short"), Some(expected));
    assert_eq!(replaced(OPENAI, &message, 1, "short"), None);
    assert_eq!(replaced(OPENAI, &json!({ "role": "user", "content": "x" }), 0, "short"), None);

    let message =
        json!({ "role": "tool", "tool_call_id": "a", "content": [media, block("one"), media, block("two")] });
    assert_eq!(
        replaced(OPENAI, &message, 0, "short").unwrap()["content"],
        json!([media, block("short"), media])
    );
    assert_eq!(replaced(OPENAI, &message, 0, "").unwrap()["content"], json!([media, media]));

    let result =
        |id: &str, content: Value| json!({ "type": "tool_result", "tool_use_id": id, "content": content });
    let message = json!({ "role": "user", "content": [
        { "type": "text", "text": "x" }, result("a", json!("long")),
        { "type": "tool_result", "tool_use_id": "b", "is_error": true }, result("c", json!([media]))] });
    assert_eq!(replaced(ANTHROPIC, &message, 0, "short").unwrap()["content"][1], result("a", json!("short")));
    let edited = replaced(ANTHROPIC, &message, 1, "short").unwrap();
    assert_eq!(
        edited["content"][2],
        json!({ "type": "tool_result", "tool_use_id": "b", "is_error": true, "content": "short" })
    );
    assert_eq!(edited["content"][3], message["content"][3]);
    let edited = replaced(ANTHROPIC, &message, 2, "short").unwrap();
    assert_eq!(edited["content"][3]["content"], json!([{ "type": "text", "text": "short" }, media]));
    assert_eq!(replaced(ANTHROPIC, &message, 3, "short"), None);
}

#[test]
fn fields_keep_their_order() {
    let json = r#"{"z":1e3,"tool_call_id":"a","content":"long","role":"tool","a\"b":"é\u0000"}"#;
    let parsed = parse(0, json).unwrap();
    let edited = OPENAI.rules().with_result_text(&parsed, 0, "short").unwrap();
    assert_eq!(edited, json.replace("long", "short").replace("1e3", "1000.0"));
}

fn detected(history: &Value) -> Result<Format, String> {
    let texts: Vec<String> = history.as_array().unwrap().iter().map(Value::to_string).collect();
    let messages: Vec<_> = texts.iter().map(|text| parse(0, text).unwrap()).collect();
    detect(&messages).map_err(|error| {
        assert_eq!(error.code, Code::UnknownFormat);
        error.into_parts().message
    })
}

#[test]
fn a_message_that_no_format_can_read_is_named_with_its_place() {
    let history = [r#"{"role":"user","content":"x"}"#, r#"{"role":"robot","content":"x"}"#];
    let messages: Vec<_> = history.iter().map(|text| parse(0, text).unwrap()).collect();
    let error = detect(&messages).unwrap_err();
    assert_eq!(
        (error.code, error.index, error.field.as_deref()),
        (Code::InvalidMessage, Some(1), Some("role"))
    );
}

#[test]
fn formats_are_told_by_fields_that_others_lack() {
    let plain = json!({ "role": "user", "content": "x" });
    let blocks = json!({ "role": "user", "content": [{ "type": "text", "text": "x" }] });
    let tool_use = json!({ "role": "assistant", "content": [
        { "type": "tool_use", "id": "a", "name": "f", "input": {} }] });
    let tool_calls = json!({ "role": "assistant", "content": null, "tool_calls": [
        { "id": "a", "function": { "name": "f", "arguments": "{}" } }] });
    let tool = json!({ "role": "tool", "tool_call_id": "a", "content": "x" });
    let system = json!({ "role": "system", "content": "x" });
    assert_eq!(detected(&json!([plain, blocks])), Ok(OPENAI), "both could have written it");
    assert_eq!(detected(&json!([system, plain])), Ok(OPENAI));
    assert_eq!(detected(&json!([plain, tool_calls, tool])), Ok(OPENAI));
    assert_eq!(detected(&json!([plain, tool_use])), Ok(ANTHROPIC));
    assert_eq!(
        detected(&json!([blocks, { "role": "user", "content": [{ "type": "image", "source": {} }] }])),
        Ok(ANTHROPIC)
    );
    for history in [
        json!([]),
        json!([plain, tool_use, tool_calls]),
        json!([plain, { "role": "user", "parts": [{ "text": "x" }] }]),
        json!([{ "role": "assistant", "content": [{ "type": "tool-call", "toolCallId": "a" }] }]),
        json!([{ "role": "user", "content": [{ "type": "output_image", "text": "x" }] }, tool, tool_use]),
    ] {
        let message = detected(&history).unwrap_err();
        assert!(message.contains("pass `format`"), "{history}: {message}");
    }
}

#[test]
fn f11_where_no_message_can_be_read_the_format_is_unknown_and_else_the_message_is_wrong() {
    let stranger = json!({ "speaker": "me", "said": "hi" });
    let code = |history| crate::support::ai_sdk::detected(&history).unwrap_err();
    assert_eq!(code(json!([stranger])), Code::UnknownFormat);
    let mixed = json!([{ "role": "user", "content": "hi" }, stranger]);
    assert_eq!(code(mixed), Code::InvalidMessage);
}
