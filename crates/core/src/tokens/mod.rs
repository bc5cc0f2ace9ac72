//! Token estimation: one counter decides the trigger and the cut.

pub mod budget;
mod chars4;

use crate::message::{Media, MediaKind, Message, Part};
use serde::{Deserialize, Serialize};

/// The estimators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Weights fitted to real tokenizers, per script and content class.
    #[default]
    Calibrated,
    /// `round(length / 4)` over characters, ties up (`S3.11`).
    Chars4,
}

impl Estimator {
    /// Estimated tokens of a text, without any frame around it.
    pub fn text(self, text: &str) -> usize {
        match self {
            Estimator::Calibrated | Estimator::Chars4 => chars4::text(text),
        }
    }

    /// Estimated tokens of a message with the frame that chat formats put around it.
    pub fn message(self, message: &Message<'_>) -> usize {
        let parts: usize = message.parts.iter().map(|part| self.part(part)).sum();
        parts + overhead::MESSAGE
    }

    fn part(self, part: &Part<'_>) -> usize {
        match part {
            Part::Text(text) | Part::Reasoning { text, .. } => self.text(text),
            Part::ToolCall(call) => self.text(&call.name) + self.text(&call.arguments) + overhead::CALL,
            Part::ToolResult(result) => {
                self.text(&result.text) + overhead::RESULT + result.media.iter().map(media).sum::<usize>()
            }
            Part::Media(item) => media(item),
            Part::Opaque { chars, .. } => chars.div_ceil(4),
        }
    }
}

/// Tokens of the frame around things.
mod overhead {
    pub(super) const MESSAGE: usize = 4;
    pub(super) const CALL: usize = 8;
    pub(super) const RESULT: usize = 6;
}

/// Tokens of a media part by rule: never by the length of its encoding.
fn media(item: &Media) -> usize {
    match item.kind {
        MediaKind::Image => 1_600,
        // A page of a PDF is about 3 KB of text and 1,500 tokens; at least one page.
        MediaKind::Document => (item.bytes / 50_000 + 1) * 1_500,
        // About 32 tokens a second of compressed speech at 16 KB a second.
        MediaKind::Audio => (item.bytes / 500).max(32),
    }
}
