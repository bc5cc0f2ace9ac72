//! Histories grow at their end: what was found to break no rule is not looked at again for every message that is added.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What a check of a history that grows knows of its beginning, which breaks no rule ([`super::Wire::grows`]).
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// Messages at the beginning of which nothing but what stands here matters to those behind them.
    pub(super) messages: usize,
    /// Breakpoints of the prompt cache in them.
    pub(super) breakpoints: usize,
    /// Shape of their messages, in a format that has two.
    pub(super) is_ui: Option<bool>,
    /// Hashes of the ids that a server gave them.
    ids: HashSet<u64>,
}

impl Past {
    /// Messages at the beginning that need not be looked at again.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// True for an id that stands in them; rarely for one that only has the hash of one.
    pub(super) fn has(&self, id: &str) -> bool {
        self.ids.contains(&hash(id))
    }

    /// Notes an id.
    pub(super) fn note(&mut self, id: &str) {
        self.ids.insert(hash(id));
    }
}

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
