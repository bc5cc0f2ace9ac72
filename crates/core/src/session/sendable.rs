//! What of the context can be sent: exchanges that the provider would refuse are left out of the prompt (`S1.15`). The
//! log keeps them: a result that is still to come makes its call whole again.

use super::mend::TO_MENDING;
use super::operations::{OutItem, out};
use super::usage::{ContextUsage, usage};
use crate::compaction::Edit;
use crate::context::{Context, Fate, Item, Ledger, LedgerEntry};
use crate::error::Result;
use crate::log::sent::{HandedOut, OmittedMessage, PromptFront};
use crate::log::{SessionGuard, State};
use crate::step::{Io, LONG};
use crate::wire::{self, Format, Past};
use serde_json_borrow::Value;
use std::rc::Rc;

/// What is to be sent.
pub(super) struct Sending {
    /// Which `prepare` this is.
    pub(super) nth: u64,
    /// Items at the beginning that are those of the `prepare` that the host has.
    pub(super) kept: usize,
    /// The items behind them.
    pub(super) items: Vec<OutItem>,
    /// How full the window is with all of them.
    pub(super) usage: ContextUsage,
    /// What of the context is not sent, or not as it is.
    pub(super) mended: Option<Edit>,
}

/// The messages to send, and how full the window is with them. Notes in the state what is left out; the app is told
/// when that has changed. `since` is the `prepare` whose items the host has: what was only added to is not told again. `front` goes
/// before them.
pub(super) async fn send(
    io: &Io,
    guard: &SessionGuard,
    since: u64,
    front: Rc<PromptFront>,
) -> Result<Sending> {
    let mended = guard.state_mut().mended.take();
    if let Some(prompt) = mended.filter(|prompt| prompt.nth == since)
        && let Some(sending) = (TO_MENDING.enter(io).await?.go_on)(guard, prompt)?
    {
        return Ok(sending);
    }
    let is_sound = is_sound(io, guard).await?;
    // Before anything is noted: what cannot be loaded changes nothing.
    let mending = if is_sound { None } else { Some(TO_MENDING.enter(io).await?) };
    let nth = {
        let mut state = guard.state_mut();
        state.prepared += 1;
        state.prepared
    };
    let Some(mending) = mending else {
        let mut state = guard.state_mut();
        let context = Rc::clone(&state.context);
        let known = state
            .handed_out
            .as_ref()
            .filter(|sent| sent.nth == since && sent.items <= state.context.settled());
        let kept = known.map_or(0, |sent| sent.items);
        let new = context.since(kept);
        let (items, count) = (out(new), context.len());
        state.note_own(new);
        drop(context);
        state.omitted.clear();
        state.handed_out = Some(HandedOut { nth, items: count, front });
        Rc::make_mut(&mut state.context).settle();
        let estimated = state.estimated(&state.context);
        state.note_sent(estimated);
        return Ok(Sending { nth, kept, items, usage: usage(&state), mended: None });
    };
    (mending.mend)(io, guard, nth).await
}

/// True when the context breaks no rule of its format. Of what was found to break none before, only as much is looked at
/// as what was added or changed since depends on.
async fn is_sound(io: &Io, guard: &SessionGuard) -> Result<bool> {
    let (format, context, past) = {
        let mut state = guard.state_mut();
        (state.format(), Rc::clone(&state.context), state.past.take())
    };
    let known = past.filter(|(of, past)| *of == format && past.messages() <= context.settled());
    let mut past = known.map(|(_, past)| past).unwrap_or_default();
    let is_new = past.messages() == 0;
    let mut is_sound = grows(io, format, &context, &mut past).await?;
    if !is_sound && !is_new {
        let mut anew = Past::default();
        is_sound = grows(io, format, &context, &mut anew).await?;
        if is_sound {
            past = anew;
        }
    }
    // What could be sent stays so while an exchange behind it is not whole.
    guard.state_mut().past = Some((format, past));
    Ok(is_sound)
}

/// Looks at what is behind `past`, as much at once as takes no longer than a frame of a page.
async fn grows(io: &Io, format: Format, context: &Context, past: &mut Past) -> Result<bool> {
    let mut most = LONG;
    loop {
        let from = past.messages();
        let (mut to, mut bytes) = (from, 0);
        while let Some(item) = context.get(to).filter(|_| bytes < most) {
            bytes += item.body.len();
            to += 1;
        }
        let values = parsed(context.within(from..to))?;
        let is_sound = format.wire().grows(past, &values);
        if to == context.len() {
            return Ok(is_sound);
        }
        drop(values);
        // It may end within an exchange, which is not whole before its last result.
        most = if past.messages() > from { LONG } else { most.saturating_mul(2) };
        io.breathe(bytes).await?;
    }
}

pub(super) fn parsed(items: &[Item]) -> Result<Vec<Value<'_>>> {
    items.iter().map(|item| wire::parse(0, &item.body)).collect()
}

/// The fate of every message, with what the last prepare did not send of those in the context.
pub(super) fn ledger(state: &State) -> Vec<LedgerEntry> {
    let mut entries = Ledger::of(&state.context).entries();
    for OmittedMessage { index, fate, reason } in &state.omitted {
        let entry = entries.iter_mut().find(|entry| entry.index == *index && entry.fate != Fate::Summarised);
        if let Some(entry) = entry {
            entry.fate = *fate;
            entry.reason = Some(reason.clone());
        }
    }
    for erased in &state.row.erased {
        if let Some(entry) = entries.iter_mut().find(|entry| entry.index == erased.index) {
            *entry = LedgerEntry::erased(erased);
        }
    }
    entries
}
