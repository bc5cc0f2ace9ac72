//! Deleting a session by its name, without opening it.

use context_compactor_core::Code;
use context_compactor_core::keys::batch::keys;
use context_compactor_core::policy::Settings;
use context_compactor_core::session::Session;
use context_compactor_core::step::{Effect, Machine};
use context_compactor_store_tests::MemoryStore;
use context_compactor_store_tests::conversation::{assistant, user};
use context_compactor_store_tests::host::{Host, How, summary};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const ID: &str = "s";
const OTHER: &str = "other";

fn settings() -> Rc<Settings> {
    let text = json!({ "preset": "offload", "contextWindow": 64_000, "advanced": { "watermark": true } })
        .to_string();
    Rc::new(Settings::read(&serde_json::from_str(&text).unwrap()).unwrap())
}

fn host(memory: &Rc<MemoryStore>) -> Host {
    let mut host = Host::new(Rc::clone(memory) as _, "tab");
    host.summarise = Box::new(|_, _| summary("## Current Status\nThe user asked and was answered."));
    host
}

fn open(host: &mut Host, id: &str) -> Session {
    host.run(Session::open(settings(), Some(id.into()), 1_000)).unwrap().0
}

/// Two sessions with a view each; of the second, what is stored.
fn made() -> (Rc<MemoryStore>, Host, usize) {
    let memory = Rc::default();
    let mut host = host(&memory);
    let mut rows = 0;
    for id in [OTHER, ID] {
        let session = open(&mut host, id);
        let said =
            (0..20).flat_map(|nth| [user(&format!("question {nth}")), assistant(&format!("answer {nth}"))]);
        host.run(session.append(said.collect())).unwrap();
        assert!(host.run(session.compact(None)).unwrap().result.success);
        if id == OTHER {
            rows = memory.rows().len();
        }
    }
    (memory, host, rows)
}

fn delete(most: usize) -> Machine<()> {
    Session::delete_named(ID.into(), most)
}

fn copy(of: &MemoryStore) -> Rc<MemoryStore> {
    let memory = MemoryStore::default();
    memory.replace(of);
    Rc::new(memory)
}

/// What the rows of the session are called.
fn sid_of(memory: &MemoryStore) -> String {
    let name = memory.rows().into_iter().find(|(key, _)| *key == keys::name(ID)).unwrap().1;
    serde_json::from_slice::<Value>(&name).unwrap()["sid"].as_str().unwrap().to_owned()
}

fn messages(host: &mut Host, id: &str) -> usize {
    open(host, id).explain().unwrap().len()
}

#[test]
fn h13_a_session_is_deleted_by_its_name_and_no_other_is_touched() {
    for most in [4, 1_000] {
        let (memory, mut host, rows) = made();
        host.run(delete(most)).unwrap();
        assert_eq!(memory.rows().len(), rows, "in batches of {most}");
        // One that there is not is no error, and writes nothing.
        let commits = memory.rows();
        host.run(delete(most)).unwrap();
        assert_eq!(memory.rows(), commits);
        // Neither is its loss told.
        host.seen.notices.clear();
        let (_, opened) = host.run(Session::open(settings(), Some(ID.into()), most)).unwrap();
        assert_eq!(opened.messages, 0);
        assert_eq!(host.seen.notices, []);
        assert_eq!(messages(&mut host, OTHER), 40);
    }
}

#[test]
fn h13_a_handle_on_a_session_that_was_deleted_by_its_name_is_closed() {
    let (memory, mut host, rows) = made();
    let session = open(&mut host, ID);
    host.run(delete(1_000)).unwrap();
    let error = host.run(session.append(vec![user("still there?")])).unwrap_err();
    assert_eq!(error.code, Code::Closed);
    assert_eq!(memory.rows().len(), rows);
}

#[test]
fn h13_a_deletion_that_stops_anywhere_leaves_the_session_or_none_and_the_next_one_ends_it() {
    let (made, maker, rows) = made();
    let marks = || Rc::new(RefCell::new(maker.marks.borrow().clone()));
    for most in [4, 1_000] {
        let effects = Rc::new(Cell::new(0));
        let counted = Rc::clone(&effects);
        let mut counting = host(&copy(&made));
        counting.fault(1, move |_| counted.replace(counted.get() + 1) == usize::MAX, How::CrashBefore);
        counting.run(delete(most)).unwrap();
        assert!(effects.get() > 5);
        for how in [How::CrashBefore, How::CrashAfter, How::Lost, How::Fail(Code::StoreUnavailable)] {
            for nth in 1..=effects.get() {
                let memory = copy(&made);
                let mut stopped = host(&memory);
                stopped.marks = marks();
                stopped.fault(nth, |_| true, how);
                let _ = stopped.try_run(delete(most));
                let mut next = host(&copy(&memory));
                next.marks = Rc::clone(&stopped.marks);
                let found = messages(&mut next, ID);
                assert!(found == 40 || found == 0, "{found} messages: {how:?} at {nth}, {most}");
                assert_eq!(next.seen.notices, [], "its end is no loss: {how:?} at {nth}, {most}");
                host(&memory).run(delete(most)).unwrap();
                assert_eq!(memory.rows().len(), rows, "{how:?} at {nth}, {most}");
            }
        }
    }
}

/// What another handle appends meanwhile is deleted too, with the mark that it left.
#[test]
fn h13_an_append_during_the_deletion_leaves_neither_rows_nor_a_mark() {
    let (memory, mut deleting, rows) = made();
    let mut tab = host(&memory);
    tab.marks = Rc::clone(&deleting.marks);
    let session = open(&mut tab, ID);
    let mut appended = false;
    deleting.meanwhile = Box::new(move |effect| {
        let deletes = matches!(effect, Effect::Commit(batch) if !batch.deletes.is_empty());
        if deletes && !std::mem::replace(&mut appended, true) {
            tab.run(session.append(vec![user("one more")])).unwrap();
        }
    });
    deleting.run(delete(1_000)).unwrap();
    assert_eq!(memory.rows().len(), rows);
    deleting.meanwhile = Box::new(|_| {});
    deleting.seen.notices.clear();
    assert_eq!(messages(&mut deleting, ID), 0);
    assert_eq!(deleting.seen.notices, [], "its end is no loss");
}

#[test]
fn h13_a_session_whose_name_and_row_are_both_damaged_is_deleted() {
    let (memory, mut host, rows) = made();
    for key in [keys::name(ID), keys::session(&sid_of(&memory))] {
        let mut bytes = memory.rows().into_iter().find(|(known, _)| *known == key).unwrap().1;
        // A digit of the seal.
        let at = bytes.len() - 3;
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        memory.damage(&key, Some(bytes));
    }
    host.run(delete(1_000)).unwrap();
    assert_eq!(memory.rows().len(), rows);
    assert_eq!(messages(&mut host, OTHER), 40);
}

#[test]
fn h13_a_name_that_leads_nowhere_goes() {
    let (memory, mut host, rows) = made();
    let sid = sid_of(&memory);
    for (key, _) in memory.rows().into_iter().filter(|(key, _)| key.to_string().contains(&sid)) {
        memory.damage(&key, None);
    }
    assert_eq!(memory.rows().len(), rows + 1);
    host.run(delete(1_000)).unwrap();
    assert_eq!(memory.rows().len(), rows);
}

#[test]
fn h13_a_name_in_whose_place_another_sessions_stands_costs_that_one_nothing() {
    let (memory, mut host, rows) = made();
    let other = memory.rows().into_iter().find(|(key, _)| *key == keys::name(OTHER)).unwrap().1;
    memory.damage(&keys::name(ID), Some(other));
    host.run(delete(1_000)).unwrap();
    assert_eq!(memory.rows().len(), rows);
    assert_eq!(messages(&mut host, OTHER), 40);
    // Also where nothing else is left of the session.
    let key = keys::name(ID);
    let other = memory.rows().into_iter().find(|(key, _)| *key == keys::name(OTHER)).unwrap().1;
    memory.damage(&key, Some(other));
    host.run(delete(1_000)).unwrap();
    assert_eq!(memory.rows().len(), rows);
    assert_eq!(messages(&mut host, OTHER), 40);
}
