//! What the app is used for, and what a summary must preserve for that (`S5.10`).

use serde::Serialize;

/// What the app is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Writing software.
    Developer,
    /// Planning it.
    Planning,
    /// Finding faults.
    Debugger,
    /// Anything else.
    #[default]
    Assistant,
}

/// What a summary must preserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preservation {
    /// Code and paths.
    pub preserve_code: bool,
    /// Goals and objectives.
    pub preserve_goals: bool,
    /// Errors with their traces.
    pub preserve_errors: bool,
    /// Decisions: always.
    pub preserve_decisions: bool,
}

impl Mode {
    /// Every mode with its name; the document has them in upper case.
    pub const ALL: [(&'static str, Mode); 4] = [
        ("developer", Mode::Developer),
        ("planning", Mode::Planning),
        ("debugger", Mode::Debugger),
        ("assistant", Mode::Assistant),
    ];

    /// The mode with this name; an unknown one is `ASSISTANT`, as the document has it.
    pub fn of(name: &str) -> Mode {
        let known = Mode::ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        known.map_or(Mode::Assistant, |(_, mode)| *mode)
    }

    /// What a summary must preserve in this mode.
    pub fn preservation(self) -> Preservation {
        Preservation {
            preserve_code: matches!(self, Mode::Developer | Mode::Debugger),
            preserve_goals: self == Mode::Planning,
            preserve_errors: self == Mode::Debugger,
            preserve_decisions: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_10_what_each_mode_preserves() {
        let flags = |name| {
            let kept = Mode::of(name).preservation();
            [kept.preserve_code, kept.preserve_goals, kept.preserve_errors, kept.preserve_decisions]
        };
        assert_eq!(flags("DEVELOPER"), [true, false, false, true]);
        assert_eq!(flags("PLANNING"), [false, true, false, true]);
        assert_eq!(flags("DEBUGGER"), [true, false, true, true]);
        assert_eq!(flags("ASSISTANT"), [false, false, false, true]);
        assert_eq!(flags("anything"), flags("ASSISTANT"));
    }
}
