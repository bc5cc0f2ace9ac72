//! The smallest prompt that a plan promises, and why a compaction did nothing: for every set of rungs.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::policy::{Rung, Trigger};
use context_compactor_core::session::Session;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, body, exchange, user};
use context_compactor_store_tests::host::summary;
use context_compactor_store_tests::{Host, MemoryStore};
use serde_json::{Value, json};
use std::rc::Rc;

/// Large and small results, a long input, a long paste, and talk.
fn work() -> Vec<Body> {
    let chat = Format::OpenaiChat;
    let mut bodies =
        vec![body(&json!({ "role": "system", "content": "You are a tool." })), user(&long("paste", 700))];
    for (nth, tokens) in [900, 40, 300, 2_500, 120, 60].into_iter().enumerate() {
        bodies.extend(exchange(chat, &format!("call_{nth}"), &long(&format!("result {nth}"), tokens)));
        bodies.push(assistant(&long(&format!("answer {nth}"), 50)));
        bodies.push(user(&format!("and then, {nth}?")));
    }
    let arguments = json!({ "path": "src/new.rs", "content": long("written", 500) }).to_string();
    bodies.push(body(&json!({ "role": "assistant", "content": null, "tool_calls": [
        { "id": "w", "type": "function", "function": { "name": "write_file", "arguments": arguments } },
    ] })));
    bodies.push(body(&json!({ "role": "tool", "tool_call_id": "w", "content": "written" })));
    bodies.extend(talk(2, 40));
    bodies.extend(exchange(chat, "last", &long("the last result", 200)));
    bodies
}

/// What is left, and the reason when nothing was changed.
struct Left {
    tokens: usize,
    changed: bool,
    reason: Option<String>,
}

/// `planned` is what the plan says of why.
fn run(host: &mut Host, session: &Session, trigger: Trigger, planned: String) -> Option<Left> {
    if trigger == Trigger::Manual {
        let result = host.run(session.compact(None)).unwrap().result;
        let changed = !result.applied_edits.is_empty();
        let reason = result.reason.or(result.error.map(|error| error.to_string()));
        return Some(Left { tokens: result.current_tokens, changed, reason });
    }
    match host.run(session.prepare(trigger, Vec::new())) {
        Ok(prepared) => {
            let changed = !prepared.edits.is_empty();
            Some(Left { tokens: prepared.usage.used_tokens, changed, reason: Some(planned) })
        }
        Err(error) => {
            assert_eq!(error.code, Code::ContextOverflow, "{error}");
            None
        }
    }
}

fn every_set(preset: &str, over: &Value, answer: &'static str) -> usize {
    let (messages, mut runs) = (work(), 0);
    for set in 0..1_usize << Rung::ALL.len() {
        let rungs: Vec<Rung> =
            (0..Rung::ALL.len()).filter(|nth| set >> nth & 1 == 1).map(|nth| Rung::ALL[nth]).collect();
        for trigger in [Trigger::Auto, Trigger::Overflow, Trigger::Manual] {
            let mut options = json!({
                "preset": preset, "compactAt": { "tokens": 100 }, "maxOutputTokens": 500,
                "offload": { "minChars": 400 }, "advanced": { "offload": { "scanFraction": 1.0 } },
            });
            merge(&mut options, over);
            let mut settings = (*settings(options)).clone();
            settings.rungs = rungs.clone();
            let mut host = Host::new(Rc::<MemoryStore>::default() as _, "host");
            host.summarise = Box::new(move |_, _| summary(answer));
            let (session, _) = host.run(Session::open(Rc::new(settings), Some("s".into()), 10_000)).unwrap();
            host.run(session.append(messages.clone())).unwrap();
            // Checkpoints take a while to age.
            let ages = rungs.iter().any(|rung| matches!(rung, Rung::Age | Rung::Merge));
            for again in
                0..if ages && rungs.contains(&Rung::Summarise) && preset == "checkpoint" { 8 } else { 2 }
            {
                if again > 1 {
                    host.run(session.append(talk(4, 60))).unwrap();
                }
                let told = format!("{preset} {over} {rungs:?} {trigger:?} {again}");
                let plan = host.run(session.plan()).unwrap();
                assert!(!plan.reason.is_empty(), "{told}");
                let Some(left) = run(&mut host, &session, trigger, plan.reason) else { break };
                // A plan is of a prompt that nobody refused.
                let holds = trigger == Trigger::Overflow || plan.floor <= left.tokens;
                assert!(holds, "{told}: {} below {}", left.tokens, plan.floor);
                assert!(
                    left.changed || left.reason.is_some_and(|reason| !reason.is_empty()),
                    "{told}: no reason"
                );
                runs += 1;
            }
        }
    }
    runs
}

#[test]
fn f23_no_run_of_any_set_of_rungs_leaves_less_than_the_floor_and_one_that_did_nothing_says_why() {
    let mut runs = 0;
    for (preset, over) in [
        ("checkpoint", json!({ "contextWindow": 4_000 })),
        ("balanced", json!({ "contextWindow": 60_000, "keep": { "tokens": 600 } })),
        ("balanced", json!({ "contextWindow": 8_000, "keep": { "fraction": 0.3 } })),
    ] {
        runs += every_set(preset, &over, "The user asked for it.");
    }
    assert!(runs > 6_000, "{runs}");
}

#[test]
fn f23_a_preset_that_only_clears_says_what_it_reaches() {
    let mut settings =
        (*settings(json!({ "preset": "layered", "contextWindow": 60_000, "compactAt": { "tokens": 100 } })))
            .clone();
    settings.rungs = vec![Rung::Clear];
    let mut host = Host::new(Rc::<MemoryStore>::default() as _, "host");
    let (session, _) = host.run(Session::open(Rc::new(settings), Some("s".into()), 10_000)).unwrap();
    host.run(session.append(work())).unwrap();
    let result = host.run(session.compact(None)).unwrap().result;
    assert!(result.success && result.applied_edits.is_empty());
    assert_eq!(
        result.reason.as_deref(),
        Some("tool results are moved when a prompt is prepared, not by a compaction by hand")
    );
    let plan = host.run(session.plan()).unwrap();
    let left = host.run(session.prepare(Trigger::Auto, Vec::new())).unwrap().usage.used_tokens;
    assert!(left < plan.tokens && plan.floor <= left && plan.floor * 2 > left, "{} {left}", plan.floor);
    let again = host.run(session.plan()).unwrap();
    assert!(
        !again.will_compact && again.reason.ends_with(": no old tool result is left to clear"),
        "{again:?}"
    );
}

/// Beyond the floor: what stands around a summary, and an answer of one word for each result.
const AROUND: usize = 450;

#[test]
fn h8_the_shortest_answers_reach_the_floor_of_every_set_of_rungs() {
    let (messages, mut missed) = (work(), Vec::new());
    for set in 0..1_usize << Rung::ALL.len() {
        let rungs: Vec<Rung> =
            (0..Rung::ALL.len()).filter(|nth| set >> nth & 1 == 1).map(|nth| Rung::ALL[nth]).collect();
        let run = |hard_limit: usize| {
            let options = json!({
                "preset": "balanced", "contextWindow": 60_000, "compactAt": { "tokens": 100 },
                "offload": { "minChars": 400 }, "advanced": { "offload": { "scanFraction": 1.0 } },
                "keep": { "tokens": 600 }, "summarize": { "call": true, "attempts": 1 },
            });
            let mut settings = (*settings(options)).clone();
            (settings.rungs, settings.hard_limit) = (rungs.clone(), hard_limit);
            let mut host = Host::new(Rc::<MemoryStore>::default() as _, "host");
            host.summarise = Box::new(|_, _| summary("The user asked for it."));
            let (session, _) = host.run(Session::open(Rc::new(settings), Some("s".into()), 10_000)).unwrap();
            host.run(session.append(messages.clone())).unwrap();
            let floor = host.run(session.plan()).unwrap().floor;
            let left = host.run(session.prepare(Trigger::Auto, Vec::new()));
            (
                floor,
                left.map(|prepared| prepared.usage.used_tokens).map_err(|error| error.into_parts().message),
            )
        };
        // A limit that is little more than the floor leaves no other choice.
        let (mut limit, mut found) = (50_000, run(50_000));
        while found.0 + AROUND < limit {
            limit = found.0 + AROUND;
            found = run(limit);
        }
        match found {
            (floor, Ok(left)) if (floor..=floor + AROUND).contains(&left) => {}
            (floor, left) => missed.push(format!("{rungs:?}, floor {floor}, limit {limit}: {left:?}")),
        }
    }
    assert!(missed.is_empty(), "{} missed:\n{}", missed.len(), missed.join("\n"));
}
