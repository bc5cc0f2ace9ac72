//! Search by BM25 over what every message of the log says and over each of its tool results, page by page: of a text
//! that was looked at only its counts are kept, and only when it has a term of the query.

use super::Answers;
use super::archive::{Archive, Whereabouts, said};
use super::terms::{self, terms};
use crate::error::{Error, Result};
use crate::message::Message;
use crate::order;
use crate::session::record::Kind;
use crate::session::stored::{log_page, row_at};
use crate::step::Io;
use crate::summary::text::{head, tail};
use crate::wire;
use serde::Serialize;
use std::collections::HashMap;
use std::ops::Range;

/// How soon more of the same term stops to matter, and how much long texts are held back: the usual values.
const K1: f64 = 1.2;
const B: f64 = 0.75;
/// Different terms of a query that are looked for.
const MOST_TERMS: usize = 64;
/// Bytes of a snippet, without the marks of what was left out.
const SNIPPET: usize = 240;

/// A passage that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// Reference of the whole text, for `read`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Position of its message in the log.
    pub seq: u64,
    /// The passage, in one line.
    pub snippet: String,
}

/// What is looked for.
#[derive(Debug)]
pub(crate) struct Query {
    /// Terms, numbered in the order of the query.
    terms: HashMap<String, usize>,
}

impl Query {
    /// The terms of a query.
    ///
    /// Errors: [`crate::Code::InvalidOption`] when it has none.
    pub(crate) fn new(text: &str) -> Result<Query> {
        let mut found = HashMap::new();
        terms(text, &mut |term, _, kind| {
            let number = found.len();
            if kind != terms::Kind::Single && number < MOST_TERMS && !found.contains_key(term) {
                found.insert(term.to_owned(), number);
            }
        });
        if found.is_empty() {
            return Err(Error::option("query", "must have a word, a name or a number to look for"));
        }
        Ok(Query { terms: found })
    }
}

/// A text of the log with a term of the query.
struct Candidate {
    seq: u64,
    index: usize,
    /// Which result of its message, or what the message says itself.
    result: Option<usize>,
    length: usize,
    /// Terms of the query and how often they stand in it.
    counts: Box<[(usize, u32)]>,
}

/// What is known of all texts.
struct Corpus<'q> {
    query: &'q Query,
    texts: usize,
    words: usize,
    /// In how many texts each term stands.
    frequencies: Vec<u32>,
    candidates: Vec<Candidate>,
}

impl<'q> Corpus<'q> {
    fn new(query: &'q Query) -> Self {
        let frequencies = vec![0; query.terms.len()];
        Corpus { query, texts: 0, words: 0, frequencies, candidates: Vec::new() }
    }

    /// Counts a message's texts. The answers of the recall tools are left out: they only say again what is elsewhere.
    fn add(&mut self, seq: u64, index: usize, message: &Message<'_>, answers: &[bool]) {
        self.add_text((seq, index, None), &said(message));
        for (nth, (result, is_answer)) in message.results().zip(answers).enumerate() {
            if !is_answer {
                self.add_text((seq, index, Some(nth)), &result.text);
            }
        }
    }

    fn add_text(&mut self, (seq, index, result): (u64, usize, Option<usize>), text: &str) {
        let mut counts = vec![0_u32; self.frequencies.len()];
        let mut length = 0;
        terms(text, &mut |term, _, kind| {
            length += usize::from(kind == terms::Kind::Word);
            if let Some(count) = self.query.terms.get(term).and_then(|number| counts.get_mut(*number)) {
                *count += 1;
            }
        });
        if length == 0 {
            return;
        }
        self.texts += 1;
        self.words += length;
        let counts: Box<[_]> = counts.into_iter().enumerate().filter(|(_, count)| *count > 0).collect();
        for (number, _) in &counts {
            if let Some(frequency) = self.frequencies.get_mut(*number) {
                *frequency += 1;
            }
        }
        if !counts.is_empty() {
            self.candidates.push(Candidate { seq, index, result, length, counts });
        }
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

    /// The best candidates that `wanted` lets pass; of equal ones the newest comes first.
    fn best(self, limit: usize, weights: &[f64], wanted: impl Fn(&Candidate) -> bool) -> Vec<Candidate> {
        let average = self.words as f64 / self.texts.max(1) as f64;
        let score = |candidate: &Candidate| {
            let length = 1.0 - B + B * candidate.length as f64 / average;
            let of_term = |(number, count): &(usize, u32)| {
                let (count, weight) = (f64::from(*count), weights.get(*number).copied().unwrap_or_default());
                weight * count * (K1 + 1.0) / (count + K1 * length)
            };
            candidate.counts.iter().map(of_term).sum::<f64>()
        };
        let found: Vec<Candidate> = self.candidates.into_iter().rev().filter(wanted).collect();
        let mut ranked = order::by_key(found, |candidate| u64::MAX - (score(candidate) * 1e6) as u64);
        ranked.truncate(limit);
        ranked
    }
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

/// The passages that match best, best first. With `only_hidden`, only of texts that the
/// model has not in its context.
pub(crate) async fn search(
    io: &Io,
    archive: &Archive,
    whereabouts: &Whereabouts,
    query: &Query,
    limit: usize,
    only_hidden: bool,
) -> Result<Vec<Hit>> {
    let mut corpus = Corpus::new(query);
    let mut answers = Answers::default();
    let mut next = 0;
    while next < archive.rows {
        for bytes in log_page(io, &archive.sid, next, archive.rows).await? {
            let row = row_at(&bytes, next)?;
            next += 1;
            if row.kind != Kind::Message {
                continue;
            }
            let value = wire::parse(row.n, row.body.get())?;
            let message = archive.format.wire().read(row.n, &value)?;
            corpus.add(row.seq, row.n, &message, &answers.of(&message));
        }
    }
    let weights = corpus.weights();
    let best = corpus.best(limit, &weights, |candidate| {
        !only_hidden || !whereabouts.is_shown(candidate.index, candidate.result)
    });
    let mut hits = Vec::with_capacity(best.len());
    for Candidate { seq, index, result, .. } in best {
        let snippet = archive.with_message(io, seq, |message| match result {
            None => snippet(&said(message), query, &weights),
            Some(nth) => message
                .results()
                .nth(nth)
                .map_or(String::new(), |found| snippet(&found.text, query, &weights)),
        });
        let snippet = snippet.await?;
        let offload = whereabouts.offload(index, result).map(str::to_owned);
        let reference = offload.unwrap_or_else(|| archive.message_reference(seq));
        hits.push(Hit { reference, seq, snippet });
    }
    Ok(hits)
}

/// The passage of a text with the most that the query asks for, in one line.
fn snippet(text: &str, query: &Query, weights: &[f64]) -> String {
    let mut found: Vec<(Range<usize>, usize)> = Vec::new();
    terms(text, &mut |term, range, _| {
        if let Some(number) = query.terms.get(term) {
            found.push((range, *number));
        }
    });
    let span = densest(&found, weights);
    // Most of the room that is left goes behind the terms: that is where what they name is told.
    let room = SNIPPET.saturating_sub(span.len());
    let from = span.start.saturating_sub(room / 3);
    let behind = tail(text, text.len() - from);
    let passage = head(behind, SNIPPET.max(span.len()));
    let words: Vec<&str> = passage.split_whitespace().collect();
    let before = if behind.len() < text.len() { "…" } else { "" };
    let after = if passage.len() < behind.len() { "…" } else { "" };
    format!("{before}{}{after}", words.join(" "))
}

/// The first of the stretches no longer than a snippet whose different terms weigh most.
fn densest(found: &[(Range<usize>, usize)], weights: &[f64]) -> Range<usize> {
    let mut counts = vec![0_usize; weights.len()];
    let (mut first, mut weight, mut heaviest) = (0, 0.0, 0.0);
    let mut best = found.first().map_or(0..0, |(range, _)| range.clone());
    let of = |number: usize| weights.get(number).copied().unwrap_or_default();
    for (range, number) in found {
        if let Some(count) = counts.get_mut(*number) {
            weight += if *count == 0 { of(*number) } else { 0.0 };
            *count += 1;
        }
        while let Some((start, number)) = found.get(first)
            && range.end > start.start + SNIPPET
            && start != range
        {
            if let Some(count) = counts.get_mut(*number) {
                *count -= 1;
                weight -= if *count == 0 { of(*number) } else { 0.0 };
            }
            first += 1;
        }
        if weight > heaviest + 1e-9 {
            heaviest = weight;
            best = found.get(first).map_or(0, |(start, _)| start.start)..range.end;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(text: &str, query: &str) -> String {
        let query = Query::new(query).unwrap();
        let weights = vec![1.0; query.terms.len()];
        snippet(text, &query, &weights)
    }

    #[test]
    fn a_snippet_shows_the_most_of_the_query_in_one_line() {
        let text =
            format!("port {} the\n  port of the\tdatabase is 5432. {}", "x ".repeat(300), "y ".repeat(300));
        let found = passage(&text, "database port");
        assert!(found.contains("the port of the database is 5432. y y"), "{found}");
        assert!(found.starts_with('…') && found.ends_with('…') && !found.contains('\n'));
        assert!(found.len() <= SNIPPET + 2 * '…'.len_utf8());
        assert_eq!(passage("the port", "port"), "the port");
    }

    #[test]
    fn lesson_unicode_cuts_a_snippet_ends_between_graphemes() {
        for cluster in ["👨‍👩‍👧‍👦", "각", "e\u{301}", "🇩🇪", "字", "שָׁ"] {
            for pad in 0..30 {
                let around = cluster.repeat(200);
                let text = format!("{}{around} needle {around}", "a".repeat(pad));
                let found = passage(&text, "needle");
                let parts = found.trim_matches('…').split(" needle ");
                for part in parts.map(|part| part.trim_start_matches('a')) {
                    assert_eq!(part.replace(cluster, ""), "", "{found}");
                }
            }
        }
    }

    #[test]
    fn the_logarithm_rises_and_is_exact_at_powers_of_two() {
        assert_eq!([1.0, 2.0, 4.0, 1024.0].map(log2), [0.0, 1.0, 2.0, 10.0]);
        let values: Vec<f64> = (100..4_000).map(|n| log2(f64::from(n) / 100.0)).collect();
        assert!(values.is_sorted());
    }
}
