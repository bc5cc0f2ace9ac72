//! A history that is longer than the summariser's window is summarised in parts, some at a time, and the summaries of the
//! parts become one. Every answer is kept until the commit ([`Job`]): whoever dies on the way pays for no part twice.

use super::ask::{Judged, SummaryJob, ask_each, shorter};
use super::call::{CallCost, CallTally};
use super::cut::Proposal;
use super::redaction::{messages_without_secrets, redact_request, without_secrets};
use super::replace;
use super::rung::Run;
use super::write::{input_limit, max_tokens, without_quotes};
use crate::checkpoint::Goal;
use crate::context::Item;
use crate::error::{Code, Error, Result};
use crate::log::{Job, View};
use crate::message::Message;
use crate::policy::Settings;
use crate::policy::cost::INSTRUCTION_TOKENS;
use crate::step::{Breath, Effect, Io, LogLevel, Progress, Purpose, Stage};
use crate::summary::{self, Fact, NamedFacts, PromptOptions, ShownMessages, SummaryRequest, once_more};
use crate::tokens::Estimator;
use crate::wire::{self, Format};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

/// A history that a summary is asked for, by everyone who has a say.
pub(super) struct History<'a> {
    pub(super) messages: &'a [Message<'a>],
    pub(super) proposal: &'a Proposal,
    pub(super) stored: &'a Job,
    settings: Rc<Settings>,
    goal: Option<Goal>,
    instructions: Option<String>,
    /// Index of each message among the app's own.
    indices: Vec<Option<usize>>,
    /// What it must keep, without secrets: a summary is asked for what it is shown.
    keep: Vec<(usize, String)>,
    /// Tokens that a request may take.
    pub(super) limit: usize,
    /// Which messages were searched for secrets, and hold none.
    clean: Vec<bool>,
    /// What the messages name.
    named: NamedFacts,
    /// The summaries of its parts, where it is too long for one request.
    told: Option<Vec<Told>>,
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

impl<'a> History<'a> {
    /// `kept` is what must be kept, where that is looked for; else it is what is proposed to be pinned.
    pub(super) fn of(
        run: &Run<'_>,
        (messages, proposal, stored): (&'a [Message<'a>], &'a Proposal, &'a Job),
        kept: Option<Vec<(usize, String)>>,
    ) -> Self {
        let view = run.view();
        let settings = Rc::clone(&view.settings);
        let instructions: Vec<&str> =
            [settings.instructions.as_deref(), run.instructions].into_iter().flatten().collect();
        let places = proposal.compress.iter().map(|item| item.origin.place());
        let keep = kept.unwrap_or_else(|| {
            let open = proposal.unanswered.iter();
            open.flat_map(|open| open.constraints.iter().map(|text| (open.index, text.clone()))).collect()
        });
        History {
            messages,
            proposal,
            stored,
            goal: run.goal(),
            instructions: (!instructions.is_empty()).then(|| instructions.join("\n\n")),
            indices: places.map(|place| Some(place?.index)).collect(),
            keep: keep.into_iter().map(|(index, text)| (index, without_secrets(&view, text))).collect(),
            limit: input_limit(&settings, proposal.target_tokens),
            clean: Vec::new(),
            named: NamedFacts::of(messages.len()),
            told: None,
            settings,
        }
    }

    /// The same, and which messages were searched for secrets and hold none.
    pub(super) fn searched(self, clean: Vec<bool>) -> Self {
        History { clean, ..self }
    }

    /// What a prompt about all of it is built with.
    pub(super) fn options<'w>(&'w self, refused: Option<&'w str>) -> PromptOptions<'w> {
        PromptOptions {
            target_tokens: self.proposal.target_tokens,
            max_input_tokens: Some(self.limit),
            instructions: self.instructions.as_deref(),
            estimator: self.settings.estimator,
            indices: Some(&self.indices),
            focus: self.settings.focus(self.proposal.level),
            goal: self.goal.as_ref(),
            keep: &self.keep,
            rejected: refused,
            ..PromptOptions::default()
        }
    }

    /// What a request about some of the messages is built with. What must be kept is asked of the whole: no part knows
    /// whether a later one takes it back.
    fn asked(&self, limit: usize) -> PromptOptions<'_> {
        PromptOptions { max_input_tokens: Some(limit), keep: &[], ..self.options(None) }
    }

    /// Some of the messages, as a request shows them.
    fn shown(&self, of: Range<usize>) -> ShownMessages<'_> {
        ShownMessages { messages: self.messages, named: &self.named, clean: &self.clean, of }
    }

    /// The facts of some of the messages.
    fn facts(&self, of: Range<usize>) -> Vec<Fact> {
        self.named.facts(self.messages, of)
    }

    /// Parts of some of the messages that fit `limit`.
    fn split(&self, of: &Range<usize>, limit: usize) -> Vec<HistoryPart> {
        let runs = self.settings.preset.prompt.split(self.messages, of.clone(), &self.asked(limit));
        runs.into_iter().map(|run| HistoryPart { of: run.of, limit, text: None }).collect()
    }

    /// The request for the summary, what the call is for, and how far that is: `attempts` where the history is shown whole.
    /// Where it is too long, it is told in parts first.
    pub(super) async fn next(
        &mut self,
        run: &Run<'_>,
        refused: Option<&str>,
        attempts: (usize, usize),
        spent: &mut CallCost,
    ) -> Result<(SummaryRequest, Purpose, (usize, usize))> {
        let mut told = self.told.take();
        if told.is_none() {
            let mut breath = Breath::default();
            for at in 0..self.messages.len() {
                breath.after(run.io, self.named.look(self.messages, at)).await?;
            }
            let (shown, prompt) = (self.shown(0..self.messages.len()), self.settings.preset.prompt);
            if self.settings.by_parts {
                if let Some(request) = prompt.whole(&shown, &self.options(refused))? {
                    return Ok((request, Purpose::History, attempts));
                }
                told = self.tell(run, spent).await?;
            }
            if told.is_none() {
                let request = prompt.shown(&shown, &self.options(refused))?;
                return Ok((request, Purpose::History, attempts));
            }
        }
        let mut told = told.unwrap_or_default();
        let request = self.merged(run, &mut told, refused, spent).await?;
        let count = told.len();
        self.told = Some(told);
        Ok((request, Purpose::Parts, (count, count + 1)))
    }

    /// The summaries of the parts; nothing where one part is all of it.
    ///
    /// Errors: that of a part that failed, after its attempts; the answers to the others are kept.
    async fn tell(&self, run: &Run<'_>, spent: &mut CallCost) -> Result<Option<Vec<Told>>> {
        let mut parts = self.split(&(0..self.messages.len()), self.limit);
        if parts.len() < 2 {
            return Ok(None);
        }
        run.io.log(LogLevel::Info, format!("The history is summarized in {} parts", parts.len()));
        let mut last = None;
        // A part whose request was too long after all is parted again, and that is another attempt.
        for _ in 0..self.settings.numbers.retry_count {
            let mut requests = Vec::new();
            for part in parts.iter().filter(|part| part.text.is_none()) {
                let options = self.asked(part.limit);
                let shown = self.shown(part.of.clone());
                let request = self.settings.preset.prompt.part(&shown, &options)?;
                requests.push(clean(run.io, &run.view(), request).await?);
            }
            let steps = (parts.len() - requests.len(), parts.len() + 1);
            let mut answers = self.ask(run, requests, (Purpose::Part, steps), spent).await?.into_iter();
            let mut next = Vec::with_capacity(parts.len());
            for part in parts {
                if part.text.is_some() {
                    next.push(part);
                    continue;
                }
                match answers.next() {
                    Some(Ok(text)) => next.push(HistoryPart { text: Some(text), ..part }),
                    Some(Err(error)) => {
                        last = Some(error);
                        next.extend(self.split(&part.of, shorter(part.limit)));
                    }
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
    async fn merged(
        &self,
        run: &Run<'_>,
        told: &mut Vec<Told>,
        refused: Option<&str>,
        spent: &mut CallCost,
    ) -> Result<SummaryRequest> {
        let prompt = self.settings.preset.prompt;
        let (mut limit, mut tries) = (self.limit, self.settings.numbers.retry_count);
        loop {
            let options = PromptOptions { max_input_tokens: Some(limit), ..self.options(refused) };
            let estimator = self.settings.estimator;
            let tokens: Vec<usize> = told.iter().map(|told| estimator.text(&told.text)).collect();
            let groups = prompt.groups(&tokens, &options);
            if groups.len() < 2 {
                return prompt.merge(&texts(told), self.facts(0..self.messages.len()), &options);
            }
            let mut requests = Vec::new();
            let mut merges = Vec::new();
            for group in &groups {
                let of = told.get(group.clone()).unwrap_or_default();
                if let [first, .., last] = of {
                    let range = first.of.start..last.of.end;
                    let options =
                        PromptOptions { indices: self.indices.get(range.clone()), ..self.asked(limit) };
                    let request = prompt.merge(&texts(of), self.facts(range.clone()), &options)?;
                    requests.push(clean(run.io, &run.view(), request).await?);
                    merges.push(range);
                }
            }
            let steps = (0, requests.len() + 1);
            let answers = self.ask(run, requests, (Purpose::Parts, steps), spent).await?;
            let mut too_long = None;
            for (of, answer) in merges.into_iter().zip(answers) {
                match answer {
                    Ok(text) => {
                        let first = told.iter().position(|told| told.of.start == of.start).unwrap_or(0);
                        let last = told.iter().rposition(|told| told.of.end == of.end).unwrap_or(first);
                        told.splice(first..=last, [Told { of, text }]);
                    }
                    Err(error) => too_long = Some(error),
                }
            }
            if let Some(error) = too_long {
                tries = tries.saturating_sub(1);
                if tries == 0 {
                    return Err(error);
                }
                limit = shorter(limit);
            }
        }
    }

    /// What came of each request: its summary, or that it does not fit the model's window.
    ///
    /// Errors: that of one that failed for good.
    async fn ask(
        &self,
        run: &Run<'_>,
        requests: Vec<Rc<SummaryRequest>>,
        (purpose, (before, total)): (Purpose, (usize, usize)),
        spent: &mut CallCost,
    ) -> Result<Vec<Result<String>>> {
        let tokens = run.tokens();
        let done = Cell::new(before);
        let tell = || {
            let (done, previous_tokens, current_tokens) = (done.get(), tokens, tokens);
            let stage = Stage::Summarise;
            run.io.tell(Effect::Progress(Progress { stage, done, total, previous_tokens, current_tokens }));
        };
        tell();
        let failed = RefCell::new(None);
        let (estimator, failed) = (self.settings.estimator, &failed);
        let job = |request| PartSummary { request, purpose, estimator, failed, too_long: false };
        let mut jobs: Vec<PartSummary<'_>> = requests.into_iter().map(job).collect();
        let answered = || {
            done.set(done.get() + 1);
            tell();
        };
        let answers = ask_each(run, self.stored, &mut jobs, &answered, spent).await?;
        let answers = answers.into_iter().zip(&jobs);
        answers.map(|(answer, job)| if job.too_long { Ok(answer) } else { answer.map(Ok) }).collect()
    }
}

fn texts(told: &[Told]) -> Vec<&str> {
    told.iter().map(|told| told.text.as_str()).collect()
}

/// A request as a summariser may see it.
pub(super) async fn clean(io: &Io, view: &View, mut request: SummaryRequest) -> Result<Rc<SummaryRequest>> {
    request.model = view.settings.summary_model.clone();
    Ok(Rc::new(redact_request(io, view, request).await?))
}

/// Asking for the summary of a part. Once one has failed for good nothing more is asked: what there is cannot become a
/// summary.
struct PartSummary<'a> {
    request: Rc<SummaryRequest>,
    purpose: Purpose,
    estimator: Estimator,
    failed: &'a RefCell<Option<Error>>,
    too_long: bool,
}

impl SummaryJob for PartSummary<'_> {
    type Written = String;
    const REFUSED: &'static str = "the summary of a part was not acceptable: ";

    fn purpose(&self) -> Purpose {
        self.purpose
    }

    async fn question(&mut self) -> Result<Rc<SummaryRequest>> {
        Ok(Rc::clone(&self.request))
    }

    async fn request(&mut self, _: u32, refused: Option<&str>) -> Result<Rc<SummaryRequest>> {
        if let Some(error) = self.failed.borrow().clone() {
            return Err(error);
        }
        Ok(match refused {
            Some(reason) => Rc::new(once_more(&self.request, reason)),
            None => Rc::clone(&self.request),
        })
    }

    async fn accept(&mut self, answer: &str) -> Result<Judged<String>> {
        let (request, estimator) = (&self.request, self.estimator);
        let shown = request.messages.iter().map(|message| estimator.text(&message.content)).sum();
        let checked = match self.purpose {
            Purpose::Parts => summary::check(answer, &without_content(request), shown, estimator),
            // A short part may be told in more words than it has: it is the whole that must become shorter.
            _ => summary::check(answer, request, shown.max(request.target_tokens), estimator),
        };
        Ok(match checked {
            // Which references are of these messages is known of the whole.
            Ok(text) => Judged::Good(summary::guarded(&text, &|_| true)),
            Err(rejection) => Judged::Bad(rejection.reason),
        })
    }

    // Whoever asked parts it.
    fn is_cut(&mut self) -> bool {
        self.too_long = true;
        false
    }

    fn failed(attempt: u32, of: u32, why: &Error) -> Option<String> {
        Some(format!("Attempt {attempt} of {of} at a part failed: {why}"))
    }

    fn gave_up(&self, _: &Io, why: &Error) {
        if !self.too_long {
            self.failed.borrow_mut().get_or_insert_with(|| why.clone());
        }
    }
}

/// A request to check an answer against that may repeat what it was shown, as one summary of several does.
pub(super) fn without_content(request: &SummaryRequest) -> SummaryRequest {
    SummaryRequest {
        system: request.system.clone(),
        messages: Vec::new(),
        facts: request.facts.clone(),
        model: None,
        thread: None,
        ..*request
    }
}

/// The calls that a summary takes, if every answer is as long as it was asked for. Results that are not in the context any
/// more count by their length.
pub(super) fn foretell(run: &Run<'_>, proposal: &Proposal) -> Result<CallTally> {
    let view = run.view();
    let settings = &view.settings;
    let target = proposal.target_tokens;
    let limit = input_limit(settings, target);
    let offloads = proposal.compress.iter().flat_map(|item| item.origin.offloads());
    let restored: usize = offloads.map(|offload| offload.chars).sum();
    let tokens = proposal.replaced_tokens.saturating_add(restored);
    let one = CallTally { count: 1, input: proposal.replaced_tokens.min(limit), output: max_tokens(target) };
    let in_thread = run.last_prompt().is_some_and(|last| proposal.boundary <= last.items);
    if in_thread && run.asks_in_thread() {
        let input = view.usage.tokens.saturating_add(INSTRUCTION_TOKENS);
        return Ok(CallTally { input, ..one });
    }
    // Far from the limit nothing need be looked at more closely.
    if !settings.by_parts || (tokens < limit / 2 && !settings.app_counts) {
        return Ok(one);
    }
    let bodies =
        proposal.compress.iter().map(|item| imagined(view.format, item)).collect::<Result<Vec<_>>>()?;
    let values = bodies.iter().map(|body| wire::parse(0, body)).collect::<Result<Vec<_>>>()?;
    let wire = view.format.wire();
    let mut messages = values.iter().map(|value| wire.read(0, value)).collect::<Result<Vec<_>>>()?;
    messages_without_secrets(&view, &mut messages);
    let stored = Job::default();
    let history = History::of(run, (&messages, proposal, &stored), None);
    let (options, prompt) = (history.options(None), settings.preset.prompt);
    if !matches!(prompt.whole(&history.shown(0..messages.len()), &options), Ok(None)) {
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
fn imagined(format: Format, item: &Item) -> Result<Rc<str>> {
    if let Some(body) = without_quotes(format, item)? {
        return Ok(body);
    }
    let offloads = item.origin.offloads().iter();
    let texts: Vec<String> = offloads.map(|offload| "text ".repeat(offload.chars / 5 + 1)).collect();
    replace::restored(format, item, &texts)
}
