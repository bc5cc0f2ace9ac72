//! Rows of another session that the disk put in the place of this one's: each is sound, and none fits its neighbors. A row
//! names the hash of the one before it, and the session's row that of the last.

use super::record;
use super::stored::{log_rows, session_row};
use crate::error::{Code, Result};
use crate::keys::batch::{Key, keys};
use crate::step::Io;

/// Empties the rows that fit neither neighbor, where a neighbor fits the row on its other side: what is empty cannot be
/// read. `rows` are in the order of the log.
pub(super) async fn empty_strangers(io: &Io, sid: &str, rows: &mut [(u64, Vec<u8>)]) -> Result<()> {
    let mut links: Vec<Option<bool>> = rows.windows(2).map(link).collect();
    // A log of one row has no link.
    if rows.len() > 1 && links.iter().all(|link| *link == Some(true)) {
        return Ok(());
    }
    links.extend([end(io, sid, rows).await?, Some(true)]);
    let link = |at: Option<usize>| at.and_then(|at| links.get(at).copied().flatten());
    for (at, (_, bytes)) in rows.iter_mut().enumerate() {
        let (before, after) = (link(at.checked_sub(1)), link(Some(at)));
        let is_apart = |own, beyond| own == Some(false) && beyond == Some(true);
        let fits = before == Some(true) || after == Some(true);
        if !fits && (is_apart(before, link(at.checked_sub(2))) || is_apart(after, link(Some(at + 1)))) {
            bytes.clear();
        }
    }
    Ok(())
}

/// The keys of the rows of a log that [`empty_strangers`] empties.
pub(super) async fn strangers(io: &Io, sid: &str) -> Result<Vec<Key>> {
    let (mut found, mut next) = (Vec::new(), 0);
    loop {
        let mut rows = log_rows(io, sid, next).await?;
        let Some((last, _)) = rows.last() else { return Ok(found) };
        next = last + 1;
        // What is empty already cannot be read for another reason.
        rows.retain(|(_, bytes)| !bytes.is_empty());
        empty_strangers(io, sid, &mut rows).await?;
        found.extend(rows.iter().filter(|(_, bytes)| bytes.is_empty()).map(|(seq, _)| keys::log(sid, *seq)));
    }
}

/// Does the second row follow the first? `None` where that cannot be told.
fn link(pair: &[(u64, Vec<u8>)]) -> Option<bool> {
    let [(seq, first), (next, second)] = pair else { return None };
    if seq + 1 != *next {
        return None;
    }
    // Hashing all rows again would double what reading them costs.
    if record::stated_hash(first).is_some_and(|hash| record::stated_prev(second) == Some(hash)) {
        return Some(true);
    }
    let ((_, hash), (row, _)) = (record::read_row(first).ok()?, record::read_row(second).ok()?);
    Some(row.prev == hash)
}

/// Is the last row the one that the session's row names?
async fn end(io: &Io, sid: &str, rows: &[(u64, Vec<u8>)]) -> Result<Option<bool>> {
    let Some((seq, bytes)) = rows.last() else { return Ok(None) };
    let known = match session_row(io, sid).await {
        Err(error) if !matches!(error.code, Code::StoreCorrupt | Code::SchemaTooNew) => return Err(error),
        known => known.ok().flatten().filter(|row| row.next_seq == seq + 1),
    };
    let hash = record::read_row(bytes).ok().map(|(_, hash)| hash);
    Ok(known.zip(hash).map(|(row, hash)| row.head == hash))
}
