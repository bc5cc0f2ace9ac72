//! What a summary should stress: a level, a mode, a goal (`S5.7`, `S5.10`, `S5.13`).

use super::prompt::fill;
use super::render::escape;
use crate::checkpoint::{Goal, Level, Mode, Preservation, Range};

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
    let mode = preserved(focus.mode.preservation()) + mode.trim_end();
    fill(FOCUS.trim_end(), &[("level", &level), ("mode", &mode)])
}

/// A line for each kind of content that must not be lost.
fn preserved(flags: Preservation) -> String {
    let lines = [
        (flags.preserve_code, include_str!("prompts/preserve_code.md")),
        (flags.preserve_goals, include_str!("prompts/preserve_goals.md")),
        (flags.preserve_errors, include_str!("prompts/preserve_errors.md")),
        (flags.preserve_decisions, include_str!("prompts/preserve_decisions.md")),
    ];
    lines.into_iter().filter(|(is_set, _)| *is_set).map(|(_, line)| line).collect()
}

/// The part of a prompt that states the goal. Markers of a model may have written in it: it is fenced.
pub(super) fn goal(goal: &Goal) -> String {
    fill(GOAL.trim_end(), &[("goal", &escape(&goal.block()))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f32_each_flag_changes_the_prompt() {
        let none = Preservation {
            preserve_code: false,
            preserve_goals: false,
            preserve_errors: false,
            preserve_decisions: false,
        };
        let flags = [
            (Preservation { preserve_code: true, ..none }, "- code and the paths of files"),
            (Preservation { preserve_goals: true, ..none }, "- goals and objectives"),
            (Preservation { preserve_errors: true, ..none }, "- error messages and stack traces"),
            (Preservation { preserve_decisions: true, ..none }, "- decisions that were made"),
        ];
        assert_eq!(preserved(none), "");
        for (set, line) in flags {
            assert!(preserved(set).starts_with(line), "{set:?}");
            // And only the modes that set it have its line.
            for (name, mode) in Mode::ALL {
                let range = Range { low: 1, high: 2 };
                let prompt = focus(Focus { level: Level::Compact, range, mode });
                let kept = mode.preservation();
                let is_set = (set.preserve_code && kept.preserve_code)
                    || (set.preserve_goals && kept.preserve_goals)
                    || (set.preserve_errors && kept.preserve_errors)
                    || (set.preserve_decisions && kept.preserve_decisions);
                assert_eq!(prompt.contains(line), is_set, "{name}: {prompt}");
            }
        }
    }
}
