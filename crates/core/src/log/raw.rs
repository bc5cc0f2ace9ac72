//! Messages of the app as the log has them, whatever became of them in the context: page by page.

use super::guard::SessionGuard;
use super::record::{self, RowKind};
use super::stored::readable_page;
use crate::context::{CoveredRange, Origin, Place};
use crate::error::{Code, Result};
use crate::step::{Io, LONG};
use std::rc::Rc;

/// Calls `each` with every message that `covers` holds, in order, from row `next` of the log on. What the store lost is
/// left out: what is left must still be of use.
pub(crate) async fn raw(
    io: &Io,
    held: &SessionGuard,
    covers: &[CoveredRange],
    mut next: u64,
    mut each: impl FnMut(Place, &str) -> Result<()>,
) -> Result<()> {
    let holds = |index: usize| covers.iter().any(|cover| (cover.from..cover.to).contains(&index));
    let Some(end) = covers.iter().map(|cover| cover.to).max() else { return Ok(()) };
    if !held.state().durable {
        for (place, body) in in_memory(held, end) {
            if holds(place.index) {
                each(place, &body)?;
            }
        }
        return Ok(());
    }
    let (sid, rows) = (held.state().sid.clone(), held.state().row.next_seq);
    // Rows count the messages before them, so that nothing before the first is looked at twice.
    let mut read = 0;
    while let Some(page) = readable_page(io, &sid, next).await? {
        for (seq, bytes) in page {
            next = seq + 1;
            read += bytes.len();
            if read >= LONG {
                io.breathe(read).await?;
                read = 0;
            }
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
fn in_memory(held: &SessionGuard, end: usize) -> Vec<(Place, Rc<str>)> {
    let state = held.state();
    let mut bodies: Vec<Option<(Place, Rc<str>)>> = vec![None; end];
    let logged = state.unlogged.iter().map(|(index, body)| {
        let seq = u64::try_from(*index).unwrap_or(u64::MAX);
        (Place { seq, index: *index }, body)
    });
    let shown = state.context.items().iter().filter_map(|item| match item.origin {
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
