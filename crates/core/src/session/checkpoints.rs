//! What is told of the checkpoints that stand in a context.

use super::context::{Item, Origin};
use crate::checkpoint::Level;
use serde::Serialize;

/// A checkpoint of the context (`S5.3`).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointRecord {
    /// Its id.
    pub id: String,
    /// When it was made, in ms since 1970.
    pub timestamp: u64,
    /// The app's messages from the first that it stands for to behind the last; 0 to 0 for one that a fork took over.
    pub message_range: (usize, usize),
    /// Tokens of those.
    pub original_tokens: usize,
    /// Tokens of its message.
    pub compressed_tokens: usize,
    /// Compressed to original.
    pub compression_ratio: f64,
    /// How detailed it is, when that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Compressions of the session before it.
    pub number: u64,
}

impl CheckpointRecord {
    /// The record of an item, when it is a summary whose making is known.
    pub(crate) fn of(item: &Item) -> Option<Self> {
        let Origin::Summary { checkpoint, covers, made, .. } = &item.origin else { return None };
        let made = made.as_deref()?;
        Some(CheckpointRecord {
            id: checkpoint.to_string(),
            timestamp: made.created_at,
            message_range: (
                covers.first().map_or(0, |cover| cover.from),
                covers.last().map_or(0, |cover| cover.to),
            ),
            original_tokens: made.original_tokens,
            compressed_tokens: made.tokens,
            compression_ratio: made.tokens as f64 / made.original_tokens.max(1) as f64,
            level: made.level,
            number: made.number,
        })
    }
}
