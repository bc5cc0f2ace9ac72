//! Reading the options that an app gave against the table.

use super::options::OPTIONS;
use super::presets::{BALANCED, PRESETS, Preset};
use super::reader;
use super::row::{Documented, Off, OptionKind, Row};
use super::rung::Rung;
use crate::error::{Error, Result};
use serde_json_borrow::Value;

/// Options that were given, each checked by its row, whatever name it was given by.
pub(super) struct GivenOptions<'v> {
    pub(super) preset: &'static Preset,
    entries: Vec<GivenEntry<'v>>,
    /// Groups that were given as objects.
    groups: Vec<(&'static str, &'v Value<'v>)>,
    /// What `false`, or its like in an original system, was given for.
    off: Vec<&'static str>,
    /// The provider is to compact.
    pub(super) server: bool,
}

struct GivenEntry<'v> {
    row: &'static Row,
    value: &'v Value<'v>,
    /// The name that it was given by.
    path: String,
}

/// Checks the name and the value of each option by itself, as the reader in JavaScript does.
///
/// Errors: [`crate::Code::InvalidOption`] naming the option.
pub fn check_options(options: &Value<'_>) -> Result<()> {
    GivenOptions::read(options).map(drop)
}

impl<'v> GivenOptions<'v> {
    /// Errors: [`crate::Code::InvalidOption`] naming the option.
    pub(super) fn read(options: &'v Value<'v>) -> Result<Self> {
        let name = options.get("preset");
        if let Some((row, name)) = row("preset").zip(Some(name).filter(|name| !name.is_null())) {
            check(row, row.path, name)?;
        }
        let preset =
            PRESETS.iter().find(|preset| name.as_str() == Some(preset.name)).copied().unwrap_or(&BALANCED);
        let mut given =
            GivenOptions { preset, entries: Vec::new(), groups: Vec::new(), off: Vec::new(), server: false };
        given.members("", "", options)?;
        Ok(given)
    }

    /// The members of the group `real`, which was given as `shown`.
    fn members(&mut self, shown: &str, real: &str, object: &'v Value<'v>) -> Result<()> {
        let members = object.as_object().ok_or_else(|| Error::option(shown, "must be an object"))?;
        let join = |group: &str, name: &str| {
            if group.is_empty() { name.to_string() } else { format!("{group}.{name}") }
        };
        members
            .iter()
            .filter(|(_, value)| !value.is_null())
            .try_for_each(|(name, value)| self.take(join(shown, name), &join(real, name), value))
    }

    fn take(&mut self, shown: String, real: &str, value: &'v Value<'v>) -> Result<()> {
        if let Some(name) = real.strip_prefix("presetOptions.") {
            let name = format!("{}.{name}", self.preset.name);
            return match documented(&name) {
                Some((row, documented)) => self.documented(row, documented, shown, value),
                None => Err(Error::option(shown, format!("is not an option of preset {}", self.preset.name))),
            };
        }
        if real == "facts" {
            return Ok(());
        }
        match row(real) {
            Some(row) => self.row(row, shown, value),
            None => Err(Error::option(shown, "is not an option of this release")),
        }
    }

    fn row(&mut self, row: &'static Row, shown: String, value: &'v Value<'v>) -> Result<()> {
        if row.or_false && matches!(value, Value::Bool(false)) {
            self.off.push(row.path);
            return Ok(());
        }
        match row.kind {
            OptionKind::Group { .. } if matches!(value, Value::Object(_)) => {
                self.groups.push((row.path, value));
                self.members(&shown, row.path, value)
            }
            OptionKind::Group { short: Some(member), .. } => match (value, self::row(member)) {
                (Value::Bool(_), Some(member)) if matches!(member.kind, OptionKind::Flag) => {
                    self.row(member, shown, value)
                }
                (_, Some(Row { kind: OptionKind::Flag, .. })) => {
                    Err(Error::option(shown, "must be true, false or an object"))
                }
                (Value::Bool(true), Some(member)) => self.row(member, shown, value),
                _ if value.as_str() == Some("extractive") => Ok(()),
                _ if value.as_str() == Some("server") => {
                    self.server = true;
                    Ok(())
                }
                _ => Err(Error::option(shown, "must be a function, an object, \"server\" or \"extractive\"")),
            },
            OptionKind::Group { .. } if row.or_false => {
                Err(Error::option(shown, "must be an object or false"))
            }
            OptionKind::Group { .. } => Err(Error::option(shown, "must be an object")),
            _ => self.add(row, shown, value),
        }
    }

    /// An option by its name in an original system.
    fn documented(
        &mut self,
        row: &'static Row,
        documented: &Documented,
        path: String,
        value: &'v Value<'v>,
    ) -> Result<()> {
        let off = if row.or_false { row.path } else { parent(row.path) };
        let is_off = match (documented.off, value) {
            (None, _) => false,
            (Some(Off::Switch), Value::Bool(on)) if *on => return Ok(()),
            (Some(Off::Switch), Value::Bool(_)) => true,
            (Some(Off::Switch), _) => return Err(Error::option(path, "must be true or false")),
            (Some(Off::Text(text)), value) => value.as_str() == Some(text),
            (Some(Off::Choice([off, on])), value) => match value.as_str() {
                Some(text) if text == on => return Ok(()),
                Some(text) if text == off => true,
                _ => return Err(Error::option(path, format!("must be one of \"{off}\", \"{on}\""))),
            },
        };
        if is_off {
            self.off.push(off);
            return Ok(());
        }
        self.row(row, path, value)
    }

    fn add(&mut self, row: &'static Row, path: String, value: &'v Value<'v>) -> Result<()> {
        if let Some(other) = self.entries.iter().find(|entry| entry.row.path == row.path) {
            return Err(Error::option(path, format!("is {} by another name: give one of them", other.path)));
        }
        check(row, &path, value)?;
        self.entries.push(GivenEntry { row, value, path });
        Ok(())
    }

    /// Refuses what would have no effect, by the rungs that there are.
    pub(super) fn check_effects(&self, rungs: &[Rung]) -> Result<()> {
        let idle = |row: &Row| row.rung.is_some_and(|rung| !rungs.contains(&rung));
        for (group, _) in &self.groups {
            let Some(row) = row(group).filter(|row| idle(row)) else { continue };
            return Err(self.no_effect(row, row.path));
        }
        match self.entries.iter().find(|entry| idle(entry.row) && !self.is_off(parent(entry.row.path))) {
            Some(entry) => Err(self.no_effect(entry.row, &entry.path)),
            None => Ok(()),
        }
    }

    /// Refuses an option that this preset has no use for.
    pub(super) fn refuse(&self, path: &str) -> Result<()> {
        let entry = self.entry(path);
        entry.map_or(Ok(()), |entry| Err(self.no_effect(entry.row, &entry.path)))
    }

    /// The error of an option that does nothing.
    fn no_effect(&self, row: &Row, path: &str) -> Error {
        let remedy = match row.rung {
            Some(Rung::Compress) => ": it is of preset react alone".to_owned(),
            Some(Rung::Age) => ": it is of preset checkpoint alone".to_owned(),
            Some(Rung::Process | Rung::Admit | Rung::Clear | Rung::Offload) => {
                let path = row.path.strip_prefix("advanced.").unwrap_or(row.path);
                format!(": switch it on with {}: {{}}", path.split('.').next().unwrap_or_default())
            }
            _ => String::new(),
        };
        Error::option(path, format!("has no effect in preset {}{remedy}", self.preset.name))
    }

    fn entry(&self, path: &str) -> Option<&GivenEntry<'v>> {
        debug_assert!(row(path).is_some(), "{path} is no option");
        self.entries.iter().find(|entry| entry.row.path == path)
    }

    /// The name that the option was given by.
    pub(super) fn path_of<'a>(&'a self, path: &'a str) -> &'a str {
        self.entry(path).map_or(path, |entry| &entry.path)
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.entry(path).is_some()
    }

    /// True for a group that was given as an object.
    pub(super) fn has_group(&self, path: &str) -> bool {
        self.group(path).is_some()
    }

    /// A group as it was given.
    pub(super) fn group(&self, path: &str) -> Option<&'v Value<'v>> {
        debug_assert!(row(path).is_some(), "{path} is no option");
        self.groups.iter().find(|(group, _)| *group == path).map(|(_, value)| *value)
    }

    pub(super) fn is_off(&self, path: &str) -> bool {
        self.off.contains(&path)
    }

    pub(super) fn number(&self, path: &str) -> Option<f64> {
        let value = self.entry(path)?.value;
        value.as_f64().or_else(|| value.as_bool().map(|on| f64::from(u8::from(on))))
    }

    pub(super) fn count(&self, path: &str) -> Option<usize> {
        self.number(path).map(|number| number as usize)
    }

    pub(super) fn flag(&self, path: &str) -> Option<bool> {
        self.entry(path)?.value.as_bool()
    }

    pub(super) fn text(&self, path: &str) -> Option<&'v str> {
        self.entry(path)?.value.as_str()
    }

    /// The choice of this list that was given.
    pub(super) fn choice<T: Copy>(&self, path: &str, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text(path)?;
        choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, choice)| *choice)
    }

    pub(super) fn names(&self, path: &str) -> Option<Vec<&'v str>> {
        let Value::Array(items) = self.entry(path)?.value else { return None };
        Some(items.iter().filter_map(Value::as_str).collect())
    }

    /// A value that has a reader of its own.
    pub(super) fn value(&self, path: &str) -> Option<&'v Value<'v>> {
        self.entry(path).map(|entry| entry.value)
    }
}

fn row(path: &str) -> Option<&'static Row> {
    OPTIONS.iter().find(|row| row.path == path)
}

fn documented(name: &str) -> Option<(&'static Row, &'static Documented)> {
    OPTIONS.iter().find_map(|row| {
        row.documented_as
            .iter()
            .find(|documented| documented.name == name)
            .map(|documented| (row, documented))
    })
}

/// The group that an option is of.
fn parent(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(group, _)| group)
}

/// In WebAssembly the reader in JavaScript did it, by the same table.
fn check(row: &Row, path: &str, value: &Value<'_>) -> Result<()> {
    if cfg!(target_arch = "wasm32") {
        return Ok(());
    }
    match row.kind {
        OptionKind::Count { least, most } => reader::whole(path, value, least, most).map(drop),
        OptionKind::Number { least, most } => reader::number(path, value, least, most).map(drop),
        OptionKind::Flag => reader::switch(path, value).map(drop),
        OptionKind::Text => reader::text(path, value).map(drop),
        OptionKind::Names => reader::check_names(path, value),
        OptionKind::Choice(names) => reader::choice(path, value, &names()).map(drop),
        OptionKind::Function(_) if matches!(value, Value::Bool(true)) => Ok(()),
        OptionKind::Function(_) => Err(Error::option(path, "must be a function")),
        OptionKind::Value(_) | OptionKind::Host(_) | OptionKind::Group { .. } => Ok(()),
    }
}
