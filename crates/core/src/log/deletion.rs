//! Deleting a session: whole, whatever the store takes in one batch and wherever it is stopped.

use super::guard::SessionGuard;
use super::record::NameRow;
use super::recovery;
use super::retry::{Tried, conflict, retry, retryable};
use super::seal;
use super::stored::{PAGE, commit_again, name_row, session_row};
use super::watermark;
use super::wide;
use crate::error::{Code, Result};
use crate::keys::batch::{Batch, Durability, Key, keys};
use crate::log::renamed;
use crate::step::{Io, Scan};

/// Looks for rows that were written while others were removed.
const ROUNDS: usize = 13;

impl SessionGuard {
    /// Removes everything that the session stored: see [`delete`].
    pub(crate) async fn delete(&self, io: &Io) -> Result<()> {
        let renamed = {
            let (id, sid) = (self.state().row.id.clone(), self.state().sid.clone());
            // A store that is damaged is deleted all the same.
            readable(renamed::renamed(io, &id, &sid).await)?.flatten()
        };
        if let Some((sid, row)) = renamed {
            let mut state = self.state_mut();
            (state.sid, state.row) = (sid, row);
        }
        let (id, sid, most) = {
            let state = self.state();
            // First: a mark that outlives its session would be taken for a loss.
            state.unmark(io);
            (state.row.id.clone(), state.sid.clone(), state.max_batch_ops)
        };
        delete(io, &id, &sid, most).await
    }
}

/// Removes the session that the app calls `id`, which need not open for it: what is damaged goes like the rest. Nothing
/// where there is no such session.
pub(crate) async fn delete_named(io: &Io, id: &str, most: usize) -> Result<()> {
    watermark::unmark(io, id);
    let name = readable(name_row(io, id).await)?;
    let named = match &name {
        Some(Some(name)) if name.deleted => return sweep(io, &name.sid, id, name.ver, most).await,
        Some(Some(name)) => Some(name.sid.clone()),
        _ => None,
    };
    let leads = match &named {
        Some(sid) => recovery::has_rows(io, sid).await?,
        None => false,
    };
    // Where the name leads nowhere, the row of a session says whose it is; a damaged one is believed where the name is
    // damaged too.
    let found =
        if leads { None } else { recovery::session_of(io, id, |bytes| seal::read_head(bytes).ok()).await? };
    let found = match (found, &name) {
        (None, None) => recovery::session_of(io, id, |bytes| seal::read_broken(bytes, None)).await?,
        (found, _) => found,
    };
    let Some(mut sid) = found.or(named) else {
        return match name {
            Some(None) => Ok(()),
            // Damaged, and nothing says whose it was.
            _ => commit_again(io, remove(Vec::new(), vec![keys::name(id)])).await,
        };
    };
    delete(io, id, &sid, most).await?;
    // Meanwhile an erasure may have given its rows another name.
    while let Some((anew, _)) = readable(renamed::renamed(io, id, &sid).await)?.flatten() {
        sid = anew;
        delete(io, id, &sid, most).await?;
    }
    watermark::unmark(io, id);
    Ok(())
}

/// Removes all rows of a session: in one batch where the store takes it, else the session's row first, so that nothing
/// can be appended any more, and the rest behind it. [`State::open`](super::state::State::open) ends what was stopped
/// half-way.
async fn delete(io: &Io, id: &str, sid: &str, most: usize) -> Result<()> {
    let session = keys::session(sid);
    retry(io, None, async |_| {
        let name = readable(name_row(io, id).await)?;
        // What is damaged does not say its version, and goes without.
        let expect = match (readable(session_row(io, sid).await)?, &name) {
            (Some(Some(row)), _) => vec![(session.clone(), Some(row.ver))],
            (None, _) => Vec::new(),
            // Deleted by someone else, or by a batch of ours whose answer was lost: what is left of it goes too.
            (Some(None), Some(Some(name))) if name.sid == sid && name.deleted => {
                return sweep(io, sid, id, name.ver, most).await.map(Tried::Done);
            }
            // The row was lost, and not what it was of.
            (Some(None), Some(Some(name))) if name.sid == sid => vec![(session.clone(), None)],
            (Some(None), Some(_)) => return Ok(Tried::Done(())),
            (Some(None), None) => return remove_rows(io, sid, most).await.map(Tried::Done),
        };
        let mut deletes = rows_of(io, sid).await?;
        // Without a version nothing keeps others from writing between this look and the batch.
        let whole = deletes.len() + 3 < most && expect.iter().any(|(_, version)| version.is_some());
        let (mut puts, mut marked) = (Vec::new(), None);
        if whole {
            deletes.push(keys::name(id));
        } else {
            deletes = vec![session.clone()];
            match &name {
                Some(Some(name)) => {
                    let ver = name.ver + 1;
                    let name = NameRow { deleted: true, ver, ..NameRow::new(id, sid) };
                    puts.push((keys::name(id), seal::write_name(&name)?));
                    marked = Some(ver);
                }
                // Also where there is none: a damaged row that goes alone goes to be written anew.
                Some(None) | None => deletes.push(keys::name(id)),
            }
        }
        match io.commit(Batch { expect, puts, deletes, durability: Durability::Strict }).await {
            Ok(()) if whole => Ok(Tried::Done(())),
            Ok(()) => match marked {
                Some(ver) => sweep(io, sid, id, ver, most).await.map(Tried::Done),
                None => remove_rows(io, sid, most).await.map(Tried::Done),
            },
            Err(error) if retryable(&error) => Ok(Tried::Lost(conflict(), None)),
            Err(error) => Err(error),
        }
    })
    .await
}

/// A row, if any; `None` where it is damaged.
fn readable<T>(row: Result<T>) -> Result<Option<T>> {
    match row {
        Ok(row) => Ok(Some(row)),
        Err(error) if error.code == Code::StoreCorrupt => Ok(None),
        Err(error) => Err(error),
    }
}

/// The keys of all rows of a session.
async fn rows_of(io: &Io, sid: &str) -> Result<Vec<Key>> {
    let mut rows = Vec::new();
    for table in keys::TABLES {
        let mut after = None;
        loop {
            let prefix = keys::all(table, sid);
            let scan = Scan { prefix, after, limit: 1_000, max_bytes: PAGE, reverse: false, keys_only: true };
            let entries = wide::scan(io, scan).await?;
            let Some((last, _)) = entries.last() else { break };
            after = Some(last.clone());
            rows.extend(entries.into_iter().map(|(key, _)| key));
        }
    }
    Ok(rows)
}

/// Which session is called `id`. One whose deletion was stopped half-way is removed first.
pub(crate) async fn free_name(io: &Io, id: &str, most: usize) -> Result<Option<NameRow>> {
    match name_row(io, id).await? {
        Some(name) if name.deleted => sweep(io, &name.sid, id, name.ver, most).await.map(|()| None),
        name => Ok(name),
    }
}

fn remove(expect: Vec<(Key, Option<u64>)>, deletes: Vec<Key>) -> Batch {
    Batch { expect, puts: Vec::new(), deletes, durability: Durability::Strict }
}

/// Removes rows to which no name leads, page by page; also what was written beside them meanwhile.
pub(crate) async fn remove_rows(io: &Io, sid: &str, most: usize) -> Result<()> {
    // A session whose handle goes on writing does not keep this from ending.
    for _ in 0..ROUNDS {
        let rows = rows_of(io, sid).await?;
        if rows.is_empty() {
            break;
        }
        for page in rows.chunks(most.max(1)) {
            commit_again(io, remove(Vec::new(), page.to_vec())).await?;
        }
    }
    Ok(())
}

/// Removes the rows of a session that is deleted already, and its name last.
async fn sweep(io: &Io, sid: &str, id: &str, ver: u64, most: usize) -> Result<()> {
    remove_rows(io, sid, most).await?;
    // As it was marked, which earlier releases did not note: once taken, once marked. Someone else may have swept
    // meanwhile and begun a new session under the name.
    let expect = vec![(keys::name(id), Some(ver.max(2)))];
    match commit_again(io, remove(expect, vec![keys::name(id)])).await {
        Err(error) if error.code != Code::Conflict => Err(error),
        _ => Ok(()),
    }
}
