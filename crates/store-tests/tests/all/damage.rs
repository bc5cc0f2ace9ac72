//! One damaged row costs one message at most, and never a session (D13, D14): every row of a session, with wrong bytes and
//! as a store reports it, before it is opened and while it is open.

use context_compactor_core::context::Fate;
use context_compactor_core::keys::batch::Key;
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::policy::{Settings, Trigger};
use context_compactor_core::session::Session;
use context_compactor_core::session::transcript::{Export, Importer, Restore};
use context_compactor_core::step::{Loss, LossKind, Notice};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, exchange, user};
use context_compactor_store_tests::host::summary;
use context_compactor_store_tests::{Host, MemoryStore};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::rc::Rc;

const ID: &str = "s";
/// Stands in every message.
const WORD: &str = "everywhere";

fn settings() -> Rc<Settings> {
    let options = json!({
        "preset": "offload", "contextWindow": 64_000, "advanced": { "estimator": "chars4" },
        "summarize": { "call": true }, "compactAt": { "tokens": 2_000 },
        "presetOptions": { "compactTriggerThreshold": 1 }, "keep": { "messages": 4 },
    });
    let text = options.to_string();
    Rc::new(Settings::read(&serde_json::from_str(&text).unwrap()).unwrap())
}

struct Harness {
    memory: Rc<MemoryStore>,
    host: Host,
    session: Session,
}

fn host(memory: &Rc<MemoryStore>, name: &str) -> Host {
    let mut host = Host::new(Rc::clone(memory) as _, name);
    host.summarise = Box::new(|_, _| summary("## Current Status\nThe user asked and the tools answered."));
    host
}

fn copy(of: &MemoryStore) -> Rc<MemoryStore> {
    let memory = MemoryStore::default();
    memory.replace(of);
    Rc::new(memory)
}

impl Harness {
    fn open(memory: &Rc<MemoryStore>, name: &str) -> Harness {
        let mut host = host(memory, name);
        let (session, _) = host.run(Session::open(settings(), Some(ID.into()), 10_000)).unwrap();
        Harness { memory: Rc::clone(memory), host, session }
    }

    fn append(&mut self, bodies: Vec<Body>) {
        self.host.run(self.session.append(bodies)).unwrap();
    }

    fn losses(&self) -> Vec<Loss> {
        let loss = |notice: &Notice| match notice {
            Notice::DataLoss { loss } => Some(loss.clone()),
            _ => None,
        };
        self.host.seen.notices.iter().filter_map(loss).collect()
    }

    /// Indices of the messages of the history, and of those that it says are missing.
    fn history(&mut self) -> (Vec<usize>, Vec<usize>) {
        let (mut found, mut missing, mut next) = (Vec::new(), Vec::new(), None);
        loop {
            let page = self.host.run(self.session.history(next)).unwrap();
            found.extend(page.messages.iter().map(|said| said.index));
            missing.extend(page.gaps.iter().flat_map(|gap| gap.index..gap.index + gap.messages));
            next = page.next;
            if next.is_none() {
                return (found, missing);
            }
        }
    }

    fn archive(&mut self) -> String {
        let (mut bytes, mut next) = (Vec::new(), Some(Export::Begin));
        while let Some(at) = next {
            let (page, then) = self.host.run(self.session.export(at)).unwrap();
            bytes.extend(page);
            next = then;
        }
        String::from_utf8(bytes).unwrap()
    }

    fn markdown(&mut self) -> String {
        let (mut text, mut next) = (String::new(), None);
        loop {
            let page = self.host.run(self.session.markdown(next)).unwrap();
            text.push_str(&page.text);
            next = page.next;
            if next.is_none() {
                return text;
            }
        }
    }

    /// Positions of the messages that a search finds.
    fn search(&mut self) -> BTreeSet<u64> {
        let hits = self.host.run(self.session.search(WORD.into(), 1_000)).unwrap();
        hits.into_iter().map(|hit| hit.seq).collect()
    }
}

/// A hundred messages, as they were appended.
fn plain() -> Rc<MemoryStore> {
    let memory = Rc::default();
    let mut harness = Harness::open(&memory, "made");
    for nth in 0..50 {
        harness.append(vec![
            user(&format!("question {nth} {WORD}")),
            assistant(&format!("answer {nth} {WORD}")),
        ]);
    }
    harness.search();
    memory
}

/// Every kind of row but those in parts: offloads, summaries, a snapshot, a page of terms, a job.
fn rich() -> Rc<MemoryStore> {
    let memory = Rc::default();
    let mut harness = Harness::open(&memory, "made");
    let turn = |nth: usize, chars: usize| {
        let mut bodies = vec![user(&format!("question {nth} {WORD}"))];
        let result = format!("{WORD} result {nth} {}", "abcdefg ".repeat(chars / 8));
        bodies.extend(exchange(Format::OpenaiChat, &format!("call_{nth}"), &result));
        bodies.push(assistant(&format!("answer {nth} {WORD}")));
        bodies
    };
    for nth in 0..3 {
        harness.append(turn(nth, 6_000));
        harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap();
    }
    harness.host.run(harness.session.compact(None)).unwrap();
    harness.host.run(harness.session.snapshot(SnapshotPurpose::Recovery)).unwrap();
    harness.append(turn(3, 12_000));
    harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap();
    for nth in 0..6 {
        harness.append(vec![
            user(&format!("tail {nth} {WORD} {}", "z ".repeat(4_000))),
            assistant(&format!("yes {nth} {WORD}")),
        ]);
    }
    harness.search();
    let keys: Vec<String> = harness.memory.rows().into_iter().map(|(key, _)| key.to_string()).collect();
    for kind in ["meta/", "sessions/", "log/", "views/", "jobs/", "/off_", "/terms/"] {
        assert!(keys.iter().any(|key| key.contains(kind)), "no row of {kind}");
    }
    memory
}

/// A message that is too large for one row.
fn wide() -> Rc<MemoryStore> {
    let memory = Rc::default();
    let mut harness = Harness::open(&memory, "made");
    harness.append(vec![user(&format!("one {WORD}")), assistant(&format!("two {WORD}"))]);
    harness.append(vec![user(&format!("long {WORD} {}", "x".repeat(1_100_000)))]);
    harness.append(vec![assistant(&format!("noted {WORD}"))]);
    memory
}

/// How a row is damaged.
const HOWS: [&str; 3] = ["a bit of it flipped", "it ends early", "the store reports it"];

fn damage(memory: &MemoryStore, key: &Key, how: &str) {
    let mut bytes = memory.rows().into_iter().find(|(known, _)| known == key).unwrap().1;
    let middle = bytes.len() / 2;
    match how {
        "a bit of it flipped" => bytes[middle] ^= 1,
        "it ends early" => bytes.truncate(middle),
        _ => return memory.report_damage(key),
    }
    memory.damage(key, Some(bytes));
}

fn lines(archive: &str, kind: &str) -> Vec<Value> {
    let lines = archive.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["kind"] == kind).collect()
}

fn is_of(key: &Key, table: &str) -> bool {
    key.to_string().starts_with(&format!("{table}/"))
}

/// Everything but the first line's counts of commits, which are those of the store that it is in.
fn compared(archive: &str) -> String {
    let (first, rest) = archive.split_once('\n').unwrap();
    let mut first: Value = serde_json::from_str(first).unwrap();
    first["state"]["ver"] = Value::Null;
    first["state"].as_object_mut().unwrap().remove("losses");
    format!("{first}\n{rest}")
}

/// Two archives that must be one, told by their first lines that differ.
fn assert_same(found: &str, expected: &str) {
    let (found, expected) = (compared(found), compared(expected));
    let differs = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    let cut = |line: &str| line.chars().take(400).collect::<String>();
    assert!(found == expected, "{:?}", differs.map(|(found, expected)| (cut(found), cut(expected))));
}

fn import(archive: &str, name: &str) -> Harness {
    let memory = Rc::default();
    let mut host = host(&memory, name);
    let importer = host.run(Importer::open(settings(), None, Restore::Context, 10_000)).unwrap();
    host.run(importer.feed(archive.as_bytes().to_vec())).unwrap();
    let (session, _, _) = host.run(importer.finish()).unwrap();
    Harness { memory, host, session }
}

/// What must hold of a session of which one row is damaged. Returns how many messages are missing.
fn check(harness: &mut Harness, messages: usize, key: &Key, is_open: bool) -> usize {
    harness.host.seen.notices.clear();
    // Nothing that can be taken out throws, and all of it is the same messages.
    let (found, missing) = harness.history();
    let mut all: Vec<usize> = found.iter().chain(&missing).copied().collect();
    all.sort_unstable();
    assert_eq!(all, (0..messages).collect::<Vec<_>>(), "each message is there, or said to be missing");
    assert!(missing.len() <= usize::from(is_of(key, "log") || is_of(key, "blobs")), "{missing:?}");
    let lost = missing.len();
    let archive = harness.archive();
    assert_eq!(lines(&archive, "message").len(), messages - lost);
    let gaps = lines(&archive, "gap").iter().filter_map(|gap| gap["messages"].as_u64()).sum::<u64>();
    assert_eq!(gaps as usize, lost);
    let markdown = harness.markdown();
    let said = missing
        .first()
        .map_or(0, |index| markdown.matches(&format!("[message {index} cannot be read]")).count());
    assert_eq!(said, lost);
    assert_eq!(markdown.matches("\n## ").count(), messages - lost);
    harness.search();
    if lost > 0 {
        let told = harness.losses();
        let of_gap = told
            .iter()
            .filter(|loss| loss.kind == LossKind::Records && loss.index == missing.first().copied());
        assert!(of_gap.count() > 0 && told.iter().all(|loss| loss.seq.is_some()), "{told:?}");
    }
    // What `verify` finds, it lists.
    harness.host.run(harness.session.verify()).unwrap();
    // A copy of it is the same, is opened again, and is still the same.
    let mut again = import(&archive, "import");
    let copied = again.archive();
    let mut reopened = Harness::open(&again.memory, "reopened");
    assert_same(&reopened.archive(), &copied);
    assert_eq!(again.history(), (found.clone(), missing.clone()));
    // What was damaged since the opening is mended by the next one, and so by that of a copy.
    if !is_open || (lost == 0 && !is_of(key, "views")) {
        assert_same(&copied, &archive);
    }
    // It goes on.
    let forked = harness.host.run(harness.session.fork(Some("fork".into()))).unwrap().0;
    harness.host.run(forked.delete()).unwrap();
    harness.append(vec![user("go on"), assistant("on it goes")]);
    harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap();
    harness.host.run(harness.session.compact(None)).unwrap();
    harness.host.run(harness.session.snapshots()).unwrap();
    harness.host.run(harness.session.checkpoint_records()).unwrap();
    harness.host.run(Session::list()).unwrap();
    assert_eq!(harness.history().0.len(), found.len() + 2);
    let mut next = Harness::open(&harness.memory, "next");
    assert_eq!(next.history().0.len(), found.len() + 2);
    lost
}

fn every_row(made: &MemoryStore, of: impl Fn(usize, &Key) -> bool) {
    let messages = {
        let mut harness = Harness::open(&copy(made), "counted");
        harness.history().0.len()
    };
    let keys: Vec<Key> = made.rows().into_iter().map(|(key, _)| key).collect();
    let keys = keys.into_iter().enumerate().filter(|(nth, key)| of(*nth, key)).map(|(_, key)| key);
    for key in keys {
        for how in HOWS {
            for is_open in [false, true] {
                let at = format!(
                    "{key}, {how}, {}",
                    if is_open { "while it is open" } else { "before it is opened" }
                );
                // Named where anything of it panics.
                let _named = Named(at);
                let memory = copy(made);
                let mut harness = if is_open {
                    let harness = Harness::open(&memory, "tab");
                    damage(&memory, &key, how);
                    harness
                } else {
                    damage(&memory, &key, how);
                    Harness::open(&memory, "tab")
                };
                let lost = check(&mut harness, messages, &key, is_open);
                if !is_open && lost > 0 {
                    let explained = harness.session.explain().unwrap();
                    let fate = explained.iter().filter(|entry| entry.fate == Fate::Dropped).count();
                    let summarised = explained.iter().filter(|entry| entry.fate == Fate::Summarised).count();
                    assert!(fate > 0 || summarised > 0);
                }
                harness.host.run(harness.session.delete()).unwrap();
                assert_eq!(memory.rows(), [], "nothing is left of a session that was deleted");

                // Deleted at once, with the damage in it.
                let memory = copy(made);
                let mut harness = Harness::open(&memory, "tab");
                damage(&memory, &key, how);
                harness.host.run(harness.session.delete()).unwrap();
                assert_eq!(memory.rows(), [], "nothing is left of a session that was deleted");

                // The same by its name, without a handle.
                let memory = copy(made);
                damage(&memory, &key, how);
                for most in [4, 1_000] {
                    let memory = copy(&memory);
                    let mut host = host(&memory, "deleting");
                    host.run(Session::delete_named(ID.into(), most)).unwrap();
                    assert_eq!(memory.rows(), [], "nothing is left, in batches of {most}");
                }
            }
        }
    }
}

struct Named(String);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("damaged: {}", self.0);
        }
    }
}

#[test]
fn d3_d13_d14_each_of_a_hundred_messages_damaged_costs_that_message() {
    let made = plain();
    every_row(&made, |_, key| is_of(key, "log"));
}

#[test]
fn d13_d14_every_other_row_of_a_plain_session_damaged_costs_nothing() {
    let made = plain();
    every_row(&made, |_, key| !is_of(key, "log"));
}

#[test]
fn d13_d14_every_row_of_a_session_with_summaries_and_offloads_damaged_costs_one_message_at_most() {
    let made = rich();
    every_row(&made, |_, _| true);
}

#[test]
fn d13_d14_a_damaged_part_of_a_large_message_costs_that_message() {
    let made = wide();
    let parts = made.rows().into_iter().filter(|(key, _)| key.to_string().contains("/row_")).count();
    assert_eq!(parts, 2);
    every_row(&made, |_, key| is_of(key, "blobs") || key.to_string().ends_with("/2"));
}

#[test]
fn d14_history_tells_the_gap_and_markdown_and_archive_say_where_it_is() {
    let memory = plain();
    let key = memory.rows().into_iter().map(|(key, _)| key).filter(|key| is_of(key, "log")).nth(40).unwrap();
    damage(&memory, &key, HOWS[2]);
    let mut harness = Harness::open(&memory, "tab");
    let losses = harness.losses();
    assert_eq!(
        losses.iter().map(|loss| (loss.kind, loss.lost_records)).collect::<Vec<_>>(),
        [(LossKind::Records, Some(1))]
    );
    let page = harness.host.run(harness.session.history(None)).unwrap();
    let gaps: Vec<_> = page.gaps.iter().map(|gap| (gap.seq, gap.count, gap.index, gap.messages)).collect();
    assert_eq!(gaps, [(40, 1, 40, 1)]);
    let archive = harness.archive();
    let [gap] = lines(&archive, "gap").try_into().unwrap();
    assert_eq!((&gap["seq"], &gap["count"], &gap["index"]), (&json!(40), &json!(1), &json!(40)));
    assert!(harness.markdown().contains("\n[message 40 cannot be read]\n"));
    let found = harness.search();
    assert_eq!(found.len(), 99);
    assert!(!found.contains(&40));
    let entry = harness.session.explain().unwrap().into_iter().find(|entry| entry.index == 40).unwrap();
    assert_eq!(entry.fate, Fate::Dropped);
    assert!(entry.reason.unwrap().contains("the store lost it"));
    assert_eq!(
        harness.host.run(harness.session.verify()).unwrap().problems,
        ["I1: log row 40 is not what was written"]
    );
}

#[test]
fn d14_an_archive_with_a_gap_restored_from_its_messages_has_the_others_and_their_pins() {
    let memory = Rc::default();
    let mut harness = Harness::open(&memory, "tab");
    for nth in 0..6 {
        harness.append(vec![
            user(&format!("question {nth} {WORD}")),
            assistant(&format!("answer {nth} {WORD}")),
        ]);
    }
    harness.host.run(harness.session.pin(2)).unwrap();
    harness.host.run(harness.session.pin(6)).unwrap();
    harness.host.run(harness.session.rewind(10)).unwrap();
    let key = memory.rows().into_iter().map(|(key, _)| key).filter(|key| is_of(key, "log")).nth(4).unwrap();
    damage(&memory, &key, HOWS[0]);
    let mut harness = Harness::open(&memory, "again");
    let archive = harness.archive();
    let memory = Rc::default();
    let mut host = host(&memory, "import");
    let importer = host.run(Importer::open(settings(), None, Restore::Transcript, 10_000)).unwrap();
    host.run(importer.feed(archive.as_bytes().to_vec())).unwrap();
    let (session, _, report) = host.run(importer.finish()).unwrap();
    assert_eq!(report.messages, 11);
    assert_eq!(report.skipped.get("gap"), Some(&1));
    let mut harness = Harness { memory, host, session };
    let verified = harness.host.run(harness.session.verify()).unwrap();
    assert!(verified.ok, "{verified:?}");
    assert_eq!(harness.history().0.len(), 11);
    let behind = harness.session.branch().unwrap().behind;
    assert_eq!(behind, [(9, 11)], "what was left behind is where it is now");
    // The pin of message 6 is that of message 5 now: a summary holds it word for word.
    harness.host.run(harness.session.compact(None)).unwrap();
    let entry = |index: usize| {
        harness.session.explain().unwrap().into_iter().find(|entry| entry.index == index).unwrap()
    };
    assert!(
        entry(2).fate == Fate::Verbatim && entry(5).fate == Fate::Verbatim,
        "{:?}",
        harness.session.explain()
    );
}
