//! Results that are too large to stand in a prompt even once (`S3.8`).

use super::replace::{Move, Replacement, moves};
use super::rung::{RungSpec, reduce};
use crate::context::Placeholder;
use crate::error::Result;
use crate::log::State;
use crate::policy::{Rung, Trigger};
use crate::text;

/// Run before the first prompt that a result would stand in.
pub(super) const RUNG: RungSpec = RungSpec {
    rung: Rung::Admit,
    fires: |_, run, _| run.trigger != Trigger::None,
    waits: None,
    apply: |io, held, run, done| Box::pin(reduce(io, held, (&RUNG, run), propose, done)),
    least: |state, least| {
        least.replace(state, propose(state)?);
        Ok(())
    },
    idle: |_| Some("no tool result is too large for a prompt"),
};

/// What would be stored and previewed: every result above `largeOutputTokens`.
fn propose(state: &State) -> Result<Vec<Move>> {
    let numbers = state.settings.numbers.layered;
    // The size of the message is known; only a large one is read.
    if !state.context.items().iter().any(|item| item.size.tokens > numbers.large_output_tokens) {
        return Ok(Vec::new());
    }
    let estimator = state.settings.estimator;
    moves(state, usize::MAX, |item, place, (nth, text)| {
        let limit = numbers.large_output_tokens;
        if item.size.tokens <= limit || estimator.text(text) <= limit {
            return None;
        }
        let preview = text::range(text, 0, Some(numbers.preview_chars));
        let write = |reference: &str| match state.recalls {
            true => format!("Output too large. Saved to: {reference}\nPreview:\n{preview}..."),
            false => format!("Output too large, the rest is left out. Preview:\n{preview}..."),
        };
        Some(Replacement::new(state, place, nth, text, Placeholder::Preview, write))
    })
}
