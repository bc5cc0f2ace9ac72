//! Markers with which a model reports on its goal (`S5.13`). They count at the start of a line only, so that a text
//! about markers, or one that quotes a tool's output inside a sentence, changes nothing.

use super::goal::{Artifact, ArtifactAction, Decision, Goal, Ms, StepProgress};

/// A text of a marker is cut after this many characters: the goal is part of every prompt.
const MOST_CHARS: usize = 500;
/// Decisions and artifacts beyond this many are not taken from markers any more, for the same reason.
const MOST: usize = 100;

/// What a marker says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// A step is this far.
    Checkpoint(String, StepProgress),
    /// Something was decided; locked or not.
    Decision(String, bool),
    /// Something was made.
    Artifact(String, ArtifactAction),
}

/// Where markers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In what the model says now.
    Output,
    /// In a summary of the past: it takes no step back.
    Summary,
}

/// The markers of a text, in order.
pub fn markers(text: &str) -> Vec<Update> {
    text.lines().filter_map(marker).collect()
}

fn marker(line: &str) -> Option<Update> {
    let line = line.trim_end();
    if let Some(rest) = line.strip_prefix("[CHECKPOINT] ") {
        let (text, status) = rest.rsplit_once(" - ")?;
        let status = match status {
            "COMPLETED" => StepProgress::Completed,
            "IN-PROGRESS" => StepProgress::InProgress,
            "PENDING" => StepProgress::Pending,
            _ => return None,
        };
        Some(Update::Checkpoint(named(text)?, status))
    } else if let Some(rest) = line.strip_prefix("[DECISION] ") {
        let locked = rest.strip_suffix(" - LOCKED");
        // A dash that nothing follows is no part of it.
        let open = rest.strip_suffix(" -").unwrap_or(rest);
        Some(Update::Decision(named(locked.unwrap_or(open))?, locked.is_some()))
    } else if let Some(rest) = line.strip_prefix("[ARTIFACT] ") {
        let (action, path) = rest.split_once(' ')?;
        let action = match action {
            "Created" => ArtifactAction::Created,
            "Modified" => ArtifactAction::Modified,
            "Deleted" => ArtifactAction::Deleted,
            _ => return None,
        };
        Some(Update::Artifact(named(path)?, action))
    } else {
        None
    }
}

fn named(text: &str) -> Option<String> {
    let text = crate::text::range(text.trim(), 0, Some(MOST_CHARS));
    (!text.is_empty()).then_some(text)
}

impl Goal {
    /// Takes over what markers say. Steps that it does not have are ignored; what it knows already is not noted twice.
    pub fn update(&mut self, updates: &[Update], source: Source, now: u64) {
        for update in updates {
            match update {
                Update::Checkpoint(text, status) => self.advance(text, *status, source, now),
                Update::Decision(text, locked) => self.decide(text, *locked),
                Update::Artifact(path, action) => self.note(path, *action),
            }
        }
    }

    fn advance(&mut self, text: &str, status: StepProgress, source: Source, now: u64) {
        let known = self.checkpoints.iter_mut().find(|checkpoint| checkpoint.description == text);
        let Some(checkpoint) = known else { return };
        let back = status < checkpoint.status;
        if status == checkpoint.status || (back && source == Source::Summary) {
            return;
        }
        checkpoint.status = status;
        checkpoint.completed_at = (status == StepProgress::Completed).then_some(Ms(now));
    }

    fn decide(&mut self, text: &str, locked: bool) {
        if let Some(known) = self.decisions.iter_mut().find(|decision| decision.description == text) {
            known.locked |= locked;
            return;
        }
        if self.decisions.len() >= MOST {
            return;
        }
        let mut number = self.decisions.len() + 1;
        let mut id = format!("d{number}");
        while self.decisions.iter().any(|decision| decision.id == id) {
            number += 1;
            id = format!("d{number}");
        }
        let (description, rationale) = (text.to_string(), String::new());
        self.decisions.push(Decision { id, description, rationale, locked });
    }

    fn note(&mut self, path: &str, action: ArtifactAction) {
        let last = self.artifacts.iter().rev().find(|artifact| artifact.path == path);
        if last.is_some_and(|last| last.action == action) || self.artifacts.len() >= MOST {
            return;
        }
        self.artifacts.push(Artifact { path: path.to_string(), action });
    }
}

#[cfg(test)]
mod tests {
    use super::super::goal::sample;
    use super::*;

    #[test]
    fn s5_13_markers_are_read_at_the_start_of_a_line_only() {
        let text = "[CHECKPOINT] Test it - COMPLETED\r\n  [CHECKPOINT] Release it - COMPLETED\nI write [DECISION] no\n\
                    [DECISION] Keep - it - simple\n[DECISION] Use serde - LOCKED\n[ARTIFACT] Created src/a b.rs\n\
                    [ARTIFACT] Renamed x\n[ARTIFACT] Deleted \n[CHECKPOINT] Release it - DONE\n[DECISION] ";
        assert_eq!(
            markers(text),
            [
                Update::Checkpoint("Test it".into(), StepProgress::Completed),
                Update::Decision("Keep - it - simple".into(), false),
                Update::Decision("Use serde".into(), true),
                Update::Artifact("src/a b.rs".into(), ArtifactAction::Created),
            ]
        );
    }

    #[test]
    fn f30_a_decision_has_no_dash_behind_it() {
        let said = |text: &str, locked| vec![Update::Decision(text.into(), locked)];
        for (line, expected) in [
            ("[DECISION] Use serde - ", said("Use serde", false)),
            ("[DECISION] Use serde -", said("Use serde", false)),
            ("[DECISION] Use serde - LOCKED", said("Use serde", true)),
            ("[DECISION] Use serde - OPEN", said("Use serde - OPEN", false)),
            ("[DECISION] Pass --", said("Pass --", false)),
            ("[DECISION]  - ", vec![]),
            ("[DECISION] -", said("-", false)),
        ] {
            assert_eq!(markers(line), expected, "{line:?}");
        }
    }

    #[test]
    fn s5_13_markers_update_the_goal() {
        let mut goal = sample();
        let text = "[CHECKPOINT] Test it - COMPLETED\n[CHECKPOINT] Unknown - COMPLETED\n[DECISION] Use serde - LOCKED\n\
                    [DECISION] No async - LOCKED\n[ARTIFACT] Modified src/export.rs\n[ARTIFACT] Created a.rs";
        // Reported again later, it is done since the first time.
        for now in [7, 8] {
            goal.update(&markers(text), Source::Output, now);
        }
        assert_eq!(
            (goal.checkpoints[1].status, goal.checkpoints[1].completed_at),
            (StepProgress::Completed, Some(Ms(7)))
        );
        assert_eq!(goal.checkpoints.len(), 3, "an unknown step is ignored");
        let decisions: Vec<(&str, &str, bool)> = goal
            .decisions
            .iter()
            .map(|decision| (decision.id.as_str(), decision.description.as_str(), decision.locked))
            .collect();
        assert_eq!(
            decisions,
            [("d1", "UTF-8 only", true), ("d2", "No async", true), ("d3", "Use serde", true)]
        );
        assert_eq!(goal.artifacts.len(), 3);
        goal.update(&markers("[CHECKPOINT] Test it - PENDING"), Source::Summary, 9);
        assert_eq!(goal.checkpoints[1].completed_at, Some(Ms(7)), "a summary of the past takes no step back");
        goal.update(&markers("[CHECKPOINT] Test it - PENDING"), Source::Output, 9);
        assert_eq!(
            (goal.checkpoints[1].status, goal.checkpoints[1].completed_at),
            (StepProgress::Pending, None)
        );
    }

    #[test]
    fn s5_13_markers_do_not_grow_a_goal_without_bound() {
        let mut goal = sample();
        let text: String = (0..1_000).map(|n| format!("[DECISION] {n} {}\n", "한".repeat(900))).collect();
        goal.update(&markers(&text), Source::Output, 0);
        assert_eq!(goal.decisions.len(), MOST);
        assert!(goal.decisions.iter().all(|decision| decision.description.chars().count() <= MOST_CHARS));
    }
}
