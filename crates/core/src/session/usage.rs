//! How full the context is (`/context`, `S1.13`): by the estimate, and by what providers counted.

use super::operations::Session;
use crate::context::Context;
use crate::error::Result;
use crate::log::State;
use crate::step::{LogLevel, Machine};
use crate::tokens::Corrected;
use crate::wire::provider;
use serde::Serialize;

/// How full the context is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// Tokens of the next prompt.
    pub used_tokens: usize,
    /// About 99 of 100 prompts have at least this many, of what the session knows.
    pub low: usize,
    /// And at most this many.
    pub high: usize,
    /// The context window.
    pub max_tokens: usize,
    /// Nobody said how large the window is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// Used of the window, with one decimal.
    pub percent: f64,
    /// Tokens at which the preset acts.
    pub threshold: usize,
    /// Messages in the context.
    pub message_count: usize,
    /// Tool calls in the context.
    pub tool_call_count: usize,
    /// References to offloads in the context.
    pub offload_count: usize,
    /// What the window is used for; the tokens of all of them are the window.
    pub categories: Vec<Category>,
    /// How the estimate is corrected, since a provider's usage was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<Corrected>,
}

/// A part of the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Category {
    /// What it holds.
    pub name: &'static str,
    /// Tokens.
    pub tokens: usize,
    /// `used`, `free`, or `buffer` for what is kept for the answer.
    pub kind: &'static str,
}

/// How full a session's context is.
pub(crate) fn usage(state: &State) -> ContextUsage {
    usage_of(state, &state.context)
}

/// How full it would be with this context.
pub(crate) fn usage_of(state: &State, context: &Context) -> ContextUsage {
    let totals = context.totals();
    let used = state.tokens_with(context);
    let (low, high) = state.bounds_with(context);
    let share = state.shares_of(context);
    let window = state.settings.window;
    let buffer = window - state.settings.hard_limit;
    let category = |name, tokens, kind| Category { name, tokens, kind };
    let part = |name, tokens| category(name, share(tokens), "used");
    let mut categories = vec![
        part("system", totals.system + state.before_tokens().saturating_sub(state.tool_tokens)),
        part("tools", state.tool_tokens),
        part("user", totals.user),
        part("assistant", totals.assistant),
        part("tool results", totals.tool),
        part("summary", totals.summary),
    ];
    if state.live_tokens > 0 {
        categories.push(part("live", state.live_tokens));
    }
    let correction = state.correction();
    if correction.is_some() {
        let parts: usize = categories.iter().map(|part| part.tokens).sum();
        // What the provider counts and none of these accounts for.
        categories.push(category("overhead", used.saturating_sub(parts), "used"));
    }
    let free = window.saturating_sub(used);
    categories.push(category("free", free.saturating_sub(buffer), "free"));
    categories.push(category("buffer", free.min(buffer), "buffer"));
    ContextUsage {
        used_tokens: used,
        low,
        high,
        max_tokens: window,
        assumed: state.settings.is_window_assumed,
        percent: (used as f64 * 1_000.0 / window as f64).round() / 10.0,
        threshold: state.threshold(),
        message_count: context.len(),
        tool_call_count: totals.calls,
        offload_count: totals.offloads,
        categories,
        correction,
    }
}

impl Session {
    /// Takes over what the provider counted for the last prompt, for a model that is not the options': from now on the
    /// estimate of the whole prompt goes on from it. Adds what the call cost, where prices are known. `usage` is JSON text in any provider's shape. False when it cannot be of
    /// that prompt, and nothing was learned. Stored with the next commit.
    ///
    /// Errors: [`crate::Code::InvalidOption`] when it does not say how long the prompt was, [`crate::Code::Closed`].
    pub fn record_usage(&self, usage: &str, model: Option<String>) -> Result<bool> {
        let usage = provider::reported(usage)?;
        self.slot.report(&usage, model)
    }

    /// Stores what was recorded since the last commit. It only helps: where it cannot be stored, the session goes without.
    pub fn keep_usage(&self) -> Machine<()> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let guard = slot.take()?;
            let is_new = {
                let state = guard.state();
                let is_new = state.row.calibrations != state.calibrations || state.has_unstored_costs();
                state.row.ver > 0 && is_new
            };
            if is_new && let Err(error) = guard.update_row(&io, |_, _| Ok(())).await {
                io.log(
                    LogLevel::Warn,
                    format!("what was learned from reported usage is not stored: {error}"),
                );
            }
            Ok(())
        })
    }
}
