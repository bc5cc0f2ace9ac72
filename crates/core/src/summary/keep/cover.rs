//! Lines of a conversation, and which of them say most: lazy greedy cover of what they name.
//!
//! A line is worth the sum over the things that it names, and that the layer does not name yet, of the weight of their kind
//! times the root of how much was made of them (by whom, and how lately), for its length in tokens.

use super::entities;
use crate::tokens::Estimator;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

/// Lines of evidence are this long, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=400;
/// Bytes of lines that are kept; the least telling half goes when there are more.
const MOST_BYTES: usize = 8 << 20;
/// Things that are known apart; a conversation that names more has its later ones counted only where they are known.
const MOST_THINGS: usize = 1 << 20;

/// A thing that was named.
#[derive(Debug)]
struct Thing {
    weight: f64,
    /// How much was made of it, and the same weighed by when.
    mass: f64,
    late: f64,
}

/// A line that may become evidence.
#[derive(Debug)]
pub(super) struct Line {
    /// Its place among the lines.
    pub(super) order: usize,
    /// Which message it is in.
    pub(super) position: usize,
    pub(super) text: Box<str>,
    /// What it names, each once.
    things: Box<[u32]>,
    /// Words that name nothing: what distinguishes a sentence from a list of names.
    words: usize,
}

/// The lines of a conversation so far.
#[derive(Debug, Default)]
pub(super) struct CoverLines {
    things: Vec<Thing>,
    known: HashMap<u64, u32>,
    lines: Vec<Line>,
    /// Which texts are among the lines.
    texts: HashSet<u64>,
    bytes: usize,
    added: usize,
}

impl CoverLines {
    /// Adds a line of the message at `position`, said with this much emphasis.
    pub(super) fn add(&mut self, position: usize, text: &str, emphasis: f64) {
        let mut things: Vec<u32> = Vec::new();
        entities::each(text, &mut |number, weight| {
            things.extend(self.emphasise(number, weight, position, emphasis));
        });
        let text = super::layer::unnumbered(text);
        if things.is_empty() || !LENGTHS.contains(&text.len()) {
            return;
        }
        if !self.texts.insert(entities::number(text)) {
            return;
        }
        things.sort_unstable();
        things.dedup();
        let words = words(text).saturating_sub(things.len());
        self.bytes += text.len() + 64 + 4 * things.len();
        self.added += 1;
        self.lines.push(Line {
            order: self.added,
            position,
            text: text.into(),
            things: things.into(),
            words,
        });
        if self.bytes > MOST_BYTES {
            self.halve(position + 1);
        }
    }

    /// Notes that something is named in the message at `position`; its place among the things.
    pub(super) fn emphasise(
        &mut self,
        number: u64,
        weight: f64,
        position: usize,
        emphasis: f64,
    ) -> Option<u32> {
        let next = self.things.len();
        let id = match self.known.get(&number) {
            Some(id) => *id,
            None if next < MOST_THINGS => {
                self.known.insert(number, next as u32);
                self.things.push(Thing { weight, mass: 0.0, late: 0.0 });
                next as u32
            }
            None => return None,
        };
        if let Some(thing) = self.things.get_mut(id as usize) {
            thing.mass += emphasis;
            thing.late += emphasis * (position as f64 + 1.0);
        }
        Some(id)
    }

    /// True when something of this number was named.
    pub(super) fn names(&self, number: u64) -> bool {
        self.known.contains_key(&number)
    }

    /// What every thing is worth at the end of a conversation of `length` messages.
    fn weights(&self, length: usize) -> Vec<f64> {
        let length = length.max(1) as f64;
        // The newest mention counts four times as much as the first.
        self.things
            .iter()
            .map(|thing| thing.weight * (0.25 * thing.mass + 0.75 * thing.late / length).sqrt())
            .collect()
    }

    fn halve(&mut self, length: usize) {
        let weights = self.weights(length);
        let mut values: Vec<u64> =
            self.lines.iter().map(|line| line.value(&weights, line.text.len() / 4)).collect();
        values.sort_unstable();
        let least = values.get(values.len() / 2).copied().unwrap_or(0);
        self.lines.retain(|line| line.value(&weights, line.text.len() / 4) > least);
        self.texts = self.lines.iter().map(|line| entities::number(&line.text)).collect();
        self.bytes = self.lines.iter().map(|line| line.text.len() + 64 + 4 * line.things.len()).sum();
    }

    /// The lines that say most, the most telling first, in `room` tokens beside `layer`, outside of
    /// the messages `apart`, for a conversation of `length` messages.
    pub(super) fn best(
        &self,
        (layer, apart): (&str, &[usize]),
        mut room: usize,
        length: usize,
        estimator: Estimator,
    ) -> Vec<&Line> {
        let mut weights = self.weights(length);
        let take = |id: u32, weights: &mut Vec<f64>| {
            weights.get_mut(id as usize).into_iter().for_each(|weight| *weight = 0.0);
        };
        entities::each(layer, &mut |number, _| {
            if let Some(id) = self.known.get(&number) {
                take(*id, &mut weights);
            }
        });
        let tokens: Vec<usize> = self.lines.iter().map(|line| estimator.text(&line.text) + 2).collect();
        let value = |at: usize, weights: &[f64]| match (self.lines.get(at), tokens.get(at)) {
            (Some(line), Some(tokens)) => line.value(weights, *tokens),
            _ => 0,
        };
        // Lazy greedy: a line's value only ever falls, so that a stale one is put back with its value of now.
        let mut queue: BinaryHeap<(u64, Reverse<usize>)> = self
            .lines
            .iter()
            .enumerate()
            .filter(|(_, line)| !apart.contains(&line.position))
            .map(|(at, _)| (value(at, &weights), Reverse(at)))
            .collect();
        let mut chosen = Vec::new();
        while let Some((claimed, Reverse(at))) = queue.pop() {
            if claimed == 0 || room == 0 {
                break;
            }
            let cost = tokens.get(at).copied().unwrap_or(0);
            if cost > room {
                continue;
            }
            let now = value(at, &weights);
            if now < claimed {
                queue.push((now, Reverse(at)));
                continue;
            }
            room -= cost;
            chosen.push(at);
            for id in self.lines.get(at).into_iter().flat_map(|line| line.things.iter()) {
                take(*id, &mut weights);
            }
        }
        chosen.into_iter().filter_map(|at| self.lines.get(at)).collect()
    }
}

impl Line {
    /// What it says that is worth something yet, for its length; a whole number, so that it orders totally.
    fn value(&self, weights: &[f64], tokens: usize) -> u64 {
        let weight: f64 = self.things.iter().filter_map(|id| weights.get(*id as usize)).sum();
        // A name without words around it says little of what it is about.
        let says = if self.words >= 4 {
            1.0
        } else if self.words >= 2 {
            0.9
        } else {
            0.6
        };
        // The constant keeps fragments of a few words from winning over lines that say something.
        (weight * says * 1e6 / (tokens as f64 + 8.0)) as u64
    }
}

/// Words of a text; in scripts without blanks two characters are one.
fn words(text: &str) -> usize {
    let (mut words, mut dense, mut inside) = (0, 0, false);
    for letter in text.chars() {
        let is_letter = letter.is_alphabetic();
        if is_letter && letter > '\u{2E7F}' {
            dense += 1;
            inside = false;
        } else {
            words += usize::from(is_letter && !inside);
            inside = is_letter || (inside && !letter.is_whitespace());
        }
    }
    words + dense / 2
}
