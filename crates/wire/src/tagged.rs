//! Values that plain JSON cannot hold, as the codec writes them: objects `{"$cc": name, "v": value}`.
//!
//! | name | `v` |
//! |---|---|
//! | `bytes` | base64 |
//! | `date`, `url` | text |
//! | `undefined` | nothing: the field counts as absent |
//! | `utf16` | base64 of the UTF-16LE units of a string with lone surrogates |
//! | `number` | `NaN`, `Infinity`, `-Infinity`, `-0` |
//! | `object` | a plain object that has a `$cc` key of its own |

use base64ct::{Base64, Encoding};
use serde_json_borrow::{ObjectAsVec, Value};
use std::borrow::Cow;

/// Name and payload of a tagged value.
fn tag<'a>(value: &'a Value<'a>) -> Option<(&'a str, &'a Value<'a>)> {
    let object = value.as_object()?;
    let name = object.get("$cc")?.as_str()?;
    Some((name, object.get("v").unwrap_or(&Value::Null)))
}

/// A plain object, also one that had to be escaped; tagged values are no objects.
pub(super) fn object<'a>(value: &'a Value<'a>) -> Option<&'a ObjectAsVec<'a>> {
    match tag(value) {
        Some(("object", plain)) => plain.as_object(),
        Some(_) => None,
        None => value.as_object(),
    }
}

/// True for an object in its escape `{"$cc": "object", "v": …}`.
pub(super) fn is_escaped(value: &Value<'_>) -> bool {
    matches!(tag(value), Some(("object", _)))
}

/// Makes of plain JSON what the codec writes: an object that has a `$cc` key of its own is escaped.
pub(super) fn escape(value: &mut Value<'_>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(escape),
        Value::Object(fields) => {
            let keys: Vec<String> = fields.keys().map(str::to_owned).collect();
            for key in &keys {
                if let Some(field) = fields.get_mut(key) {
                    escape(field);
                }
            }
            if fields.contains_key("$cc") {
                let plain = std::mem::replace(value, Value::Null);
                let kind = Value::Str(Cow::Borrowed("object"));
                *value = Value::Object([("$cc", kind), ("v", plain)].into_iter().collect());
            }
        }
        _ => {}
    }
}

/// A field of an object; `None` when it is absent or undefined.
pub(super) fn field<'a>(value: &'a Value<'a>, key: &str) -> Option<&'a Value<'a>> {
    let found = object(value)?.get(key)?;
    (!matches!(tag(found), Some(("undefined", _)))).then_some(found)
}

/// A field that is given: `None` also when it is null.
pub(super) fn given<'a>(value: &'a Value<'a>, key: &str) -> Option<&'a Value<'a>> {
    field(value, key).filter(|found| !found.is_null())
}

/// A string; lone surrogates are read as U+FFFD.
pub(super) fn text<'a>(value: &'a Value<'a>) -> Option<Cow<'a, str>> {
    match value {
        Value::Str(text) => Some(Cow::Borrowed(text.as_ref())),
        _ => match tag(value)? {
            ("utf16", units) => Some(Cow::Owned(String::from_utf16_lossy(&utf16(units)))),
            ("date" | "url", text) => text.as_str().map(Cow::Borrowed),
            _ => None,
        },
    }
}

/// The UTF-16 units of a `utf16` payload; what cannot be decoded is one lone surrogate, so that it is reported.
fn utf16(payload: &Value<'_>) -> Vec<u16> {
    let bytes = payload.as_str().and_then(|text| Base64::decode_vec(text).ok());
    match bytes {
        Some(bytes) if bytes.len().is_multiple_of(2) => bytes
            .chunks_exact(2)
            .map(|pair| pair.iter().rev().fold(0, |unit, byte| unit << 8 | u16::from(*byte)))
            .collect(),
        _ => vec![0xD800],
    }
}

/// The base64 of bytes.
pub(super) fn base64<'a>(value: &'a Value<'a>) -> Option<&'a str> {
    match tag(value) {
        Some(("bytes", payload)) => payload.as_str(),
        _ => None,
    }
}

/// Length of the decoded payload of base64 text or bytes, without decoding it.
pub(super) fn decoded_length(value: &Value<'_>) -> usize {
    match tag(value) {
        Some(("bytes", payload)) => payload.as_str().map_or(0, base64_length),
        _ => value.as_str().map_or(0, base64_length),
    }
}

/// Length of what base64 text decodes to.
pub(super) fn base64_length(text: &str) -> usize {
    let digits = text.trim_end_matches(['=', '\n']).len();
    digits / 4 * 3 + digits % 4 * 3 / 4
}

/// Length of what a `data:` URL holds; `None` for any other URL.
pub(super) fn data_url_length(url: &str) -> Option<usize> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    Some(if kind.ends_with(";base64") { base64_length(data) } else { data.len() })
}

/// True for a string with a lone surrogate.
pub(super) fn is_ill_formed_text(value: &Value<'_>) -> bool {
    match tag(value) {
        Some(("utf16", units)) => char::decode_utf16(utf16(units)).any(|unit| unit.is_err()),
        _ => false,
    }
}

/// True when a string anywhere inside has a lone surrogate (providers answer 400).
pub(super) fn is_ill_formed(value: &Value<'_>) -> bool {
    match value {
        Value::Array(items) => items.iter().any(is_ill_formed),
        Value::Object(fields) => {
            is_ill_formed_text(value) || fields.iter().any(|(_, field)| is_ill_formed(field))
        }
        _ => false,
    }
}

/// The JSON that a provider is sent for a value: tags resolved as `JSON.stringify` does.
pub(super) fn plain_json(value: &Value<'_>) -> String {
    super::json(&plain(value))
}

/// The plain JSON of a value: tags resolved as `JSON.stringify` does.
pub(super) fn plain<'a>(value: &'a Value<'a>) -> Value<'a> {
    match (tag(value), value) {
        (Some(("object", payload)), _) => match payload.as_object() {
            Some(fields) => plain_fields(fields),
            None => Value::Null,
        },
        (Some(("number", payload)), _) if payload.as_str() == Some("-0") => Value::Number(0_u64.into()),
        (Some(("bytes", payload)), _) => payload.clone(),
        (Some(_), _) => text(value).map_or(Value::Null, Value::Str),
        (None, Value::Array(items)) => Value::Array(items.iter().map(plain).collect()),
        (None, Value::Object(fields)) => plain_fields(fields),
        // It may be large, and is not copied.
        (None, Value::Str(text)) => Value::Str(Cow::Borrowed(text)),
        _ => value.clone(),
    }
}

fn plain_fields<'a>(fields: &'a ObjectAsVec<'a>) -> Value<'a> {
    let defined = |field: &Value<'_>| !matches!(tag(field), Some(("undefined", _)));
    Value::Object(
        fields.iter().filter(|(_, field)| defined(field)).map(|(key, field)| (key, plain(field))).collect(),
    )
}

/// Characters of a block's JSON that a model would read: inline payloads (bytes, `data:` URLs) count nothing.
pub(super) fn readable_chars(value: &Value<'_>) -> usize {
    match tag(value) {
        Some(("bytes" | "undefined", _)) => 0,
        Some(("utf16", payload)) => utf16(payload).len(),
        // A `$cc` of its own is a field like others.
        Some(("object", Value::Object(fields))) => chars_of_fields(fields),
        Some((_, payload)) => readable_chars(payload),
        None => match value {
            Value::Null | Value::Bool(_) => 4,
            Value::Number(_) => super::json(value).len(),
            Value::Str(text) if data_url_length(text).is_some() => 0,
            Value::Str(text) => text.chars().count() + 2,
            Value::Array(items) => items.iter().map(|item| readable_chars(item) + 1).sum::<usize>() + 2,
            Value::Object(fields) => chars_of_fields(fields),
        },
    }
}

fn chars_of_fields(fields: &ObjectAsVec<'_>) -> usize {
    fields.iter().map(|(key, field)| key.chars().count() + readable_chars(field) + 4).sum::<usize>() + 2
}

#[cfg(test)]
mod tests {
    use super::{decoded_length, readable_chars};
    use serde_json_borrow::Value;

    #[test]
    fn f39_a_key_of_the_app_that_is_named_as_the_tag_is_a_field_like_others() {
        let read = |text| readable_chars(&serde_json::from_str::<Value<'_>>(text).unwrap());
        let own = r#"{"$cc":"object","v":{"$cc":"bytes","v":"AAAA"}}"#;
        assert_eq!(read(own), read(r#"{"a$c":"bytes","v":"AAAA"}"#));
        assert_eq!(read(r#"{"$cc":"bytes","v":"AAAA"}"#), 0);
    }

    #[test]
    fn f39_what_has_neither_bytes_nor_text_has_no_length() {
        assert_eq!(decoded_length(&Value::Null), 0);
        assert_eq!(decoded_length(&Value::Bool(true)), 0);
        assert_eq!(decoded_length(&Value::Str("AAAA".into())), 3);
    }
}
