//! What of the context can be sent: exchanges that the provider would refuse are left out of the prompt (`S1.15`). The
//! log keeps them: a result that is still to come makes its call whole again.

use super::operations::{OutItem, out};
use super::usage::{ContextUsage, usage, usage_of};
use crate::compaction::Edit;
use crate::context::{self, Context, Fate, Item, LedgerEntry, MessageSource, Origin, Place};
use crate::error::{Code, Error, Result};
use crate::log::sent::{HandedOut, OmittedMessage, PromptFront};
use crate::log::{SessionGuard, State, measure};
use crate::step::{Effect, Io, LogLevel, Notice};
use crate::wire::{self, Change, Past, Repaired};
use serde_json_borrow::Value;
use std::collections::BTreeSet;
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
    let is_sound = is_sound(&mut guard.state_mut())?;
    let nth = {
        let mut state = guard.state_mut();
        state.prepared += 1;
        state.prepared
    };
    if is_sound {
        let mut state = guard.state_mut();
        let context = Rc::clone(&state.context);
        let all = context.items();
        let known = state
            .handed_out
            .as_ref()
            .filter(|sent| sent.nth == since && sent.items <= state.context.settled());
        let kept = known.map_or(0, |sent| sent.items);
        let new = all.get(kept..).unwrap_or_default();
        let (items, count) = (out(new), all.len());
        state.note_own(new);
        drop(context);
        state.omitted.clear();
        state.handed_out = Some(HandedOut { nth, items: count, front });
        Rc::make_mut(&mut state.context).settle();
        let estimated = state.estimated(&state.context);
        state.note_sent(estimated);
        return Ok(Sending { nth, kept, items, usage: usage(&state), mended: None });
    }
    guard.state_mut().handed_out = None;
    let items = guard.context().items().to_vec();
    guard.state_mut().note_own(&items);
    let whole = out(&items);
    let (repaired, changes) = {
        let values = parsed(&items)?;
        guard.format().wire().repair(&values)
    };
    let omitted = omitted(&items, &repaired, &changes);
    if guard.state().omitted != omitted {
        tell(io, &items, &changes);
    }
    guard.state_mut().omitted = omitted;
    if repaired.is_empty() {
        return Err(nothing_to_send(&items, &changes));
    }
    let mut sent = Context::default();
    let mut outs = Vec::with_capacity(repaired.len());
    for part in repaired {
        match part {
            Repaired::Keep(at) => {
                items.get(at).cloned().into_iter().for_each(|item| sent.push(item));
                outs.extend(whole.get(at).cloned());
            }
            Repaired::Replace { index, json } => {
                let body: Rc<str> = Rc::from(json);
                let size = measure(io, &guard.settings(), guard.format(), MessageSource::Ours, &body).await?;
                let origin = items.get(index).map_or(Origin::Acknowledgement, |item| item.origin.clone());
                guard.state_mut().note_own_mend(&origin, &body);
                sent.push(Item { body: Rc::clone(&body), size, origin });
                outs.push(OutItem { seq: None, index: None, body: Some(body) });
            }
        }
    }
    let usage = usage_of(&guard.state(), &sent);
    // A mend may add a little: a field that must be there, a message that must come first.
    let (tokens, limit) = (usage.used_tokens, guard.settings().hard_limit);
    if tokens > limit {
        let what = format!(
            "{tokens} tokens do not fit {limit} (the context window less the answer) once what the provider would refuse is mended; keep fewer messages or use a larger window"
        );
        return Err(Error::new(Code::ContextOverflow, what));
    }
    {
        let mut state = guard.state_mut();
        let estimated = state.estimated(&sent);
        state.note_sent(estimated);
    }
    let mended = Some(mended(guard, &sent, &changes));
    Ok(Sending { nth, kept: 0, items: outs, usage, mended })
}

/// What an edit of the prompt says of messages that are left out, or mended.
fn mended(guard: &SessionGuard, sent: &Context, changes: &[Change]) -> Edit {
    let state = guard.state();
    let mut rules: Vec<&str> = changes.iter().map(|change| change.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let indices: BTreeSet<usize> = state.omitted.iter().map(|omitted| omitted.index).collect();
    let freed = state.tokens().saturating_sub(state.tokens_with(sent));
    let detail = Some(format!("not sent as the provider would refuse it ({})", rules.join(", ")));
    Edit { detail, ..Edit::named("repair", indices.into_iter().collect(), freed) }
}

/// An empty prompt is refused by every provider, and would hide what is wrong.
fn nothing_to_send(items: &[Item], changes: &[Change]) -> Error {
    let first = changes.first();
    let at = first.map_or(0, |change| change.index);
    let index = items.get(at).and_then(|item| item.origin.place()).map_or(at, |place| place.index);
    let why =
        first.map_or("no exchange is whole".into(), |change| format!("{}: {}", change.rule, change.message));
    let what = format!(
        "no message can be sent ({why}); append what it belongs to, or begin with a message of the user"
    );
    Error { index: Some(index), ..Error::new(Code::InvalidMessage, what) }
}

/// True when the context breaks no rule of its format. Of what was found to break none before, only as much is looked at
/// as what was added or changed since depends on.
fn is_sound(state: &mut State) -> Result<bool> {
    let format = state.format();
    let settled = state.context.settled();
    let known = state.past.take().filter(|(of, past)| *of == format && past.messages() <= settled);
    let mut past = known.map(|(_, past)| past).unwrap_or_default();
    let items = state.context.items();
    let added = parsed(items.get(past.messages()..).unwrap_or_default())?;
    let mut is_sound = format.wire().grows(&mut past, &added);
    if !is_sound && past.messages() > 0 {
        let mut anew = Past::default();
        is_sound = format.wire().grows(&mut anew, &parsed(items)?);
        if is_sound {
            past = anew;
        }
    }
    // What could be sent stays so while an exchange behind it is not whole.
    state.past = Some((format, past));
    Ok(is_sound)
}

fn parsed(items: &[Item]) -> Result<Vec<Value<'_>>> {
    items.iter().map(|item| wire::parse(0, &item.body)).collect()
}

/// The fate of every message, with what the last prepare did not send of those in the context.
pub(super) fn ledger(state: &State) -> Vec<LedgerEntry> {
    let mut entries = context::ledger(&state.context);
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

/// The app's messages that are not sent as they are.
fn omitted(items: &[Item], repaired: &[Repaired], changes: &[Change]) -> Vec<OmittedMessage> {
    let mut sent = vec![Some(Fate::Dropped); items.len()];
    for part in repaired {
        let (at, fate) = match part {
            Repaired::Keep(at) => (*at, None),
            Repaired::Replace { index, .. } => (*index, Some(Fate::Reduced)),
        };
        if let Some(sent) = sent.get_mut(at) {
            *sent = fate;
        }
    }
    let changed = items.iter().zip(sent).enumerate();
    changed
        .flat_map(|(at, (item, fate))| {
            // What a summary holds word for word is left out with it.
            let quoted = item.origin.quotes().iter().filter(|_| fate == Some(Fate::Dropped));
            let places = item.origin.place().into_iter().chain(quoted.copied());
            let why = changes.iter().find(|change| change.index == at);
            let why = why.map_or("its exchange is not whole".into(), |change| {
                format!("{}: {}", change.rule, change.message)
            });
            let how = if fate == Some(Fate::Dropped) { "not sent" } else { "not sent as it is" };
            let reason = format!("{how} ({why}); the log keeps it, and it is sent once it can be");
            let omitted = |place: Place| {
                Some(OmittedMessage { index: place.index, fate: fate?, reason: reason.clone() })
            };
            places.filter_map(omitted).collect::<Vec<_>>()
        })
        .collect()
}

fn tell(io: &Io, items: &[Item], changes: &[Change]) {
    for change in changes {
        let place = items.get(change.index).and_then(|item| item.origin.place());
        let which = match place {
            Some(place) => format!("message {}", place.index),
            None => format!("message {} of the context", change.index),
        };
        let message = format!("{which} is not sent as it is ({}): {}", change.rule, change.message);
        io.log(LogLevel::Warn, message.clone());
        io.tell(Effect::Notify(Notice::Warning { code: Code::InvalidMessage, message }));
    }
}
