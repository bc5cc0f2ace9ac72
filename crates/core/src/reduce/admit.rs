//! Results that are too large to stand in a prompt even once (`S3.8`).

use super::replace::{Move, Replacement, moves};
use crate::error::Result;
use crate::session::{How, State, text_range};

/// What would be stored and previewed: every result above `largeOutputTokens`. Run before the first prompt that it
/// would stand in.
pub(crate) fn propose(state: &State) -> Result<Option<Vec<Move>>> {
    let numbers = state.settings.numbers.layered;
    // The size of the message is known; only a large one is read.
    if !state.context.items().iter().any(|item| item.size.tokens > numbers.large_output_tokens) {
        return Ok(None);
    }
    let estimator = state.settings.estimator;
    let found = moves(state, usize::MAX, |item, place, message| {
        if item.size.tokens <= numbers.large_output_tokens {
            return Vec::new();
        }
        let results = message.results().enumerate();
        let large = results.filter(|(nth, result)| {
            !item.origin.is_replaced(*nth) && estimator.text(&result.text) > numbers.large_output_tokens
        });
        large
            .map(|(nth, result)| {
                let preview = text_range(&result.text, 0, Some(numbers.preview_chars));
                Replacement::new(state, place, nth, &result.text, How::Preview, |reference| {
                    format!("Output too large. Saved to: {reference}\nPreview:\n{preview}...")
                })
            })
            .collect()
    })?;
    Ok(Some(found).filter(|moves| !moves.is_empty()))
}
