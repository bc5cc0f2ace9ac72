//! What is kept of messages from one summary to the next.

use super::KeepLayerBuilder;
use crate::context::Place;
use std::rc::Rc;

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
