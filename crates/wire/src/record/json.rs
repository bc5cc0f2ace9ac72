//! JSON text that is known to be whole, value by value.

use serde::de::{Deserialize, IgnoredAny};
use std::borrow::Cow;
use std::fmt;

/// Why a record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable(String);

impl Unreadable {
    /// What it is not.
    #[cold]
    pub fn no(what: &str) -> Self {
        Unreadable(format!("it is no {what}"))
    }

    #[cold]
    #[doc(hidden)]
    pub fn missing(name: &str) -> Self {
        Unreadable(format!("{name} is missing"))
    }

    #[cold]
    pub(super) fn twice(name: &str) -> Self {
        Unreadable(format!("{name} is there twice"))
    }

    #[cold]
    pub(super) fn inside(self, name: &str) -> Self {
        Unreadable(format!("{name}: {}", self.0))
    }

    #[cold]
    pub(super) fn of_json(error: serde_json::Error) -> Self {
        Unreadable(crate::error::Error::of_json(&error))
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What is left of a text of JSON. That it is JSON was seen to, so that here a value ends where the next sign says.
pub struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// Errors: the text is no JSON, or there is more than one value.
    pub fn of(text: &'a str) -> Result<Self, Unreadable> {
        serde_json::from_str::<IgnoredAny>(text).map_err(Unreadable::of_json)?;
        Ok(Json(text))
    }

    /// The value that comes next, as it stands in the text.
    pub fn raw(&mut self) -> &'a str {
        self.next();
        let bytes = self.0.as_bytes();
        let end = match bytes.first() {
            Some(b'"') => end_of_string(bytes),
            Some(b'{' | b'[') => end_of_nested(bytes),
            _ => bytes.iter().position(|byte| b",]} \t\r\n".contains(byte)).unwrap_or(bytes.len()),
        };
        let (value, rest) = self.0.split_at_checked(end).unwrap_or((self.0, ""));
        self.0 = rest;
        value
    }

    /// The value that comes next, as `serde` reads it.
    #[doc(hidden)]
    pub fn by_serde<T: Deserialize<'a>>(&mut self) -> Result<T, Unreadable> {
        serde_json::from_str(self.raw()).map_err(Unreadable::of_json)
    }

    /// A string.
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, Unreadable> {
        let raw = self.raw();
        match raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(text) if !text.contains('\\') => Ok(Cow::Borrowed(text)),
            Some(_) => serde_json::from_str(raw).map(Cow::Owned).map_err(Unreadable::of_json),
            None => Err(Unreadable::no("text")),
        }
    }

    /// True where an object comes next.
    pub fn is_object(&mut self) -> bool {
        self.next();
        self.0.starts_with('{')
    }

    /// An object: `each` reads the value of a field.
    pub fn object(
        &mut self,
        each: &mut dyn FnMut(&str, &mut Json<'a>) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        self.list('{', '}', &mut |json| {
            let key = json.string()?;
            if !json.takes(':') {
                return Err(Unreadable::no("object"));
            }
            each(&key, json)
        })
    }

    /// An object of one field, whose name says what its value is.
    pub fn variant<T>(
        &mut self,
        read: impl Fn(&str, &mut Json<'a>) -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        let mut variant = None;
        self.object(&mut |name, json| {
            if variant.is_some() {
                return Err(Unreadable::no("object of one field"));
            }
            variant = Some(read(name, json)?);
            Ok(())
        })?;
        variant.ok_or_else(|| Unreadable::no("object of one field"))
    }

    /// An array: `each` reads an element.
    pub(super) fn array(
        &mut self,
        each: &mut dyn FnMut(&mut Json<'a>) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        self.list('[', ']', each)
    }

    fn list(
        &mut self,
        open: char,
        close: char,
        each: &mut dyn FnMut(&mut Json<'a>) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        let what = if open == '{' { "object" } else { "array" };
        if !self.takes(open) {
            return Err(Unreadable::no(what));
        }
        if self.takes(close) {
            return Ok(());
        }
        loop {
            each(self)?;
            if self.takes(close) {
                return Ok(());
            }
            if !self.takes(',') {
                return Err(Unreadable::no(what));
            }
        }
    }

    /// True for `null`, which is then behind it.
    pub(super) fn takes_null(&mut self) -> bool {
        self.next();
        let rest = self.0.strip_prefix("null");
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn takes(&mut self, sign: char) -> bool {
        self.next();
        let rest = self.0.strip_prefix(sign);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn next(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t', '\r', '\n']);
    }
}

/// Bytes of the string that begins here.
fn end_of_string(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(step) =
        bytes.get(at..).unwrap_or_default().iter().position(|byte| matches!(byte, b'"' | b'\\'))
    {
        at += step;
        if bytes.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// Bytes of the object or array that begins here.
fn end_of_nested(bytes: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += end_of_string(bytes.get(at..).unwrap_or_default());
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Appends a text that needs no escapes, in quotes.
pub(super) fn quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}
