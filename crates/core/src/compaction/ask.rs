//! Asking until an answer is acceptable: one at a time or some (`S2.12`), and for shorter results with what is asked for led
//! by what was answered (`S2.11`).

use super::call::{CallCost, call, question_of};
use super::redaction::without_secrets;
use super::rung::Run;
use crate::error::{Code, Error, Result};
use crate::log::Job;
use crate::policy::Settings;
use crate::step::{Effect, Io, LogLevel, Progress, Purpose, Stage, Work, all};
use crate::summary::result::{Shorten, ToolPurpose, shorten};
use crate::summary::{self, SummaryRequest};
use std::cell::Cell;
use std::rc::Rc;

/// A text that a model is to write, until one is acceptable.
pub(super) trait SummaryJob {
    /// What an answer is once it is accepted.
    type Written;

    /// What is said before the reason why an answer is none.
    const REFUSED: &'static str;

    /// What the calls are for.
    fn purpose(&self) -> Purpose;

    /// How often it is asked for.
    fn attempts(&self, settings: &Settings) -> u32 {
        settings.numbers.retry_count
    }

    /// What is asked, whatever was answered so far: an answer that was paid for before is known by it.
    async fn question(&mut self) -> Result<Rc<SummaryRequest>>;

    /// What this attempt asks; `refused` is why the answer before was none.
    async fn request(&mut self, attempt: u32, refused: Option<&str>) -> Result<Rc<SummaryRequest>>;

    /// What an answer is worth.
    async fn accept(&mut self, answer: &str) -> Result<Judged<Self::Written>>;

    /// The request did not fit the model's window: true when the next one is shorter.
    fn is_cut(&mut self) -> bool {
        false
    }

    /// An answer, or a refusal, that another form of the request may mend: from now on it is a prompt of its own. True when
    /// what was sent continued the conversation's prompt: that was no attempt.
    fn leaves_thread(&mut self) -> bool {
        false
    }

    /// The line about an attempt of so many that failed.
    fn failed(_attempt: u32, _of: u32, _why: &Error) -> Option<String> {
        None
    }

    /// There is no text.
    fn gave_up(&self, _io: &Io, _why: &Error) {}

    /// Other calls on the session may run: a model works.
    fn release(&mut self) {}

    /// The session is held again.
    ///
    /// Errors: as [`Run::acquire`].
    fn acquire(&mut self) -> Result<()> {
        Ok(())
    }
}

/// What an answer is worth.
pub(super) enum Judged<T> {
    /// It is taken.
    Good(T),
    /// It is taken where there is no better one; why it is asked for once more.
    Lacking(T, String),
    /// Why it is none.
    Bad(String),
}

/// Asks until an answer is acceptable or the attempts are used up. What was answered before a crash is taken from `stored`.
pub(super) async fn ask<J: SummaryJob>(
    run: &Run<'_>,
    stored: &Job,
    job: &mut J,
    spent: &mut CallCost,
) -> Result<J::Written> {
    let (io, settings) = (run.io, &*run.settings());
    let request = job.question().await?;
    let question = question_of(settings, &request, job.purpose())?;
    io.breathe(request.messages.iter().map(|message| message.content.len()).sum()).await?;
    if let Some(text) = stored.take(io, &question)
        && let Judged::Good(written) | Judged::Lacking(written, _) = job.accept(&text).await?
    {
        return Ok(written);
    }
    let mut of = job.attempts(settings);
    let mut last = Error::new(Code::SummaryFailed, "no attempt was made");
    let (mut refused, mut lacking): (Option<String>, _) = (None, None);
    for attempt in 1.. {
        if attempt > of {
            break;
        }
        let request = job.request(attempt, refused.as_deref()).await?;
        spent.calls += 1;
        job.release();
        let answer = call(io, settings, &request, attempt, job.purpose()).await;
        job.acquire()?;
        let mut wait = settings.numbers.retry_wait_ms * u64::from(attempt);
        match answer {
            Ok((text, usage)) => {
                spent.add(CallCost { calls: 0, usage });
                run.charge(usage);
                let reason = match job.accept(&text).await? {
                    Judged::Lacking(written, reason) if lacking.is_none() && attempt < of => {
                        (lacking, wait) = (Some(written), 0);
                        reason
                    }
                    Judged::Good(written) | Judged::Lacking(written, _) => {
                        stored.keep(io, &question, &text).await;
                        return Ok(written);
                    }
                    Judged::Bad(reason) => reason,
                };
                last = Error::new(Code::SummaryRejected, format!("{}{reason}", J::REFUSED));
                if job.leaves_thread() {
                    (of, wait) = (of.saturating_add(1), 0);
                }
                refused = Some(reason);
            }
            Err(failure) if failure.aborted => return Err(failure.error),
            Err(failure) => {
                wait = wait.max(failure.retry_after_ms.unwrap_or(0));
                last = failure.error;
                if failure.is_of_form && job.leaves_thread() {
                    (of, wait) = (of.saturating_add(1), 0);
                } else if (failure.overflow && !job.is_cut()) || !failure.retryable {
                    break;
                }
            }
        }
        if let Some(line) = J::failed(attempt, of, &last) {
            io.log(LogLevel::Warn, line);
        }
        if attempt < of {
            job.release();
            let slept = io.sleep(wait).await;
            job.acquire()?;
            slept.map_err(|failure| failure.into_error(Code::Aborted))?;
        }
    }
    lacking.ok_or(last)
}

/// The limit of a request in the place of one that did not fit.
pub(super) fn shorter(limit: usize) -> usize {
    limit / 5 * 3
}

/// Asks for several texts, some at a time, in order; the session is free for appends meanwhile. `done` is called for each.
pub(super) async fn ask_each<J: SummaryJob<Written = String>>(
    run: &Run<'_>,
    stored: &Job,
    jobs: &mut [J],
    done: &dyn Fn(),
    spent: &mut CallCost,
) -> Result<Vec<Result<String>>> {
    let (io, settings) = (run.io, run.settings());
    let mut work: Vec<Work<'_, (Result<String>, CallCost)>> = Vec::with_capacity(jobs.len());
    for job in jobs {
        work.push(Box::pin(async {
            let mut cost = CallCost::default();
            let answer = ask(run, stored, job, &mut cost).await;
            if let Err(error) = &answer {
                job.gave_up(io, error);
            }
            done();
            (answer, cost)
        }));
    }
    run.release();
    let answers = all(work, settings.concurrency).await;
    run.acquire()?;
    let view = run.view();
    let mut texts = Vec::with_capacity(answers.len());
    for (answer, cost) in answers {
        spent.add(cost);
        texts.push(answer.map(|text| without_secrets(&view, text)));
    }
    Ok(texts)
}

/// Shorter answers say nothing.
const LEAST_CHARS: usize = 1;
/// However long the answers are, no less than this share of the target is asked for.
const LEAST_SHARE: f64 = 0.5;

/// What compressing results took.
#[derive(Debug, Default, Clone)]
pub(crate) struct Spent {
    /// The calls.
    pub(crate) cost: CallCost,
    /// Why the last text was not shortened that could not be.
    pub(crate) failed: Option<Error>,
    /// How the answers kept to what was asked for.
    pace: Pace,
}

/// Characters that were asked for, and those that were answered.
#[derive(Debug, Default, Clone, Copy)]
struct Pace {
    asked: usize,
    answered: usize,
}

impl Pace {
    fn after(self, asked: usize, answered: usize) -> Self {
        Pace { asked: self.asked.saturating_add(asked), answered: self.answered.saturating_add(answered) }
    }

    /// The share of a target to ask for, so that what is answered is about the target: 1, and less when the answers so
    /// far were longer than asked for.
    fn share(self) -> f64 {
        if self.answered <= self.asked {
            return 1.0;
        }
        (self.asked as f64 / self.answered as f64).max(LEAST_SHARE)
    }
}

/// One text to be shortened.
pub(super) struct Ask<'a> {
    /// What the tool was called for.
    pub(super) purpose: &'a ToolPurpose,
    /// The text, as a summariser may see it.
    pub(super) text: &'a str,
    /// Which part of how many, from 1.
    pub(super) part: Option<(usize, usize)>,
    /// To this share of its characters.
    pub(super) ratio: f64,
    /// What the call is for.
    pub(super) kind: Purpose,
}

impl Ask<'_> {
    /// Characters that it is shortened to.
    pub(super) fn target(&self) -> usize {
        (self.text.chars().count() as f64 * self.ratio) as usize
    }

    /// What is to be done with the text.
    fn shorten(&self, target_chars: usize, settings: &Settings) -> Shorten<'_> {
        Shorten { text: self.text, part: self.part, target_chars, model: settings.summary_model.clone() }
    }
}

/// Asking for one text, with what the answers to the others were like.
struct ShorterResult<'a> {
    ask: Ask<'a>,
    settings: &'a Settings,
    pace: &'a Cell<Pace>,
    /// Characters that the last request asked for.
    asked: Option<usize>,
}

impl ShorterResult<'_> {
    fn to(&self, target_chars: usize) -> Result<Rc<SummaryRequest>> {
        let what = self.ask.shorten(target_chars, self.settings);
        Ok(Rc::new(shorten(self.ask.purpose, &what, self.settings.estimator)))
    }
}

impl SummaryJob for ShorterResult<'_> {
    type Written = String;
    const REFUSED: &'static str = "";

    fn purpose(&self) -> Purpose {
        self.ask.kind
    }

    // How much shorter it is asked for depends on what was answered elsewhere, and is no part of the question.
    async fn question(&mut self) -> Result<Rc<SummaryRequest>> {
        self.to(self.ask.target())
    }

    async fn request(&mut self, _: u32, _: Option<&str>) -> Result<Rc<SummaryRequest>> {
        // Asked for as late as can be: what the answers so far were like is known then.
        let share = if self.settings.numbers.react.strategies { self.pace.get().share() } else { 1.0 };
        let target = (self.ask.target() as f64 * share) as usize;
        self.asked = Some(target);
        self.to(target)
    }

    async fn accept(&mut self, answer: &str) -> Result<Judged<String>> {
        let shown = self.ask.text;
        // What it is shown may hold what only looks like a reference: that much it may repeat.
        let text = summary::guarded(answer.trim(), &|reference| shown.contains(reference));
        let chars = text.chars().count();
        if let Some(asked) = self.asked {
            self.pace.set(self.pace.get().after(asked, chars));
        }
        Ok(match summary::goes_on(&text, |call| shown.contains(call)) {
            Some(reason) => Judged::Bad(reason),
            None if (LEAST_CHARS..shown.chars().count()).contains(&chars) => Judged::Good(text),
            None => Judged::Bad("the compressed result was empty, or not shorter than the original".into()),
        })
    }

    fn gave_up(&self, io: &Io, why: &Error) {
        io.log(LogLevel::Warn, format!("A tool result could not be compressed: {why}"));
    }
}

/// Shortens texts.
pub(super) async fn shorten_each(
    run: &Run<'_>,
    asks: Vec<Ask<'_>>,
    stored: &Job,
    spent: &mut Spent,
) -> Result<Vec<Result<String>>> {
    let (io, settings) = (run.io, run.settings());
    let total = asks.len();
    if total == 0 {
        return Ok(Vec::new());
    }
    if !settings.asks_for_results() {
        let none =
            || Error::new(Code::SummaryFailed, "no summarizer is given: pass `summarize` or `provider`");
        return Ok(asks.iter().map(|_| Err(none())).collect());
    }
    let tokens = run.tokens();
    io.tell(Effect::Progress(Progress {
        stage: Stage::Compress,
        done: 0,
        total,
        previous_tokens: tokens,
        current_tokens: tokens,
    }));
    let pace = Cell::new(spent.pace);
    let job = |ask| ShorterResult { ask, settings: &settings, pace: &pace, asked: None };
    let mut jobs: Vec<ShorterResult<'_>> = asks.into_iter().map(job).collect();
    let answers = ask_each(run, stored, &mut jobs, &|| (), &mut spent.cost).await?;
    spent.pace = pace.get();
    for answer in &answers {
        if let Err(error) = answer {
            if matches!(error.code, Code::Aborted | Code::Closed) {
                return Err(error.clone());
            }
            spent.failed = Some(error.clone());
        }
    }
    Ok(answers)
}
