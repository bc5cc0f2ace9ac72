//! Asking for shorter texts, some at a time (`S2.12`), with what is asked for led by what was answered (`S2.11`).

use super::call::{call, question_of};
use super::ladder::Climb;
use super::redaction::without_secrets;
use crate::error::{Code, Error, Result};
use crate::log::{Job, SessionGuard};
use crate::policy::{Settings, Summariser};
use crate::step::{Effect, Io, LogLevel, Progress, Purpose, ReportedUsage, Stage, Work, all};
use crate::summary;
use crate::summary::result::{Shorten, ToolPurpose, shorten};
use std::cell::Cell;
use std::rc::Rc;

/// Shorter answers say nothing.
const LEAST_CHARS: usize = 1;
/// However long the answers are, no less than this share of the target is asked for.
const LEAST_SHARE: f64 = 0.5;

/// What the calls cost.
#[derive(Debug, Default, Clone)]
pub(crate) struct Spent {
    /// Calls.
    pub(crate) calls: u32,
    /// What the summariser reported.
    pub(crate) usage: Option<ReportedUsage>,
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
    fn target(&self) -> usize {
        (self.text.chars().count() as f64 * self.ratio) as usize
    }

    /// What is to be done with the text.
    fn shorten(&self, target_chars: usize, settings: &Settings) -> Shorten<'_> {
        Shorten { text: self.text, part: self.part, target_chars, model: settings.summary_model.clone() }
    }
}

/// Shortens texts, some at a time, in order; the session is free for appends meanwhile. A rehearsal pretends that every
/// answer is as long as it was asked for.
pub(super) async fn ask_all(
    io: &Io,
    held: &mut SessionGuard,
    asks: Vec<Ask<'_>>,
    (climb, job): (Climb<'_>, &Job),
    spent: &mut Spent,
) -> Result<Vec<Result<String, Error>>> {
    let settings = held.settings();
    let total = asks.len();
    if climb.rehearse {
        spent.calls += total as u32;
        return Ok(asks.iter().map(|ask| Ok("x".repeat(ask.target().max(1)))).collect());
    }
    if total == 0 {
        return Ok(Vec::new());
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
        previous_tokens: tokens,
        current_tokens: tokens,
    }));
    let pace = Cell::new(spent.pace);
    let mut work: Vec<Work<'_, (Result<String, Error>, Spent)>> = Vec::with_capacity(total);
    for ask in &asks {
        work.push(Box::pin(attempts(io, (&settings, job), ask, &pace)));
    }
    held.release();
    let answers = all(work, settings.concurrency).await;
    held.acquire()?;
    spent.pace = pace.get();
    let mut texts = Vec::with_capacity(total);
    for (answer, cost) in answers {
        spent.calls += cost.calls;
        if let Some(usage) = cost.usage {
            *spent.usage.get_or_insert_default() += usage;
        }
        match answer {
            Err(error) if matches!(error.code, Code::Aborted | Code::Closed) => return Err(error),
            answer => {
                if let Err(error) = &answer {
                    spent.failed = Some(error.clone());
                }
                texts.push(answer.map(|text| without_secrets(held, text)));
            }
        }
    }
    Ok(texts)
}

/// Asks until an answer is shorter than its text, or the attempts are used up.
async fn attempts(
    io: &Io,
    (settings, job): (&Settings, &Job),
    ask: &Ask<'_>,
    pace: &Cell<Pace>,
) -> (Result<String, Error>, Spent) {
    let mut spent = Spent::default();
    let numbers = settings.numbers;
    let most = ask.text.chars().count();
    let mut last = Error::new(Code::SummaryFailed, "no attempt was made");
    // How much shorter it is asked for depends on what was answered elsewhere, and is no part of the question.
    let whole = shorten(ask.purpose, &ask.shorten(ask.target(), settings), settings.estimator);
    let question = match question_of(settings, &whole, ask.kind) {
        Ok(question) => question,
        Err(error) => return (Err(error), spent),
    };
    if let Some(text) = job.take(io, &question) {
        return (Ok(text), spent);
    }
    for attempt in 1..=numbers.retry_count {
        // Asked for as late as can be: what the answers so far were like is known then.
        let share = if numbers.react.strategies { pace.get().share() } else { 1.0 };
        let target_chars = (ask.target() as f64 * share) as usize;
        let what = ask.shorten(target_chars, settings);
        let request = Rc::new(shorten(ask.purpose, &what, settings.estimator));
        spent.calls += 1;
        let mut wait = numbers.retry_wait_ms * u64::from(attempt);
        match call(io, settings, &request, attempt, ask.kind).await {
            Ok((text, usage)) => {
                if let Some(usage) = usage {
                    *spent.usage.get_or_insert_default() += usage;
                }
                // What it is shown may hold what only looks like a reference: that much it may repeat.
                let text = summary::guarded(text.trim(), &|reference| ask.text.contains(reference));
                let chars = text.chars().count();
                pace.set(pace.get().after(target_chars, chars));
                let refused = match summary::goes_on(&text, |call| ask.text.contains(call)) {
                    None if (LEAST_CHARS..most).contains(&chars) => {
                        job.keep(io, &question, &text).await;
                        return (Ok(text), spent);
                    }
                    Some(reason) => reason,
                    None => "the compressed result was empty, or not shorter than the original".into(),
                };
                last = Error::new(Code::SummaryRejected, refused);
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
    io.log(LogLevel::Warn, format!("A tool result could not be compressed: {last}"));
    (Err(last), spent)
}
