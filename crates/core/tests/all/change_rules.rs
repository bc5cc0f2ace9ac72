//! What one handle on a session learns of what another one wrote, and how it is told.

use crate::support::*;
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::policy::Trigger;
use context_compactor_core::step::Notice;
use context_compactor_store_tests::conversation::{assistant, user};
use context_compactor_store_tests::{Host, MemoryStore};
use serde_json::json;
use std::cell::RefCell;
use std::rc::Rc;

/// Messages and generation of each change that was told.
fn changes(host: &Host) -> Vec<(usize, u64)> {
    let change = |notice: &Notice| match notice {
        Notice::Change { messages, generation } => Some((*messages, *generation)),
        _ => None,
    };
    host.seen.notices.iter().filter_map(change).collect()
}

#[test]
fn f39_what_another_handle_wrote_is_told_once_and_what_is_our_own_is_not() {
    let memory = Rc::<MemoryStore>::default();
    let mut harness = Harness::over(Rc::clone(&memory), "a", eager());
    harness.append(&talk(3, 40));
    let mut other = Harness::over(Rc::clone(&memory), "b", eager());
    assert!(changes(&harness.host).is_empty() && changes(&other.host).is_empty());
    // A call that makes something of all of it reads what the other wrote.
    other.append(&[user("more")]);
    harness.host.run(harness.session.catch_up()).unwrap();
    harness.host.run(harness.session.catch_up()).unwrap();
    assert_eq!(changes(&harness.host), [(7, 0)]);
    assert!(harness.compact().success);
    other.host.run(other.session.prepare(Trigger::Auto, Vec::new())).unwrap();
    assert_eq!(changes(&other.host), [(7, 1)]);
    // An append that lost the race takes it over first.
    harness.append(&[assistant("first")]);
    other.append(&[user("second")]);
    assert_eq!(changes(&other.host), [(7, 1), (8, 1)]);
    assert_eq!(changes(&harness.host), [(7, 0)], "nothing is told of its own");
    assert_eq!(harness.stored().messages.len(), 9);
}

#[test]
fn f39_an_append_whose_answer_was_lost_is_no_change_unless_another_wrote_too() {
    for races in [false, true] {
        let memory = Rc::<MemoryStore>::default();
        let mut harness = Harness::over(Rc::clone(&memory), "a", eager());
        harness.append(&[user("one")]);
        let other = Rc::new(RefCell::new(Harness::over(Rc::clone(&memory), "b", eager())));
        harness.host.fault(1, is_commit, context_compactor_store_tests::How::Lost);
        let mut seen = 0;
        harness.host.meanwhile = Box::new(move |effect| {
            seen += usize::from(!is_commit(effect));
            // After the commit whose answer was lost, before it is looked for.
            if races && seen == 1 && !is_commit(effect) {
                other.borrow_mut().append(&[user("theirs")]);
            }
        });
        harness.append(&[user("two")]);
        harness.host.meanwhile = Box::new(|_| {});
        let (told, messages) = if races { (vec![(3, 0)], 3) } else { (vec![], 2) };
        assert_eq!((changes(&harness.host), harness.stored().messages.len()), (told, messages), "{races}");
    }
}

#[test]
fn h10_a_snapshot_and_a_compaction_whose_answer_was_lost_are_made_once_and_are_no_change() {
    for nth in 1..=3 {
        let mut harness = Harness::over(Rc::default(), "a", eager());
        harness.append(&talk(3, 40));
        harness.host.fault(1, is_commit, context_compactor_store_tests::How::Lost);
        harness.host.run(harness.session.snapshot(SnapshotPurpose::Rollback)).unwrap();
        assert_eq!(harness.host.run(harness.session.snapshots()).unwrap().len(), 1);
        // The commit that begins the job, that of the answer, and that of the view.
        harness.host.fault(nth, is_commit, context_compactor_store_tests::How::Lost);
        assert!(harness.compact().success);
        let rows = harness.memory.rows().into_iter().map(|(key, _)| key.to_string());
        assert_eq!(rows.filter(|key| key.starts_with("views/")).count(), 1);
        let told = if nth == 1 { vec![(6, 0)] } else { Vec::new() };
        assert_eq!(changes(&harness.host), told, "what writes no row of the log is not known again");
    }
}

#[test]
fn f39_a_handle_that_has_written_nothing_sees_the_session_that_another_one_began() {
    let memory = Rc::<MemoryStore>::default();
    let mut late = Harness::over(Rc::clone(&memory), "late", json!({}));
    let mut first = Harness::over(Rc::clone(&memory), "first", json!({}));
    assert!(late.host.run(late.session.history(None)).unwrap().messages.is_empty());
    first.append(&[user("question"), assistant("answer")]);
    let page = late.host.run(late.session.history(None)).unwrap();
    assert_eq!(page.messages.len(), 2);
    assert_eq!(page.messages[0].body, first.stored().messages[0].as_str());
    let verified = late.host.run(late.session.verify()).unwrap();
    assert!(verified.problems.is_empty(), "{:?}", verified.problems);
    first.append(&[user("again")]);
    assert_eq!(late.host.run(late.session.history(None)).unwrap().messages.len(), 3);
    // One that is deleted leaves nothing to see.
    first.host.run(first.session.delete()).unwrap();
    assert!(late.host.run(late.session.history(None)).unwrap().messages.is_empty());
}

#[test]
fn f39_s1_4_steps_that_were_counted_in_memory_are_kept_when_another_handle_wrote() {
    let memory = Rc::<MemoryStore>::default();
    let steps = || {
        let row =
            memory.rows().into_iter().find(|(key, _)| key.to_string().starts_with("sessions/")).unwrap().1;
        serde_json::from_slice::<serde_json::Value>(&row).unwrap()["steps"].as_u64()
    };
    let mut harness = Harness::over(Rc::clone(&memory), "a", json!({}));
    for nth in 0..3 {
        harness.append(&[user(&format!("ask {nth}"))]);
        harness.prepare();
    }
    assert_eq!(steps(), Some(2), "the third is counted and not written yet");
    let mut other = Harness::over(Rc::clone(&memory), "b", json!({}));
    other.append(&[assistant("theirs")]);
    assert_eq!(steps(), Some(2));
    harness.host.run(harness.session.catch_up()).unwrap();
    harness.append(&[user("mine")]);
    assert_eq!(steps(), Some(3));
}
