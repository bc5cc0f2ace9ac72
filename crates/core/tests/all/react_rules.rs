//! Format `react`: reading turns, RT0 and RT1, and sessions over a trajectory (`S2.5`).

use crate::support::rules::*;
use crate::support::{Harness, long};
use context_compactor_core::Code;
use context_compactor_core::context::Fate;
use context_compactor_core::message::{Part, Role};
use context_compactor_core::wire::{Format, compare_trajectories, detect, parse};
use context_compactor_store_tests::conversation::body;
use context_compactor_store_tests::histories;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const FORMAT: Format = Format::React;

fn turn(result: &str) -> Value {
    json!({ "thought": "I look.", "action": { "tool": "read_file", "path": "src/lib.rs" }, "result": result })
}

/// "a", a lone high surrogate, "b" in UTF-16LE.
fn ill_formed() -> Value {
    json!({ "$cc": "utf16", "v": "YQAA2GIA" })
}

#[test]
fn a_turn_is_a_thought_a_call_and_its_result() {
    read(FORMAT, &turn("파일 內容 👩‍👩‍👧 שלום"), |message| {
        assert_eq!(message.role, Role::Assistant);
        assert_eq!(message.text(), "I look.");
        let call = message.calls().next().unwrap();
        assert_eq!((call.name.as_ref(), call.id.as_ref()), ("read_file", "read_file"));
        assert_eq!(call.arguments, r#"{"path":"src/lib.rs","tool":"read_file"}"#);
        let result = message.results().next().unwrap();
        assert_eq!((result.call_id.as_ref(), result.text.as_ref()), ("read_file", "파일 內容 👩‍👩‍👧 שלום"));
    });
    let history = [turn("a"), turn("b"), turn("c")];
    assert_eq!(boundaries(FORMAT, &history), [0, 1, 2, 3], "a turn is whole in itself");
}

#[test]
fn the_tool_is_named_wherever_agents_name_it() {
    let named = [
        (json!({ "tool": "a", "name": "b" }), "a"),
        (json!({ "name": "b", "arguments": {} }), "b"),
        (json!({ "tool_name": "c" }), "c"),
        (json!({ "toolName": "d" }), "d"),
        (json!({ "action": "e", "action_input": "x" }), "e"),
        (json!({ "type": "function", "function": { "name": "f", "arguments": "{}" } }), "f"),
        (json!({ "type": "finish" }), "finish"),
        (json!({ "tool": { "name": "g" } }), "g"),
        (json!({}), "action"),
        (json!({ "tool": ill_formed() }), "a\u{FFFD}b"),
    ];
    for (action, name) in named {
        let turn = json!({ "thought": "", "action": action, "result": "" });
        read(FORMAT, &turn, |message| {
            assert_eq!(message.calls().next().unwrap().name, name);
            assert!(
                !message.parts.iter().any(|part| matches!(part, Part::Text(_))),
                "an empty thought is none"
            );
        });
    }
    read(FORMAT, &json!({ "thought": "", "action": { "id": "c1", "tool": "x" }, "result": "" }), |message| {
        assert_eq!(message.results().next().unwrap().call_id, "c1");
    });
}

#[test]
fn rt0_what_cannot_be_read_is_named_by_its_field() {
    let bad = [
        (json!({ "thought": 1, "action": {}, "result": "" }), "thought"),
        (json!({ "thought": "", "action": "Search[x]", "result": "" }), "action"),
        (json!({ "thought": "", "action": [], "result": "" }), "action"),
        (json!({ "thought": "", "action": {}, "result": { "rows": [] } }), "result"),
        (json!({ "thought": "", "action": {}, "result": ["a"] }), "result"),
        (json!({ "x": 1 }), ""),
    ];
    for (turn, field) in bad {
        with(std::slice::from_ref(&turn), |messages| {
            let error = FORMAT.wire().read(3, &messages[0]).unwrap_err();
            assert_eq!((error.code, error.index), (Code::InvalidMessage, Some(3)));
            assert_eq!(error.field.as_deref().unwrap_or_default(), field, "{error}");
        });
    }
}

#[test]
fn a_valid_trajectory_breaks_nothing() {
    let mut extra = turn("x");
    extra["observation_id"] = json!(7);
    extra["$x"] = json!({ "$cc": "bytes", "v": "AAAA" });
    let history = [turn("a"), extra, json!({ "thought": "", "action": {}, "result": "" })];
    assert_eq!(broken_strictly(FORMAT, &history), []);
    assert_eq!(repaired(FORMAT, &history), history);
}

#[test]
fn rt1_a_missing_field_is_put_in_empty() {
    let cases = [
        (
            json!({ "action": {}, "result": "r", "x": 1 }),
            json!({ "action": {}, "result": "r", "x": 1, "thought": "" }),
        ),
        (json!({ "thought": "t", "result": "r" }), json!({ "thought": "t", "result": "r", "action": {} })),
        (
            json!({ "thought": "t", "action": { "tool": "x" }, "result": null }),
            json!({ "thought": "t", "action": { "tool": "x" }, "result": "" }),
        ),
        (
            json!({ "thought": "t", "action": {}, "result": { "$cc": "undefined" } }),
            json!({ "thought": "t", "action": {}, "result": "" }),
        ),
    ];
    for (bad, good) in cases {
        let history = [turn("a"), bad];
        assert_eq!(broken(FORMAT, &history), [("RT1", 1)]);
        assert_eq!(repaired(FORMAT, &history), [turn("a"), good]);
    }
    assert_eq!(broken(FORMAT, &[json!({ "x": 1 })]), [("RT1", 0), ("RT1", 0), ("RT1", 0)]);
}

#[test]
fn rt0_s2_5_a_broken_turn_is_mended_and_never_taken_out() {
    let history = [
        json!({ "thought": { "plan": [1] }, "action": "Search[x]", "result": [1, { "a": "b" }], "mine": true }),
        json!({ "thought": ill_formed(), "action": { "q": ill_formed() }, "result": ill_formed() }),
        json!({ "$cc": "date", "v": "2026-01-01" }),
        turn("kept"),
    ];
    assert_eq!(broken(FORMAT, &history), [("RT0", 0), ("RT0", 0), ("RT0", 0), ("RT0", 1), ("RT0", 2)]);
    assert_eq!(
        repaired(FORMAT, &history),
        [
            json!({ "thought": "{\"plan\":[1]}", "action": { "input": "Search[x]" }, "result": "[1,{\"a\":\"b\"}]", "mine": true }),
            json!({ "thought": "a\u{FFFD}b", "action": { "q": "a\u{FFFD}b" }, "result": "a\u{FFFD}b" }),
            json!({ "thought": "", "action": {}, "result": "\"2026-01-01\"" }),
            turn("kept"),
        ]
    );
}

#[test]
fn rt1_before_and_after_can_be_compared() {
    let compare = |before: &[Value], after: &[Value]| {
        with(before, |before| with(after, |after| compare_trajectories(before, after)))
            .into_iter()
            .map(|problem| (problem.rule, problem.index))
            .collect::<Vec<_>>()
    };
    let before = [turn("a"), turn("b"), turn("c")];
    assert_eq!(compare(&before, &[turn("a"), turn("shorter"), turn("")]), []);
    assert_eq!(compare(&before, &before[..2]), [("RT1", 2)]);
    assert_eq!(compare(&before[..2], &before), [("RT1", 2)]);
    let mut after = before.clone();
    after[0]["thought"] = json!("I do not.");
    after[2]["action"]["path"] = json!("src/main.rs");
    assert_eq!(compare(&before, &after), [("RT1", 0), ("RT1", 2)]);
}

#[test]
fn the_result_alone_is_edited() {
    let mut with_more = turn("old");
    with_more["x"] = json!({ "deep": [1, null] });
    with(&[with_more.clone(), json!({ "thought": "t", "action": {} })], |messages| {
        let rules = FORMAT.rules();
        let edited: Value =
            serde_json::from_str(&rules.with_result_text(&messages[0], 0, "$& 👩‍👩‍👧").unwrap()).unwrap();
        let mut expected = with_more;
        expected["result"] = json!("$& 👩‍👩‍👧");
        assert_eq!(edited, expected);
        assert!(rules.with_result_text(&messages[0], 1, "x").is_none());
        assert!(rules.with_result_text(&messages[1], 0, "x").is_none(), "there is no result");
    });
}

#[test]
fn detection_asks_for_a_thought_and_an_action() {
    let format = |history: &[Value]| with(history, |messages| detect(messages).ok());
    assert_eq!(format(&[turn("a")]), Some(Format::React));
    assert_eq!(
        format(&[turn("a"), json!({ "thought": "", "action": {}, "result": null })]),
        Some(Format::React)
    );
    assert_eq!(format(&[json!({ "role": "user", "content": "hi" })]), Some(Format::OpenaiChat));
    assert_eq!(
        format(&[json!({ "role": "user", "thought": "", "action": {}, "result": "" })]),
        Some(Format::OpenaiChat)
    );
    assert_eq!(
        format(&[json!({ "type": "computer_call", "call_id": "a", "action": { "type": "wait" } })]),
        Some(Format::OpenaiResponses)
    );
    assert_eq!(format(&[turn("a"), json!({ "role": "user", "content": "hi" })]), None);
    assert_eq!(format(&[json!({ "thought": "t", "result": "r" })]), Some(Format::React));
    assert_eq!(format(&[json!({ "result": "r" })]), None, "anything has results");
}

#[test]
fn fifty_thousand_broken_turns_take_linear_time() {
    let pattern = [json!({ "thought": 1, "action": [] }), json!({ "result": ill_formed() }), turn("x")];
    let history: Vec<Value> = pattern.iter().cycle().take(50_000).cloned().collect();
    let start = Instant::now();
    assert_eq!(repaired(FORMAT, &history).len(), history.len());
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn what_is_damaged_is_mended_for_good() {
    mends_what_is_damaged(FORMAT);
}

#[test]
fn generated_trajectories_are_valid_and_say_what_they_are() {
    for seed in 0..500 {
        let history = histories::valid(FORMAT, &mut fastrand::Rng::with_seed(seed));
        assert!((2..=30).contains(&history.len()), "seed {seed}: {}", history.len());
        assert_eq!(problems(FORMAT, &history, false), [], "seed {seed}");
        assert_eq!(with(&history, detect).unwrap(), FORMAT, "seed {seed}");
    }
}

/// Sessions that have a trajectory.
mod sessions {
    use super::*;

    fn trajectory(turns: usize) -> Vec<Value> {
        (0..turns).map(|nth| turn(&long(&format!("result {nth}"), 300))).collect()
    }

    fn harness(over: Value, turns: &[Value]) -> Harness {
        let mut harness = Harness::new(over);
        harness.append(&turns.iter().map(body).collect::<Vec<_>>());
        harness
    }

    fn kept(before: &[Value], after: &[Value]) {
        let problems = with(before, |before| with(after, |after| compare_trajectories(before, after)));
        assert_eq!(problems, []);
    }

    #[test]
    fn rt1_offloading_touches_results_only() {
        let turns = trajectory(8);
        let mut harness = harness(json!({ "compactAt": { "tokens": 1_000 } }), &turns);
        let sent = harness.sent();
        kept(&turns, &sent);
        assert!(sent[0]["result"].as_str().unwrap().starts_with("Tool result is at: off_"), "{}", sent[0]);
        assert_eq!(sent[4..], turns[4..], "the newer half stays");
        let reference = harness.session.explain().unwrap()[0].reference.clone().unwrap();
        assert_eq!(harness.read(&reference), turns[0]["result"].as_str().unwrap());
    }

    #[test]
    fn s2_5_a_compaction_removes_no_turn_and_says_so() {
        let turns = trajectory(12);
        let mut harness = harness(json!({}), &turns);
        let result = harness.compact();
        assert!(result.success && result.summary.is_none() && result.freed_tokens == 0);
        assert!(result.reason.unwrap().contains("react"));
        assert_eq!(harness.sent(), turns);
        assert!(harness.host.seen.requests.is_empty(), "no model is asked");
    }

    #[test]
    fn s2_5_prepare_sends_every_turn_also_a_broken_one() {
        let mut turns = trajectory(3);
        turns[1].as_object_mut().unwrap().remove("result");
        let mut harness = harness(json!({}), &turns);
        let sent = harness.sent();
        kept(&turns, &sent);
        assert_eq!(sent[1]["result"], "");
        let ledger = harness.session.explain().unwrap();
        assert_eq!((ledger.len(), ledger[1].fate), (3, Fate::Reduced));
        assert!(ledger[1].reason.as_deref().unwrap().contains("RT1"));
    }

    #[test]
    fn other_formats_cannot_follow_a_trajectory() {
        let mut harness = harness(json!({}), &trajectory(1));
        let message = body(&json!({ "role": "user", "content": "hi" }));
        let error = harness.host.run(harness.session.append(vec![message])).unwrap_err();
        assert_eq!((error.code, error.index), (Code::InvalidMessage, Some(0)));
    }

    #[test]
    fn texts_of_the_app_are_counted_as_turns() {
        let wire = FORMAT.wire();
        let json = wire.text_message(context_compactor_core::wire::Author::User, "Be brief.", "", None);
        let value = parse(0, &json).unwrap();
        assert_eq!(wire.read(0, &value).unwrap().text(), "Be brief.");
        assert_eq!(FORMAT.rules().validate(&[value], true), []);
    }
}
