//! What the tests of one format's rules share.
#![allow(dead_code, unreachable_pub)]

use context_compactor_core::message::{Exchanges, Message};
use context_compactor_core::wire::{Change, Format, Problem, Repaired, parse};
use context_compactor_store_tests::histories;
use fastrand::Rng;
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
    with(history, |messages| format.rules().validate(messages, strict))
}

/// The rules broken, with the index of the message.
pub fn broken(format: Format, history: &[Value]) -> Vec<(&'static str, usize)> {
    problems(format, history, false).into_iter().map(|problem| (problem.rule, problem.index)).collect()
}

pub fn broken_strictly(format: Format, history: &[Value]) -> Vec<(&'static str, usize)> {
    problems(format, history, true).into_iter().map(|problem| (problem.rule, problem.index)).collect()
}

fn repair(format: Format, history: &[Value]) -> (Vec<Value>, Vec<Change>) {
    let (repaired, changes) = with(history, |messages| format.rules().repair(messages));
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

/// Generated histories with messages and blocks missing, doubled and out of their places: each is mended for good.
pub fn mends_what_is_damaged(format: Format) {
    let mut found = std::collections::BTreeSet::new();
    for seed in 0..2_000 {
        let mut rng = Rng::with_seed(seed);
        let mut history = histories::valid(format, &mut rng);
        for _ in 0..rng.usize(1..5) {
            let (at, other) = (rng.usize(..history.len()), rng.usize(..history.len()));
            match rng.usize(..5) {
                0 if history.len() > 1 => drop(history.remove(at)),
                1 => history.swap(at, other),
                2 => history.insert(at, history[other].clone()),
                _ => damage(&mut history[at], &mut rng),
            }
        }
        found.extend(broken(format, &history).into_iter().map(|(rule, _)| rule));
        repaired(format, &history);
    }
    assert!(!found.is_empty());
}

/// Takes an item out of a list inside, or a field away.
fn damage(message: &mut Value, rng: &mut Rng) {
    let fields = message.as_object_mut().unwrap();
    let keys: Vec<String> = fields.keys().cloned().collect();
    let Some(key) = rng.choice(&keys) else { return };
    match fields.get_mut(key) {
        Some(Value::Array(items)) if !items.is_empty() => drop(items.remove(rng.usize(..items.len()))),
        _ => drop(fields.remove(key)),
    }
}
