//! Micro-compaction (`S3.1`): old results of some tools are cleared; the calls stay, so that the model knows what it did, where
//! the preset or an option says so without the long texts of their inputs.

use super::calls::{Answered, answered};
use super::replace::{joined, moves};
use super::replacement::{Move, Replaceable, Replacement};
use super::rung::{MOVES_LATER, RungSpec, RungWork};
use super::superseded::{ResultStanding, standings};
use crate::context::{Item, Offload, Place, Placeholder, Totals};
use crate::error::Result;
use crate::log::View;
use crate::message::Role;
use crate::policy::cost::{Rates, calls_expected, clearing_saves, fetched_again};
use crate::policy::{LayeredNumbers, Rung, Trigger};
use std::collections::{BTreeSet, HashMap};

/// What stands where a cleared result was.
const CLEARED: &str = "[Output compacted - re-read if needed]";

/// The newest results stay, so many, also of those that tell nothing any more.
const FRESH: usize = 3;

/// Every turn, whatever the size of the context, or when it pays; a manual compaction summarises only.
pub(super) const RUNG: RungSpec = RungSpec {
    rung: Rung::Clear,
    fires: |view, run, _| !run.trigger.is_wish() && run.trigger != Trigger::None && may_clear(view),
    work: RungWork::Moves(propose, most),
    idle: |trigger| match trigger {
        Trigger::Manual | Trigger::Model => Some(MOVES_LATER),
        _ => Some("no old tool result is left to clear"),
    },
};

/// What would be cleared: of the results of the compactable tools all but the newest `keepRecent`, when they are larger
/// than `clearMinTokens`. Those that tell nothing any more go first, the newest state of the files in work goes last (`X3`).
fn propose(view: &View) -> Result<Vec<Move>> {
    let old = old_results(view)?;
    let all = all_of(view, &old)?;
    let is_kept = |(_, standing): &&(Answered, ResultStanding)| *standing == ResultStanding::InWork;
    if view.settings.numbers.layered.every_turn {
        return Ok(all);
    } else if !old.iter().any(|result| is_kept(&result)) {
        return what_pays(view, all);
    }
    let first = Leaving::of(view, old.iter().filter(|result| !is_kept(result)));
    let found: Vec<_> = all.iter().filter_map(|planned| first.part_of(planned)).collect();
    if !view.usage.is_due {
        return what_pays(view, found);
    }
    let freed = found.iter().map(|planned| planned.frees(view)).sum::<Result<usize>>()?;
    let is_enough = view.usage.after(0, freed) <= view.settings.threshold.tokens;
    Ok(if is_enough { found } else { all })
}

/// What it may ever clear.
fn most(view: &View) -> Result<Vec<Move>> {
    all_of(view, &old_results(view)?)
}

/// What it may clear of these results.
fn all_of(view: &View, old: &[(Answered, ResultStanding)]) -> Result<Vec<Move>> {
    let numbers = view.settings.numbers.layered;
    if old.is_empty() {
        return Ok(Vec::new());
    }
    let is_large = |piece: Replaceable<'_>| piece.tokens(view) > numbers.clear_min_tokens;
    let leaving = Leaving::of(view, old);
    let since: HashMap<_, _> = old
        .iter()
        .filter_map(|(result, standing)| Some(((result.index, result.nth), standing.since()?)))
        .collect();
    let leaves = |item: &Item| holds(item, &leaving.results);
    let mut found = moves(view, 0.., Placeholder::Cleared, &leaves, |piece| {
        let of = (piece.place.index, piece.nth);
        let clears = leaving.results.contains(&of) && is_large(piece);
        clears.then(|| match view.settings.preset.stubs {
            true => Replacement::stub(view, piece, since.get(&of).copied()),
            false => Replacement::new(view, piece, Placeholder::Cleared, |_| CLEARED.to_string()),
        })
    })?;
    if numbers.clear_inputs {
        let calls = |item: &Item| holds(item, &leaving.calls);
        found.extend(moves(view, 0.., Placeholder::Input, &calls, |piece| {
            let clears = leaving.calls.contains(&(piece.place.index, piece.nth)) && is_large(piece);
            clears.then(|| Replacement::input(view, piece))?
        })?);
    }
    Ok(joined(found))
}

/// Results that leave together, and the calls that they answer: the index of a message, and which one of it.
struct Leaving {
    results: BTreeSet<(usize, usize)>,
    calls: BTreeSet<(usize, usize)>,
}

/// True for a message that one of these is in.
fn holds(item: &Item, these: &BTreeSet<(usize, usize)>) -> bool {
    item.origin
        .place()
        .is_some_and(|Place { index, .. }| these.range((index, 0)..(index + 1, 0)).next().is_some())
}

impl Leaving {
    /// Of these results those that no other leans on which stays.
    fn of<'r>(view: &View, old: impl IntoIterator<Item = &'r (Answered, ResultStanding)>) -> Leaving {
        let (mut results, calls): (BTreeSet<_>, _) =
            old.into_iter().map(|(result, _)| ((result.index, result.nth), result.call_at)).unzip();
        let leaning = view.context.totals().leaning > 0;
        for item in if leaning { view.items() } else { &[] } {
            for Offload { nth, basis, .. } in item.origin.offloads() {
                let index = item.origin.place().map_or(0, |place| place.index);
                if let Some(basis) = basis.filter(|_| !results.contains(&(index, *nth))) {
                    results.remove(&(basis.index, basis.nth));
                }
            }
        }
        Leaving { results, calls }
    }

    /// What of a move is of these.
    fn part_of(&self, planned: &Move) -> Option<Move> {
        let mut planned = planned.clone();
        planned.blobs.retain(|Replacement { blob, .. }| {
            let of = (blob.index, blob.offload.nth);
            if blob.offload.how == Placeholder::Input {
                self.calls.contains(&of)
            } else {
                self.results.contains(&of)
            }
        });
        (!planned.blobs.is_empty()).then_some(planned)
    }
}

/// False when nothing would be cleared even if nothing stood in the place of what is: no message has to be read to know,
/// which is what most steps of a session come to.
pub(super) fn may_clear(view: &View) -> bool {
    let LayeredNumbers { keep_recent, every_turn, .. } = view.settings.numbers.layered;
    let Totals { results, clearable: mut before, .. } = view.context.totals();
    let keep_recent = if every_turn { keep_recent } else { keep_recent.min(FRESH) };
    if results <= keep_recent || (!every_turn && !view.usage.may_reduce) {
        return false;
    }
    let (mut recent, mut paying) = (0, ClearGain::new(view));
    // As a rule all that is long enough is among the newest: nothing before that need be looked at.
    for (at, item) in view.context.newest() {
        if before == 0 {
            break;
        }
        before = before.saturating_sub(item.size.clearable);
        recent += item.size.results;
        // The newest results stay, whatever tools they are of.
        if recent > keep_recent && item.size.clearable > 0 {
            paying.clear(at, item.size.clearable);
            if every_turn || paying.best > 0 || view.usage.is_due {
                return true;
            }
        }
    }
    false
}

/// Of what could be cleared, the batch that saves most, or nothing. Clearing makes the provider write the `s` tokens behind
/// the first that is cleared to its cache again, and saves reading each result at the calls that are still to come: as many
/// are expected for it as have read it since it was one of the newest, so that clearing costs no more than waiting did
/// (`n > (write − read) × s / (read × c)`, and results go in batches). Where prices decide, no more are expected than come
/// before the next summary, and what is fetched again counts. A session that is full clears everything: it would summarise
/// otherwise.
fn what_pays(view: &View, found: Vec<Move>) -> Result<Vec<Move>> {
    if view.usage.is_due {
        return Ok(found);
    }
    let (mut paying, mut from) = (ClearGain::new(view), found.len());
    for (nth, planned) in found.iter().enumerate().rev() {
        if paying.clear(planned.at, planned.frees(view)?) {
            from = nth;
        }
    }
    Ok(found.into_iter().skip(from).collect())
}

/// What a batch saves that begins at some message, from the last to the first.
struct ClearGain<'s> {
    view: &'s View,
    rates: Rates,
    /// The first message that was looked at.
    end: usize,
    behind: usize,
    freed: usize,
    answers: usize,
    read: u64,
    /// What the best batch saves.
    best: i128,
}

impl<'s> ClearGain<'s> {
    fn new(view: &'s View) -> Self {
        let LayeredNumbers { cache_read, cache_write, .. } = view.settings.numbers.layered;
        let rates = Rates::of(1.0, 0.0, cache_read, cache_write);
        let end = view.context.len();
        ClearGain { view, rates, end, behind: 0, freed: 0, answers: 0, read: 0, best: 0 }
    }

    /// The batch clears `frees` tokens of the message at `at` too; true when it saves more than any that was shorter.
    fn clear(&mut self, at: usize, frees: usize) -> bool {
        let between = self.view.context.within(at..self.end);
        self.behind += between.iter().map(|item| item.size.tokens).sum::<usize>();
        self.answers += between.iter().filter(|item| item.size.role == Role::Assistant).count();
        self.end = at;
        self.freed += frees;
        let keep_recent = self.view.settings.numbers.layered.keep_recent;
        let expected = calls_expected(self.answers.saturating_sub(keep_recent), self.view.usage.calls_left);
        self.read += frees as u64 * expected;
        // The law of the published thresholds knows nothing of that, the rule by prices does.
        let again = self.view.usage.calls_left.map_or(0, |_| fetched_again(self.freed));
        let behind = self.behind.saturating_sub(self.freed);
        let saves = clearing_saves(self.rates, self.read, behind, again);
        let is_best = saves > self.best;
        self.best = self.best.max(saves);
        is_best
    }
}

/// The results of compactable tools, all but the newest.
fn old_results(view: &View) -> Result<Vec<(Answered, ResultStanding)>> {
    let all = answered(view)?;
    let standings = standings(&all, &view.settings.tool_policies);
    let tools = &view.settings.compactable_tools;
    let is_of_tools = |tool: &str| tools.as_ref().is_none_or(|tools| tools.iter().any(|of| of == tool));
    let mut results: Vec<_> =
        all.into_iter().zip(standings).filter(|(result, _)| is_of_tools(&result.call.tool)).collect();
    let LayeredNumbers { keep_recent, .. } = view.settings.numbers.layered;
    let older_than = |newest: usize| results.len().saturating_sub(newest);
    let (old, fresh) = (older_than(keep_recent), older_than(keep_recent.min(FRESH)));
    let mut nth = 0;
    results.retain(|(_, standing)| {
        nth += 1;
        nth <= old || (nth <= fresh && matches!(standing, ResultStanding::Superseded(_)))
    });
    Ok(results)
}
