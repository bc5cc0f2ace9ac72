//! A full disk stops writing and not the agent (D6, D18): a compaction that cannot be stored stands in memory, the prompt is
//! made of it, and it is stored when there is room.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::policy::{PRESETS, Trigger};
use context_compactor_core::session::Prepared;
use context_compactor_core::step::{Effect, Notice};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::How;
use context_compactor_store_tests::conversation::user;
use serde_json::{Value, json};
use std::cell::Cell;
use std::rc::Rc;

const WINDOW: usize = 8_000;

fn options(preset: &str) -> Value {
    json!({ "preset": preset, "contextWindow": WINDOW })
}

/// More than fits: short talk, results of tools, and one that is large.
fn overfull(desk: &mut Harness, format: Format) {
    for nth in 0..12 {
        desk.append(&turn(format, nth, 700));
    }
    desk.append(&turn(format, 12, 5_000));
    desk.append(&[user("And now?")]);
}

/// Every commit from the `nth` on is refused, until `full` is cleared.
fn fill(desk: &mut Harness, nth: usize) -> Rc<Cell<bool>> {
    let (full, seen) = (Rc::new(Cell::new(true)), Cell::new(0));
    let refuses = Rc::clone(&full);
    desk.host.refuse = Box::new(move |_| {
        seen.set(seen.get() + 1);
        (refuses.get() && seen.get() > nth).then_some(Code::QuotaExceeded)
    });
    full
}

/// Warnings of a full store since the last look.
fn warnings(desk: &mut Harness) -> usize {
    let is_full = |notice: &Notice| matches!(notice, Notice::Warning { code: Code::QuotaExceeded, .. });
    std::mem::take(&mut desk.host.seen.notices).iter().filter(|notice| is_full(notice)).count()
}

fn history(desk: &mut Harness) -> Vec<String> {
    desk.stored().messages.iter().map(|body| body.to_string()).collect()
}

/// The messages of a prepare that fits and is valid.
fn fitting(desk: &mut Harness, format: Format) -> (Prepared, Vec<Value>) {
    let prepared = desk.prepare();
    assert!(prepared.usage.used_tokens < WINDOW, "{} tokens", prepared.usage.used_tokens);
    let sent = bodies(&desk.session, &prepared);
    assert_valid(format, &sent);
    (prepared, sent)
}

#[test]
fn d18_whichever_commit_is_refused_there_is_a_prompt_and_room_stores_it() {
    for preset in PRESETS.iter().filter(|preset| preset.name != "react") {
        for format in FORMATS {
            for nth in 0.. {
                let what = format!("{} {format:?} from commit {nth}", preset.name);
                let mut desk = Harness::new(options(preset.name));
                overfull(&mut desk, format);
                let before = history(&mut desk);
                let full = fill(&mut desk, nth);
                warnings(&mut desk);
                let (prepared, sent) = fitting(&mut desk, format);
                let told = warnings(&mut desk);
                if prepared.stored {
                    assert_eq!(told, 0, "{what}");
                    assert!(nth > 0, "{what}: nothing was to be stored");
                    break;
                }
                assert_eq!(told, 1, "{what}");
                assert!(prepared.result.iter().all(|result| result.stored == Some(false)), "{what}");
                // As long as it is full: the same prompt, one warning, and no append.
                let (again, same) = fitting(&mut desk, format);
                assert_eq!((again.stored, warnings(&mut desk)), (false, 1), "{what}");
                assert_eq!(same, sent, "{what}");
                let error = desk.host.run(desk.session.append(vec![user("More.")])).unwrap_err();
                assert_eq!(error.code, Code::QuotaExceeded, "{what}");
                // What was moved is read from memory, word for word.
                for entry in desk.session.explain().unwrap() {
                    if let Some(reference) = entry.reference {
                        assert!(desk.read(&reference).starts_with("result "), "{what}");
                    }
                }
                // Another process has the history, and makes a view of its own.
                let mut other = Harness::over(Rc::clone(&desk.memory), "b", options(preset.name));
                assert_eq!(history(&mut other), before, "{what}");
                full.set(false);
                let (stored, same) = fitting(&mut desk, format);
                assert_eq!((stored.stored, warnings(&mut desk)), (true, 0), "{what}");
                assert_eq!((same, desk.context()), (sent.clone(), sent), "{what}");
                assert_eq!(history(&mut desk), before, "{what}");
                desk.append(&[user("More.")]);
                assert!(fitting(&mut desk, format).0.stored, "{what}");
            }
        }
    }
}

#[test]
fn d18_what_is_appended_meanwhile_stands_behind_what_is_in_memory() {
    for preset in ["balanced", "offload", "checkpoint"] {
        let mut desk = Harness::new(options(preset));
        overfull(&mut desk, Format::OpenaiChat);
        // Only what changes the context is too much.
        let full = Rc::new(Cell::new(true));
        let refuses = Rc::clone(&full);
        desk.host.refuse =
            Box::new(move |batch| (refuses.get() && has(batch, "views/")).then_some(Code::QuotaExceeded));
        let (_, mut sent) = fitting(&mut desk, Format::OpenaiChat);
        desk.append(&[user("One more thing.")]);
        sent.push(json!({ "role": "user", "content": "One more thing." }));
        let (prepared, now) = fitting(&mut desk, Format::OpenaiChat);
        assert_eq!((prepared.stored, now.last()), (false, sent.last()), "{preset}");
        full.set(false);
        let (prepared, stored) = fitting(&mut desk, Format::OpenaiChat);
        assert!(prepared.stored, "{preset}");
        assert_eq!(desk.context(), stored, "{preset}");
        let mut other = Harness::over(Rc::clone(&desk.memory), "b", options(preset));
        assert_eq!(other.sent(), stored, "{preset}");
    }
}

#[test]
fn d18_a_context_that_another_tab_changed_wins_over_what_is_in_memory() {
    let mut desk = Harness::new(options("offload"));
    overfull(&mut desk, Format::OpenaiChat);
    let full = fill(&mut desk, 0);
    assert!(!fitting(&mut desk, Format::OpenaiChat).0.stored);
    let mut other = Harness::over(Rc::clone(&desk.memory), "b", options("offload"));
    other.prepare();
    let theirs = other.context();
    full.set(false);
    let (prepared, sent) = fitting(&mut desk, Format::OpenaiChat);
    assert!(prepared.stored);
    assert_eq!((desk.context(), sent), (theirs.clone(), theirs));
}

#[test]
fn d18_what_was_asked_for_to_be_stored_is_stored_or_fails() {
    let mut desk = Harness::new(options("offload"));
    overfull(&mut desk, Format::OpenaiChat);
    let full = fill(&mut desk, 0);
    let result = desk.compact();
    assert_eq!((result.success, result.fits, result.stored), (true, true, Some(false)));
    for _ in 0..2 {
        let snapshot = desk.session.snapshot(SnapshotPurpose::Rollback);
        assert_eq!(desk.host.run(snapshot).unwrap_err().code, Code::QuotaExceeded);
        assert_eq!(desk.host.run(desk.session.pin(0)).unwrap_err().code, Code::QuotaExceeded);
        assert_eq!(desk.host.run(desk.session.fork(None)).unwrap_err().code, Code::QuotaExceeded);
    }
    full.set(false);
    desk.host.run(desk.session.pin(2)).unwrap();
    let sent = desk.sent();
    assert_eq!(desk.context(), sent);
    assert!(desk.host.run(desk.session.fork(None)).is_ok());
}

#[test]
fn d18_a_crash_or_a_lost_answer_while_it_is_stored_leaves_one_context_or_the_other() {
    for how in [How::CrashBefore, How::CrashAfter, How::Lost, How::Fail(Code::Conflict)] {
        for nth in 1..=3 {
            let mut desk = Harness::new(options("offload"));
            overfull(&mut desk, Format::OpenaiChat);
            let full = fill(&mut desk, 0);
            fitting(&mut desk, Format::OpenaiChat);
            let before = history(&mut desk);
            full.set(false);
            desk.host.fault(nth, |effect: &Effect| is_change(effect), how);
            let ended = desk.host.try_run(desk.session.prepare(Trigger::Auto, Vec::new()));
            let mut again = Harness::over(Rc::clone(&desk.memory), "b", options("offload"));
            assert_eq!(history(&mut again), before, "{how:?} {nth}");
            let (_, now) = fitting(&mut again, Format::OpenaiChat);
            assert_valid(Format::OpenaiChat, &now);
            again.stored();
            if matches!(how, How::Lost | How::Fail(_)) {
                assert!(ended.is_some_and(|done| done.is_ok()), "{how:?} {nth}");
                assert_eq!(desk.sent(), desk.context(), "{how:?} {nth}");
            }
        }
    }
}

#[test]
fn d18_going_back_stores_what_is_in_memory_first_or_fails() {
    let mut desk = Harness::new(options("checkpoint"));
    overfull(&mut desk, Format::OpenaiChat);
    let full = fill(&mut desk, 0);
    assert!(!fitting(&mut desk, Format::OpenaiChat).0.stored);
    assert_eq!(desk.host.run(desk.session.rewind(4)).unwrap_err().code, Code::QuotaExceeded);
    full.set(false);
    desk.host.run(desk.session.rewind(4)).unwrap();
    let sent = desk.sent();
    assert_eq!(desk.context(), sent);
    let views = desk.host.run(desk.session.verify()).unwrap();
    assert!(views.ok, "{views:?}");
    let mut other = Harness::over(Rc::clone(&desk.memory), "b", options("checkpoint"));
    assert_eq!(other.sent(), sent);
}

#[test]
fn d18_what_the_store_never_takes_in_one_batch_is_given_up_and_made_again() {
    let mut desk = Harness::new(options("offload"));
    overfull(&mut desk, Format::OpenaiChat);
    let before = history(&mut desk);
    let full = fill(&mut desk, 0);
    assert!(!fitting(&mut desk, Format::OpenaiChat).0.stored);
    // The change that moves the results is too large for this store, and nobody said so while it was full.
    let most = Rc::clone(&full);
    desk.host.refuse = Box::new(move |batch| match most.get() {
        true => Some(Code::QuotaExceeded),
        false => (batch.puts.len() > 6).then_some(Code::TooLarge),
    });
    full.set(false);
    let (prepared, sent) = fitting(&mut desk, Format::OpenaiChat);
    assert!(prepared.stored);
    assert_eq!(desk.context(), sent);
    assert_eq!(history(&mut desk), before);
}
