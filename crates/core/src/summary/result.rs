//! Asking for a shorter tool result (`S2.1`, `S2.2`, `S2.4`).

use super::prompt::{PromptMessage, SummaryRequest, fill};
use super::render::{attribute, escape, without_base64};
use crate::tokens::Estimator;
use std::fmt::Write as _;

const SYSTEM: &str = include_str!("prompts/result.md");

/// What a tool was called for.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolPurpose {
    /// What the model said with the call; used in the second layer only (`S2.4`).
    pub(crate) thought: String,
    /// The tool's name.
    pub(crate) name: String,
    /// Its arguments as JSON text.
    pub(crate) arguments: String,
}

/// A text to shorten.
#[derive(Debug, Clone)]
pub(crate) struct Shorten<'t> {
    /// The text, or a part of it.
    pub(crate) text: &'t str,
    /// Which part of how many, from 1; nothing for the whole.
    pub(crate) part: Option<(usize, usize)>,
    /// Length asked for, in characters.
    pub(crate) target_chars: usize,
    /// The summariser's model, as the app named it.
    pub(crate) model: Option<String>,
}

/// The request for a shorter text.
pub(crate) fn shorten(purpose: &ToolPurpose, ask: &Shorten<'_>, estimator: Estimator) -> SummaryRequest {
    let part = ask.part.map(|(nth, of)| format!(" (part {nth} of {of})")).unwrap_or_default();
    let target = ask.target_chars.to_string();
    let system = fill(SYSTEM.trim_end(), &[("part", &part), ("targetChars", &target)]);
    let mut content = String::new();
    if !purpose.thought.is_empty() {
        let _ = writeln!(content, "<reasoning>\n{}\n</reasoning>", escape(&purpose.thought));
    }
    let (name, arguments) = (attribute(&purpose.name), escape(&purpose.arguments));
    let _ = writeln!(content, "<tool_call name=\"{name}\">\n{arguments}\n</tool_call>");
    let text = without_base64(ask.text);
    let _ = write!(content, "<tool_result>\n{}\n</tool_result>", escape(&text));
    let whole = ask.text.chars().count().max(1);
    // The same share of its tokens as of its characters.
    let tokens = estimator.text(ask.text) as u128 * ask.target_chars as u128 / whole as u128;
    let target_tokens = (tokens as usize).max(16);
    SummaryRequest {
        system,
        messages: vec![PromptMessage { role: "user", content, searched: Vec::new() }],
        max_tokens: target_tokens.saturating_mul(6).div_ceil(5),
        target_tokens,
        facts: Vec::new(),
        truncated: false,
        thread: None,
        model: ask.model.clone(),
    }
}
