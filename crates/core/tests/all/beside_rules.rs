//! Calls of one handle while another one erases a message (D24): the erasure comes between any two steps of the call, or the
//! call between any two steps of the erasure.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::session::transcript::Export;
use context_compactor_core::step::{Effect, Machine, Notice};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, user};
use context_compactor_store_tests::{Host, MemoryStore};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const LEAK: &str = "The token is zanzibarkey.";

fn options() -> Value {
    json!({ "preset": "balanced", "contextWindow": 8_000 })
}

/// A store with a session that has offloads, a summary, a snapshot and, at its beginning, what is to be erased.
fn leaked() -> (MemoryStore, Vec<Body>) {
    let mut harness = Harness::new(options());
    harness.append(&[user(LEAK)]);
    for nth in 0..5 {
        harness.append(&turn(Format::OpenaiChat, nth, 800));
        harness.prepare();
    }
    harness.host.run(harness.session.snapshot(SnapshotPurpose::Rollback)).unwrap();
    harness.compact();
    harness.append(&[user("And now?")]);
    let said = harness.stored().messages.iter().map(|body| Body::from(body.as_str())).collect();
    (copy(&harness.memory), said)
}

fn copy(memory: &MemoryStore) -> MemoryStore {
    let copy = MemoryStore::default();
    copy.replace(memory);
    copy
}

type Call = Rc<dyn Fn(&mut Host, &Session) -> Result<(), Code>>;

fn run<T>(host: &mut Host, machine: Machine<T>) -> Result<T, Code> {
    host.run(machine).map_err(|error| error.code)
}

/// What a handle can be asked, with what must hold of each answer.
fn calls(said: Vec<Body>) -> Vec<(&'static str, Call)> {
    let count = said.len();
    let goal = json!({ "id": "g", "description": "Ship it" }).to_string();
    vec![
        (
            "history",
            Rc::new(move |host, session| {
                let page = run(host, session.history(None))?;
                assert_eq!((page.messages.len(), page.gaps.len(), page.next), (count, 0, None));
                Ok(())
            }),
        ),
        (
            "markdown",
            Rc::new(|host, session| {
                let page = run(host, session.markdown(None))?;
                assert!(!page.text.contains("cannot be read"), "{}", page.text);
                Ok(())
            }),
        ),
        (
            "export",
            Rc::new(move |host, session| {
                let (mut bytes, mut next) = (Vec::new(), Some(Export::Begin));
                while let Some(at) = next {
                    let (page, then) = run(host, session.export(at))?;
                    bytes.extend(page);
                    next = then;
                }
                let lines = String::from_utf8(bytes).unwrap();
                assert_eq!(lines.matches("\"kind\":\"message\"").count(), count);
                assert_eq!(lines.matches("\"kind\":\"gap\"").count(), 0);
                Ok(())
            }),
        ),
        (
            "verify",
            Rc::new(|host, session| {
                assert_eq!(run(host, session.verify())?.problems, [""; 0]);
                Ok(())
            }),
        ),
        (
            "checkpoint records",
            Rc::new(|host, session| {
                assert!(!run(host, session.checkpoint_records())?.is_empty());
                Ok(())
            }),
        ),
        (
            "search",
            Rc::new(|host, session| {
                assert_eq!(run(host, session.search("answer".into(), 5))?.len(), 5);
                Ok(())
            }),
        ),
        (
            "snapshots and restore",
            Rc::new(|host, session| {
                let [snapshot] = &run(host, session.snapshots())?[..] else { panic!("one was taken") };
                run(host, session.restore(snapshot.id.clone()))
            }),
        ),
        ("children", Rc::new(|host, session| run(host, session.children()).map(drop))),
        ("prepare", Rc::new(|host, session| run(host, session.prepare(Trigger::Auto, Vec::new())).map(drop))),
        ("append", Rc::new(|host, session| run(host, session.append(vec![user("Meanwhile.")])).map(drop))),
        (
            "sync",
            Rc::new(move |host, session| {
                let bodies = [said.clone(), vec![user("Meanwhile.")]].concat();
                let synced = run(host, session.sync(0, bodies))?;
                // What was erased is another message than the app has.
                assert!(synced.again || synced.appended == 1, "{synced:?}");
                Ok(())
            }),
        ),
        ("compact", Rc::new(|host, session| run(host, session.compact(None)).map(drop))),
        (
            "snapshot",
            Rc::new(|host, session| run(host, session.snapshot(SnapshotPurpose::Recovery)).map(drop)),
        ),
        ("rewind", Rc::new(|host, session| run(host, session.rewind(9)))),
        (
            "fork",
            Rc::new(|host, session| {
                let (child, forked) = run(host, session.fork(Some("child".into())))?;
                assert_eq!(run(host, child.history(None))?.messages.len(), forked.opened.messages);
                Ok(())
            }),
        ),
        ("pin", Rc::new(|host, session| run(host, session.pin(2)))),
        ("goal", Rc::new(move |host, session| run(host, session.set_goal(goal.clone())))),
        ("catch up", Rc::new(|host, session| run(host, session.catch_up()))),
        (
            "open",
            Rc::new(|host, _| {
                run(host, Session::open(settings(options()), Some("s".into()), 10_000)).map(drop)
            }),
        ),
    ]
}

/// Calls `act` before the `nth` time that something is awaited of the store; `true` once it did.
fn meanwhile(host: &mut Host, nth: usize, mut act: impl FnMut() + 'static) -> Rc<Cell<bool>> {
    let (mut count, did) = (0, Rc::new(Cell::new(false)));
    let done = Rc::clone(&did);
    host.meanwhile = Box::new(move |effect| {
        if matches!(effect, Effect::Read(_) | Effect::Scan(_) | Effect::Commit(_) | Effect::Pause(_)) {
            count += 1;
            if count == nth + 1 {
                act();
                done.set(true);
            }
        }
    });
    did
}

fn erase(harness: &mut Harness) {
    harness.host.run(harness.session.erase(0, "a leaked token".into())).unwrap();
}

/// The message is erased, no loss was told, and both go on.
fn check(harness: &mut Harness, other: &mut Harness, what: &str) {
    for harness in [harness, other] {
        let told =
            harness.host.seen.notices.iter().filter(|notice| matches!(notice, Notice::DataLoss { .. }));
        assert_eq!(told.count(), 0, "{what}");
        harness.append(&[user("On it goes.")]);
        assert!(!harness.sent().is_empty(), "{what}");
        assert_eq!(harness.host.run(harness.session.verify()).unwrap().problems, [""; 0], "{what}");
        let hits = |value: &[u8]| String::from_utf8_lossy(value).contains("zanzibarkey");
        assert!(!harness.memory.rows().iter().any(|(_, value)| hits(value)), "{what}");
    }
}

#[test]
fn d24_an_erasure_between_any_two_steps_of_a_call_costs_it_nothing() {
    let (memory, said) = leaked();
    for (name, call) in calls(said) {
        for nth in 0.. {
            let memory = Rc::new(copy(&memory));
            let harness = Rc::new(RefCell::new(Harness::over(Rc::clone(&memory), "b", options())));
            let mut other = Harness::over(memory, "c", options());
            let eraser = Rc::clone(&harness);
            let did = meanwhile(&mut other.host, nth, move || erase(&mut eraser.borrow_mut()));
            let what = format!("{name}: erased before step {nth}");
            assert_eq!(call(&mut other.host, &other.session), Ok(()), "{what}");
            other.host.meanwhile = Box::new(|_| {});
            if !did.get() {
                assert!(nth > 0, "{name} asks the store");
                break;
            }
            // A fork has a copy of its own.
            if name != "fork" {
                check(&mut harness.borrow_mut(), &mut other, &what);
            }
        }
    }
}

#[test]
fn d24_a_call_between_any_two_steps_of_an_erasure_costs_neither_anything() {
    let (memory, said) = leaked();
    for (name, call) in calls(said) {
        for nth in 0.. {
            let memory = Rc::new(copy(&memory));
            let mut harness = Harness::over(Rc::clone(&memory), "b", options());
            let other = Rc::new(RefCell::new(Harness::over(memory, "c", options())));
            let (caller, ended) = (Rc::clone(&other), Rc::new(Cell::new(Ok(()))));
            let (what, end) = (format!("{name}: before step {nth} of the erasure"), Rc::clone(&ended));
            let call = Rc::clone(&call);
            let did = meanwhile(&mut harness.host, nth, move || {
                let other = &mut *caller.borrow_mut();
                end.set(call(&mut other.host, &other.session));
            });
            erase(&mut harness);
            harness.host.meanwhile = Box::new(|_| {});
            assert_eq!(ended.get(), Ok(()), "{what}");
            if !did.get() {
                break;
            }
            if name != "fork" {
                check(&mut harness, &mut other.borrow_mut(), &what);
            }
        }
    }
}
