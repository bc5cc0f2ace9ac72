//! A history that is longer than the summariser's window is summarised in parts, some at a time, and the summaries of the
//! parts become one. Every answer is kept until the commit ([`Job`]): whoever dies on the way pays for no part twice.

use super::call::{CallCost, call, question_of};
use super::cut::Proposal;
use super::redaction::{messages_without_secrets, redact_request, without_secrets};
use super::replace;
use super::write::{input_limit, max_tokens, without_quotes};
use crate::checkpoint::Goal;
use crate::context::Item;
use crate::error::{Code, Error, Result};
use crate::log::{Job, SessionGuard};
use crate::message::Message;
use crate::policy::Settings;
use crate::step::{Effect, Io, LogLevel, Progress, Purpose, Stage, Work, all};
use crate::summary::{self, PromptOptions, SummaryRequest, once_more};
use crate::wire;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

/// What a summary is asked for, by everyone who has a say.
pub(super) struct Wanted {
    goal: Option<Goal>,
    instructions: Option<String>,
    /// Index of each message among the app's own.
    indices: Vec<Option<usize>>,
    /// What it must keep, without secrets: a summary is asked for what it is shown.
    constraints: Vec<(usize, String)>,
}

impl Wanted {
    /// `kept` is what must be kept, where that is looked for; else it is what is proposed to be pinned. `more` is the
    /// guidance for this summary alone.
    pub(super) fn of(
        held: &SessionGuard,
        proposal: &Proposal,
        kept: Option<Vec<(usize, String)>>,
        more: Option<&str>,
    ) -> Self {
        let settings = held.settings();
        let instructions: Vec<&str> =
            [settings.instructions.as_deref(), more].into_iter().flatten().collect();
        let places = proposal.compress.iter().map(|item| item.origin.place());
        let constraints = kept.unwrap_or_else(|| {
            let open = proposal.unanswered.iter();
            open.flat_map(|open| open.constraints.iter().map(|text| (open.index, text.clone()))).collect()
        });
        // Not in the literal, where it would hold the state while secrets are replaced.
        let goal = held.state().row.goal.clone();
        Wanted {
            goal,
            instructions: (!instructions.is_empty()).then(|| instructions.join("\n\n")),
            indices: places.map(|place| Some(place?.index)).collect(),
            constraints: constraints
                .into_iter()
                .map(|(index, text)| (index, without_secrets(held, text)))
                .collect(),
        }
    }

    /// What it must keep, as [`Wanted::options`] wants it.
    pub(super) fn keep(&self) -> Vec<(usize, &str)> {
        self.constraints.iter().map(|(index, text)| (*index, text.as_str())).collect()
    }

    /// What a prompt is built with.
    pub(super) fn options<'w>(
        &'w self,
        settings: &Settings,
        proposal: &Proposal,
        keep: &'w [(usize, &'w str)],
        limit: usize,
    ) -> PromptOptions<'w> {
        PromptOptions {
            target_tokens: proposal.target_tokens,
            max_input_tokens: Some(limit),
            instructions: self.instructions.as_deref(),
            estimator: settings.estimator,
            indices: Some(&self.indices),
            focus: settings.focus(proposal.level),
            goal: self.goal.as_ref(),
            keep,
            ..PromptOptions::default()
        }
    }
}

/// What is summarised in parts.
pub(super) struct Long<'a> {
    pub(super) messages: &'a [Message<'a>],
    pub(super) options: PromptOptions<'a>,
    pub(super) job: &'a Job,
}

/// The summary of a part.
pub(super) struct Told {
    of: Range<usize>,
    text: String,
}

/// A part on its way to its summary.
struct HistoryPart {
    of: Range<usize>,
    limit: usize,
    text: Option<String>,
}

impl Long<'_> {
    fn limit(&self) -> usize {
        self.options.max_input_tokens.unwrap_or(usize::MAX)
    }

    /// What a request about some of the messages is built with. What must be kept is asked of the whole: no part knows
    /// whether a later one takes it back.
    fn asked(&self, limit: usize) -> PromptOptions<'_> {
        PromptOptions { max_input_tokens: Some(limit), keep: &[], rejected: None, ..self.options }
    }

    /// Parts of some of the messages that fit `limit`.
    fn split(&self, settings: &Settings, of: &Range<usize>, limit: usize) -> Vec<HistoryPart> {
        let runs = settings.preset.prompt.split(self.messages, of.clone(), &self.asked(limit));
        runs.into_iter().map(|run| HistoryPart { of: run.of, limit, text: None }).collect()
    }

    /// The request for the summary, what the call is for, and how far that is: `attempts` where the history is shown whole.
    /// Where it is too long, its parts are `told` first.
    pub(super) async fn next(
        &self,
        io: &Io,
        held: &mut SessionGuard,
        told: &mut Option<Vec<Told>>,
        attempts: (usize, usize),
        spent: &mut CallCost,
    ) -> Result<(SummaryRequest, Purpose, (usize, usize))> {
        let settings = held.settings();
        if told.is_none() {
            let request = settings.preset.prompt.build(self.messages, &self.options)?;
            if settings.by_parts && request.truncated {
                *told = self.told(io, held, spent).await?;
            }
            if told.is_none() {
                return Ok((request, Purpose::History, attempts));
            }
        }
        let told = told.get_or_insert_default();
        let request = self.merged(io, held, told, spent).await?;
        Ok((request, Purpose::Parts, (told.len(), told.len() + 1)))
    }

    /// The summaries of the parts; nothing where one part is all of it.
    ///
    /// Errors: that of a part that failed, after its attempts; the answers to the others are kept.
    pub(super) async fn told(
        &self,
        io: &Io,
        held: &mut SessionGuard,
        spent: &mut CallCost,
    ) -> Result<Option<Vec<Told>>> {
        let settings = held.settings();
        let mut parts = self.split(&settings, &(0..self.messages.len()), self.limit());
        if parts.len() < 2 {
            return Ok(None);
        }
        io.log(LogLevel::Info, format!("The history is summarised in {} parts", parts.len()));
        let mut last = None;
        // A part whose request was too long after all is parted again, and that is another attempt.
        for _ in 0..settings.numbers.retry_count {
            let mut requests = Vec::new();
            for part in parts.iter().filter(|part| part.text.is_none()) {
                let options = self.asked(part.limit);
                let request = settings.preset.prompt.part(self.messages, part.of.clone(), &options)?;
                requests.push(clean(io, held, &settings, request).await?);
            }
            let steps = (parts.len() - requests.len(), parts.len() + 1);
            let mut answers = self.ask(io, held, &requests, (Purpose::Part, steps), spent).await?.into_iter();
            let mut next = Vec::with_capacity(parts.len());
            for part in parts {
                if part.text.is_some() {
                    next.push(part);
                    continue;
                }
                match answers.next() {
                    Some(PartAnswer::Text(text)) => next.push(HistoryPart { text: Some(text), ..part }),
                    Some(PartAnswer::TooLong(error)) => {
                        last = Some(error);
                        next.extend(self.split(&settings, &part.of, part.limit / 5 * 3));
                    }
                    Some(PartAnswer::Failed(error)) => return Err(error),
                    None => {}
                }
            }
            parts = next;
            if parts.iter().all(|part| part.text.is_some()) {
                let told = parts.into_iter().filter_map(|part| Some(Told { of: part.of, text: part.text? }));
                return Ok(Some(told.collect()));
            }
        }
        Err(last.unwrap_or_else(|| Error::new(Code::SummaryFailed, "no part was answered")))
    }

    /// The request that makes one summary of those of the parts. As long as they do not fit one, neighbours are made
    /// one first.
    pub(super) async fn merged(
        &self,
        io: &Io,
        held: &mut SessionGuard,
        told: &mut Vec<Told>,
        spent: &mut CallCost,
    ) -> Result<SummaryRequest> {
        let settings = held.settings();
        let prompt = settings.preset.prompt;
        let (mut limit, mut tries) = (self.limit(), settings.numbers.retry_count);
        loop {
            let options = PromptOptions { max_input_tokens: Some(limit), ..self.options };
            let tokens: Vec<usize> = told.iter().map(|told| settings.estimator.text(&told.text)).collect();
            let groups = prompt.groups(&tokens, &options);
            if groups.len() < 2 {
                return prompt.merge(&texts(told), self.messages, &options);
            }
            let mut requests = Vec::new();
            let mut merges = Vec::new();
            for group in &groups {
                let of = told.get(group.clone()).unwrap_or_default();
                if let [first, .., last] = of {
                    let range = first.of.start..last.of.end;
                    let messages = self.messages.get(range.clone()).unwrap_or_default();
                    let indices = self.options.indices.and_then(|indices| indices.get(range.clone()));
                    let options = PromptOptions { indices, ..self.asked(limit) };
                    let request = prompt.merge(&texts(of), messages, &options)?;
                    requests.push(clean(io, held, &settings, request).await?);
                    merges.push(range);
                }
            }
            let steps = (0, requests.len() + 1);
            let answers = self.ask(io, held, &requests, (Purpose::Parts, steps), spent).await?;
            let mut too_long = None;
            for (of, answer) in merges.into_iter().zip(answers) {
                let text = match answer {
                    PartAnswer::Text(text) => text,
                    PartAnswer::TooLong(error) => {
                        too_long = Some(error);
                        continue;
                    }
                    PartAnswer::Failed(error) => return Err(error),
                };
                let first = told.iter().position(|told| told.of.start == of.start).unwrap_or(0);
                let last = told.iter().rposition(|told| told.of.end == of.end).unwrap_or(first);
                told.splice(first..=last, [Told { of, text }]);
            }
            if let Some(error) = too_long {
                tries = tries.saturating_sub(1);
                if tries == 0 {
                    return Err(error);
                }
                limit = limit / 5 * 3;
            }
        }
    }

    /// Asks some at a time; the session is free for appends meanwhile.
    async fn ask(
        &self,
        io: &Io,
        held: &mut SessionGuard,
        requests: &[Rc<SummaryRequest>],
        (purpose, (before, total)): (Purpose, (usize, usize)),
        spent: &mut CallCost,
    ) -> Result<Vec<PartAnswer>> {
        let settings = held.settings();
        let tokens = held.tokens();
        let done = Cell::new(before);
        let tell = |more: usize| {
            done.set(done.get() + more);
            let (done, previous_tokens, current_tokens) = (done.get(), tokens, tokens);
            io.tell(Effect::Progress(Progress {
                stage: Stage::Summarise,
                done,
                total,
                previous_tokens,
                current_tokens,
            }));
        };
        tell(0);
        let failed = RefCell::new(None);
        let asking = Asking { io, settings: &settings, job: self.job, purpose, failed: &failed };
        let mut work: Vec<Work<'_, (PartAnswer, CallCost)>> = Vec::with_capacity(requests.len());
        for request in requests {
            let asked = async {
                let answer = asking.about(request).await;
                tell(1);
                answer
            };
            work.push(Box::pin(asked));
        }
        held.release();
        let answers = all(work, settings.concurrency).await;
        held.acquire()?;
        let mut texts = Vec::with_capacity(answers.len());
        for (answer, cost) in answers {
            spent.add(cost);
            texts.push(match answer {
                PartAnswer::Text(text) => PartAnswer::Text(without_secrets(held, text)),
                other => other,
            });
        }
        Ok(texts)
    }
}

fn texts(told: &[Told]) -> Vec<&str> {
    told.iter().map(|told| told.text.as_str()).collect()
}

/// A request as a summariser may see it.
async fn clean(
    io: &Io,
    held: &SessionGuard,
    settings: &Settings,
    mut request: SummaryRequest,
) -> Result<Rc<SummaryRequest>> {
    request.model = settings.summary_model.clone();
    Ok(Rc::new(redact_request(io, held, request).await?))
}

/// What came of a request.
enum PartAnswer {
    Text(String),
    /// It does not fit the model's window.
    TooLong(Error),
    Failed(Error),
}

/// Asking about parts. Once one has failed for good nothing more is asked: what there is cannot become a summary.
struct Asking<'a> {
    io: &'a Io,
    settings: &'a Settings,
    job: &'a Job,
    purpose: Purpose,
    failed: &'a RefCell<Option<Error>>,
}

impl Asking<'_> {
    /// Asks until an answer passes the checks or the attempts are used up.
    async fn about(&self, request: &Rc<SummaryRequest>) -> (PartAnswer, CallCost) {
        let mut spent = CallCost::default();
        let answer = self.attempts(request, &mut spent).await;
        if let PartAnswer::Failed(error) = &answer {
            self.failed.borrow_mut().get_or_insert_with(|| error.clone());
        }
        (answer, spent)
    }

    async fn attempts(&self, request: &Rc<SummaryRequest>, spent: &mut CallCost) -> PartAnswer {
        let Asking { io, settings, job, purpose, failed } = *self;
        let numbers = settings.numbers;
        let question = match question_of(settings, request, purpose) {
            Ok(question) => question,
            Err(error) => return PartAnswer::Failed(error),
        };
        if let Some(text) = job.take(io, &question)
            && let Ok(text) = self.accept(request, &text)
        {
            return PartAnswer::Text(text);
        }
        let mut last = Error::new(Code::SummaryFailed, "no attempt was made");
        let mut asked = Rc::clone(request);
        for attempt in 1..=numbers.retry_count {
            if let Some(error) = failed.borrow().clone() {
                return PartAnswer::Failed(error);
            }
            spent.calls += 1;
            let mut wait = numbers.retry_wait_ms * u64::from(attempt);
            match call(io, settings, &asked, attempt, purpose).await {
                Ok((text, usage)) => {
                    spent.add(CallCost { calls: 0, usage });
                    match self.accept(request, &text) {
                        Ok(accepted) => {
                            job.keep(io, &question, &text).await;
                            return PartAnswer::Text(accepted);
                        }
                        Err(reason) => {
                            let what = format!("the summary of a part was not acceptable: {reason}");
                            last = Error::new(Code::SummaryRejected, what);
                            asked = Rc::new(once_more(request, &reason));
                        }
                    }
                }
                Err(failure) if failure.overflow && !failure.aborted => {
                    return PartAnswer::TooLong(failure.error);
                }
                Err(failure) => {
                    last = failure.error;
                    if failure.aborted || !failure.retryable {
                        break;
                    }
                    wait = wait.max(failure.retry_after_ms.unwrap_or(0));
                }
            }
            io.log(
                LogLevel::Warn,
                format!("Attempt {attempt} of {} at a part failed: {last}", numbers.retry_count),
            );
            if attempt < numbers.retry_count
                && let Err(failure) = io.sleep(wait).await
            {
                return PartAnswer::Failed(failure.into_error(Code::Aborted));
            }
        }
        PartAnswer::Failed(last)
    }

    /// The text of an answer; or why it is no summary.
    fn accept(&self, request: &SummaryRequest, answer: &str) -> Result<String, String> {
        let estimator = self.settings.estimator;
        let shown = request.messages.iter().map(|message| estimator.text(&message.content)).sum();
        let checked = match self.purpose {
            Purpose::Parts => summary::check(answer, &without_content(request), shown, estimator),
            _ => summary::check(answer, request, shown, estimator),
        };
        // Which references are of these messages is known of the whole.
        checked.map(|text| summary::guarded(&text, &|_| true)).map_err(|rejection| rejection.reason)
    }
}

/// A request to check an answer against that may repeat what it was shown, as one summary of several does.
pub(super) fn without_content(request: &SummaryRequest) -> SummaryRequest {
    SummaryRequest {
        system: request.system.clone(),
        messages: Vec::new(),
        facts: request.facts.clone(),
        model: None,
        ..*request
    }
}

/// What the calls for a summary take: how many there are, and the tokens of their prompts and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallTally {
    pub(super) count: usize,
    pub(super) input: usize,
    pub(super) output: usize,
}

/// The calls that a summary takes, if every answer is as long as it was asked for. Results that are not in the context any
/// more count by their length.
pub(super) fn foretell(held: &SessionGuard, proposal: &Proposal) -> Result<CallTally> {
    let settings = held.settings();
    let target = proposal.target_tokens;
    let limit = input_limit(&settings, target);
    let offloads = proposal.compress.iter().flat_map(|item| item.origin.offloads());
    let restored: usize = offloads.map(|offload| offload.chars).sum();
    let tokens = proposal.replaced_tokens.saturating_add(restored);
    let one = CallTally { count: 1, input: proposal.replaced_tokens.min(limit), output: max_tokens(target) };
    // Far from the limit nothing need be looked at more closely.
    if !settings.by_parts || (tokens < limit / 2 && !settings.app_counts) {
        return Ok(one);
    }
    let bodies = proposal.compress.iter().map(|item| imagined(held, item)).collect::<Result<Vec<_>>>()?;
    let values = bodies.iter().map(|body| wire::parse(0, body)).collect::<Result<Vec<_>>>()?;
    let wire = held.format().wire();
    let mut messages = values.iter().map(|value| wire.read(0, value)).collect::<Result<Vec<_>>>()?;
    messages_without_secrets(held, &mut messages);
    let (wanted, prompt) = (Wanted::of(held, proposal, None, None), settings.preset.prompt);
    let keep = wanted.keep();
    let options = wanted.options(&settings, proposal, &keep, limit);
    if !matches!(prompt.build(&messages, &options), Ok(request) if request.truncated) {
        return Ok(one);
    }
    let runs = prompt.split(&messages, 0..messages.len(), &options);
    if runs.len() < 2 {
        return Ok(one);
    }
    let mut calls =
        CallTally { count: runs.len(), input: runs.iter().map(|run| run.tokens).sum(), output: 0 };
    let mut left = runs.len();
    loop {
        let groups = prompt.groups(&vec![target; left], &options);
        let merges = groups.iter().filter(|group| group.len() > 1);
        calls.count += merges.clone().count();
        calls.input += merges.map(|group| group.len() * target).sum::<usize>();
        left = groups.len();
        if left < 2 {
            return Ok(CallTally { output: calls.count * max_tokens(target), ..calls });
        }
    }
}

/// A message as it is shown to a summariser, with a text of the same length in the place of each that is offloaded.
fn imagined(held: &SessionGuard, item: &Item) -> Result<Rc<str>> {
    if let Some(body) = without_quotes(held, item)? {
        return Ok(body);
    }
    let offloads = item.origin.offloads().iter();
    let texts: Vec<String> = offloads.map(|offload| "text ".repeat(offload.chars / 5 + 1)).collect();
    replace::restored(&held.state(), item, &texts)
}
