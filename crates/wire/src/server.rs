//! Compaction by the provider itself, in the course of an ordinary request: what a request has to say for it, and the item that
//! comes back. Shapes are those that Anthropic (<https://platform.claude.com/docs/en/build-with-claude/compaction-threshold>)
//! and OpenAI (<https://developers.openai.com/api/docs/guides/compaction>) document.

use crate::error::{Error, Result};
use crate::{Format, edit, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// The fewest tokens from which on Anthropic compacts.
const ANTHROPIC_LEAST: usize = 50_000;

/// Refuses the option where no provider of the format compacts, or not from so few tokens on.
///
/// Errors: [`crate::Code::InvalidOption`].
pub fn check(format: Format, tokens: usize) -> Result<()> {
    match format {
        Format::Anthropic if tokens < ANTHROPIC_LEAST => {
            let what = format!(
                "\"server\" asks for a compaction at {tokens} tokens, and Anthropic compacts from {ANTHROPIC_LEAST} on: set compactAt or \
                 contextWindow higher, or give another summarize"
            );
            Err(Error::option("summarize", what))
        }
        Format::Anthropic | Format::OpenaiResponses => Ok(()),
        _ => {
            let what = format!(
                "\"server\" is for messages in anthropic and openai-responses, whose providers compact on their servers; this session is in {}: \
                 give a function, an endpoint or \"extractive\"",
                format.as_str()
            );
            Err(Error::option("summarize", what))
        }
    }
}

/// The fields of a request by which the provider compacts from so many tokens on: JSON text. `signed`: the prompt has an item
/// that was made on demand, which is of another version of Anthropic's API.
pub fn request(format: Format, tokens: usize, signed: bool) -> Option<String> {
    let on_demand = if signed { r#","compact-2026-09-04""# } else { "" };
    match format {
        Format::Anthropic => Some(format!(
            r#"{{"betas":["compact-2026-01-12"{on_demand}],"context_management":{{"edits":[{{"type":"compact_20260112","trigger":{{"type":"input_tokens","value":{tokens}}}}}]}}}}"#
        )),
        Format::OpenaiResponses => Some(format!(
            r#"{{"context_management":[{{"type":"compaction","compact_threshold":{tokens}}}]}}"#
        )),
        _ => None,
    }
}

/// True for a message of the assistant with an item that stands for what was before it. One of a compaction that failed has
/// nothing in it.
pub fn compacts(format: Format, message: &Value<'_>) -> bool {
    match format {
        Format::Anthropic => {
            let is_assistant =
                tagged::given(message, "role").and_then(tagged::text).as_deref() == Some("assistant");
            is_assistant && blocks(message).is_some_and(|blocks| blocks.iter().any(has_content))
        }
        Format::OpenaiResponses => is_item(message) && tagged::given(message, "encrypted_content").is_some(),
        _ => false,
    }
}

/// True for a message with an item that was made on demand, not by a threshold.
pub fn is_signed(message: &Value<'_>) -> bool {
    let signed = |block: &Value<'_>| is_item(block) && tagged::given(block, "signature").is_some();
    blocks(message).is_some_and(|blocks| blocks.iter().any(signed))
}

/// The message without such items; nothing where no more is left of it.
pub fn without_compaction<'a>(mut message: Value<'a>) -> Option<Value<'a>> {
    if is_item(&message) {
        return None;
    }
    if let Some(Value::Array(blocks)) = edit::field_mut(&mut message, "content") {
        blocks.retain(|block| !is_item(block));
        if blocks.is_empty() {
            return None;
        }
    }
    Some(message)
}

fn blocks<'a>(message: &'a Value<'a>) -> Option<&'a Vec<Value<'a>>> {
    match tagged::given(message, "content") {
        Some(Value::Array(blocks)) => Some(blocks),
        _ => None,
    }
}

fn has_content(block: &Value<'_>) -> bool {
    is_item(block) && tagged::given(block, "content").is_some()
}

fn is_item(value: &Value<'_>) -> bool {
    let kind: Option<Cow<'_, str>> = tagged::given(value, "type").and_then(tagged::text);
    matches!(kind.as_deref(), Some("compaction" | "compaction_summary"))
}
