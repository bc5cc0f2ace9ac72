//! Snapshots (`S5.2`). The log and its views are written once, so a view, a position of the log and the goal are all of
//! a session's state: taking a snapshot writes one log row, whatever the session's size. Restoring one makes a new view
//! of the old one's items; what came after stays in the log.

use super::branch::Past;
use super::operations::Session;
use crate::checkpoint::Goal;
use crate::error::{Code, Error, Result};
use crate::keys::batch::keys;
use crate::keys::ids;
use crate::log::record::SessionRow;
use crate::log::snapshots::{Mark, SnapshotNote, read_note};
use crate::log::stored::{RACES, conflict, first_unless_conflict, pause, retryable, session_row};
use crate::log::{Held, SnapshotPurpose};
use crate::step::{Io, Level, Machine};
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
            let held = slot.take()?;
            // It is of the context that the store has.
            held.store_changes(&io).await?;
            held.snapshot(&io, purpose).await
        })
    }

    /// The snapshots that can be restored, oldest first: the newest ones that were taken, here or elsewhere.
    pub fn snapshots(&self) -> Machine<Vec<SnapshotInfo>> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let sid = slot.look(|state| state.sid.clone())?;
            let marks = session_row(&io, &sid).await?.map_or(Vec::new(), |row: SessionRow| row.snapshots);
            let rows = io.read(marks.iter().map(|mark| keys::log(&sid, mark.seq)).collect()).await?;
            let mut found = Vec::with_capacity(marks.len());
            for (mark, bytes) in marks.iter().zip(rows) {
                let (note, _, timestamp) = match read_note(&bytes.unwrap_or_default(), mark) {
                    Ok(read) => read,
                    // Nothing can go back to it, nor does it keep the others from that.
                    Err(error) if error.code == Code::StoreCorrupt => {
                        io.log(
                            Level::Warn,
                            format!("Snapshot {} cannot be restored any more: {error}", mark.id),
                        );
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                let SnapshotNote { snapshot, purpose, goal, items, checkpoints, tokens, .. } = note;
                let (message_count, checkpoint_count) = (items, checkpoints);
                let id = snapshot;
                let info =
                    SnapshotInfo { id, purpose, timestamp, message_count, checkpoint_count, tokens, goal };
                found.push(info);
            }
            Ok(found)
        })
    }

    /// Goes back to a snapshot: the context and the goal are what they were. What came after is in no context any more,
    /// and stays in the log.
    ///
    /// Errors: [`Code::NotFound`] for one that was never taken here, or is not among the newest any more.
    pub fn restore(&self, id: String) -> Machine<()> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let held = slot.take()?;
            held.return_to(&io, async || held.snapshot_context(&io, &id).await).await
        })
    }
}

impl Held {
    /// Takes a snapshot: its id.
    pub(crate) async fn snapshot(&self, io: &Io, purpose: SnapshotPurpose) -> Result<String> {
        let name = io.new_id().await?;
        let id =
            format!("snap_{}", ids::id(&[b"snapshot", self.state().row.secret.as_bytes(), name.as_bytes()]));
        for race in 0..=RACES {
            let now = io.now().await?;
            let note = SnapshotNote::of(&self.state(), &id, purpose);
            let (batch, row) = self.state().snapshot_batch(&note, now)?;
            match io.commit(batch).await {
                Ok(()) => {
                    self.state_mut().wrote(io, row);
                    return Ok(id);
                }
                Err(error) if retryable(&error) && race < RACES => {
                    if self.caught_up(io, race, error, &row).await? {
                        return Ok(id);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(conflict())
    }

    /// Takes a snapshot before a step that is to make a prompt fit, unless the last thing that was done is just that.
    ///
    /// Errors: [`Code::Conflict`] when someone else changed the context meanwhile: what the step is to do was decided
    /// for another one.
    pub(crate) async fn emergency_snapshot(&self, io: &Io) -> Result<String> {
        let last = {
            let state = self.state();
            let row = &state.row;
            row.snapshots.last().filter(|mark| mark.seq + 1 == row.next_seq).cloned()
        };
        if let Some(mark) = last {
            let ours = SnapshotNote::of(&self.state(), &mark.id, SnapshotPurpose::Emergency);
            match self.note(io, &mark).await {
                Ok((note, ..)) if note == ours => return Ok(mark.id),
                Err(error) if error.code != Code::StoreCorrupt => return Err(error),
                _ => {}
            }
        }
        let before = self.state().row.generation;
        let id = self.snapshot(io, SnapshotPurpose::Emergency).await?;
        if self.state().row.generation == before { Ok(id) } else { Err(conflict()) }
    }

    /// Takes over what is stored after a commit that lost a race, or whose answer was lost. `true` when `row` was
    /// written after all.
    pub(super) async fn caught_up(
        &self,
        io: &Io,
        race: usize,
        error: Error,
        row: &SessionRow,
    ) -> Result<bool> {
        pause(io, race).await?;
        let written = match self.refresh(io).await {
            Ok(_) => self.is_row(io, row).await,
            Err(second) => Err(second),
        };
        written.map_err(|second| first_unless_conflict(error, second))
    }

    /// Where the snapshot is; someone else may have taken it.
    async fn mark(&self, io: &Io, id: &str) -> Result<Mark> {
        let known = || self.state().row.snapshots.iter().find(|mark| mark.id == id).cloned();
        if let Some(mark) = known() {
            return Ok(mark);
        }
        self.refresh(io).await?;
        known().ok_or_else(|| Error::new(Code::NotFound, format!("Snapshot not found: {id}")))
    }

    async fn note(&self, io: &Io, mark: &Mark) -> Result<(SnapshotNote, usize, u64)> {
        let sid = self.state().sid.clone();
        let row = io.read(vec![keys::log(&sid, mark.seq)]).await?.into_iter().next().flatten();
        read_note(&row.ok_or_else(|| missing(mark))?, mark)
    }

    /// The context of a snapshot.
    async fn snapshot_context(&self, io: &Io, id: &str) -> Result<Past> {
        let mark = self.mark(io, id).await?;
        let (note, messages, _) = self.note(io, &mark).await?;
        let (items, left) = self.context_at(io, note.generation, note.tail_from, mark.seq, messages).await?;
        Ok(Past { items, left, messages, snapshot: Some(note) })
    }
}

fn missing(mark: &Mark) -> Error {
    Error::new(Code::StoreCorrupt, format!("row {} of the log is missing", mark.seq))
}
