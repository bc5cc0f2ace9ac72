//! Summaries that nobody waits for (option `background`): when a prepare leaves one to later, and when it must not.

use crate::support::*;
use context_compactor_core::policy::Trigger;
use serde_json::{Value, json};

fn harness(over: Value) -> Harness {
    let mut options = json!({
        "background": true, "preset": "layered", "contextWindow": 8_000, "maxOutputTokens": 500,
        "compactAt": { "tokens": 2_000 }, "presetOptions": { "minSavings": 0 },
    });
    merge(&mut options, &over);
    Harness::new(options)
}

#[test]
fn a_summary_that_is_due_is_left_to_later_as_long_as_the_prompt_fits() {
    let mut harness = harness(json!({}));
    harness.append(&talk(30, 40));
    let before = harness.context();
    let prepared = harness.prepare();
    assert!(prepared.put_off && prepared.result.is_none());
    assert!(harness.host.seen.requests.is_empty(), "no model is asked");
    assert_eq!(bodies(&harness.session, &prepared), before, "the context is as it was");
    let later = harness.host.run(harness.session.summarise_later()).unwrap();
    assert!(later.result.unwrap().success);
    assert!(harness.context().len() < before.len());
    assert!(!harness.prepare().put_off, "and is done then");
}

#[test]
fn a_prompt_that_does_not_fit_waits_for_its_summary() {
    let mut harness = harness(json!({}));
    harness.append(&talk(120, 40));
    let prepared = harness.prepare();
    assert!(!prepared.put_off && prepared.result.unwrap().success);
    assert!(prepared.usage.used_tokens < 7_500);
}

#[test]
fn nothing_is_left_to_later_where_no_model_is_asked_or_the_app_asks_itself() {
    let mut extractive = harness(json!({ "summarize": { "call": null } }));
    extractive.append(&talk(30, 40));
    let prepared = extractive.prepare();
    assert!(!prepared.put_off && prepared.result.unwrap().success);
    let mut harness = harness(json!({}));
    harness.append(&talk(30, 40));
    let asked = harness.host.run(harness.session.prepare(Trigger::Overflow, Vec::new())).unwrap();
    assert!(!asked.put_off && asked.result.unwrap().success);
}
