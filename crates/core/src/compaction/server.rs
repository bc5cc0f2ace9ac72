//! Compaction by the provider (`X10`): it makes an item that stands for what was before it, in the course of an ordinary request.
//! The app appends the answer that has it, and the messages before it leave the context. Nobody but the provider can read that
//! item, so in a session that does not compact there the originals come back.

use super::cut::covers_of;
use super::lean::{self, Newest};
use super::rung::Run;
use super::{frame::tokens_of, reasoning};
use crate::context::{
    Departed, Item, Keep, LogEntry, MessageSource, Origin, Place, Splice, SummaryMeta, Why, join_left, split,
};
use crate::error::{Code, Error, Result};
use crate::keys::ids;
use crate::log::{Cause, ContextChange, LogReader, SessionGuard, Summarised, View, measure};
use crate::policy::{Rung, Trigger};
use crate::step::{Effect, Io, LogLevel, Notice};
use crate::wire::{self, server};
use std::rc::Rc;

/// True where an item of a provider is in the context of a session that does not compact there.
pub(super) fn is_foreign(view: &View) -> bool {
    view.context.totals().by_server > 0 && !view.settings.is_server()
}

/// Where the newest message with a compaction stands, of those from log position `from` on.
pub(super) fn newest(view: &View, from: u64) -> Result<Option<usize>> {
    for (at, item) in view.context.newest() {
        match item.origin {
            Origin::Message(place) if place.seq >= from => {
                let compacts = item.body.contains("compaction")
                    && server::compacts(view.format, &wire::parse(place.index, &item.body)?);
                if compacts {
                    return Ok(Some(at));
                }
            }
            _ => break,
        }
    }
    Ok(None)
}

/// Takes over the compaction in the message at `at`: what it stands for leaves the context, in one commit.
pub(super) async fn take_over(io: &Io, guard: &SessionGuard, at: usize) -> Result<()> {
    let view = &guard.view();
    let (items, head) = (view.items(), view.context.head());
    let Some((item, place)) = items.get(at).and_then(|item| Some((item, item.origin.place()?))) else {
        return Ok(());
    };
    let boundary = head + before(view, items.get(head..=at).unwrap_or_default())?;
    let gone = items.get(head..boundary).unwrap_or_default();
    if gone.is_empty() {
        return Ok(());
    }
    let now = io.now().await?;
    let replaced = tokens_of(gone);
    let mut covers = covers_of(gone);
    super::cut::join(&mut covers, place.index, place.index + 1, Vec::new());
    let secret = view.references.secret.as_bytes();
    let id = ids::id(&[b"checkpoint", secret, b"server", &place.seq.to_le_bytes()]);
    let made = SummaryMeta {
        number: view.compressions,
        created_at: now,
        original_tokens: replaced,
        counted_tokens: replaced,
        tokens: item.size.tokens,
        text_tokens: item.size.tokens,
        server: true,
        ..SummaryMeta::default()
    };
    let origin = Origin::Summary {
        checkpoint: Rc::from(format!("cp_{id}")),
        covers: covers.into(),
        quotes: vec![place],
        prose: 0,
        made: Some(Rc::new(made)),
    };
    let own = Item::new(Rc::clone(&item.body), item.size, origin);
    // A call that waits for its result stays, before the item.
    let insert = items.get(boundary..at).unwrap_or_default().iter().cloned().chain([own]).collect();
    let splice = Splice { at: head, remove: at + 1 - head, insert };
    let log = LogReader::of(&guard.state());
    let (splices, more) = lean::settle(io, view, vec![splice], Newest::Whole(&log)).await?;
    let freed = replaced.saturating_add_signed(-more);
    let after = view.usage.after(0, freed);
    let entry = LogEntry {
        at: now,
        messages: gone.len(),
        saved: freed,
        summaries: 1,
        before: view.usage.tokens,
        after,
        budget: view.settings.window,
    };
    let summary = Some(Summarised { text: String::new(), entry });
    let cause =
        Cause { trigger: Trigger::Auto.as_str().into(), ..Cause::of(view, Rung::Summarise.stored(), after) };
    let retired = gone.iter().flat_map(|item| item.origin.offloads()).count();
    let pinned: Vec<String> = gone
        .iter()
        .filter_map(|item| item.origin.place())
        .filter(|place| view.is_pinned(place.index))
        .map(|place| place.index.to_string())
        .collect();
    // The provider made it of the prompt that it was sent: what it answers next was not written behind another one.
    let was_handed = guard.state().is_handed();
    guard.change(io, ContextChange { summary, ..ContextChange::compaction(splices, cause) }).await?;
    if was_handed {
        guard.state_mut().hand_out();
    }
    io.log(LogLevel::Info, format!("The provider compacted {} messages, {freed} tokens freed", gone.len()));
    if !pinned.is_empty() {
        let message = format!(
            "the provider compacted pinned messages too ({}): it keeps none verbatim; put what must hold into the system prompt",
            pinned.join(", ")
        );
        io.tell(Effect::Notify(Notice::Warning { code: Code::InvalidOption, message }));
    }
    io.tell(Effect::Notify(Notice::Compact {
        previous_tokens: view.usage.tokens,
        current_tokens: guard.tokens(),
        freed_tokens: freed,
        retired_ref_count: retired,
    }));
    Ok(())
}

/// How many of these items the last one stands for: those before it, up to a call whose result is still to come.
fn before(view: &View, items: &[Item]) -> Result<usize> {
    let messages = items.iter().map(|item| item.bound(view.format)).collect::<Result<Vec<_>>>()?;
    let tokens = vec![1; items.len()];
    Ok(split::behind(&messages, &tokens, Keep::Messages(1), |_| false).boundary)
}

/// Puts back what the provider's items stand for, where the session does not compact there: they say nothing to anybody else. The
/// rungs then see the originals.
pub(super) async fn dissolve(run: &Run<'_>) -> Result<()> {
    loop {
        let view = run.view();
        if !is_foreign(&view) {
            return Ok(());
        }
        // In a fork, what it stands for is the parent's.
        let has_more = |item: &Item| match &item.origin {
            Origin::Summary { covers, .. } => {
                covers.iter().map(|cover| cover.to - cover.from).sum::<usize>() > 1
            }
            _ => false,
        };
        let items = view.items().iter().enumerate().filter(|(_, item)| has_more(item));
        let found = items.filter_map(|(at, item)| Some((at, item.origin.server()?))).next();
        let Some((at, place)) = found else { return Ok(()) };
        let change = dissolved(run.io, &view, &run.log(), &|index| run.is_erased(index), (at, place)).await?;
        run.io
            .log(LogLevel::Info, format!("What message {} stands for is in the context again", place.index));
        run.change(change).await?;
    }
}

/// Puts back what an item stands for that a message which is to be erased is in.
pub(super) async fn dissolve_around(io: &Io, guard: &SessionGuard, index: usize) -> Result<()> {
    let view = guard.view();
    let holds = |item: &Item| match &item.origin {
        Origin::Summary { covers, .. } => covers.iter().any(|cover| (cover.from..cover.to).contains(&index)),
        _ => false,
    };
    let items = view.items().iter().enumerate().filter(|(_, item)| holds(item));
    let Some(found) = items.filter_map(|(at, item)| Some((at, item.origin.server()?))).next() else {
        return Ok(());
    };
    let log = LogReader::of(&guard.state());
    let is_erased = |index| guard.state().row.is_erased(index);
    let change = dissolved(io, &view, &log, &is_erased, found).await?;
    guard.change(io, change).await
}

async fn dissolved(
    io: &Io,
    view: &View,
    log: &LogReader,
    is_erased: &dyn Fn(usize) -> bool,
    (at, place): (usize, Place),
) -> Result<ContextChange> {
    let Some(Origin::Summary { covers, .. }) = view.context.get(at).map(|item| &item.origin) else {
        return Err(Error::new(Code::Poisoned, "a compaction of the provider is not where it was found"));
    };
    let mut found: Vec<(Place, Rc<str>)> = Vec::new();
    let keep = |place: Place, body: &str| {
        found.push((place, Rc::from(body)));
        Ok(())
    };
    log.each(io, covers, 0, keep).await?;
    let (mut originals, mut own, mut gone) = (Vec::with_capacity(found.len()), Vec::new(), Vec::new());
    let mut missing: Vec<usize> = covers.iter().flat_map(|cover| cover.from..cover.to).collect();
    for (of, body) in found {
        missing.retain(|index| *index != of.index);
        if of == place {
            let rest = {
                let value = wire::parse(of.index, &body)?;
                server::without_compaction(value).map(|rest| Rc::from(wire::json(&rest)))
            };
            match rest {
                Some(rest) => own.push(item(io, view, of, rest, true).await?),
                None => gone.push(Departed { from: of.index, to: of.index + 1, why: Why::Removed }),
            }
        } else {
            originals.push(item(io, view, of, body, is_erased(of.index)).await?);
        }
    }
    gone.extend(missing.into_iter().map(|index| Departed { from: index, to: index + 1, why: Why::Lost }));
    let left = join_left(view.context.left().iter().copied().chain(gone).collect());
    let head = view.context.head().min(at);
    let before = view.context.within(head..at).iter().cloned();
    let insert = originals.into_iter().chain(before).chain(own).collect();
    let splices = vec![Splice { at: head, remove: at + 1 - head, insert }];
    let (splices, _) = reasoning::unbind(io, view, splices).await?;
    let cause = Cause::of(view, "whole", view.usage.tokens);
    Ok(ContextChange { left: Some(left), ..ContextChange::compaction(splices, cause) })
}

async fn item(io: &Io, view: &View, place: Place, body: Rc<str>, is_edited: bool) -> Result<Item> {
    let origin = match is_edited {
        true => Origin::Edited { place, offloads: Vec::new(), reasoning_removed: false },
        false => Origin::Message(place),
    };
    let whose = if is_edited { MessageSource::Ours } else { MessageSource::Logged(place.seq) };
    let size = measure(io, &view.settings, view.format, whose, &body).await?;
    Ok(Item::new(body, size, origin))
}
