//! The sessions of a damaged store are found by whatever is left of them (D16), and listed as far as they can be read.

use crate::support::*;
use context_compactor_core::keys::batch::Key;
use context_compactor_core::session::{Remains, Session};
use context_compactor_core::step::LossKind;
use context_compactor_store_tests::conversation::user;
use context_compactor_store_tests::{Host, MemoryStore};
use serde_json::json;
use std::rc::Rc;

/// A store with one session of two messages for each id, and their keys: name, row, log.
fn store(ids: &[&str]) -> (Rc<MemoryStore>, Vec<Vec<Key>>) {
    let memory: Rc<MemoryStore> = Rc::default();
    let (mut known, mut keys): (Vec<Key>, _) = (Vec::new(), Vec::new());
    for id in ids {
        let mut host = Host::new(Rc::clone(&memory) as _, id);
        let (session, _) = host.run(Session::open(settings(json!({})), Some((*id).into()), 10_000)).unwrap();
        for text in ["one", "two"] {
            host.run(session.append(vec![user(text)])).unwrap();
        }
        let mut own: Vec<Key> = memory.rows().into_iter().map(|(key, _)| key).collect();
        own.retain(|key| !known.contains(key));
        let table = |name: &str| own.iter().find(|key| key.to_string().starts_with(name)).unwrap().clone();
        keys.push(vec![table("meta/session/"), table("sessions/"), table("log/")]);
        known.extend(own);
    }
    (memory, keys)
}

fn host(memory: &Rc<MemoryStore>) -> Host {
    Host::new(Rc::clone(memory) as _, "salvage")
}

/// One byte of the row's text is another one: what it says can still be read.
fn damage(memory: &MemoryStore, key: &Key, from: &str, to: &str) {
    let (_, bytes) = memory.rows().into_iter().find(|(known, _)| known == key).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains(from), "{text}");
    memory.damage(key, Some(text.replacen(from, to, 1).into_bytes()));
}

fn remains(memory: &Rc<MemoryStore>) -> Vec<(String, Option<LossKind>)> {
    let found: Vec<Remains> = host(memory).run(Session::remains()).unwrap();
    found.into_iter().map(|remains| (remains.id, remains.loss.map(|loss| loss.kind))).collect()
}

fn messages(memory: &Rc<MemoryStore>, id: &str) -> usize {
    let mut host = host(memory);
    let (session, _) = host.run(Session::open(settings(json!({})), Some(id.into()), 10_000)).unwrap();
    host.run(session.history(None)).unwrap().messages.len()
}

#[test]
fn d16_a_session_whose_name_is_gone_is_found_by_its_own_row() {
    let (memory, keys) = store(&["a", "b"]);
    memory.damage(&keys[0][0], None);
    let mut found = remains(&memory);
    found.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(found, [("a".into(), Some(LossKind::Repaired)), ("b".into(), None)]);
    assert_eq!(messages(&memory, "a"), 2);
}

#[test]
fn d16_what_a_damaged_row_says_is_its_name_where_the_key_of_a_name_says_the_same() {
    let (memory, keys) = store(&["a"]);
    damage(&memory, &keys[0][0], "\"sid\":\"", "\"sid\":\"x");
    damage(&memory, &keys[0][1], "\"messages\":2", "\"messages\":3");
    assert_eq!(remains(&memory), [("a".into(), Some(LossKind::Repaired))]);
    assert_eq!(messages(&memory, "a"), 2);

    let (memory, keys) = store(&["a"]);
    memory.damage(&keys[0][0], None);
    damage(&memory, &keys[0][1], "\"messages\":2", "\"messages\":3");
    let found = remains(&memory);
    assert_eq!(found.len(), 1);
    assert!(found[0].0.starts_with("salvaged-"), "nothing vouches for the name of {found:?}");
    assert_eq!(messages(&memory, &found[0].0), 2);
}

#[test]
fn d16_a_name_that_leads_nowhere_is_told_once_and_gives_way_to_the_session_that_is_called_so() {
    let (memory, keys) = store(&["a"]);
    // It leads to another session, of which there are no rows.
    damage(&memory, &keys[0][0], "\"sid\":\"", "\"sid\":\"x");
    assert_eq!(remains(&memory), [("a".into(), Some(LossKind::Repaired))]);

    let (memory, keys) = store(&["a", "b"]);
    memory.damage(&keys[0][1], None);
    for (key, _) in memory.rows() {
        let is_own = key.to_string().contains(&keys[0][1].to_string()["sessions/".len()..]);
        if is_own {
            memory.damage(&key, None);
        }
    }
    let mut found = remains(&memory);
    found.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(found, [("a".into(), Some(LossKind::Session)), ("b".into(), None)]);
}

#[test]
fn d14_a_session_whose_row_is_damaged_is_listed_as_its_log_tells() {
    let (memory, keys) = store(&["a"]);
    damage(&memory, &keys[0][1], "\"messages\":2", "\"messages\":3");
    let listed = host(&memory).run(Session::list()).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].id.as_str(), listed[0].messages), ("a", 2));
    assert!(listed[0].format.is_none() && listed[0].created_at > 0);
    let mut unreadable = listed[0].clone();

    let last = memory.rows().into_iter().rfind(|(key, _)| key.to_string().starts_with("log/")).unwrap().0;
    memory.damage(&last, Some(b"?".to_vec()));
    unreadable.messages = 0;
    (unreadable.created_at, unreadable.updated_at) = (0, 0);
    assert_eq!(host(&memory).run(Session::list()).unwrap(), [unreadable]);
}

/// A name of a release that sealed none leads nowhere, and the session's own row says that it is its: one session, not two.
#[test]
fn d16_a_session_that_its_name_does_not_lead_to_is_listed_once() {
    let (memory, keys) = store(&["a"]);
    let (_, name) = memory.rows().into_iter().find(|(key, _)| *key == keys[0][0]).unwrap();
    let mut name: serde_json::Value = serde_json::from_slice(&name).unwrap();
    name["sid"] = "01HZY3ZQ4GNEVERMADE0000000".into();
    name.as_object_mut().unwrap().remove("seal");
    memory.damage(&keys[0][0], Some(name.to_string().into_bytes()));
    assert_eq!(remains(&memory), [("a".into(), Some(LossKind::Repaired))]);
    assert_eq!(messages(&memory, "a"), 2);
}
