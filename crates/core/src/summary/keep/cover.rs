//! Passages of a conversation, and which of them say most: lazy greedy cover of what they name.
//!
//! What somebody said is a passage of one line; of a file, an output or an argument it is up to [`LINES`] lines that stand
//! together, with where they are from. A passage is worth the sum over the things that it names, and that the layer does
//! not name yet, of the weight of their kind times the root of how much was made of them (by whom, and how lately), for its
//! length in tokens.

use super::stored::stored;
use super::{entities, noise};
use crate::order;
use crate::tokens::Estimator;
use crate::wire::work::{self, WorkDone};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::rc::Rc;

/// Lines of evidence are this long, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=400;
/// Lines of a passage.
const LINES: usize = 3;
/// Bytes of one.
const PASSAGE: usize = 600;
/// A blank line ends a passage of so many lines.
const PARAGRAPH: usize = 2;
/// Bytes of lines that are kept; the least telling half goes when there are more.
pub(super) const MOST_BYTES: usize = 1 << 20;
/// Things that are counted; those that no line names are known by their names alone when there are more. Lines of
/// [`MOST_BYTES`] name fewer.
const MOST_THINGS: usize = 1 << 17;
/// Things that are known by their names alone. Further ones are not known.
const MOST_NAMES: usize = 1 << 20;

/// Emphasis is counted in so many parts: sums of them are exact.
const EMPHASIS: f64 = 20.0;

/// A thing that was named.
#[derive(Debug)]
struct Thing {
    weight: f64,
    /// How much was made of it, in [`EMPHASIS`] parts, and the same weighed by when.
    mass: u64,
    late: u64,
}

stored!(Thing { weight, mass, late });

/// A passage that may become evidence.
#[derive(Debug)]
pub(super) struct Line {
    /// Its place among them.
    pub(super) order: usize,
    /// Which message it is in.
    pub(super) position: usize,
    pub(super) text: Box<str>,
    /// The file, the command or the tool that it is from.
    source: Option<Rc<str>>,
    /// The numbers of its first and last line, where the tool prints them.
    numbers: Option<(u64, u64)>,
    /// What it names, each once.
    things: Box<[u32]>,
    /// Words that name nothing: what distinguishes a sentence from a list of names.
    words: usize,
    /// Its tokens and those of where it is from, as they were counted first, and by whom.
    costs: Cell<Option<(Estimator, u32, u32)>>,
}

stored!(Line { order, position, text, source, numbers, things, words } apart { costs });

/// The lines of a conversation so far.
#[derive(Debug, Default)]
pub(super) struct CoverLines {
    /// Those that lines name, or may.
    things: Vec<Thing>,
    /// Their numbers, and their places.
    known: HashMap<u64, u32>,
    /// Other names, by half of their numbers.
    names: HashSet<u32>,
    lines: Vec<Line>,
    /// Which texts are among the lines, by half of their numbers.
    texts: HashSet<u32>,
    bytes: usize,
    added: usize,
}

stored!(CoverLines { things, known, names, texts, bytes, added } apart { lines });

/// Half of a number: of a million others, one in four thousand has the same.
fn half(number: u64) -> u32 {
    (number ^ (number >> 32)) as u32
}

impl CoverLines {
    /// Adds a line that somebody said in the message at `position`, with this much emphasis.
    pub(super) fn add(&mut self, position: usize, text: &str, emphasis: f64) {
        let mut passage = Passage::default();
        self.take(&mut passage, position, text, emphasis, |_| false);
        self.end(passage, position, None);
    }

    /// Adds the passages of a text: a file, an output, an argument.
    pub(super) fn add_text(
        &mut self,
        position: usize,
        text: &str,
        source: Option<&Rc<str>>,
        emphasis: impl Fn(&str) -> f64,
    ) {
        let mut passage = Passage::default();
        for line in text.lines() {
            let is_full = passage.lines.len() >= LINES
                || passage.bytes + line.len() > PASSAGE
                || (line.trim().is_empty() && passage.lines.len() >= PARAGRAPH);
            if is_full && !passage.lines.is_empty() {
                self.end(std::mem::take(&mut passage), position, source);
            }
            self.take(&mut passage, position, line, emphasis(line), noise::is_noise);
        }
        self.end(passage, position, source);
    }

    /// Takes out the passages of a file that hold a line of these numbers: it does not stand there any more.
    pub(super) fn remove(&mut self, source: &Rc<str>, numbers: &[u64]) {
        if numbers.is_empty() {
            return;
        }
        let is_gone = |line: &str| numbers.contains(&entities::number(line.trim()));
        let is_of = |line: &Line| line.source.as_ref() == Some(source);
        self.lines.retain(|line| !is_of(line) || !line.text.lines().any(is_gone));
        self.bytes = self.lines.iter().map(Line::bytes).sum();
    }

    /// Counts what a line names, and puts it into the passage where it says something that was not said before.
    fn take<'t>(
        &mut self,
        passage: &mut Passage<'t>,
        position: usize,
        line: &'t str,
        emphasis: f64,
        is_noise: fn(&str) -> bool,
    ) {
        let mut things = Vec::new();
        entities::each(line, &mut |number, weight| {
            things.push(self.emphasise(number, weight, position, emphasis));
        });
        let text = numbered(line).map_or_else(|| super::layer::unnumbered(line), |(_, text)| text.trim());
        if text.len() > *LENGTHS.end() || is_noise(text) || !self.texts.insert(half(entities::number(text))) {
            return;
        }
        let (number, text) =
            numbered(line).map_or((None, line.trim_end()), |(number, text)| (Some(number), text));
        passage.numbers = match (passage.numbers, number) {
            (Some((first, _)), Some(number)) => Some((first, number)),
            (None, Some(number)) if passage.lines.is_empty() => Some((number, number)),
            _ => None,
        };
        passage.bytes += line.len();
        passage.lines.push(text);
        passage.things.append(&mut things);
    }

    fn end(&mut self, passage: Passage<'_>, position: usize, source: Option<&Rc<str>>) {
        let Passage { lines, mut things, numbers, .. } = passage;
        let text = match source {
            Some(_) => together(&lines),
            None => lines.first().map(|line| super::layer::unnumbered(line).to_string()).unwrap_or_default(),
        };
        if things.is_empty() || text.len() < *LENGTHS.start() {
            return;
        }
        order::unique(&mut things);
        let words = words(&text).saturating_sub(things.len());
        self.added += 1;
        let text = text.into();
        let line = Line {
            order: self.added,
            position,
            text,
            source: source.cloned(),
            numbers,
            things: things.into(),
            words,
            costs: Cell::default(),
        };
        self.bytes += line.bytes();
        self.lines.push(line);
        if self.bytes > MOST_BYTES {
            self.halve(position + 1);
        } else if self.things.len() > MOST_THINGS {
            self.forget();
        }
    }

    /// Notes that something is named in the message at `position`; its place among the things.
    pub(super) fn emphasise(&mut self, number: u64, weight: f64, position: usize, emphasis: f64) -> u32 {
        let next = self.things.len();
        let id = match self.known.get(&number) {
            Some(id) => *id,
            None => {
                self.known.insert(number, next as u32);
                self.things.push(Thing { weight, mass: 0, late: 0 });
                next as u32
            }
        };
        if let Some(thing) = self.things.get_mut(id as usize) {
            let emphasis = (emphasis * EMPHASIS).round() as u64;
            thing.mass += emphasis;
            thing.late += emphasis * (position as u64 + 1);
        }
        id
    }

    /// All of the lines.
    pub(super) fn all(&self) -> &[Line] {
        &self.lines
    }

    /// Goes on with lines that were there before.
    pub(super) fn extend(&mut self, lines: Vec<Line>) {
        self.lines.extend(lines);
    }

    /// Bytes of the lines.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Things of which is known how much was made.
    #[cfg(test)]
    pub(super) fn counted(&self) -> usize {
        self.things.len()
    }

    /// True when something of this number was named.
    pub(super) fn names(&self, number: u64) -> bool {
        self.known.contains_key(&number) || self.names.contains(&half(number))
    }

    /// What every thing is worth at the end of a conversation of `length` messages.
    fn weights(&self, length: usize) -> Vec<f64> {
        let length = length.max(1) as f64;
        // The newest mention counts four times as much as the first.
        self.things
            .iter()
            .map(|thing| {
                let (mass, late) = (thing.mass as f64 / EMPHASIS, thing.late as f64 / EMPHASIS);
                thing.weight * (0.25 * mass + 0.75 * late / length).sqrt()
            })
            .collect()
    }

    fn halve(&mut self, length: usize) {
        let weights = self.weights(length);
        let mut values: Vec<u64> =
            self.lines.iter().map(|line| line.value(&weights, line.text.len() / 4)).collect();
        order::sort(&mut values, u64::lt);
        let least = values.get(values.len() / 2).copied().unwrap_or(0);
        self.lines.retain(|line| line.value(&weights, line.text.len() / 4) > least);
        let texts = self.lines.iter().flat_map(|line| line.text.lines());
        self.texts = texts.map(|line| half(entities::number(super::layer::unnumbered(line)))).collect();
        self.bytes = self.lines.iter().map(Line::bytes).sum();
        self.forget();
    }

    /// Forgets how much was made of what no line names. That it was named stays known.
    fn forget(&mut self) {
        let mut stays = vec![false; self.things.len()];
        for id in self.lines.iter().flat_map(|line| line.things.iter()) {
            stays.get_mut(*id as usize).into_iter().for_each(|stays| *stays = true);
        }
        let mut free = 0_u32..;
        let places: Vec<Option<u32>> =
            stays.iter().map(|stays| if *stays { free.next() } else { None }).collect();
        let place = |id: u32| places.get(id as usize).copied().flatten();
        let mut stays = stays.iter();
        self.things.retain(|_| stays.next() == Some(&true));
        let (is_full, names) = (self.names.len() >= MOST_NAMES, &mut self.names);
        self.known.retain(|number, id| match place(*id) {
            Some(place) => {
                *id = place;
                true
            }
            None => {
                names.extend((!is_full).then_some(half(*number)));
                false
            }
        });
        for id in self.lines.iter_mut().flat_map(|line| line.things.iter_mut()) {
            *id = place(*id).unwrap_or_default();
        }
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
        work::note(WorkDone::Lines, self.lines.len());
        let tokens: Vec<usize> = self.lines.iter().map(|line| line.tokens(estimator, false)).collect();
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
        let (mut chosen, mut told) = (Vec::new(), HashSet::new());
        while let Some((claimed, Reverse(at))) = queue.pop() {
            if claimed == 0 || room == 0 {
                break;
            }
            let is_told = |line: &Line| told.contains(&(line.position, line.source()));
            let cost = self.lines.get(at).map_or(0, |line| line.tokens(estimator, is_told(line)));
            if cost > room {
                continue;
            }
            let now = value(at, &weights);
            if now < claimed {
                queue.push((now, Reverse(at)));
                continue;
            }
            room -= cost;
            told.extend(self.lines.get(at).map(|line| (line.position, line.source())));
            chosen.push(at);
            for id in self.lines.get(at).into_iter().flat_map(|line| line.things.iter()) {
                take(*id, &mut weights);
            }
        }
        chosen.into_iter().filter_map(|at| self.lines.get(at)).collect()
    }
}

/// A passage that is being read.
#[derive(Default)]
struct Passage<'t> {
    lines: Vec<&'t str>,
    things: Vec<u32>,
    numbers: Option<(u64, u64)>,
    bytes: usize,
}

/// A line with the number that a tool prints before it: `  42→text`, `42<tab>text`.
fn numbered(line: &str) -> Option<(u64, &str)> {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let text = line.get(digits..)?.strip_prefix(super::files::NUMBERED)?;
    Some((line.get(..digits)?.parse().ok()?, text.trim_end()))
}

/// Lines without the blanks that all of them begin with.
fn together(lines: &[&str]) -> String {
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let common = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let lines = lines.iter().map(|line| line.get(common..).unwrap_or("")).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

impl Line {
    /// Where it is from: a file, a command, a tool; nothing for what somebody said.
    pub(super) fn source(&self) -> Option<&str> {
        self.source.as_deref().filter(|source| !source.is_empty())
    }

    /// Its lines there: `120-126`; empty where the tool prints no numbers.
    pub(super) fn numbers(&self) -> String {
        self.numbers.map_or_else(String::new, |(first, last)| format!("{first}-{last}"))
    }

    /// Tokens of the passage, with where it is from where that is not there yet.
    fn tokens(&self, estimator: Estimator, told: bool) -> usize {
        let known = self.costs.get().filter(|(by, ..)| *by == estimator);
        let (_, text, source) = known.unwrap_or_else(|| {
            let source = self.source().map_or(0, |source| estimator.text(source));
            (estimator, estimator.text(&self.text) as u32, source as u32)
        });
        self.costs.set(Some((estimator, text, source)));
        let source = if told { 0 } else { source as usize };
        text as usize + source + if self.source.is_some() { 8 } else { 2 }
    }

    fn bytes(&self) -> usize {
        self.text.len() + 96 + 4 * self.things.len()
    }

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
