//! What others or the platform do to a session's rows while a handle has it open: it is told or refused, and nothing that was
//! acknowledged is written over (D15, D19, D20).

use crate::support::browser::*;
use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::keys::batch::{Batch, Durability};
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::session::transcript::Export;
use context_compactor_core::step::{Effect, LossKind};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, user};
use context_compactor_store_tests::{MemoryStore, Store};
use serde_json::json;
use std::rc::Rc;

/// The platform removes all rows.
fn clear(browser: &Browser) {
    browser.memory.replace(&MemoryStore::default());
}

fn try_append(harness: &mut Harness, bodies: &[Body]) -> Result<(), Code> {
    harness.host.run(harness.session.append(bodies.to_vec())).map(|_| ()).map_err(|error| error.code)
}

fn code_of_prepare(harness: &mut Harness) -> Option<Code> {
    harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).err().map(|error| error.code)
}

fn texts(bodies: &[Body]) -> Vec<String> {
    bodies.iter().map(|body| body.to_string()).collect()
}

#[test]
fn d19_an_empty_handle_does_not_begin_anew_what_another_one_began_and_the_platform_took() {
    let mut browser = Browser::new();
    let (mut empty, mut other) = (browser.open(), browser.open());
    other.append(&[user("one"), assistant("two")]);
    clear(&browser);
    let marks = browser.marks.borrow().clone();
    for _ in 0..2 {
        assert_eq!(try_append(&mut empty, &[user("anew")]), Err(Code::DataLoss));
        let goal = json!({ "id": "g", "description": "Ship it" }).to_string();
        let set = empty.session.set_goal(goal.clone());
        assert_eq!(empty.host.run(set).err().unwrap().code, Code::DataLoss);
        let taken = empty.session.snapshot(SnapshotPurpose::Recovery);
        assert_eq!(empty.host.run(taken).err().unwrap().code, Code::DataLoss);
    }
    assert!(browser.memory.rows().is_empty(), "nothing was written");
    assert_eq!(*browser.marks.borrow(), marks, "the mark is what it was");
    assert_eq!(browser.open_with(json!({})).err().unwrap().code, Code::DataLoss);
}

#[test]
fn d19_an_empty_handle_of_an_app_that_accepts_losses_tells_this_one_and_goes_on() {
    let mut browser = Browser::new();
    let mut empty = browser.open_with(json!({ "acceptDataLoss": true })).unwrap();
    browser.open().append(&[user("one"), assistant("two")]);
    clear(&browser);
    empty.append(&[user("anew")]);
    assert_eq!(kinds(&empty), [(LossKind::Session, Some(2))]);
    empty.append(&[assistant("on it goes")]);
    assert_eq!(losses(&empty).len(), 1, "it is told once");
    let mut again = browser.open();
    assert!(losses(&again).is_empty(), "the new session is the one that is known");
    assert_eq!(history(&mut again), texts(&[user("anew"), assistant("on it goes")]));
}

#[test]
fn d19_a_loss_that_opening_told_is_not_told_again_by_the_first_append() {
    let mut browser = Browser::new();
    browser.open().append(&[user("one")]);
    clear(&browser);
    let mut harness = browser.open_with(json!({ "acceptDataLoss": true })).unwrap();
    assert_eq!(kinds(&harness), [(LossKind::Session, Some(1))]);
    harness.append(&[user("anew")]);
    assert_eq!(losses(&harness).len(), 1);
}

#[test]
fn d19_a_child_is_not_begun_anew_that_another_one_began_and_the_platform_took() {
    let mut browser = Browser::new();
    let mut host = browser.host();
    let opening = Session::open(settings(options()), Some("p".into()), 10_000);
    let (parent, _) = host.run(opening).unwrap();
    host.run(parent.append(vec![user("one")])).unwrap();
    let before = browser.copy();
    browser.open().append(&[user("two")]);
    let known = browser.marks.replace(before.marks.borrow().clone());
    browser.memory.replace(&before.memory);
    // All of that happens between the two looks at the mark: when it is opened, and before it is begun.
    let (mut looks, marks) = (0, Rc::clone(&browser.marks));
    let mut host = browser.host();
    host.meanwhile = Box::new(move |effect| {
        looks += usize::from(matches!(effect, Effect::ReadWatermark(_)));
        if looks == 2 {
            marks.borrow_mut().clone_from(&known);
        }
    });
    let mut given = options();
    merge(&mut given, &json!({ "parent": "p" }));
    let opened = host.run(Session::open(settings(given), Some("s".into()), 10_000));
    assert_eq!(opened.err().map(|error| error.code), Some(Code::DataLoss));
    assert_eq!(browser.memory.rows(), before.memory.rows(), "nothing was written");
}

#[test]
fn d19_a_session_that_must_exist_is_not_begun() {
    let mut browser = Browser::new();
    let exists = json!({ "mustExist": true });
    assert_eq!(browser.open_with(exists.clone()).err().map(|error| error.code), Some(Code::DataLoss));
    browser.open().append(&[user("one")]);
    assert!(losses(&browser.open_with(exists).unwrap()).is_empty());
}

#[test]
fn d19_an_empty_handle_meets_what_is_there_as_before() {
    let mut browser = Browser::new();
    // Another one began it, and nothing is lost.
    let (mut empty, mut other) = (browser.open(), browser.open());
    other.append(&[user("one")]);
    empty.append(&[assistant("two")]);
    assert_eq!(history(&mut empty), texts(&[user("one"), assistant("two")]));
    // Deleted by the app: a new one begins.
    let mut third = Browser::new();
    let (mut empty, mut other) = (third.open(), third.open());
    other.append(&[user("one")]);
    other.host.run(other.session.delete()).unwrap();
    empty.append(&[user("anew")]);
    assert!(losses(&empty).is_empty());
    // Its name alone is gone: opening mends that, and no other is begun in its place.
    let mut fourth = Browser::new();
    let mut empty = fourth.open_with(json!({ "acceptDataLoss": true })).unwrap();
    fourth.open().append(&[user("one")]);
    fourth.keys("meta").iter().for_each(|key| fourth.remove(key));
    assert_eq!(try_append(&mut empty, &[user("two")]), Err(Code::DataLoss));
    assert_eq!(history(&mut fourth.open()), texts(&[user("one")]));
    // What the platform says meanwhile is told, and nothing of this session is known to be lost.
    let mut fifth = Browser::new();
    let mut empty = fifth.open();
    empty.host.lost = Some("the database was cleared".into());
    empty.append(&[user("one")]);
    assert_eq!(kinds(&empty), [(LossKind::Platform, None)]);
}

#[test]
fn d20_a_handle_whose_rows_are_gone_says_data_loss_and_one_whose_session_was_deleted_says_closed() {
    let mut browser = Browser::new();
    let mut harness = browser.rich();
    clear(&browser);
    let marks = browser.marks.borrow().clone();
    for _ in 0..2 {
        assert_eq!(try_append(&mut harness, &[user("on")]), Err(Code::DataLoss));
        assert_eq!(code_of_prepare(&mut harness), Some(Code::DataLoss));
    }
    assert!(browser.memory.rows().is_empty(), "nothing was written");
    assert_eq!(*browser.marks.borrow(), marks, "the mark is what it was");
    // Deleted by another handle, in one batch or more.
    for most in [10_000, 5] {
        let mut browser = Browser::new();
        let mut harness = browser.open();
        harness.append(&talk(4, 20));
        let mut host = browser.host();
        let opening = Session::open(settings(options()), Some("s".into()), most);
        let (other, _) = host.run(opening).unwrap();
        host.run(other.delete()).unwrap();
        assert_eq!(try_append(&mut harness, &[user("on")]), Err(Code::Closed));
        assert_eq!(code_of_prepare(&mut harness), Some(Code::Closed));
    }
}

#[test]
fn d20_whoever_looks_at_rows_that_are_gone_is_told_so_and_not_that_there_is_nothing() {
    let looks = |harness: &mut Harness| {
        let Harness { host, session, .. } = harness;
        let search = "{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"recall_search\",\"arguments\":\"{\\\"query\\\":\\\"one\\\"}\"}}";
        [
            ("history", host.run(session.history(None)).err()),
            ("verify", host.run(session.verify()).err()),
            ("search", host.run(session.search("one".into(), 3)).err()),
            ("recall", host.run(session.answer(search.into(), Format::OpenaiChat)).err()),
            ("snapshots", host.run(session.snapshots()).err()),
            ("markdown", host.run(session.markdown(None)).err()),
            ("checkpoint records", host.run(session.checkpoint_records()).err()),
            ("archive", host.run(session.export(Export::Begin)).err()),
        ]
        .map(|(look, error)| (look, error.map(|error| error.code)))
    };
    let mut browser = Browser::new();
    let mut harness = browser.rich();
    assert!(looks(&mut harness).iter().all(|(_, error)| error.is_none()), "{:?}", looks(&mut harness));
    clear(&browser);
    for (look, code) in looks(&mut harness) {
        assert_eq!(code, Some(Code::DataLoss), "{look}");
    }
    assert!(losses(&harness).is_empty(), "the error says it, and no gap is told besides");
    let mut browser = Browser::new();
    let mut harness = browser.rich();
    let other = browser.open();
    browser.host().run(other.session.delete()).unwrap();
    for (look, code) in looks(&mut harness) {
        assert_eq!(code, Some(Code::Closed), "{look}");
    }
}

#[test]
fn d20_a_handle_mends_the_row_of_its_session_that_is_gone_under_it() {
    let mut browser = Browser::new();
    let mut harness = browser.rich();
    let before = history(&mut harness);
    browser.keys("sessions").iter().for_each(|key| browser.remove(key));
    harness.append(&[user("on")]);
    assert_eq!(kinds(&harness), [(LossKind::Repaired, None)]);
    let now = history(&mut browser.open());
    assert_eq!(now[..before.len()], before);
    assert_eq!(now.len(), before.len() + 1);
    assert_eq!(problems(&mut harness), [""; 0]);
}

#[test]
fn d20_a_store_that_went_back_under_a_handle_is_told_once_and_goes_on_from_there() {
    // One that went on to the same version is known by what it says alone, which a prepare reads.
    for (goes_on, looks_first) in [(0, false), (0, true), (1, true), (4, true), (9, true)] {
        let mut browser = Browser::new();
        let mut harness = browser.rich();
        let earlier = browser.copy();
        let before = history(&mut harness);
        harness.append(&talk(2, 20));
        browser.memory.replace(&earlier.memory);
        let mut back = Browser { marks: Rc::default(), memory: Rc::clone(&browser.memory), tabs: 200 };
        let more: Vec<Body> = talk(goes_on, 30).into_iter().take(goes_on).collect();
        if !more.is_empty() {
            back.open().append(&more);
        }
        if looks_first {
            harness.host.run(harness.session.catch_up()).unwrap();
            assert!(
                !losses(&browser.copy().open()).is_empty(),
                "{goes_on}: who opens it until then is told, too"
            );
        }
        harness.append(&[user("on")]);
        let lost = 4_u64.checked_sub(goes_on as u64).filter(|lost| *lost > 0);
        assert_eq!(kinds(&harness), [(LossKind::Records, lost)], "{goes_on}");
        let expected = [before, texts(&more), texts(&[user("on")])].concat();
        assert_eq!(history(&mut harness), expected, "{goes_on}");
        assert_eq!(problems(&mut harness), [""; 0], "{goes_on}");
        assert_eq!(harness.sent().last(), browser.open().sent().last(), "{goes_on}");
        assert!(losses(&browser.open()).is_empty(), "{goes_on}: it was told, and the log moved on");
    }
}

#[test]
fn d15_a_row_that_is_behind_its_log_under_a_handle_that_knows_of_no_other_is_made_again() {
    let mut browser = Browser::new();
    let mut harness = browser.open();
    harness.append(&[user("one")]);
    let earlier = browser.copy();
    browser.open().append(&[assistant("two")]);
    // The platform has the new row of the log, and of the session's the one of before.
    let key = browser.keys("log").pop().unwrap();
    let row = browser.memory.rows().into_iter().find(|(known, _)| *known == key).unwrap();
    browser.memory.replace(&earlier.memory);
    let (expect, deletes) = Default::default();
    let durability = Durability::Strict;
    browser.memory.commit(&Batch { expect, puts: vec![row], deletes, durability }).unwrap();
    harness.append(&[user("three")]);
    assert_eq!(kinds(&harness), [(LossKind::Repaired, None)]);
    assert_eq!(history(&mut browser.open()), texts(&[user("one"), assistant("two"), user("three")]));
    assert_eq!(problems(&mut harness), [""; 0]);
}

#[test]
fn d15_a_handle_of_before_a_mended_row_writes_over_nothing_though_its_version_is_given_again() {
    for versions in 1..5 {
        for damage in [Browser::remove, Browser::flip] {
            let mut browser = Browser::new();
            let mut stale = browser.open();
            let mut expected = Vec::new();
            for nth in 0..versions {
                let said = [user(&format!("said {nth}"))];
                stale.append(&said);
                expected.extend(texts(&said));
            }
            browser.keys("sessions").iter().for_each(|key| damage(&browser, key));
            let mut other = browser.open();
            // Mended, the row has version 1 again: so many appends later it has the one that the first handle holds.
            for nth in 1..versions {
                let said = [assistant(&format!("answer {nth}"))];
                other.append(&said);
                expected.extend(texts(&said));
            }
            assert_eq!(stale.sent().len(), expected.len(), "{versions}: a prompt has what was acknowledged");
            let said = [user("on")];
            let mut third = browser.open();
            third.append(&said);
            expected.extend(texts(&said));
            stale.append(&[assistant("too")]);
            expected.extend(texts(&[assistant("too")]));
            assert_eq!(history(&mut browser.open()), expected, "{versions}");
            assert_eq!(problems(&mut third), [""; 0], "{versions}");
        }
    }
}

#[test]
fn d15_an_append_or_a_goal_of_a_handle_with_a_version_of_before_takes_over_what_was_appended_since() {
    for sets_goal in [false, true] {
        let mut browser = Browser::new();
        let mut stale = browser.open();
        stale.append(&[user("one")]);
        stale.append(&[assistant("two")]);
        browser.keys("sessions").iter().for_each(|key| browser.flip(key));
        let mut other = browser.open();
        other.append(&[user("three")]);
        if sets_goal {
            let goal = json!({ "id": "g", "description": "Ship it" }).to_string();
            stale.host.run(stale.session.set_goal(goal.clone())).unwrap();
        } else {
            stale.append(&[assistant("four")]);
        }
        let all = texts(&[user("one"), assistant("two"), user("three"), assistant("four")]);
        let count = if sets_goal { 3 } else { 4 };
        for harness in [&mut stale, &mut other, &mut browser.open()] {
            harness.sent();
            assert_eq!(history(harness), all[..count], "{sets_goal}");
            assert_eq!(problems(harness), [""; 0], "{sets_goal}");
        }
    }
}

#[test]
fn d15_a_change_of_the_row_alone_after_it_was_mended_is_not_written_over() {
    let goal = |nth: usize| json!({ "id": format!("g{nth}"), "description": "Ship it" }).to_string();
    for act in ["append", "pin", "goal", "snapshot", "compact", "prepare"] {
        for (versions, changes) in (1..4).flat_map(|versions| (1..4).map(move |changes| (versions, changes)))
        {
            for damage in [Browser::remove, Browser::flip] {
                let what = format!("{act} at version {versions}, {changes} changes");
                let mut browser = Browser::new();
                let mut stale = browser.open();
                let mut expected = Vec::new();
                for nth in 0..versions {
                    let said = [user(&format!("said {nth}")), assistant("yes")];
                    stale.append(&said);
                    expected.extend(texts(&said));
                }
                browser.keys("sessions").iter().for_each(|key| damage(&browser, key));
                let mut other = browser.open();
                for nth in 1..=changes {
                    other.host.run(other.session.set_goal(goal(nth))).unwrap();
                }
                let Harness { host, session, .. } = &mut stale;
                match act {
                    "append" => {
                        host.run(session.append(vec![user("on")])).unwrap();
                        expected.extend(texts(&[user("on")]));
                    }
                    "pin" => host.run(session.pin(1)).unwrap(),
                    "goal" => host.run(session.set_goal(goal(changes + 1))).unwrap(),
                    "snapshot" => drop(host.run(session.snapshot(SnapshotPurpose::Rollback)).unwrap()),
                    // Who learns of it by a change of the context does not make one.
                    "compact" => drop(host.run(session.compact(None))),
                    _ => drop(host.run(session.prepare(Trigger::Auto, Vec::new())).unwrap()),
                }
                let last = format!("g{}", changes + usize::from(act == "goal"));
                for harness in [&mut stale, &mut browser.open()] {
                    assert_eq!(harness.session.goal().unwrap().unwrap().id, last, "{what}");
                    assert_eq!(history(harness), expected, "{what}");
                    assert_eq!(problems(harness), [""; 0], "{what}");
                }
            }
        }
    }
}
