//! Reasoning that the provider binds to what stood before it (`AN8`). It cannot outlive a change of that: a request
//! with it would be refused.

use crate::context::{Item, MessageSource, Origin, Splice};
use crate::error::Result;
use crate::log::{Cause, ContextChange, SessionGuard, View, measure};
use crate::policy::{PrefixMismatch, Trigger};
use crate::step::Io;
use crate::wire::{self, Unbound};

/// A change of the context, completed: every message that stays behind the first changed one loses the reasoning that
/// is bound to what stood before it. Returns the tokens of that reasoning too. Messages without any are not touched, and
/// none are where the app's requests have the provider leave it out.
pub(crate) async fn unbind(io: &Io, view: &View, splices: Vec<Splice>) -> Result<(Vec<Splice>, usize)> {
    if view.settings.prefix_mismatch == PrefixMismatch::DropBlock {
        return Ok((splices, 0));
    }
    let items = view.items();
    let mut completed: Vec<Splice> = Vec::with_capacity(splices.len());
    let mut freed = 0;
    // First item behind the changes so far; `None` before the first.
    let mut behind = None;
    for mut splice in splices {
        if let Some(from) = behind {
            freed += unbind_kept(io, view, from..splice.at, &mut completed).await?;
        }
        // Of what a change keeps at its very start nothing moved.
        let old = items.get(splice.at..).unwrap_or_default();
        let same = |(new, old): &(&Item, &Item)| new.origin.place() == old.origin.place();
        let unmoved =
            if behind.is_some() { 0 } else { splice.insert.iter().zip(old).take_while(same).count() };
        for item in splice.insert.iter_mut().skip(unmoved) {
            if let Some(unbound) = unbound(io, view, item).await? {
                freed += item.size.tokens.saturating_sub(unbound.size.tokens);
                *item = unbound;
            }
        }
        behind = Some(splice.at + splice.remove);
        completed.push(splice);
    }
    if let Some(from) = behind {
        freed += unbind_kept(io, view, from..items.len(), &mut completed).await?;
    }
    Ok((completed, freed))
}

/// Messages that were appended since the context became another one, and before anyone was handed that: their reasoning
/// is bound to what was handed out before. A summary takes care of those that arrive while it is written; this is for a
/// rung before one that then failed or was aborted.
pub(crate) async fn settle(io: &Io, guard: &SessionGuard, trigger: Trigger) -> Result<()> {
    let Some(from) = guard.state().unseen_from else { return Ok(()) };
    let view = guard.view();
    if view.settings.prefix_mismatch == PrefixMismatch::DropBlock {
        return Ok(());
    }
    let items = view.items();
    let is_unseen = |item: &Item| item.origin.place().is_some_and(|place| place.index >= from);
    let first = items.iter().position(is_unseen).unwrap_or(items.len());
    let mut splices = Vec::new();
    let freed = unbind_kept(io, &view, first..items.len(), &mut splices).await?;
    if !splices.is_empty() {
        let after = view.usage.after(0, freed);
        let cause = Cause { trigger: trigger.as_str().into(), ..Cause::of(&view, "reasoning", after) };
        guard.change(io, ContextChange::compaction(splices, cause)).await?;
    }
    guard.state_mut().unseen_from = None;
    Ok(())
}

/// Messages `from` the log's index on lose their bound reasoning: what stands before them is to be another context.
pub(crate) async fn unbind_since(io: &Io, view: &View, items: &mut [Item], from: usize) -> Result<()> {
    if view.settings.prefix_mismatch == PrefixMismatch::DropBlock {
        return Ok(());
    }
    for item in items.iter_mut().filter(|item| item.origin.place().is_some_and(|place| place.index >= from)) {
        if let Some(unbound) = unbound(io, view, item).await? {
            *item = unbound;
        }
    }
    Ok(())
}

async fn unbind_kept(
    io: &Io,
    view: &View,
    range: std::ops::Range<usize>,
    splices: &mut Vec<Splice>,
) -> Result<usize> {
    let mut freed = 0;
    for (at, item) in view.items().iter().enumerate().take(range.end).skip(range.start) {
        if let Some(unbound) = unbound(io, view, item).await? {
            freed += item.size.tokens.saturating_sub(unbound.size.tokens);
            splices.push(Splice { at, remove: 1, insert: vec![unbound] });
        }
    }
    Ok(freed)
}

/// The message without its bound reasoning; `None` when it stays as it is. One of reasoning alone stays too: an empty
/// message would be refused as well.
async fn unbound(io: &Io, view: &View, item: &Item) -> Result<Option<Item>> {
    let Some(place) = item.origin.place() else { return Ok(None) };
    let body = {
        let value = wire::parse(place.index, &item.body)?;
        match view.format.rules().without_bound_reasoning(&value) {
            Unbound::Changed(json) => json.into(),
            Unbound::Same | Unbound::Nothing => return Ok(None),
        }
    };
    let size = measure(io, &view.settings, view.format, MessageSource::Ours, &body).await?;
    let offloads = item.origin.offloads().to_vec();
    Ok(Some(Item::new(body, size, Origin::Edited { place, offloads, reasoning_removed: true })))
}
