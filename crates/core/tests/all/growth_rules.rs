//! A history that grows is checked at its end only, and judged as if all of it were (`S1.15`).

use crate::support::*;
use context_compactor_core::context::Fate;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::{OutItem, Prepared};
use context_compactor_core::wire::{Format, Past, parse};
use context_compactor_store_tests::conversation::body;
use context_compactor_store_tests::histories::{broken, valid};
use fastrand::Rng;
use serde_json::{Value, json};
use serde_json_borrow::Value as Borrowed;

/// Histories of each format.
const SEEDS: u64 = 300;

/// Valid histories one after the other, at times with some that are not.
fn history(format: Format, rng: &mut Rng) -> Vec<Value> {
    let mut history = Vec::new();
    for _ in 0..rng.usize(1..4) {
        let more = if rng.u8(..3) == 0 { broken(format, rng) } else { valid(format, rng) };
        history.extend(more);
    }
    history
}

/// Checks `values` as a session does that is handed a few more of them each time. Returns how many of the messages that
/// were looked at were new, and how many there were.
fn check(format: Format, values: &[Borrowed<'_>], rng: &mut Rng) -> (usize, usize) {
    let wire = format.wire();
    let (mut past, mut length) = (Past::default(), 0);
    let (mut new, mut looked) = (0, 0);
    while length < values.len() {
        let more = rng.usize(1..4).min(values.len() - length);
        length += more;
        let so_far = &values[..length];
        let is_valid = format.rules().validate(so_far, false).is_empty();
        let window = &so_far[past.messages()..];
        if is_valid {
            (new, looked) = (new + more, looked + window.len());
        }
        if wire.grows(&mut past, window) {
            assert!(is_valid, "{format:?}: {so_far:?}");
        } else {
            let mut anew = Past::default();
            assert_eq!(wire.grows(&mut anew, so_far), is_valid, "{format:?}: {so_far:?}");
            if is_valid {
                past = anew;
            }
        }
        assert!(past.messages() <= length);
    }
    (new, looked)
}

#[test]
fn s1_15_what_a_growing_history_breaks_is_found_as_in_a_whole_one() {
    for format in Format::ALL {
        for seed in 0..SEEDS {
            let mut rng = Rng::with_seed(seed);
            let texts: Vec<String> = history(format, &mut rng).iter().map(Value::to_string).collect();
            // What is no object never gets into a session.
            let values: Vec<Borrowed<'_>> = texts.iter().filter_map(|text| parse(0, text).ok()).collect();
            check(format, &values, &mut rng);
        }
    }
}

#[test]
fn s1_15_of_a_valid_history_about_as_much_is_looked_at_as_was_added() {
    for format in Format::ALL {
        let (mut new, mut looked) = (0, 0);
        for seed in 0..30 {
            let mut rng = Rng::with_seed(seed);
            let history: Vec<Value> = (0..8).flat_map(|_| valid(format, &mut rng)).collect();
            let texts: Vec<String> = history.iter().map(Value::to_string).collect();
            let values: Vec<Borrowed<'_>> = texts.iter().map(|text| parse(0, text).unwrap()).collect();
            let (more, all) = check(format, &values, &mut rng);
            (new, looked) = (new + more, looked + all);
        }
        println!("{format:?}: {looked} looked at for {new}");
        assert!(looked < 6 * new, "{format:?}: {looked} messages were looked at for {new} new ones");
    }
}

/// What the host has after a `prepare`, which tells it what was added only.
fn take(items: &mut Vec<OutItem>, prepared: Prepared) -> u64 {
    items.truncate(prepared.kept);
    assert_eq!(items.len(), prepared.kept, "it keeps what the host does not have");
    items.extend(prepared.items);
    prepared.nth
}

#[test]
fn what_was_added_and_what_the_host_has_are_the_context() {
    let mut kept = 0;
    for (format, seed) in FORMATS.into_iter().flat_map(|format| (0..40).map(move |seed| (format, seed))) {
        let mut rng = Rng::with_seed(seed);
        let mut harness = Harness::new(json!({ "format": format, "contextWindow": 4_000 }));
        let (mut items, mut since) = (Vec::new(), 0);
        for nth in 0..30 {
            match rng.u8(..12) {
                0 => drop(harness.compact()),
                1 => {
                    let messages = harness.session.branch().unwrap().messages;
                    // An index inside an exchange is refused.
                    let _ = harness.host.run(harness.session.rewind(rng.usize(..=messages)));
                }
                // A call that waits for its result is not sent.
                2 => harness.append(&turn(format, nth, 40)[..2]),
                3 => drop(harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new()))),
                _ => harness.append(&turn(format, nth, rng.usize(10..200))),
            }
            let since_then = harness.session.prepare_since(Trigger::Auto, Vec::new(), since);
            let Ok(prepared) = harness.host.run(since_then) else { continue };
            kept += prepared.kept;
            since = take(&mut items, prepared);
            let whole = harness.prepare();
            assert_eq!(items, whole.items);
            assert_valid(format, &bodies(&harness.session, &whole));
            if rng.bool() {
                since = take(&mut items, whole);
            }
        }
    }
    assert!(kept > 1_000, "{kept} items were kept");
}

fn dropped(harness: &Harness) -> Vec<usize> {
    let entries = harness.session.explain().unwrap();
    entries.iter().filter(|entry| entry.fate == Fate::Dropped).map(|entry| entry.index).collect()
}

#[test]
fn s1_15_a_mended_prompt_that_is_added_to_is_what_would_be_mended_anew() {
    for format in Format::ALL {
        let (mut kept, mut mended, mut same, mut prompts) = (0, 0, 0, 0);
        for seed in 0..12 {
            let mut rng = Rng::with_seed(seed);
            let given =
                [broken(format, &mut rng), history(format, &mut rng), valid(format, &mut rng)].concat();
            let options = json!({ "format": format, "contextWindow": 1_000_000 });
            let (mut harness, mut anew) = (Harness::new(options.clone()), Harness::new(options));
            let (mut items, mut since) = (Vec::new(), 0);
            for message in given.iter().filter(|message| message.is_object()) {
                let body = vec![body(message)];
                let is_taken = harness.host.run(harness.session.append(body.clone())).is_ok();
                assert_eq!(anew.host.run(anew.session.append(body)).is_ok(), is_taken);
                let prepared =
                    harness.host.run(harness.session.prepare_since(Trigger::Auto, Vec::new(), since));
                let whole = anew.host.run(anew.session.prepare(Trigger::Auto, Vec::new()));
                let (Ok(prepared), Ok(whole)) = (&prepared, &whole) else {
                    assert_eq!(prepared.is_ok(), whole.is_ok(), "{format:?}, seed {seed}");
                    continue;
                };
                let is_mended = harness.session.explain().unwrap().iter().any(|entry| entry.reason.is_some());
                mended += usize::from(is_mended);
                kept += usize::from(is_mended && prepared.kept > 0);
                since = take(&mut items, prepared.clone());
                let all = Prepared { items: items.clone(), ..prepared.clone() };
                assert_valid(format, &bodies(&harness.session, &all));
                assert_eq!(dropped(&harness), dropped(&anew), "{format:?}, seed {seed}");
                same += usize::from(items == whole.items);
                prompts += 1;
            }
        }
        println!(
            "{format:?}: {kept} of {mended} mended prompts were only added to, {same} of {prompts} are the same"
        );
        assert!(kept > 20, "{format:?}: {kept} of {mended}");
        // A mark of the cache that is one too many may be another one.
        assert!(100 * same > 99 * prompts, "{format:?}: {same} of {prompts} are the same");
    }
}

#[test]
fn f39_messages_of_the_ai_sdk_are_looked_at_again_only_as_long_as_a_call_waits() {
    let wire = Format::AiSdk.wire();
    let tool = |kind: &str| {
        json!({ "type": kind, "toolCallId": "a", "toolName": "read", "input": {},
        "output": { "type": "text", "value": "x" } })
    };
    let call = json!({ "role": "assistant", "content": [tool("tool-call")] });
    let result = json!({ "role": "tool", "content": [tool("tool-result")] });
    let said = json!({ "role": "assistant", "content": [{ "type": "text", "text": "Done." }] });
    let user = json!({ "role": "user", "content": [{ "type": "text", "text": "go" }] });
    let calls = json!({ "role": "assistant", "content": [{ "type": "tool-call", "toolCallId": "b", "toolName": "read",
        "input": {}, "providerExecuted": true }] });
    let texts = [user, call, result, said, calls].map(|value| value.to_string());
    let values: Vec<Borrowed<'_>> = texts.iter().map(|text| parse(0, text).unwrap()).collect();
    let mut past = Past::default();
    assert!(wire.grows(&mut past, &values[..4]));
    assert_eq!(past.messages(), 4, "the call has its result: none of it is looked at again");
    let mut waits = Past::default();
    assert!(wire.grows(&mut waits, &values));
    assert_eq!(waits.messages(), 0, "from what the user said last on");
}
