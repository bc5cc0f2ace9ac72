//! Sessions of older schema versions: backed up, migrated when they are opened, restorable; newer ones refused.

use crate::support::transcripts::{archive, lines};
use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::Fate;
use context_compactor_core::keys::batch::{Batch, Durability, Key, KeyPart, keys};
use context_compactor_core::log::SCHEMA;
use context_compactor_core::session::Session;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{body, user};
use context_compactor_store_tests::{Host, How, MemoryStore, Store};
use serde_json::{Value, json};
use std::rc::Rc;

/// Sessions with offloads and a summary, as a release of the schema wrote them.
const V100: &str = include_str!("../../../../tests/fixtures/session-v100.json");
const V101: &str = include_str!("../../../../tests/fixtures/session-v101.json");

fn fixture() -> Value {
    serde_json::from_str(V100).unwrap()
}

fn key(parts: &Value) -> Key {
    let part = |part: &Value| match part.as_u64() {
        Some(number) => KeyPart::Number(number),
        None => KeyPart::Text(part.as_str().unwrap().into()),
    };
    Key(parts.as_array().unwrap().iter().map(part).collect())
}

/// A store that the old release's commits were made in.
pub(crate) fn old_store() -> Rc<MemoryStore> {
    store_of(&fixture())
}

fn store_of(fixture: &Value) -> Rc<MemoryStore> {
    let memory = MemoryStore::default();
    for commit in fixture["commits"].as_array().unwrap() {
        let puts = commit["puts"].as_array().unwrap().iter();
        let puts = puts.map(|put| (key(&put[0]), put[1].as_str().unwrap().as_bytes().to_vec())).collect();
        let deletes = commit["deletes"].as_array().into_iter().flatten().map(key).collect();
        let batch = Batch { expect: Vec::new(), puts, deletes, durability: Durability::Strict };
        memory.commit(&batch).unwrap();
    }
    Rc::new(memory)
}

/// The session's row and the backup beside it.
fn rows(memory: &MemoryStore) -> (Key, Value, Option<Vec<u8>>) {
    let of = |length| {
        let is =
            |(key, _): &(Key, Vec<u8>)| key.0[0] == KeyPart::Text("sessions".into()) && key.0.len() == length;
        memory.rows().into_iter().find(is)
    };
    let (key, row) = of(2).unwrap();
    (key, serde_json::from_slice(&row).unwrap(), of(4).map(|(_, bytes)| bytes))
}

fn settings_of_old() -> Value {
    json!({ "compactAt": { "tokens": 7_000 } })
}

#[test]
fn s5_18_a_session_of_schema_100_is_backed_up_and_migrated_when_it_is_opened() {
    let memory = old_store();
    let (session, before, none) = rows(&memory);
    assert_eq!((before["v"].as_u64(), none), (Some(100), None));
    let old = memory.read(&[session]).unwrap().remove(0).unwrap();

    let mut harness = Harness::over(Rc::clone(&memory), "b", settings_of_old());
    let (_, row, backup) = rows(&memory);
    assert_eq!(row["v"], SCHEMA);
    assert_eq!(row["compressions"], 1, "one of its three views is a summary");
    let mut anew = Harness::over(Rc::default(), "c", settings_of_old());
    let messages: Vec<_> = fixture()["messages"].as_array().unwrap().iter().map(body).collect();
    anew.append(&messages);
    let total = harness.session.metadata().unwrap().total_tokens;
    assert_eq!(total, anew.session.metadata().unwrap().total_tokens, "all messages are counted");
    assert_eq!(backup.unwrap(), old, "the backup is the row byte for byte");
    let fixture = fixture();
    assert_eq!(Value::from(harness.sent()), fixture["context"], "the same messages are sent");
    assert_eq!(Value::from(harness.context()), fixture["context"]);
    let stored: Vec<Value> =
        harness.stored().messages.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    assert_eq!(Value::from(stored), fixture["messages"], "the transcript is whole");
    let references: Vec<String> =
        harness.session.explain().unwrap().into_iter().filter_map(|entry| entry.reference).collect();
    assert!(references.len() > 4);
    for reference in references {
        assert!(harness.read(&reference).starts_with("result "));
    }
    // It goes on as any other.
    harness.append(&[user("go on")]);
    assert!(harness.compact().success);
    assert_eq!(rows(&memory).1["compressions"], 2);
    let mut again = Harness::over(Rc::clone(&memory), "c", settings_of_old());
    assert_eq!(again.sent(), harness.sent());
    harness.host.run(harness.session.delete()).unwrap();
    assert!(memory.rows().is_empty(), "the backup goes with the session");
}

#[test]
fn s5_18_whatever_happens_on_the_way_the_store_holds_the_old_session_or_the_new_with_its_backup() {
    use How::{CrashAfter, CrashBefore, Fail, Lost};
    for how in [CrashBefore, CrashAfter, Lost, Fail(Code::QuotaExceeded), Fail(Code::StoreUnavailable)] {
        let memory = old_store();
        let before = memory.rows();
        let mut host = Host::new(Rc::clone(&memory) as _, "b");
        host.fault(1, is_commit, how);
        let open = |host: &mut Host| {
            host.try_run(Session::open(settings(settings_of_old()), Some("s".into()), 10_000))
        };
        let opened = open(&mut host);
        match (how, &opened) {
            (CrashBefore | CrashAfter, None) | (Lost, Some(Ok(_))) => {}
            (Fail(code), Some(Err(error))) => assert_eq!(error.code, code),
            _ => panic!("{how:?} ended otherwise"),
        }
        let (_, row, backup) = rows(&memory);
        if matches!(how, CrashAfter | Lost) {
            assert_eq!((row["v"].as_u64(), backup.is_some()), (Some(SCHEMA.into()), true));
        } else {
            assert_eq!(memory.rows(), before, "{how:?} changed nothing");
        }
        let mut harness = Harness::over(memory, "c", settings_of_old());
        assert_eq!(Value::from(harness.sent()), fixture()["context"], "{how:?}");
    }
}

#[test]
fn s5_18_two_tabs_migrate_a_session_once() {
    let memory = old_store();
    let mut host = Host::new(Rc::clone(&memory) as _, "b");
    let other = Rc::clone(&memory);
    let mut done = false;
    host.meanwhile = Box::new(move |effect| {
        if is_commit(effect) && !std::mem::replace(&mut done, true) {
            Harness::over(Rc::clone(&other), "c", settings_of_old());
        }
    });
    let (session, _) =
        host.run(Session::open(settings(settings_of_old()), Some("s".into()), 10_000)).unwrap();
    assert_eq!(rows(&memory).1["ver"], 14, "13 commits of the old release, and one");
    host.run(session.append(vec![user("both go on")])).unwrap();
}

#[test]
fn s5_18_a_backup_puts_the_session_back_until_it_goes_on() {
    let memory = old_store();
    let (_, before, _) = rows(&memory);
    let mut harness = Harness::over(Rc::clone(&memory), "b", settings_of_old());
    let schema = harness.host.run(Session::restore_backup("s".into())).unwrap();
    let (_, mut row, backup) = rows(&memory);
    assert_eq!((schema, backup), (100, None));
    assert_eq!(row["ver"], before["ver"].as_u64().unwrap() + 2, "the store counts two commits more");
    row["ver"] = before["ver"].clone();
    assert_eq!(row, before);
    let none = harness.host.run(Session::restore_backup("s".into())).unwrap_err();
    assert_eq!(none.code, Code::NotFound);
    let none = harness.host.run(Session::restore_backup("other".into())).unwrap_err();
    assert_eq!(none.code, Code::NotFound);

    let mut harness = Harness::over(Rc::clone(&memory), "c", settings_of_old());
    assert_eq!(Value::from(harness.sent()), fixture()["context"]);
    harness.append(&[user("go on")]);
    let late = harness.host.run(Session::restore_backup("s".into())).unwrap_err();
    assert_eq!(late.code, Code::Conflict, "what was said since would be lost");
    assert_eq!(harness.stored().messages.len(), 35);
}

/// The messages of an archive, and how many offloads it has.
fn exported(harness: &mut Harness) -> (Vec<Value>, usize) {
    let lines = lines(&archive(&mut harness.host, &harness.session));
    let of = |kind: &'static str| lines.iter().filter(move |line| line["kind"] == kind);
    (of("message").map(|line| line["body"].clone()).collect(), of("offload").count())
}

#[test]
fn p18_p19_a_session_of_schema_101_opens_verifies_is_searched_exported_and_goes_on() {
    let fixture: Value = serde_json::from_str(V101).unwrap();
    let memory = store_of(&fixture);
    let mut harness = Harness::over(Rc::clone(&memory), "b", settings_of_old());
    let (_, row, backup) = rows(&memory);
    assert_eq!((row["v"].as_u64(), backup.is_some()), (Some(SCHEMA.into()), true));
    let Value::Array(mut messages) = fixture["messages"].clone() else { panic!("messages") };
    assert_eq!(Value::from(harness.sent()), fixture["context"]);
    assert_eq!(harness.stored().messages.len(), messages.len());
    let verified = |harness: &mut Harness| harness.host.run(harness.session.verify()).unwrap().problems;
    assert_eq!(verified(&mut harness), [""; 0]);
    let references = |harness: &Harness| -> Vec<String> {
        let entries = harness.session.explain().unwrap().into_iter();
        entries.flat_map(|entry| entry.reference.into_iter().chain(entry.references)).collect()
    };
    let known = references(&harness);
    assert!(known.len() >= 3, "{known:?}");
    for reference in &known {
        assert!(harness.read(reference).starts_with("result "), "what it stored as a copy is read");
    }
    assert!(!harness.host.run(harness.session.search("question 3".into(), 10)).unwrap().is_empty());
    assert_eq!(exported(&mut harness), (messages.clone(), 3));

    // Its rows and those of this release are one log.
    let rows_before = memory.rows();
    let more = turn(Format::OpenaiChat, 100, 2_000);
    messages.extend(more.iter().map(|body| serde_json::from_str::<Value>(body).unwrap()));
    harness.append(&more);
    harness.append(&talk(8, 400));
    harness.prepare();
    let new: Vec<String> = references(&harness).into_iter().filter(|new| !known.contains(new)).collect();
    assert!(!new.is_empty(), "results of before are offloaded by this release");
    for reference in &new {
        assert!(harness.read(reference).starts_with("result "));
    }
    assert_eq!(verified(&mut harness), [""; 0]);
    let kept = |key: &Key| key.to_string().starts_with("log/") || key.to_string().starts_with("blobs/");
    let now = memory.rows();
    assert!(
        rows_before.iter().filter(|(key, _)| kept(key)).all(|row| now.contains(row)),
        "what was written stays"
    );
    let packed =
        now.iter().filter(|(key, value)| key.to_string().starts_with("log/") && value[0] == 1).count();
    assert!(packed > 20, "{packed}");
    let mut again = Harness::over(Rc::clone(&memory), "c", settings_of_old());
    assert_eq!(again.sent(), harness.sent());
    assert!(exported(&mut again).0.starts_with(&messages));
    // Its snapshot is still there, and taken back.
    let id = again.host.run(again.session.snapshots()).unwrap().remove(0).id;
    again.host.run(again.session.restore(id)).unwrap();
    assert_eq!(verified(&mut again), [""; 0]);
}

/// The session's row with other fields.
fn doctored(over: Value) -> Rc<MemoryStore> {
    let memory = old_store();
    let (key, mut row, _) = rows(&memory);
    for (name, value) in over.as_object().unwrap() {
        row[name] = value.clone();
    }
    memory.damage(&key, Some(row.to_string().into_bytes()));
    memory
}

#[test]
fn s5_18_what_no_release_can_read_is_refused_and_left_alone() {
    for (version, code) in [(300, Code::SchemaTooNew), (1_000, Code::SchemaTooNew), (99, Code::StoreCorrupt)]
    {
        let memory = doctored(json!({ "v": version }));
        let before = memory.rows();
        let mut host = Host::new(Rc::clone(&memory) as _, "b");
        let opened = host.run(Session::open(settings(settings_of_old()), Some("s".into()), 10_000));
        let error = opened.unwrap_err();
        assert_eq!(error.code, code);
        assert!(error.message.contains(&version.to_string()), "{error}");
        assert_eq!(memory.rows(), before);
    }
    // A view that is missing: the session is not half-migrated.
    let memory = old_store();
    let sid = rows(&memory).0;
    let KeyPart::Text(sid) = sid.0[1].clone() else { panic!("a text") };
    memory.damage(&keys::view(&sid, 2), None);
    let before = memory.rows();
    let mut host = Host::new(Rc::clone(&memory) as _, "b");
    let opened = host.run(Session::open(settings(settings_of_old()), Some("s".into()), 10_000));
    assert_eq!(opened.unwrap_err().code, Code::StoreCorrupt);
    assert_eq!(memory.rows(), before);
}

#[test]
fn s5_18_an_app_that_is_rolled_back_keeps_what_a_newer_release_noted() {
    let memory = doctored(json!({ "v": 250, "colour": { "of": ["red", 1] } }));
    let mut harness = Harness::over(Rc::clone(&memory), "b", settings_of_old());
    harness.append(&[user("go on")]);
    let (_, row, backup) = rows(&memory);
    assert_eq!((row["v"].as_u64(), &row["colour"]), (Some(250), &json!({ "of": ["red", 1] })));
    assert_eq!(backup, None);
    assert!(harness.session.explain().unwrap().iter().any(|entry| entry.fate == Fate::Summarised));
}
