//! Micro-compaction (`S3.1`): old results of some tools are cleared; the calls stay, so that the model knows what it did.

use super::calls::answered;
use super::replace::{Move, Replacement, moves};
use crate::error::Result;
use crate::plan::Trigger;
use crate::session::{How, State};
use std::collections::HashSet;

/// What stands where a cleared result was.
const CLEARED: &str = "[Output compacted - re-read if needed]";

/// What would be cleared: of the results of the compactable tools all but the newest `keepRecent`, when they are larger
/// than `clearMinTokens`. Every turn, whatever the size of the context; a manual compaction summarises only.
pub(crate) fn propose(state: &State, trigger: Trigger) -> Result<Option<Vec<Move>>> {
    if matches!(trigger, Trigger::Manual | Trigger::None) {
        return Ok(None);
    }
    let numbers = state.settings.numbers.layered;
    let old = old_results(state)?;
    if old.is_empty() {
        return Ok(None);
    }
    let estimator = state.settings.estimator;
    let found = moves(state, usize::MAX, |_, place, (nth, text)| {
        let clears = old.contains(&(place.index, nth)) && estimator.text(text) > numbers.clear_min_tokens;
        clears.then(|| Replacement::new(state, place, nth, text, How::Cleared, |_| CLEARED.to_string()))
    })?;
    Ok(Some(found).filter(|moves| !moves.is_empty()))
}

/// Message and number of the results of compactable tools, all but the newest.
fn old_results(state: &State) -> Result<HashSet<(usize, usize)>> {
    let tools = &state.settings.compactable_tools;
    let of_tools = answered(state)?.into_iter().filter(|result| tools.contains(&result.tool));
    let mut results: Vec<(usize, usize)> = of_tools.map(|result| (result.index, result.nth)).collect();
    results.truncate(results.len().saturating_sub(state.settings.numbers.layered.keep_recent));
    Ok(results.into_iter().collect())
}
