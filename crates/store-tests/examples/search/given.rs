//! Questions of a file: `--data FILE`. `docs/recall.md` says its shape.

use crate::sets::{History, Set};
use context_compactor_core::standalone;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, body};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// The set that a file has: JSON, an object or a list of them, or JSON lines.
///
/// Errors: what of it cannot be used, and where.
pub(crate) fn read(file: &str) -> Result<Set, String> {
    let path = Path::new(file);
    let records = values(path)?;
    let mut transcripts: HashMap<String, (Format, Vec<Body>, Vec<Value>)> = HashMap::new();
    let mut histories: Vec<(String, History)> = Vec::new();
    for (nth, record) in records.iter().enumerate() {
        let at = format!("{file}: record {}", nth + 1);
        if !record.is_object() {
            return Err(format!("{at} must be an object with `messages` or `transcript`, and questions"));
        }
        let (key, messages) = match (&record["messages"], &record["transcript"]) {
            (Value::Array(messages), Value::Null) => (at.clone(), Some(messages.clone())),
            (Value::Null, Value::String(name)) => (name.clone(), None),
            _ => {
                return Err(format!(
                    "{at} must have either `messages`, a list, or `transcript`, the path of a file of them"
                ));
            }
        };
        if !transcripts.contains_key(&key) {
            let messages = match messages {
                Some(messages) => messages,
                None => messages_of(&path.with_file_name(&key))?,
            };
            transcripts.insert(key.clone(), read_messages(&at, record, messages)?);
        }
        let (format, bodies, messages) = &transcripts[&key];
        let questions = questions(&at, record, messages)?;
        match histories.iter_mut().find(|(known, _)| *known == key) {
            Some((_, history)) => history.questions.extend(questions),
            None => histories.push((key, History { format: *format, bodies: bodies.clone(), questions })),
        }
    }
    if histories.is_empty() {
        return Err(format!("{file} has no record"));
    }
    let name = path.file_name().map_or_else(|| file.to_owned(), |name| name.to_string_lossy().into_owned());
    Ok(Set { name, histories: histories.into_iter().map(|(_, history)| history).collect() })
}

/// The values of a file: those of a list, one alone, or one a line.
fn values(path: &Path) -> Result<Vec<Value>, String> {
    let text =
        fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    if let Ok(value) = serde_json::from_str::<Value>(&text) {
        return Ok(match value {
            Value::Array(values) => values,
            value => vec![value],
        });
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let value = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| {
            format!("{} is neither JSON nor JSON lines: line {}: {error}", path.display(), at + 1)
        })
    };
    lines.map(value).collect()
}

/// The messages of a transcript: a list, an object that has it as `messages`, or a message a line.
fn messages_of(path: &Path) -> Result<Vec<Value>, String> {
    let mut values = values(path)?;
    match values.as_mut_slice() {
        [one] if one["messages"].is_array() => match one["messages"].take() {
            Value::Array(messages) => Ok(messages),
            _ => Ok(Vec::new()),
        },
        _ => Ok(values),
    }
}

fn read_messages(
    at: &str,
    record: &Value,
    messages: Vec<Value>,
) -> Result<(Format, Vec<Body>, Vec<Value>), String> {
    let bodies: Vec<Body> = messages.iter().map(body).collect();
    let format = match &record["format"] {
        Value::Null => {
            standalone::detect(&bodies).map_err(|error| format!("{at}: {error}; name it as `format`"))?
        }
        given => Format::ALL.into_iter().find(|format| given.as_str() == Some(format.as_str())).ok_or_else(
            || format!("{at}: `format` must be one of {}", Format::ALL.map(Format::as_str).join(", ")),
        )?,
    };
    for (nth, text) in bodies.iter().enumerate() {
        let read = context_compactor_core::wire::parse(nth, text)
            .and_then(|value| format.wire().read(nth, &value).map(|_| ()));
        read.map_err(|error| format!("{at}: {error}"))?;
    }
    Ok((format, bodies, messages))
}

/// The questions of a record: `questions`, or the one that it is.
fn questions(at: &str, record: &Value, messages: &[Value]) -> Result<Vec<(String, Vec<usize>)>, String> {
    let asked = match &record["questions"] {
        Value::Array(questions) if !questions.is_empty() => questions.as_slice(),
        Value::Null => std::slice::from_ref(record),
        _ => return Err(format!("{at}: `questions` must be a list of questions, each with its evidence")),
    };
    let mut questions = Vec::new();
    for one in asked {
        let Some(question) =
            one["question"].as_str().filter(|question| question.chars().any(char::is_alphanumeric))
        else {
            return Err(format!("{at}: `question` must be a text with a word"));
        };
        let Some(evidence) = one["evidence"].as_array().filter(|evidence| !evidence.is_empty()) else {
            return Err(format!(
                "{at}: `evidence` of {question:?} must list the indices or ids of the messages that have it"
            ));
        };
        let mut having = Vec::new();
        for id in evidence {
            let index = match id.as_u64() {
                Some(index) => usize::try_from(index).ok().filter(|index| *index < messages.len()),
                None => messages.iter().position(|message| id.is_string() && message["id"] == *id),
            };
            having.push(index.ok_or_else(|| {
                format!("{at}: `evidence` of {question:?}: {id} is neither an index below {} nor the id of a message", messages.len())
            })?);
        }
        questions.push((question.to_owned(), having));
    }
    Ok(questions)
}
