//! The log as far as it can be read: its rows in order, and the gaps between them.

use super::record::{self, LogRow, RowKind};
use super::stored::{deleted, readable_page, session_row};
use crate::error::{Code, Result};
use crate::step::{Effect, Io, Loss, LossKind, Notice};
use serde::Serialize;

/// Why rows of the log cannot be read.
const UNREADABLE: &str = "rows of the log are missing, or are not what was written";

/// Rows of the log, one behind the other, that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// Position of the first.
    pub seq: u64,
    /// How many.
    pub count: u64,
    /// Index of the first message that is missing.
    pub index: usize,
    /// How many messages: a row may tell of a view or a snapshot.
    pub messages: usize,
    /// Why.
    pub reason: String,
}

impl Gap {
    pub(crate) fn new(seq: u64, count: u64, index: usize, messages: usize) -> Self {
        Gap { seq, count, index, messages, reason: UNREADABLE.into() }
    }

    /// Tells the app that messages are missing in what it asked for; nothing where none are.
    pub(crate) fn tell(&self, io: &Io) {
        if self.messages == 0 {
            return;
        }
        let loss = Loss::records(LossKind::Records, self.count, &*self.reason);
        let loss = Loss { seq: Some(self.seq), index: Some(self.index), ..loss };
        io.tell(Effect::Notify(Notice::DataLoss { loss }));
    }
}

/// A walk along the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk {
    /// Behind the last row that could be read.
    pub(crate) next: u64,
    /// Messages before that.
    pub(crate) index: usize,
    /// Behind the last row that was looked at.
    seen: u64,
}

impl Walk {
    /// From position `next` on, before which there are `index` messages.
    pub(crate) fn at(next: u64, index: usize) -> Self {
        Walk { next, index, seen: next }
    }

    /// The last rows that were looked at cannot be read: what is missing is known at the next one that can.
    pub(crate) fn is_in_gap(&self) -> bool {
        self.seen > self.next
    }

    /// The next rows before `to` that there are, as many as a page holds; `None` when there is none.
    ///
    /// Errors: [`Code::Closed`] when the session is gone.
    pub(crate) async fn page(&mut self, io: &Io, sid: &str, to: u64) -> Result<Option<Vec<(u64, Vec<u8>)>>> {
        if self.seen >= to {
            return Ok(None);
        }
        let mut rows = readable_page(io, sid, self.seen).await?.unwrap_or_default();
        rows.retain(|(seq, _)| *seq < to);
        if !rows.is_empty() {
            return Ok(Some(rows));
        }
        if self.next == 0 && matches!(session_row(io, sid).await, Ok(None)) {
            return Err(deleted());
        }
        self.seen = to;
        Ok(None)
    }

    /// A row of the page, with what is missing before it; `None` where it cannot be read.
    ///
    /// Errors: [`Code::SchemaTooNew`].
    pub(crate) fn row<'b>(&mut self, seq: u64, bytes: &'b [u8]) -> Result<Option<(Option<Gap>, LogRow<'b>)>> {
        self.seen = seq + 1;
        let row = match record::read_row(bytes) {
            Ok((row, _)) if row.seq == seq => row,
            Err(error) if error.code != Code::StoreCorrupt => return Err(error),
            _ => return Ok(None),
        };
        let gap = self.gap(seq, row.n);
        self.next = seq + 1;
        self.index = row.n + usize::from(row.kind == RowKind::Message);
        Ok(Some((gap, row)))
    }

    /// What is missing before position `to`, the end, before which there are `messages` messages.
    pub(crate) fn end(&mut self, to: u64, messages: usize) -> Option<Gap> {
        let gap = self.gap(to, messages);
        (self.next, self.index) = (to.max(self.next), messages.max(self.index));
        gap
    }

    fn gap(&self, to: u64, messages: usize) -> Option<Gap> {
        let count = to.checked_sub(self.next).filter(|count| *count > 0)?;
        Some(Gap::new(self.next, count, self.index, messages.saturating_sub(self.index)))
    }
}
