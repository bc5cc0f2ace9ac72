//! A model's call of a recall tool and its answer. The answer says what the model got wrong, so that it can go on; an error
//! is only what the app or its store got wrong.

use super::archive::{Archive, HitPlace, LogIndex};
use super::label::in_one_line;
use super::others;
use super::search::{HitOrder, Query, SearchHits, search};
use super::shown::Hit;
use super::{ANEW, READ, SEARCH};
use crate::error::{Code, Error, Result};
use crate::step::{Io, LogLevel};
use crate::text::{self, grouped};
use crate::wire::Format;
use serde_json_borrow::Value;

/// Characters that one answer reads when the model does not say, and at most; never more than a quarter of the window's
/// tokens, since hardly any text takes more than a token for a character.
const USUAL: usize = 8_000;
const MOST: usize = 32_000;
/// Passages that a search shows when the model does not say, and at most.
const PASSAGES: (usize, usize) = (10, 20);
/// Shorter notes are none, in characters.
const LEAST_NOTES: usize = 20;
/// Characters that a part is shortened by so that it does not end inside a word.
const LONGEST_WORD: usize = 100;

/// What is said to the model, and whether it is a failure.
type ToolReply = Result<String, String>;

/// The message that answers `call`, in `format`: JSON text. The session `hands_off`: it has the tool that begins anew, too.
///
/// Errors: [`Code::InvalidMessage`] when it is no call of that format; those of the store.
pub(crate) async fn answer(
    io: &Io,
    archive: &Archive,
    log_index: &LogIndex,
    (format, hands_off): (Format, bool),
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
    let rules = format.rules();
    let read = rules.read_call(&given).map_err(misplaced)?;
    let arguments: Option<Value<'_>> = serde_json::from_str(&read.arguments).ok();
    let answer = match arguments.filter(Value::is_object) {
        None => Err("The arguments must be a JSON object.".to_owned()),
        Some(arguments) if read.name == READ.name => read_text(io, archive, log_index, &arguments).await?,
        Some(arguments) if read.name == SEARCH.name => {
            search_text(io, archive, log_index, &arguments).await?
        }
        Some(arguments) if read.name == ANEW.name && hands_off => anew(&arguments),
        Some(_) => Err(format!("There is no such tool here, but {} and {}.", READ.name, SEARCH.name)),
    };
    let (text, is_error) = match &answer {
        Ok(text) => (text, false),
        Err(text) => (text, true),
    };
    Ok(rules.answer_call(&given, &read, text, is_error))
}

/// What is said to a model that begins anew: the next prompt does it.
fn anew(arguments: &Value<'_>) -> ToolReply {
    let notes = text(arguments, "notes").unwrap_or_default();
    if notes.trim().chars().count() < LEAST_NOTES {
        return Err(
            "Nothing was changed: notes must be a text of some sentences, with what you need to go on."
                .to_owned(),
        );
    }
    Ok("The older messages leave your context, and your notes stand in their place.".to_owned())
}

/// An error of a call: it is no message of a history, and has no index there.
fn misplaced(mut error: Error) -> Error {
    let field = match error.field.as_deref() {
        None | Some("") => "call".to_owned(),
        Some(path) => format!("call.{path}"),
    };
    error.index = None;
    error.of_field(Some(field))
}

async fn read_text(
    io: &Io,
    archive: &Archive,
    log_index: &LogIndex,
    arguments: &Value<'_>,
) -> Result<ToolReply> {
    let Some(reference) = text(arguments, "ref") else {
        return Ok(Err("ref must be a text: the reference (off_… or m104k) of what to read.".to_owned()));
    };
    // Models copy a reference with the marks around it. It is looked up exactly all the same.
    let reference = reference.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let (reference, at) = match reference.split_once('@').map(|(reference, at)| (reference, at.parse())) {
        Some((reference, Ok(at))) => (reference, Some(at)),
        _ => (reference, None),
    };
    let (offset, limit) = match (whole(arguments, "offset", 0), whole(arguments, "limit", 1)) {
        (Ok(offset), Ok(limit)) => (offset.or(at).unwrap_or(0), limit.unwrap_or(USUAL).min(most(archive))),
        (Err(error), _) | (_, Err(error)) => return Ok(Err(error)),
    };
    let given = reference;
    let resolved = others::resolve(io, archive, reference).await?;
    let (archive, log_index) =
        resolved.other.as_ref().map_or((archive, log_index), |(archive, index)| (archive, index));
    let reference = resolved.reference.as_str();
    let found = match reference.split_once("..") {
        Some((first, last)) => {
            run_of(io, archive, log_index, (first, last), offset.saturating_add(limit)).await
        }
        // What the app went back behind, a model is not to come upon.
        None if archive.message_index(reference).is_some_and(|index| log_index.is_behind(index)) => {
            Err(not_found())
        }
        None => archive.text(io, reference).await.map(|text| (text, true)),
    };
    let (text, is_all) = match found {
        Ok(found) => found,
        // Another session may be deleted meanwhile.
        Err(error)
            if error.code == Code::NotFound || (error.code == Code::Closed && resolved.other.is_some()) =>
        {
            return Ok(Err(format!(
                "Nothing in this conversation has this reference. Copy it exactly, or find it with {}.",
                SEARCH.name
            )));
        }
        Err(error) if error.code == Code::StoreCorrupt => {
            io.log(LogLevel::Warn, format!("{given} could not be read back: {error}"));
            return Ok(Err(format!("[Content unavailable: {given}]")));
        }
        Err(error) => return Err(error),
    };
    let whose = match archive.tag {
        Some(_) => format!("{given}, of another session, {}", named(&archive.id)),
        None => given.to_owned(),
    };
    Ok(part_of(&whose, &text, is_all, offset, limit))
}

fn not_found() -> Error {
    Error::new(Code::NotFound, "this session has no such message")
}

/// Messages from one to another, each under its reference, as far as `enough` characters of them; and whether that is all.
///
/// Errors: [`Code::NotFound`] when that is no run of messages of this session.
async fn run_of(
    io: &Io,
    archive: &Archive,
    log_index: &LogIndex,
    (first, last): (&str, &str),
    enough: usize,
) -> Result<(String, bool)> {
    let first = archive.message_index(first).ok_or_else(not_found)?;
    let last = archive.message_index(last).filter(|last| first <= *last).ok_or_else(not_found)?;
    let (mut run, mut chars) = (String::new(), 0);
    for index in (first..=last).filter(|index| !log_index.is_behind(*index)) {
        if chars > enough {
            return Ok((run, false));
        }
        let text = match archive.message(io, index).await {
            Err(error) if error.code == Code::StoreCorrupt => "[Content unavailable]".to_owned(),
            text => text?,
        };
        // A line of theirs that looks like it is moved aside.
        let text = format!("\n{text}").replace("\n[m", "\n [m");
        let text = match &archive.tag {
            Some(tag) => text.replace(&format!("\n[{tag}/"), &format!("\n [{tag}/")),
            None => text,
        };
        let between = if run.is_empty() { "" } else { "\n\n" };
        let piece = format!("{between}[{}]{text}", archive.message_reference(index));
        chars += piece.chars().count();
        run.push_str(&piece);
    }
    if run.is_empty() { Err(not_found()) } else { Ok((run, true)) }
}

/// The part of a text that begins at `offset`, and how to go on. Where it is not all, nobody knows how long it is.
fn part_of(reference: &str, text: &str, is_all: bool, offset: usize, limit: usize) -> ToolReply {
    let total = text.chars().count();
    if offset >= total && offset > 0 {
        return Err(format!("There are {} characters; offset must be less.", grouped(total)));
    }
    // A cluster of marks without end is cut all the same: it must not fill the window.
    let mut piece: String = text::range(text, offset, Some(limit)).chars().take(limit).collect();
    if offset + piece.chars().count() < total {
        piece.truncate(end_of_word(&piece));
    }
    let end = offset + piece.chars().count();
    let (from, to, of) = (grouped(offset), grouped(end), grouped(total));
    let of = if is_all { of } else { format!("more than {of}") };
    let read = match (offset, end == total) {
        (0, true) => format!("all {of} characters"),
        (_, true) => format!("characters {from} to {to} of {of}: the end"),
        (_, false) => format!("characters {from} to {to} of {of}; next: offset {end}"),
    };
    Ok(format!("{}\n[{reference}: {read}]", as_data(&piece)))
}

/// The app's name of a session, which may be anything, in one line and in quotes.
fn named(id: &str) -> String {
    as_data(&serde_json::Value::from(in_one_line(id)).to_string())
}

/// What a harness said to the model then is no order to it now.
fn as_data(text: &str) -> String {
    text.replace("<system-reminder>", "&lt;system-reminder>")
        .replace("</system-reminder>", "&lt;/system-reminder>")
}

/// Where the last whole word ends, unless that is far from the end.
fn end_of_word(piece: &str) -> usize {
    let last = piece.char_indices().rev().take(LONGEST_WORD).find(|(_, c)| c.is_whitespace());
    last.map_or(piece.len(), |(at, c)| at + c.len_utf8())
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
    let SearchHits { hits, order, others } = search(io, archive, log_index, &query, limit, true).await?;
    if hits.is_empty() {
        return Ok(Ok("Nothing was found. Try other words, as they would stand in the text.".to_owned()));
    }
    let (mut shown, mut chars, mut passages) = (0, 0, String::new());
    for hit in &hits {
        // Each line is marked, so that none can pass for the next reference.
        let snippet = as_data(&hit.snippet).replace('\n', "\n> ");
        let passage = format!("\n\n[{}] {}\n> {snippet}", hit.reference, labeled(hit, &hits));
        chars += passage.chars().count();
        if shown > 0 && chars > most(archive) {
            break;
        }
        shown += 1;
        passages.push_str(&passage);
    }
    let messages = grouped(archive.messages);
    let others = match others {
        None => String::new(),
        Some((searched, 0)) => format!(" here and in {}", sessions(searched)),
        Some((searched, left)) => {
            format!(" here and in {}, the newest ({} were not searched)", sessions(searched), grouped(left))
        }
    };
    let order = match order {
        HitOrder::Best => "best first",
        HitOrder::Oldest => "oldest first",
        HitOrder::Newest => "newest first",
    };
    Ok(Ok(format!(
        "{shown} found in {messages} messages{others}, {order}; a higher number is later. {} gives the whole text.{passages}",
        READ.name
    )))
}

fn sessions(count: usize) -> String {
    format!("{} other session{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// What a hit is: `result of Bash: npm test · summarized`.
fn labeled(hit: &Hit, hits: &[Hit]) -> String {
    let call = hit.tool.as_ref().map(|tool| match &hit.target {
        Some(target) => format!("{tool}: {target}"),
        None => tool.clone(),
    });
    let what = match (hit.role, call) {
        ("tool", Some(call)) => format!("result of {call}"),
        (role, Some(call)) => format!("{role} calls {call}"),
        (role, None) => role.to_owned(),
    };
    let place = match (hit.place, &hit.session) {
        (HitPlace::Context, _) => "in your context",
        (HitPlace::Offloaded, _) => "moved out of your context",
        (HitPlace::Summarized, _) => "summarized",
        (HitPlace::Elsewhere, session) => {
            &format!("of another session, {}", named(session.as_deref().unwrap_or_default()))
        }
    };
    let what_of = |hit: &Hit| (hit.target.clone(), hit.tool.clone(), hit.session.clone());
    let alike = hits.iter().filter(|other| other.target.is_some() && what_of(other) == what_of(hit));
    let of_it: Vec<usize> = alike.map(|other| other.index).collect();
    let is_newest = of_it.len() > 1 && of_it.iter().max() == Some(&hit.index);
    let newest = if is_newest { format!(" · newest of {} here", of_it.len()) } else { String::new() };
    format!("{what} · {place}{newest}")
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
