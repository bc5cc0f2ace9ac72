//! The sessions of a store.

use super::batch::{Key, keys};
use super::operations::Session;
use super::record::{self, NameRow, SessionRow};
use crate::error::Result;
use crate::step::{Io, Machine, Scan};
use crate::wire::Format;
use serde::Serialize;

/// What is told of a session that is not open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// The app's own name for it.
    pub id: String,
    /// Its format, once it is sure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Messages in its log.
    pub messages: usize,
    /// When it was begun, in ms since 1970.
    pub created_at: u64,
    /// When it was last written to, in ms since 1970.
    pub updated_at: u64,
    /// The session that it was begun from (`S3.10`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentInfo>,
}

/// Where a session was begun from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParentInfo {
    /// The app's own name for it; it may be deleted by now.
    pub id: String,
    /// Rows of its log at that time.
    pub seq: u64,
}

impl Session {
    /// The sessions that began from this one, in no order that means anything.
    pub fn children(&self) -> Machine<Vec<SessionInfo>> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let sid = slot.look(|state| state.sid.clone())?;
            list(&io, Some(&sid)).await
        })
    }

    /// The sessions of the store, in no order that means anything.
    pub fn list() -> Machine<Vec<SessionInfo>> {
        Machine::new(|io| async move { list(&io, None).await })
    }
}

/// Names that are read at once.
const PAGE: usize = 256;

/// The sessions of a store, in no order that means anything; of `parent` alone, the rows of a session, when it is given.
async fn list(io: &Io, parent: Option<&str>) -> Result<Vec<SessionInfo>> {
    let mut found = Vec::new();
    let mut after: Option<Key> = None;
    loop {
        let prefix = keys::all_names();
        let scan = Scan { prefix, after, limit: PAGE, max_bytes: 1 << 20, reverse: false, keys_only: false };
        let names = io.scan(scan).await?;
        let Some((last, _)) = names.last() else { return Ok(found) };
        after = Some(last.clone());
        let names = names.iter().map(|(_, bytes)| record::decode(bytes, "session's name"));
        let names: Vec<NameRow> = names.collect::<Result<_>>()?;
        let sids = names.iter().filter(|name| !name.deleted).map(|name| keys::session(&name.sid));
        for bytes in io.read(sids.collect()).await?.into_iter().flatten() {
            let row: SessionRow = record::decode(&bytes, "session")?;
            if parent.is_some_and(|sid| row.parent.as_ref().is_none_or(|parent| parent.sid != sid)) {
                continue;
            }
            found.push(SessionInfo {
                id: row.id,
                format: row.format,
                messages: row.messages,
                created_at: row.created_at,
                updated_at: row.updated_at,
                parent: row.parent.map(|parent| ParentInfo { id: parent.id, seq: parent.seq }),
            });
        }
    }
}
