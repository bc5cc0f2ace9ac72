//! The tokens of an encoding: their bytes by rank, and ranks by bytes.
//!
//! The table that a vocabulary is made of is text, so that every host can bring it: digits of six bits in the alphabet
//! of base64. Two for each of the first 256 tokens, which are single bytes; then for each further token the two of which it
//! is merged, in order of rank: six planes, which are the high, middle and low digits of the left ones, then those of
//! the right ones. Written by the build; see `xtask/src/vocabulary.rs`.

use crate::words::{self, PADDING};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Rank of a token, which is its id.
pub(crate) type Rank = u32;
/// No token.
pub(crate) const NONE: Rank = Rank::MAX;

/// Ranks and tags in a slot: 2^18 tokens at most.
const RANK_BITS: u32 = 18;
const RANKS: u32 = (1 << RANK_BITS) - 1;
/// A slot that holds nothing.
const FREE: u32 = u32::MAX;

/// Tokens of an encoding.
pub(crate) struct Vocabulary {
    /// Bytes of all tokens in order of rank, and padding.
    bytes: Vec<u8>,
    /// Where each begins; one more than there are tokens.
    starts: Vec<u32>,
    /// Ranks by hash, open addressing; above the rank as many bits of the hash as there is room for.
    slots: Vec<u32>,
    slot_bits: u32,
    /// Ranks of tokens of two bytes, by these.
    pairs: Vec<Rank>,
    /// Bytes of the longest token.
    longest: usize,
}

impl Vocabulary {
    /// Reads a table; none when it is damaged.
    pub(crate) fn read(table: &[u8]) -> Option<Self> {
        let (first, planes) = table.split_at_checked(2 * 256)?;
        let merged = planes.len() / 6;
        let count = merged + 256;
        if merged * 6 != planes.len() || count > RANKS as usize {
            return None;
        }
        let slot_bits = usize::BITS - count.leading_zeros() + 1;
        let mut starts = Vec::with_capacity(count + 1);
        starts.push(0);
        let mut vocabulary = Self {
            // Tokens have seven bytes on average.
            bytes: vec![0; count * 8 + PADDING],
            starts,
            slots: vec![FREE; 1 << slot_bits],
            slot_bits,
            pairs: vec![NONE; 1 << 16],
            longest: 0,
        };
        for (nth, digits) in first.chunks_exact(2).enumerate() {
            vocabulary.bytes[nth] = u8::try_from(number(digits)?).ok()?;
            vocabulary.enter(nth + 1)?;
        }
        for nth in 0..merged {
            vocabulary.join(planes, merged, nth)?;
        }
        vocabulary.bytes.truncate(vocabulary.starts.last().map_or(0, |end| *end as usize) + PADDING);
        Some(vocabulary)
    }

    /// Adds the `nth` token that two are merged to. A function of its own: called often, it is soon compiled well.
    #[inline(never)]
    fn join(&mut self, planes: &[u8], merged: usize, nth: usize) -> Option<()> {
        let digit = |plane: usize| planes.get(plane * merged + nth).copied();
        let left = self.range(number(&[digit(0)?, digit(1)?, digit(2)?])?)?;
        let right = self.range(number(&[digit(3)?, digit(4)?, digit(5)?])?)?;
        let mut to = *self.starts.last()? as usize;
        let end = to + left.len() + right.len();
        if end + PADDING > self.bytes.len() {
            self.bytes.resize(end * 2, 0);
        }
        for part in [left, right] {
            let mut at = part.start;
            // Eight at a time; what is too much is written over by what comes next.
            while at < part.end {
                let word = words::word(&self.bytes, at);
                self.bytes.get_mut(to..to + 8)?.copy_from_slice(&word.to_le_bytes());
                let copied = (part.end - at).min(8);
                at += copied;
                to += copied;
            }
        }
        self.enter(end)
    }

    /// Makes the token known that ends at `end` and begins where the one before it ends.
    #[inline(never)]
    fn enter(&mut self, end: usize) -> Option<()> {
        let rank = self.starts.len() as Rank - 1;
        let start = *self.starts.last()? as usize;
        self.starts.push(u32::try_from(end).ok()?);
        self.longest = self.longest.max(end - start);
        if end - start == 2 {
            self.pairs[pair(self.bytes[start], self.bytes[start + 1])] = rank;
        }
        let hash = words::hash(&self.bytes, start, end);
        let mut slot = words::top(hash, self.slot_bits);
        while *self.slots.get(slot)? != FREE {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = tag(hash) | rank;
        Some(())
    }

    /// How many tokens there are, without the special ones.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn range(&self, rank: Rank) -> Option<Range<usize>> {
        let start = *self.starts.get(rank as usize)?;
        let end = *self.starts.get(rank as usize + 1)?;
        Some(start as usize..end as usize)
    }

    /// The bytes of a token.
    pub(crate) fn token(&self, rank: Rank) -> Option<&[u8]> {
        self.bytes.get(self.range(rank)?)
    }

    /// The token of two bytes, or `NONE`.
    #[inline(always)]
    pub(crate) fn pair(&self, left: u8, right: u8) -> Rank {
        self.pairs[pair(left, right)]
    }

    /// The token whose bytes are those in `start..end` of a padded text, or `NONE`.
    #[inline(never)]
    pub(crate) fn find(&self, text: &[u8], start: usize, end: usize) -> Rank {
        if end - start > self.longest {
            return NONE;
        }
        let hash = words::hash(text, start, end);
        let tag = tag(hash);
        let mut slot = words::top(hash, self.slot_bits);
        loop {
            let found = self.slots[slot & (self.slots.len() - 1)];
            if found == FREE {
                return NONE;
            }
            if found & !RANKS == tag && self.is(found & RANKS, text, start, end) {
                return found & RANKS;
            }
            slot += 1;
        }
    }

    /// Whether the bytes of a token are those in `start..end`.
    #[inline(always)]
    fn is(&self, rank: Rank, text: &[u8], start: usize, end: usize) -> bool {
        let from = self.starts[rank as usize] as usize;
        let to = self.starts[rank as usize + 1] as usize;
        let length = end - start;
        if to - from != length {
            return false;
        }
        let mut at = 0;
        while at + 8 < length {
            if words::word(&self.bytes, from + at) != words::word(text, start + at) {
                return false;
            }
            at += 8;
        }
        let rest = length - at;
        words::first(words::word(&self.bytes, from + at) ^ words::word(text, start + at), rest) == 0
    }
}

/// What is no digit.
const NO_DIGIT: u8 = 0xff;

/// Values of digits.
static DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut value = 0;
    while value < alphabet.len() {
        digits[alphabet[value] as usize] = value as u8;
        value += 1;
    }
    digits
};

/// The number of some digits; none when one is no digit.
#[inline(always)]
fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| {
        let value = DIGITS[usize::from(*digit)];
        (value != NO_DIGIT).then_some(number << 6 | u32::from(value))
    })
}

#[inline(always)]
fn pair(left: u8, right: u8) -> usize {
    usize::from(left) << 8 | usize::from(right)
}

/// Bits of a hash that a slot has room for above the rank. Never those of `FREE`, which no rank below 2^18 - 1 gives.
#[inline(always)]
fn tag(hash: u64) -> u32 {
    (hash as u32) & !RANKS
}
