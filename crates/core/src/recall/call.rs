//! A model's call of a recall tool and its answer. The answer says what the model got wrong, so that it can go on; an error
//! is only what the app or its store got wrong.

use super::archive::{Archive, LogIndex};
use super::search::{Hit, Query, search};
use super::{READ, SEARCH};
use crate::error::{Code, Error, Result};
use crate::step::{Io, LogLevel};
use crate::text;
use crate::wire::Format;
use serde_json_borrow::Value;

/// Characters that one answer reads when the model does not say, and at most; never more than a quarter of the window's
/// tokens, since hardly any text takes more than a token for a character.
const USUAL: usize = 8_000;
const MOST: usize = 32_000;
/// Passages that a search shows when the model does not say, and at most.
const PASSAGES: (usize, usize) = (10, 20);

/// What is said to the model, and whether it is a failure.
type ToolReply = Result<String, String>;

/// The message that answers `call`, in `format`: JSON text.
///
/// Errors: [`Code::InvalidMessage`] when it is no call of that format; those of the store.
pub(crate) async fn answer(
    io: &Io,
    archive: &Archive,
    log_index: &LogIndex,
    format: Format,
    call: &str,
) -> Result<String> {
    let given: Value<'_> = serde_json::from_str(call).unwrap_or(Value::Null);
    if !given.is_object() {
        return Err(misplaced(Error::message(
            0,
            "",
            "must be an object: a tool call as the model returned it",
        )));
    }
    let wire = format.wire();
    let read = wire.read_call(&given).map_err(misplaced)?;
    let arguments: Option<Value<'_>> = serde_json::from_str(&read.arguments).ok();
    let answer = match arguments.filter(Value::is_object) {
        None => Err("The arguments must be a JSON object.".to_owned()),
        Some(arguments) if read.name == READ.name => read_text(io, archive, &arguments).await?,
        Some(arguments) if read.name == SEARCH.name => {
            search_text(io, archive, log_index, &arguments).await?
        }
        Some(_) => Err(format!("There is no such tool here, but {} and {}.", READ.name, SEARCH.name)),
    };
    let (text, is_error) = match &answer {
        Ok(text) => (text, false),
        Err(text) => (text, true),
    };
    Ok(wire.answer_call(&given, &read, text, is_error))
}

/// An error of a call: it is no message of a history, and has no index there.
fn misplaced(error: Error) -> Error {
    let field = match error.field.as_deref() {
        None | Some("") => "call".to_owned(),
        Some(path) => format!("call.{path}"),
    };
    Error { index: None, field: Some(field), ..error }
}

async fn read_text(io: &Io, archive: &Archive, arguments: &Value<'_>) -> Result<ToolReply> {
    let Some(reference) = text(arguments, "ref") else {
        return Ok(Err("ref must be a text: the reference (off_… or msg_…) of what to read.".to_owned()));
    };
    // Models copy a reference with the marks around it. It is looked up exactly all the same.
    let reference = reference.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let most = most(archive);
    let (offset, limit) = match (whole(arguments, "offset", 0), whole(arguments, "limit", 1)) {
        (Ok(offset), Ok(limit)) => (offset.unwrap_or(0), limit.unwrap_or(USUAL).min(most)),
        (Err(error), _) | (_, Err(error)) => return Ok(Err(error)),
    };
    let text = match archive.text(io, reference).await {
        Ok(text) => text,
        Err(error) if error.code == Code::NotFound => {
            return Ok(Err(format!(
                "Nothing in this conversation has this reference. Copy it exactly, or find it with {}.",
                SEARCH.name
            )));
        }
        Err(error) if error.code == Code::StoreCorrupt => {
            io.log(LogLevel::Warn, format!("{reference} could not be read back: {error}"));
            return Ok(Err(format!("[Content unavailable: {reference}]")));
        }
        Err(error) => return Err(error),
    };
    let total = text.chars().count();
    if offset >= total && offset > 0 {
        return Ok(Err(format!("There are {total} characters; offset must be less.")));
    }
    // A cluster of marks without end is cut all the same: it must not fill the window.
    let piece: String = text::range(&text, offset, Some(limit)).chars().take(most).collect();
    let end = offset + piece.chars().count();
    let next = if end < total { format!("; read on at offset {end}") } else { String::new() };
    Ok(Ok(format!("[{reference}: characters {offset} to {end} of {total}{next}]\n{piece}")))
}

async fn search_text(
    io: &Io,
    archive: &Archive,
    log_index: &LogIndex,
    arguments: &Value<'_>,
) -> Result<ToolReply> {
    let query = text(arguments, "query").unwrap_or_default();
    let Ok(query) = Query::new(query) else {
        return Ok(Err("query must be a text with a word, a name or a number to look for.".to_owned()));
    };
    let limit = match whole(arguments, "limit", 1) {
        Ok(limit) => limit.unwrap_or(PASSAGES.0).min(PASSAGES.1),
        Err(error) => return Ok(Err(error)),
    };
    let hits = search(io, archive, log_index, &query, limit, true).await?;
    if hits.is_empty() {
        return Ok(Ok(
            "Nothing was found outside of your context. Try other words, as they would stand in the text."
                .to_owned(),
        ));
    }
    let (mut shown, mut chars, mut passages) = (0, 0, String::new());
    for Hit { reference, snippet, .. } in &hits {
        // A snippet is one line, so that none can pass for the next reference.
        let passage = format!("\n\n{reference}\n> {snippet}");
        chars += passage.chars().count();
        if shown > 0 && chars > most(archive) {
            break;
        }
        shown += 1;
        passages.push_str(&passage);
    }
    Ok(Ok(format!("{shown} found, best first. {} gives the whole text.{passages}", READ.name)))
}

/// The most characters of one answer.
fn most(archive: &Archive) -> usize {
    MOST.min(archive.window / 4).max(1)
}

fn text<'a>(arguments: &'a Value<'a>, name: &str) -> Option<&'a str> {
    arguments.as_object()?.get(name)?.as_str()
}

/// A whole number that may be left out. Some models write numbers as texts.
fn whole(arguments: &Value<'_>, name: &str, least: u64) -> Result<Option<usize>, String> {
    let given = arguments.as_object().and_then(|fields| fields.get(name)).filter(|given| !given.is_null());
    let Some(given) = given else { return Ok(None) };
    let number = match given {
        Value::Str(text) => text.trim().parse().ok(),
        Value::Number(number) => {
            let float =
                number.as_f64().filter(|float| *float >= 0.0 && float.fract() == 0.0 && *float < 1e15);
            number.as_u64().or(float.map(|float| float as u64))
        }
        _ => None,
    };
    match number.filter(|number| *number >= least).map(usize::try_from) {
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(_)) => Ok(Some(usize::MAX)),
        None => Err(format!("{name} must be a whole number from {least}.")),
    }
}
