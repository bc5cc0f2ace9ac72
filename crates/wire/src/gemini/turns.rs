//! The history as the API sees it: neighbours of one role are one turn.

use super::names;
use serde_json_borrow::Value;
use std::borrow::Cow;

/// A function call, or the response to one.
pub(super) struct CallSide<'a> {
    /// Position of its message.
    pub(super) position: usize,
    /// Its index among the parts.
    pub(super) nth: usize,
    pub(super) name: Cow<'a, str>,
    pub(super) id: Option<Cow<'a, str>>,
}

/// Messages of one role without the other between them. Responses are the user's.
#[derive(Default)]
pub(super) struct Turn<'a> {
    pub(super) from_model: bool,
    /// Positions of its messages, ascending.
    pub(super) positions: Vec<usize>,
    pub(super) calls: Vec<CallSide<'a>>,
    pub(super) responses: Vec<CallSide<'a>>,
    /// Position of the first response that does not stand at the turn's start.
    pub(super) late: Option<usize>,
}

pub(super) fn is_from_model(message: &Value<'_>) -> bool {
    names::text(message, "role").as_deref() == Some("model")
}

/// The turns of the messages that can be read.
pub(super) fn of<'a>(messages: &[&'a Value<'a>], readable: impl Fn(usize) -> bool) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for (position, message) in messages.iter().enumerate().filter(|(position, _)| readable(*position)) {
        let from_model = is_from_model(message);
        if turns.last().is_none_or(|turn| turn.from_model != from_model) {
            turns.push(Turn { from_model, ..Turn::default() });
        }
        if let Some(turn) = turns.last_mut() {
            turn.add(position, message);
        }
    }
    turns
}

impl<'a> Turn<'a> {
    fn add(&mut self, position: usize, message: &'a Value<'a>) {
        let mut at_start = self.positions.is_empty();
        self.positions.push(position);
        for (nth, part) in names::parts(message).iter().enumerate() {
            let half = |data: &'a Value<'a>| CallSide {
                position,
                nth,
                name: names::text(data, "name").unwrap_or_default(),
                id: names::text(data, "id").filter(|id| !id.is_empty()),
            };
            self.calls.extend(names::FUNCTION_CALL.of(part).map(half));
            let response = names::FUNCTION_RESPONSE.of(part).map(half);
            if response.is_none() {
                at_start = false;
            } else if !at_start {
                self.late.get_or_insert(position);
            }
            self.responses.extend(response);
        }
    }
}

/// True for an empty text. Beside a signature it is one that the API wrote itself.
pub(super) fn is_empty_text(part: &Value<'_>) -> bool {
    names::data(part).eq(["text"])
        && names::text(part, "text").is_some_and(|text| text.is_empty())
        && !names::is_signed(part)
        && !names::is_thought(part)
}
