//! Stretches of lines that a text has in common with another one (`X1`).

use crate::order;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The fewest lines of a stretch; its first and its last stay where it is left out.
const LEAST_LINES: usize = 8;
/// The least that a stretch that is left out saves, in bytes.
const LEAST_BYTES: usize = 160;
/// A line that stands more often begins no stretch: blank lines, closing brackets.
const MOST_PLACES: usize = 8;

/// A text by its lines, each as a number: the same for those that differ in the number in front alone.
pub(crate) fn numbered(text: &str) -> Box<[u64]> {
    let number = |line: &str| {
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        hasher.finish()
    };
    // What begins the only line is no number of a line.
    if !text.contains('\n') {
        return Box::new([number(text)]);
    }
    text.split('\n').map(bare).map(number).collect()
}

/// A line without the number that a tool put in front of it: `  12→`, `12:`, `12 |`.
fn bare(line: &str) -> &str {
    let from_number = line.trim_start_matches([' ', '\t']);
    let rest = from_number.trim_start_matches(|c: char| c.is_ascii_digit());
    let behind = rest.trim_start_matches(' ').strip_prefix(['→', '\t', ':', '|']);
    behind.filter(|_| rest.len() < from_number.len()).unwrap_or(line)
}

/// `count` lines of a text from `at` on, which stand in another one from `there` on.
#[derive(Debug, Clone, Copy)]
struct CommonLines {
    at: usize,
    there: usize,
    count: usize,
}

/// A text by its lines, and where each of them that may begin a stretch stands.
#[derive(Debug)]
pub(crate) struct LinePlaces<'t> {
    numbers: &'t [u64],
    places: HashMap<u64, Vec<usize>>,
}

impl<'t> LinePlaces<'t> {
    pub(crate) fn of(numbers: &'t [u64]) -> Self {
        let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
        for (at, number) in numbers.iter().enumerate() {
            places.entry(*number).or_default().push(at);
        }
        places.retain(|_, places| places.len() <= MOST_PLACES);
        LinePlaces { numbers, places }
    }

    /// True where it has a stretch in common with another, or is the same.
    pub(crate) fn is_like(&self, other: &[u64]) -> bool {
        self.numbers == other || self.in_common(other) > 0
    }

    /// How many lines it has in common with another, in stretches.
    pub(crate) fn in_common(&self, other: &[u64]) -> usize {
        self.stretches(other).iter().map(|stretch| stretch.count).sum()
    }

    /// The stretches that it has in common with another, in their order; none overlaps another, and the longest are whole.
    fn stretches(&self, other: &[u64]) -> Vec<CommonLines> {
        let long = self.all_stretches(other).into_iter().filter(|stretch| stretch.count >= LEAST_LINES);
        let longest_first = order::by_key(long.collect(), |stretch| u64::MAX - stretch.count as u64);
        let mut taken: Vec<CommonLines> = Vec::new();
        for mut stretch in longest_first {
            for other in &taken {
                let end = stretch.at + stretch.count;
                if stretch.at >= other.at && stretch.at < other.at + other.count {
                    let cut = (other.at + other.count).min(end) - stretch.at;
                    stretch = CommonLines {
                        at: stretch.at + cut,
                        there: stretch.there + cut,
                        count: stretch.count - cut,
                    };
                } else if stretch.at < other.at && end > other.at {
                    stretch.count = other.at - stretch.at;
                }
            }
            if stretch.count >= LEAST_LINES {
                taken.push(stretch);
            }
        }
        order::by_key(taken, |stretch| stretch.at as u64)
    }

    /// Each as long as it goes, whatever others are.
    fn all_stretches(&self, other: &[u64]) -> Vec<CommonLines> {
        let mut found = Vec::new();
        // Up to which line of this text each diagonal was followed.
        let mut followed: HashMap<isize, usize> = HashMap::new();
        for (from, number) in other.iter().enumerate() {
            for &at in self.places.get(number).into_iter().flatten() {
                let diagonal = at as isize - from as isize;
                if followed.get(&diagonal).is_some_and(|end| at < *end) {
                    continue;
                }
                let before = self.numbers.iter().take(at).rev().zip(other.iter().take(from).rev());
                let back = before.take_while(|(one, other)| one == other).count();
                let behind = self.numbers.iter().skip(at).zip(other.iter().skip(from));
                let count = behind.take_while(|(one, other)| one == other).count();
                followed.insert(diagonal, at + count);
                found.push(CommonLines { at: at - back, there: from - back, count: back + count });
            }
        }
        found
    }
}

/// What of a text stands in another one, too.
#[derive(Debug)]
pub(crate) struct Overlap {
    /// The text without those lines; where they were it says how many.
    pub(crate) text: String,
    /// The other one has other numbers in front of them.
    pub(crate) renumbered: bool,
}

/// What `text` has in common with `other`; nothing where that is hardly anything.
pub(crate) fn overlap(text: &str, other: &str) -> Option<Overlap> {
    let (lines, others): (Vec<&str>, Vec<&str>) = (text.split('\n').collect(), other.split('\n').collect());
    let (numbers, other_numbers) = (numbered(text), numbered(other));
    let (mut out, mut from, mut renumbered) = (String::new(), 0, false);
    for CommonLines { at, there, count } in LinePlaces::of(&numbers).stretches(&other_numbers) {
        let (own, theirs) = (lines.get(at..at + count)?, others.get(there..there + count)?);
        let inner = own.get(1..count - 1)?;
        let bytes: usize = inner.iter().map(|line| line.len() + 1).sum();
        let is_same = own.iter().zip(theirs).all(|(one, other)| bare(one) == bare(other));
        if bytes < LEAST_BYTES || !is_same {
            continue;
        }
        for line in lines.get(from..=at)? {
            out.push_str(line);
            out.push('\n');
        }
        out.push_str(&format!("[… {} lines …]\n", inner.len()));
        renumbered |= own != theirs;
        from = at + count - 1;
    }
    let rest = lines.get(from..).filter(|_| from > 0)?;
    out.push_str(&rest.join("\n"));
    Some(Overlap { text: out, renumbered })
}
