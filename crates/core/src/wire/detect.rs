//! Telling a format from the messages themselves.

use super::{Evidence, Format};
use crate::error::{Code, Error, Result};
use serde_json_borrow::Value;

/// The format of a history. A history that more than one format could have written as it stands (plain roles and
/// string contents) is read as OpenAI chat, which is the same to the letter there; an empty one is an error, and
/// so is one that no format admits or that carries fields of two.
pub fn detect(messages: &[Value<'_>]) -> Result<Format> {
    let unknown = |what: &str| Err(Error::new(Code::UnknownFormat, format!("{what}; pass `format`")));
    if messages.is_empty() {
        return unknown("an empty history has no format");
    }
    let rated: Vec<(Format, Evidence)> =
        Format::ALL.into_iter().map(|format| (format, format.wire().evidence(messages))).collect();
    let with = |evidence: Evidence| -> Vec<Format> {
        rated.iter().filter(|(_, e)| *e == evidence).map(|(format, _)| *format).collect()
    };
    match (with(Evidence::Certain).as_slice(), with(Evidence::Possible).as_slice()) {
        ([format], _) => Ok(*format),
        ([], [format, ..]) => Ok(*format),
        ([], []) => Err(stray(messages)),
        (several, _) => {
            let names: Vec<&str> = several.iter().map(|format| format.as_str()).collect();
            unknown(&format!("the messages carry fields of {}", names.join(" and ")))
        }
    }
}

/// Names the first message that fits no format which those before it fit.
fn stray(messages: &[Value<'_>]) -> Error {
    let mut formats = Format::ALL.to_vec();
    let index = messages.iter().position(|message| {
        formats.retain(|format| format.wire().evidence(std::slice::from_ref(message)) != Evidence::Against);
        formats.is_empty()
    });
    let what = "no known format has a message of this shape, or not together with those before it";
    Error {
        index,
        ..Error::new(
            Code::UnknownFormat,
            format!("{what}; correct it, or pass `format` to see which field is wrong"),
        )
    }
}
