//! Exact tokens of `o200k_base` and `cl100k_base`.
//!
//! A text is cut into pieces by the rules of the encoding (`split`), a piece is a token or is merged of some
//! (`merge`), and how many those were is kept (`cache`). Names of special tokens in a text are text.
//!
//! The same code runs natively and as a module of its own, with the boundary in `wasm`, which does without the
//! standard library: panics would be most of its size.

#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

mod cache;
mod classes;
mod merge;
mod split;
mod vocabulary;
#[cfg(target_arch = "wasm32")]
mod wasm;
mod words;

pub use split::Rules;

use alloc::vec::Vec;
use cache::{Cache, Short, Tiny};
use merge::Merger;
use split::Text;
use vocabulary::{NONE, Vocabulary};

/// Bytes that must be readable behind a text that is handed over.
pub const PADDING: usize = words::PADDING;

/// An encoding.
pub struct Tokenizer {
    rules: Rules,
    vocabulary: Vocabulary,
    merger: Merger,
    cache: Cache,
}

/// The count of a text that may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tail {
    /// Tokens of the text as it is.
    pub tokens: usize,
    /// Tokens that stay, whatever is appended.
    pub settled: usize,
    /// Bytes of those; the rest is to be counted again with what is appended.
    pub bytes: usize,
}

impl Tokenizer {
    /// An encoding by its rules and its table (`vocabulary.rs`); none when the table is damaged.
    pub fn new(rules: Rules, table: &[u8]) -> Option<Self> {
        let vocabulary = Vocabulary::read(table)?;
        Some(Self { rules, vocabulary, merger: Merger::default(), cache: Cache::default() })
    }

    /// How many tokens there are, without the special ones.
    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary.len()
    }

    /// Tokens of the first `length` of `bytes`, in UTF-8, behind which there are [`PADDING`] more bytes.
    pub fn count(&mut self, bytes: &[u8], length: usize) -> usize {
        // The rules are known to each copy of the loop.
        match self.rules {
            Rules::O200k => self.count_by(Rules::O200k, bytes, length),
            Rules::Cl100k => self.count_by(Rules::Cl100k, bytes, length),
        }
    }

    #[inline(always)]
    fn count_by(&mut self, rules: Rules, bytes: &[u8], length: usize) -> usize {
        self.cache.ready();
        let text = Text::new(bytes, length);
        let (mut at, mut tokens) = (0, 0);
        while at < length {
            let next = text.piece(rules, at);
            tokens += self.piece(bytes, at, next);
            at = next;
        }
        tokens
    }

    /// The same for a text that may go on.
    pub fn count_tail(&mut self, bytes: &[u8], length: usize) -> Tail {
        self.cache.ready();
        let text = Text::new(bytes, length);
        let (mut at, mut tail) = (0, Tail::default());
        while at < length {
            let next = text.any_piece(self.rules, at);
            tail.tokens += self.piece(bytes, at, next);
            at = next;
            if !text.touched() {
                tail.settled = tail.tokens;
                tail.bytes = at;
            }
        }
        tail
    }

    /// Tokens of one piece.
    #[inline(always)]
    fn piece(&mut self, bytes: &[u8], start: usize, end: usize) -> usize {
        match end - start {
            1 => 1,
            length @ 2..=7 => {
                let key = Tiny::new(bytes, start, length);
                self.cache.tiny(key).unwrap_or_else(|| {
                    let count = self.new_piece(bytes, start, end);
                    self.cache.keep_tiny(key, count);
                    count
                })
            }
            length @ 8..=15 => {
                let key = Short::new(bytes, start, length);
                self.cache.short(key).unwrap_or_else(|| {
                    let count = self.new_piece(bytes, start, end);
                    self.cache.keep_short(key, count);
                    count
                })
            }
            _ => self.long_piece(bytes, start, end),
        }
    }

    #[inline(never)]
    fn long_piece(&mut self, bytes: &[u8], start: usize, end: usize) -> usize {
        let hash = words::hash(bytes, start, end);
        self.cache.long(bytes, start, end, hash).unwrap_or_else(|| {
            let count = self.new_piece(bytes, start, end);
            self.cache.keep_long(bytes, start, end, hash, count);
            count
        })
    }

    #[inline(never)]
    fn new_piece(&mut self, bytes: &[u8], start: usize, end: usize) -> usize {
        if self.vocabulary.find(bytes, start, end) != NONE {
            return 1;
        }
        self.merger.merge(&self.vocabulary, bytes, start, end, |_, _| ())
    }

    /// Appends the tokens of the first `length` bytes, in UTF-8, to `ids`; padding as for [`Self::count`].
    pub fn encode(&mut self, bytes: &[u8], length: usize, ids: &mut Vec<u32>) -> Tail {
        let before = ids.len();
        let text = Text::new(bytes, length);
        let (mut at, mut tail) = (0, Tail::default());
        while at < length {
            let next = text.piece(self.rules, at);
            let Self { merger, vocabulary, .. } = self;
            let whole = vocabulary.find(bytes, at, next);
            if whole == NONE {
                merger.merge(vocabulary, bytes, at, next, |from, to| {
                    ids.push(vocabulary.find(bytes, from, to))
                });
            } else {
                ids.push(whole);
            }
            at = next;
            tail.tokens = ids.len() - before;
            if !text.touched() {
                tail.settled = tail.tokens;
                tail.bytes = at;
            }
        }
        tail
    }

    /// The bytes of a token, or the name of a special one.
    pub fn token(&self, id: u32) -> Option<&[u8]> {
        self.vocabulary.token(id).or_else(|| special(self.rules, id).map(str::as_bytes))
    }
}

/// Special tokens are told when ids are decoded. No text encodes to one.
fn special(rules: Rules, id: u32) -> Option<&'static str> {
    match (rules, id) {
        (Rules::O200k, 199_999) | (Rules::Cl100k, 100_257) => Some("<|endoftext|>"),
        (Rules::Cl100k, 100_258) => Some("<|fim_prefix|>"),
        (Rules::Cl100k, 100_259) => Some("<|fim_middle|>"),
        (Rules::Cl100k, 100_260) => Some("<|fim_suffix|>"),
        (Rules::O200k, 200_018) | (Rules::Cl100k, 100_276) => Some("<|endofprompt|>"),
        _ => None,
    }
}
