//! Compactions that are overtaken, aborted, crashed or repeated (`S1.11`): the old context or the new one, nothing lost.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::step::{Effect, Notice};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::user;
use context_compactor_store_tests::host::{failed, summary, thrown};
use context_compactor_store_tests::{How, Store};
use serde_json::json;
use std::cell::Cell;
use std::rc::Rc;

#[test]
fn s1_11_a_commit_that_fails_throws_and_everything_is_intact() {
    for format in FORMATS {
        let code = Code::StoreUnavailable;
        let mut harness = Harness::new(
            json!({ "compactAt": { "tokens": 100 }, "presetOptions": { "compactTriggerThreshold": 1 } }),
        );
        harness.append(&turn(format, 0, 200));
        harness.append(&talk(3, 20));
        harness.prepare();
        let (context, explained) = (harness.context(), harness.session.explain().unwrap());
        harness.append(&talk(1, 20));
        harness.host.fault(1, is_change, How::Fail(code));
        let error = harness.host.run(harness.session.compact(None)).unwrap_err();
        assert_eq!((error.code, error.cause.is_some()), (code, true));
        assert_eq!(harness.context()[..context.len()], context);
        assert_eq!(harness.session.explain().unwrap()[..explained.len()], explained);
        let reference = explained.iter().find_map(|entry| entry.reference.clone()).unwrap();
        assert_eq!(harness.read(&reference), long("result 0", 200));
        assert!(harness.compact().success, "the session goes on");
    }
}

#[test]
fn s1_11_a_crash_at_every_effect_leaves_the_old_context_or_the_new_one() {
    let prepare = |harness: &mut Harness| {
        harness.append(&turn(Format::Anthropic, 0, 200));
        harness.append(&talk(4, 60));
    };
    let options = json!({ "compactAt": { "tokens": 100 } });
    let (mut ended, mut at) = (false, 1);
    while !ended {
        for how in [How::CrashBefore, How::CrashAfter] {
            let mut harness = Harness::new(options.clone());
            prepare(&mut harness);
            harness.host.fault(at, |effect| !matches!(effect, Effect::Now | Effect::NewId), how);
            let done = harness.host.try_run(harness.session.prepare(Trigger::Auto, Vec::new()));
            ended = done.is_some();
            let mut again = Harness::over(Rc::clone(&harness.memory), "b", options.clone());
            harness.stored();
            again.append(&[user("still there?")]);
            assert_eq!(again.stored().messages.len(), 13);
            assert!(again.prepare().result.is_none_or(|result| result.success));
        }
        at += 1;
    }
    assert!(at > 4, "{at} effects");
}

#[test]
fn aborting_counts_up_to_the_commit() {
    let mut harness = Harness::new(eager());
    harness.append(&talk(5, 60));
    let before = harness.context();
    harness.host.summarise = Box::new(|_, _| failed(Code::Aborted));
    let error = harness.host.run(harness.session.compact(None)).unwrap_err();
    assert_eq!((error.code, harness.host.seen.requests.len()), (Code::Aborted, 1));
    harness.host.summarise = Box::new(|_, _| thrown("no", None));
    harness.host.fault(1, |effect| matches!(effect, Effect::Sleep(_)), How::Fail(Code::Aborted));
    let error = harness.host.run(harness.session.compact(None)).unwrap_err();
    assert_eq!((error.code, harness.context()), (Code::Aborted, before));
    harness.append(&[user("it goes on")]);
}

#[test]
fn lesson_lost_concurrent_writes_messages_that_arrive_while_the_summary_is_written_stay() {
    for format in FORMATS {
        let mut harness = Harness::new(eager());
        harness.append(&talk(5, 60));
        let session = harness.session.clone();
        let other = std::cell::RefCell::new(context_compactor_store_tests::Host::new(
            harness.memory.clone() as Rc<dyn Store>,
            "z",
        ));
        harness.host.meanwhile = Box::new(move |effect| {
            if matches!(effect, Effect::Summarize { .. }) {
                other.borrow_mut().run(session.append(turn(format, 9, 30))).unwrap();
            }
        });
        let result = harness.compact();
        assert!(result.success && result.freed_tokens > 0);
        assert_eq!(result.previous_tokens - result.freed_tokens, result.current_tokens);
        let context = harness.context();
        assert_eq!((context.len(), result.preserved_count), (1 + 5 + 4, 5), "{format:?}");
        assert_eq!(context[9]["content"], "answer 9");
        assert_eq!(harness.session.explain().unwrap().len(), 14);
    }
}

#[test]
fn a_compaction_that_another_call_overtook_is_given_up() {
    for fallback in ["none", "extractive"] {
        let mut harness = Harness::new(json!({ "summarize": { "fallback": fallback } }));
        harness.append(&talk(8, 60));
        let (session, once) = (harness.session.clone(), Cell::new(false));
        let mut other =
            context_compactor_store_tests::Host::new(harness.memory.clone() as Rc<dyn Store>, "z");
        other.summarise = Box::new(|_, _| summary(SUMMARY));
        harness.host.meanwhile = Box::new(move |effect| {
            if matches!(effect, Effect::Summarize { .. }) && !once.replace(true) {
                assert!(other.run(session.compact(None)).unwrap().result.success);
            }
        });
        let result = harness.compact();
        assert_eq!((result.success, result.error.unwrap().code), (false, Code::Conflict), "{fallback}");
        assert_eq!(harness.stored().generation, 1);
    }
}

#[test]
fn a_session_closed_under_a_compaction_commits_nothing() {
    for fallback in ["none", "extractive"] {
        let mut harness = Harness::new(json!({ "summarize": { "fallback": fallback } }));
        harness.append(&talk(8, 60));
        let session = harness.session.clone();
        harness.host.meanwhile = Box::new(move |effect| {
            if matches!(effect, Effect::Summarize { .. }) {
                session.close();
            }
        });
        let error = harness.host.run(harness.session.compact(None)).unwrap_err();
        assert_eq!((error.code, harness.stored().generation), (Code::Closed, 0), "{fallback}");
    }
}

#[test]
fn another_tab_that_compacts_meanwhile_wins_and_this_one_is_told() {
    let mut harness = Harness::new(eager());
    harness.append(&talk(8, 60));
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", eager());
    harness.host.meanwhile = Box::new(move |effect| {
        if matches!(effect, Effect::Summarize { .. }) {
            other.compact();
        }
    });
    let error = harness.host.run(harness.session.compact(None)).unwrap_err();
    assert_eq!((error.code, harness.stored().generation), (Code::Conflict, 1));
    harness.host.meanwhile = Box::new(|_| {});
    assert_eq!(harness.prepare().items.len(), 6, "it sees the other's");
}

#[test]
fn lesson_stale_positions_a_change_made_while_the_format_is_read_anew_is_noticed() {
    let mut harness = Harness::new(eager());
    // Plain messages, which could be in any format: the other tab's tools say which.
    harness.append(&talk(8, 60));
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", eager());
    let mut at = 0;
    harness.host.meanwhile = Box::new(move |effect| match (at, effect) {
        (0, Effect::Summarize { .. }) => {
            other.append(&turn(Format::Anthropic, 9, 30));
            at = 1;
        }
        // The commit of the summary loses against that append, the row is read again, and then all that it names.
        (1, Effect::Commit(_)) | (2, Effect::Read(_)) => at += 1,
        (3, _) => {
            assert!(other.compact().success);
            at += 1;
        }
        _ => {}
    });
    let error = harness.host.run(harness.session.compact(None)).unwrap_err();
    assert_eq!((error.code, harness.stored().generation), (Code::Conflict, 1), "{error}");
    harness.host.meanwhile = Box::new(|_| {});
    assert!(harness.compact().success, "it goes on with what the other made of it");
    assert_eq!(harness.session.explain().unwrap().len(), 20);
}

#[test]
fn a_fallback_is_used_and_said() {
    let mut harness = Harness::new(json!({ "summarize": { "fallback": "extractive", "attempts": 2 } }));
    harness.append(&talk(6, 80));
    harness.host.summarise = Box::new(|_, _| thrown("no", None));
    let result = harness.compact();
    assert!(result.success && result.reason.unwrap().contains("built-in"));
    assert_eq!(result.llm_calls, 2);
    assert!(matches!(harness.host.seen.notices[0], Notice::Warning { code: Code::SummaryFailed, .. }));
}

#[test]
fn lesson_later_compactions_lose_nothing_up_to_the_tenth() {
    for format in FORMATS {
        let mut harness = Harness::new(eager());
        let mut checkpoints = std::collections::HashSet::new();
        for round in 0..10 {
            let first = round * 8;
            for nth in 0..2 {
                harness.append(&turn(format, first + nth, 40));
            }
            let result = harness.compact();
            assert!(result.success, "{:?}", result.error);
            checkpoints.insert(result.ledger.entries()[0].checkpoint.clone().unwrap());
            assert_eq!(result.ledger.entries().len(), (round + 1) * 8);
            assert!(result.ledger.entries().iter().enumerate().all(|(at, entry)| entry.index == at));
            let context = harness.context();
            assert_valid(format, &context);
            assert_eq!(
                context.iter().filter(|message| message.to_string().contains("[Compressed History]")).count(),
                1
            );
            if round > 0 {
                let (request, _) = harness.host.seen.requests.last().unwrap();
                assert!(
                    request.messages[0].content.contains("[Compressed History]"),
                    "the earlier summary goes into the next"
                );
            }
            assert_eq!(harness.stored().messages.len(), (round + 1) * 8);
        }
        assert_eq!(checkpoints.len(), 10, "every checkpoint has its own id");
        assert!(harness.context().len() < 8, "the context stays bounded");
    }
}

#[test]
fn one_shot_compaction_stores_nothing() {
    for format in FORMATS {
        let mut harness = Harness::new(eager());
        let mut messages = turn(format, 0, 100);
        messages.extend(talk(3, 60));
        let rows = harness.memory.rows().len();
        let done = harness.host.run(Session::compact_once(settings(eager()), messages.clone())).unwrap();
        assert!(done.result.success && done.items.len() < messages.len());
        assert_eq!(harness.memory.rows().len(), rows);
        assert!(harness.host.seen.commits.is_empty());
    }
}
