//! Changing one field of a message and nothing else.

use super::tagged;
use serde_json_borrow::{ObjectAsVec, Value};
use std::borrow::Cow;

/// The fields of an object, to be changed in place, also of an escaped one.
pub(super) fn fields_mut<'e, 'v>(value: &'e mut Value<'v>) -> Option<&'e mut ObjectAsVec<'v>> {
    let escaped = tagged::is_escaped(value);
    let Value::Object(fields) = value else { return None };
    if !escaped {
        return Some(fields);
    }
    match fields.get_mut("v") {
        Some(Value::Object(plain)) => Some(plain),
        _ => None,
    }
}

/// A field to be changed in place.
pub(super) fn field_mut<'e, 'v>(value: &'e mut Value<'v>, key: &str) -> Option<&'e mut Value<'v>> {
    fields_mut(value)?.get_mut(key)
}

/// Sets a field, in its place when it exists.
pub(super) fn set<'v>(value: &mut Value<'v>, key: &'static str, to: Value<'v>) {
    if let Some(fields) = fields_mut(value) {
        match fields.get_mut(key) {
            Some(field) => *field = to,
            None => {
                fields.insert(key, to);
            }
        }
    }
}

/// An owned text as a JSON value.
pub(super) fn text<'v>(text: &str) -> Value<'v> {
    Value::Str(Cow::Owned(text.to_owned()))
}

/// A text block.
pub(super) fn text_block<'v>(content: &str) -> Value<'v> {
    Value::Object(
        [("type", Value::Str(Cow::Borrowed("text"))), ("text", text(content))].into_iter().collect(),
    )
}

/// Replaces the text of a content field: a string stays a string, an array keeps its other blocks and gets the
/// text in place of its first text block. An empty text leaves no text block, since providers refuse those.
pub(super) fn replace_text(message: &mut Value<'_>, content: &str) {
    let blocks = match field_mut(message, "content") {
        Some(Value::Array(blocks)) => blocks,
        _ => return set(message, "content", text(content)),
    };
    let is_text =
        |block: &Value<'_>| tagged::field(block, "type").and_then(tagged::text).as_deref() == Some("text");
    match blocks.iter().position(is_text) {
        _ if content.is_empty() => blocks.retain(|block| !is_text(block)),
        None => blocks.insert(0, text_block(content)),
        Some(first) => {
            let mut at = 0;
            blocks.retain(|block| {
                at += 1;
                at - 1 == first || !is_text(block)
            });
            if let Some(block) = blocks.get_mut(first) {
                set(block, "text", text(content));
            }
        }
    }
}
