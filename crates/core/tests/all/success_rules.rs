//! A success is one: what `compact` calls so fits the window, in every preset, format and window, whatever is pinned and
//! whoever summarises; and what does not fit says so. `CC_SUCCESS_CASES` runs more cases or fewer.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::compaction::CompactionResult;
use context_compactor_core::policy::PRESETS;
use context_compactor_core::session::{OutItem, Session};
use context_compactor_core::step::Event;
use context_compactor_core::wire::{Author, Format};
use context_compactor_store_tests::checked::problems;
use context_compactor_store_tests::conversation::{Body, exchange, say};
use context_compactor_store_tests::histories::valid;
use context_compactor_store_tests::host::{summary, thrown};
use context_compactor_store_tests::{Host, MemoryStore};
use fastrand::Rng;
use serde_json::{Value, json};
use std::rc::Rc;

/// Cases of a usual run.
const CASES: u64 = 80;

fn cases() -> u64 {
    std::env::var("CC_SUCCESS_CASES").map_or(CASES, |count| count.parse().unwrap())
}

/// A text of about this many tokens that is no repetition of a line.
fn text(name: &str, tokens: usize) -> String {
    let mut text = String::new();
    for line in 0..tokens / 12 + 1 {
        text += &format!("{name}, line {line}: the parser reads src/file_{line}.rs\n");
    }
    text
}

/// Mostly small, at times larger than the window.
fn size(rng: &mut Rng, window: usize) -> usize {
    match rng.u8(..12) {
        0 => window * rng.usize(1..12) / 3,
        1..4 => window / rng.usize(4..20),
        _ => rng.usize(5..80),
    }
}

/// A valid history: turns of any size, at times behind one that an agent would have written.
fn history(format: Format, window: usize, rng: &mut Rng) -> Vec<Body> {
    let mut bodies: Vec<Body> = Vec::new();
    for nth in 0..rng.usize(1..14) {
        bodies.push(say(format, Author::User, &text(&format!("question {nth}"), size(rng, window))));
        if rng.bool() {
            let result = text(&format!("result {nth}"), size(rng, window));
            bodies.extend(exchange(format, &format!("call_{nth}"), &result));
        }
        bodies.push(say(format, Author::Assistant, &text(&format!("answer {nth}"), size(rng, window))));
    }
    bodies.truncate(bodies.len() - rng.usize(..2));
    let written: Vec<Body> = valid(format, rng).iter().map(|value| value.to_string().into()).collect();
    let joined = [written, bodies.clone()].concat();
    let is_valid = |bodies: &[Body]| problems(format, bodies).is_ok_and(|problems| problems.is_empty());
    if rng.bool() && is_valid(&joined) { joined } else { bodies }
}

fn options(format: Format, window: usize, rng: &mut Rng) -> Value {
    let mut options = json!({
        "format": format.as_str(), "preset": PRESETS[rng.usize(..PRESETS.len())].name, "contextWindow": window,
        "summarize": { "attempts": 2, "call": (rng.u8(..5) > 0).then_some(true) }, "pins": { "match": (rng.u8(..3) == 0).then_some(true) },
    });
    match rng.u8(..3) {
        0 => options["summarize"]["fallback"] = json!("none"),
        1 => options["summarize"]["fallback"] = json!("extractive"),
        _ => {}
    }
    if rng.u8(..3) == 0 {
        options["keep"] = json!({ "messages": rng.usize(1..9) });
    }
    options
}

fn summariser(rng: &mut Rng) -> Event {
    match rng.u8(..6) {
        0 => thrown("503 overloaded", Some(503)),
        1 => summary(""),
        2 => summary("## Current Status\nSomething was done."),
        3 => summary(&format!("## Current Status\n{}", text("what was done", rng.usize(100..2_000)))),
        _ => summary(SUMMARY),
    }
}

/// What looks like a reference.
fn references(text: &str) -> impl Iterator<Item = &str> {
    let is_of_id = |byte: u8| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte);
    text.match_indices("off_").filter_map(move |(at, _)| {
        let reference = text.get(at..at + 30)?;
        reference.bytes().skip(4).all(is_of_id).then_some(reference)
    })
}

fn assert_honest(result: &CompactionResult, limit: usize) {
    assert_eq!(result.fits, result.current_tokens <= limit, "{limit}: {result:?}");
    assert_eq!(result.success, result.error.is_none(), "{result:?}");
    if !result.fits {
        let error = result.error.as_ref().expect("what does not fit is no success");
        assert_eq!(error.code, Code::ContextOverflow, "{error}");
        assert!(
            error.message.contains("cannot go below") && error.message.contains("largest message"),
            "{error}"
        );
        assert!(error.index.is_some(), "{error}");
    }
    assert_eq!(result.previous_tokens, result.current_tokens + result.freed_tokens);
}

#[test]
fn f1_a_success_fits_whatever_the_preset_the_window_the_pins_and_the_summariser() {
    let (mut fitted, mut overflowed) = (0, 0);
    for seed in 0..cases() {
        let mut rng = Rng::with_seed(seed);
        let window = [1_000, 2_000, 4_000, 8_000, 16_000][rng.usize(..5)];
        let format = Format::ALL[rng.usize(..Format::ALL.len())];
        let options = options(format, window, &mut rng);
        let given = history(format, window, &mut rng);
        let text = options.to_string();
        let settings = Rc::new(
            context_compactor_core::policy::Settings::read(&serde_json::from_str(&text).unwrap()).unwrap(),
        );
        let limit = settings.hard_limit;
        let mut host = Host::new(Rc::<MemoryStore>::default() as _, "host");
        let mut temper = rng.fork();
        host.summarise = Box::new(move |_, _| summariser(&mut temper));
        let pins = rng.usize(2..9);
        host.pinned = Box::new(move |index| index.is_multiple_of(pins));
        let told = format!("seed {seed}, {options}");
        let was_valid = problems(format, &given).unwrap().is_empty();
        let out = |items: &[OutItem], session: Option<&Session>| -> Vec<Body> {
            let own = |item: &OutItem| match (&item.body, session, item.seq) {
                (Some(body), ..) => Rc::clone(body),
                (None, Some(session), Some(seq)) => session.body(seq).unwrap().unwrap(),
                _ => Rc::clone(&given[item.index.unwrap()]),
            };
            items.iter().map(own).collect()
        };
        let result = if rng.bool() {
            let compacted = host.run(Session::compact_once(settings, given.clone())).expect(&told);
            let bodies = out(&compacted.items, None);
            let known: Vec<&str> = given.iter().flat_map(|body| references(body)).collect();
            let new = bodies.iter().flat_map(|body| references(body)).find(|found| !known.contains(found));
            assert_eq!(new, None, "{told}: nobody can read it");
            assert!(compacted.result.retired_refs.is_empty(), "{told}");
            assert!(
                compacted.result.ledger.entries().iter().all(|entry| entry.reference.is_none()),
                "{told}"
            );
            assert!(!was_valid || problems(format, &bodies).unwrap().is_empty(), "{told}: {bodies:#?}");
            compacted.result
        } else {
            let (session, _) = host.run(Session::open(settings, Some("s".into()), 10_000)).expect(&told);
            host.run(session.append(given.clone())).expect(&told);
            let compacted = host.run(session.compact(None)).expect(&told);
            let bodies = out(&compacted.items, Some(&session));
            assert!(!was_valid || problems(format, &bodies).unwrap().is_empty(), "{told}: {bodies:#?}");
            compacted.result
        };
        assert_honest(&result, limit);
        if result.fits { fitted += 1 } else { overflowed += 1 }
    }
    println!("F1: {fitted} fit, {overflowed} do not and say so");
    assert!(fitted > cases() / 3 && overflowed > 0, "{fitted} {overflowed}");
}

#[test]
fn f1_nothing_to_do_is_a_success_in_every_preset() {
    for preset in PRESETS {
        for count in [1, 2] {
            let mut harness = Harness::new(json!({ "preset": preset.name, "format": "openai-chat" }));
            harness.append(&talk(1, 20)[..count]);
            let result = harness.compact();
            assert!(result.success && result.fits && result.error.is_none(), "{}: {result:?}", preset.name);
            assert!(result.reason.is_some() && result.freed_tokens == 0, "{}: {result:?}", preset.name);
        }
    }
}

#[test]
fn f1_a_compaction_by_hand_admits_large_results() {
    for name in ["balanced", "layered"] {
        let mut harness = Harness::new(json!({ "preset": name, "format": "openai-chat" }));
        harness.append(&talk(4, 50));
        harness.append(&exchange(Format::OpenaiChat, "c", &text("word", 50_000)));
        let result = harness.compact();
        assert!(result.success && result.fits, "{name}: {result:?}");
        assert_eq!(result.applied_edits[0].kind, "admit", "{name}");
        assert!(result.previous_tokens > 50_000 && result.current_tokens < 6_000, "{name}: {result:?}");
    }
}
