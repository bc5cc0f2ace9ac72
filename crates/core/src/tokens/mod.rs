//! Token estimation: one counter decides the trigger and the cut.

pub mod budget;
mod chars4;
mod family;

pub use context_compactor_estimator::{Family, Table};
pub use family::of_model;

use crate::message::{Media, MediaKind, Message, Part};

/// The estimators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimator {
    /// Weights fitted to exact counts of many scripts and kinds of content; see `bench/fit` for their errors.
    Calibrated(Family),
    /// `round(length / 4)` over characters, ties up (`S3.11`).
    Chars4,
}

impl Default for Estimator {
    fn default() -> Self {
        Estimator::Calibrated(Family::default())
    }
}

impl Estimator {
    /// Estimated tokens of a text, without any frame around it.
    pub fn text(self, text: &str) -> usize {
        match self {
            Estimator::Calibrated(family) => family.text(text),
            Estimator::Chars4 => chars4::text(text),
        }
    }

    /// Counts a text that comes in parts.
    pub fn sum(self) -> Sum {
        match self {
            Estimator::Calibrated(family) => Sum::Calibrated(family, Default::default()),
            Estimator::Chars4 => Sum::Chars4(Default::default()),
        }
    }

    /// Estimated tokens of a message with the frame that chat formats put around it.
    pub fn message(self, message: &Message<'_>) -> usize {
        message_by(message, &mut |text| self.text(text))
    }
}

/// The count of a text that comes in parts of its UTF-8, which may end anywhere.
#[derive(Debug, Clone, Copy)]
pub enum Sum {
    /// By weights.
    Calibrated(Family, context_compactor_estimator::Sum),
    /// By characters.
    Chars4(chars4::Sum),
}

impl Sum {
    /// Adds what comes next.
    pub fn add(&mut self, bytes: &[u8]) {
        match self {
            Sum::Calibrated(family, sum) => sum.add(family.table(), bytes),
            Sum::Chars4(sum) => sum.add(bytes),
        }
    }

    /// Estimated tokens of what was added: those of [`Estimator::text`].
    pub fn tokens(&self) -> usize {
        match self {
            Sum::Calibrated(_, sum) => sum.tokens(),
            Sum::Chars4(sum) => sum.tokens(),
        }
    }
}

/// Tokens of a message whose texts `text` counts; what is no text, and the frames, are counted by rule.
pub fn message_by(message: &Message<'_>, text: &mut impl FnMut(&str) -> usize) -> usize {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(plain) | Part::Reasoning { text: plain, .. } => text(plain),
        Part::ToolCall(call) => text(&call.name) + text(&call.arguments) + overhead::CALL,
        Part::ToolResult(result) => {
            text(&result.text) + overhead::RESULT + result.media.iter().map(media).sum::<usize>()
        }
        Part::Media(item) => media(item),
        Part::Opaque { chars, .. } | Part::Compaction { chars } => chars.div_ceil(4),
    });
    parts.sum::<usize>() + overhead::MESSAGE
}

/// Tokens of the frame around things, in the chat format of the o200k models; other formats cost about as much.
mod overhead {
    /// `<|start|>`, the role, `<|message|>` and `<|end|>`, a token each.
    pub(super) const MESSAGE: usize = 4;
    /// A call is a message of its own in that format (4), with ` to=functions.`, a channel and a constraint (`json`).
    pub(super) const CALL: usize = 8;
    /// A result names the function it is from and whom it is for; the message around it is already counted.
    pub(super) const RESULT: usize = 6;
}

/// Tokens of a media part by rule: never by the length of its encoding.
fn media(item: &Media) -> usize {
    match item.kind {
        // Claude counts width × height / 750 and scales down to at most about 1,600; OpenAI's tiles of a photograph
        // (85 + 170 each) are fewer. The size in pixels is not known here, so the most that one can cost.
        MediaKind::Image => 1_600,
        // Claude's rule is 1,500–3,000 tokens a page; a page of a PDF is taken as 50 KB, and there is at least one.
        MediaKind::Document => (item.bytes / 50_000 + 1) * 1_500,
        // Gemini's rule is 32 tokens a second; a second of compressed speech is taken as 16 KB.
        MediaKind::Audio => (item.bytes / 500).max(32),
        // Gemini's rule is about 300 tokens a second; a second of compressed video is taken as 250 KB.
        MediaKind::Video => (item.bytes / 833).max(300),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    fn message(parts: Vec<Part<'_>>) -> Message<'_> {
        Message { role: crate::message::Role::User, parts }
    }

    #[test]
    fn s3_11_chars4_counts_characters_not_bytes() {
        // The document's rule of thumb, about four characters a token: its 1,000-token result is 4,000 characters.
        assert_eq!(Estimator::Chars4.text(&"x".repeat(4_000)), 1_000);
        assert_eq!(Estimator::Chars4.text(&"字".repeat(4_000)), 1_000);
        assert_eq!(Estimator::Chars4.text("👍👍"), 1);
    }

    #[test]
    fn the_default_is_calibrated() {
        let text = "上下文压缩在不丢失任何内容的前提下";
        assert_eq!(Estimator::default(), Estimator::Calibrated(Family::O200k));
        assert!(Estimator::default().text(text) > 2 * Estimator::Chars4.text(text));
    }

    #[test]
    fn a_text_in_parts_costs_what_it_costs_whole() {
        let text = "Näher: 上下文 👍🏽 fn main() {}\n".repeat(9);
        for estimator in Family::ALL.map(Estimator::Calibrated).into_iter().chain([Estimator::Chars4]) {
            assert_eq!(estimator.sum().tokens(), 0);
            for size in [1, 7, 1_000] {
                let mut sum = estimator.sum();
                text.as_bytes().chunks(size).for_each(|part| sum.add(part));
                assert_eq!(sum.tokens(), estimator.text(&text), "{estimator:?} in parts of {size}");
            }
        }
    }

    #[test]
    fn a_message_is_its_parts_and_one_frame() {
        for estimator in [Estimator::default(), Estimator::Chars4] {
            let one = estimator.message(&message(vec![Part::Text(Cow::Borrowed("How are you?"))]));
            let two = estimator.message(&message(vec![Part::Text(Cow::Borrowed("How are you?")); 2]));
            assert_eq!(one, estimator.text("How are you?") + overhead::MESSAGE);
            assert_eq!(two, 2 * one - overhead::MESSAGE);
        }
    }

    #[test]
    fn an_image_costs_its_rule_whatever_its_bytes() {
        let of = |bytes| {
            Estimator::default().message(&message(vec![Part::Media(Media { kind: MediaKind::Image, bytes })]))
        };
        assert_eq!(of(10), of(10_000_000));
    }
}
