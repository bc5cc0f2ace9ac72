//! Snapshots, by the app and before an emergency (`S5.2`, `S5.15`).

use crate::support::checkpoints::{harness, options};
use crate::support::snapshots::*;
use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::{Fate, Item};
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::policy::Trigger;
use context_compactor_core::step::Effect;
use context_compactor_store_tests::How;
use context_compactor_store_tests::conversation::{assistant, user};
use context_compactor_store_tests::host::{summary, thrown};
use serde_json::{Value, json};
use std::cell::Cell;
use std::rc::Rc;

fn goal(description: &str) -> String {
    json!({ "id": description, "description": description, "priority": "low", "status": "active",
        "checkpoints": [], "decisions": [], "artifacts": [] })
    .to_string()
}

fn is_snapshot(effect: &Effect) -> bool {
    matches!(effect, Effect::Commit(batch) if batch.puts.iter().any(|(key, value)| {
        key.to_string().starts_with("log/") && String::from_utf8_lossy(value).contains(r#"{"snapshot":"snap_"#)
    }))
}

#[test]
fn s5_2_restoring_brings_back_the_very_context_and_what_came_after_stays_in_the_log() {
    for format in FORMATS {
        let mut harness = harness(json!({}));
        harness.append(&turn(format, 0, 300));
        harness.append(&chat(1, 20, 100));
        assert!(harness.compact().success);
        harness.append(&chat(21, 2, 100));
        let (before, checkpoints) = (items(&harness), harness.session.checkpoints().unwrap());
        let id = take(&mut harness);
        assert!(id.starts_with("snap_"));
        // What comes after: messages, and a compaction that changes what was there.
        harness.append(&chat(23, 20, 100));
        assert!(harness.compact().success);
        assert_ne!(items(&harness), before);
        let all = harness.stored().messages;
        restore(&mut harness, &id);
        assert_eq!(items(&harness), before);
        assert_eq!(harness.session.checkpoints().unwrap(), checkpoints);
        assert_eq!(harness.stored().messages, all, "nothing is deleted");
        let left = |harness: &Harness| {
            let fates = harness.session.explain().unwrap();
            let left = fates.into_iter().filter(|fate| fate.fate == Fate::Dropped);
            left.map(|fate| (fate.index, fate.reason.unwrap())).collect::<Vec<_>>()
        };
        let gone = left(&harness);
        assert_eq!(gone.iter().map(|(index, _)| *index).collect::<Vec<_>>(), (48..88).collect::<Vec<_>>());
        assert!(gone[0].1.contains("a snapshot that was restored; the log keeps it"), "{}", gone[0].1);
        // The conversation goes on from there, and another tab sees the same.
        harness.append(&chat(99, 1, 10));
        let now = items(&harness);
        assert_eq!(now[..before.len()], before);
        assert_eq!(now.len(), before.len() + 2);
        assert_valid(format, &harness.context());
        let other = Harness::over(Rc::clone(&harness.memory), "other", options(json!({})));
        assert_eq!(items(&other), now);
        assert_eq!(left(&other), gone);
    }
}

#[test]
fn s5_2_a_snapshot_is_one_small_row_whatever_the_size_of_the_session() {
    let mut harness = harness(json!({ "contextWindow": 200_000 }));
    let mut sizes = Vec::new();
    for round in 0..3 {
        harness.append(&chat(round * 100, 100, 100));
        let commits = harness.host.seen.commits.len();
        take(&mut harness);
        let batch = &harness.host.seen.commits[commits];
        assert_eq!(harness.host.seen.commits.len(), commits + 1);
        // The log row and the session's two, of which one knows where the snapshots are.
        assert_eq!(batch.puts.len(), 3);
        sizes.push(batch.puts[0].1.len());
    }
    assert!(sizes.iter().all(|size| *size < 700 && size.abs_diff(sizes[0]) < 20), "{sizes:?}");
}

#[test]
fn s5_2_snapshots_are_listed_with_their_purpose_and_content_and_the_newest_five_are_kept() {
    let mut harness = harness(json!({}));
    assert_eq!(list(&mut harness), []);
    harness.append(&chat(0, 20, 100));
    harness.host.run(harness.session.set_goal(goal("Ship"))).unwrap();
    let first = take_for(&mut harness, SnapshotPurpose::Recovery);
    assert!(harness.compact().success);
    take(&mut harness);
    let listed = list(&mut harness);
    let purposes: Vec<_> = listed.iter().map(|one| one.purpose).collect();
    assert_eq!(purposes, [SnapshotPurpose::Recovery, SnapshotPurpose::Rollback]);
    assert_eq!((listed[0].message_count, listed[0].checkpoint_count), (40, 0));
    assert_eq!(listed[1].checkpoint_count, 1);
    assert!(listed[0].tokens > listed[1].tokens && listed[0].timestamp < listed[1].timestamp);
    assert_eq!(listed[0].goal.as_ref().unwrap().description, "Ship");
    for nth in 0..5 {
        harness.append(&[user(&format!("more {nth}"))]);
        take(&mut harness);
    }
    let listed = list(&mut harness);
    assert_eq!(listed.len(), 5);
    for gone in [first.as_str(), "snap_x", "", "s"] {
        let error = harness.host.run(harness.session.restore(gone.into())).unwrap_err();
        assert_eq!(
            (error.code, error.into_parts().message),
            (Code::NotFound, format!("Snapshot not found: {gone}"))
        );
    }
    // Reopened, they are the same, and can be restored.
    let mut other = Harness::over(Rc::clone(&harness.memory), "other", options(json!({})));
    assert_eq!(list(&mut other), listed);
    restore(&mut other, &listed[0].id);
    assert_eq!(items(&other).len(), listed[0].message_count);
    // The other handle reads what it did not know.
    let id = take(&mut other);
    restore(&mut harness, &id);
    assert_eq!(items(&harness), items(&other));
}

#[test]
fn s5_2_how_many_are_kept_is_an_option() {
    let mut harness = harness(json!({ "presetOptions": { "keepSnapshots": 2 } }));
    for nth in 0..4 {
        harness.append(&[user(&format!("ask {nth}"))]);
        take(&mut harness);
    }
    assert_eq!(list(&mut harness).iter().map(|one| one.message_count).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(harness.stored().snapshots.len(), 2);
    for wrong in [json!(0), json!(101), json!(1.5), json!("5")] {
        let options = options(json!({ "presetOptions": { "keepSnapshots": wrong } })).to_string();
        let options = serde_json::from_str(&options).unwrap();
        let error = context_compactor_core::policy::Settings::read(&options).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("presetOptions.keepSnapshots"), "{error}");
    }
}

#[test]
fn s5_2_the_goal_and_the_count_of_compressions_come_back_too() {
    let mut harness = harness(json!({ "model": "llama3:3b" }));
    harness.append(&chat(0, 20, 100));
    let empty = take(&mut harness);
    harness.host.run(harness.session.set_goal(goal("First"))).unwrap();
    let (score, id) = (harness.session.reliability().unwrap(), take(&mut harness));
    assert!(harness.compact().success);
    harness.host.run(harness.session.set_goal(goal("Second"))).unwrap();
    assert_ne!(harness.session.reliability().unwrap(), score);
    restore(&mut harness, &id);
    assert_eq!(harness.session.goal().unwrap().unwrap().description, "First");
    assert_eq!(harness.session.reliability().unwrap(), score);
    restore(&mut harness, &empty);
    assert_eq!(harness.session.goal().unwrap(), None);
    let other = Harness::over(Rc::clone(&harness.memory), "other", options(json!({})));
    assert_eq!(other.session.goal().unwrap(), None);
}

#[test]
fn s5_2_restoring_goes_to_and_fro_between_branches_over_many_views() {
    let mut harness =
        harness(json!({ "presetOptions": { "keepSnapshots": 100 }, "summarize": { "detail": 3 } }));
    let mut taken = Vec::new();
    for round in 0..40 {
        harness.append(&chat(round * 10, 1 + round % 3, 120));
        if round % 3 == 0 {
            harness.compact();
        }
        taken.push((take(&mut harness), items(&harness)));
        // Back and forth: to any of them, at every distance.
        let (id, expected) = &taken[(round * 7) % taken.len()];
        restore(&mut harness, id);
        assert_eq!(&items(&harness), expected, "{round}");
    }
    for (id, expected) in &taken {
        restore(&mut harness, id);
        assert_eq!(&items(&harness), expected);
        let other = Harness::over(Rc::clone(&harness.memory), id, options(json!({})));
        assert_eq!(&items(&other), expected);
    }
    let messages = harness.stored().messages.len();
    let fates = harness.session.explain().unwrap();
    assert!(fates.iter().map(|entry| entry.index).eq(0..messages), "every message has one fate");
    assert_eq!(harness.stored().snapshots.len(), taken.len());
}

#[test]
fn s5_2_an_offload_of_a_branch_that_was_left_is_still_read_and_made_again() {
    let format = FORMATS[0];
    let mut harness = Harness::new(json!({
        "preset": "offload", "presetOptions": { "offloadThreshold": 600 },
        "summarize": { "fallback": "none" },
    }));
    harness.append(&turn(format, 0, 400));
    harness.append(&turn(format, 1, 400));
    let (id, whole) = (take(&mut harness), items(&harness));
    let prepared = harness.prepare();
    assert_eq!(prepared.edits[0].kind, "offload");
    let (offloaded, reference) =
        (items(&harness), harness.session.explain().unwrap()[2].reference.clone().unwrap());
    restore(&mut harness, &id);
    assert_eq!(items(&harness), whole);
    assert!(harness.read(&reference).starts_with("result 0"));
    assert_eq!(harness.prepare().edits[0].kind, "offload");
    assert_eq!(items(&harness), offloaded, "by the same reference");
    harness.stored();
}

#[test]
fn s5_2_crashes_lost_answers_and_races_leave_the_old_state_or_the_new_one() {
    let begin = || {
        let mut harness = harness(json!({}));
        harness.append(&chat(0, 6, 50));
        let (id, expected) = (take(&mut harness), items(&harness));
        harness.append(&chat(6, 3, 50));
        (harness, id, expected)
    };
    for how in [
        How::CrashBefore,
        How::CrashAfter,
        How::Lost,
        How::Fail(Code::Conflict),
        How::Fail(Code::QuotaExceeded),
    ] {
        let (mut harness, id, expected) = begin();
        let after = items(&harness);
        harness.host.fault(1, is_commit, how);
        let done = harness.host.try_run(harness.session.restore(id.clone()));
        let stored = harness.stored();
        let same = |items: &[Item]| {
            items.iter().map(|item| &*item.body).eq(stored.context.iter().map(|one| &*one.1))
        };
        assert!(
            same(if matches!(how, How::CrashBefore | How::Fail(Code::QuotaExceeded)) {
                &after
            } else {
                &expected
            }),
            "{how:?}"
        );
        if matches!(how, How::Lost | How::Fail(Code::Conflict)) {
            done.unwrap().unwrap();
            assert_eq!((items(&harness), stored.generation), (expected, 1), "{how:?}");
        }
        let (mut harness, _, _) = begin();
        harness.host.fault(1, is_snapshot, how);
        let done = harness.host.try_run(harness.session.snapshot(SnapshotPurpose::Rollback));
        let count = harness.stored().snapshots.len();
        assert_eq!(
            count,
            if matches!(how, How::CrashBefore | How::Fail(Code::QuotaExceeded)) { 1 } else { 2 },
            "{how:?}"
        );
        if matches!(how, How::Lost | How::Fail(Code::Conflict)) {
            assert!(done.unwrap().is_ok());
        }
    }
}

#[test]
fn s5_2_what_another_tab_appends_before_the_commit_is_left_too() {
    let mut harness = harness(json!({}));
    harness.append(&chat(0, 3, 50));
    let (id, expected) = (take(&mut harness), items(&harness));
    let mut other = Harness::over(Rc::clone(&harness.memory), "other", options(json!({})));
    let (once, memory) = (Cell::new(true), Rc::clone(&harness.memory));
    harness.host.meanwhile = Box::new(move |effect| {
        if is_change(effect) && once.take() {
            other.append(&[user("in between")]);
        }
    });
    restore(&mut harness, &id);
    assert_eq!(items(&harness), expected);
    assert_eq!(harness.session.explain().unwrap()[6].fate, Fate::Dropped);
    let other = Harness::over(memory, "third", options(json!({})));
    assert_eq!(items(&other), expected);
}

#[test]
fn s5_2_an_empty_session_has_a_snapshot_and_goes_back_to_it() {
    let mut harness = harness(json!({}));
    let id = take(&mut harness);
    harness.append(&chat(0, 3, 50));
    restore(&mut harness, &id);
    assert!(items(&harness).is_empty() && harness.prepare().items.is_empty());
    harness.append(&chat(3, 1, 50));
    assert_eq!(harness.sent().len(), 2);
}

#[test]
fn s5_2_no_word_of_a_snapshot_reaches_a_model() {
    let mut harness = harness(json!({}));
    harness.append(&chat(0, 20, 100));
    let id = take(&mut harness);
    harness.append(&chat(20, 4, 100));
    assert!(harness.compact().success);
    restore(&mut harness, &id);
    assert!(harness.compact().success);
    let asked: Vec<String> =
        harness.host.seen.requests.iter().map(|(request, _)| format!("{request:?}")).collect();
    let sent: Vec<String> = harness.sent().iter().map(Value::to_string).collect();
    assert_eq!(asked.len(), 2);
    for text in asked.iter().chain(&sent) {
        assert!(!text.contains("snap_") && !text.contains("rollback"), "{text}");
    }
}

#[test]
fn s5_15_each_step_that_is_to_make_a_prompt_fit_comes_after_an_emergency_snapshot() {
    let mut harness = harness(json!({
        "contextWindow": 4_000, "summarize": { "fallback": "none" },
        "presetOptions": { "keepSnapshots": 50 },
    }));
    harness.append(&chat(0, 2, 100));
    let own = take(&mut harness);
    harness.append(&chat(2, 8, 900));
    let before = items(&harness);
    // The summary of the older messages leaves too much, and the next one is refused: the context begins anew.
    let asked = Cell::new(0);
    harness.host.summarise = Box::new(move |_, _| {
        asked.set(asked.get() + 1);
        if asked.get() == 1 { summary(SUMMARY) } else { thrown("busy", None) }
    });
    let commits = harness.host.seen.commits.len();
    let prepared = harness.prepare();
    assert!(prepared.usage.used_tokens <= 3_000);
    // A snapshot stands before every change of the context.
    let mut fresh = false;
    let mut changes = 0;
    for batch in &harness.host.seen.commits[commits..] {
        let effect = Effect::Commit(batch.clone());
        if is_change(&effect) {
            assert!(fresh, "a step without a snapshot");
            changes += 1;
        }
        fresh = is_snapshot(&effect) || (fresh && !is_change(&effect));
    }
    assert!(changes >= 1);
    let listed = list(&mut harness);
    assert!(listed.len() > 1 && listed[0].id == own);
    assert!(listed[1..].iter().all(|one| one.purpose == SnapshotPurpose::Emergency), "{listed:?}");
    restore(&mut harness, &listed[1].id);
    assert_eq!(items(&harness), before);
}

#[test]
fn s5_15_a_prompt_that_stays_too_large_takes_no_snapshot_twice() {
    let mut harness = harness(json!({ "contextWindow": 4_000 }));
    harness.append(&[user("begin"), assistant("yes"), user(&long("far too much", 4_000))]);
    harness.host.run(harness.session.pin(2)).unwrap();
    let id = take(&mut harness);
    for _ in 0..6 {
        let error = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap_err();
        assert_eq!(error.code, Code::ContextOverflow);
    }
    let listed = list(&mut harness);
    assert!(listed.len() <= 3 && listed[0].id == id, "{listed:?}");
}

#[test]
fn s5_15_a_context_that_fits_takes_no_snapshot() {
    let mut harness = harness(json!({ "contextWindow": 8_000 }));
    harness.append(&chat(0, 10, 500));
    assert!(harness.prepare().result.unwrap().success);
    harness.append(&chat(10, 10, 40));
    assert!(harness.compact().success);
    assert_eq!(list(&mut harness), []);
}

#[test]
fn s5_2_two_tabs_restore_at_once_and_one_state_stands() {
    let mut harness = harness(json!({}));
    harness.append(&chat(0, 3, 50));
    let first = take(&mut harness);
    harness.append(&chat(3, 3, 50));
    let (second, expected) = (take(&mut harness), items(&harness));
    let memory = Rc::clone(&harness.memory);
    let mut other = Harness::over(Rc::clone(&memory), "other", options(json!({})));
    let once = Cell::new(true);
    let to = first.clone();
    harness.host.meanwhile = Box::new(move |effect| {
        if is_change(effect) && once.take() {
            restore(&mut other, &to);
        }
    });
    restore(&mut harness, &second);
    assert_eq!(items(&harness), expected);
    let fresh = Harness::over(memory, "third", options(json!({})));
    assert_eq!(items(&fresh), expected);
}

#[test]
fn s5_2_the_app_names_two_purposes() {
    assert_eq!(SnapshotPurpose::named("recovery").unwrap(), SnapshotPurpose::Recovery);
    assert_eq!(SnapshotPurpose::named("rollback").unwrap(), SnapshotPurpose::Rollback);
    for name in ["emergency", "", "Recovery"] {
        assert_eq!(SnapshotPurpose::named(name).unwrap_err().field.as_deref(), Some("purpose"));
    }
}
