//! Where the rows are that a handle knows: an erasure writes them anew under other keys (`D24`), and they can be gone.

use super::deletion::remove_rows;
use super::guard::SessionCell;
use super::record::{self, SessionRow};
use super::recovery::{self, read_one};
use super::retry::conflict;
use super::state::State;
use super::stored::others::absence;
use super::stored::{commit_again, name_row, page, session_row};
use super::terms::Unindexed;
use crate::error::{Code, Result};
use crate::keys::batch::{Batch, Durability, keys};
use crate::step::Io;

/// A call is run so often where the rows that it reads are written anew each time.
const TRIES: usize = 3;

impl SessionCell {
    /// Looks at the session's rows, and again where an erasure through another handle wrote them anew meanwhile: what was
    /// seen may be of rows that were being removed. No loss is told of those.
    ///
    /// Errors: [`Code::Closed`] when the session was deleted and [`Code::DataLoss`] when it is gone: what was seen is nothing
    /// then; [`Code::Conflict`] when the rows are written anew each time; those of the look.
    pub(crate) async fn look_at_rows<T>(&self, io: &Io, look: impl AsyncFn(Io) -> Result<T>) -> Result<T> {
        self.on_rows(io, true, look).await
    }

    /// The same for what is sound where it ends well: what it writes expects the rows that it read, or it checks what it reads.
    ///
    /// Errors: as those of [`SessionCell::look_at_rows`].
    pub(crate) async fn try_on_rows<T>(&self, io: &Io, call: impl AsyncFn(Io) -> Result<T>) -> Result<T> {
        self.on_rows(io, false, call).await
    }

    async fn on_rows<T>(&self, io: &Io, is_look: bool, call: impl AsyncFn(Io) -> Result<T>) -> Result<T> {
        for _ in 0..TRIES {
            let (sid, id, is_stored) = self.look(|state| {
                (state.sid.clone(), state.row.id.clone(), state.durable && state.row.ver > 0)
            })?;
            let (own, losses) = io.keeping_losses();
            let done = call(own).await;
            let is_over = !is_stored
                || match &done {
                    Ok(_) => !is_look,
                    Err(error) => error.code == Code::Aborted,
                };
            match if is_over { Presence::Here } else { fate(io, &id, &sid).await } {
                Presence::Here => {
                    losses.take().into_iter().for_each(|loss| io.tell(loss));
                    return done;
                }
                Presence::Moved => self.take()?.catch_up(io).await?,
                Presence::Gone => {
                    let state = self.look(State::clone)?;
                    return Err(absence(io, &state).await?);
                }
            }
        }
        Err(conflict())
    }
}

/// What became of the rows that a handle knows.
enum Presence {
    /// They are there, or what is left of them.
    Here,
    /// They were written anew.
    Moved,
    Gone,
}

/// What became of the rows of session `id` that are called `sid`. Where the store does not say, they are there.
async fn fate(io: &Io, id: &str, sid: &str) -> Presence {
    if !matches!(read_one(io, keys::session(sid)).await, Ok(None)) {
        return Presence::Here;
    }
    if matches!(renamed(io, id, sid).await, Ok(Some(_))) {
        return Presence::Moved;
    }
    // A name that is damaged does not say that it was deleted. One that is missing does beside an empty log: it goes last.
    let is_gone = match name_row(io, id).await {
        Ok(Some(name)) => name.deleted || name.sid != *sid,
        Ok(None) => matches!(recovery::has_rows(io, sid).await, Ok(false)),
        Err(_) => false,
    };
    if is_gone { Presence::Gone } else { Presence::Here }
}

/// Have the rows called `sid` been written anew? Where the store does not say so, they have not.
pub(crate) async fn is_moved(io: &Io, id: &str, sid: &str) -> bool {
    matches!(fate(io, id, sid).await, Presence::Moved)
}

impl State {
    /// Goes on with the rows that the session has now, where an erasure wrote them anew; false when it did not.
    pub(crate) async fn follow(&mut self, io: &Io) -> Result<bool> {
        let Some((sid, row)) = renamed(io, &self.row.id, &self.sid).await? else { return Ok(false) };
        self.sid = sid;
        self.load_at(io, row).await?;
        self.given_up += 1;
        self.told_losses += 1;
        (self.unindexed, self.collected, self.facts) = (Unindexed::default(), None, None);
        (self.past, self.handed_out, self.mended, self.sent) = (None, None, None, None);
        self.omitted.clear();
        Ok(true)
    }
}

/// The rows that session `id` has now, where those called `sid` were written anew.
pub(crate) async fn renamed(io: &Io, id: &str, sid: &str) -> Result<Option<(String, SessionRow)>> {
    let mut read: Option<String> = None;
    loop {
        let name = name_row(io, id).await?.filter(|name| !name.deleted && name.sid != sid);
        let Some(name) = name else { return Ok(None) };
        if let Some(row) = session_row(io, &name.sid).await? {
            let is_it = row.formerly.iter().any(|former| former == sid);
            return Ok(is_it.then_some((name.sid, row)));
        }
        // They may have been written anew once more since the name was read.
        if read.as_ref() == Some(&name.sid) {
            return Ok(None);
        }
        read = Some(name.sid);
    }
}

/// What leads to rows that no name leads to: those of a fork or of an erasure until they are whole, and those that an erasure
/// left until they are removed.
#[derive(Debug)]
pub(crate) struct StagingRow {
    pub(crate) v: u32,
    pub(crate) sid: String,
    pub(crate) at: u64,
    /// Of an erasure: the rows that they are a copy of.
    pub(crate) of: Option<String>,
}

crate::wire::record!(StagingRow {
    v = "v",
    sid = "sid",
    at = "at",
    of = "of" or nothing,
});

/// Removes the rows that a session had `formerly`, where an erasure was stopped before it did, and copies of them that others
/// were stopped over: what was erased since is in those. Who is still at one finds its note changed, and begins anew.
pub(crate) async fn sweep_all(io: &Io, formerly: &[String], most: usize) -> Result<()> {
    let mut after = None;
    while !formerly.is_empty() {
        let notes = page(io, keys::all_staging(), after, false).await?;
        let Some((last, _)) = notes.last() else { break };
        after = Some(last.clone());
        for (note, bytes) in notes {
            let Ok(row) = record::decode::<StagingRow>(&bytes, "note") else { continue };
            if !formerly.contains(row.of.as_ref().unwrap_or(&row.sid)) {
                continue;
            }
            let batch =
                |expect, puts, deletes| Batch { expect, puts, deletes, durability: Durability::Strict };
            // The commit that ends an erasure expects the note as it was first written: after this one there is none.
            let claim = batch(vec![(note.clone(), Some(1))], vec![(note.clone(), bytes)], Vec::new());
            match commit_again(io, claim).await {
                Err(error) if error.code == Code::Conflict => {
                    // It ended meanwhile, and the rows are those of the session; or somebody claimed them before.
                    if io.read(vec![note.clone()]).await?.into_iter().next().flatten().is_none() {
                        continue;
                    }
                }
                done => done?,
            }
            remove_rows(io, &row.sid, most).await?;
            commit_again(io, batch(Vec::new(), Vec::new(), vec![note])).await?;
        }
    }
    Ok(())
}
