//! What a change of the context does to the messages that stay, and what of the context is sent.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::step::{Effect, Notice};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, body, calls, results, user};
use context_compactor_store_tests::host::{failed, thrown};
use context_compactor_store_tests::{Host, How};
use serde_json::{Value, json};
use std::rc::Rc;

/// Nothing to offload, always over the threshold.
fn eager() -> Value {
    json!({ "compactAt": { "tokens": 100 } })
}

/// Offloads whatever it may, summarises never.
fn only_offload() -> Value {
    json!({ "compactAt": { "tokens": 100 }, "presetOptions": { "compactTriggerThreshold": 1 } })
}

/// A turn whose call and whose answer begin with signed thinking.
fn thinking_turn(nth: usize, tokens: usize) -> Vec<Body> {
    let id = format!("call_{nth}");
    let thinking = |what: &str| json!({ "type": "thinking", "thinking": long(what, 20), "signature": format!("c2ln{nth}") });
    let call = json!({ "type": "tool_use", "id": id, "name": "read_file", "input": { "path": "a.rs" } });
    let mut turn = vec![
        user(&format!("question {nth}")),
        body(&json!({ "role": "assistant", "content": [thinking("which file"), call] })),
    ];
    turn.extend(results(Format::Anthropic, &[(&id, &long(&format!("result {nth}"), tokens))]));
    let answer = json!({ "type": "text", "text": format!("answer {nth}") });
    turn.push(body(&json!({ "role": "assistant", "content": [thinking("what it says"), answer] })));
    turn
}

fn thinks(message: &Value) -> bool {
    message.to_string().contains("signature")
}

/// The ledger as the public API shows it.
fn ledger(session: &Session) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let entries = serde_json::to_value(session.explain().unwrap()).unwrap();
    entries.as_array().unwrap().iter().map(|entry| (text(&entry["fate"]), text(&entry["reason"]))).collect()
}

fn fates(session: &Session) -> Vec<String> {
    ledger(session).into_iter().map(|(fate, _)| fate).collect()
}

#[test]
fn an8_kept_messages_behind_a_summary_lose_the_thinking_that_is_bound_to_what_was_there() {
    let mut harness = Harness::new(json!({}));
    for nth in 0..3 {
        harness.append(&thinking_turn(nth, 60));
    }
    let before = harness.session.usage().unwrap().used_tokens;
    let result = harness.compact();
    assert!(result.success, "{:?}", result.error);
    let context = harness.context();
    assert_valid(Format::Anthropic, &context);
    assert!(!context.iter().any(thinks), "nothing that stayed was signed for this prefix");
    let usage = harness.session.usage().unwrap().used_tokens;
    assert_eq!((result.current_tokens, before - result.freed_tokens), (usage, usage));
    let edit = &result.applied_edits[0];
    assert_eq!((edit.freed_tokens, edit.indices.clone()), (result.freed_tokens, (0..7).collect::<Vec<_>>()));
    // The answer 1 (7), call (9) and answer (11) of the last turn are edited; the others are the app's own objects.
    let entries = ledger(&harness.session);
    for (index, (fate, reason)) in entries.iter().enumerate().skip(7) {
        let reduced = [7, 9, 11].contains(&index);
        assert_eq!(fate, if reduced { "reduced" } else { "verbatim" }, "message {index}");
        assert_eq!(reason.contains("AN8"), reduced, "message {index}: {reason}");
    }
    let sent = harness.prepare();
    let indices: Vec<Option<usize>> = sent.items.iter().map(|item| item.index).collect();
    assert_eq!(indices, [None, None, Some(8), None, Some(10), None]);
    // Thinking that comes later is signed for the new prefix and stays until that changes.
    harness.append(&thinking_turn(3, 60));
    assert_eq!(harness.sent().iter().filter(|message| thinks(message)).count(), 2);
    // Another tab reads the same from the store.
    let mut other = Harness::over(harness.memory.clone(), "b", json!({}));
    assert_eq!(other.context(), harness.context());
    assert_eq!(ledger(&other.session), ledger(&harness.session));
    assert_eq!(other.session.usage().unwrap(), harness.session.usage().unwrap());
    let again = other.compact();
    assert!(again.success, "{:?}", again.error);
    assert_eq!(again.ledger.entries().len(), 16);
    assert_valid(Format::Anthropic, &other.context());
    assert!(!other.context().iter().any(thinks));
    assert_eq!(other.stored().messages.iter().filter(|body| body.contains("signature")).count(), 8);
}

#[test]
fn an8_offloading_takes_the_thinking_behind_the_first_offload_and_leaves_what_is_before_it() {
    let mut harness = Harness::new(only_offload());
    for nth in 0..3 {
        harness.append(&thinking_turn(nth, 120));
    }
    let before = harness.session.usage().unwrap().used_tokens;
    let plan = harness.host.run(harness.session.plan()).unwrap();
    let prepared = harness.prepare();
    assert_eq!(plan.edits[0].freed_tokens, prepared.edits[0].freed_tokens, "the plan counts it too");
    assert_eq!(before - prepared.edits[0].freed_tokens, prepared.usage.used_tokens);
    assert_eq!(prepared.edits[0].indices, [2], "the first half: one result");
    let sent = bodies(&harness.session, &prepared);
    assert_valid(Format::Anthropic, &sent);
    let thinking: Vec<usize> = (0..sent.len()).filter(|at| thinks(&sent[*at])).collect();
    assert_eq!(thinking, [1], "what stands before the first change is as it was");
    let verbatim = "verbatim";
    let reduced = "reduced";
    let expected = [
        verbatim,
        verbatim,
        "offloaded",
        reduced,
        verbatim,
        reduced,
        verbatim,
        reduced,
        verbatim,
        reduced,
        verbatim,
        reduced,
    ];
    assert_eq!(fates(&harness.session), expected);
    // The next offload is of messages that were edited already, and of a summary over edited ones nothing is lost.
    for nth in 3..6 {
        harness.append(&thinking_turn(nth, 120));
    }
    harness.prepare();
    assert_valid(Format::Anthropic, &harness.context());
    assert!(harness.compact().success);
    harness.stored();
    let other = Harness::over(harness.memory.clone(), "b", only_offload());
    assert_eq!(ledger(&other.session), ledger(&harness.session));
}

#[test]
fn an8_a_compaction_of_one_shot_too() {
    let mut harness = Harness::new(eager());
    let history: Vec<Body> = (0..3).flat_map(|nth| thinking_turn(nth, 60)).collect();
    let done = harness.host.run(Session::compact_once(settings(eager()), history.clone())).unwrap();
    let text = |item: &context_compactor_core::session::OutItem| match item.index {
        Some(index) => history[index].to_string(),
        None => item.body.clone().unwrap().to_string(),
    };
    let out: Vec<Value> = done.items.iter().map(|item| serde_json::from_str(&text(item)).unwrap()).collect();
    assert_valid(Format::Anthropic, &out);
    assert!(!out.iter().any(thinks));
}

#[test]
fn an8_a_message_of_thinking_alone_stays_since_an_empty_one_is_refused() {
    let mut harness = Harness::new(eager());
    harness.append(&talk(4, 60));
    let thinking = json!({ "type": "thinking", "thinking": "hm", "signature": "c2ln" });
    harness.append(&[
        user("and"),
        body(&json!({ "role": "assistant", "content": [thinking] })),
        assistant("so"),
    ]);
    assert!(harness.compact().success);
    assert!(harness.context().iter().any(thinks));
}

#[test]
fn s1_5_a_cut_behind_a_long_run_of_user_messages_still_frees_something() {
    let mut harness = Harness::new(eager());
    let mut history = vec![user(&long("first", 40)), assistant(&long("answer", 40))];
    history.extend((0..60).map(|nth| user(&long(&format!("note {nth}"), 20))));
    harness.append(&history);
    let result = harness.compact();
    assert!(result.success, "{:?}", result.error);
    assert_eq!(result.preserved_count, 5);
    let context = harness.context();
    assert_eq!(context.len(), 7, "summary, acknowledgement and the preserved five");
    assert_eq!(context[1]["role"], "assistant");
}

#[test]
fn s1_5_the_cut_never_moves_back_to_where_nothing_is_left_to_compress() {
    let mut harness = Harness::new(eager());
    harness.append(&[assistant(&long("greeting", 200))]);
    harness.append(&(0..6).map(|nth| user(&long(&format!("note {nth}"), 40))).collect::<Vec<_>>());
    let result = harness.compact();
    assert!(result.success && result.summary.is_some(), "{:?} {:?}", result.error, result.reason);
}

#[test]
fn lesson_concurrent_writes_a_prepare_whose_offload_was_overtaken_climbs_again() {
    let only_offload =
        || json!({ "compactAt": { "tokens": 100 }, "presetOptions": { "preserveCount": 1_000 } });
    let mut harness = Harness::new(only_offload());
    harness.append(&turn(Format::OpenaiChat, 0, 200));
    harness.append(&talk(2, 10));
    let mut other = Harness::over(harness.memory.clone(), "b", only_offload());
    let mut once = Some(());
    harness.host.meanwhile = Box::new(move |effect| {
        if is_change(effect) && once.take().is_some() {
            other.prepare();
        }
    });
    let prepared = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap();
    assert!(prepared.edits.is_empty(), "the other tab did it");
    assert_eq!((harness.stored().generation, prepared.usage.offload_count), (1, 1));
}

#[test]
fn s1_15_what_is_not_sent_is_not_counted_and_explain_says_why() {
    for format in FORMATS {
        let mut harness = Harness::new(json!({}));
        harness.append(&[user("read both")]);
        let alone = harness.prepare().usage;
        harness.append(&calls(format, &[("a", "x"), ("b", "y")]));
        assert_eq!(fates(&harness.session), ["verbatim", "verbatim"], "nothing was left out so far");
        let usage = harness.prepare().usage;
        assert_eq!(usage, alone, "{format:?}: the usage is that of what is sent");
        let entries = ledger(&harness.session);
        assert_eq!(entries[0], ("verbatim".into(), String::new()));
        assert_eq!(entries[1].0, "dropped");
        let rule = if format == Format::OpenaiChat { "OC2" } else { "AN2" };
        assert!(entries[1].1.contains(rule) && entries[1].1.contains("log"), "{}", entries[1].1);
        let warnings = |harness: &Harness| {
            let is = |notice: &&Notice| matches!(notice, Notice::Warning { code: Code::InvalidMessage, .. });
            harness.host.seen.notices.iter().filter(is).count()
        };
        let told = warnings(&harness);
        assert!(told > 0);
        harness.prepare();
        assert_eq!(warnings(&harness), told, "told once");
        harness.append(&results(format, &[("a", "1"), ("b", "2")]));
        let all = harness.prepare();
        assert_eq!(all.usage, harness.session.usage().unwrap());
        assert!(fates(&harness.session).iter().all(|fate| fate == "verbatim"));
        harness.append(&calls(format, &[("c", "z")]));
        harness.prepare();
        assert!(warnings(&harness) > told, "another one is told again");
    }
    // A message of which a part is sent.
    let mut harness = Harness::new(json!({}));
    let mut call: Value = serde_json::from_str(&calls(Format::OpenaiChat, &[("a", "x")])[0]).unwrap();
    call["content"] = json!("I will look.");
    harness.append(&[user("look"), body(&call)]);
    let prepared = harness.prepare();
    assert_eq!((prepared.items.len(), prepared.usage.tool_call_count), (2, 0));
    assert_eq!(fates(&harness.session), ["verbatim", "reduced"]);
    assert!(!harness.host.seen.notices.is_empty());
}

#[test]
fn s1_7_a_summariser_sees_the_indices_of_the_apps_messages() {
    let system = body(&json!({ "role": "system", "content": "Be brief." }));
    let mut harness = Harness::new(eager());
    harness.append(&[system, user(&long("Fix src/parser.rs now", 60))]);
    harness.append(&talk(5, 60)[1..]);
    harness.compact();
    harness.append(&[user(&long("Now fix src/lexer.rs", 60)), assistant(&long("done", 60))]);
    harness.append(&talk(3, 60));
    harness.compact();
    let seen = |nth: usize| {
        let (request, _) = &harness.host.seen.requests[nth];
        let request = serde_json::to_value(&**request).unwrap();
        let fact = |text: &str| {
            let facts = request["facts"].as_array().unwrap().clone();
            facts.into_iter().find(|fact| fact["text"] == text).map(|fact| fact["index"].clone())
        };
        (
            request["messages"][0]["content"].as_str().unwrap().to_string(),
            fact("src/parser.rs"),
            fact("src/lexer.rs"),
        )
    };
    let (prompt, parser, _) = seen(0);
    assert!(prompt.contains("<message index=\"1\" role=\"user\">") && !prompt.contains("index=\"0\""));
    assert_eq!(parser, Some(json!(1)));
    let (prompt, _, lexer) = seen(1);
    assert!(prompt.contains("<message role=\"user\">\n[Compressed History]"), "{prompt}");
    assert!(prompt.contains("<message index=\"11\" role=\"user\">"));
    assert_eq!(lexer, Some(json!(11)));
}

#[test]
fn an8_a_rehearsed_summary_counts_the_thinking_that_would_go() {
    let over = json!({ "compactAt": { "tokens": 100 }, "presetOptions": { "scanRatio": 0 } });
    let mut harness = Harness::new(over.clone());
    let plain: Vec<Body> = talk(6, 60);
    harness.append(&plain);
    let without = harness.host.run(harness.session.plan()).unwrap();
    let mut other = Harness::over(Default::default(), "b", over);
    let mut signed = plain;
    let last: Value = serde_json::from_str(&signed[11]).unwrap();
    let thinking = json!({ "type": "thinking", "thinking": long("hm", 80), "signature": "c2ln" });
    let text = json!({ "type": "text", "text": last["content"] });
    signed[11] = body(&json!({ "role": "assistant", "content": [thinking, text] }));
    other.append(&signed);
    let with = other.host.run(other.session.plan()).unwrap();
    assert!(with.edits[0].freed_tokens >= without.edits[0].freed_tokens + 80);
    assert!(with.floor <= without.floor + 1, "{} {}", with.floor, without.floor);
}

/// The offload changed what stood before the answer that was on its way, and no summary followed it (AN8).
#[test]
fn an8_what_arrives_after_a_change_that_nobody_was_handed_loses_its_thinking_at_the_next_prepare() {
    let options = json!({
        "compactAt": { "tokens": 100 }, "summarize": { "attempts": 1 },
        "presetOptions": { "scanRatio": 1.0, "compactTriggerThreshold": 1_000_000, "compactCooldownSteps": 0 },
    });
    let mut harness = Harness::new(options);
    harness.append(&thinking_turn(0, 400));
    harness.append(&thinking_turn(1, 400));
    let (mut arrived, session) = (Some(thinking_turn(2, 10)), harness.session.clone());
    let mut other = Host::new(Rc::clone(&harness.memory) as _, "other");
    harness.host.meanwhile = Box::new(move |effect| {
        if matches!(effect, Effect::Summarize { .. })
            && let Some(bodies) = arrived.take()
        {
            other.run(session.append(bodies)).unwrap();
        }
    });
    harness.host.summarise = Box::new(|_, _| failed(Code::Aborted));
    let error = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap_err();
    assert_eq!(error.code, Code::Aborted);
    assert!(harness.stored().generation > 0, "the offload was stored before");
    harness.host.summarise = Box::new(|_, _| thrown("down", None));
    let sent = harness.sent();
    let thinking: Vec<usize> = (0..sent.len()).filter(|at| thinks(&sent[*at])).collect();
    assert_eq!(thinking, [1], "F39: what stands before the first change keeps it, and nothing else");
    harness.append(&thinking_turn(3, 10));
    let sent = harness.sent();
    assert!((sent.len() - 4..sent.len()).any(|at| thinks(&sent[at])), "what was written since keeps it");
}

#[test]
fn d11_a_prepare_has_what_another_handle_appended() {
    let mut harness = Harness::new(json!({}));
    harness.append(&[user("one")]);
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
    other.append(&[assistant("two"), user("three")]);
    assert_eq!(harness.sent(), other.sent());
    assert_eq!(harness.sent().len(), 3);
    // Also where nothing was written through it so far.
    let mut third = Harness::over(Rc::default(), "a", json!({}));
    Harness::over(Rc::clone(&third.memory), "b", json!({})).append(&[user("first")]);
    assert_eq!(third.sent().len(), 1);
    // And the context that another one made.
    harness.append(&talk(8, 100));
    assert!(harness.compact().success);
    assert_eq!(other.sent(), harness.context());
}

#[test]
fn d11_where_the_store_cannot_be_asked_a_prepare_has_what_is_known_and_warns() {
    let mut harness = Harness::new(json!({}));
    harness.append(&[user("one")]);
    harness.host.fault(1, |effect| matches!(effect, Effect::Read(_)), How::Fail(Code::StoreUnavailable));
    assert_eq!(harness.sent().len(), 1);
    let is_warning = |notice: &Notice| matches!(notice, Notice::Warning { code: Code::StoreUnavailable, .. });
    assert_eq!(harness.host.seen.notices.iter().filter(|notice| is_warning(notice)).count(), 1);
}
