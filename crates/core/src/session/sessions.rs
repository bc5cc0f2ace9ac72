//! The sessions of a store.

use super::operations::Session;
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Key, keys};
use crate::log::deletion::delete_named;
use crate::log::intact::last_row;
use crate::log::migrations;
use crate::log::record::{self, NameRow, RowKind, SessionRow};
use crate::log::seal;
use crate::log::wide;
use crate::step::{Io, LogLevel, Machine, Scan};
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

/// Names that are read at once.
const PAGE: usize = 256;

/// The sessions of a store, in no order that means anything; of `parents` alone, names of the rows of a session, when they
/// are given.
async fn list(io: &Io, parents: Option<&[String]>) -> Result<Vec<SessionInfo>> {
    let mut found = Vec::new();
    let mut after: Option<Key> = None;
    loop {
        let prefix = keys::all_names();
        let scan = Scan { prefix, after, limit: PAGE, max_bytes: 1 << 20, reverse: false, keys_only: false };
        let names = wide::scan(io, scan).await?;
        let Some((last, _)) = names.last() else { return Ok(found) };
        after = Some(last.clone());
        // What is damaged is mended where its session is opened, and costs no other.
        let names = names.iter().filter_map(|(key, bytes)| readable(io, key, seal::read_name(bytes)));
        let names: Vec<NameRow> = names.collect::<Result<_>>()?;
        let names: Vec<NameRow> = names.into_iter().filter(|name| !name.deleted).collect();
        let sids: Vec<Key> = names.iter().map(|name| keys::session(&name.sid)).collect();
        let notes = names.iter().map(|name| keys::notes(&name.sid));
        let mut rows = wide::read(io, sids.iter().cloned().chain(notes).collect()).await?;
        let notes = rows.split_off(sids.len());
        for (((key, bytes), noted), name) in sids.iter().zip(rows).zip(notes).zip(names) {
            let Some(bytes) = bytes else { continue };
            let row = match readable(io, key, session_row(&bytes, noted.as_deref(), &name)) {
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
    }
}

/// The row of the session that has this name.
fn session_row(bytes: &[u8], noted: Option<&[u8]>, name: &NameRow) -> Result<SessionRow> {
    let is_other = || Error::new(Code::StoreCorrupt, "it is the row of another session");
    seal::read(bytes, noted).and_then(|row| if row.id == name.id { Ok(row) } else { Err(is_other()) })
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
