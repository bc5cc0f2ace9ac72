//! Reading options with errors that name the option.

use crate::error::{Error, Result};
use serde_json_borrow::Value;

/// An options object, or the part of one at `path`.
pub(crate) struct Reader<'v> {
    value: Option<&'v Value<'v>>,
    path: String,
}

impl<'v> Reader<'v> {
    /// The options themselves: an object, or nothing.
    pub(crate) fn new(value: &'v Value<'v>) -> Result<Self> {
        Reader { value: None, path: String::new() }.group(Some(value))
    }

    /// A value that has a name of its own, as `goal` has.
    pub(crate) fn named(value: &'v Value<'v>, name: &str) -> Result<Self> {
        Reader { value: None, path: name.to_string() }.group(Some(value))
    }

    fn group(&self, value: Option<&'v Value<'v>>) -> Result<Self> {
        match value {
            None | Some(Value::Null) => Ok(Reader { value: None, path: self.path.clone() }),
            Some(value @ Value::Object(_)) => Ok(Reader { value: Some(value), path: self.path.clone() }),
            Some(_) => Err(Error::option(self.path.clone(), "must be an object")),
        }
    }

    fn get(&self, key: &str) -> Option<&'v Value<'v>> {
        let found = self.value?.as_object()?.get(key)?;
        (!found.is_null()).then_some(found)
    }

    fn name(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) }
    }

    /// The group of options under `key`.
    pub(crate) fn child(&self, key: &str) -> Result<Self> {
        Reader { value: None, path: self.name(key) }.group(self.get(key))
    }

    /// True when the group was given.
    pub(crate) fn is_given(&self) -> bool {
        self.value.is_some()
    }

    /// True when the option was given.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// A whole number in `min ..= max`.
    pub(crate) fn integer(&self, key: &str, min: usize, max: usize) -> Result<Option<usize>> {
        let Some(number) = self.number(key, min as f64, max as f64)? else { return Ok(None) };
        if number.fract() == 0.0 {
            Ok(Some(number as usize))
        } else {
            Err(Error::option(self.name(key), format!("must be a whole number, not {number}")))
        }
    }

    /// A number in `min ..= max`.
    pub(crate) fn number(&self, key: &str, min: f64, max: f64) -> Result<Option<f64>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.as_f64() {
            Some(number) if (min..=max).contains(&number) => Ok(Some(number)),
            Some(number) => {
                Err(Error::option(self.name(key), format!("must lie in {min} to {max}, not {number}")))
            }
            None => Err(Error::option(self.name(key), format!("must be a number from {min} to {max}"))),
        }
    }

    /// A text that is not empty.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'v str>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.as_str() {
            Some(text) if !text.trim().is_empty() => Ok(Some(text)),
            _ => Err(Error::option(self.name(key), "must be a text that is not empty")),
        }
    }

    /// One of a list of names.
    pub(crate) fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let chosen = value.as_str().and_then(|text| choices.iter().find(|(name, _)| *name == text));
        match chosen {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let names: Vec<String> = choices.iter().map(|(name, _)| format!("\"{name}\"")).collect();
                let given = value.as_str().unwrap_or_default();
                let near = choices.iter().map(|(name, _)| *name).find(|name| is_near(given, name));
                let meant = near.map_or_else(String::new, |name| format!("; did you mean \"{name}\"?"));
                Err(Error::option(self.name(key), format!("must be one of {}{meant}", names.join(", "))))
            }
        }
    }

    /// True for a number that is said to be infinite.
    pub(crate) fn is_infinite(&self, key: &str) -> bool {
        self.get(key).and_then(Value::as_str) == Some("Infinity")
    }

    /// A switch that is off unless it is given.
    pub(crate) fn flag(&self, key: &str) -> Result<bool> {
        Ok(self.switch(key)?.unwrap_or(false))
    }

    /// A switch.
    pub(crate) fn switch(&self, key: &str) -> Result<Option<bool>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(on)) => Ok(Some(*on)),
            Some(_) => Err(Error::option(self.name(key), "must be true or false")),
        }
    }

    /// A list of groups, or nothing.
    pub(crate) fn children(&self, key: &str) -> Result<Option<Vec<Reader<'v>>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let Value::Array(items) = value else { return Err(self.error(key, "must be a list of objects")) };
        let each = items.iter().enumerate().map(|(at, item)| {
            Reader { value: None, path: format!("{}[{at}]", self.name(key)) }.group(Some(item))
        });
        each.collect::<Result<Vec<_>>>().map(Some)
    }

    /// An object as JSON text.
    pub(crate) fn json(&self, key: &str) -> Result<Option<String>> {
        let group = self.child(key)?;
        Ok(group.value.map(crate::wire::json))
    }

    /// The error of an option of this group.
    pub(crate) fn error(&self, key: &str, what: &str) -> Error {
        Error::option(self.name(key), what)
    }

    /// A list of texts that are not empty.
    pub(crate) fn names(&self, key: &str) -> Result<Option<Vec<&'v str>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let fail = || Error::option(self.name(key), "must be a list of texts that are not empty");
        let Value::Array(items) = value else { return Err(fail()) };
        let texts =
            items.iter().map(|item| item.as_str().filter(|text| !text.trim().is_empty()).ok_or_else(fail));
        texts.collect::<Result<Vec<_>>>().map(Some)
    }

    /// Names and texts, as headers.
    pub(crate) fn texts(&self, key: &str) -> Result<Vec<(String, String)>> {
        let group = self.child(key)?;
        let Some(entries) = group.value.and_then(Value::as_object) else { return Ok(Vec::new()) };
        entries
            .iter()
            .map(|(name, value)| match value.as_str() {
                Some(text) => Ok((name.to_string(), text.to_string())),
                None => Err(Error::option(group.name(name), "must be a text")),
            })
            .collect()
    }
}

/// True for a name with a letter too many, too few, exchanged or of the other case; or two, in a longer one.
fn is_near(given: &str, name: &str) -> bool {
    let (given, name): (Vec<char>, Vec<char>) =
        (given.to_lowercase().chars().collect(), name.chars().collect());
    let mut row: Vec<usize> = (0..=given.len()).collect();
    for (nth, letter) in name.iter().enumerate() {
        let mut last = nth;
        if let Some(first) = row.first_mut() {
            *first = nth + 1;
        }
        let mut left = nth + 1;
        for (cell, other) in row.iter_mut().skip(1).zip(&given) {
            let next = (last + usize::from(letter != other)).min(*cell + 1).min(left + 1);
            last = std::mem::replace(cell, next);
            left = next;
        }
    }
    row.last().is_some_and(|steps| *steps <= 1.max(name.len() / 4))
}
