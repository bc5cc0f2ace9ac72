//! The state of a conversation whose messages the app keeps (`E4`): what a compaction made of them, as one small JSON
//! object that goes from call to call. Whatever it says is checked against the messages: it may be of another history, of a
//! history that was edited since, or damaged.

mod form;
mod read;
mod write;

pub(super) use form::Portable;
pub(super) use read::Resumed;
pub(super) use write::WrittenState;

use crate::context::{Item, Origin};
use crate::error::{Code, Error, Result};
use crate::keys::ids;
use crate::log::known::KnownMessage;
use crate::wire::Format;
use std::rc::Rc;

/// What is wrong with a state.
pub(super) fn corrupt(what: impl Into<String>) -> Error {
    Error::new(Code::StoreCorrupt, what.into()).of_field(Some("state".into()))
}

/// Half of the hash of a history's beginning.
pub(super) type Link = [u8; 16];

/// The hash of every beginning of a history, by its messages: of none first. It is of what the messages say, whoever stored
/// them in between; leading ones of the system, which may hold a clock, count as one another.
pub(super) fn chain(format: Format, bodies: &[Rc<str>]) -> Result<Vec<Link>> {
    let mut link = half(&[format.as_str().as_bytes()]);
    let mut links = vec![link];
    let mut leads = true;
    for (index, body) in bodies.iter().enumerate() {
        let message = KnownMessage::of(format, index, body)?;
        leads &= message.is_system;
        let key = if leads { Link::default() } else { message.key };
        link = half(&[&link, &key]);
        links.push(link);
    }
    Ok(links)
}

fn half(parts: &[&[u8]]) -> Link {
    ids::hash(parts).first_chunk::<16>().copied().unwrap_or_default()
}

/// Messages of the app that stand in an item, or behind it: how many, and the index behind the last.
fn extent(origin: &Origin) -> (usize, usize) {
    match origin {
        Origin::Message(place) | Origin::Edited { place, .. } => (1, place.index.saturating_add(1)),
        Origin::Summary { covers, .. } => {
            let count = covers.iter().map(|cover| cover.to.saturating_sub(cover.from));
            (count.sum(), covers.iter().map(|cover| cover.to).max().unwrap_or(0))
        }
        Origin::Acknowledgement => (0, 0),
    }
}

/// Where a context can be cut so that what stands before the cut is made of the first messages and of all of them: the
/// position in the context, and how many these are.
fn clean_cuts<'i>(origins: impl Iterator<Item = &'i Origin>) -> Vec<(usize, usize)> {
    let (mut count, mut end) = (0_usize, 0_usize);
    let mut cuts = Vec::new();
    for (at, origin) in origins.enumerate() {
        let (more, behind) = extent(origin);
        count = count.saturating_add(more);
        end = end.max(behind);
        if count == end {
            cuts.push((at + 1, count));
        }
    }
    cuts
}

/// The app's messages as they were given.
fn given(items: &[Item], index: usize) -> Result<&Item> {
    items
        .get(index)
        .ok_or_else(|| corrupt(format!("it speaks of message {index}, and there are {}", items.len())))
}
