//! Token estimation: one counter decides the trigger and the cut.

mod bounds;
pub mod budget;
mod calibration;
mod chars4;
mod family;
mod overhead;

pub use bounds::Bounds;
pub use calibration::Corrected;
pub(crate) use calibration::{Calibration, Calibrations, Sent};
pub use context_compactor_estimator::{Family, Table};
pub use family::{of_known_model, of_model};

use crate::error::{Code, Error, Result};
use crate::message::{Media, Message, Part};
use crate::wire::work::{self, WorkDone};
use overhead::Overhead;

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
        work::note(WorkDone::Estimated, text.len());
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
        message_by(message, self.family(), &mut |text| self.text(text))
    }

    /// The same, which gives `bounds` its parts.
    pub(crate) fn message_within(self, message: &Message<'_>, bounds: &mut Bounds) -> usize {
        message_by(message, self.family(), &mut |text| self.text_within(text, bounds))
    }

    /// Estimated tokens of a text, which is given to `bounds`.
    pub(crate) fn text_within(self, text: &str, bounds: &mut Bounds) -> usize {
        let tokens = self.text(text);
        bounds.add(text, tokens);
        tokens
    }

    /// Estimated tokens of the definitions of tools, JSON text, which is given to `bounds`.
    pub(crate) fn tools_within(self, json: &str, bounds: &mut Bounds) -> usize {
        self.text_within(json, bounds) + Overhead::of(self.family()).of_tools(json)
    }

    /// The family of tokenizers that it counts for, when it counts for one.
    pub fn counts_for(self) -> Option<Family> {
        match self {
            Estimator::Calibrated(family) => Some(family),
            Estimator::Chars4 => None,
        }
    }

    /// Itself, where what it counts by is there; else [`Code::NotReady`].
    pub fn ready(self) -> Result<Self> {
        match self.counts_for().filter(|family| !family.is_there()) {
            None => Ok(self),
            Some(family) => {
                let message = format!("the table of its family ({}) is not loaded", family.name());
                Err(Error::new(Code::NotReady, format!("model: {message}")).of_field(Some("model".into())))
            }
        }
    }

    /// Whose rules hold for what is no text.
    fn family(self) -> Family {
        self.counts_for().unwrap_or_default()
    }
}

/// The count of a text that comes in parts of its UTF-8, which may end anywhere.
#[derive(Debug, Clone, Copy)]
pub enum Sum {
    /// By weights.
    Calibrated(Family, context_compactor_estimator::Sum),
    /// By characters.
    Chars4(chars4::Chars4Sum),
}

impl Sum {
    /// Adds what comes next.
    pub fn add(&mut self, bytes: &[u8]) {
        work::note(WorkDone::Estimated, bytes.len());
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

/// Tokens of a message whose texts `text` counts; what is no text, and the frames, are counted by the rules of a family.
pub fn message_by(message: &Message<'_>, family: Family, text: &mut impl FnMut(&str) -> usize) -> usize {
    let rule = Overhead::of(family);
    let media = |item: &Media| rule.of_media(item);
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(plain) | Part::Reasoning { text: plain, .. } => text(plain),
        Part::ToolCall(call) => text(&call.name) + text(&call.arguments) + rule.of_call(&call.arguments),
        Part::ToolResult(result) => {
            text(&result.text) + rule.result + result.media.iter().map(media).sum::<usize>()
        }
        Part::Media(item) => media(item),
        Part::Opaque { chars, .. } | Part::Compaction { chars } => chars.div_ceil(4),
    });
    parts.sum::<usize>() + rule.message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MediaKind;
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
            let frame = Overhead::of(Family::default()).message;
            assert_eq!(one, estimator.text("How are you?") + frame);
            assert_eq!(two, 2 * one - frame);
        }
    }

    #[test]
    fn an_image_costs_its_rule_whatever_its_bytes() {
        let of = |bytes| {
            let image = Media { kind: MediaKind::Image, bytes, pixels: None };
            Estimator::default().message(&message(vec![Part::Media(image)]))
        };
        assert_eq!(of(10), of(10_000_000));
    }
}
