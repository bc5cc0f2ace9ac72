//! Where transcripts are cut.

use super::case::Case;
use crate::entities::{Generic, hash};
use crate::transcript::{Transcript, Turn};
use context_compactor_core::message::Role;
use context_compactor_core::tokens::Estimator;
use std::ops::Range;

/// How transcripts are cut.
#[derive(Debug, Clone, Copy)]
pub struct Cutting {
    /// Tokens that a prefix has at least.
    pub prefix: usize,
    /// Tokens of the future that is looked at.
    pub future: usize,
    /// Needs that a cut has at least.
    pub needs: usize,
    /// Cuts between two compactions at most.
    pub cuts: usize,
    /// Of the choice among the places where a cut may be.
    pub seed: u64,
}

impl Default for Cutting {
    fn default() -> Self {
        Cutting { prefix: 20_000, future: 20_000, needs: 5, cuts: 2, seed: 7 }
    }
}

/// The cuts of a transcript. Never is a real compaction between a prefix and its future, nor within either.
pub fn cases(
    transcript: &Transcript,
    generic: &Generic,
    cutting: Cutting,
    estimator: Estimator,
) -> Vec<Case> {
    let mut cases = Vec::new();
    for segment in segments(transcript) {
        let turns = &transcript.messages[segment.clone()];
        let tokens: Vec<usize> =
            turns.iter().map(|turn| turn.tokens.saturating_sub(estimator.text(&turn.reasoning))).collect();
        let mut places = places(turns, &tokens, cutting);
        let mut rng = fastrand::Rng::with_seed(cutting.seed ^ hash(&transcript.id) ^ segment.start as u64);
        rng.shuffle(&mut places);
        let mut taken: Vec<usize> = Vec::new();
        for at in places {
            let is_near = |other: &usize| {
                let (from, to) = (at.min(*other), at.max(*other));
                tokens[from..to].iter().sum::<usize>() < cutting.future
            };
            if taken.len() == cutting.cuts || taken.iter().any(is_near) {
                continue;
            }
            let end = at + fitting(&tokens[at..], cutting.future);
            let mut case = Case::new(&turns[..at], &turns[at..end], &transcript.source, generic, estimator);
            case.prefix = segment.start..segment.start + at;
            if case.needs.len() >= cutting.needs {
                taken.push(at);
                cases.push(case);
            }
        }
    }
    cases
}

/// What stands between compactions.
fn segments(transcript: &Transcript) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut segments = Vec::new();
    for after in transcript.compacted.iter().copied().chain([transcript.messages.len()]) {
        let end = (after + 1).min(transcript.messages.len());
        if end > start {
            segments.push(start..end);
        }
        start = start.max(end);
    }
    segments
}

/// Messages, two of more, that fit in a budget: the one that exceeds it is the last.
fn fitting(tokens: &[usize], budget: usize) -> usize {
    let mut sum = 0;
    let more = tokens.iter().take_while(|tokens| {
        sum += **tokens;
        sum <= budget
    });
    (more.count() + 1).min(tokens.len())
}

/// Where no call is open, the prefix is long enough and there is a future.
fn places(turns: &[Turn], tokens: &[usize], cutting: Cutting) -> Vec<usize> {
    let mut places = Vec::new();
    let (mut before, mut open) = (0, 0_usize);
    let all: usize = tokens.iter().sum();
    for (at, turn) in turns.iter().enumerate() {
        let begins = turn.role == Role::Assistant || turn.role == Role::User && turn.results.is_empty();
        if begins && open == 0 && before >= cutting.prefix && all - before >= cutting.future / 10 {
            places.push(at);
        }
        before += tokens[at];
        open = (open + turn.calls.len()).saturating_sub(turn.results.len());
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cut_is_over_a_compaction() {
        let transcript = Transcript { compacted: vec![1, 3], messages: turns(6), ..Default::default() };
        assert_eq!(segments(&transcript), [0..2, 2..4, 4..6]);
        let transcript = Transcript { compacted: vec![9], messages: turns(2), ..Default::default() };
        assert_eq!(segments(&transcript).len(), 1);
    }

    #[test]
    fn a_future_ends_with_the_message_that_exceeds_it() {
        assert_eq!(fitting(&[5, 5, 5, 5], 10), 3);
        assert_eq!(fitting(&[50], 10), 1);
        assert_eq!(fitting(&[1, 1], 10), 2);
    }

    fn turns(count: usize) -> Vec<Turn> {
        let turn = Turn {
            role: Role::User,
            text: "word".into(),
            reasoning: String::new(),
            calls: Vec::new(),
            results: Vec::new(),
            tokens: 1,
        };
        vec![turn; count]
    }
}
