//! Messages of the formats, for tests.

use context_compactor_core::wire::Format;
use serde_json::{Value, json};
use std::rc::Rc;

/// A message as the engine is given it.
pub type Body = Rc<str>;

/// JSON text of a message.
pub fn body(value: &Value) -> Body {
    Rc::from(value.to_string())
}

/// A message of the user.
pub fn user(text: &str) -> Body {
    body(&json!({ "role": "user", "content": text }))
}

/// An answer of the model.
pub fn assistant(text: &str) -> Body {
    body(&json!({ "role": "assistant", "content": text }))
}

/// The model calls tools: ids and a text argument.
pub fn calls(format: Format, calls: &[(&str, &str)]) -> Body {
    match format {
        Format::OpenaiChat => {
            let call = |(id, path): &(&str, &str)| {
                let arguments = json!({ "path": path }).to_string();
                json!({ "id": id, "type": "function", "function": { "name": "read_file", "arguments": arguments } })
            };
            let calls: Vec<Value> = calls.iter().map(call).collect();
            body(&json!({ "role": "assistant", "content": null, "tool_calls": calls }))
        }
        Format::Anthropic => {
            let call = |(id, path): &(&str, &str)| json!({ "type": "tool_use", "id": id, "name": "read_file", "input": { "path": path } });
            let calls: Vec<Value> = calls.iter().map(call).collect();
            body(&json!({ "role": "assistant", "content": calls }))
        }
    }
}

/// The results of calls: one message each, or one for all of them, as the format has it.
pub fn results(format: Format, results: &[(&str, &str)]) -> Vec<Body> {
    match format {
        Format::OpenaiChat => results
            .iter()
            .map(|(id, text)| body(&json!({ "role": "tool", "tool_call_id": id, "content": text })))
            .collect(),
        Format::Anthropic => {
            let blocks: Vec<Value> = results
                .iter()
                .map(|(id, text)| json!({ "type": "tool_result", "tool_use_id": id, "content": text }))
                .collect();
            vec![body(&json!({ "role": "user", "content": blocks }))]
        }
    }
}

/// A call of one tool, its result, and nothing around them.
pub fn exchange(format: Format, id: &str, result: &str) -> Vec<Body> {
    let mut messages = vec![calls(format, &[(id, "src/lib.rs")])];
    messages.extend(results(format, &[(id, result)]));
    messages
}
