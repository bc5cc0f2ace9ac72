//! What the tests of one format's rules share.
#![allow(dead_code, unreachable_pub)]

use context_compactor_core::message::{Exchanges, Message};
use context_compactor_core::wire::{Change, Format, Problem, Repaired, parse};
use serde_json::Value;

/// Hands a history to `run` as the engine holds it.
pub fn with<T>(history: &[Value], run: impl FnOnce(&[serde_json_borrow::Value<'_>]) -> T) -> T {
    let texts: Vec<String> = history.iter().map(Value::to_string).collect();
    let messages: Vec<_> = texts.iter().enumerate().map(|(i, text)| parse(i, text).unwrap()).collect();
    run(&messages)
}

/// Hands a message to `run` as it is read.
pub fn read<T>(format: Format, message: &Value, run: impl FnOnce(Message<'_>) -> T) -> T {
    with(std::slice::from_ref(message), |messages| run(format.wire().read(0, &messages[0]).unwrap()))
}

/// Where a history may be cut.
pub fn boundaries(format: Format, history: &[Value]) -> Vec<usize> {
    with(history, |messages| {
        let read: Vec<_> =
            messages.iter().enumerate().map(|(i, m)| format.wire().read(i, m).unwrap()).collect();
        let exchanges = Exchanges::of(&read);
        (0..=read.len()).filter(|&position| exchanges.is_boundary(position)).collect()
    })
}

pub fn problems(format: Format, history: &[Value], strict: bool) -> Vec<Problem> {
    with(history, |messages| format.wire().validate(messages, strict))
}

/// The rules broken, with the index of the message.
pub fn broken(format: Format, history: &[Value]) -> Vec<(&'static str, usize)> {
    problems(format, history, false).into_iter().map(|problem| (problem.rule, problem.index)).collect()
}

pub fn broken_strictly(format: Format, history: &[Value]) -> Vec<(&'static str, usize)> {
    problems(format, history, true).into_iter().map(|problem| (problem.rule, problem.index)).collect()
}

fn repair(format: Format, history: &[Value]) -> (Vec<Value>, Vec<Change>) {
    let (repaired, changes) = with(history, |messages| format.wire().repair(messages));
    let message = |part: &Repaired| match part {
        Repaired::Keep(index) => history[*index].clone(),
        Repaired::Replace { json, .. } => serde_json::from_str(json).unwrap(),
    };
    (repaired.iter().map(message).collect(), changes)
}

/// The repaired history, after asserting that it is valid and that repairing it again changes nothing.
pub fn repaired(format: Format, history: &[Value]) -> Vec<Value> {
    let (result, changes) = repair(format, history);
    assert_eq!(changes.is_empty(), broken(format, history).is_empty(), "what is broken is told");
    assert_eq!(problems(format, &result, false), [], "repaired: {result:?}");
    assert_eq!(repair(format, &result), (result.clone(), vec![]), "a repaired history is left alone");
    result
}
