//! Results of a source that the model has seen (`X1`): what is read again is told as what changed since, before it was ever
//! sent. What that leans on stays in the context as long as it does (`X2`).

use super::calls::{Answered, answered_in, facts};
use super::replace::moves;
use super::replacement::{Move, Replacement};
use super::shape::lines::unified;
use super::shape::overlap::{LinePlaces, Overlap, numbered, overlap};
use crate::context::{Basis, CallFacts, ExchangePart, Item, Placeholder, RECALL_READ, is_recall};
use crate::error::Result;
use crate::log::View;
use crate::message::Role;
use crate::order;
use crate::wire;
use std::cell::OnceCell;
use std::collections::HashMap;

/// The least that a result takes to be told otherwise, in characters.
const LEAST: usize = 400;
/// Messages before a new one that are looked at.
const WITHIN: usize = 500;
/// Results that lean on one: the next one is whole.
const MOST: usize = 4;
/// Results that have lines in common with one: any of them may be another part of it.
const MOST_PARTS: usize = 16;
/// What telling a change is to save of the whole, in tokens: 40 %.
const SAVES_OF_FIVE: usize = 2;
/// What leaving lines out is to save, in tokens.
const SAVES: usize = 60;

/// Whether there are results that nobody was sent so far (an answer behind one says that it was), and of which one has lines
/// of an earlier one. It is asked before each prompt: the ladder is not climbed, or loaded, for others.
pub(super) fn may_reread(view: &View) -> bool {
    let Some(from) = new_from(view) else { return false };
    let (new, begins) = (view.context.since(from), from.saturating_sub(WITHIN));
    let new: Vec<LinePlaces<'_>> = lines_of(view, new).map(LinePlaces::of).collect();
    let is_like = |lines: &[u64]| new.iter().any(|new| new.is_like(lines));
    !new.is_empty() && lines_of(view, view.context.within(begins..from)).any(is_like)
}

/// The lines of each result of some length and without pictures, as numbers.
fn lines_of<'v>(view: &View, items: &'v [Item]) -> impl Iterator<Item = &'v [u64]> {
    let results = items.iter().filter(|item| item.size.results > 0 && item.body.len() >= LEAST);
    let lines = results.flat_map(|item| {
        let cells = item.exchange(view.format).unwrap_or_default().iter().filter_map(ExchangePart::lines);
        cells.enumerate().map(|(nth, cell)| lines_in(view, item, nth, cell))
    });
    lines.filter(|lines| !lines.is_empty())
}

/// The lines of one of them, which are made once.
fn lines_in<'v>(view: &View, item: &'v Item, nth: usize, cell: &'v OnceCell<Box<[u64]>>) -> &'v [u64] {
    cell.get_or_init(|| {
        let text = text_in(view, item, nth).filter(|text| text.chars().count() >= LEAST);
        text.map_or_else(Box::default, |text| numbered(&text))
    })
}

/// The text of a result; nothing for one that holds more.
fn text_in(view: &View, item: &Item, nth: usize) -> Option<String> {
    let value = wire::parse(0, &item.body).ok()?;
    let message = view.format.wire().read(0, &value).ok()?;
    let result = message.results().nth(nth)?;
    result.media.is_empty().then(|| result.text.to_string())
}

/// Position of the first message behind the last of the model, where one of them holds a result and what is read again may
/// be told so.
fn new_from(view: &View) -> Option<usize> {
    if !(view.settings.rereads && view.references.recalls) {
        return None;
    }
    let mut found = None;
    for (at, item) in view.context.newest() {
        if item.size.role == Role::Assistant {
            return found.map(|_| at + 1);
        }
        found = found.or((item.size.results > 0).then_some(at));
    }
    None
}

/// What would be told as what changed, but for results that `others` replace.
pub(super) fn propose(view: &View, others: &[Move]) -> Result<Vec<Move>> {
    let Some(from) = new_from(view) else { return Ok(Vec::new()) };
    // However long the context is, a call looks at so much of it.
    let begins = from.saturating_sub(WITHIN);
    let within = view.context.since(begins);
    let new = within.iter().skip(from - begins).find_map(|item| item.origin.place());
    let first = new.map_or(usize::MAX, |place| place.index);
    let replaced = others.iter().flat_map(|planned| &planned.blobs);
    let replaced = replaced.map(|new| (new.blob.index, new.blob.offload.nth)).collect();
    let leaning = within.iter().flat_map(|item| item.origin.bases()).collect();
    let placed = within.iter().enumerate();
    let positions = placed.filter_map(|(at, item)| Some((item.origin.place()?.index, begins + at))).collect();
    let results = answered_in(view, within)?;
    let mut known = KnownResults { view, results, positions, first, replaced, leaning };
    let is_new = |item: &Item| item.origin.place().is_some_and(|place| place.index >= first);
    moves(view, from.., Placeholder::Difference, &is_new, |piece| {
        let result = (piece.place.index, piece.nth);
        if piece.text.chars().count() < LEAST || known.replaced.contains(&result) {
            return None;
        }
        // One with a picture, too, is more than its text.
        known.text(result)?;
        let (estimator, whole) = (view.settings.estimator, piece.tokens(view));
        // A reference is as long as any other.
        let saved =
            |told: &RereadResult| whole.saturating_sub(estimator.text(&told.write(view, &"x".repeat(30))));
        let changed =
            known.changed(result, piece.text).filter(|told| 5 * saved(told) >= SAVES_OF_FIVE * whole);
        let told =
            changed.or_else(|| known.overlapping(result, piece.text).filter(|told| saved(told) >= SAVES))?;
        let basis = told.basis;
        known.leaning.push(basis);
        known.replaced.push(result);
        let write = |reference: &str| told.write(view, reference);
        let mut new = Replacement::new(view, piece, Placeholder::Difference, write);
        new.blob.offload.basis = Some(basis);
        Some(new)
    })
}

/// How a result is told.
struct RereadResult {
    /// What it leans on.
    basis: Basis,
    /// What is said of that.
    what: String,
    /// What is not in that, as it is shown; empty where that is nothing.
    rest: String,
}

impl RereadResult {
    fn write(&self, view: &View, reference: &str) -> String {
        let mut text = format!("[{}", self.what);
        if view.references.named {
            text += &format!("; all of this one is at: {reference}");
        }
        if view.references.by_model {
            text += &format!(" (read it with {RECALL_READ})");
        }
        text += "]";
        if !self.rest.is_empty() {
            text += "\n";
            text += &self.rest;
        }
        text
    }
}

/// The results of the context, and what becomes of them.
struct KnownResults<'v> {
    view: &'v View,
    results: Vec<Answered>,
    /// Where each message of the app is in the context, by its index.
    positions: HashMap<usize, usize>,
    /// Index of the first message that nobody was sent.
    first: usize,
    /// Results that do not stay as they are.
    replaced: Vec<(usize, usize)>,
    /// What is leaned on, once for each that does.
    leaning: Vec<Basis>,
}

impl<'v> KnownResults<'v> {
    /// What a new result can lean on, and what both are named by: the newest of its source that stands word for word, and on
    /// which few lean so far. Nothing where the name could mean another result than that.
    fn basis(&self, result: (usize, usize)) -> Option<(Basis, String)> {
        let at = self.results.iter().position(|other| (other.index, other.nth) == result)?;
        let own = self.results.get(at).filter(|own| !own.is_error && !is_recall(&own.call.name))?;
        let CallFacts { source, named: name, .. } = facts(&own.call);
        if name.is_empty() {
            return None;
        }
        for other in self.results.get(..at)?.iter().rev() {
            let others = facts(&other.call);
            let is_own = others.source == *source;
            if !is_own && others.named != *name {
                continue;
            }
            let item = self.item(other.index)?;
            let is_replaced = item.origin.is_replaced(Placeholder::Difference, other.nth)
                || item.origin.lacks_media()
                || self.replaced.contains(&(other.index, other.nth));
            if is_own && is_replaced {
                continue;
            }
            // One that comes with it may still become another; one that failed, or is not sent, is none to compare with.
            if !is_own || other.index >= self.first || other.is_error || !self.is_sent(other) {
                return None;
            }
            let basis = Basis { seq: item.origin.place()?.seq, index: other.index, nth: other.nth };
            let lean = self.leaning.iter().filter(|of| **of == basis).count();
            return (lean < MOST).then(|| (basis, name.clone()));
        }
        None
    }

    /// A result as what changed since the one of the same call.
    fn changed(&self, result: (usize, usize), text: &str) -> Option<RereadResult> {
        let (basis, name) = self.basis(result)?;
        let old = self.text((basis.index, basis.nth))?;
        let rest = if old == text { String::new() } else { unified(&old, text)? };
        let what = if rest.is_empty() { "Unchanged since" } else { "A unified diff against" };
        Some(RereadResult {
            basis,
            what: format!("{what} the last result of {name} above that is whole"),
            rest,
        })
    }

    /// A result without the lines that an earlier one has: another part of a file, or the same text by another call.
    fn overlapping(&self, result: (usize, usize), text: &str) -> Option<RereadResult> {
        let at = self.results.iter().position(|other| (other.index, other.nth) == result)?;
        let own = self.results.get(at).filter(|own| !own.is_error && !is_recall(&own.call.name))?;
        let source = &facts(&own.call).source;
        let places = LinePlaces::of(self.lines(result)?);
        let mut found: Vec<(usize, Basis, &Answered)> = Vec::new();
        for other in self.results.get(..at)?.iter().rev() {
            let is_new = other.index >= self.first;
            if is_new || other.is_error || is_recall(&other.call.name) {
                continue;
            }
            let Some(item) = self.item(other.index) else { continue };
            let is_replaced = item.origin.is_replaced(Placeholder::Difference, other.nth)
                || self.replaced.contains(&(other.index, other.nth));
            let Some(seq) = item.origin.place().map(|place| place.seq).filter(|_| !is_replaced) else {
                continue;
            };
            let basis = Basis { seq, index: other.index, nth: other.nth };
            let lean = self.leaning.iter().filter(|of| **of == basis).count();
            let count = self.lines((other.index, other.nth)).map_or(0, |lines| places.in_common(lines));
            // Now and then what the same call answers is whole.
            let most = if facts(&other.call).source == *source { MOST } else { MOST_PARTS };
            if count > 0 && lean < most {
                found.push((count, basis, other));
            }
        }
        let (_, basis, other) = order::by_key(found, |(count, ..)| u64::MAX - *count as u64)
            .into_iter()
            .find(|(.., other)| self.is_sent(other))?;
        let Overlap { text: rest, renumbered } = overlap(text, &self.text((basis.index, basis.nth))?)?;
        let CallFacts { named: name, .. } = facts(&other.call);
        let name = if name.is_empty() { &*other.call.name } else { name };
        let but = if renumbered { " but for the numbers in front" } else { "" };
        let what =
            format!("Lines that are left out here stand word for word{but} in a result of {name} above");
        Some(RereadResult { basis, what, rest })
    }

    /// The lines of a result as numbers.
    fn lines(&self, (index, nth): (usize, usize)) -> Option<&'v [u64]> {
        let item = self.item(index)?;
        let mut cells = item.exchange(self.view.format).ok()?.iter().filter_map(ExchangePart::lines);
        Some(lines_in(self.view, item, nth, cells.nth(nth)?))
    }

    /// A message of the context.
    fn item(&self, index: usize) -> Option<&'v Item> {
        self.view.context.get(*self.positions.get(&index)?)
    }

    /// True for a result of an exchange that is whole: of others not all is sent.
    fn is_sent(&self, result: &Answered) -> bool {
        let at = |index| self.positions.get(&index).copied();
        let (Some(from), Some(to)) = (at(result.call_at.0), at(result.index)) else { return false };
        let calls = self.view.context.get(from).map(|item| item.size.calls);
        let answers = self.results.iter().filter(|other| other.call_at.0 == result.call_at.0).count();
        let mut between = self.view.context.within(from + 1..to).iter();
        calls == Some(answers)
            && between.all(|item| item.size.results > 0 || item.size.role == Role::Assistant)
    }

    /// The text of a result that stands in the context; nothing for one that holds more.
    fn text(&self, (index, nth): (usize, usize)) -> Option<String> {
        text_in(self.view, self.item(index)?, nth)
    }
}
