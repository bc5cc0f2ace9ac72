//! Tool results, and inputs of calls, out to the store, something shorter in their place: what every rung without a model does.
//! The original has a reference, so that whatever was done can be read, explained and undone.

use super::reasoning;
use super::result::{Edit, OffloadReport};
use crate::context::{Item, MessageSource, Offload, Origin, Place, Placeholder, Splice};
use crate::error::{Code, Error, Result};
use crate::keys::ids;
use crate::log::{Cause, Closing, ContextChange, NewBlob, SessionGuard, State, measure};
use crate::message::Role;
use crate::order;
use crate::policy::{Rung, Trigger};
use crate::recall::Answers;
use crate::step::{Effect, Io, LogLevel, Notice, Progress, Stage};
use crate::text;
use crate::wire;
use serde_json_borrow::Value;
use std::rc::Rc;

/// One message with results or inputs to replace.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    /// Position in the context.
    pub(crate) at: usize,
    /// The message.
    pub(crate) item: Item,
    /// The results.
    pub(crate) blobs: Vec<Replacement>,
}

/// A result or an input on its way to the store, and what stands where it was.
#[derive(Debug, Clone)]
pub(crate) struct Replacement {
    /// The result.
    pub(crate) blob: NewBlob,
    /// What stands there now.
    pub(crate) text: String,
}

impl Replacement {
    /// The `nth` result of the message at `place`, replaced by what `write` makes of its reference.
    pub(crate) fn new(
        state: &State,
        place: Place,
        nth: usize,
        text: &str,
        how: Placeholder,
        write: impl FnOnce(&str) -> String,
    ) -> Self {
        let reference = ids::reference(&state.row.secret, place.index, nth);
        let stands = write(&reference);
        let sha256 = ids::sha256_hex(text.as_bytes());
        let offload = Offload { nth, reference, sha256, chars: text.chars().count(), how };
        Replacement { blob: NewBlob { index: place.index, offload, text: text.into() }, text: stands }
    }

    /// The same, replaced by what tells a model whether to read it again: where it is, its length, its hash, how it began.
    pub(crate) fn stub(state: &State, place: Place, nth: usize, text: &str) -> Self {
        let mut stub = Replacement::new(state, place, nth, text, Placeholder::Preview, |_| String::new());
        let Offload { reference, sha256, chars, .. } = &stub.blob.offload;
        let hash = sha256.get(..HASH_DIGITS).unwrap_or_default();
        stub.text =
            begins(format!("Tool result is at: {reference} ({chars} characters, sha256 {hash})"), text);
        stub
    }

    /// The same, replaced by how it begins and ends in about `tokens` tokens.
    pub(crate) fn preview(state: &State, place: Place, nth: usize, text: &str, tokens: usize) -> Self {
        Replacement::new(state, place, nth, text, Placeholder::Preview, |reference| {
            ends(state, reference, text, tokens)
        })
    }

    /// The `nth` text that the user said in the message at `place`, replaced in the same way.
    pub(crate) fn text(state: &State, place: Place, nth: usize, text: &str, tokens: usize) -> Self {
        let reference = ids::text_reference(&state.row.secret, place.index, nth);
        let stands = ends(state, &reference, text, tokens);
        let (sha256, chars) = (ids::sha256_hex(text.as_bytes()), text.chars().count());
        let offload = Offload { nth, reference, sha256, chars, how: Placeholder::Text };
        Replacement { blob: NewBlob { index: place.index, offload, text: text.into() }, text: stands }
    }

    /// The input of the `nth` call of the message at `place`, with a reference in place of its long texts; nothing when
    /// it has none.
    pub(crate) fn input(state: &State, place: Place, nth: usize, arguments: &str) -> Option<Self> {
        let mut value: Value<'_> = serde_json::from_str(arguments).ok().filter(Value::is_object)?;
        let reference = ids::input_reference(&state.row.secret, place.index, nth);
        let write = |text: &str| {
            let chars = text.chars().count();
            let told = match state.recalls {
                true => format!("Tool input is at: {reference} ({chars} characters)"),
                false => format!("Tool input of {chars} characters, left out"),
            };
            (chars > LONG_TEXT).then(|| begins(told, text))
        };
        if !replace_texts(&mut value, &write) {
            return None;
        }
        let (sha256, chars) = (ids::sha256_hex(arguments.as_bytes()), arguments.chars().count());
        let text = value.to_string();
        let offload = Offload { nth, reference, sha256, chars, how: Placeholder::Input };
        Some(Replacement { blob: NewBlob { index: place.index, offload, text: arguments.into() }, text })
    }
}

/// What stands for a text that is too large, with how that begins and ends, in about `tokens` tokens.
pub(crate) fn ends(state: &State, reference: &str, text: &str, tokens: usize) -> String {
    let chars = text.chars().count();
    let told = match state.recalls {
        true => format!("Too large to stand here ({chars} characters). All of it is at: {reference}"),
        false => format!("Too large to stand here ({chars} characters), the rest is left out."),
    };
    let mut room = tokens.saturating_mul(4).min(chars / 2);
    loop {
        let (head, tail) =
            (text::range(text, 0, Some(room / 3 * 2)), text::range(text, chars - room / 3, None));
        let stands = format!("{told}\nIt begins:\n{head}\n[…]\nIt ends:\n{tail}");
        // Few characters are a token in some scripts.
        if room < 3 || state.settings.estimator.text(&stands) <= tokens {
            return stands;
        }
        room = room / 4 * 3;
    }
}

/// What stands for a text, with how that begins.
fn begins(mut stands: String, text: &str) -> String {
    if let Some(line) = text.lines().find(|line| !line.trim().is_empty()) {
        stands += "\nIt begins: ";
        stands += &text::range(line.trim(), 0, Some(FIRST_LINE));
    }
    stands
}

/// Replaces the texts in a value for which `write` has something else; true when there was one.
fn replace_texts(value: &mut Value<'_>, write: &impl Fn(&str) -> Option<String>) -> bool {
    match value {
        Value::Str(text) => {
            let Some(stands) = write(text) else { return false };
            *text = stands.into();
            true
        }
        // Every value is visited: `any` would stop at the first that was replaced.
        Value::Array(values) => {
            values.iter_mut().map(|value| replace_texts(value, write)).filter(|replaced| *replaced).count()
                > 0
        }
        Value::Object(fields) => {
            let keys: Vec<String> = fields.keys().map(str::to_string).collect();
            let replaced =
                |key: &&String| fields.get_mut(key).is_some_and(|value| replace_texts(value, write));
            keys.iter().filter(replaced).count() > 0
        }
        _ => false,
    }
}

/// Texts of an input that are no longer than this stay in it, in characters.
const LONG_TEXT: usize = 300;
/// Characters of a result's first line in the place of the result.
const FIRST_LINE: usize = 120;
/// Digits of its hash: enough to see whether what is read now is the same.
const HASH_DIGITS: usize = 12;

/// What `with` makes of the tool results of the first `range` messages of the context: of those that were not replaced
/// so far, and that are not what the model read back with a recall tool: moved again, it would be read again.
pub(crate) fn moves(
    state: &State,
    range: usize,
    mut with: impl FnMut(&Item, Place, (usize, &str)) -> Option<Replacement>,
) -> Result<Vec<Move>> {
    let mut moves = Vec::new();
    let mut answers = Answers::default();
    for (at, item) in state.context.items().iter().enumerate().take(range) {
        let Some(place) = item.origin.place() else { continue };
        let value = wire::parse(place.index, &item.body)?;
        let message = state.format().wire().read(place.index, &value)?;
        let results = message.results().enumerate().zip(answers.of(&message));
        let open = results.filter(|((nth, _), is_answer)| !is_answer && !item.origin.is_replaced(*nth));
        let blobs: Vec<Replacement> =
            open.filter_map(|((nth, result), _)| with(item, place, (nth, &result.text))).collect();
        if !blobs.is_empty() {
            moves.push(Move { at, item: item.clone(), blobs });
        }
    }
    Ok(moves)
}

/// What `with` makes of the inputs of the context's calls that were not replaced so far, and that can be.
pub(crate) fn input_moves(
    state: &State,
    mut with: impl FnMut(Place, (usize, &str)) -> Option<Replacement>,
) -> Result<Vec<Move>> {
    let mut moves = Vec::new();
    for (at, item) in state.context.items().iter().enumerate() {
        let Some(place) = item.origin.place() else { continue };
        let value = wire::parse(place.index, &item.body)?;
        let message = state.format().wire().read(place.index, &value)?;
        let open = message.calls().enumerate().filter(|(nth, _)| !item.origin.is_input_replaced(*nth));
        let found = open.filter_map(|(nth, call)| with(place, (nth, &call.arguments)));
        let fits = |planned: &Replacement| {
            let nth = planned.blob.offload.nth;
            state.format().wire().with_call_arguments(&value, nth, &planned.text).is_some()
        };
        let blobs: Vec<Replacement> = found.filter(fits).collect();
        if !blobs.is_empty() {
            moves.push(Move { at, item: item.clone(), blobs });
        }
    }
    Ok(moves)
}

/// What `with` makes of the texts of the user that were not replaced so far, and that can be.
pub(crate) fn text_moves(
    state: &State,
    mut with: impl FnMut(Place, (usize, &str)) -> Option<Replacement>,
) -> Result<Vec<Move>> {
    let mut moves = Vec::new();
    for (at, item) in state.context.items().iter().enumerate() {
        let Some(place) = item.origin.place().filter(|_| item.size.role == Role::User) else { continue };
        let value = wire::parse(place.index, &item.body)?;
        let message = state.format().wire().read(place.index, &value)?;
        let open = message.texts().enumerate().filter(|(nth, _)| !item.origin.is_text_replaced(*nth));
        let found = open.filter_map(|(nth, text)| with(place, (nth, text)));
        let fits = |planned: &Replacement| {
            wire::with_text(state.format(), &value, planned.blob.offload.nth, &planned.text).is_some()
        };
        let blobs: Vec<Replacement> = found.filter(fits).collect();
        if !blobs.is_empty() {
            moves.push(Move { at, item: item.clone(), blobs });
        }
    }
    Ok(moves)
}

/// A message with the text of an offload, or with what stands for it, in its place.
fn with_text(
    state: &State,
    index: usize,
    body: &str,
    offload: &Offload,
    text: &str,
) -> Result<Option<String>> {
    let value = wire::parse(index, body)?;
    let wire = state.format().wire();
    Ok(match offload.how {
        Placeholder::Input => wire.with_call_arguments(&value, offload.nth, text),
        Placeholder::Text => wire::with_text(state.format(), &value, offload.nth, text),
        _ => wire.with_result_text(&value, offload.nth, text),
    })
}

/// The item with its references in place; its size is still to be measured.
fn edited(state: &State, planned: &Move) -> Result<Item> {
    let broken =
        || Error::new(Code::Poisoned, "a tool result or an input could not be replaced in its own message");
    let place = planned.item.origin.place().ok_or_else(broken)?;
    let mut body = Rc::clone(&planned.item.body);
    for Replacement { blob, text } in &planned.blobs {
        body = Rc::from(with_text(state, place.index, &body, &blob.offload, text)?.ok_or_else(broken)?);
    }
    let mut offloads = planned.item.origin.offloads().to_vec();
    offloads.extend(planned.blobs.iter().map(|replacement| replacement.blob.offload.clone()));
    let offloads = order::by_key(offloads, Offload::order);
    let reasoning_removed = matches!(planned.item.origin, Origin::Edited { reasoning_removed: true, .. });
    let origin = Origin::Edited { place, offloads, reasoning_removed };
    Ok(Item { body, size: planned.item.size, origin })
}

/// Replaces results. One that cannot be stored stays in place with a warning, the others go on (`S1.3`).
pub(crate) async fn run(
    io: &Io,
    held: &SessionGuard,
    rung: Rung,
    moves: Vec<Move>,
    (trigger, mut job): (Trigger, Option<Closing>),
) -> Result<Edit> {
    let before = held.tokens();
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
    let mut waiting = batches(moves, held.state().max_batch_ops);
    while let Some(batch) = waiting.pop() {
        match store(io, held, rung, &batch, (trigger, job.clone())).await {
            Ok(()) => {
                job = None;
                count += batch.iter().map(|planned| planned.blobs.len()).sum::<usize>();
                edit.indices
                    .extend(batch.iter().filter_map(|planned| planned.item.origin.place()).map(|p| p.index));
                progress(count, held.tokens());
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
    edit.freed_tokens = before.saturating_sub(held.tokens());
    // Clearing is silent (`S3.1`), but not where it leaves references as offloading does.
    let silent = rung == Rung::Clear && !held.settings().preset.stubs;
    if !silent {
        edit.offload = Some(OffloadReport {
            offloaded_count: count,
            previous_tokens: before,
            current_tokens: held.tokens(),
            freed_tokens: edit.freed_tokens,
            still_exceeds_threshold: held.state().is_due(),
        });
    }
    if count > 0 {
        edit.detail = Some(format!("{count} results"));
        let did = if silent { "Cleared" } else { "Offloaded" };
        let level = if silent { LogLevel::Debug } else { LogLevel::Info };
        io.log(level, format!("{did} {count} tool results, {} tokens freed", edit.freed_tokens));
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

async fn store(
    io: &Io,
    held: &SessionGuard,
    rung: Rung,
    moves: &[Move],
    (trigger, job): (Trigger, Option<Closing>),
) -> Result<()> {
    let mut splices = Vec::with_capacity(moves.len());
    let mut blobs = Vec::new();
    let tokens_before = held.tokens();
    let mut freed = 0;
    for planned in moves {
        // An earlier batch may have changed the same message.
        let Some(now) = held.context().items().get(planned.at).cloned() else { continue };
        let planned = &Move { item: now, ..planned.clone() };
        let mut item = edited(&held.state(), planned)?;
        item.size = measure(io, &held.settings(), held.format(), MessageSource::Ours, &item.body).await?;
        freed += planned.item.size.tokens.saturating_sub(item.size.tokens);
        splices.push(Splice { at: planned.at, remove: 1, insert: vec![item] });
        blobs.extend(planned.blobs.iter().map(|replacement| replacement.blob.clone()));
    }
    let (splices, of_reasoning) = reasoning::unbind(io, held, splices).await?;
    freed += of_reasoning;
    let cause = Cause {
        trigger: trigger.as_str().into(),
        ..Cause::of(&held.state(), rung.stored(), tokens_before.saturating_sub(freed))
    };
    let first = splices.iter().map(|splice| splice.at).min();
    held.change(io, ContextChange { blobs, job, ..ContextChange::compaction(splices, cause) }).await?;
    held.state_mut().cleared(first.unwrap_or_default());
    Ok(())
}

/// The message of an offloaded item with its texts back in place; `texts` are those of its offloads, in order.
pub(crate) fn restored(state: &State, item: &Item, texts: &[String]) -> Result<Rc<str>> {
    let mut body = Rc::clone(&item.body);
    for (offload, text) in item.origin.offloads().iter().zip(texts) {
        if let Some(json) = with_text(state, 0, &body, offload, text)? {
            body = Rc::from(json);
        }
    }
    Ok(body)
}
