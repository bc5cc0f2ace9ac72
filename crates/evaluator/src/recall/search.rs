//! A search of the prefix by BM25, as a recall tool does it: passages are documents, words and the parts of names terms.

use super::text::Text;
use crate::entities::hash;
use std::collections::HashMap;

const K1: f64 = 1.2;
const B: f64 = 0.75;
/// Bytes of a passage: a text in passages, so that a long one is not found for everything.
const PASSAGE: usize = 2_000;

/// What can be searched.
pub(super) struct Archive<'t> {
    passages: Vec<&'t str>,
    lengths: Vec<usize>,
    /// Documents of a term, and how often it stands in each.
    postings: HashMap<u64, Vec<(usize, usize)>>,
}

impl<'t> Archive<'t> {
    pub(super) fn new(texts: &'t [Text]) -> Self {
        let mut postings: HashMap<u64, Vec<(usize, usize)>> = HashMap::new();
        let mut lengths = Vec::new();
        let passages: Vec<&str> = texts.iter().flat_map(|text| passages(&text.text)).collect();
        for (nth, passage) in passages.iter().enumerate() {
            let mut length = 0;
            terms(passage, &mut |term| {
                length += 1;
                let of_term = postings.entry(term).or_default();
                match of_term.last_mut() {
                    Some((document, count)) if *document == nth => *count += 1,
                    _ => of_term.push((nth, 1)),
                }
            });
            lengths.push(length);
        }
        Archive { passages, lengths, postings }
    }

    /// The best passages, best first, newest first among equals.
    pub(super) fn search(&self, query: &str, limit: usize) -> Vec<usize> {
        let mut wanted = Vec::new();
        terms(query, &mut |term| {
            if !wanted.contains(&term) {
                wanted.push(term);
            }
        });
        let count = self.passages.len() as f64;
        let average = self.lengths.iter().sum::<usize>() as f64 / count.max(1.0);
        let mut scores: HashMap<usize, f64> = HashMap::new();
        for of_term in wanted.iter().filter_map(|term| self.postings.get(term)) {
            let frequency = of_term.len() as f64;
            let weight = (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln();
            for (document, times) in of_term {
                let length = 1.0 - B + B * self.lengths[*document] as f64 / average;
                let times = *times as f64;
                *scores.entry(*document).or_default() += weight * times * (K1 + 1.0) / (times + K1 * length);
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        ranked.into_iter().take(limit).map(|(document, _)| document).collect()
    }

    /// A passage's text.
    pub(super) fn passage(&self, passage: usize) -> &'t str {
        self.passages[passage]
    }
}

/// A text in passages of whole lines.
fn passages(text: &str) -> Vec<&str> {
    let (mut found, mut start, mut end) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        if end > start && end + line.len() > start + PASSAGE {
            found.push(&text[start..end]);
            start = end;
        }
        end += line.len();
    }
    found.push(&text[start..end]);
    found
}

/// Words in lower case, and the parts of those that are joined from several.
pub(super) fn terms(text: &str, found: &mut impl FnMut(u64)) {
    for name in text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
        if !name.is_ascii() {
            let characters: Vec<char> = name.chars().collect();
            characters.windows(2).for_each(|pair| found(hash(&String::from_iter(pair))));
            continue;
        }
        found(hash(&name.to_ascii_lowercase()));
        let mut start = 0;
        let bytes = name.as_bytes();
        for at in 1..=bytes.len() {
            let ends = at == bytes.len()
                || bytes[at] == b'_'
                || bytes[at - 1] == b'_'
                || bytes[at - 1].is_ascii_lowercase() && bytes[at].is_ascii_uppercase();
            if ends {
                let part = name[start..at].trim_matches('_');
                if part.len() > 1 && part.len() < name.len() {
                    found(hash(&part.to_ascii_lowercase()));
                }
                start = at;
            }
        }
    }
}
