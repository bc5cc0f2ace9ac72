//! What compressing results does about each of them (`S2.11`). Sizes are characters.

use crate::support::*;
use context_compactor_core::step::{Event, Purpose};
use context_compactor_core::summary::SummaryRequest;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{assistant, calls, results, user};
use context_compactor_store_tests::host::{summary, thrown};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

fn asked(request: &SummaryRequest) -> usize {
    let asked = request.system.rsplit_once("at most ").unwrap().1;
    asked.split(' ').next().unwrap().parse().unwrap()
}

/// A summariser that writes as many characters as it is asked for.
fn obedient(request: &SummaryRequest, _: u32) -> Event {
    summary(&"s".repeat(asked(request)))
}

/// Compresses everything of some size at once.
fn react(over: Value) -> Harness {
    let mut group = json!({ "globalCompressionThreshold": 0.05, "modelContextLimit": 200_000 });
    merge(&mut group, &over);
    let options = json!({
        "preset": "react", "contextWindow": 200_000, "summarize": { "attempts": 1, "concurrency": 1 },
        "presetOptions": group,
    });
    let mut harness = Harness::new(options);
    harness.host.summarise = Box::new(obedient);
    harness
}

fn tool(harness: &mut Harness, format: Format, path: &str, text: &str) {
    harness.append(&[user("look")]);
    let id = format!("call_{path}");
    harness.append(&calls(format, &[(&id, path)]));
    harness.append(&results(format, &[(&id, text)]));
    harness.append(&[assistant("I see.")]);
}

fn shown(harness: &mut Harness, format: Format) -> Vec<String> {
    let sent = harness.sent();
    assert_valid(format, &sent);
    sent.iter().filter_map(|message| result_text(format, message)).collect()
}

fn log(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, nth| {
        let level = if nth % 400 == 300 { "ERROR 연결 실패" } else { "INFO served" };
        let _ = writeln!(text, "2026-11-22T02:43:{:02}Z {level} {nth}", nth % 60);
        text
    })
}

#[test]
fn s2_11_content_that_is_known_needs_no_model_in_both_layers() {
    for format in FORMATS {
        let mut harness = react(json!({}));
        let (small, large) = (log(600), log(3_000));
        assert!(small.chars().count() < 50_000 && large.chars().count() > 50_000);
        tool(&mut harness, format, "a.log", &small);
        tool(&mut harness, format, "b.log", &large);
        tool(&mut harness, format, "notes", &"prose ".repeat(1_500));
        let shown = shown(&mut harness, format);
        assert_eq!(harness.host.seen.purposes, [Purpose::Result], "prose alone is asked for");
        assert!(
            shown[0].starts_with("[log: 600 lines, 1 of errors") && shown[0].contains("연결 실패 300"),
            "{}",
            shown[0]
        );
        assert!(shown[1].starts_with("[log: 3000 lines, 7 of errors"), "{}", shown[1]);
        assert!(shown[0].chars().count() * 10 <= small.chars().count());
        assert!(shown[1].chars().count() * 10 <= large.chars().count());
        assert_eq!(shown[2].chars().count(), 900);
        let entry =
            harness.session.explain().unwrap().into_iter().find(|entry| entry.reference.is_some()).unwrap();
        assert_eq!(harness.read(&entry.reference.unwrap()), small, "the original is kept");
        let said = |with: &str| harness.host.seen.logs.iter().any(|(_, line)| line.contains(with));
        assert!(said("chars), shaped as log without a model") && said("results compressed, total size"));
    }
}

#[test]
fn s2_11_strategies_can_be_switched_off() {
    let mut harness = react(json!({ "strategies": false }));
    tool(&mut harness, FORMATS[0], "a.log", &log(600));
    assert!(shown(&mut harness, FORMATS[0])[0].starts_with("sss"));
    assert_eq!(harness.host.seen.purposes, [Purpose::Result]);
}

#[test]
fn s2_11_what_is_compressed_is_never_compressed_again() {
    // What is left of the first is still larger than the least size.
    let mut harness = react(json!({ "globalRatio": 0.9 }));
    tool(&mut harness, FORMATS[0], "a", &"a".repeat(20_000));
    assert_eq!(shown(&mut harness, FORMATS[0])[0].len(), 18_000);
    for nth in 0..3 {
        tool(&mut harness, FORMATS[0], &format!("b{nth}"), &"b".repeat(6_000 + nth));
        assert_eq!(shown(&mut harness, FORMATS[0])[0].len(), 18_000);
    }
    assert_eq!(harness.host.seen.purposes.len(), 4);
}

#[test]
fn s2_11_a_text_that_was_compressed_before_is_taken_over_without_a_call() {
    for (size, calls) in [(9_000, 1), (60_000, 2)] {
        let mut harness = react(json!({}));
        let text = format!("{}🇩🇪", "word ".repeat(size / 5));
        tool(&mut harness, FORMATS[1], "a", &text);
        let first = shown(&mut harness, FORMATS[1]);
        assert_eq!(harness.host.seen.purposes.len(), calls);
        tool(&mut harness, FORMATS[1], "again", &text);
        let both = shown(&mut harness, FORMATS[1]);
        assert_eq!(harness.host.seen.purposes.len(), calls, "no call more");
        assert_eq!(both, [first[0].clone(), first[0].clone()]);
        // Opened again, it is still known: the context says it.
        let mut other = Harness::over(
            harness.memory.clone(),
            "b",
            json!({
                "preset": "react", "contextWindow": 200_000,
                "presetOptions": { "globalCompressionThreshold": 0.05, "modelContextLimit": 200_000 },
            }),
        );
        tool(&mut other, FORMATS[1], "thrice", &text);
        assert_eq!(shown(&mut other, FORMATS[1])[2], first[0]);
        assert!(other.host.seen.purposes.is_empty());
    }
}

#[test]
fn s2_11_a_text_whose_call_failed_is_not_taken_over() {
    let mut harness = react(json!({}));
    harness.host.summarise = Box::new(|_, _| thrown("down", None));
    let text = "word ".repeat(12_000);
    tool(&mut harness, FORMATS[0], "a", &text);
    assert!(shown(&mut harness, FORMATS[0])[0].contains("cut here"));
    harness.host.summarise = Box::new(obedient);
    tool(&mut harness, FORMATS[0], "b", &text);
    assert!(shown(&mut harness, FORMATS[0])[1].starts_with("[Part 1/2]\nsss"));
}

#[test]
fn s2_11_what_later_turns_rely_on_gets_twice_the_room() {
    let text = format!("{} see src/store/lock.rs", "word ".repeat(2_000));
    for (later, ratio, expected) in [
        // Named by the result first, and taken up: in a text, or by a call.
        (vec![assistant("The lock is taken in src/store/lock.rs.")], 0.1, 2_004),
        (calls(FORMATS[0], &[("x", "src/store/lock.rs")]), 0.1, 2_004),
        // What the call named.
        (vec![assistant("Now I change docs/plan.md.")], 0.1, 2_004),
        // Up to 30 % and no less than was asked for.
        (vec![assistant("Now I change docs/plan.md.")], 0.2, 3_006),
        (vec![assistant("Now I change docs/plan.md.")], 0.4, 4_008),
        // Nothing of it, or the same call made again.
        (vec![assistant("Nothing to see in src/other.rs.")], 0.1, 1_002),
        (calls(FORMATS[0], &[("x", "docs/plan.md")]), 0.1, 1_002),
    ] {
        let mut harness = react(json!({ "globalRatio": ratio, "globalCompressionThreshold": 0.99 }));
        tool(&mut harness, FORMATS[0], "docs/plan.md", &text);
        let answered = later[0].contains("tool_calls");
        harness.append(&later);
        if answered {
            harness.append(&results(FORMATS[0], &[("x", "done")]));
        }
        harness.compact();
        assert_eq!(asked(&harness.host.seen.requests[0].0), expected, "{later:?} {ratio}");
    }
}

#[test]
fn s2_11_relied_on_is_an_option() {
    let mut harness = react(json!({ "relianceRatio": 0.15, "globalCompressionThreshold": 0.99 }));
    tool(&mut harness, FORMATS[0], "docs/plan.md", &"word ".repeat(2_000));
    harness.append(&[assistant("Now I change docs/plan.md.")]);
    harness.compact();
    assert_eq!(asked(&harness.host.seen.requests[0].0), 1_500);
}

/// What a pass over six results asks for, when each answer is `over` times as long as asked for.
fn pass(over: f64, options: Value) -> Vec<usize> {
    let mut harness = react(options);
    let seen: Rc<RefCell<Vec<usize>>> = Rc::default();
    let asks = Rc::clone(&seen);
    harness.host.summarise = Box::new(move |request, _| {
        asks.borrow_mut().push(asked(request));
        summary(&"s".repeat((asked(request) as f64 * over) as usize))
    });
    for nth in 0..6 {
        tool(&mut harness, FORMATS[0], &format!("p{nth}"), &format!("{nth}").repeat(10_000));
    }
    harness.prepare();
    seen.take()
}

#[test]
fn s2_11_less_is_asked_for_when_answers_are_longer_than_asked_for() {
    let asks = pass(1.25, json!({}));
    assert_eq!(asks, [1_000, 800, 800, 800, 800, 800], "1,000 are answered from then on");
    assert_eq!(pass(4.0, json!({}))[1..], [500; 5], "and never less than half");
    assert_eq!(pass(0.5, json!({})), [1_000; 6], "short answers are no reason to ask for more");
    assert_eq!(pass(4.0, json!({ "strategies": false })), [1_000; 6]);
}

#[test]
fn f39_s2_11_where_little_room_is_left_for_a_shape_a_model_says_more() {
    let rows: Vec<Value> = (0..300).map(|nth| json!({ "id": nth, "state": "open" })).collect();
    let text = json!(rows).to_string();
    for (ratio, asked) in [(0.02, 1), (0.1, 0)] {
        let mut harness = react(json!({ "globalRatio": ratio, "globalCompressionThreshold": 0.01 }));
        tool(&mut harness, FORMATS[0], "rows.json", &text);
        let shown = shown(&mut harness, FORMATS[0]);
        assert_eq!(harness.host.seen.purposes.len(), asked, "{ratio}: {shown:?}");
        assert!(shown[0].len() * 5 < text.len(), "{ratio}");
    }
}
