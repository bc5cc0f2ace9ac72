//! Preset `factor3` (`S4`): its borders to the token, its session log, and what it never summarises. Messages that say
//! `t=100` cost 100 tokens here.

use crate::support::*;
use context_compactor_core::policy::{PRESETS, Trigger};
use context_compactor_core::session::Session;
use context_compactor_core::step::{Event, Notice};
use context_compactor_store_tests::conversation::{Body, assistant, body, exchange, user};
use context_compactor_store_tests::host::{summary, thrown};
use context_compactor_store_tests::{Host, MemoryStore};
use serde_json::{Value, json};
use std::rc::Rc;

/// What a message costs: as it says itself, else as a summary does.
fn counted(body: &str, summary: u32) -> Event {
    let said = body.split("t=").nth(1).map(|rest| rest.chars().take_while(char::is_ascii_digit));
    let said = said.and_then(|digits| digits.collect::<String>().parse::<u32>().ok());
    Event::Number(f64::from(said.unwrap_or(summary)))
}

fn over(memory: Rc<MemoryStore>, summary_tokens: u32, more: Value) -> Harness {
    let mut options = json!({ "preset": "factor3", "tokenCounter": true, "maxOutputTokens": 0, "summarize": { "attempts": 1 } });
    merge(&mut options, &more);
    let mut host = Host::new(Rc::clone(&memory) as _, "a");
    host.summarise = Box::new(|_, _| summary(SUMMARY));
    host.count = Box::new(move |_, body| counted(body, summary_tokens));
    let (session, _) = host.run(Session::open(settings(options), Some("s".into()), 10_000)).unwrap();
    Harness { memory, host, session }
}

fn harness(summary_tokens: u32, more: Value) -> Harness {
    over(Rc::default(), summary_tokens, more)
}

/// Questions and answers that cost what is given.
fn costing(tokens: &[u32]) -> Vec<Body> {
    let said = tokens.iter().enumerate();
    said.map(|(nth, tokens)| {
        let text = format!("message {nth}, t={tokens}");
        if nth % 2 == 0 { user(&text) } else { assistant(&text) }
    })
    .collect()
}

fn log(harness: &Harness) -> String {
    harness.session.session_log().unwrap()
}

fn is_emergency(notice: &Notice) -> bool {
    matches!(notice, Notice::Warning { message, .. } if message.starts_with("Emergency"))
}

#[test]
fn s4_1_at_exactly_half_of_the_budget_it_summarises_and_below_it_does_not() {
    for (last, acts) in [(499, false), (500, true)] {
        let mut harness = harness(100, json!({}));
        harness.append(&costing(&[1_000, 1_000, 1_000, 500, last]));
        let prepared = harness.prepare();
        assert_eq!(prepared.result.is_some_and(|result| result.summary.is_some()), acts, "{last}");
        assert_eq!(harness.host.seen.requests.len(), usize::from(acts));
    }
}

#[test]
fn s4_2_three_messages_or_fewer_are_nothing_to_summarise() {
    for count in 1..=4 {
        let mut harness = harness(100, json!({}));
        harness.append(&costing(&[1_100; 4][..count]));
        let result = harness.compact();
        assert!(result.success);
        assert_eq!(
            (result.summary.is_some(), result.llm_calls),
            (count == 4, u32::from(count == 4)),
            "{count}"
        );
        assert_eq!(log(&harness).is_empty(), count < 4);
    }
}

#[test]
fn s4_2_a_failed_call_changes_nothing_and_is_not_in_the_session_log() {
    let mut harness = harness(100, json!({}));
    harness.host.summarise = Box::new(|_, _| thrown("no model", None));
    harness.append(&costing(&[1_000; 5]));
    let before = harness.context();
    let result = harness.prepare().result.unwrap();
    assert!(!result.success && result.error.is_some() && result.log_entry.is_none());
    assert_eq!((harness.context(), log(&harness).as_str()), (before, ""));
}

#[test]
fn s4_7_the_emergency_begins_at_four_fifths_and_not_below() {
    for (last, warns) in [(1_599, false), (1_600, true)] {
        let mut harness = harness(100, json!({}));
        // In spite of S4.1: the summary that was due failed.
        harness.host.summarise = Box::new(|_, _| thrown("no model", None));
        harness.append(&costing(&[1_200, 1_200, 1_200, 1_200, last]));
        let prepared = harness.prepare();
        assert_eq!(harness.host.seen.notices.iter().any(is_emergency), warns, "{last}");
        assert_eq!(prepared.edits.iter().any(|edit| edit.kind == "rollover"), warns, "{last}");
        assert!(prepared.usage.used_tokens < 6_400);
    }
}

#[test]
fn s4_7_a_summary_in_time_needs_no_emergency() {
    let mut harness = harness(100, json!({}));
    harness.append(&costing(&[1_200, 1_200, 1_200, 1_200, 1_600]));
    assert!(harness.prepare().result.is_some_and(|result| result.success));
    assert!(!harness.host.seen.notices.iter().any(is_emergency), "100 + 4,000 tokens are left");
}

#[test]
fn f39_what_the_emergency_may_summarise_is_above_the_floor_but_for_a_compaction_by_hand() {
    // The last three do not fit by themselves.
    let messages = costing(&[1_000, 2_700, 2_700, 2_700]);
    let mut harness = harness(100, json!({}));
    harness.append(&messages);
    let plan = harness.host.run(harness.session.plan()).unwrap();
    assert!(plan.proof.is_none() && plan.floor < 8_000, "{plan:?}");
    let used = harness.prepare().usage.used_tokens;
    assert!((plan.floor..8_000).contains(&used), "{used} {}", plan.floor);

    let mut by_hand = self::harness(100, json!({}));
    by_hand.append(&messages);
    let result = by_hand.compact();
    let error = result.error.unwrap().into_parts().message;
    let floor: Vec<&str> = error.split("cannot go below ").collect();
    let floor = floor[1].split(' ').next().unwrap().parse::<usize>().unwrap();
    assert!(
        !result.fits && (8_100..=result.current_tokens).contains(&floor),
        "no emergency follows it: {error}"
    );
}

#[test]
fn s4_4_the_documents_before_and_after_with_its_figures() {
    let memory = Rc::default();
    let mut harness = over(Rc::clone(&memory), 200, json!({ "contextWindow": 2_000 }));
    let said = "User requested sales analysis. Fetched full dataset (1000 rows),\nanalyzed Q3 (300 rows showing 15% growth), now comparing to Q2.";
    harness.host.summarise = Box::new(move |_, _| summary(said));
    let mut messages = vec![user("Can you analyze the latest sales data? t=20")];
    messages.extend(exchange(FORMATS[0], "t=30", "1000 rows of data... t=500"));
    messages.extend([assistant("Here's the analysis: ... t=150"), user("What about Q3 specifically? t=20")]);
    messages.extend(exchange(FORMATS[0], "t=30", "300 rows... t=250"));
    messages.extend([assistant("Q3 shows... t=100"), user("Compare to Q2? t=20")]);
    messages.push(assistant("I'll fetch Q2 data... t=80"));
    harness.append(&messages);
    harness.host.now = 1_762_684_522_000;
    let result = harness.prepare().result.unwrap();
    assert_eq!((result.previous_tokens, result.current_tokens, result.freed_tokens), (1_200, 400, 800));
    assert_eq!(result.saved_tokens, Some(800));
    let sent = harness.context();
    assert_eq!(sent.len(), 4);
    assert_eq!(sent[0]["content"], format!("[SUMMARY]: {said}{RECORD}"));
    for (kept, message) in sent[1..].iter().zip(&messages[7..]) {
        assert_eq!(kept.to_string(), serde_json::from_str::<Value>(message).unwrap().to_string());
    }
    let entry = "## Token Usage @ 2025-11-09T10:35:22\n- Pre-summarization: 1,200 / 2,000 (60%)\n- Post-summarization: 400 / 2,000 (20%)\n- Savings: 800 tokens (67% reduction)\n\nSummarized 7 messages → 1 summary (saved ~800 tokens)";
    assert_eq!(result.log_entry.as_deref(), Some(entry));
    assert_eq!(log(&harness), entry);
    let again = over(memory, 200, json!({ "contextWindow": 2_000 }));
    assert_eq!(log(&again), entry, "durable");
}

#[test]
fn s4_4_the_documents_monitoring_block_from_a_session() {
    let mut harness = harness(700, json!({}));
    // A second message of the user before the first answer: so the tail begins with an answer.
    let more = costing(&[200, 300, 250, 300, 250, 300, 200, 1_000, 400, 700]);
    harness.append(&[user("t=300")]);
    harness.append(&more);
    harness.host.now = 1_762_684_522_000;
    assert!(harness.prepare().result.is_some_and(|result| result.success));
    assert_eq!(
        log(&harness),
        "## Token Usage @ 2025-11-09T10:35:22\n- Pre-summarization: 4,200 / 8,000 (52.5%)\n- Post-summarization: 2,800 / 8,000 (35%)\n- Savings: 1,400 tokens (33% reduction)\n\nSummarized 8 messages → 1 summary (saved ~1,400 tokens)"
    );
}

#[test]
fn s4_4_every_preset_that_summarises_keeps_a_session_log_that_survives_a_reload_and_no_summariser_sees() {
    for preset in PRESETS.iter().map(|preset| preset.name).filter(|name| *name != "react") {
        let options = json!({ "preset": preset });
        let mut harness = Harness::new(options.clone());
        for round in 1..=3 {
            harness.append(&talk(8, 100));
            let result = harness.compact();
            assert!(result.success, "{preset} {result:?}");
            assert!(
                result.saved_tokens.is_some_and(|saved| saved > 0 && saved <= result.freed_tokens),
                "{preset}"
            );
            assert_eq!(log(&harness).matches("## Token Usage @ ").count(), round);
            assert!(log(&harness).ends_with(result.log_entry.as_deref().unwrap()));
            let stored = log(&harness);
            harness = Harness::over(Rc::clone(&harness.memory), &format!("tab {round}"), options.clone());
            assert_eq!(log(&harness), stored, "{preset}");
            harness.host.summarise = Box::new(|request, _| {
                let asked = serde_json::to_string(request).unwrap();
                assert!(!asked.contains("Token Usage @") && !asked.contains("saved ~"), "{asked}");
                summary(SUMMARY)
            });
        }
    }
    assert_eq!(log(&Harness::new(json!({}))), "", "empty as long as nothing was summarised");
}

#[test]
fn s4_3_system_prompts_tools_goals_and_recent_messages_are_never_summarised() {
    let goal = json!({ "id": "g", "description": "Ship the exporter", "priority": "high", "status": "active",
        "checkpoints": [{ "description": "Read the code", "status": "completed" }], "decisions": [], "artifacts": [] });
    let mut harness = Harness::new(json!({ "preset": "factor3", "format": "openai-chat", "goal": goal }));
    let persona = json!({ "role": "system", "content": "You are Ada, a careful engineer." });
    let note = json!({ "role": "developer", "content": "Mind the quota." });
    let mut messages = vec![body(&persona)];
    messages.extend(talk(5, 100));
    messages.push(body(&note));
    messages.extend(talk(6, 100));
    harness.append(&messages);
    let schema = r#"[{"name":"deploy","description":"Ships a release"}]"#;
    let fixed = vec!["The app's own prompt.".to_string(), schema.to_string()];
    harness.host.run(harness.session.prepare(Trigger::Auto, fixed.clone())).unwrap();
    assert!(harness.compact().success);
    let prepared = harness.host.run(harness.session.prepare(Trigger::Auto, fixed)).unwrap();
    let sent = bodies(&harness.session, &prepared);
    assert_eq!(sent[0], persona);
    // One in the midst of the history is summarised, and stands word for word behind the summary.
    assert!(
        !sent.contains(&note)
            && sent[1].to_string().contains("\nMind the quota.\n".escape_default().to_string().as_str())
    );
    let last: Vec<Value> =
        messages.iter().rev().take(3).map(|body| serde_json::from_str(body).unwrap()).collect();
    assert_eq!(sent.iter().rev().take(3).cloned().collect::<Vec<_>>(), last);
    assert!(prepared.goal.unwrap().contains("✅ Read the code"), "the state of the task is told as it is");
    let asked = &harness.host.seen.requests[0].0.messages[0].content;
    for never in ["Ada", "app's own prompt", "Ships a release", "answer 5"] {
        assert!(!asked.contains(never), "{never}: {asked}");
    }
}

#[test]
fn s4_2_the_summary_is_the_models_where_the_users_message_follows_it_and_the_format_lets_it() {
    for (format, lets) in
        [("openai-chat", true), ("openai-responses", true), ("anthropic", false), ("ai-sdk", false)]
    {
        for count in [8, 9] {
            let mut harness = Harness::new(json!({ "preset": "factor3", "format": format }));
            harness.append(&talk(5, 100)[..count]);
            let kept = harness.context()[count - 3..].to_vec();
            assert!(harness.compact().success, "{format}");
            let sent = harness.context();
            let summary =
                sent.iter().position(|message| message.to_string().contains("[SUMMARY]: ")).unwrap();
            let roles: Vec<&str> = sent.iter().map(|message| message["role"].as_str().unwrap()).collect();
            assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "they alternate: {roles:?}");
            assert_eq!(summary, 0, "{format} {count}");
            assert_eq!(sent[sent.len() - 3..], kept, "{format} {count}");
            // The last three of nine begin with the user's.
            let models = lets && count == 9;
            assert_eq!(roles[0], if models { "assistant" } else { "user" }, "{format} {count}");
            assert!(!models || sent.len() == 4, "{format}: {}", sent.len());
        }
    }
}

#[test]
fn s4_2_the_summary_is_the_users_as_long_as_the_format_may_be_one_that_begins_with_the_user() {
    let mut harness = Harness::new(json!({ "preset": "factor3" }));
    harness.append(&talk(5, 100)[..9]);
    assert!(harness.compact().success);
    assert_eq!(harness.context()[0]["role"], "user");
}

#[test]
fn s4_2_s4_3_a_summary_of_the_model_is_summarised_again_and_quotes_pins() {
    let mut harness =
        Harness::new(json!({ "preset": "factor3", "format": "openai-chat", "pins": { "match": true } }));
    harness.host.pinned = Box::new(|index| index == 0);
    for round in 1..=4 {
        harness.append(&talk(8, 100));
        assert!(harness.compact().success, "{round}");
        let sent = harness.context();
        let summaries = sent.iter().filter(|message| message.to_string().contains("[SUMMARY]: ")).count();
        assert_eq!(summaries, 1, "{round}");
        assert!(sent[0].to_string().contains("question 0"), "{round}: {}", sent[0]);
    }
}
