//! What a message says, whoever stored it in between: one text for all its spellings. Databases order fields anew and add
//! some, SDKs write a text as a block, print arguments anew and move marks of their caches.

use crate::{Format, order, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// Fields of a format that say nothing of what a message says: marks for caches, facts about how it was made or stored.
pub struct Hints {
    /// Of a message.
    pub message: &'static [&'static str],
    /// Of a block or part of it.
    pub block: &'static [&'static str],
}

/// What tells a message from others.
pub struct Identity<'a> {
    /// One text for all spellings of the message, without hints.
    pub canonical: Vec<u8>,
    /// The id that the app's library gave it.
    pub id: Option<Cow<'a, str>>,
    /// It is of the app, as the system prompt is.
    pub is_system: bool,
}

/// What tells this message from others in its format.
pub fn identity<'a>(format: Format, message: &'a Value<'a>) -> Identity<'a> {
    let plain = tagged::plain(message);
    let mut canonical = Vec::new();
    write_object(&mut canonical, &plain, FieldPlace::Message, format.wire().hints());
    let text = |key| tagged::given(message, key).and_then(tagged::text);
    let is_system = text("role").is_some_and(|role| matches!(role.as_ref(), "system" | "developer"));
    Identity { canonical, id: text("id"), is_system }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldPlace {
    Message,
    Block,
}

/// Writes a message or a block.
fn write_object(out: &mut Vec<u8>, value: &Value<'_>, level: FieldPlace, hints: &Hints) {
    let Some(object) = value.as_object() else { return write_data(out, value) };
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let kind = text("type");
    let left_out = |key: &str| match (level, key) {
        // All that there is of it.
        (FieldPlace::Message, "id") if kind == "item_reference" => false,
        // It is the default.
        (FieldPlace::Message, "type") => kind == "message",
        (FieldPlace::Message, _) => hints.message.contains(&key),
        (FieldPlace::Block, "state") => !(kind.starts_with("tool-") || kind == "dynamic-tool"),
        (FieldPlace::Block, _) => hints.block.contains(&key),
    };
    out.push(b'{');
    for (key, field) in sorted(object.iter()) {
        if left_out(key) || field.is_null() {
            continue;
        }
        let before = out.len();
        write_text(out, key);
        out.push(b':');
        let is_empty = match (level, key, field) {
            (_, "content" | "parts", _) | (FieldPlace::Message, "output" | "tool_calls", Value::Array(_)) => {
                write_blocks(out, field, hints)
            }
            (_, "function", Value::Object(_)) => {
                write_object(out, field, FieldPlace::Block, hints);
                false
            }
            (_, "arguments", Value::Str(arguments)) => {
                match serde_json::from_str::<Value<'_>>(arguments) {
                    Ok(parsed) => write_data(out, &parsed),
                    Err(_) => write_text(out, arguments),
                }
                false
            }
            (FieldPlace::Block, "type", Value::Str(kind)) => {
                write_text(
                    out,
                    if matches!(kind.as_ref(), "input_text" | "output_text") { "text" } else { kind },
                );
                false
            }
            _ => {
                write_data(out, field);
                level == FieldPlace::Message && matches!(field, Value::Array(items) if items.is_empty())
            }
        };
        if is_empty {
            out.truncate(before);
        } else {
            out.push(b',');
        }
    }
    out.push(b'}');
}

/// Writes content: a text is one block. True when it is nothing.
fn write_blocks(out: &mut Vec<u8>, content: &Value<'_>, hints: &Hints) -> bool {
    let items: &[Value<'_>] = match content {
        Value::Array(items) => items,
        Value::Str(text) if text.is_empty() => return true,
        Value::Str(text) => {
            out.extend_from_slice(b"[{");
            for (key, value) in sorted([("type", "text"), ("text", text.as_ref())].into_iter()) {
                write_text(out, key);
                out.push(b':');
                write_text(out, value);
                out.push(b',');
            }
            out.extend_from_slice(b"},]");
            return false;
        }
        other => {
            write_data(out, other);
            return false;
        }
    };
    let before = out.len();
    out.push(b'[');
    for item in items {
        match item {
            Value::Str(text) => write_text(out, text),
            item if is_empty_text(item, hints) => continue,
            item => write_object(out, item, FieldPlace::Block, hints),
        }
        out.push(b',');
    }
    out.push(b']');
    out.len() == before + 2
}

/// True for a block of text that has none, and nothing else.
fn is_empty_text(block: &Value<'_>, hints: &Hints) -> bool {
    let Some(fields) = block.as_object() else { return false };
    fields.get("text").and_then(Value::as_str) == Some("")
        && fields.iter().all(|(key, field)| {
            matches!(key, "text" | "type" | "state") || field.is_null() || hints.block.contains(&key)
        })
        && matches!(
            fields.get("type").and_then(Value::as_str),
            None | Some("text" | "input_text" | "output_text")
        )
}

/// Writes what is the app's or the model's own: nothing of it is a hint.
fn write_data(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Object(object) => {
            out.push(b'{');
            for (key, field) in sorted(object.iter()) {
                write_text(out, key);
                out.push(b':');
                write_data(out, field);
                out.push(b',');
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                write_data(out, item);
                out.push(b',');
            }
            out.push(b']');
        }
        Value::Number(number) => match number.as_f64() {
            // 1.0 is 1.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                out.extend_from_slice((float as i64).to_string().as_bytes());
            }
            _ => out.extend_from_slice(super::json(value).as_bytes()),
        },
        Value::Str(text) => write_text(out, text),
        other => out.extend_from_slice(super::json(other).as_bytes()),
    }
}

/// Bytes that most messages have behind their largest text.
const BEHIND: usize = 4 << 10;

fn write_text(out: &mut Vec<u8>, text: &str) {
    // It may be large: it is written once, into the room that it takes.
    if text.len() > BEHIND {
        let more = |byte: u8| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0C => 1,
            0..0x20 => 5,
            _ => 0,
        };
        out.reserve_exact(text.len() + text.bytes().map(more).sum::<usize>() + BEHIND);
    }
    // Nothing keeps a text from being written into memory.
    let _ = serde_json::to_writer(&mut *out, text);
}

/// Fields in an order that depends on their names alone.
fn sorted<'v, V>(fields: impl Iterator<Item = (&'v str, V)>) -> Vec<(&'v str, V)> {
    let hash = |key: &str| {
        key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    order::by_key(fields.collect(), |(key, _)| hash(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(format: Format, one: &str, other: &str) -> bool {
        let (one, other): (Value<'_>, Value<'_>) =
            (serde_json::from_str(one).unwrap(), serde_json::from_str(other).unwrap());
        identity(format, &one).canonical == identity(format, &other).canonical
    }

    #[test]
    fn e1_spellings_of_one_message_have_one_text() {
        for (format, one, other) in [
            (
                Format::OpenaiChat,
                r#"{"role":"user","content":"a"}"#,
                r#"{"content":[{"text":"a","type":"text","cache_control":{"type":"ephemeral"}}],"id":"m1","role":"user"}"#,
            ),
            (
                Format::OpenaiChat,
                r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1,\"b\":null}"}}]}"#,
                r#"{"role":"assistant","content":"","refusal":null,"annotations":[],"tool_calls":[{"function":{"arguments":"{\"b\": null, \"a\": 1.0}","name":"f"},"id":"c","type":"function"}]}"#,
            ),
            (
                Format::Anthropic,
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}"#,
                r#"{"role":"user","content":[{"content":[{"text":"x","type":"text"}],"cache_control":{"type":"ephemeral"},"tool_use_id":"t","type":"tool_result"}]}"#,
            ),
            (
                Format::OpenaiResponses,
                r#"{"role":"user","content":"a"}"#,
                r#"{"type":"message","id":"msg_1","status":"completed","role":"user","content":[{"type":"input_text","text":"a"}]}"#,
            ),
            (
                Format::OpenaiResponses,
                r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#,
                r#"{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{ }","status":"completed"}"#,
            ),
            (
                Format::AiSdk,
                r#"{"id":"1","role":"assistant","parts":[{"type":"text","text":"a","state":"streaming"}]}"#,
                r#"{"id":"2","role":"assistant","metadata":{"t":1},"createdAt":{"$cc":"date","v":"2026-01-01T00:00:00.000Z"},"parts":[{"state":"done","text":"a","type":"text","providerMetadata":{"x":1}}]}"#,
            ),
            (
                Format::Gemini,
                r#"{"role":"user","parts":[{"text":"a"}]}"#,
                r#"{"parts":[{"text":"a"}],"role":"user"}"#,
            ),
        ] {
            assert!(same(format, one, other), "{one}\n{other}");
        }
    }

    #[test]
    fn e1_what_says_something_else_has_another_text() {
        for (format, one, other) in [
            (Format::OpenaiChat, r#"{"role":"user","content":"a"}"#, r#"{"role":"user","content":"b"}"#),
            (Format::OpenaiChat, r#"{"role":"user","content":"a"}"#, r#"{"role":"assistant","content":"a"}"#),
            (
                Format::AiSdk,
                r#"{"role":"assistant","parts":[{"type":"tool-f","toolCallId":"c","state":"input-available","input":{}}]}"#,
                r#"{"role":"assistant","parts":[{"type":"tool-f","toolCallId":"c","state":"output-available","input":{}}]}"#,
            ),
            (
                Format::Anthropic,
                r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"metadata":1}}]}"#,
                r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"metadata":2}}]}"#,
            ),
            (
                Format::Anthropic,
                r#"{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"x"}]}"#,
                r#"{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"y"}]}"#,
            ),
            (
                Format::OpenaiResponses,
                r#"{"type":"item_reference","id":"a"}"#,
                r#"{"type":"item_reference","id":"b"}"#,
            ),
        ] {
            assert!(!same(format, one, other), "{one}\n{other}");
        }
    }
}
