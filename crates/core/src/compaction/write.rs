//! A summary, asked for and checked until one is acceptable, or made by the built-in summariser (`S1.6`, `S1.7`).

use super::ask::{Judged, SummaryJob, ask, shorter};
use super::call::CallCost;
use super::cut::Proposal;
use super::frame::{author_of, knows, text_of};
use super::keeping::Kept;
use super::parts::{History, clean, without_content};
use super::redaction::{messages_without_secrets, redact, without_secrets};
use super::rung::Run;
use super::thread::thread;
use super::{files, replace};
use crate::context::{Item, Origin};
use crate::error::{Code, Error, Result};
use crate::log::{Closing, Job, View};
use crate::policy::{Fallback, Rung, Settings, Trigger};
use crate::step::{Breath, Effect, Io, LogLevel, Notice, Progress, Purpose, Stage};
use crate::summary::{self, SummaryRequest};
use crate::wire::{self, Format};
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

/// Tokens that a prompt takes at the most which is estimated at so many: what a provider counted of it is not in doubt.
pub(super) fn at_most(estimated: usize, counted: usize) -> usize {
    let doubtful = estimated.saturating_sub(counted);
    estimated.saturating_add((doubtful * (100 - INPUT_PERCENT)).div_ceil(INPUT_PERCENT))
}

/// How far a compaction is. Preset `checkpoint` tells its six stages (`S5.5`), the others what takes time.
pub(super) fn tell(io: &Io, view: &View, stage: Stage, total: usize, freed: usize) {
    let tokens = view.usage.tokens;
    let stage = match (view.settings.preset.checkpoints, stage) {
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
    run: &Run<'_>,
    rung: Rung,
    (proposal, kept): (&Proposal, Option<&Kept>),
    (started, job): (u64, &Job),
    spent: &mut CallCost,
) -> Result<Written> {
    let (io, view) = (run.io, run.view());
    let (settings, format) = (Rc::clone(&view.settings), view.format);
    tell(io, &view, Stage::Read, proposal.compress.len(), 0);
    let bodies = restore(run, format, proposal).await?;
    let mut breath = Breath::default();
    let mut values = Vec::with_capacity(bodies.len());
    for body in &bodies {
        breath.after(io, body.len()).await?;
        values.push(wire::parse(0, body)?);
    }
    let mut messages = values.iter().map(|value| format.wire().read(0, value)).collect::<Result<Vec<_>>>()?;
    let mut files = files::restored(io, &view, proposal, &messages).await?;
    let mut clean = Vec::with_capacity(messages.len());
    for (message, body) in messages.iter_mut().zip(&bodies) {
        breath.after(io, body.len()).await?;
        clean.push(!messages_without_secrets(&view, std::slice::from_mut(message)));
    }
    drop(view);
    let mut failed = None;
    let history = History::of(run, (&messages, proposal, job), kept.map(Kept::constraints)).searched(clean);
    let mut asking = HistorySummary {
        run,
        history,
        kept,
        files: &files,
        started,
        purpose: Purpose::History,
        first: None,
        against: Rc::default(),
        spent: CallCost::default(),
        threads: true,
    };
    if let Some(notes) = notes_of_model(run, rung) {
        match asking.accept(&notes).await? {
            Judged::Good((text, items)) | Judged::Lacking((text, items), _) => {
                return Ok(Written {
                    text,
                    items,
                    fell_back: None,
                    model: None,
                    started,
                    job: job.closing(),
                });
            }
            Judged::Bad(reason) => {
                let message =
                    format!("the model's notes are no summary ({reason}): it is written as any other");
                io.tell(Effect::Notify(Notice::Warning { code: Code::SummaryRejected, message }));
            }
        }
    }
    if by_model(&settings, rung) {
        let written = ask(run, job, &mut asking, spent).await;
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
            Err(error) if !falls_back(run, &settings) => return Err(error),
            Err(error) => failed = Some(error),
        }
    }
    // The built-in summary must be worth its place too: at most half of what it replaces.
    let replaced = if settings.app_counts {
        messages.iter().map(|message| settings.estimator.message(message)).sum()
    } else {
        proposal.replaced_tokens
    };
    let target = proposal.target_tokens;
    let target = kept.map_or(target, |kept| kept.alone(&settings, target, replaced));
    let mut target = target.min(replaced / 2);
    let framer = run.framer();
    if rung == Rung::Rollover {
        target = target.min(room_anew(&framer.view, proposal));
        files = String::new();
    }
    let text = kept.map_or_else(String::new, |kept| kept.summary(&settings, target));
    let text = match text.is_empty() {
        true => summary::extractive(&messages, target, settings.estimator),
        false => text,
    };
    let text = guarded(&framer.view, proposal, &redact(io, &framer.view, text).await?);
    tell(io, &framer.view, Stage::Checkpoint, 1, 0);
    let items = match framer.candidate(proposal, &text, &files, started).await {
        Ok(items) => items,
        // The summariser's own failure is what there is to mend.
        Err(error) if error.code == Code::SummaryRejected => return Err(failed.unwrap_or(error)),
        Err(error) => return Err(error),
    };
    if settings.is_server() && rung != Rung::Rollover {
        let what = "the provider had not compacted the conversation";
        failed = Some(Error::new(Code::SummaryFailed, what));
    }
    if let Some(error) = &failed {
        let message = fell_back(error);
        io.log(LogLevel::Warn, message.clone());
        io.tell(Effect::Notify(Notice::Warning { code: error.code, message }));
    }
    Ok(Written { text, items, fell_back: failed, model: None, started, job: job.closing() })
}

/// Tokens that the summary of a context that begins anew may take.
pub(super) fn room_anew(view: &View, proposal: &Proposal) -> usize {
    let fixed = view.usage.corrected(view.usage.fixed);
    let room = view.settings.hard_limit.saturating_sub(fixed);
    room.saturating_sub(proposal.mandatory_tokens) / 2
}

/// What is said about a summary that the built-in summariser had to write.
pub(super) fn fell_back(error: &Error) -> String {
    format!("the summarizer failed ({error}); the built-in one was used")
}

/// A text as it may stand for what is summarised.
fn guarded(view: &View, proposal: &Proposal, text: &str) -> String {
    let covers = proposal.covers();
    summary::guarded(text, &|reference| knows(&view.references, &covers, reference))
}

/// The messages to summarise, with the text of their offloads back in place (`S1.6`).
async fn restore(run: &Run<'_>, format: Format, proposal: &Proposal) -> Result<Vec<Rc<str>>> {
    let (io, archive, log) = (run.io, run.archive(), run.log());
    let mut bodies = Vec::with_capacity(proposal.compress.len());
    for item in &proposal.compress {
        // One that was edited is read as it was given, where nothing is stored.
        let body = match (without_quotes(format, item)?, &item.origin) {
            (None, Origin::Edited { place, .. }) => log.unlogged(place.index),
            (body, _) => body,
        };
        if let Some(body) = body {
            bodies.push(body);
            continue;
        }
        let mut texts = Vec::new();
        for offload in item.origin.offloads() {
            if offload.is_media() {
                texts.push(String::new());
                continue;
            }
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
        bodies.push(replace::restored(format, item, &texts)?);
    }
    Ok(bodies)
}

/// An earlier summary without what stands behind its text: the new one quotes those messages itself, and puts files back.
pub(super) fn without_quotes(format: Format, item: &Item) -> Result<Option<Rc<str>>> {
    let Origin::Summary { checkpoint, prose, .. } = &item.origin else { return Ok(None) };
    if *prose == 0 {
        return Ok(None);
    }
    let text = text_of(format, item, false)?;
    let (value, wire) = (wire::parse(0, &item.body)?, format.wire());
    Ok(Some(Rc::from(wire.text_message(author_of(item), &text, checkpoint, Some(&value)))))
}

/// True when the built-in summary stands in for one that failed: where the app wants that, and where a prompt cannot be
/// sent without (`W22`).
fn falls_back(run: &Run<'_>, settings: &Settings) -> bool {
    match settings.fallback {
        Fallback::None => false,
        Fallback::Extractive => true,
        Fallback::Needed => match run.trigger {
            Trigger::Manual | Trigger::None => false,
            Trigger::Overflow => true,
            Trigger::Auto | Trigger::Model => run.tokens() > settings.hard_limit,
        },
    }
}

/// A model writes it. [`Rung::Rollover`] is left to the built-in summariser, which cannot fail.
pub(super) fn by_model(settings: &Settings, rung: Rung) -> bool {
    settings.asks_a_model() && rung != Rung::Rollover
}

/// What stands for the older messages where the model asked to begin anew (`X11`).
pub(super) fn notes_of_model(run: &Run<'_>, rung: Rung) -> Option<String> {
    let is_asked = run.trigger == Trigger::Model && rung == Rung::Summarise;
    let view = if is_asked { Some(run.view()) } else { None };
    Some(view?.context.model_notes(run.view().format)?.notes)
}

/// Asking for the summary of a history (`S1.7`).
struct HistorySummary<'a> {
    run: &'a Run<'a>,
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
    /// It may be asked for at the end of the conversation's own prompt.
    threads: bool,
}

impl HistorySummary<'_> {
    async fn build(&mut self, attempt: u32, refused: Option<&str>) -> Result<Rc<SummaryRequest>> {
        let HistorySummary { run, history, spent, .. } = self;
        let (io, tokens) = (run.io, run.tokens());
        let attempts = (attempt as usize - 1, run.settings().numbers.retry_count as usize);
        let (request, purpose, steps) = history.next(run, refused, attempts, spent).await?;
        io.tell(Effect::Progress(Progress {
            stage: Stage::Summarise,
            done: steps.0,
            total: steps.1,
            previous_tokens: tokens,
            current_tokens: tokens,
        }));
        let bytes = request.messages.iter().map(|message| message.content.len()).sum();
        io.breathe(bytes).await?;
        let mut request = clean(io, &run.view(), request).await?;
        io.breathe(bytes).await?;
        // A history that is shown in parts, or cut, is longer than the prompt: results that had left it are in it again.
        if self.threads && purpose == Purpose::History && !request.truncated {
            Rc::make_mut(&mut request).thread = thread(run, history, refused).await?;
        }
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
        let HistorySummary { run, ref history, kept, files, started, ref against, .. } = *self;
        let (framer, proposal) = (run.framer(), history.proposal);
        let (view, settings) = (&framer.view, &framer.view.settings);
        // The estimator's tokens mean nothing to an app that counts itself: its own counter decides in `candidate`.
        let most = if settings.app_counts { usize::MAX } else { proposal.replaced_tokens };
        let text = match summary::check(answer, against, most, settings.estimator) {
            Ok(text) => guarded(view, proposal, &without_secrets(view, text)),
            Err(rejection) => return Ok(Judged::Bad(rejection.reason)),
        };
        tell(run.io, view, Stage::Checkpoint, 1, 0);
        let mut behind = String::new();
        if let Some(kept) = kept {
            let stays = view.context.since(proposal.boundary);
            let replaced = proposal.replaced_tokens;
            if let Some(reason) = kept.objection(&text, settings.estimator, replaced, stays) {
                return Ok(Judged::Bad(reason));
            }
            behind = guarded(view, proposal, &kept.behind(run.io, view, &text).await?);
        }
        behind.push_str(files);
        match framer.candidate(proposal, &text, &behind, started).await {
            Ok(items) => Ok(match kept.and_then(|kept| kept.missing(&text)) {
                Some(missing) => Judged::Lacking((text, items), missing),
                None => Judged::Good((text, items)),
            }),
            Err(error) if error.code == Code::SummaryRejected => Ok(Judged::Bad(error.into_parts().message)),
            Err(error) => Err(error),
        }
    }

    fn is_cut(&mut self) -> bool {
        self.history.limit = shorter(self.history.limit);
        true
    }

    // Once is enough: whoever went on with the conversation there would do so again.
    fn leaves_thread(&mut self) -> bool {
        let is_sent = self.against.thread.as_ref().is_some_and(|thread| thread.prompt.is_some());
        std::mem::take(&mut self.threads) && is_sent
    }

    fn failed(attempt: u32, of: u32, why: &Error) -> Option<String> {
        Some(format!("Summary attempt {attempt} of {of} failed: {why}"))
    }

    fn release(&mut self) {
        self.run.release();
    }

    fn acquire(&mut self) -> Result<()> {
        self.run.acquire()
    }
}
