//! What a provider counted (`recordUsage`): the estimate of the whole prompt goes on from it.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::ContextUsage;
use context_compactor_core::step::Event;
use context_compactor_store_tests::conversation::{assistant, user};
use serde_json::json;

fn reported(tokens: usize) -> String {
    json!({ "inputTokens": tokens, "outputTokens": 10 }).to_string()
}

fn usage(harness: &Harness) -> ContextUsage {
    harness.session.usage().unwrap()
}

fn used(harness: &Harness) -> usize {
    usage(harness).used_tokens
}

/// Closes the session as the app does, and opens it again.
fn reopen(mut harness: Harness, over: serde_json::Value) -> Harness {
    harness.host.run(harness.session.keep_usage()).unwrap();
    harness.session.close();
    Harness::over(harness.memory, "b", over)
}

#[test]
fn the_prompt_costs_what_was_reported_and_what_comes_after_is_added() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(2, 100));
    harness.append(&[user("next")]);
    let estimated = harness.prepare().usage.used_tokens;
    assert!(harness.session.record_usage(&reported(estimated + 1_000), None).unwrap());
    let after = usage(&harness);
    assert_eq!(after.used_tokens, estimated + 1_000);
    let correction = after.correction.unwrap();
    assert_eq!((correction.overhead, correction.factor, correction.anchored), (1_000, 1.0, true));
    assert_eq!(after.categories.iter().map(|part| part.tokens).sum::<usize>(), 8_000, "they are the window");
    let overhead = after.categories.iter().find(|part| part.name == "overhead").unwrap();
    assert_eq!(overhead.tokens, 1_000);
    let before = harness.session.active().unwrap().token_count;
    harness.append(&[assistant(&long("answer", 200))]);
    assert_eq!(
        used(&harness) - after.used_tokens,
        harness.session.active().unwrap().token_count.recent - before.recent
    );
}

#[test]
fn a_prompt_that_goes_on_does_not_cost_half_of_the_one_before() {
    let mut harness = Harness::new(json!({ "contextWindow": 200_000 }));
    harness.append(&talk(4, 1_000));
    harness.prepare();
    assert!(harness.session.record_usage(&reported(10_000), None).unwrap());
    harness.append(&talk(1, 500));
    let estimated = harness.prepare().usage.used_tokens;
    // What an API says that leaves out the tokens it read from its cache.
    assert!(!harness.session.record_usage(&reported(4_000), None).unwrap());
    assert_eq!(used(&harness), estimated, "it goes on from what was learned before");
    harness.append(&talk(1, 500));
    harness.prepare();
    assert!(harness.session.record_usage(&reported(8_000), None).unwrap(), "somewhat less may be");
    assert_eq!(used(&harness), 8_000);
}

#[test]
fn a_usage_that_comes_behind_the_answer_is_of_the_prompt_before_it() {
    for prepares in [true, false] {
        let mut harness = Harness::new(json!({}));
        harness.append(&[user(&long("question", 300))]);
        let estimated = if prepares { harness.prepare().usage.used_tokens } else { used(&harness) };
        harness.append(&[assistant(&long("answer", 100))]);
        let with_answer = used(&harness);
        assert!(harness.session.record_usage(&reported(estimated + 500), None).unwrap());
        assert_eq!(used(&harness), with_answer + 500, "prepares: {prepares}");
    }
}

#[test]
fn the_trigger_goes_by_it() {
    let mut harness = Harness::new(json!({ "compactAt": { "tokens": 3_000 } }));
    harness.append(&talk(10, 100));
    let before = harness.prepare();
    assert!(before.result.is_none() && before.usage.used_tokens < 2_500);
    assert!(harness.session.record_usage(&reported(4_000), None).unwrap());
    harness.append(&[user("next")]);
    let plan = harness.host.run(harness.session.plan()).unwrap();
    assert!(plan.will_compact && plan.tokens > 4_000, "{plan:?}");
    let after = harness.prepare();
    assert!(after.result.unwrap().success);
    // The overhead stays, the position goes.
    assert!((1_500..3_000).contains(&after.usage.used_tokens), "{:?}", after.usage);
    assert!(!after.usage.correction.unwrap().anchored);
}

#[test]
fn it_survives_reopening_rewinding_and_compaction() {
    let over = json!({ "model": "m" });
    let mut harness = Harness::new(over.clone());
    harness.append(&talk(10, 100));
    let estimated = harness.prepare().usage.used_tokens;
    harness.session.record_usage(&reported(estimated + 1_000), None).unwrap();
    let mut harness = reopen(harness, over.clone());
    assert_eq!(used(&harness), estimated + 1_000);
    harness.host.run(harness.session.rewind(2)).unwrap();
    let rewound = used(&harness);
    assert!((1_000..1_500).contains(&rewound), "{rewound}");
    harness.host.run(harness.session.rewind(18)).unwrap();
    assert!((rewound + 500..estimated + 1_000).contains(&used(&harness)));
    harness.compact();
    let compacted = used(&harness);
    let harness = reopen(harness, over);
    assert_eq!(used(&harness), compacted);
    assert_eq!(usage(&harness).correction.unwrap().overhead, 1_000);
    assert!(harness.stored().messages.len() == 20);
}

#[test]
fn it_is_stored_with_the_next_append() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(2, 100));
    harness.prepare();
    harness.session.record_usage(&reported(2_000), None).unwrap();
    harness.append(&[user("next")]);
    let now = used(&harness);
    // The process dies.
    let again = Harness::over(harness.memory, "b", json!({}));
    assert_eq!(used(&again), now);
}

#[test]
fn models_are_told_apart_and_a_fork_begins_with_what_its_parent_knows() {
    let mut harness = Harness::new(json!({ "model": "one" }));
    harness.append(&talk(2, 100));
    let estimated = harness.prepare().usage.used_tokens;
    harness.session.record_usage(&reported(2_000), None).unwrap();
    let forked = harness.host.run(harness.session.fork(None)).unwrap().0;
    assert_eq!(forked.usage().unwrap().used_tokens, 2_000);
    harness.prepare();
    harness.session.record_usage(&reported(3_000), Some("two".into())).unwrap();
    assert_eq!(used(&harness), 3_000);
    assert_eq!(usage(&harness).correction.unwrap().model.as_deref(), Some("two"));
    let harness = reopen(harness, json!({ "model": "one" }));
    assert_eq!(used(&harness), 2_000);
    let harness = reopen(harness, json!({ "model": "three" }));
    assert_eq!((used(&harness), usage(&harness).correction), (estimated, None));
}

/// Lower and upper bound.
fn bounds(harness: &Harness) -> (usize, usize) {
    let ContextUsage { used_tokens, low, high, .. } = usage(harness);
    assert!(low <= used_tokens && used_tokens <= high, "{low} {used_tokens} {high}");
    (low, high)
}

fn calibrated() -> serde_json::Value {
    json!({ "contextWindow": 100_000, "advanced": { "estimator": "calibrated" } })
}

#[test]
fn p25_what_was_reported_is_no_estimate_and_what_comes_after_is_bounded_by_the_session() {
    let mut harness = Harness::new(calibrated());
    assert_eq!(bounds(&harness), (0, 0));
    harness.append(&talk(20, 100));
    let estimated = harness.prepare().usage.used_tokens;
    let (low, high) = bounds(&harness);
    let whole = high - low;
    assert!(low < estimated && whole > estimated / 20, "{low} {estimated} {high}");
    harness.session.record_usage(&reported(estimated + 500), None).unwrap();
    assert_eq!(bounds(&harness), (estimated + 500, estimated + 500));
    // The same text again and again, which costs a little more than it is estimated at.
    let mut widths = Vec::new();
    for _ in 0..12 {
        let before = used(&harness);
        harness.append(&talk(2, 100));
        let more = harness.prepare().usage.used_tokens - before;
        let (low, high) = bounds(&harness);
        assert!(low > before && high - low < whole, "{before} {low} {high}");
        widths.push(high - low);
        harness.session.record_usage(&reported(before + more + 1), None).unwrap();
        assert_eq!(bounds(&harness), (before + more + 1, before + more + 1));
    }
    assert!(widths.is_sorted_by(|one, next| one >= next), "{widths:?}");
    assert!(widths[11] * 3 < widths[0] * 2, "{widths:?}");
    harness.append(&talk(2, 100));
    let known = bounds(&harness);
    let mut harness = reopen(harness, calibrated());
    assert_eq!(bounds(&harness), known, "it is stored");
    harness.prepare();
    assert_eq!(bounds(&harness), known);
    // What a compaction leaves was never counted as it stands.
    assert!(harness.compact().success);
    let (low, high) = bounds(&harness);
    assert!((high - low) * 20 > used(&harness), "{low} {high}");
}

#[test]
fn p25_the_system_prompt_and_the_tools_are_bounded_too() {
    let mut harness = Harness::new(calibrated());
    harness.append(&[user("hello")]);
    harness.prepare();
    let (low, high) = bounds(&harness);
    let prompt = "You answer in one sentence, and you name the file. ".repeat(200);
    harness.host.run(harness.session.prepare(Trigger::Auto, vec![prompt])).unwrap();
    let (long_low, long_high) = bounds(&harness);
    assert!(long_low > low && long_high - long_low > high - low);
    assert!((long_high - long_low) * 4 < used(&harness), "{long_low} {long_high}: a text, not a rule");
}

#[test]
fn p26_the_apps_own_counter_is_taken_at_its_word() {
    let mut harness = Harness::new(json!({ "tokenCounter": true }));
    harness.host.count = Box::new(|_, _| Event::Number(700.0));
    harness.append(&talk(3, 100));
    assert_eq!(bounds(&harness), (4_200, 4_200));
}

#[test]
fn the_apps_own_counter_is_never_corrected() {
    let mut harness = Harness::new(json!({ "tokenCounter": true }));
    harness.host.count = Box::new(|_, _| Event::Number(7.0));
    harness.append(&[user("hello")]);
    let counted = harness.prepare().usage.used_tokens;
    harness.session.record_usage(&reported(5_000), None).unwrap();
    assert_eq!((used(&harness), usage(&harness).correction), (counted, None));
}

#[test]
fn what_cannot_be_the_prompt_teaches_nothing() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(10, 100));
    let estimated = harness.prepare().usage.used_tokens;
    assert!(!harness.session.record_usage(&reported(40), None).unwrap());
    assert!(!harness.session.record_usage(&reported(0), None).unwrap());
    assert_eq!(used(&harness), estimated);
    let error = harness.session.record_usage("{}", None).unwrap_err();
    assert_eq!((error.code, error.field.as_deref()), (Code::InvalidOption, Some("usage")));
    harness.session.close();
    assert_eq!(harness.session.record_usage(&reported(9), None).unwrap_err().code, Code::Closed);
}

#[test]
fn what_does_not_fit_by_the_providers_count_is_not_sent() {
    let mut harness = Harness::new(json!({ "maxOutputTokens": 1_000, "keep": { "messages": 30 } }));
    harness.append(&talk(10, 100));
    harness.prepare();
    harness.session.record_usage(&reported(9_000), None).unwrap();
    let error = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap_err();
    assert_eq!(error.code, Code::ContextOverflow);
    assert!(error.message.contains("fixed 6"), "what the provider counts beside is fixed: {}", error.message);
}

#[test]
fn another_tabs_newer_reports_are_taken_over() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(2, 100));
    let mut other = Harness::over(harness.memory.clone(), "b", json!({}));
    other.prepare();
    other.session.record_usage(&reported(2_000), None).unwrap();
    other.append(&[user("from the other tab")]);
    harness.append(&[user("from this one")]);
    assert_eq!(
        used(&harness),
        used(&{
            let Harness { memory, .. } = other;
            Harness::over(memory, "c", json!({}))
        })
    );
    assert!(usage(&harness).correction.is_some());
}

#[test]
fn f39_the_system_prompt_is_no_part_of_the_tools_nor_they_of_it() {
    let tokens = |fixed: [&str; 2]| {
        let mut harness = Harness::new(json!({}));
        harness.append(&[user("hello")]);
        let fixed = fixed.map(str::to_string).to_vec();
        let usage = harness.host.run(harness.session.prepare(Trigger::Auto, fixed)).unwrap().usage;
        ["system", "tools"].map(|name| usage.categories.iter().find(|part| part.name == name).unwrap().tokens)
    };
    let (prompt, tools) =
        ("You are a tool of the yard.", r#"[{"name":"read","description":"Reads a file."}]"#);
    assert_eq!(tokens([prompt, ""]), [7, 0]);
    let [none, of_tools] = tokens(["", tools]);
    assert!(none == 0 && of_tools > 5, "{none} {of_tools}");
    assert_eq!(tokens([prompt, tools]), [7, of_tools]);
}

#[test]
fn w16_at_the_number_that_is_shown_no_plan_says_below() {
    for preset in ["balanced", "offload", "react", "layered", "factor3", "checkpoint"] {
        for window in [8_192, 32_768, 200_000] {
            let mut harness = Harness::new(json!({ "preset": preset, "contextWindow": window }));
            harness.append(&talk(2, 400));
            harness.append(&[user("next")]);
            harness.prepare();
            let threshold = usage(&harness).threshold;
            harness.session.record_usage(&reported(threshold), None).unwrap();
            assert_eq!(used(&harness), threshold);
            let plan = harness.host.run(harness.session.plan()).unwrap();
            assert!(!plan.reason.contains("below"), "{preset} {window}: {}", plan.reason);
        }
    }
}
