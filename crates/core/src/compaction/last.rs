//! The last resort of every preset before a prompt overflows: what is too large by itself is stored and previewed, results
//! first, then inputs of calls, then what the user pasted, the newest too. Pinned messages stay word for word.

use super::call::CallCost;
use super::replace::{ends, joined, moves};
use super::replacement::{Move, Replacement};
use super::rung::{Climbed, Run, carry_out};
use crate::context::{Item, Placeholder};
use crate::error::Result;
use crate::log::View;
use crate::order;
use crate::policy::{Rung, Settings, Trigger};

/// The least that a text must take to be previewed, in tokens: a preview takes about half of that.
const LEAST: usize = 200;
/// Parts of the window that a text may take, the mildest first; the last are no more than [`LEAST`].
const PARTS: [usize; 4] = [4, 10, 30, usize::MAX];

/// One part in so many is the least that a prompt loses which the provider refused.
const REFUSED: usize = 20;

/// The largest text that may stay, in tokens.
fn cap(settings: &Settings, part: usize) -> usize {
    (settings.hard_limit / part).max(LEAST)
}

/// What would be stored and previewed so that `excess` tokens less are left, of the messages of which `may` holds: as
/// little and as mildly as that takes, and nothing where all of it is not enough.
fn propose(view: &View, excess: usize, may: &dyn Fn(usize) -> bool) -> Result<Vec<Move>> {
    let mut found = Oversized::default();
    for part in PARTS {
        found = Oversized::of(view, cap(&view.settings, part), may)?;
        // The app's own counter is not to be foreseen.
        if found.frees >= excess && !view.settings.app_counts {
            break;
        }
    }
    if found.frees < excess && !view.settings.app_counts {
        return Ok(Vec::new());
    }
    found.least(view, excess)
}

/// Does so, where that frees `excess` tokens; otherwise it would change the context in vain.
pub(super) async fn shorten(
    run: &Run<'_>,
    excess: usize,
    may: &dyn Fn(usize) -> bool,
    done: &mut Climbed,
) -> Result<()> {
    let edit = carry_out(run, Rung::Admit, &|view| propose(view, excess, may)).await?;
    if edit.indices.is_empty() { Ok(()) } else { done.add(&run.view(), vec![edit], CallCost::default()) }
}

/// The same for all messages, when the prompt takes more than `limit` tokens.
pub(super) async fn shorten_all(run: &Run<'_>, limit: usize, done: &mut Climbed) -> Result<()> {
    let excess = run.tokens().saturating_sub(limit);
    if excess == 0 { Ok(()) } else { shorten(run, excess, &|_| true, done).await }
}

/// The limit for a prompt that is estimated at so many tokens. If the provider refused it, the estimate was too low, and less
/// has to be sent. If less than half of the limit was refused, no estimate is to blame: the app gave a wrong window.
pub(super) fn limit(settings: &Settings, trigger: Trigger, tokens: usize) -> usize {
    let limit = settings.hard_limit;
    match trigger {
        Trigger::Overflow if tokens > limit / 2 => limit.min(tokens - tokens / REFUSED),
        _ => limit,
    }
}

/// The most that it frees of those messages.
pub(crate) fn frees(view: &View, may: &dyn Fn(usize) -> bool) -> Result<usize> {
    Ok(Oversized::of(view, LEAST, may)?.frees)
}

/// What is larger than a cap.
#[derive(Default)]
struct Oversized {
    /// By kind: results, inputs, texts.
    moves: Vec<Vec<Move>>,
    frees: usize,
}

impl Oversized {
    fn of(view: &View, cap: usize, may: &dyn Fn(usize) -> bool) -> Result<Oversized> {
        let may = |item: &Item| item.origin.place().is_some_and(|place| may(place.index));
        let of_kind = |how| {
            moves(view, 0.., how, &may, |piece| {
                (piece.tokens(view) > cap).then(|| match how {
                    Placeholder::Input => Replacement::input(view, piece),
                    _ => Some(Replacement::new(view, piece, how, |reference| {
                        ends(view, reference, piece.text, cap / 2)
                    })),
                })?
            })
        };
        let kinds = [Placeholder::Preview, Placeholder::Input, Placeholder::Text];
        let moves = kinds.into_iter().map(of_kind).collect::<Result<Vec<_>>>()?;
        let frees = moves.iter().flatten().map(|planned| planned.frees(view)).sum::<Result<usize>>()?;
        Ok(Oversized { moves, frees })
    }

    /// The largest of each kind, until enough is freed; one move for a message.
    fn least(self, view: &View, excess: usize) -> Result<Vec<Move>> {
        let (mut freed, all) = (0, view.settings.app_counts);
        let mut chosen = Vec::new();
        for kind in self.moves {
            let blobs = kind.into_iter().flat_map(|Move { at, item, blobs }| {
                blobs.into_iter().map(move |new| (at, item.clone(), new))
            });
            for (at, item, new) in
                order::by_key(blobs.collect(), |(.., new)| u64::MAX - new.blob.bytes as u64)
            {
                if freed >= excess && !all {
                    break;
                }
                freed += new.frees(view, &item)?;
                chosen.push(Move { at, item, blobs: vec![new] });
            }
        }
        Ok(joined(chosen))
    }
}
