//! What set a compaction off.

use serde::Serialize;

/// What set a compaction off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// The preset's own rule.
    Auto,
    /// The user or the app asked for it.
    Manual,
    /// The model asked for it (`X11`).
    Model,
    /// The provider said that the prompt was too long.
    Overflow,
    /// Nothing.
    None,
}

impl Trigger {
    /// True where somebody wants a summary, whatever the size.
    pub(crate) fn is_wish(self) -> bool {
        matches!(self, Trigger::Manual | Trigger::Model)
    }

    /// The name in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Trigger::Auto => "auto",
            Trigger::Manual => "manual",
            Trigger::Model => "model",
            Trigger::Overflow => "overflow",
            Trigger::None => "none",
        }
    }
}
