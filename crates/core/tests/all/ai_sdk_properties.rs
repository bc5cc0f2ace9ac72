//! AI SDK: what holds of every history, valid or broken.

use crate::support::ai_sdk::*;
use context_compactor_core::wire::{Format, detect, parse};
use context_compactor_store_tests::histories;
use serde_json::{Value, json};

/// Lesson "quadratic CPU": what is broken 50,000 times is mended in linear time.
#[test]
fn a_long_broken_history_takes_linear_time() {
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    let model = |nth: usize| match nth % 5 {
        0 => json!({ "role": "user", "content": text("go") }),
        1 => json!({ "role": "assistant", "content": [
            { "type": "reasoning", "text": "hm", "providerOptions": { "anthropic": { "signature": "s" } } },
            { "type": "tool-call", "toolCallId": "a", "toolName": "f", "input": {} },
            { "type": "tool-approval-request", "approvalId": "p", "toolCallId": "b" } ] }),
        2 => {
            json!({ "role": "tool", "content": [{ "type": "tool-result", "toolCallId": "b", "toolName": "f", "output": "x" }] })
        }
        3 => {
            json!({ "role": "tool", "content": [{ "type": "tool-approval-response", "approvalId": "p", "approved": true }] })
        }
        _ => json!({ "role": "assistant", "content": "" }),
    };
    let ui = |nth: usize| match nth % 2 {
        0 => json!({ "id": "u", "role": "user", "parts": text("go") }),
        _ => {
            json!({ "id": "a", "role": "assistant", "parts": [{ "type": "tool-f", "toolCallId": "a", "state": "input-available" }, { "type": "text", "text": "x" }] })
        }
    };
    let time = |make: &dyn Fn(usize) -> Value, length: usize| {
        let history: Value = (0..length).map(make).collect();
        let texts: Vec<String> = history.as_array().unwrap().iter().map(Value::to_string).collect();
        let messages: Vec<_> = texts.iter().map(|text| parse(0, text).unwrap()).collect();
        let begun = std::time::Instant::now();
        let (left, changes) = Format::AiSdk.rules().repair(&messages);
        assert!(!left.is_empty() && changes.len() > length / 3);
        begun.elapsed()
    };
    for make in [&model as &dyn Fn(usize) -> Value, &ui] {
        let (short, long) = (time(make, 5_000), time(make, 50_000));
        assert!(
            long < short * 40 + std::time::Duration::from_millis(200),
            "{short:?} for 5,000, {long:?} for 50,000"
        );
    }
}

/// The histories that property tests are made of are valid, show their format, and lose nothing to a repair.
#[test]
fn generated_histories_are_valid() {
    for seed in 0..500 {
        let history = Value::from(histories::valid(Format::AiSdk, &mut fastrand::Rng::with_seed(seed)));
        assert_eq!(problems(&history, false), [], "seed {seed}: {history}");
        assert_eq!(repair(&history), (history.clone(), vec![]), "seed {seed}");
        with(&history, |messages| assert_eq!(detect(messages).unwrap(), Format::AiSdk, "seed {seed}"));
    }
}

/// Whatever is taken out of a history or moved in it, a repair makes it valid, once and for all.
#[test]
fn broken_histories_are_repaired_once_and_for_all() {
    let mut repairs = 0;
    for seed in 0..1_000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut history = histories::valid(Format::AiSdk, &mut rng);
        for _ in 0..rng.usize(1..5) {
            let (one, other) = (rng.usize(..history.len()), rng.usize(..history.len()));
            let parts = ["content", "parts"].into_iter().find(|key| history[one][key].is_array());
            match (rng.usize(..4), parts) {
                (0, _) if history.len() > 1 => drop(history.remove(one)),
                (1, _) => history.swap(one, other),
                (2, Some(key)) if history[one][key][0].is_object() => {
                    let first = history[one][key][0].clone();
                    history[other][key]
                        .as_array_mut()
                        .into_iter()
                        .for_each(|parts| parts.push(first.clone()));
                }
                (_, Some(key)) => {
                    let parts = history[one][key].as_array_mut().unwrap();
                    if !parts.is_empty() {
                        parts.remove(rng.usize(..parts.len()));
                    }
                }
                _ => {}
            }
        }
        let history = Value::from(history);
        repairs += usize::from(repaired(&history) != history);
    }
    assert!(repairs > 400, "{repairs}");
}

/// Any text takes the place of any result, and the history stays valid.
#[test]
fn generated_histories_stay_valid_with_every_result_replaced() {
    let wire = Format::AiSdk.wire();
    for seed in 0..500 {
        let history = histories::valid(Format::AiSdk, &mut fastrand::Rng::with_seed(seed));
        let mut edited = Vec::new();
        for (index, message) in history.iter().enumerate() {
            let mut json = message.to_string();
            let results = wire.read(index, &parse(index, &json).unwrap()).unwrap().results().count();
            for nth in 0..results {
                let text = format!("Tool result is at: {index}/{nth}");
                json = Format::AiSdk
                    .rules()
                    .with_result_text(&parse(index, &json).unwrap(), nth, &text)
                    .unwrap();
                let value = parse(index, &json).unwrap();
                let read = wire.read(index, &value).unwrap();
                let result = read.results().nth(nth).unwrap();
                assert!(result.text.contains(&text), "seed {seed}: {text} is not in {}", result.text);
                assert_eq!(read.results().count(), results);
            }
            edited.push(serde_json::from_str(&json).unwrap());
        }
        assert_eq!(problems(&Value::Array(edited), false), [], "seed {seed}");
    }
}
