//! What is mended when a session is opened: R1, R2, R3 and R5, each killed at every step.

use crate::support::browser::*;
use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::Fate;
use context_compactor_core::keys::batch::KeyPart;
use context_compactor_core::session::Session;
use context_compactor_core::session::audit::view_text;
use context_compactor_core::step::{Effect, LossKind, Notice};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::How;
use context_compactor_store_tests::conversation::{assistant, user};
use serde_json::json;
use std::cell::Cell;
use std::rc::Rc;

// ---- R1 -------------------------------------------------------------------------------------------------------------

#[test]
fn r1_a_session_that_the_watermark_knows_and_the_store_does_not_is_not_begun_anew_unasked() {
    let mut browser = Browser::new();
    let rows = {
        let mut harness = browser.rich();
        history(&mut harness);
        browser.keys("log").len() as u64
    };
    browser.memory = Rc::default();
    for _ in 0..2 {
        let error = browser.open_with(json!({})).err().unwrap();
        assert_eq!(error.code, Code::DataLoss);
        assert!(error.message.contains("acceptDataLoss"), "{error}");
        assert!(browser.memory.rows().is_empty(), "nothing was written");
    }
    let mut harness = browser.open_with(json!({ "acceptDataLoss": true })).unwrap();
    assert_eq!(kinds(&harness), [(LossKind::Session, Some(rows))]);
    harness.append(&[user("anew")]);
    assert!(losses(&browser.open()).is_empty(), "the new session is the one that is known");
}

#[test]
fn r1_a_session_whose_rows_are_all_gone_but_its_name_is_lost_too() {
    let mut browser = Browser::new();
    browser.rich();
    for table in ["sessions", "log", "views", "blobs"] {
        browser.keys(table).iter().for_each(|key| browser.remove(key));
    }
    assert_eq!(browser.open_with(json!({})).err().unwrap().code, Code::DataLoss);
    assert_eq!(
        browser.open_with(json!({ "advanced": { "watermark": null } })).err().unwrap().code,
        Code::DataLoss
    );
    let mut harness = browser.open_with(json!({ "acceptDataLoss": true })).unwrap();
    assert!(!losses(&harness).is_empty());
    harness.append(&[user("anew")]);
    assert_eq!(problems(&mut harness), [""; 0]);
}

#[test]
fn r1_what_the_platform_says_is_told_and_a_named_session_needs_the_apps_word() {
    let mut browser = Browser::new();
    let open = |browser: &mut Browser, id: Option<String>, accept: bool| {
        let mut host = browser.host();
        host.lost = Some("the database was damaged and made anew".into());
        let mut given = options();
        given["acceptDataLoss"] = accept.into();
        let opened = host.run(Session::open(settings(given), id, 10_000));
        opened.map(|(session, _)| Harness { memory: Rc::clone(&browser.memory), host, session })
    };
    assert_eq!(open(&mut browser, Some("s".into()), false).err().unwrap().code, Code::DataLoss);
    let harness = open(&mut browser, None, false).unwrap();
    assert_eq!(kinds(&harness), [(LossKind::Platform, None)], "a new session cannot have been lost");
    let harness = open(&mut browser, Some("s".into()), true).unwrap();
    assert_eq!(losses(&harness)[0].reason, "the database was damaged and made anew");
}

#[test]
fn r1_a_session_that_was_deleted_is_no_loss() {
    for most in [10_000, 5] {
        let mut browser = Browser::new();
        let mut harness = browser.rich();
        let mut host = browser.host();
        let (session, _) = host.run(Session::open(settings(options()), Some("s".into()), most)).unwrap();
        host.run(session.delete()).unwrap();
        assert!(browser.memory.rows().is_empty());
        assert!(losses(&browser.open()).is_empty());
        assert_eq!(
            harness.host.run(harness.session.append(vec![user("late")])).unwrap_err().code,
            Code::Closed
        );
    }
}

#[test]
fn r1_a_name_that_is_missing_or_damaged_is_written_again() {
    for damage in [Browser::remove, Browser::flip] {
        let mut browser = Browser::new();
        let before = browser.rich().sent();
        damage(&browser, &browser.keys("meta")[0]);
        survives_every_kill(&browser, |harness| assert_eq!(harness.sent(), before));
        let mut harness = browser.open();
        assert_eq!(kinds(&harness), [(LossKind::Repaired, None)]);
        assert_eq!(problems(&mut harness), [""; 0]);
        // It can be deleted as any other, in as many batches as it takes.
        let mut host = browser.host();
        let (session, _) = host.run(Session::open(settings(options()), Some("s".into()), 5)).unwrap();
        host.run(session.delete()).unwrap();
        assert!(browser.memory.rows().is_empty());
        browser.open().append(&[user("anew")]);
    }
}

// ---- R2 -------------------------------------------------------------------------------------------------------------

#[test]
fn r2_a_session_row_that_is_missing_or_damaged_is_made_again_of_log_and_views() {
    for damage in [Browser::remove, Browser::flip] {
        let mut browser = Browser::new();
        let (context, log) = {
            let mut harness = browser.rich();
            (harness.context(), history(&mut harness))
        };
        damage(&browser, &browser.keys("sessions")[0]);
        survives_every_kill(&browser, |harness| {
            assert_eq!(harness.context(), context, "the same context");
            assert_eq!(history(harness), log);
        });
        let mut harness = browser.open();
        assert_eq!(kinds(&harness), [(LossKind::Repaired, None)]);
        assert_eq!(problems(&mut harness), [""; 0]);
        assert_eq!(harness.context(), context);
    }
}

#[test]
fn r2_a_session_row_of_an_earlier_commit_is_made_that_of_the_log() {
    let mut browser = Browser::new();
    let mut harness = browser.rich();
    let key = browser.keys("sessions")[0].clone();
    let earlier = browser.copy();
    harness.append(&turn(Format::OpenaiChat, 9, 150));
    harness.compact();
    let (sent, log) = (harness.sent(), history(&mut harness));
    browser.memory.put_back(&key, &earlier.memory);
    let mut harness = browser.open();
    assert_eq!(kinds(&harness), [(LossKind::Repaired, None)]);
    assert_eq!((harness.sent(), history(&mut harness)), (sent, log));
    assert_eq!(problems(&mut harness), [""; 0]);
}

#[test]
fn r2_a_log_that_ends_early_is_what_the_session_is_and_the_rest_is_told_as_lost() {
    for marked in [true, false] {
        let mut browser = Browser::new();
        let log = {
            let mut harness = browser.rich();
            history(&mut harness)
        };
        let rows = browser.keys("log");
        rows[rows.len() - 2..].iter().for_each(|key| browser.remove(key));
        if !marked {
            browser.marks.borrow_mut().clear();
        }
        survives_every_kill(&browser, |harness| assert_eq!(kinds(harness), [(LossKind::Records, Some(2))]));
        let mut harness = browser.open();
        assert_eq!(kinds(&harness), [(LossKind::Records, Some(2))]);
        assert_eq!(history(&mut harness), log[..log.len() - 2]);
        assert_eq!(problems(&mut harness), [""; 0]);
        assert_eq!(kinds(&browser.open()), [(LossKind::Records, Some(2))], "until the app appends");
    }
}

#[test]
fn r2_views_of_what_the_log_lost_are_lost_with_it() {
    let mut browser = Browser::new();
    browser.rich();
    let (log, views) = (browser.keys("log"), browser.keys("views"));
    // Two messages and, before them, what the last view was noted in.
    log[log.len() - 3..].iter().for_each(|key| browser.remove(key));
    survives_every_kill(&browser, |_| {});
    let harness = browser.open();
    let left = browser.keys("views");
    assert!(left.len() < views.len());
    assert_eq!((left.len() as u64, &left[..]), (harness.stored().generation, &views[..left.len()]));
}

// ---- R3 -------------------------------------------------------------------------------------------------------------

#[test]
fn r3_a_store_that_went_back_is_noticed_by_the_watermark() {
    let mut browser = Browser::new();
    let mut harness = browser.rich();
    let earlier = browser.copy();
    harness.append(&talk(2, 20));
    let mut back = Browser { marks: Rc::clone(&browser.marks), ..earlier };
    let mut harness = back.open();
    assert_eq!(kinds(&harness), [(LossKind::Records, Some(4))]);
    assert_eq!(problems(&mut harness), [""; 0], "what is there is whole: nothing else can tell");
    assert_eq!(kinds(&back.open()), [(LossKind::Records, Some(4))], "until the app appends");
    harness.append(&[user("go on")]);
    assert!(losses(&back.open()).is_empty());
}

#[test]
fn r3_a_store_that_went_back_and_on_from_there_is_noticed_too() {
    let mut browser = Browser::new();
    let mut harness = browser.rich();
    let earlier = browser.copy();
    harness.append(&[user("one way")]);
    let mut back = Browser { marks: Rc::default(), ..earlier };
    back.open().append(&[user("another way"), assistant("so it is")]);
    back.marks = Rc::clone(&browser.marks);
    assert_eq!(kinds(&back.open()), [(LossKind::Records, None)]);
}

#[test]
fn r3_every_acknowledged_commit_is_marked_before_its_call_ends() {
    let mut browser = Browser::new();
    let mut harness = browser.open();
    let mark = |browser: &Browser| browser.marks.borrow().values().next().cloned();
    assert_eq!(mark(&browser), None, "nothing is stored yet");
    let mut last = None;
    for nth in 0..4 {
        harness.append(&turn(Format::OpenaiChat, nth, 150));
        assert_ne!(mark(&browser), last, "an append");
        last = mark(&browser);
    }
    harness.compact();
    assert_ne!(mark(&browser), last, "a compaction");
    let text = mark(&browser).unwrap();
    let rows: u64 = text.split('.').nth(1).unwrap().parse().unwrap();
    assert_eq!(rows, browser.keys("log").len() as u64);
    assert!(
        !browser.marks.borrow().keys().any(|key| key.contains('s') && key.len() < 26),
        "no text of the app"
    );
    // An append whose answer was lost, and that took place.
    harness.host.fault(1, is_commit, How::Lost);
    harness.append(&[user("lost answer")]);
    assert_ne!(mark(&browser).unwrap(), text);
}

#[test]
fn r3_of_two_tabs_the_one_that_wrote_first_may_tell_its_mark_last() {
    let mut browser = Browser::new();
    let mut harness = browser.rich();
    let stale = browser.marks.borrow().clone();
    harness.append(&[user("later")]);
    let mark = browser.marks.borrow().clone();
    let mut host = browser.host();
    for (key, value) in stale {
        host.hear(vec![(0, Effect::WriteWatermark { key, value })]);
    }
    assert_eq!(*browser.marks.borrow(), mark, "the later one is the greater text");
}

#[test]
fn a_watermark_that_cannot_be_read_is_a_warning() {
    let mut browser = Browser::new();
    browser.rich();
    browser.marks.borrow_mut().values_mut().for_each(|mark| *mark = "{".into());
    let harness = browser.open();
    assert!(losses(&harness).is_empty());
    assert!(matches!(harness.host.seen.notices[0], Notice::Warning { code: Code::StoreCorrupt, .. }));
}

// ---- R5 -------------------------------------------------------------------------------------------------------------

#[test]
fn r5_a_view_that_cannot_be_read_gives_way_to_an_earlier_one_down_to_the_log() {
    let views = {
        let mut browser = Browser::new();
        browser.rich();
        browser.keys("views").len()
    };
    assert!(views >= 2);
    for broken in 1..=views {
        for damage in [Browser::remove, Browser::flip] {
            let mut browser = Browser::new();
            let log = {
                let mut harness = browser.rich();
                history(&mut harness)
            };
            // The last views, `broken` of them.
            browser.keys("views")[views - broken..].iter().for_each(|key| damage(&browser, key));
            survives_every_kill(&browser, |harness| {
                assert_eq!(history(harness), log, "every message is there");
                assert_eq!(kinds(harness)[0], (LossKind::Context, None));
            });
            let mut harness = browser.open();
            let fates = harness.session.explain().unwrap();
            assert_eq!(fates.len(), log.len(), "every message has a fate");
            if broken == views {
                assert!(fates.iter().all(|entry| entry.fate == Fate::Verbatim), "the plain log");
            }
            // It is compacted as any other.
            harness.append(&turn(Format::OpenaiChat, 9, 150));
            harness.prepare();
            assert_eq!(browser.open().sent(), harness.sent());
        }
    }
}

#[test]
fn r5_a_view_that_reaches_beyond_the_log_is_not_what_was_written() {
    let mut browser = Browser::new();
    let log = history(&mut browser.rich());
    let key = browser.keys("views").pop().unwrap();
    let bytes = browser.memory.rows().into_iter().find(|(known, _)| *known == key).unwrap().1;
    let text = String::from_utf8(view_text(&bytes)).unwrap();
    let (before, to) = text.split_once("\"to\":").unwrap();
    // No message is read from there on, and the row that would speak against it is not there yet.
    let beyond = format!("{before}\"to\":1{to}");
    browser.memory.damage(&key, Some(beyond.into_bytes()));
    let mut harness = browser.open();
    assert_eq!(kinds(&harness)[0], (LossKind::Context, None));
    assert_eq!(history(&mut harness), log);
}

#[test]
fn r5_a_message_whose_offload_is_gone_stands_for_itself_again() {
    let mut browser = Browser::new();
    let mut harness = browser.open();
    harness.append(&turn(Format::OpenaiChat, 0, 300));
    harness.append(&talk(3, 40));
    harness.prepare();
    let fates = |harness: &Harness| {
        harness.session.explain().unwrap().iter().filter(|entry| entry.fate == Fate::Offloaded).count()
    };
    assert_eq!(fates(&harness), 1);
    for damage in [Browser::remove, Browser::flip] {
        let mut browser = browser.copy();
        damage(&browser, &browser.keys("blobs")[0]);
        survives_every_kill(&browser, |harness| assert_eq!(kinds(harness), [(LossKind::Repaired, None)]));
        let mut harness = browser.open();
        assert_eq!(fates(&harness), 0);
        // The next prepare moves it to the store again, under the same reference.
        harness.prepare();
        assert_eq!(fates(&harness), 1);
        let reference =
            harness.session.explain().unwrap().iter().find_map(|entry| entry.reference.clone()).unwrap();
        assert!(harness.read(&reference).starts_with("result 0"));
        assert_eq!(problems(&mut harness), [""; 0]);
    }
}

#[test]
fn r5_a_message_that_is_gone_is_told_and_the_rest_goes_on() {
    for damage in [Browser::remove, Browser::flip] {
        let mut browser = Browser::new();
        browser.rich();
        let rows = browser.keys("log");
        damage(&browser, &rows[rows.len() - 2]);
        survives_every_kill(&browser, |harness| assert_eq!(kinds(harness), [(LossKind::Records, Some(1))]));
        let mut harness = browser.open();
        let fates = harness.session.explain().unwrap();
        let lost: Vec<_> = fates.iter().filter(|entry| entry.fate == Fate::Dropped).collect();
        assert_eq!(lost.len(), 1);
        assert!(lost[0].reason.as_ref().unwrap().contains("the store lost it"));
        harness.append(&[user("go on")]);
        assert!(!problems(&mut harness).is_empty(), "what is lost stays a problem of the log");
    }
}

// ---- all of them ----------------------------------------------------------------------------------------------------

#[test]
fn two_tabs_that_mend_the_same_session_mend_it_once() {
    let mut browser = Browser::new();
    browser.rich();
    browser.remove(&browser.keys("sessions")[0]);
    let other = browser.copy();
    let (memory, marks) = (Rc::clone(&browser.memory), Rc::clone(&browser.marks));
    let mut done = false;
    let mut host = browser.host();
    host.meanwhile = Box::new(move |effect| {
        if matches!(effect, Effect::Commit(_)) && !std::mem::replace(&mut done, true) {
            let mut other = Browser { memory: Rc::clone(&memory), marks: Rc::clone(&marks), tabs: 50 };
            other.open().append(&[user("first")]);
        }
    });
    let (session, _) = host.run(Session::open(settings(options()), Some("s".into()), 10_000)).unwrap();
    let mut harness = Harness { memory: Rc::clone(&browser.memory), host, session };
    assert!(history(&mut harness).last().unwrap().contains("first"));
    assert!(losses(&harness).is_empty(), "the other tab was told, and appended");
    assert_eq!(problems(&mut harness), [""; 0]);
    drop(other);
}

#[test]
fn d21_what_another_tab_appends_while_a_damaged_session_row_is_mended_stays() {
    for nth in 1.. {
        let mut browser = Browser::new();
        let mut writer = browser.rich();
        browser.flip(&browser.keys("sessions")[0]);
        let (mut effects, acknowledged) = (0, Rc::new(Cell::new(None)));
        let told = Rc::clone(&acknowledged);
        let mut host = browser.host();
        host.meanwhile = Box::new(move |effect| {
            effects += usize::from(matches!(effect, Effect::Commit(_) | Effect::Read(_) | Effect::Scan(_)));
            if effects == nth && told.get().is_none() {
                let appended = writer.host.run(writer.session.append(vec![user("first")]));
                told.set(Some(appended.is_ok()));
            }
        });
        let (session, _) = host.run(Session::open(settings(options()), Some("s".into()), 10_000)).unwrap();
        let Some(acknowledged) = acknowledged.get() else { break };
        let mut harness = Harness { memory: Rc::clone(&browser.memory), host, session };
        harness.append(&[user("second")]);
        let after = history(&mut browser.open());
        let has = |text: &str| after.iter().any(|message| message.contains(text));
        assert!(has("first") || !acknowledged, "effect {nth}: it was acknowledged");
        assert!(has("second"), "effect {nth}");
    }
}

/// Each row of an offload in turn is damaged or gone: its text is that of the message in the log, as long as that is there.
#[test]
fn d13_a_damaged_offload_is_read_from_its_message() {
    let read = |harness: &mut Harness, reference: &str| {
        harness.host.run(harness.session.read(reference.into(), 0, None))
    };
    let mut browser = Browser::new();
    browser.rich();
    for key in browser.keys("blobs").into_iter().filter(|key| key.to_string().contains("/off_")) {
        let [_, _, KeyPart::Text(reference), _] = key.0.as_slice() else { unreachable!() };
        for is_gone in [false, true] {
            let mut other = browser.copy();
            let mut harness = other.open();
            let whole = read(&mut harness, reference).unwrap();
            if is_gone {
                other.remove(&key)
            } else {
                other.flip(&key)
            }
            assert_eq!(read(&mut harness, reference).unwrap(), whole, "{key}");
            other.keys("log").iter().for_each(|key| other.remove(key));
            let error = read(&mut harness, reference).unwrap_err();
            assert!(matches!(error.code, Code::StoreCorrupt | Code::NotFound), "{error}");
        }
    }
}

#[test]
fn a_store_that_cannot_be_asked_is_not_taken_for_one_that_lost_something() {
    let mut browser = Browser::new();
    browser.rich();
    let before = browser.memory.rows();
    for nth in 1..8 {
        let mut host = browser.host();
        let reads = |effect: &Effect| matches!(effect, Effect::Read(_) | Effect::Scan(_));
        host.fault(nth, reads, How::Fail(Code::StoreUnavailable));
        let opened = host.run(Session::open(settings(options()), Some("s".into()), 10_000));
        if let Err(error) = opened {
            assert_eq!(error.code, Code::StoreUnavailable);
        }
        assert_eq!(browser.memory.rows(), before);
    }
    assert!(losses(&browser.open()).is_empty());
}
