//! Reading options with errors that name the option.

use crate::error::{Error, Result};
use serde_json_borrow::Value;
use std::collections::BTreeMap;

/// An options object, or the part of one at `path`.
pub(crate) struct OptionReader<'v> {
    value: Option<&'v Value<'v>>,
    path: String,
}

impl<'v> OptionReader<'v> {
    /// The options themselves: an object, or nothing.
    pub(crate) fn new(value: &'v Value<'v>) -> Result<Self> {
        OptionReader { value: None, path: String::new() }.group(Some(value))
    }

    /// A value that has a name of its own, as `goal` has.
    pub(crate) fn named(value: &'v Value<'v>, name: &str) -> Result<Self> {
        OptionReader { value: None, path: name.to_string() }.group(Some(value))
    }

    fn group(&self, value: Option<&'v Value<'v>>) -> Result<Self> {
        match value {
            None | Some(Value::Null) => Ok(OptionReader { value: None, path: self.path.clone() }),
            Some(value @ Value::Object(_)) => {
                Ok(OptionReader { value: Some(value), path: self.path.clone() })
            }
            Some(_) => Err(Error::option(self.path.clone(), "must be an object")),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&'v Value<'v>> {
        let found = self.value?.as_object()?.get(key)?;
        (!found.is_null()).then_some(found)
    }

    fn name(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) }
    }

    /// The group of options under `key`.
    pub(crate) fn child(&self, key: &str) -> Result<Self> {
        OptionReader { value: None, path: self.name(key) }.group(self.get(key))
    }

    /// True when the group was given.
    pub(crate) fn is_given(&self) -> bool {
        self.value.is_some()
    }

    /// A whole number in `min ..= max`.
    pub(crate) fn integer(&self, key: &str, min: usize, max: usize) -> Result<Option<usize>> {
        self.get(key).map(|value| whole(&self.name(key), value, min, max)).transpose()
    }

    /// A number in `min ..= max`.
    pub(crate) fn number(&self, key: &str, min: f64, max: f64) -> Result<Option<f64>> {
        self.get(key).map(|value| number(&self.name(key), value, min, max)).transpose()
    }

    /// A text that is not empty.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'v str>> {
        self.get(key).map(|value| text(&self.name(key), value)).transpose()
    }

    /// One of a list of names.
    pub(crate) fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let chosen = choice(&self.name(key), value, &names)?;
        Ok(choices.get(chosen).map(|(_, choice)| *choice))
    }

    /// A switch that is off unless it is given.
    pub(crate) fn flag(&self, key: &str) -> Result<bool> {
        Ok(self.switch(key)?.unwrap_or(false))
    }

    /// A switch.
    pub(crate) fn switch(&self, key: &str) -> Result<Option<bool>> {
        self.get(key).map(|value| switch(&self.name(key), value)).transpose()
    }

    /// A list of groups, or nothing.
    pub(crate) fn children(&self, key: &str) -> Result<Option<Vec<OptionReader<'v>>>> {
        self.get(key).map(|value| OptionReader::list(&self.name(key), value)).transpose()
    }

    /// Refuses what is none of these fields.
    pub(super) fn check_fields(&self, known: &[&str]) -> Result<()> {
        let fields = self.value.and_then(Value::as_object);
        let other = fields.into_iter().flat_map(|fields| fields.keys()).find(|key| !known.contains(key));
        other.map_or(Ok(()), |key| {
            Err(self.error(key, &format!("is not known; there are {}", known.join(", "))))
        })
    }

    /// The groups of a list.
    pub(super) fn list(path: &str, value: &'v Value<'v>) -> Result<Vec<OptionReader<'v>>> {
        let Value::Array(items) = value else { return Err(Error::option(path, "must be a list of objects")) };
        let each = items
            .iter()
            .enumerate()
            .map(|(at, item)| OptionReader { value: None, path: format!("{path}[{at}]") }.group(Some(item)));
        each.collect()
    }

    /// The error of an option of this group.
    pub(crate) fn error(&self, key: &str, what: &str) -> Error {
        Error::option(self.name(key), what)
    }

    /// An object as JSON text.
    pub(crate) fn json(&self, key: &str) -> Result<Option<String>> {
        Ok(self.child(key)?.value.map(crate::wire::json))
    }

    /// Names and texts, as headers.
    pub(super) fn texts(path: &str, value: &Value<'_>) -> Result<BTreeMap<String, String>> {
        let entries = value.as_object().ok_or_else(|| Error::option(path, "must be an object"))?;
        let mut texts = BTreeMap::new();
        for (name, value) in entries.iter() {
            let text = value.as_str();
            let text = text.ok_or_else(|| Error::option(format!("{path}.{name}"), "must be a text"))?;
            texts.insert(name.to_string(), text.to_string());
        }
        Ok(texts)
    }
}

/// A whole number in `min ..= max`.
pub(super) fn whole(path: &str, value: &Value<'_>, min: usize, max: usize) -> Result<usize> {
    let number = number(path, value, min as f64, max as f64)?;
    if number.fract() == 0.0 {
        Ok(number as usize)
    } else {
        Err(Error::option(path, format!("must be a whole number, not {}", shown(number))))
    }
}

/// A number in `min ..= max`.
pub(super) fn number(path: &str, value: &Value<'_>, min: f64, max: f64) -> Result<f64> {
    let given = value.as_f64();
    if let Some(number) = given.filter(|number| (min..=max).contains(number)) {
        return Ok(number);
    }
    let (least, most) = (shown(min), shown(max));
    Err(Error::option(
        path,
        match given {
            Some(number) => format!("must lie in {least} to {most}, not {}", shown(number)),
            None => format!("must be a number from {least} to {most}"),
        },
    ))
}

/// A number as JSON has it: `{}` would be a second writer of numbers, of 16 KB.
fn shown(number: f64) -> String {
    let text = serde_json::Number::from_f64(number).map(|number| number.to_string()).unwrap_or_default();
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// A text that is not empty.
pub(super) fn text<'v>(path: &str, value: &'v Value<'_>) -> Result<&'v str> {
    match value.as_str() {
        Some(text) if !text.trim().is_empty() => Ok(text),
        _ => Err(Error::option(path, "must be a text that is not empty")),
    }
}

/// `true` or `false`.
pub(super) fn switch(path: &str, value: &Value<'_>) -> Result<bool> {
    value.as_bool().ok_or_else(|| Error::option(path, "must be true or false"))
}

/// A list of texts that are not empty.
pub(super) fn check_names(path: &str, value: &Value<'_>) -> Result<()> {
    let is_name = |item: &Value<'_>| item.as_str().is_some_and(|text| !text.trim().is_empty());
    match value {
        Value::Array(items) if items.iter().all(is_name) => Ok(()),
        _ => Err(Error::option(path, "must be a list of texts that are not empty")),
    }
}

/// The place of one of these names.
pub(super) fn choice(path: &str, value: &Value<'_>, names: &[&str]) -> Result<usize> {
    let given = value.as_str().unwrap_or_default();
    if let Some(at) = names.iter().position(|name| *name == given) {
        return Ok(at);
    }
    let near = names.iter().find(|name| is_near(given, name));
    let meant = near.map_or_else(String::new, |name| format!("; did you mean \"{name}\"?"));
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    Err(Error::option(path, format!("must be one of {}{meant}", names.join(", "))))
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
