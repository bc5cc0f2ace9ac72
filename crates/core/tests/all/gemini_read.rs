//! Reading Gemini contents, telling them apart, and replacing the text of a response.

use context_compactor_core::Code;
use context_compactor_core::error::ErrorParts;
use context_compactor_core::message::{
    Exchanges, Media, MediaKind, Message, Pairing, Part, Role, ToolCall, ToolResult,
};
use context_compactor_core::wire::{Author, Format, Unbound, detect, parse};
use context_compactor_store_tests::histories;
use fastrand::Rng;
use serde_json::{Value, json};
use std::borrow::Cow;

const GEMINI: Format = Format::Gemini;

fn read<T>(message: &Value, look: impl FnOnce(Message<'_>) -> T) -> T {
    let text = message.to_string();
    let parsed = parse(7, &text).unwrap();
    look(GEMINI.wire().read(7, &parsed).unwrap_or_else(|error| panic!("{error}: {text}")))
}

/// The one part of a message with this part.
fn part(value: Value) -> Part<'static> {
    read(&json!({ "role": "model", "parts": [value] }), |message| {
        assert_eq!(message.parts.len(), 1);
        owned(message.parts.into_iter().next().unwrap())
    })
}

fn owned(part: Part<'_>) -> Part<'static> {
    let text = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
    match part {
        Part::Text(said) => Part::Text(text(said)),
        Part::Reasoning { text: said, signed } => Part::Reasoning { text: text(said), signed },
        Part::Media(media) => Part::Media(media),
        Part::Opaque { kind, chars, tie } => {
            let tie = match tie {
                Pairing::None => Pairing::None,
                Pairing::Opens(id) => Pairing::Opens(text(id)),
                Pairing::Closes(id) => Pairing::Closes(text(id)),
                Pairing::Refers => Pairing::Refers,
            };
            Part::Opaque { kind: text(kind), chars, tie }
        }
        Part::ToolCall(ToolCall { id, name, arguments, caller }) => Part::ToolCall(ToolCall {
            id: text(id),
            name: text(name),
            arguments: text(arguments),
            caller: caller.map(text),
        }),
        Part::ToolResult(ToolResult { call_id, text: said, is_error, media, mark }) => {
            Part::ToolResult(ToolResult { call_id: text(call_id), text: text(said), is_error, media, mark })
        }
        Part::Compaction { chars } => Part::Compaction { chars },
    }
}

fn refused(message: &Value) -> String {
    let text = message.to_string();
    let parsed = parse(7, &text).unwrap();
    let ErrorParts { code, index, field, .. } = GEMINI.wire().read(7, &parsed).unwrap_err().into_parts();
    assert_eq!((code, index), (Code::InvalidMessage, Some(7)), "{text}");
    field.unwrap()
}

fn response(response: Value) -> Value {
    json!({ "role": "user", "parts": [{ "functionResponse": { "name": "read", "response": response } }] })
}

/// The text of a response, and the response with that text replaced.
fn replaced(message: &Value, nth: usize, text: &str) -> (String, Value) {
    let json = message.to_string();
    let parsed = parse(0, &json).unwrap();
    let before = GEMINI.wire().read(0, &parsed).unwrap().results().nth(nth).unwrap().text.to_string();
    let edited = GEMINI.rules().with_result_text(&parsed, nth, text).unwrap();
    (before, serde_json::from_str(&edited).unwrap())
}

#[test]
fn text_is_borrowed_from_the_input() {
    let json = r#"{"role":"user","parts":[{"text":"안녕 👩‍👩‍👧 你好 שלום"}]}"#;
    let parsed = parse(0, json).unwrap();
    let message = GEMINI.wire().read(0, &parsed).unwrap();
    assert!(matches!(&message.parts[..], [Part::Text(Cow::Borrowed("안녕 👩‍👩‍👧 你好 שלום"))]));
}

#[test]
fn roles_are_those_of_who_speaks() {
    let role =
        |name: &str, parts: Value| read(&json!({ "role": name, "parts": parts }), |message| message.role);
    let answer = json!({ "functionResponse": { "name": "f", "response": {} } });
    let image = json!({ "inlineData": { "mimeType": "image/png", "data": "QUJD" } });
    assert_eq!(role("user", json!([{ "text": "hi" }])), Role::User);
    assert_eq!(role("model", json!([{ "text": "hi" }])), Role::Assistant);
    assert_eq!(role("user", json!([answer, image])), Role::Tool);
    assert_eq!(role("function", json!([answer])), Role::Tool);
    assert_eq!(role("user", json!([answer, { "text": "hi" }])), Role::User);
    assert_eq!(read(&json!({ "parts": [{ "text": "hi" }] }), |message| message.role), Role::User);
}

#[test]
fn reasoning_is_thoughts_and_lone_signatures() {
    let reasoning = |text: &'static str, signed| Part::Reasoning { text: text.into(), signed };
    assert_eq!(part(json!({ "text": "hm", "thought": true })), reasoning("hm", false));
    assert_eq!(
        part(json!({ "text": "hm", "thought": true, "thoughtSignature": "c2ln" })),
        reasoning("hm", true)
    );
    assert_eq!(part(json!({ "text": "", "thoughtSignature": "c2ln" })), reasoning("", true));
    assert_eq!(part(json!({ "text": "", "thought_signature": "c2ln" })), reasoning("", true));
    assert_eq!(part(json!({ "text": "so", "thoughtSignature": "c2ln" })), Part::Text("so".into()));
    assert_eq!(part(json!({ "text": "so", "thought": false })), Part::Text("so".into()));
}

#[test]
fn calls_and_responses_are_paired_by_name() {
    for key in ["functionCall", "function_call"] {
        let call = part(
            json!({ key: { "id": "7", "name": "read", "args": { "path": "뜻" } }, "thoughtSignature": "c2ln" }),
        );
        let expected = ToolCall {
            id: "read".into(),
            name: "read".into(),
            arguments: r#"{"path":"뜻"}"#.into(),
            caller: None,
        };
        assert_eq!(call, Part::ToolCall(expected));
    }
    let without = part(json!({ "functionCall": { "name": "read" } }));
    assert!(matches!(&without, Part::ToolCall(call) if call.arguments == "{}"));
    let answers = json!({ "role": "user", "parts": [
        { "function_response": { "name": "read", "response": { "output": "a" }, "parts": [
            { "inlineData": { "mimeType": "image/png", "data": "QUJD" } },
            { "file_data": { "mime_type": "video/mp4", "file_uri": "files/a" } },
        ] } },
        { "functionResponse": { "id": "8", "name": "read", "response": { "error": "no file" } } },
    ] });
    read(&answers, |message| {
        let results: Vec<_> = message.results().collect();
        assert_eq!((results[0].call_id.as_ref(), results[0].text.as_ref()), ("read", "a"));
        let media = [(MediaKind::Image, 3), (MediaKind::Video, 0)].map(|(kind, bytes)| Media {
            kind,
            bytes,
            pixels: None,
        });
        assert_eq!((results[0].media.as_slice(), results[0].is_error), (&media[..], false));
        assert_eq!((results[1].text.as_ref(), results[1].is_error), ("no file", true));
    });
}

// lesson: base64 in summary prompt
#[test]
fn media_are_what_their_type_says() {
    let media = |kind, bytes| Part::Media(Media { kind, bytes, pixels: None });
    let inline = |mime: &str| part(json!({ "inlineData": { "mimeType": mime, "data": "QUJDRA==" } }));
    assert_eq!(inline("image/jpeg"), media(MediaKind::Image, 4));
    assert_eq!(inline("application/pdf"), media(MediaKind::Document, 4));
    assert_eq!(inline("text/csv"), media(MediaKind::Document, 4));
    assert_eq!(inline("audio/wav"), media(MediaKind::Audio, 4));
    assert_eq!(inline("video/mp4"), media(MediaKind::Video, 4));
    assert_eq!(
        part(json!({ "inline_data": { "mime_type": "image/png", "data": "QUI_" } })),
        media(MediaKind::Image, 3)
    );
    let bytes = json!({ "$cc": "bytes", "v": "QUJDRA==" });
    assert_eq!(
        part(json!({ "inlineData": { "mimeType": "image/png", "data": bytes } })),
        media(MediaKind::Image, 4)
    );
    let file = json!({ "fileData": { "fileUri": "files/a", "mime_type": "video/mp4" }, "videoMetadata": { "fps": 1 } });
    assert_eq!(part(file), media(MediaKind::Video, 0));
}

// lesson: server tools and new block types
#[test]
fn tools_of_the_provider_are_tied_and_never_results() {
    let tied = |value: Value| match part(value) {
        Part::Opaque { kind, tie, chars } => {
            assert!(chars > 0);
            (kind.into_owned(), tie)
        }
        other => panic!("{other:?}"),
    };
    let pairs = [
        ("executableCode", "codeExecutionResult"),
        ("executable_code", "code_execution_result"),
        ("toolCall", "toolResponse"),
        ("tool_call", "tool_response"),
        ("warpCall", "warpResult"),
        ("warp_call", "warp_output"),
    ];
    for (call, result) in pairs {
        assert_eq!(tied(json!({ call: { "id": "7" } })), (call.to_owned(), Pairing::Opens("7".into())));
        assert_eq!(tied(json!({ result: { "id": "7" } })), (result.to_owned(), Pairing::Closes("7".into())));
    }
    let id = || Cow::Borrowed("executableCode");
    assert_eq!(tied(json!({ "executableCode": { "code": "1" } })).1, Pairing::Opens(id()));
    assert_eq!(tied(json!({ "codeExecutionResult": { "output": "1" } })).1, Pairing::Closes(id()));
    let search = json!({ "tool_type": "GOOGLE_SEARCH_WEB" });
    assert_eq!(tied(json!({ "toolCall": search })).1, Pairing::Opens("GOOGLE_SEARCH_WEB".into()));
    assert_eq!(tied(json!({ "hologram": { "id": "7" } })), ("hologram".to_owned(), Pairing::None));
}

#[test]
fn nothing_of_an_odd_part_is_lost() {
    let both = json!({ "role": "model", "parts": [{ "text": "hi", "inlineData": { "mimeType": "image/png", "data": "QUJD" } }] });
    assert_eq!(read(&both, |message| message.parts.len()), 2);
    let unknown = json!({ "role": "user", "parts": [{ "text": "hi", "x_note": "remember", "partMetadata": { "a": 1 } }] });
    read(&unknown, |message| {
        assert_eq!(message.text(), "hi");
        assert!(matches!(&message.parts[1], Part::Opaque { kind, .. } if kind == "x_note"));
    });
    let shapes = json!({ "role": "user", "parts": [{ "functionResponse": {
        "name": "f", "response": { "output": "ok", "log": "x".repeat(4_000), "code": 0 }, "parts": [{ "hologram": {} }] } }] });
    read(&shapes, |message| {
        assert_eq!(message.results().next().unwrap().text, "ok");
        assert!(matches!(&message.parts[1], Part::Opaque { kind, .. } if kind == "hologram"));
        assert!(
            matches!(&message.parts[2], Part::Opaque { chars, .. } if *chars > 4_000),
            "what stands beside is counted"
        );
    });
}

#[test]
fn errors_name_the_place() {
    for (message, field) in [
        (json!({ "role": "assistant", "parts": [] }), "role"),
        (json!({ "role": "system", "parts": [{ "text": "x" }] }), "role"),
        (json!({ "role": 5, "parts": [] }), "role"),
        (json!({ "role": "user", "content": "x" }), "parts"),
        (json!({ "role": "user", "parts": {} }), "parts"),
        (json!({ "role": "user", "parts": [{ "text": "a" }, "b"] }), "parts[1]"),
        (json!({ "role": "user", "parts": [{ "text": ["a"] }] }), "parts[0].text"),
        (json!({ "role": "model", "parts": [{ "functionCall": {} }] }), "parts[0].functionCall.name"),
        (json!({ "role": "model", "parts": [{ "function_call": [] }] }), "parts[0].function_call"),
        (
            json!({ "role": "user", "parts": [{ "functionResponse": { "name": "f", "id": 1 } }] }),
            "parts[0].functionResponse.id",
        ),
        (
            json!({ "role": "user", "parts": [{ "functionResponse": { "name": "f", "parts": 1 } }] }),
            "parts[0].functionResponse.parts",
        ),
    ] {
        assert_eq!(refused(&message), field, "{message}");
    }
}

#[test]
fn s1_2_a_response_keeps_its_shape() {
    let ref_text = "Tool result is at: $& 你好";
    for (given, text, edited) in [
        (json!({ "output": "long" }), "long", json!({ "output": ref_text })),
        (json!({ "result": "long", "code": 0 }), "long", json!({ "result": ref_text, "code": 0 })),
        (json!({ "x": [1], "content": "long" }), "long", json!({ "x": [1], "content": ref_text })),
        (json!({ "error": "long", "output": null }), "long", json!({ "error": ref_text, "output": null })),
        (json!({ "return_value": "long" }), "long", json!({ "return_value": ref_text })),
        (
            json!({ "stdout": "long", "code": { "$cc": "undefined" } }),
            "long",
            json!({ "stdout": ref_text, "code": { "$cc": "undefined" } }),
        ),
        (
            json!({ "output": "a", "error": "b" }),
            r#"{"error":"b","output":"a"}"#,
            json!({ "output": ref_text }),
        ),
        (json!({ "rows": [1, 2] }), r#"{"rows":[1,2]}"#, json!({ "output": ref_text })),
        (json!({ "output": { "a": 1 } }), r#"{"output":{"a":1}}"#, json!({ "output": ref_text })),
        (json!({ "error": { "code": 5 } }), r#"{"error":{"code":5}}"#, json!({ "error": ref_text })),
        (json!({}), "{}", json!({ "output": ref_text })),
        (json!("long"), "long", json!({ "output": ref_text })),
        (Value::Null, "", json!({ "output": ref_text })),
    ] {
        assert_eq!(replaced(&response(given), 0, ref_text), (text.to_owned(), response(edited)));
    }
}

#[test]
fn s1_2_an_edit_changes_one_text_and_nothing_else() {
    let message = json!({ "role": "user", "x_note": { "한국어": "👍" }, "parts": [
        { "functionResponse": { "id": "1", "name": "a", "response": { "output": "one" } } },
        { "text": "and" },
        { "function_response": { "name": "b", "response": { "x": 1, "output": "two" }, "x_meta": [null], "parts": [
            { "inlineData": { "mimeType": "image/png", "data": "QUJD", "displayName": "p" } }] }, "partMetadata": {} },
    ] });
    let (before, edited) = replaced(&message, 1, "new");
    let mut expected = message.clone();
    expected["parts"][2]["function_response"]["response"]["output"] = json!("new");
    assert_eq!((before.as_str(), edited), ("two", expected));
    let parsed = message.to_string();
    assert_eq!(GEMINI.rules().with_result_text(&parse(0, &parsed).unwrap(), 2, "x"), None);
}

#[test]
fn s1_2_a_replaced_text_is_read_back() {
    for seed in 0..100 {
        for message in histories::valid(GEMINI, &mut Rng::with_seed(seed)) {
            let count = read(&message, |message| message.results().count());
            for nth in 0..count {
                let (original, edited) = replaced(&message, nth, "ref \u{1F469} שלום");
                let (back, restored) = replaced(&edited, nth, &original);
                assert_eq!(back, "ref \u{1F469} שלום");
                assert_eq!(replaced(&restored, nth, "x").0, original, "{message}");
            }
        }
    }
}

#[test]
fn new_messages_have_the_official_shape() {
    let new = |author| GEMINI.wire().text_message(author, "a \"b\"\n👍", "id", None);
    assert_eq!(new(Author::User), r#"{"role":"user","parts":[{"text":"a \"b\"\n👍"}]}"#);
    assert_eq!(new(Author::Assistant), r#"{"role":"model","parts":[{"text":"a \"b\"\n👍"}]}"#);
    assert!(GEMINI.wire().takes_summary());
}

#[test]
fn signatures_outlive_an_edit_of_what_was_before() {
    let message =
        json!({ "role": "model", "parts": [{ "text": "hm", "thought": true, "thoughtSignature": "c2ln" }] });
    let text = message.to_string();
    assert_eq!(GEMINI.rules().without_bound_reasoning(&parse(0, &text).unwrap()), Unbound::Same);
}

fn detected(messages: Value) -> Result<Format, Code> {
    let texts: Vec<String> = messages.as_array().unwrap().iter().map(Value::to_string).collect();
    let messages: Vec<_> = texts.iter().map(|text| parse(0, text).unwrap()).collect();
    detect(&messages).map_err(|error| error.code)
}

#[test]
fn contents_are_told_by_their_parts() {
    assert_eq!(detected(json!([{ "role": "user", "parts": [{ "text": "hi" }] }])), Ok(GEMINI));
    assert_eq!(detected(json!([{ "parts": [{ "inline_data": { "mime_type": "image/png" } }] }])), Ok(GEMINI));
    assert_eq!(detected(json!([{ "role": "model", "parts": [] }])), Ok(GEMINI));
    let foreign = [
        json!({ "role": "user", "parts": [{ "type": "text", "text": "hi" }] }),
        json!({ "role": "user", "content": "hi", "parts": [{ "type": "text", "text": "hi" }] }),
        json!({ "role": "assistant", "parts": [{ "text": "hi" }] }),
        json!({ "role": "user", "content": "hi" }),
    ];
    for message in foreign {
        let mixed = json!([{ "role": "model", "parts": [{ "text": "hi" }] }, message]);
        assert!(detected(mixed).is_err(), "{message}");
        assert_ne!(detected(json!([message])), Ok(GEMINI), "{message}");
    }
}

fn boundaries(history: Value) -> Vec<usize> {
    let texts: Vec<String> = history.as_array().unwrap().iter().map(Value::to_string).collect();
    let values: Vec<_> = texts.iter().map(|text| parse(0, text).unwrap()).collect();
    let messages: Vec<_> = values.iter().map(|value| GEMINI.wire().read(0, value).unwrap()).collect();
    let exchanges = Exchanges::of(&messages);
    (0..=messages.len()).filter(|&position| exchanges.is_boundary(position)).collect()
}

#[test]
fn s1_5_no_cut_parts_what_belongs_together() {
    let call = |name: &str| json!({ "functionCall": { "name": name, "args": {} } });
    let answer = |name: &str| json!({ "functionResponse": { "name": name, "response": {} } });
    let says = |role: &str, parts: Value| json!({ "role": role, "parts": parts });
    let hi = || says("user", json!([{ "text": "hi" }]));
    let parallel = json!([
        hi(),
        says("model", json!([call("a"), call("b"), call("a")])),
        says("user", json!([answer("a"), answer("a"), answer("b")])),
        says("model", json!([call("a")])),
        says("user", json!([answer("a")])),
    ]);
    assert_eq!(boundaries(parallel), [0, 1, 3, 5]);
    let reasoning = json!([
        hi(),
        says("model", json!([{ "text": "hm", "thought": true }])),
        says("model", json!([{ "text": "so" }])),
        hi()
    ]);
    assert_eq!(boundaries(reasoning), [0, 1, 3, 4]);
    let code = json!([
        hi(),
        says("model", json!([{ "executableCode": { "code": "1" } }])),
        says("model", json!([{ "codeExecutionResult": { "output": "1" } }, { "text": "so" }])),
        hi(),
    ]);
    assert_eq!(boundaries(code), [0, 1, 3, 4]);
}
