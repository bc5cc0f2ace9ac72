//! A whole history handed over: what of it the session has is recognized ([`super::super::recognize`]), the rest appended.

use super::super::append::{AppendInput, append};
use super::super::live::{MARK, TO_LIVE};
use super::super::recognize::{Handed, Lived, Logged, Recognized, SyncDecision};
use super::Session;
use super::branching::{Branched, Divergence, TO_BRANCHING};
use crate::context::{Origin, Place, Why};
use crate::error::{Code, Error, Result};
use crate::keys::batch::keys;
use crate::log::SessionGuard;
use crate::log::known::KnownMessage;
use crate::log::record::{self, RowKind, load_items};
use crate::log::renamed::is_moved;
use crate::log::stored::{page, row_at};
use crate::log::wide;
use crate::step::{Effect, Io, Machine, Notice};
use crate::wire::{Format, Rest};
use serde::Serialize;
use std::rc::Rc;

/// What a sync led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Synced {
    /// Messages that were appended.
    pub appended: usize,
    /// Messages that the session had.
    pub recognized: usize,
    /// Messages that were appended as another version of one that the session had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<usize>,
    /// The first message of the log that was left behind, for another branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branched_at: Option<usize>,
    /// The message of the log that the first given one is, where that is not the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aligned_at: Option<usize>,
    /// Where the last of the given messages are, as many as this call wrote in one go.
    pub places: Vec<Place>,
    /// Given messages that are messages of the log: index of the first given, of the first in the log, how many.
    pub same: Vec<(usize, usize, usize)>,
    /// Not all was done: the messages that were known are not the session's history any more, or some of them are appended
    /// again. Hand over all of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// The format that the session's messages are read in.
    pub format: Format,
}

impl Session {
    /// Takes over a whole history: what is known is recognized, the rest appended. With `known`, the host has seen that
    /// the first `known` messages are the very objects that it appended before, and `bodies` are those behind them.
    pub fn sync(&self, known: usize, bodies: Vec<Rc<str>>) -> Machine<Synced> {
        let slot = self.slot.clone();
        Machine::new(move |io| async move {
            let guard = slot.take()?;
            sync(&io, &guard, known, &bodies).await
        })
    }
}

async fn sync(io: &Io, guard: &SessionGuard, known: usize, bodies: &[Rc<str>]) -> Result<Synced> {
    let unlived;
    let (bodies, lived) = if bodies.iter().any(|body| body.contains(MARK)) {
        unlived = Unlived::of(bodies, (TO_LIVE.enter(io).await?.taken)(guard, bodies));
        (unlived.bodies.as_slice(), unlived.lived.as_slice())
    } else {
        (bodies, [].as_slice())
    };
    let mut synced = Synced {
        appended: 0,
        recognized: 0,
        replaced: None,
        branched_at: None,
        aligned_at: None,
        places: Vec::new(),
        same: Vec::new(),
        again: false,
        format: guard.format(),
    };
    let all = known + bodies.len();
    let mut behind = guard.context().behind();
    // Counted over all of it: where the last is lost, `append` fails.
    let mut races = 0;
    // What others wrote is taken over before a branch leaves it behind.
    let mut is_fresh = false;
    loop {
        guard.state_mut().keep_keys();
        let alone = lived.iter().zip(bodies).filter(|(lived, _)| **lived == Lived::Alone);
        for (_, body) in alone {
            guard.state_mut().note_own_text(&Origin::Acknowledgement, body);
        }
        let history = guard.history();
        if known > 0 && guard.context().behind() != behind {
            return Ok(Synced { again: true, ..synced });
        }
        if known > history.len() {
            let what = format!("the session has {} messages, not {known}", history.len());
            return Err(Error::option("known", what));
        }
        if all == 0 && !history.is_empty() {
            let what = "the history is empty; open a new session, or snapshots.rewind(0)";
            return Err(Error::new(Code::InvalidMessage, what));
        }
        let format = guard.format();
        let given = read(format, known, bodies)?;
        let found = match recognize(io, guard, &history, known, (&given, lived)).await {
            Err(error) => {
                let (id, sid) = (guard.state().row.id.clone(), guard.state().sid.clone());
                if !is_moved(io, &id, &sid).await {
                    return Err(error);
                }
                guard.catch_up(io).await?;
                continue;
            }
            Ok(found) => found,
        };
        let (mut from, at) = match found.decision {
            SyncDecision::Append { from } => (from, None),
            SyncDecision::Replace { from } => (from, Some(history.len().saturating_sub(1))),
            SyncDecision::Branch { from, at } => (from, Some(at)),
            SyncDecision::Other => return Err(other()),
        };
        if let Some(at) = at {
            if !is_fresh {
                is_fresh = true;
                guard.catch_up(io).await?;
                continue;
            }
            let is_branch = matches!(found.decision, SyncDecision::Branch { .. });
            let divergence = Divergence { known, bodies, history: &history, found: &found, at, from };
            let branched = (TO_BRANCHING.enter(io).await?.branch)(io, guard, divergence).await?;
            let Some(Branched { start, given, reason }) = branched else {
                return Ok(Synced { again: true, ..synced });
            };
            from = given;
            behind = guard.context().behind();
            if is_branch {
                synced.branched_at = Some(synced.branched_at.map_or(start, |at: usize| at.min(start)));
                io.tell(Effect::Notify(Notice::Branch { index: start, given: from, reason }));
            } else {
                synced.replaced = Some(1);
            }
        }
        synced.aligned_at = synced.aligned_at.or(found.aligned.and_then(|at| history.get(at).copied()));
        {
            let mut state = guard.state_mut();
            for (nth, at) in &found.hits {
                let (Some(index), Some(message)) =
                    (history.get(*at), nth.checked_sub(known).and_then(|nth| given.get(nth)))
                else {
                    continue;
                };
                if state.known(*index).is_none() {
                    state.note_known(*index, *message);
                }
            }
        }
        synced.same = runs(
            found
                .hits
                .iter()
                .filter(|(nth, _)| *nth < from)
                .filter_map(|(nth, at)| Some((*nth, *history.get(*at)?))),
        );
        // What someone else writes meanwhile may be of this very history: it is looked at again.
        let input = AppendInput { first: from, nth: from.saturating_sub(known), guarded: true, races };
        let new = bodies.get(from.saturating_sub(known)..).unwrap_or_default();
        let (places, raced) = append(io, guard, new, input).await?;
        synced.appended += places.len();
        if !raced {
            let recognized = all.saturating_sub(synced.appended);
            return Ok(Synced { recognized, places, format: guard.format(), ..synced });
        }
        races += 1;
    }
}

/// A history that was handed over, without live facts.
struct Unlived {
    bodies: Vec<Rc<str>>,
    lived: Vec<Lived>,
}

impl Unlived {
    fn of(bodies: &[Rc<str>], taken: Vec<Option<Rest>>) -> Self {
        let both = bodies.iter().zip(taken).map(|(body, rest)| match rest {
            None => (Rc::clone(body), Lived::No),
            Some(Rest::Nothing) => (Rc::clone(body), Lived::Alone),
            Some(Rest::Message(rest)) => (Rc::from(rest), Lived::Joined),
        });
        let (bodies, lived) = both.unzip();
        Unlived { bodies, lived }
    }
}

/// What the given messages are.
fn read(format: Format, first: usize, bodies: &[Rc<str>]) -> Result<Vec<KnownMessage>> {
    bodies.iter().enumerate().map(|(nth, body)| KnownMessage::of(format, first + nth, body)).collect()
}

/// Recognizes a history, reading as little of the log as that takes: nothing, then as many of the last messages as were given,
/// then all of them and all views.
async fn recognize(
    io: &Io,
    guard: &SessionGuard,
    history: &[usize],
    known: usize,
    (given, lived): (&[KnownMessage], &[Lived]),
) -> Result<Recognized> {
    let proven = {
        let state = guard.state();
        let chain = if known == 0 { state.key_chain() } else { None };
        chain.map_or(0, |chain| chain.proves(given, history.len()))
    };
    if proven > 0 {
        let mut state = guard.state_mut();
        for (index, message) in history.iter().zip(given).take(proven) {
            if state.known(*index).is_none() {
                state.note_known(*index, *message);
            }
        }
    }
    for step in 0..3 {
        let from = match step {
            0 => history.len(),
            1 => history.len().saturating_sub(known.max(given.len()) + 1),
            _ => 0,
        };
        let unread: Vec<usize> = {
            let state = guard.state();
            let log = history.get(from..).unwrap_or_default();
            log.iter().copied().filter(|index| state.known(*index).is_none()).collect()
        };
        if !unread.is_empty() {
            let bodies = guard.bodies(io, &unread).await?;
            let mut state = guard.state_mut();
            let format = state.format();
            for (index, body) in unread.into_iter().zip(bodies) {
                let message = KnownMessage::of(format, index, &body)?;
                state.note_known(index, message);
            }
        }
        match step {
            1 => beginning(io, guard, history).await?,
            2 => views(io, guard).await?,
            _ => {}
        }
        let log = logged(guard, history);
        let handed = Handed { log: &log, own: guard.state().own(), same: known, given, lived };
        if let Some(found) = handed.decide(step > 0, step == 2) {
            return Ok(found);
        }
    }
    Err(Error::new(Code::Poisoned, "a history was neither recognized nor refused"))
}

/// Reads the first messages where they are the first rows of the log: a history that does not begin with them is a window.
async fn beginning(io: &Io, guard: &SessionGuard, history: &[usize]) -> Result<()> {
    let (sid, format) = (guard.state().sid.clone(), guard.format());
    let first =
        history.iter().take(2).enumerate().filter(|(at, index)| at == *index).map(|(_, index)| *index);
    let unread: Vec<usize> = first.filter(|index| guard.state().known(*index).is_none()).collect();
    if unread.is_empty() || !guard.state().durable {
        return Ok(());
    }
    let rows = wide::read(io, unread.iter().map(|index| keys::log(&sid, *index as u64)).collect()).await?;
    for (index, bytes) in unread.into_iter().zip(rows) {
        let row = bytes.as_deref().and_then(|bytes| row_at(bytes, index as u64).ok());
        if let Some(row) = row.filter(|row| row.kind == RowKind::Message && row.n == index) {
            let message = KnownMessage::of(format, index, row.body.get())?;
            guard.state_mut().note_known(index, message);
        }
    }
    Ok(())
}

fn logged(guard: &SessionGuard, history: &[usize]) -> Vec<Logged> {
    let state = guard.state();
    let removed: Vec<_> = state.context.left().iter().filter(|left| left.why == Why::Removed).collect();
    let is_optional = |index: usize| {
        removed.iter().any(|left| (left.from..left.to).contains(&index))
            || state.omitted.iter().any(|omitted| omitted.index == index)
    };
    let one = |index: &usize| Logged {
        index: *index,
        known: state.known(*index),
        is_optional: is_optional(*index),
        is_erased: state.row.is_erased(*index),
    };
    history.iter().map(one).collect()
}

/// Notes the messages of ours of every view: the app may have kept one of an earlier prompt.
async fn views(io: &Io, guard: &SessionGuard) -> Result<()> {
    let (sid, views) = (guard.state().sid.clone(), guard.state().row.generation);
    let mut after = None;
    while views > 0 && guard.state().durable {
        let rows = page(io, keys::all("views", &sid), after, false).await?;
        let Some((last, _)) = rows.last() else { break };
        after = Some(last.clone());
        for (_, bytes) in rows {
            // A view that cannot be read has nothing that the app could be known by.
            let Ok(view) = record::decode_view(&bytes) else { continue };
            let inserted = view.splices.into_iter().flat_map(|splice| splice.insert);
            for (origin, body) in load_items(view.whole.into_iter().flatten().chain(inserted).collect()) {
                if let Some(body) = body {
                    guard.state_mut().note_own_text(&origin, &body);
                }
            }
        }
    }
    Ok(())
}

/// Pairs one behind the other as runs.
fn runs(pairs: impl Iterator<Item = (usize, usize)>) -> Vec<(usize, usize, usize)> {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for (given, index) in pairs {
        match runs.last_mut() {
            Some((first, start, count)) if *first + *count == given && *start + *count == index => {
                *count += 1
            }
            _ => runs.push((given, index, 1)),
        }
    }
    runs
}

fn other() -> Error {
    let what = "none of these messages is of this session: it is another conversation; give each its own session: a \
                name (openSession({ id })), sessionFor(threadId) of a pool, or a thread of the adapter";
    let mut error = Error::new(Code::Diverged, what);
    error.reason = Some("another conversation".into());
    error
}
