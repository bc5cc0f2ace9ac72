//! Another text in place of one that the user said, in any format.

use super::{Format, edit, json, tagged};
use crate::message::{Message, Part, Role};
use serde_json_borrow::Value;

/// `message` with another text in place of its `nth` ([`Message::texts`]); everything else is as it was. `None` when it is no
/// message of the user, or nothing that can be changed alone. JSON text.
pub fn with_text(format: Format, message: &Value<'_>, nth: usize, text: &str) -> Option<String> {
    let was = format.wire().read(0, message).ok()?;
    let expected = replaced(&was, nth, text)?;
    // Where the text stands: in the content itself, or in one of its blocks.
    let count = ["content", "parts"].iter().map(|key| places(message, key)).sum::<usize>();
    (0..count).find_map(|place| {
        let mut edited = edit::copy(message);
        put(&mut edited, place, text)?;
        let edited = json(&edited);
        let value = super::parse(0, &edited).ok()?;
        let is_so = format.wire().read(0, &value).is_ok_and(|is| is == expected);
        is_so.then_some(edited)
    })
}

/// What is to be read afterwards.
fn replaced<'m>(message: &Message<'m>, nth: usize, text: &str) -> Option<Message<'m>> {
    let mut expected = message.clone();
    let mut texts = expected.parts.iter_mut().filter_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    *texts.nth(nth).filter(|_| message.role == Role::User)? = text.to_owned().into();
    Some(expected)
}

/// How many places a field has for a text.
fn places(message: &Value<'_>, key: &str) -> usize {
    match tagged::given(message, key) {
        Some(Value::Array(blocks)) => blocks.len(),
        Some(Value::Str(_)) => 1,
        _ => 0,
    }
}

/// Puts a text in one of these places, where there is one now.
fn put(message: &mut Value<'_>, mut place: usize, text: &str) -> Option<()> {
    for key in ["content", "parts"] {
        let count = places(message, key);
        if place >= count {
            place -= count;
            continue;
        }
        let field = edit::field_mut(message, key)?;
        let at = match field {
            Value::Array(blocks) => edit::field_mut(blocks.get_mut(place)?, "text")?,
            field => field,
        };
        *at = match at {
            Value::Str(_) => edit::text(text),
            _ => return None,
        };
        return Some(());
    }
    None
}
