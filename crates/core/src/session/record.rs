//! Stored records: one JSON object each, with a version, chained by hashes. A log row is also a line of the transcript.

use super::context::{Context, Cover, Item, Left, Made, Offload, Origin, Place, Splice};
use super::ids;
use super::loss::Loss;
use super::price::Paid;
use super::session_log::SessionLog;
use super::snapshots::Mark;
use super::state::State;
use crate::checkpoint::Goal;
use crate::error::{Code, Error, Result};
use crate::plan::Trigger;
use crate::redact::Secrets;
use crate::tokens::Calibrations;
use crate::wire::Format;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::rc::Rc;

/// Version of every record that this release writes. Releases of the same hundred read each other's records and keep what
/// they do not know, so that an app can be rolled back; older ones are brought up to date when a session is opened
/// ([`super::migrations`]). 100 was the first; 101 added pins, compressions, goals, quotes, rewinds and parents.
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
    pub snapshots: Vec<Mark>,
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
}

impl NameRow {
    /// The name of a session that has none yet.
    pub(crate) fn new(id: &str, sid: &str) -> Self {
        NameRow { v: SCHEMA, id: id.into(), sid: sid.into(), deleted: false, ver: first() }
    }
}

fn first() -> u64 {
    1
}

fn is_first(ver: &u64) -> bool {
    *ver == first()
}

/// Kinds of log row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A message of the app.
    Message,
    /// The context changed: the row says to which view and why.
    View,
    /// The state of the session at this position, to be restored.
    Snapshot,
}

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
    pub kind: Kind,
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

/// Every so many views one holds the whole context.
pub(crate) const WHOLE_EVERY: u64 = 32;

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

/// A view as it is stored: a change of the context before it, or, every 32nd, the whole context.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ViewRow {
    /// [`SCHEMA`].
    pub v: u32,
    /// Number of the view, from 1.
    pub generation: u64,
    /// Log rows from here on are behind the view.
    pub to: u64,
    /// Messages of the app that the view accounts for.
    pub messages: usize,
    /// Messages of the log that stood behind the view before this one, to be added to it first.
    pub appended: Vec<(u64, usize, usize)>,
    /// The whole context, or `None` when `splices` change the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Vec<StoredItem>>,
    /// Changes to the context before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub splices: Vec<StoredSplice>,
    /// All messages that left the context so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// What led to it.
    pub cause: Cause,
}

/// What led to a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cause {
    /// The rung of the ladder; `restore` or `remove` where the app asked for that.
    pub rung: String,
    /// `auto`, `manual` or `overflow`.
    pub trigger: String,
    /// Tokens before.
    pub tokens_before: usize,
    /// Tokens after.
    pub tokens_after: usize,
    /// The preset.
    pub preset: String,
    /// Version of the prompts, for a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_version: Option<u32>,
    /// Who wrote the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The snapshot that was restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Hash of the context that was changed (its last log row).
    pub input: String,
}

impl Cause {
    /// A change of a session by hand, for whatever reason, that leaves `tokens_after`.
    pub(crate) fn of(state: &State, rung: &str, tokens_after: usize) -> Self {
        Cause {
            rung: rung.into(),
            trigger: Trigger::Manual.as_str().into(),
            tokens_before: state.tokens(),
            tokens_after,
            preset: state.settings.preset.name.into(),
            prompt_version: None,
            model: None,
            snapshot: None,
            input: String::new(),
        }
    }
}

/// Stored form of [`Splice`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredSplice {
    /// First item that is replaced.
    pub at: usize,
    /// How many.
    pub remove: usize,
    /// What stands there instead.
    pub insert: Vec<StoredItem>,
}

/// Stored form of one or several items.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum StoredItem {
    /// A run of the app's messages: first log position, first index, count (log positions are consecutive).
    Messages(u64, usize, usize),
    /// A message with something taken out of it.
    #[serde(rename = "offloaded")]
    Edited {
        /// Log position.
        seq: u64,
        /// Index among the app's messages.
        index: usize,
        /// The message as it is now.
        body: Box<RawValue>,
        /// The results that were moved to the store.
        offloads: Vec<Offload>,
        /// The reasoning that was bound to what stood before it is gone.
        #[serde(default, rename = "reasoningRemoved", skip_serializing_if = "std::ops::Not::not")]
        reasoning_removed: bool,
    },
    /// A summary.
    Summary {
        /// Its id.
        checkpoint: String,
        /// The message.
        body: Box<RawValue>,
        /// What it stands for.
        covers: Vec<Cover>,
        /// What of that stands in it word for word.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        quotes: Vec<Place>,
        /// Bytes of its text before that.
        #[serde(default, skip_serializing_if = "is_default")]
        prose: usize,
        /// How it was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        made: Option<Made>,
    },
    /// A message that keeps the roles alternating.
    Acknowledgement {
        /// The message.
        body: Box<RawValue>,
    },
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The stored form of items; neighbouring messages become runs.
pub(crate) fn store_items(items: &[Item]) -> Result<Vec<StoredItem>> {
    let raw = |body: &Rc<str>| {
        RawValue::from_string(body.to_string()).map_err(|error| {
            Error::new(Code::Poisoned, format!("a message of the engine is not JSON: {error}"))
        })
    };
    let mut stored: Vec<StoredItem> = Vec::new();
    for item in items {
        let next = match &item.origin {
            Origin::Message(Place { seq, index }) => {
                if let Some(StoredItem::Messages(first, start, count)) = stored.last_mut()
                    && *first + *count as u64 == *seq
                    && *start + *count == *index
                {
                    *count += 1;
                    continue;
                }
                StoredItem::Messages(*seq, *index, 1)
            }
            Origin::Edited { place, offloads, reasoning_removed } => StoredItem::Edited {
                seq: place.seq,
                index: place.index,
                body: raw(&item.body)?,
                offloads: offloads.clone(),
                reasoning_removed: *reasoning_removed,
            },
            Origin::Summary { checkpoint, covers, quotes, prose, made } => StoredItem::Summary {
                checkpoint: checkpoint.to_string(),
                body: raw(&item.body)?,
                covers: covers.clone(),
                quotes: quotes.clone(),
                prose: *prose,
                made: made.as_deref().cloned(),
            },
            Origin::Acknowledgement => StoredItem::Acknowledgement { body: raw(&item.body)? },
        };
        stored.push(next);
    }
    Ok(stored)
}

/// An item whose body is not read from the store yet: `None` for a message of the app.
pub(crate) type Unread = (Origin, Option<Rc<str>>);

/// Items from their stored form.
pub(crate) fn load_items(stored: Vec<StoredItem>) -> Vec<Unread> {
    let mut items = Vec::new();
    for item in stored {
        match item {
            StoredItem::Messages(seq, index, count) => {
                items.extend(
                    (0..count)
                        .map(|n| (Origin::Message(Place { seq: seq + n as u64, index: index + n }), None)),
                );
            }
            StoredItem::Edited { seq, index, body, offloads, reasoning_removed } => {
                let place = Place { seq, index };
                items.push((Origin::Edited { place, offloads, reasoning_removed }, Some(text(&body))));
            }
            StoredItem::Summary { checkpoint, body, covers, quotes, prose, made } => {
                let (checkpoint, made) = (checkpoint.into(), made.map(Rc::new));
                let origin = Origin::Summary { checkpoint, covers, quotes, prose, made };
                items.push((origin, Some(text(&body))));
            }
            StoredItem::Acknowledgement { body } => items.push((Origin::Acknowledgement, Some(text(&body)))),
        }
    }
    items
}

/// The context after a view, from the one before it.
pub(crate) fn replay(mut context: Vec<Unread>, view: ViewRow) -> Vec<Unread> {
    if let Some(whole) = view.whole {
        return load_items(whole);
    }
    for (seq, index, count) in view.appended {
        context.extend(load_items(vec![StoredItem::Messages(seq, index, count)]));
    }
    for splice in view.splices.into_iter().rev() {
        let start = splice.at.min(context.len());
        let end = splice.at.saturating_add(splice.remove).min(context.len());
        context.splice(start..end, load_items(splice.insert));
    }
    context
}

fn text(body: &RawValue) -> Rc<str> {
    Rc::from(body.get())
}

/// The stored form of a change of `context`, or of the whole result where that is due or nothing of `context` stays.
pub(crate) fn store_change(
    context: &Context,
    splices: &[Splice],
    generation: u64,
) -> Result<(Option<Vec<StoredItem>>, Vec<StoredSplice>)> {
    let replaces_all =
        matches!(splices, [splice] if splice.at == 0 && splice.remove >= context.items().len());
    if generation % WHOLE_EVERY == 1 || replaces_all {
        let mut after = context.clone();
        after.apply(splices);
        return Ok((Some(store_items(after.items())?), Vec::new()));
    }
    let stored = splices
        .iter()
        .map(|splice| {
            Ok(StoredSplice { at: splice.at, remove: splice.remove, insert: store_items(&splice.insert)? })
        })
        .collect::<Result<_>>()?;
    Ok((None, stored))
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

/// The version of a record.
///
/// Errors: [`Code::StoreCorrupt`], [`Code::SchemaTooNew`].
pub(crate) fn version(bytes: &[u8], what: &str) -> Result<u32> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    let Version { v } = parse(bytes, what)?;
    check_version(v, what)?;
    Ok(v)
}

/// Refuses a record of a version that this release cannot read.
///
/// Errors: [`Code::SchemaTooNew`].
pub(crate) fn check_version(v: u32, what: &str) -> Result<()> {
    if v / 100 > SCHEMA / 100 {
        return Err(Error::new(
            Code::SchemaTooNew,
            format!(
                "a {what} was written by schema {v}, this release reads up to {}99: update the library",
                SCHEMA / 100
            ),
        ));
    }
    Ok(())
}

fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8], what: &str) -> Result<T> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Error::new(Code::StoreCorrupt, format!("a {what} in the store is not text")))?;
    serde_json::from_str(text).map_err(|error| {
        Error::new(
            Code::StoreCorrupt,
            format!("a {what} in the store cannot be read: {}", Error::of_json(&error)),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an8_an_item_stored_before_reasoning_was_noted_reads_as_one_with_its_reasoning() {
        let stored = r#"{"offloaded":{"seq":3,"index":2,"body":{"role":"tool"},"offloads":[]}}"#;
        let item: StoredItem = serde_json::from_str(stored).unwrap();
        assert_eq!(serde_json::to_string(&item).unwrap(), stored);
        let place = Place { seq: 3, index: 2 };
        let origin = Origin::Edited { place, offloads: Vec::new(), reasoning_removed: false };
        assert_eq!(load_items(vec![item]), [(origin, Some(Rc::from(r#"{"role":"tool"}"#)))]);
    }

    #[test]
    fn s5_18_a_summary_stored_before_its_making_was_noted_reads_and_is_written_as_it_was() {
        let stored =
            r#"{"summary":{"checkpoint":"cp_1","body":{"role":"user"},"covers":[{"from":0,"to":2}]}}"#;
        let item: StoredItem = serde_json::from_str(stored).unwrap();
        assert_eq!(serde_json::to_string(&item).unwrap(), stored);
        let loaded = load_items(vec![item]);
        assert!(matches!(&loaded[0].0, Origin::Summary { made: None, prose: 0, .. }));
    }
}
