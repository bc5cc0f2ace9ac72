//! Counts of pieces that were merged before, with the bytes of each: no two pieces are taken for one another.

use crate::words;
use alloc::vec;
use alloc::vec::Vec;

/// Entries for pieces of up to 7 bytes: 2^17 of 8 bytes are 1 MB.
const TINY_BITS: u32 = 17;
/// Entries for pieces of 8 to 15 bytes: 2^16 of 16 bytes are 1 MB.
const SHORT_BITS: u32 = 16;
/// Entries for longer pieces: 2^16 of 16 bytes are 1 MB.
const LONG_BITS: u32 = 16;
/// Bytes that are kept of longer pieces. When they are used up all are forgotten.
const KEPT: usize = 4 << 20;
/// A longer piece is not kept: it would push out hundreds of others.
const LONGEST: usize = 1 << 12;

/// Where the length of a piece is in the last word of its key, and above it the count.
const LENGTH_SHIFT: u32 = 56;

#[derive(Clone, Copy, Default)]
struct Long {
    hash: u32,
    start: u32,
    length: u32,
    count: u32,
}

/// Counts by pieces. It has no room before [`Cache::ready`] was called.
#[derive(Default)]
pub(crate) struct Cache {
    /// The bytes of a piece, and in the last one its length and, above that, its count.
    tiny: Vec<u64>,
    short: Vec<[u64; 2]>,
    long: Vec<Long>,
    /// The bytes of long pieces.
    bytes: Vec<u8>,
}

/// The key of a piece of up to 7 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Tiny(u64);

impl Tiny {
    const COUNT_SHIFT: u32 = LENGTH_SHIFT + 3;

    #[inline(always)]
    pub(crate) fn new(text: &[u8], start: usize, length: usize) -> Self {
        Tiny(words::first(words::word(text, start), length) | (length as u64) << LENGTH_SHIFT)
    }

    #[inline(always)]
    fn slot(self) -> usize {
        words::top(words::mix(0, self.0 ^ self.0 >> 32), TINY_BITS)
    }
}

/// The key of a piece of 8 to 15 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Short(u64, u64);

impl Short {
    const COUNT_SHIFT: u32 = LENGTH_SHIFT + 4;

    #[inline(always)]
    pub(crate) fn new(text: &[u8], start: usize, length: usize) -> Self {
        let high = words::first(words::word(text, start + 8), length - 8);
        Short(words::word(text, start), high | (length as u64) << LENGTH_SHIFT)
    }

    #[inline(always)]
    fn slot(self) -> usize {
        words::top(words::mix(words::mix(0, self.0), self.1), SHORT_BITS)
    }
}

impl Cache {
    /// Takes its room when it is first needed: who only encodes does without.
    #[inline(always)]
    pub(crate) fn ready(&mut self) {
        if self.tiny.is_empty() {
            self.tiny = vec![0; 1 << TINY_BITS];
            self.short = vec![[0; 2]; 1 << SHORT_BITS];
            self.long = vec![Long::default(); 1 << LONG_BITS];
        }
    }

    /// The count of a piece; it may be in one of two neighbours.
    #[inline(always)]
    pub(crate) fn tiny(&self, key: Tiny) -> Option<usize> {
        let slot = key.slot();
        for slot in [slot, slot ^ 1] {
            let found = self.tiny[slot & (self.tiny.len() - 1)];
            if found & ((1 << Tiny::COUNT_SHIFT) - 1) == key.0 {
                return Some((found >> Tiny::COUNT_SHIFT) as usize);
            }
        }
        None
    }

    /// Keeps the count of a piece, which is not more than its bytes. What was in its place moves to the neighbour's.
    pub(crate) fn keep_tiny(&mut self, key: Tiny, count: usize) {
        let slot = key.slot();
        self.tiny[slot ^ 1] = self.tiny[slot];
        self.tiny[slot] = key.0 | (count as u64) << Tiny::COUNT_SHIFT;
    }

    /// The same for pieces of 8 to 15 bytes.
    #[inline(always)]
    pub(crate) fn short(&self, key: Short) -> Option<usize> {
        let slot = key.slot();
        for slot in [slot, slot ^ 1] {
            let [low, high] = self.short[slot & (self.short.len() - 1)];
            if low == key.0 && high & ((1 << Short::COUNT_SHIFT) - 1) == key.1 {
                return Some((high >> Short::COUNT_SHIFT) as usize);
            }
        }
        None
    }

    pub(crate) fn keep_short(&mut self, key: Short, count: usize) {
        let slot = key.slot();
        self.short[slot ^ 1] = self.short[slot];
        self.short[slot] = [key.0, key.1 | (count as u64) << Short::COUNT_SHIFT];
    }

    /// The count of a longer piece.
    pub(crate) fn long(&self, text: &[u8], start: usize, end: usize, hash: u64) -> Option<usize> {
        let entry = &self.long[words::top(hash, LONG_BITS)];
        let is_same = entry.hash == hash as u32
            && entry.length as usize == end - start
            && self.bytes.get(entry.start as usize..(entry.start + entry.length) as usize)
                == text.get(start..end);
        is_same.then_some(entry.count as usize)
    }

    /// Keeps the count of a longer piece.
    pub(crate) fn keep_long(&mut self, text: &[u8], start: usize, end: usize, hash: u64, count: usize) {
        if end - start > LONGEST {
            return;
        }
        if self.bytes.len() + (end - start) > KEPT {
            self.bytes.clear();
            self.long.fill(Long::default());
        }
        if self.bytes.capacity() == 0 {
            self.bytes.reserve_exact(KEPT);
        }
        let entry = Long {
            hash: hash as u32,
            start: self.bytes.len() as u32,
            length: (end - start) as u32,
            count: count as u32,
        };
        self.bytes.extend_from_slice(&text[start..end]);
        self.long[words::top(hash, LONG_BITS)] = entry;
    }
}
