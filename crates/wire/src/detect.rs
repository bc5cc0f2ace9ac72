//! Telling a format from the messages themselves.

use super::{Evidence, Format, foreign};
use crate::error::{Code, Error, Result};
use serde_json_borrow::Value;

/// What a message must have, in whatever format.
const NEEDS: &str = "a message needs a role (`user`, `assistant`, `system` or `tool`) and its content, as in \
                     { role: \"user\", content: \"…\" }";

/// What is wrong with the first message that no format can read. Where others can be read it is the message's fault,
/// told in the format of those before it; else the format's.
fn malformed(messages: &[Value<'_>]) -> Option<Error> {
    let readable =
        |message: &Value<'_>| Format::ALL.iter().any(|format| format.wire().read(0, message).is_ok());
    let index = messages.iter().position(|message| !readable(message))?;
    let format = detect(messages.get(..index)?).unwrap_or(Format::OpenaiChat);
    let message = messages.get(index)?;
    let mut error = super::read(format, index, message).err()?;
    if messages.iter().any(readable) {
        return Some(error);
    }
    let told = match foreign::advice(message) {
        Some(advice) => format!("no known format has such messages; {advice}"),
        None if error.field.as_deref() == Some("role") => {
            format!("no known format has such messages (role: {}); {NEEDS}", error.message)
        }
        None => format!("no known format has such messages ({}); pass `format`", error.message),
    };
    (error.code, error.message) = (Code::UnknownFormat, told);
    Some(error)
}

/// The format of a history. A history that more than one format could have written as it stands (plain roles and
/// string contents) is read as OpenAI chat, which is the same to the letter there; an empty one is an error, and
/// so is one that no format admits or that carries fields of two.
pub fn detect(messages: &[Value<'_>]) -> Result<Format> {
    let unknown = |what: &str| Err(Error::new(Code::UnknownFormat, format!("{what}; pass `format`")));
    if messages.is_empty() {
        return unknown("an empty history has no format");
    }
    let rated = rate(messages, &Format::ALL)?;
    if let Some((format, _)) = rated.format() {
        return Ok(format);
    }
    if rated.certain.is_empty() {
        return match malformed(messages) {
            Some(error) => Err(error),
            None => match messages.iter().find_map(foreign::advice) {
                Some(advice) => Err(Error::new(Code::UnknownFormat, advice)),
                None => {
                    unknown("no known format has messages of this shape, or they mix the fields of several")
                }
            },
        };
    }
    let names: Vec<&str> = rated.certain.iter().map(|format| format.as_str()).collect();
    unknown(&format!("the messages carry fields of {}", names.join(" and ")))
}

/// What messages say about the formats that they may be in.
pub struct Rated {
    /// Those that they have a field of their own of.
    certain: Vec<Format>,
    /// Those that nothing speaks against.
    pub plausible: Vec<Format>,
}

impl Rated {
    /// The format to read them in, and whether it is sure.
    pub fn format(&self) -> Option<(Format, bool)> {
        match (self.certain.as_slice(), self.plausible.first()) {
            ([format], _) => Some((*format, true)),
            ([], Some(format)) => Some((*format, false)),
            _ => None,
        }
    }
}

/// Rates messages by the formats that they may be in.
///
/// Errors: [`Code::UnknownFormat`] when they are in a shape that reads as another one, without its calls.
pub fn rate(messages: &[Value<'_>], formats: &[Format]) -> Result<Rated> {
    foreign::refuse(messages)?;
    let rated: Vec<(Format, Evidence)> =
        formats.iter().map(|format| (*format, format.wire().evidence(messages))).collect();
    let with = |is: fn(Evidence) -> bool| {
        rated.iter().filter(|(_, evidence)| is(*evidence)).map(|(format, _)| *format).collect()
    };
    Ok(Rated {
        certain: with(|evidence| evidence == Evidence::Certain),
        plausible: with(|evidence| evidence != Evidence::Against),
    })
}
