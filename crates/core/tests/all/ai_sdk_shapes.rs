//! AI SDK: values that keep their shape, histories told from those of other formats, and the new messages.

use crate::support::ai_sdk::*;
use context_compactor_core::Code;
use context_compactor_core::wire::{Author, Format, parse};
use serde_json::{Value, json};

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
        (json!({ "rows": [[1, 2], [3, 4]], "total": 4 }), json!({ "rows": [[1]], "total": 4, "text": "T" })),
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
    let expected = json!({ "content": [{ "type": "text", "text": "T" }, image], "shot": url, "raw": bytes });
    assert_eq!(reshaped(value), expected);
}

#[test]
fn media_stay_where_a_text_is_json_of_the_values_own_shape() {
    let image = json!({ "type": "image", "data": "A".repeat(400), "mimeType": "image/png" });
    let value =
        json!({ "content": [{ "text": "x".repeat(90) }, image], "raw": { "$cc": "bytes", "v": "AAAA" } });
    let part = |value: &Value| json!({ "type": "tool-result", "toolCallId": "a", "toolName": "f", "output": { "type": "json", "value": value } });
    let written = |text: &str| {
        let message = json!({ "role": "tool", "content": [part(&value)] });
        with_text(&message, 0, text).unwrap()["content"][0]["output"]["value"].clone()
    };
    let short = json!({ "content": [{ "text": "x…" }, { "type": "image", "data": "", "mimeType": "image/png" }], "raw": "" });
    let expected = json!({ "content": [{ "text": "x…" }, image], "raw": { "$cc": "bytes", "v": "AAAA" } });
    assert_eq!(written(&short.to_string()), expected);
    // Where a medium has lost its place the text is a text.
    let lost = json!({ "content": [{ "text": "x…" }] }).to_string();
    assert_eq!(written(&lost)["content"], json!([{ "text": lost }, image]));
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

#[test]
fn histories_of_the_format_are_told_from_others() {
    let user = json!({ "role": "user", "content": "go" });
    let parts = |role: &str, part: Value| json!([user, { "role": role, "content": [part] }]);
    for history in [
        parts("assistant", json!({ "type": "tool-call", "toolCallId": "a", "toolName": "f", "input": {} })),
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
    assert_eq!(write(Author::User, Some(&json!({ "role": "assistant", "content": "x" }))), plain);
    let parts = json!([{ "type": "text", "text": "안녕 \"$&\"" }]);
    // E4: a provider's prompt knows parts alone.
    assert_eq!(write(Author::User, Some(&model)), json!({ "role": "user", "content": parts }));
    assert_eq!(write(Author::User, Some(&ui)), json!({ "id": "m1", "role": "user", "parts": parts }));
    assert_eq!(
        write(Author::Assistant, Some(&ui)),
        json!({ "id": "m1", "role": "assistant", "parts": parts })
    );
    assert!(wire().takes_summary());
}
