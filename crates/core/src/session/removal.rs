//! Messages out of the active context (`S5.1`), never out of the log: whole exchanges, and only where the rest is still
//! a history that the provider takes.

use super::operations::Session;
use crate::compaction::lean::{self, Newest};
use crate::compaction::reasoning;
use crate::context::{Departed, Item, Origin, Splice, Why, join_left};
use crate::error::{Error, Result};
use crate::log::{Cause, ContextChange, LogReader, State};
use crate::message::Exchanges;
use crate::step::Machine;
use crate::wire;

impl Session {
    /// Takes messages, given by their index, out of the context, with the rest of the exchanges that they belong to:
    /// the indices of all that went. One that is in the context no more, or that there is not, is passed over.
    ///
    /// Errors: [`crate::Code::InvalidOption`] for a message that is pinned, that a checkpoint replaces, or without which
    /// the rest would break a rule of its provider.
    pub fn remove_messages(&self, indices: Vec<usize>) -> Machine<Vec<usize>> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let guard = slot.take()?;
            let removed = whole_exchanges(&guard.state(), &indices)?;
            if removed.is_empty() {
                return Ok(Vec::new());
            }
            let splice = |at: &usize| Splice { at: *at, remove: 1, insert: Vec::new() };
            let splices = removed.iter().map(splice).collect();
            let log = LogReader::of(&guard.state());
            let (splices, _) = lean::settle(&io, &guard.view(), splices, Newest::Whole(&log)).await?;
            let (splices, _) = reasoning::unbind(&io, &guard.view(), splices).await?;
            let mut after = guard.context().clone();
            after.apply(&splices);
            check(&guard.state(), after.items())?;
            let gone: Vec<usize> = {
                let context = guard.context();
                let items = removed.iter().filter_map(|at| context.get(*at));
                items.filter_map(|item| item.origin.place()).map(|place| place.index).collect()
            };
            let change = {
                let state = guard.state();
                let runs =
                    gone.iter().map(|index| Departed { from: *index, to: index + 1, why: Why::Removed });
                let left = state.context.left().iter().copied().chain(runs).collect();
                let tokens = state.tokens_with(&after);
                let cause = Cause::of(&state.view(), "remove", tokens);
                ContextChange { left: Some(join_left(left)), ..ContextChange::new(splices, cause) }
            };
            guard.change(&io, change).await?;
            Ok(gone)
        })
    }
}

/// Positions in the context of the exchanges that these messages belong to, ascending.
fn whole_exchanges(state: &State, indices: &[usize]) -> Result<Vec<usize>> {
    let items = state.context.items();
    let values = items.iter().map(|item| wire::parse(0, &item.body)).collect::<Result<Vec<_>>>()?;
    let wire = state.format().wire();
    let messages = values.iter().map(|value| wire.read(0, value)).collect::<Result<Vec<_>>>()?;
    let exchanges = Exchanges::of(&messages);
    let mut removed = vec![false; items.len()];
    for &index in indices {
        let Some(at) = position(state, index)? else { continue };
        let first = (1..=at).rev().find(|at| exchanges.is_boundary(*at)).unwrap_or(0);
        let last = (at + 1..items.len()).find(|at| exchanges.is_boundary(*at)).unwrap_or(items.len());
        removed.iter_mut().take(last).skip(first).for_each(|removed| *removed = true);
    }
    let found = items.iter().zip(removed).enumerate().filter(|(_, (_, removed))| *removed);
    let mut positions = Vec::new();
    for (at, (item, _)) in found {
        let Some(place) = item.origin.place() else { continue };
        if state.row.pins.contains(&place.index) {
            return Err(refused(place.index, "is pinned, and stays word for word"));
        }
        positions.push(at);
    }
    Ok(positions)
}

/// The position of a message of the app in the context; `None` when it has left it, and when there is none.
fn position(state: &State, index: usize) -> Result<Option<usize>> {
    if index >= state.row.messages {
        return Ok(None);
    }
    let items = state.context.items();
    let is_it = |origin: &Origin| origin.place().is_some_and(|place| place.index == index);
    if let Some(at) = items.iter().position(|item| is_it(&item.origin)) {
        return Ok(Some(at));
    }
    if state.context.left().iter().any(|left| (left.from..left.to).contains(&index)) {
        return Ok(None);
    }
    Err(refused(index, "is not in the context by itself: a checkpoint stands for it"))
}

/// A history that was valid stays so, in every format that it may be in.
fn check(state: &State, after: &[Item]) -> Result<()> {
    if after.is_empty() {
        return Ok(());
    }
    for format in state.may_be() {
        let problems = |items: &[Item]| {
            let values = items.iter().map(|item| wire::parse(0, &item.body)).collect::<Result<Vec<_>>>()?;
            Ok(format.rules().validate(&values, false))
        };
        if !problems(state.context.items())?.is_empty() {
            continue;
        }
        let Some(problem) = problems(after)?.into_iter().next() else { continue };
        let index = after.get(problem.index).and_then(|item| item.origin.place()).map(|place| place.index);
        let what = format!(
            "the rest would break {} ({}): remove whole turns, from what the user said to the last answer",
            problem.rule, problem.message
        );
        let mut error = Error::option("ids", what);
        error.index = index;
        return Err(error);
    }
    Ok(())
}

fn refused(index: usize, what: &str) -> Error {
    Error::option("ids", what).at(index)
}
