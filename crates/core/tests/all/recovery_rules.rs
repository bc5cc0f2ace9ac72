//! What is mended when a session is opened: R1, R2, R3 and R5, each killed at every step.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::Fate;
use context_compactor_core::keys::batch::{Key, KeyPart};
use context_compactor_core::session::Session;
use context_compactor_core::session::audit::look;
use context_compactor_core::step::{Effect, Loss, LossKind, Notice};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{assistant, user};
use context_compactor_store_tests::host::{Marks, summary};
use context_compactor_store_tests::{Host, How, MemoryStore};
use serde_json::{Value, json};
use std::cell::Cell;
use std::rc::Rc;

fn options() -> Value {
    json!({
        "compactAt": { "tokens": 400 }, "presetOptions": { "compactTriggerThreshold": 1 },
        "keep": { "messages": 4 }, "advanced": { "watermark": true },
    })
}

/// A browser: a store that the platform can break, and what is kept beside it.
struct Browser {
    memory: Rc<MemoryStore>,
    marks: Marks,
    tabs: usize,
}

type Opened = context_compactor_core::Result<Desk>;

impl Browser {
    fn new() -> Self {
        Browser { memory: Rc::default(), marks: Rc::default(), tabs: 0 }
    }

    fn host(&mut self) -> Host {
        self.tabs += 1;
        let mut host = Host::new(Rc::clone(&self.memory) as _, &format!("tab {}", self.tabs));
        host.marks = Rc::clone(&self.marks);
        host.summarise = Box::new(|_, _| summary(SUMMARY));
        host
    }

    fn open_with(&mut self, over: Value) -> Opened {
        let mut host = self.host();
        let mut given = options();
        merge(&mut given, &over);
        let (session, _) = host.run(Session::open(settings(given), Some("s".into()), 10_000))?;
        Ok(Desk { memory: Rc::clone(&self.memory), host, session })
    }

    fn open(&mut self) -> Desk {
        self.open_with(json!({})).unwrap()
    }

    /// A session with offloads, two summaries and a tail.
    fn rich(&mut self) -> Desk {
        let mut desk = self.open();
        for nth in 0..3 {
            desk.append(&turn(Format::OpenaiChat, nth, 150));
            desk.prepare();
        }
        desk.compact();
        desk.append(&turn(Format::OpenaiChat, 3, 300));
        desk.append(&talk(3, 40));
        desk.prepare();
        desk.append(&[user("and now?"), assistant("Now we go on.")]);
        desk
    }

    fn keys(&self, table: &str) -> Vec<Key> {
        let prefix = format!("{table}/");
        let rows = self.memory.rows().into_iter().map(|(key, _)| key);
        rows.filter(|key| key.to_string().starts_with(&prefix)).collect()
    }

    fn remove(&self, key: &Key) {
        self.memory.damage(key, None);
    }

    fn flip(&self, key: &Key) {
        let mut bytes = self.memory.rows().into_iter().find(|(known, _)| known == key).unwrap().1;
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        self.memory.damage(key, Some(bytes));
    }

    /// The store as it was, with what is kept beside it.
    fn copy(&self) -> Browser {
        let memory = MemoryStore::default();
        memory.replace(&self.memory);
        let marks = Rc::new(std::cell::RefCell::new(self.marks.borrow().clone()));
        Browser { memory: Rc::new(memory), marks, tabs: self.tabs + 100 }
    }
}

fn losses(desk: &Desk) -> Vec<Loss> {
    let loss = |notice: &Notice| match notice {
        Notice::Dataloss { loss } => Some(loss.clone()),
        _ => None,
    };
    desk.host.seen.notices.iter().filter_map(loss).collect()
}

fn kinds(desk: &Desk) -> Vec<(LossKind, Option<u64>)> {
    losses(desk).into_iter().map(|loss| (loss.kind, loss.lost_records)).collect()
}

/// The messages of the log, as the session hands them out.
fn history(desk: &mut Desk) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = desk.host.run(desk.session.history(cursor)).unwrap();
        found.extend(page.messages.iter().map(|message| message.body.to_string()));
        match page.next {
            Some(next) => cursor = Some(next),
            None => return found,
        }
    }
}

fn problems(desk: &mut Desk) -> Vec<String> {
    desk.host.run(desk.session.verify()).unwrap().problems
}

/// What is broken is mended also when every opening dies at a step, one later each time; then it is as `is_mended` says,
/// and writable.
fn survives_every_kill(broken: &Browser, is_mended: impl Fn(&mut Desk)) {
    for how in [How::CrashBefore, How::CrashAfter, How::Lost] {
        for nth in 1.. {
            let mut browser = broken.copy();
            let mut host = browser.host();
            host.fault(nth, is_commit, how);
            let opening = Session::open(settings(options()), Some("s".into()), 10_000);
            let ended = host.try_run(opening);
            // The kill may have come anywhere; whoever comes next finishes, and hears of it.
            let mut desk = browser.open();
            if ended.is_none() || how == How::Lost {
                is_mended(&mut desk);
            }
            desk.append(&[user("go on")]);
            let again = browser.open();
            assert!(
                losses(&again).is_empty(),
                "{how:?} {nth}: told again after an append: {:?}",
                losses(&again)
            );
            let seen = |desk: &Desk| look(&desk.session).unwrap().context.items().to_vec();
            assert_eq!(seen(&again), seen(&desk), "{how:?} {nth}");
            if host.seen.commits.len() < nth {
                break;
            }
        }
    }
}

// ---- R1 -------------------------------------------------------------------------------------------------------------

#[test]
fn r1_a_session_that_the_watermark_knows_and_the_store_does_not_is_not_begun_anew_unasked() {
    let mut browser = Browser::new();
    let rows = {
        let mut desk = browser.rich();
        history(&mut desk);
        browser.keys("log").len() as u64
    };
    browser.memory = Rc::default();
    for _ in 0..2 {
        let error = browser.open_with(json!({})).err().unwrap();
        assert_eq!(error.code, Code::DataLoss);
        assert!(error.message.contains("acceptDataLoss"), "{error}");
        assert!(browser.memory.rows().is_empty(), "nothing was written");
    }
    let mut desk = browser.open_with(json!({ "acceptDataLoss": true })).unwrap();
    assert_eq!(kinds(&desk), [(LossKind::Session, Some(rows))]);
    desk.append(&[user("anew")]);
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
    let mut desk = browser.open_with(json!({ "acceptDataLoss": true })).unwrap();
    assert!(!losses(&desk).is_empty());
    desk.append(&[user("anew")]);
    assert_eq!(problems(&mut desk), [""; 0]);
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
        opened.map(|(session, _)| Desk { memory: Rc::clone(&browser.memory), host, session })
    };
    assert_eq!(open(&mut browser, Some("s".into()), false).err().unwrap().code, Code::DataLoss);
    let desk = open(&mut browser, None, false).unwrap();
    assert_eq!(kinds(&desk), [(LossKind::Platform, None)], "a new session cannot have been lost");
    let desk = open(&mut browser, Some("s".into()), true).unwrap();
    assert_eq!(losses(&desk)[0].reason, "the database was damaged and made anew");
}

#[test]
fn r1_a_session_that_was_deleted_is_no_loss() {
    for most in [10_000, 5] {
        let mut browser = Browser::new();
        let mut desk = browser.rich();
        let mut host = browser.host();
        let (session, _) = host.run(Session::open(settings(options()), Some("s".into()), most)).unwrap();
        host.run(session.delete()).unwrap();
        assert!(browser.memory.rows().is_empty());
        assert!(losses(&browser.open()).is_empty());
        assert_eq!(desk.host.run(desk.session.append(vec![user("late")])).unwrap_err().code, Code::Closed);
    }
}

#[test]
fn r1_a_name_that_is_missing_or_damaged_is_written_again() {
    for damage in [Browser::remove, Browser::flip] {
        let mut browser = Browser::new();
        let before = browser.rich().sent();
        damage(&browser, &browser.keys("meta")[0]);
        survives_every_kill(&browser, |desk| assert_eq!(desk.sent(), before));
        let mut desk = browser.open();
        assert_eq!(kinds(&desk), [(LossKind::Repaired, None)]);
        assert_eq!(problems(&mut desk), [""; 0]);
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
            let mut desk = browser.rich();
            (desk.context(), history(&mut desk))
        };
        damage(&browser, &browser.keys("sessions")[0]);
        survives_every_kill(&browser, |desk| {
            assert_eq!(desk.context(), context, "the same context");
            assert_eq!(history(desk), log);
        });
        let mut desk = browser.open();
        assert_eq!(kinds(&desk), [(LossKind::Repaired, None)]);
        assert_eq!(problems(&mut desk), [""; 0]);
        assert_eq!(desk.context(), context);
    }
}

#[test]
fn r2_a_session_row_of_an_earlier_commit_is_made_that_of_the_log() {
    let mut browser = Browser::new();
    let mut desk = browser.rich();
    let key = browser.keys("sessions")[0].clone();
    let earlier = browser.copy();
    desk.append(&turn(Format::OpenaiChat, 9, 150));
    desk.compact();
    let (sent, log) = (desk.sent(), history(&mut desk));
    browser.memory.put_back(&key, &earlier.memory);
    let mut desk = browser.open();
    assert_eq!(kinds(&desk), [(LossKind::Repaired, None)]);
    assert_eq!((desk.sent(), history(&mut desk)), (sent, log));
    assert_eq!(problems(&mut desk), [""; 0]);
}

#[test]
fn r2_a_log_that_ends_early_is_what_the_session_is_and_the_rest_is_told_as_lost() {
    for marked in [true, false] {
        let mut browser = Browser::new();
        let log = {
            let mut desk = browser.rich();
            history(&mut desk)
        };
        let rows = browser.keys("log");
        rows[rows.len() - 2..].iter().for_each(|key| browser.remove(key));
        if !marked {
            browser.marks.borrow_mut().clear();
        }
        survives_every_kill(&browser, |desk| assert_eq!(kinds(desk), [(LossKind::Records, Some(2))]));
        let mut desk = browser.open();
        assert_eq!(kinds(&desk), [(LossKind::Records, Some(2))]);
        assert_eq!(history(&mut desk), log[..log.len() - 2]);
        assert_eq!(problems(&mut desk), [""; 0]);
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
    let desk = browser.open();
    let left = browser.keys("views");
    assert!(left.len() < views.len());
    assert_eq!((left.len() as u64, &left[..]), (desk.stored().generation, &views[..left.len()]));
}

// ---- R3 -------------------------------------------------------------------------------------------------------------

#[test]
fn r3_a_store_that_went_back_is_noticed_by_the_watermark() {
    let mut browser = Browser::new();
    let mut desk = browser.rich();
    let earlier = browser.copy();
    desk.append(&talk(2, 20));
    let mut back = Browser { marks: Rc::clone(&browser.marks), ..earlier };
    let mut desk = back.open();
    assert_eq!(kinds(&desk), [(LossKind::Records, Some(4))]);
    assert_eq!(problems(&mut desk), [""; 0], "what is there is whole: nothing else can tell");
    assert_eq!(kinds(&back.open()), [(LossKind::Records, Some(4))], "until the app appends");
    desk.append(&[user("go on")]);
    assert!(losses(&back.open()).is_empty());
}

#[test]
fn r3_a_store_that_went_back_and_on_from_there_is_noticed_too() {
    let mut browser = Browser::new();
    let mut desk = browser.rich();
    let earlier = browser.copy();
    desk.append(&[user("one way")]);
    let mut back = Browser { marks: Rc::default(), ..earlier };
    back.open().append(&[user("another way"), assistant("so it is")]);
    back.marks = Rc::clone(&browser.marks);
    assert_eq!(kinds(&back.open()), [(LossKind::Records, None)]);
}

#[test]
fn r3_every_acknowledged_commit_is_marked_before_its_call_ends() {
    let mut browser = Browser::new();
    let mut desk = browser.open();
    let mark = |browser: &Browser| browser.marks.borrow().values().next().cloned();
    assert_eq!(mark(&browser), None, "nothing is stored yet");
    let mut last = None;
    for nth in 0..4 {
        desk.append(&turn(Format::OpenaiChat, nth, 150));
        assert_ne!(mark(&browser), last, "an append");
        last = mark(&browser);
    }
    desk.compact();
    assert_ne!(mark(&browser), last, "a compaction");
    let text = mark(&browser).unwrap();
    let rows: u64 = text.split('.').nth(1).unwrap().parse().unwrap();
    assert_eq!(rows, browser.keys("log").len() as u64);
    assert!(
        !browser.marks.borrow().keys().any(|key| key.contains('s') && key.len() < 26),
        "no text of the app"
    );
    // An append whose answer was lost, and that took place.
    desk.host.fault(1, is_commit, How::Lost);
    desk.append(&[user("lost answer")]);
    assert_ne!(mark(&browser).unwrap(), text);
}

#[test]
fn r3_of_two_tabs_the_one_that_wrote_first_may_tell_its_mark_last() {
    let mut browser = Browser::new();
    let mut desk = browser.rich();
    let stale = browser.marks.borrow().clone();
    desk.append(&[user("later")]);
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
    let desk = browser.open();
    assert!(losses(&desk).is_empty());
    assert!(matches!(desk.host.seen.notices[0], Notice::Warning { code: Code::StoreCorrupt, .. }));
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
                let mut desk = browser.rich();
                history(&mut desk)
            };
            // The last views, `broken` of them.
            browser.keys("views")[views - broken..].iter().for_each(|key| damage(&browser, key));
            survives_every_kill(&browser, |desk| {
                assert_eq!(history(desk), log, "every message is there");
                assert_eq!(kinds(desk)[0], (LossKind::Context, None));
            });
            let mut desk = browser.open();
            let fates = desk.session.explain().unwrap();
            assert_eq!(fates.len(), log.len(), "every message has a fate");
            if broken == views {
                assert!(fates.iter().all(|entry| entry.fate == Fate::Verbatim), "the plain log");
            }
            // It is compacted as any other.
            desk.append(&turn(Format::OpenaiChat, 9, 150));
            desk.prepare();
            assert_eq!(browser.open().sent(), desk.sent());
        }
    }
}

#[test]
fn r5_a_view_that_reaches_beyond_the_log_is_not_what_was_written() {
    let mut browser = Browser::new();
    let log = history(&mut browser.rich());
    let key = browser.keys("views").pop().unwrap();
    let bytes = browser.memory.rows().into_iter().find(|(known, _)| *known == key).unwrap().1;
    let text = String::from_utf8(bytes).unwrap();
    let (before, to) = text.split_once("\"to\":").unwrap();
    // No message is read from there on, and the row that would speak against it is not there yet.
    let beyond = format!("{before}\"to\":1{to}");
    browser.memory.damage(&key, Some(beyond.into_bytes()));
    let mut desk = browser.open();
    assert_eq!(kinds(&desk)[0], (LossKind::Context, None));
    assert_eq!(history(&mut desk), log);
}

#[test]
fn r5_a_message_whose_offload_is_gone_stands_for_itself_again() {
    let mut browser = Browser::new();
    let mut desk = browser.open();
    desk.append(&turn(Format::OpenaiChat, 0, 300));
    desk.append(&talk(3, 40));
    desk.prepare();
    let fates = |desk: &Desk| {
        desk.session.explain().unwrap().iter().filter(|entry| entry.fate == Fate::Offloaded).count()
    };
    assert_eq!(fates(&desk), 1);
    for part in [0, 1] {
        let mut browser = browser.copy();
        browser.remove(&browser.keys("blobs")[part]);
        survives_every_kill(&browser, |desk| assert_eq!(kinds(desk), [(LossKind::Repaired, None)]));
        let mut desk = browser.open();
        assert_eq!(fates(&desk), 0);
        // The next prepare moves it to the store again, under the same reference.
        desk.prepare();
        assert_eq!(fates(&desk), 1);
        let reference =
            desk.session.explain().unwrap().iter().find_map(|entry| entry.reference.clone()).unwrap();
        assert!(desk.read(&reference).starts_with("result 0"));
        assert_eq!(problems(&mut desk), [""; 0]);
    }
}

#[test]
fn r5_a_message_that_is_gone_is_told_and_the_rest_goes_on() {
    for damage in [Browser::remove, Browser::flip] {
        let mut browser = Browser::new();
        browser.rich();
        let rows = browser.keys("log");
        damage(&browser, &rows[rows.len() - 2]);
        survives_every_kill(&browser, |desk| assert_eq!(kinds(desk), [(LossKind::Records, Some(1))]));
        let mut desk = browser.open();
        let fates = desk.session.explain().unwrap();
        let lost: Vec<_> = fates.iter().filter(|entry| entry.fate == Fate::Dropped).collect();
        assert_eq!(lost.len(), 1);
        assert!(lost[0].reason.as_ref().unwrap().contains("the store lost it"));
        desk.append(&[user("go on")]);
        assert!(!problems(&mut desk).is_empty(), "what is lost stays a problem of the log");
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
    let mut desk = Desk { memory: Rc::clone(&browser.memory), host, session };
    assert!(history(&mut desk).last().unwrap().contains("first"));
    assert!(losses(&desk).is_empty(), "the other tab was told, and appended");
    assert_eq!(problems(&mut desk), [""; 0]);
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
        let mut desk = Desk { memory: Rc::clone(&browser.memory), host, session };
        desk.append(&[user("second")]);
        let after = history(&mut browser.open());
        let has = |text: &str| after.iter().any(|message| message.contains(text));
        assert!(has("first") || !acknowledged, "effect {nth}: it was acknowledged");
        assert!(has("second"), "effect {nth}");
    }
}

#[test]
fn d21_the_row_of_another_session_in_the_place_of_its_own_is_damage() {
    let mut browser = Browser::new();
    let log = {
        let mut desk = browser.rich();
        history(&mut desk)
    };
    let key = browser.keys("sessions")[0].clone();
    let mut host = browser.host();
    let (other, _) = host.run(Session::open(settings(options()), Some("t".into()), 10_000)).unwrap();
    host.run(other.append(vec![user("else")])).unwrap();
    let rows = browser.memory.rows();
    let (_, foreign) =
        rows.iter().find(|(row, _)| row.to_string().starts_with("sessions/") && *row != key).unwrap();
    browser.memory.damage(&key, Some(foreign.clone()));
    survives_every_kill(&browser, |_| {});
    let mut desk = browser.open();
    assert_eq!(kinds(&desk), [(LossKind::Repaired, None)]);
    assert_eq!(history(&mut desk), log);
    assert_eq!(problems(&mut desk), [""; 0]);
    desk.append(&[user("go on")]);
}

/// Sound rows of another session, each in the place of this one's: never read as this session's, and told as lost.
#[test]
fn d21_log_rows_of_another_session_are_never_read_as_its_own() {
    let say = |who: &str, nth: usize| {
        if nth.is_multiple_of(2) { user(&format!("{who} {nth}")) } else { assistant(&format!("{who} {nth}")) }
    };
    for count in [1, 2, 3, 4, 7] {
        for place in 0..count {
            let mut browser = Browser::new();
            let mut own: Vec<Vec<Key>> = Vec::new();
            for who in ["s", "t"] {
                let mut host = browser.host();
                let (session, _) =
                    host.run(Session::open(settings(options()), Some(who.into()), 10_000)).unwrap();
                for nth in 0..count {
                    host.run(session.append(vec![say(who, nth)])).unwrap();
                }
                let keys = browser.keys("log").into_iter();
                own.push(keys.filter(|key| !own.concat().contains(key)).collect::<Vec<Key>>());
            }
            let rows = browser.memory.rows();
            let foreign = rows.into_iter().find(|(key, _)| *key == own[1][place]).unwrap().1;
            browser.memory.damage(&own[0][place], Some(foreign));
            let opened = browser.open_with(json!({}));
            let mut desk = match opened {
                Ok(desk) => desk,
                Err(error) => {
                    assert_eq!((error.code, count), (Code::DataLoss, 1));
                    continue;
                }
            };
            assert_eq!(kinds(&desk), [(LossKind::Records, Some(1))], "row {place} of {count}");
            let left = (0..count).filter(|nth| *nth != place).map(|nth| say("s", nth).to_string());
            let left: Vec<String> = left.collect();
            assert_eq!(history(&mut desk), left, "row {place} of {count}");
            desk.append(&[user("go on")]);
            assert_eq!(history(&mut browser.open()).len(), count);
        }
    }
}

/// Each row of an offload in turn is damaged or gone: its text is that of the message in the log, as long as that is there.
#[test]
fn d13_a_damaged_offload_is_read_from_its_message() {
    let read = |desk: &mut Desk, reference: &str| desk.host.run(desk.session.read(reference.into(), 0, None));
    let mut browser = Browser::new();
    browser.rich();
    for key in browser.keys("blobs").into_iter().filter(|key| key.to_string().contains("/off_")) {
        let [_, _, KeyPart::Text(reference), _] = key.0.as_slice() else { unreachable!() };
        for is_gone in [false, true] {
            let mut other = browser.copy();
            let mut desk = other.open();
            let whole = read(&mut desk, reference).unwrap();
            if is_gone {
                other.remove(&key)
            } else {
                other.flip(&key)
            }
            assert_eq!(read(&mut desk, reference).unwrap(), whole, "{key}");
            other.keys("log").iter().for_each(|key| other.remove(key));
            let error = read(&mut desk, reference).unwrap_err();
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
