//! Typed access to the fields of a message, with errors that name the place.

use super::tagged;
use crate::error::{Error, Result};
use crate::message::{Message, Part, Role};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// A role, to be named in an error: what is no name may be anything, and is not repeated.
pub(super) fn named(role: &str) -> String {
    let is_name = role.len() <= 24
        && role.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if is_name { format!("`{role}`") } else { "the role".into() }
}

/// A message of the user, in formats where results stand in such messages: they belong to the exchange of the model's message
/// before, whatever the user adds, and come first; without a text beside them the message is the tools'.
pub(super) fn of_user(parts: Vec<Part<'_>>) -> Message<'_> {
    let is_result = |part: &Part<'_>| matches!(part, Part::ToolResult(_));
    if !parts.iter().any(is_result) {
        return Message { role: Role::User, parts };
    }
    let has_text = parts.iter().any(|part| matches!(part, Part::Text(_)));
    let role = if has_text { Role::User } else { Role::Tool };
    let (mut parts, rest): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_result);
    parts.extend(rest);
    Message { role, parts }
}

/// A value and where it stands: message index and path.
#[derive(Clone)]
pub(super) struct At<'a> {
    index: usize,
    path: String,
    value: &'a Value<'a>,
}

impl<'a> At<'a> {
    /// A whole message.
    pub(super) fn message(index: usize, value: &'a Value<'a>) -> Result<Self> {
        let at = At { index, path: String::new(), value };
        if tagged::object(value).is_some() {
            Ok(at)
        } else {
            at.fail("a message must be an object with a role")
        }
    }

    /// The value itself.
    pub(super) fn value(&self) -> &'a Value<'a> {
        self.value
    }

    /// An error at this place.
    pub(super) fn fail<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(Error::message(self.index, self.path.clone(), what))
    }

    /// An error at a field of this value.
    pub(super) fn fail_at<T>(&self, key: &str, what: impl Into<String>) -> Result<T> {
        Err(Error::message(self.index, self.join(key), what))
    }

    fn join(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// A field; `None` when it is absent, undefined or null.
    pub(super) fn get(&self, key: &str) -> Option<At<'a>> {
        let value = tagged::given(self.value, key)?;
        Some(At { index: self.index, path: self.join(key), value })
    }

    /// A text.
    pub(super) fn text(&self) -> Result<Cow<'a, str>> {
        tagged::text(self.value).map_or_else(|| self.fail("must be a string"), Ok)
    }

    /// A text field that must be given.
    pub(super) fn need_text(&self, key: &str) -> Result<Cow<'a, str>> {
        match self.get(key) {
            Some(field) => field.text(),
            None => self.fail_at(key, "must be a string, and is missing"),
        }
    }

    /// An object field that must be given.
    pub(super) fn need_object(&self, key: &str) -> Result<At<'a>> {
        match self.get(key) {
            Some(field) if tagged::object(field.value).is_some() => Ok(field),
            Some(field) => field.fail("must be an object"),
            None => self.fail_at(key, "must be an object, and is missing"),
        }
    }

    /// The items of an array.
    pub(super) fn items(&self) -> Result<impl Iterator<Item = At<'a>> + use<'a>> {
        let Value::Array(items) = self.value else {
            return self.fail("must be an array");
        };
        let (index, path) = (self.index, self.path.clone());
        Ok(items.iter().enumerate().map(move |(at, value)| At {
            index,
            path: format!("{path}[{at}]"),
            value,
        }))
    }

    /// The text blocks, objects with a `type`, of an array of content; each with its type.
    pub(super) fn blocks(&self) -> Result<Vec<(Cow<'a, str>, At<'a>)>> {
        self.items()?
            .map(|block| match tagged::object(block.value) {
                Some(_) => Ok((block.need_text("type")?, block)),
                None => block.fail("a content block must be an object with a type"),
            })
            .collect()
    }
}
