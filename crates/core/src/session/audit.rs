//! The stored rows of a session against what must always hold ([`crate::log::check`]): a pure function over rows, for tests and
//! simulators.

use super::operations::Session;
pub use crate::log::packed::text as view_text;

use crate::context::{Context, Origin, conserve_origins};
use crate::error::Result;
use crate::keys::batch::{Key, KeyPart, keys};
use crate::log::check::{CheckedView, Findings, LogCheck, ViewCheck, is_derived, resolves};
use crate::log::record::{NameRow, RowKind, Unread};
use crate::log::snapshots::read_note;
use crate::log::wide::{self, Wide};
use crate::log::{offloads, seal};
use crate::wire::Format;
use std::collections::BTreeMap;

/// What the rows of a session say.
#[derive(Debug, Default)]
pub struct Audit {
    /// Messages of the app, in order: JSON texts.
    pub messages: Vec<String>,
    /// The context that the current view and the log after it make.
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
        context: Context::clone(&state.context),
        // Those in memory alone count too: the store has no such view.
        generation: state.generation(),
        rows: state.row.next_seq,
    })
}

/// Reads all rows of the session that the app calls `id` and checks what must always hold. An empty store is an empty
/// session.
///
/// Errors: [`crate::Code::StoreCorrupt`] with the first invariant that does not hold (`I1` …).
pub fn audit(id: &str, rows: &[(Key, Vec<u8>)]) -> Result<Audit> {
    Auditor::default().audit(id, rows)
}

/// Audits a session again and again while it grows, as [`audit`] does: what was written once and is what it was is not read
/// again. When anything of it is another, everything is.
#[derive(Debug, Default)]
pub struct Auditor {
    /// Whose rows they are, and their format.
    of: Option<(String, Option<Format>)>,
    /// The rows that were read, those in parts whole.
    read: Vec<(Key, Vec<u8>)>,
    log: LogCheck,
    messages: Vec<(u64, String)>,
    check: ViewCheck,
    views: Vec<CheckedView>,
}

impl Auditor {
    /// As [`audit`].
    pub fn audit(&mut self, id: &str, rows: &[(Key, Vec<u8>)]) -> Result<Audit> {
        let mut rows: Rows<'_> = rows.iter().map(|(key, value)| (key, value.as_slice())).collect();
        let unwrapped = unwrapped(&rows)?;
        rows.extend(unwrapped.iter().map(|(key, value)| (*key, value.as_slice())));
        let is_kept = |(key, was): &(Key, Vec<u8>)| rows.get(key).is_some_and(|value| *value == was);
        let known = std::mem::take(self);
        if known.read.iter().all(is_kept) {
            *self = known;
        }
        let found = self.go_on(id, &rows);
        if found.is_err() {
            *self = Auditor::default();
        }
        found
    }

    fn go_on(&mut self, id: &str, rows: &Rows<'_>) -> Result<Audit> {
        let Some(name) = rows.get(&keys::name(id)) else { return Ok(Audit::default()) };
        let NameRow { sid, deleted, .. } = seal::read_name(name)?;
        if deleted {
            // What is left of it goes when its name is used again.
            return Ok(Audit::default());
        }
        let mut found = Findings::default();
        let row = match rows.get(&keys::session(&sid)) {
            Some(row) => seal::read(row, rows.get(&keys::notes(&sid)).copied())?,
            None => {
                found.add("I5", "a name of a session that does not exist");
                return found.check().map(|()| Audit::default());
            }
        };
        let of = Some((sid.clone(), row.format));
        if self.of != of || self.log.rows > row.next_seq || self.check.views > row.generation {
            *self = Auditor { of, views: vec![CheckedView::default()], ..Auditor::default() };
        }
        let own = KeyPart::Text(sid.clone());
        let mine = |table: &str| {
            let table = KeyPart::Text(table.into());
            rows.keys().filter(|key| key.0.first() == Some(&table) && key.0.get(1) == Some(&own)).count()
                as u64
        };
        let Auditor { read, log, messages, check, views, .. } = self;
        for seq in log.rows..row.next_seq {
            let key = keys::log(&sid, seq);
            match rows.get(&key).map(|bytes| log.row(bytes, &mut found)) {
                Some(Some(row)) if row.kind == RowKind::Message => {
                    messages.push((seq, row.body.get().to_string()));
                }
                Some(_) => {}
                None => log.gap(seq + 1, &mut found),
            }
            found.check()?;
            read.extend(rows.get(&key).map(|bytes| (key, bytes.to_vec())));
        }
        log.end(&row, &mut found);
        if mine("log") != row.next_seq {
            found.add("I1", format!("{} rows in the log, {} counted", mine("log"), row.next_seq));
        }
        if mine("views") != row.generation {
            found.add("I3", format!("{} views, generation {}", mine("views"), row.generation));
        }
        found.check()?;

        let format = row.format.unwrap_or(Format::OpenaiChat);
        let text_of = |index: usize| messages.get(index).map(|(_, body)| body.as_str());
        let terms = keys::all_terms(&sid);
        for (key, page) in rows.iter().filter(|(key, _)| key.0.starts_with(&terms.0)) {
            if read.iter().any(|(known, _)| known == *key) {
                continue;
            }
            let message = |index: usize| messages.get(index).map(|(seq, body)| (*seq, body.as_str()));
            is_derived(format, page, message, &mut found);
            read.push(((*key).clone(), page.to_vec()));
        }
        found.check()?;
        for generation in check.views + 1..=row.generation {
            let key = keys::view(&sid, generation);
            match rows.get(&key) {
                Some(bytes) => {
                    for offload in check.row(bytes, log, &mut found) {
                        let reference = &offload.1.reference;
                        let value = |part| rows.get(&keys::blob(&sid, reference, part)).copied();
                        let stored = offloads::assemble(reference, format, value, text_of);
                        resolves(format, &offload, stored, text_of(offload.0), &mut found);
                        let parts = (0..).map_while(|part| {
                            value(part).map(|bytes| (keys::blob(&sid, reference, part), bytes.to_vec()))
                        });
                        read.extend(parts);
                    }
                    read.push((key, bytes.to_vec()));
                }
                None => check.gap(generation, &mut found),
            }
            found.check()?;
            views.extend(check.now().cloned());
        }
        let whole = |view: &CheckedView, to: u64, count: usize| {
            let behind = (0..).zip(&*messages).filter(|(_, (seq, _))| (view.to..to).contains(seq));
            let behind = behind
                .map(|(index, (seq, _))| (Origin::Message(crate::context::Place { seq: *seq, index }), None));
            let items: Vec<Unread> = view.items.iter().cloned().chain(behind).collect();
            conserve_origins(items.iter().map(|(origin, _)| origin), &view.left, count)?;
            let text = |(origin, body): Unread| {
                let index = origin.place().map_or(usize::MAX, |place| place.index);
                let body = body.map(|body| body.to_string());
                (origin, body.or_else(|| text_of(index).map(str::to_string)).unwrap_or_default())
            };
            Ok(items.into_iter().map(text).collect::<Vec<_>>())
        };
        let current = views.last().cloned().unwrap_or_default();
        let context = whole(&current, row.next_seq, messages.len())?;
        let mut snapshots = Vec::with_capacity(row.snapshots.len());
        for mark in &row.snapshots {
            let bytes = rows.get(&keys::log(&sid, mark.seq)).copied();
            log.snapshot(bytes, mark, &mut found);
            found.check()?;
            let (note, count, _) = read_note(bytes.unwrap_or_default(), mark)?;
            let number = usize::try_from(note.generation).unwrap_or(usize::MAX);
            if let Some(view) = views.get(number) {
                snapshots.push((mark.id.clone(), whole(view, mark.seq, count)?));
            }
        }
        Ok(Audit {
            context,
            generation: row.generation,
            rows: row.next_seq,
            snapshots,
            restored: current.restored,
            messages: messages.iter().map(|(_, body)| body.clone()).collect(),
        })
    }
}

type Rows<'r> = BTreeMap<&'r Key, &'r [u8]>;

/// The rows that are not stored as they were written, as they were.
fn unwrapped<'r>(rows: &Rows<'r>) -> Result<Vec<(&'r Key, Vec<u8>)>> {
    let mut unwrapped = Vec::new();
    for (key, value) in rows {
        let mut row = match Wide::read(key, value)? {
            Some(wide) => wide.join(wide.keys(key).iter().map(|part| rows.get(part).copied()))?,
            None => value.to_vec(),
        };
        wide::bare(key, &mut row);
        if row != *value {
            unwrapped.push((*key, row));
        }
    }
    Ok(unwrapped)
}
