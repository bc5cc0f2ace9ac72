//! Reading one turn.

use crate::Hints;
use crate::error::Result;
use crate::message::{Message, Part, Role, ToolCall, ToolResult};
use crate::read::At;
use crate::tagged;
use serde_json_borrow::Value;
use std::borrow::Cow;

/// Fields that databases and SDKs add, drop and move: the message is still the same.
pub(super) const HINTS: Hints =
    Hints { message: &["id", "createdAt", "created_at", "metadata", "status"], block: &["metadata"] };

/// The fields of a turn. One that is missing is a broken rule (RT1) and can be read; what has another type cannot.
pub(super) const FIELDS: [&str; 3] = ["thought", "action", "result"];

/// Where agents write the name of the tool.
const NAMES: [&str; 7] = ["tool", "name", "tool_name", "toolName", "action", "function", "type"];

pub(super) fn turn<'a>(index: usize, value: &'a Value<'a>) -> Result<Message<'a>> {
    let at = At::message(index, value)?;
    if FIELDS.iter().all(|field| at.get(field).is_none()) {
        return at.fail("a turn must have a thought, an action and a result");
    }
    let mut parts = Vec::new();
    if let Some(thought) = at.get("thought") {
        let thought = text(&thought)?;
        if !thought.is_empty() {
            parts.push(Part::Text(thought));
        }
    }
    let mut call_id = Cow::Borrowed("");
    if let Some(action) = at.get("action") {
        let Some(_) = tagged::object(action.value()) else {
            return action.fail("must be an object that names the tool and its arguments");
        };
        let name = name(action.value());
        // A turn has one call, and its result stands beside it: the tool's name will do where there is no id.
        call_id = tagged::given(action.value(), "id").and_then(tagged::text).unwrap_or_else(|| name.clone());
        let arguments = Cow::Owned(tagged::plain_json(action.value()));
        parts.push(Part::ToolCall(ToolCall { id: call_id.clone(), name, arguments, caller: None }));
    }
    if let Some(result) = at.get("result") {
        let text = text(&result)?;
        parts.push(Part::ToolResult(ToolResult {
            call_id,
            text,
            is_error: false,
            media: Vec::new(),
            mark: None,
        }));
    }
    Ok(Message { role: Role::Assistant, parts })
}

fn text<'a>(field: &At<'a>) -> Result<Cow<'a, str>> {
    match tagged::text(field.value()) {
        Some(text) => Ok(text),
        None => field.fail("must be a string; write anything else as JSON text"),
    }
}

/// The tool's name: a text, or the name of what stands there.
fn name<'a>(action: &'a Value<'a>) -> Cow<'a, str> {
    let named = |key| {
        let found = tagged::given(action, key)?;
        tagged::text(found).or_else(|| tagged::text(tagged::given(found, "name")?))
    };
    NAMES.into_iter().find_map(named).unwrap_or(Cow::Borrowed("action"))
}
