//! Micro-compaction (`S3.1`): old results of some tools are cleared; the calls stay, so that the model knows what it did.

use super::replace::{Move, Replacement, moves};
use crate::error::Result;
use crate::message::Part;
use crate::plan::Trigger;
use crate::session::{How, State};
use crate::wire;
use std::collections::{HashMap, HashSet};

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
    let mut waiting: HashMap<String, Vec<bool>> = HashMap::new();
    let mut results = Vec::new();
    for item in state.context.items() {
        let Some(place) = item.origin.place() else { continue };
        let value = wire::parse(place.index, &item.body)?;
        let message = state.format().wire().read(place.index, &value)?;
        let mut nth = 0;
        // Calls and results are paired by order, because ids repeat across turns.
        for part in &message.parts {
            match part {
                Part::ToolCall(call) => {
                    let compactable = tools.contains(&call.name.to_lowercase());
                    waiting.entry(call.id.to_string()).or_default().push(compactable);
                }
                Part::ToolResult(result) => {
                    if waiting.get_mut(result.call_id.as_ref()).and_then(Vec::pop) == Some(true) {
                        results.push((place.index, nth));
                    }
                    nth += 1;
                }
                _ => {}
            }
        }
    }
    results.truncate(results.len().saturating_sub(state.settings.numbers.layered.keep_recent));
    Ok(results.into_iter().collect())
}
