//! Shapes of messages that are no format of ours, and that would be read as one without what matters in them.

use super::tagged;
use crate::error::{Code, Error, Result};
use serde_json_borrow::Value;

/// Refuses messages whose calls stand in `toolCalls` and `toolCallId`: no format has these fields, so the calls and what
/// ties results to them would be lost.
pub(super) fn refuse(messages: &[Value<'_>]) -> Result<()> {
    match messages.iter().position(|message| names_calls(message) || names_call(message)) {
        Some(index) => {
            let message = "its calls stand in `toolCalls` and its results say `toolCallId`, which no known format does; \
                           write `tool_calls: [{ id, type: \"function\", function: { name, arguments } }]` and \
                           `tool_call_id` (openai-chat), or `tool-call` and `tool-result` parts (ai-sdk)";
            Err(Error { index: Some(index), ..Error::new(Code::UnknownFormat, message) })
        }
        None => Ok(()),
    }
}

/// True for a message with calls that stand nowhere else in it.
fn names_calls(message: &Value<'_>) -> bool {
    let calls = matches!(tagged::given(message, "toolCalls"), Some(Value::Array(calls)) if !calls.is_empty());
    calls && tagged::given(message, "tool_calls").is_none() && !has_parts(message)
}

/// True for a result whose call is named nowhere else in it.
fn names_call(message: &Value<'_>) -> bool {
    let role = tagged::given(message, "role").and_then(tagged::text);
    role.as_deref() == Some("tool")
        && tagged::given(message, "toolCallId").is_some()
        && tagged::given(message, "tool_call_id").is_none()
        && !has_parts(message)
}

/// True for a message with a call or a result among its parts.
fn has_parts(message: &Value<'_>) -> bool {
    let kind = |part| tagged::given(part, "type").and_then(tagged::text);
    let parts = tagged::given(message, "parts").is_some();
    parts
        || super::content_blocks(message)
            .iter()
            .filter_map(kind)
            .any(|kind| matches!(kind.as_ref(), "tool-call" | "tool-result" | "tool_use" | "tool_result"))
}
