//! What a summary should stress: a level, a mode, a goal (`S5.7`, `S5.10`, `S5.13`).

use super::prompt::fill;
use super::render::escape;
use crate::checkpoint::{Goal, Level, Mode, Range};

const FOCUS: &str = include_str!("prompts/focus.md");
const GOAL: &str = include_str!("prompts/goal.md");

/// How detailed a summary is to be, and what it must preserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Focus {
    /// How detailed.
    pub level: Level,
    /// The length that this asks for.
    pub range: Range,
    /// What for.
    pub mode: Mode,
}

/// What a level asks for.
pub(super) fn level(level: Level, range: Range) -> String {
    let template = match level {
        Level::Compact => include_str!("prompts/level_1.md"),
        Level::Moderate => include_str!("prompts/level_2.md"),
        Level::Detailed => include_str!("prompts/level_3.md"),
    };
    fill(template.trim_end(), &[("low", &range.low.to_string()), ("high", &range.high.to_string())])
}

/// The part of a prompt that says what to stress.
pub(super) fn focus(focus: Focus) -> String {
    let mode = match focus.mode {
        Mode::Developer => include_str!("prompts/mode_developer.md"),
        Mode::Planning => include_str!("prompts/mode_planning.md"),
        Mode::Debugger => include_str!("prompts/mode_debugger.md"),
        Mode::Assistant => include_str!("prompts/mode_assistant.md"),
    };
    let level = level(focus.level, focus.range);
    fill(FOCUS.trim_end(), &[("level", &level), ("mode", mode.trim_end())])
}

/// The part of a prompt that tells the goal. Markers of a model may have written in it: it is fenced.
pub(super) fn goal(goal: &Goal) -> String {
    fill(GOAL.trim_end(), &[("goal", &escape(&goal.block()))])
}
