//! UI messages: `{ id, role, parts }`. A tool part holds a call and, once there is one, its result.

use super::output::{self, Output};
use super::{is_true, kind, options, read, text_of};
use crate::error::Result;
use crate::mark::mark;
use crate::message::{Pairing, Part, ToolCall, ToolResult};
use crate::read::At;
use crate::{edit, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// What the SDK tells the model of a denied call that nobody gave a reason for.
const DENIED: &str = "Tool call execution denied.";

pub(super) fn parts<'a>(message: &At<'a>) -> Result<Vec<Part<'a>>> {
    let mut parts = Vec::new();
    let Some(given) = message.get("parts") else {
        return message.fail_at("parts", "must be an array of parts");
    };
    for (kind, part) in given.blocks()? {
        push_part(kind, &part, &mut parts)?;
    }
    Ok(parts)
}

fn push_part<'a>(kind: Cow<'a, str>, part: &At<'a>, parts: &mut Vec<Part<'a>>) -> Result<()> {
    let value = part.value();
    match kind.as_ref() {
        "text" => read::text(part, parts)?,
        "reasoning" => parts.push(read::reasoning(part)?),
        "custom" => parts.push(read::custom(value)),
        "file" | "reasoning-file" => parts.push(Part::Media(read::media(value, "url"))),
        // What the user said while the model was working.
        "steering-message" => {
            if let Some(inner) = part.get("parts") {
                for (kind, said) in inner.blocks()? {
                    push_part(kind, &said, parts)?;
                }
            }
        }
        _ if is_tool(&kind) => push_tool(kind, part, parts)?,
        _ => {
            // Steps, sources and data are for the screen: the model is sent none of them.
            let chars = if is_for_screen(&kind) { 0 } else { tagged::readable_chars(value) };
            parts.push(Part::Opaque { kind, chars, tie: Pairing::None });
        }
    }
    Ok(())
}

fn is_for_screen(kind: &str) -> bool {
    kind == "step-start" || kind.starts_with("source-") || kind.starts_with("data-")
}

/// True for a part that holds a tool call.
pub(super) fn is_tool(kind: &str) -> bool {
    kind == "dynamic-tool" || kind.starts_with("tool-")
}

fn push_tool<'a>(kind: Cow<'a, str>, part: &At<'a>, parts: &mut Vec<Part<'a>>) -> Result<()> {
    let value = part.value();
    let id = part.need_text("toolCallId")?;
    let name = match kind.as_ref() {
        "dynamic-tool" => part.need_text("toolName")?,
        named => Cow::Owned(named.strip_prefix("tool-").unwrap_or_default().to_owned()),
    };
    part.need_text("state")?;
    // The provider ran it: call and result are one part, so nothing can part them.
    if is_true(value, "providerExecuted") {
        parts.push(Part::Opaque { kind, chars: tagged::readable_chars(value), tie: Pairing::None });
        return Ok(());
    }
    let input = ["input", "rawInput"].into_iter().find_map(|key| tagged::field(value, key));
    let arguments = Cow::Owned(input.map(tagged::plain_json).unwrap_or_default());
    parts.push(Part::ToolCall(ToolCall { id: id.clone(), name, arguments, caller: options::caller(value) }));
    if let Some(Output { text, is_error, media, rest }) = result(value) {
        let mark = mark(tagged::given(value, "callProviderMetadata"));
        parts.push(Part::ToolResult(ToolResult { call_id: id, text, is_error, media, mark }));
        parts.extend(rest);
    }
    Ok(())
}

/// The result that a tool part holds, by its state.
fn result<'a>(part: &'a Value<'a>) -> Option<Output<'a>> {
    Some(match State::of(part) {
        State::Answered => match tagged::field(part, "output") {
            Some(output) => Output::of_value(output, false),
            None => Output::of_text(Cow::Borrowed(""), false),
        },
        State::Failed => Output::of_text(text_of(part, "errorText").unwrap_or_default(), true),
        State::Denied => {
            let reason = tagged::given(part, "approval").and_then(|approval| text_of(approval, "reason"));
            Output::of_text(reason.unwrap_or(Cow::Borrowed(DENIED)), true)
        }
        State::Incomplete => return None,
    })
}

/// What has become of the call in a tool part (AI6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// `output-available`, also a preliminary output.
    Answered,
    /// `output-error`
    Failed,
    /// `output-denied`
    Denied,
    /// Any other: there is nothing yet that the model could be told.
    Incomplete,
}

impl State {
    pub(super) fn of(part: &Value<'_>) -> Self {
        match text_of(part, "state").as_deref() {
            Some("output-available") => State::Answered,
            Some("output-error") => State::Failed,
            Some("output-denied") => State::Denied,
            _ => State::Incomplete,
        }
    }
}

/// True for the parts that end a step: what comes behind them was said after the results before them were known.
pub(super) fn ends_step(kind: &str) -> bool {
    matches!(kind, "step-start" | "steering-message")
}

/// True for a part that is read as a call.
pub(super) fn is_call(part: &Value<'_>) -> bool {
    is_tool(&kind(part)) && !is_true(part, "providerExecuted")
}

/// True for a call that was answered and whose input is held to nothing: a signature, an id of a provider, an approval.
pub(super) fn is_plain_call(part: &Value<'_>) -> bool {
    let is_held = |key: &&str| tagged::given(part, key).is_some();
    is_call(part)
        && State::of(part) != State::Incomplete
        && !["callProviderMetadata", "providerMetadata", "approval"].iter().any(is_held)
}

/// See [`crate::Rules::with_result_text`]. Reasoning of later steps that is bound to the result goes with it.
pub(super) fn with_result_text(message: &Value<'_>, nth: usize, text: &str) -> Option<String> {
    let parts = super::parts(message);
    let has_result = |part: &Value<'_>| {
        is_tool(&kind(part)) && !is_true(part, "providerExecuted") && State::of(part) != State::Incomplete
    };
    let (at, part) = parts.iter().enumerate().filter(|(_, part)| has_result(part)).nth(nth)?;
    let mut edited = edit::copy(message);
    let edited_parts = super::parts_mut(&mut edited)?;
    say(part, edited_parts.get_mut(at)?, text);
    let mut position = 0;
    let mut later = false;
    edited_parts.retain(|part| {
        later |= position > at && ends_step(&kind(part));
        position += 1;
        !(later && options::is_bound(part))
    });
    Some(crate::json(&edited))
}

/// Puts a text in the place of what a tool part says.
fn say<'v>(part: &'v Value<'v>, slot: &mut Value<'v>, text: &'v str) {
    match State::of(part) {
        State::Failed => edit::set(slot, "errorText", edit::text(text)),
        State::Denied => {
            // A denial without an approval to say it in gets one: the text must stand somewhere.
            let given = tagged::given(part, "approval").and_then(tagged::object);
            match edit::field_mut(slot, "approval").filter(|_| given.is_some()) {
                Some(approval) => edit::set(approval, "reason", edit::text(text)),
                None => {
                    let reason = [("reason", edit::text(text))];
                    edit::set(slot, "approval", Value::Object(reason.into_iter().collect()));
                }
            }
        }
        State::Answered | State::Incomplete => {
            let output = match tagged::field(part, "output") {
                Some(output) => output::replaced(output, text),
                None => edit::text(text),
            };
            edit::set(slot, "output", output);
        }
    }
    // The ids of the call stay with the call; those of its result were of the old one.
    if let Some(noted) = options::without_server_ids(part, "resultProviderMetadata") {
        edit::set(slot, "resultProviderMetadata", noted);
    }
}
