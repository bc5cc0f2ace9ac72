//! Byte pair encoding of one piece: of all neighbours that are a token together, those of the lowest rank are merged,
//! the leftmost of them first, until there are none.

use crate::vocabulary::{NONE, Rank, Vocabulary};
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// Longest piece for which looking through all pairs is faster than keeping them in order.
const SHORT: usize = 96;
/// No neighbour.
const NOWHERE: u32 = u32::MAX;

/// Room for the parts of a piece, kept from one to the next.
#[derive(Default)]
pub(crate) struct Merger {
    parts: Vec<Part>,
    links: Vec<Link>,
    queue: BinaryHeap<Reverse<(Rank, u32)>>,
}

/// A part of a short piece.
#[derive(Clone, Copy)]
struct Part {
    start: u32,
    /// Rank of this part and the next one together.
    rank: Rank,
}

/// A part of a long piece, with its neighbours.
#[derive(Clone, Copy)]
struct Link {
    start: u32,
    previous: u32,
    next: u32,
    rank: Rank,
}

impl Merger {
    /// Hands the bounds of the tokens of `start..end`, two bytes or more, to `each`, and returns how many they are.
    pub(crate) fn merge(
        &mut self,
        vocabulary: &Vocabulary,
        text: &[u8],
        start: usize,
        end: usize,
        mut each: impl FnMut(usize, usize),
    ) -> usize {
        if end - start <= SHORT {
            self.short(vocabulary, text, start, end);
            for pair in self.parts.windows(2) {
                each(pair[0].start as usize, pair[1].start as usize);
            }
            return self.parts.len() - 1;
        }
        self.long(vocabulary, text, start, end);
        let (mut at, mut count) = (0, 0);
        while let Some(link) = self.links.get(at as usize).filter(|link| link.next != NOWHERE) {
            each(link.start as usize, self.links[link.next as usize].start as usize);
            at = link.next;
            count += 1;
        }
        count
    }

    fn short(&mut self, vocabulary: &Vocabulary, text: &[u8], start: usize, end: usize) {
        let parts = &mut self.parts;
        parts.clear();
        let mut lowest = (NONE, 0);
        for (nth, pair) in text[start..end].windows(2).enumerate() {
            let rank = vocabulary.pair(pair[0], pair[1]);
            if rank < lowest.0 {
                lowest = (rank, nth);
            }
            parts.push(Part { start: (start + nth) as u32, rank });
        }
        parts.push(Part { start: end as u32 - 1, rank: NONE });
        parts.push(Part { start: end as u32, rank: NONE });
        while lowest.0 != NONE {
            let at = lowest.1;
            let rank_of = |parts: &[Part], at: usize| match parts.get(at + 3) {
                Some(behind) => vocabulary.find(text, parts[at].start as usize, behind.start as usize),
                None => NONE,
            };
            // As they will be when the part behind is gone.
            parts[at].rank = rank_of(parts, at);
            if at > 0 {
                parts[at - 1].rank = rank_of(parts, at - 1);
            }
            parts.remove(at + 1);
            lowest = (NONE, 0);
            for (nth, part) in parts.iter().enumerate() {
                if part.rank < lowest.0 {
                    lowest = (part.rank, nth);
                }
            }
        }
    }

    fn long(&mut self, vocabulary: &Vocabulary, text: &[u8], start: usize, end: usize) {
        let (links, queue) = (&mut self.links, &mut self.queue);
        links.clear();
        queue.clear();
        let count = (end - start) as u32;
        for nth in 0..=count {
            let at = start + nth as usize;
            let rank = if nth + 1 < count { vocabulary.pair(text[at], text[at + 1]) } else { NONE };
            let previous = if nth == 0 { NOWHERE } else { nth - 1 };
            let next = if nth == count { NOWHERE } else { nth + 1 };
            links.push(Link { start: at as u32, previous, next, rank });
            if rank != NONE {
                queue.push(Reverse((rank, nth)));
            }
        }
        while let Some(Reverse((rank, at))) = queue.pop() {
            let link = links[at as usize];
            // Merged into the one before it, or with another since.
            if link.rank != rank {
                continue;
            }
            let gone = links[link.next as usize];
            links[link.next as usize].rank = NONE;
            links[at as usize].next = gone.next;
            links[gone.next as usize].previous = at;
            for changed in [at, link.previous] {
                let Some(left) = links.get(changed as usize).copied() else { continue };
                let right = links[left.next as usize];
                let rank = match links.get(right.next as usize) {
                    Some(behind) => vocabulary.find(text, left.start as usize, behind.start as usize),
                    None => NONE,
                };
                links[changed as usize].rank = rank;
                if rank != NONE {
                    queue.push(Reverse((rank, changed)));
                }
            }
        }
    }
}
