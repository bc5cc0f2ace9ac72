//! Bytes as machine words: hashing and comparing by eight at a time.

/// Bytes that must be readable behind the last one of a text, so that a piece can be read as whole words.
pub(crate) const PADDING: usize = 16;

/// Eight bytes at `at`; zeros behind the end.
#[inline(always)]
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..at + 8) {
        Some(&[a, b, c, d, e, f, g, h]) => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// The first `count` (at most 8) bytes of a word.
#[inline(always)]
pub(crate) fn first(word: u64, count: usize) -> u64 {
    if count >= 8 { word } else { word & ((1 << (8 * count)) - 1) }
}

/// One more word of what is hashed.
#[inline(always)]
pub(crate) fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The upper bits of a hash, where every input bit has come to.
#[inline(always)]
pub(crate) fn top(hash: u64, bits: u32) -> usize {
    (hash >> (64 - bits)) as usize
}

/// A hash of the bytes in `start..end`, behind which there is padding.
#[inline(always)]
pub(crate) fn hash(bytes: &[u8], start: usize, end: usize) -> u64 {
    let mut hash = (end - start) as u64;
    let mut at = start;
    while at + 8 < end {
        hash = mix(hash, word(bytes, at));
        at += 8;
    }
    hash = mix(hash, first(word(bytes, at), end - at));
    // The multiplication carries upwards only.
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
