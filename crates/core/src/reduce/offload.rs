//! Tool results out to the store, references in (`S1.1` to `S1.3`).

use super::reasoning;
use crate::error::{Code, Error, Result};
use crate::order;
use crate::plan::{Edit, OffloadReport, Rung, Trigger};
use crate::recall::Answers;
use crate::session::{Cause, Change, Held, Item, NewBlob, Offload, Origin, Splice, State, ids, measure};
use crate::step::{Effect, Io, Level, Notice, Progress, Stage, Whose};
use crate::wire;
use std::rc::Rc;

/// One message with results to move.
#[derive(Debug, Clone)]
struct Move {
    at: usize,
    item: Item,
    blobs: Vec<NewBlob>,
}

/// Offloading runs at the threshold, or when the provider said that the prompt was too long. A manual compaction
/// summarises and leaves results where they are.
pub(crate) fn fires(state: &State, trigger: Trigger) -> bool {
    match trigger {
        Trigger::Overflow => true,
        Trigger::Manual | Trigger::None => false,
        Trigger::Auto => state.tokens() >= state.settings.numbers.offload_threshold,
    }
}

/// The results that would be moved: those of the first `scanRatio` of the messages with more than `minChars`
/// characters that are not references already. Which are is known from the session's own table, not from their text.
/// What the model read back stays: moved again, it would be read again.
fn propose(state: &State) -> Result<Vec<Move>> {
    let numbers = &state.settings.numbers;
    let items = state.context.items();
    let scanned = (items.len() as f64 * numbers.scan_ratio) as usize;
    let mut moves = Vec::new();
    let mut answers = Answers::default();
    for (at, item) in items.iter().enumerate().take(scanned) {
        let Some(place) = item.origin.place() else { continue };
        let value = wire::parse(place.index, &item.body)?;
        let message = state.format().wire().read(place.index, &value)?;
        let mut blobs = Vec::new();
        for ((nth, result), is_answer) in message.results().enumerate().zip(answers.of(&message)) {
            let is_reference = item.origin.offloads().iter().any(|offload| offload.nth == nth);
            let chars = result.text.chars().count();
            if is_reference || is_answer || chars <= numbers.min_chars {
                continue;
            }
            let offload = Offload {
                nth,
                reference: ids::reference(&state.row.secret, place.index, nth),
                sha256: ids::sha256_hex(result.text.as_bytes()),
                chars,
            };
            blobs.push(NewBlob { index: place.index, offload, text: result.text.to_string() });
        }
        if !blobs.is_empty() {
            moves.push(Move { at, item: item.clone(), blobs });
        }
    }
    Ok(moves)
}

/// The text that stands where a result was.
fn reference_text(reference: &str) -> String {
    format!("Tool result is at: {reference}")
}

/// The item with its references in place; its size is still to be measured.
fn edited(state: &State, planned: &Move) -> Result<Item> {
    let broken = || Error::new(Code::Poisoned, "a tool result could not be replaced in its own message");
    let place = planned.item.origin.place().ok_or_else(broken)?;
    let mut body = Rc::clone(&planned.item.body);
    for blob in &planned.blobs {
        let value = wire::parse(place.index, &body)?;
        let text = reference_text(&blob.offload.reference);
        let json =
            state.format().wire().with_result_text(&value, blob.offload.nth, &text).ok_or_else(broken)?;
        body = Rc::from(json);
    }
    let mut offloads = planned.item.origin.offloads().to_vec();
    offloads.extend(planned.blobs.iter().map(|blob| blob.offload.clone()));
    let offloads = order::by_key(offloads, |offload| offload.nth as u64);
    let reasoning_removed = matches!(planned.item.origin, Origin::Edited { reasoning_removed: true, .. });
    let origin = Origin::Edited { place, offloads, reasoning_removed };
    Ok(Item { body, size: planned.item.size, origin })
}

/// Moves results to the store. One that cannot be stored stays in place with a warning, the others go on (`S1.3`).
/// A rehearsal tells nobody: nothing happened.
pub(crate) async fn run(io: &Io, held: &Held, trigger: Trigger, rehearse: bool) -> Result<Edit> {
    let before = held.tokens();
    let moves = propose(&held.state())?;
    let total = moves.iter().map(|planned| planned.blobs.len()).sum();
    let progress = |done, tokens_now| {
        if rehearse {
            return;
        }
        io.tell(Effect::Progress(Progress {
            stage: Stage::Offload,
            done,
            total,
            tokens_before: before,
            tokens_now,
        }));
    };
    let mut edit = Edit::of(Rung::Offload);
    if moves.is_empty() {
        return Ok(edit);
    }
    progress(0, before);
    let mut count = 0;
    let mut waiting = batches(moves, held.state().max_batch_ops);
    while let Some(batch) = waiting.pop() {
        match store(io, held, &batch, trigger).await {
            Ok(()) => {
                count += batch.iter().map(|planned| planned.blobs.len()).sum::<usize>();
                edit.indices
                    .extend(batch.iter().filter_map(|planned| planned.item.origin.place()).map(|p| p.index));
                progress(count, held.tokens());
            }
            // Whatever the store takes is moved: halves, and halves of those, down to the one that it does not.
            Err(error) if concerns_one_item(&error) => match halves(batch) {
                Ok((first, second)) => waiting.extend([second, first]),
                Err(one) => warn(io, &one, error),
            },
            Err(error) => return Err(error),
        }
    }
    edit.indices.dedup();
    edit.tokens_freed = before.saturating_sub(held.tokens());
    edit.offload = Some(OffloadReport {
        offloaded_count: count,
        previous_tokens: before,
        current_tokens: held.tokens(),
        freed_tokens: edit.tokens_freed,
        still_exceeds_threshold: held.tokens() >= held.settings().numbers.offload_threshold,
    });
    if count > 0 {
        edit.detail = Some(format!("{count} results"));
    }
    if count > 0 && !rehearse {
        io.log(Level::Info, format!("Offloaded {count} tool results, {} tokens freed", edit.tokens_freed));
        io.tell(Effect::Notify(Notice::Offload { count, freed_tokens: edit.tokens_freed }));
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
        let ops: usize = planned.blobs.iter().map(|blob| blob.rows()).sum();
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
fn halves(mut batch: Vec<Move>) -> Result<(Vec<Move>, Vec<Move>), Move> {
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
        Some(one) => Err(one),
        None => Ok((Vec::new(), Vec::new())),
    }
}

fn concerns_one_item(error: &Error) -> bool {
    matches!(error.code, Code::QuotaExceeded | Code::TooLarge)
}

fn warn(io: &Io, planned: &Move, error: Error) {
    let index = planned.item.origin.place().map_or(0, |place| place.index);
    let message =
        format!("a result of message {index} could not be stored and stays in the context: {error}");
    io.log(Level::Warn, message.clone());
    io.tell(Effect::Notify(Notice::Warning { code: error.code, message }));
}

async fn store(io: &Io, held: &Held, moves: &[Move], trigger: Trigger) -> Result<()> {
    let mut splices = Vec::with_capacity(moves.len());
    let mut blobs = Vec::new();
    let tokens_before = held.tokens();
    let mut freed = 0;
    for planned in moves {
        // An earlier batch may have changed the same message.
        let Some(now) = held.context().items().get(planned.at).cloned() else { continue };
        let planned = &Move { item: now, ..planned.clone() };
        let mut item = edited(&held.state(), planned)?;
        item.size = measure(io, &held.settings(), held.format(), Whose::Ours, &item.body).await?;
        freed += planned.item.size.tokens.saturating_sub(item.size.tokens);
        splices.push(Splice { at: planned.at, remove: 1, insert: vec![item] });
        blobs.extend(planned.blobs.iter().cloned());
    }
    let (splices, of_reasoning) = reasoning::unbind(io, held, splices).await?;
    freed += of_reasoning;
    let cause = Cause {
        rung: Rung::Offload.as_str().into(),
        trigger: trigger.as_str().into(),
        tokens_before,
        tokens_after: tokens_before.saturating_sub(freed),
        preset: held.settings().preset.name.into(),
        prompt_version: None,
        model: None,
        input: String::new(),
    };
    held.change(io, Change { splices, blobs, cause, job: None }).await
}

/// The message of an offloaded item with its results back in place; `texts` are those of its offloads, in order.
pub(crate) fn restored(state: &State, item: &Item, texts: &[String]) -> Result<Rc<str>> {
    let mut body = Rc::clone(&item.body);
    for (offload, text) in item.origin.offloads().iter().zip(texts) {
        let value = wire::parse(0, &body)?;
        if let Some(json) = state.format().wire().with_result_text(&value, offload.nth, text) {
            body = Rc::from(json);
        }
    }
    Ok(body)
}
