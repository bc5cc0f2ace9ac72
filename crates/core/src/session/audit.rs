//! The stored rows of a session against the invariants of `storage.md` §5.1: a pure function over rows, for tests and
//! simulators.

use super::batch::{Key, KeyPart, keys};
use super::context::{Context, Left, Offload, Origin};
use super::offloads;
use super::operations::Session;
use super::record::{self, Kind, NameRow, SessionRow, Unread, ViewRow};
use super::snapshots::{Mark, read_note};
use super::wide::Wide;
use super::{conserve_origins, ids};
use crate::error::{Code, Error, Result};
use crate::wire::{self, Format};
use std::collections::{BTreeMap, HashSet};

/// What the rows of a session say.
#[derive(Debug, Default)]
pub struct Audit {
    /// Messages of the app, in order: JSON texts.
    pub messages: Vec<String>,
    /// The context that the current view and the log behind it make.
    pub context: Vec<(Origin, String)>,
    /// Number of the current view.
    pub generation: u64,
    /// Rows of the log.
    pub rows: u64,
    /// The snapshots that can be restored, oldest first: ids, and the context that each makes.
    pub snapshots: Vec<(String, Vec<(Origin, String)>)>,
    /// The snapshot that the current view went back to.
    pub restored: Option<String>,
}

/// A look at a session in memory.
#[derive(Debug)]
pub struct Look {
    /// Its active context.
    pub context: Context,
    /// Number of its current view.
    pub generation: u64,
    /// Rows of the log that it knows.
    pub rows: u64,
}

/// Looks at a session in memory.
pub fn look(session: &Session) -> Result<Look> {
    session.look(|state| Look {
        context: state.context.clone(),
        generation: state.row.generation,
        rows: state.row.next_seq,
    })
}

/// Reads all rows of the session that the app calls `id` and checks what must always hold: the log has no gap and its
/// chains are whole, every view stands, every reference resolves to the text of the result that it stands for, every
/// message has one fate. An empty store is an empty session.
///
/// Errors: [`Code::StoreCorrupt`] with the first invariant that does not hold (`I1` …).
pub fn audit(id: &str, rows: &[(Key, Vec<u8>)]) -> Result<Audit> {
    let mut rows: Rows<'_> = rows.iter().map(|(key, value)| (key, value.as_slice())).collect();
    let joined = joined(&rows)?;
    rows.extend(joined.iter().map(|(key, value)| (*key, value.as_slice())));
    let Some(name) = rows.get(&keys::name(id)) else { return Ok(Audit::default()) };
    let NameRow { sid, deleted, .. } = record::decode(name, "session's name")?;
    if deleted {
        // What is left of it goes when its name is used again.
        return Ok(Audit::default());
    }
    let own = KeyPart::Text(sid.clone());
    let mine = |table: &str| {
        let table = KeyPart::Text(table.into());
        rows.keys().filter(|key| key.0.first() == Some(&table) && key.0.get(1) == Some(&own)).count() as u64
    };
    let Some(row) = rows.get(&keys::session(&sid)) else {
        return broken("I1", "a name of a session that does not exist");
    };
    let row: SessionRow = record::decode(row, "session")?;
    let messages = log(&sid, &row, &rows)?;
    if mine("log") != row.next_seq {
        return broken("I1", format!("{} rows in the log, {} counted", mine("log"), row.next_seq));
    }
    if mine("views") != row.generation {
        return broken("I3", format!("{} views, generation {}", mine("views"), row.generation));
    }
    let texts: Vec<String> = messages.iter().map(|(_, body)| body.clone()).collect();
    let views = views(&sid, &row, &messages, &texts, &rows)?;
    let Some((current, earlier)) = views.split_last() else {
        return broken("I3", "no context");
    };
    let whole = |view: &View, from: u64, to: u64, count: usize| {
        let behind = messages
            .iter()
            .filter(|(origin, _)| origin.place().is_some_and(|place| (from..to).contains(&place.seq)));
        let mut items = view.items.clone();
        items.extend(behind.map(|(origin, _)| (origin.clone(), None)));
        conserve_origins(items.iter().map(|(origin, _)| origin), &view.left, count)?;
        let text = |(origin, body): Unread| {
            let index = origin.place().map_or(usize::MAX, |place| place.index);
            let body = body.map(|body| body.to_string()).or_else(|| texts.get(index).cloned());
            (origin, body.unwrap_or_default())
        };
        Ok(items.into_iter().map(text).collect::<Vec<_>>())
    };
    if current.to != row.tail_from {
        return broken(
            "I3",
            format!("view {} ends at {}, not at {}", row.generation, current.to, row.tail_from),
        );
    }
    let context = whole(current, current.to, row.next_seq, messages.len())?;
    let mut snapshots = Vec::with_capacity(row.snapshots.len());
    for mark in &row.snapshots {
        let bytes = rows.get(&keys::log(&sid, mark.seq)).copied().unwrap_or_default();
        let (note, count, _) = read_note(bytes, mark)?;
        let number = usize::try_from(note.generation).unwrap_or(usize::MAX);
        let view = earlier.iter().chain([current]).nth(number);
        let Some(view) = view.filter(|view| view.to == note.tail_from && view.to <= mark.seq) else {
            return broken("I8", format!("snapshot {} names a view that there is not", mark.id));
        };
        snapshots.push((mark.id.clone(), whole(view, view.to, mark.seq, count)?));
    }
    let restored = current.restored.clone();
    Ok(Audit {
        messages: texts,
        context,
        generation: row.generation,
        rows: row.next_seq,
        snapshots,
        restored,
    })
}

/// A view as it was when it was made.
#[derive(Default, Clone)]
struct View {
    items: Vec<Unread>,
    left: Vec<Left>,
    /// Log rows from here on are behind it.
    to: u64,
    restored: Option<String>,
}

type Rows<'r> = BTreeMap<&'r Key, &'r [u8]>;

/// The rows that are stored in parts, whole.
fn joined<'r>(rows: &Rows<'r>) -> Result<Vec<(&'r Key, Vec<u8>)>> {
    let mut joined = Vec::new();
    for (key, value) in rows {
        let Some(wide) = Wide::read(value)? else { continue };
        let parts = wide.keys(key);
        joined.push((*key, wide.join(parts.iter().map(|part| rows.get(part).copied()))?));
    }
    Ok(joined)
}

/// I1, I4, I5 and I6. Returns the messages with their origins.
fn log(sid: &str, row: &SessionRow, rows: &Rows<'_>) -> Result<Vec<(Origin, String)>> {
    let (mut prev, mut chain) = (String::new(), String::new());
    let (mut messages, mut views) = (Vec::new(), 0);
    let mut seen = HashSet::new();
    for seq in 0..row.next_seq {
        let Some(bytes) = rows.get(&keys::log(sid, seq)) else {
            return broken("I1", format!("log row {seq} is missing"));
        };
        let (found, hash) = record::read_row(bytes)?;
        if found.kind == Kind::Message {
            chain = record::chain(&chain, found.body.get());
        }
        if (found.seq, found.n) != (seq, messages.len()) || found.prev != prev || found.chain != chain {
            return broken("I1", format!("log row {seq} does not follow the one before"));
        }
        if !seen.insert(found.id.clone()) {
            return broken("I6", format!("log row {seq} repeats the id of an earlier one"));
        }
        match found.kind {
            Kind::View => views += 1,
            Kind::Snapshot => {
                read_note(bytes, &Mark { id: found.id.clone(), seq })?;
            }
            Kind::Message => {
                let place = super::Place { seq, index: messages.len() };
                messages.push((Origin::Message(place), found.body.get().to_string()));
            }
        }
        prev = hash;
    }
    if views != row.generation {
        return broken("I4", format!("{views} changes in the log, generation {}", row.generation));
    }
    if (row.head.as_str(), row.chain.as_str()) != (prev.as_str(), chain.as_str()) {
        return broken("I5", "the session's row does not name the last row of the log");
    }
    if row.messages != messages.len() {
        return broken("I5", format!("{} messages in the log, {} counted", messages.len(), row.messages));
    }
    Ok(messages)
}

/// I2 and I3. Returns every view; the first is the plain log.
fn views(
    sid: &str,
    row: &SessionRow,
    messages: &[(Origin, String)],
    texts: &[String],
    rows: &Rows<'_>,
) -> Result<Vec<View>> {
    let mut views = vec![View::default()];
    let mut now = View::default();
    let mut resolved = HashSet::new();
    for generation in 1..=row.generation {
        let Some(bytes) = rows.get(&keys::view(sid, generation)) else {
            return broken("I3", format!("view {generation} is missing"));
        };
        let mut view: ViewRow = record::decode(bytes, "view")?;
        if view.generation != generation || view.to <= now.to || view.messages > messages.len() {
            return broken("I3", format!("view {generation} does not follow the one before"));
        }
        let (left, restored) = (std::mem::take(&mut view.left), view.cause.snapshot.take());
        now = View { left, restored, to: view.to, items: record::replay(now.items, view) };
        for (index, offload) in now.items.iter().flat_map(|(origin, _)| offloads_of(origin)) {
            if !resolved.insert(offload.reference.clone()) {
                continue;
            }
            resolve(sid, row.format.unwrap_or(Format::OpenaiChat), index, offload, texts, rows)?;
        }
        views.push(now.clone());
    }
    Ok(views)
}

/// Offloads that an item refers to or stands for, with the index of their message.
fn offloads_of(origin: &Origin) -> Vec<(usize, &Offload)> {
    match origin {
        Origin::Edited { place, offloads, .. } => {
            offloads.iter().map(|offload| (place.index, offload)).collect()
        }
        Origin::Summary { covers, .. } => covers
            .iter()
            .flat_map(|cover| cover.offloads.iter().map(|(index, offload)| (*index, offload)))
            .collect(),
        Origin::Message(_) | Origin::Acknowledgement => Vec::new(),
    }
}

/// The text in the store is that of the result in the log.
fn resolve(
    sid: &str,
    format: Format,
    index: usize,
    offload: &Offload,
    texts: &[String],
    rows: &Rows<'_>,
) -> Result<()> {
    let reference = &offload.reference;
    let value = |part| rows.get(&keys::blob(sid, reference, part)).copied();
    let stored = offloads::assemble(reference, value)?;
    let body = texts.get(index).map_or("null", String::as_str);
    let message = wire::parse(index, body)?;
    let original = format.wire().read(index, &message)?;
    let original = original.results().nth(offload.nth).map(|result| result.text.to_string());
    if original.as_deref() != Some(stored.as_str()) || ids::sha256_hex(stored.as_bytes()) != offload.sha256 {
        return broken("I2", format!("{reference} is not the text of the result that it stands for"));
    }
    Ok(())
}

fn broken<T>(invariant: &str, what: impl std::fmt::Display) -> Result<T> {
    Err(Error::new(Code::StoreCorrupt, format!("{invariant}: {what}")))
}
