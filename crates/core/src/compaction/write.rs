//! A summary, asked for and checked until one is acceptable, or made by the built-in summariser (`S1.6`, `S1.7`).

use super::call::{CallCost, call, question_of};
use super::cut::Proposal;
use super::frame::{author_of, candidate, knows, text_of};
use super::keeping::Kept;
use super::ladder::Climb;
use super::parts::{Long, Wanted, without_content};
use super::redaction::{messages_without_secrets, redact, redact_request, without_secrets};
use super::{files, replace};
use crate::context::{Item, Origin};
use crate::error::{Code, Error, Result};
use crate::log::{Closing, Job, SessionGuard};
use crate::message::Message;
use crate::policy::{Fallback, Rung, Settings, Summariser, Trigger};
use crate::recall::Archive;
use crate::step::{Effect, Io, LogLevel, Notice, Progress, Purpose, Stage};
use crate::summary::{self, PromptOptions, SummaryRequest};
use crate::wire;
use std::rc::Rc;

/// Share of the window that a summary call may fill, in percent: the rest is for what an estimate may be off.
const INPUT_PERCENT: usize = 90;

/// `ceil(target × 1.2)` (`S1.7`).
pub(super) fn max_tokens(target: usize) -> usize {
    (target * 6).div_ceil(5)
}

/// Tokens that the prompt of a summary call may take.
pub(super) fn input_limit(settings: &Settings, target: usize) -> usize {
    let window = settings.summary_window.unwrap_or(settings.window);
    window.saturating_sub(max_tokens(target)) / 100 * INPUT_PERCENT
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order<'r> {
    /// What set it off.
    pub(crate) trigger: Trigger,
    /// More guidance for the summary.
    pub(crate) instructions: Option<&'r str>,
    /// On whose behalf: [`Rung::Rollover`] is written by the built-in summariser, which cannot fail.
    pub(crate) rung: Rung,
}

impl<'r> Order<'r> {
    /// What a climb asks a rung for.
    pub(crate) fn new(climb: Climb<'r>, rung: Rung) -> Self {
        Order { trigger: climb.trigger, instructions: climb.instructions, rung }
    }
}

/// How far a compaction is. Preset `checkpoint` tells its six stages (`S5.5`), the others what takes time.
pub(super) fn tell(io: &Io, held: &SessionGuard, stage: Stage, total: usize, freed: usize) {
    let tokens = held.tokens();
    let stage = match (held.settings().preset.checkpoints, stage) {
        (true, Stage::Read) => Stage::Prepare,
        (true, Stage::Commit) => return,
        (false, Stage::Identify | Stage::Checkpoint | Stage::Update | Stage::Validate) => return,
        _ => stage,
    };
    io.tell(Effect::Progress(Progress {
        stage,
        done: 0,
        total,
        previous_tokens: tokens,
        current_tokens: tokens.saturating_sub(freed),
    }));
}

/// A summary that passed its checks.
pub(super) struct Written {
    pub(super) text: String,
    /// What takes the place of the messages.
    pub(super) items: Vec<Item>,
    /// Why the summariser did not write it, where the app wants the built-in one then.
    pub(super) fell_back: Option<Error>,
    pub(super) model: Option<String>,
    /// When it was begun.
    pub(super) started: u64,
    /// The calls that led to it.
    pub(super) job: Option<Closing>,
}

/// Gets a summary that passes its checks and makes the message that holds it. The session is free for appends while
/// the summariser works.
pub(super) async fn write(
    io: &Io,
    held: &mut SessionGuard,
    (proposal, kept): (&Proposal, Option<&Kept>),
    order: Order<'_>,
    (started, job): (u64, &Job),
    spent: &mut CallCost,
) -> Result<Written> {
    let settings = held.settings();
    tell(io, held, Stage::Read, proposal.compress.len(), 0);
    let format = held.format();
    let bodies = restore(io, held, proposal).await?;
    let bytes = bodies.iter().map(|body| body.len()).sum();
    io.breathe(bytes).await?;
    let values = bodies.iter().map(|body| wire::parse(0, body)).collect::<Result<Vec<_>>>()?;
    let mut messages = values.iter().map(|value| format.wire().read(0, value)).collect::<Result<Vec<_>>>()?;
    let files = files::restored(io, held, proposal, &messages).await?;
    io.breathe(bytes).await?;
    messages_without_secrets(held, &mut messages);
    io.breathe(bytes).await?;
    let mut failed = None;
    if by_model(&settings, order) {
        let inputs = Inputs { messages: &messages, proposal, kept, files: &files, started, job };
        match ask(io, held, &inputs, order.instructions, spent).await {
            Ok((text, items)) => {
                let model = settings.summariser_model().map(str::to_string);
                return Ok(Written { text, items, fell_back: None, model, started, job: job.closing() });
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
    let target = kept.map_or(proposal.target_tokens, |kept| kept.alone(proposal.target_tokens));
    let mut target = target.min(replaced / 2);
    let mut files = files;
    if order.rung == Rung::Rollover {
        let fixed = held.state().corrected(held.state().fixed_tokens);
        let room = settings.hard_limit.saturating_sub(fixed);
        target = target.min(room.saturating_sub(proposal.mandatory_tokens) / 2);
        files = String::new();
    }
    let text = kept.map_or_else(String::new, |kept| kept.summary(held, target));
    let text = match text.is_empty() {
        true => summary::extractive(&messages, target, settings.estimator),
        false => text,
    };
    let text = guard(held, proposal, &redact(io, held, text).await?);
    tell(io, held, Stage::Checkpoint, 1, 0);
    let items = match candidate(io, held, proposal, &text, &files, started).await {
        Ok(items) => items,
        // The summariser's own failure is what there is to mend.
        Err(error) if error.code == Code::SummaryRejected => return Err(failed.unwrap_or(error)),
        Err(error) => return Err(error),
    };
    if let Some(error) = &failed {
        let message = fell_back(error);
        io.log(LogLevel::Warn, message.clone());
        io.tell(Effect::Notify(Notice::Warning { code: error.code, message }));
    }
    Ok(Written { text, items, fell_back: failed, model: None, started, job: job.closing() })
}

/// What is said about a summary that the built-in summariser had to write.
pub(super) fn fell_back(error: &Error) -> String {
    format!("the summariser failed ({error}); the built-in one was used")
}

/// A text as it may stand for what is summarised.
fn guard(held: &SessionGuard, proposal: &Proposal, text: &str) -> String {
    let covers = proposal.covers();
    summary::guarded(text, &|reference| knows(&held.state(), &covers, reference))
}

/// The messages to summarise, with the text of their offloads back in place (`S1.6`).
async fn restore(io: &Io, held: &SessionGuard, proposal: &Proposal) -> Result<Vec<Rc<str>>> {
    let archive = Archive::of(&held.state());
    let mut bodies = Vec::with_capacity(proposal.compress.len());
    for item in &proposal.compress {
        if let Some(body) = without_quotes(held, item)? {
            bodies.push(body);
            continue;
        }
        if let Some(body) = unlogged(held, item) {
            bodies.push(body);
            continue;
        }
        let mut texts = Vec::new();
        for offload in item.origin.offloads() {
            let reference = &offload.reference;
            texts.push(match archive.text(io, reference).await {
                Ok(text) => text,
                Err(error) if error.code == Code::Aborted => return Err(error),
                Err(error) => {
                    let message = format!("the offload {reference} cannot be read for the summary: {error}");
                    io.log(LogLevel::Warn, message.clone());
                    io.tell(Effect::Notify(Notice::Warning { code: error.code, message }));
                    format!("[Content unavailable: {reference}]")
                }
            });
        }
        bodies.push(replace::restored(&held.state(), item, &texts)?);
    }
    Ok(bodies)
}

/// A message that was edited, as it was given, where nothing is stored.
fn unlogged(held: &SessionGuard, item: &Item) -> Option<Rc<str>> {
    let Origin::Edited { place, .. } = &item.origin else { return None };
    let state = held.state();
    state.unlogged.get(&place.index).filter(|_| !state.durable).map(Rc::clone)
}

/// An earlier summary without what stands behind its text: the new one quotes those messages itself, and puts files back.
pub(super) fn without_quotes(held: &SessionGuard, item: &Item) -> Result<Option<Rc<str>>> {
    let Origin::Summary { checkpoint, prose, .. } = &item.origin else { return Ok(None) };
    if *prose == 0 {
        return Ok(None);
    }
    let text = text_of(held, item, false)?;
    let (value, wire) = (wire::parse(0, &item.body)?, held.format().wire());
    Ok(Some(Rc::from(wire.text_message(author_of(item), &text, checkpoint, Some(&value)))))
}

/// What a summary is made from.
struct Inputs<'a> {
    messages: &'a [Message<'a>],
    proposal: &'a Proposal,
    kept: Option<&'a Kept>,
    files: &'a str,
    started: u64,
    job: &'a Job,
}

/// A model writes it.
pub(super) fn by_model(settings: &Settings, order: Order<'_>) -> bool {
    settings.summariser != Summariser::Extractive && order.rung != Rung::Rollover
}

/// Asks the summariser until an answer passes its checks or the attempts are used up (`S1.7`).
async fn ask(
    io: &Io,
    held: &mut SessionGuard,
    inputs: &Inputs<'_>,
    instructions: Option<&str>,
    spent: &mut CallCost,
) -> Result<(String, Vec<Item>)> {
    let Inputs { messages, proposal, job, .. } = *inputs;
    let settings = held.settings();
    let (numbers, tokens) = (settings.numbers, held.tokens());
    let mut limit = input_limit(&settings, proposal.target_tokens);
    let mut rejected: Option<String> = None;
    let mut question = None;
    let mut last = Error::new(Code::SummaryFailed, "no attempt was made");
    // A summary that says too little of what must be kept, while it is asked for once more.
    let mut first: Option<(String, Vec<Item>)> = None;
    let constraints = inputs.kept.map(Kept::constraints);
    let wanted = Wanted::of(held, proposal, constraints, instructions);
    let keep = wanted.keep();
    let mut told = None;
    for attempt in 1..=numbers.retry_count {
        let options = PromptOptions {
            rejected: rejected.as_deref(),
            ..wanted.options(&settings, proposal, &keep, limit)
        };
        let long = Long { messages, options, job };
        let attempts = (attempt as usize - 1, numbers.retry_count as usize);
        let (mut request, purpose, steps) = long.next(io, held, &mut told, attempts, spent).await?;
        io.tell(Effect::Progress(Progress {
            stage: Stage::Summarise,
            done: steps.0,
            total: steps.1,
            previous_tokens: tokens,
            current_tokens: tokens,
        }));
        request.model = settings.summary_model.clone();
        let bytes = request.messages.iter().map(|message| message.content.len()).sum();
        io.breathe(bytes).await?;
        let request = Rc::new(redact_request(io, held, request).await?);
        io.breathe(bytes).await?;
        let against = match purpose {
            Purpose::Parts => Rc::new(without_content(&request)),
            _ => Rc::clone(&request),
        };
        let question = match &question {
            Some(question) => question,
            // What the first attempt asks: why another one was needed is no part of it.
            None => question.insert(question_of(&settings, &request, purpose)?),
        };
        if let Some(text) = job.take(io, question)
            && let Ok(written) = accept(io, held, inputs, &against, &text).await?
        {
            return Ok(written);
        }
        spent.calls += 1;
        held.release();
        let answer = call(io, &settings, &request, attempt, purpose).await;
        held.acquire()?;
        let mut wait = numbers.retry_wait_ms * u64::from(attempt);
        match answer {
            Ok((text, usage)) => {
                spent.add(CallCost { calls: 0, usage });
                let reason = match accept(io, held, inputs, &against, &text).await? {
                    Ok(written) => {
                        let asked_again = first.is_some() || attempt == numbers.retry_count;
                        let missing =
                            inputs.kept.filter(|_| !asked_again).and_then(|kept| kept.missing(&written.0));
                        let Some(missing) = missing else {
                            job.keep(io, question, &text).await;
                            return Ok(written);
                        };
                        first = Some(written);
                        wait = 0;
                        missing
                    }
                    Err(reason) => reason,
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
        io.log(
            LogLevel::Warn,
            format!("Summary attempt {attempt} of {} failed: {last}", numbers.retry_count),
        );
        if attempt < numbers.retry_count {
            held.release();
            let slept = io.sleep(wait).await;
            held.acquire()?;
            slept.map_err(|failure| failure.into_error(Code::Aborted))?;
        }
    }
    first.ok_or(last)
}

/// The summary that an answer is, with what takes the place of the messages; or why it is none.
async fn accept(
    io: &Io,
    held: &SessionGuard,
    inputs: &Inputs<'_>,
    request: &SummaryRequest,
    answer: &str,
) -> Result<Result<(String, Vec<Item>), String>> {
    let Inputs { proposal, kept, files, started, .. } = *inputs;
    let settings = held.settings();
    // The estimator's tokens mean nothing to an app that counts itself: its own counter decides in `candidate`.
    let most = if settings.app_counts { usize::MAX } else { proposal.replaced_tokens };
    let text = match summary::check(answer, request, most, settings.estimator) {
        Ok(text) => guard(held, proposal, &without_secrets(held, text)),
        Err(rejection) => return Ok(Err(rejection.reason)),
    };
    tell(io, held, Stage::Checkpoint, 1, 0);
    let mut behind = String::new();
    if let Some(kept) = kept {
        if let Some(reason) = kept.objection(&text, held, proposal.replaced_tokens) {
            return Ok(Err(reason));
        }
        behind = guard(held, proposal, &kept.behind(io, held, &text).await?);
    }
    behind.push_str(files);
    match candidate(io, held, proposal, &text, &behind, started).await {
        Ok(items) => Ok(Ok((text, items))),
        Err(error) if error.code == Code::SummaryRejected => Ok(Err(error.message)),
        Err(error) => Err(error),
    }
}
