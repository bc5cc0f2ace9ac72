//! AI SDK: reading both shapes, telling them apart, the new messages, and a text in the place of an output.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use context_compactor_core::message::{
    Exchanges, Media, MediaKind, Message, Part, Role, Tie, ToolCall, ToolResult,
};
use context_compactor_core::wire::{Author, Format, Unbound, Wire, detect, parse};
use context_compactor_core::{Code, Error};
use serde_json::{Value, json};
use std::borrow::Cow;

fn wire() -> &'static dyn Wire {
    Format::AiSdk.wire()
}

fn read<T>(message: &Value, look: impl FnOnce(Message<'_>) -> T) -> T {
    let text = message.to_string();
    let parsed = parse(7, &text).unwrap();
    let read = wire().read(7, &parsed).unwrap_or_else(|error| panic!("{error}: {text}"));
    look(read)
}

fn reads_as(message: &Value, role: Role, parts: &[Part<'_>]) {
    read(message, |read| assert_eq!((read.role, read.parts.as_slice()), (role, parts), "{message}"));
}

fn refused(message: &Value) -> String {
    let text = message.to_string();
    let parsed = parse(7, &text).unwrap();
    let Error { code, index, field, .. } = wire().read(7, &parsed).unwrap_err();
    assert_eq!((code, index), (Code::InvalidMessage, Some(7)), "{text}");
    field.unwrap()
}

fn detected(history: &Value) -> Result<Format, Code> {
    let texts: Vec<String> = history.as_array().unwrap().iter().map(Value::to_string).collect();
    let messages: Vec<_> =
        texts.iter().enumerate().map(|(index, text)| parse(index, text).unwrap()).collect();
    detect(&messages).map_err(|error| error.code)
}

fn with_text(message: &Value, nth: usize, text: &str) -> Option<Value> {
    let json = message.to_string();
    let parsed = parse(0, &json).unwrap();
    wire().with_result_text(&parsed, nth, text).map(|json| serde_json::from_str(&json).unwrap())
}

fn text(text: &str) -> Part<'_> {
    Part::Text(Cow::Borrowed(text))
}

fn call<'a>(id: &'a str, name: &'a str, arguments: &'a str) -> Part<'a> {
    Part::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments: arguments.into(), caller: None })
}

fn result<'a>(call_id: &'a str, text: &'a str, is_error: bool, media: &[Media]) -> Part<'a> {
    let (call_id, text) = (call_id.into(), text.into());
    Part::ToolResult(ToolResult { call_id, text, is_error, media: media.to_vec() })
}

fn media(kind: MediaKind, bytes: usize) -> Media {
    Media { kind, bytes }
}

/// What is opaque, by kind and tie.
fn ties<'m>(message: &'m Message<'_>) -> Vec<(&'m str, Tie<'m>)> {
    let tie = |part: &'m Part<'_>| match part {
        Part::Opaque { kind, tie, .. } => Some((
            kind.as_ref(),
            match tie {
                Tie::None => Tie::None,
                Tie::Opens(id) => Tie::Opens(Cow::Borrowed(id.as_ref())),
                Tie::Closes(id) => Tie::Closes(Cow::Borrowed(id.as_ref())),
            },
        )),
        _ => None,
    };
    message.parts.iter().filter_map(tie).collect()
}

mod model {
    use super::*;

    fn results(outputs: &[Value]) -> Value {
        let part = |(nth, output): (usize, &Value)| json!({ "type": "tool-result", "toolCallId": format!("c{nth}"), "toolName": "f", "output": output });
        json!({ "role": "tool", "content": outputs.iter().enumerate().map(part).collect::<Vec<_>>() })
    }

    #[test]
    fn roles_and_texts() {
        reads_as(&json!({ "role": "system", "content": "x" }), Role::System, &[text("x")]);
        reads_as(
            &json!({ "role": "user", "content": "안녕 👩‍👩‍👧 你好 שלום" }),
            Role::User,
            &[text("안녕 👩‍👩‍👧 你好 שלום")],
        );
        let message = json!({ "role": "assistant", "content": [{ "type": "text", "text": "x" }, { "type": "text", "text": "" }] });
        reads_as(&message, Role::Assistant, &[text("x")]);
        // A lone surrogate, as the codec hands it over.
        let lone = json!({ "role": "user", "content": { "$cc": "utf16", "v": "PdhhAA==" } });
        reads_as(&lone, Role::User, &[text("\u{fffd}a")]);
    }

    #[test]
    fn text_is_borrowed_from_the_input() {
        let json = r#"{"role":"user","content":[{"type":"text","text":"안녕 👩‍👩‍👧"}]}"#;
        let parsed = parse(0, json).unwrap();
        let message = wire().read(0, &parsed).unwrap();
        let [Part::Text(Cow::Borrowed(text))] = message.parts.as_slice() else { panic!("{message:?}") };
        assert!(json.as_bytes().as_ptr_range().contains(&text.as_ptr()));
    }

    #[test]
    fn media_are_counted_by_what_they_hold() {
        let bytes = json!({ "$cc": "bytes", "v": "AAAAAAAA" });
        let url = json!({ "$cc": "url", "v": "https://example.com/a.png" });
        let parts = [
            (json!({ "type": "image", "image": "AAAAAAAA" }), media(MediaKind::Image, 6)),
            (json!({ "type": "image", "image": url }), media(MediaKind::Image, 0)),
            (json!({ "type": "image", "image": "https://example.com/a.png" }), media(MediaKind::Image, 0)),
            (
                json!({ "type": "image", "image": bytes, "mediaType": "image/png" }),
                media(MediaKind::Image, 6),
            ),
            (
                json!({ "type": "file", "data": "data:application/pdf;base64,AAAA", "mediaType": "application/pdf" }),
                media(MediaKind::Document, 3),
            ),
            (json!({ "type": "file", "data": bytes, "mediaType": "audio/wav" }), media(MediaKind::Audio, 6)),
            (
                json!({ "type": "file", "data": { "type": "data", "data": bytes }, "mediaType": "video/mp4" }),
                media(MediaKind::Video, 6),
            ),
            (
                json!({ "type": "file", "data": { "type": "url", "url": url }, "mediaType": "image" }),
                media(MediaKind::Image, 0),
            ),
            (
                json!({ "type": "file", "data": { "type": "text", "text": "안" }, "mediaType": "text/plain" }),
                media(MediaKind::Document, 3),
            ),
            (
                json!({ "type": "file", "data": { "type": "reference", "reference": { "openai": "file-1" } }, "mediaType": "image/png" }),
                media(MediaKind::Image, 0),
            ),
            (
                json!({ "type": "file", "data": { "openai": "file-1" }, "mediaType": "image/png" }),
                media(MediaKind::Image, 0),
            ),
            (
                json!({ "type": "reasoning-file", "data": "AAAA", "mediaType": "image/png" }),
                media(MediaKind::Image, 3),
            ),
        ];
        for (part, read_as) in parts {
            reads_as(&json!({ "role": "user", "content": [part] }), Role::User, &[Part::Media(read_as)]);
        }
    }

    #[test]
    fn reasoning_and_what_signs_it() {
        let part = |options: Value| json!({ "type": "reasoning", "text": "hm", "providerOptions": options });
        for (options, signed) in [
            (json!({ "anthropic": { "signature": "s" } }), true),
            (json!({ "anthropic": { "redactedData": "s" } }), true),
            (json!({ "bedrock": { "redactedContent": "s" } }), true),
            (json!({ "openai": { "itemId": "rs_1", "reasoningEncryptedContent": null } }), true),
            (json!({ "azure": { "reasoningEncryptedContent": "s" } }), true),
            (json!({ "google": { "thoughtSignature": "s" } }), true),
            (json!({ "anthropic": { "signature": "" } }), false),
            (json!({ "other": { "effort": "high" } }), false),
            (json!(null), false),
        ] {
            let message = json!({ "role": "assistant", "content": [part(options)] });
            reads_as(&message, Role::Assistant, &[Part::Reasoning { text: "hm".into(), signed }]);
        }
    }

    #[test]
    fn calls_and_their_callers() {
        let message = json!({ "role": "assistant", "content": [
            { "type": "tool-call", "toolCallId": "a", "toolName": "f", "input": { "x": [1, "한"] }, "unknown": 1 },
            { "type": "tool-call", "toolCallId": "b", "toolName": "g", "input": null, "providerExecuted": false,
                "providerOptions": { "anthropic": { "caller": { "type": "code_execution_20250825", "toolId": "srv" } } } },
            { "type": "tool-call", "toolCallId": "c", "toolName": "g", "input": {},
                "providerOptions": { "openai": { "itemId": "fc_1", "caller": { "type": "program", "callerId": "prog" } } } },
            { "type": "tool-call", "toolCallId": "d", "toolName": "g", "input": {},
                "providerOptions": { "anthropic": { "caller": { "type": "direct" } } } },
        ] });
        read(&message, |message| {
            let callers: Vec<_> = message.calls().map(|call| call.caller.as_deref()).collect();
            assert_eq!(callers, [None, Some("srv"), Some("prog"), None]);
            let arguments: Vec<_> = message.calls().map(|call| call.arguments.as_ref()).collect();
            assert_eq!(arguments, [r#"{"x":[1,"한"]}"#, "null", "{}", "{}"]);
        });
    }

    #[test]
    fn ai1_what_the_provider_runs_is_its_own_and_tied() {
        let message = json!({ "role": "assistant", "content": [
            { "type": "tool-call", "toolCallId": "srv", "toolName": "web_search", "input": {}, "providerExecuted": true },
            { "type": "tool-result", "toolCallId": "srv", "toolName": "web_search", "output": { "type": "json", "value": [] } },
            { "type": "tool-approval-request", "approvalId": "ap", "toolCallId": "a" },
            { "type": "nebula_tool-call", "toolCallId": "n" },
            { "type": "nebula_tool-result", "toolCallId": "n" },
            { "type": "future-request", "approvalId": "f" },
            { "type": "weather", "of": "tomorrow" },
            { "type": "custom", "kind": "xai.search", "providerOptions": { "xai": { "a": 1 } } },
        ] });
        read(&message, |message| {
            assert_eq!(
                ties(&message),
                [
                    ("tool-call", Tie::Opens("srv".into())),
                    ("tool-result", Tie::Closes("srv".into())),
                    ("tool-approval-request", Tie::Opens("ap".into())),
                    ("nebula_tool-call", Tie::Opens("n".into())),
                    ("nebula_tool-result", Tie::Closes("n".into())),
                    ("future-request", Tie::Opens("f".into())),
                    ("weather", Tie::None),
                    ("xai.search", Tie::None),
                ]
            );
        });
        let answer = json!({ "role": "tool", "content": [
            { "type": "tool-approval-response", "approvalId": "ap", "approved": true },
        ] });
        read(&answer, |message| {
            assert_eq!(message.role, Role::Tool);
            assert_eq!(ties(&message), [("tool-approval-response", Tie::Closes("ap".into()))]);
        });
    }

    #[test]
    fn compaction_items_of_the_providers() {
        let message = json!({ "role": "assistant", "content": [
            { "type": "text", "text": "so far", "providerOptions": { "anthropic": { "type": "compaction" } } },
        ] });
        reads_as(&message, Role::Assistant, &[Part::Compaction { chars: 6 }]);
        let message = json!({ "role": "assistant", "content": [
            { "type": "custom", "kind": "openai.compaction", "providerOptions": { "openai": { "itemId": "cmp_1", "encryptedContent": "xyz" } } },
        ] });
        read(&message, |message| assert!(message.has_compaction()));
    }

    #[test]
    fn ai5_outputs_of_every_tag() {
        let image = json!({ "type": "image-data", "data": "AAAA", "mediaType": "image/png" });
        let message = results(&[
            json!({ "type": "text", "value": "fine" }),
            json!({ "type": "json", "value": { "lines": ["한", 2], "at": { "$cc": "date", "v": "2026-01-01" } } }),
            json!({ "type": "error-text", "value": "broken" }),
            json!({ "type": "error-json", "value": "as it is" }),
            json!({ "type": "execution-denied", "reason": "no" }),
            json!({ "type": "execution-denied" }),
            json!({ "type": "content", "value": [{ "type": "text", "text": "a" }, image, { "type": "custom" }, { "type": "text", "text": "b" },
                { "type": "file-url", "url": "https://example.com/a.pdf", "mediaType": "application/pdf" },
                { "type": "media", "data": "AAAA", "mediaType": "audio/wav" }] }),
            json!({ "type": "json", "value": { "content": [{ "type": "image", "data": "AAAAAAAA", "mimeType": "image/png" }], "url": "data:image/gif;base64,AAAA" } }),
            json!({ "type": "table", "rows": 1 }),
            json!("untagged"),
        ]);
        read(&message, |message| {
            let results: Vec<_> = message.results().cloned().map(Part::ToolResult).collect();
            let found =
                [media(MediaKind::Image, 3), media(MediaKind::Document, 0), media(MediaKind::Audio, 3)];
            let inside = [media(MediaKind::Image, 6), media(MediaKind::Image, 3)];
            assert_eq!(
                results,
                [
                    result("c0", "fine", false, &[]),
                    result("c1", r#"{"at":"2026-01-01","lines":["한",2]}"#, false, &[]),
                    result("c2", "broken", true, &[]),
                    result("c3", "as it is", true, &[]),
                    result("c4", "no", true, &[]),
                    result("c5", "", true, &[]),
                    result("c6", "a\nb", false, &found),
                    result(
                        "c7",
                        r#"{"content":[{"data":"","mimeType":"image/png","type":"image"}],"url":""}"#,
                        false,
                        &inside
                    ),
                    result("c8", r#"{"rows":1,"type":"table"}"#, false, &[]),
                    result("c9", "untagged", false, &[]),
                ]
            );
        });
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (message, field) in [
            (json!({ "content": "x" }), "role"),
            (json!({ "role": "developer", "content": "x" }), "role"),
            (json!({ "role": "user" }), "content"),
            (json!({ "role": "user", "content": 5 }), "content"),
            (json!({ "role": "system", "content": [] }), "content"),
            (json!({ "role": "tool", "content": "x" }), "content"),
            (json!({ "role": "user", "content": ["x"] }), "content[0]"),
            (json!({ "role": "user", "content": [{ "text": "x" }] }), "content[0].type"),
            (json!({ "role": "user", "content": [{ "type": "text" }] }), "content[0].text"),
            (
                json!({ "role": "assistant", "content": [{ "type": "tool-call", "toolName": "f" }] }),
                "content[0].toolCallId",
            ),
            (
                json!({ "role": "assistant", "content": [{ "type": "tool-call", "toolCallId": "a" }] }),
                "content[0].toolName",
            ),
            (json!({ "role": "tool", "content": [{ "type": "tool-result" }] }), "content[0].toolCallId"),
            (
                json!({ "role": "assistant", "content": [{ "type": "tool-approval-request" }] }),
                "content[0].approvalId",
            ),
        ] {
            assert_eq!(refused(&message), field, "{message}");
        }
    }

    #[test]
    fn s1_5_what_no_cut_parts() {
        let call = |id: &str, more: Value| {
            let mut part = json!({ "type": "tool-call", "toolCallId": id, "toolName": "f", "input": {} });
            part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            part
        };
        let output = json!({ "type": "text", "value": "ok" });
        let result =
            |id: &str| json!({ "type": "tool-result", "toolCallId": id, "toolName": "f", "output": output });
        let by_code = json!({ "providerOptions": { "anthropic": { "caller": { "type": "code_execution_20250825", "toolId": "srv" } } } });
        let history = [
            json!({ "role": "user", "content": "go" }),
            json!({ "role": "assistant", "content": [call("a", json!({})), call("b", json!({})),
                { "type": "tool-approval-request", "approvalId": "ap", "toolCallId": "b" }] }),
            json!({ "role": "tool", "content": [{ "type": "tool-approval-response", "approvalId": "ap", "approved": true }, result("a")] }),
            json!({ "role": "tool", "content": [result("b")] }),
            // Ids come again: the call of before is answered.
            json!({ "role": "assistant", "content": [call("a", json!({}))] }),
            json!({ "role": "tool", "content": [result("a")] }),
            // The provider's code calls the app's tool, and has its own result in the message behind it.
            json!({ "role": "assistant", "content": [call("srv", json!({ "providerExecuted": true })), call("c", by_code)] }),
            json!({ "role": "tool", "content": [result("c")] }),
            json!({ "role": "assistant", "content": [result("srv"), { "type": "text", "text": "done" }] }),
            json!({ "role": "user", "content": "thanks" }),
        ];
        let texts: Vec<String> = history.iter().map(Value::to_string).collect();
        let values: Vec<_> = texts.iter().map(|text| parse(0, text).unwrap()).collect();
        let messages: Vec<_> = values.iter().map(|value| wire().read(0, value).unwrap()).collect();
        let exchanges = Exchanges::of(&messages);
        let boundaries: Vec<_> = (0..=10).filter(|&position| exchanges.is_boundary(position)).collect();
        assert_eq!(boundaries, [0, 1, 4, 6, 9, 10]);
        assert_eq!((exchanges.unanswered, exchanges.orphaned), (vec![], vec![]));
    }

    #[test]
    fn a_text_takes_the_place_of_an_output_and_its_tag_stays() {
        let long = "x".repeat(80);
        let image = json!({ "type": "image-data", "data": "AAAA", "mediaType": "image/png", "providerOptions": { "a": { "b": 1 } } });
        for (output, edited) in [
            (
                json!({ "type": "text", "value": long, "providerOptions": { "a": {} } }),
                json!({ "type": "text", "value": "T", "providerOptions": { "a": {} } }),
            ),
            (json!({ "type": "json", "value": long }), json!({ "type": "json", "value": "T" })),
            (
                json!({ "type": "json", "value": { "n": 1, "out": long } }),
                json!({ "type": "json", "value": { "n": 1, "out": "T" } }),
            ),
            (json!({ "type": "error-text", "value": long }), json!({ "type": "error-text", "value": "T" })),
            (
                json!({ "type": "error-json", "value": [long] }),
                json!({ "type": "error-json", "value": ["T"] }),
            ),
            (json!({ "type": "execution-denied" }), json!({ "type": "execution-denied", "reason": "T" })),
            (
                json!({ "type": "content", "value": [image, { "type": "text", "text": long, "providerOptions": { "o": {} } }, { "type": "text", "text": "b" }] }),
                json!({ "type": "content", "value": [image, { "type": "text", "text": "T", "providerOptions": { "o": {} } }] }),
            ),
            (
                json!({ "type": "content", "value": [image] }),
                json!({ "type": "content", "value": [{ "type": "text", "text": "T" }, image] }),
            ),
            (json!("untagged"), json!("T")),
        ] {
            let message = results(&[json!({ "type": "text", "value": "first" }), output.clone()]);
            let expected = results(&[json!({ "type": "text", "value": "first" }), edited]);
            assert_eq!(with_text(&message, 1, "T").unwrap(), expected, "{output}");
        }
        let message = results(&[json!({ "type": "text", "value": "first" })]);
        assert_eq!(with_text(&message, 1, "T"), None);
        // The results of the provider's own tools are no results of the app's.
        let mut own = message.clone();
        own["role"] = json!("assistant");
        assert_eq!(with_text(&own, 0, "T"), None);
    }

    #[test]
    fn or4_an_edited_result_is_news_to_the_server() {
        let mut message = results(&[json!({ "type": "text", "value": "x" })]);
        message["content"][0]["providerOptions"] =
            json!({ "openai": { "itemId": "fco_1", "other": 1 }, "anthropic": { "a": 1 } });
        let edited = with_text(&message, 0, "T").unwrap();
        assert_eq!(
            edited["content"][0]["providerOptions"],
            json!({ "openai": { "other": 1 }, "anthropic": { "a": 1 } })
        );
    }

    #[test]
    fn an8_bound_reasoning_can_be_taken_off_a_message() {
        let without = |message: &Value| {
            let json = message.to_string();
            wire().without_bound_reasoning(&parse(0, &json).unwrap())
        };
        let reasoning =
            |options: Value| json!({ "type": "reasoning", "text": "hm", "providerOptions": options });
        let text = json!({ "type": "text", "text": "x" });
        for bound in [
            json!({ "anthropic": { "signature": "s" } }),
            json!({ "anthropic": { "redactedData": "s" } }),
            json!({ "bedrock": { "signature": "s" } }),
            json!({ "vertex": { "signature": "s" } }),
        ] {
            let message = json!({ "role": "assistant", "content": [reasoning(bound.clone()), text] });
            let Unbound::Changed(json) = without(&message) else { panic!("{message}") };
            assert_eq!(
                serde_json::from_str::<Value>(&json).unwrap(),
                json!({ "role": "assistant", "content": [text] })
            );
            let alone = json!({ "role": "assistant", "content": [reasoning(bound)] });
            assert_eq!(without(&alone), Unbound::Nothing);
        }
        for free in [
            json!({ "openai": { "itemId": "rs_1" } }),
            json!({ "google": { "thoughtSignature": "s" } }),
            json!(null),
        ] {
            let message = json!({ "role": "assistant", "content": [reasoning(free), text] });
            assert_eq!(without(&message), Unbound::Same, "{message}");
        }
    }
}

mod ui {
    use super::*;

    fn message(parts: &[Value]) -> Value {
        json!({ "id": "m", "role": "assistant", "parts": parts })
    }

    fn tool(id: &str, state: &str, more: Value) -> Value {
        let mut part =
            json!({ "type": "tool-read-file", "toolCallId": id, "state": state, "input": { "path": "a" } });
        part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        part
    }

    fn signed() -> Value {
        json!({ "type": "reasoning", "text": "hm", "state": "done", "providerMetadata": { "anthropic": { "signature": "s" } } })
    }

    #[test]
    fn parts_of_every_kind() {
        let image = json!({ "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA", "filename": "a.png" });
        let parts = [
            json!({ "type": "step-start" }),
            json!({ "type": "text", "text": "안녕", "state": "done" }),
            json!({ "type": "text", "text": "" }),
            signed(),
            json!({ "type": "reasoning", "text": "x" }),
            image.clone(),
            json!({ "type": "file", "mediaType": "application/pdf", "url": "https://example.com/a.pdf" }),
            json!({ "type": "reasoning-file", "mediaType": "image/png", "url": "data:image/png;base64,AAAAAAAA" }),
            json!({ "type": "steering-message", "id": "s", "parts": [{ "type": "text", "text": "no, the other" }, image] }),
            json!({ "type": "text", "text": "so far", "providerMetadata": { "anthropic": { "type": "compaction" } } }),
        ];
        reads_as(
            &message(&parts),
            Role::Assistant,
            &[
                Part::Opaque { kind: "step-start".into(), chars: 0, tie: Tie::None },
                text("안녕"),
                Part::Reasoning { text: "hm".into(), signed: true },
                Part::Reasoning { text: "x".into(), signed: false },
                Part::Media(media(MediaKind::Image, 3)),
                Part::Media(media(MediaKind::Document, 0)),
                Part::Media(media(MediaKind::Image, 6)),
                text("no, the other"),
                Part::Media(media(MediaKind::Image, 3)),
                Part::Compaction { chars: 6 },
            ],
        );
        for (role, read_as) in [("user", Role::User), ("system", Role::System)] {
            reads_as(
                &json!({ "role": role, "parts": [{ "type": "text", "text": "x" }] }),
                read_as,
                &[text("x")],
            );
        }
    }

    #[test]
    fn what_is_for_the_screen_counts_nothing_and_news_are_opaque() {
        let big = "x".repeat(1_000);
        let parts = [
            json!({ "type": "source-url", "sourceId": "s", "url": "https://example.com" }),
            json!({ "type": "source-document", "sourceId": "s", "mediaType": "text/plain", "title": big }),
            json!({ "type": "data-chart", "data": { "points": big } }),
            json!({ "type": "hologram", "data": big }),
            json!({ "type": "custom", "kind": "xai.search" }),
            json!({ "type": "dynamic-tool", "toolName": "web_search", "toolCallId": "s", "state": "output-available", "providerExecuted": true, "input": {}, "output": [] }),
        ];
        read(&message(&parts), |message| {
            let kinds: Vec<_> =
                ties(&message).into_iter().map(|(kind, tie)| (kind.to_owned(), tie == Tie::None)).collect();
            let named =
                ["source-url", "source-document", "data-chart", "hologram", "xai.search", "dynamic-tool"];
            assert_eq!(kinds, named.map(|kind| (kind.to_owned(), true)));
            let counts = |part: &Part<'_>| matches!(part, Part::Opaque { chars, .. } if *chars > 0);
            let counted: Vec<_> = message.parts.iter().map(counts).collect();
            assert_eq!(counted, [false, false, false, true, true, true]);
        });
    }

    #[test]
    fn ai6_calls_and_results_by_state() {
        let approval = |more: Value| {
            let mut approval = json!({ "approval": { "id": "p" } });
            approval["approval"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            approval
        };
        let asked = || call("a", "read-file", r#"{"path":"a"}"#);
        for (part, parts) in [
            (tool("a", "input-available", json!({})), vec![asked()]),
            (tool("a", "approval-requested", approval(json!({}))), vec![asked()]),
            (tool("a", "approval-responded", approval(json!({ "approved": true }))), vec![asked()]),
            (
                tool("a", "output-available", json!({ "output": "fine" })),
                vec![asked(), result("a", "fine", false, &[])],
            ),
            (
                tool("a", "output-available", json!({ "output": "so far", "preliminary": true })),
                vec![asked(), result("a", "so far", false, &[])],
            ),
            (
                tool("a", "output-available", json!({ "output": { "lines": [1] } })),
                vec![asked(), result("a", r#"{"lines":[1]}"#, false, &[])],
            ),
            (tool("a", "output-available", json!({})), vec![asked(), result("a", "", false, &[])]),
            (
                tool("a", "output-error", json!({ "errorText": "broken" })),
                vec![asked(), result("a", "broken", true, &[])],
            ),
            (
                tool("a", "output-denied", approval(json!({ "approved": false, "reason": "no" }))),
                vec![asked(), result("a", "no", true, &[])],
            ),
            (
                tool("a", "output-denied", approval(json!({ "approved": false }))),
                vec![asked(), result("a", "Tool call execution denied.", true, &[])],
            ),
        ] {
            reads_as(&message(std::slice::from_ref(&part)), Role::Assistant, &parts);
        }
        let streaming = json!({ "type": "dynamic-tool", "toolName": "f", "toolCallId": "a", "state": "input-streaming", "rawInput": "{\"pa" });
        reads_as(&message(&[streaming]), Role::Assistant, &[call("a", "f", r#""{\"pa""#)]);
        let by_code = tool(
            "a",
            "output-available",
            json!({ "output": 1, "callProviderMetadata": { "anthropic": { "caller": { "type": "code_execution_20250825", "toolId": "srv" } } } }),
        );
        read(&message(&[by_code]), |message| {
            assert_eq!(message.calls().next().unwrap().caller.as_deref(), Some("srv"));
        });
    }

    #[test]
    fn ids_that_come_again_in_one_message_are_pairs_of_their_own() {
        let message = message(&[
            tool("a", "output-available", json!({ "output": "first" })),
            json!({ "type": "step-start" }),
            tool("a", "output-available", json!({ "output": "second" })),
            tool("b", "input-available", json!({})),
        ]);
        read(&message, |message| {
            let exchanges = Exchanges::of([&message]);
            assert_eq!(
                (exchanges.pairs(), exchanges.unanswered.as_slice()),
                (&[(0, 0), (0, 0)][..], &[0][..])
            );
        });
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (message, field) in [
            (json!({ "role": "tool", "parts": [] }), "role"),
            (json!({ "role": "user", "parts": "x" }), "parts"),
            (json!({ "role": "user", "parts": ["x"] }), "parts[0]"),
            (json!({ "role": "user", "parts": [{ "text": "x" }] }), "parts[0].type"),
            (json!({ "role": "user", "parts": [{ "type": "text" }] }), "parts[0].text"),
            (
                json!({ "role": "assistant", "parts": [{ "type": "tool-f", "state": "input-available" }] }),
                "parts[0].toolCallId",
            ),
            (
                json!({ "role": "assistant", "parts": [{ "type": "tool-f", "toolCallId": "a" }] }),
                "parts[0].state",
            ),
            (
                json!({ "role": "assistant", "parts": [{ "type": "dynamic-tool", "toolCallId": "a", "state": "input-available" }] }),
                "parts[0].toolName",
            ),
        ] {
            assert_eq!(refused(&message), field, "{message}");
        }
    }

    #[test]
    fn ai6_a_text_takes_the_place_of_an_output_in_its_shape() {
        let long = "x".repeat(90);
        let own = json!({ "type": "tool-search", "toolCallId": "s", "state": "output-available", "providerExecuted": true, "input": {}, "output": [] });
        for (given, edited) in [
            (
                tool("a", "output-available", json!({ "output": "x" })),
                tool("a", "output-available", json!({ "output": "T" })),
            ),
            (
                tool(
                    "a",
                    "output-available",
                    json!({ "output": { "stdout": long, "code": 0, "rows": [{ "s": long }, { "s": "b" }] } }),
                ),
                tool(
                    "a",
                    "output-available",
                    json!({ "output": { "stdout": "", "code": 0, "rows": [{ "s": "T" }] } }),
                ),
            ),
            (
                tool("a", "output-error", json!({ "errorText": "x" })),
                tool("a", "output-error", json!({ "errorText": "T" })),
            ),
            (
                tool("a", "output-denied", json!({ "approval": { "id": "p", "approved": false } })),
                tool(
                    "a",
                    "output-denied",
                    json!({ "approval": { "id": "p", "approved": false, "reason": "T" } }),
                ),
            ),
        ] {
            let around = |part: &Value| {
                message(&[
                    json!({ "type": "step-start" }),
                    own.clone(),
                    tool("b", "output-available", json!({ "output": "first" })),
                    tool("c", "input-available", json!({})),
                    part.clone(),
                ])
            };
            assert_eq!(with_text(&around(&given), 1, "T").unwrap(), around(&edited), "{given}");
        }
        assert_eq!(with_text(&message(&[own, tool("c", "input-available", json!({}))]), 0, "T"), None);
    }

    #[test]
    fn or4_the_ids_of_the_call_stay_and_those_of_its_old_result_go() {
        let metadata = |result: Value| json!({ "output": "x", "callProviderMetadata": { "openai": { "itemId": "fc_1" } }, "resultProviderMetadata": { "openai": result } });
        let before =
            message(&[tool("a", "output-available", metadata(json!({ "itemId": "fco_1", "x": 1 })))]);
        let mut after = message(&[tool("a", "output-available", metadata(json!({ "x": 1 })))]);
        after["parts"][0]["output"] = json!("T");
        assert_eq!(with_text(&before, 0, "T").unwrap(), after);
    }

    #[test]
    fn an8_reasoning_of_later_steps_goes_with_an_edited_output() {
        let step = json!({ "type": "step-start" });
        let google = json!({ "type": "reasoning", "text": "hm", "providerMetadata": { "google": { "thoughtSignature": "s" } } });
        let answered = |id: &str, output: &str| tool(id, "output-available", json!({ "output": output }));
        let before = message(&[
            step.clone(),
            signed(),
            answered("a", "x"),
            signed(),
            answered("b", "y"),
            step.clone(),
            signed(),
            google.clone(),
            answered("c", "z"),
            step.clone(),
            signed(),
            json!({ "type": "text", "text": "done" }),
        ]);
        let after = message(&[
            step.clone(),
            signed(),
            answered("a", "T"),
            signed(),
            answered("b", "y"),
            step.clone(),
            google,
            answered("c", "z"),
            step.clone(),
            json!({ "type": "text", "text": "done" }),
        ]);
        assert_eq!(with_text(&before, 0, "T").unwrap(), after);
        // The last one takes nothing with it but what is behind it.
        let mut last = before.clone();
        last["parts"][8]["output"] = json!("T");
        last["parts"].as_array_mut().unwrap().remove(10);
        assert_eq!(with_text(&before, 2, "T").unwrap(), last);
    }

    #[test]
    fn an8_bound_reasoning_can_be_taken_off_a_message() {
        let without = |message: &Value| {
            let json = message.to_string();
            wire().without_bound_reasoning(&parse(0, &json).unwrap())
        };
        let step = json!({ "type": "step-start" });
        let text = json!({ "type": "text", "text": "x" });
        let Unbound::Changed(json) = without(&message(&[step.clone(), signed(), text.clone()])) else {
            panic!()
        };
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), message(&[step.clone(), text.clone()]));
        assert_eq!(without(&message(&[step.clone(), signed()])), Unbound::Nothing);
        assert_eq!(without(&message(&[step, text])), Unbound::Same);
    }
}

mod shape_of_values {
    use super::*;

    /// The value of a `json` output with `T` in it.
    fn reshaped(value: Value) -> Value {
        let output = json!({ "type": "json", "value": value });
        let part = json!({ "type": "tool-result", "toolCallId": "a", "toolName": "f", "output": output });
        let edited = with_text(&json!({ "role": "tool", "content": [part] }), 0, "T").unwrap();
        assert_eq!(edited["content"][0]["output"]["type"], "json");
        edited["content"][0]["output"]["value"].clone()
    }

    #[test]
    fn the_longest_string_gets_the_text_and_everything_keeps_its_type() {
        let long = "한".repeat(100);
        for (value, expected) in [
            (
                json!({ "path": "a.rs", "lines": 3, "ok": true, "none": null, "stdout": long, "stderr": "x".repeat(99) }),
                json!({ "path": "a.rs", "lines": 3, "ok": true, "none": null, "stdout": "T", "stderr": "" }),
            ),
            (
                json!({ "rows": [{ "n": 1, "s": "a" }, { "n": 2, "s": long }, { "n": 3, "s": "b" }] }),
                json!({ "rows": [{ "n": 2, "s": "T" }] }),
            ),
            (json!([[long, "a"], ["b"]]), json!([["T"]])),
            (
                json!({ "rows": [[1, 2], [3, 4]], "total": 4 }),
                json!({ "rows": [[1]], "total": 4, "text": "T" }),
            ),
            (json!([1, 2, 3]), json!([1, "T"])),
            (json!([]), json!(["T"])),
            (json!({}), json!({ "text": "T" })),
            (json!({ "type": "table", "rows": [] }), json!({ "type": "table", "rows": [], "text": "T" })),
            (json!(5), json!("T")),
            // Of two of one length the first.
            (json!({ "a": "xx", "b": "yy" }), json!({ "a": "T", "b": "yy" })),
        ] {
            assert_eq!(reshaped(value.clone()), expected, "{value}");
        }
    }

    #[test]
    fn media_stay_where_they_are() {
        let image = json!({ "type": "image", "data": "A".repeat(400), "mimeType": "image/png" });
        let url = format!("data:image/png;base64,{}", "A".repeat(400));
        let bytes = json!({ "$cc": "bytes", "v": "AAAA" });
        let value = json!({ "content": [{ "type": "text", "text": "x".repeat(90) }, { "type": "text", "text": "y" }, image], "shot": url, "raw": bytes });
        let expected =
            json!({ "content": [{ "type": "text", "text": "T" }, image], "shot": url, "raw": bytes });
        assert_eq!(reshaped(value), expected);
    }

    #[test]
    fn what_is_left_does_not_grow_with_what_there_was() {
        let entries: serde_json::Map<String, Value> =
            (0..5_000).map(|n| (format!("file{n}.rs"), json!("fn main() {}"))).collect();
        let value = json!({ "files": entries, "list": (0..5_000).collect::<Vec<_>>() });
        let edited = reshaped(value).to_string();
        assert!(edited.len() < 5_000, "{}", edited.len());
        assert!(edited.contains(r#""T""#));
    }

    #[test]
    fn an_original_text_brings_the_value_back() {
        let value = json!({ "path": "a.rs", "rows": [{ "s": "한".repeat(90) }, { "s": "b" }] });
        let part = |value: &Value| json!({ "type": "tool-result", "toolCallId": "a", "toolName": "f", "output": { "type": "json", "value": value } });
        let message = json!({ "role": "tool", "content": [part(&value)] });
        let original = read(&message, |message| message.results().next().unwrap().text.to_string());
        let edited = with_text(&message, 0, "Tool result is at: $& {{x}}").unwrap();
        assert_ne!(edited, message);
        assert_eq!(with_text(&edited, 0, &original).unwrap(), message);
    }
}

mod telling_and_writing {
    use super::*;

    #[test]
    fn histories_of_the_format_are_told_from_others() {
        let user = json!({ "role": "user", "content": "go" });
        let parts = |role: &str, part: Value| json!([user, { "role": role, "content": [part] }]);
        for history in [
            parts(
                "assistant",
                json!({ "type": "tool-call", "toolCallId": "a", "toolName": "f", "input": {} }),
            ),
            parts(
                "tool",
                json!({ "type": "tool-result", "toolCallId": "a", "toolName": "f", "output": { "type": "text", "value": "x" } }),
            ),
            parts("assistant", json!({ "type": "reasoning", "text": "hm" })),
            parts("user", json!({ "type": "image", "image": "AAAA" })),
            parts("user", json!({ "type": "file", "data": "AAAA", "mediaType": "text/plain" })),
            parts("user", json!({ "type": "text", "text": "x", "providerOptions": { "anthropic": {} } })),
            json!([{ "role": "user", "content": "go", "providerOptions": { "a": {} } }]),
            json!([{ "id": "1", "role": "user", "parts": [{ "type": "text", "text": "go" }] }]),
            json!([{ "id": "1", "role": "user", "parts": [{ "type": "data-note", "data": 1 }] }]),
        ] {
            assert_eq!(detected(&history), Ok(Format::AiSdk), "{history}");
        }
    }

    #[test]
    fn other_formats_are_not_taken_for_it() {
        for (history, format) in [
            (json!([{ "role": "user", "content": "go" }]), Format::OpenaiChat),
            (json!([{ "role": "user", "content": [{ "type": "text", "text": "go" }] }]), Format::OpenaiChat),
            (json!([{ "role": "tool", "tool_call_id": "a", "content": "x" }]), Format::OpenaiChat),
            (
                json!([{ "role": "user", "content": [{ "type": "image", "source": { "type": "url", "url": "x" } }] }]),
                Format::Anthropic,
            ),
            (
                json!([{ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "a" }] }]),
                Format::Anthropic,
            ),
            (
                json!([{ "role": "user", "content": [{ "type": "file", "file": { "file_id": "x" } }] }]),
                Format::OpenaiChat,
            ),
        ] {
            assert_eq!(detected(&history), Ok(format), "{history}");
        }
        for history in [
            json!([{ "role": "user", "content": "go" }, { "id": "2", "role": "assistant", "parts": [{ "type": "text", "text": "x" }] }]),
            json!([{ "role": "assistant", "content": [{ "type": "tool-call", "toolCallId": "a", "toolName": "f", "input": {} }, { "type": "tool_use", "id": "a", "name": "f", "input": {} }] }]),
        ] {
            assert_eq!(detected(&history), Err(Code::UnknownFormat), "{history}");
        }
        // Gemini's parts have no types.
        let gemini = json!({ "role": "user", "parts": [{ "text": "go" }] }).to_string();
        assert!(wire().read(0, &parse(0, &gemini).unwrap()).is_err());
    }

    #[test]
    fn new_messages_are_like_those_of_the_history() {
        let write = |author, like: Option<&Value>| -> Value {
            let text = like.map(Value::to_string);
            let like = text.as_ref().map(|text| parse(0, text).unwrap());
            serde_json::from_str(&wire().text_message(author, "안녕 \"$&\"", "m1", like.as_ref())).unwrap()
        };
        let ui = json!({ "id": "1", "role": "assistant", "parts": [] });
        let model = json!({ "role": "tool", "content": [] });
        let plain = json!({ "role": "user", "content": "안녕 \"$&\"" });
        assert_eq!(write(Author::User, None), plain);
        assert_eq!(write(Author::User, Some(&model)), plain);
        let parts = json!([{ "type": "text", "text": "안녕 \"$&\"" }]);
        assert_eq!(write(Author::User, Some(&ui)), json!({ "id": "m1", "role": "user", "parts": parts }));
        assert_eq!(
            write(Author::Assistant, Some(&ui)),
            json!({ "id": "m1", "role": "assistant", "parts": parts })
        );
        assert!(wire().takes_summary());
    }
}
