//! What is kept of messages from one summary to the next.

use super::KeepLayerBuilder;
use super::cover::Line;
use super::happened::TurnEvent;
use super::stored::{AsBytes, StoredReader, stored, write_all};
use crate::context::Place;
use std::iter;
use std::rc::Rc;

/// Lines or events of one part: what is stored is never in one piece, of which there may be megabytes.
const MANY: usize = 256;

/// What was taken in of the messages that a summary took the place of. The next one replaces them too, and the log only
/// grows: it reads on after them, and has what reading all of them again would give. As large as a [`KeepLayerBuilder`] gets.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) sid: String,
    /// How messages were read: what one of another engine or with other options has is no beginning.
    pub(crate) read_as: String,
    /// What the session began with: messages that another one has.
    pub(crate) before: Vec<Rc<str>>,
    /// Runs of messages, by their indices.
    pub(crate) runs: Vec<(usize, usize)>,
    /// The first row of the log that was not read.
    pub(crate) next: u64,
    /// Bytes of messages that were read since it was stored.
    pub(crate) fresh: usize,
    pub(crate) collector: KeepLayerBuilder,
    /// Messages of the user that are nothing but text, with their tokens.
    pub(crate) said: Vec<(Place, usize)>,
}

stored!(Collected { sid, read_as, before, runs, next, fresh, collector, said });

/// Lines, or events, of what was collected.
#[derive(Debug)]
struct CollectedPart {
    lines: Vec<Line>,
    events: Vec<TurnEvent>,
}

stored!(CollectedPart { lines, events });

impl Collected {
    /// The parts that it is stored as.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Vec<u8>> {
        let KeepLayerBuilder { lines, events, .. } = &self.collector;
        let (lines, events) = (lines.all().chunks(MANY), events.list());
        let starts = (0..events.len()).step_by(MANY);
        let events = starts.map(|from| part([].iter(), events.range(from..events.len().min(from + MANY))));
        iter::once(bytes(|out| self.write(out)))
            .chain(lines.map(|lines| part(lines.iter(), [].iter())))
            .chain(events)
    }

    /// What was stored as these parts, so far as they were read; `None` before the first, and for what was not.
    pub(crate) fn read(so_far: Option<Collected>, part: &[u8]) -> Option<Collected> {
        let mut from = StoredReader::of(part);
        let collected = match so_far {
            None => AsBytes::read(&mut from),
            Some(mut collected) => {
                let CollectedPart { lines, events } = AsBytes::read(&mut from);
                collected.collector.lines.extend(lines);
                collected.collector.events.extend(events);
                collected
            }
        };
        from.is_at_end().then_some(collected)
    }
}

/// A [`CollectedPart`] as it is stored.
fn part<'v>(
    lines: impl ExactSizeIterator<Item = &'v Line>,
    events: impl ExactSizeIterator<Item = &'v TurnEvent>,
) -> Vec<u8> {
    bytes(|out| {
        write_all(lines, out);
        write_all(events, out);
    })
}

fn bytes(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}
