//! Tool results out to the store, references in (`S1.1`, `S1.2`).

use super::replace::{Move, Replacement, moves};
use super::rung::{MOVES_LATER, RungSpec, reduce};
use crate::context::Placeholder;
use crate::error::Result;
use crate::log::State;
use crate::policy::{Rung, Trigger};

/// It runs at the threshold, or when the provider said that the prompt was too long. A manual compaction summarises and
/// leaves results where they are.
pub(super) const RUNG: RungSpec = RungSpec {
    rung: Rung::Offload,
    fires: |state, run, _| match run.trigger {
        Trigger::Overflow => true,
        Trigger::Manual | Trigger::None => false,
        Trigger::Auto => state.is_due(),
    },
    waits: None,
    apply: |io, held, run, done| Box::pin(reduce(io, held, (&RUNG, run), propose, done)),
    least: |state, least| {
        least.replace(state, propose(state)?);
        Ok(())
    },
    idle: |trigger| match trigger {
        Trigger::Manual => Some(MOVES_LATER),
        _ => Some("no tool result is left to offload"),
    },
};

/// What would be moved: the results of the first `scanRatio` of the messages with more than `minChars` characters that
/// were not replaced already. Which were is known from the session's own table, not from their text.
fn propose(state: &State) -> Result<Vec<Move>> {
    let numbers = state.settings.numbers.offload;
    let scanned = (state.context.items().len() as f64 * numbers.scan_ratio) as usize;
    moves(state, scanned, |_, place, (nth, text)| {
        let long = text.chars().count() > numbers.min_chars;
        long.then(|| {
            if state.settings.preset.stubs {
                return Replacement::stub(state, place, nth, text);
            }
            Replacement::new(state, place, nth, text, Placeholder::Reference, reference)
        })
    })
}

/// The text that stands where a result was.
pub(crate) fn reference(reference: &str) -> String {
    format!("Tool result is at: {reference}")
}
