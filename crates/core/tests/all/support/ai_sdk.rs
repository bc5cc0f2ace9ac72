//! What the tests of the AI SDK's messages share.
#![allow(dead_code, unreachable_pub)]

use context_compactor_core::Code;
use context_compactor_core::error::ErrorParts;
use context_compactor_core::message::{Media, MediaKind, Message, Pairing, Part, Role, ToolCall, ToolResult};
use context_compactor_core::wire::{Change, Format, Problem, Repaired, Wire, detect, parse};
use serde_json::{Value, json};
use std::borrow::Cow;

pub fn wire() -> &'static dyn Wire {
    Format::AiSdk.wire()
}

pub fn read<T>(message: &Value, look: impl FnOnce(Message<'_>) -> T) -> T {
    let text = message.to_string();
    let parsed = parse(7, &text).unwrap();
    let read = wire().read(7, &parsed).unwrap_or_else(|error| panic!("{error}: {text}"));
    look(read)
}

pub fn reads_as(message: &Value, role: Role, parts: &[Part<'_>]) {
    read(message, |read| assert_eq!((read.role, read.parts.as_slice()), (role, parts), "{message}"));
}

pub fn refused(message: &Value) -> String {
    let text = message.to_string();
    let parsed = parse(7, &text).unwrap();
    let ErrorParts { code, index, field, .. } = wire().read(7, &parsed).unwrap_err().into_parts();
    assert_eq!((code, index), (Code::InvalidMessage, Some(7)), "{text}");
    field.unwrap()
}

pub fn detected(history: &Value) -> Result<Format, Code> {
    let texts: Vec<String> = history.as_array().unwrap().iter().map(Value::to_string).collect();
    let messages: Vec<_> =
        texts.iter().enumerate().map(|(index, text)| parse(index, text).unwrap()).collect();
    detect(&messages).map_err(|error| error.code)
}

pub fn with_text(message: &Value, nth: usize, text: &str) -> Option<Value> {
    let json = message.to_string();
    let parsed = parse(0, &json).unwrap();
    Format::AiSdk
        .rules()
        .with_result_text(&parsed, nth, text)
        .map(|json| serde_json::from_str(&json).unwrap())
}

pub fn text(text: &str) -> Part<'_> {
    Part::Text(Cow::Borrowed(text))
}

pub fn call<'a>(id: &'a str, name: &'a str, arguments: &'a str) -> Part<'a> {
    Part::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments: arguments.into(), caller: None })
}

pub fn result<'a>(call_id: &'a str, text: &'a str, is_error: bool, media: &[Media]) -> Part<'a> {
    let (call_id, text) = (call_id.into(), text.into());
    Part::ToolResult(ToolResult { call_id, text, is_error, media: media.to_vec(), mark: None })
}

pub fn media(kind: MediaKind, bytes: usize) -> Media {
    Media { kind, bytes, pixels: None }
}

/// What is opaque, by kind and tie.
pub fn ties<'m>(message: &'m Message<'_>) -> Vec<(&'m str, Pairing<'m>)> {
    let tie = |part: &'m Part<'_>| match part {
        Part::Opaque { kind, tie, .. } => Some((
            kind.as_ref(),
            match tie {
                Pairing::None => Pairing::None,
                Pairing::Opens(id) => Pairing::Opens(Cow::Borrowed(id.as_ref())),
                Pairing::Closes(id) => Pairing::Closes(Cow::Borrowed(id.as_ref())),
                Pairing::Refers => Pairing::Refers,
            },
        )),
        _ => None,
    };
    message.parts.iter().filter_map(tie).collect()
}

pub fn with<T>(history: &Value, run: impl FnOnce(&[serde_json_borrow::Value<'_>]) -> T) -> T {
    let texts: Vec<String> = history.as_array().unwrap().iter().map(Value::to_string).collect();
    let messages: Vec<_> = texts.iter().enumerate().map(|(i, text)| parse(i, text).unwrap()).collect();
    run(&messages)
}

pub fn problems(history: &Value, strict: bool) -> Vec<Problem> {
    with(history, |messages| Format::AiSdk.rules().validate(messages, strict))
}

/// The rules broken, with the index of the message.
pub fn broken(history: &Value) -> Vec<(&'static str, usize)> {
    problems(history, false).into_iter().map(|problem| (problem.rule, problem.index)).collect()
}

pub fn broken_strictly(history: &Value) -> Vec<(&'static str, usize)> {
    problems(history, true).into_iter().map(|problem| (problem.rule, problem.index)).collect()
}

pub fn repair(history: &Value) -> (Value, Vec<Change>) {
    with(history, |messages| {
        let (repaired, changes) = Format::AiSdk.rules().repair(messages);
        let message = |message| match message {
            Repaired::Keep(index) => history[index].clone(),
            Repaired::Replace { json, .. } => serde_json::from_str(&json).unwrap(),
        };
        (repaired.into_iter().map(message).collect(), changes)
    })
}

/// The repaired history, after asserting that it is valid and that repairing it again changes nothing.
pub fn repaired(history: &Value) -> Value {
    let (result, _) = repair(history);
    assert_eq!(problems(&result, false), [], "repaired: {result}");
    let (again, changes) = repair(&result);
    assert_eq!((again, changes), (result.clone(), vec![]), "a repaired history is left alone");
    result
}

/// Broken as it says, and mended to this.
pub fn mends(history: &Value, rules: &[(&'static str, usize)], expected: &Value) {
    assert_eq!(broken(history), rules, "{history}");
    assert_eq!(repaired(history), *expected, "{history}");
}

/// The object with more fields.
pub fn and(mut value: Value, more: Value) -> Value {
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    value
}

pub fn said(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}
