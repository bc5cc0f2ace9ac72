//! Results of a source that the model has seen (`X1`): what is read again is told as what changed since, before it was ever
//! sent. What that leans on stays in the context as long as it does (`X2`).

use super::calls::{Answered, answered, facts};
use super::replace::{Move, Replacement, moves};
use super::shape::lines::unified;
use crate::context::{Basis, CallFacts, Item, Placeholder, RECALL_READ, is_recall};
use crate::error::Result;
use crate::log::View;
use crate::message::Role;
use crate::wire;

/// The least that a result takes to be told otherwise, in characters.
const LEAST: usize = 400;
/// Results that lean on one: the next one is whole.
const MOST: usize = 4;
/// What it may take of the whole, in tokens: 60 %.
const MOST_OF_FIVE: usize = 3;

/// Whether there are results that nobody was sent so far: an answer behind one says that it was.
pub(super) fn may_reread(view: &View) -> bool {
    let is_on = view.settings.rereads && view.references.recalls;
    is_on && new_from(view).is_some()
}

/// Position of the first message behind the last of the model, where one of them holds a result.
fn new_from(view: &View) -> Option<usize> {
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
    let Some(from) = new_from(view).filter(|_| may_reread(view)) else { return Ok(Vec::new()) };
    let new = view.context.since(from).iter().find_map(|item| item.origin.place());
    let first = new.map_or(usize::MAX, |place| place.index);
    let replaced = others.iter().flat_map(|planned| &planned.blobs);
    let replaced = replaced.map(|new| (new.blob.index, new.blob.offload.nth)).collect();
    let leaning = view.items().iter().flat_map(|item| item.origin.bases()).collect();
    let mut known = KnownResults { view, results: answered(view)?, first, replaced, leaning };
    let is_new = |item: &Item| item.origin.place().is_some_and(|place| place.index >= first);
    moves(view, usize::MAX, Placeholder::Difference, &is_new, |piece| {
        let result = (piece.place.index, piece.nth);
        if piece.text.chars().count() < LEAST {
            return None;
        }
        let (basis, told) = known.basis(result)?;
        let old = known.text((basis.index, basis.nth))?;
        // One with a picture, too, is more than its text.
        known.text(result)?;
        let changed = match old == piece.text {
            true => String::new(),
            false => unified(&old, piece.text)?,
        };
        let write = |reference: &str| {
            let what = if changed.is_empty() { "Unchanged since" } else { "A unified diff against" };
            let mut text = format!("[{what} the last result of {told} above that is whole");
            if view.references.named {
                text += &format!("; all of this one is at: {reference}");
            }
            if view.references.by_model {
                text += &format!(" (read it with {RECALL_READ})");
            }
            text += "]";
            if !changed.is_empty() {
                text += "\n";
                text += &changed;
            }
            text
        };
        let estimator = view.settings.estimator;
        // A reference is as long as any other.
        let (short, whole) = (estimator.text(&write(&"x".repeat(30))), estimator.text(piece.text));
        if 5 * short > MOST_OF_FIVE * whole {
            return None;
        }
        known.leaning.push(basis);
        known.replaced.push(result);
        let mut new = Replacement::new(&view.references, piece, Placeholder::Difference, write);
        new.blob.offload.basis = Some(basis);
        Some(new)
    })
}

/// The results of the context, and what becomes of them.
struct KnownResults<'v> {
    view: &'v View,
    results: Vec<Answered>,
    /// Index of the first message that nobody was sent.
    first: usize,
    /// Results that do not stay as they are.
    replaced: Vec<(usize, usize)>,
    /// What is leaned on, once for each that does.
    leaning: Vec<Basis>,
}

impl KnownResults<'_> {
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
            let item = self.view.context.get(self.position(other.index)?)?;
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

    /// Where a message is in the context.
    fn position(&self, index: usize) -> Option<usize> {
        let is_it = |item: &Item| item.origin.place().is_some_and(|place| place.index == index);
        self.view.items().iter().position(is_it)
    }

    /// True for a result of an exchange that is whole: of others not all is sent.
    fn is_sent(&self, result: &Answered) -> bool {
        let (Some(from), Some(to)) = (self.position(result.call_at.0), self.position(result.index)) else {
            return false;
        };
        let calls = self.view.context.get(from).map(|item| item.size.calls);
        let answers = self.results.iter().filter(|other| other.call_at.0 == result.call_at.0).count();
        let mut between = self.view.context.within(from + 1..to).iter();
        calls == Some(answers)
            && between.all(|item| item.size.results > 0 || item.size.role == Role::Assistant)
    }

    /// The text of a result that stands in the context; nothing for one that holds more.
    fn text(&self, (index, nth): (usize, usize)) -> Option<String> {
        let item = self.view.context.get(self.position(index)?)?;
        let value = wire::parse(index, &item.body).ok()?;
        let message = self.view.format.wire().read(index, &value).ok()?;
        let result = message.results().nth(nth)?;
        result.media.is_empty().then(|| result.text.to_string())
    }
}
