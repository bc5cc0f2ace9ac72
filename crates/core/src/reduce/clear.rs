//! Micro-compaction (`S3.1`): old results of some tools are cleared; the calls stay, so that the model knows what it did.

use super::calls::answered;
use super::replace::{Move, Replacement, moves};
use crate::error::Result;
use crate::message::Role;
use crate::plan::cost::{Rates, clearing_saves};
use crate::plan::{LayeredNumbers, Trigger};
use crate::session::{How, State};
use std::collections::HashSet;

/// What stands where a cleared result was.
const CLEARED: &str = "[Output compacted - re-read if needed]";

/// What would be cleared: of the results of the compactable tools all but the newest `keepRecent`, when they are larger
/// than `clearMinTokens`. Every turn, whatever the size of the context, or when it pays; a manual compaction summarises
/// only.
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
        clears.then(|| {
            if state.settings.preset.stubs {
                return Replacement::stub(state, place, nth, text);
            }
            Replacement::new(state, place, nth, text, How::Cleared, |_| CLEARED.to_string())
        })
    })?;
    let pays = if numbers.every_turn { found } else { what_pays(state, found) };
    Ok(Some(pays).filter(|moves| !moves.is_empty()))
}

/// Of what could be cleared, the batch that saves most, or nothing. Clearing makes the provider write the `s` tokens behind
/// the first that is cleared to its cache again, and saves reading each result at the calls that are still to come: as many
/// are expected for it as have read it since it was one of the newest, so that clearing costs no more than waiting did
/// (`n > (write − read) × s / (read × c)`, and results go in batches). A session that is full clears everything: it would
/// summarise otherwise.
fn what_pays(state: &State, found: Vec<Move>) -> Vec<Move> {
    if state.is_due() {
        return found;
    }
    let LayeredNumbers { cache_read, cache_write, keep_recent, .. } = state.settings.numbers.layered;
    let rates = Rates::of(1.0, 0.0, cache_read, cache_write);
    let items = state.context.items();
    let (mut behind, mut freed, mut end) = (0_usize, 0_usize, items.len());
    let (mut answers, mut read) = (0_usize, 0_u64);
    let (mut best, mut from) = (0, found.len());
    for (nth, planned) in found.iter().enumerate().rev() {
        let between = items.get(planned.at..end).unwrap_or_default();
        behind += between.iter().map(|item| item.size.tokens).sum::<usize>();
        answers += between.iter().filter(|item| item.size.role == Role::Assistant).count();
        end = planned.at;
        let frees = planned.blobs.iter().map(|blob| tokens_freed(state, blob)).sum::<usize>();
        freed += frees;
        read += frees as u64 * answers.saturating_sub(keep_recent) as u64;
        let saves = clearing_saves(rates, read, behind.saturating_sub(freed));
        if saves > best {
            (best, from) = (saves, nth);
        }
    }
    found.into_iter().skip(from).collect()
}

fn tokens_freed(state: &State, replacement: &Replacement) -> usize {
    let estimator = state.settings.estimator;
    estimator.text(&replacement.blob.text).saturating_sub(estimator.text(&replacement.text))
}

/// Message and number of the results of compactable tools, all but the newest.
fn old_results(state: &State) -> Result<HashSet<(usize, usize)>> {
    let tools = &state.settings.compactable_tools;
    let of_tools = answered(state)?.into_iter().filter(|result| tools.contains(&result.tool));
    let mut results: Vec<(usize, usize)> = of_tools.map(|result| (result.index, result.nth)).collect();
    results.truncate(results.len().saturating_sub(state.settings.numbers.layered.keep_recent));
    Ok(results.into_iter().collect())
}
