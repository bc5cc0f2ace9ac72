//! A request for a summary that continues the conversation's own prompt: when there is one, what it holds, and what comes of
//! an answer that is none.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::policy::Trigger;
use context_compactor_core::step::Event;
use context_compactor_core::summary::SummaryRequest;
use context_compactor_core::wire::{Author, Format};
use context_compactor_store_tests::conversation::{Body, assistant, body, say, user};
use context_compactor_store_tests::host::{failed, summary, thrown};
use serde_json::{Value, json};
use std::rc::Rc;

const SYSTEM: &str = "You fix bugs.";
const TOOLS: &str = r#"[{"name":"z_last","a_field":1},{"name":"bash"}]"#;

fn words() -> String {
    (0..60).map(|nth| format!("Question {nth} was answered, and it was read.\n")).collect()
}

fn harness(over: Value) -> Harness {
    let mut options =
        json!({ "preset": "balanced", "contextWindow": 32_000, "model": "m", "background": false });
    merge(&mut options, &over);
    let mut harness = Harness::new(options);
    harness.host.summarise = Box::new(|_, _| summary(&words()));
    harness
}

fn prepare(harness: &mut Harness) -> context_compactor_core::session::Prepared {
    let fixed = vec![SYSTEM.to_owned(), TOOLS.to_owned()];
    harness.host.run(harness.session.prepare(Trigger::Auto, fixed)).unwrap()
}

fn turn_of(format: Format, nth: usize) -> [Body; 2] {
    [
        say(format, Author::User, &long(&format!("question {nth}"), 500)),
        say(format, Author::Assistant, &long(&format!("answer {nth}"), 500)),
    ]
}

/// Talks until a summary is due; the prompt before it, as it was sent.
fn talked(harness: &mut Harness, format: Format) -> Vec<Value> {
    let mut before = Vec::new();
    for nth in 0..60 {
        harness.append(&turn_of(format, nth));
        let prepared = prepare(harness);
        if prepared.result.is_some() {
            return before;
        }
        before = bodies(&harness.session, &prepared);
    }
    panic!("no summary was due");
}

/// The first request that a summariser is sent.
fn asked(over: Value) -> Rc<SummaryRequest> {
    let mut harness = harness(over);
    talked(&mut harness, Format::OpenaiChat);
    Rc::clone(&harness.host.seen.requests[0].0)
}

#[test]
fn w7_a_request_has_both_forms_and_the_instruction_is_a_message_of_the_format() {
    for format in
        [Format::OpenaiChat, Format::Anthropic, Format::Gemini, Format::AiSdk, Format::OpenaiResponses]
    {
        let mut harness = harness(json!({ "format": format.as_str() }));
        let before = talked(&mut harness, format);
        let request = Rc::clone(&harness.host.seen.requests[0].0);
        let thread = request.thread.as_ref().unwrap_or_else(|| panic!("{}", format.as_str()));
        assert!(request.system.contains("# The material") && request.messages.len() == 1);
        let [message] = &thread.messages[..] else { panic!("one message") };
        let message: Value = serde_json::from_str(message).unwrap();
        assert_eq!(
            message,
            serde_json::from_str::<Value>(&say(format, Author::User, &thread.instruction)).unwrap()
        );
        assert_valid(format, &[before, vec![message]].concat());
        for what in [
            "Call no tool",
            "## Next",
            "each request of the user: done or not done",
            "from the one on that begins with «question ",
            &format!("approximately {} tokens", request.target_tokens),
        ] {
            assert!(thread.instruction.contains(what), "{what}: {}", thread.instruction);
        }
        assert!(thread.prompt.is_none(), "the app has its prompt itself");
    }
}

#[test]
fn w7_a_request_that_may_not_fit_for_what_an_estimate_is_off_continues_no_prompt() {
    for (window, reported, continues) in
        [(24_000, false, false), (24_000, true, true), (26_000, false, true), (26_000, true, true)]
    {
        let mut harness = harness(json!({ "summarize": { "contextWindow": window } }));
        for nth in 0..60 {
            harness.append(&turn_of(Format::OpenaiChat, nth));
            let prepared = prepare(&mut harness);
            if prepared.result.is_some() {
                break;
            }
            if reported {
                let counted = json!({ "prompt_tokens": prepared.usage.used_tokens }).to_string();
                assert!(harness.session.record_usage(&counted, None).unwrap());
            }
        }
        let (request, _) = &harness.host.seen.requests[0];
        assert_eq!(request.thread.is_some(), continues, "{window}, {reported}");
    }
}

#[test]
fn w7_there_is_no_thread_where_the_prompt_is_not_the_conversations_own_or_may_not_be_sent() {
    assert!(asked(json!({})).thread.is_some());
    assert!(asked(json!({ "summarize": { "model": "m" } })).thread.is_some());
    for (what, over) in [
        ("another model", json!({ "summarize": { "model": "small" } })),
        ("the app redacts", json!({ "redact": { "text": true } })),
        ("a window without room for the answer", json!({ "summarize": { "contextWindow": 20_000 } })),
    ] {
        assert!(asked(over).thread.is_none(), "{what}");
    }
    // A secret, anywhere in the prompt, also in what stays.
    for (redacts, at) in [(true, 0), (true, 12), (false, 0)] {
        let mut harness = harness(json!({ "redact": { "secrets": redacts } }));
        for nth in 0..60 {
            let [question, answer] = turn_of(Format::OpenaiChat, nth);
            harness.append(&[question, answer]);
            if nth == at {
                harness.append(&[
                    user("The token is ghp_abcdefghijklmnopqrstuvwxyz0123456789."),
                    assistant("Yes."),
                ]);
            }
            if prepare(&mut harness).result.is_some() {
                break;
            }
        }
        let (request, _) = &harness.host.seen.requests[0];
        assert_eq!(request.thread.is_none(), redacts, "{at}");
    }
    // Nothing was prepared by this process.
    let mut harness = harness(json!({}));
    (0..20).for_each(|nth| harness.append(&turn_of(Format::OpenaiChat, nth)));
    harness.compact();
    assert!(harness.host.seen.requests[0].0.thread.is_none());
    // What was prepared is another prompt by now.
    let mut changed = self::harness(json!({}));
    (0..20).for_each(|nth| changed.append(&turn_of(Format::OpenaiChat, nth)));
    prepare(&mut changed);
    changed.host.run(changed.session.rewind(10)).unwrap();
    changed.append(&[user("Again."), assistant("Yes.")]);
    changed.compact();
    assert!(changed.host.seen.requests[0].0.thread.is_none());
}

/// A session whose summaries an endpoint writes.
fn endpoint(kind: &str, over: Value) -> Harness {
    let provider = json!({ "kind": kind, "model": "m", "request": request_of(kind) });
    let mut options = json!({ "summarize": { "call": null, "provider": provider } });
    merge(&mut options, &over);
    harness(options)
}

fn request_of(kind: &str) -> Value {
    match kind {
        "anthropic" => json!({
            "tool_choice": { "type": "auto" }, "thinking": { "type": "enabled", "budget_tokens": 2_000 },
            "stream": true, "max_tokens": 1_000,
        }),
        "gemini" => json!({ "generationConfig": { "thinkingConfig": { "thinkingBudget": 5 } } }),
        _ => {
            json!({ "tool_choice": "auto", "reasoning_effort": "low", "stream": true, "max_completion_tokens": 30_000 })
        }
    }
}

fn format_of(kind: &str) -> Format {
    match kind {
        "anthropic" => Format::Anthropic,
        "gemini" => Format::Gemini,
        _ => Format::OpenaiChat,
    }
}

fn ok(body: Value) -> Event {
    Event::Response { status: 200, headers: Vec::new(), body: body.to_string() }
}

fn said(kind: &str, text: &str) -> Event {
    ok(match kind {
        "anthropic" => json!({ "content": [{ "type": "text", "text": text }], "stop_reason": "end_turn" }),
        "gemini" => {
            json!({ "candidates": [{ "content": { "parts": [{ "text": text }] }, "finishReason": "STOP" }] })
        }
        _ => json!({ "choices": [{ "finish_reason": "stop", "message": { "content": text } }] }),
    })
}

fn called(kind: &str) -> Event {
    ok(match kind {
        "anthropic" => {
            json!({ "content": [{ "type": "tool_use", "id": "t", "name": "bash", "input": {} }], "stop_reason": "tool_use" })
        }
        "gemini" => {
            json!({ "candidates": [{ "content": { "parts": [{ "functionCall": { "name": "bash" } }] } }] })
        }
        _ => {
            json!({ "choices": [{ "finish_reason": "tool_calls", "message": { "tool_calls": [{ "id": "t" }] } }] })
        }
    })
}

/// The bodies that the endpoint was sent.
fn sent(harness: &Harness) -> Vec<Value> {
    harness.host.seen.fetched.iter().map(|request| serde_json::from_str(&request.body).unwrap()).collect()
}

fn is_thread(body: &Value) -> bool {
    let list = body.get("messages").or_else(|| body.get("contents")).and_then(Value::as_array).unwrap();
    list.len() > 5
}

#[test]
fn w7_an_endpoint_is_sent_the_prompt_as_it_was_and_one_message_more() {
    for kind in ["openai", "anthropic", "gemini"] {
        let mut harness = endpoint(kind, json!({ "format": format_of(kind).as_str() }));
        harness.host.fetch = Box::new(move |_| said(kind, &words()));
        let before = talked(&mut harness, format_of(kind));
        let raw = harness.host.seen.fetched[0].body.clone();
        let body = &sent(&harness)[0];
        assert!(raw.contains(&format!("\"tools\":{TOOLS}")), "to the letter: {raw}");
        let mut messages =
            body.get("messages").or_else(|| body.get("contents")).unwrap().as_array().unwrap().clone();
        let last = messages.pop().unwrap();
        assert!(last.to_string().contains("Call no tool"), "{last}");
        assert!(!body.as_object().unwrap().contains_key("stream"));
        match kind {
            "anthropic" => {
                assert_eq!(
                    (&body["system"], &body["tool_choice"]),
                    (&json!(SYSTEM), &json!({ "type": "auto" }))
                );
                assert_eq!(body["thinking"], json!({ "type": "enabled", "budget_tokens": 2_000 }));
                // Thinking takes its part: the cap is beyond it.
                assert!(body["max_tokens"].as_u64().unwrap() > 2_300, "{}", body["max_tokens"]);
                assert_eq!(last["content"][0]["cache_control"], json!({ "type": "ephemeral" }));
            }
            "gemini" => {
                assert_eq!(body["systemInstruction"]["parts"][0]["text"], json!(SYSTEM));
                assert_eq!(body["generationConfig"]["thinkingConfig"], json!({ "thinkingBudget": 5 }));
                assert!(body["generationConfig"]["maxOutputTokens"].as_u64().unwrap() > 300);
                assert!(body.get("model").is_none());
            }
            _ => {
                assert_eq!(messages.remove(0), json!({ "role": "system", "content": SYSTEM }));
                assert_eq!(
                    (&body["tool_choice"], &body["reasoning_effort"]),
                    (&json!("auto"), &json!("low"))
                );
                // The app's own cap, which fitted this prompt before.
                assert_eq!(body["max_completion_tokens"], json!(30_000));
                assert_eq!(body["model"], json!("m"));
            }
        }
        assert_eq!(messages, before, "{kind}");
        assert_eq!(harness.host.seen.fetched.len(), 1);
    }
}

#[test]
fn w7_fields_of_the_app_go_before_what_the_session_knows() {
    let own = json!({ "system": [{ "type": "text", "text": "Mine.", "cache_control": { "type": "ephemeral" } }], "tools": [] });
    let provider = json!({ "kind": "anthropic", "model": "m", "request": own });
    let mut harness =
        harness(json!({ "format": "anthropic", "summarize": { "call": null, "provider": provider } }));
    harness.host.fetch = Box::new(|_| said("anthropic", &words()));
    talked(&mut harness, Format::Anthropic);
    let body = &sent(&harness)[0];
    assert_eq!((&body["system"], &body["tools"]), (&own["system"], &own["tools"]));
}

#[test]
fn w7_an_answer_with_a_call_is_refused_once_and_then_the_rendered_form_is_asked() {
    for kind in ["openai", "anthropic", "gemini"] {
        let over = json!({ "format": format_of(kind).as_str(), "summarize": { "attempts": 1 } });
        let mut harness = endpoint(kind, over);
        let mut calls = 0;
        harness.host.fetch = Box::new(move |_| {
            calls += 1;
            if calls == 1 { called(kind) } else { said(kind, &words()) }
        });
        talked(&mut harness, format_of(kind));
        let forms: Vec<bool> = sent(&harness).iter().map(is_thread).collect();
        assert_eq!(forms, [true, false], "{kind}");
        assert!(
            harness.host.seen.slept.iter().all(|ms| *ms == 0),
            "nobody waits: {:?}",
            harness.host.seen.slept
        );
    }
}

#[test]
fn w7_who_is_busy_is_asked_the_same_again_and_who_refuses_the_form_another() {
    let status = |status: u16| Event::Response {
        status,
        headers: Vec::new(),
        body: r#"{"error":{"message":"no"}}"#.into(),
    };
    for (what, first, forms) in [
        ("429", status(429), vec![true, true]),
        ("503", status(503), vec![true, true]),
        ("timeout", failed(Code::Timeout), vec![true, true]),
        ("offline", thrown("fetch failed", None), vec![true, true]),
        ("400", status(400), vec![true, false]),
        ("413", status(413), vec![true, false]),
        ("a refusal", said("openai", "I cannot do that, sorry: I must go on."), vec![true, false]),
        ("401", status(401), vec![true]),
    ] {
        let mut harness = endpoint("openai", json!({}));
        let mut first = Some(first);
        harness.host.fetch = Box::new(move |_| first.take().unwrap_or_else(|| said("openai", &words())));
        talked(&mut harness, Format::OpenaiChat);
        assert_eq!(sent(&harness).iter().map(is_thread).collect::<Vec<_>>(), forms, "{what}");
    }
}

#[test]
fn w7_an_endpoint_is_sent_a_new_prompt_where_the_conversation_may_run_elsewhere() {
    for (what, over) in [
        ("another model", json!({ "summarize": { "provider": { "model": "small" } } })),
        ("no model", json!({ "model": null })),
        ("nothing is said of its requests", json!({ "summarize": { "provider": { "request": null } } })),
        (
            "another format",
            json!({ "summarize": { "provider": { "kind": "anthropic" } }, "format": "openai-chat" }),
        ),
        ("no format", json!({ "summarize": { "provider": { "kind": "ollama" } } })),
        (
            "a call is forced",
            json!({ "summarize": { "provider": { "request": { "tool_choice": "required" } } } }),
        ),
        ("the app redacts", json!({ "redact": { "text": true } })),
    ] {
        let mut harness = endpoint("openai", over);
        harness.host.fetch = Box::new(|_| said("openai", &words()));
        talked(&mut harness, Format::OpenaiChat);
        assert!(!is_thread(&sent(&harness)[0]), "{what}");
    }
    // A value that JSON has not is not what the app sent.
    let mut harness = endpoint("openai", json!({}));
    harness.host.fetch = Box::new(|_| said("openai", &words()));
    harness.append(&[body(
        &json!({ "role": "user", "content": "Hi.", "at": { "$cc": "date", "v": "2026-01-01" } }),
    )]);
    harness.append(&[assistant("Yes.")]);
    talked(&mut harness, Format::OpenaiChat);
    assert!(!is_thread(&sent(&harness)[0]));
}

#[test]
fn w7_the_price_of_a_compaction_is_that_of_the_request_as_it_is_sent() {
    let prices = json!({ "input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75 });
    let due = |request: Value| {
        let over = json!({
            "economy": true, "prices": prices, "contextWindow": 200_000, "summarize": { "provider": { "request": request } },
        });
        let mut harness = endpoint("openai", over);
        harness.host.fetch = Box::new(|_| said("openai", &words()));
        for nth in 0..200 {
            harness.append(&turn_of(Format::OpenaiChat, nth));
            let plan = harness.host.run(harness.session.plan()).unwrap();
            if prepare(&mut harness).result.is_some() {
                let [.., edit] = &plan.edits[..] else { panic!("{plan:?}") };
                return (nth, edit.input_tokens, plan.cost.unwrap().now);
            }
        }
        panic!("it never acted");
    };
    let ((thread, reads, cheap), (rendered, new, dear)) = (due(json!({})), due(Value::Null));
    assert!(thread < rendered, "{thread} {rendered}");
    // All of the prompt is read, from the cache.
    assert!(reads > thread * 1_000 && new < rendered * 1_000, "{reads} {new}");
    assert!(cheap < dear, "{cheap} {dear}");
}

#[test]
fn w7_what_was_answered_before_a_crash_is_found_again_without_the_thread() {
    let mut first = harness(json!({}));
    (0..20).for_each(|nth| first.append(&turn_of(Format::OpenaiChat, nth)));
    prepare(&mut first);
    first.host.fault(1, is_change, context_compactor_store_tests::host::How::CrashBefore);
    assert!(first.host.try_run(first.session.compact(None)).is_none());
    assert!(first.host.seen.requests[0].0.thread.is_some());
    let options = json!({ "preset": "balanced", "contextWindow": 32_000, "model": "m", "background": false });
    let mut second = Harness::over(Rc::clone(&first.memory), "b", options);
    assert!(second.compact().success);
    assert_eq!(second.host.seen.requests.len(), 0, "the answer was paid for");
}
