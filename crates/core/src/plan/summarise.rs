//! History to a summary: asked for, checked, committed, or the history stays as it was (`S1.5` to `S1.11`).

use super::call::{Cost, call, question_of};
use super::cut::Proposal;
use super::files;
use super::frame::{author_of, candidate, text_of, tokens_of};
use super::keeping::{Kept, budget};
use super::ladder::Climb;
use super::options::{Keep, Settings, Summariser};
use super::parts::{self, Long, Wanted, without_content};
use super::presets::{Fallback, Rung};
use super::redaction::{messages_without_secrets, redact, redact_request, without_secrets};
use super::result::{CompactionResult, Edit, RungPlan, Trigger};
use crate::checkpoint::{self, warn_after};
use crate::error::{Code, Error, Result};
use crate::message::Message;
use crate::reduce::{reasoning, replace};
use crate::session::{
    Cause, Change, Closing, Held, Item, Job, LogEntry, Origin, State, Summarised, elsewhere, offloads,
};
use crate::step::{Effect, Io, Level, Notice, Progress, Purpose, Stage};
use crate::summary::{self, PROMPT_VERSION, PromptOptions, SummaryRequest};
use crate::wire;
use std::rc::Rc;

/// Share of the window that a summary call may fill, in percent: the rest is for what an estimate may be off.
const INPUT_PERCENT: usize = 90;

/// Why preset `checkpoint` does nothing (`S5.5`).
const NOTHING: &str = "No messages to compress";

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
    let kept = match state.settings.keep {
        Keep::Tokens(tokens) => tokens,
        _ => {
            let kept = items.iter().rev().take(state.settings.numbers.preserve_count);
            kept.map(|item| item.size.tokens).sum()
        }
    };
    state.context.totals().tokens.saturating_sub(kept)
}

/// What the rung would do.
pub(crate) async fn rehearse(io: &Io, held: &Held, proposal: &Proposal) -> Result<RungPlan> {
    let settings = held.settings();
    let of_reasoning = proposal.unbound_tokens(io, held).await?;
    let target = proposal.target_tokens;
    let beside = settings.numbers.keep.map_or(0, |keep| budget(keep, proposal.replaced_tokens));
    let calls = match settings.summariser {
        Summariser::Extractive => None,
        _ => Some(parts::foretell(held, proposal)?),
    };
    Ok(RungPlan {
        rung: Rung::Summarise.as_str(),
        indices: proposal.indices(),
        tokens_freed: proposal.replaced_tokens.saturating_sub(target + beside) + of_reasoning,
        llm_calls: calls.map_or(0, |calls| calls.count),
        input_tokens: calls.map_or(0, |calls| calls.input),
        output_tokens: calls.map_or(0, |calls| calls.output),
    })
}

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
fn tell(io: &Io, held: &Held, stage: Stage, total: usize, freed: usize) {
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
        tokens_before: tokens,
        tokens_now: tokens.saturating_sub(freed),
    }));
}

/// A summary that passed its checks.
struct Written {
    text: String,
    /// What takes the place of the messages.
    items: Vec<Item>,
    /// Says that a fallback wrote it.
    reason: Option<String>,
    model: Option<String>,
    /// When it was begun.
    started: u64,
    /// The calls that led to it.
    job: Option<Closing>,
}

/// Replaces the older part of the history by a summary.
///
/// A failed summary is a result with `success: false` and an unchanged history; a failed commit is an error, and the
/// history and every offload are intact (`S1.11`).
pub(crate) async fn run(
    io: &Io,
    held: &mut Held,
    order: Order<'_>,
    proposal: Result<Proposal, String>,
) -> Result<CompactionResult> {
    let started = io.now().await?;
    let mut result = CompactionResult::begin(held, order.trigger);
    tell(io, held, Stage::Identify, 1, 0);
    match proposal {
        Err(_) if held.settings().preset.checkpoints => {
            result.success = false;
            result.reason = Some(NOTHING.into());
        }
        Err(reason) => result.reason = Some(reason),
        Ok(mut proposal) => {
            proposal.unanswered = held.state().unanswered(&proposal.compress)?;
            io.breathe(proposal.compress.iter().map(|item| item.body.len()).sum()).await?;
            let attempted_at = {
                let mut state = held.state_mut();
                let steps = state.row.steps;
                state.row.attempted_at.replace(steps)
            };
            let mut spent = Cost::default();
            let written = match begin(io, held, &proposal, order).await {
                Ok(Some(job)) => match Kept::of(io, held, &mut proposal, order.rung).await {
                    Ok(kept) => {
                        let kept = kept.as_ref();
                        write(io, held, (&proposal, kept), order, (started, &job), &mut spent).await
                    }
                    Err(error) => Err(error),
                },
                Ok(None) => {
                    held.state_mut().row.attempted_at = attempted_at;
                    result.reason = Some(elsewhere().message);
                    return result.end(io, held, started).await;
                }
                Err(error) => Err(error),
            };
            let update = match &written {
                Ok(written) => Update::of(io, held, &proposal, order, written).await,
                Err(error) => Err(error.clone()),
            };
            match update {
                Ok(update) => {
                    result.preserved_count = proposal.preserved;
                    result.deleted_files = proposal.retired();
                    let entry = update.entry;
                    let edit = update.commit(io, held, &proposal, order).await?;
                    result.pin_proposals = proposal.unanswered;
                    result.saved_tokens = Some(entry.saved);
                    result.log_entry = Some(entry.text());
                    result.reason = edit.detail.clone();
                    result.freed_tokens = edit.tokens_freed;
                    result.applied_edits.push(edit);
                    result.summary = written.ok().map(|written| written.text);
                    warn(io, held);
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

/// Says so once a model of this size has summarised as often as it takes (`S5.11`).
fn warn(io: &Io, held: &Held) {
    let settings = held.settings();
    let Some(model) = settings.summariser_model().filter(|_| settings.preset.checkpoints) else { return };
    let compressions = held.state().row.compressions;
    if compressions == warn_after(checkpoint::model_size(model)) {
        let score = held.state().reliability().score;
        io.log(
            Level::Warn,
            format!(
                "{compressions} compressions by {model}: reliability {score:.2}; consider a fresh session"
            ),
        );
    }
}

/// The calls of a model that the summary takes; none where nobody is asked. `None` when someone else makes them, and
/// there is room to wait for what they lead to.
async fn begin(io: &Io, held: &Held, proposal: &Proposal, order: Order<'_>) -> Result<Option<Job>> {
    let settings = held.settings();
    if !by_model(&settings, order) {
        return Ok(Some(Job::default()));
    }
    let insist = order.trigger != Trigger::Auto || held.tokens() > settings.hard_limit;
    // As long as the calls for the parts of a long history may take, about.
    let rounds = proposal.replaced_tokens / input_limit(&settings, proposal.target_tokens).max(1);
    let rounds = 1 + rounds.div_ceil(settings.concurrency) as u64;
    Job::begin(io, held, settings.timeout_ms.saturating_mul(rounds), insist).await
}

/// Gets a summary that passes its checks and makes the message that holds it. The session is free for appends while
/// the summariser works.
async fn write(
    io: &Io,
    held: &mut Held,
    (proposal, kept): (&Proposal, Option<&Kept>),
    order: Order<'_>,
    (started, job): (u64, &Job),
    spent: &mut Cost,
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
                return Ok(Written { text, items, reason: None, model, started, job: job.closing() });
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
    let text = redact(io, held, text).await?;
    tell(io, held, Stage::Checkpoint, 1, 0);
    let items = candidate(io, held, proposal, &text, &files, started).await?;
    let reason = failed.map(|error| format!("the summariser failed ({error}); the built-in one was used"));
    if let Some(reason) = &reason {
        io.log(Level::Warn, reason.clone());
        io.tell(Effect::Notify(Notice::Warning { code: Code::SummaryFailed, message: reason.clone() }));
    }
    Ok(Written { text, items, reason, model: None, started, job: job.closing() })
}

/// The messages to summarise, with the text of their offloads back in place (`S1.6`).
async fn restore(io: &Io, held: &Held, proposal: &Proposal) -> Result<Vec<Rc<str>>> {
    let sid = held.state().sid.clone();
    let mut bodies = Vec::with_capacity(proposal.compress.len());
    for item in &proposal.compress {
        if let Some(body) = without_quotes(held, item)? {
            bodies.push(body);
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

/// An earlier summary without what stands behind its text: the new one quotes those messages itself, and puts files back.
pub(super) fn without_quotes(held: &Held, item: &Item) -> Result<Option<Rc<str>>> {
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
fn by_model(settings: &Settings, order: Order<'_>) -> bool {
    settings.summariser != Summariser::Extractive && order.rung != Rung::Rollover
}

/// Asks the summariser until an answer passes its checks or the attempts are used up (`S1.7`).
async fn ask(
    io: &Io,
    held: &mut Held,
    inputs: &Inputs<'_>,
    instructions: Option<&str>,
    spent: &mut Cost,
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
            tokens_before: tokens,
            tokens_now: tokens,
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
                spent.add(Cost { calls: 0, usage });
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
        io.log(Level::Warn, format!("Summary attempt {attempt} of {} failed: {last}", numbers.retry_count));
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
    held: &Held,
    inputs: &Inputs<'_>,
    request: &SummaryRequest,
    answer: &str,
) -> Result<Result<(String, Vec<Item>), String>> {
    let Inputs { proposal, kept, files, started, .. } = *inputs;
    let settings = held.settings();
    // The estimator's tokens mean nothing to an app that counts itself: its own counter decides in `candidate`.
    let most = if settings.app_counts { usize::MAX } else { proposal.replaced_tokens };
    let text = match summary::check(answer, request, most, settings.estimator) {
        Ok(text) => without_secrets(held, text),
        Err(rejection) => return Ok(Err(rejection.reason)),
    };
    tell(io, held, Stage::Checkpoint, 1, 0);
    let mut behind = String::new();
    if let Some(kept) = kept {
        if let Some(reason) = kept.objection(&text, held, proposal.replaced_tokens) {
            return Ok(Err(reason));
        }
        behind = kept.behind(io, held, &text).await?;
    }
    behind.push_str(files);
    match candidate(io, held, proposal, &text, &behind, started).await {
        Ok(items) => Ok(Ok((text, items))),
        Err(error) if error.code == Code::SummaryRejected => Ok(Err(error.message)),
        Err(error) => Err(error),
    }
}

/// The change that a summary makes, complete and checked, on its way into the store.
struct Update {
    change: Change,
    freed: usize,
    entry: LogEntry,
    detail: Option<String>,
}

impl Update {
    /// The change with all that follows from it. In preset `checkpoint` it must leave a prompt that fits (`S5.5`).
    async fn of(
        io: &Io,
        held: &Held,
        proposal: &Proposal,
        order: Order<'_>,
        written: &Written,
    ) -> Result<Update> {
        tell(io, held, Stage::Update, 1, 0);
        let settings = held.settings();
        let before = held.tokens();
        let splice = proposal.splice(written.items.clone());
        let (splices, of_reasoning) = reasoning::unbind(io, held, vec![splice]).await?;
        let replaced = proposal.replaced_tokens + tokens_of(&proposal.stay);
        let freed = replaced.saturating_sub(tokens_of(&written.items)) + of_reasoning;
        let after = held.tokens_without(freed);
        tell(io, held, Stage::Validate, 1, freed);
        let fits = checkpoint::validate(after, settings.hard_limit);
        if let Some(message) = fits.message.filter(|_| settings.preset.checkpoints) {
            let what = format!("Compression failed validation: {message}");
            return Err(Error::new(Code::ContextOverflow, what));
        }
        let cause = Cause {
            trigger: order.trigger.as_str().into(),
            prompt_version: Some(PROMPT_VERSION),
            model: written.model.clone(),
            ..Cause::of(&held.state(), order.rung.as_str(), after)
        };
        let entry = LogEntry {
            at: written.started,
            messages: proposal.compress.len(),
            saved: replaced.saturating_sub(tokens_of(&written.items)),
            summaries: 1,
            before,
            after,
            budget: settings.window,
        };
        let summary = Some(Summarised { text: written.text.clone(), entry });
        let job = written.job.clone();
        let change = Change { job, summary, ..Change::new(splices, cause) };
        Ok(Update { change, freed, entry, detail: written.reason.clone() })
    }

    /// Puts it into the context, in one transaction.
    async fn commit(self, io: &Io, held: &Held, proposal: &Proposal, order: Order<'_>) -> Result<Edit> {
        tell(io, held, Stage::Commit, 1, self.freed);
        held.change(io, self.change).await?;
        let indices = proposal.indices();
        let (count, freed) = (indices.len(), self.freed);
        io.log(Level::Info, format!("Summarised {count} messages, {freed} tokens freed"));
        Ok(Edit { indices, tokens_freed: freed, detail: self.detail, ..Edit::of(order.rung) })
    }
}
