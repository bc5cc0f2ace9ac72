//! The sessions of a store.

use super::operations::Session;
use crate::error::{Code, Result};
use crate::keys::batch::{Key, keys};
use crate::log::deletion::delete_named;
use crate::log::intact::last_row;
use crate::log::migrations;
use crate::log::record::{self, NameRow, RowKind};
use crate::log::sessions::{ListedSession, sessions_page};
use crate::step::{Io, LogLevel, Machine};
use crate::wire::Format;
use serde::Serialize;

/// Facts about a session that is not open.
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
            // An erasure gives the rows of a session another name.
            let sids = slot.look(|state| [state.row.formerly.clone(), vec![state.sid.clone()]].concat())?;
            list(&io, Some(&sids)).await
        })
    }

    /// The sessions of the store, in no order that means anything.
    pub fn list() -> Machine<Vec<SessionInfo>> {
        Machine::new(|io| async move { list(&io, None).await })
    }

    /// Removes the session that the app calls `id`, which need not open for it; nothing where there is none.
    /// `max_batch_ops` is the most that the store takes in one batch.
    pub fn delete_named(id: String, max_batch_ops: usize) -> Machine<()> {
        Machine::new(move |io| async move { delete_named(&io, &id, max_batch_ops).await })
    }

    /// Puts the session that the app calls `id` back as it was before it was migrated (`S5.18`); returns its schema. The next
    /// [`Session::open`] migrates it again.
    ///
    /// Errors: [`Code::NotFound`] without a backup, [`Code::Conflict`] when the session went on since.
    pub fn restore_backup(id: String) -> Machine<u32> {
        Machine::new(move |io| async move { migrations::restore(&io, &id).await })
    }
}

/// The sessions of a store, in no order that means anything; of `parents` alone, names of the rows of a session, when they
/// are given.
async fn list(io: &Io, parents: Option<&[String]>) -> Result<Vec<SessionInfo>> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = sessions_page(io, after, true).await?;
        for (key, session) in page.sessions {
            // What is damaged is mended where its session is opened, and costs no other.
            let Some(session) = readable(io, &key, session) else { continue };
            let ListedSession { name, row } = session?;
            let row = match readable(io, &keys::session(&name.sid), row) {
                Some(row) => row?,
                None if parents.is_some() => continue,
                None => {
                    found.push(of_log(io, name).await?);
                    continue;
                }
            };
            let is_of =
                |sids: &[String]| row.parent.as_ref().is_some_and(|parent| sids.contains(&parent.sid));
            if !parents.is_none_or(is_of) {
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
        after = page.last;
        if after.is_none() {
            return Ok(found);
        }
    }
}

/// A record that was read; `None` where it is damaged.
fn readable<T>(io: &Io, key: &Key, record: Result<T>) -> Option<Result<T>> {
    match record {
        Err(error) if error.code == Code::StoreCorrupt => {
            io.log(LogLevel::Warn, format!("{key} cannot be read, and was left out of the list: {error}"));
            None
        }
        record => Some(record),
    }
}

/// A session whose row is damaged, as far as the end of its log shows.
async fn of_log(io: &Io, name: NameRow) -> Result<SessionInfo> {
    let mut info =
        SessionInfo { id: name.id, format: None, messages: 0, created_at: 0, updated_at: 0, parent: None };
    let last = last_row(io, &name.sid).await?;
    if let Some(Ok((row, _))) = last.as_ref().map(|(_, bytes)| record::read_row(bytes)) {
        info.messages = row.n + usize::from(row.kind == RowKind::Message);
        (info.created_at, info.updated_at) = (row.at, row.at);
    }
    Ok(info)
}
