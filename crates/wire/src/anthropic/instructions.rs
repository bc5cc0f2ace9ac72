//! Where instructions in the middle of a conversation may stand (AN1). The API takes neighbours of them for one message,
//! although some of its pages say that there must be none.

use super::rules::Fix;
use super::turns::{Side, Turn, is_foreign_call, is_foreign_result};
use crate::{content_blocks, tagged};
use serde_json_borrow::Value;

/// True for a message that sets how answers are made and says nothing: it may stand anywhere.
pub(super) fn is_directive(message: &Value<'_>) -> bool {
    let role = tagged::field(message, "role").and_then(tagged::text);
    let says_nothing =
        tagged::given(message, "content").is_some_and(Value::is_array) && content_blocks(message).is_empty();
    role.as_deref() == Some("system") && says_nothing && tagged::given(message, "output_config").is_some()
}

/// The instructions that stand where they may not: position, what is wrong, and what mends it. Those with a turn of the
/// user behind them go behind it, which changes no message and parts no call from its result; where the model speaks
/// next, or nobody, they become the user's, as the words must not reach the model earlier or later than they did.
/// What opens a conversation is another rule's.
pub(super) fn misplaced(turns: &[Turn<'_>]) -> Vec<(usize, &'static str, Fix)> {
    let mut found = Vec::new();
    for (at, turn) in turns.iter().enumerate().skip(1).filter(|(_, turn)| turn.side == Side::System) {
        let follows = at.checked_sub(1).and_then(|before| turns.get(before)).is_some_and(lets_follow);
        match turns.get(at + 1).filter(|next| next.side == Side::User) {
            Some(next) => {
                let what = "a system message must stand before one of the assistant, or be the last; put it behind the \
                            user's";
                let last = next.positions.last().copied().unwrap_or_default();
                let order = turn.positions.iter().rev().enumerate();
                found.extend(order.map(|(nth, &position)| (position, what, Fix::To(last - nth))));
            }
            None if !follows => {
                let what = "a system message must follow one of the user, or a server tool's of the assistant; say it \
                            as the user";
                found.extend(turn.positions.iter().map(|&position| (position, what, Fix::AsUser)));
            }
            None => {}
        }
    }
    found
}

fn lets_follow(turn: &Turn<'_>) -> bool {
    let ends_in_server_tool = || {
        let last = turn.blocks.last();
        last.is_some_and(|block| is_foreign_call(&block.kind) || is_foreign_result(&block.kind))
    };
    turn.side == Side::User || turn.side == Side::Assistant && ends_in_server_tool()
}
