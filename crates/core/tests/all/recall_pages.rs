//! Pages of terms: derived of the log, made again where they are not there, and never needed.

use crate::support::*;
use context_compactor_core::keys::batch::{Key, KeyPart};
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::recall::Hit;
use context_compactor_core::session::Session;
use context_compactor_core::session::audit::audit;
use context_compactor_core::step::Effect;
use context_compactor_core::wire::Format;
use context_compactor_core::{Code, Result};
use context_compactor_store_tests::conversation::{assistant, exchange, user};
use context_compactor_store_tests::{How, MemoryStore};
use serde_json::json;
use std::cell::RefCell;
use std::rc::Rc;

fn is_page(key: &Key) -> bool {
    matches!(key.0.as_slice(), [_, _, KeyPart::Text(name), KeyPart::Number(_)] if name == "terms")
}

fn pages(memory: &MemoryStore) -> Vec<(Key, Vec<u8>)> {
    memory.rows().into_iter().filter(|(key, _)| is_page(key)).collect()
}

fn writes_pages(effect: &Effect) -> bool {
    matches!(effect, Effect::Commit(batch) if !has(batch, "log/") && batch.puts.iter().any(|(key, _)| is_page(key)))
}

/// Text of so many words, out of a few thousand.
fn words(rng: &mut fastrand::Rng, count: usize) -> String {
    let word = |_| match rng.u32(..4_000) {
        n @ 0..1_000 => format!("common{} ", n % 40),
        n @ 1_000..1_200 => format!("数据{} ", n % 50),
        n @ 1_200..1_600 => format!("src/part{}/file{n}.rs:{} ", n % 7, n % 300),
        n => format!("word{n} "),
    };
    (0..count).map(word).collect()
}

const QUERIES: [&str; 5] =
    ["common3 word2000", "file1203.rs", "数据7", "common0 common1 common2", "the result of word3999"];

impl Harness {
    fn find(&mut self, query: &str) -> Result<Vec<Hit>> {
        self.host.run(self.session.search(query.into(), 20))
    }

    fn appends(&mut self, rng: &mut fastrand::Rng, format: Format, nth: usize) {
        let question = words(rng, 30);
        let mut bodies = vec![user(&question)];
        for call in 0..rng.usize(..4) {
            let (count, id) = (rng.usize(..4_000), format!("call_{nth}_{call}"));
            bodies.extend(exchange(format, &id, &words(rng, count)));
        }
        bodies.push(assistant(&words(rng, 60)));
        self.append(&bodies);
    }
}

/// What a new tab finds with the pages that there are is what it finds without any, and they are what the log makes of
/// itself.
fn check(memory: &Rc<MemoryStore>, id: &str) {
    audit(id, &memory.rows()).unwrap();
    let bare = Rc::new(MemoryStore::clone(memory));
    for (key, _) in pages(&bare) {
        bare.damage(&key, None);
    }
    let copy = Rc::new(MemoryStore::clone(memory));
    let found = |memory: Rc<MemoryStore>| {
        let mut harness = Harness::over(memory, "check", json!({}));
        let opened = harness.host.run(Session::open(settings(json!({})), Some(id.into()), 10_000));
        harness.session = opened.unwrap().0;
        let all = QUERIES.map(|query| harness.find(query).unwrap());
        let again = QUERIES.map(|query| harness.find(query).unwrap());
        assert_eq!(all, again);
        let verified = harness.host.run(harness.session.verify()).unwrap();
        assert!(verified.ok, "{:?}", verified.problems);
        audit(id, &harness.memory.rows()).unwrap();
        all
    };
    assert_eq!(found(copy), found(bare));
}

#[test]
fn a_search_with_pages_finds_what_one_without_finds_after_any_history() {
    let mut written = [0; 2];
    for seed in 0..4 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let format = FORMATS[seed as usize % FORMATS.len()];
        let options = json!({ "compactAt": { "tokens": 6_000 }, "contextWindow": 200_000 });
        let memory: Rc<MemoryStore> = Rc::default();
        let mut tabs = ["a", "b"].map(|name| Harness::over(memory.clone(), name, options.clone()));
        for step in 0..40 {
            let tab = usize::from(rng.u32(..12) == 0);
            let harness = &mut tabs[tab];
            match rng.u32(..20) {
                0..10 => harness.appends(&mut rng, format, step),
                10 | 11 => drop(harness.prepare()),
                12 => drop(harness.host.run(harness.session.compact(None))),
                13 => drop(harness.host.run(harness.session.snapshot(SnapshotPurpose::Rollback))),
                14 => drop(harness.host.run(harness.session.rewind(rng.usize(..=step)))),
                15 => {
                    let pages = pages(&memory);
                    if let Some((key, bytes)) = pages.get(rng.usize(..pages.len().max(1))) {
                        let mut damaged = bytes.clone();
                        let at = rng.usize(..damaged.len());
                        damaged[at] ^= 1 << rng.u32(..8);
                        memory.damage(key, rng.bool().then_some(damaged));
                    }
                }
                16 => {
                    // Whatever becomes of the pages, a search answers.
                    let how = [How::Fail(Code::QuotaExceeded), How::Fail(Code::Conflict), How::Lost];
                    harness.host.fault(1, writes_pages, how[rng.usize(..3)]);
                    drop(harness.find(QUERIES[0]).unwrap());
                }
                17 => {
                    count(harness, &mut written);
                    *harness = Harness::over(memory.clone(), &format!("t{step}"), options.clone());
                }
                _ => drop(harness.find(QUERIES[1]).unwrap()),
            }
            if step % 10 == 9 {
                check(&memory, "s");
            }
        }
        tabs.iter().for_each(|tab| count(tab, &mut written));
        let harness = &mut tabs[0];
        harness.host.run(harness.session.fork(Some("fork".into()))).unwrap();
        check(&memory, "fork");
    }
    assert!(written[0] > 10 && written[1] > 2, "{written:?}");
}

/// Adds the pages that a tab wrote: with an append, and with a search.
fn count(tab: &Harness, written: &mut [usize; 2]) {
    for batch in &tab.host.seen.commits {
        let pages = batch.puts.iter().filter(|(key, _)| is_page(key)).count();
        written[usize::from(!has(batch, "log/"))] += pages;
    }
}

/// Positions in the log from which on a search reads it.
fn log_scans(harness: &mut Harness, query: &str) -> Vec<u64> {
    let scans = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&scans);
    harness.host.meanwhile = Box::new(move |effect| {
        if let Effect::Scan(scan) = effect
            && scan.prefix.to_string().starts_with("log/")
        {
            seen.borrow_mut().push(match scan.after.as_ref().and_then(|key| key.0.last()) {
                Some(KeyPart::Number(after)) => after + 1,
                _ => 0,
            });
        }
    });
    harness.find(query).unwrap();
    harness.host.meanwhile = Box::new(|_| {});
    scans.take()
}

#[test]
fn an_append_writes_pages_and_a_search_reads_no_more_of_the_log_than_is_behind_them() {
    let mut harness = Harness::new(json!({ "contextWindow": 1_000_000 }));
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..50 {
        harness.append(&[user(&words(&mut rng, 500)), assistant("ok")]);
    }
    let written = pages(&harness.memory);
    let log: usize = harness
        .memory
        .rows()
        .iter()
        .filter(|(key, _)| key.to_string().starts_with("log/"))
        .map(|(_, row)| row.len())
        .sum();
    let bytes: usize = written.iter().map(|(_, page)| page.len()).sum();
    assert!(written.len() >= 3 && bytes * 2 < log, "{} pages, {bytes} bytes of {log}", written.len());
    let [Some(KeyPart::Number(last)), Some(KeyPart::Number(second))] =
        [written.len() - 1, 1].map(|nth| written[nth].0.0.last())
    else {
        panic!()
    };
    let mut other = Harness::over(harness.memory.clone(), "b", json!({}));
    for harness in [&mut harness, &mut other] {
        let scans = log_scans(harness, "word2000");
        assert!(scans.len() == 1 && scans[0] > *last, "{scans:?} {last}");
    }
    assert_eq!(pages(&harness.memory), written);

    // A page that is damaged, or was never written, is read from the log once.
    for damage in [None, Some(vec![1, 2, 3])] {
        harness.memory.damage(&written[1].0, damage);
        assert_eq!(log_scans(&mut other, "word2000").first(), Some(second));
        assert_eq!(log_scans(&mut other, "word2000").len(), 1);
        assert_eq!(pages(&harness.memory), written);
    }
    for (key, _) in &written {
        harness.memory.damage(key, None);
    }
    assert_eq!(log_scans(&mut other, "word2000"), [0]);
    assert_eq!(pages(&harness.memory), written);
    assert!(log_scans(&mut harness, "word2000")[0] > *last);
    // Deleting the session deletes them.
    other.host.run(other.session.delete()).unwrap();
    assert!(harness.memory.rows().is_empty());
}

#[test]
fn a_large_message_is_left_to_the_first_search() {
    let mut harness = Harness::new(json!({ "contextWindow": 1_000_000 }));
    let mut rng = fastrand::Rng::with_seed(7);
    harness.append(&[user("go")]);
    harness.append(&exchange(Format::OpenaiChat, "a", &format!("{} needle", "lorem ipsum ".repeat(30_000))));
    harness.append(&[assistant(&words(&mut rng, 9_000))]);
    let first = |harness: &Harness| pages(&harness.memory).first().map(|(key, _)| key.0.last().cloned());
    assert_eq!(first(&harness), Some(Some(KeyPart::Number(3))));
    assert_eq!(log_scans(&mut harness, "needle"), [0]);
    assert_eq!(first(&harness), Some(Some(KeyPart::Number(0))));
    assert_eq!(log_scans(&mut harness, "needle"), [0; 0]);
    assert_eq!(harness.find("needle").unwrap()[0].seq, 2);
    harness.stored();
}

#[test]
fn pages_of_messages_that_are_gone_are_gone() {
    let mut harness = Harness::new(json!({ "contextWindow": 1_000_000 }));
    let mut rng = fastrand::Rng::with_seed(7);
    let needle = |nth: u8| format!("needle{}{}", char::from(b'a' + nth / 26), char::from(b'a' + nth % 26));
    for nth in 0..40 {
        harness.append(&[user(&format!("{} {}", needle(nth), words(&mut rng, 500))), assistant("ok")]);
    }
    assert!(pages(&harness.memory).len() >= 3);
    for (key, _) in harness.memory.rows() {
        if matches!(key.0.as_slice(), [KeyPart::Text(table), _, KeyPart::Number(60..)] if table == "log") {
            harness.memory.damage(&key, None);
        }
    }
    let mut harness = Harness::over(harness.memory.clone(), "b", json!({ "contextWindow": 1_000_000 }));
    assert_eq!(pages(&harness.memory), []);
    for nth in 0..20 {
        harness.append(&[user(&format!("{} {}", needle(nth + 50), words(&mut rng, 500))), assistant("ok")]);
    }
    assert_eq!(harness.find(&needle(35)).unwrap(), []);
    assert_eq!(harness.find(&needle(25)).unwrap()[0].seq, 50);
    assert_eq!(harness.find(&needle(69)).unwrap().len(), 1);
    check(&harness.memory, "s");
}

#[test]
fn i9_a_page_that_is_not_of_its_messages_is_told() {
    let mut harness = Harness::new(json!({ "contextWindow": 1_000_000 }));
    let mut rng = fastrand::Rng::with_seed(7);
    let mut other = Harness::new(json!({ "contextWindow": 1_000_000 }));
    for _ in 0..20 {
        harness.append(&[user(&words(&mut rng, 500))]);
        other.append(&[user(&words(&mut rng, 500))]);
    }
    let (key, _) = pages(&harness.memory).remove(0);
    let (_, foreign) = pages(&other.memory).remove(0);
    harness.memory.damage(&key, Some(foreign));
    let verified = harness.host.run(harness.session.verify()).unwrap();
    assert!(verified.problems.iter().any(|problem| problem.starts_with("I9: ")), "{:?}", verified.problems);
    let error = audit("s", &harness.memory.rows()).unwrap_err();
    assert!(error.message.starts_with("I9: "), "{error}");
}

#[test]
fn f39_a_page_inside_another_is_passed_over() {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut harness = Harness::new(json!({ "contextWindow": 1_000_000 }));
    for _ in 0..50 {
        harness.append(&[user(&words(&mut rng, 500)), assistant("ok")]);
    }
    // Larger messages make pages of fewer: the second of those is of messages 4 to 7.
    let mut other = Harness::new(json!({ "contextWindow": 1_000_000 }));
    for nth in 0..8 {
        other.append(&[user(&format!("large{nth} {}", "lorem ipsum ".repeat(1_500)))]);
    }
    let written = pages(&harness.memory);
    let (small, inner) = pages(&other.memory).remove(1);
    let (Some(KeyPart::Number(first)), Some(KeyPart::Number(next)), Some(KeyPart::Number(last))) = (
        small.0.last().cloned(),
        written[1].0.0.last().cloned(),
        written[written.len() - 1].0.0.last().cloned(),
    ) else {
        panic!()
    };
    assert!(first > 0 && 8 < next, "{first} {next}");
    let found = harness.find("word2000").unwrap();
    let mut key = written[0].0.clone();
    *key.0.last_mut().unwrap() = KeyPart::Number(first);
    harness.memory.damage(&key, Some(inner));
    let mut tab = Harness::over(harness.memory.clone(), "b", json!({ "contextWindow": 1_000_000 }));
    let scans = log_scans(&mut tab, "word2000");
    assert!(scans.len() == 1 && scans[0] > last, "only what is behind the pages is read: {scans:?} {last}");
    assert_eq!(tab.find("word2000").unwrap(), found, "and nothing is counted twice");
}
