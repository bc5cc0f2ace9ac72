//! Sessions: what is sent (`S1.15`), whole histories handed over, formats, counters, redaction, providers, reopening.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::MessageSource;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::session::audit::{audit, look};
use context_compactor_core::step::{Event, Notice};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, body, calls, results, user};
use context_compactor_store_tests::{Host, How, MemoryStore};
use serde_json::json;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

fn sync(harness: &mut Harness, known: usize, history: &[Body]) -> (usize, Option<usize>) {
    match harness.host.run(harness.session.sync(known, history[known..].to_vec())) {
        Ok(synced) => (synced.appended, synced.branched_at),
        Err(error) if error.code == Code::Diverged => (0, error.index),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn s1_15_a_call_is_not_sent_before_its_result_and_is_sent_with_it() {
    for format in FORMATS {
        let mut harness = Harness::new(json!({}));
        harness.append(&[user("read both")]);
        harness.append(&calls(format, &[("a", "x"), ("b", "y")]));
        let sent = harness.sent();
        assert_eq!(sent.len(), 1, "{format:?}");
        assert_valid(format, &sent);
        assert!(matches!(&harness.host.seen.notices[0], Notice::Warning { code: Code::InvalidMessage, .. }));
        harness.append(&results(format, &[("a", "1"), ("b", "2")]));
        let sent = harness.sent();
        assert_eq!(sent.len(), harness.stored().messages.len(), "{format:?}: nothing was lost");
        assert_valid(format, &sent);
    }
}

#[test]
fn s1_15_orphaned_results_are_not_sent_and_stay_in_the_log() {
    for format in FORMATS {
        let mut harness = Harness::new(json!({}));
        harness.append(&[user("hello")]);
        harness.append(&results(format, &[("never", "asked")]));
        harness.append(&[assistant("well")]);
        let sent = harness.sent();
        assert!(!serde_json::to_string(&sent).unwrap().contains("asked"));
        assert_valid(format, &sent);
        assert_eq!(harness.stored().messages.len(), 3);
    }
    let mut harness = Harness::new(json!({}));
    let broken = json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": "a", "type": "function", "function": { "name": "f", "arguments": "[1" } }] });
    harness.append(&[user("hello"), body(&broken)]);
    harness.append(&results(Format::OpenaiChat, &[("a", "result")]));
    harness.append(&[assistant("sorry")]);
    let sent = harness.sent();
    assert_eq!(sent.len(), 2, "arguments that are no object take their whole exchange away");
    assert_valid(Format::OpenaiChat, &sent);
}

#[test]
fn a_call_that_still_waits_for_its_result_is_never_compressed() {
    for format in FORMATS {
        for keep in [json!({ "tokens": 1 }), json!({ "fraction": 0.0 }), json!({ "messages": 1 })] {
            let mut harness = Harness::new(json!({ "keep": keep }));
            harness.append(&talk(4, 60));
            harness.append(&[user("read both")]);
            harness.append(&calls(format, &[("a", "x"), ("b", "y")]));
            if format == Format::OpenaiChat {
                harness.append(&results(format, &[("a", "first")]));
            }
            assert!(harness.compact().success);
            let rest: &[(&str, &str)] = if format == Format::OpenaiChat {
                &[("b", "second")]
            } else {
                &[("a", "first"), ("b", "second")]
            };
            harness.append(&results(format, rest));
            let sent = serde_json::to_string(&harness.sent()).unwrap();
            assert!(sent.contains("first") && sent.contains("second"), "{format:?} {keep}: {sent}");
        }
    }
}

#[test]
fn sync_recognises_what_it_knows_and_appends_the_rest() {
    for format in FORMATS {
        let mut harness = Harness::new(json!({ "compactAt": { "tokens": 100 }, "onDiverged": "throw" }));
        let history: Vec<Body> = (0..4).flat_map(|nth| turn(format, nth, 60)).collect();
        assert_eq!(sync(&mut harness, 0, &history[..8]), (8, None));
        assert_eq!(sync(&mut harness, 0, &history[..8]), (0, None));
        assert_eq!(sync(&mut harness, 8, &history[..12]), (4, None));
        harness.compact();
        // What was summarised is compared with the log.
        assert_eq!(sync(&mut harness, 0, &history), (4, None));
        assert_eq!(harness.stored().messages.len(), 16);
        // A changed past is reported with its index, and nothing is guessed.
        let mut changed = history.clone();
        changed[5] = user("something else");
        changed.push(user("new"));
        assert_eq!(sync(&mut harness, 0, &changed), (0, Some(5)));
        assert_eq!(sync(&mut harness, 0, &history[..6]), (0, Some(6)));
        assert_eq!(harness.stored().messages.len(), 16);
    }
}

#[test]
fn e1_messages_that_are_the_same_are_told_as_runs() {
    let mut harness = Harness::new(json!({}));
    let history: Vec<Body> = (0..6).map(|nth| user(&format!("message {nth}"))).collect();
    sync(&mut harness, 0, &history[..5]);
    let synced = harness.host.run(harness.session.sync(0, history.clone())).unwrap();
    assert_eq!((synced.same, synced.appended), (vec![(0, 0, 5)], 1));
    // The last one of a window is at another place there.
    let window = [&history[2..], &[user("message 6")]].concat();
    let synced = harness.host.run(harness.session.sync(0, window)).unwrap();
    assert_eq!((synced.same, synced.aligned_at), (vec![(0, 2, 4)], Some(2)));
}

#[test]
fn sync_of_an_edit_in_the_tail_after_reopening_is_seen() {
    let mut harness = Harness::new(json!({}));
    let mut history = talk(3, 20);
    sync(&mut harness, 0, &history);
    let mut again = Harness::over(Rc::clone(&harness.memory), "b", json!({ "onDiverged": "throw" }));
    history[5] = assistant("another answer");
    assert_eq!(sync(&mut again, 0, &history), (0, Some(5)));
}

#[test]
fn lesson_triplicates_two_tabs_that_sync_the_same_history_write_it_once() {
    let history = talk(3, 20);
    let mut harness = Harness::new(json!({}));
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
    assert_eq!(sync(&mut other, 0, &history[..4]), (4, None));
    // This tab knows of nothing yet: it finds out when it writes.
    assert_eq!(sync(&mut harness, 0, &history), (2, None));
    assert_eq!(harness.stored().messages.len(), 6);
    let mut changed = history.clone();
    changed[4] = user("not what the other tab has");
    changed.push(assistant("new"));
    let mut late = Harness::over(Rc::clone(&harness.memory), "c", json!({ "onDiverged": "throw" }));
    assert_eq!(sync(&mut late, 0, &changed), (0, Some(4)));
    // After a write whose fate is unknown the same history is handed over again.
    harness.host.fault(1, is_commit, How::Lost);
    harness.host.fault(
        1,
        |effect| matches!(effect, context_compactor_core::step::Effect::Read(_)),
        How::Fail(Code::StoreUnavailable),
    );
    let longer: Vec<Body> = history.iter().cloned().chain([user("again")]).collect();
    let error = harness.host.run(harness.session.sync(0, longer.clone())).unwrap_err();
    assert_eq!(error.code, Code::Indeterminate, "it may have been written, and the store cannot be asked");
    assert_eq!(sync(&mut harness, 0, &longer).1, None);
    assert_eq!(harness.stored().messages.len(), 7);
}

#[test]
fn sync_does_not_trust_a_count_that_it_does_not_have() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(1, 20));
    let error = harness.host.run(harness.session.sync(5, talk(1, 20))).unwrap_err();
    assert_eq!(error.code, Code::InvalidOption);
}

#[test]
fn the_format_settles_with_the_first_message_that_says_it() {
    let mut harness = Harness::new(json!({}));
    harness.append(&[user("plain"), assistant("text")]);
    harness.append(&turn(Format::Anthropic, 0, 100));
    let usage = harness.session.usage().unwrap();
    let again = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
    assert_eq!(again.session.usage().unwrap(), usage, "what was there is counted in it too");
    assert_eq!(
        look(&again.session).unwrap().context.items(),
        look(&harness.session).unwrap().context.items()
    );
    let error =
        harness.host.run(harness.session.append(results(Format::OpenaiChat, &[("x", "y")]))).unwrap_err();
    assert_eq!((error.code, error.index), (Code::InvalidMessage, Some(0)));
}

#[test]
fn a_failed_append_settles_nothing() {
    let mut harness = Harness::new(json!({}));
    harness.append(&[user("plain")]);
    harness.host.fault(1, is_commit, How::Fail(Code::QuotaExceeded));
    let error = harness.host.run(harness.session.append(turn(Format::Anthropic, 0, 20))).unwrap_err();
    assert_eq!(error.code, Code::QuotaExceeded);
    harness.append(&turn(Format::OpenaiChat, 0, 20));
    assert_eq!(harness.stored().messages.len(), 5);
}

#[test]
fn lesson_lost_writes_a_batch_whose_answer_was_lost_stays_when_the_next_one_settles_the_format() {
    let memory = Rc::new(MemoryStore::default());
    let mut host = Host::new(Rc::clone(&memory) as _, "a");
    // Two messages in a batch.
    let (session, _) = host.run(Session::open(settings(json!({})), Some("s".into()), 6)).unwrap();
    host.run(session.append(talk(1, 20))).unwrap();
    host.fault(1, is_commit, How::Lost);
    host.run(session.append(turn(Format::Anthropic, 0, 20))).unwrap();
    assert_eq!(session.explain().unwrap().len(), 6);
    let stored = audit("s", &memory.rows()).unwrap();
    assert_eq!(look(&session).unwrap().context.items().len(), stored.context.len());
}

#[test]
fn a_format_that_settles_in_a_race_is_kept() {
    let mut harness = Harness::new(json!({}));
    // Both formats admit this block; they count it differently.
    let thought = json!({ "type": "thinking", "thinking": "a thought of some length, to be counted" });
    let answer = json!({ "role": "assistant", "content": [thought, { "type": "text", "text": "so" }] });
    harness.append(&[user("plain")]);
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
    other.append(&[body(&answer)]);
    harness.append(&turn(Format::Anthropic, 0, 20));
    let again = Harness::over(Rc::clone(&harness.memory), "c", json!({}));
    assert_eq!(
        look(&again.session).unwrap().context.items(),
        look(&harness.session).unwrap().context.items()
    );
    // The other tab takes the format over with its next write, and counts what it holds anew.
    other.append(&[user("next")]);
    let again = Harness::over(Rc::clone(&harness.memory), "d", json!({}));
    assert_eq!(look(&again.session).unwrap().context.items(), look(&other.session).unwrap().context.items());
}

#[test]
fn an_invalid_message_is_named_and_nothing_is_written() {
    let mut harness = Harness::new(json!({}));
    let bad = body(&json!({ "role": "user", "content": 7 }));
    let error = harness.host.run(harness.session.append(vec![user("fine"), bad])).unwrap_err();
    assert!(matches!(error.code, Code::InvalidMessage | Code::UnknownFormat), "{error}");
    assert_eq!(harness.stored().messages.len(), 0);
}

#[test]
fn lesson_wrong_counts_the_apps_counter_is_the_only_one() {
    let mut harness = Harness::new(json!({ "tokenCounter": true, "compactAt": { "tokens": 100_000 } }));
    let asked = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&asked);
    harness.host.count = Box::new(move |whose, _| {
        seen.borrow_mut().push(whose);
        Event::Number(10.5)
    });
    harness.append(&talk(3, 60));
    assert_eq!(*asked.borrow(), (0..6).map(MessageSource::New).collect::<Vec<_>>());
    assert_eq!(
        harness.session.usage().unwrap().used_tokens,
        66,
        "parts of tokens round up, message by message"
    );
    let result = harness.compact();
    assert_eq!((result.previous_tokens, result.current_tokens), (66, 66), "{:?}", result.error);
    harness.append(&talk(4, 60));
    let result = harness.compact();
    assert!(result.success && asked.borrow().contains(&MessageSource::Ours));
    // A whole history: the new ones are named by their place in what was handed over.
    asked.borrow_mut().clear();
    let history: Vec<Body> = talk(3, 60).into_iter().chain(talk(4, 60)).chain([user("more")]).collect();
    assert_eq!(sync(&mut harness, 0, &history), (1, None));
    assert_eq!(*asked.borrow(), [MessageSource::New(14)]);
    for bad in [Event::Number(f64::NAN), Event::Number(-1.0), Event::Text("7".into())] {
        let answer = bad.clone();
        harness.host.count = Box::new(move |_, _| answer.clone());
        let error = harness.host.run(harness.session.append(vec![user("x")])).unwrap_err();
        assert_eq!(
            (error.code, error.field.as_deref()),
            (Code::InvalidOption, Some("tokenCounter")),
            "{bad:?}"
        );
    }
}

#[test]
fn redaction_reaches_what_a_summariser_sees_and_nothing_stored() {
    for summariser in [true, false] {
        let mut harness = Harness::new(
            json!({ "redact": { "text": true }, "summarize": { "call": summariser.then_some(true) } }),
        );
        harness.host.redact = Box::new(|text| Event::Text(text.replace("hunter2", "[secret]")));
        let mut messages = talk(5, 60);
        messages[0] = user("Remember: the password is hunter2, it must be kept.");
        harness.append(&messages);
        let result = harness.compact();
        assert!(result.success);
        assert!(!result.summary.unwrap().contains("hunter2"));
        if summariser {
            let content = &harness.host.seen.requests[0].0.messages[0].content;
            assert!(content.contains("[secret]") && !content.contains("hunter2"));
        }
        assert!(harness.stored().messages[0].contains("hunter2"));
    }
}

/// A session whose summaries come from a provider.
fn provider(kind: &str) -> Harness {
    let mut harness = Harness::new(json!({
        "summarize": { "call": null, "provider": { "kind": kind, "model": "small", "headers": { "x-key": "k" } } },
    }));
    harness.append(&talk(6, 100));
    harness
}

fn answer(kind: &str) -> Event {
    let body = match kind {
        "openai" => {
            json!({ "choices": [{ "message": { "role": "assistant", "content": SUMMARY }, "finish_reason": "stop" }], "usage": { "prompt_tokens": 9, "completion_tokens": 4 } })
        }
        _ => {
            json!({ "content": [{ "type": "text", "text": SUMMARY }], "stop_reason": "end_turn", "usage": { "input_tokens": 9, "output_tokens": 4 } })
        }
    };
    Event::Response { status: 200, headers: Vec::new(), body: body.to_string() }
}

#[test]
fn s1_7_a_provider_writes_the_summary() {
    for kind in ["openai", "anthropic"] {
        let mut harness = provider(kind);
        harness.host.fetch = Box::new(move |_| answer(kind));
        let result = harness.compact();
        assert_eq!(result.summary.as_deref(), Some(SUMMARY), "{kind}");
        assert_eq!((result.usage.unwrap().input_tokens, result.llm_calls), (9, 1));
        let request = &harness.host.seen.fetched[0];
        assert!(
            request.body.contains("\"small\"") && request.headers.iter().any(|(name, _)| name == "x-key")
        );
    }
}

#[test]
fn s1_7_a_provider_that_asks_to_wait_is_waited_for() {
    for kind in ["openai", "anthropic"] {
        let mut harness = provider(kind);
        let mut calls = 0;
        harness.host.fetch = Box::new(move |_| {
            calls += 1;
            match calls {
                1 => Event::Response {
                    status: 429,
                    headers: vec![("retry-after".into(), "7".into())],
                    body: "{}".into(),
                },
                _ => answer(kind),
            }
        });
        assert!(harness.compact().success);
        assert_eq!(harness.host.seen.slept, [7_000], "{kind}");
        // What will never do better is not tried again.
        let mut harness = provider(kind);
        harness.host.fetch = Box::new(|_| Event::Response {
            status: 401,
            headers: Vec::new(),
            body: "{\"error\":{\"message\":\"bad key\"}}".into(),
        });
        let result = harness.compact();
        assert_eq!((result.success, harness.host.seen.fetched.len()), (false, 1));
    }
}

#[test]
fn lesson_compaction_request_overflows_the_next_attempt_is_smaller() {
    let mut harness = Harness::new(
        json!({ "summarize": { "call": null, "provider": { "kind": "openai", "model": "small" } } }),
    );
    harness.append(&talk(12, 250));
    let mut calls = 0;
    harness.host.fetch = Box::new(move |_| {
        calls += 1;
        if calls < 3 {
            let body = json!({ "error": { "code": "context_length_exceeded", "message": "This model's maximum context length is 4096 tokens." } });
            return Event::Response { status: 400, headers: Vec::new(), body: body.to_string() };
        }
        answer("openai")
    });
    assert!(harness.compact().success);
    let sizes: Vec<usize> = harness.host.seen.fetched.iter().map(|request| request.body.len()).collect();
    assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2], "{sizes:?}");
}

#[test]
fn s5_15_nothing_oversized_is_prepared() {
    let mut harness = Harness::new(json!({ "summarize": { "attempts": 1 } }));
    harness.append(&talk(2, 40));
    harness.append(&[user(&long("too much", 7_000))]);
    harness.host.run(harness.session.pin(4)).unwrap();
    let error = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap_err();
    assert_eq!(error.code, Code::ContextOverflow);
    assert_eq!(harness.stored().messages.len(), 5, "the message is in the transcript all the same");
    let plan = harness.host.run(harness.session.plan()).unwrap();
    assert!(plan.proof.is_some());
    // The system prompt and the tools count.
    let mut harness = Harness::new(json!({}));
    harness.append(&[user("hello")]);
    let fixed = vec![long("system", 6_500)];
    let error = harness.host.run(harness.session.prepare(Trigger::Auto, fixed)).unwrap_err();
    assert_eq!(error.code, Code::ContextOverflow);
    assert!(error.message.contains("fixed"), "{error}");
}

#[test]
fn views_of_many_generations_read_back_as_they_were() {
    for format in FORMATS {
        let options = json!({
            "compactAt": { "tokens": 300 },
            "presetOptions": { "compactCooldownSteps": 3, "compactTriggerThreshold": 40, "scanRatio": 0.7 },
        });
        let mut harness = Harness::new(options.clone());
        for nth in 0..90 {
            harness.append(&turn(format, nth, 40 + nth % 5 * 20));
            harness.prepare();
            if nth % 3 == 0 {
                let again = Harness::over(Rc::clone(&harness.memory), &format!("tab{nth}"), options.clone());
                assert_eq!(
                    look(&again.session).unwrap().context.items(),
                    look(&harness.session).unwrap().context.items()
                );
                assert_eq!(
                    again.session.usage().unwrap().categories[..5],
                    harness.session.usage().unwrap().categories[..5]
                );
            }
        }
        let stored = harness.stored();
        assert!(stored.generation > 64, "{}", stored.generation);
        assert_eq!(stored.messages.len(), 360);
    }
}

#[test]
fn lesson_unfinished_marker_a_job_that_never_ended_hinders_nobody() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(6, 60));
    harness.host.fault(
        1,
        |effect| matches!(effect, context_compactor_core::step::Effect::Summarize { .. }),
        How::CrashBefore,
    );
    assert!(harness.host.try_run(harness.session.compact(None)).is_none());
    let mut again = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
    assert!(again.compact().success);
}

#[test]
fn sessions_see_nothing_of_each_other() {
    let mut harness =
        Harness::new(json!({ "compactAt": { "tokens": 100 }, "presetOptions": { "preserveCount": 1_000 } }));
    harness.append(&turn(Format::OpenaiChat, 0, 200));
    harness.append(&talk(2, 10));
    harness.prepare();
    let reference = harness.session.explain().unwrap()[2].reference.clone().unwrap();
    let mut host = Host::new(Rc::clone(&harness.memory) as _, "other");
    let (other, opened) = host.run(Session::open(settings(json!({})), Some("t".into()), 10_000)).unwrap();
    assert_eq!(opened.messages, 0);
    assert_eq!(host.run(other.read(reference.clone(), 0, None)).unwrap_err().code, Code::NotFound);
    host.run(other.append(vec![user("mine")])).unwrap();
    host.run(other.delete()).unwrap();
    assert_eq!(harness.read(&reference), long("result 0", 200));
    harness.stored();
    assert_eq!(host.run(other.append(vec![user("more")])).unwrap_err().code, Code::Closed);
}

#[test]
fn a_session_deleted_elsewhere_takes_nothing_more() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(6, 60));
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
    other.host.run(other.session.delete()).unwrap();
    let error = harness.host.run(harness.session.append(vec![user("late")])).unwrap_err();
    assert_eq!(error.code, Code::Closed);
    assert!(harness.memory.rows().is_empty());
}

#[test]
fn reading_by_ranges_gets_everything_and_cuts_no_character() {
    let mut harness =
        Harness::new(json!({ "compactAt": { "tokens": 100 }, "presetOptions": { "preserveCount": 1_000 } }));
    let text = "👩‍👩‍👧‍👦 한국어 e\u{301}\u{302} שלום ".repeat(40);
    harness.append(&[user(&long("go", 200))]);
    harness.append(&calls(Format::OpenaiChat, &[("a", "x")]));
    harness.append(&results(Format::OpenaiChat, &[("a", &text)]));
    harness.append(&talk(3, 10));
    harness.prepare();
    let reference = harness.session.explain().unwrap()[2].reference.clone().unwrap();
    for limit in [1, 2, 3, 7, 64, 10_000] {
        let (mut all, mut offset) = (String::new(), 0);
        loop {
            let part =
                harness.host.run(harness.session.read(reference.clone(), offset, Some(limit))).unwrap();
            if part.is_empty() {
                break;
            }
            offset += part.chars().count();
            all.push_str(&part);
        }
        assert_eq!(all, text, "limit {limit}");
    }
}

#[test]
fn s1_15_a_mend_that_no_longer_fits_is_an_overflow() {
    // The provider wants the user first: what is sent gets an opening, and is larger than the context.
    let history = [assistant(&long("answer", 400))];
    let options =
        |output: usize| json!({ "format": "anthropic", "contextWindow": 2_000, "maxOutputTokens": output });
    let mut harness = Harness::new(options(100));
    harness.append(&history);
    let (tokens, sent) = (harness.session.usage().unwrap().used_tokens, harness.prepare().usage.used_tokens);
    assert!(sent > tokens);
    let mut harness = Harness::new(options(2_000 - tokens));
    harness.append(&history);
    let error = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap_err();
    assert_eq!(error.code, Code::ContextOverflow, "{error}");
    let mut harness = Harness::new(options(2_000 - sent));
    harness.append(&history);
    assert_eq!(harness.prepare().usage.used_tokens, sent);
}

#[test]
fn who_loses_one_race_after_the_other_waits_twice_as_long_each_time() {
    let mut harness = Harness::new(json!({}));
    harness.append(&[user("one")]);
    let left = Cell::new(6);
    harness.host.refuse = Box::new(move |_| {
        left.set(left.get() - 1);
        (left.get() >= 0).then_some(Code::Conflict)
    });
    harness.host.seen.slept.clear();
    harness.append(&[user("two")]);
    assert_eq!(harness.host.seen.slept, [8, 16, 32], "the first three go on at once");
    assert_eq!(harness.context().len(), 2);
}

#[test]
fn f8_fields_in_another_order_are_the_same_message() {
    let mut harness = Harness::new(json!({ "onDiverged": "throw" }));
    harness.append(&[Body::from(r#"{"role":"user","content":"hi","meta":{"a":1,"b":[{"c":2,"d":3}]}}"#)]);
    let same = Body::from(r#"{"meta":{"b":[{"d":3,"c":2}],"a":1},"content":"hi","role":"user"}"#);
    assert_eq!(sync(&mut harness, 0, std::slice::from_ref(&same)), (0, None));
    for other in [
        r#"{"role":"user","content":"hi","meta":{"a":1,"b":[{"c":2,"d":4}]}}"#,
        r#"{"role":"user","content":"hi","meta":{"a":1,"b":[]}}"#,
        r#"{"role":"user","content":"hi","meta":{"a":1}}"#,
    ] {
        assert_eq!(sync(&mut harness, 0, &[Body::from(other)]), (0, Some(0)), "{other}");
    }
}
