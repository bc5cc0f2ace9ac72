//! The archive of a session, a page of lines at a time: first the session, then the log, then the checkpoints in numbers
//! and the offloads.

use super::{Cursor, Source, line};
use crate::error::{Code, Error, Result};
use crate::session::batch::keys;
use crate::session::checkpoints;
use crate::session::offloads;
use crate::session::record::{Kind, LogRow};
use crate::session::stored::{PAGE, log_page, row_at};
use crate::step::Io;
use crate::wire;
use serde::{Deserialize, Serialize};

/// How far an export is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Export {
    /// Nothing is written yet.
    #[default]
    Begin,
    /// The log from there on.
    Log(Cursor, u64),
    /// The checkpoints of so many views.
    Checkpoints(u64),
    /// The offloads behind this one.
    Offloads(Option<String>),
}

/// The lines from `at` on, as many as make a page, and what comes next, when anything does.
pub(super) async fn page(io: &Io, source: &Source, at: Export) -> Result<(Vec<u8>, Option<Export>)> {
    let mut out = Vec::new();
    let mut next = Some(at);
    while out.len() < PAGE
        && let Some(at) = next
    {
        next = match at {
            Export::Begin => {
                line::session(&mut out, &source.row)?;
                Some(Export::Log(Cursor { seq: 0, rows: source.row.next_seq }, source.row.generation))
            }
            Export::Log(cursor, generation) if cursor.seq == cursor.rows => {
                Some(Export::Checkpoints(generation))
            }
            Export::Log(cursor, generation) => {
                Some(Export::Log(log(io, source, cursor, &mut out).await?, generation))
            }
            Export::Checkpoints(generation) => {
                for record in checkpoints::records(io, &source.sid, generation).await? {
                    line::checkpoint(&mut out, &record)?;
                }
                Some(Export::Offloads(None))
            }
            Export::Offloads(after) => {
                let reference = offloads::next(io, &source.sid, after.as_deref()).await?;
                if let Some(reference) = &reference {
                    line::offload(&mut out, offloads::load(io, &source.sid, reference).await?)?;
                }
                reference.map(|reference| Export::Offloads(Some(reference)))
            }
        };
    }
    Ok((out, next))
}

/// The lines of one page of the log. Views are read one by one, so the page may end before all rows are used.
async fn log(io: &Io, source: &Source, mut cursor: Cursor, out: &mut Vec<u8>) -> Result<Cursor> {
    for bytes in log_page(io, &source.sid, cursor.seq, cursor.rows).await? {
        if out.len() >= PAGE {
            break;
        }
        let row = row_at(&bytes, cursor.seq)?;
        match row.kind {
            Kind::Message => line::log(out, &bytes, Some(role(source, &row)?), None)?,
            Kind::Snapshot => line::log(out, &bytes, None, None)?,
            Kind::View => {
                let generation = noted(&row)?;
                let key = keys::view(&source.sid, generation);
                let view = io.read(vec![key]).await?.into_iter().next().flatten();
                let missing = || Error::new(Code::StoreCorrupt, format!("view {generation} is missing"));
                line::log(out, &bytes, None, Some(&view.ok_or_else(missing)?))?;
            }
        }
        cursor.seq += 1;
    }
    Ok(cursor)
}

fn role(source: &Source, row: &LogRow<'_>) -> Result<&'static str> {
    let value = wire::parse(row.n, row.body.get())?;
    Ok(source.format.wire().read(row.n, &value)?.role.as_str())
}

/// The number of the view that a row of the log tells of.
fn noted(row: &LogRow<'_>) -> Result<u64> {
    #[derive(Deserialize)]
    struct Note {
        view: u64,
    }
    let note: Note = serde_json::from_str(row.body.get()).map_err(|error| {
        Error::new(
            Code::StoreCorrupt,
            format!("row {} of the log cannot be read: {}", row.seq, Error::of_json(&error)),
        )
    })?;
    Ok(note.view)
}
