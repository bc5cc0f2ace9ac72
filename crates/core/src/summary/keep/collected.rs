//! What is kept of messages from one summary to the next.

use super::KeepLayerBuilder;
use super::cover::Line;
use super::happened::TurnEvent;
use crate::context::Place;
use crate::wire::record::{self, Unreadable, WriteJson};
use std::iter;
use std::rc::Rc;

/// Lines or events of one text: what is stored is never one text, of which there may be megabytes.
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

crate::wire::record!(Collected {
    sid = "sid",
    read_as = "readAs",
    before = "before",
    runs = "runs",
    next = "next",
    fresh = "fresh",
    collector = "collector",
    said = "said",
});

/// Lines, or events, of what was collected.
#[derive(Debug)]
struct CollectedPart {
    lines: Vec<Line>,
    events: Vec<TurnEvent>,
}

crate::wire::record!(CollectedPart {
    lines = "lines" or nothing,
    events = "events" or nothing,
});

impl Collected {
    /// The texts that it is stored as, JSON each.
    pub(crate) fn texts(&self) -> impl Iterator<Item = Vec<u8>> {
        let KeepLayerBuilder { lines, events, .. } = &self.collector;
        let lines = lines.all().chunks(MANY).map(|lines| part("lines", &lines));
        let starts = (0..events.list().len()).step_by(MANY);
        let events = starts.map(|from| {
            let events: Vec<&TurnEvent> = events.list().iter().skip(from).take(MANY).collect();
            part("events", &events)
        });
        iter::once(record::to_vec(self)).chain(lines).chain(events)
    }

    /// What was stored as these texts, as far as they were read; `None` before the first.
    ///
    /// Errors: one is none of them.
    pub(crate) fn read(so_far: Option<Collected>, text: &str) -> Result<Collected, Unreadable> {
        let Some(mut collected) = so_far else { return record::from_str(text) };
        let CollectedPart { lines, events } = record::from_str(text)?;
        collected.collector.lines.extend(lines);
        collected.collector.events.extend(events);
        Ok(collected)
    }
}

/// A [`CollectedPart`] as it is stored.
fn part(name: &str, values: &dyn WriteJson) -> Vec<u8> {
    let mut text = Vec::new();
    record::write_variant(&mut text, name, &mut |out| values.write(out));
    text
}
