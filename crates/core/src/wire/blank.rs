//! A message of which nothing that was said is left (`D24`): who it is from and the calls and results that others answer, so
//! that the history stays one that the provider takes.

use super::{Author, Format, parse, tagged};
use crate::error::Result;
use crate::message::{Message, Part, Role, Tie};
use serde_json_borrow::{ObjectAsVec, Value};
use std::borrow::Cow;

/// What stands in the place of a text.
pub(crate) const ERASED: &str = "[erased]";

/// Names, ids and states: what ties messages together.
const KEPT: [&str; 21] = [
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
    "approvalId",
    "approved",
    "success",
    "providerExecuted",
    "dynamic",
    "index",
    "function",
];
/// Objects and lists that hold further parts.
const HOLDING: [&str; 10] = [
    "content",
    "parts",
    "tool_calls",
    "functionCall",
    "functionResponse",
    "output",
    "summary",
    "results",
    "calls",
    "tool_result",
];
/// What is said: the text goes, whatever it was.
const SAID: [&str; 13] = [
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
];
/// What goes into a call or comes out of it as an object.
const OBJECTS: [&str; 4] = ["input", "args", "response", "parameters"];
/// Parts that are nothing but what is said, or that the provider checks.
const DROPPED: [&str; 14] = [
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
];

/// `json` without anything that was said in it.
///
/// Errors: those of reading it.
pub(crate) fn blank(format: Format, index: usize, json: &str) -> Result<String> {
    let value = parse(index, json)?;
    let read = format.wire().read(index, &value)?;
    if let Some(blank) = emptied(&value) {
        let text = super::json(&blank);
        let is_alike = parse(index, &text).and_then(|value| {
            let emptied = format.wire().read(index, &value)?;
            Ok(shape(&emptied) == shape(&read))
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
        Part::Opaque { tie: Tie::Opens(id), .. } => Some(format!("opens {id}")),
        Part::Opaque { tie: Tie::Closes(id), .. } => Some(format!("closes {id}")),
        _ => None,
    });
    (message.role, ties.collect())
}

fn text(text: &'static str) -> Value<'static> {
    Value::Str(Cow::Borrowed(text))
}

/// An object without what is said in it; `None` for a part that goes whole.
fn emptied<'a>(value: &'a Value<'a>) -> Option<Value<'a>> {
    let fields = tagged::object(value)?;
    let is_dropped =
        fields.get("type").and_then(|kind| kind.as_str()).is_some_and(|kind| DROPPED.contains(&kind));
    if is_dropped && fields.get("role").is_none() && fields.get("id").is_none() {
        return None;
    }
    let mut kept: Vec<(&'a str, Value<'a>)> = Vec::new();
    for (key, field) in fields.iter() {
        if let Some(field) = emptied_field(key, field) {
            kept.push((key, field));
        }
    }
    Some(Value::Object(kept.into_iter().collect::<ObjectAsVec<'a>>()))
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
            if left.is_empty() && !parts.is_empty() && (key == "content" || key == "parts") {
                left.push(Value::Object(
                    [("type", text("text")), ("text", text(ERASED))].into_iter().collect(),
                ));
            }
            Some(Value::Array(left))
        }
        _ if tagged::object(field).is_some() && (HOLDING.contains(&key) || KEPT.contains(&key)) => {
            emptied(field)
        }
        Value::Null | Value::Bool(_) if KEPT.contains(&key) || SAID.contains(&key) => Some(field.clone()),
        Value::Str(_) | Value::Number(_) if KEPT.contains(&key) => Some(field.clone()),
        _ if SAID.contains(&key) => Some(text(ERASED)),
        _ => None,
    }
}

fn part<'a>(part: &'a Value<'a>) -> Option<Value<'a>> {
    if part.is_string() { Some(text(ERASED)) } else { emptied(part) }
}
