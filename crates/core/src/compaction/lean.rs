//! A change of the context, completed: what is told as what differs from a result that leaves the context is whole again, or
//! is a reference of its own (`X2`).

use super::replace::mark;
use super::replacement::Replaceable;
use crate::context::{Basis, Context, Item, Offload, Origin, Placeholder, Splice, unfounded};
use crate::error::{Code, Error, Result};
use crate::log::{Cause, ContextChange, LogReader, SessionGuard, View, measure};
use crate::message::Message;
use crate::order;
use crate::step::Io;
use crate::wire;
use std::cell::OnceCell;
use std::rc::Rc;

/// What becomes of the newest result that leans on one which leaves.
#[derive(Clone, Copy)]
pub(crate) enum Newest<'l> {
    /// It is whole again, as the log has it: it is how things stand.
    Whole(&'l LogReader),
    /// It is a reference, as the ones before it: the change is to make room.
    Short,
}

/// The change with all that follows from it, and the tokens that this adds.
pub(crate) async fn settle(
    io: &Io,
    view: &View,
    splices: Vec<Splice>,
    newest: Newest<'_>,
) -> Result<(Vec<Splice>, isize)> {
    let inserts = splices.iter().flat_map(|splice| &splice.insert);
    if view.context.totals().leaning == 0 && inserts.flat_map(|item| item.origin.bases()).next().is_none() {
        return Ok((splices, 0));
    }
    let mut after = Context::clone(&view.context);
    after.apply(&splices);
    let gone = unfounded(after.items().iter().map(|item| &item.origin));
    if gone.is_empty() {
        return Ok((splices, 0));
    }
    let mut settled =
        CompletedChange { io, view, newest: newest_of(after.items(), &gone), how: newest, more: 0 };
    let mut completed = Vec::with_capacity(splices.len());
    for mut splice in splices {
        for item in &mut splice.insert {
            settled.item(item, &gone).await?;
        }
        completed.push(splice);
    }
    // Those that the change itself leaves alone.
    let is_kept =
        |at: usize| !completed.iter().any(|splice| (splice.at..splice.at + splice.remove).contains(&at));
    let kept: Vec<usize> = (0..view.context.len()).filter(|at| is_kept(*at)).collect();
    for at in kept {
        let Some(item) =
            view.context.get(at).filter(|item| item.origin.bases().any(|basis| gone.contains(&basis)))
        else {
            continue;
        };
        let mut item = item.clone();
        settled.item(&mut item, &gone).await?;
        completed.push(Splice { at, remove: 1, insert: vec![item] });
    }
    Ok((order::by_key(completed, |splice| splice.at as u64), settled.more))
}

/// Where each of these is leaned on last: the message's position in the log, and which result of it.
fn newest_of(items: &[Item], gone: &[Basis]) -> Vec<(Basis, u64, usize)> {
    let mut newest: Vec<(Basis, u64, usize)> = Vec::new();
    for item in items {
        for (place, offload) in item
            .origin
            .place()
            .into_iter()
            .flat_map(|place| item.origin.offloads().iter().map(move |offload| (place, offload)))
        {
            if let Some(basis) = offload.basis.filter(|basis| gone.contains(basis)) {
                newest.retain(|(of, ..)| *of != basis);
                newest.push((basis, place.seq, offload.nth));
            }
        }
    }
    newest
}

struct CompletedChange<'s> {
    io: &'s Io,
    view: &'s View,
    newest: Vec<(Basis, u64, usize)>,
    how: Newest<'s>,
    more: isize,
}

impl CompletedChange<'_> {
    /// The item as it can stand without `gone`.
    async fn item(&mut self, item: &mut Item, gone: &[Basis]) -> Result<()> {
        let broken =
            || Error::new(Code::Poisoned, "a tool result could not be put back into its own message");
        let Origin::Edited { place, offloads, reasoning_removed } = &item.origin else { return Ok(()) };
        if !offloads.iter().any(|offload| offload.basis.is_some_and(|basis| gone.contains(&basis))) {
            return Ok(());
        }
        let (place, reasoning_removed) = (*place, *reasoning_removed);
        let own = match self.how {
            Newest::Whole(log) => Some(log.body(self.io, place).await?),
            Newest::Short => None,
        };
        let rules = self.view.format.rules();
        let mut body = Rc::clone(&item.body);
        let mut left: Vec<Offload> = Vec::new();
        for offload in offloads {
            let Some(basis) = offload.basis.filter(|basis| gone.contains(basis)) else {
                left.push(offload.clone());
                continue;
            };
            let is_newest = self.newest.contains(&(basis, place.seq, offload.nth));
            let text = match own.as_ref().filter(|_| is_newest) {
                Some(own) => {
                    let value = wire::parse(place.index, own)?;
                    let message: Message<'_> = self.view.format.wire().read(place.index, &value)?;
                    offload.text_in(&message).ok_or_else(broken)?.to_owned()
                }
                None => {
                    left.push(Offload { how: Placeholder::Reference, basis: None, ..offload.clone() });
                    let (nth, tokens) = (offload.nth, &OnceCell::new());
                    let piece = Replaceable { item, place, nth, text: "", tokens };
                    mark(self.view, piece, None, offload.chars, &offload.reference)
                }
            };
            let value = wire::parse(place.index, &body)?;
            body = Rc::from(rules.with_result_text(&value, offload.nth, &text).ok_or_else(broken)?);
        }
        let before = item.size.tokens;
        (item.origin, item.body) = match own.filter(|_| left.is_empty() && !reasoning_removed) {
            Some(own) => (Origin::Message(place), own),
            None => (Origin::Edited { place, offloads: left, reasoning_removed }, body),
        };
        let View { settings, format, .. } = self.view;
        item.size = measure(self.io, settings, *format, item.origin.whose(), &item.body).await?;
        self.more += item.size.tokens as isize - before as isize;
        Ok(())
    }
}

/// Has nothing in the context lean on messages that are not sent, or not as they are: `is_sent` says which are, by their
/// positions. True where that changed anything.
pub(crate) async fn unsent(io: &Io, guard: &SessionGuard, is_sent: &dyn Fn(usize) -> bool) -> Result<bool> {
    let view = guard.view();
    let items = view.items();
    let sent = items.iter().enumerate().filter(|(at, _)| is_sent(*at)).map(|(_, item)| &item.origin);
    let gone = unfounded(sent);
    if gone.is_empty() {
        return Ok(false);
    }
    let log = LogReader::of(&guard.state());
    let mut settled = CompletedChange {
        io,
        view: &view,
        newest: newest_of(items, &gone),
        how: Newest::Whole(&log),
        more: 0,
    };
    let mut splices = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let mut now = item.clone();
        settled.item(&mut now, &gone).await?;
        if now != *item {
            splices.push(Splice { at, remove: 1, insert: vec![now] });
        }
    }
    let tokens = view.usage.after(settled.more.max(0) as usize, settled.more.min(0).unsigned_abs());
    let (splices, freed) = super::reasoning::unbind(io, &view, splices).await?;
    let cause = Cause::of(&view, "whole", tokens.saturating_sub(freed));
    guard.change(io, ContextChange::compaction(splices, cause)).await?;
    Ok(true)
}
