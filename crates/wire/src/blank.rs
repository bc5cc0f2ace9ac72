//! A message of which nothing that was said is left (`D24`): who it is from and the calls and results that others answer, so
//! that the history stays one that the provider takes.

use super::{Author, Format, parse, tagged};
use crate::error::Result;
use crate::message::{Message, Pairing, Part, Role};
use serde_json_borrow::{ObjectAsVec, Value};
use std::borrow::Cow;

/// What stands in the place of a text.
pub const ERASED: &str = "[erased]";

/// Names, ids and states: what ties messages together.
const KEPT: &[&str] = &[
    "role",
    "type",
    "id",
    "call_id",
    "tool_call_id",
    "tool_use_id",
    "toolCallId",
    "toolName",
    "name",
    "state",
    "status",
    "is_error",
    "isError",
    "approval",
    "approval_request_id",
    "approve",
    "approvalId",
    "approved",
    "success",
    "providerExecuted",
    "dynamic",
    "index",
    "function",
    "language",
    "outcome",
];
/// Objects and lists that hold further parts.
const HOLDING: &[&str] = &[
    "content",
    "parts",
    "tool_calls",
    "function_call",
    "functionCall",
    "function_response",
    "functionResponse",
    "executable_code",
    "executableCode",
    "code_execution_result",
    "codeExecutionResult",
    "custom",
    "action",
    "operation",
    "command",
    "commands",
    "output",
    "summary",
    "results",
    "calls",
    "tool_result",
    "value",
];
/// What is said: the text goes, whatever it was.
const SAID: &[&str] = &[
    "content",
    "text",
    "output",
    "refusal",
    "value",
    "errorText",
    "thought",
    "action",
    "observation",
    "result",
    "reasoning",
    "summary",
    "code",
    "path",
    "diff",
];
/// What goes into a call or comes out of it as an object.
const OBJECTS: &[&str] = &["input", "args", "response", "parameters", "env"];
/// Parts that are nothing but what is said, or that the provider checks.
const DROPPED: &[&str] = &[
    "image",
    "image_url",
    "input_image",
    "document",
    "file",
    "input_file",
    "input_audio",
    "audio",
    "video",
    "thinking",
    "redacted_thinking",
    "reasoning",
    "search_result",
    "source",
    "media",
    "file-data",
    "file-url",
    "file-id",
    "image-data",
    "image-url",
    "image-file-id",
];

/// `json` without anything that was said in it.
///
/// Errors: those of reading it.
pub fn blank(format: Format, index: usize, json: &str) -> Result<String> {
    let value = parse(index, json)?;
    let read = format.wire().read(index, &value)?;
    let problems = format.rules().validate(std::slice::from_ref(&value), false).len();
    for drops_compaction in [false, true] {
        let Some(blank) = emptied(&value) else { break };
        let text = super::json(&if drops_compaction { without_compaction(blank) } else { blank });
        let is_alike = parse(index, &text).and_then(|value| {
            let emptied = format.wire().read(index, &value)?;
            let is_taken = format.rules().validate(std::slice::from_ref(&value), false).len() <= problems;
            Ok(is_taken && shape(&emptied) == shape(&read))
        });
        if is_alike == Ok(true) {
            return Ok(text);
        }
    }
    // A call or result that is left out takes its exchange along when the history is sent.
    let author = if read.role == Role::Assistant { Author::Assistant } else { Author::User };
    Ok(format.wire().text_message(author, ERASED, "erased", Some(&value)))
}

/// What other messages and the provider rely on.
fn shape(message: &Message<'_>) -> (Role, Vec<String>) {
    let ties = message.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(format!("call {} {}", call.id, call.name)),
        Part::ToolResult(result) => Some(format!("result {}", result.call_id)),
        Part::Opaque { tie: Pairing::Opens(id), .. } => Some(format!("opens {id}")),
        Part::Opaque { tie: Pairing::Closes(id), .. } => Some(format!("closes {id}")),
        _ => None,
    });
    (message.role, ties.collect())
}

/// The provider's own summary says something, but where it is not of this message's author.
fn without_compaction<'a>(mut message: Value<'a>) -> Value<'a> {
    if let Value::Object(fields) = &mut message
        && let Some(Value::Array(blocks)) = fields.get_mut("content")
    {
        let is_compaction = |block: &Value<'_>| {
            block.as_object().and_then(|block| block.get("type")).and_then(|kind| kind.as_str())
                == Some("compaction")
        };
        blocks.retain(|block| !is_compaction(block));
        if blocks.is_empty() {
            blocks
                .push(Value::Object([("type", text("text")), ("text", text(ERASED))].into_iter().collect()));
        }
    }
    message
}

fn text(text: &'static str) -> Value<'static> {
    Value::Str(Cow::Borrowed(text))
}

/// An object without what is said in it; `None` for a part that goes whole.
fn emptied<'a>(value: &'a Value<'a>) -> Option<Value<'a>> {
    let fields = tagged::object(value)?;
    let kind = fields.get("type").and_then(|kind| kind.as_str());
    if kind.is_some_and(|kind| DROPPED.contains(&kind))
        && fields.get("role").is_none()
        && fields.get("id").is_none()
    {
        return None;
    }
    let mut kept: Vec<(&'a str, Value<'a>)> = Vec::new();
    for (key, field) in fields.iter() {
        // What is unknown is named like its type.
        let is_unknown = !HOLDING.contains(&key) && !KEPT.contains(&key);
        let own = (Some(key) == kind && is_unknown && field.is_object())
            .then(|| Value::Object(ObjectAsVec::default()));
        if let Some(field) = own.or_else(|| emptied_field(key, field)) {
            kept.push((key, field));
        }
    }
    let says_nothing = |(key, field): &(&str, Value<'_>)| *key == "content" && field.is_null();
    let does = ["tool_calls", "function_call"]
        .iter()
        .any(|key| fields.get(key).is_some_and(|calls| !calls.is_null()));
    if let Some(content) = kept.iter_mut().find(|field| says_nothing(field) && !does) {
        content.1 = text(ERASED);
    }
    (!kept.is_empty()).then(|| Value::Object(kept.into_iter().collect::<ObjectAsVec<'a>>()))
}

fn emptied_field<'a>(key: &str, field: &'a Value<'a>) -> Option<Value<'a>> {
    if key == "arguments" {
        return Some(if field.is_string() { text("{}") } else { Value::Object(ObjectAsVec::default()) });
    }
    if OBJECTS.contains(&key) {
        return Some(if field.is_string() { text(ERASED) } else { Value::Object(ObjectAsVec::default()) });
    }
    match field {
        Value::Array(parts) if HOLDING.contains(&key) => {
            let mut left: Vec<Value<'a>> = parts.iter().filter_map(part).collect();
            if left.is_empty() && !parts.is_empty() && ["content", "parts", "value"].contains(&key) {
                let is_typed =
                    |part: &Value<'_>| part.as_object().is_some_and(|part| part.get("type").is_some());
                let kind = parts.iter().any(is_typed).then(|| ("type", text("text")));
                left.push(Value::Object(kind.into_iter().chain([("text", text(ERASED))]).collect()));
            }
            Some(Value::Array(left))
        }
        Value::Object(_) if key == "value" => Some(text(ERASED)),
        _ if tagged::object(field).is_some() && (HOLDING.contains(&key) || KEPT.contains(&key)) => {
            emptied(field)
        }
        Value::Null | Value::Bool(_) if KEPT.contains(&key) || SAID.contains(&key) => Some(field.clone()),
        Value::Str(_) | Value::Number(_) if KEPT.contains(&key) => Some(field.clone()),
        _ if SAID.contains(&key) => Some(text(ERASED)),
        // What is unknown may be tied to something by its id.
        Value::Object(own) if own.get("id").is_some() => emptied(field),
        _ => None,
    }
}

fn part<'a>(part: &'a Value<'a>) -> Option<Value<'a>> {
    if part.is_string() { Some(text(ERASED)) } else { emptied(part) }
}
