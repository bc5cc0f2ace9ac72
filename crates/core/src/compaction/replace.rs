//! Tool results, and inputs of calls, out to the store, something shorter in their place: what every rung without a model does.
//! The original has a reference, so that whatever was done can be read, explained and undone.

use super::calls::facts;
use super::lean::{self, Newest};
use super::replacement::{Move, Replaceable, Replacement};
use super::result::{Edit, OffloadReport};
use super::rung::Run;
use super::{media, offload, reasoning};
use crate::context::{ExchangePart, Item, MessageSource, Offload, Origin, Placeholder, RECALL_READ, Splice};
use crate::error::{Code, Error, Result};
use crate::keys::ids;
use crate::log::{Closing, ContextChange, NewBlob, View, measure};
use crate::message::Role;
use crate::order;
use crate::policy::Rung;
use crate::recall::Answers;
use crate::step::{Effect, Io, LogLevel, Notice, Progress, Stage};
use crate::text;
use crate::wire::{self, Format};
use serde_json_borrow::Value;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::{Bound, RangeBounds};
use std::rc::Rc;

/// Messages before a result among which its call is looked for: calls that run side by side have their results in as many.
const NEAR: usize = 16;

/// Where a result is, and what it is the result of: `Tool result is at: off_… (Read src/a.ts; 8,400 characters; read it with
/// recall_read)`, or `Tool result left out; look it up again if needed (Read src/a.ts; 8,400 characters)`.
pub(super) fn mark(
    view: &View,
    piece: Replaceable<'_>,
    since: Option<&str>,
    chars: usize,
    reference: &str,
) -> String {
    let mut told: Vec<String> = call_of(view, piece).into_iter().collect();
    told.extend(since.map(str::to_owned));
    told.push(format!("{chars} characters"));
    if view.references.by_model {
        told.push(format!("read it with {RECALL_READ}"));
    }
    let stands = if view.references.named { offload::reference(reference) } else { offload::LEFT_OUT.into() };
    format!("{stands} ({})", told.join("; "))
}

/// The call that a result of the context answers: its tool, and its file or command.
fn call_of(view: &View, piece: Replaceable<'_>) -> Option<String> {
    let of = piece.item.exchange(view.format).ok()?;
    let id = of.iter().filter_map(ExchangePart::answers).nth(piece.nth)?;
    let before = view.items().iter().take_while(|item| item.origin.place() != Some(piece.place));
    let near = before.collect::<Vec<_>>().into_iter().rev().take(NEAR);
    let mut calls = near.flat_map(|item| item.exchange(view.format).unwrap_or_default().iter().rev());
    let call = calls.find_map(|part| part.call().filter(|call| &*call.id == id))?;
    Some(facts(call).named.clone()).filter(|named| !named.is_empty())
}

/// What stands for a text that is too large, with how that begins and ends, in about `tokens` tokens.
pub(super) fn ends(view: &View, reference: &str, text: &str, tokens: usize) -> String {
    let chars = text.chars().count();
    let told = match view.references.named {
        true => format!("Too large to stand here ({chars} characters). All of it is at: {reference}"),
        false => format!("Too large to stand here ({chars} characters), the rest is left out."),
    };
    let mut room = tokens.saturating_mul(4).min(chars / 2);
    loop {
        let (head, tail) =
            (text::range(text, 0, Some(room / 3 * 2)), text::range(text, chars - room / 3, None));
        let stands = format!("{told}\nIt begins:\n{head}\n[…]\nIt ends:\n{tail}");
        // Few characters are a token in some scripts.
        if room < 3 || view.settings.estimator.text(&stands) <= tokens {
            return stands;
        }
        room = room / 4 * 3;
    }
}

/// What stands for a text, with how that begins.
pub(super) fn begins(mut stands: String, text: &str) -> String {
    if let Some(line) = first_line(text) {
        stands += BEGINS;
        stands += &line;
    }
    stands
}

/// What stands before the first line of a text.
pub(crate) const BEGINS: &str = "\nIt begins: ";

/// The first line of a text that says something, shortened.
pub(crate) fn first_line(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty());
    line.map(|line| text::range(line.trim(), 0, Some(FIRST_LINE)))
}

/// Characters of a result's first line in the place of the result.
const FIRST_LINE: usize = 120;

/// What `with` makes of texts of the messages of the context in this range: of the inputs of calls or the user's texts, where
/// `how` is for these, else of results. It is asked about those that were not replaced so far, and that are not what the model
/// read back with a recall tool: moved again, it would be read again. Messages that it says nothing of (`may`) are not read.
pub(super) fn moves(
    view: &View,
    range: impl RangeBounds<usize>,
    how: Placeholder,
    may: &dyn Fn(&Item) -> bool,
    mut with: impl FnMut(Replaceable<'_>) -> Option<Replacement>,
) -> Result<Vec<Move>> {
    let mut moves = Vec::new();
    let count = view.context.len();
    let from = if let Bound::Included(from) = range.start_bound() { *from } else { 0 };
    let to = if let Bound::Excluded(to) = range.end_bound() { count.min(*to) } else { count };
    let leaning = if to < count { leaning(view) } else { HashMap::new() };
    let is_result = !matches!(how, Placeholder::Input | Placeholder::Text);
    let mut answers = Answers::default();
    for (at, item) in (from..).zip(view.context.within(from..to)) {
        let Some(place) = item.origin.place() else { continue };
        let answers = if is_result { answers.of(item.exchange(view.format)?) } else { Vec::new() };
        let has_some = match how {
            Placeholder::Text => item.size.role == Role::User,
            Placeholder::Input => item.size.calls > 0,
            _ => item.size.results > 0,
        };
        if !has_some || !may(item) || view.is_pinned(place.index) {
            continue;
        }
        // Its texts are not those that the log has.
        if how != Placeholder::Input && item.origin.lacks_media() {
            continue;
        }
        let value = wire::parse(place.index, &item.body)?;
        let message = view.format.wire().read(place.index, &value)?;
        // What others lean on stays as long as one of them is not in the range.
        let is_leaned_on = |nth: usize| leaning.get(&(place.seq, nth)).is_some_and(|newest| *newest >= to);
        let is_open = |nth: usize| {
            !(is_result && is_leaned_on(nth)
                || item.origin.is_replaced(how, nth)
                || is_result && answers.get(nth) == Some(&true))
        };
        // A result can always be put into its message.
        let fits = |new: &Replacement| {
            is_result || with_text(view.format, &value, &new.blob.offload, &new.text).is_some()
        };
        let open = how.texts(&message).into_iter().enumerate().filter(|(nth, _)| is_open(*nth));
        let found = open
            .filter_map(|(nth, text)| with(Replaceable { item, place, nth, text, tokens: &OnceCell::new() }));
        let blobs: Vec<Replacement> = found.filter(fits).collect();
        if !blobs.is_empty() {
            moves.push(Move { at, item: item.clone(), blobs });
        }
    }
    Ok(moves)
}

/// Where each result that others lean on is leaned on last: the position of that in the context, by the position of its
/// message in the log and which result of it that is.
pub(super) fn leaning(view: &View) -> HashMap<(u64, usize), usize> {
    if view.context.totals().leaning == 0 {
        return HashMap::new();
    }
    let all = view.items().iter().enumerate();
    all.flat_map(|(at, item)| item.origin.bases().map(move |basis| ((basis.seq, basis.nth), at))).collect()
}

/// Moves in the order of the context, one for a message.
pub(super) fn joined(moves: Vec<Move>) -> Vec<Move> {
    let mut joined: Vec<Move> = Vec::with_capacity(moves.len());
    for planned in order::by_key(moves, |planned| planned.at as u64) {
        match joined.last_mut() {
            Some(last) if last.at == planned.at => last.blobs.extend(planned.blobs),
            _ => joined.push(planned),
        }
    }
    joined
}

/// The reference of the `nth` text of its kind in message `index`.
pub(crate) fn reference_of(secret: &str, index: usize, how: Placeholder, nth: usize) -> String {
    let kind = match how {
        Placeholder::Input => "input/",
        Placeholder::Text => "text/",
        Placeholder::Media => "media/",
        _ => "",
    };
    ids::reference(secret, index, kind, nth)
}

/// A message with the text of an offload, or with what stands for it, in its place.
pub(crate) fn with_text(
    format: Format,
    message: &Value<'_>,
    offload: &Offload,
    text: &str,
) -> Option<String> {
    let (rules, nth) = (format.rules(), offload.nth);
    match offload.how {
        Placeholder::Input => rules.with_call_arguments(message, nth, text),
        Placeholder::Text => wire::with_text(format, message, nth, text),
        Placeholder::Media => None,
        _ => rules.with_result_text(message, nth, text),
    }
}

/// The item with its references in place; its size is still to be measured.
fn edited(format: Format, planned: &Move) -> Result<Item> {
    let broken =
        || Error::new(Code::Poisoned, "a tool result or an input could not be replaced in its own message");
    let place = planned.item.origin.place().ok_or_else(broken)?;
    let mut body = Rc::clone(&planned.item.body);
    let (media, texts): (Vec<_>, Vec<_>) = planned.blobs.iter().partition(|new| new.blob.offload.is_media());
    for Replacement { blob, text, .. } in texts {
        let value = wire::parse(place.index, &body)?;
        body = Rc::from(with_text(format, &value, &blob.offload, text).ok_or_else(broken)?);
    }
    if !media.is_empty() {
        let value = wire::parse(place.index, &body)?;
        body = Rc::from(media::without(format, &value, media).ok_or_else(broken)?);
    }
    let mut offloads = planned.item.origin.offloads().to_vec();
    offloads.extend(planned.blobs.iter().map(|replacement| replacement.blob.offload.clone()));
    let offloads = order::by_key(offloads, Offload::order);
    let reasoning_removed = matches!(planned.item.origin, Origin::Edited { reasoning_removed: true, .. });
    let origin = Origin::Edited { place, offloads, reasoning_removed };
    Ok(Item::new(body, planned.item.size, origin))
}

/// Replaces results. One that cannot be stored stays in place with a warning, the others go on (`S1.3`).
pub(super) async fn run(
    run: &Run<'_>,
    rung: Rung,
    moves: Vec<Move>,
    mut job: Option<Closing>,
) -> Result<Edit> {
    let (io, before) = (run.io, run.tokens());
    let total = moves.iter().map(|planned| planned.blobs.len()).sum();
    let progress = |done, current_tokens| {
        io.tell(Effect::Progress(Progress {
            stage: Stage::Offload,
            done,
            total,
            previous_tokens: before,
            current_tokens,
        }));
    };
    let mut edit = Edit::of(rung);
    if moves.is_empty() {
        return Ok(edit);
    }
    progress(0, before);
    let mut count = 0;
    let mut waiting = batches(moves, run.max_batch_ops());
    while let Some(batch) = waiting.pop() {
        match store(run, rung, &batch, job.clone()).await {
            Ok(()) => {
                job = None;
                count += batch.iter().map(|planned| planned.blobs.len()).sum::<usize>();
                edit.indices
                    .extend(batch.iter().filter_map(|planned| planned.item.origin.place()).map(|p| p.index));
                progress(count, run.tokens());
            }
            // Whatever the store takes is moved: halves, and halves of those, down to the one that it does not.
            Err(error) if error.code == Code::TooLarge => match halves(batch) {
                Ok((first, second)) => waiting.extend([second, first]),
                Err(one) => warn(io, &one, error),
            },
            Err(error) => return Err(error),
        }
    }
    edit.indices.dedup();
    let View { usage, settings, .. } = run.view();
    edit.freed_tokens = before.saturating_sub(usage.tokens);
    // Clearing is silent (`S3.1`), but not where it leaves references as offloading does.
    let silent = rung == Rung::Clear && !settings.preset.stubs;
    if !silent {
        edit.offload = Some(OffloadReport {
            offloaded_count: count,
            previous_tokens: before,
            current_tokens: usage.tokens,
            freed_tokens: edit.freed_tokens,
            still_exceeds_threshold: usage.is_due,
        });
    }
    if count > 0 {
        let (one, many) = if rung == Rung::Media { media::WORDS } else { ("result", "results") };
        edit.detail = Some(text::counted(count, one, many));
        let did = match rung {
            Rung::Media => "Left out",
            _ if silent => "Cleared",
            _ => "Offloaded",
        };
        let level = if silent { LogLevel::Debug } else { LogLevel::Info };
        let (one, many) = if rung == Rung::Media { media::WORDS } else { ("tool result", "tool results") };
        let what = text::counted(count, one, many);
        io.log(level, format!("{did} {what}, {} tokens freed", edit.freed_tokens));
        if !silent {
            io.tell(Effect::Notify(Notice::Offload { count, freed_tokens: edit.freed_tokens }));
        }
    }
    Ok(edit)
}

/// The moves in as few batches as the store takes them in; the first is the last of the list.
fn batches(moves: Vec<Move>, max_ops: usize) -> Vec<Vec<Move>> {
    // View, log row, session row and what they expect.
    let room = max_ops.saturating_sub(8);
    let mut batches: Vec<Vec<Move>> = Vec::new();
    let mut used = usize::MAX;
    for planned in moves {
        let ops: usize = planned.blobs.iter().map(|replacement| replacement.blob.rows()).sum();
        match batches.last_mut() {
            Some(batch) if used.saturating_add(ops) <= room => {
                used += ops;
                batch.push(planned);
            }
            _ => {
                used = ops;
                batches.push(vec![planned]);
            }
        }
    }
    batches.reverse();
    batches
}

/// A batch in two, or the one result that it is.
fn halves(mut batch: Vec<Move>) -> Result<(Vec<Move>, Vec<Move>), Box<Move>> {
    let second = batch.split_off(batch.len().div_ceil(2));
    if !second.is_empty() {
        return Ok((batch, second));
    }
    match batch.pop() {
        Some(mut one) if one.blobs.len() > 1 => {
            let rest = one.blobs.split_off(one.blobs.len() / 2);
            let other = Move { blobs: rest, ..one.clone() };
            Ok((vec![one], vec![other]))
        }
        Some(one) => Err(Box::new(one)),
        None => Ok((Vec::new(), Vec::new())),
    }
}

fn warn(io: &Io, planned: &Move, error: Error) {
    let index = planned.item.origin.place().map_or(0, |place| place.index);
    let message = format!(
        "a tool result or an input of message {index} could not be stored and stays in the context: {error}"
    );
    io.log(LogLevel::Warn, message.clone());
    io.tell(Effect::Notify(Notice::Warning { code: error.code, message }));
}

async fn store(run: &Run<'_>, rung: Rung, moves: &[Move], job: Option<Closing>) -> Result<()> {
    let view = run.view();
    let (splices, blobs, freed) = replaced(run.io, &view, moves).await?;
    let cause = run.cause(rung.stored(), view.usage.tokens.saturating_sub(freed));
    let first = splices.iter().map(|splice| splice.at).min();
    run.change(ContextChange { blobs, job, ..ContextChange::compaction(splices, cause) }).await?;
    run.cleared(first.unwrap_or_default());
    Ok(())
}

/// What moves change, what they store, and the tokens that they free.
pub(super) async fn replaced(
    io: &Io,
    view: &View,
    moves: &[Move],
) -> Result<(Vec<Splice>, Vec<NewBlob>, usize)> {
    let mut splices = Vec::with_capacity(moves.len());
    let mut blobs = Vec::new();
    let mut freed = 0;
    for planned in moves {
        // An earlier batch may have changed the same message.
        let Some(now) = view.context.get(planned.at).cloned() else { continue };
        let planned = &Move { item: now, ..planned.clone() };
        let mut item = edited(view.format, planned)?;
        item.size = measure(io, &view.settings, view.format, MessageSource::Ours, &item.body).await?;
        freed += planned.item.size.tokens.saturating_sub(item.size.tokens);
        splices.push(Splice { at: planned.at, remove: 1, insert: vec![item] });
        blobs.extend(planned.blobs.iter().map(|replacement| replacement.blob.clone()));
    }
    // Media are in the log alone.
    blobs.retain(|blob: &NewBlob| !blob.offload.is_media());
    let (splices, more) = lean::settle(io, view, splices, Newest::Short).await?;
    let (splices, of_reasoning) = reasoning::unbind(io, view, splices).await?;
    Ok((splices, blobs, freed.saturating_add_signed(-more) + of_reasoning))
}

/// The message of an offloaded item with its texts back in place; `texts` are those of its offloads, in order. Media stay what
/// they are told as.
pub(super) fn restored(format: Format, item: &Item, texts: &[String]) -> Result<Rc<str>> {
    let mut body = Rc::clone(&item.body);
    for (offload, text) in item.origin.offloads().iter().zip(texts) {
        if let Some(json) = with_text(format, &wire::parse(0, &body)?, offload, text) {
            body = Rc::from(json);
        }
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_1_a_result_an_input_and_a_text_of_one_message_have_references_of_their_own() {
        let of = |how| reference_of("secret", 3, how, 0);
        let (result, input, text) = (of(Placeholder::Preview), of(Placeholder::Input), of(Placeholder::Text));
        assert!(result != input && input != text && text != result);
    }
}
