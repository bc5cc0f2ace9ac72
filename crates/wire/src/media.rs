//! Pictures, files and the like in the messages of every format, and texts in their place (`X5`).

use super::{Format, Rules, edit, tagged};
use crate::message::Media;
use serde_json_borrow::Value;

/// Fields that hold content blocks: of messages, of results in them, and of their outputs.
const HOLDERS: [&str; 4] = ["content", "parts", "output", "value"];

/// What of a message is a picture, a file or the like that a text can stand for, in the order in which it stands there.
pub fn media_of(format: Format, message: &Value<'_>) -> Vec<Media> {
    let mut found = Vec::new();
    look(format.rules(), message, &mut found);
    found
}

fn look(rules: &dyn Rules, value: &Value<'_>, found: &mut Vec<Media>) {
    for key in holders(value) {
        match tagged::field(value, key) {
            Some(Value::Array(blocks)) => blocks.iter().for_each(|block| match rules.shown(block) {
                Some(media) => found.push(media),
                None => look(rules, block, found),
            }),
            Some(inner @ Value::Object(_)) => look(rules, inner, found),
            _ => {}
        }
    }
}

/// `message` with a text in place of what [`media_of`] names as its `nth`: JSON text, or `None` where it has no such.
pub fn with_media_text(format: Format, message: &Value<'_>, nth: usize, text: &str) -> Option<String> {
    let (mut edited, mut left) = (message.clone(), nth);
    put(format.rules(), &mut edited, &mut left, text).then(|| super::json(&edited))
}

fn put(rules: &dyn Rules, value: &mut Value<'_>, left: &mut usize, text: &str) -> bool {
    for key in holders(value) {
        let is_done = match edit::field_mut(value, key) {
            Some(Value::Array(blocks)) => blocks.iter_mut().any(|block| {
                if rules.shown(block).is_none() {
                    return put(rules, block, left, text);
                }
                let is_it = *left == 0;
                if is_it {
                    *block = rules.telling(text);
                }
                *left = left.saturating_sub(1);
                is_it
            }),
            Some(inner @ Value::Object(_)) => put(rules, inner, left, text),
            _ => false,
        };
        if is_done {
            return true;
        }
    }
    false
}

/// The fields of a value that may hold blocks. What a tool returned as data is none, whatever its fields are called.
fn holders(value: &Value<'_>) -> impl Iterator<Item = &'static str> + use<> {
    let kind = tagged::field(value, "type").and_then(tagged::text);
    let is_content = kind.is_none_or(|kind| kind == "content");
    HOLDERS.into_iter().filter(move |key| *key != "value" || is_content)
}
