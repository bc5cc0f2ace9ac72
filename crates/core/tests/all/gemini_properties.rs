//! What must hold of every Gemini history, valid or broken at random.

use context_compactor_core::wire::{Format, Repaired, parse};
use context_compactor_store_tests::histories;
use fastrand::Rng;
use serde_json::{Value, json};

const GEMINI: Format = Format::Gemini;

fn with<T>(history: &[Value], run: impl FnOnce(&[serde_json_borrow::Value<'_>]) -> T) -> T {
    let texts: Vec<String> = history.iter().map(Value::to_string).collect();
    let messages: Vec<_> = texts.iter().enumerate().map(|(i, text)| parse(i, text).unwrap()).collect();
    run(&messages)
}

fn is_valid(history: &[Value]) -> bool {
    with(history, |messages| GEMINI.rules().validate(messages, false).is_empty())
}

/// The repaired history, which message each one of it comes from, and how many changes were made.
fn repair(history: &[Value]) -> (Vec<Value>, Vec<usize>, usize) {
    with(history, |messages| {
        let (repaired, changes) = GEMINI.rules().repair(messages);
        let (mut result, mut indices) = (Vec::new(), Vec::new());
        for message in repaired {
            let (index, message) = match message {
                Repaired::Keep(index) => (index, history[index].clone()),
                Repaired::Replace { index, json } => (index, serde_json::from_str(&json).unwrap()),
            };
            indices.push(index);
            result.push(message);
        }
        assert!(changes.iter().all(|change| change.index < history.len()));
        (result, indices, changes.len())
    })
}

/// One change for the worse.
fn spoil(history: &mut Vec<Value>, rng: &mut Rng) {
    if history.is_empty() {
        return;
    }
    let at = rng.usize(..history.len());
    let other = rng.usize(..history.len());
    let bad = [
        json!({}),
        json!({ "text": "" }),
        json!({ "text": 5 }),
        json!({ "text": "x", "thought": true }),
        json!({ "functionCall": { "name": "grep", "args": "{}" } }),
        json!({ "functionCall": { "name": "grep", "id": "call_0_0" }, "thoughtSignature": "c2ln" }),
        json!({ "functionResponse": { "name": "grep", "response": "done" } }),
        json!({ "functionResponse": { "name": "grep", "id": "call_0_0" } }),
        json!({ "text": { "$cc": "utf16", "v": "QQAA2A==" } }),
    ];
    match rng.u8(..8) {
        0 => drop(history.remove(at)),
        1 => history.swap(at, other),
        2 => history.insert(at, history[other].clone()),
        3 => history[at]["role"] = json!(["user", "model", "function", "system"][rng.usize(..4)]),
        4 => history[at]["parts"] = json!([]),
        5 => history.truncate(at + 1),
        6 => {
            if let Some(parts) = history[at]["parts"].as_array_mut()
                && !parts.is_empty()
            {
                let nth = rng.usize(..parts.len());
                parts.remove(nth);
            }
        }
        _ => {
            if let Some(parts) = history[at]["parts"].as_array_mut() {
                parts.insert(rng.usize(..=parts.len()), bad[rng.usize(..bad.len())].clone());
            }
        }
    }
}

#[test]
fn a_repaired_history_is_valid_and_stays_as_it_is() {
    let mut mended = 0;
    for seed in 0..3_000 {
        let mut rng = Rng::with_seed(seed);
        let mut history = histories::valid(GEMINI, &mut rng);
        (0..rng.usize(1..6)).for_each(|_| spoil(&mut history, &mut rng));
        let broken = !is_valid(&history);
        let (result, indices, changes) = repair(&history);
        assert!(is_valid(&result), "seed {seed}: {}", Value::from(history));
        assert!(indices.is_sorted(), "messages keep their order");
        assert_eq!(
            broken,
            changes > 0,
            "what is broken is mended and told, what is not is not (seed {seed})"
        );
        let again = repair(&result);
        assert_eq!((again.0, again.2), (result, 0), "seed {seed}");
        mended += usize::from(broken);
    }
    assert!(mended > 1_500, "{mended}");
}

#[test]
fn one_lost_message_costs_no_more_than_its_exchange() {
    for seed in 0..500 {
        let mut rng = Rng::with_seed(seed);
        let whole = histories::valid(GEMINI, &mut rng);
        let at = rng.usize(1..whole.len());
        let mut history = whole.clone();
        history.remove(at);
        let (result, indices, _) = repair(&history);
        assert!(is_valid(&result));
        let lost: Vec<usize> = (0..history.len()).filter(|index| !indices.contains(index)).collect();
        assert!(
            lost.iter().all(|&index| index + 1 == at || index == at),
            "seed {seed}: {lost:?} around {at}"
        );
    }
}
