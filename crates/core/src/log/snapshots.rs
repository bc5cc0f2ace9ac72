//! Snapshots in the log (`S5.2`): a row that names a view, and what goes with it.

use super::record::Kind;
use super::state::State;
use super::stored::row_at;
use crate::checkpoint::Goal;
use crate::context::Origin;
use crate::error::{Code, Error, Result};
use serde::{Deserialize, Serialize};

/// What a snapshot is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SnapshotPurpose {
    /// To go on from after a fault.
    Recovery,
    /// To come back to.
    Rollback,
    /// Taken by the session itself before a step that is to make a prompt fit (`S5.15`).
    Emergency,
}

impl SnapshotPurpose {
    /// A purpose that the app may give.
    ///
    /// Errors: [`Code::InvalidOption`].
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "recovery" => Ok(SnapshotPurpose::Recovery),
            "rollback" => Ok(SnapshotPurpose::Rollback),
            _ => Err(Error::option("purpose", r#"must be "recovery" or "rollback""#)),
        }
    }
}

/// Where in the log a snapshot is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The snapshot's id.
    pub(crate) id: String,
    /// Position of its log row.
    pub(crate) seq: u64,
}

/// The body of a log row of kind `snapshot`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SnapshotNote {
    /// Its id.
    pub(crate) snapshot: String,
    /// What it is for.
    pub(crate) purpose: SnapshotPurpose,
    /// The view. The context is that, and the messages behind it up to the snapshot's own row.
    pub(crate) generation: u64,
    /// First log row behind the view.
    pub(crate) tail_from: u64,
    /// Summaries of the history by then.
    pub(crate) compressions: u64,
    /// The goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) goal: Option<Goal>,
    /// Messages in the context.
    pub(crate) items: usize,
    /// Checkpoints among them.
    pub(crate) checkpoints: usize,
    /// Tokens of the context.
    pub(crate) tokens: usize,
}

impl SnapshotNote {
    pub(crate) fn of(state: &State, id: &str, purpose: SnapshotPurpose) -> Self {
        let items = state.context.items();
        let summaries = items.iter().filter(|item| matches!(item.origin, Origin::Summary { .. }));
        SnapshotNote {
            snapshot: id.into(),
            purpose,
            generation: state.row.generation,
            tail_from: state.row.tail_from,
            compressions: state.row.compressions,
            goal: state.row.goal.clone(),
            items: items.len(),
            checkpoints: summaries.count(),
            tokens: state.context.totals().tokens,
        }
    }
}

/// The snapshot in a log row, with the messages of the app before it and its time.
pub(crate) fn read_note(bytes: &[u8], mark: &Mark) -> Result<(SnapshotNote, usize, u64)> {
    let row = row_at(bytes, mark.seq)?;
    let broken =
        || Error::new(Code::StoreCorrupt, format!("log row {} is no snapshot {}", mark.seq, mark.id));
    if row.kind != Kind::Snapshot || row.id != mark.id {
        return Err(broken());
    }
    let note = serde_json::from_str(row.body.get()).map_err(|_| broken())?;
    Ok((note, row.n, row.at))
}
