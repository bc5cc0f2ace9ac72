//! Anthropic Messages.

mod instructions;
mod read;
mod repair;
mod rules;
mod tools;
mod turns;

use super::{
    Author, Change, Evidence, Format, Hints, Past, Problem, Repaired, Rules, Unbound, Wire, blocks, edit,
    tagged,
};
use crate::error::Result;
use crate::message::{Media, Message};
use serde_json_borrow::Value;
use std::borrow::Cow;

pub(super) struct Anthropic;

impl Wire for Anthropic {
    fn evidence_of(&self, message: &Value<'_>) -> Evidence {
        let foreign = ["tool_calls", "function_call", "parts", "providerOptions"];
        if read::message(0, message).is_err()
            || foreign.into_iter().any(|key| tagged::given(message, key).is_some())
        {
            return Evidence::Against;
        }
        let mut found = Evidence::Possible;
        for block in super::content_blocks(message) {
            let kind = kind(block);
            let kind = kind.as_deref().unwrap_or_default();
            let with = |(name, field): &(&str, &str)| *name == kind && tagged::given(block, field).is_some();
            let is_own =
                OWN_WITH.iter().any(with) || turns::is_foreign_call(kind) || turns::is_foreign_result(kind);
            let own = if is_own { Evidence::Certain } else { Evidence::Possible };
            found = found.and(own).and(blocks::evidence(kind, Format::Anthropic));
        }
        found
    }

    fn hints(&self) -> &'static Hints {
        &read::HINTS
    }

    fn read<'a>(&self, index: usize, message: &'a Value<'a>) -> Result<Message<'a>> {
        read::message(index, message)
    }

    fn text_message(&self, author: Author, text: &str, _id: &str, _like: Option<&Value<'_>>) -> String {
        super::plain_message(author, text)
    }

    fn grows(&self, past: &mut Past, window: &[Value<'_>]) -> bool {
        rules::grows(past, &window.iter().collect::<Vec<_>>())
    }
}

impl Rules for Anthropic {
    fn with_result_text(&self, message: &Value<'_>, nth: usize, text: &str) -> Option<String> {
        let mut edited = edit::copy(message);
        let Some(Value::Array(blocks)) = edit::field_mut(&mut edited, "content") else { return None };
        let result =
            blocks.iter_mut().filter(|block| kind(block).as_deref() == Some("tool_result")).nth(nth)?;
        edit::replace_text(result, text);
        Some(super::json(&edited))
    }

    fn with_call_arguments(&self, message: &Value<'_>, nth: usize, arguments: &str) -> Option<String> {
        let mut edited = edit::copy(message);
        let Some(Value::Array(blocks)) = edit::field_mut(&mut edited, "content") else { return None };
        let is_call = |block: &Value<'_>| kind(block).as_deref() == Some("tool_use");
        let (at, _) = blocks.iter().enumerate().filter(|(_, block)| is_call(block)).nth(nth)?;
        let is_bound = |block: &Value<'_>| kind(block).is_some_and(|kind| kind.ends_with("thinking"));
        let (call, behind) = blocks.get_mut(at..)?.split_first_mut()?;
        if turns::caller(call).is_some() || behind.iter().any(is_bound) {
            return None;
        }
        edit::replace_arguments(call, "input", arguments)?;
        Some(super::json(&edited))
    }

    fn media_path(&self, value: &Value<'_>) -> &'static [&'static str] {
        match kind(value).as_deref() {
            None | Some("tool_result") => &["content"],
            Some(_) => &[],
        }
    }

    fn shown(&self, block: &Value<'_>) -> Option<Media> {
        // What is quoted from such a document refers to it, and either all documents have citations or none.
        let cites =
            tagged::given(block, "citations").and_then(|citations| tagged::given(citations, "enabled"));
        let is_cited = matches!(cites, Some(Value::Bool(true)));
        kind(block).filter(|_| !is_cited).and_then(|kind| read::media(&kind, block))
    }

    fn validate(&self, messages: &[Value<'_>], strict: bool) -> Vec<Problem> {
        super::rules::validate(messages, strict, rules::find, rules::strict)
    }

    fn repair(&self, messages: &[Value<'_>]) -> (Vec<Repaired>, Vec<Change>) {
        repair::repair(messages)
    }

    fn without_bound_reasoning(&self, message: &Value<'_>) -> Unbound {
        repair::without_reasoning(message)
    }
}

fn kind<'a>(block: &'a Value<'a>) -> Option<Cow<'a, str>> {
    tagged::field(block, "type").and_then(tagged::text)
}

/// The types of a message's blocks.
fn content_kinds<'a>(message: &'a Value<'a>) -> impl Iterator<Item = Cow<'a, str>> {
    super::content_blocks(message).iter().map(|block| kind(block).unwrap_or_default())
}

/// Content blocks that are its own when they have this field.
const OWN_WITH: [(&str, &str); 6] = [
    ("thinking", "signature"),
    ("image", "source"),
    ("document", "source"),
    ("compaction", "content"),
    ("container_upload", "file_id"),
    ("search_result", "source"),
];
