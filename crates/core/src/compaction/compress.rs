//! Tool results made shorter one by one (`S2.1` to `S2.6`). Thoughts, calls and the number of messages stay as they are.
//! Sizes of results are characters.

use super::ask::{Ask, Spent};
use super::redaction::redact;
use super::replace::{self, joined, moves};
use super::replacement::{Move, Replaceable, Replacement};
use super::result::Edit;
use super::rung::{Climbed, Run, RungSpec, RungWork};
use super::strategy::{Known, Strategy};
use crate::context::{Place, Placeholder};
use crate::error::{Code, Error, Result};
use crate::log::{Job, View, elsewhere};
use crate::message::{Message, Part};
use crate::policy::{Rung, Trigger};
use crate::recall::Answers;
use crate::step::{Io, LogLevel, Purpose};
use crate::summary::result::ToolPurpose;
use crate::text;
use crate::wire;
use std::cell::OnceCell;
use std::collections::HashMap;

/// A chunk whose call failed keeps this many characters (`S2.3`).
const CHUNK_HEAD: usize = 1_000;
/// What a failed second level keeps.
const JOINED_HEAD: usize = 40_000;
/// What stands behind a text that was cut because the call failed.
pub(super) const CUT: &str = "\n[… cut here: the summarizer failed]";

/// A tool result of the context that was not replaced so far.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) at: usize,
    place: Place,
    nth: usize,
    pub(super) text: String,
    chars: usize,
    pub(super) purpose: ToolPurpose,
}

/// Characters of a message as the model reads it.
fn chars(message: &Message<'_>) -> usize {
    let part = |part: &Part<'_>| match part {
        Part::Text(text) | Part::Reasoning { text, .. } => text.chars().count(),
        Part::ToolCall(call) => call.arguments.chars().count(),
        Part::ToolResult(result) => result.text.chars().count(),
        Part::Media(_) | Part::Opaque { .. } | Part::Compaction { .. } => 0,
    };
    message.parts.iter().map(part).sum()
}

/// Size of the whole prompt (`S2.4`, `S2.9`), with the results in it.
fn survey(view: &View) -> Result<(usize, Vec<Found>)> {
    let numbers = view.settings.numbers.react;
    let mut total = numbers.system_prompt_length.saturating_add(numbers.instruction_length);
    let mut found = Vec::new();
    let mut waiting: HashMap<String, Vec<ToolPurpose>> = HashMap::new();
    let mut answers = Answers::default();
    for (at, item) in view.items().iter().enumerate() {
        let value = wire::parse(at, &item.body)?;
        let message = view.format.wire().read(at, &value)?;
        total += chars(&message);
        let answered: Vec<bool> = answers.of(item.exchange(view.format)?);
        let mut nth = 0;
        for part in &message.parts {
            match part {
                Part::ToolCall(call) => {
                    let (name, arguments) = (call.name.to_string(), call.arguments.to_string());
                    let purpose = ToolPurpose { thought: message.text(), name, arguments };
                    waiting.entry(call.id.to_string()).or_default().push(purpose);
                }
                Part::ToolResult(result) => {
                    let purpose = waiting.get_mut(result.call_id.as_ref()).and_then(Vec::pop);
                    // What the model read back stays as it was read.
                    let closed = item.origin.is_replaced(Placeholder::Compressed, nth)
                        || answered.get(nth) == Some(&true)
                        || item.origin.lacks_media();
                    let may = |place: &Place| !closed && !view.is_pinned(place.index);
                    if let Some(place) = item.origin.place().filter(may) {
                        let text = result.text.to_string();
                        let chars = text.chars().count();
                        let purpose = purpose.unwrap_or_default();
                        found.push(Found { at, place, nth, text, chars, purpose });
                    }
                    nth += 1;
                }
                _ => {}
            }
        }
    }
    Ok((total, found))
}

/// How much of what there is room for the prompt takes: in characters where the app gives the limit in them, else in tokens
/// of the window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) size: usize,
    pub(crate) limit: usize,
    /// Above this every result of some size is compressed.
    pub(crate) threshold: usize,
    unit: &'static str,
}

impl Load {
    /// Of the session's prompt; `chars` are those of a survey.
    fn of(view: &View, chars: usize) -> Load {
        let settings = &view.settings;
        let numbers = settings.numbers.react;
        let share = |limit: usize| (limit as f64 * numbers.global_compression_threshold) as usize;
        match numbers.model_context_limit {
            Some(limit) => Load { size: chars, limit, threshold: share(limit), unit: "chars" },
            None => {
                // What does not fit beside the answer is compressed, whatever share of the window it is.
                let (limit, threshold) = (settings.window, share(settings.window).min(settings.hard_limit));
                Load { size: view.usage.tokens, limit, threshold, unit: "tokens" }
            }
        }
    }
}

/// How full the prompt is (`S2.9`).
pub(crate) fn load(view: &View) -> Result<Load> {
    // Nothing has to be read where tokens decide.
    let chars = match view.settings.numbers.react.model_context_limit {
        Some(_) => survey(view)?.0,
        None => 0,
    };
    Ok(Load::of(view, chars))
}

/// The results that the rung may ever shorten, each with nothing in its place: how much of one a model leaves is not to be
/// foreseen.
fn most(view: &View) -> Result<Vec<Move>> {
    let numbers = view.settings.numbers.react;
    let is_long = |chars: usize| {
        (numbers.single_enabled && chars > numbers.single_result_threshold)
            || (numbers.global_enabled && chars > numbers.result_compression_min_size)
    };
    moves(view, 0.., Placeholder::Compressed, &|_| true, |piece| {
        let may = is_long(piece.text.chars().count());
        may.then(|| Replacement::new(view, piece, Placeholder::Compressed, |_| String::new()))
    })
}

/// Looked at every time.
pub(super) const RUNG: RungSpec = RungSpec {
    rung: Rung::Compress,
    fires: |_, _, _| true,
    work: RungWork::Steps {
        waits: None,
        apply: |run, done| Box::pin(apply(run, done)),
        least: |view, least| least.replace(view, most(view)?),
    },
    idle: |_| Some("no tool result is left to compress"),
};

/// Makes large results shorter: each that is too large for any prompt (layer 1), and all of some size when the whole is
/// too large (layer 2).
async fn apply(run: &Run<'_>, done: &mut Climbed) -> Result<bool> {
    let before = done.edits.len();
    let numbers = run.settings().numbers.react;
    if numbers.single_enabled {
        let (_, found) = survey(&run.view())?;
        let large: Vec<Found> =
            found.into_iter().filter(|found| found.chars > numbers.single_result_threshold).collect();
        if !large.is_empty() {
            let strategy = Strategy::of(&run.view(), &large)?;
            let shown = Shown::all(run, &large).await?;
            let each = large.iter().zip(&shown);
            let known: Vec<Option<Known>> = each
                .map(|(found, shown)| strategy.without_model(found, &shown.text, numbers.chunk_ratio))
                .collect();
            let Some(job) = begin(run, &known).await? else { return Ok(false) };
            let mut texts = Vec::with_capacity(large.len());
            for ((found, shown), known) in large.iter().zip(shown).zip(known) {
                let text = match known {
                    Some(known) => shaped(run.io, found, known),
                    None => streamed(run, &job, shown, &mut done.spent).await?,
                };
                texts.push(Some(text));
            }
            done.edits.push(commit(run, &job, &large, texts).await?);
        }
    }
    let view = run.view();
    let (chars, found) = survey(&view)?;
    let load = Load::of(&view, chars);
    let is_large = numbers.global_enabled && load.size > load.threshold && !view.rests;
    let too_large = is_large || !view.fits() || run.trigger != Trigger::Auto;
    drop(view);
    if too_large {
        let edit = global(run, load, found, &mut done.spent).await?;
        done.edits.extend(edit);
        let Load { size: total, limit, unit, .. } = self::load(&run.view())?;
        // Whether the window is passed is seen in the end, as in every preset.
        let is_given = numbers.model_context_limit.is_some();
        if is_given && run.trigger == Trigger::Auto && total > limit {
            return Err(Error::new(
                Code::ContextOverflow,
                format!(
                    "{total} {unit} do not fit {limit} (the prompt has {} tokens), and no result is left to compress; no \
                     turn is ever removed (S2.5): use a larger model or begin a new session",
                    run.tokens()
                ),
            ));
        }
    }
    Ok(done.edits.len() > before)
}

/// The second layer: every result of some size, one call each.
async fn global(run: &Run<'_>, load: Load, found: Vec<Found>, spent: &mut Spent) -> Result<Option<Edit>> {
    let Load { size: total, threshold, unit, .. } = load;
    let (io, numbers) = (run.io, run.settings().numbers.react);
    let found: Vec<Found> =
        found.into_iter().filter(|found| found.chars > numbers.result_compression_min_size).collect();
    if found.is_empty() {
        return Ok(None);
    }
    io.log(
        LogLevel::Warn,
        format!("Context size {total} exceeds threshold {threshold}, triggering global compression..."),
    );
    let strategy = Strategy::of(&run.view(), &found)?;
    let ratios: Vec<f64> = (0..found.len()).map(|nth| strategy.ratio(nth, numbers.global_ratio)).collect();
    let shown = Shown::all(run, &found).await?;
    let each = found.iter().zip(&shown).zip(&ratios);
    let known: Vec<Option<Known>> =
        each.map(|((found, shown), ratio)| strategy.without_model(found, &shown.text, *ratio)).collect();
    let unknown = shown.iter().zip(&ratios).zip(&known).filter(|(_, known)| known.is_none());
    let asks = unknown.map(|((shown, ratio), _)| Ask {
        purpose: &shown.purpose,
        text: &shown.text,
        part: None,
        ratio: *ratio,
        kind: Purpose::Result,
    });
    let Some(job) = begin(run, &known).await? else { return Ok(None) };
    let asks: Vec<Ask<'_>> = asks.collect();
    let is_asked = !asks.is_empty() && run.settings().asks_for_results();
    let answers = run.writer.shorten(run, asks, &job, spent).await?;
    if is_asked {
        note(run, &answers);
    }
    let mut answers = answers.into_iter();
    let mut texts = Vec::with_capacity(found.len());
    let mut count = 0;
    for (found, known) in found.iter().zip(known) {
        // A failed call keeps its result as it was (`S2.6`).
        let text = known.map(|known| known.text).or_else(|| answers.next().and_then(Result::ok));
        if let Some(text) = &text {
            let now = text.chars().count();
            let turn = found.place.index + 1;
            io.log(LogLevel::Info, format!("Turn {turn}: Compressed result {} → {now} chars", found.chars));
            count += 1;
        }
        texts.push(text);
    }
    let edit = commit(run, &job, &found, texts).await?;
    let after = self::load(&run.view())?.size;
    let share = percent(after, total);
    io.log(
        LogLevel::Info,
        format!(
            "Global compression complete: {count} results compressed, total size {total} → {after} {unit} ({share}%)"
        ),
    );
    Ok(Some(edit))
}

/// Notes what came of asking a model: where one text could not be shortened, all of them wait.
fn note(run: &Run<'_>, answers: &[Result<String>]) {
    match answers.iter().find_map(|answer| answer.as_ref().err()) {
        Some(error) => {
            run.note_attempt();
            run.note_failure("tool results could not be compressed", error);
        }
        None => run.note_success(),
    }
}

/// The calls that a layer takes; none where the tools' own shape is enough. `None` when someone else makes them, and there
/// is room to wait for what they lead to.
async fn begin(run: &Run<'_>, known: &[Option<Known>]) -> Result<Option<Job>> {
    let view = run.view();
    let settings = &view.settings;
    let asks = known.iter().filter(|known| known.is_none()).count();
    if asks == 0 || !settings.asks_for_results() {
        return Ok(Some(Job::default()));
    }
    let Load { size, limit, .. } = load(&view)?;
    let insist = run.trigger != Trigger::Auto || !view.fits() || size > limit;
    let rounds = asks.div_ceil(settings.concurrency) as u64;
    let begun = run.begin(settings.timeout_ms.saturating_mul(rounds), insist).await?;
    if begun.is_none() {
        run.io.log(LogLevel::Info, elsewhere().into_parts().message);
    }
    Ok(begun)
}

/// With one decimal, as the documents print it.
fn percent(part: usize, whole: usize) -> String {
    let tenths = crate::tokens::budget::percent(part, whole);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// A result as a summariser may see it: redacted whole, so that no chunk begins in the middle of a secret.
struct Shown {
    text: String,
    purpose: ToolPurpose,
}

impl Shown {
    async fn all(run: &Run<'_>, found: &[Found]) -> Result<Vec<Shown>> {
        let (io, view) = (run.io, run.view());
        let mut all = Vec::with_capacity(found.len());
        for Found { purpose, text, .. } in found {
            let ToolPurpose { thought, name, arguments } = purpose.clone();
            let thought = redact(io, &view, thought).await?;
            let purpose = ToolPurpose { thought, name, arguments: redact(io, &view, arguments).await? };
            all.push(Shown { text: redact(io, &view, text.clone()).await?, purpose });
        }
        Ok(all)
    }
}

/// The first layer where no model is needed.
fn shaped(io: &Io, found: &Found, known: Known) -> String {
    let (before, after) = (found.chars, known.text.chars().count());
    // What the logger is told is the document's (`S2.10`).
    io.log(LogLevel::Info, format!("Tool result too large ({before} chars), {} without a model", known.how));
    io.log(LogLevel::Info, format!("Compressed {before} → {after} chars ({}%)", percent(after, before)));
    known.text
}

/// The first layer: chunks shortened on their own, joined, and shortened once more when that is still too large.
async fn streamed(run: &Run<'_>, job: &Job, shown: Shown, spent: &mut Spent) -> Result<String> {
    let numbers = run.settings().numbers.react;
    let say = |line: String| run.io.log(LogLevel::Info, line);
    let before = shown.text.chars().count();
    say(format!("Tool result too large ({before} chars), applying streaming compression..."));
    let chunks = chunks(&shown.text, numbers.chunk_size);
    let count = chunks.len();
    say(format!("Breaking result into {count} chunks for summarization"));
    // The first layer knows the tool and its arguments, not the thought (`S2.1`).
    let purpose = ToolPurpose { thought: String::new(), ..shown.purpose };
    let asks = chunks.iter().enumerate().map(|(nth, text)| Ask {
        purpose: &purpose,
        text,
        part: (count > 1).then_some((nth + 1, count)),
        ratio: numbers.chunk_ratio,
        kind: Purpose::Chunk,
    });
    let answers = run.writer.shorten(run, asks.collect(), job, spent).await?;
    let parts = answers.into_iter().zip(&chunks).enumerate().map(|(nth, (answer, chunk))| {
        let text = answer.unwrap_or_else(|_| cut(chunk, CHUNK_HEAD));
        format!("[Part {}/{count}]\n{text}", nth + 1)
    });
    let mut joined = parts.collect::<Vec<_>>().join("\n\n");
    if joined.chars().count() > numbers.single_result_threshold {
        let ask = Ask {
            purpose: &purpose,
            text: &joined,
            part: None,
            ratio: numbers.second_ratio,
            kind: Purpose::Merge,
        };
        let answer = run.writer.shorten(run, vec![ask], job, spent).await?.pop();
        joined = match answer {
            Some(Ok(text)) => text,
            _ => cut(&joined, JOINED_HEAD),
        };
    }
    let after = joined.chars().count();
    say(format!("Compressed {before} → {after} chars ({}%)", percent(after, before)));
    Ok(joined)
}

/// The start of a text, marked; never longer than the text.
fn cut(text: &str, chars: usize) -> String {
    let head = text::range(text, 0, Some(chars));
    if head.len() == text.len() { head } else { head + CUT }
}

/// A text in pieces of at most `size` characters, on grapheme boundaries.
fn chunks(text: &str, size: usize) -> Vec<String> {
    let mut chunks = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let chunk = text::range(rest, 0, Some(size));
        rest = rest.get(chunk.len()..).unwrap_or_default();
        chunks.push(chunk);
    }
    chunks
}

/// Puts the shorter texts into the context, the originals into the store.
async fn commit(run: &Run<'_>, job: &Job, found: &[Found], texts: Vec<Option<String>>) -> Result<Edit> {
    let mut moves: Vec<Move> = Vec::new();
    let view = run.view();
    for (found, text) in found.iter().zip(texts) {
        let Some(text) = text else { continue };
        let Some(item) = view.context.get(found.at) else { continue };
        let (place, nth, tokens) = (found.place, found.nth, &OnceCell::new());
        let piece = Replaceable { item, place, nth, text: &found.text, tokens };
        let new = Replacement::new(&view, piece, Placeholder::Compressed, |_| text);
        moves.push(Move { at: found.at, item: item.clone(), blobs: vec![new] });
    }
    let edit = replace::run(run, Rung::Compress, joined(moves), job.closing()).await?;
    Ok(run.writer.told(Rung::Compress, edit))
}
