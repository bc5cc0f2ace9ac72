//! The rows of views are packed: they say the same again and again (where a message stands, what stands in the place of a
//! result, which rung it was). The text of a row becomes a list of letters, of repetitions of what stands before, and of ids,
//! each in as few bits as what stands before it makes likely ([`coder`]). What is read is the text byte for byte, so that hashes,
//! archives and receipts are of the text. Rows of earlier releases are not packed. What summaries took in is packed too
//! ([`super::facts`]).
//!
//! | bytes | |
//! |---|---|
//! | 1 | [`PACKED_VIEW`]: no JSON begins so, and no log row |
//! | 1 | which [`SAMPLE`] stands before the text |
//! | 4 | a check of the text |
//! | the rest | its length, and the text |

mod coder;

use crate::keys::batch::{Key, keys};
use base32ct::{Base32Unpadded, Encoding as _};
use base64ct::{Base64UrlUnpadded, Encoding as _};
use coder::{BitReader, BitWriter, Bits, Chance, EVEN};
use std::sync::LazyLock;

/// The first byte of a row that is packed so.
const PACKED_VIEW: u8 = 2;
/// What of a view is likely, before anything of it was seen. Whoever changes it gives it another number, and keeps this one.
const SAMPLE: &str = include_str!("packed/sample.txt");
const SAMPLE_NUMBER: u8 = 1;
/// A text of more bytes stays as it is, and one that takes so many times its row and more: a row that is damaged is not to
/// become a gigabyte.
const MOST: usize = 64 << 20;
const MOST_TIMES: usize = 256;
const MORE: usize = 1 << 16;
const HEAD: usize = 6;

/// A text or other bytes as they are stored: as they are where that is no longer, or where they begin as what is packed.
pub(crate) fn pack(text: Vec<u8>) -> Vec<u8> {
    if is_packed(&text) || text.len() > MOST {
        return text;
    }
    let mut out = vec![PACKED_VIEW, SAMPLE_NUMBER];
    out.extend_from_slice(&check(&text));
    let mut writer = BitWriter::behind(out);
    let mut words = LearnedText::clone(&LEARNED);
    words.number(&mut writer, NumberOf::Length, text.len());
    words.text.extend_from_slice(&text);
    words.write(&mut writer);
    let packed = writer.end(HEAD);
    if packed.len() < text.len() && text.len() <= most_of(&packed) { packed } else { text }
}

/// The most bytes of text that a row has.
fn most_of(row: &[u8]) -> usize {
    row.len().saturating_mul(MOST_TIMES).saturating_add(MORE).min(MOST)
}

/// The row of a view, from its text.
pub(crate) fn row(sid: &str, generation: u64, text: Vec<u8>) -> (Key, Vec<u8>) {
    (keys::view(sid, generation), if text.starts_with(b"{") { pack(text) } else { text })
}

/// The text of a row, when it is packed; `None` where that is not what was written.
fn unpack(row: &[u8]) -> Option<Vec<u8>> {
    let (head, rest) = row.split_at_checked(HEAD)?;
    let checked = head.strip_prefix(&[PACKED_VIEW, SAMPLE_NUMBER])?;
    let mut reader = BitReader::of(rest);
    let mut words = LearnedText::clone(&LEARNED);
    let length = words.number(&mut reader, NumberOf::Length, 0);
    if length > most_of(row) {
        return None;
    }
    let end = SAMPLE.len() + length;
    while words.text.len() < end {
        words.read_one(&mut reader, end)?;
    }
    let text = words.text.split_off(SAMPLE.len());
    (text.len() == length && check(&text) == checked).then_some(text)
}

/// What was stored, packed or not; nothing where it cannot be read.
pub fn text(row: &[u8]) -> Vec<u8> {
    if is_packed(row) { unpack(row).unwrap_or_default() } else { row.to_vec() }
}

/// A row is packed.
fn is_packed(row: &[u8]) -> bool {
    row.first() == Some(&PACKED_VIEW)
}

/// Tells damage; that a text is the one that was written says the log, which has its hash.
fn check(text: &[u8]) -> [u8; 4] {
    let mix = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    text.iter().fold(0x811c_9dc5, mix).to_le_bytes()
}

/// What the sample teaches.
static LEARNED: LazyLock<LearnedText> = LazyLock::new(|| {
    let mut words = LearnedText::default();
    words.text.extend_from_slice(SAMPLE.as_bytes());
    // What comes out is the sample, which is known.
    words.write(&mut BitWriter::behind(Vec::new()));
    words
});

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// A letter.
    Letter = 0,
    /// Something that stands before.
    Copy = 1,
    /// The same as far back as the last copy was.
    Again = 2,
    /// An id or a hash: nothing of it is likely.
    Id = 3,
}

const WORDS: [Word; 4] = [Word::Letter, Word::Copy, Word::Again, Word::Id];

/// What is told in numbers.
#[derive(Debug, Clone, Copy)]
enum NumberOf {
    /// How long a copy is.
    Copy,
    /// How long the same again is.
    Again,
    /// How far back a short copy is.
    NearDistance,
    /// How far back a long one is.
    Distance,
    /// How long the text is.
    Length,
}

const NUMBERS: usize = 5;
/// Chances of a number: of its count of bits, and of its four highest for each count.
const OF_NUMBER: usize = 32 + 32 * 16;
/// The shortest copy.
const LEAST: usize = 4;
/// A copy that is so long is taken as it is found.
const LONG: usize = 32;
/// Places that a copy is looked for at.
const TRIES: usize = 32;
const SLOTS: u32 = 14;
const NOWHERE: u32 = u32::MAX;

/// Ids in base32, such as references, and hashes in base64: how many letters, and bytes.
const ID: (usize, usize) = (26, 16);
const HASH: (usize, usize) = (43, 32);

/// A text, and what is likely in it.
#[derive(Debug, Clone)]
struct LearnedText {
    /// The sample and the text behind it.
    text: Vec<u8>,
    words: Vec<Chance>,
    letters: Vec<Chance>,
    numbers: Vec<Chance>,
    is_hash: Chance,
    last: Word,
    /// How far back the last copy was.
    distance: usize,
    /// Where four letters were seen last, by a hash of them; and before that, by where.
    latest: Vec<u32>,
    before: Vec<u32>,
}

impl Default for LearnedText {
    fn default() -> Self {
        LearnedText {
            text: Vec::new(),
            words: vec![EVEN; 4 * 8 * 4],
            letters: vec![EVEN; 256 * 256],
            numbers: vec![EVEN; NUMBERS * OF_NUMBER],
            is_hash: EVEN,
            last: Word::Letter,
            distance: 0,
            latest: vec![NOWHERE; 1 << SLOTS],
            before: Vec::new(),
        }
    }
}

/// What kind of letter it is.
fn kind(letter: u8) -> usize {
    match letter {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        b'"' => 3,
        b',' => 4,
        b' ' => 5,
        b':' => 6,
        _ => 7,
    }
}

/// The lowest bits of a number, the highest of them first, each by what those before it make likely.
fn tree(bits: &mut impl Bits, chances: &mut [Chance], count: u32, number: usize) -> usize {
    let mut node = 1;
    for at in (0..count).rev() {
        let Some(chance) = chances.get_mut(node) else { return 0 };
        node = node * 2 + usize::from(bits.bit(chance, number >> at & 1 == 1));
    }
    node - (1 << count)
}

/// Bits of which nothing is likely.
fn plain(bits: &mut impl Bits, count: u32, number: usize) -> usize {
    (0..count).rev().fold(0, |read, at| {
        let mut chance = EVEN;
        read << 1 | usize::from(bits.bit(&mut chance, number >> at & 1 == 1))
    })
}

impl LearnedText {
    /// The letter before a place.
    fn letter_before(&self, place: usize) -> u8 {
        place.checked_sub(1).and_then(|at| self.text.get(at)).copied().unwrap_or_default()
    }

    fn word(&mut self, bits: &mut impl Bits, previous: u8, word: Word) -> Word {
        let from = (self.last as usize * 8 + kind(previous)) * 4;
        let chances = self.words.get_mut(from..from + 4).unwrap_or_default();
        let read = WORDS.get(tree(bits, chances, 2, word as usize)).copied();
        self.last = read.unwrap_or(Word::Letter);
        self.last
    }

    fn letter(&mut self, bits: &mut impl Bits, previous: u8, letter: u8) -> u8 {
        let from = usize::from(previous) * 256;
        let chances = self.letters.get_mut(from..from + 256).unwrap_or_default();
        tree(bits, chances, 8, letter.into()) as u8
    }

    /// Any number up to 2^31 - 2.
    fn number(&mut self, bits: &mut impl Bits, which: NumberOf, number: usize) -> usize {
        let from = which as usize * OF_NUMBER;
        let chances = self.numbers.get_mut(from..from + OF_NUMBER).unwrap_or_default();
        let (counts, of_count) = chances.split_at_mut(32.min(chances.len()));
        // The highest bit of what is one more is always set.
        let more = number + 1;
        let count = tree(bits, counts, 5, more.ilog2() as usize) as u32;
        let high = count.min(4);
        let of_count = of_count.get_mut(count as usize * 16..(count as usize + 1) * 16).unwrap_or_default();
        let low = count - high;
        let read = 1 << high | tree(bits, of_count, high, more >> low & ((1 << high) - 1));
        ((read << low) | plain(bits, low, more & ((1 << low) - 1))) - 1
    }

    fn distance(&mut self, bits: &mut impl Bits, length: usize, distance: usize) -> usize {
        let which = if length < 8 { NumberOf::NearDistance } else { NumberOf::Distance };
        self.number(bits, which, distance.saturating_sub(1)) + 1
    }

    /// Writes the text from where it is known on.
    fn write(&mut self, bits: &mut impl Bits) {
        while self.before.len() < self.text.len() {
            let at = self.before.len();
            let previous = self.letter_before(at);
            let again = if self.distance == 0 { 0 } else { self.same(at - self.distance, at) };
            let (length, distance) = self.find(at);
            let taken = if again >= 2 && again + 2 >= length {
                self.word(bits, previous, Word::Again);
                self.number(bits, NumberOf::Again, again - 2);
                again
            } else if let Some((letters, bytes)) = self.id(at).filter(|_| length < 20) {
                self.word(bits, previous, Word::Id);
                bits.bit(&mut self.is_hash, letters == HASH.0);
                bytes.into_iter().for_each(|byte| {
                    plain(bits, 8, byte.into());
                });
                letters
            } else if worth(length, distance) > 0 && (length > LONG || self.find(at + 1).0 <= length + 1) {
                self.word(bits, previous, Word::Copy);
                self.number(bits, NumberOf::Copy, length - LEAST);
                self.distance(bits, length, distance);
                self.distance = distance;
                length
            } else {
                self.word(bits, previous, Word::Letter);
                self.letter(bits, previous, self.letter_before(at + 1));
                1
            };
            (at..at + taken).for_each(|at| self.note(at));
        }
    }

    /// Reads what comes next of a text that ends there; `None` where nothing can have been written so.
    fn read_one(&mut self, bits: &mut impl Bits, end: usize) -> Option<()> {
        let previous = self.letter_before(self.text.len());
        match self.word(bits, previous, Word::Letter) {
            Word::Letter => {
                let letter = self.letter(bits, previous, 0);
                self.text.push(letter);
            }
            Word::Again => {
                let length = self.number(bits, NumberOf::Again, 0) + 2;
                self.copy(length, end)?;
            }
            Word::Copy => {
                let length = self.number(bits, NumberOf::Copy, 0) + LEAST;
                self.distance = self.distance(bits, length, 0);
                self.copy(length, end)?;
            }
            Word::Id => {
                let is_hash = bits.bit(&mut self.is_hash, false);
                let (_, bytes) = if is_hash { HASH } else { ID };
                let bytes: Vec<u8> = (0..bytes).map(|_| plain(bits, 8, 0) as u8).collect();
                let text = if is_hash {
                    Base64UrlUnpadded::encode_string(&bytes)
                } else {
                    Base32Unpadded::encode_string(&bytes)
                };
                self.text.extend_from_slice(text.as_bytes());
            }
        }
        Some(())
    }

    fn copy(&mut self, length: usize, end: usize) -> Option<()> {
        let from = self.text.len().checked_sub(self.distance).filter(|_| self.distance > 0)?;
        if length > end.saturating_sub(self.text.len()) {
            return None;
        }
        for at in from..from + length {
            let letter = self.text.get(at).copied()?;
            self.text.push(letter);
        }
        Some(())
    }

    /// Letters that are the same at two places.
    fn same(&self, one: usize, other: usize) -> usize {
        let from = |at: usize| self.text.get(at..).unwrap_or_default();
        from(one).iter().zip(from(other)).take_while(|(one, other)| one == other).count()
    }

    /// The best copy for what stands at a place: its length, and how far back it is.
    fn find(&self, at: usize) -> (usize, usize) {
        let mut best = (0, 0);
        let mut place = self.slot(at).and_then(|slot| self.latest.get(slot)).copied().unwrap_or(NOWHERE);
        for _ in 0..TRIES {
            let known = place as usize;
            if place == NOWHERE || known >= at {
                break;
            }
            let found = (self.same(known, at), at - known);
            if worth(found.0, found.1) > worth(best.0, best.1) {
                best = found;
            }
            place = self.before.get(known).copied().unwrap_or(NOWHERE);
        }
        best
    }

    /// Where it is noted that the four letters at a place were seen.
    fn slot(&self, at: usize) -> Option<usize> {
        let letters = self.text.get(at..)?.first_chunk::<LEAST>()?;
        Some((u32::from_le_bytes(*letters).wrapping_mul(0x9e37_79b1) >> (32 - SLOTS)) as usize)
    }

    /// Goes on behind the letter at a place.
    fn note(&mut self, at: usize) {
        let slot = self.slot(at).and_then(|slot| self.latest.get_mut(slot));
        self.before.push(slot.map_or(NOWHERE, |latest| std::mem::replace(latest, at as u32)));
    }

    /// The id or hash that stands at a place in quotes, where it is one that is written so: how many letters, and its bytes.
    fn id(&self, at: usize) -> Option<(usize, Vec<u8>)> {
        if self.letter_before(at) != b'"' {
            return None;
        }
        [ID, HASH].into_iter().find_map(|(letters, bytes)| {
            let text = self.text.get(at..at + letters)?;
            let text =
                std::str::from_utf8(text).ok().filter(|_| self.letter_before(at + letters + 1) == b'"')?;
            let mut read = vec![0; bytes];
            let again = if letters == ID.0 {
                Base32Unpadded::decode(text, &mut read).ok()?;
                Base32Unpadded::encode_string(&read)
            } else {
                Base64UrlUnpadded::decode(text, &mut read).ok()?;
                Base64UrlUnpadded::encode_string(&read)
            };
            (again == text).then_some((letters, read))
        })
    }
}

/// What a copy saves, about, in sixteenths of a letter.
fn worth(length: usize, distance: usize) -> usize {
    let cost = 36 + 4 * distance.checked_ilog2().unwrap_or_default() as usize;
    if length < LEAST { 0 } else { (length * 16).saturating_sub(cost) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::ids;
    use proptest::prelude::*;

    fn reads_as(text: &[u8]) {
        let row = pack(text.to_vec());
        let read = if is_packed(&row) { unpack(&row) } else { Some(row) };
        assert_eq!(read.as_deref(), Some(text));
    }

    /// A view of so many results that left the context.
    fn view(results: usize) -> Vec<u8> {
        let one = |nth: usize| {
            let (id, hash) =
                (ids::id(&[&nth.to_le_bytes()]), ids::short(&ids::sha256_hex(&nth.to_le_bytes())));
            let body =
                format!(r#"{{"role":"tool","tool_call_id":"call_{nth}","content":"Gone: file_{nth}.rs"}}"#);
            format!(
                r#"{{"at":{nth},"remove":1,"insert":[{{"offloaded":{{"seq":{nth},"index":{nth},"body":{body},"offloads":[[0,"{id}","{hash}",{nth}0,"preview",null]]}}}}]}}"#
            )
        };
        let splices: Vec<String> = (1_000..1_000 + results).map(one).collect();
        format!(r#"{{"v":201,"generation":7,"splices":[{}],"cause":{{"rung":"clear"}}}}"#, splices.join(","))
            .into_bytes()
    }

    #[test]
    fn p4_a_view_takes_a_third_or_less_of_its_text() {
        for (results, most) in [(1, 36), (10, 26), (200, 22)] {
            let (text, row) = (view(results), pack(view(results)));
            assert!(
                is_packed(&row) && row.len() * 100 <= text.len() * most,
                "{results}: {} of {}",
                row.len(),
                text.len()
            );
            assert_eq!(unpack(&row).unwrap(), text);
        }
    }

    #[test]
    fn p4_a_row_of_which_any_bit_changed_or_that_is_cut_is_no_other_text() {
        let (text, row) = (view(3), pack(view(3)));
        for bit in 0..row.len() * 8 {
            let mut broken = row.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_packed(&broken) || unpack(&broken).is_none_or(|read| read == text), "bit {bit}");
        }
        for length in 0..row.len() {
            assert!(unpack(&row[..length]).is_none_or(|read| read == text), "{length} bytes");
        }
    }

    #[test]
    fn p4_bytes_that_nobody_packed_end() {
        for seed in 0..2_000_u32 {
            let noise = ids::hash(&[&seed.to_le_bytes()]);
            let mut row = vec![PACKED_VIEW, SAMPLE_NUMBER];
            row.extend_from_slice(&noise);
            assert_eq!(unpack(&row), None);
        }
    }

    #[test]
    fn p4_what_is_written_is_the_same_in_every_release_that_reads_it() {
        // Rows that are stored hold these bytes: whoever changes what they mean makes them unreadable.
        assert_eq!(
            ids::sha256_hex(&pack(view(10))),
            "31b4230a4812b19519229b4fe65f4757354b0c52fe5095eaca2a6b7b33018fe2"
        );
    }

    proptest! {
        #[test]
        fn p4_every_text_reads_as_it_was_written(parts in prop::collection::vec(("[ -~]{0,40}", 0..4_usize, any::<[u8; 32]>()), 0..40), bytes: Vec<u8>) {
            let mut text = b"{".to_vec();
            for (part, how, noise) in parts {
                match how {
                    0 => text.extend_from_slice(part.as_bytes()),
                    1 => text.extend_from_slice(format!("\"{}\"", ids::id(&[&noise])).as_bytes()),
                    2 => text.extend_from_slice(format!("\"{}\"", ids::short(&ids::hex(&noise))).as_bytes()),
                    _ => text.extend_from_within(..text.len() / 2),
                }
            }
            text.extend_from_slice(&bytes);
            reads_as(&text);
        }
    }
}
