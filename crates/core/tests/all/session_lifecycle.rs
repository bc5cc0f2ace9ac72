//! Beginning, deleting and beginning again under one name; what the store remembers of attempts.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::keys::batch::Batch;
use context_compactor_core::session::Session;
use context_compactor_core::step::Effect;
use context_compactor_store_tests::conversation::{Body, assistant, user};
use context_compactor_store_tests::host::{summary, thrown};
use context_compactor_store_tests::{Host, How};
use serde_json::json;
use std::cell::Cell;
use std::rc::Rc;

fn chat(from: usize, to: usize) -> Vec<Body> {
    (from..to).map(|n| if n % 2 == 0 { user(&format!("message {n}")) } else { assistant("noted") }).collect()
}

fn texts(harness: &mut Harness) -> Vec<String> {
    harness.sent().iter().map(|message| message["content"].as_str().unwrap().to_string()).collect()
}

#[test]
fn a_handle_on_a_deleted_session_cannot_touch_the_next_of_its_name() {
    for old in [1, 4] {
        let mut first = Harness::new(json!({}));
        first.append(&chat(0, old));
        let mut stale = Harness::over(Rc::clone(&first.memory), "b", json!({}));
        first.host.run(first.session.delete()).unwrap();
        assert!(first.memory.rows().is_empty(), "nothing is left");
        let mut second = Harness::over(Rc::clone(&first.memory), "c", json!({}));
        second.append(&chat(10, 11));
        let error = stale.host.run(stale.session.append(chat(20, 21))).unwrap_err();
        assert_eq!(error.code, Code::Closed);
        second.append(&chat(11, 12));
        assert_eq!(texts(&mut second), ["message 10", "noted"]);
        assert_eq!(second.stored().messages.len(), 2);
    }
}

#[test]
fn two_tabs_that_begin_the_same_session_share_it() {
    let mut a = Harness::new(json!({}));
    let mut b = Harness::over(Rc::clone(&a.memory), "b", json!({}));
    a.append(&chat(0, 1));
    b.append(&chat(1, 2));
    a.append(&chat(2, 3));
    assert_eq!(texts(&mut a), ["message 0", "noted", "message 2"]);
    assert_eq!(a.stored().messages.len(), 3);
}

/// A harness whose store takes few operations at once.
fn small_batches(most: usize) -> Harness {
    let mut harness = Harness::new(json!({}));
    let opened = Session::open(settings(json!({})), Some("s".into()), most);
    harness.session = harness.host.run(opened).unwrap().0;
    harness
}

fn is_delete(effect: &Effect) -> bool {
    matches!(effect, Effect::Commit(batch) if !batch.deletes.is_empty())
}

#[test]
fn a_session_that_no_batch_holds_is_written_and_deleted_in_several() {
    let mut harness = small_batches(20);
    harness.append(&chat(0, 100));
    harness.append(&chat(100, 101));
    assert_eq!(harness.stored().messages.len(), 101);
    harness.host.run(harness.session.delete()).unwrap();
    assert!(harness.memory.rows().is_empty());
    let size = |batch: &Batch| batch.expect.len() + batch.puts.len() + batch.deletes.len();
    assert!(harness.host.seen.commits.iter().all(|batch| size(batch) <= 20));
}

#[test]
fn a_deletion_that_was_stopped_half_way_is_ended_by_the_next_open() {
    for stop in 1..=6 {
        let mut harness = small_batches(20);
        harness.append(&chat(0, 60));
        harness.host.fault(stop, is_delete, How::CrashBefore);
        let ended = harness.host.try_run(harness.session.delete());
        let mut next = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
        if stop == 1 {
            assert!(ended.is_none());
            assert_eq!(texts(&mut next).len(), 60, "nothing had happened");
            continue;
        }
        assert!(next.memory.rows().is_empty(), "stopped before batch {stop}");
        next.append(&chat(0, 1));
        assert_eq!(next.stored().messages.len(), 1);
    }
}

#[test]
fn an_append_between_the_look_and_the_deletion_is_deleted_too() {
    let mut harness = Harness::new(json!({}));
    harness.append(&chat(0, 4));
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
    let mut appended = false;
    harness.host.meanwhile = Box::new(move |effect| {
        if is_delete(effect) && !std::mem::replace(&mut appended, true) {
            other.append(&chat(4, 5));
        }
    });
    harness.host.run(harness.session.delete()).unwrap();
    assert!(harness.memory.rows().is_empty());
}

#[test]
fn s1_4_the_cooldown_is_part_of_the_session() {
    let memory = Harness::new(json!({})).memory;
    let mut calls = 0;
    for reopened in 0..4 {
        let mut harness = Harness::over(Rc::clone(&memory), "a", over_threshold());
        harness.host.summarise = Box::new(|_, _| thrown("out of order", None));
        harness.append(&if reopened == 0 { talk(20, 60) } else { vec![user("go on")] });
        harness.prepare();
        calls += harness.host.seen.requests.len();
    }
    assert_eq!(calls, 1, "five steps lie between two attempts, whoever opens the session");
}

/// Options under which the threshold is passed, the window is not, and one attempt is made.
fn over_threshold() -> serde_json::Value {
    json!({ "summarize": { "call": true, "attempts": 1 }, "compactAt": { "tokens": 200 } })
}

#[test]
fn an_attempt_that_cannot_be_noted_is_made_all_the_same() {
    let mut harness = Harness::new(json!({ "summarize": { "call": true } }));
    harness.append(&talk(8, 60));
    let is_job = |effect: &Effect| matches!(effect, Effect::Commit(batch) if has(batch, "jobs/") && !has(batch, "views/"));
    harness.host.fault(1, is_job, How::Fail(Code::QuotaExceeded));
    harness.host.summarise = Box::new(|_, _| summary(SUMMARY));
    assert!(harness.compact().success);
}

#[test]
fn messages_of_no_common_format_are_refused_with_their_index() {
    let mut harness = Harness::new(json!({}));
    harness.append(&[user("hello")]);
    let odd: Body =
        Rc::from(r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}"#);
    harness.append(&[odd]);
    let openai: Body = Rc::from(r#"{"role":"tool","tool_call_id":"a","content":"x"}"#);
    let error = harness.host.run(harness.session.append(vec![openai])).unwrap_err();
    assert_eq!(error.code, Code::InvalidMessage);
}

/// The store says so often that someone else was faster; the thirteenth try is the last.
fn races(host: &mut Host, lost: u32) {
    let left = Cell::new(lost);
    host.refuse = Box::new(move |_| {
        let again = left.get() > 0;
        left.set(left.get().saturating_sub(1));
        again.then_some(Code::Conflict)
    });
}

#[test]
fn f39_deleting_and_mending_get_through_where_twelve_races_are_lost_and_give_up_after_one_more() {
    for (lost, through) in [(12, true), (13, false)] {
        let mut harness = Harness::new(json!({}));
        harness.append(&chat(0, 2));
        races(&mut harness.host, lost);
        let deleted = harness.host.run(harness.session.delete());
        assert_eq!(deleted.map_err(|error| error.code), if through { Ok(()) } else { Err(Code::Conflict) });
        assert_eq!(harness.memory.rows().is_empty(), through);

        let mut harness = Harness::new(json!({}));
        harness.append(&chat(0, 2));
        let rows = harness.memory.rows();
        let (key, _) = rows.iter().find(|(key, _)| key.to_string().starts_with("sessions/")).unwrap();
        harness.memory.damage(key, None);
        let mut host = Host::new(Rc::clone(&harness.memory) as _, "b");
        races(&mut host, lost);
        let opened = host.run(Session::open(settings(json!({})), Some("s".into()), 10_000));
        assert_eq!(
            opened.map(|(_, opened)| opened.messages).map_err(|error| error.code),
            match through {
                true => Ok(2),
                false => Err(Code::Conflict),
            }
        );
    }
}
