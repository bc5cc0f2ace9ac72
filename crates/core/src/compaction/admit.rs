//! Results that are too large to stand in a prompt even once (`S3.8`).

use super::replace::{Move, Replacement, moves};
use crate::context::Placeholder;
use crate::error::Result;
use crate::log::State;
use crate::policy::Trigger;
use crate::text;

/// What would be stored and previewed: every result above `largeOutputTokens`. Run before the first prompt that it
/// would stand in.
pub(crate) fn propose(state: &State, trigger: Trigger) -> Result<Option<Vec<Move>>> {
    if trigger == Trigger::None {
        return Ok(None);
    }
    let numbers = state.settings.numbers.layered;
    // The size of the message is known; only a large one is read.
    if !state.context.items().iter().any(|item| item.size.tokens > numbers.large_output_tokens) {
        return Ok(None);
    }
    let estimator = state.settings.estimator;
    let found = moves(state, usize::MAX, |item, place, (nth, text)| {
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
    })?;
    Ok(Some(found).filter(|moves| !moves.is_empty()))
}
