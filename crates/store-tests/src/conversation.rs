//! Messages of the formats, for tests.

use context_compactor_core::wire::{Author, Format};
use serde_json::{Value, json};
use std::rc::Rc;

/// A message as the engine is given it.
pub type Body = Rc<str>;

/// The formats whose messages are roles and contents, a text among them.
pub const PLAIN: [Format; 2] = [Format::OpenaiChat, Format::Anthropic];

/// JSON text of a message.
pub fn body(value: &Value) -> Body {
    Rc::from(value.to_string())
}

/// A message of the user, in the formats whose messages are roles and contents.
pub fn user(text: &str) -> Body {
    body(&json!({ "role": "user", "content": text }))
}

/// An answer of the model, in the formats whose messages are roles and contents.
pub fn assistant(text: &str) -> Body {
    body(&json!({ "role": "assistant", "content": text }))
}

/// A message of prose in any format; a trajectory has none, and gets a turn that does nothing.
pub fn say(format: Format, author: Author, text: &str) -> Body {
    match format {
        Format::React => body(&json!({ "thought": text, "action": { "tool": "none" }, "result": "" })),
        _ => Rc::from(format.wire().text_message(author, text, "said", None)),
    }
}

/// The model calls tools: ids and a text argument. One message, or one for each call, as the format has it. A
/// trajectory has calls together with their results only.
pub fn calls(format: Format, calls: &[(&str, &str)]) -> Vec<Body> {
    let each = |call: fn(&str, Value) -> Value| -> Vec<Value> {
        calls.iter().map(|(id, path)| call(id, json!({ "path": path }))).collect()
    };
    match format {
        Format::OpenaiChat => {
            let calls = each(|id, input| {
                let function = json!({ "name": "read_file", "arguments": input.to_string() });
                json!({ "id": id, "type": "function", "function": function })
            });
            vec![body(&json!({ "role": "assistant", "content": null, "tool_calls": calls }))]
        }
        Format::OpenaiResponses => {
            let calls = each(
                |id, input| json!({ "type": "function_call", "call_id": id, "name": "read_file", "arguments": input.to_string() }),
            );
            calls.iter().map(body).collect()
        }
        Format::Anthropic => {
            let calls = each(
                |id, input| json!({ "type": "tool_use", "id": id, "name": "read_file", "input": input }),
            );
            vec![body(&json!({ "role": "assistant", "content": calls }))]
        }
        Format::Gemini => {
            let calls =
                each(|id, input| json!({ "functionCall": { "id": id, "name": "read_file", "args": input } }));
            vec![body(&json!({ "role": "model", "parts": calls }))]
        }
        Format::AiSdk => {
            let calls = each(
                |id, input| json!({ "type": "tool-call", "toolCallId": id, "toolName": "read_file", "input": input }),
            );
            vec![body(&json!({ "role": "assistant", "content": calls }))]
        }
        Format::React => Vec::new(),
    }
}

/// The results of calls: one message each, or one for all of them, as the format has it.
pub fn results(format: Format, results: &[(&str, &str)]) -> Vec<Body> {
    let each = |result: fn(&str, &str) -> Value| -> Vec<Value> {
        results.iter().map(|(id, text)| result(id, text)).collect()
    };
    match format {
        Format::OpenaiChat => each(|id, text| json!({ "role": "tool", "tool_call_id": id, "content": text }))
            .iter()
            .map(body)
            .collect(),
        Format::OpenaiResponses => {
            let results =
                each(|id, text| json!({ "type": "function_call_output", "call_id": id, "output": text }));
            results.iter().map(body).collect()
        }
        Format::Anthropic => {
            let blocks =
                each(|id, text| json!({ "type": "tool_result", "tool_use_id": id, "content": text }));
            vec![body(&json!({ "role": "user", "content": blocks }))]
        }
        Format::Gemini => {
            let parts = each(
                |id, text| json!({ "functionResponse": { "id": id, "name": "read_file", "response": { "output": text } } }),
            );
            vec![body(&json!({ "role": "user", "parts": parts }))]
        }
        Format::AiSdk => {
            let parts = each(|id, text| {
                let output = json!({ "type": "text", "value": text });
                json!({ "type": "tool-result", "toolCallId": id, "toolName": "read_file", "output": output })
            });
            vec![body(&json!({ "role": "tool", "content": parts }))]
        }
        Format::React => {
            let turn = |(_, text): &(&str, &str)| {
                let action = json!({ "tool": "read_file", "path": "src/lib.rs" });
                body(&json!({ "thought": "I look.", "action": action, "result": text }))
            };
            results.iter().map(turn).collect()
        }
    }
}

/// A call of one tool, its result, and nothing around them.
pub fn exchange(format: Format, id: &str, result: &str) -> Vec<Body> {
    let mut messages = calls(format, &[(id, "src/lib.rs")]);
    messages.extend(results(format, &[(id, result)]));
    messages
}
