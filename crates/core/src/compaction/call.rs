//! One call of whoever writes summaries, and what its failure means.

use crate::error::{Code, Error, Result};
use crate::log::question;
use crate::policy::Settings;
use crate::step::{EffectFailure, Io, Purpose, ReportedUsage};
use crate::summary::{PROMPT_VERSION, SummaryRequest};
use crate::wire::provider;
use std::rc::Rc;

/// What calls for summaries cost.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct CallCost {
    /// Calls.
    pub(crate) calls: u32,
    /// What the summariser reported.
    pub(crate) usage: Option<ReportedUsage>,
}

impl CallCost {
    /// Adds what other calls cost.
    pub(super) fn add(&mut self, other: CallCost) {
        self.calls += other.calls;
        if let Some(usage) = other.usage {
            *self.usage.get_or_insert_default() += usage;
        }
    }
}

/// What calls would take: how many there are, and the tokens of their prompts and answers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallTally {
    pub(super) count: usize,
    pub(super) input: usize,
    pub(super) output: usize,
}

impl CallTally {
    /// Adds what other calls would take.
    pub(super) fn add(&mut self, other: CallTally) {
        self.count += other.count;
        self.input += other.input;
        self.output += other.output;
    }
}

/// An attempt that failed.
pub(super) struct FailedAttempt {
    pub(super) error: Error,
    pub(super) aborted: bool,
    pub(super) overflow: bool,
    pub(super) retryable: bool,
    pub(super) retry_after_ms: Option<u64>,
    /// Another form of the request may do better: neither who asks nor the time is why it failed.
    pub(super) is_of_form: bool,
}

impl FailedAttempt {
    /// What the provider answered. It is not asked again where it wants to be left alone for longer than `longest`.
    fn refused(failure: provider::Failure, longest: u64) -> Self {
        let provider::Failure { mut message, retry_after_ms, overflow, .. } = failure;
        let too_long = retry_after_ms.filter(|ms| *ms > longest);
        if let Some(ms) = too_long {
            let seconds = |ms: u64| ms.div_ceil(1_000);
            message = format!(
                "{message}; it asks to wait {} s, and no call waits longer than {} s: try again then",
                seconds(ms),
                seconds(longest)
            );
        }
        let mut error = Error::new(Code::SummaryFailed, message);
        error.retryable = failure.retryable;
        FailedAttempt {
            error,
            aborted: false,
            overflow,
            retryable: (failure.retryable || overflow) && too_long.is_none(),
            retry_after_ms,
            is_of_form: is_of_form(Some(failure.status)),
        }
    }

    fn thrown(failure: EffectFailure) -> Self {
        let code = failure.code.filter(|code| matches!(code, Code::Aborted | Code::Timeout));
        let overflow = failure.overflow
            || provider::is_context_overflow(failure.status.unwrap_or(400), "", &failure.message, &[]);
        let mut error =
            Error::new(code.unwrap_or(Code::SummaryFailed), failure.message).caused_by(failure.effect);
        error.retryable = failure.status.is_some_and(|status| status == 429 || status >= 500);
        FailedAttempt {
            aborted: code == Some(Code::Aborted),
            overflow,
            // A key that is wrong is as wrong the next time.
            retryable: !matches!(failure.status, Some(401 | 403)),
            retry_after_ms: None,
            is_of_form: code.is_none() && is_of_form(failure.status),
            error,
        }
    }
}

/// True where neither who asks nor the time is why a call failed.
fn is_of_form(status: Option<u16>) -> bool {
    !status.is_some_and(|status| matches!(status, 401 | 403 | 408 | 425 | 429) || status >= 500)
}

/// What the answer to a request depends on: who is asked, for what, and all of the request.
pub(super) fn question_of(settings: &Settings, request: &SummaryRequest, purpose: Purpose) -> Result<String> {
    let shortens = settings.app_shortens && purpose.is_of_result();
    let who = match settings.provider().filter(|_| !shortens) {
        Some(provider) => format!("provider {}", provider.model),
        None => format!("app {shortens} {:?}", settings.summary_model),
    };
    let version = PROMPT_VERSION.to_le_bytes();
    let unreadable = |error| Error::new(Code::Poisoned, format!("a request could not be written: {error}"));
    let request = serde_json::to_vec(request).map_err(unreadable)?;
    Ok(question(&[&version, who.as_bytes(), format!("{purpose:?}").as_bytes(), &request]))
}

/// One call of the summariser.
pub(super) async fn call(
    io: &Io,
    settings: &Settings,
    request: &Rc<SummaryRequest>,
    attempt: u32,
    purpose: Purpose,
) -> Result<(String, Option<ReportedUsage>), FailedAttempt> {
    let shortens = settings.app_shortens && purpose.is_of_result();
    let Some(provider) = settings.provider().filter(|_| !shortens) else {
        return io
            .summarize(Rc::clone(request), attempt, purpose, settings.timeout_ms)
            .await
            .map_err(FailedAttempt::thrown);
    };
    let prompt = provider::Prompt {
        system: request.system.clone(),
        messages: request.messages.iter().map(|message| message.content.clone()).collect(),
        max_tokens: request.max_tokens,
        tokens: asked(request, settings),
        thread: request.thread.as_ref().and_then(|thread| thread.prompt.as_deref()).cloned(),
    };
    let http = provider::request(provider, &prompt);
    let answer = io.fetch(http, settings.timeout_ms).await.map_err(|failure| {
        let mut attempt = FailedAttempt::thrown(failure);
        // No answer came at all.
        attempt.is_of_form = false;
        attempt.error.retryable |= attempt.error.code == Code::SummaryFailed;
        attempt
    })?;
    let now = io.now().await.unwrap_or(0);
    let (status, headers, body) = answer;
    let header = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    match provider::response(provider, status, header, &body, now) {
        Ok(answer) => Ok((answer.text, answer.usage.map(ReportedUsage::from))),
        Err(failure) => Err(FailedAttempt::refused(failure, settings.timeout_ms.min(LONGEST_WAIT_MS))),
    }
}

/// The longest that a provider is waited for before the next attempt: who asks for more is asked again by the app.
const LONGEST_WAIT_MS: u64 = 60_000;

/// About what a request takes in the summariser's window, without the answer.
fn asked(request: &SummaryRequest, settings: &Settings) -> usize {
    let messages = request.messages.iter().map(|message| message.content.as_str());
    messages.chain([request.system.as_str()]).map(|text| settings.estimator.text(text)).sum()
}
