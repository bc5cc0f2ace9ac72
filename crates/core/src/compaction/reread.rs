//! Results of a source that the model has seen (`X1`): what is read again is told as what changed since, before it was ever
//! sent. What that leans on stays in the context as long as it does (`X2`).

use super::calls::{Answered, answered};
use super::replace::{Move, Replacement, moves};
use super::shape::lines::unified;
use crate::context::{Basis, Placeholder, RECALL_READ, is_recall};
use crate::error::Result;
use crate::log::View;
use crate::message::{Role, ToolCall};
use crate::summary::keep::called;
use crate::wire;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The least that a result takes to be told otherwise, in characters.
const LEAST: usize = 400;
/// Results that lean on one: the next one is whole.
const MOST: usize = 4;
/// What it may take of the whole, in tokens: 60 %.
const MOST_OF_FIVE: usize = 3;

/// Arguments that say how a tool is called, and not what it looks at.
const BESIDE: [&str; 8] = [
    "description",
    "explanation",
    "justification",
    "thought",
    "timeout",
    "timeout_ms",
    "yield_time_ms",
    "max_output_tokens",
];

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
    let replaced: HashSet<(usize, usize)> = others
        .iter()
        .flat_map(|planned| &planned.blobs)
        .map(|new| (new.blob.index, new.blob.offload.nth))
        .collect();
    let mut known = Known::of(view, from)?;
    moves(view, usize::MAX, Placeholder::Difference, |piece| {
        let result = (piece.place.index, piece.nth);
        let may =
            known.new.contains(&result) && !replaced.contains(&result) && !view.is_pinned(piece.place.index);
        let basis = if may { known.basis(view, result, &replaced)? } else { return None };
        if piece.text.chars().count() < LEAST {
            return None;
        }
        let told = known.name(result, basis)?;
        let old = known.text(view, (basis.index, basis.nth))?;
        // One with a picture, too, is more than its text.
        known.text(view, result)?;
        let changed = match old == piece.text {
            true => String::new(),
            false => unified(&old, piece.text)?,
        };
        let write = |reference: &str| {
            let what = match changed.is_empty() {
                true => "Unchanged since",
                false => "A unified diff against",
            };
            let tool = if view.references.by_model {
                format!(" (read it with {RECALL_READ})")
            } else {
                String::new()
            };
            let head = format!(
                "[{what} the last result of {told} above that is whole; all of this one is at: {reference}{tool}]"
            );
            if changed.is_empty() { head } else { format!("{head}\n{changed}") }
        };
        let estimator = view.settings.estimator;
        // A reference is as long as any other.
        let (short, whole) = (estimator.text(&write(&"x".repeat(30))), estimator.text(piece.text));
        if 5 * short > MOST_OF_FIVE * whole {
            return None;
        }
        *known.leaning.entry((basis.seq, basis.nth)).or_default() += 1;
        let mut new = Replacement::new(&view.references, piece, Placeholder::Difference, write);
        new.blob.offload.basis = Some(basis);
        Some(new)
    })
}

/// The results of the context, and what they are of.
struct Known {
    /// Those that nobody was sent: index of the message, and which result of it.
    new: HashSet<(usize, usize)>,
    /// Of each source the results before those, oldest first.
    sources: HashMap<String, Vec<(usize, usize)>>,
    source_of: HashMap<(usize, usize), String>,
    /// All of them in order, with their calls.
    calls: Vec<((usize, usize), ToolCall<'static>)>,
    /// How many lean on each.
    leaning: HashMap<(u64, usize), usize>,
    /// Where messages are, by their index.
    positions: HashMap<usize, usize>,
}

impl Known {
    fn of(view: &View, from: usize) -> Result<Known> {
        let mut positions = HashMap::new();
        let mut leaning = HashMap::new();
        for (at, item) in view.items().iter().enumerate() {
            positions.extend(item.origin.place().map(|place| (place.index, at)));
            for basis in item.origin.bases() {
                *leaning.entry((basis.seq, basis.nth)).or_default() += 1;
            }
        }
        let (mut new, mut sources, mut source_of) = (HashSet::new(), HashMap::new(), HashMap::new());
        let results = answered(view)?;
        let mut calls: HashMap<usize, usize> = HashMap::new();
        for Answered { call, .. } in &results {
            *calls.entry(call.0).or_default() += 1;
        }
        // One of an exchange that is not whole may not be sent.
        let is_whole = |call: usize, result: usize| {
            let (Some(from), Some(to)) = (positions.get(&call), positions.get(&result)) else { return false };
            let all = view.context.get(*from).map(|item| item.size.calls);
            let between = view.context.within(from + 1..*to);
            all == calls.get(&call).copied()
                && between.iter().all(|item| item.size.results > 0 || item.size.role == Role::Assistant)
        };
        let mut named = Vec::with_capacity(results.len());
        for Answered { index, nth, call, tool, arguments, is_error } in results {
            if is_error || is_recall(&tool) {
                continue;
            }
            let source = source(&tool, &arguments);
            source_of.insert((index, nth), source.clone());
            let call_of =
                ToolCall { id: "".into(), name: tool.into(), arguments: arguments.into(), caller: None };
            named.push(((index, nth), call_of));
            if positions.get(&index).is_some_and(|at| *at >= from) {
                new.insert((index, nth));
            } else if is_whole(call.0, index) {
                let of: &mut Vec<_> = sources.entry(source).or_default();
                of.push((index, nth));
            }
        }
        Ok(Known { new, sources, source_of, calls: named, leaning, positions })
    }

    /// What a new result can lean on: the newest of its source that stands word for word, and on which few lean so far.
    fn basis(
        &self,
        view: &View,
        result: (usize, usize),
        replaced: &HashSet<(usize, usize)>,
    ) -> Option<Basis> {
        let before = self.sources.get(self.source_of.get(&result)?)?;
        let stands = |(index, nth): &&(usize, usize)| {
            let item = self.positions.get(index).and_then(|at| view.context.get(*at));
            !replaced.contains(&(*index, *nth))
                && item.is_some_and(|item| !item.origin.is_replaced(Placeholder::Difference, *nth))
        };
        let (index, nth) = *before.iter().rev().find(stands)?;
        let place = view.context.get(*self.positions.get(&index)?)?.origin.place()?;
        let few = self.leaning.get(&(place.seq, nth)).is_none_or(|leaning| *leaning < MOST);
        few.then_some(Basis { seq: place.seq, index, nth })
    }

    /// What the call of a result is named by; nothing where another one behind its basis is named so, too: which is meant
    /// would be anybody's guess.
    fn name(&self, result: (usize, usize), basis: Basis) -> Option<String> {
        let source = self.source_of.get(&result)?;
        let at = |of: (usize, usize)| self.calls.iter().position(|(place, _)| *place == of);
        let (from, to) = (at((basis.index, basis.nth))?, at(result)?);
        let name = called(&self.calls.get(to)?.1);
        let others = self.calls.get(from..to)?.iter();
        let mut others = others.filter(|(place, _)| self.source_of.get(place) != Some(source));
        (!name.is_empty() && others.all(|(_, call)| called(call) != name)).then_some(name)
    }

    /// The text of a result that stands in the context; nothing for one that holds more.
    fn text(&self, view: &View, (index, nth): (usize, usize)) -> Option<String> {
        let item = view.context.get(*self.positions.get(&index)?)?;
        let value = wire::parse(index, &item.body).ok()?;
        let message = view.format.wire().read(index, &value).ok()?;
        let result = message.results().nth(nth)?;
        result.media.is_empty().then(|| result.text.to_string())
    }
}

/// What a call looks at: its tool, and what of its arguments says what.
fn source(tool: &str, arguments: &str) -> String {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(mut fields)) => {
            fields.retain(|name, _| !BESIDE.contains(&name.as_str()));
            format!("{tool} {}", Value::Object(fields))
        }
        _ => format!("{tool} {arguments}"),
    }
}
