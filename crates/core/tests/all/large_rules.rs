//! Messages and results that are too large for one value or one transaction (T1', R6).

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::keys::batch::Batch;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::session::audit::{look, view_text};
use context_compactor_core::step::Effect;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{assistant, exchange, user};
use context_compactor_store_tests::{Host, How, MemoryStore};
use serde_json::{Value, json};
use std::rc::Rc;

const MIB: usize = 1 << 20;
/// A little more than what is staged.
const BIG: usize = 8 * MIB + 1_000;

/// A text of about this many bytes in which every place is told from every other.
fn large(name: &str, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 64);
    let mut line = 0;
    while text.len() < bytes {
        text.push_str(&format!("{name} {line} 字\u{1f469}\u{200d}\u{1f467} \"quoted\"\n"));
        line += 1;
    }
    text
}

fn options() -> Value {
    json!({ "compactAt": { "tokens": 400 }, "contextWindow": 100_000_000 })
}

/// Room that a batch takes: operations, the largest value and all values.
fn sizes(batch: &Batch) -> (usize, usize, usize) {
    let values = batch.puts.iter().map(|(_, value)| value.len());
    let operations = batch.expect.len() + batch.puts.len() + batch.deletes.len();
    (operations, values.clone().max().unwrap_or(0), values.sum())
}

/// Rows that a commit should not have left: jobs of blobs, and blobs that nothing refers to.
fn leftovers(memory: &MemoryStore) -> Vec<String> {
    let rows = memory.rows();
    let texts: Vec<String> = rows
        .iter()
        .filter(|(key, _)| !key.to_string().starts_with("blobs/") && !key.to_string().starts_with("jobs/"))
        .map(|(_, value)| String::from_utf8_lossy(&view_text(value)).into_owned())
        .collect();
    let left = rows.iter().map(|(key, _)| key.to_string()).filter(|key| {
        let id = key.split('/').nth(2).unwrap_or_default();
        match key.split('/').next() {
            Some("jobs") => id.starts_with("row_") || id.starts_with("off_"),
            Some("blobs") => !texts.iter().any(|text| text.contains(id)),
            _ => false,
        }
    });
    left.collect()
}

fn much_later(memory: &Rc<MemoryStore>, name: &str) -> Harness {
    let mut host = Host::new(Rc::clone(memory) as _, name);
    host.now += 1_000_000_000;
    let (session, _) = host.run(Session::open(settings(options()), Some("s".into()), 10_000)).unwrap();
    Harness { memory: Rc::clone(memory), host, session }
}

#[test]
fn t1_64_mb_go_through_append_offload_and_read_in_parts_byte_for_byte() {
    let text = large("row", 64_000_000);
    let mut harness = Harness::new(options());
    harness.append(&[user("look")]);
    harness.append(&exchange(Format::Anthropic, "a", &text));
    harness.append(&[assistant("I see.")]);
    harness.append(&talk(3, 20));
    let prepared = harness.prepare();
    assert_eq!(prepared.edits.iter().map(|edit| edit.kind).collect::<Vec<_>>(), ["offload"]);
    for batch in &harness.host.seen.commits {
        let (operations, largest, all) = sizes(batch);
        assert!(operations <= 32 && largest <= MIB && all <= 9 * MIB, "{operations} {largest} {all}");
    }
    let reference =
        harness.session.explain().unwrap().iter().find_map(|entry| entry.reference.clone()).unwrap();
    let mut again = Harness::over(Rc::clone(&harness.memory), "b", options());
    assert_eq!(again.read(&reference), text);
    let chars = text.chars().count();
    for (offset, limit) in [(0, 10), (1_048_576, 100), (chars / 2, 12_345), (chars - 7, 100), (chars, 1)] {
        let range = again.host.run(again.session.read(reference.clone(), offset, Some(limit))).unwrap();
        let expected: String = text.chars().skip(offset).take(limit).collect();
        // The end moves back to a whole grapheme cluster.
        assert!(expected.starts_with(&range) && expected.len() - range.len() < 16, "{offset} {limit}");
    }
    assert!(leftovers(&harness.memory).is_empty());
    assert_eq!(harness.stored().messages.len(), 10);
}

fn append_large(harness: &mut Harness) -> Option<()> {
    let bodies = vec![assistant(&large("a", BIG)), assistant(&large("b", MIB + 1_000))];
    harness
        .host
        .try_run(harness.session.append(bodies))
        .map(|appended| assert_eq!(appended.unwrap().places.len(), 2))
}

#[test]
fn t1_a_crash_at_every_commit_of_a_large_append_leaves_all_of_it_or_nothing_r6() {
    for first in [true, false] {
        let (mut ended, mut at) = (false, 1);
        while !ended {
            // A crash before a commit is one after the commit before it.
            let how = How::CrashAfter;
            let mut harness = Harness::new(options());
            if !first {
                harness.append(&[user("before")]);
            }
            harness.host.fault(at, is_commit, how);
            ended = append_large(&mut harness).is_some();
            let before = harness.stored().messages.len();
            assert!(!ended || before == 2 + usize::from(!first));
            assert!([0, 2].contains(&(before - usize::from(!first))), "{before}");
            let mut again = much_later(&harness.memory, "b");
            assert_eq!(
                leftovers(&harness.memory),
                Vec::<String>::new(),
                "commit {at}, {how:?}, first {first}"
            );
            again.append(&[user("after")]);
            assert_eq!(again.stored().messages.len(), before + 1);
            at += 1;
        }
        assert!(at > 3, "{at} commits");
    }
}

#[test]
fn r6_a_sweep_may_be_killed_and_a_lease_that_is_not_over_is_left_alone() {
    for at in 1..=3 {
        let mut harness = Harness::new(options());
        harness.append(&[user("before")]);
        harness.host.fault(2, is_commit, How::CrashAfter);
        assert!(append_large(&mut harness).is_none());
        let left = leftovers(&harness.memory).len();
        assert!(left > 8);
        Harness::over(Rc::clone(&harness.memory), "b", options());
        assert_eq!(leftovers(&harness.memory).len(), left, "someone may be at it");
        let mut host = Host::new(Rc::clone(&harness.memory) as _, "c");
        host.now += 10_000_000;
        host.fault(at, is_commit, How::CrashBefore);
        let _ = host.try_run(Session::open(settings(options()), Some("s".into()), 10_000));
        much_later(&harness.memory, "d");
        assert_eq!(leftovers(&harness.memory), Vec::<String>::new());
    }
}

#[test]
fn r6_what_was_swept_under_a_frozen_tab_is_written_again_and_never_dangles() {
    let mut harness = Harness::new(options());
    harness.append(&[user("before")]);
    let memory = Rc::clone(&harness.memory);
    let (mut commits, mut swept) = (0, false);
    harness.host.meanwhile = Box::new(move |effect| {
        commits += usize::from(matches!(effect, Effect::Commit(_)));
        // The parts are there, and the tab sleeps for a day before it refers to them.
        if commits == 3 && !std::mem::replace(&mut swept, true) {
            much_later(&memory, "b");
            assert_eq!(leftovers(&memory), Vec::<String>::new());
        }
    });
    append_large(&mut harness).unwrap();
    assert_eq!(harness.stored().messages.len(), 3);
    assert!(
        much_later(&harness.memory, "c").stored().messages.len() == 3
            && leftovers(&harness.memory).is_empty()
    );
}

/// A session whose large result is due to be offloaded.
fn heavy() -> Harness {
    let mut harness = Harness::new(options());
    harness.append(&[user("look")]);
    harness.append(&exchange(Format::Anthropic, "a", &large("row", BIG)));
    harness.append(&[assistant("I see.")]);
    harness.append(&talk(3, 20));
    harness
}

#[test]
fn t1_a_crash_at_every_commit_of_a_large_offload_leaves_no_reference_without_its_text() {
    let (mut ended, mut at) = (false, 1);
    while !ended {
        let how = How::CrashAfter;
        let mut harness = heavy();
        harness.host.fault(at, is_commit, how);
        ended = harness.host.try_run(harness.session.prepare(Trigger::Auto, Vec::new())).is_some();
        harness.stored();
        let mut again = much_later(&harness.memory, "b");
        assert_eq!(leftovers(&harness.memory), Vec::<String>::new(), "commit {at}, {how:?}");
        again.prepare();
        let stored = again.stored();
        assert_eq!((stored.messages.len(), stored.generation), (10, 1));
        assert_eq!(leftovers(&harness.memory), Vec::<String>::new());
        at += 1;
    }
}

#[test]
fn t1_two_tabs_that_move_the_same_large_result_agree_and_a_later_sweep_takes_nothing_of_it() {
    for stop in 1..=4 {
        let mut harness = heavy();
        let mut other = Harness::over(Rc::clone(&harness.memory), "b", options());
        let (mut commits, mut moved) = (0, false);
        harness.host.meanwhile = Box::new(move |effect| {
            commits += usize::from(matches!(effect, Effect::Commit(_)));
            if commits == stop && !std::mem::replace(&mut moved, true) {
                other.prepare();
            }
        });
        harness.prepare();
        assert_eq!(harness.stored().generation, 1, "one of them did it");
        much_later(&harness.memory, "c").stored();
        assert_eq!(leftovers(&harness.memory), Vec::<String>::new(), "before commit {stop}");
    }
}

#[test]
fn t1_a_result_that_is_moved_again_after_a_restore_keeps_the_text_that_older_views_refer_to() {
    let mut harness = heavy();
    let snapshot = harness
        .host
        .run(harness.session.snapshot(context_compactor_core::log::SnapshotPurpose::Rollback))
        .unwrap();
    harness.prepare();
    for at in 1..=4 {
        harness.host.run(harness.session.restore(snapshot.clone())).unwrap();
        let mut again = Harness::over(Rc::clone(&harness.memory), &format!("b{at}"), options());
        again.host.fault(at, is_commit, How::CrashBefore);
        let _ = again.host.try_run(again.session.prepare(Trigger::Auto, Vec::new()));
        harness = much_later(&harness.memory, &format!("c{at}"));
        harness.stored();
        assert_eq!(leftovers(&harness.memory), Vec::<String>::new());
    }
}

#[test]
fn caps_no_batch_is_larger_than_the_store_takes_and_what_never_fits_is_refused_before_anything_is_written() {
    let mut host = Host::new(Rc::new(MemoryStore::default()) as _, "a");
    host.refuse = Box::new(|batch| {
        let (operations, largest, _) = sizes(batch);
        (operations > 100 || largest > MIB).then_some(Code::TooLarge)
    });
    let open = |most| Session::open(settings(options()), Some("s".into()), most);
    let (session, _) = host.run(open(100)).unwrap();
    let bodies: Vec<_> = (0..110)
        .map(|nth| assistant(&large(&nth.to_string(), if nth % 22 == 0 { 2 * MIB } else { 9 * nth })))
        .collect();
    host.run(session.append(bodies.clone())).unwrap();
    let (again, opened) = host.run(open(100)).unwrap();
    assert_eq!(opened.messages, 110);
    for (nth, body) in bodies.iter().enumerate() {
        assert_eq!(again.body(nth as u64).unwrap().as_ref(), Some(body));
    }
    host.run(again.delete()).unwrap();
    assert!(host.store.scan(&everything("blobs")).unwrap().is_empty());
    let (tiny, _) = host.run(open(6)).unwrap();
    host.run(tiny.append(vec![user("small")])).unwrap();
    let before = host.seen.commits.len();
    let error = host.run(tiny.append(vec![assistant(&large("a", 7 * MIB))])).unwrap_err();
    assert_eq!((error.code, host.seen.commits.len()), (Code::TooLarge, before));
    host.run(tiny.append(vec![assistant(&large("a", BIG))])).unwrap();
}

fn everything(table: &str) -> context_compactor_core::step::Scan {
    use context_compactor_core::keys::batch::{Key, KeyPart};
    let prefix = Key(vec![KeyPart::Text(table.into())]);
    context_compactor_core::step::Scan {
        prefix,
        after: None,
        limit: 10,
        max_bytes: MIB,
        reverse: false,
        keys_only: true,
    }
}

#[test]
fn a_fork_and_a_copy_of_a_session_with_large_rows_are_whole() {
    let mut harness = heavy();
    harness.prepare();
    let (child, _) = harness.host.run(harness.session.fork(Some("child".into()))).unwrap();
    let reference =
        harness.session.explain().unwrap().iter().find_map(|entry| entry.reference.clone()).unwrap();
    harness.host.run(harness.session.delete()).unwrap();
    let text = harness.host.run(child.read(reference, 0, None)).unwrap();
    assert_eq!(text, large("row", BIG));
    context_compactor_core::session::audit::audit("child", &harness.memory.rows()).unwrap();
    harness.host.run(child.delete()).unwrap();
    assert!(harness.memory.rows().is_empty());
}

#[test]
fn a_large_message_that_is_appended_to_a_session_which_another_tab_has_just_begun_stands_behind_all_of_it() {
    let memory = Rc::<MemoryStore>::default();
    // Opened when there was no such session.
    let mut late = Harness::over(Rc::clone(&memory), "late", options());
    let mut first = Harness::over(Rc::clone(&memory), "first", options());
    first.append(&[user("question"), assistant("answer")]);
    late.append(&exchange(Format::Anthropic, "call", &large("result", BIG)));
    let context = look(&late.session).unwrap().context;
    let places: Vec<_> =
        context.items().iter().filter_map(|item| item.origin.place()).map(|at| at.index).collect();
    assert_eq!(places, [0, 1, 2, 3]);
    assert_eq!(late.stored().messages.len(), 4);
}
