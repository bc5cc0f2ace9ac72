//! Ranking by BM25 over the texts of the log, each what a message says or one of its results. Of a text only its counts
//! are kept, and only when it has a term of the query.
//!
//! Measured on recorded sessions and questions (`npm run bench -- search`) and found better than BM25 alone:
//!
//! * long texts are penalized less than usual: most of a session's are listings and files, whole on purpose;
//! * what a message says counts for the results that it asked for: an agent looks for things in the words in which it
//!   looked for them before;
//! * of two texts that match alike the newer is the likelier one, above all among the latest.
//!
//! Not where the query is a question: what somebody said about it once may be old and is said in a few words, beside what it
//! answers. Those texts are ranked again by their passages ([`super::passage`]), which makes searches of agents worse.

use super::Answers;
use super::passage::PASSAGE;
use super::search::Query;
use crate::log::Page;
use crate::log::terms::Entry;
use crate::order;
use std::collections::{HashMap, HashSet};

/// How soon more of the same term stops to matter, and how much long texts are penalized.
const K1: f64 = 1.2;
const B: f64 = 0.3;
/// The answer to a question is said in a few words, and hidden in long texts.
const B_OF_QUESTIONS: f64 = 0.75;
/// What the message before a result adds to it, of its own score; to an answer, each message beside it.
const ASKED: f64 = 0.3;
const BESIDE: f64 = 0.1;
/// The newest text counts twice, one from so many messages ago one and a half times, the oldest once.
const RECENT: f64 = 20.0;

/// A text of the log with a term of the query.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) seq: u64,
    pub(super) index: usize,
    /// Which result of its message, or what the message says itself.
    pub(super) result: Option<usize>,
    /// A user's message.
    pub(super) is_user: bool,
    length: usize,
    /// Words of all of its message.
    pub(super) words: usize,
    /// The candidate that says what the message before a result says.
    asked: Option<usize>,
    /// Terms of the query and how often they occur in it.
    counts: Vec<(usize, u32)>,
}

/// What is known of all texts.
pub(super) struct Corpus {
    /// Terms of the query by their hashes.
    wanted: HashMap<u32, usize>,
    answers: Answers<u32>,
    pub(super) figures: Figures,
    pub(super) candidates: Vec<Candidate>,
    /// The last message that said something, where it is a candidate.
    asked: Option<usize>,
}

/// Figures of texts.
#[derive(Debug, Default)]
pub(super) struct Figures {
    texts: usize,
    words: usize,
    /// The same where a text counts as one passage at most.
    passage_words: usize,
    /// In how many texts each term occurs.
    frequencies: Vec<u32>,
}

impl Figures {
    /// With those of more texts.
    pub(super) fn add(&mut self, more: &Figures) {
        self.texts += more.texts;
        self.words += more.words;
        self.passage_words += more.passage_words;
        self.frequencies.resize(more.frequencies.len().max(self.frequencies.len()), 0);
        self.frequencies.iter_mut().zip(&more.frequencies).for_each(|(sum, more)| *sum += more);
    }

    /// What a term says, by how few texts have it.
    fn weights(&self) -> Vec<f64> {
        let texts = self.texts as f64;
        let weight = |frequency: &u32| {
            let frequency = f64::from(*frequency);
            log2(1.0 + (texts - frequency + 0.5) / (frequency + 0.5))
        };
        self.frequencies.iter().map(weight).collect()
    }
}

/// What is looked for in texts, and what each term of it says there.
pub(super) struct WeighedTerms<'q> {
    pub(super) query: &'q Query,
    pub(super) weights: Vec<f64>,
    /// Words of the best passage of a text, on average.
    pub(super) passage: f64,
    /// Words of a text, on average.
    text: f64,
}

impl<'q> WeighedTerms<'q> {
    pub(super) fn new(query: &'q Query, figures: &Figures) -> Self {
        let texts = figures.texts.max(1) as f64;
        let (passage, text) = (figures.passage_words as f64 / texts, figures.words as f64 / texts);
        WeighedTerms { query, weights: figures.weights(), passage, text }
    }
}

impl Candidate {
    /// What it has in common with a text that is the same word for word.
    pub(super) fn twin(&self) -> Twin {
        Twin {
            is_user: self.is_user,
            is_result: self.result.is_some(),
            length: self.length,
            counts: self.counts.clone(),
        }
    }
}

/// See [`Candidate::twin`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Twin {
    is_user: bool,
    is_result: bool,
    length: usize,
    counts: Vec<(usize, u32)>,
}

impl Corpus {
    pub(super) fn new(query: &Query) -> Self {
        Corpus {
            wanted: query.hashes(),
            answers: Answers::default(),
            figures: Figures { frequencies: vec![0; query.terms.len()], ..Figures::default() },
            candidates: Vec::new(),
            asked: None,
        }
    }

    /// Counts the texts of a page from message `from` on, as far as they are in the first `rows` of the log. The answers
    /// of the recall tools are left out: they only say again what is elsewhere.
    pub(super) fn add(&mut self, page: &Page<'_>, from: usize, rows: u64) {
        let mut counts: HashMap<usize, Vec<(usize, u32)>> = HashMap::new();
        let mut count = |term, text, count| counts.entry(text).or_default().push((term, count));
        // Its seal was right, so it ends where it ends.
        let _whole = page.find(&self.wanted, &mut count);
        let (mut next, mut text, mut results) = (page.first, 0, 0);
        let (mut seq, mut is_new, mut words, mut is_user) = (0, false, 0, false);
        for (at, entry) in page.entries.iter().enumerate() {
            match entry {
                Entry::Message(here, by_user) => {
                    (seq, results, is_user) = (*here, 0, *by_user);
                    words = words_of(page.entries.get(at + 1..).unwrap_or_default());
                    is_new = next >= from && seq < rows;
                    next += 1;
                }
                Entry::Call(id, is_recall) if is_new => self.answers.call(*id, *is_recall),
                Entry::Call(..) => {}
                Entry::Said(length) => {
                    let counts = counts.remove(&text).unwrap_or_default();
                    text += 1;
                    if is_new {
                        self.text((seq, next - 1, None), is_user, *length, words, counts);
                    }
                }
                Entry::Result(call, length) => {
                    let counts = counts.remove(&text).unwrap_or_default();
                    text += 1;
                    results += 1;
                    if is_new && !self.answers.take(call) {
                        self.text((seq, next - 1, Some(results - 1)), is_user, *length, words, counts);
                    }
                }
            }
        }
    }

    fn text(
        &mut self,
        (seq, index, result): (u64, usize, Option<usize>),
        is_user: bool,
        length: usize,
        words: usize,
        counts: Vec<(usize, u32)>,
    ) {
        if length == 0 {
            return;
        }
        self.figures.texts += 1;
        self.figures.words += length;
        self.figures.passage_words += length.min(PASSAGE);
        for (number, _) in &counts {
            if let Some(frequency) = self.figures.frequencies.get_mut(*number) {
                *frequency += 1;
            }
        }
        if result.is_none() {
            self.asked = (!counts.is_empty()).then_some(self.candidates.len());
        }
        if !counts.is_empty() {
            let asked = self.asked.filter(|_| result.is_some());
            self.candidates.push(Candidate { seq, index, result, is_user, length, words, asked, counts });
        }
    }

    /// Where the candidates stand, by what they have in common with texts that say the same.
    pub(super) fn twins(&self) -> HashMap<Twin, Vec<(u64, Option<usize>)>> {
        let mut twins: HashMap<Twin, Vec<(u64, Option<usize>)>> = HashMap::new();
        for candidate in &self.candidates {
            twins.entry(candidate.twin()).or_default().push((candidate.seq, candidate.result));
        }
        twins
    }

    /// The best candidates, one of each message, with their scores; of equal ones the newest comes first. Of a log of
    /// `messages` new ones count more. `is_last` leaves one out, or says whether it comes after all others.
    pub(super) fn best(
        self,
        limit: usize,
        terms: &WeighedTerms<'_>,
        messages: Option<usize>,
        is_last: impl Fn(&Candidate) -> Option<bool>,
    ) -> Vec<Ranked> {
        let (average, weights, is_question) = (terms.text, &terms.weights, terms.query.is_question);
        let b = if is_question { B_OF_QUESTIONS } else { B };
        let matches = |candidate: &Candidate| {
            let length = 1.0 - b + b * candidate.length as f64 / average;
            let of_term = |(number, count): &(usize, u32)| {
                let weight = weights.get(*number).copied().unwrap_or_default();
                saturated(f64::from(*count), length) * weight
            };
            candidate.counts.iter().map(of_term).sum::<f64>()
        };
        let own: Vec<f64> = self.candidates.iter().map(matches).collect();
        let of = |at: usize| own.get(at).copied().unwrap_or_default();
        let near = |at: usize, candidate: &Candidate| {
            let beside = |at: usize| {
                let is_beside = |near: &Candidate| near.index.abs_diff(candidate.index) == 1;
                if self.candidates.get(at).is_some_and(is_beside) { of(at) } else { 0.0 }
            };
            let around =
                if is_question { at.checked_sub(1).map_or(0.0, beside) + beside(at + 1) } else { 0.0 };
            ASKED * candidate.asked.map_or(0.0, of) + BESIDE * around
        };
        let nears: Vec<f64> = self.candidates.iter().enumerate().map(|(at, one)| near(at, one)).collect();
        let scored = own.into_iter().zip(nears).zip(self.candidates).rev();
        let rank = |((own, near), candidate): ((f64, f64), Candidate)| {
            let age = messages.map(|messages| messages.saturating_sub(candidate.index) as f64);
            let recency = age.filter(|_| !is_question).map_or(1.0, |age| 1.0 + RECENT / (RECENT + age));
            let is_last = is_last(&candidate)?;
            let score = (own + near) * recency;
            Some((place(score, is_last), Ranked { candidate, of: 0, own, near, score, is_last }))
        };
        let ranked = order::by_key(scored.filter_map(rank).collect(), |(place, _)| *place);
        let mut messages = HashSet::new();
        let one_of_each = ranked.into_iter().filter(|(_, ranked)| messages.insert(ranked.candidate.seq));
        one_of_each.take(limit).map(|(_, ranked)| ranked).collect()
    }
}

/// A candidate with its score.
#[derive(Debug)]
pub(super) struct Ranked {
    pub(super) candidate: Candidate,
    /// Of which of several sessions it is.
    pub(super) of: usize,
    /// How well it matches.
    pub(super) own: f64,
    /// What the texts near it add.
    pub(super) near: f64,
    pub(super) score: f64,
    /// It comes after all others.
    pub(super) is_last: bool,
}

/// How much a term counts that occurs so often in a text of that length, by which it is penalized.
pub(super) fn saturated(count: f64, length: f64) -> f64 {
    count * (K1 + 1.0) / (count + K1 * length)
}

/// Sorts by score, the highest first, and what comes last behind all others.
pub(super) fn place(score: f64, is_last: bool) -> u64 {
    // A score has few digits before its point.
    ((1_u64 << 62) - (score * 1e6) as u64) | u64::from(is_last) << 63
}

/// Words of a message: of its entries up to the next.
fn words_of(entries: &[Entry]) -> usize {
    let own = entries.iter().take_while(|entry| !matches!(entry, Entry::Message(..)));
    own.map(|entry| match entry {
        Entry::Said(length) | Entry::Result(_, length) => *length,
        Entry::Message(..) | Entry::Call(..) => 0,
    })
    .sum()
}

/// A logarithm of basic arithmetic only, straight between powers of two: libraries differ in the last bit of theirs, and
/// the order of what is found must not.
fn log2(value: f64) -> f64 {
    let mut power = 0.0;
    let mut rest = value;
    while rest >= 2.0 {
        rest /= 2.0;
        power += 1.0;
    }
    power + rest - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::terms::Draft;
    use crate::wire::Format;

    #[test]
    fn f39_of_a_page_only_what_stood_in_the_log_and_is_new_is_counted() {
        let mut draft = Draft::new(Format::OpenaiChat, 10);
        for seq in 20..24 {
            draft.add(seq, r#"{"role":"user","content":"the needle is here"}"#).unwrap();
        }
        let bytes = draft.encode();
        let page = Page::read(&bytes, Format::OpenaiChat).unwrap();
        for (from, rows, expected) in [(0, 24, 4), (0, 22, 2), (0, 20, 0), (11, 23, 2), (14, 24, 0)] {
            let mut corpus = Corpus::new(&Query::new("needle").unwrap());
            corpus.add(&page, from, rows);
            assert_eq!(
                (corpus.figures.texts, corpus.candidates.len()),
                (expected, expected),
                "{from} {rows}"
            );
        }
    }

    #[test]
    fn the_logarithm_rises_and_is_exact_at_powers_of_two() {
        assert_eq!([1.0, 2.0, 4.0, 1024.0].map(log2), [0.0, 1.0, 2.0, 10.0]);
        let values: Vec<f64> = (100..4_000).map(|n| log2(f64::from(n) / 100.0)).collect();
        assert!(values.is_sorted());
    }
}
