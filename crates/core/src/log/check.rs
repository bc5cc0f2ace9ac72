//! What must hold of the rows of a session, checked one row after the other: for `session/verify.rs`,
//! which reads them page by page, and for `session/audit.rs`, which has them at hand.
//!
//! | | |
//! |---|---|
//! | I1 | the log has no gap, and its chains are whole |
//! | I2 | every reference resolves to the text of the result that it stands for |
//! | I3 | views 1 … generation are there and adjoin, each as it was written |
//! | I4 | the log tells of each of them, once |
//! | I5 | the session's row is what was written, and agrees with the log |
//! | I6 | no record stands twice in the log |
//! | I7 | what is under the session's name and keys is the session's |
//! | I8 | every message has one fate in every context, those of snapshots too |
//! | I9 | pages of terms are what the log makes of them; one that cannot be read is made again when it is needed |

use super::NewBlob;
use super::offloads::block_of;
use super::record::{self, LogRow, RowKind, SessionRow, Unread, ViewNote};
use super::snapshots::{SnapshotMark, read_note};
use crate::context::{Departed, Offload, conserve_origins};
use crate::error::{Code, Error, Result};
use crate::keys::ids;
use crate::log::{Page, page_of};
use crate::wire::{self, Format};
use std::collections::HashSet;
use std::fmt::Display;

/// Problems that are told one by one.
const MOST: usize = 1_000;

/// The problems that were found, in order. They name an invariant and a row, and never hold content.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    problems: Vec<String>,
    more: usize,
}

impl Findings {
    pub(crate) fn add(&mut self, invariant: &str, what: impl Display) {
        if self.problems.len() < MOST {
            self.problems.push(format!("{invariant}: {what}"));
        } else {
            self.more += 1;
        }
    }

    /// Errors: [`Code::StoreCorrupt`] with the first.
    pub(crate) fn check(&self) -> Result<()> {
        self.problems.first().map_or(Ok(()), |what| Err(Error::new(Code::StoreCorrupt, what)))
    }

    pub(crate) fn into_problems(mut self) -> Vec<String> {
        if self.more > 0 {
            self.problems.push(format!("and {} more", self.more));
        }
        self.problems
    }
}

/// The end of the log so far.
#[derive(Debug, Default)]
struct End {
    hash: String,
    chain: String,
    messages: usize,
}

/// Checks the log, row by row: I1, I4, I5 and I6.
#[derive(Debug)]
pub(crate) struct LogCheck {
    /// Rows so far.
    pub(crate) rows: u64,
    /// Behind a row that could not be read nothing is known.
    end: Option<End>,
    ids: HashSet<[u8; 32]>,
    /// Where in the log each message is, as far as that could be read.
    messages: Vec<Option<u64>>,
    /// Where in the log each view is: its row, and the messages before it.
    views: Vec<(u64, usize, ViewNote)>,
}

impl Default for LogCheck {
    fn default() -> Self {
        let (ids, messages, views) = (HashSet::new(), Vec::new(), Vec::new());
        LogCheck { rows: 0, end: Some(End::default()), ids, messages, views }
    }
}

impl LogCheck {
    /// The rows up to `to` are not there.
    pub(crate) fn gap(&mut self, to: u64, found: &mut Findings) {
        match to.saturating_sub(self.rows) {
            0 => return,
            1 => found.add("I1", format!("log row {} is missing", self.rows)),
            _ => found.add("I1", format!("log rows {} to {} are missing", self.rows, to - 1)),
        }
        (self.rows, self.end) = (to, None);
    }

    /// The next row.
    pub(crate) fn row<'b>(&mut self, bytes: &'b [u8], found: &mut Findings) -> Option<LogRow<'b>> {
        let seq = self.rows;
        self.rows += 1;
        let end = self.end.take();
        let Ok((row, hash)) = record::read_row(bytes) else {
            found.add("I1", format!("log row {seq} is not what was written"));
            return None;
        };
        let is_message = row.kind == RowKind::Message;
        let follows = row.seq == seq
            && row.n as u64 <= seq
            && end.is_none_or(|end| {
                let chain = if is_message { record::chain(&end.chain, row.body.get()) } else { end.chain };
                (row.n, &row.prev, &row.chain) == (end.messages, &end.hash, &chain)
            });
        if !follows {
            found.add("I1", format!("log row {seq} does not follow the one before"));
            return None;
        }
        let messages = row.n + usize::from(is_message);
        self.end = Some(End { hash, chain: row.chain.clone(), messages });
        if !self.ids.insert(ids::hash(&[row.id.as_bytes()])) {
            found.add("I6", format!("log row {seq} repeats the id of an earlier one"));
        }
        self.messages.resize(row.n, None);
        match row.kind {
            RowKind::Message => self.messages.push(Some(seq)),
            RowKind::View => match ViewNote::of(&row) {
                Some(noted) => self.views.push((seq, row.n, noted)),
                None => found.add("I4", format!("log row {seq} does not say which view it tells of")),
            },
            RowKind::Snapshot => {
                if read_note(bytes, &SnapshotMark { id: row.id.clone(), seq }).is_err() {
                    found.add("I8", format!("log row {seq} is no snapshot that can be read"));
                }
            }
        }
        Some(row)
    }

    /// The log has ended: does the session's row agree?
    pub(crate) fn end(&self, row: &SessionRow, found: &mut Findings) {
        for (nth, (seq, _, noted)) in (1..).zip(&self.views) {
            if noted.view != nth {
                found.add("I4", format!("log row {seq} tells of view {}, not of view {nth}", noted.view));
                break;
            }
        }
        if self.views.len() as u64 != row.generation {
            let what = format!("{} changes in the log, generation {}", self.views.len(), row.generation);
            found.add("I4", what);
        }
        let Some(end) = &self.end else { return };
        if (&row.head, &row.chain) != (&end.hash, &end.chain) {
            found.add("I5", "the session's row does not name the last row of the log");
        }
        if row.messages != end.messages {
            found.add("I5", format!("{} messages in the log, {} counted", end.messages, row.messages));
        }
        let tail_from = self.views.last().map_or(0, |(seq, ..)| seq + 1);
        if row.tail_from != tail_from {
            let what = format!("view {} ends at {tail_from}, not at {}", row.generation, row.tail_from);
            found.add("I3", what);
        }
        for mark in &row.snapshots {
            if mark.seq >= self.rows {
                found.add("I8", format!("snapshot {} is not in the log", mark.id));
            }
        }
    }

    /// Where in the log a message is.
    pub(crate) fn place(&self, index: usize) -> Option<u64> {
        self.messages.get(index).copied().flatten()
    }

    /// Checks that a snapshot is of a view that was current when it was taken (I8).
    pub(crate) fn snapshot(&self, bytes: Option<&[u8]>, mark: &SnapshotMark, found: &mut Findings) {
        let Some(Ok((note, ..))) = bytes.map(|bytes| read_note(bytes, mark)) else {
            return found.add("I8", format!("log row {} is not snapshot {}", mark.seq, mark.id));
        };
        let number = usize::try_from(note.generation).unwrap_or(usize::MAX);
        let ends = match number.checked_sub(1) {
            None => Some(0),
            Some(at) => self.views.get(at).map(|(seq, ..)| seq + 1),
        };
        if ends.is_none_or(|ends| ends != note.tail_from || ends > mark.seq) {
            found.add("I8", format!("snapshot {} names a view that there is not", mark.id));
        }
    }
}

/// A view as it was when it was made.
#[derive(Debug, Default, Clone)]
pub(crate) struct CheckedView {
    pub(crate) items: Vec<Unread>,
    pub(crate) left: Vec<Departed>,
    /// Log rows from here on are behind it.
    pub(crate) to: u64,
    /// The snapshot that it went back to.
    pub(crate) restored: Option<String>,
}

/// Checks the views, one after the other: I3 and I8.
#[derive(Debug)]
pub(crate) struct ViewCheck {
    /// Views so far.
    pub(crate) views: u64,
    /// The last one; behind one that could not be read nothing is known until the next whole one.
    now: Option<CheckedView>,
    seen: HashSet<String>,
}

impl Default for ViewCheck {
    fn default() -> Self {
        ViewCheck { views: 0, now: Some(CheckedView::default()), seen: HashSet::new() }
    }
}

impl ViewCheck {
    /// The last view that was read.
    pub(crate) fn now(&self) -> Option<&CheckedView> {
        self.now.as_ref()
    }

    /// The views up to number `to` are not there.
    pub(crate) fn gap(&mut self, to: u64, found: &mut Findings) {
        match to.saturating_sub(self.views) {
            0 => return,
            1 => found.add("I3", format!("view {to} is missing")),
            _ => found.add("I3", format!("views {} to {to} are missing", self.views + 1)),
        }
        (self.views, self.now) = (to, None);
    }

    /// The next view. Returns the references that are new in it, each with the index of its message.
    pub(crate) fn row(
        &mut self,
        bytes: &[u8],
        log: &LogCheck,
        found: &mut Findings,
    ) -> Vec<(usize, Offload)> {
        self.views += 1;
        let (number, before) = (self.views, self.now.take());
        let noted = usize::try_from(number - 1).ok().and_then(|at| log.views.get(at));
        let view = record::decode_view(bytes).ok();
        let is_noted = noted.is_none_or(|(.., noted)| noted.is_of(bytes));
        let Some(mut view) = view.filter(|_| is_noted) else {
            found.add("I3", format!("view {number} is not what was written"));
            return Vec::new();
        };
        let adjoins = noted.is_none_or(|(seq, messages, _)| (view.to, view.messages) == (seq + 1, *messages));
        if view.generation != number || !adjoins {
            found.add("I3", format!("view {number} does not follow the one before"));
            return Vec::new();
        }
        let (to, messages) = (view.to, view.messages);
        let (left, restored) = (std::mem::take(&mut view.left), view.cause.snapshot.take());
        let items = match (before, view.whole.is_some()) {
            (Some(before), _) => before.items,
            (None, true) => Vec::new(),
            // It changes one that is unknown, which was said.
            (None, false) => return Vec::new(),
        };
        let now = CheckedView { left, restored, to, items: record::replay(items, view) };
        self.conserve(number, &now, messages, log, found);
        let offloads = now.items.iter().flat_map(|(origin, _)| origin.every_offload());
        let new = offloads.filter(|(_, offload)| self.seen.insert(offload.reference.clone()));
        let new = new.map(|(index, offload)| (index, offload.clone())).collect();
        self.now = Some(now);
        new
    }

    fn conserve(
        &self,
        number: u64,
        view: &CheckedView,
        messages: usize,
        log: &LogCheck,
        found: &mut Findings,
    ) {
        let origins = || view.items.iter().map(|(origin, _)| origin);
        if let Err(error) = conserve_origins(origins(), &view.left, messages) {
            let index = error.index.unwrap_or_default();
            found.add("I8", format!("in view {number}, message {index} has no fate or two"));
        }
        let mut places =
            origins().flat_map(|origin| origin.place().into_iter().chain(origin.quotes().to_vec()));
        let is_elsewhere = |seq: u64, index| log.place(index).is_some_and(|known| known != seq);
        if let Some(place) = places.find(|place| is_elsewhere(place.seq, place.index)) {
            found.add("I3", format!("view {number} takes log row {} for message {}", place.seq, place.index));
        }
    }
}

/// Checks that a page of terms is what its messages make (I9), of which `message` tells position and text.
pub(crate) fn is_derived<'m>(
    format: Format,
    stored: &[u8],
    message: impl Fn(usize) -> Option<(u64, &'m str)>,
    found: &mut Findings,
) {
    let Some(page) = Page::read(stored, format) else { return };
    let messages: Option<Vec<_>> = (page.first..page.first + page.messages).map(message).collect();
    // What cannot be read is told of elsewhere.
    let Some(messages) = messages else { return };
    let made = page_of(format, page.first, messages.into_iter());
    if made.is_ok_and(|made| made != stored) {
        found.add("I9", format!("the terms of messages from {} on are not those of the log", page.first));
    }
}

/// Checks that the text behind a reference is that of the result in the log (I2). `body` is the message of the log, where
/// it can be read.
pub(crate) fn resolves(
    format: Format,
    (index, offload): &(usize, Offload),
    stored: Result<NewBlob>,
    body: Option<&str>,
    found: &mut Findings,
) {
    let reference = &offload.reference;
    if offload.is_media() {
        let is_there = |body: &str| {
            wire::parse(*index, body).is_ok_and(|value| block_of(format, &value, offload).is_some())
        };
        if body.is_some_and(|body| !is_there(body)) {
            found.add("I2", format!("{reference} is nothing that message {index} shows"));
        }
        return;
    }
    let Ok(stored) = stored else {
        return found
            .add("I2", format!("{reference} of message {index} is missing, or is not what was stored"));
    };
    let is_it =
        |of: &Offload| (of.nth, of.chars) == (offload.nth, offload.chars) && offload.is_of(&of.sha256);
    if stored.index != *index || !is_it(&stored.offload) {
        return found.add("I2", format!("{reference} of message {index} is another text than its view says"));
    }
    let Some(body) = body else { return };
    let is_text = |body: &str| -> Result<bool> {
        let value = wire::parse(*index, body)?;
        let message = format.wire().read(*index, &value)?;
        Ok(offload.text_in(&message).is_some_and(|text| *text == *stored.text))
    };
    if !is_text(body).unwrap_or(false) {
        let what = format!("{reference} is not the text of message {index} that it stands for");
        found.add("I2", what);
    }
}
