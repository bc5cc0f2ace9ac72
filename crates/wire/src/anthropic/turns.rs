//! The history as the API sees it: neighbours of one role are one turn.

use crate::tagged;
use serde_json_borrow::Value;
use std::borrow::Cow;

/// The role on the wire; results are the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    User,
    Assistant,
    System,
}

/// A block of content; a content that is a string is one text block.
pub(super) struct Block<'a> {
    /// Position of its message.
    pub(super) position: usize,
    /// Its index in the content.
    pub(super) nth: usize,
    /// Its type.
    pub(super) kind: Cow<'a, str>,
    /// The block, or the string.
    pub(super) value: &'a Value<'a>,
}

impl<'a> Block<'a> {
    /// A text field of the block.
    pub(super) fn field(&self, key: &str) -> Option<Cow<'a, str>> {
        tagged::text(tagged::given(self.value, key)?)
    }

    /// The prose of a text block.
    pub(super) fn prose(&self) -> Option<Cow<'a, str>> {
        tagged::text(self.value).or_else(|| if self.kind == "text" { self.field("text") } else { None })
    }

    pub(super) fn is_thinking(&self) -> bool {
        is_thinking(&self.kind)
    }
}

pub(super) fn is_thinking(kind: &str) -> bool {
    matches!(kind, "thinking" | "redacted_thinking")
}

/// A call that the provider runs itself: its result stands in the same turn.
pub(super) fn is_server_call(kind: &str) -> bool {
    matches!(kind, "server_tool_use" | "mcp_tool_use")
}

/// A call that is not the app's: one that the provider runs itself, or of a kind that is not known yet. Its result has
/// its id.
pub(super) fn is_foreign_call(kind: &str) -> bool {
    kind.ends_with("_tool_use")
}

/// The result of such a call.
pub(super) fn is_foreign_result(kind: &str) -> bool {
    kind.ends_with("_tool_result")
}

/// Id of the code execution that made a call (`caller`); `direct` ones have none.
pub(super) fn caller<'a>(block: &'a Value<'a>) -> Option<Cow<'a, str>> {
    tagged::text(tagged::given(tagged::given(block, "caller")?, "tool_id")?)
}

/// True for a compaction block that stands for what was before it; one of a compaction that failed has no content.
pub(super) fn compacts(block: &Value<'_>) -> bool {
    super::kind(block).as_deref() == Some("compaction") && tagged::given(block, "content").is_some()
}

/// True for a compaction block that was asked for, not one that a threshold made: it has a signature, and the API wants
/// it in place of the messages that it stands for.
pub(super) fn is_signed_compaction(block: &Value<'_>) -> bool {
    compacts(block) && tagged::given(block, "signature").is_some()
}

/// Messages of one role without another role between them.
pub(super) struct Turn<'a> {
    pub(super) side: Side,
    /// Positions of its messages, ascending.
    pub(super) positions: Vec<usize>,
    pub(super) blocks: Vec<Block<'a>>,
}

/// The turns of the messages that can be read.
pub(super) fn of<'a>(messages: &[&'a Value<'a>], readable: impl Fn(usize) -> bool) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for (position, message) in messages.iter().enumerate().filter(|(position, _)| readable(*position)) {
        let side = match tagged::field(message, "role").and_then(tagged::text).as_deref() {
            Some("assistant") => Side::Assistant,
            Some("system") => Side::System,
            _ => Side::User,
        };
        let blocks = blocks(position, message);
        match turns.last_mut() {
            Some(turn) if turn.side == side => {
                turn.positions.push(position);
                turn.blocks.extend(blocks);
            }
            _ => turns.push(Turn { side, positions: vec![position], blocks }),
        }
    }
    turns
}

fn blocks<'a>(position: usize, message: &'a Value<'a>) -> Vec<Block<'a>> {
    let block = |(nth, value)| {
        let kind = super::kind(value).unwrap_or_default();
        Block { position, nth, kind, value }
    };
    match tagged::given(message, "content") {
        Some(Value::Array(blocks)) => blocks.iter().enumerate().map(block).collect(),
        Some(text) => vec![Block { position, nth: 0, kind: Cow::Borrowed("text"), value: text }],
        None => Vec::new(),
    }
}
