//! A commit whose answer is lost: whoever sent it finds out by reading whether it was written, and
//! nothing is written twice.

use crate::support::*;
use context_compactor_core::keys::batch::{Batch, Key};
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::session::Session;
use context_compactor_core::session::audit::audit;
use context_compactor_core::session::transcript::{Importer, Restore};
use context_compactor_core::step::Scan;
use context_compactor_core::wire::Format;
use context_compactor_core::{Code, Error, Result};
use context_compactor_store_tests::conversation::user;
use context_compactor_store_tests::{Host, How, MemoryStore, Store};
use serde_json::json;
use std::cell::RefCell;
use std::rc::Rc;

/// A session with results to move, messages to summarise and a snapshot to go back to, in a store of `most` operations.
fn worked(most: usize) -> Harness {
    let options = json!({ "compactAt": { "tokens": 300 }, "advanced": { "watermark": true } });
    let mut harness = Harness::new(options.clone());
    let opened = Session::open(settings(options), Some("s".into()), most);
    harness.session = harness.host.run(opened).unwrap().0;
    harness.append(&turn(Format::Anthropic, 0, 200));
    harness.append(&talk(8, 20));
    harness.host.run(harness.session.snapshot(SnapshotPurpose::Rollback)).unwrap();
    harness.append(&talk(2, 20));
    harness
}

/// What the store says about session `s`: messages, context, number of the view, log rows and snapshots.
fn said(memory: &MemoryStore) -> (Vec<String>, Vec<String>, u64, u64, usize) {
    let found = audit("s", &memory.rows()).unwrap();
    let context = found.context.into_iter().map(|(_, body)| body).collect();
    (found.messages, context, found.generation, found.rows, found.snapshots.len())
}

/// Rows of the log that the watermark of the only session knows.
fn marked(harness: &Harness) -> u64 {
    let marks = harness.host.marks.borrow();
    let mark = marks.values().next().expect("a watermark");
    mark.split('.').nth(1).unwrap().parse().unwrap()
}

type Work = fn(&mut Harness) -> Result<()>;

const WORK: [(&str, Work); 9] = [
    ("append", |harness| harness.host.run(harness.session.append(talk(3, 20))).map(drop)),
    ("sync", |harness| {
        let mut history: Vec<_> = harness.stored().messages.iter().map(|body| body.as_str().into()).collect();
        history.push(user("and this"));
        harness.host.run(harness.session.sync(0, history)).map(|synced| assert_eq!(synced.appended, 1))
    }),
    ("compact", |harness| {
        harness.host.run(harness.session.compact(None)).map(|done| assert!(done.result.success))
    }),
    ("offload", |harness| {
        harness
            .host
            .run(harness.session.prepare(context_compactor_core::policy::Trigger::Auto, Vec::new()))
            .map(drop)
    }),
    ("snapshot", |harness| harness.host.run(harness.session.snapshot(SnapshotPurpose::Recovery)).map(drop)),
    ("restore", |harness| {
        let id = harness.host.run(harness.session.snapshots())?[0].id.clone();
        harness.host.run(harness.session.restore(id))
    }),
    ("rewind", |harness| harness.host.run(harness.session.rewind(6))),
    ("remove", |harness| harness.host.run(harness.session.remove_messages(vec![4, 5])).map(drop)),
    ("pin", |harness| harness.host.run(harness.session.pin(4))),
];

#[test]
fn indeterminate_every_change_of_a_session_takes_place_once() {
    for most in [12, 10_000] {
        for (name, work) in WORK {
            let mut whole = worked(most);
            let before = whole.host.seen.commits.len();
            work(&mut whole).unwrap();
            let commits = whole.host.seen.commits.len() - before;
            assert!(commits > 0, "{name}");
            for at in 1..=commits {
                for how in [How::Lost, How::Fail(Code::Indeterminate)] {
                    let mut harness = worked(most);
                    harness.host.fault(at, is_commit, how);
                    work(&mut harness)
                        .unwrap_or_else(|error| panic!("{name}, commit {at} of {commits}, {how:?}: {error}"));
                    let (messages, context, generation, rows, snapshots) = said(&harness.memory);
                    let expected = said(&whole.memory);
                    assert_eq!(messages, expected.0, "{name}, commit {at}, {how:?}");
                    assert_eq!(context.len(), expected.1.len(), "{name}, commit {at}, {how:?}");
                    assert_eq!(
                        (generation, rows, snapshots),
                        (expected.2, expected.3, expected.4),
                        "{name} {at}"
                    );
                    assert_eq!(marked(&harness), rows, "{name}, commit {at}, {how:?}: as far as the log is");
                    harness.append(&[user("it goes on")]);
                    harness.stored();
                }
            }
        }
    }
}

#[test]
fn indeterminate_the_first_append_takes_its_name_once_and_moves_the_watermark() {
    for how in [How::Lost, How::Fail(Code::Indeterminate)] {
        let mut harness = Harness::new(json!({ "advanced": { "watermark": true } }));
        harness.host.fault(1, is_commit, how);
        harness.append(&talk(2, 5));
        assert_eq!(harness.stored().messages.len(), 4, "{how:?}");
        assert_eq!(marked(&harness), 4, "{how:?}");
    }
}

/// A store in which another tab writes as soon as the first batch from now on is there, whose answer is then lost.
struct Overtaken {
    memory: Rc<MemoryStore>,
    other: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl Store for Overtaken {
    fn read(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        self.memory.read(keys)
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<(Key, Vec<u8>)>> {
        self.memory.scan(scan)
    }

    fn commit(&self, batch: &Batch) -> Result<()> {
        self.memory.commit(batch)?;
        let Some(other) = self.other.take() else { return Ok(()) };
        other();
        Err(Error::new(Code::Indeterminate, "no answer"))
    }
}

#[test]
fn indeterminate_a_sync_that_another_tab_came_into_says_where_the_histories_part() {
    let memory = Rc::<MemoryStore>::default();
    let store = Rc::new(Overtaken { memory: Rc::clone(&memory), other: RefCell::default() });
    let mut host = Host::new(Rc::clone(&store) as _, "a");
    // Two messages for each batch.
    let (session, _) =
        host.run(Session::open(settings(json!({ "onDiverged": "throw" })), Some("s".into()), 7)).unwrap();
    let history = talk(3, 5);
    host.run(session.sync(0, history[..2].to_vec())).unwrap();
    let mut other = Harness::over(Rc::clone(&memory), "b", json!({}));
    store.other.replace(Some(Box::new(move || other.append(&[user("from another tab")]))));
    let error = host.run(session.sync(0, history.clone())).unwrap_err();
    assert_eq!((error.code, error.index), (Code::Diverged, Some(4)));
    let messages = audit("s", &memory.rows()).unwrap().messages;
    let expected: Vec<_> = history[..4].iter().map(ToString::to_string).collect();
    assert_eq!(messages[..4], expected);
    assert!(messages.len() == 5 && messages[4].contains("from another tab"), "{messages:?}");
}

#[test]
fn indeterminate_a_fork_is_there_once_however_many_batches_it_takes() {
    for most in [12, 10_000] {
        for at in 1..=8 {
            for how in [How::Lost, How::Fail(Code::Indeterminate)] {
                let mut harness = worked(most);
                let before = harness.memory.rows().len();
                harness.host.fault(at, is_commit, how);
                let (child, _) = harness.host.run(harness.session.fork(Some("child".into()))).unwrap();
                assert!(!audit("child", &harness.memory.rows()).unwrap().messages.is_empty());
                harness.host.run(child.delete()).unwrap();
                assert_eq!(harness.memory.rows().len(), before, "{most}, commit {at}, {how:?}");
            }
        }
    }
}

#[test]
fn indeterminate_a_deletion_leaves_nothing_however_many_batches_it_takes() {
    for most in [12, 10_000] {
        for at in 1..=8 {
            for how in [How::Lost, How::Fail(Code::Indeterminate)] {
                let mut harness = worked(most);
                harness.host.fault(at, is_commit, how);
                harness.host.run(harness.session.delete()).unwrap();
                assert!(harness.memory.rows().is_empty(), "{most}, commit {at}, {how:?}");
            }
        }
    }
}

#[test]
fn indeterminate_an_import_is_there_once_however_many_batches_it_takes() {
    let mut source = worked(10_000);
    let mut at = Default::default();
    let mut text = Vec::new();
    loop {
        let (lines, next) = source.host.run(source.session.export(at)).unwrap();
        text.extend(lines);
        match next {
            Some(next) => at = next,
            None => break,
        }
    }
    for most in [12, 10_000] {
        for at in 1..=6 {
            for how in [How::Lost, How::Fail(Code::Indeterminate)] {
                let mut harness = Harness::new(json!({}));
                harness.host.fault(at, is_commit, how);
                let open = Importer::open(settings(json!({})), Some("copy".into()), Restore::Context, most);
                let importer = harness.host.run(open).unwrap();
                harness.host.run(importer.feed(text.clone())).unwrap();
                harness.host.run(importer.finish()).unwrap();
                let found = audit("copy", &harness.memory.rows()).unwrap();
                assert_eq!(found.messages, source.stored().messages, "{most}, commit {at}, {how:?}");
                assert_eq!(Rc::strong_count(&harness.memory), 2);
            }
        }
    }
}
