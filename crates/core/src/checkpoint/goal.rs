//! The goal of a session (`S5.13`): never compressed, shown to the model and to the summariser.

use crate::wire::record::{self, Json, ReadJson, Unreadable, WriteJson};
use crate::wire::{decimal, read_fields, write_fields};
use serde::Serialize;
use std::fmt::Write as _;

/// What a session is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Goal {
    /// The app's own id.
    pub id: String,
    /// What is to be reached.
    pub description: String,
    /// How much it matters.
    pub priority: Priority,
    /// Whether it is worked on.
    pub status: GoalStatus,
    /// The steps to it.
    pub checkpoints: Vec<GoalCheckpoint>,
    /// What was decided on the way.
    pub decisions: Vec<Decision>,
    /// What was made on the way.
    pub artifacts: Vec<Artifact>,
}

crate::wire::record!(Goal {
    id = "id",
    description = "description",
    priority = "priority" or default,
    status = "status" or default,
    checkpoints = "checkpoints" or default,
    decisions = "decisions" or default,
    artifacts = "artifacts" or default,
});

/// How much a goal matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// A little.
    Low,
    /// As most do.
    #[default]
    Medium,
    /// Much.
    High,
}

crate::wire::named!(Priority { Low = "low", Medium = "medium", High = "high" });

/// Whether a goal is worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GoalStatus {
    /// It is.
    #[default]
    Active,
    /// Not now.
    Paused,
    /// It was reached.
    Completed,
}

crate::wire::named!(GoalStatus { Active = "active", Paused = "paused", Completed = "completed" });

/// A step to a goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GoalCheckpoint {
    /// What it is; markers name it by this.
    pub description: String,
    /// How far it is.
    pub status: StepProgress,
    /// When it was completed, in ms since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Ms>,
}

crate::wire::record!(GoalCheckpoint {
    description = "description",
    status = "status" or default,
    completed_at = "completedAt" or nothing,
});

/// A time in ms since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ms(pub u64);

/// JavaScript may have written it with a fraction.
impl ReadJson<'_> for Ms {
    fn read(json: &mut Json<'_>) -> Result<Self, Unreadable> {
        decimal(json.raw()).map(|ms| Ms(ms as u64)).ok_or_else(|| Unreadable::no("time"))
    }
}

impl WriteJson for Ms {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum StepProgress {
    /// Not begun.
    #[default]
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Completed,
}

crate::wire::named!(StepProgress {
    Pending = "pending",
    InProgress = "in-progress",
    Completed = "completed",
});

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Unique in its goal.
    pub id: String,
    /// What.
    pub description: String,
    /// Why; empty when nobody said.
    pub rationale: String,
    /// It is not to be changed any more.
    pub locked: bool,
}

crate::wire::record!(Decision {
    id = "id",
    description = "description",
    rationale = "rationale" or default,
    locked = "locked" or default,
});

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "file")]
pub struct Artifact {
    /// Where.
    pub path: String,
    /// What was done to it.
    pub action: ArtifactAction,
}

impl WriteJson for Artifact {
    fn write(&self, out: &mut Vec<u8>) {
        let (kind, Artifact { path, action }) = (&String::from("file"), self);
        write_fields!(out, [kind = "type", path = "path", action = "action"]);
    }
}

impl ReadJson<'_> for Artifact {
    fn read(json: &mut Json<'_>) -> Result<Self, Unreadable> {
        read_fields!(json, Artifact, [path = "path", action = "action"])
    }
}

/// What was done to an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtifactAction {
    /// Created.
    Created,
    /// Modified.
    Modified,
    /// Deleted.
    Deleted,
}

crate::wire::named!(ArtifactAction { Created = "created", Modified = "modified", Deleted = "deleted" });

/// What the system prompt says about a goal.
const PROMPT: &str = include_str!("goal.md");

impl Goal {
    /// What the system prompt says about it, as long as it is worked on.
    pub fn prompt(&self) -> Option<String> {
        (self.status == GoalStatus::Active).then(|| format!("{}\n\n{}", self.block(), PROMPT.trim_end()))
    }

    /// The block of the prompt that says what the goal is, and how far it is.
    pub fn block(&self) -> String {
        let mut out = format!("ACTIVE GOAL: {}", self.description);
        // Writing to a string has no way to fail.
        let _ = write!(out, "\nPriority: {}\nStatus: {}", name(&self.priority), name(&self.status));
        if !self.checkpoints.is_empty() {
            out.push_str("\n\nCheckpoints:");
            for checkpoint in &self.checkpoints {
                let mark = match checkpoint.status {
                    StepProgress::Completed => "✅",
                    StepProgress::InProgress => "🔄",
                    StepProgress::Pending => "⏳",
                };
                let _ = write!(out, "\n{mark} {}", checkpoint.description);
            }
        }
        if !self.decisions.is_empty() {
            out.push_str("\n\nKey Decisions:");
            for decision in &self.decisions {
                let _ =
                    write!(out, "\n{} {}", if decision.locked { "🔒" } else { "-" }, decision.description);
            }
        }
        out
    }
}

/// The name under which a value is stored.
fn name(value: &impl WriteJson) -> String {
    record::to_text(value).trim_matches('"').to_string()
}

#[cfg(test)]
pub(super) fn sample() -> Goal {
    let checkpoint = |description: &str, status| GoalCheckpoint {
        description: description.into(),
        status,
        completed_at: None,
    };
    Goal {
        id: "g1".into(),
        description: "Ship the exporter".into(),
        priority: Priority::High,
        status: GoalStatus::Active,
        checkpoints: vec![
            checkpoint("Write it", StepProgress::Completed),
            checkpoint("Test it", StepProgress::InProgress),
            checkpoint("Release it", StepProgress::Pending),
        ],
        decisions: vec![
            Decision {
                id: "d1".into(),
                description: "UTF-8 only".into(),
                rationale: String::new(),
                locked: true,
            },
            Decision {
                id: "d2".into(),
                description: "No async".into(),
                rationale: "simple".into(),
                locked: false,
            },
        ],
        artifacts: vec![Artifact { path: "src/export.rs".into(), action: ArtifactAction::Created }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_13_the_block_of_the_prompt() {
        assert_eq!(
            sample().block(),
            "ACTIVE GOAL: Ship the exporter\nPriority: high\nStatus: active\n\nCheckpoints:\n✅ Write it\n\
             🔄 Test it\n⏳ Release it\n\nKey Decisions:\n🔒 UTF-8 only\n- No async"
        );
    }

    #[test]
    fn s5_13_the_shape_of_a_goal() {
        let json = serde_json::to_value(sample()).unwrap();
        assert_eq!(
            json["checkpoints"][1],
            serde_json::json!({ "description": "Test it", "status": "in-progress" })
        );
        assert_eq!(
            json["artifacts"][0],
            serde_json::json!({ "type": "file", "path": "src/export.rs", "action": "created" })
        );
        let bare: Goal = record::from_str(r#"{"id":"g","description":"x"}"#).unwrap();
        assert_eq!((bare.priority, bare.status), (Priority::Medium, GoalStatus::Active));
    }

    #[test]
    fn z10_a_goal_is_stored_as_it_is_reported() {
        let mut goal = sample();
        goal.checkpoints[0].completed_at = Some(Ms(1_700_000_000_000));
        let stored = record::to_text(&goal);
        assert_eq!(stored, serde_json::to_string(&goal).unwrap());
        assert_eq!(record::from_str::<Goal>(&stored).unwrap(), goal);
        // As JavaScript may have it.
        let fraction = stored.replace("1700000000000", "1.7000000000009e12");
        assert_eq!(record::from_str::<Goal>(&fraction).unwrap(), goal);
    }
}
