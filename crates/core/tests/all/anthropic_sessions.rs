//! Sessions over messages of the Messages API.

use crate::anthropic_rules::{compaction, gets, programmatic, says, signed_compaction, text, thinking};
use crate::support::*;
use context_compactor_core::context::Fate;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, body, user};
use context_compactor_store_tests::histories;
use fastrand::Rng;
use serde_json::{Value, json};

const FORMAT: Format = Format::Anthropic;

/// Breakpoints of a message, by their places.
fn marks(message: &Value) -> Vec<String> {
    fn within(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if fields.get("cache_control").is_some_and(|mark| !mark.is_null()) {
                    found.push(path.to_owned());
                }
                fields.iter().for_each(|(key, field)| within(field, &format!("{path}.{key}"), found));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, item)| within(item, &format!("{path}[{at}]"), found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    within(message, "", &mut found);
    found
}

// lesson: cache destroyed
#[test]
fn an6_no_edit_of_ours_multiplies_cache_control() {
    let (mut offloaded, mut summarised) = (0, 0);
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        let history = histories::valid(FORMAT, &mut rng);
        let before: Vec<Vec<String>> = history.iter().map(marks).collect();
        assert!(before.iter().flatten().count() <= 4);
        let options = json!({
            "format": "anthropic", "compactAt": { "tokens": rng.usize(50..2_000) },
            "keep": { "messages": rng.usize(1..6) },
            "presetOptions": { "scanRatio": 1.0, "compactTriggerThreshold": rng.usize(1..4_000) },
        });
        let mut harness = Harness::new(options);
        harness.append(&history.iter().map(body).collect::<Vec<Body>>());
        let mut sent = harness.sent();
        if rng.bool() {
            harness.compact();
            sent = harness.sent();
        }
        assert_valid(FORMAT, &sent);
        let ledger = harness.session.explain().unwrap();
        offloaded += usize::from(ledger.iter().any(|entry| entry.fate == Fate::Offloaded));
        summarised += usize::from(ledger.iter().any(|entry| entry.fate == Fate::Summarised));
        // What is sent has no more breakpoints than what is kept had, and ours has none.
        let kept: usize = ledger
            .iter()
            .filter(|entry| !matches!(entry.fate, Fate::Summarised | Fate::Dropped))
            .map(|entry| before[entry.index].len())
            .sum();
        assert_eq!(sent.iter().flat_map(marks).count(), kept, "seed {seed}: {ledger:?}");
        let ours = |message: &&Value| {
            message["content"].as_str().is_some_and(|text| text.starts_with("[Compressed History]"))
        };
        assert!(sent.iter().filter(ours).all(|message| marks(message).is_empty()));
    }
    assert!(offloaded > 50 && summarised > 50, "{offloaded} offloaded, {summarised} summarised");
}

#[test]
fn an6_of_a_mark_in_every_turn_the_newest_four_are_sent() {
    let marked = |nth: usize, role: &str| {
        let mark = json!({ "type": "ephemeral" });
        let block =
            json!({ "type": "text", "text": long(&format!("{role} {nth}"), 60), "cache_control": mark });
        body(&json!({ "role": role, "content": [block] }))
    };
    let mut harness = Harness::new(json!({ "format": "anthropic" }));
    for nth in 0..8 {
        harness.append(&[marked(nth, "user"), marked(nth, "assistant")]);
    }
    let places = |sent: &[Value]| -> Vec<usize> {
        (0..sent.len()).filter(|at| !marks(&sent[*at]).is_empty()).collect()
    };
    assert_eq!(places(&harness.sent()), [12, 13, 14, 15]);
    assert!(harness.compact().success);
    let sent = harness.sent();
    assert!(sent.len() < 16, "a summary and what was kept");
    assert_eq!(places(&sent), (sent.len() - 4..sent.len()).collect::<Vec<_>>());
}

#[test]
fn an7_a_compaction_block_stays_where_it_is_when_what_follows_is_summarised() {
    let mut harness = Harness::new(json!({ "format": "anthropic" }));
    let first = says(&[signed_compaction()]);
    harness.append(&[body(&first)]);
    harness.append(&talk(6, 60));
    assert!(harness.compact().success);
    let sent = harness.sent();
    assert_eq!(sent[0], first);
    assert!(sent[1]["content"].as_str().unwrap().starts_with("[Compressed History]"));
    assert_valid(FORMAT, &sent);
    assert_eq!(harness.session.explain().unwrap()[0].fate, Fate::Verbatim);
}

#[test]
fn an3_a_compaction_keeps_code_with_the_calls_that_it_made() {
    for keep in 1..=6 {
        let mut harness = Harness::new(json!({ "keep": { "messages": keep } }));
        harness.append(&talk(3, 80));
        harness.append(&programmatic().iter().map(body).collect::<Vec<_>>());
        assert!(harness.compact().success, "keep {keep}");
        let sent = harness.sent();
        assert_valid(FORMAT, &sent);
        let made = sent.iter().filter(|message| message.to_string().contains("tool_id")).count();
        assert!(made == 0 || made == 2, "keep {keep}: {made}");
    }
}

fn thinks(message: &Value) -> bool {
    message.to_string().contains("\"signature\"")
}

fn thinking_turns(count: usize) -> Vec<Body> {
    let turn = |nth: usize| {
        let call = json!({ "type": "tool_use", "id": "a", "name": "query", "input": {} });
        let result = json!({ "type": "tool_result", "tool_use_id": "a", "content": long(&format!("result {nth}"), 200) });
        [
            user(&format!("question {nth}")),
            body(&says(&[thinking(), call])),
            body(&gets(&[result])),
            body(&says(&[thinking(), text("Done.")])),
        ]
    };
    (0..count).flat_map(turn).collect()
}

// lesson: cache destroyed
#[test]
fn an8_with_drop_block_the_thinking_behind_an_edit_stays_on_the_wire() {
    for (behavior, stays) in [("error", false), ("drop_block", true)] {
        let options = json!({
            "advanced": { "prefixMismatchBehavior": behavior }, "compactAt": { "tokens": 500 },
            "presetOptions": { "compactTriggerThreshold": 1 },
        });
        let mut harness = Harness::new(options);
        harness.append(&thinking_turns(4));
        let history = harness.stored().messages.len();
        let sent = harness.sent();
        assert_eq!(sent.len(), history, "results were offloaded, nothing summarised");
        assert!(harness.session.explain().unwrap().iter().any(|entry| entry.fate == Fate::Offloaded));
        assert_eq!(
            sent.iter().filter(|message| thinks(message)).count(),
            if stays { 8 } else { 1 },
            "{behavior}"
        );
        assert!(harness.compact().success);
        let sent = harness.sent();
        assert_eq!(thinks(sent.last().unwrap()), stays, "{behavior}");
        assert_valid(FORMAT, &sent);
    }
}

#[test]
fn f39_an7_where_the_providers_own_compaction_may_not_begin_the_user_does() {
    let mut harness = Harness::new(json!({ "keep": { "messages": 2 } }));
    let compacted = says(&[text("Going on."), compaction()]);
    let mut history = vec![crate::anthropic_rules::user(&long("question", 400)), compacted.clone()];
    for nth in 0..6 {
        history.extend([
            crate::anthropic_rules::user(&long(&format!("more {nth}"), 100)),
            says(&[text("Yes.")]),
        ]);
    }
    harness.append(&history.iter().map(body).collect::<Vec<_>>());
    assert!(harness.compact().success);
    let context = harness.context();
    assert_eq!((&context[0]["role"], &context[1]), (&json!("user"), &compacted));
    assert_valid(FORMAT, &context);
    assert_eq!(harness.sent(), context, "what is counted is what is sent");
}

#[test]
fn an8_the_option_has_two_values() {
    let text = json!({ "advanced": { "prefixMismatchBehavior": "ignore" } }).to_string();
    let value = serde_json::from_str(&text).unwrap();
    let error = context_compactor_core::policy::Settings::read(&value).unwrap_err();
    assert_eq!(error.field.as_deref(), Some("advanced.prefixMismatchBehavior"));
}
