//! OpenAI Chat Completions, and the dialects of the servers that speak it.

mod read;
mod reasoning;
mod rules;
mod tools;

use super::rules::Repair;
use super::{
    Author, Change, Evidence, Format, Hints, Past, Problem, Repaired, Rules, Unbound, Wire, blocks, edit,
    tagged,
};
use crate::error::Result;
use crate::message::{Media, Message};
use serde_json_borrow::Value;
use std::borrow::Cow;

pub(super) struct OpenaiChat;

impl Wire for OpenaiChat {
    fn evidence_of(&self, message: &Value<'_>) -> Evidence {
        let foreign = ["parts", "providerOptions"];
        if read::message(0, message).is_err()
            || foreign.into_iter().any(|key| tagged::given(message, key).is_some())
        {
            return Evidence::Against;
        }
        // `developer` is a role of the Responses API too.
        let own_role = matches!(role(message).as_deref(), Some("tool" | "function"));
        let own_field = ["tool_calls", "function_call", "refusal"]
            .into_iter()
            .any(|key| tagged::given(message, key).is_some());
        let mut found = if own_role || own_field { Evidence::Certain } else { Evidence::Possible };
        for block in super::content_blocks(message) {
            let kind = tagged::field(block, "type").and_then(tagged::text);
            let kind = kind.as_deref().unwrap_or_default();
            let own = kind == "file" && tagged::given(block, "file").is_some();
            let own = if own { Evidence::Certain } else { Evidence::Possible };
            found = found.and(own).and(blocks::evidence(kind, Format::OpenaiChat));
        }
        found
    }

    fn hints(&self) -> &'static Hints {
        &read::HINTS
    }

    fn read<'a>(&self, index: usize, message: &'a Value<'a>) -> Result<Message<'a>> {
        read::message(index, message)
    }

    fn assistant_may_begin(&self) -> bool {
        true
    }

    fn text_message(&self, author: Author, text: &str, _id: &str, _like: Option<&Value<'_>>) -> String {
        super::plain_message(author, text)
    }

    fn grows(&self, past: &mut Past, window: &[Value<'_>]) -> bool {
        rules::grows(past, &window.iter().collect::<Vec<_>>())
    }
}

impl Rules for OpenaiChat {
    fn with_result_text(&self, message: &Value<'_>, nth: usize, text: &str) -> Option<String> {
        let is_result = matches!(role(message).as_deref(), Some("tool" | "function"));
        if nth > 0 || !is_result {
            return None;
        }
        let mut edited = edit::copy(message);
        edit::replace_text(&mut edited, text);
        Some(super::json(&edited))
    }

    fn with_call_arguments(&self, message: &Value<'_>, nth: usize, arguments: &str) -> Option<String> {
        let mut edited = edit::copy(message);
        let Some(Value::Array(calls)) = edit::field_mut(&mut edited, "tool_calls") else { return None };
        // Some servers' signatures stand there.
        let call = calls.get_mut(nth).filter(|call| tagged::given(call, "extra_content").is_none())?;
        edit::replace_arguments(edit::field_mut(call, "function")?, "arguments", arguments)?;
        Some(super::json(&edited))
    }

    fn media_path(&self, value: &Value<'_>) -> &'static [&'static str] {
        if role(value).is_some() { &["content"] } else { &[] }
    }

    fn shown(&self, block: &Value<'_>) -> Option<Media> {
        let kind = tagged::field(block, "type").and_then(tagged::text)?;
        read::media(&kind, block)
    }

    fn validate(&self, messages: &[Value<'_>], strict: bool) -> Vec<Problem> {
        super::rules::validate(messages, strict, rules::find, rules::strict)
    }

    fn repair(&self, messages: &[Value<'_>]) -> (Vec<Repaired>, Vec<Change>) {
        let mut repair = Repair::of(messages);
        repair.until_clean(rules::find, rules::apply);
        rules::unbind(&mut repair);
        repair.finish()
    }

    fn without_bound_reasoning(&self, message: &Value<'_>) -> Unbound {
        if !reasoning::has_bound(message) {
            return Unbound::Same;
        }
        let mut edited = edit::copy(message);
        let empty = reasoning::unbind(&mut edited);
        let left = edit::without(&edited, &empty);
        let says_nothing = tagged::given(&left, "content").is_none()
            && read::message(0, &left).is_ok_and(|message| message.parts.is_empty());
        if says_nothing { Unbound::Nothing } else { Unbound::Changed(super::json(&left)) }
    }
}

fn role<'a>(message: &'a Value<'a>) -> Option<Cow<'a, str>> {
    tagged::field(message, "role").and_then(tagged::text)
}
