//! What is kept of messages from one summary to the next.

use super::KeepLayerBuilder;
use crate::context::Place;
use crate::wire::Format;
use std::rc::Rc;

/// What was taken in of the messages that a summary took the place of. The next one replaces them too, and the log only
/// grows: it reads on after them, and has what reading all of them again would give. As large as a [`KeepLayerBuilder`] gets.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) sid: String,
    pub(crate) format: Format,
    /// What the session began with: messages that another one has.
    pub(crate) before: Vec<Rc<str>>,
    /// Runs of messages, by their indices.
    pub(crate) runs: Vec<(usize, usize)>,
    /// The first row of the log that was not read.
    pub(crate) next: u64,
    pub(crate) collector: KeepLayerBuilder,
    /// Messages of the user that are nothing but text, with their tokens.
    pub(crate) said: Vec<(Place, usize)>,
    /// Runs of messages without secrets, by their indices.
    pub(crate) clean: Vec<(usize, usize)>,
}

impl Collected {
    /// Notes that a message holds no secret.
    pub(crate) fn note_clean(&mut self, index: usize) {
        match self.clean.last_mut() {
            Some((_, to)) if *to == index => *to += 1,
            _ if index < usize::MAX => self.clean.push((index, index + 1)),
            _ => {}
        }
    }

    /// True for one that was noted.
    pub(crate) fn is_clean(&self, index: usize) -> bool {
        let next = self.clean.partition_point(|(from, _)| *from <= index);
        next.checked_sub(1).and_then(|at| self.clean.get(at)).is_some_and(|(_, to)| index < *to)
    }
}
