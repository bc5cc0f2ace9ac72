//! Changing one field of a message and nothing else.

use super::tagged;
use serde_json_borrow::{ObjectAsVec, Value};
use std::borrow::Cow;

/// A value to be changed, which shares its texts with this one: some are large.
pub(super) fn copy<'v>(value: &'v Value<'_>) -> Value<'v> {
    match value {
        Value::Str(text) => Value::Str(Cow::Borrowed(text)),
        Value::Array(items) => Value::Array(items.iter().map(copy).collect()),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, field)| (key, copy(field))).collect())
        }
        Value::Null => Value::Null,
        Value::Bool(flag) => Value::Bool(*flag),
        Value::Number(number) => Value::Number(*number),
    }
}

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

/// Replaces arguments: where they are JSON text, by this text; where they are an object, by this object. `None` when they are
/// neither.
pub(super) fn replace_arguments<'v>(call: &mut Value<'v>, key: &str, arguments: &'v str) -> Option<()> {
    let slot = field_mut(call, key)?;
    let mut object: Value<'v> = serde_json::from_str(arguments).ok().filter(Value::is_object)?;
    let is_object = |json: &str| serde_json::from_str::<Value<'_>>(json).is_ok_and(|value| value.is_object());
    if tagged::text(slot).is_some_and(|json| is_object(&json)) {
        *slot = text(arguments);
    } else if tagged::object(slot).is_some() {
        tagged::escape(&mut object);
        *slot = object;
    } else {
        return None;
    }
    Some(())
}

/// The object without these fields.
pub(super) fn without<'v>(value: &'v Value<'v>, keys: &[&str]) -> Value<'v> {
    let kept = |fields: &'v ObjectAsVec<'v>| -> Value<'v> {
        Value::Object(
            fields
                .iter()
                .filter(|(key, _)| !keys.contains(key))
                .map(|(key, field)| (key, field.clone()))
                .collect(),
        )
    };
    match value {
        Value::Object(fields) if !tagged::is_escaped(value) => kept(fields),
        Value::Object(fields) => {
            let inner = |(key, field): (&'v str, &'v Value<'v>)| match (key, field) {
                ("v", Value::Object(plain)) => (key, kept(plain)),
                _ => (key, field.clone()),
            };
            Value::Object(fields.iter().map(inner).collect())
        }
        other => other.clone(),
    }
}

/// Replaces lone surrogates by U+FFFD everywhere inside.
pub(super) fn make_well_formed(value: &mut Value<'_>) {
    if tagged::is_ill_formed_text(value) {
        *value = text(&tagged::text(value).unwrap_or_default());
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(make_well_formed),
        Value::Object(fields) => {
            let keys: Vec<String> = fields.keys().map(str::to_owned).collect();
            for key in keys {
                if let Some(field) = fields.get_mut(&key) {
                    make_well_formed(field);
                }
            }
        }
        _ => {}
    }
}

/// Takes the `cache_control` off a block and the blocks inside it: what is left is what the model sees.
pub(super) fn unmark(block: &mut Value<'_>) {
    if field_mut(block, "cache_control").is_some() {
        set(block, "cache_control", Value::Null);
    }
    if let Some(Value::Array(inner)) = field_mut(block, "content") {
        inner.iter_mut().for_each(unmark);
    }
}
