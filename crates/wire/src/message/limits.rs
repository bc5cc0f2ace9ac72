//! What one message may hold at most: far more than any provider takes, and so little that neither a
//! hostile tool result nor a bug of the app can make a session that cannot be opened again. What is above is refused with
//! [`Code::TooLarge`], the message's index and the field, before anything is written.

use super::Message;
use crate::error::{Code, Error, Result};
use serde_json_borrow::Value;

/// Bytes of a message as JSON text in UTF-8. A store may take less for one value: `caps.maxValueBytes`.
pub const MAX_BYTES: usize = 128 << 20;

/// Levels of objects and arrays in a message's JSON, itself included: those that its reader takes. What nests deeper is
/// [`Code::InvalidMessage`].
pub const MAX_DEPTH: usize = 127;

/// Parts of a message: its blocks, its calls and its results.
pub const MAX_PARTS: usize = 16_384;

/// Results of a message, each of which may become a reference.
pub const MAX_REFERENCES: usize = 4_096;

fn too_large(index: usize, field: String, what: String) -> Error {
    Error::new(Code::TooLarge, what).at(index).of_field(Some(field))
}

/// Refuses a message of more than [`MAX_BYTES`].
pub fn check_bytes(index: usize, bytes: usize) -> Result<()> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let what =
        format!("a message of {bytes} bytes is over the limit of {MAX_BYTES}: keep what is large elsewhere");
    Err(too_large(index, String::new(), what))
}

/// Refuses a message of more than [`MAX_PARTS`] parts or [`MAX_REFERENCES`] results.
pub fn check(index: usize, value: &Value<'_>, message: &Message<'_>) -> Result<()> {
    let (parts, results) = (message.parts.len(), message.results().count());
    let what = if parts > MAX_PARTS {
        format!("a message of {parts} parts is over the limit of {MAX_PARTS}: make it several")
    } else if results > MAX_REFERENCES {
        format!("a message of {results} results is over the limit of {MAX_REFERENCES}: make it several")
    } else {
        return Ok(());
    };
    // In every format they are the items of a list.
    let lists = value.as_object().into_iter().flat_map(|fields| fields.iter());
    let longest = lists.max_by_key(|(_, field)| field.as_array().map_or(0, <[Value<'_>]>::len));
    Err(too_large(index, longest.map(|(name, _)| name.to_string()).unwrap_or_default(), what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_s8_a_message_of_the_limit_is_taken_and_one_byte_more_is_not() {
        assert!(check_bytes(7, MAX_BYTES).is_ok());
        let error = check_bytes(7, MAX_BYTES + 1).unwrap_err();
        assert_eq!((error.code, error.index, error.field.as_deref()), (Code::TooLarge, Some(7), Some("")));
    }
}
