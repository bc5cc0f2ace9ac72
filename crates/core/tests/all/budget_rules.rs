//! What a session may cost (`X13`): counted from reports, stored with the session, asked before a prompt is made.

use crate::support::*;
use context_compactor_core::policy::{Settings, Trigger};
use context_compactor_core::session::Session;
use context_compactor_core::step::{Event, Notice, ReportedUsage};
use context_compactor_core::{Code, Error};
use context_compactor_store_tests::Host;
use context_compactor_store_tests::conversation::{assistant, user};
use serde_json::{Value, json};
use std::rc::Rc;

/// A prompt of 100,000 tokens, half of them read from the cache, and 1,000 tokens of answer: 50,000 × 1 + 50,000 × 0.1 + 1,000 × 10
/// millionths of a dollar.
const USAGE: &str = r#"{"inputTokens":100000,"outputTokens":1000,"cacheReadTokens":50000}"#;
const COST: f64 = 0.065;

fn options(limits: Value) -> Value {
    json!({ "contextWindow": 1_000_000, "prices": { "input": 1, "output": 10, "cacheRead": 0.1, "cacheWrite": 1.25 }, "limits": limits })
}

fn ask(harness: &mut Harness, nth: usize) -> Result<(), Error> {
    harness.append(&[user(&format!("question {nth}"))]);
    let prepare = harness.session.prepare(Trigger::Auto, Vec::new());
    harness.host.run(prepare)?;
    harness.append(&[assistant(&format!("answer {nth}"))]);
    harness.session.record_usage(USAGE, None).unwrap();
    Ok(())
}

fn warned(host: &Host, of: Code) -> usize {
    host.seen
        .notices
        .iter()
        .filter(|notice| matches!(notice, Notice::Warning { code, .. } if *code == of))
        .count()
}

fn usd(harness: &mut Harness) -> (f64, f64, Option<u64>) {
    let plan = harness.host.run(harness.session.plan()).unwrap();
    let usd = plan.limits.unwrap().usd.unwrap();
    assert!((usd.limit - usd.left - usd.spent).abs() < 1e-9 || usd.left == 0.0, "{usd:?}");
    (usd.limit, usd.spent, usd.prompts)
}

#[test]
fn x13_a_prompt_is_refused_once_the_calls_have_cost_the_limit_and_nothing_is_changed() {
    let mut harness = Harness::new(options(json!({ "usd": 0.2, "onExceed": "throw" })));
    assert_eq!(usd(&mut harness), (0.2, 0.0, None));
    for nth in 0..4 {
        ask(&mut harness, nth).unwrap();
    }
    let (limit, spent, prompts) = usd(&mut harness);
    assert_eq!((limit, prompts), (0.2, Some(0)));
    assert!((spent - 4.0 * COST).abs() < 1e-9, "{spent}");
    let before = harness.memory.rows();
    let error = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap_err();
    assert_eq!((error.code, error.field.as_deref()), (Code::LimitReached, Some("limits.usd")));
    assert!(error.message.contains("$0.26") && error.message.contains("$0.20"), "{}", error.message);
    assert_eq!(harness.memory.rows(), before);
    assert_eq!(warned(&harness.host, Code::LimitReached), 0);
}

#[test]
fn x13_the_plan_tells_how_many_prompts_are_left() {
    let mut harness = Harness::new(options(json!({ "usd": 0.2 })));
    let mut told = Vec::new();
    for nth in 0..4 {
        ask(&mut harness, nth).unwrap();
        told.push(usd(&mut harness).2.unwrap());
    }
    assert_eq!(told, [3, 2, 1, 0]);
}

#[test]
fn x13_by_default_the_app_is_warned_once_and_the_prompt_goes_out() {
    let mut harness = Harness::new(options(json!({ "usd": 0.1 })));
    for nth in 0..5 {
        ask(&mut harness, nth).unwrap();
        assert_eq!(warned(&harness.host, Code::LimitReached), usize::from(nth >= 2));
    }
}

#[test]
fn x13_what_was_spent_is_stored_survives_an_undo_and_adds_up_over_handles() {
    let over = || options(json!({ "usd": 10 }));
    let mut first = Harness::new(over());
    ask(&mut first, 0).unwrap();
    let mut second = Harness::over(Rc::clone(&first.memory), "b", over());
    // The report of the first was not stored yet.
    assert_eq!(usd(&mut second).1, 0.0);
    ask(&mut first, 1).unwrap();
    ask(&mut second, 2).unwrap();
    first.host.run(first.session.keep_usage()).unwrap();
    second.host.run(second.session.keep_usage()).unwrap();
    first.append(&talk(10, 200));
    assert!(first.compact().changed);
    first.host.run(first.session.undo()).unwrap();
    let mut third = Harness::over(Rc::clone(&first.memory), "c", over());
    let spent = usd(&mut third).1;
    assert!((spent - 3.0 * COST).abs() < 1e-9, "{spent}");
    // Nothing new is stored a second time.
    third.host.run(third.session.keep_usage()).unwrap();
    assert!((usd(&mut third).1 - spent).abs() < 1e-9);
}

#[test]
fn x13_calls_for_summaries_count_where_they_report_their_usage() {
    let mut harness = Harness::new(options(json!({ "usd": 10 })));
    harness.host.summarise = Box::new(|_, _| {
        let usage = ReportedUsage { input_tokens: 20_000, output_tokens: 500, ..ReportedUsage::default() };
        Event::Summary { text: SUMMARY.into(), usage: Some(usage) }
    });
    harness.append(&talk(10, 200));
    assert!(harness.compact().success);
    let (_, spent, prompts) = usd(&mut harness);
    assert!((spent - 0.025).abs() < 1e-9, "{spent}");
    assert_eq!(prompts, None, "no call of the conversation is known");
}

#[test]
fn x13_who_reports_nothing_is_told_once() {
    let mut harness = Harness::new(options(json!({ "usd": 10 })));
    for nth in 0..5 {
        harness.append(&[user(&format!("question {nth}"))]);
        harness.prepare();
        harness.append(&[assistant("answer")]);
        assert_eq!(warned(&harness.host, Code::InvalidOption), usize::from(nth >= 2), "{nth}");
    }
    let mut without = Harness::new(json!({}));
    for _ in 0..5 {
        without.append(&[user("question"), assistant("answer")]);
        without.prepare();
    }
    assert!(without.host.seen.notices.is_empty());
}

#[test]
fn x13_a_limit_that_could_not_be_told_is_refused_when_the_session_is_opened() {
    let read = |options: Value| {
        let text = options.to_string();
        Settings::read(&serde_json::from_str(&text).unwrap()).map(|settings| settings.limits).unwrap_err()
    };
    let error = read(json!({ "limits": { "usd": 1 } }));
    assert_eq!((error.code, error.field.as_deref()), (Code::InvalidOption, Some("limits.usd")));
    assert!(error.message.contains("prices"), "{}", error.message);
    let error = read(json!({ "limits": { "usd": 1 }, "prices": { "input": 0, "output": 0 } }));
    assert!(error.message.contains("are 0"), "{}", error.message);
    let error = read(json!({ "limits": { "onExceed": "throw" } }));
    assert_eq!(error.field.as_deref(), Some("limits.onExceed"));
}

#[test]
fn x13_a_fork_counts_on_its_own() {
    let mut harness = Harness::new(options(json!({ "usd": 10 })));
    ask(&mut harness, 0).unwrap();
    let (child, _) = harness.host.run(harness.session.fork(Some("child".into()))).unwrap();
    let session: Session = child;
    let plan = harness.host.run(session.plan()).unwrap();
    assert_eq!(plan.limits.unwrap().usd.unwrap().spent, 0.0);
}
