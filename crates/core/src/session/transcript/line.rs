//! What a line of an archive is: a JSON object with its version and kind. A reader can tell from the first line how many
//! messages follow, and from each message whether it is what was exported: the lines of the log are chained by hashes.
//!
//! | `kind` | what it holds |
//! |---|---|
//! | `session` | the first line: [`super::Metadata`], the release that wrote it, and the session's row |
//! | `message` | a message of the app, byte for byte as the codec wrote it |
//! | `view` | a change of the context, and what the context became |
//! | `snapshot` | that one was taken, and of which view |
//! | `checkpoint` | a checkpoint in numbers: for readers, the views have all of it |
//! | `offload` | a tool result that was moved out of the context |
//! | `gap` | rows of the log that could not be read, with the view that one of them had; or such an offload |

use super::Metadata;
use crate::context::{Offload, Placeholder};
use crate::error::{Code, Error, Result};
use crate::keys::batch::Key;
use crate::keys::ids;
use crate::log::record::{self, LogRow, SessionRow, ViewRow, WrittenRow};
use crate::log::{Gap, NewBlob, SCHEMA, packed};
use crate::session::checkpoints::CheckpointRecord;
use crate::wire::Format;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What every line has.
#[derive(Debug, Deserialize)]
pub(super) struct Tag {
    /// Its version: that of the record in it.
    pub(super) v: u32,
    /// What it is.
    pub(super) kind: String,
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionLine<'a> {
    v: u32,
    kind: &'a str,
    id: String,
    /// Version of the package that wrote it.
    release: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format>,
    #[serde(flatten, skip_deserializing)]
    metadata: Option<Metadata>,
    /// The session's row as it is stored.
    state: Box<RawValue>,
}

impl SessionLine<'_> {
    /// The session's row.
    ///
    /// Errors: [`Code::InvalidMessage`].
    pub(super) fn state(&self) -> Result<SessionRow> {
        crate::wire::record::from_str(self.state.get()).map_err(|error| {
            Error::new(Code::InvalidMessage, format!("it is not what was exported: {error}"))
        })
    }
}

/// A row of the log: a message, a change of the context or a snapshot.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LogLine<'a> {
    v: u32,
    kind: record::RowKind,
    pub(super) seq: u64,
    /// Messages before it: the index of a message.
    pub(super) index: usize,
    id: String,
    /// ms since 1970.
    pub(super) timestamp: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    /// The message, or the note about the change or the snapshot.
    #[serde(borrow)]
    pub(super) body: &'a RawValue,
    prev: String,
    chain: String,
    hash: String,
    /// The view as it is stored.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) view: Option<&'a RawValue>,
    /// Why there is no view, where the store lost it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) gap: Option<String>,
}

/// What could not be read.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct GapLine<'a> {
    v: u32,
    #[serde(borrow)]
    kind: &'a str,
    /// Rows of the log: the position of the first, how many, the index of the first message, and how many messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seq: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) messages: Option<usize>,
    /// An offload.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub(super) reference: Option<String>,
    /// Its row, where that names a message that is lost.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) row: Option<&'a RawValue>,
    reason: String,
    /// The view that the row had.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) view: Option<&'a RawValue>,
}

#[derive(Debug, Serialize)]
struct CheckpointLine<'a> {
    v: u32,
    kind: &'a str,
    #[serde(flatten)]
    record: &'a CheckpointRecord,
}

#[derive(Debug, Serialize, Deserialize)]
struct OffloadLine<'a> {
    v: u32,
    kind: &'a str,
    #[serde(rename = "ref")]
    reference: String,
    /// The message and the result that it is.
    index: usize,
    nth: usize,
    sha256: String,
    text: String,
}

/// Adds a line.
fn write<T: Serialize>(out: &mut Vec<u8>, line: &T) -> Result<()> {
    serde_json::to_writer(&mut *out, line).map_err(unwritable)?;
    out.push(b'\n');
    Ok(())
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::new(Code::Poisoned, format!("a line could not be written: {error}"))
}

/// The first line of a session's archive.
pub(super) fn session(out: &mut Vec<u8>, row: &SessionRow) -> Result<()> {
    let line = SessionLine {
        v: SCHEMA,
        kind: "session",
        id: row.id.clone(),
        release: env!("CARGO_PKG_VERSION").into(),
        format: row.format,
        metadata: Some(Metadata::of(row)),
        state: RawValue::from_string(crate::wire::record::to_text(&SessionRow {
            notes: None,
            ..row.clone()
        }))
        .map_err(unwritable)?,
    };
    write(out, &line)
}

/// The line of a row of the log, given as it is stored; of a view, with the view as it is stored.
pub(super) fn log(out: &mut Vec<u8>, row: &[u8], role: Option<&str>, view: Option<&RawValue>) -> Result<()> {
    let (row, hash) = record::read_row(row)?;
    let gap = (row.kind == record::RowKind::View && view.is_none()).then(|| VIEW_LOST.to_owned());
    let line = LogLine {
        v: row.v,
        kind: row.kind,
        seq: row.seq,
        index: row.n,
        id: row.id,
        timestamp: row.at,
        role,
        body: row.body,
        prev: row.prev,
        chain: row.chain,
        hash,
        view,
        gap,
    };
    write(out, &line)
}

const VIEW_LOST: &str = "the view is missing, or is not what was written";
const OFFLOAD_LOST: &str = "the offload is missing, or is not what was written";

/// The line of rows of the log that cannot be read; of one alone, with the view that it had.
pub(super) fn gap(out: &mut Vec<u8>, gap: &Gap, view: Option<&RawValue>) -> Result<()> {
    let Gap { seq, count, index, messages, reason } = gap.clone();
    let (seq, count, index, messages) = (Some(seq), Some(count), Some(index), Some(messages));
    write(
        out,
        &GapLine { v: SCHEMA, kind: "gap", seq, count, index, messages, reason, view, ..GapLine::default() },
    )
}

/// The line of an offload that cannot be read, with its row where that names a message that is lost.
pub(super) fn lost_offload(out: &mut Vec<u8>, reference: &str, row: Option<&[u8]>) -> Result<()> {
    let row = row.and_then(stored_view);
    let (reference, reason) = (Some(reference.to_owned()), OFFLOAD_LOST.into());
    write(out, &GapLine { v: SCHEMA, kind: "gap", reference, row, reason, ..GapLine::default() })
}

/// A view as it is stored, from its bytes.
pub(super) fn stored_view(bytes: &[u8]) -> Option<&RawValue> {
    serde_json::from_str(std::str::from_utf8(bytes).ok()?).ok()
}

/// The line of a checkpoint.
pub(super) fn checkpoint(out: &mut Vec<u8>, record: &CheckpointRecord) -> Result<()> {
    write(out, &CheckpointLine { v: SCHEMA, kind: "checkpoint", record })
}

/// The line of an offload.
pub(super) fn offload(out: &mut Vec<u8>, blob: NewBlob) -> Result<()> {
    let NewBlob { index, offload, text, .. } = blob;
    let Offload { nth, reference, sha256, .. } = offload;
    let text = text.to_string();
    write(out, &OffloadLine { v: SCHEMA, kind: "offload", reference, index, nth, sha256, text })
}

impl<'a> LogLine<'a> {
    /// The row's hash.
    pub(super) fn hash(&self) -> &str {
        &self.hash
    }

    /// The row as it was stored in the session that was exported.
    ///
    /// Errors: [`Code::InvalidMessage`] when it is not what was exported.
    pub(super) fn row(&self) -> Result<(LogRow<'a>, WrittenRow<'a>)> {
        let row = LogRow {
            v: self.v,
            seq: self.seq,
            n: self.index,
            id: self.id.clone(),
            kind: self.kind,
            at: self.timestamp,
            prev: self.prev.clone(),
            chain: self.chain.clone(),
            body: self.body,
        };
        let (written, hash) = record::write_row(&row);
        if hash != self.hash {
            return Err(Error::new(Code::InvalidMessage, "it is not what was exported: its hash differs"));
        }
        Ok((row, written))
    }

    /// The row of the view, when it is one.
    pub(super) fn view_row(&self, sid: &str) -> Result<Option<ReadView>> {
        self.view.map(|view| view_row(sid, view)).transpose()
    }
}

/// A view, and its row in the store.
pub(super) type ReadView = (ViewRow, (Key, Vec<u8>));

/// A view, and its row.
pub(super) fn view_row(sid: &str, view: &RawValue) -> Result<ReadView> {
    let text = view.get().as_bytes();
    let view: ViewRow = record::decode_view(text)?;
    let row = packed::row(sid, view.generation, text.to_vec());
    Ok((view, row))
}

/// An offload from its line.
///
/// Errors: [`Code::InvalidMessage`] when it is not what was exported.
pub(super) fn read_offload(text: &str) -> Result<NewBlob> {
    let line: OffloadLine<'_> = read(text)?;
    let OffloadLine { reference, index, nth, sha256, text, .. } = line;
    if !ids::looks_like_reference(&reference) || ids::sha256_hex(text.as_bytes()) != sha256 {
        return Err(Error::new(Code::InvalidMessage, "it is not the offload that was exported"));
    }
    let chars = text.chars().count();
    let offload = Offload { nth, reference, sha256, chars, how: Placeholder::Reference, basis: None };
    Ok(NewBlob::new(index, offload, &text, None))
}

/// A line of a known kind.
///
/// Errors: [`Code::InvalidMessage`].
pub(super) fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T> {
    crate::wire::objects::from_str(text).map_err(|error| {
        Error::new(Code::InvalidMessage, format!("it is not what was exported: {}", Error::of_json(&error)))
    })
}
