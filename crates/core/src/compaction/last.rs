//! The last resort of every preset before a prompt overflows: what is too large by itself is stored and previewed, results
//! first, then inputs of calls, then what the user pasted, the newest too. Pinned messages stay word for word.

use super::call::CallCost;
use super::replace::{Move, Replacement, input_moves, moves, text_moves};
use super::rung::{Climbed, Run, carry_out};
use crate::error::Result;
use crate::log::{SessionGuard, State};
use crate::order;
use crate::policy::{Rung, Settings};
use crate::step::Io;
use std::collections::HashMap;

/// The least that a text must take to be previewed, in tokens: a preview takes about half of that.
const LEAST: usize = 200;
/// Parts of the window that a text may take, the mildest first; the last are no more than [`LEAST`].
const PARTS: [usize; 4] = [4, 10, 30, usize::MAX];

/// The largest text that may stay, in tokens.
fn cap(settings: &Settings, part: usize) -> usize {
    (settings.hard_limit / part).max(LEAST)
}

/// What would be stored and previewed so that `excess` tokens less are left, of the messages of which `may` holds: as
/// little and as mildly as that takes, and nothing where all of it is not enough.
fn propose(state: &State, excess: usize, may: &dyn Fn(usize) -> bool) -> Result<Vec<Move>> {
    let mut found = Oversized::default();
    for part in PARTS {
        found = Oversized::of(state, cap(&state.settings, part), may)?;
        // The app's own counter is not to be foreseen.
        if found.frees >= excess && !state.settings.app_counts {
            break;
        }
    }
    if found.frees < excess && !state.settings.app_counts {
        return Ok(Vec::new());
    }
    Ok(found.least(state, excess))
}

/// Does so, where that frees `excess` tokens; otherwise it would change the context in vain.
pub(super) async fn shorten(
    io: &Io,
    held: &SessionGuard,
    run: &Run<'_>,
    (excess, may): (usize, &dyn Fn(usize) -> bool),
    done: &mut Climbed,
) -> Result<()> {
    let edit = carry_out(io, held, Rung::Admit, run.trigger, &|state| propose(state, excess, may)).await?;
    if edit.indices.is_empty() { Ok(()) } else { done.add(held, vec![edit], CallCost::default()) }
}

/// The same for all messages, when the prompt does not fit.
pub(super) async fn shorten_all(
    io: &Io,
    held: &SessionGuard,
    run: &Run<'_>,
    done: &mut Climbed,
) -> Result<()> {
    let excess = held.tokens().saturating_sub(held.settings().hard_limit);
    if excess == 0 { Ok(()) } else { shorten(io, held, run, (excess, &|_| true), done).await }
}

/// The most that it frees of those messages.
pub(crate) fn frees(state: &State, may: &dyn Fn(usize) -> bool) -> Result<usize> {
    Ok(Oversized::of(state, LEAST, may)?.frees)
}

/// What is larger than a cap.
#[derive(Default)]
struct Oversized {
    /// By kind: results, inputs, texts.
    moves: [Vec<Move>; 3],
    frees: usize,
}

impl Oversized {
    fn of(state: &State, cap: usize, may: &dyn Fn(usize) -> bool) -> Result<Oversized> {
        let estimator = state.settings.estimator;
        let may = |index: usize| may(index) && !state.is_pinned(index);
        let is_large = |text: &str| estimator.text(text) > cap;
        let results = moves(state, usize::MAX, |_, place, (nth, text)| {
            let large = may(place.index) && is_large(text);
            large.then(|| Replacement::preview(state, place, nth, text, cap / 2))
        })?;
        let inputs = input_moves(state, |place, (nth, input)| {
            let large = may(place.index) && is_large(input);
            large.then(|| Replacement::input(state, place, nth, input))?
        })?;
        let texts = text_moves(state, |place, (nth, text)| {
            let large = may(place.index) && is_large(text);
            large.then(|| Replacement::text(state, place, nth, text, cap / 2))
        })?;
        let mut found = Oversized { moves: [results, inputs, texts], frees: 0 };
        found.frees = found.moves.iter().flatten().map(|planned| saves(state, planned)).sum();
        Ok(found)
    }

    /// The largest of each kind, until enough is freed; one move for a message.
    fn least(self, state: &State, excess: usize) -> Vec<Move> {
        let (mut freed, all) = (0, state.settings.app_counts);
        let mut chosen: HashMap<usize, Move> = HashMap::new();
        for kind in self.moves {
            let blobs = kind.into_iter().flat_map(|Move { at, item, blobs }| {
                blobs.into_iter().map(move |blob| Move { at, item: item.clone(), blobs: vec![blob] })
            });
            let size = |planned: &Move| planned.blobs.iter().map(|blob| blob.blob.text.len()).sum::<usize>();
            for planned in order::by_key(blobs.collect(), |planned| u64::MAX - size(planned) as u64) {
                if freed >= excess && !all {
                    break;
                }
                freed += saves(state, &planned);
                match chosen.get_mut(&planned.at) {
                    Some(one) => one.blobs.extend(planned.blobs),
                    None => {
                        chosen.insert(planned.at, planned);
                    }
                }
            }
        }
        order::by_key(chosen.into_values().collect(), |planned| planned.at as u64)
    }
}

/// Tokens that a move frees, by the estimate.
fn saves(state: &State, planned: &Move) -> usize {
    let tokens = |text: &str| state.settings.estimator.text(text);
    planned.blobs.iter().map(|new| tokens(&new.blob.text).saturating_sub(tokens(&new.text))).sum()
}
