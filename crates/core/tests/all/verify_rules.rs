//! `verify`: every invariant of the stored rows, broken once in each way that a store could break it, is found and named;
//! no content is in what is said.

use crate::support::transcripts::archive;
use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::keys::batch::Key;
use context_compactor_core::step::{Effect, Stage};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::user;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;

/// A session with offloads, summaries and a snapshot.
fn rich() -> Harness {
    let mut harness = Harness::new(json!({
        "compactAt": { "tokens": 400 }, "presetOptions": { "compactTriggerThreshold": 1 },
        "keep": { "messages": 4 },
    }));
    for nth in 0..3 {
        harness.append(&turn(Format::OpenaiChat, nth, 150));
        harness.prepare();
    }
    harness
        .host
        .run(harness.session.snapshot(context_compactor_core::log::SnapshotPurpose::Recovery))
        .unwrap();
    harness.append(&turn(Format::OpenaiChat, 3, 150));
    harness.prepare();
    harness.append(&[user("and now?")]);
    harness
}

fn problems(harness: &mut Harness) -> Vec<String> {
    let verified = harness.host.run(harness.session.verify()).unwrap();
    assert_eq!(verified.ok, verified.problems.is_empty());
    verified.problems
}

/// The keys of a table.
fn keys_of(harness: &Harness, table: &str) -> Vec<Key> {
    let prefix = format!("{table}/");
    harness
        .memory
        .rows()
        .into_iter()
        .map(|(key, _)| key)
        .filter(|key| key.to_string().starts_with(&prefix))
        .collect()
}

fn value(harness: &Harness, key: &Key) -> Vec<u8> {
    harness.memory.rows().into_iter().find(|(known, _)| known == key).unwrap().1
}

#[test]
fn what_the_engine_writes_holds_and_an_empty_session_too() {
    let mut harness = rich();
    assert!(keys_of(&harness, "views").len() >= 2 && !keys_of(&harness, "blobs").is_empty());
    assert_eq!(problems(&mut harness), [""; 0]);
    let mut empty = Harness::new(json!({}));
    assert_eq!(problems(&mut empty), [""; 0]);
    let mut fork = harness.host.run(harness.session.fork(Some("f".into()))).unwrap().0;
    std::mem::swap(&mut harness.session, &mut fork);
    assert_eq!(problems(&mut harness), [""; 0], "a fork's rows hold too");
}

#[test]
fn every_row_that_is_missing_or_changed_is_found() {
    let rows = rich().memory.rows();
    for (at, (key, bytes)) in rows.iter().enumerate() {
        if key.to_string().starts_with("jobs/") {
            continue; // A note for the next opening; nothing depends on it.
        }
        let mut flipped = bytes.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        let mut cut = bytes.clone();
        cut.truncate(bytes.len() / 2);
        for damage in [None, Some(flipped), Some(cut)] {
            let mut harness = rich();
            let key = harness.memory.rows()[at].0.clone();
            harness.memory.damage(&key, damage.clone());
            let found = problems(&mut harness);
            assert!(!found.is_empty(), "{key} with {damage:?}");
            for problem in &found {
                assert!(problem.starts_with('I') && problem.contains(": "), "{problem}");
                assert!(!problem.contains("abcdefg") && !problem.contains("question"), "content: {problem}");
            }
        }
    }
}

/// The log row at position `seq` as releases up to schema 101 stored it, from its line in the archive.
fn as_json(harness: &mut Harness, seq: u64) -> Vec<u8> {
    let archive = archive(&mut harness.host, &harness.session);
    let text = archive.lines().find(|text| text.contains(&format!(",\"seq\":{seq},"))).unwrap();
    let line: Value = serde_json::from_str(text).unwrap();
    let (_, body) = text.split_once(",\"body\":").unwrap();
    let (body, _) = body.split_once(",\"prev\":").unwrap();
    let fields = ["v", "seq", "index", "id", "kind", "timestamp", "prev", "chain"].into_iter();
    let named = ["v", "seq", "n", "id", "kind", "at", "prev", "chain"].iter();
    let fields: Vec<String> =
        fields.zip(named).map(|(of, name)| format!("\"{name}\":{}", line[of])).collect();
    format!("{{{},\"body\":{body},\"hash\":{}}}", fields.join(","), line["hash"]).into_bytes()
}

#[test]
fn d21_each_invariant_is_named_with_its_row() {
    type Break = fn(&mut Harness);
    fn find(harness: &Harness, table: &str, nth: usize) -> Key {
        keys_of(harness, table)[nth].clone()
    }
    let cases: [(&str, &str, Break); 9] = [
        ("I1", "log row 3 is missing", |harness| harness.memory.damage(&find(harness, "log", 3), None)),
        ("I1", "log row 4 is not what was written", |harness| {
            harness.memory.damage(&find(harness, "log", 4), Some(value(harness, &find(harness, "log", 5))));
        }),
        // Earlier releases did not write which key a row has.
        ("I1", "log row 4 does not follow", |harness| {
            let row = as_json(harness, 5);
            harness.memory.damage(&find(harness, "log", 4), Some(row));
        }),
        ("I1", "is behind the end", |harness| {
            let last = keys_of(harness, "log").last().unwrap().clone();
            let beyond = match last.0.as_slice() {
                [table, sid, _] => Key(vec![
                    table.clone(),
                    sid.clone(),
                    context_compactor_core::keys::batch::KeyPart::Number(999),
                ]),
                _ => panic!("a key of the log"),
            };
            harness.memory.damage(&beyond, Some(value(harness, &last)));
        }),
        ("I2", "is missing", |harness| harness.memory.damage(&find(harness, "blobs", 1), None)),
        ("I3", "view 1 is missing", |harness| harness.memory.damage(&find(harness, "views", 0), None)),
        ("I3", "view 1 is not what was written", |harness| {
            harness
                .memory
                .damage(&find(harness, "views", 0), Some(value(harness, &find(harness, "views", 1))));
        }),
        ("I5", "the session's row is missing", |harness| {
            harness.memory.damage(&find(harness, "sessions", 0), None)
        }),
        ("I7", "the session's name", |harness| harness.memory.damage(&find(harness, "meta", 0), None)),
    ];
    for (invariant, what, broken) in cases {
        let mut harness = rich();
        broken(&mut harness);
        let found = problems(&mut harness);
        let is_it = |problem: &String| problem.starts_with(invariant) && problem.contains(what);
        assert!(found.iter().any(is_it), "{invariant} {what}: {found:?}");
    }
}

#[test]
fn it_reads_pages_tells_how_far_it_is_and_lets_others_run() {
    let mut harness = Harness::new(json!({}));
    for nth in 0..6 {
        harness.append(&[user(&long(&format!("part {nth}"), 600_000))]);
    }
    let largest: Rc<RefCell<usize>> = Rc::default();
    let (seen, memory) = (Rc::clone(&largest), Rc::clone(&harness.memory));
    harness.host.meanwhile = Box::new(move |effect| {
        if let Effect::Scan(scan) = effect {
            let page = context_compactor_store_tests::Store::scan(&*memory, scan).unwrap();
            let bytes = page.iter().map(|(_, value)| value.len()).sum();
            seen.replace_with(|most| (*most).max(bytes));
        }
    });
    assert_eq!(problems(&mut harness), [""; 0]);
    assert!(*largest.borrow() <= 4 << 20, "{}", largest.borrow());
    let told: Vec<_> = harness.host.seen.progress.iter().filter(|told| told.stage == Stage::Verify).collect();
    assert!(told.len() >= 3 && told.windows(2).all(|pair| pair[0].done <= pair[1].done), "{told:?}");
    assert!(told.iter().map(|told| (told.done, told.total)).eq([(2, 6), (4, 6), (6, 6)]), "{told:?}");
    assert!(harness.host.seen.slept.len() >= 3, "a timer between the pages");
}

#[test]
fn it_can_be_stopped_and_goes_on_beside_appends() {
    let mut harness = rich();
    harness.host.fault(
        2,
        |effect| matches!(effect, Effect::Pause(_)),
        context_compactor_store_tests::How::Fail(Code::Aborted),
    );
    assert_eq!(harness.host.run(harness.session.verify()).unwrap_err().code, Code::Aborted);
    // Another tab appends and compacts while this one checks: what it writes is no problem.
    let other = RefCell::new(Harness::over(
        Rc::clone(&harness.memory),
        "b",
        json!({ "compactAt": { "tokens": 400 } }),
    ));
    harness.host.meanwhile = Box::new(move |effect| {
        if matches!(effect, Effect::Scan(_)) {
            let mut other = other.borrow_mut();
            other.append(&talk(1, 30));
            other.compact();
        }
    });
    assert_eq!(problems(&mut harness), [""; 0]);
}

#[test]
fn d9_a_session_whose_row_and_name_are_lost_is_broken_not_deleted() {
    let mut harness = rich();
    for (key, _) in harness.memory.rows() {
        let key_text = key.to_string();
        if key_text.starts_with("sessions/") || key_text.starts_with("meta/session") {
            harness.memory.damage(&key, None);
        }
    }
    let found = problems(&mut harness).join("\n");
    for missing in ["the session's row is missing", "the session's name is missing"] {
        assert!(found.contains(missing), "{found}");
    }
}

#[test]
fn a_session_that_is_deleted_meanwhile_is_closed_not_broken() {
    let mut harness = rich();
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
    other.host.run(other.session.delete()).unwrap();
    assert_eq!(harness.host.run(harness.session.verify()).unwrap_err().code, Code::Closed);
}

#[test]
fn of_very_many_problems_the_first_thousand_are_named_and_the_rest_counted() {
    let mut harness = Harness::new(json!({}));
    harness.append(&(0..1_100).map(|nth| user(&nth.to_string())).collect::<Vec<_>>());
    for key in keys_of(&harness, "log") {
        harness.memory.damage(&key, Some(vec![]));
    }
    let found = problems(&mut harness);
    assert_eq!(found.len(), 1_001);
    assert!(found[1_000].starts_with("and ") && found[1_000].ends_with(" more"), "{}", found[1_000]);
}
