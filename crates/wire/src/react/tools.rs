//! Tools of a trajectory: a plain description, an action, a turn with its result.

use super::React;
use crate::error::Result;
use crate::message::ToolCall;
use crate::read::At;
use crate::tools::{Calling, Tool, Tools, described, named, object};
use crate::{edit, json, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// Fields of an action that name its tool: a text, or an object with a `name`.
const NAMES: [&str; 7] = ["tool", "name", "tool_name", "toolName", "action", "function", "type"];
/// Fields of an action that hold the tool's arguments; where there is none, they stand beside the name.
const ARGUMENTS: [&str; 5] = ["arguments", "args", "input", "parameters", "params"];

impl Tools for React {
    fn define_tool(&self, tool: &Tool) -> Value<'static> {
        object(described(tool, "parameters"))
    }
}

impl Calling for React {
    fn read_call<'a>(&self, call: &'a Value<'a>) -> Result<ToolCall<'a>> {
        let action = At::message(0, action(call))?;
        let named = |key| {
            let found = tagged::given(action.value(), key)?;
            Some((tagged::text(found).or_else(|| tagged::text(tagged::given(found, "name")?))?, found))
        };
        let Some((name, inner)) = NAMES.into_iter().find_map(named) else {
            return action.fail_at("tool", "must name the tool, and is missing");
        };
        let arguments = [action.value(), inner]
            .into_iter()
            .find_map(|holder| ARGUMENTS.into_iter().find_map(|key| tagged::given(holder, key)));
        let arguments = match arguments {
            Some(given) => tagged::text(given).unwrap_or_else(|| Cow::Owned(tagged::plain_json(given))),
            None => Cow::Owned(tagged::plain_json(action.value())),
        };
        Ok(ToolCall { id: Cow::Borrowed(""), name, arguments, caller: None })
    }

    /// The turn: what was handed over with its result, or, for an action alone, one with no thought.
    fn answer_call(&self, call: &Value<'_>, _read: &ToolCall<'_>, answer: &str, _is_error: bool) -> String {
        let mut turn = match is_turn(call) {
            true => call.clone(),
            false => object([named("thought", ""), ("action", call.clone())]),
        };
        edit::set(&mut turn, "result", edit::text(answer));
        json(&turn)
    }
}

/// A turn without its result yet: `{ thought, action }`.
fn is_turn(call: &Value<'_>) -> bool {
    tagged::given(call, "action").is_some_and(|action| tagged::object(action).is_some())
}

fn action<'a>(call: &'a Value<'a>) -> &'a Value<'a> {
    match tagged::given(call, "action") {
        Some(action) if tagged::object(action).is_some() => action,
        _ => call,
    }
}
