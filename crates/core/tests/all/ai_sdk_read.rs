//! AI SDK: reading model messages, and a text in the place of an output.

use crate::support::ai_sdk::*;
use context_compactor_core::message::{Exchanges, MediaKind, Pairing, Part, Role};
use context_compactor_core::wire::{Format, Unbound, parse};
use serde_json::{Value, json};
use std::borrow::Cow;

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
        (json!({ "type": "image", "image": bytes, "mediaType": "image/png" }), media(MediaKind::Image, 6)),
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
                ("tool-call", Pairing::Opens("srv".into())),
                ("tool-result", Pairing::Closes("srv".into())),
                ("tool-approval-request", Pairing::Opens("ap".into())),
                ("nebula_tool-call", Pairing::Opens("n".into())),
                ("nebula_tool-result", Pairing::Closes("n".into())),
                ("future-request", Pairing::Opens("f".into())),
                ("weather", Pairing::None),
                ("xai.search", Pairing::None),
            ]
        );
    });
    let answer = json!({ "role": "tool", "content": [
        { "type": "tool-approval-response", "approvalId": "ap", "approved": true },
    ] });
    read(&answer, |message| {
        assert_eq!(message.role, Role::Tool);
        assert_eq!(ties(&message), [("tool-approval-response", Pairing::Closes("ap".into()))]);
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

/// Bytes are no text, which would be offloaded in their place.
#[test]
fn an_output_that_is_bytes_says_nothing() {
    let bytes = json!({ "$cc": "bytes", "v": "AAEC" });
    read(&results(&[bytes.clone(), json!({ "type": "json", "value": bytes })]), |message| {
        let results: Vec<_> = message.results().cloned().map(Part::ToolResult).collect();
        let found = [media(MediaKind::Document, 3)];
        assert_eq!(results, [result("c0", "", false, &found), result("c1", "", false, &found)]);
    });
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
        let found = [media(MediaKind::Image, 3), media(MediaKind::Document, 0), media(MediaKind::Audio, 3)];
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
        (json!({ "type": "error-json", "value": [long] }), json!({ "type": "error-json", "value": ["T"] })),
        // F39: a list of media in a list stays, whatever else of that goes.
        (
            json!({ "type": "json", "value": [long, ["short"], ["data:image/png;base64,AAAA"]] }),
            json!({ "type": "json", "value": ["T", ["data:image/png;base64,AAAA"]] }),
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
        Format::AiSdk.rules().without_bound_reasoning(&parse(0, &json).unwrap())
    };
    let reasoning = |options: Value| json!({ "type": "reasoning", "text": "hm", "providerOptions": options });
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
