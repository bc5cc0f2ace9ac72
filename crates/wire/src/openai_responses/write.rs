//! New messages, and outputs with another text.

use super::item::{caller, kind, server_id, text_field};
use super::read::is_text;
use crate::{Author, edit, json, plain_message, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// A message of prose: with a type and with an array of parts where the one that it is to be like has them. What an
/// assistant says is a text in either case, since parts of it need ids of the server.
pub(super) fn text_message(author: Author, text: &str, like: Option<&Value<'_>>) -> String {
    if like.is_some_and(|like| tagged::given(like, "type").is_none()) {
        return plain_message(author, text);
    }
    let like = like.and_then(|like| tagged::given(like, "content"));
    let content = match (author, like) {
        (Author::User, Some(Value::Array(_))) => Value::Array(vec![text_part(text)]),
        _ => edit::text(text),
    };
    let fields = [("type", word("message")), ("role", word(author.role())), ("content", content)];
    json(&Value::Object(fields.into_iter().collect()))
}

fn word(text: &'static str) -> Value<'static> {
    Value::Str(Cow::Borrowed(text))
}

pub(super) fn text_part<'v>(text: &str) -> Value<'v> {
    Value::Object([("type", word("input_text")), ("text", edit::text(text))].into_iter().collect())
}

/// The output item with another text in the shape that it had, and without the id that the server gave it (OR4).
/// `None` for an item that is no output, or whose output has no place for a text.
pub(super) fn with_output_text(item: &Value<'_>, text: &str) -> Option<String> {
    let kind = kind(item)?;
    let mut edited = edit::copy(item);
    match kind.as_ref() {
        "shell_call_output" => replace_streams(edit::field_mut(&mut edited, "output")?, text)?,
        "apply_patch_call_output" => edit::set(&mut edited, "output", edit::text(text)),
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            match edit::field_mut(&mut edited, "output") {
                Some(Value::Array(parts)) => replace_parts(parts, text),
                _ => edit::set(&mut edited, "output", edit::text(text)),
            }
        }
        _ => return None,
    }
    let void: &[&str] = if server_id(item, &kind).is_some() { &["id"] } else { &[] };
    Some(json(&edit::without(&edited, void)))
}

/// The call with other arguments. `None` for what is no call of a function, and where the server has a record of it: its
/// id, or the code that made it.
pub(super) fn with_call_arguments(item: &Value<'_>, arguments: &str) -> Option<String> {
    let kind = kind(item)?;
    if kind != "function_call" || server_id(item, &kind).is_some() || caller(item).is_some() {
        return None;
    }
    let mut edited = edit::copy(item);
    edit::replace_arguments(&mut edited, "arguments", arguments)?;
    Some(json(&edited))
}

/// The text in place of the first text part; the others go, pictures and files stay.
fn replace_parts(parts: &mut Vec<Value<'_>>, text: &str) {
    let is_text = |part: &Value<'_>| text_field(part, "type").is_some_and(|kind| is_text(&kind));
    let Some(first) = parts.iter().position(is_text) else {
        parts.insert(0, text_part(text));
        return;
    };
    if let Some(part) = parts.get_mut(first) {
        edit::set(part, "text", edit::text(text));
    }
    let mut at = 0;
    parts.retain(|part| {
        at += 1;
        at - 1 == first || !is_text(part)
    });
}

/// The text as what the first command wrote; every command keeps its outcome.
fn replace_streams(output: &mut Value<'_>, text: &str) -> Option<()> {
    let Value::Array(chunks) = output else { return None };
    // What is no object has no streams.
    let is_command = |chunk: &Value<'_>| tagged::object(chunk).is_some();
    let first = chunks.iter().position(is_command)?;
    for (at, chunk) in chunks.iter_mut().enumerate().filter(|(_, chunk)| is_command(chunk)) {
        edit::set(chunk, "stdout", edit::text(if at == first { text } else { "" }));
        if edit::field_mut(chunk, "stderr").is_some() {
            edit::set(chunk, "stderr", edit::text(""));
        }
    }
    Some(())
}
