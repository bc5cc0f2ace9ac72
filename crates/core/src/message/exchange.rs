//! The exchange: a tool call and its results, the unit that no cut may go through (`S1.5`).
//!
//! Calls and results are paired by order, because ids repeat across turns: a result answers the nearest earlier
//! unanswered call with its id.

use super::Message;
use std::collections::HashMap;

/// Which positions of a history are boundaries between exchanges, and which calls have no partner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchanges {
    /// (message of the call, message of the result), in the order of the results.
    pairs: Vec<(usize, usize)>,
    /// `boundaries[p]` is the nearest position at or before `p` where a cut parts no call from its result.
    boundaries: Vec<usize>,
    /// Messages with calls that no later message answers.
    pub unanswered: Vec<usize>,
    /// Messages with results that no earlier call asked for.
    pub orphaned: Vec<usize>,
}

impl Exchanges {
    /// Pairs the calls and results of a history, in one pass.
    pub fn of<'m, 'a: 'm>(messages: impl IntoIterator<Item = &'m Message<'a>>) -> Self {
        let mut waiting: HashMap<&'m str, Vec<usize>> = HashMap::new();
        let mut pairs = Vec::new();
        let mut orphaned = Vec::new();
        let mut length = 0;
        for (index, message) in messages.into_iter().enumerate() {
            length = index + 1;
            // Results first: a message never answers its own calls in the formats where both can stand in it.
            for result in message.results() {
                match waiting.get_mut(result.call_id.as_ref()).and_then(Vec::pop) {
                    Some(call) => pairs.push((call, index)),
                    None => orphaned.push(index),
                }
            }
            for call in message.calls() {
                waiting.entry(call.id.as_ref()).or_default().push(index);
            }
        }
        let mut unanswered: Vec<usize> = waiting.into_values().flatten().collect();
        unanswered.sort_unstable();
        unanswered.dedup();
        orphaned.dedup();
        // A pair (call, result) closes the positions call+1 ..= result; sums of openings minus closings find them.
        let mut depth = vec![0_i64; length + 2];
        for &(call, result) in &pairs {
            if let Some(opens) = depth.get_mut(call + 1) {
                *opens += 1;
            }
            if let Some(closes) = depth.get_mut(result + 1) {
                *closes -= 1;
            }
        }
        let (mut open, mut nearest) = (0, 0);
        let boundaries = depth
            .iter()
            .take(length + 1)
            .enumerate()
            .map(|(position, change)| {
                open += change;
                if open == 0 {
                    nearest = position;
                }
                nearest
            })
            .collect();
        Exchanges { pairs, boundaries, unanswered, orphaned }
    }

    /// True when a cut before message `position` parts no call from its result; false beyond the end.
    pub fn is_boundary(&self, position: usize) -> bool {
        self.boundaries.get(position) == Some(&position)
    }

    /// The nearest boundary at or before `position`; 0 and the length of the history always are boundaries.
    pub fn boundary_at_or_before(&self, position: usize) -> usize {
        self.boundaries.get(position).or(self.boundaries.last()).copied().unwrap_or(0)
    }

    /// The pairs (message of the call, message of the result), in the order of the results.
    pub fn pairs(&self) -> &[(usize, usize)] {
        &self.pairs
    }
}
