//! BM25 as textbooks have it: whole messages, k1 1.2, b 0.75, no recency.

use crate::trials::Texts;
use std::collections::HashMap;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// The messages of a history.
#[derive(Default)]
pub(crate) struct Bm25 {
    /// How often each word is in each message, and how many words it has.
    counts: Vec<(HashMap<String, usize>, usize)>,
    frequencies: HashMap<String, usize>,
    total: usize,
}

impl Bm25 {
    /// Adds messages behind the others.
    pub(crate) fn add(&mut self, texts: &[Texts]) {
        for texts in texts {
            let mut own: HashMap<String, usize> = HashMap::new();
            let mut length = 0;
            for text in std::iter::once(&texts.said).chain(&texts.results) {
                for word in words(text) {
                    length += 1;
                    *own.entry(word).or_default() += 1;
                }
            }
            own.keys().for_each(|word| *self.frequencies.entry(word.clone()).or_default() += 1);
            self.total += length;
            self.counts.push((own, length));
        }
    }

    /// The messages that match best, best first.
    pub(crate) fn best(&self, query: &str, limit: usize) -> Vec<usize> {
        let texts = self.counts.len() as f64;
        let average = self.total as f64 / texts.max(1.0);
        let weight = |word: String| {
            let frequency = self.frequencies.get(&word).copied().unwrap_or_default() as f64;
            let weight = (1.0 + (texts - frequency + 0.5) / (frequency + 0.5)).ln();
            (word, weight)
        };
        let query: Vec<(String, f64)> = words(query).map(weight).collect();
        let mut scored: Vec<(f64, usize)> = Vec::new();
        for (at, (counts, length)) in self.counts.iter().enumerate() {
            let score = query.iter().map(|(word, weight)| {
                let count = counts.get(word).copied().unwrap_or_default() as f64;
                weight * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * *length as f64 / average))
            });
            scored.push((score.sum(), at));
        }
        scored.sort_by(|one, other| other.0.total_cmp(&one.0));
        scored.into_iter().filter(|(score, _)| *score > 0.0).take(limit).map(|(_, at)| at).collect()
    }
}

/// Words of letters and digits, lower case; of scripts without spaces each character.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.flat_map(|word| {
        let is_dense =
            |c: char| matches!(u32::from(c), 0x2E80..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF);
        let between = |(at, c): &(usize, char)| {
            *at > 0 && (is_dense(*c) || word[..*at].chars().next_back().is_some_and(is_dense))
        };
        let mut cuts: Vec<usize> = word.char_indices().filter(between).map(|(at, _)| at).collect();
        cuts.push(word.len());
        let mut from = 0;
        let parts = cuts.into_iter().map(move |to| {
            let part = word[from..to].to_lowercase();
            from = to;
            part
        });
        parts.collect::<Vec<_>>()
    })
}
