//! Snapshots (`S5.2`). The log and its views are written once, so a view, a position of the log and the goal are all of
//! a session's state: taking a snapshot writes one log row, whatever the session's size. Restoring one makes a new view
//! of the old one's items; what came after stays in the log.

use super::branch::{PastContext, Return, context_at, return_to};
use super::operations::Session;
use crate::checkpoint::Goal;
use crate::error::{Code, Result};
use crate::keys::batch::keys;
use crate::log::record::SessionRow;
use crate::log::snapshots::{SnapshotNote, read_note};
use crate::log::stored::session_row;
use crate::log::{SessionGuard, SnapshotPurpose, wide};
use crate::step::{Io, LogLevel, Machine};
use serde::Serialize;

/// A snapshot that can be restored.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotInfo {
    /// Its id, for `restore`.
    pub id: String,
    /// What it is for.
    pub purpose: SnapshotPurpose,
    /// When it was taken, in ms since 1970.
    pub timestamp: u64,
    /// Messages in its context.
    pub message_count: usize,
    /// Checkpoints among them.
    pub checkpoint_count: usize,
    /// Tokens of its context.
    pub tokens: usize,
    /// What the session was for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
}

impl Session {
    /// Takes a snapshot: its id. Durable when it ends.
    pub fn snapshot(&self, purpose: SnapshotPurpose) -> Machine<String> {
        let slot = self.slot.clone();
        Machine::new(move |io| async move {
            let guard = slot.take()?;
            // It is of the context that the store has.
            guard.store_changes(&io).await?;
            guard.snapshot(&io, purpose).await
        })
    }

    /// The snapshots that can be restored, oldest first: the newest ones that were taken, here or elsewhere.
    pub fn snapshots(&self) -> Machine<Vec<SnapshotInfo>> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let look = async |io: Io| {
                let sid = slot.look(|state| state.sid.clone())?;
                let marks = session_row(&io, &sid).await?.map_or(Vec::new(), |row: SessionRow| row.snapshots);
                let rows =
                    wide::read(&io, marks.iter().map(|mark| keys::log(&sid, mark.seq)).collect()).await?;
                let mut found = Vec::with_capacity(marks.len());
                for (mark, bytes) in marks.iter().zip(rows) {
                    let (note, _, timestamp) = match read_note(&bytes.unwrap_or_default(), mark) {
                        Ok(read) => read,
                        // Nothing can go back to it, nor does it keep the others from that.
                        Err(error) if error.code == Code::StoreCorrupt => {
                            io.log(
                                LogLevel::Warn,
                                format!("Snapshot {} cannot be restored any more: {error}", mark.id),
                            );
                            continue;
                        }
                        Err(error) => return Err(error),
                    };
                    let SnapshotNote { snapshot, purpose, goal, items, checkpoints, tokens, .. } = note;
                    let (message_count, checkpoint_count) = (items, checkpoints);
                    let id = snapshot;
                    let info = SnapshotInfo {
                        id,
                        purpose,
                        timestamp,
                        message_count,
                        checkpoint_count,
                        tokens,
                        goal,
                    };
                    found.push(info);
                }
                Ok(found)
            };
            slot.look_at_rows(&io, look).await
        })
    }

    /// Goes back to a snapshot: the context and the goal are what they were. What came after is in no context any more,
    /// and stays in the log.
    ///
    /// Errors: [`Code::NotFound`] for one that was never taken here, or is not among the newest any more.
    pub fn restore(&self, id: String) -> Machine<()> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let restore = async |io: Io| {
                let guard = slot.take()?;
                return_to(&io, &guard, async || context_of(&io, &guard, &id).await).await
            };
            slot.try_on_rows(&io, restore).await
        })
    }
}

/// The context of a snapshot.
async fn context_of(io: &Io, guard: &SessionGuard, id: &str) -> Result<PastContext> {
    let mark = guard.mark(io, id).await?;
    let (note, messages, _) = guard.note(io, &mark).await?;
    let (items, left) = context_at(io, guard, note.generation, note.tail_from, mark.seq, messages).await?;
    Ok(PastContext { items, left, messages, by: Return::Restore(note) })
}
