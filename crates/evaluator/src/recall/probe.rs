//! Questions with known answers about a history: is an answer still in the context, or one recall away?

use super::case::messages;
use super::page::clipped;
use super::report::{Method, in_parallel};
use super::search::Archive;
use super::text::texts;
use crate::transcript::Turn;
use context_compactor_core::tokens::Estimator;
use serde::{Deserialize, Serialize};

/// Passages that a search shows.
const PASSAGES: usize = 10;
/// Of the history's tokens, in percent.
const BUDGET: usize = 10;

/// A question and what answers it: any of several texts, whatever their letter case.
#[derive(Debug, Clone, Deserialize)]
pub struct Probe {
    /// What is asked.
    pub question: String,
    /// Texts that answer it; none when nobody knows.
    pub answers: Option<Vec<String>>,
}

/// A history with its questions.
pub struct Probed {
    /// Row of the report.
    pub domain: &'static str,
    /// Its messages.
    pub turns: Vec<Turn>,
    /// Its questions.
    pub probes: Vec<Probe>,
}

/// Shares of the questions of a domain, by method, at 10 % of the history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answered {
    /// The method.
    pub method: String,
    /// The domain.
    pub domain: String,
    /// Questions.
    pub probes: usize,
    /// An answer stands in the context.
    pub present: f64,
    /// There, or in what a search with the question finds.
    pub recoverable: f64,
}

/// How many questions each method can still answer.
pub fn answered(histories: &[Probed], methods: &[Method], estimator: Estimator) -> Vec<Answered> {
    let mut domains: Vec<&str> = histories.iter().map(|history| history.domain).collect();
    domains.dedup();
    let of_histories = in_parallel(histories, |history| {
        let texts = texts(&messages(&history.turns));
        let archive = Archive::new(&texts);
        let asked: Vec<(&Vec<String>, bool)> = history
            .probes
            .iter()
            .filter_map(|probe| {
                let answers = probe.answers.as_ref()?;
                let hits = archive.search(&probe.question, PASSAGES);
                Some((answers, hits.iter().any(|hit| holds(archive.passage(*hit), answers))))
            })
            .collect();
        let budget = texts.iter().map(|text| estimator.text(&text.text)).sum::<usize>() * BUDGET / 100;
        let of_method = |method: &Method| {
            let context = method.write(&messages(&history.turns), budget, estimator);
            let context = clipped(&context, budget, estimator);
            let found: Vec<(bool, bool)> =
                asked.iter().map(|(answers, searched)| (holds(context, answers), *searched)).collect();
            let present = found.iter().filter(|(present, _)| *present).count();
            (present, found.iter().filter(|(present, searched)| *present || *searched).count())
        };
        (asked.len(), methods.iter().map(of_method).collect::<Vec<_>>())
    });
    let mut rows = Vec::new();
    for domain in domains {
        for (nth, method) in methods.iter().enumerate() {
            let (mut probes, mut present, mut recoverable) = (0, 0, 0);
            for (history, (asked, found)) in histories.iter().zip(&of_histories) {
                if history.domain == domain {
                    probes += asked;
                    present += found[nth].0;
                    recoverable += found[nth].1;
                }
            }
            let share = |part: usize| part as f64 / probes.max(1) as f64;
            rows.push(Answered {
                method: method.name.to_owned(),
                domain: domain.to_owned(),
                probes,
                present: share(present),
                recoverable: share(recoverable),
            });
        }
    }
    rows
}

/// Whether a text holds one of the answers as words of its own: "10" is not in "2100".
fn holds(text: &str, answers: &[String]) -> bool {
    let text = text.to_lowercase();
    answers.iter().map(|answer| answer.to_lowercase()).filter(|answer| !answer.is_empty()).any(|answer| {
        text.match_indices(&answer).any(|(at, found)| {
            let is_part = |beside: Option<char>| beside.is_some_and(|c| c.is_ascii_alphanumeric());
            !is_part(text[..at].chars().next_back()) && !is_part(text[at + found.len()..].chars().next())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::methods;
    use super::*;
    use context_compactor_core::message::Role;

    fn turn(text: &str) -> Turn {
        Turn {
            role: Role::User,
            text: text.into(),
            reasoning: String::new(),
            calls: Vec::new(),
            results: Vec::new(),
            tokens: 0,
        }
    }

    #[test]
    fn an_answer_is_present_or_found_by_its_question() {
        let mut turns = vec![turn("My dentist is in Seattle, and I am 35 years old")];
        turns
            .extend((0..60).map(|nth| turn(&format!("Lanterns of the harbour were lit at {nth} past noon"))));
        let probe = |question: &str, answer: &str| Probe {
            question: question.into(),
            answers: Some(vec![answer.into()]),
        };
        let probes = vec![
            probe("Where is my dentist?", "seattle"),
            probe("How many lanterns?", "nobody knows"),
            Probe { question: "?".into(), answers: None },
        ];
        let histories = [Probed { domain: "one", turns, probes }];
        let rows = answered(&histories, &methods(), Estimator::Chars4);
        let tail = rows.iter().find(|row| row.method == "tail").expect("a row");
        assert_eq!((tail.probes, tail.present, tail.recoverable), (2, 0.0, 0.5));
    }

    #[test]
    fn an_answer_is_words_of_its_own() {
        let answers = ["10".to_owned(), "ten".to_owned()];
        assert!(holds("about Ten years", &answers) && holds("10.", &answers));
        assert!(!holds("2100 tents", &answers));
    }
}
