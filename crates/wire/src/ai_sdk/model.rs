//! Model messages: `{ role, content }`, a text or parts.

use super::output::{self, Output};
use super::{kind, options, read, role, text_of};
use crate::error::Result;
use crate::mark::mark;
use crate::message::{Pairing, Part, Role, ToolCall, ToolResult};
use crate::read::At;
use crate::{edit, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;

pub(super) fn parts<'a>(message: &At<'a>, role: Role) -> Result<Vec<Part<'a>>> {
    let what = match role {
        Role::System => "must be a string",
        Role::Tool => "must be an array of parts",
        Role::User | Role::Assistant => "must be a string or an array of parts",
    };
    let Some(content) = message.get("content") else {
        return message.fail_at("content", format!("{what}, and is missing"));
    };
    let mut parts = Vec::new();
    match tagged::text(content.value()) {
        Some(text) if role != Role::Tool => read::push_text(text, &mut parts),
        None if role != Role::System && content.value().is_array() => {
            for (kind, part) in content.blocks()? {
                push_part(kind, &part, role, &mut parts)?;
            }
        }
        _ => return content.fail(what),
    }
    Ok(parts)
}

fn push_part<'a>(kind: Cow<'a, str>, part: &At<'a>, role: Role, parts: &mut Vec<Part<'a>>) -> Result<()> {
    let value = part.value();
    match kind.as_ref() {
        "text" => read::text(part, parts)?,
        "reasoning" => parts.push(read::reasoning(part)?),
        "custom" => parts.push(read::custom(value)),
        "image" => parts.push(Part::Media(read::media(value, "image"))),
        "file" | "reasoning-file" => parts.push(Part::Media(read::media(value, "data"))),
        "tool-call" if is_app_call(value) => {
            let input = tagged::field(value, "input").map(tagged::plain_json);
            parts.push(Part::ToolCall(ToolCall {
                id: part.need_text("toolCallId")?,
                name: part.need_text("toolName")?,
                arguments: Cow::Owned(input.unwrap_or_default()),
                caller: options::caller(value),
            }));
        }
        "tool-result" if role != Role::Assistant => {
            let call_id = part.need_text("toolCallId")?;
            let found = match tagged::given(value, "output") {
                Some(output) => Output::of_tagged(output),
                None => Output::of_text(Cow::Borrowed(""), false),
            };
            let (text, is_error, media) = (found.text, found.is_error, found.media);
            let mark = mark(tagged::given(value, "providerOptions"));
            parts.push(Part::ToolResult(ToolResult { call_id, text, is_error, media, mark }));
            parts.extend(found.rest);
        }
        _ => {
            let tie = tie(&kind, part)?;
            parts.push(Part::Opaque { kind, chars: tagged::readable_chars(value), tie });
        }
    }
    Ok(())
}

/// True for a call of a tool that the app runs.
pub(super) fn is_app_call(part: &Value<'_>) -> bool {
    !super::is_true(part, "providerExecuted")
}

/// What a part opens or closes, also one of a type to come: requests and responses meet by their approval, calls and
/// results by their call.
fn tie<'a>(kind: &str, part: &At<'a>) -> Result<Pairing<'a>> {
    let (opens, key) = match kind {
        _ if kind.ends_with("-request") => (true, "approvalId"),
        _ if kind.ends_with("-response") => (false, "approvalId"),
        _ if kind.ends_with("-call") => (true, "toolCallId"),
        _ if kind.ends_with("-result") || kind.ends_with("-output") => (false, "toolCallId"),
        _ => return Ok(Pairing::None),
    };
    let id = if kind.starts_with("tool-") { Some(part.need_text(key)?) } else { text_of(part.value(), key) };
    Ok(match (id, opens) {
        (Some(id), true) => Pairing::Opens(id),
        (Some(id), false) => Pairing::Closes(id),
        (None, _) => Pairing::None,
    })
}

/// True for a part that is read as a call.
pub(super) fn is_call(part: &Value<'_>) -> bool {
    kind(part) == "tool-call" && is_app_call(part)
}

/// True for a call whose input no provider holds to anything: a signature, an id of its own.
pub(super) fn is_plain_call(part: &Value<'_>) -> bool {
    is_call(part) && tagged::given(part, "providerOptions").is_none()
}

/// See [`crate::Rules::with_result_text`]. Nothing in a message of results is bound to what stood before it.
pub(super) fn with_result_text(message: &Value<'_>, nth: usize, text: &str) -> Option<String> {
    if role(message) == "assistant" {
        return None;
    }
    let is_result = |part: &&Value<'_>| kind(part) == "tool-result";
    let result = super::parts(message).iter().filter(is_result).nth(nth)?;
    let mut edited = edit::copy(message);
    let slot =
        super::parts_mut(&mut edited)?.iter_mut().filter(|part| kind(part) == "tool-result").nth(nth)?;
    let output = match tagged::given(result, "output") {
        Some(output) => output::replace_tagged(output, text),
        None => output::retagged(edit::text(text)),
    };
    edit::set(slot, "output", output);
    if let Some(options) = options::without_server_ids(result, "providerOptions") {
        edit::set(slot, "providerOptions", options);
    }
    Some(crate::json(&edited))
}
