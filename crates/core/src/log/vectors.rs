//! Pages of vectors: what the app's `recall.embed` makes of passages of messages. They are derived: a page that is missing,
//! damaged or of another model is made again when the log is searched (`recall/meaning.rs`).
//!
//! They stand in the table of blobs, as the pages of terms do, and leave with the session's rows: a copy of the session
//! without a message, a fork and an archive have none, and make their own.

use super::terms::{sealed, unsealed};
use crate::keys::varint::{read, write};

/// Of the bytes of a page, and of where passages begin and end.
const VERSION: u8 = 1;
/// The most numbers of a vector.
pub(crate) const MOST_NUMBERS: usize = 8_192;

/// A vector, each number of one byte: only its direction counts.
pub(crate) type Vector = Vec<i8>;

/// A passage of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VectorPassage {
    /// Index of its message.
    pub(crate) index: usize,
    /// Which result of its message, or what the message says itself.
    pub(crate) result: Option<usize>,
    /// Bytes of that text, from the first to after the last.
    pub(crate) span: (usize, usize),
    pub(crate) vector: Vector,
}

/// A page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VectorPage {
    /// What the model makes of a text that is always the same: another model makes another vector of it.
    pub(crate) model: Vector,
    /// The messages whose passages these are, ascending; some have none.
    pub(crate) messages: Vec<usize>,
    pub(crate) passages: Vec<VectorPassage>,
}

impl VectorPage {
    /// The page as it is stored.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut page = vec![VERSION];
        write(&mut page, self.model.len() as u64);
        push(&mut page, &self.model);
        write(&mut page, self.messages.len() as u64);
        let mut last = 0;
        for index in &self.messages {
            write(&mut page, (index - last) as u64);
            last = *index;
        }
        write(&mut page, self.passages.len() as u64);
        for VectorPassage { index, result, span, vector } in &self.passages {
            write(&mut page, *index as u64);
            write(&mut page, result.map_or(0, |nth| nth as u64 + 1));
            write(&mut page, span.0 as u64);
            write(&mut page, span.1.saturating_sub(span.0) as u64);
            push(&mut page, vector);
        }
        sealed(page)
    }

    /// Reads a page; `None` when it is none, or not what was stored.
    pub(crate) fn read(stored: &[u8]) -> Option<VectorPage> {
        let mut rest = unsealed(stored)?.strip_prefix(&[VERSION])?;
        let size = |rest: &mut &[u8]| usize::try_from(read(rest)?).ok();
        let numbers = size(&mut rest)?;
        let mut page = VectorPage { model: take(&mut rest, numbers)?, ..VectorPage::default() };
        let mut last = 0;
        for _ in 0..size(&mut rest)? {
            last += size(&mut rest)?;
            page.messages.push(last);
        }
        for _ in 0..size(&mut rest)? {
            let (index, nth) = (size(&mut rest)?, size(&mut rest)?);
            let (from, bytes) = (size(&mut rest)?, size(&mut rest)?);
            let vector = take(&mut rest, numbers)?;
            page.passages.push(VectorPassage {
                index,
                result: nth.checked_sub(1),
                span: (from, from + bytes),
                vector,
            });
        }
        Some(page)
    }
}

fn push(page: &mut Vec<u8>, vector: &[i8]) {
    page.extend(vector.iter().map(|number| number.cast_unsigned()));
}

fn take(bytes: &mut &[u8], numbers: usize) -> Option<Vector> {
    let (vector, rest) = bytes.split_at_checked(numbers)?;
    *bytes = rest;
    Some(vector.iter().map(|number| number.cast_signed()).collect())
}

/// The direction of a vector, each number of one byte; `None` where it has none: a number is not finite, or all are zero.
pub(crate) fn direction(vector: &[f64]) -> Option<Vector> {
    let largest = vector.iter().fold(0.0_f64, |largest, number| largest.max(number.abs()));
    let is_whole = vector.iter().all(|number| number.is_finite()) && largest > 0.0;
    is_whole.then(|| vector.iter().map(|number| (number / largest * 127.0).round() as i8).collect())
}

/// How alike two directions are: 1 for the same, 0 for what has nothing in common; 0 for vectors of different lengths.
pub(crate) fn likeness(one: &[i8], other: &[i8]) -> f64 {
    if one.len() != other.len() {
        return 0.0;
    }
    let product = |one: &[i8], other: &[i8]| -> f64 {
        let sum: i64 = one.iter().zip(other).map(|(a, b)| i64::from(*a) * i64::from(*b)).sum();
        sum as f64
    };
    let lengths = product(one, one) * product(other, other);
    if lengths > 0.0 { product(one, other) / lengths.sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> VectorPage {
        let passage = |index, result, span, vector: [i8; 3]| VectorPassage {
            index,
            result,
            span,
            vector: vector.to_vec(),
        };
        VectorPage {
            model: vec![127, -3, 0],
            messages: vec![3, 4, 900],
            passages: vec![
                passage(3, None, (0, 70), [1, 2, 127]),
                passage(900, Some(1), (40, 41), [-127, 0, 5]),
            ],
        }
    }

    #[test]
    fn x9_a_page_of_vectors_is_what_was_stored_or_none() {
        let stored = page().encode();
        assert_eq!(VectorPage::read(&stored), Some(page()));
        for at in 0..stored.len() {
            let mut damaged = stored.clone();
            damaged[at] ^= 1;
            assert!(VectorPage::read(&damaged).is_none(), "byte {at}");
            assert!(VectorPage::read(&stored[..at]).is_none());
        }
    }

    #[test]
    fn x9_only_the_direction_of_a_vector_counts() {
        let one = direction(&[0.1, 0.2, -0.05]).unwrap();
        let longer = direction(&[1.0, 2.0, -0.5]).unwrap();
        assert_eq!(one, longer);
        assert!(likeness(&one, &longer) > 0.999);
        assert!(likeness(&one, &direction(&[-0.1, -0.2, 0.05]).unwrap()) < -0.999);
        assert_eq!(likeness(&one, &[1, 2]), 0.0);
        for broken in [vec![f64::NAN, 1.0], vec![f64::INFINITY, 1.0], vec![0.0, 0.0], vec![]] {
            assert_eq!(direction(&broken), None);
        }
    }
}
