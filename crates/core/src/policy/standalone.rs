//! Options of the functions that need no session.

use super::presets::{BALANCED, PRESETS, Preset};
use super::reader::OptionReader;
use super::resolve::{DEFAULT_WINDOW, ESTIMATORS, MIN_WINDOW, estimator, read_goal};
use super::row::MAX;
use crate::checkpoint::{Goal, LEVELS, Level, Mode, Range};
use crate::error::Result;
use crate::summary::Focus;
use crate::tokens::{self, Estimator};
use crate::wire::Format;
use serde_json_borrow::Value;

/// Options of the functions that need no session.
#[derive(Debug, Clone, PartialEq)]
pub struct StandaloneOptions {
    /// Whose wording a summary prompt has.
    pub preset: &'static Preset,
    /// The messages' format, when the app says it.
    pub format: Option<Format>,
    /// The estimator.
    pub estimator: Estimator,
    /// Target length of a summary.
    pub target_tokens: usize,
    /// Ceiling of a summary request.
    pub max_input_tokens: Option<usize>,
    /// Guidance for a summary.
    pub instructions: Option<String>,
    /// The summary that a new one replaces.
    pub previous_summary: Option<String>,
    /// Secrets are replaced.
    pub redacts_secrets: bool,
    /// Rules that only some servers enforce are checked too.
    pub strict: bool,
    /// What the app is used for, when it says (`S5.10`).
    pub mode: Option<Mode>,
    /// How detailed a summary is to be, when the app says.
    pub level: Option<Level>,
    /// What a summary must report the progress of (`S5.13`).
    pub goal: Option<Goal>,
    /// The window, which the lengths of levels follow.
    pub window: usize,
    /// The app said how long a summary is to be.
    pub is_target_given: bool,
}

impl StandaloneOptions {
    /// Reads and checks them.
    ///
    /// Errors: [`crate::Code::InvalidOption`] naming the option.
    pub fn read(options: &Value<'_>) -> Result<Self> {
        let options = OptionReader::new(options)?;
        let presets: Vec<_> = PRESETS.iter().map(|preset| (preset.name, *preset)).collect();
        let preset = options.choice("preset", &presets)?.unwrap_or(&BALANCED);
        let numbers = preset.numbers;
        let target = options.integer("targetTokens", 1, MAX)?;
        Ok(StandaloneOptions {
            mode: options.text("mode")?.map(Mode::of),
            level: options.integer("detail", 1, 3)?.and_then(|number| Level::try_from(number as u8).ok()),
            goal: options.json("goal")?.map(|json| read_goal(&json)).transpose()?,
            window: options.integer("contextWindow", MIN_WINDOW, MAX)?.unwrap_or(DEFAULT_WINDOW),
            is_target_given: target.is_some(),
            preset,
            format: options.choice("format", &Format::ALL.map(|format| (format.as_str(), format)))?,
            estimator: {
                // Nothing else says that a name is misspelt: no window is looked up.
                options.text("model")?.map(tokens::of_known_model).transpose()?;
                estimator(options.choice("estimator", &ESTIMATORS)?, options.text("model")?).ready()?
            },
            target_tokens: target.unwrap_or(numbers.target_tokens),
            max_input_tokens: options.integer("maxInputTokens", 1, MAX)?,
            instructions: options.text("instructions")?.map(str::to_string),
            previous_summary: options.text("previousSummary")?.map(str::to_string),
            redacts_secrets: options.child("redact")?.switch("secrets")?.unwrap_or(true),
            strict: options.flag("strict")?,
        })
    }
}

impl StandaloneOptions {
    /// What a summary of `tokens` tokens is to stress, and how long it is to be.
    pub(crate) fn focus(&self, tokens: usize) -> (Option<Focus>, usize) {
        if !self.preset.checkpoints && self.mode.is_none() && self.level.is_none() {
            return (None, self.target_tokens);
        }
        let level = self.level.unwrap_or_else(|| LEVELS.of(tokens));
        let mut range = LEVELS.target(level, self.window);
        if self.is_target_given {
            range = Range { low: self.target_tokens / 2, high: self.target_tokens };
        }
        (Some(Focus { level, range, mode: self.mode.unwrap_or_default() }), range.high)
    }
}
