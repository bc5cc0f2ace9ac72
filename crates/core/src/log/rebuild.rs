//! The session's row, made again of log and views (R2) where it is missing, damaged, or not that of the
//! log as it ends.

use super::deletion::free_name;
use super::intact::{agrees, last_row};
use super::record::{self, LogRow, RowKind, SessionRow, ViewNote};
use super::recovery::{batch, written};
use super::snapshots::{SnapshotMark, SnapshotNote};
use super::state::{State, measure};
use super::stored::{page, readable_page};
use super::{migrations, seal};
use crate::checkpoint::Goal;
use crate::context::MessageSource;
use crate::error::{Code, Result};
use crate::keys::batch::{Key, keys};
use crate::policy::Rung;
use crate::step::{Io, Loss, LossKind};
use crate::wire::{self, Evidence, Format};
use std::rc::Rc;

/// The session's row as it was found.
enum FoundRow {
    Row(Box<SessionRow>),
    Missing,
    /// With what can be read of it.
    Damaged(Vec<u8>, Option<Box<SessionRow>>),
}

impl FoundRow {
    async fn of(io: &Io, state: &State) -> Result<FoundRow> {
        let mut again = false;
        loop {
            let error = match migrations::session_row(io, &state.sid, &state.settings).await {
                Ok(Some(row)) if row.id == state.row.id => return Ok(FoundRow::Row(Box::new(row))),
                Ok(None) => return Ok(FoundRow::Missing),
                // The disk has put another session's row in its place.
                Ok(Some(_)) => None,
                Err(error) if error.code == Code::StoreCorrupt => Some(error),
                Err(error) => return Err(error),
            };
            let Some((bytes, noted)) = seal::both(io, &state.sid).await? else {
                return Ok(FoundRow::Missing);
            };
            let noted = noted.as_deref();
            match error {
                None => return Ok(FoundRow::Damaged(bytes, None)),
                // What no release wrote is damaged. What one wrote and this one cannot read is not.
                Some(_) if seal::check(&bytes).is_err() || is_without_notes(&bytes, noted) => {
                    let row = seal::read_broken(&bytes, noted).map(Box::new);
                    return Ok(FoundRow::Damaged(bytes, row));
                }
                Some(error) if again => return Err(error),
                // Someone else has written it between the two reads.
                Some(_) => again = true,
            }
        }
    }

    /// Nobody wrote it since `earlier`.
    fn is_still(&self, earlier: &FoundRow) -> bool {
        match (self, earlier) {
            (FoundRow::Row(now), FoundRow::Row(then)) => now.ver == then.ver,
            (FoundRow::Missing, FoundRow::Missing) => true,
            (FoundRow::Damaged(now, _), FoundRow::Damaged(then, _)) => now == then,
            _ => false,
        }
    }
}

/// What such a row notes is not beside it, or is damaged.
fn is_without_notes(head: &[u8], noted: Option<&[u8]>) -> bool {
    seal::read_head(head).is_ok() && seal::read(head, noted).is_err()
}

/// The session's row, made again of the log where it is not that of the log as it ends (R2). `None` when someone else
/// wrote to the session meanwhile.
///
/// Errors: [`Code::DataLoss`] when nothing is left of it, and the app does not accept that.
pub(super) async fn row(io: &Io, state: &State) -> Result<Option<SessionRow>> {
    let (sid, id) = (&state.sid, &state.row.id);
    let found = FoundRow::of(io, state).await?;
    let last = last_row(io, sid).await?;
    if let FoundRow::Row(row) = &found
        && agrees(row, last.as_ref())
    {
        return Ok(Some((**row).clone()));
    }
    // Someone else may have written between the two reads, or be deleting the session.
    if !FoundRow::of(io, state).await?.is_still(&found)
        || free_name(io, id, state.max_batch_ops).await?.is_none_or(|name| name.sid != *sid)
    {
        return Ok(None);
    }
    let tail = Tail::read(io, state, &found).await?;
    let (base, version) = match &found {
        FoundRow::Row(row) => (row, Some(row.ver)),
        FoundRow::Missing => (&Box::new(state.row.clone()), None),
        FoundRow::Damaged(_, row) => (&row.clone().unwrap_or_else(|| Box::new(state.row.clone())), None),
    };
    let (lost, what) = match &found {
        FoundRow::Row(row) => {
            (row.next_seq.saturating_sub(tail.rows), "its row named another end of the log")
        }
        FoundRow::Missing => (tail.unreadable, "its row was missing"),
        FoundRow::Damaged(..) => (tail.unreadable, "its row was damaged"),
    };
    let loss = if lost > 0 {
        let reason =
            format!("the end of the log is missing: the session ends {lost} records earlier than it did");
        Loss::records(LossKind::Records, lost, reason)
    } else {
        Loss::new(LossKind::Repaired, format!("the session was mended from its log: {what}"))
    };
    if tail.rows == 0 {
        state
            .accept(&Loss::new(loss.kind, "nothing is left of the session that was stored under this id"))?;
    }
    let mut row = tail.row(base, version.unwrap_or(0) + 1);
    // What can be read of a damaged one may have another.
    row.id.clone_from(id);
    row.losses.push(loss);
    let key = keys::session(sid);
    if let FoundRow::Damaged(..) = &found {
        // How often it was written is not known any more: it is counted anew. Who dies here leaves a row that is missing.
        io.commit(batch(Vec::new(), Vec::new(), vec![key.clone()])).await?;
        // Whoever held the session could write until then, and its row with it.
        if last_row(io, sid).await? != last {
            return Ok(None);
        }
    }
    let mut is_written = put(io, state, version, &tail.strays, &mut row).await?;
    if let FoundRow::Row(_) = &found
        && !is_written
        && FoundRow::of(io, state).await?.is_still(&found)
        && last_row(io, sid).await? == last
    {
        // Nobody wrote it, and the store counts another version: the disk put an earlier row in its place.
        io.commit(batch(Vec::new(), Vec::new(), vec![key])).await?;
        row.ver = 1;
        is_written = put(io, state, None, &tail.strays, &mut row).await?;
    }
    Ok(is_written.then_some(row))
}

/// Writes the row in the place of that of `version`, once `strays` are gone; false when someone else wrote first.
async fn put(
    io: &Io,
    state: &State,
    version: Option<u64>,
    strays: &[Key],
    row: &mut SessionRow,
) -> Result<bool> {
    let key = keys::session(&state.sid);
    let expect = vec![(key, version)];
    for page in strays.chunks(state.max_batch_ops.saturating_sub(2).max(1)) {
        if !written(io, batch(expect.clone(), Vec::new(), page.to_vec())).await? {
            return Ok(false);
        }
    }
    written(io, batch(expect, seal::write_new(&state.sid, row), Vec::new())).await
}

/// What the log says of its session.
#[derive(Default)]
struct Tail {
    /// Rows, up to the last that can be read.
    rows: u64,
    head: String,
    chain: String,
    messages: usize,
    tokens: usize,
    generation: u64,
    tail_from: u64,
    /// Views that summarized the history.
    summaries: Vec<u64>,
    snapshots: Vec<SnapshotMark>,
    goal: Option<Goal>,
    format: Option<Format>,
    created_at: Option<u64>,
    updated_at: u64,
    /// Rows behind the last that can be read.
    unreadable: u64,
    /// Keys of those, of views that the log does not tell of, and of what is derived from the log.
    strays: Vec<Key>,
}

impl Tail {
    async fn read(io: &Io, state: &State, found: &FoundRow) -> Result<Tail> {
        let sid = &state.sid;
        let known = match found {
            FoundRow::Row(row) => row.format,
            FoundRow::Damaged(_, row) => row.as_ref().and_then(|row| row.format),
            FoundRow::Missing => None,
        };
        let mut tail = Tail { format: known.or(state.settings.format), ..Tail::default() };
        let (mut plausible, mut certain) = (Format::ALL.to_vec(), Vec::new());
        let mut next = 0;
        while let Some(page) = readable_page(io, sid, next).await? {
            for (seq, bytes) in page {
                next = seq + 1;
                let Ok((row, hash)) = record::read_row(&bytes) else {
                    tail.unreadable += 1;
                    tail.strays.push(keys::log(sid, seq));
                    continue;
                };
                if row.kind == RowKind::Message && tail.format.is_none() {
                    let value = [wire::parse(row.n, row.body.get())?];
                    let evidence = |format: &Format| format.wire().evidence(&value);
                    plausible.retain(|format| evidence(format) != Evidence::Against);
                    certain.extend(plausible.iter().find(|format| evidence(format) == Evidence::Certain));
                }
                tail.follow(seq, &row, hash);
            }
        }
        let first = plausible.first().copied();
        tail.format = tail.format.or(certain.last().copied());
        tail.tokens = tokens(io, state, tail.format.or(first).unwrap_or(Format::OpenaiChat)).await?;
        tail.stray(io, keys::all("views", sid), Some(keys::view(sid, tail.generation))).await?;
        // They may be of messages that are gone.
        tail.stray(io, keys::all_terms(sid), None).await?;
        tail.stray(io, keys::all_vectors(sid), None).await?;
        tail.stray(io, keys::facts(sid), None).await?;
        Ok(tail)
    }

    /// Everything under `prefix` behind `after` is to be removed.
    async fn stray(&mut self, io: &Io, prefix: Key, mut after: Option<Key>) -> Result<()> {
        loop {
            let rows = page(io, prefix.clone(), after, true).await?;
            let Some((last, _)) = rows.last() else { return Ok(()) };
            after = Some(last.clone());
            self.strays.extend(rows.into_iter().map(|(key, _)| key));
        }
    }

    /// A row that can be read.
    fn follow(&mut self, seq: u64, row: &LogRow<'_>, hash: String) {
        // What could not be read before it is inside the log.
        (self.unreadable, self.strays) = (0, Vec::new());
        (self.rows, self.head, self.chain) = (seq + 1, hash, row.chain.clone());
        self.messages = row.n + usize::from(row.kind == RowKind::Message);
        self.created_at.get_or_insert(row.at);
        self.updated_at = row.at;
        if let Some(noted) = ViewNote::of(row) {
            (self.generation, self.tail_from) = (noted.view, seq + 1);
            if noted.rung == Rung::Summarise.stored() {
                self.summaries.push(noted.view);
            }
            if let Some(last) = noted.undoes_to {
                self.summaries.retain(|view| *view <= last);
            }
        }
        if row.kind == RowKind::Snapshot {
            self.snapshots.push(SnapshotMark { id: row.id.clone(), seq });
            if let Ok(note) = crate::wire::record::from_str::<SnapshotNote>(row.body.get()) {
                self.goal = note.goal;
            }
        }
    }

    /// The session's row as the log says it; what the log does not say is as in `base`.
    fn row(&self, base: &SessionRow, ver: u64) -> SessionRow {
        let mut row = SessionRow {
            v: base.v.max(record::SCHEMA),
            ver,
            format: self.format.or(base.format),
            next_seq: self.rows,
            head: self.head.clone(),
            chain: self.chain.clone(),
            messages: self.messages,
            tokens: self.tokens,
            generation: self.generation,
            tail_from: self.tail_from,
            compressions: self.summaries.len() as u64,
            pending_step: true,
            created_at: self.created_at.unwrap_or(base.created_at),
            updated_at: self.updated_at.max(base.updated_at),
            goal: base.goal.clone().or_else(|| self.goal.clone()),
            known: None,
            ..base.clone()
        };
        row.pins.retain(|index| *index < self.messages);
        row.rejected.retain(|index| *index < self.messages);
        row.snapshots.retain(|mark| mark.seq < self.rows);
        if base.ver == 0 {
            row.snapshots.clone_from(&self.snapshots);
        }
        row
    }
}

/// Tokens of all messages of the log that can be read.
async fn tokens(io: &Io, state: &State, format: Format) -> Result<usize> {
    let (mut tokens, mut next) = (0, 0);
    while let Some(page) = readable_page(io, &state.sid, next).await? {
        for (seq, bytes) in page {
            next = seq + 1;
            let Ok((row, _)) = record::read_row(&bytes) else { continue };
            if row.kind == RowKind::Message {
                let body: Rc<str> = Rc::from(row.body.get());
                tokens +=
                    measure(io, &state.settings, format, MessageSource::Logged(seq), &body).await?.tokens;
            }
        }
    }
    Ok(tokens)
}
