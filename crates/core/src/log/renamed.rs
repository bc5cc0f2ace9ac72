//! Sessions whose rows were written anew under other keys, when a message was erased (`D24`).

use super::deletion::remove_rows;
use super::record::SessionRow;
use super::state::State;
use super::stored::{commit_again, name_row, session_row};
use super::terms::Unindexed;
use super::wide;
use crate::error::Result;
use crate::keys::batch::{Batch, Durability, keys};
use crate::step::Io;

impl State {
    /// Goes on with the rows that the session has now, where an erasure wrote them anew; false when it did not.
    pub(crate) async fn follow(&mut self, io: &Io) -> Result<bool> {
        let Some((sid, row)) = renamed(io, &self.row.id, &self.sid).await? else { return Ok(false) };
        self.sid = sid;
        self.load_at(io, row).await?;
        self.given_up += 1;
        self.told_losses += 1;
        (self.unpaged, self.collected, self.past) = (Unindexed::default(), None, None);
        (self.handed_out, self.sent) = (None, None);
        self.unsent.clear();
        Ok(true)
    }
}

/// The rows that session `id` has now, where those called `sid` were written anew.
pub(crate) async fn renamed(io: &Io, id: &str, sid: &str) -> Result<Option<(String, SessionRow)>> {
    let name = name_row(io, id).await?.filter(|name| !name.deleted && name.sid != sid);
    let Some(name) = name else { return Ok(None) };
    let row = session_row(io, &name.sid).await?.filter(|row| row.formerly.iter().any(|former| former == sid));
    Ok(row.map(|row| (name.sid, row)))
}

/// Removes the rows that an erasure left, where it was stopped before it did.
pub(crate) async fn sweep(io: &Io, sid: &str, most: usize) -> Result<()> {
    let note = keys::staging(sid);
    if wide::read(io, vec![note.clone()]).await?.into_iter().next().flatten().is_none() {
        return Ok(());
    }
    remove_rows(io, sid, most).await?;
    let (expect, puts) = (Vec::new(), Vec::new());
    commit_again(io, Batch { expect, puts, deletes: vec![note], durability: Durability::Strict }).await
}
