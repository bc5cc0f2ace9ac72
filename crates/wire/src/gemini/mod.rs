//! Gemini: the `contents` of a request.
//!
//! A signature is bound to the part that it stands on, not to what stood before it: the API takes it after an edit of
//! earlier messages, so [`Rules::without_bound_reasoning`] has nothing to take out.

mod names;
mod read;
mod repair;
mod response;
mod rules;
mod tools;
mod turns;

use super::{Author, Change, Evidence, Hints, Past, Problem, Repaired, Rules, Wire, edit, tagged};
use crate::error::Result;
use crate::message::{Media, Message};
use serde::Serialize;
use serde_json_borrow::Value;

pub(super) struct Gemini;

impl Wire for Gemini {
    fn evidence_of(&self, message: &Value<'_>) -> Evidence {
        if read::message(0, message).is_err()
            || FOREIGN.into_iter().any(|key| tagged::given(message, key).is_some())
        {
            return Evidence::Against;
        }
        let mut found = if turns::is_from_model(message) { Evidence::Certain } else { Evidence::Possible };
        for part in names::parts(message) {
            // The parts of others say what they are in a `type`; these in the field that they have.
            let of_part = if names::text(part, "type").is_some() {
                Evidence::Against
            } else if names::data(part).any(names::is_known) {
                Evidence::Certain
            } else {
                Evidence::Possible
            };
            found = found.and(of_part);
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
        #[derive(Serialize)]
        struct Content<'a> {
            role: &'a str,
            parts: [Text<'a>; 1],
        }
        #[derive(Serialize)]
        struct Text<'a> {
            text: &'a str,
        }
        let role = match author {
            Author::User => "user",
            Author::Assistant => "model",
        };
        serde_json::to_string(&Content { role, parts: [Text { text }] }).unwrap_or_default()
    }

    fn grows(&self, past: &mut Past, window: &[Value<'_>]) -> bool {
        rules::grows(past, &window.iter().collect::<Vec<_>>())
    }
}

impl Rules for Gemini {
    fn with_result_text(&self, message: &Value<'_>, nth: usize, text: &str) -> Option<String> {
        let parts = names::parts(message).iter().enumerate();
        let (at, _) = parts.filter(|(_, part)| names::FUNCTION_RESPONSE.of(part).is_some()).nth(nth)?;
        let mut edited = edit::copy(message);
        response::write(repair::function_mut(&mut edited, at, names::FUNCTION_RESPONSE)?, text);
        Some(super::json(&edited))
    }

    fn with_call_arguments(&self, message: &Value<'_>, nth: usize, arguments: &str) -> Option<String> {
        let parts = names::parts(message).iter().enumerate();
        let (at, part) = parts.filter(|(_, part)| names::FUNCTION_CALL.of(part).is_some()).nth(nth)?;
        if names::is_signed(part) {
            return None;
        }
        let mut edited = edit::copy(message);
        edit::replace_arguments(
            repair::function_mut(&mut edited, at, names::FUNCTION_CALL)?,
            "args",
            arguments,
        )?;
        Some(super::json(&edited))
    }

    fn media_path(&self, value: &Value<'_>) -> &'static [&'static str] {
        match names::FUNCTION_RESPONSE.of(value) {
            None => &["parts"],
            Some(_) if tagged::given(value, "functionResponse").is_some() => &["functionResponse", "parts"],
            Some(_) => &["function_response", "parts"],
        }
    }

    fn shown(&self, block: &Value<'_>) -> Option<Media> {
        if names::is_signed(block) {
            return None;
        }
        let data = |key| tagged::given(block, key);
        // A response may refer to what has a name.
        let is_named = |data: &Value<'_>| {
            ["displayName", "display_name"].iter().any(|key| tagged::given(data, key).is_some())
        };
        names::data(block).find_map(|key| read::media(key, data(key).filter(|data| !is_named(data))?))
    }

    /// What a function returned beside its response are media alone.
    fn tell_beside(&self, holder: &mut Value<'_>, text: &str) -> bool {
        let key = names::FUNCTION_RESPONSE.spelling(holder);
        let Some(function) = edit::field_mut(holder, key) else { return false };
        response::note(function, text);
        true
    }

    fn telling<'v>(&self, text: &str) -> Value<'v> {
        Value::Object([("text", edit::text(text))].into_iter().collect())
    }

    fn validate(&self, messages: &[Value<'_>], strict: bool) -> Vec<Problem> {
        super::rules::validate(messages, strict, rules::find, rules::strict)
    }

    fn repair(&self, messages: &[Value<'_>]) -> (Vec<Repaired>, Vec<Change>) {
        repair::repair(messages)
    }
}

/// Fields of messages of other formats.
const FOREIGN: [&str; 4] = ["content", "tool_calls", "providerOptions", "type"];
