//! A summary, asked for and checked until one is acceptable, or made by the built-in summariser (`S1.6`, `S1.7`).

use super::ask::{Judged, SummaryJob, ask, shorter};
use super::call::CallCost;
use super::cut::Proposal;
use super::frame::{author_of, candidate, knows, text_of};
use super::keeping::Kept;
use super::parts::{History, clean, without_content};
use super::redaction::{messages_without_secrets, redact, without_secrets};
use super::{files, replace};
use crate::context::{Item, Origin};
use crate::error::{Code, Error, Result};
use crate::log::{Closing, Job, SessionGuard};
use crate::policy::{Fallback, Rung, Settings, Summariser};
use crate::recall::Archive;
use crate::step::{Effect, Io, LogLevel, Notice, Progress, Purpose, Stage};
use crate::summary::{self, SummaryRequest};
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
    (instructions, rung): (Option<&str>, Rung),
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
    if by_model(&settings, rung) {
        let constraints = kept.map(Kept::constraints);
        let history = History::of(held, (&messages, proposal, job), constraints, instructions);
        let mut asking = HistorySummary {
            io,
            held: &mut *held,
            history,
            kept,
            files: &files,
            started,
            purpose: Purpose::History,
            first: None,
            against: Rc::default(),
            spent: CallCost::default(),
        };
        let written = ask(io, &settings, job, &mut asking, spent).await;
        spent.add(asking.spent);
        match written {
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
    if rung == Rung::Rollover {
        target = target.min(room_anew(held, proposal));
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

/// Tokens that the summary of a context that begins anew may take.
pub(super) fn room_anew(held: &SessionGuard, proposal: &Proposal) -> usize {
    let fixed = held.state().corrected(held.state().fixed_tokens);
    let room = held.settings().hard_limit.saturating_sub(fixed);
    room.saturating_sub(proposal.mandatory_tokens) / 2
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

/// A model writes it. [`Rung::Rollover`] is left to the built-in summariser, which cannot fail.
pub(super) fn by_model(settings: &Settings, rung: Rung) -> bool {
    settings.summariser != Summariser::Extractive && rung != Rung::Rollover
}

/// Asking for the summary of a history (`S1.7`).
struct HistorySummary<'a> {
    io: &'a Io,
    held: &'a mut SessionGuard,
    history: History<'a>,
    kept: Option<&'a Kept>,
    files: &'a str,
    started: u64,
    purpose: Purpose,
    /// The request of the first attempt, until it is made.
    first: Option<Rc<SummaryRequest>>,
    /// What an answer is checked against.
    against: Rc<SummaryRequest>,
    /// What the parts of a long one cost.
    spent: CallCost,
}

impl HistorySummary<'_> {
    async fn build(&mut self, attempt: u32, refused: Option<&str>) -> Result<Rc<SummaryRequest>> {
        let HistorySummary { io, held, history, spent, .. } = self;
        let tokens = held.tokens();
        let attempts = (attempt as usize - 1, held.settings().numbers.retry_count as usize);
        let (request, purpose, steps) = history.next(io, held, refused, attempts, spent).await?;
        io.tell(Effect::Progress(Progress {
            stage: Stage::Summarise,
            done: steps.0,
            total: steps.1,
            previous_tokens: tokens,
            current_tokens: tokens,
        }));
        let bytes = request.messages.iter().map(|message| message.content.len()).sum();
        io.breathe(bytes).await?;
        let request = clean(io, held, request).await?;
        io.breathe(bytes).await?;
        self.purpose = purpose;
        self.against = match purpose {
            Purpose::Parts => Rc::new(without_content(&request)),
            _ => Rc::clone(&request),
        };
        Ok(request)
    }
}

impl SummaryJob for HistorySummary<'_> {
    type Written = (String, Vec<Item>);
    const REFUSED: &'static str = "the summary was not acceptable: ";

    fn purpose(&self) -> Purpose {
        self.purpose
    }

    // What the first attempt asks: why another one was needed is no part of it.
    async fn question(&mut self) -> Result<Rc<SummaryRequest>> {
        let request = self.build(1, None).await?;
        Ok(Rc::clone(self.first.insert(request)))
    }

    async fn request(&mut self, attempt: u32, refused: Option<&str>) -> Result<Rc<SummaryRequest>> {
        match self.first.take() {
            Some(request) => Ok(request),
            None => self.build(attempt, refused).await,
        }
    }

    async fn accept(&mut self, answer: &str) -> Result<Judged<Self::Written>> {
        let HistorySummary { io, ref held, ref history, kept, files, started, ref against, .. } = *self;
        let (settings, proposal) = (held.settings(), history.proposal);
        // The estimator's tokens mean nothing to an app that counts itself: its own counter decides in `candidate`.
        let most = if settings.app_counts { usize::MAX } else { proposal.replaced_tokens };
        let text = match summary::check(answer, against, most, settings.estimator) {
            Ok(text) => guard(held, proposal, &without_secrets(held, text)),
            Err(rejection) => return Ok(Judged::Bad(rejection.reason)),
        };
        tell(io, held, Stage::Checkpoint, 1, 0);
        let mut behind = String::new();
        if let Some(kept) = kept {
            if let Some(reason) = kept.objection(&text, held, proposal.replaced_tokens) {
                return Ok(Judged::Bad(reason));
            }
            behind = guard(held, proposal, &kept.behind(io, held, &text).await?);
        }
        behind.push_str(files);
        match candidate(io, held, proposal, &text, &behind, started).await {
            Ok(items) => Ok(match kept.and_then(|kept| kept.missing(&text)) {
                Some(missing) => Judged::Lacking((text, items), missing),
                None => Judged::Good((text, items)),
            }),
            Err(error) if error.code == Code::SummaryRejected => Ok(Judged::Bad(error.message)),
            Err(error) => Err(error),
        }
    }

    fn is_cut(&mut self) -> bool {
        self.history.limit = shorter(self.history.limit);
        true
    }

    fn failed(attempt: u32, of: u32, why: &Error) -> Option<String> {
        Some(format!("Summary attempt {attempt} of {of} failed: {why}"))
    }

    fn release(&mut self) {
        self.held.release();
    }

    fn acquire(&mut self) -> Result<()> {
        self.held.acquire()
    }
}
