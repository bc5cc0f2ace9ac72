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
fn overfull(harness: &mut Harness, format: Format) {
    for nth in 0..12 {
        harness.append(&turn(format, nth, 700));
    }
    harness.append(&turn(format, 12, 5_000));
    harness.append(&[user("And now?")]);
}

/// Every commit from the `nth` on is refused, until `full` is cleared.
fn fill(harness: &mut Harness, nth: usize) -> Rc<Cell<bool>> {
    let (full, seen) = (Rc::new(Cell::new(true)), Cell::new(0));
    let refuses = Rc::clone(&full);
    harness.host.refuse = Box::new(move |_| {
        seen.set(seen.get() + 1);
        (refuses.get() && seen.get() > nth).then_some(Code::QuotaExceeded)
    });
    full
}

/// Warnings of a full store since the last look.
fn warnings(harness: &mut Harness) -> usize {
    let is_full = |notice: &Notice| matches!(notice, Notice::Warning { code: Code::QuotaExceeded, .. });
    std::mem::take(&mut harness.host.seen.notices).iter().filter(|notice| is_full(notice)).count()
}

fn history(harness: &mut Harness) -> Vec<String> {
    harness.stored().messages.iter().map(|body| body.to_string()).collect()
}

/// The messages of a prepare that fits and is valid.
fn fitting(harness: &mut Harness, format: Format) -> (Prepared, Vec<Value>) {
    let prepared = harness.prepare();
    assert!(prepared.usage.used_tokens < WINDOW, "{} tokens", prepared.usage.used_tokens);
    let sent = bodies(&harness.session, &prepared);
    assert_valid(format, &sent);
    (prepared, sent)
}

#[test]
fn d18_whichever_commit_is_refused_there_is_a_prompt_and_room_stores_it() {
    for preset in PRESETS.iter().filter(|preset| preset.name != "react") {
        for format in FORMATS {
            for nth in 0.. {
                let what = format!("{} {format:?} from commit {nth}", preset.name);
                let mut harness = Harness::new(options(preset.name));
                overfull(&mut harness, format);
                let before = history(&mut harness);
                let full = fill(&mut harness, nth);
                warnings(&mut harness);
                let (prepared, sent) = fitting(&mut harness, format);
                let told = warnings(&mut harness);
                if prepared.stored {
                    assert_eq!(told, 0, "{what}");
                    assert!(nth > 0, "{what}: nothing was to be stored");
                    break;
                }
                assert_eq!(told, 1, "{what}");
                assert!(prepared.result.iter().all(|result| result.stored == Some(false)), "{what}");
                // As long as it is full: the same prompt, one warning, and no append.
                let (again, same) = fitting(&mut harness, format);
                assert_eq!((again.stored, warnings(&mut harness)), (false, 1), "{what}");
                assert_eq!(same, sent, "{what}");
                let error = harness.host.run(harness.session.append(vec![user("More.")])).unwrap_err();
                assert_eq!(error.code, Code::QuotaExceeded, "{what}");
                // What was moved is read from memory, word for word.
                for entry in harness.session.explain().unwrap() {
                    if let Some(reference) = entry.reference {
                        assert!(harness.read(&reference).starts_with("result "), "{what}");
                    }
                }
                // Another process has the history, and makes a view of its own.
                let mut other = Harness::over(Rc::clone(&harness.memory), "b", options(preset.name));
                assert_eq!(history(&mut other), before, "{what}");
                full.set(false);
                let (stored, same) = fitting(&mut harness, format);
                assert_eq!((stored.stored, warnings(&mut harness)), (true, 0), "{what}");
                assert_eq!((same, harness.context()), (sent.clone(), sent), "{what}");
                assert_eq!(history(&mut harness), before, "{what}");
                harness.append(&[user("More.")]);
                assert!(fitting(&mut harness, format).0.stored, "{what}");
            }
        }
    }
}

#[test]
fn d18_what_is_appended_meanwhile_stands_behind_what_is_in_memory() {
    for preset in ["balanced", "offload", "checkpoint"] {
        let mut harness = Harness::new(options(preset));
        overfull(&mut harness, Format::OpenaiChat);
        // Only what changes the context is too much.
        let full = Rc::new(Cell::new(true));
        let refuses = Rc::clone(&full);
        harness.host.refuse =
            Box::new(move |batch| (refuses.get() && has(batch, "views/")).then_some(Code::QuotaExceeded));
        let (_, mut sent) = fitting(&mut harness, Format::OpenaiChat);
        harness.append(&[user("One more thing.")]);
        sent.push(json!({ "role": "user", "content": "One more thing." }));
        let (prepared, now) = fitting(&mut harness, Format::OpenaiChat);
        assert_eq!((prepared.stored, now.last()), (false, sent.last()), "{preset}");
        full.set(false);
        let (prepared, stored) = fitting(&mut harness, Format::OpenaiChat);
        assert!(prepared.stored, "{preset}");
        assert_eq!(harness.context(), stored, "{preset}");
        let mut other = Harness::over(Rc::clone(&harness.memory), "b", options(preset));
        assert_eq!(other.sent(), stored, "{preset}");
    }
}

#[test]
fn d18_a_context_that_another_tab_changed_wins_over_what_is_in_memory() {
    let mut harness = Harness::new(options("offload"));
    overfull(&mut harness, Format::OpenaiChat);
    let full = fill(&mut harness, 0);
    assert!(!fitting(&mut harness, Format::OpenaiChat).0.stored);
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", options("offload"));
    other.prepare();
    let theirs = other.context();
    full.set(false);
    let (prepared, sent) = fitting(&mut harness, Format::OpenaiChat);
    assert!(prepared.stored);
    assert_eq!((harness.context(), sent), (theirs.clone(), theirs));
}

#[test]
fn d18_what_was_asked_for_to_be_stored_is_stored_or_fails() {
    let mut harness = Harness::new(options("offload"));
    overfull(&mut harness, Format::OpenaiChat);
    let full = fill(&mut harness, 0);
    let result = harness.compact();
    assert_eq!((result.success, result.fits, result.stored), (true, true, Some(false)));
    for _ in 0..2 {
        let snapshot = harness.session.snapshot(SnapshotPurpose::Rollback);
        assert_eq!(harness.host.run(snapshot).unwrap_err().code, Code::QuotaExceeded);
        assert_eq!(harness.host.run(harness.session.pin(0)).unwrap_err().code, Code::QuotaExceeded);
        assert_eq!(harness.host.run(harness.session.fork(None)).unwrap_err().code, Code::QuotaExceeded);
    }
    full.set(false);
    harness.host.run(harness.session.pin(2)).unwrap();
    let sent = harness.sent();
    assert_eq!(harness.context(), sent);
    assert!(harness.host.run(harness.session.fork(None)).is_ok());
}

#[test]
fn d18_a_crash_or_a_lost_answer_while_it_is_stored_leaves_one_context_or_the_other() {
    for how in [How::CrashBefore, How::CrashAfter, How::Lost, How::Fail(Code::Conflict)] {
        for nth in 1..=3 {
            let mut harness = Harness::new(options("offload"));
            overfull(&mut harness, Format::OpenaiChat);
            let full = fill(&mut harness, 0);
            fitting(&mut harness, Format::OpenaiChat);
            let before = history(&mut harness);
            full.set(false);
            harness.host.fault(nth, |effect: &Effect| is_change(effect), how);
            let ended = harness.host.try_run(harness.session.prepare(Trigger::Auto, Vec::new()));
            let mut again = Harness::over(Rc::clone(&harness.memory), "b", options("offload"));
            assert_eq!(history(&mut again), before, "{how:?} {nth}");
            let (_, now) = fitting(&mut again, Format::OpenaiChat);
            assert_valid(Format::OpenaiChat, &now);
            again.stored();
            if matches!(how, How::Lost | How::Fail(_)) {
                assert!(ended.is_some_and(|done| done.is_ok()), "{how:?} {nth}");
                assert_eq!(harness.sent(), harness.context(), "{how:?} {nth}");
            }
        }
    }
}

#[test]
fn d18_going_back_stores_what_is_in_memory_first_or_fails() {
    let mut harness = Harness::new(options("checkpoint"));
    overfull(&mut harness, Format::OpenaiChat);
    let full = fill(&mut harness, 0);
    assert!(!fitting(&mut harness, Format::OpenaiChat).0.stored);
    assert_eq!(harness.host.run(harness.session.rewind(4)).unwrap_err().code, Code::QuotaExceeded);
    full.set(false);
    harness.host.run(harness.session.rewind(4)).unwrap();
    let sent = harness.sent();
    assert_eq!(harness.context(), sent);
    let views = harness.host.run(harness.session.verify()).unwrap();
    assert!(views.ok, "{views:?}");
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", options("checkpoint"));
    assert_eq!(other.sent(), sent);
}

#[test]
fn d18_what_the_store_never_takes_in_one_batch_is_given_up_and_made_again() {
    let mut harness = Harness::new(options("offload"));
    overfull(&mut harness, Format::OpenaiChat);
    let before = history(&mut harness);
    let full = fill(&mut harness, 0);
    assert!(!fitting(&mut harness, Format::OpenaiChat).0.stored);
    // The change that moves the results is too large for this store, and nobody said so while it was full.
    let most = Rc::clone(&full);
    harness.host.refuse = Box::new(move |batch| match most.get() {
        true => Some(Code::QuotaExceeded),
        false => (batch.puts.len() > 6).then_some(Code::TooLarge),
    });
    full.set(false);
    let (prepared, sent) = fitting(&mut harness, Format::OpenaiChat);
    assert!(prepared.stored);
    assert_eq!(harness.context(), sent);
    assert_eq!(history(&mut harness), before);
}
