//! Messages of the app as the log has them, whatever became of them in the context: page by page.

use super::record::{self, RowKind};
use super::state::State;
use super::stored::{missing_row, readable_page};
use super::wide;
use crate::context::{Context, CoveredRange, Origin, Place};
use crate::error::{Code, Result};
use crate::keys::batch::keys;
use crate::step::{Breath, Io};
use std::collections::HashMap;
use std::rc::Rc;

/// Reads messages of the app as the log has them.
#[derive(Debug)]
pub(crate) struct LogReader {
    pub(crate) sid: String,
    /// Rows of the log; nothing where nothing is stored.
    rows: Option<u64>,
    context: Rc<Context>,
    /// Where nothing is stored: messages that left the context, by their index.
    unlogged: Rc<HashMap<usize, Rc<str>>>,
}

impl LogReader {
    /// Of a session as it is now.
    pub(crate) fn of(state: &State) -> Self {
        let (context, unlogged) = (Rc::clone(&state.context), Rc::clone(&state.unlogged));
        let rows = state.durable.then_some(state.row.next_seq);
        LogReader { sid: state.sid.clone(), rows, context, unlogged }
    }

    /// Something is stored of the session.
    pub(crate) fn is_stored(&self) -> bool {
        self.rows.is_some()
    }

    /// The body of a message.
    pub(crate) async fn body(&self, io: &Io, place: Place) -> Result<Rc<str>> {
        let item = self.context.message(place.seq).filter(|item| item.origin == Origin::Message(place));
        if let Some(body) = item.map(|item| &item.body).or_else(|| self.unlogged.get(&place.index)) {
            return Ok(Rc::clone(body));
        }
        let row = wide::read(io, vec![keys::log(&self.sid, place.seq)]).await?.into_iter().next().flatten();
        let row = row.ok_or_else(|| missing_row(place.seq))?;
        Ok(Rc::from(record::read_row(&row)?.0.body.get()))
    }

    /// The body of a message that left the context, where nothing is stored.
    pub(crate) fn unlogged(&self, index: usize) -> Option<Rc<str>> {
        self.unlogged.get(&index).filter(|_| self.rows.is_none()).map(Rc::clone)
    }

    /// Calls `each` with every message that `covers` holds, in order, from row `next` of the log on. What the store lost is
    /// left out: what is left must still be of use.
    pub(crate) async fn each(
        &self,
        io: &Io,
        covers: &[CoveredRange],
        mut next: u64,
        mut each: impl FnMut(Place, &str) -> Result<()>,
    ) -> Result<()> {
        let holds = |index: usize| covers.iter().any(|cover| (cover.from..cover.to).contains(&index));
        let Some(end) = covers.iter().map(|cover| cover.to).max() else { return Ok(()) };
        let Some(rows) = self.rows else {
            for (place, body) in self.in_memory(end) {
                if holds(place.index) {
                    each(place, &body)?;
                }
            }
            return Ok(());
        };
        // Rows count the messages before them, so that nothing before the first is looked at twice.
        let mut breath = Breath::default();
        while let Some(page) = readable_page(io, &self.sid, next).await? {
            for (seq, bytes) in page {
                next = seq + 1;
                breath.after(io, bytes.len()).await?;
                match record::read_row(&bytes) {
                    _ if seq >= rows => return Ok(()),
                    Ok((row, _)) if row.n >= end => return Ok(()),
                    Ok((row, _)) if row.seq == seq && row.kind == RowKind::Message && holds(row.n) => {
                        each(Place { seq, index: row.n }, row.body.get())?;
                    }
                    Err(error) if error.code != Code::StoreCorrupt => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The first `end` messages of a session that nothing is stored of.
    fn in_memory(&self, end: usize) -> Vec<(Place, Rc<str>)> {
        let mut bodies: Vec<Option<(Place, Rc<str>)>> = vec![None; end];
        let logged = self.unlogged.iter().map(|(index, body)| {
            let seq = u64::try_from(*index).unwrap_or(u64::MAX);
            (Place { seq, index: *index }, body)
        });
        let shown = self.context.items().iter().filter_map(|item| match item.origin {
            Origin::Message(place) => Some((place, &item.body)),
            _ => None,
        });
        for (place, body) in logged.chain(shown) {
            if let Some(slot) = bodies.get_mut(place.index) {
                *slot = Some((place, Rc::clone(body)));
            }
        }
        bodies.into_iter().flatten().collect()
    }
}
