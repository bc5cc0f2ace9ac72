//! What of a message is found when the log is searched.

use crate::context::{RECALL_READ, is_recall};
use crate::message::{Message, Part};
use serde_json_borrow::Value;

/// True for the JSON text of tools one of which is [`RECALL_READ`], in the shape of any provider: a list of definitions or
/// a set by name.
pub(crate) fn offers_recall(tools: &str) -> bool {
    fn finds(value: &Value<'_>) -> bool {
        match value {
            Value::Array(values) => values.iter().any(finds),
            Value::Object(fields) => fields.iter().any(|(key, value)| {
                key == RECALL_READ || (key == "name" && value.as_str() == Some(RECALL_READ)) || finds(value)
            }),
            _ => false,
        }
    }
    tools.contains(RECALL_READ) && serde_json::from_str(tools).is_ok_and(|tools| finds(&tools))
}

/// What a message says itself: prose, and calls with the texts in their arguments, since escapes in raw JSON make up
/// words that nobody wrote. Not the calls of recall tools, or every search would find itself.
pub(crate) fn said(message: &Message<'_>) -> String {
    let mut text = String::new();
    for part in &message.parts {
        match part {
            Part::Text(prose) => push_line(&mut text, "", prose),
            Part::ToolCall(call) if !is_recall(&call.name) => {
                push_line(&mut text, "", &call.name);
                match serde_json::from_str::<Value<'_>>(&call.arguments) {
                    Ok(arguments) => leaves("", &arguments, &mut text),
                    Err(_) => push_line(&mut text, "", &call.arguments),
                }
            }
            _ => {}
        }
    }
    text
}

pub(crate) fn push_line(text: &mut String, name: &str, value: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    if !name.is_empty() {
        text.push_str(name);
        text.push_str(": ");
    }
    text.push_str(value);
}

/// The texts, numbers and flags inside a value, a line each with its name.
fn leaves(name: &str, value: &Value<'_>, text: &mut String) {
    match value {
        Value::Null => {}
        Value::Str(value) => push_line(text, name, value),
        Value::Array(items) => items.iter().for_each(|item| leaves(name, item, text)),
        Value::Object(fields) => fields.iter().for_each(|(name, field)| leaves(name, field, text)),
        Value::Bool(_) | Value::Number(_) => push_line(text, name, &crate::wire::json(value)),
    }
}
