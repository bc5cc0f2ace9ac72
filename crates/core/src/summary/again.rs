//! Asking for a shorter checkpoint in the place of one, or of several (`S5.8`).

use super::focus::level;
use super::prompt::{PromptMessage, SummaryRequest, fill};
use super::render::escape;
use crate::checkpoint::{Level, Range};

const SYSTEM: &str = include_str!("prompts/age.md");

/// The request for one checkpoint of a level in the place of `texts`.
pub(crate) fn again(texts: &[String], to: Level, range: Range, model: Option<String>) -> SummaryRequest {
    let what = if texts.len() == 1 { "the checkpoint" } else { "all of them" };
    let target = range.high;
    let system = fill(
        SYSTEM.trim_end(),
        &[("what", what), ("level", &level(to, range)), ("targetTokens", &target.to_string())],
    );
    let fenced =
        texts.iter().map(|text| format!("<previous_summary>\n{}\n</previous_summary>", escape(text)));
    let content = fenced.collect::<Vec<_>>().join("\n");
    SummaryRequest {
        system,
        messages: vec![PromptMessage { role: "user", content, searched: Vec::new() }],
        max_tokens: target.saturating_mul(6).div_ceil(5),
        target_tokens: target,
        facts: Vec::new(),
        truncated: false,
        model,
        thread: None,
    }
}
