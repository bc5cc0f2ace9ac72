//! Snapshots in the log (`S5.2`): a row that names a view, and what goes with it.

use super::guard::SessionGuard;
use super::record::{self, RowKind, SessionRow};
use super::retry::{Tried, conflict, retry, retryable};
use super::state::State;
use super::stored::row_at;
use super::wide;
use crate::checkpoint::Goal;
use crate::context::Origin;
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Batch, Key, keys};
use crate::keys::ids;
use crate::step::Io;

/// What a snapshot is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotPurpose {
    /// To go on from after a fault.
    Recovery,
    /// To come back to.
    Rollback,
    /// Taken by the session itself before a step that is to make a prompt fit (`S5.15`).
    Emergency,
}

crate::wire::named!(SnapshotPurpose {
    Recovery = "recovery",
    Rollback = "rollback",
    Emergency = "emergency",
});

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnapshotMark {
    /// The snapshot's id.
    pub(crate) id: String,
    /// Position of its log row.
    pub(crate) seq: u64,
}

crate::wire::record!(SnapshotMark {
    id = "id",
    seq = "seq",
});

/// The body of a log row of kind `snapshot`.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub(crate) goal: Option<Goal>,
    /// Messages in the context.
    pub(crate) items: usize,
    /// Checkpoints among them.
    pub(crate) checkpoints: usize,
    /// Tokens of the context.
    pub(crate) tokens: usize,
}

crate::wire::record!(SnapshotNote {
    snapshot = "snapshot",
    purpose = "purpose",
    generation = "generation",
    tail_from = "tailFrom",
    compressions = "compressions",
    goal = "goal" or nothing,
    items = "items",
    checkpoints = "checkpoints",
    tokens = "tokens",
});

impl SnapshotNote {
    fn of(state: &State, id: &str, purpose: SnapshotPurpose) -> Self {
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
pub(crate) fn read_note(bytes: &[u8], mark: &SnapshotMark) -> Result<(SnapshotNote, usize, u64)> {
    let row = row_at(bytes, mark.seq)?;
    let broken =
        || Error::new(Code::StoreCorrupt, format!("log row {} is no snapshot {}", mark.seq, mark.id));
    if row.kind != RowKind::Snapshot || row.id != mark.id {
        return Err(broken());
    }
    let note = crate::wire::record::from_str(row.body.get()).map_err(|_| broken())?;
    Ok((note, row.n, row.at))
}

impl State {
    /// The batch that takes a snapshot, and the row after it, which knows the newest ones only.
    pub(crate) fn snapshot_batch(&self, note: &SnapshotNote, now: u64) -> Result<(Batch, SessionRow)> {
        let mut row = self.next_row(now);
        row.snapshots.push(SnapshotMark { id: note.snapshot.clone(), seq: row.next_seq });
        let kept = self.settings.numbers.checkpoint.keep_snapshots;
        row.snapshots.drain(..row.snapshots.len().saturating_sub(kept));
        let put = self.note_snapshot(&mut row, note, now)?;
        let batch = self.batch(&mut row, vec![put])?;
        Ok((batch, row))
    }

    /// The log row of a change of the session's row alone, and the row behind it. It is a snapshot that is not among those
    /// that can be restored.
    pub(super) fn note_mended(&self, row: &mut SessionRow, now: u64) -> Result<(Key, Vec<u8>)> {
        let id = ids::id(&[b"mended", row.secret.as_bytes(), row.head.as_bytes()]);
        let note = SnapshotNote::of(self, &format!("snap_{id}"), SnapshotPurpose::Recovery);
        self.note_snapshot(row, &SnapshotNote { goal: row.goal.clone(), ..note }, now)
    }

    fn note_snapshot(&self, row: &mut SessionRow, note: &SnapshotNote, now: u64) -> Result<(Key, Vec<u8>)> {
        let body = String::from_utf8_lossy(&record::encode(note)).into_owned();
        self.log_row(row, note.snapshot.clone(), RowKind::Snapshot, now, &body)
    }
}

impl SessionGuard {
    /// Takes a snapshot: its id.
    pub(crate) async fn snapshot(&self, io: &Io, purpose: SnapshotPurpose) -> Result<String> {
        let name = io.new_id().await?;
        let id =
            format!("snap_{}", ids::id(&[b"snapshot", self.state().row.secret.as_bytes(), name.as_bytes()]));
        retry(io, Some(self), async |_| {
            let now = io.now().await?;
            let note = SnapshotNote::of(&self.state(), &id, purpose);
            let (batch, row) = self.state().snapshot_batch(&note, now)?;
            self.check_new(io).await?;
            match io.commit(batch).await {
                Ok(()) => {
                    self.state_mut().wrote(io, row);
                    Ok(Tried::Done(id.clone()))
                }
                Err(error) if retryable(&error) => Ok(Tried::Lost(error, Some((id.clone(), id.clone())))),
                Err(error) => Err(error),
            }
        })
        .await
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

    /// Where the snapshot is; someone else may have taken it.
    pub(crate) async fn mark(&self, io: &Io, id: &str) -> Result<SnapshotMark> {
        let known = || self.state().row.snapshots.iter().find(|mark| mark.id == id).cloned();
        if let Some(mark) = known() {
            return Ok(mark);
        }
        self.refresh(io).await?;
        known().ok_or_else(|| Error::new(Code::NotFound, format!("Snapshot not found: {id}")))
    }

    pub(crate) async fn note(&self, io: &Io, mark: &SnapshotMark) -> Result<(SnapshotNote, usize, u64)> {
        let sid = self.state().sid.clone();
        let row = wide::read(io, vec![keys::log(&sid, mark.seq)]).await?.into_iter().next().flatten();
        read_note(&row.ok_or_else(|| missing(mark))?, mark)
    }
}

fn missing(mark: &SnapshotMark) -> Error {
    Error::new(Code::StoreCorrupt, format!("row {} of the log is missing", mark.seq))
}
