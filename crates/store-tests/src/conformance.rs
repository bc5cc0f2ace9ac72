//! What a session relies on in a store: the native counterpart of the package's `storeConformance`.

use crate::store::Store;
use context_compactor_core::Code;
use context_compactor_core::keys::batch::{Batch, Durability, Key, KeyPart};
use context_compactor_core::step::Scan;

/// Runs every check, each on a store of its own that `factory` makes.
///
/// # Panics
///
/// When a check fails, naming what was expected.
pub fn run<S: Store>(factory: impl Fn() -> S) {
    for check in CHECKS {
        check(&factory());
    }
}

const CHECKS: &[fn(&dyn Store)] = &[
    reads_in_the_order_of_the_keys,
    replaces_and_deletes_in_one_batch,
    versions_count_the_commits_that_put_a_key,
    a_deleted_key_begins_again,
    a_conflict_changes_nothing,
    a_key_written_twice_is_refused,
    exactly_one_of_many_conflicting_commits_wins,
    orders_numbers_by_value_then_texts,
    hostile_texts_stay_apart,
    a_prefix_ends_at_a_part,
    pages_are_whole_and_in_order,
    pages_stop_before_their_bytes,
    after_may_be_a_key_that_is_gone,
    every_byte_comes_back,
];

fn key(parts: &[&str]) -> Key {
    let part = |part: &&str| match part.parse() {
        Ok(number) => KeyPart::Number(number),
        Err(_) => KeyPart::Text((*part).into()),
    };
    Key(parts.iter().map(part).collect())
}

fn batch(expect: &[(&Key, Option<u64>)], puts: &[(&Key, &str)], deletes: &[&Key]) -> Batch {
    Batch {
        expect: expect.iter().map(|(key, version)| ((*key).clone(), *version)).collect(),
        puts: puts.iter().map(|(key, value)| ((*key).clone(), value.as_bytes().to_vec())).collect(),
        deletes: deletes.iter().map(|key| (*key).clone()).collect(),
        durability: Durability::Strict,
    }
}

fn put(store: &dyn Store, rows: &[(&Key, &str)]) {
    store.commit(&batch(&[], rows, &[])).expect("a batch with no expectation is written");
}

fn get(store: &dyn Store, key: &Key) -> Option<String> {
    let value = store.read(std::slice::from_ref(key)).expect("a read").remove(0);
    value.map(|bytes| String::from_utf8(bytes).expect("text"))
}

fn refused(store: &dyn Store, batch: &Batch, code: Code) {
    let error = store.commit(batch).expect_err("the batch must be refused");
    assert_eq!(error.code, code, "{error}");
}

fn scan(prefix: &[&str]) -> Scan {
    Scan {
        prefix: key(prefix),
        after: None,
        limit: 1_000,
        max_bytes: 1 << 20,
        reverse: false,
        keys_only: false,
    }
}

fn keys(store: &dyn Store, scan: &Scan) -> Vec<String> {
    store.scan(scan).expect("a scan").into_iter().map(|(key, _)| key.to_string()).collect()
}

fn pages(store: &dyn Store, mut scan: Scan) -> Vec<Vec<(Key, Vec<u8>)>> {
    let mut pages = Vec::new();
    loop {
        let page = store.scan(&scan).expect("a scan");
        let Some((last, _)) = page.last() else { return pages };
        scan.after = Some(last.clone());
        pages.push(page);
    }
}

fn reads_in_the_order_of_the_keys(store: &dyn Store) {
    let (one, two, none) = (key(&["log", "s", "1"]), key(&["log", "s", "2"]), key(&["log", "s", "3"]));
    put(store, &[(&one, "one"), (&two, "two")]);
    let found = store.read(&[two.clone(), none, one, two]).expect("a read");
    let found: Vec<Option<&[u8]>> = found.iter().map(Option::as_deref).collect();
    assert_eq!(found, [Some(&b"two"[..]), None, Some(b"one"), Some(b"two")]);
    assert_eq!(store.read(&[]).expect("a read of nothing"), Vec::<Option<Vec<u8>>>::new());
}

fn replaces_and_deletes_in_one_batch(store: &dyn Store) {
    let (kept, gone, none) = (key(&["log", "s", "1"]), key(&["log", "s", "2"]), key(&["log", "s", "3"]));
    put(store, &[(&kept, "old"), (&gone, "x")]);
    store.commit(&batch(&[], &[(&kept, "new")], &[&gone, &none])).expect("a batch");
    assert_eq!((get(store, &kept).as_deref(), get(store, &gone)), (Some("new"), None));
    store.commit(&batch(&[], &[], &[])).expect("an empty batch");
}

fn versions_count_the_commits_that_put_a_key(store: &dyn Store) {
    let row = key(&["sessions", "s"]);
    put(store, &[(&row, "1")]);
    put(store, &[(&row, "2")]);
    store.commit(&batch(&[(&row, Some(2))], &[(&row, "3")], &[])).expect("version 2");
    // A commit that does not put the key does not count.
    store.commit(&batch(&[(&row, Some(3))], &[(&key(&["meta", "x"]), "x")], &[])).expect("version 3");
    put(store, &[(&row, "4")]);
    refused(store, &batch(&[(&row, Some(3))], &[(&row, "late")], &[]), Code::Conflict);
    store.commit(&batch(&[(&row, Some(4))], &[], &[])).expect("version 4");
}

fn a_deleted_key_begins_again(store: &dyn Store) {
    let row = key(&["sessions", "s"]);
    put(store, &[(&row, "1")]);
    put(store, &[(&row, "2")]);
    store.commit(&batch(&[], &[], &[&row])).expect("a delete");
    refused(store, &batch(&[(&row, Some(2))], &[], &[]), Code::Conflict);
    store.commit(&batch(&[(&row, None)], &[(&row, "new")], &[])).expect("the key must not exist");
    refused(store, &batch(&[(&row, None)], &[(&row, "again")], &[]), Code::Conflict);
    store.commit(&batch(&[(&row, Some(1))], &[], &[])).expect("version 1 again");
}

fn a_conflict_changes_nothing(store: &dyn Store) {
    let (row, log) = (key(&["sessions", "s"]), key(&["log", "s", "0"]));
    put(store, &[(&row, "1"), (&log, "kept")]);
    let late = batch(&[(&row, Some(7))], &[(&row, "2"), (&key(&["log", "s", "1"]), "new")], &[&log]);
    refused(store, &late, Code::Conflict);
    assert_eq!((get(store, &row).as_deref(), get(store, &log).as_deref()), (Some("1"), Some("kept")));
    assert_eq!(keys(store, &scan(&["log", "s"])).len(), 1);
    store.commit(&batch(&[(&row, Some(1))], &[], &[])).expect("the version did not move");
}

fn a_key_written_twice_is_refused(store: &dyn Store) {
    let row = key(&["log", "s", "0"]);
    refused(store, &batch(&[], &[(&row, "a"), (&row, "b")], &[]), Code::InvalidOption);
    refused(store, &batch(&[], &[(&row, "a")], &[&row]), Code::InvalidOption);
    assert_eq!(get(store, &row), None);
}

fn exactly_one_of_many_conflicting_commits_wins(store: &dyn Store) {
    let row = key(&["sessions", "s"]);
    put(store, &[(&row, "start")]);
    let wins = (0..20).filter(|n| {
        let (value, log) = (n.to_string(), key(&["log", "s", &n.to_string()]));
        store.commit(&batch(&[(&row, Some(1))], &[(&row, &value), (&log, &value)], &[])).is_ok()
    });
    assert_eq!(wins.count(), 1);
    assert_eq!(keys(store, &scan(&["log", "s"])).len(), 1);
}

fn orders_numbers_by_value_then_texts(store: &dyn Store) {
    let sorted = ["0", "2", "10", "1099511627776", "", "A", "a", "aa", "b"];
    for part in ["a", "10", "b", "", "2", "aa", "1099511627776", "A", "0"] {
        put(store, &[(&key(&["log", "s", part]), "x")]);
    }
    let expected: Vec<String> = sorted.iter().map(|part| format!("log/s/{part}")).collect();
    assert_eq!(keys(store, &scan(&["log", "s"])), expected);
    let reversed: Vec<String> = expected.iter().rev().cloned().collect();
    assert_eq!(keys(store, &Scan { reverse: true, ..scan(&["log", "s"]) }), reversed);
}

fn hostile_texts_stay_apart(store: &dyn Store) {
    let names =
        ["__proto__", "a/b", "a", "a:b", "a?1", "a?2", "a\0b", "a\0", "[\"a\"]", "%31", "\u{ff5e}", "😀"];
    for name in names {
        put(store, &[(&key(&["blobs", name]), name)]);
    }
    for name in names {
        assert_eq!(get(store, &key(&["blobs", name])).as_deref(), Some(name));
    }
    assert_eq!(get(store, &Key(vec![KeyPart::Text("blobs".into()), KeyPart::Number(1)])), None);
}

fn a_prefix_ends_at_a_part(store: &dyn Store) {
    for parts in
        [&["log", "a"][..], &["log", "a", "1"], &["log", "a", "2", "x"], &["log", "ab", "1"], &["views", "a"]]
    {
        put(store, &[(&key(parts), "x")]);
    }
    assert_eq!(keys(store, &scan(&["log", "a"])), ["log/a", "log/a/1", "log/a/2/x"]);
    assert_eq!(keys(store, &scan(&["log", "a", "2"])), ["log/a/2/x"]);
    assert_eq!(keys(store, &scan(&["log", "none"])), Vec::<String>::new());
}

fn pages_are_whole_and_in_order(store: &dyn Store) {
    for n in 0..25 {
        put(store, &[(&key(&["log", "s", &n.to_string()]), &n.to_string())]);
    }
    put(store, &[(&key(&["log", "r", "0"]), "x"), (&key(&["log", "t", "0"]), "x")]);
    for reverse in [false, true] {
        let pages = pages(store, Scan { limit: 7, reverse, ..scan(&["log", "s"]) });
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [7, 7, 7, 4]);
        let mut found: Vec<usize> = pages
            .concat()
            .into_iter()
            .map(|(_, value)| String::from_utf8(value).expect("text").parse().expect("a number"))
            .collect();
        if reverse {
            found.reverse();
        }
        assert_eq!(found, (0..25).collect::<Vec<_>>());
    }
}

fn pages_stop_before_their_bytes(store: &dyn Store) {
    for (n, size) in [10, 30, 100, 40, 5, 200, 1].into_iter().enumerate() {
        put(store, &[(&key(&["log", "s", &n.to_string()]), &"x".repeat(size))]);
    }
    let pages = pages(store, Scan { max_bytes: 50, ..scan(&["log", "s"]) });
    let sizes: Vec<Vec<usize>> =
        pages.iter().map(|page| page.iter().map(|(_, value)| value.len()).collect()).collect();
    assert_eq!(sizes, [vec![10, 30], vec![100], vec![40, 5], vec![200], vec![1]]);
}

fn after_may_be_a_key_that_is_gone(store: &dyn Store) {
    for n in ["1", "3", "5"] {
        put(store, &[(&key(&["log", "s", n]), "x")]);
    }
    let after = Some(key(&["log", "s", "2"]));
    assert_eq!(keys(store, &Scan { after: after.clone(), ..scan(&["log", "s"]) }), ["log/s/3", "log/s/5"]);
    assert_eq!(keys(store, &Scan { after, reverse: true, ..scan(&["log", "s"]) }), ["log/s/1"]);
}

fn every_byte_comes_back(store: &dyn Store) {
    let row = key(&["blobs", "s", "b", "0"]);
    let bytes: Vec<u8> = (0..=255).chain([0xef, 0xbb, 0xbf, 0xff, 0xed, 0xa0, 0x80, 0]).collect();
    let big = vec![7; 1 << 20];
    for value in [bytes, Vec::new(), big] {
        let puts = vec![(row.clone(), value.clone())];
        let (expect, deletes) = (Vec::new(), Vec::new());
        store.commit(&Batch { expect, puts, deletes, durability: Durability::Relaxed }).expect("a value");
        assert_eq!(store.read(std::slice::from_ref(&row)).expect("a read"), [Some(value)]);
    }
}
