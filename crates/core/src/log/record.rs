//! Stored records: one JSON object each, with a version, chained by hashes. A log row is also a line of the transcript.

mod view;

pub(crate) use view::{
    Cause, StoredItem, Unread, ViewNote, ViewRow, WHOLE_EVERY, load_items, replay, store_change, store_items,
    version_of,
};

use super::known::KeyChain;
use super::price::Paid;
use super::snapshots::SnapshotMark;
use crate::checkpoint::Goal;
use crate::context::{Erased, SessionLog};
use crate::error::{Code, Error, Result};
use crate::keys::ids;
use crate::redact::Secrets;
use crate::step::Loss;
use crate::tokens::Calibrations;
use crate::wire::Format;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Version of every record that this release writes. Releases of the same hundred read each other's records and keep what
/// they do not know, so that an app can be rolled back; older ones are brought up to date when a session is opened
/// ([`super::migrations`]). 100 was the first; 101 added pins, compressions, goals, quotes, rewinds and parents. Views have a
/// newer one where they hold what a release of this hundred would misread ([`view::NEWEST`]).
pub const SCHEMA: u32 = 101;

/// The row of a session that changes; everything else is written once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionRow {
    /// [`SCHEMA`].
    pub v: u32,
    /// Counts the commits that put this row, from 1: the version that the next commit expects.
    pub ver: u64,
    /// The app's own name for the session.
    pub id: String,
    /// The messages' format, once it is sure.
    pub format: Option<Format>,
    /// Makes references unguessable.
    pub secret: String,
    /// Position of the next log row.
    pub next_seq: u64,
    /// Messages of the app so far.
    pub messages: usize,
    /// Number of the current view; 0 is the plain log.
    pub generation: u64,
    /// First log row behind the current view.
    pub tail_from: u64,
    /// Hash of the last log row, in hex.
    pub head: String,
    /// Chain over the contents of all messages, in hex.
    pub chain: String,
    /// Steps so far (`S1.4`): prepares that came after an append.
    pub steps: u64,
    /// The step of the last attempt to summarise.
    pub attempted_at: Option<u64>,
    /// An append came after the last prepare.
    pub pending_step: bool,
    /// What its calls paid for a larger context, where the prices decide when it is compacted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub paid: Paid,
    /// Indices of the messages that the app pinned (`S4.3`), ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<usize>,
    /// Tokens of those, as they were when they were pinned.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pinned_tokens: usize,
    /// Indices of the messages whose constraints the app rejected (`S4.3`), ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<usize>,
    /// Tokens of all messages so far (`S5.3`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub tokens: usize,
    /// Summaries of the history so far (`S5.8`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub compressions: u64,
    /// What they saved (`S4.4`).
    #[serde(default, skip_serializing_if = "SessionLog::is_empty")]
    pub log: SessionLog,
    /// What the session is for (`S5.13`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
    /// Where in the log the snapshots are that can be restored, oldest first (`S5.2`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<SnapshotMark>,
    /// The session that this one was begun from (`S3.10`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// Which secrets have which number in what stands for messages.
    #[serde(default, skip_serializing_if = "Secrets::is_empty")]
    pub secrets: Secrets,
    /// What providers' reports of prompts taught about estimates.
    #[serde(default, skip_serializing_if = "Calibrations::is_empty")]
    pub calibrations: Calibrations,
    /// What was found when the session was opened, told at every opening until the app appends: who dies before it was
    /// told has not heard it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
    /// Messages that were erased, in the order in which they were (`D24`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub erased: Vec<Erased>,
    /// What its rows were called before: an erasure writes all that stays anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub formerly: Vec<String>,
    /// What its history is recognized by, where the app hands it over whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<KeyChain>,
    /// ms since 1970.
    pub created_at: u64,
    /// ms since 1970.
    pub updated_at: u64,
    /// What a newer release of the same hundred noted: kept as it is.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Where a session was begun from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Parent {
    /// The app's own name for it.
    pub id: String,
    /// Names its rows.
    pub sid: String,
    /// Rows of its log at that time.
    pub seq: u64,
    /// Messages that were taken over together with a summary: no context of this session ends before them.
    pub floor: usize,
}

impl SessionRow {
    /// True for a message that was erased.
    pub(crate) fn is_erased(&self, index: usize) -> bool {
        self.erased.iter().any(|erased| erased.index == index)
    }
}

/// Which session has a name. Written with the first messages, removed with the last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NameRow {
    /// [`SCHEMA`].
    pub v: u32,
    /// The app's own name for the session.
    pub id: String,
    /// Names the session's rows.
    pub sid: String,
    /// The session is being deleted: its rows go, and then the name is free.
    #[serde(default)]
    pub deleted: bool,
    /// Counts the commits that put this row, from 1.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub ver: u64,
    /// Whatever else it says.
    #[serde(flatten, skip_serializing)]
    pub rest: Map<String, Value>,
}

impl NameRow {
    /// The name of a session that has none yet.
    pub(crate) fn new(id: &str, sid: &str) -> Self {
        NameRow { v: SCHEMA, id: id.into(), sid: sid.into(), deleted: false, ver: first(), rest: Map::new() }
    }
}

fn first() -> u64 {
    1
}

fn is_first(ver: &u64) -> bool {
    *ver == first()
}

/// Kinds of log row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// A message of the app.
    Message,
    /// The context changed: the row says to which view and why.
    View,
    /// The state of the session at this position, to be restored.
    Snapshot,
}

crate::wire::named!(RowKind { Message = "message", View = "view", Snapshot = "snapshot" });

/// A log row.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LogRow<'a> {
    /// [`SCHEMA`].
    pub v: u32,
    /// Position in the log.
    pub seq: u64,
    /// Messages of the app before this row: the index of a message.
    pub n: usize,
    /// Unique; a batch that is written twice is recognised by it.
    pub id: String,
    /// What it is.
    pub kind: RowKind,
    /// ms since 1970.
    pub at: u64,
    /// Hash of the row before, in hex; empty for the first.
    pub prev: String,
    /// Chain over the contents of the messages so far, this one included, in hex.
    pub chain: String,
    /// The message, byte for byte as the codec wrote it, or a note about the view or the snapshot.
    #[serde(borrow)]
    pub body: &'a RawValue,
}

/// The chain value after a message with this content.
pub(crate) fn chain(before: &str, body: &str) -> String {
    let digest = ids::hash(&[before.as_bytes(), body.as_bytes()]);
    ids::hex(digest.first_chunk::<16>().map_or(&[][..], |half| &half[..]))
}

const HASH_TAIL: usize = ",\"hash\":\"\"}".len() + 64;

/// Writes a log row; returns its bytes and its hash in hex.
pub(crate) fn write_row(row: &LogRow<'_>) -> Result<(Vec<u8>, String)> {
    // A row may be large: it is written once, into the room that it takes.
    let mut line = Vec::with_capacity(row.body.get().len() + HASH_TAIL + 512);
    serde_json::to_writer(&mut line, row).map_err(unwritable)?;
    let hash = ids::sha256_hex(&line);
    line.pop();
    line.extend_from_slice(format!(",\"hash\":\"{hash}\"}}").as_bytes());
    Ok((line, hash))
}

/// Reads a log row and checks its hash; returns the hash too.
///
/// Errors: [`Code::StoreCorrupt`] when it is not what was written, [`Code::SchemaTooNew`].
pub(crate) fn read_row(bytes: &[u8]) -> Result<(LogRow<'_>, String)> {
    let corrupt = || Error::new(Code::StoreCorrupt, "a row of the log is not what was written");
    let split = bytes.len().checked_sub(HASH_TAIL).ok_or_else(corrupt)?;
    let (line, tail) = bytes.split_at(split);
    let hash = ids::sha256_hex_of(&[line, b"}"]);
    if tail != format!(",\"hash\":\"{hash}\"}}").as_bytes() {
        return Err(corrupt());
    }
    let row: LogRow<'_> = decode(bytes, "log row")?;
    Ok((row, hash))
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Serialises a record.
pub(crate) fn encode<T: Serialize>(record: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(record).map_err(unwritable)
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::new(Code::Poisoned, format!("a record could not be written: {error}"))
}

/// Reads a record and checks its version.
///
/// Errors: [`Code::StoreCorrupt`], [`Code::SchemaTooNew`].
pub(crate) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8], what: &str) -> Result<T> {
    version(bytes, what)?;
    parse(bytes, what)
}

/// Reads a view and checks its version.
///
/// Errors: [`Code::StoreCorrupt`], [`Code::SchemaTooNew`].
pub(crate) fn decode_view(bytes: &[u8]) -> Result<ViewRow> {
    refuse_above(view::NEWEST, version_in(bytes, "view")?, "view")?;
    parse(bytes, "view")
}

/// The version of a record.
///
/// Errors: [`Code::StoreCorrupt`], [`Code::SchemaTooNew`].
pub(crate) fn version(bytes: &[u8], what: &str) -> Result<u32> {
    let v = version_in(bytes, what)?;
    check_version(v, what)?;
    Ok(v)
}

fn version_in(bytes: &[u8], what: &str) -> Result<u32> {
    #[derive(Deserialize)]
    struct RowVersion {
        v: u32,
    }
    let RowVersion { v } = parse(bytes, what)?;
    Ok(v)
}

/// Refuses a record of a version that this release cannot read.
///
/// Errors: [`Code::SchemaTooNew`].
pub(crate) fn check_version(v: u32, what: &str) -> Result<()> {
    refuse_above(SCHEMA, v, what)
}

fn refuse_above(newest: u32, v: u32, what: &str) -> Result<()> {
    if v / 100 > newest / 100 {
        return Err(Error::new(
            Code::SchemaTooNew,
            format!(
                "a {what} was written by schema {v}, this release reads up to {}99: update the library",
                newest / 100
            ),
        ));
    }
    Ok(())
}

fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8], what: &str) -> Result<T> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Error::new(Code::StoreCorrupt, format!("a {what} in the store is not text")))?;
    crate::wire::objects::from_str(text).map_err(|error| {
        Error::new(
            Code::StoreCorrupt,
            format!("a {what} in the store cannot be read: {}", Error::of_json(&error)),
        )
    })
}
