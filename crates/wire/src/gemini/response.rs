//! The text of a function response, which is an object of any shape.

use crate::{edit, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// Where tools put what they say; `output` and `error` are the API's own words.
const WORDS: [&str; 4] = ["output", "result", "content", "error"];

/// What a response says.
pub(super) struct Read<'a> {
    /// Its one text, or the JSON of all of it.
    pub(super) text: Cow<'a, str>,
    pub(super) is_error: bool,
    /// Characters of what stands beside that text.
    pub(super) rest: usize,
}

/// The field with the text of a response: the only text among [`WORDS`], or the only field that is given.
fn field<'a>(response: &'a Value<'a>) -> Option<(&'a str, Cow<'a, str>)> {
    let text = |key: &'a str| Some((key, tagged::text(tagged::given(response, key)?)?));
    let mut said = WORDS.into_iter().filter_map(text);
    match (said.next(), said.next()) {
        (Some(one), None) => return Some(one),
        (Some(_), Some(_)) => return None,
        (None, _) => {}
    }
    let mut keys = tagged::object(response)?.keys().filter(|key| tagged::given(response, key).is_some());
    match (keys.next(), keys.next()) {
        (Some(only), None) => text(only),
        _ => None,
    }
}

/// Reads the `response` of a function response.
pub(super) fn read<'a>(function: &'a Value<'a>) -> Read<'a> {
    let Some(response) = tagged::given(function, "response") else {
        return Read { text: Cow::Borrowed(""), is_error: false, rest: 0 };
    };
    let given = |key| tagged::given(response, key).is_some();
    let is_error = given("error") && !given("output");
    if let Some((key, text)) = field(response) {
        let others = tagged::object(response).into_iter().flat_map(|fields| fields.iter());
        let others = others.filter(|(other, value)| {
            *other != key && (value.is_array() || value.is_object() || value.is_string())
        });
        let rest = others.map(|(key, value)| key.chars().count() + tagged::readable_chars(value)).sum();
        return Read { text, is_error, rest };
    }
    let text = tagged::text(response).unwrap_or_else(|| Cow::Owned(tagged::plain_json(response)));
    Read { text, is_error, rest: 0 }
}

/// Puts a text where the response's text stands; a response without such a place becomes `{ "output": text }`, or
/// `{ "error": text }` when it says that the call failed.
pub(super) fn write(function: &mut Value<'_>, text: &str) {
    let word = if read(function).is_error { "error" } else { "output" };
    let key = tagged::given(function, "response").and_then(field).map(|(key, _)| key.to_owned());
    let place = key.and_then(|key| edit::field_mut(edit::field_mut(function, "response")?, &key));
    match place {
        Some(place) => *place = edit::text(text),
        None => edit::set(function, "response", object(word, Some(edit::text(text)))),
    }
}

/// Says something beside what the response says.
pub(super) fn note(function: &mut Value<'_>, text: &str) {
    let response = match edit::field_mut(function, "response") {
        Some(response @ Value::Object(_)) => response,
        _ => return edit::set(function, "response", object(NOTE, Some(edit::text(text)))),
    };
    let before =
        tagged::given(response, NOTE).and_then(tagged::text).map(|before| format!("{before}\n{text}"));
    edit::set(response, NOTE, edit::text(before.as_deref().unwrap_or(text)));
}

/// Where a response says what was left out of it.
const NOTE: &str = "left_out";

/// A response that says one thing, or nothing.
pub(super) fn object<'v>(word: &'static str, value: Option<Value<'v>>) -> Value<'v> {
    Value::Object(value.map(|value| (word, value)).into_iter().collect())
}
