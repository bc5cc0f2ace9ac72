//! Writing a session, and what reading it is made of.

mod change;
pub(super) mod others;

use super::gaps::Walk;
use super::guard::SessionGuard;
use super::record::{self, LogRow, NameRow, RowKind, SessionRow, Unread, ViewRow};
use super::renamed::renamed;
use super::retry::{Tried, retry, retryable};
use super::seal;
use super::state::{AppendBatch, FormatDecision, PendingMessage, record_id};
use super::wide;
use crate::context::{Departed, Origin, Place};
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Batch, Key, KeyPart, keys};
use crate::step::{Breath, Io, Scan};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

/// Bytes that one read of the store may return.
pub(crate) const PAGE: usize = 4 << 20;

impl SessionGuard {
    /// Tries once to append messages (T1): durable when they are written, and only then part of the context. What comes
    /// of it is where they are.
    pub(crate) async fn try_append(
        &self,
        io: &Io,
        settled: &mut FormatDecision,
        bodies: &[PendingMessage],
        batch_id: &str,
    ) -> Result<Tried<Vec<Place>>> {
        let now = io.now().await?;
        let AppendBatch { batch, large, row, items, unindexed } =
            self.state().append_batch(settled, bodies, batch_id, now)?;
        let durable = self.state().durable;
        let places = items.iter().filter_map(|item| item.origin.place()).collect();
        match if durable { self.commit(io, batch, large, None).await } else { Ok(()) } {
            Ok(()) => {
                let mut state = self.state_mut();
                state.wrote(io, row);
                state.unindexed = unindexed;
                // The call may have more batches to write, in the same format.
                state.plausible.clone_from(&settled.plausible);
                if let Some(context) = settled.context.take() {
                    state.context = Rc::new(context);
                }
                for (item, message) in items.into_iter().zip(bodies) {
                    if let (Some(place), Some(known)) = (item.origin.place(), message.known) {
                        state.note_known(place.index, known);
                    }
                    state.push(item);
                }
                Ok(Tried::Done(places))
            }
            Err(error) if retryable(&error) => {
                // It was measured without what has been written since.
                settled.context = None;
                Ok(Tried::Lost(error, Some((record_id(batch_id, 0), places))))
            }
            Err(error) => Err(error),
        }
    }

    /// Bodies of these messages, ascending by index, from memory or from the log.
    ///
    /// Errors: [`Code::StoreCorrupt`] when one of them cannot be read.
    pub(crate) async fn bodies(&self, io: &Io, wanted: &[usize]) -> Result<Vec<Rc<str>>> {
        let mut found: HashMap<usize, Rc<str>> = {
            let context = self.context();
            let verbatim = context.items().iter().filter_map(|item| match item.origin {
                Origin::Message(place) => Some((place.index, Rc::clone(&item.body))),
                _ => None,
            });
            verbatim.collect()
        };
        let missing =
            |index: &usize| Error::new(Code::StoreCorrupt, format!("message {index} is missing in the log"));
        if let Some(first) = wanted.iter().find(|index| !found.contains_key(index)) {
            let (sid, next) = (self.state().sid.clone(), self.state().row.next_seq);
            let from = if *first == 0 { 0 } else { place_of(io, self, *first).await?.seq };
            for (origin, body) in readable_items(io, &sid, from, next).await? {
                if let (Some(place), Some(body)) = (origin.place(), body) {
                    found.insert(place.index, body);
                }
            }
        }
        wanted.iter().map(|index| found.get(index).cloned().ok_or_else(|| missing(index))).collect()
    }
}

/// Where the app's message `index` stands in the log. Rows count the messages before them, so that it is found by halves.
///
/// Errors: [`Code::StoreCorrupt`] when its row cannot be read.
pub(crate) async fn place_of(io: &Io, guard: &SessionGuard, index: usize) -> Result<Place> {
    let (sid, rows) = (guard.state().sid.clone(), guard.state().row.next_seq);
    place_among(io, &sid, rows, index).await
}

/// The same in a log of `last` rows.
pub(crate) async fn place_among(io: &Io, sid: &str, mut last: u64, index: usize) -> Result<Place> {
    let mut first = 0;
    while first < last {
        let middle = first + (last - first) / 2;
        let Some((seq, n, kind)) = first_readable(io, sid, middle, last).await? else {
            last = middle;
            continue;
        };
        match (n.cmp(&index), kind) {
            (Ordering::Equal, RowKind::Message) => return Ok(Place { seq, index }),
            // A row that is none counts the same messages as the message behind it.
            (Ordering::Less, _) | (Ordering::Equal, RowKind::View | RowKind::Snapshot) => first = seq + 1,
            (Ordering::Greater, _) => last = middle,
        }
    }
    Err(Error::new(Code::StoreCorrupt, format!("message {index} is missing in the log")))
}

/// The first of the log rows `from .. to` that can be read: its position, the messages before it, and what it is.
async fn first_readable(io: &Io, sid: &str, from: u64, to: u64) -> Result<Option<(u64, usize, RowKind)>> {
    let bytes = wide::read(io, vec![keys::log(sid, from)]).await?.into_iter().next().flatten();
    if let Some(Ok(row)) = bytes.as_deref().map(|bytes| row_at(bytes, from)) {
        return Ok(Some((from, row.n, row.kind)));
    }
    let mut walk = Walk::at(from, 0);
    while let Some(page) = walk.page(io, sid, to).await? {
        for (seq, bytes) in page {
            if let Some((_, row)) = walk.row(seq, &bytes)? {
                return Ok(Some((seq, row.n, row.kind)));
            }
        }
    }
    Ok(None)
}

/// The row of a session's name.
///
/// Errors: [`Code::StoreCorrupt`] when it is not what was written, or that of another name.
pub(crate) async fn name_row(io: &Io, id: &str) -> Result<Option<NameRow>> {
    let values = wide::read(io, vec![keys::name(id)]).await?;
    let Some(bytes) = values.into_iter().next().flatten() else { return Ok(None) };
    let name = seal::read_name(&bytes)?;
    if name.id != id {
        return Err(Error::new(Code::StoreCorrupt, "the row of the session's name is that of another one"));
    }
    Ok(Some(name))
}

pub(crate) async fn session_row(io: &Io, sid: &str) -> Result<Option<SessionRow>> {
    let rows = seal::both(io, sid).await?;
    rows.map(|(head, noted)| seal::read(&head, noted.as_deref())).transpose()
}

/// The session's row as it is by now, for who only looks: another handle may have written since `known` was read. Where
/// the store has none that can be read, what is known goes on. With it the name of its rows: where nothing was written
/// through this handle, another one may have begun the session.
///
/// Errors: those of the store.
pub(crate) async fn latest(io: &Io, sid: String, known: SessionRow) -> Result<(String, SessionRow)> {
    let begun = if known.ver == 0 { name_row(io, &known.id).await? } else { None };
    let sid = begun.filter(|name| !name.deleted).map_or(sid, |name| name.sid);
    match session_row(io, &sid).await {
        Ok(Some(row)) if row.ver > known.ver => Ok((sid, row)),
        Ok(None) if known.ver > 0 => Ok(renamed(io, &known.id, &sid).await?.unwrap_or((sid, known))),
        Err(error) if !matches!(error.code, Code::StoreCorrupt | Code::SchemaTooNew) => Err(error),
        _ => Ok((sid, known)),
    }
}

/// The items of view `generation`, and the messages that left the context by then: from the newest whole view on, one
/// change after the other.
pub(crate) async fn view_items(io: &Io, sid: &str, generation: u64) -> Result<(Vec<Unread>, Vec<Departed>)> {
    let (mut context, mut left): (Vec<Unread>, Vec<Departed>) = Default::default();
    for (mut view, _) in views_from_whole(io, sid, generation).await? {
        left = std::mem::take(&mut view.left);
        context = record::replay(context, view);
    }
    Ok((context, left))
}

/// The views from the newest whole one up to `generation`, each with its bytes. What is before is not looked at.
pub(super) async fn views_from_whole(io: &Io, sid: &str, generation: u64) -> Result<Vec<(ViewRow, Vec<u8>)>> {
    if generation == 0 {
        return Ok(Vec::new());
    }
    let (mut views, mut next, mut first) = (Vec::new(), generation, generation);
    loop {
        let rows = wide::read(io, (first..=next).map(|number| keys::view(sid, number)).collect()).await?;
        for bytes in rows.into_iter().rev() {
            let bytes = bytes.ok_or_else(missing_view)?;
            let view: ViewRow = record::decode_view(&bytes)?;
            let is_whole = view.whole.is_some();
            if next == generation {
                first = view.base.unwrap_or(record::first_of(generation));
            }
            views.push((view, bytes));
            if is_whole {
                views.reverse();
                return Ok(views);
            }
        }
        // The newest says where they begin.
        if next < generation || first >= generation {
            return Err(missing_view());
        }
        next = generation - 1;
    }
}

/// The row of view `generation`.
pub(crate) async fn view_row(io: &Io, sid: &str, generation: u64) -> Result<ViewRow> {
    let bytes = wide::read(io, vec![keys::view(sid, generation)]).await?.into_iter().next().flatten();
    record::decode_view(&bytes.ok_or_else(missing_view)?)
}

fn missing_view() -> Error {
    Error::new(Code::StoreCorrupt, "a view of the session is missing")
}

/// The messages of log rows `from .. to`, with their bodies.
pub(super) async fn log_items(io: &Io, sid: &str, from: u64, to: u64) -> Result<Vec<Unread>> {
    let (mut items, mut breath) = (Vec::new(), Breath::default());
    let mut next = from;
    while next < to {
        for bytes in log_page(io, sid, next, to).await? {
            let row = row_at(&bytes, next)?;
            if row.kind == RowKind::Message {
                let place = Place { seq: row.seq, index: row.n };
                items.push((Origin::Message(place), Some(Rc::from(row.body.get()))));
            }
            next += 1;
            breath.after(io, bytes.len()).await?;
        }
    }
    Ok(items)
}

/// The messages of log rows `from .. to` that can be read; what is missing or damaged is left out.
pub(crate) async fn readable_items(io: &Io, sid: &str, from: u64, to: u64) -> Result<Vec<Unread>> {
    let mut items = Vec::new();
    let mut next = from;
    while let Some(page) = readable_page(io, sid, next).await? {
        for (seq, bytes) in page {
            next = seq + 1;
            if seq >= to {
                return Ok(items);
            }
            match record::read_row(&bytes) {
                Ok((row, _)) if row.seq == seq && row.kind == RowKind::Message => {
                    let place = Place { seq, index: row.n };
                    items.push((Origin::Message(place), Some(Rc::from(row.body.get()))));
                }
                Err(error) if error.code != Code::StoreCorrupt => return Err(error),
                _ => {}
            }
        }
    }
    Ok(items)
}

/// The rows that there are from position `next` of the log on, as far as one page holds them; `None` behind the last.
pub(crate) async fn readable_page(io: &Io, sid: &str, next: u64) -> Result<Option<Vec<(u64, Vec<u8>)>>> {
    let after = next.checked_sub(1).map(|seq| keys::log(sid, seq));
    let rows = page(io, keys::all("log", sid), after, false).await?.into_iter();
    let rows: Vec<_> = rows.filter_map(|(key, bytes)| Some((position(&key)?, bytes))).collect();
    Ok((!rows.is_empty()).then_some(rows))
}

/// What there is under `prefix` behind `after`, as far as one page holds it.
pub(crate) async fn page(
    io: &Io,
    prefix: Key,
    after: Option<Key>,
    keys_only: bool,
) -> Result<Vec<(Key, Vec<u8>)>> {
    wide::scan(io, Scan { prefix, after, limit: 1_000, max_bytes: PAGE, reverse: false, keys_only }).await
}

/// The number that ends a key of the log or of the views.
pub(crate) fn position(key: &Key) -> Option<u64> {
    match key.0.last() {
        Some(KeyPart::Number(number)) => Some(*number),
        _ => None,
    }
}

/// The log rows from `next` on as far as one page holds them, and not past `to`; one at least.
///
/// Errors: [`Code::StoreCorrupt`] when there is none, [`Code::Closed`] when the session is gone.
async fn log_page(io: &Io, sid: &str, next: u64, to: u64) -> Result<Vec<Vec<u8>>> {
    let scan = Scan {
        prefix: keys::all("log", sid),
        after: next.checked_sub(1).map(|seq| keys::log(sid, seq)),
        limit: to.saturating_sub(next).min(1_000) as usize,
        max_bytes: PAGE,
        reverse: false,
        keys_only: false,
    };
    let rows = wide::scan(io, scan).await?;
    if rows.is_empty() {
        return Err(if session_row(io, sid).await?.is_some() { missing_row(next) } else { deleted() });
    }
    Ok(rows.into_iter().map(|(_, bytes)| bytes).collect())
}

/// The log row at position `seq`.
///
/// Errors: [`Code::StoreCorrupt`] when it is another one, or not what was written.
pub(crate) fn row_at(bytes: &[u8], seq: u64) -> Result<LogRow<'_>> {
    let (row, _) = record::read_row(bytes)?;
    if row.seq == seq { Ok(row) } else { Err(missing_row(seq)) }
}

/// Reads the bodies that are still missing from the log.
pub(super) async fn bodies(io: &Io, sid: &str, unread: Vec<Unread>) -> Result<Vec<(Origin, Rc<str>)>> {
    let mut items = Vec::with_capacity(unread.len());
    let mut missing = Vec::new();
    for (origin, body) in unread {
        match (body, origin.place()) {
            (Some(body), _) => items.push((origin, body)),
            (None, Some(place)) => {
                missing.push((items.len(), place.seq));
                items.push((origin, Rc::from("")));
            }
            (None, None) => {
                return Err(Error::new(Code::StoreCorrupt, "a view holds an item without a body"));
            }
        }
    }
    for page in missing.chunks(256) {
        let rows = wide::read(io, page.iter().map(|(_, seq)| keys::log(sid, *seq)).collect()).await?;
        for ((at, seq), bytes) in page.iter().zip(rows) {
            let bytes = bytes.ok_or_else(|| missing_row(*seq))?;
            let (row, _) = record::read_row(&bytes)?;
            if let Some(item) = items.get_mut(*at) {
                item.1 = Rc::from(row.body.get());
            }
        }
    }
    Ok(items)
}

/// Writes a batch that may be written twice: one whose answer was lost is written again.
pub(crate) async fn commit_again(io: &Io, batch: Batch) -> Result<()> {
    retry(io, None, async |_| match io.commit(batch.clone()).await {
        Err(error) if error.code == Code::Indeterminate => Ok(Tried::Lost(error, None)),
        done => done.map(Tried::Done),
    })
    .await
}

pub(super) fn missing_row(seq: u64) -> Error {
    Error::new(Code::StoreCorrupt, format!("row {seq} of the log is missing"))
}

pub(crate) fn deleted() -> Error {
    Error::new(Code::Closed, "the session was deleted elsewhere")
}
