//! Tool results out to the store, references in (`S1.1`, `S1.2`).

use super::replace::{mark, moves};
use super::replacement::{Move, Replacement};
use super::rung::{MOVES_LATER, RungSpec, RungWork};
use crate::context::Placeholder;
use crate::error::Result;
use crate::log::View;
use crate::policy::{Rung, Trigger};

/// It runs at the threshold, or when the provider said that the prompt was too long. A manual compaction summarises and
/// leaves results where they are.
pub(super) const RUNG: RungSpec = RungSpec {
    rung: Rung::Offload,
    fires: |view, run, _| match run.trigger {
        Trigger::Overflow => true,
        Trigger::Manual | Trigger::Model | Trigger::None => false,
        Trigger::Auto => view.usage.is_due,
    },
    work: RungWork::Moves(propose, propose),
    idle: |trigger| match trigger {
        Trigger::Manual | Trigger::Model => Some(MOVES_LATER),
        _ => Some("no tool result is left to offload"),
    },
};

/// What would be moved: the results of the first `scanRatio` of the messages with more than `minChars` characters that
/// were not replaced already. Which were is known from the session's own table, not from their text.
fn propose(view: &View) -> Result<Vec<Move>> {
    let numbers = view.settings.numbers.offload;
    let scanned = (view.context.len() as f64 * numbers.scan_ratio) as usize;
    moves(view, 0..scanned, Placeholder::Reference, &|_| true, |piece| {
        let long = piece.text.chars().count() > numbers.min_chars;
        long.then(|| match view.settings.preset.stubs {
            true => Replacement::stub(view, piece, None),
            false => Replacement::new(view, piece, Placeholder::Reference, |at| {
                // The document has no more than the reference; a model that has the tool is told of it.
                if view.references.by_model {
                    mark(view, piece, None, piece.text.chars().count(), at)
                } else {
                    reference(at)
                }
            }),
        })
    })
}

/// What stands where a result was that the model has no way back to.
pub(crate) const LEFT_OUT: &str = "Tool result left out; look it up again if needed";

/// The text that stands where a result was.
pub(crate) fn reference(reference: &str) -> String {
    format!("Tool result is at: {reference}")
}
