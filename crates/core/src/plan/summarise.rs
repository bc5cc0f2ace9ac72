//! History to a summary: asked for, checked, committed, or the history stays as it was (`S1.5` to `S1.11`).

use super::call::call;
use super::cut::Proposal;
use super::files;
use super::frame::{added_tokens, candidate};
use super::options::{Settings, Summariser};
use super::presets::{Fallback, Rung};
use super::result::{CompactionResult, Edit, RungPlan, Trigger};
use crate::error::{Code, Error, Result};
use crate::message::Message;
use crate::reduce::{reasoning, replace};
use crate::session::{Cause, Change, Held, Item, Origin, State, ids, offloads};
use crate::step::{Effect, Io, Level, Notice, Progress, Purpose, Stage, Usage};
use crate::summary::{self, PROMPT_VERSION, PromptOptions};
use crate::wire::{self, Author};
use std::rc::Rc;

/// Share of the window that a summary call may fill, in percent: the rest is for what an estimate may be off.
const INPUT_PERCENT: usize = 90;

/// Summarising is due when offloading freed too little and the last attempt is long enough ago (`S1.4`), or when the
/// context does not fit the window at all.
pub(crate) fn fires(state: &State, freed: usize) -> bool {
    let numbers = &state.settings.numbers;
    let tokens = state.tokens();
    let cooled = state
        .row
        .attempted_at
        .is_none_or(|at| state.row.steps.saturating_sub(at) >= numbers.compact_cooldown_steps);
    let due = state.is_due()
        && freed < numbers.compact_trigger_threshold
        && cooled
        && gain(state) >= numbers.min_savings;
    due || tokens > state.settings.hard_limit
}

/// The most that a summary could free: everything but the messages that are kept at the end (`S3.3`).
fn gain(state: &State) -> usize {
    let items = state.context.items();
    let kept = items.iter().rev().take(state.settings.numbers.preserve_count);
    let kept: usize = kept.map(|item| item.size.tokens).sum();
    state.context.totals().tokens.saturating_sub(kept)
}

/// What the rung would do.
pub(crate) async fn rehearse(io: &Io, held: &Held, proposal: &Proposal) -> Result<RungPlan> {
    let settings = held.settings();
    let of_reasoning = proposal.unbound_tokens(io, held).await?;
    let target = settings.numbers.target_tokens;
    let calls = usize::from(settings.summariser != Summariser::Extractive);
    Ok(RungPlan {
        rung: Rung::Summarise.as_str(),
        indices: proposal.indices(),
        tokens_freed: proposal.replaced_tokens.saturating_sub(target) + of_reasoning,
        llm_calls: calls,
        input_tokens: calls * proposal.replaced_tokens.min(input_limit(&settings)),
        output_tokens: calls * max_tokens(target),
    })
}

/// `ceil(target × 1.2)` (`S1.7`).
fn max_tokens(target: usize) -> usize {
    (target * 6).div_ceil(5)
}

fn input_limit(settings: &Settings) -> usize {
    settings.window.saturating_sub(max_tokens(settings.numbers.target_tokens)) / 100 * INPUT_PERCENT
}

/// A summary that passed its checks.
struct Written {
    text: String,
    /// What takes the place of the messages.
    items: Vec<Item>,
    /// Says that a fallback wrote it.
    reason: Option<String>,
    model: Option<String>,
}

/// What the attempts cost.
#[derive(Default)]
struct Spent {
    calls: u32,
    usage: Option<Usage>,
}

/// Replaces the older part of the history by a summary.
///
/// A failed summary is a result with `success: false` and an unchanged history; a failed commit is an error, and the
/// history and every offload are intact (`S1.11`).
pub(crate) async fn run(
    io: &Io,
    held: &mut Held,
    trigger: Trigger,
    instructions: Option<&str>,
    proposal: Result<Proposal, String>,
) -> Result<CompactionResult> {
    let started = io.now().await?;
    let mut result = CompactionResult::begin(held, trigger);
    match proposal {
        Err(reason) => result.reason = Some(reason),
        Ok(proposal) => {
            {
                let mut state = held.state_mut();
                state.row.attempted_at = Some(state.row.steps);
            }
            let mut spent = Spent::default();
            match write(io, held, &proposal, instructions, &mut spent).await {
                Ok(written) => {
                    result.preserved_count = proposal.preserved;
                    result.deleted_files = proposal.retired();
                    result.reason = written.reason.clone();
                    let edit = commit(io, held, &proposal, trigger, &written).await?;
                    result.freed_tokens = edit.tokens_freed;
                    result.applied_edits.push(edit);
                    result.summary = Some(written.text);
                }
                Err(error) if matches!(error.code, Code::Aborted | Code::Closed) => return Err(error),
                Err(error) => {
                    io.log(Level::Error, format!("Compaction failed, the history is unchanged: {error}"));
                    result.success = false;
                    result.error = Some(error);
                }
            }
            result.usage = spent.usage;
            result.llm_calls = spent.calls;
        }
    }
    let result = result.end(io, held, started).await?;
    if result.summary.is_some() {
        io.tell(Effect::Notify(Notice::Compact {
            previous_tokens: result.previous_tokens,
            current_tokens: result.current_tokens,
            freed_tokens: result.freed_tokens,
            deleted_file_count: result.deleted_files.len(),
        }));
    }
    Ok(result)
}

/// Gets a summary that passes its checks and makes the message that holds it. The session is free for appends while
/// the summariser works.
async fn write(
    io: &Io,
    held: &mut Held,
    proposal: &Proposal,
    instructions: Option<&str>,
    spent: &mut Spent,
) -> Result<Written> {
    let settings = held.settings();
    let tokens = held.tokens();
    io.tell(Effect::Progress(Progress {
        stage: Stage::Read,
        done: 0,
        total: proposal.compress.len(),
        tokens_before: tokens,
        tokens_now: tokens,
    }));
    let format = held.format();
    let bodies = restore(io, held, proposal).await?;
    let values = bodies.iter().map(|body| wire::parse(0, body)).collect::<Result<Vec<_>>>()?;
    let messages = values.iter().map(|value| format.wire().read(0, value)).collect::<Result<Vec<_>>>()?;
    let files = files::restored(io, held, proposal, &messages).await?;
    let mut failed = None;
    if settings.summariser != Summariser::Extractive {
        let job = job(&held.state());
        held.begin_job(io, &job, settings.timeout_ms).await?;
        match ask(io, held, &messages, proposal, &files, instructions, spent).await {
            Ok((text, items)) => {
                let model = match &settings.summariser {
                    Summariser::Provider(provider) => Some(provider.model.clone()),
                    _ => settings.summary_model.clone(),
                };
                return Ok(Written { text, items, reason: None, model });
            }
            // The context is another one now, or gone: no summary of the old one has a place in it.
            Err(error) if matches!(error.code, Code::Aborted | Code::Closed | Code::Conflict) => {
                return Err(error);
            }
            Err(error) if settings.fallback == Fallback::None => return Err(error),
            Err(error) => failed = Some(error),
        }
    }
    // The built-in summary must be worth its place too: at most half of what it replaces.
    let replaced = if settings.app_counts {
        messages.iter().map(|message| settings.estimator.message(message)).sum()
    } else {
        proposal.replaced_tokens
    };
    let target = settings.numbers.target_tokens.min(replaced / 2);
    let text = summary::extractive(&messages, target, settings.estimator);
    let text = redact(io, &settings, text).await?;
    let items = candidate(io, held, proposal, &text, &files).await?;
    let reason = failed.map(|error| format!("the summariser failed ({error}); the built-in one was used"));
    if let Some(reason) = &reason {
        io.log(Level::Warn, reason.clone());
        io.tell(Effect::Notify(Notice::Warning { code: Code::SummaryFailed, message: reason.clone() }));
    }
    Ok(Written { text, items, reason, model: None })
}

/// The id of a compaction under way: the same until the next commit of a view.
fn job(state: &State) -> String {
    ids::id(&[b"job", state.row.secret.as_bytes(), &state.row.generation.to_le_bytes()])
}

/// The messages to summarise, with the text of their offloads back in place (`S1.6`).
async fn restore(io: &Io, held: &Held, proposal: &Proposal) -> Result<Vec<Rc<str>>> {
    let sid = held.state().sid.clone();
    let mut bodies = Vec::with_capacity(proposal.compress.len());
    for item in &proposal.compress {
        if let Origin::Summary { checkpoint, prose, .. } = &item.origin
            && *prose > 0
        {
            // The new summary quotes those messages itself, and puts files back.
            let value = wire::parse(0, &item.body)?;
            let text = held.format().wire().read(0, &value)?.text();
            let text = text.get(..*prose).unwrap_or(&text);
            let wire = held.format().wire();
            bodies.push(Rc::from(wire.text_message(Author::User, text, checkpoint, Some(&value))));
            continue;
        }
        let mut texts = Vec::new();
        for offload in item.origin.offloads() {
            let reference = &offload.reference;
            texts.push(match offloads::read(io, &sid, reference).await {
                Ok(text) => text,
                Err(error) if error.code == Code::Aborted => return Err(error),
                Err(error) => {
                    let message = format!("the offload {reference} cannot be read for the summary: {error}");
                    io.log(Level::Warn, message.clone());
                    io.tell(Effect::Notify(Notice::Warning { code: error.code, message }));
                    format!("[Content unavailable: {reference}]")
                }
            });
        }
        bodies.push(replace::restored(&held.state(), item, &texts)?);
    }
    Ok(bodies)
}

async fn redact(io: &Io, settings: &Settings, text: String) -> Result<String> {
    if settings.app_redacts { io.redact(text).await } else { Ok(text) }
}

/// Asks the summariser until an answer passes its checks or the attempts are used up (`S1.7`).
async fn ask(
    io: &Io,
    held: &mut Held,
    messages: &[Message<'_>],
    proposal: &Proposal,
    files: &str,
    instructions: Option<&str>,
    spent: &mut Spent,
) -> Result<(String, Vec<Item>)> {
    let settings = held.settings();
    // The estimator's tokens mean nothing to an app that counts itself: its own counter decides in `candidate`.
    let most = if settings.app_counts { usize::MAX } else { proposal.replaced_tokens };
    let (numbers, tokens) = (settings.numbers, held.tokens());
    let mut limit = input_limit(&settings);
    let mut rejected: Option<String> = None;
    let mut last = Error::new(Code::SummaryFailed, "no attempt was made");
    let instructions = [settings.instructions.as_deref(), instructions];
    let instructions: Vec<&str> = instructions.into_iter().flatten().collect();
    let instructions = (!instructions.is_empty()).then(|| instructions.join("\n\n"));
    let places = proposal.compress.iter().map(|item| item.origin.place());
    let indices: Vec<Option<usize>> = places.map(|place| Some(place?.index)).collect();
    for attempt in 1..=numbers.retry_count {
        io.tell(Effect::Progress(Progress {
            stage: Stage::Summarise,
            done: attempt as usize - 1,
            total: numbers.retry_count as usize,
            tokens_before: tokens,
            tokens_now: tokens,
        }));
        let mut request = settings.preset.prompt.build(
            messages,
            &PromptOptions {
                target_tokens: numbers.target_tokens,
                max_input_tokens: Some(limit),
                instructions: instructions.as_deref(),
                previous_summary: None,
                rejected: rejected.as_deref(),
                indices: Some(&indices),
                estimator: settings.estimator,
            },
        )?;
        request.model = settings.summary_model.clone();
        for message in &mut request.messages {
            message.content = redact(io, &settings, std::mem::take(&mut message.content)).await?;
        }
        for fact in &mut request.facts {
            fact.text = redact(io, &settings, std::mem::take(&mut fact.text)).await?;
        }
        let request = Rc::new(request);
        spent.calls += 1;
        held.release();
        let answer = call(io, &settings, &request, attempt, Purpose::History).await;
        held.acquire()?;
        let mut wait = numbers.retry_wait_ms * u64::from(attempt);
        match answer {
            Ok((text, usage)) => {
                if let Some(usage) = usage {
                    *spent.usage.get_or_insert_default() += usage;
                }
                let reason = match summary::check(&text, &request, most, settings.estimator) {
                    Ok(text) => match candidate(io, held, proposal, &text, files).await {
                        Ok(items) => return Ok((text, items)),
                        Err(error) if error.code == Code::SummaryRejected => error.message,
                        Err(error) => return Err(error),
                    },
                    Err(rejection) => rejection.reason,
                };
                let what = format!("the summary was not acceptable: {reason}");
                last = Error::new(Code::SummaryRejected, what);
                rejected = Some(reason);
            }
            Err(failure) => {
                if failure.aborted {
                    return Err(failure.error);
                }
                if failure.overflow {
                    limit = limit / 5 * 3;
                }
                wait = wait.max(failure.retry_after_ms.unwrap_or(0));
                last = failure.error;
                if !failure.retryable {
                    break;
                }
            }
        }
        io.log(Level::Warn, format!("Summary attempt {attempt} of {} failed: {last}", numbers.retry_count));
        if attempt < numbers.retry_count {
            held.release();
            let slept = io.sleep(wait).await;
            held.acquire()?;
            slept.map_err(|failure| failure.into_error(Code::Aborted))?;
        }
    }
    Err(last)
}

/// Puts the summary into the context, in one transaction.
async fn commit(
    io: &Io,
    held: &mut Held,
    proposal: &Proposal,
    trigger: Trigger,
    written: &Written,
) -> Result<Edit> {
    let tokens = added_tokens(proposal, &written.items);
    let before = held.tokens();
    let splice = proposal.splice(written.items.clone());
    let (splices, of_reasoning) = reasoning::unbind(io, held, vec![splice]).await?;
    let freed = proposal.replaced_tokens.saturating_sub(tokens) + of_reasoning;
    io.tell(Effect::Progress(Progress {
        stage: Stage::Commit,
        done: 0,
        total: 1,
        tokens_before: before,
        tokens_now: before.saturating_sub(freed),
    }));
    let cause = Cause {
        rung: Rung::Summarise.as_str().into(),
        trigger: trigger.as_str().into(),
        tokens_before: before,
        tokens_after: before.saturating_sub(freed),
        preset: held.settings().preset.name.into(),
        prompt_version: Some(PROMPT_VERSION),
        model: written.model.clone(),
        input: String::new(),
    };
    let by_model = held.settings().summariser != Summariser::Extractive;
    let job = by_model.then(|| job(&held.state()));
    held.change(io, Change { splices, blobs: Vec::new(), cause, job }).await?;
    let indices = proposal.indices();
    let count = indices.len();
    io.log(Level::Info, format!("Summarised {count} messages, {freed} tokens freed"));
    Ok(Edit { indices, tokens_freed: freed, detail: written.reason.clone(), ..Edit::of(Rung::Summarise) })
}
