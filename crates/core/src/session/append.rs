//! Messages on their way into the log: their format, their sizes, their batches.

use super::kept_tools::KeptTools;
use crate::compaction;
use crate::context::{Context, Item, MessageSource, Place};
use crate::error::{Code, Error, Result};
use crate::log::known::KnownMessage;
use crate::log::retry::{Tried, retry_from};
use crate::log::staging::rows_of;
use crate::log::state::{APPEND_OVERHEAD_OPS, FormatDecision, PendingMessage, size_of};
use crate::log::{SessionGuard, measure};
use crate::message::limits;
use crate::step::{Io, LogLevel};
use crate::wire::{self, Format};
use serde_json_borrow::Value;
use std::rc::Rc;

/// The positions of messages on their way into the log in what the app passed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AppendInput {
    /// Index of the first in the app's array, for errors.
    pub(crate) first: usize,
    /// Index of the first among the bodies of this operation.
    pub(crate) nth: usize,
    /// Nothing more is written once someone else wrote first.
    pub(crate) guarded: bool,
    /// How often someone else wrote first so far.
    pub(crate) races: usize,
}

/// Appends messages after all of them were read and measured. Returns their log positions, and whether it gave up
/// because someone else wrote first. A compaction of the provider among them is taken over.
pub(crate) async fn append(
    io: &Io,
    guard: &SessionGuard,
    bodies: &[Rc<str>],
    given: AppendInput,
) -> Result<(Vec<Place>, bool)> {
    let written = append_all(io, guard, bodies, given).await?;
    if let Err(error) = compaction::recognize(io, guard).await {
        // The messages are there, and the next prepare looks again.
        io.log(LogLevel::Warn, format!("A compaction of the provider is not taken over yet: {error}"));
    }
    Ok(written)
}

async fn append_all(
    io: &Io,
    guard: &SessionGuard,
    bodies: &[Rc<str>],
    given: AppendInput,
) -> Result<(Vec<Place>, bool)> {
    let mut places = Vec::with_capacity(bodies.len());
    if bodies.is_empty() {
        return Ok((places, false));
    }
    for (nth, body) in bodies.iter().enumerate() {
        limits::check_bytes(given.first + nth, body.len())?;
    }
    let mut settled = settle_format(io, guard, bodies, given.first).await?;
    if settled.sure {
        guard.state().check_server(settled.format)?;
    }
    let mut measured = measure_all(io, guard, settled.format, bodies, given, guard.messages()).await?;
    let mut races = given.races;
    let mut written = 0;
    let most = guard.state().max_batch_ops.saturating_sub(APPEND_OVERHEAD_OPS).max(1);
    let ver = guard.state().row.ver;
    guard.begin_for(io, bodies.iter().map(|body| body.len()).max().unwrap_or(0)).await?;
    if guard.state().row.ver != ver {
        // Someone else may have begun the session, and written to it.
        again(io, guard, bodies, given, 0, &mut settled, &mut measured).await?;
    }
    while written < bodies.len() {
        let batch_id = io.new_id().await?;
        let first = races;
        let more = retry_from(io, Some(guard), first, async |attempt| {
            if attempt.nth > first {
                if given.guarded {
                    return Ok(Tried::Done(None));
                }
                races = attempt.nth;
                again(io, guard, bodies, given, written, &mut settled, &mut measured).await?;
            }
            let batch = fitting(measured.get(written..).unwrap_or_default(), most);
            Ok(match guard.try_append(io, &mut settled, &batch, &batch_id).await? {
                Tried::Done(more) => Tried::Done(Some(more)),
                Tried::Lost(error, row) => Tried::Lost(error, row.map(|(id, more)| (id, Some(more)))),
            })
        });
        let more = more.await.map_err(|error| half_way(error, written, bodies.len()))?;
        let Some(more) = more else { return Ok((places, true)) };
        written += more.len();
        if let Some(first) = more.first() {
            guard.state_mut().note_unseen(first.index);
        }
        let end = more.last().map_or(0, |last| last.index + 1);
        places.extend(more);
        // After a batch whose answer was lost there may be another one by now.
        if given.guarded && written < bodies.len() && end < guard.messages() {
            return Ok((places, true));
        }
    }
    Ok((places, false))
}

/// Brings what is left to write up to date with what someone else wrote: the context is another one, and the format may be.
async fn again(
    io: &Io,
    guard: &SessionGuard,
    bodies: &[Rc<str>],
    given: AppendInput,
    written: usize,
    settled: &mut FormatDecision,
    measured: &mut Vec<PendingMessage>,
) -> Result<()> {
    let before = std::mem::replace(settled, settle_format(io, guard, bodies, given.first).await?);
    // A message that another tab overtook has another index, which the app's pins may go by.
    if settled.format != before.format || guard.settings().app_pins {
        let first = guard.messages().saturating_sub(written);
        *measured = measure_all(io, guard, settled.format, bodies, given, first).await?;
    }
    Ok(())
}

/// As many of the first messages as one batch holds; one at least. A large one takes several rows.
fn fitting(measured: &[PendingMessage], most: usize) -> Vec<PendingMessage> {
    let mut rows = 0;
    let rows_so_far = measured.iter().map(|message| {
        rows += rows_of(&message.body);
        rows
    });
    let count = rows_so_far.take_while(|rows| *rows <= most).count().max(1);
    measured.iter().take(count).cloned().collect()
}

/// Refuses what an append would refuse, and asks the app nothing; `first` is the place of the first that was given.
pub(super) async fn check_all(io: &Io, guard: &SessionGuard, bodies: &[Rc<str>], first: usize) -> Result<()> {
    if bodies.is_empty() {
        return Ok(());
    }
    for (nth, body) in bodies.iter().enumerate() {
        limits::check_bytes(first + nth, body.len())?;
    }
    let format = settle_format(io, guard, bodies, first).await?.format;
    for (nth, body) in bodies.iter().enumerate() {
        let value = wire::parse(first + nth, body)?;
        limits::check(first + nth, &value, &wire::take(format, first + nth, &value)?)?;
    }
    Ok(())
}

/// Reads and measures messages; `first` is the index of the first among the app's.
async fn measure_all(
    io: &Io,
    guard: &SessionGuard,
    format: Format,
    bodies: &[Rc<str>],
    given: AppendInput,
    first: usize,
) -> Result<Vec<PendingMessage>> {
    let settings = guard.settings();
    let mut measured = Vec::with_capacity(bodies.len());
    let mut kept_tools = KeptTools::of(&settings.tool_policies, guard)?;
    for (nth, body) in bodies.iter().enumerate() {
        let (mut size, is_kept) = {
            let value = wire::parse(given.first + nth, body)?;
            let message = wire::take(format, given.first + nth, &value)?;
            limits::check(given.first + nth, &value, &message)?;
            (size_of(&settings, &message), kept_tools.note(given.first + nth, &message)?)
        };
        let whose = MessageSource::New(given.nth + nth);
        if settings.app_counts {
            size.tokens = io.count(whose, body).await?;
        }
        let pinned = settings.app_pins && io.pin(whose, first + nth, body).await? || is_kept;
        let keeps_keys = guard.state().keeps_keys();
        let known = if keeps_keys { Some(KnownMessage::of(format, given.first + nth, body)?) } else { None };
        measured.push(PendingMessage { body: Rc::clone(body), size, pinned, known });
    }
    Ok(measured)
}

/// A call with more messages than one batch holds is written in several, each of which is whole.
fn half_way(mut error: Error, written: usize, of: usize) -> Error {
    if written > 0 {
        error.message = format!(
            "the first {written} of {of} messages were appended, the others were not: append those, or sync the whole \
             history; {}",
            error.message
        );
    }
    error
}

/// The format, decided as soon as a message says it; until then the first that nothing speaks against. Only the new
/// messages are judged, and the context is read again only when the format changes.
async fn settle_format(
    io: &Io,
    guard: &SessionGuard,
    bodies: &[Rc<str>],
    first: usize,
) -> Result<FormatDecision> {
    if let Some(format) = guard.state().row.format {
        return Ok(FormatDecision { format, sure: true, plausible: Vec::new(), context: None });
    }
    let (format, sure, plausible) = {
        let new = bodies.iter().enumerate().map(|(nth, body)| wire::parse(first + nth, body));
        let values = new.collect::<Result<Vec<_>>>()?;
        let so_far = guard.state().plausible.clone();
        let rated = wire::rate(&values, &so_far).map_err(|error| further(error, first))?;
        match rated.format() {
            Some((format, sure)) => (format, sure, rated.plausible),
            None => return Err(no_format(&values, first)),
        }
    };
    let mut context = None;
    if format != guard.format() {
        let before: Vec<Item> = guard.context().items().to_vec();
        let mut items = Vec::with_capacity(before.len());
        for item in before {
            let size = measure(io, &guard.settings(), format, item.origin.whose(), &item.body).await?;
            items.push(Item::new(item.body, size, item.origin));
        }
        let mut measured: Context = items.into_iter().collect();
        measured.set_left(guard.context().left().to_vec());
        context = Some(measured);
    }
    Ok(FormatDecision { format, sure, plausible, context })
}

/// The error of a message that is `first` places further on.
fn further(mut error: Error, first: usize) -> Error {
    error.index = error.index.map(|index| index + first);
    error
}

/// Why new messages have no format that the session could be in.
fn no_format(values: &[Value<'_>], first: usize) -> Error {
    match wire::detect(values) {
        Err(error) => further(error, first),
        Ok(format) => {
            let what = format!(
                "a message in {} cannot follow the earlier messages of this session; pass `format`",
                format.as_str()
            );
            Error::new(Code::UnknownFormat, what).at(first)
        }
    }
}
