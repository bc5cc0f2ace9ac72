//! Calls of a model that survive a crash before the commit (T2, R4): what was answered is not asked again.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::step::{Effect, Event, LogLevel, Purpose};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{assistant, exchange, user};
use context_compactor_store_tests::host::summary;
use context_compactor_store_tests::{Host, How, MemoryStore};
use serde_json::{Value, json};
use std::cell::Cell;
use std::rc::Rc;

/// Rows of jobs as JSON: those of jobs, and those of answers.
fn jobs(memory: &MemoryStore) -> (Vec<Value>, Vec<Value>) {
    let rows = memory.rows().into_iter().filter(|(key, _)| key.to_string().starts_with("jobs/"));
    let (jobs, answers): (Vec<_>, Vec<_>) = rows.partition(|(key, _)| key.0.len() == 3);
    let json = |rows: Vec<(_, Vec<u8>)>| {
        rows.into_iter().map(|(_, bytes)| serde_json::from_slice(&bytes).unwrap()).collect()
    };
    (json(jobs), json(answers))
}

fn states(memory: &MemoryStore) -> Vec<String> {
    jobs(memory).0.iter().map(|job| job["state"].as_str().unwrap().to_string()).collect()
}

/// Another tab, at a time when every lease is over.
fn much_later(memory: &Rc<MemoryStore>, name: &str, over: Value) -> Harness {
    let mut host = Host::new(Rc::clone(memory) as _, name);
    host.now += 1_000_000_000;
    host.summarise = Box::new(|_, _| summary(SUMMARY));
    let (session, _) = host.run(Session::open(settings(over), Some("s".into()), 10_000)).unwrap();
    Harness { memory: Rc::clone(memory), host, session }
}

/// A session whose summary was written and not committed.
fn torn(over: Value) -> Harness {
    let mut harness = Harness::new(over);
    harness.append(&talk(8, 60));
    harness.host.fault(1, is_change, How::CrashBefore);
    assert!(harness.host.try_run(harness.session.compact(None)).is_none());
    assert_eq!((harness.host.seen.requests.len(), jobs(&harness.memory).1.len()), (1, 1));
    harness
}

fn calls(harness: &Harness) -> usize {
    harness.host.seen.requests.len()
}

#[test]
fn r4_a_summary_that_was_written_is_committed_without_another_call() {
    let mut harness = torn(json!({}));
    let memory = Rc::clone(&harness.memory);
    for later in [false, true] {
        let mut again = match later {
            false => Harness::over(Rc::clone(&memory), "b", json!({})),
            true => much_later(&memory, "c", json!({})),
        };
        assert_eq!(states(&memory), ["prepared"], "an open keeps what can be gone on with");
        again.host.summarise = Box::new(|_, _| panic!("it was paid for"));
        if !later {
            again.host.fault(1, is_change, How::CrashBefore);
            assert!(again.host.try_run(again.session.compact(None)).is_none());
            continue;
        }
        let result = again.compact();
        assert!(result.success && result.freed_tokens > 0);
        assert_eq!((result.llm_calls, result.usage), (0, None), "only real calls are told");
        assert_eq!(result.summary.as_deref(), Some(SUMMARY));
        let told =
            |(level, line): &(LogLevel, String)| *level == LogLevel::Debug && line.contains("used again");
        assert!(again.host.seen.logs.iter().any(told));
    }
    assert_eq!(states(&memory), ["done"]);
    assert!(jobs(&memory).1.is_empty(), "the summary stands in the view now");
    assert_eq!(harness.stored().generation, 1);
    assert!(harness.compact().success || harness.stored().generation == 1, "the first tab goes on");
}

#[test]
fn r4_another_question_is_asked() {
    let cases = [
        json!({ "summarize": { "instructions": "Stress the parser." } }),
        json!({ "summarize": { "model": "another" } }),
        json!({ "keep": { "messages": 9 } }),
    ];
    for over in cases {
        let harness = torn(json!({}));
        let mut again = much_later(&harness.memory, "b", over.clone());
        let result = again.compact();
        assert_eq!((result.success, result.llm_calls, calls(&again)), (true, 1, 1), "{over}");
    }
    // What was said since belongs to the summary.
    let harness = torn(json!({}));
    let mut again = much_later(&harness.memory, "b", json!({}));
    again.append(&talk(2, 60));
    assert_eq!(again.compact().llm_calls, 1);
    assert!(jobs(&again.memory).1.is_empty(), "both answers went with the commit");
}

#[test]
fn r4_a_stored_answer_that_is_no_summary_is_asked_for_again() {
    let harness = torn(json!({}));
    let rows = harness.memory.rows();
    let (key, _) =
        rows.iter().find(|(key, _)| key.to_string().starts_with("jobs/") && key.0.len() == 4).unwrap();
    for damage in [&br#"{"v":101,"text":"no"}"#[..], b"not JSON", br#"{"v":900,"text":"of the future"}"#] {
        harness.memory.damage(key, Some(damage.to_vec()));
        let mut again = much_later(&harness.memory, "b", json!({}));
        again.host.fault(1, is_change, How::CrashBefore);
        assert!(again.host.try_run(again.session.compact(None)).is_none());
        assert_eq!(calls(&again), 1);
    }
}

/// A summariser of parts: each answer names its part.
fn shorter(request: &context_compactor_core::summary::SummaryRequest, _: u32) -> Event {
    summary(&format!("short: {}", &request.messages[0].content[..20]))
}

fn react() -> Value {
    json!({
        "preset": "react", "contextWindow": 200_000, "summarize": { "attempts": 1, "concurrency": 1 },
        "presetOptions": { "singleResultThreshold": 100_000, "chunkSize": 50_000 },
    })
}

#[test]
fn r4_the_chunks_of_a_result_that_were_answered_are_not_asked_again() {
    for answered in 0..=3 {
        let mut harness = Harness::new(react());
        harness.host.summarise = Box::new(shorter);
        harness.append(&[user("look")]);
        harness.append(&exchange(Format::Anthropic, "a", &"x".repeat(150_000)));
        harness.append(&[assistant("I see.")]);
        let dies = |effect: &Effect| matches!(effect, Effect::Summarize { .. }) || is_change(effect);
        harness.host.fault(answered + 1, dies, How::CrashBefore);
        assert!(harness.host.try_run(harness.session.prepare(Trigger::Auto, Vec::new())).is_none());
        assert_eq!(jobs(&harness.memory).1.len(), answered);
        let mut again = much_later(&harness.memory, "b", react());
        again.host.summarise = Box::new(shorter);
        let prepared = again.prepare();
        assert_eq!(calls(&again), 3 - answered, "{answered} chunks were answered before");
        assert_eq!(again.host.seen.purposes, vec![Purpose::Chunk; 3 - answered]);
        assert_eq!(prepared.edits.len(), 1);
        assert_eq!((states(&again.memory), jobs(&again.memory).1.len()), (vec!["done".to_string()], 0));
        again.stored();
    }
}

#[test]
fn f39_t2_results_that_another_tab_compresses_are_waited_for_unless_the_user_asks_for_it() {
    let mut harness = Harness::new(react());
    harness.host.summarise = Box::new(shorter);
    harness.append(&[user("look")]);
    harness.append(&exchange(Format::Anthropic, "a", &"x".repeat(150_000)));
    harness.append(&[assistant("I see.")]);
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", react());
    other.host.summarise = Box::new(shorter);
    harness.host.fault(1, |effect| matches!(effect, Effect::Summarize { .. }), How::CrashBefore);
    assert!(harness.host.try_run(harness.session.prepare(Trigger::Auto, Vec::new())).is_none());
    assert_eq!(states(&harness.memory), ["prepared"]);
    let prepared = other.prepare();
    assert_eq!((prepared.edits.len(), calls(&other)), (0, 0), "the prompt fits, and nobody pays twice");
    let told = other.host.seen.logs.iter().any(|(_, line)| line.contains("another tab"));
    assert!(told, "{:?}", other.host.seen.logs);
    assert!(other.compact().success);
    assert_eq!(calls(&other), 3, "who asks for it does not wait");
    assert_eq!((states(&other.memory), other.stored().generation), (vec!["done".to_string()], 1));
}

#[test]
fn t2_a_crash_at_every_effect_costs_no_more_than_the_call_under_way() {
    let (mut ended, mut at, mut saved) = (false, 1, 0);
    while !ended {
        for how in [How::CrashBefore, How::CrashAfter] {
            let mut harness = Harness::new(json!({}));
            harness.append(&talk(8, 60));
            harness.host.fault(at, |effect| !matches!(effect, Effect::Now | Effect::NewId), how);
            ended = harness.host.try_run(harness.session.compact(None)).is_some();
            let kept = jobs(&harness.memory).1.len();
            let generation = harness.stored().generation;
            let mut again = much_later(&harness.memory, "b", json!({}));
            assert!(again.compact().success || generation == 1);
            if generation == 0 {
                assert_eq!(calls(&again), 1 - kept, "effect {at}, {how:?}");
                saved += kept;
            }
            assert_eq!(again.stored().generation, 1);
            assert!(jobs(&again.memory).1.is_empty());
        }
        at += 1;
    }
    assert!(saved >= 2, "{saved}");
}

#[test]
fn t2_nobody_asks_while_another_tab_does_and_nobody_waits_for_one_that_is_frozen() {
    // The attempt of the first tab, which the other one knows of, is no reason to wait.
    let cooldown = json!({ "compactCooldownSteps": 0 });
    let options =
        json!({ "compactAt": { "tokens": 200 }, "summarize": { "attempts": 1 }, "presetOptions": cooldown });
    let mut harness = Harness::new(options.clone());
    harness.append(&talk(8, 60));
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", options.clone());
    let asked = Rc::new(Cell::new(0));
    let seen = Rc::clone(&asked);
    harness.host.meanwhile = Box::new(move |effect| {
        if !matches!(effect, Effect::Summarize { .. }) {
            return;
        }
        let prepared = other.prepare();
        let result = prepared.result.unwrap();
        assert!(result.success && result.summary.is_none(), "{result:?}");
        assert!(result.reason.unwrap().contains("another tab"));
        seen.set(seen.get() + 1);
        assert_eq!(calls(&other), 0);
        // The lease is over: the first tab is frozen, or gone.
        other.host.now += 1_000_000_000;
        assert!(other.prepare().result.unwrap().summary.is_some());
        assert_eq!(calls(&other), 1);
    });
    let prepared = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new()));
    assert_eq!(asked.get(), 1);
    assert_eq!(prepared.unwrap_err().code, Code::Conflict, "it comes second, and changes nothing");
    assert_eq!(harness.stored().generation, 1);
}

#[test]
fn t2_who_cannot_wait_or_was_told_to_does_not_mind_a_lease() {
    for manual in [true, false] {
        let harness = torn(json!({ "contextWindow": 4_000 }));
        let mut again = Harness::over(Rc::clone(&harness.memory), "b", json!({ "contextWindow": 4_000 }));
        if manual {
            assert!(again.compact().success);
        } else {
            again.append(&talk(30, 60));
            assert!(again.prepare().result.unwrap().summary.is_some());
        }
        assert_eq!(again.stored().generation, 1, "manual {manual}");
    }
}

#[test]
fn r4_jobs_of_an_earlier_context_are_closed_at_the_next_open_whatever_kills_it() {
    let (mut ended, mut at) = (false, 1);
    while !ended {
        for how in [How::CrashBefore, How::CrashAfter, How::Fail(Code::QuotaExceeded)] {
            let harness = torn(json!({}));
            let mut other = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
            // Not a compaction: it closes no job.
            other.host.run(other.session.remove_messages(vec![0, 1])).unwrap();
            assert_eq!(
                (states(&harness.memory), jobs(&harness.memory).1.len()),
                (vec!["prepared".into()], 1)
            );
            Harness::over(Rc::clone(&harness.memory), "c", json!({}));
            assert_eq!(states(&harness.memory), ["prepared"], "its lease is not over");
            let mut host = Host::new(Rc::clone(&harness.memory) as _, "d");
            host.now += 1_000_000_000;
            host.fault(
                at,
                |effect| matches!(effect, Effect::Read(_) | Effect::Scan(_) | Effect::Commit(_)),
                how,
            );
            let open = || Session::open(settings(json!({})), Some("s".into()), 10_000);
            let opened = host.try_run(open());
            ended = opened.is_some() && states(&harness.memory) == ["abandoned"];
            much_later(&harness.memory, "e", json!({}));
            assert_eq!(states(&harness.memory), ["abandoned"], "effect {at}, {how:?}");
            assert!(jobs(&harness.memory).1.is_empty());
            assert_eq!(harness.stored().messages.len(), 16);
        }
        at += 1;
    }
    assert!(at > 4, "{at} effects");
}

#[test]
fn f39_r4_a_job_that_cannot_be_closed_is_told_unless_someone_else_was_faster() {
    for (code, told) in [(Code::Conflict, false), (Code::Indeterminate, false), (Code::QuotaExceeded, true)] {
        let harness = torn(json!({}));
        let mut other = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
        other.host.run(other.session.remove_messages(vec![0, 1])).unwrap();
        let mut host = Host::new(Rc::clone(&harness.memory) as _, "c");
        host.now += 1_000_000_000;
        let closes = |effect: &Effect| matches!(effect, Effect::Commit(batch) if has(batch, "jobs/"));
        host.fault(1, closes, How::Fail(code));
        let opened = host.run(Session::open(settings(json!({})), Some("s".into()), 10_000));
        assert_eq!(opened.unwrap().1.messages, 16, "{code:?}: the session is open all the same");
        assert_eq!(states(&harness.memory), ["prepared"]);
        let warned = host.seen.logs.iter().any(|(level, line)| {
            *level == LogLevel::Warn
                && line.starts_with("Jobs that were stopped half-way could not be closed")
        });
        assert_eq!(warned, told, "{code:?}: {:?}", host.seen.logs);
    }
}

#[test]
fn f39_t2_an_attempt_that_cannot_be_noted_is_made_all_the_same_and_a_lost_race_is_run_again() {
    for (code, calls, noted) in [
        (Code::QuotaExceeded, Some(1), false),
        (Code::Conflict, Some(1), true),
        (Code::Indeterminate, Some(1), true),
        (Code::Aborted, None, false),
    ] {
        let mut harness = Harness::new(json!({}));
        harness.append(&talk(8, 60));
        let begins = |effect: &Effect| matches!(effect, Effect::Commit(batch) if has(batch, "jobs/") && has(batch, "sessions/"));
        harness.host.fault(1, begins, How::Fail(code));
        let result = harness.host.run(harness.session.compact(None)).map(|done| done.result);
        let made = result.as_ref().ok().map(|result| result.llm_calls);
        assert_eq!(made, calls, "{code:?}: {result:?}");
        assert_eq!(result.as_ref().is_ok_and(|result| result.success), calls.is_some(), "{code:?}");
        let told = harness.host.seen.logs.iter().any(|(level, line)| {
            *level == LogLevel::Warn && line.starts_with("The attempt could not be noted in the store: ")
        });
        assert_eq!(told, code == Code::QuotaExceeded, "{code:?}: {:?}", harness.host.seen.logs);
        assert_eq!(states(&harness.memory) == ["done"], noted, "{code:?}: {:?}", states(&harness.memory));
    }
}

#[test]
fn t2_an_answer_that_cannot_be_kept_is_used_all_the_same() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(8, 60));
    let keeps = |effect: &Effect| matches!(effect, Effect::Commit(batch) if has(batch, "jobs/") && !has(batch, "sessions/"));
    harness.host.fault(1, keeps, How::Fail(Code::QuotaExceeded));
    assert!(harness.compact().success);
    assert!(jobs(&harness.memory).1.is_empty());
}

#[test]
fn a_session_deleted_while_a_model_works_keeps_no_answer() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(8, 60));
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
    harness.host.meanwhile = Box::new(move |effect| {
        if matches!(effect, Effect::Summarize { .. }) {
            other.host.run(other.session.delete()).unwrap();
        }
    });
    let error = harness.host.run(harness.session.compact(None)).unwrap_err();
    assert_eq!(error.code, Code::Closed);
    assert!(harness.memory.rows().is_empty(), "nothing is left");
}
