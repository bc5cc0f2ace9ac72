//! Stored records: one JSON object each, with a version, but for log rows ([`row`]), which are chained by hashes.

mod item;
mod row;
mod view;

pub(crate) use crate::wire::record::to_vec as encode;
pub(crate) use item::{StoredItem, Unread, load_items, store_items};
pub(crate) use row::{LogRow, PACKED, RowKind, WrittenRow, chain, read_row, write_row};
pub(crate) use view::{Cause, ViewNote, ViewRow, WholeView, first_of, replay, store_change, version_of};

use super::bill::Bill;
use super::known::KeyChain;
use super::price::Paid;
use super::snapshots::SnapshotMark;
use crate::checkpoint::Goal;
use crate::context::{Erased, SessionLog};
use crate::error::{Code, Error, Result};
use crate::redact::Secrets;
use crate::step::Loss;
use crate::tokens::Calibrations;
use crate::wire::Format;
use crate::wire::record::{Json, ReadJson, Unreadable, WriteJson};
use crate::wire::{read_fields, write_fields};
use serde_json::{Map, Value};

/// Version of every record that this release writes. Releases of the same hundred read each other's records and keep what
/// they do not know, so that an app can be rolled back; older ones are brought up to date when a session is opened
/// ([`super::migrations`]). 100 was the first; 101 added pins, compressions, goals, quotes, rewinds and parents; 201 has
/// small log rows. Views have a newer one where they hold what a release of this hundred would misread ([`view::NEWEST`]).
pub const SCHEMA: u32 = 201;

/// The row of a session that changes: heads and counters, and what changes seldom, which is a row of its own
/// ([`super::seal`]). Everything else is written once.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// The last whole view, and what changed since.
    pub whole: Option<WholeView>,
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
    pub paid: Paid,
    /// What its calls cost, as far as that was reported.
    pub spent: Bill,
    /// Indices of the messages that the app pinned (`S4.3`), ascending.
    pub pins: Vec<usize>,
    /// Tokens of those, as they were when they were pinned.
    pub pinned_tokens: usize,
    /// Indices of the messages whose constraints the app rejected (`S4.3`), ascending.
    pub rejected: Vec<usize>,
    /// Tokens of all messages so far (`S5.3`).
    pub tokens: usize,
    /// Summaries of the history so far (`S5.8`).
    pub compressions: u64,
    /// What they saved (`S4.4`).
    pub log: SessionLog,
    /// What the session is for (`S5.13`).
    pub goal: Option<Goal>,
    /// Where in the log the snapshots are that can be restored, oldest first (`S5.2`).
    pub snapshots: Vec<SnapshotMark>,
    /// The session that this one was begun from (`S3.10`).
    pub parent: Option<Parent>,
    /// Which secrets have which number in what stands for messages.
    pub secrets: Secrets,
    /// What providers' reports of prompts taught about estimates.
    pub calibrations: Calibrations,
    /// What was found when the session was opened, told at every opening until the app appends: who dies before it was
    /// told has not heard it.
    pub losses: Vec<Loss>,
    /// Messages that were erased, in the order in which they were (`D24`).
    pub erased: Vec<Erased>,
    /// What its rows were called before: an erasure writes all that stays anew.
    pub formerly: Vec<String>,
    /// What its history is recognized by, where the app hands it over whole.
    pub known: Option<KeyChain>,
    /// ms since 1970.
    pub created_at: u64,
    /// ms since 1970.
    pub updated_at: u64,
    /// The hash of the row of what changes seldom, as it is in the store; nothing where there is none.
    pub notes: Option<String>,
    /// What a newer release of the same hundred noted: kept as it is.
    pub rest: Map<String, Value>,
}

crate::wire::record!(SessionRow {
    v = "v",
    ver = "ver",
    id = "id",
    format = "format" or default,
    secret = "secret",
    next_seq = "nextSeq",
    messages = "messages",
    generation = "generation",
    tail_from = "tailFrom",
    whole = "whole" or nothing,
    head = "head",
    chain = "chain",
    steps = "steps",
    attempted_at = "attemptedAt" or nothing,
    pending_step = "pendingStep",
    paid = "paid" or nothing,
    spent = "spent" or nothing,
    pins = "pins" or nothing,
    pinned_tokens = "pinnedTokens" or nothing,
    rejected = "rejected" or nothing,
    tokens = "tokens" or nothing,
    compressions = "compressions" or nothing,
    log = "log" or nothing,
    goal = "goal" or nothing,
    snapshots = "snapshots" or nothing,
    parent = "parent" or nothing,
    secrets = "secrets" or nothing,
    calibrations = "calibrations" or nothing,
    losses = "losses" or nothing,
    erased = "erased" or nothing,
    formerly = "formerly" or nothing,
    known = "known" or nothing,
    created_at = "createdAt" or nothing,
    updated_at = "updatedAt",
    notes = "notes" or nothing,
    .. rest
});

/// Where a session was begun from.
#[derive(Debug, Clone, PartialEq, Eq)]
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

crate::wire::record!(Parent {
    id = "id",
    sid = "sid",
    seq = "seq",
    floor = "floor",
});

impl SessionRow {
    /// What of it changes seldom, and grows: JSON, `None` where there is nothing.
    pub(crate) fn noted(&self) -> Option<Vec<u8>> {
        let SessionRow { pins, pinned_tokens, rejected, log, goal, snapshots, parent, secrets, .. } = self;
        let SessionRow { calibrations, losses, erased, formerly, created_at, .. } = self;
        let mut out = Vec::new();
        write_fields!(
            &mut out,
            [
                pins = "pins" or nothing,
                pinned_tokens = "pinnedTokens" or nothing,
                rejected = "rejected" or nothing,
                log = "log" or nothing,
                goal = "goal" or nothing,
                snapshots = "snapshots" or nothing,
                parent = "parent" or nothing,
                secrets = "secrets" or nothing,
                calibrations = "calibrations" or nothing,
                losses = "losses" or nothing,
                erased = "erased" or nothing,
                formerly = "formerly" or nothing,
                created_at = "createdAt" or nothing
            ]
        );
        (out != b"{}").then_some(out)
    }

    /// Without what [`SessionRow::noted`] has.
    pub(crate) fn head(&self) -> SessionRow {
        SessionRow {
            pins: Vec::new(),
            pinned_tokens: 0,
            rejected: Vec::new(),
            log: SessionLog::default(),
            goal: None,
            snapshots: Vec::new(),
            parent: None,
            secrets: Secrets::default(),
            calibrations: Calibrations::default(),
            losses: Vec::new(),
            erased: Vec::new(),
            formerly: Vec::new(),
            created_at: 0,
            ..self.clone()
        }
    }

    /// True for a message that was erased.
    pub(crate) fn is_erased(&self, index: usize) -> bool {
        self.erased.iter().any(|erased| erased.index == index)
    }
}

/// Which session has a name. Written with the first messages, removed with the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameRow {
    /// [`SCHEMA`].
    pub v: u32,
    /// The app's own name for the session.
    pub id: String,
    /// Names the session's rows.
    pub sid: String,
    /// The session is being deleted: its rows go, and then the name is free.
    pub deleted: bool,
    /// Counts the commits that put this row, from 1.
    pub ver: u64,
    /// Whatever else it says.
    pub rest: Map<String, Value>,
}

impl NameRow {
    /// The name of a session that has none yet.
    pub(crate) fn new(id: &str, sid: &str) -> Self {
        NameRow { v: SCHEMA, id: id.into(), sid: sid.into(), deleted: false, ver: FIRST, rest: Map::new() }
    }
}

impl WriteJson for NameRow {
    fn write(&self, out: &mut Vec<u8>) {
        let NameRow { v, id, sid, deleted, ver, rest: _ } = self;
        let ver = &Some(*ver).filter(|ver| *ver != FIRST);
        write_fields!(out, [v = "v", id = "id", sid = "sid", deleted = "deleted", ver = "ver" or nothing]);
    }
}

impl ReadJson<'_> for NameRow {
    fn read(json: &mut Json<'_>) -> std::result::Result<Self, Unreadable> {
        let row: std::result::Result<NameRow, Unreadable> = read_fields!(
            json,
            NameRow,
            [v = "v", id = "id", sid = "sid", deleted = "deleted" or default, ver = "ver" or default]
            rest
        );
        row.map(|row| NameRow { ver: row.ver.max(FIRST), ..row })
    }
}

/// What is counted from.
const FIRST: u64 = 1;

/// Reads a record and checks its version.
///
/// Errors: [`Code::StoreCorrupt`], [`Code::SchemaTooNew`].
pub(crate) fn decode<'a, T: ReadJson<'a>>(bytes: &'a [u8], what: &str) -> Result<T> {
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
    struct RowVersion {
        v: u32,
    }
    crate::wire::record!(RowVersion { v = "v" });
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

fn parse<'a, T: ReadJson<'a>>(bytes: &'a [u8], what: &str) -> Result<T> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Error::new(Code::StoreCorrupt, format!("a {what} in the store is not text")))?;
    crate::wire::record::from_str(text).map_err(|error| {
        Error::new(Code::StoreCorrupt, format!("a {what} in the store cannot be read: {error}"))
    })
}
