//! Tool results made shorter one by one (`S2.1` to `S2.6`). Thoughts, calls and the number of messages stay as they are.
//! Sizes here are characters.

use super::call::{Spent, call};
use super::ladder::Climb;
use super::options::{Settings, Summariser};
use super::presets::Rung;
use super::result::{Edit, Trigger};
use crate::error::{Code, Error, Result};
use crate::message::{Message, Part};
use crate::reduce::replace::{self, Move, Replacement};
use crate::session::{Held, How, Place, State, text_range};
use crate::step::{Effect, Io, Level, Progress, Purpose, Stage, Work, all};
use crate::summary::result::{Purpose as For, Shorten, shorten};
use crate::wire;
use std::collections::HashMap;
use std::rc::Rc;

/// A chunk whose call failed keeps this many characters (`S2.3`).
const CHUNK_HEAD: usize = 1_000;
/// What a failed second level keeps.
const JOINED_HEAD: usize = 40_000;
/// What stands behind a text that was cut because the call failed.
const CUT: &str = "\n[… cut here: the summariser failed]";
/// Shorter answers say nothing.
const LEAST_CHARS: usize = 1;

/// A tool result of the context that was not replaced so far.
#[derive(Debug, Clone)]
struct Found {
    at: usize,
    place: Place,
    nth: usize,
    text: String,
    chars: usize,
    purpose: For,
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
fn survey(state: &State) -> Result<(usize, Vec<Found>)> {
    let numbers = state.settings.numbers.react;
    let mut total = numbers.system_prompt_length.saturating_add(numbers.instruction_length);
    let mut found = Vec::new();
    let mut waiting: HashMap<String, Vec<For>> = HashMap::new();
    for (at, item) in state.context.items().iter().enumerate() {
        let value = wire::parse(at, &item.body)?;
        let message = state.format().wire().read(at, &value)?;
        total += chars(&message);
        let mut nth = 0;
        for part in &message.parts {
            match part {
                Part::ToolCall(call) => {
                    let (name, arguments) = (call.name.to_string(), call.arguments.to_string());
                    let purpose = For { thought: message.text(), name, arguments };
                    waiting.entry(call.id.to_string()).or_default().push(purpose);
                }
                Part::ToolResult(result) => {
                    let purpose = waiting.get_mut(result.call_id.as_ref()).and_then(Vec::pop);
                    if let Some(place) = item.origin.place().filter(|_| !item.origin.is_replaced(nth)) {
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

/// Size of the whole prompt in characters (`S2.9`).
pub(crate) fn size(state: &State) -> Result<usize> {
    Ok(survey(state)?.0)
}

/// Makes large results shorter: each that is too large for any prompt (layer 1), and all of some size when the whole is
/// too large (layer 2). Returns what was done, layer by layer.
pub(crate) async fn run(io: &Io, held: &mut Held, climb: Climb<'_>, spent: &mut Spent) -> Result<Vec<Edit>> {
    let mut edits = Vec::new();
    let numbers = held.settings().numbers.react;
    if numbers.single_enabled {
        let (_, found) = survey(&held.state())?;
        let large: Vec<Found> =
            found.into_iter().filter(|found| found.chars > numbers.single_result_threshold).collect();
        if !large.is_empty() {
            let mut texts = Vec::with_capacity(large.len());
            for found in &large {
                texts.push(Some(streamed(io, held, found, climb, spent).await?));
            }
            edits.push(commit(io, held, &large, texts, climb).await?);
        }
    }
    let (total, found) = survey(&held.state())?;
    let limit = numbers.model_context_limit;
    let threshold = (limit as f64 * numbers.global_compression_threshold) as usize;
    let too_large = numbers.global_enabled && total > threshold
        || held.tokens() > held.settings().hard_limit
        || climb.trigger != Trigger::Auto;
    if too_large {
        edits.extend(global(io, held, (total, threshold), found, climb, spent).await?);
        let total = size(&held.state())?;
        if climb.trigger == Trigger::Auto && total > limit && !climb.rehearse {
            return Err(Error::new(
                Code::ContextOverflow,
                format!(
                    "{total} characters do not fit {limit}, and no result is left to compress; no turn is ever \
                     removed (S2.5): use a larger model or begin a new session"
                ),
            ));
        }
    }
    Ok(edits)
}

/// The second layer: every result of some size, one call each.
async fn global(
    io: &Io,
    held: &mut Held,
    (total, threshold): (usize, usize),
    found: Vec<Found>,
    climb: Climb<'_>,
    spent: &mut Spent,
) -> Result<Option<Edit>> {
    let settings = held.settings();
    let numbers = settings.numbers.react;
    let found: Vec<Found> =
        found.into_iter().filter(|found| found.chars > numbers.result_compression_min_size).collect();
    if found.is_empty() {
        return Ok(None);
    }
    let say = |level, line: String| {
        if !climb.rehearse {
            io.log(level, line);
        }
    };
    say(
        Level::Warn,
        format!("Context size {total} exceeds threshold {threshold}, triggering global compression..."),
    );
    let asks = found.iter().map(|found| Ask {
        purpose: &found.purpose,
        text: &found.text,
        part: None,
        ratio: numbers.global_ratio,
        kind: Purpose::Result,
    });
    let answers = ask_all(io, held, asks.collect(), climb, spent).await?;
    let mut texts = Vec::with_capacity(found.len());
    let (mut count, mut freed) = (0, 0);
    for (found, answer) in found.iter().zip(answers) {
        // A failed call keeps its result as it was (`S2.6`).
        let text = answer.ok();
        if let Some(text) = &text {
            let now = text.chars().count();
            let turn = found.place.index + 1;
            say(Level::Info, format!("Turn {turn}: Compressed result {} → {now} chars", found.chars));
            count += 1;
            freed += found.chars.saturating_sub(now);
        }
        texts.push(text);
    }
    let edit = commit(io, held, &found, texts, climb).await?;
    let after = total.saturating_sub(freed);
    let share = percent(after, total);
    say(
        Level::Info,
        format!(
            "Global compression complete: {count} results compressed, total size {total} → {after} chars ({share}%)"
        ),
    );
    Ok(Some(edit))
}

/// With one decimal, as the documents print it.
fn percent(part: usize, whole: usize) -> String {
    let tenths = crate::tokens::budget::percent(part, whole);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// The first layer: chunks shortened on their own, joined, and shortened once more when that is still too large.
async fn streamed(
    io: &Io,
    held: &mut Held,
    found: &Found,
    climb: Climb<'_>,
    spent: &mut Spent,
) -> Result<String> {
    let numbers = held.settings().numbers.react;
    let say = |line: String| {
        if !climb.rehearse {
            io.log(Level::Info, line);
        }
    };
    let before = found.chars;
    say(format!("Tool result too large ({before} chars), applying streaming compression..."));
    let chunks = chunks(&found.text, numbers.chunk_size);
    let count = chunks.len();
    say(format!("Breaking result into {count} chunks for summarization"));
    // The first layer knows the tool and its arguments, not the thought (`S2.1`).
    let purpose = For { thought: String::new(), ..found.purpose.clone() };
    let asks = chunks.iter().enumerate().map(|(nth, text)| Ask {
        purpose: &purpose,
        text,
        part: (count > 1).then_some((nth + 1, count)),
        ratio: numbers.chunk_ratio,
        kind: Purpose::Chunk,
    });
    let answers = ask_all(io, held, asks.collect(), climb, spent).await?;
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
        let answer = ask_all(io, held, vec![ask], climb, spent).await?.pop();
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
    let head = text_range(text, 0, Some(chars));
    if head.len() == text.len() { head } else { head + CUT }
}

/// A text in pieces of at most `size` characters, on grapheme boundaries.
fn chunks(text: &str, size: usize) -> Vec<String> {
    let mut chunks = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let chunk = text_range(rest, 0, Some(size));
        rest = rest.get(chunk.len()..).unwrap_or_default();
        chunks.push(chunk);
    }
    chunks
}

/// One text to be shortened.
struct Ask<'a> {
    purpose: &'a For,
    text: &'a str,
    part: Option<(usize, usize)>,
    ratio: f64,
    kind: Purpose,
}

/// Shortens texts, some at a time, in order; the session is free for appends meanwhile. A rehearsal pretends that every
/// answer is as long as it was asked for.
async fn ask_all(
    io: &Io,
    held: &mut Held,
    asks: Vec<Ask<'_>>,
    climb: Climb<'_>,
    spent: &mut Spent,
) -> Result<Vec<Result<String, Error>>> {
    let settings = held.settings();
    let total = asks.len();
    let target = |ask: &Ask<'_>| (ask.text.chars().count() as f64 * ask.ratio) as usize;
    if climb.rehearse {
        spent.calls += total as u32;
        return Ok(asks.iter().map(|ask| Ok("x".repeat(target(ask).max(1)))).collect());
    }
    if settings.summariser == Summariser::Extractive && !settings.app_shortens {
        let none =
            || Error::new(Code::SummaryFailed, "no summariser is given: pass `summarize` or `provider`");
        return Ok(asks.iter().map(|_| Err(none())).collect());
    }
    let tokens = held.tokens();
    io.tell(Effect::Progress(Progress {
        stage: Stage::Compress,
        done: 0,
        total,
        tokens_before: tokens,
        tokens_now: tokens,
    }));
    let mut requests = Vec::with_capacity(total);
    for ask in &asks {
        let text = if settings.app_redacts { io.redact(ask.text.to_string()).await? } else { String::new() };
        let text = if settings.app_redacts { text.as_str() } else { ask.text };
        let model = settings.summary_model.clone();
        let what = Shorten { text, part: ask.part, target_chars: target(ask), model };
        requests.push((shorten(ask.purpose, &what, settings.estimator), ask.kind, ask.text.chars().count()));
    }
    let one = |(request, kind, most)| -> Work<'_, (Result<String, Error>, Spent)> {
        Box::pin(attempts(io, &settings, Rc::new(request), kind, most))
    };
    let work = requests.into_iter().map(one).collect();
    held.release();
    let answers = all(work, settings.concurrency).await;
    held.acquire()?;
    let mut texts = Vec::with_capacity(total);
    for (answer, cost) in answers {
        spent.calls += cost.calls;
        if let Some(usage) = cost.usage {
            *spent.usage.get_or_insert_default() += usage;
        }
        match answer {
            Err(error) if matches!(error.code, Code::Aborted | Code::Closed) => return Err(error),
            answer => texts.push(answer),
        }
    }
    Ok(texts)
}

/// Asks until an answer is shorter than its text, or the attempts are used up.
async fn attempts(
    io: &Io,
    settings: &Settings,
    request: Rc<crate::summary::SummaryRequest>,
    kind: Purpose,
    most: usize,
) -> (Result<String, Error>, Spent) {
    let mut spent = Spent::default();
    let numbers = settings.numbers;
    let mut last = Error::new(Code::SummaryFailed, "no attempt was made");
    for attempt in 1..=numbers.retry_count {
        spent.calls += 1;
        let mut wait = numbers.retry_wait_ms * u64::from(attempt);
        match call(io, settings, &request, attempt, kind).await {
            Ok((text, usage)) => {
                if let Some(usage) = usage {
                    *spent.usage.get_or_insert_default() += usage;
                }
                let text = text.trim();
                if (LEAST_CHARS..most).contains(&text.chars().count()) {
                    return (Ok(text.to_string()), spent);
                }
                let what = "the compressed result was empty, or not shorter than the original";
                last = Error::new(Code::SummaryRejected, what);
            }
            Err(failure) => {
                last = failure.error;
                if failure.aborted || !failure.retryable || failure.overflow {
                    break;
                }
                wait = wait.max(failure.retry_after_ms.unwrap_or(0));
            }
        }
        if attempt < numbers.retry_count
            && let Err(failure) = io.sleep(wait).await
        {
            return (Err(failure.into_error(Code::Aborted)), spent);
        }
    }
    io.log(Level::Warn, format!("A tool result could not be compressed: {last}"));
    (Err(last), spent)
}

/// Puts the shorter texts into the context, the originals into the store.
async fn commit(
    io: &Io,
    held: &Held,
    found: &[Found],
    texts: Vec<Option<String>>,
    climb: Climb<'_>,
) -> Result<Edit> {
    let moves: Vec<Move> = {
        let state = held.state();
        let mut moves: Vec<Move> = Vec::new();
        for (found, text) in found.iter().zip(texts) {
            let Some(text) = text else { continue };
            let Some(item) = state.context.items().get(found.at) else { continue };
            let new =
                Replacement::new(&state, found.place, found.nth, &found.text, How::Compressed, |_| text);
            match moves.last_mut().filter(|last| last.at == found.at) {
                Some(last) => last.blobs.push(new),
                None => moves.push(Move { at: found.at, item: item.clone(), blobs: vec![new] }),
            }
        }
        moves
    };
    replace::run(io, held, Rung::Compress, moves, climb.trigger, climb.rehearse).await
}
