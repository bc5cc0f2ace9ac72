//! Histories that most providers refuse: valid ones that crashes, retries, edits and mistakes have gone over.

use super::anything::{anything, leaf, tag};
use context_compactor_core::wire::Format;
use fastrand::Rng;
use serde_json::{Value, json};

/// A valid history with up to six things wrong with it, or a stew of messages of several.
pub fn broken(format: Format, rng: &mut Rng) -> Vec<Value> {
    let mut history = super::valid(format, rng);
    if rng.u8(..4) == 0 {
        history.extend(super::valid(format, rng));
        rng.shuffle(&mut history);
        history.truncate(12);
    }
    for _ in 0..rng.usize(1..7) {
        if history.is_empty() || rng.u8(..3) == 0 {
            messages(format, &mut history, rng);
        } else {
            let at = rng.usize(..history.len());
            let other = rng.usize(..history.len());
            let donor = history[other].clone();
            message(&mut history[at], &donor, rng);
        }
    }
    history
}

/// Changes which messages there are, and their order.
fn messages(format: Format, history: &mut Vec<Value>, rng: &mut Rng) {
    let length = history.len();
    if length == 0 {
        history.extend(anything(rng));
        return;
    }
    let at = rng.usize(..length);
    match rng.u8(..9) {
        0 | 1 => drop(history.remove(at)),
        2 => history.insert(rng.usize(..=length), history[at].clone()),
        3 => history.swap(at, rng.usize(..length)),
        4 => history.truncate(at + 1),
        5 => drop(history.drain(..at)),
        6 => {
            // Of another conversation in this format, or in another.
            let others: Vec<Format> = Format::ALL.into_iter().filter(|other| *other != format).collect();
            let of = if rng.bool() { format } else { rng.choice(others).unwrap_or(format) };
            let foreign = super::valid(of, rng);
            history.extend(rng.choice(foreign));
            let last = history.len() - 1;
            history.swap(at, last);
        }
        7 => history.extend(anything(rng).into_iter().take(1)),
        _ => {
            let end = rng.usize(at..=length);
            history[at..end].reverse();
        }
    }
}

/// A place in a tree: the keys and positions that lead to it, by the way they are asked for.
type Path = Vec<Step>;

#[derive(Clone)]
enum Step {
    Key(String),
    At(usize),
}

/// Every place below a value, the value itself excluded.
fn places(value: &Value, path: &mut Path, found: &mut Vec<Path>) {
    let mut below = |step: Step, value: &Value| {
        path.push(step);
        found.push(path.clone());
        places(value, path, found);
        path.pop();
    };
    match value {
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(at, value)| below(Step::At(at), value));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| below(Step::Key(key.clone()), value));
        }
        _ => {}
    }
}

fn at<'v>(value: &'v mut Value, path: &[Step]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::At(at) => value.get_mut(at),
    })
}

/// Changes something in a message; it stays an object.
fn message(message: &mut Value, donor: &Value, rng: &mut Rng) {
    let mut found = Vec::new();
    places(message, &mut Vec::new(), &mut found);
    let Some(mut path) = rng.choice(found) else { return };
    let Some(last) = path.pop() else { return };
    let Some(parent) = at(message, &path) else { return };
    match (parent, last) {
        (Value::Array(elements), Step::At(at)) => match (rng.u8(..7), rng.usize(..elements.len())) {
            (0, _) => drop(elements.remove(at)),
            (1, to) => elements.insert(to, elements[at].clone()),
            (2, to) => elements.swap(at, to),
            (3, _) => elements.clear(),
            (4, _) => elements.extend(block(donor, rng)),
            (5, _) => elements.extend(anything(rng).into_iter().take(1)),
            (_, _) => elements[at] = leaf(rng),
        },
        (Value::Object(fields), Step::Key(key)) => {
            if rng.u8(..3) == 0 {
                fields.remove(&key);
            } else if let Some(value) = fields.get_mut(&key) {
                *value = instead(&key, value, rng);
            }
        }
        _ => {}
    }
}

/// Some block of a message.
fn block(donor: &Value, rng: &mut Rng) -> Option<Value> {
    let arrays = donor.as_object()?.values().filter_map(Value::as_array);
    let blocks: Vec<&Value> = arrays.flatten().collect();
    rng.choice(blocks).cloned()
}

/// Another value for a field.
fn instead(key: &str, value: &Value, rng: &mut Rng) -> Value {
    let name = key.to_lowercase();
    if rng.u8(..4) == 0 {
        return leaf(rng);
    }
    let one_of = |rng: &mut Rng, all: &[&str]| json!(all[rng.usize(..all.len())]);
    match value {
        Value::String(_) if name == "role" => {
            one_of(rng, &["user", "assistant", "model", "tool", "system", "developer", "robot"])
        }
        Value::String(_) if name.ends_with("id") => one_of(rng, &["call_0", "call_1", "a", "", "other"]),
        Value::String(_) if name == "arguments" => one_of(rng, &["", "{", "[]", "null", "{} {}"]),
        Value::String(_) if name == "state" => {
            one_of(rng, &["input-streaming", "input-available", "output-available", "output-error", "new"])
        }
        Value::String(text) => match rng.u8(..5) {
            0 => json!(""),
            1 => json!(" \n"),
            2 => json!(format!("{text} ")),
            3 => tag(rng),
            _ => json!([text]),
        },
        Value::Array(_) if rng.bool() => json!([]),
        Value::Object(_) if rng.bool() => json!(value.to_string()),
        _ => leaf(rng),
    }
}
