//! Sessions of older schema versions are brought up to date when they are opened (`S5.18`): one file for each step.
//!
//! Log, views and offloads are written once and stay as they are; every release reads all their versions. What changes is
//! the session's row. Its bytes from before are kept beside it, in the very batch that changes it: whatever happens on the
//! way, the store holds the old session, or the new one with its backup.

mod v100_to_v101;

use super::record::{self, SCHEMA, SessionRow};
use super::retry::{Tried, conflict, retry, retryable};
use super::seal;
use super::stage::TO_UPKEEP;
use super::stored::name_row;
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Batch, Durability, keys};
use crate::log::wide;
use crate::policy::Settings;
use crate::step::{Io, LogLevel};
use serde_json::{Map, Value};

/// The fields of a session's row, whatever its schema.
type Fields = Map<String, Value>;

/// The schemas that there were before, oldest first. `step` knows what to do about each.
const OLDER: [u32; 2] = [100, 101];

/// Changes the fields of a row of schema `from` to those of the next; returns which that is.
async fn step(io: &Io, sid: &str, settings: &Settings, from: u32, fields: &mut Fields) -> Result<u32> {
    match from {
        100 => v100_to_v101::migrate(io, sid, settings, fields).await.map(|()| 101),
        // New log rows are packed: a release of before is not to take them for damaged ones.
        101 => Ok(201),
        _ => {
            let what = format!("the session was written by schema {from}, which this release does not know");
            Err(Error::new(Code::StoreCorrupt, what))
        }
    }
}

/// The session's row in the schema of this release, or of a newer one that it can read. One of an older release is backed
/// up and migrated first.
///
/// Errors: [`Code::SchemaTooNew`], [`Code::StoreCorrupt`]; those of the store, which then holds what it held before.
pub(super) async fn session_row(io: &Io, sid: &str, settings: &Settings) -> Result<Option<SessionRow>> {
    let Some((bytes, noted)) = seal::both(io, sid).await? else { return Ok(None) };
    seal::check(&bytes)?;
    if record::version(&bytes, "session")? < SCHEMA {
        return (TO_UPKEEP.enter(io).await?.migrated)(io, sid, settings).await;
    }
    seal::read(&bytes, noted.as_deref()).map(Some)
}

/// The same, for one that may be of an older release.
pub(super) async fn migrated(io: &Io, sid: &str, settings: &Settings) -> Result<Option<SessionRow>> {
    retry(io, None, async |_| {
        let key = keys::session(sid);
        let Some((old, noted)) = seal::both(io, sid).await? else { return Ok(Tried::Done(None)) };
        seal::check(&old)?;
        let from = record::version(&old, "session")?;
        if from >= SCHEMA {
            return seal::read(&old, noted.as_deref()).map(|row| Tried::Done(Some(row)));
        }
        let mut fields: Fields = record::decode(&old, "session")?;
        let mut to = from;
        while to < SCHEMA {
            to = step(io, sid, settings, to, &mut fields).await?;
        }
        fields.insert("v".into(), SCHEMA.into());
        let before = count_commit(&mut fields)?;
        let new = seal::seal(record::encode(&fields), before + 1);
        let row = seal::read_head(&new)?;
        let batch = Batch {
            expect: vec![(key.clone(), Some(before))],
            puts: vec![(key, new), (keys::backup(sid, from), old)],
            deletes: Vec::new(),
            durability: Durability::Strict,
        };
        match io.commit(batch).await {
            Ok(()) => {
                io.log(LogLevel::Info, format!("The session was backed up and migrated from schema {from}"));
                Ok(Tried::Done(Some(row)))
            }
            // Someone else migrated it, or wrote to it; or it was written and the answer is lost.
            Err(error) if retryable(&error) => Ok(Tried::Lost(conflict(), None)),
            Err(error) => Err(error),
        }
    })
    .await
}

/// Puts back the session's row as it was before the last migration. Returns its schema.
///
/// Errors: [`Code::NotFound`] when there is no such session, or no backup; [`Code::Conflict`] when the session went on
/// since, for that would be lost.
pub(crate) async fn restore(io: &Io, id: &str) -> Result<u32> {
    let not_found = |what| Error::new(Code::NotFound, what);
    let name = name_row(io, id).await?.filter(|name| !name.deleted);
    let sid = name.ok_or_else(|| not_found("there is no session with this id"))?.sid;
    let mut keys = vec![keys::session(&sid)];
    keys.extend(OLDER.map(|schema| keys::backup(&sid, schema)));
    let rows = wide::read(io, keys.clone()).await?;
    let mut rows = keys.into_iter().zip(rows).filter_map(|(key, bytes)| Some((key, bytes?)));
    let (session, now) = rows.next().ok_or_else(|| not_found("there is no session with this id"))?;
    let (backup, old) = rows.next_back().ok_or_else(|| not_found("this session has no backup"))?;
    let now: SessionRow = seal::read_head(&now)?;
    let mut fields: Fields = record::decode(&old, "backup")?;
    if fields.get("head").and_then(Value::as_str) != Some(&now.head) {
        let what = "the session went on since it was migrated: its backup would lose that";
        return Err(Error::new(Code::Conflict, what));
    }
    // The store counts commits, whatever they say.
    fields.insert("ver".into(), now.ver.into());
    count_commit(&mut fields)?;
    let batch = Batch {
        expect: vec![(session.clone(), Some(now.ver))],
        puts: vec![(session, record::encode(&fields))],
        // Of before there is none.
        deletes: vec![backup, keys::notes(&sid)],
        durability: Durability::Strict,
    };
    io.commit(batch).await?;
    record::version(&old, "backup")
}

/// Counts the commit that writes the row; returns the version that it replaces.
fn count_commit(fields: &mut Fields) -> Result<u64> {
    let before = fields.get("ver").and_then(Value::as_u64);
    let before = before.ok_or_else(|| Error::new(Code::StoreCorrupt, "the session's row has no version"))?;
    fields.insert("ver".into(), (before + 1).into());
    Ok(before)
}
