//! What a test went through, in figures that add up over seeds and threads.

use std::collections::BTreeMap;
use std::fmt;

/// Counts by name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    /// Counts `number` more of `what`.
    pub fn add(&mut self, what: &'static str, number: usize) {
        *self.0.entry(what).or_default() += number as u64;
    }

    /// Adds those of another run.
    pub fn merge(&mut self, other: &Counts) {
        for (what, number) in &other.0 {
            *self.0.entry(what).or_default() += number;
        }
    }

    /// How many of `what`.
    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }

    /// A line that a script can read: `count {"check":…,"of":…,…}`.
    pub fn line(&self, check: &str, of: &str) -> String {
        let mut line = serde_json::json!({ "check": check, "of": of });
        for (what, number) in &self.0 {
            line[*what] = (*number).into();
        }
        format!("count {line}")
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> = self.0.iter().map(|(what, number)| format!("{number} {what}")).collect();
        write!(to, "{}", counts.join(", "))
    }
}
