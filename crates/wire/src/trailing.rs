//! A text at the end of what a message of the user says, added and taken away again: nothing else of it changes.

use super::{Format, edit, json, tagged};
use serde_json_borrow::{ObjectAsVec, Value};
use std::borrow::Cow;

/// What is between a text and one that was added to it.
const GAP: &str = "\n\n";

/// What is left of a message without the text at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rest {
    /// Nothing: the text was all of it.
    Nothing,
    /// The message as it was: JSON text.
    Message(String),
}

/// Where a message has what it says.
fn said<'e, 'v>(message: &'e mut Value<'v>) -> Option<&'e mut Value<'v>> {
    let key = ["content", "parts"].into_iter().find(|key| tagged::given(message, key).is_some())?;
    edit::field_mut(message, key)
}

/// `message` with `text` at its end, or `None` when it is no message of the user that ends in what the user says, such as one
/// in another role. JSON text.
pub fn with_end(format: Format, message: &Value<'_>, text: &str) -> Option<String> {
    let role = tagged::given(message, "role").and_then(tagged::text);
    if role.as_deref() != Some("user") {
        return None;
    }
    let mut edited = edit::copy(message);
    match said(&mut edited)? {
        Value::Str(said) => *said = Cow::Owned(format!("{said}{GAP}{text}")),
        Value::Array(blocks) if format == Format::Gemini => {
            blocks.push(Value::Object(ObjectAsVec::from_iter([("text", edit::text(text))])));
        }
        Value::Array(blocks) => blocks.push(edit::text_block(text)),
        _ => return None,
    }
    Some(json(&edited))
}

/// The text that a message ends with.
pub fn end<'a>(message: &'a Value<'a>) -> Option<Cow<'a, str>> {
    match tagged::given(message, "content").or_else(|| tagged::given(message, "parts"))? {
        Value::Array(blocks) => tagged::given(blocks.last()?, "text").and_then(tagged::text),
        said => tagged::text(said),
    }
}

/// `message` without `text`, which it ends with ([`end`]); libraries make blocks of texts, and texts of blocks.
pub fn without_end(message: &Value<'_>, text: &str) -> Option<Rest> {
    let mut edited = edit::copy(message);
    let said = said(&mut edited)?;
    let others = if let Value::Array(blocks) = said { blocks.len().saturating_sub(1) } else { 0 };
    let last = match said {
        Value::Array(blocks) => edit::field_mut(blocks.last_mut()?, "text")?,
        _ => &mut *said,
    };
    let Value::Str(was) = last else { return None };
    let before = was.strip_suffix(text)?;
    let before = before.strip_suffix(GAP).unwrap_or(before).to_owned();
    if !before.is_empty() {
        *last = edit::text(&before);
    } else if others == 0 {
        return Some(Rest::Nothing);
    } else if let Value::Array(blocks) = said {
        blocks.pop();
    }
    Some(Rest::Message(json(&edited)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x12_a_text_is_added_to_what_the_user_says_and_taken_away_again() {
        let messages = [
            (Format::OpenaiChat, r#"{"role":"user","content":"Hi","name":"a"}"#),
            (Format::Anthropic, r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}"#),
            (Format::Gemini, r#"{"role":"user","parts":[{"functionResponse":{"name":"f"}}],"x":1}"#),
            (Format::AiSdk, r#"{"id":"1","role":"user","parts":[{"type":"text","text":"Hi"}]}"#),
            (Format::AiSdk, r#"{"role":"user","content":[{"type":"text","text":"Hi"}]}"#),
        ];
        for (format, before) in messages {
            let with = with_end(format, &crate::parse(0, before).unwrap(), "now").unwrap();
            assert_ne!(with, before);
            let with = crate::parse(0, &with).unwrap();
            assert!(end(&with).unwrap().ends_with("now"), "{before}");
            assert_eq!(without_end(&with, "now"), Some(Rest::Message(before.to_owned())));
            assert_eq!(without_end(&with, "then"), None);
        }
        for other in [r#"{"role":"tool","content":"a"}"#, r#"{"role":"user","content":null}"#, "{}"] {
            assert_eq!(
                with_end(Format::OpenaiChat, &crate::parse(0, other).unwrap(), "now"),
                None,
                "{other}"
            );
        }
        let alone = crate::parse(0, r#"{"role":"user","content":[{"type":"text","text":"now"}]}"#).unwrap();
        assert_eq!(without_end(&alone, "now"), Some(Rest::Nothing));
        let made =
            crate::parse(0, r#"{"role":"user","content":[{"type":"text","text":"Hi\n\nnow"}]}"#).unwrap();
        let rest = r#"{"role":"user","content":[{"type":"text","text":"Hi"}]}"#;
        assert_eq!(without_end(&made, "now"), Some(Rest::Message(rest.to_owned())));
    }
}
