//! Which texts hold no secret: what was searched once is not searched again, wherever it is read.

use context_compactor_scan::keyed::{Numbers, keyed};

/// Texts that are known at once, half of them for certain.
const MOST: usize = 8_192;
/// A shorter text is searched as fast as it is looked up.
const SHORT: usize = 16;

/// Texts that were searched and hold no secret, by hashes that only the session can make: whoever writes a text cannot make
/// it pass for another.
#[derive(Debug, Default)]
pub(crate) struct SearchedTexts {
    key: String,
    newest: Numbers,
    /// Those before: what is not asked for in the course of as many others is forgotten.
    older: Numbers,
}

impl SearchedTexts {
    /// None so far; their hashes will depend on `key`.
    pub(crate) fn new(key: &str) -> Self {
        SearchedTexts { key: key.to_string(), ..SearchedTexts::default() }
    }

    /// True when `text` holds no secret, which `search` says of one that is not known.
    pub(crate) fn is_clean(&mut self, text: &str, search: impl FnOnce() -> bool) -> bool {
        if text.len() < SHORT || self.key.is_empty() {
            return search();
        }
        let number = keyed(&self.key, text);
        let is_clean = self.newest.contains(&number) || self.older.contains(&number) || search();
        if is_clean {
            self.newest.insert(number);
        }
        if self.newest.len() >= MOST / 2 {
            self.older = std::mem::take(&mut self.newest);
        }
        is_clean
    }
}
