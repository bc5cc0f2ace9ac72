//! Objects of any shape, made of words that formats use: what an app may hand over by mistake.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Keys, and values of keys, of all formats.
const WORDS: [&str; 60] = [
    "role",
    "content",
    "type",
    "text",
    "parts",
    "input",
    "output",
    "thought",
    "action",
    "result",
    "tool_calls",
    "id",
    "call_id",
    "function",
    "arguments",
    "name",
    "args",
    "response",
    "functionCall",
    "functionResponse",
    "inlineData",
    "mimeType",
    "toolCallId",
    "toolName",
    "tool-call",
    "tool-result",
    "tool-approval-request",
    "approvalId",
    "state",
    "input-available",
    "output-available",
    "tool-search",
    "user",
    "assistant",
    "model",
    "system",
    "tool",
    "tool_use",
    "tool_result",
    "tool_use_id",
    "server_tool_use",
    "caller",
    "thinking",
    "signature",
    "thoughtSignature",
    "source",
    "data",
    "compaction",
    "encrypted_content",
    "function_call",
    "function_call_output",
    "mystery_call",
    "message",
    "summary",
    "image_url",
    "url",
    "data:a;base64,=",
    "reasoning",
    "providerOptions",
    "cache_control",
];

fn word(rng: &mut Rng) -> &'static str {
    WORDS[rng.usize(..WORDS.len())]
}

/// A value that is not what stands at a place.
pub(super) fn leaf(rng: &mut Rng) -> Value {
    match rng.u8(..12) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.i64(..)),
        3 => json!(f64::from_bits(rng.u64(..))),
        4 => json!(""),
        5 => json!(" \n"),
        6 => json!([]),
        7 => json!({}),
        8 => json!((0..rng.usize(..6)).map(|_| rng.char(..)).collect::<String>()),
        9 => tag(rng),
        _ => json!(word(rng)),
    }
}

/// What JSON has not, as it comes from JavaScript: among it strings with a lone surrogate.
pub(super) fn tag(rng: &mut Rng) -> Value {
    match rng.u8(..7) {
        0 => json!({ "$cc": "utf16", "v": "YQAA2GIA" }),
        1 => json!({ "$cc": "utf16", "v": "IAA=" }),
        2 => json!({ "$cc": "undefined" }),
        3 => json!({ "$cc": "date", "v": "" }),
        4 => json!({ "$cc": "bytes", "v": "AAEC" }),
        5 => json!({ "$cc": "object", "v": { "role": "user" } }),
        _ => json!({ "$cc": word(rng), "v": word(rng) }),
    }
}

fn tree(rng: &mut Rng, depth: u8) -> Value {
    match rng.u8(..4) {
        0 if depth > 0 => (0..rng.usize(..4)).map(|_| tree(rng, depth - 1)).collect(),
        1 if depth > 0 => Value::Object(fields(rng, depth - 1)),
        _ => leaf(rng),
    }
}

fn fields(rng: &mut Rng, depth: u8) -> Map<String, Value> {
    (0..rng.usize(..6)).map(|_| (word(rng).to_owned(), tree(rng, depth))).collect()
}

/// Messages of any shape.
pub fn anything(rng: &mut Rng) -> Vec<Value> {
    let message = |rng: &mut Rng| {
        let mut fields = fields(rng, 5);
        if rng.bool() {
            fields.insert("role".into(), word(rng).into());
        }
        Value::Object(fields)
    };
    (0..rng.usize(1..4)).map(|_| message(rng)).collect()
}
