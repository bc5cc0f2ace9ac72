//! The atomic unit of a history: what no cut may go through (`S1.5`).
//!
//! A unit is an exchange (tool calls with their results, also parallel ones), and whatever is bound to it: a call that
//! the provider runs itself with its result, a request for approval with its answer, a call with the code that made it,
//! and reasoning with the rest of its response. A reference may be any of these: it stays with the rest of its response
//! and with the results that nothing else asked for.
//!
//! Calls and results are paired by order, because ids repeat across turns: a result answers the nearest earlier
//! unanswered call with its id.

use super::{Message, Pairing, Part, Role};
use crate::order;
use std::collections::HashMap;

/// Which positions of a history are boundaries between units, and which calls have no partner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchanges {
    /// (message of the call, message of the result), in the order of the results.
    pairs: Vec<(usize, usize)>,
    /// `boundaries[p]` is the nearest position at or before `p` where a cut parts nothing.
    boundaries: Vec<usize>,
    /// Messages with calls, or with other blocks that something must close, that nothing later answers.
    pub unanswered: Vec<usize>,
    /// Messages with results that no earlier call asked for.
    pub orphaned: Vec<usize>,
}

/// A message as far as others are bound to it.
#[derive(Debug)]
pub struct BoundMessage<'m> {
    /// Who it is from.
    pub role: Role,
    /// It holds nothing but reasoning.
    pub is_reasoning: bool,
    /// It has a compaction item of the provider.
    pub has_compaction: bool,
    /// What binds it, in its order.
    pub links: Vec<MessageLink<'m>>,
}

/// What binds a message to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageLink<'m> {
    /// A call, and the call whose code made it.
    Call(&'m str, Option<&'m str>),
    /// A result of the call with this id.
    Result(&'m str),
    /// As [`Pairing::Opens`].
    Opens(&'m str),
    /// As [`Pairing::Closes`].
    Closes(&'m str),
    /// As [`Pairing::Refers`].
    Refers,
}

impl<'m> BoundMessage<'m> {
    /// What binds a message.
    pub fn of(message: &'m Message<'_>) -> Self {
        BoundMessage {
            role: message.role,
            is_reasoning: message.is_reasoning(),
            has_compaction: message.has_compaction(),
            links: message.parts.iter().filter_map(MessageLink::of).collect(),
        }
    }
}

impl<'m> MessageLink<'m> {
    /// What binds a part of a message.
    pub fn of(part: &'m Part<'_>) -> Option<Self> {
        match part {
            Part::ToolCall(call) => Some(MessageLink::Call(&call.id, call.caller.as_deref())),
            Part::ToolResult(result) => Some(MessageLink::Result(&result.call_id)),
            Part::Opaque { tie: Pairing::Opens(id), .. } => Some(MessageLink::Opens(id)),
            Part::Opaque { tie: Pairing::Closes(id), .. } => Some(MessageLink::Closes(id)),
            Part::Opaque { tie: Pairing::Refers, .. } => Some(MessageLink::Refers),
            _ => None,
        }
    }
}

/// What waits for a partner: messages by id, newest last.
type Unpaired<'m> = HashMap<&'m str, Vec<usize>>;

/// Spans of messages that stay together.
#[derive(Default)]
struct Spans(Vec<(usize, usize)>);

impl Spans {
    fn join(&mut self, first: usize, last: usize) {
        if first < last {
            self.0.push((first, last));
        }
    }

    /// For each position of a history of this length the nearest one at or before it that no span covers.
    fn boundaries(&self, length: usize) -> Vec<usize> {
        // A span (first, last) closes the positions first+1 ..= last; sums of openings minus closings find them.
        let mut depth = vec![0_i64; length + 2];
        for &(first, last) in &self.0 {
            if let Some(opens) = depth.get_mut(first + 1) {
                *opens += 1;
            }
            if let Some(closes) = depth.get_mut(last + 1) {
                *closes -= 1;
            }
        }
        let (mut open, mut nearest) = (0, 0);
        let positions = depth.iter().take(length + 1).enumerate();
        let nearest_at = positions.map(|(position, change)| {
            open += change;
            if open == 0 {
                nearest = position;
            }
            nearest
        });
        nearest_at.collect()
    }
}

impl Exchanges {
    /// Pairs the calls and results of a history, in one pass.
    pub fn of<'m, 'a: 'm>(messages: impl IntoIterator<Item = &'m Message<'a>>) -> Self {
        let bound: Vec<BoundMessage<'_>> = messages.into_iter().map(BoundMessage::of).collect();
        Exchanges::among(&bound)
    }

    /// The same of messages of which no more is known than what binds them.
    pub fn among(messages: &[BoundMessage<'_>]) -> Self {
        let (mut calls, mut ties, mut callers) =
            (Unpaired::new(), Unpaired::new(), HashMap::<&str, usize>::new());
        let (mut pairs, mut orphaned, mut spans) = (Vec::new(), Vec::new(), Spans::default());
        // First message of a response that began with reasoning, as long as it goes on.
        let mut response: Option<usize> = None;
        // Where the latest response with a reference begins.
        let mut referring: Option<usize> = None;
        for (index, message) in messages.iter().enumerate() {
            let begins = message.is_reasoning || message.links.contains(&MessageLink::Refers);
            response = match response {
                _ if message.role != Role::Assistant => None,
                None if begins => Some(index),
                going_on => going_on,
            };
            spans.join(response.unwrap_or(index), index);
            for link in &message.links {
                match *link {
                    MessageLink::Result(id) => match take(&mut calls, id) {
                        Some(call) => {
                            pairs.push((call, index));
                            spans.join(call, index);
                        }
                        None => match referring {
                            Some(first) => spans.join(first, index),
                            None => orphaned.push(index),
                        },
                    },
                    MessageLink::Call(id, caller) => {
                        if let Some(&maker) = caller.and_then(|id| callers.get(id)) {
                            spans.join(maker, index);
                        }
                        callers.insert(id, index);
                        calls.entry(id).or_default().push(index);
                    }
                    MessageLink::Opens(id) => {
                        callers.insert(id, index);
                        ties.entry(id).or_default().push(index);
                    }
                    MessageLink::Closes(id) => {
                        // A call that was approved closes the request for its approval once more.
                        let opened = take(&mut ties, id).or_else(|| callers.get(id).copied());
                        if let Some(opened) = opened.or(referring) {
                            spans.join(opened, index);
                        }
                    }
                    MessageLink::Refers => referring = response.or(Some(index)),
                }
            }
        }
        let mut unanswered: Vec<usize> = calls.into_values().chain(ties.into_values()).flatten().collect();
        order::unique(&mut unanswered);
        orphaned.dedup();
        Exchanges { pairs, boundaries: spans.boundaries(messages.len()), unanswered, orphaned }
    }

    /// True when a cut before message `position` parts nothing that belongs together; false beyond the end.
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

fn take(open: &mut Unpaired<'_>, id: &str) -> Option<usize> {
    open.get_mut(id).and_then(Vec::pop)
}
