//! Rewinding: an earlier context is the current one again, and the log keeps what was said since.

use crate::support::*;
use context_compactor_core::context::{Fate, Item};
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::session::audit::look;
use context_compactor_core::wire::Format;
use context_compactor_core::{Code, Error};
use context_compactor_store_tests::How;
use context_compactor_store_tests::conversation::{Body, assistant, calls, results, user};
use serde_json::{Value, json};
use std::rc::Rc;

fn rewind(harness: &mut Harness, index: usize) -> Result<(), Error> {
    harness.host.run(harness.session.rewind(index))
}

fn snapshot(harness: &mut Harness) -> String {
    harness.host.run(harness.session.snapshot(SnapshotPurpose::Rollback)).unwrap()
}

fn context(harness: &Harness) -> Vec<Item> {
    look(&harness.session).unwrap().context.items().to_vec()
}

fn fates(harness: &Harness) -> Vec<Fate> {
    let entries = harness.session.explain().unwrap();
    assert!(entries.iter().map(|entry| entry.index).eq(0..entries.len()), "every message once");
    entries.into_iter().map(|entry| entry.fate).collect()
}

fn sync(harness: &mut Harness, history: &[Body]) -> (usize, Option<usize>) {
    match harness.host.run(harness.session.sync(0, history.to_vec())) {
        Ok(synced) => (synced.appended, synced.branched_at),
        Err(error) if error.code == Code::Diverged => (0, error.index),
        Err(error) => panic!("{error}"),
    }
}

/// Options under which results are offloaded on the way.
fn busy() -> Value {
    json!({ "presetOptions": { "offloadThreshold": 400, "compactCooldownSteps": 1_000 } })
}

#[test]
fn a_rewind_makes_the_context_what_it_was_before_the_message_at_any_point() {
    for format in FORMATS {
        let mut harness = Harness::new(busy());
        // What the context was just before each turn.
        let mut before = Vec::new();
        for nth in 0..8 {
            // Rows of the log that are no messages.
            for _ in 0..nth % 4 {
                snapshot(&mut harness);
            }
            before.push((harness.stored().messages.len(), context(&harness)));
            harness.append(&turn(format, nth, 100));
            harness.prepare();
            if nth % 3 == 2 {
                assert!(harness.compact().success);
            }
        }
        let whole = context(&harness);
        assert!(fates(&harness).contains(&Fate::Summarised) && harness.stored().generation > 3);
        let all = harness.stored().messages.len();
        // Backwards and forwards: also to points that an earlier rewind had left behind.
        for (index, then) in before.iter().rev().chain(&before) {
            rewind(&mut harness, *index).unwrap();
            assert_eq!(&context(&harness), then, "rewound to {index}");
            let fates = fates(&harness);
            assert_eq!(fates.len(), all, "nothing is lost");
            assert!(fates[*index..].iter().all(|fate| *fate == Fate::Dropped));
            assert!(!fates[..*index].contains(&Fate::Dropped));
            let reopened = Harness::over(Rc::clone(&harness.memory), "b", busy());
            assert_eq!(&context(&reopened), then, "read back");
            assert_eq!(reopened.stored().messages.len(), all);
        }
        rewind(&mut harness, all).unwrap();
        assert_eq!(context(&harness), before[7].1, "the end of the log is where it is");
        assert_ne!(whole, before[7].1);
    }
}

#[test]
fn what_follows_a_rewind_goes_on_from_there() {
    let mut harness = Harness::new(json!({ "onDiverged": "throw" }));
    let first = [user("one"), assistant("1"), user("two"), assistant("2"), user("three")];
    harness.append(&first);
    rewind(&mut harness, 2).unwrap();
    let edited = [user("one"), assistant("1"), user("two, edited"), assistant("2b")];
    assert_eq!(sync(&mut harness, &edited), (2, None));
    assert_eq!(sync(&mut harness, &edited), (0, None), "and again");
    assert_eq!(sync(&mut harness, &first), (0, Some(2)), "the old branch is not the history any more");
    assert_eq!(Value::from(harness.sent()), Value::from_iter(edited.iter().map(json_of)));
    use Fate::{Dropped, Verbatim};
    let expected = [Verbatim, Verbatim, Dropped, Dropped, Dropped, Verbatim, Verbatim];
    assert_eq!(fates(&harness), expected);
    assert!(harness.session.explain().unwrap()[3].reason.as_deref().unwrap().contains("rewind"));
    // Back on the branch that was left.
    rewind(&mut harness, 4).unwrap();
    assert_eq!(sync(&mut harness, &first[..4]), (0, None));
    rewind(&mut harness, 0).unwrap();
    assert_eq!(sync(&mut harness, &first), (5, None));
    assert_eq!(fates(&harness).len(), 12);
    // Compacting a context with gaps in its indices.
    rewind(&mut harness, 2).unwrap();
    harness.append(&talk(6, 60));
    assert!(harness.compact().success);
    fates(&harness);
    let mut reopened = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
    assert_eq!(reopened.sent(), harness.sent());
    reopened.stored();
}

#[test]
fn rewinds_and_restores_go_on_from_one_another() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(3, 10));
    let three = (snapshot(&mut harness), context(&harness));
    rewind(&mut harness, 2).unwrap();
    harness.append(&[user("another question"), assistant("another answer")]);
    let other = (snapshot(&mut harness), context(&harness));
    for (id, then) in [&three, &other, &three] {
        harness.host.run(harness.session.restore(id.clone())).unwrap();
        assert_eq!(&context(&harness), then);
        harness.stored();
    }
    // The end of the first branch, and then a point before the rewind.
    assert_eq!(sync(&mut harness, &talk(3, 10)), (0, None));
    rewind(&mut harness, 4).unwrap();
    assert_eq!(sync(&mut harness, &talk(2, 10)), (0, None));
    assert_eq!(fates(&harness)[4..], [Fate::Dropped; 4]);
    let reasons: Vec<_> =
        harness.session.explain().unwrap().into_iter().filter_map(|entry| entry.reason).collect();
    assert!(reasons.iter().all(|reason| reason.contains("rewind")), "{reasons:?}");
    let reopened = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
    assert_eq!(context(&reopened), context(&harness));
}

fn json_of(body: &Body) -> Value {
    serde_json::from_str(body).unwrap()
}

#[test]
fn an_index_inside_an_exchange_is_refused_and_names_those_that_work() {
    for format in FORMATS {
        let mut harness = Harness::new(json!({}));
        let mut bodies = vec![user("look")];
        bodies.extend(calls(format, &[("a", "x"), ("b", "y")]));
        bodies.extend(results(format, &[("a", "ex"), ("b", "why")]));
        bodies.push(assistant("done"));
        let end = bodies.len() - 1;
        harness.append(&bodies);
        let before = harness.memory.rows();
        for index in 2..end {
            let error = rewind(&mut harness, index).unwrap_err();
            assert_eq!((error.code, error.index), (Code::InvalidOption, Some(index)));
            assert!(error.message.contains(&format!("rewind to 1 or {end}")), "{error}");
        }
        let beyond = rewind(&mut harness, end + 2).unwrap_err();
        assert_eq!((beyond.code, beyond.field.as_deref()), (Code::InvalidOption, Some("index")));
        assert_eq!(harness.memory.rows(), before, "nothing was written");
        rewind(&mut harness, end).unwrap();
        rewind(&mut harness, 1).unwrap();
        assert_valid(format, &harness.sent());
        // A call of the new branch is not answered by a result of the old one.
        harness.append(&calls(format, &[("a", "x")]));
        let index = harness.stored().messages.len();
        harness.append(&results(format, &[("a", "new")]));
        assert!(rewind(&mut harness, index).is_err());
    }
}

#[test]
fn a_rewind_is_one_commit_whatever_happens() {
    use How::{CrashAfter, CrashBefore, Fail, Lost};
    for how in [CrashBefore, CrashAfter, Lost, Fail(Code::QuotaExceeded)] {
        let mut harness = Harness::new(json!({}));
        harness.append(&talk(4, 10));
        harness.host.fault(1, is_commit, how);
        let done = harness.host.try_run(harness.session.rewind(2));
        let rewound = matches!(how, CrashAfter | Lost);
        assert_eq!(matches!(done, Some(Ok(()))), how == Lost);
        let reopened = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
        assert_eq!(context(&reopened).len(), if rewound { 2 } else { 8 }, "{how:?}");
        assert_eq!(reopened.stored().messages.len(), 8);
    }
}

#[test]
fn what_another_tab_appends_meanwhile_is_left_behind_too() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(3, 10));
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
    let mut done = false;
    harness.host.meanwhile = Box::new(move |effect| {
        if is_commit(effect) && !std::mem::replace(&mut done, true) {
            other.append(&[user("too late")]);
        }
    });
    rewind(&mut harness, 4).unwrap();
    assert_eq!(context(&harness).len(), 4);
    assert_eq!(fates(&harness)[4..], [Fate::Dropped; 3]);
    harness.stored();
}

#[test]
fn a_tab_that_another_one_rewound_takes_that_over_with_its_next_write() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(3, 10));
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", json!({}));
    rewind(&mut harness, 4).unwrap();
    other.append(&[user("after")]);
    assert_eq!(context(&other).len(), 5);
    assert_eq!(other.session.branch().unwrap().behind, [(4, 6)]);
    assert_eq!(sync(&mut harness, &talk(2, 10)).0, 0);
    let error = harness.host.run(harness.session.sync(4, vec![user("mine")]));
    assert!(error.is_ok());
    harness.stored();
}

#[test]
fn what_was_left_behind_is_found_by_the_app_and_not_by_the_model() {
    let mut harness = Harness::new(json!({}));
    harness.append(&[user("the secret is swordfish"), assistant("noted")]);
    rewind(&mut harness, 0).unwrap();
    harness.append(&[user("hello")]);
    let hits = harness.host.run(harness.session.search("swordfish".into(), 5)).unwrap();
    assert_eq!(hits.len(), 1, "nothing is deleted");
    let call = json!({ "id": "c", "type": "function", "function": {
        "name": "recall_search", "arguments": "{\"query\":\"swordfish\"}" } });
    let answer = harness.host.run(harness.session.answer(call.to_string(), Format::OpenaiChat)).unwrap();
    assert!(!answer.contains("the secret"), "{answer}");
}
