//! Ranking by passage: the words of a question stand near each other where it is answered, and somewhere in any long text.
//! Pages of terms have counts of whole texts alone, so the texts that match best by those are read, and ranked again.

use super::rank::{Ranked, saturated};
use super::search::Query;
use context_compactor_scan::terms::{self, terms};
use std::ops::Range;

/// Words of a passage.
pub(super) const PASSAGE: usize = 120;
/// Words from where a passage may begin to where the next may, and how many such steps it has.
const STEP: usize = 40;
const STEPS: usize = PASSAGE / STEP;
/// How much a passage is penalized that is longer than others. Nearly all have one length: more than this is worse.
const B: f64 = 0.25;
/// What the passages before and after it add, of their scores.
const NEIGHBOR: f64 = 0.3;
/// How often a word of the user counts.
const OF_USER: f64 = 2.0;
/// What a passage of a tool's result counts: people ask for what was said.
const OF_RESULT: f64 = 0.7;
/// What the text as a whole adds to its best passage, of its score.
const WHOLE: f64 = 0.5;

/// Where a text has terms of a query.
pub(super) struct Matches {
    /// Bytes, the term's number, and the step.
    pub(super) found: Vec<(Range<usize>, usize, usize)>,
    /// Bytes at which the steps begin.
    starts: Vec<usize>,
    /// Words of the text.
    words: usize,
    /// Bytes of the text.
    end: usize,
}

/// The best passage of a text.
pub(super) struct BestPassage {
    pub(super) score: f64,
    pub(super) span: Range<usize>,
}

impl Matches {
    pub(super) fn new(text: &str, query: &Query) -> Matches {
        let mut matches = Matches { found: Vec::new(), starts: Vec::new(), words: 0, end: text.len() };
        terms(text, &mut |term, range, kind| {
            if kind == terms::Kind::Word {
                if matches.words.is_multiple_of(STEP) {
                    matches.starts.push(range.start);
                }
                matches.words += 1;
            }
            if let Some(number) = query.terms.get(term) {
                matches.found.push((range, *number, matches.starts.len().saturating_sub(1)));
            }
        });
        matches
    }

    /// The passage that matches best, the first of several alike. `average`: words of one.
    pub(super) fn best(&self, weights: &[f64], average: f64, is_user: bool) -> BestPassage {
        let mut best = BestPassage { score: 0.0, span: 0..self.end };
        let mut before = None;
        for (_, _, step) in &self.found {
            if before == Some(*step) {
                continue;
            }
            before = Some(*step);
            let of = |from: usize| self.score(from, weights, average, is_user);
            let near = step.checked_sub(STEPS).map_or(0.0, of) + of(step + STEPS);
            let score = of(*step) + NEIGHBOR * near;
            if score > best.score + 1e-9 {
                let at = |step: usize| self.starts.get(step).copied().unwrap_or(self.end);
                best = BestPassage { score, span: at(*step)..at(step + STEPS) };
            }
        }
        best
    }

    /// How well the passage that begins at a step matches.
    fn score(&self, from: usize, weights: &[f64], average: f64, is_user: bool) -> f64 {
        let first = self.found.partition_point(|(_, _, step)| *step < from);
        let mut counts = vec![0.0_f64; weights.len()];
        for (_, number, _) in self.found.iter().skip(first).take_while(|(_, _, step)| *step < from + STEPS) {
            if let Some(count) = counts.get_mut(*number) {
                *count += if is_user { OF_USER } else { 1.0 };
            }
        }
        let words = self.words.saturating_sub(from * STEP).min(PASSAGE) as f64;
        let length = 1.0 - B + B * words / average;
        counts.iter().zip(weights).map(|(count, weight)| saturated(*count, length) * weight).sum()
    }
}

/// The score of a text by its best passage.
pub(super) fn rescored(ranked: &Ranked, passage: &BestPassage) -> f64 {
    let of_kind = if ranked.candidate.result.is_some() { OF_RESULT } else { 1.0 };
    of_kind * (passage.score + WHOLE * ranked.own + ranked.near)
}
