//! How full the context is (`/context`, `S1.13`).

use super::context::Context;
use super::state::State;
use serde::Serialize;

/// How full the context is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// Tokens of the next prompt.
    pub used_tokens: usize,
    /// The context window.
    pub max_tokens: usize,
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
    let used = totals.tokens.saturating_add(state.fixed_tokens);
    let window = state.settings.window;
    let buffer = window - state.settings.hard_limit;
    let category = |name, tokens, kind| Category { name, tokens, kind };
    let mut categories = vec![
        category("system", totals.system + state.fixed_tokens.saturating_sub(state.tool_tokens), "used"),
        category("tools", state.tool_tokens, "used"),
        category("user", totals.user, "used"),
        category("assistant", totals.assistant, "used"),
        category("tool results", totals.tool, "used"),
        category("summary", totals.summary, "used"),
    ];
    let free = window.saturating_sub(used);
    categories.push(category("free", free.saturating_sub(buffer), "free"));
    categories.push(category("buffer", free.min(buffer), "buffer"));
    ContextUsage {
        used_tokens: used,
        max_tokens: window,
        percent: (used as f64 * 1_000.0 / window as f64).round() / 10.0,
        threshold: state.threshold(),
        message_count: context.items().len(),
        tool_call_count: totals.calls,
        offload_count: totals.offloads,
        categories,
    }
}
