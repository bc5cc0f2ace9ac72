//! Questions about what a user said, asked over long histories (`probes/`): how often one of the first hits is a message
//! with the evidence, beside BM25 as textbooks have it, over whole messages.

use crate::open;
use crate::trials::{Texts, texts};
use context_compactor_store_tests::conversation::Body;
use context_compactor_store_tests::recorded;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::rc::Rc;

const SOURCES: [&str; 2] = ["probes/bfcl_v4_memory", "probes/spliced_bfcl_in_coding"];

/// Questions, and how many found their evidence among the first five and the first ten.
#[derive(Default)]
struct Found {
    questions: usize,
    five: usize,
    ten: usize,
}

impl Found {
    fn count(&mut self, at: Option<usize>) {
        self.questions += 1;
        self.five += usize::from(at.is_some_and(|at| at < 5));
        self.ten += usize::from(at.is_some_and(|at| at < 10));
    }

    fn row(&self, case: String) -> Value {
        let share = |count: usize| (count as f64 / self.questions.max(1) as f64 * 1e3).round() / 1e3;
        json!({ "case": case, "trials": self.questions, "hit@5": share(self.five), "hit@10": share(self.ten) })
    }
}

/// Rows of the bench.
pub(crate) fn rows() -> Vec<Value> {
    let mut rows = Vec::new();
    for source in SOURCES {
        let (mut ours, mut textbook) = (Found::default(), Found::default());
        for line in recorded::lines(source) {
            let record: Value = serde_json::from_str(&line).expect("a line is JSON");
            let recorded = recorded::record(&line).expect("a record can be read");
            let texts = texts(recorded.format, &recorded.bodies);
            let bm25 = Bm25::new(&texts);
            let (mut host, session) = open(Rc::default(), recorded.format);
            let bodies: Vec<Body> = recorded.bodies.clone();
            host.run(session.append(bodies)).expect("recorded messages are appended");
            for probe in record["probes"].as_array().into_iter().flatten() {
                let (Some(question), Some(evidence)) =
                    (probe["question"].as_str(), probe["evidence"].as_str())
                else {
                    continue;
                };
                let has_it: Vec<bool> = texts.iter().map(|texts| is_evidence(texts, evidence)).collect();
                if !has_it.contains(&true) {
                    continue;
                }
                let hits = host.run(session.search(question.to_owned(), 10)).expect("it can be searched");
                let seqs: Vec<usize> = hits.iter().map(|hit| hit.seq as usize).collect();
                ours.count(seqs.iter().position(|seq| has_it[*seq]));
                textbook.count(bm25.best(question, 10).iter().position(|at| has_it[*at]));
            }
        }
        rows.push(ours.row(format!("{source}: questions")));
        rows.push(textbook.row(format!("{source}: questions, textbook BM25")));
    }
    rows
}

/// True for a message in which each piece of the evidence stands.
fn is_evidence(texts: &Texts, evidence: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let said = plain(&texts.said);
    evidence.split("...").map(plain).filter(|piece| !piece.is_empty()).all(|piece| said.contains(&piece))
}

struct Bm25 {
    /// How often each word is in each message.
    counts: Vec<HashMap<String, usize>>,
    frequencies: HashMap<String, usize>,
    average: f64,
}

impl Bm25 {
    fn new(texts: &[Texts]) -> Bm25 {
        let mut counts = Vec::new();
        let mut frequencies: HashMap<String, usize> = HashMap::new();
        let mut total = 0;
        for texts in texts {
            let mut own: HashMap<String, usize> = HashMap::new();
            for text in std::iter::once(&texts.said).chain(&texts.results) {
                for word in words(text) {
                    total += 1;
                    *own.entry(word).or_default() += 1;
                }
            }
            own.keys().for_each(|word| *frequencies.entry(word.clone()).or_default() += 1);
            counts.push(own);
        }
        let average = total as f64 / counts.len().max(1) as f64;
        Bm25 { counts, frequencies, average }
    }

    fn best(&self, query: &str, limit: usize) -> Vec<usize> {
        let texts = self.counts.len() as f64;
        let mut scored: Vec<(f64, usize)> = Vec::new();
        for (at, counts) in self.counts.iter().enumerate() {
            let length = counts.values().sum::<usize>() as f64;
            let score = words(query).map(|word| {
                let frequency = self.frequencies.get(&word).copied().unwrap_or_default() as f64;
                let count = counts.get(&word).copied().unwrap_or_default() as f64;
                let weight = (1.0 + (texts - frequency + 0.5) / (frequency + 0.5)).ln();
                weight * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / self.average))
            });
            scored.push((score.sum(), at));
        }
        scored.sort_by(|one, other| other.0.total_cmp(&one.0));
        scored.into_iter().filter(|(score, _)| *score > 0.0).take(limit).map(|(_, at)| at).collect()
    }
}

/// Words of letters and digits, lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase)
}
