//! The prompt of a context that breaks a rule of its format: what the provider would refuse is left out of it, or mended
//! (`S1.15`). It is behind a seam: few conversations come here.

use super::operations::{OutItem, out};
use super::sendable::{Sending, parsed};
use super::usage::usage_of;
use crate::compaction::{Edit, lean};
use crate::context::{Context, Fate, Item, MessageSource, Origin, Place};
use crate::error::{Code, Error, Result};
use crate::log::sent::{MendedPrompt, OmittedMessage};
use crate::log::{SessionGuard, measure};
use crate::message::Part;
use crate::order;
use crate::step::{CodeStage, Effect, Io, LogLevel, Notice, Seam, Work};
use crate::wire::{Change, Past, Repaired, Unbound};
use serde_json_borrow::Value;
use std::rc::Rc;

/// What is called where a prompt is to be mended.
pub struct Mending {
    /// What `prepare` number `nth` sends.
    pub(super) mend: for<'a> fn(&'a Io, &'a SessionGuard, u64) -> Work<'a, Result<Sending>>,
    /// What is sent of a prompt that was mended and added to, where that breaks no rule.
    pub(super) go_on: fn(&SessionGuard, Rc<MendedPrompt>) -> Result<Option<Sending>>,
}

/// Mending.
pub static MENDING: Mending = Mending { mend: |io, guard, nth| Box::pin(mend(io, guard, nth)), go_on };

/// The way to it. It is in the stage of the ladder, which such a conversation needs next.
pub static TO_MENDING: Seam<Mending> = Seam::new(CodeStage::Compact, &MENDING);

async fn mend(io: &Io, guard: &SessionGuard, nth: u64) -> Result<Sending> {
    guard.state_mut().handed_out = None;
    let items = guard.context().items().to_vec();
    guard.state_mut().note_own(&items);
    let whole = out(&items);
    let (repaired, changes) = {
        let values = parsed(&items)?;
        guard.format().rules().repair(&values)
    };
    // What leans on a message that is not sent as it is says nothing.
    let is_sent = |at: usize| repaired.iter().any(|part| matches!(part, Repaired::Keep(kept) if *kept == at));
    let leans = guard.context().totals().leaning > 0;
    if leans && lean::unsent(io, guard, &is_sent).await? {
        return Box::pin(mend(io, guard, nth)).await;
    }
    let omitted = omitted(&items, &repaired, &changes);
    if guard.state().omitted != omitted {
        tell(io, &items, &changes);
    }
    guard.state_mut().omitted = omitted;
    if repaired.is_empty() {
        return Err(nothing_to_send(&items, &changes));
    }
    let kept: Vec<Option<usize>> =
        repaired.iter().map(|part| if let Repaired::Keep(at) = part { Some(*at) } else { None }).collect();
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
                sent.push(Item::new(Rc::clone(&body), size, origin));
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
    let mut rules: Vec<&str> = changes.iter().map(|change| change.rule).collect();
    order::unique(&mut rules);
    let mut past = Past::default();
    let is_sound = guard.format().wire().grows(&mut past, &parsed(sent.items())?);
    let mended = Some(mended(guard, &sent, &rules));
    let mut state = guard.state_mut();
    let estimated = state.estimated(&sent);
    state.note_sent(estimated);
    // What is added may belong to what is not sent as it is: not behind a message on which nothing depends.
    let open = past.messages().saturating_sub(1);
    let from = items.len().saturating_sub(sent.len() - open);
    if is_sound && kept.iter().skip(open).copied().eq((from..items.len()).map(Some)) {
        Rc::make_mut(&mut state.context).settle();
        state.mended = Some(Rc::new(MendedPrompt { nth, items: items.len(), sent, past, rules }));
    }
    Ok(Sending { nth, kept: 0, items: outs, usage, mended })
}

/// Adds what is new to a prompt that was mended; nothing where that changes how it is to be mended.
fn go_on(guard: &SessionGuard, prompt: Rc<MendedPrompt>) -> Result<Option<Sending>> {
    let context = Rc::clone(&guard.state().context);
    let settled = context.settled();
    let new = context.since(prompt.items);
    // What leans on a message, reasoning that is bound to the ones before it and a compaction that stands for them depend on
    // more than the rules.
    let leans = new.iter().any(|item| item.origin.bases().next().is_some());
    let format = guard.format();
    let is_bound = |value: &Value<'_>| {
        let compacts = |part: &Part<'_>| matches!(part, Part::Compaction { .. });
        !matches!(format.rules().without_bound_reasoning(value), Unbound::Same)
            || format.wire().read(0, value).is_ok_and(|message| message.parts.iter().any(compacts))
    };
    if prompt.items > settled || leans || parsed(new)?.iter().any(is_bound) {
        return Ok(None);
    }
    let mut prompt = Rc::unwrap_or_clone(prompt);
    let kept = prompt.sent.len();
    new.iter().cloned().for_each(|item| prompt.sent.push(item));
    let added = parsed(prompt.sent.since(prompt.past.messages()))?;
    if !format.wire().grows(&mut prompt.past, &added) {
        return Ok(None);
    }
    drop(added);
    let usage = usage_of(&guard.state(), &prompt.sent);
    if usage.used_tokens > guard.settings().hard_limit {
        return Ok(None);
    }
    let (items, mended) = (out(new), Some(mended(guard, &prompt.sent, &prompt.rules)));
    let mut state = guard.state_mut();
    state.prepared += 1;
    state.note_own(new);
    let estimated = state.estimated(&prompt.sent);
    state.note_sent(estimated);
    // What was found of the context itself holds no further than it was settled.
    state.past = state.past.take().filter(|(_, past)| past.messages() <= settled);
    (prompt.nth, prompt.items) = (state.prepared, context.len());
    drop(context);
    Rc::make_mut(&mut state.context).settle();
    let nth = prompt.nth;
    state.mended = Some(Rc::new(prompt));
    Ok(Some(Sending { nth, kept, items, usage, mended }))
}

/// What an edit of the prompt says of messages that are left out, or mended.
fn mended(guard: &SessionGuard, sent: &Context, rules: &[&str]) -> Edit {
    let state = guard.state();
    let mut indices: Vec<usize> = state.omitted.iter().map(|omitted| omitted.index).collect();
    order::unique(&mut indices);
    let freed = state.tokens().saturating_sub(state.tokens_with(sent));
    let detail = Some(format!("not sent as the provider would refuse it ({})", rules.join(", ")));
    Edit { detail, ..Edit::named("repair", indices, freed) }
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
    Error::new(Code::InvalidMessage, what).at(index)
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
