//! What is stored, in bytes by table (`bench/snapshots/stored.json`, written anew with `BLESS=1 cargo test p18_`), and
//! offloads that are references to the log.

use crate::support::transcripts::{archive, lines};
use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::Fate;
use context_compactor_core::keys::batch::{Key, KeyPart};
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::session::audit::{look, view_text};
use context_compactor_core::session::transcript::{Importer, Restore};
use context_compactor_core::step::{Effect, LossKind, Notice};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, exchange, user};
use context_compactor_store_tests::histories::valid;
use context_compactor_store_tests::{Host, MemoryStore};
use fastrand::Rng;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

/// Offloads at 100 tokens and never summarises.
fn offloads() -> Value {
    json!({ "compactAt": { "tokens": 100 }, "presetOptions": { "preserveCount": 1_000 }, "format": "openai-chat" })
}

/// The parts of texts that are stored a second time.
fn copies(memory: &MemoryStore) -> usize {
    let is_copy = |(key, _): &(Key, Vec<u8>)| matches!(key.0.as_slice(), [KeyPart::Text(table), _, KeyPart::Text(of), KeyPart::Number(1..)] if table == "blobs" && of.starts_with("off_"));
    memory.rows().iter().filter(|row| is_copy(row)).count()
}

/// All references of the context, those of summarized messages too.
fn references(session: &Session) -> Vec<String> {
    let entries = session.explain().unwrap().into_iter();
    entries.flat_map(|entry| entry.reference.into_iter().chain(entry.references)).collect()
}

fn problems(harness: &mut Harness) -> Vec<String> {
    harness.host.run(harness.session.verify()).unwrap().problems
}

/// Offloaded results, and some that are in a summary.
fn worked(format: Format) -> Harness {
    let mut harness = Harness::new(merge_of(offloads(), json!({ "format": format })));
    for nth in 0..4 {
        harness.append(&turn(format, nth, 300));
    }
    harness.append(&talk(8, 40));
    harness.prepare();
    harness.compact();
    for nth in 4..8 {
        harness.append(&turn(format, nth, 300));
    }
    harness.append(&talk(8, 40));
    harness.prepare();
    harness
}

fn merge_of(mut options: Value, over: Value) -> Value {
    merge(&mut options, &over);
    options
}

#[test]
fn p18_an_offload_is_a_row_that_names_its_message_and_is_read_from_there() {
    for format in FORMATS {
        let mut harness = worked(format);
        let known = references(&harness.session);
        assert!(known.len() >= 4, "{format:?}: {known:?}");
        assert_eq!(copies(&harness.memory), 0, "{format:?}");
        for reference in &known {
            assert!(harness.read(reference).starts_with("result "), "{reference}");
        }
        assert_eq!(problems(&mut harness), [""; 0]);
        harness.stored();
        for (key, head) in harness.memory.rows().iter().filter(|(key, _)| key.to_string().contains("/off_")) {
            assert!(head.len() < 200, "{key} takes {} bytes", head.len());
        }
        // Opened again it is the same, and so is a fork.
        let options = merge_of(offloads(), json!({ "format": format }));
        let mut again = Harness::over(Rc::clone(&harness.memory), "b", options);
        assert_eq!(references(&again.session), known);
        let (fork, _) = again.host.run(again.session.fork(Some("fork".into()))).unwrap();
        assert_eq!(copies(&again.memory), 0);
        for reference in references(&fork) {
            let text = again.host.run(fork.read(reference, 0, None)).unwrap();
            assert!(text.starts_with("result "));
        }
        assert!(again.host.run(fork.verify()).unwrap().ok);
        again.host.run(again.session.delete()).unwrap();
        again.host.run(fork.delete()).unwrap();
        assert!(again.memory.rows().is_empty());
    }
}

#[test]
fn p18_the_references_of_every_history_are_the_texts_that_stood_there() {
    let mut found = 0;
    for format in Format::ALL {
        for (seed, preset) in
            (0..6).flat_map(|seed| ["offload", "balanced", "layered", "factor3"].map(|preset| (seed, preset)))
        {
            let mut rng = Rng::with_seed(seed);
            let options = json!({ "format": format, "preset": preset, "compactAt": { "tokens": 600 }, "digest": { "minTokens": 10 } });
            let mut harness = Harness::new(options);
            for _ in 0..6 {
                let history: Vec<Body> =
                    valid(format, &mut rng).iter().map(|value| Rc::from(value.to_string())).collect();
                if harness.host.run(harness.session.append(history)).is_ok() {
                    let _ = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new()));
                }
            }
            let known = references(&harness.session);
            found += known.len();
            assert_eq!(copies(&harness.memory), 0, "{format:?}, {preset}, {seed}");
            for reference in known {
                harness.read(&reference);
            }
            // Every reference is held against its message there.
            assert_eq!(problems(&mut harness), [""; 0], "{format:?}, {preset}, {seed}");
            harness.stored();
        }
    }
    assert!(found > 100, "{found} references");
}

fn import(text: &str, restore: Restore) -> Harness {
    let memory: Rc<MemoryStore> = Rc::default();
    let mut host = Host::new(Rc::clone(&memory) as _, "import");
    let importer = host.run(Importer::open(settings(offloads()), None, restore, 10_000)).unwrap();
    for chunk in text.as_bytes().chunks(10_000) {
        host.run(importer.feed(chunk.to_vec())).unwrap();
    }
    let (session, ..) = host.run(importer.finish()).unwrap();
    Harness { memory, host, session }
}

#[test]
fn p18_an_imported_archive_has_references_and_a_text_that_the_log_lacks_stays_a_copy() {
    let mut harness = worked(Format::OpenaiChat);
    let known = references(&harness.session);
    let text = archive(&mut harness.host, &harness.session);
    let all: Vec<String> =
        lines(&text).iter().filter_map(|line| line["ref"].as_str().map(str::to_owned)).collect();
    assert!(known.iter().all(|reference| all.contains(reference)));
    for restore in [Restore::Context, Restore::Transcript] {
        let mut copy = import(&text, restore);
        assert_eq!(copies(&copy.memory), 0);
        for reference in &all {
            assert_eq!(copy.read(reference), harness.read(reference));
        }
        assert_eq!(problems(&mut copy), [""; 0]);
        if restore == Restore::Context {
            // But for the first line, which counts the commits of its own store.
            let copied = archive(&mut copy.host, &copy.session);
            assert_eq!(copied.split_once('\n').unwrap().1, text.split_once('\n').unwrap().1);
        }
    }
    // Another text than the log has, under its own hash: as an archive of other hands may have it.
    let other = lines(&text).into_iter().find(|line| line["kind"] == "offload").unwrap();
    let reference = other["ref"].as_str().unwrap();
    let mut changed = other.clone();
    changed["text"] = "what no message says".into();
    changed["sha256"] = "ad09951dc1e2a69fd527f026aafbd937b74fc0bd86cf34596145c20dbe5d4cbd".into();
    let mut order: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = order.iter().position(|line| serde_json::from_str::<Value>(line).unwrap() == other).unwrap();
    order[at] = changed.to_string();
    let mut copy = import(&order.join("\n"), Restore::Transcript);
    assert_eq!(copies(&copy.memory), 1);
    assert_eq!(copy.read(reference), "what no message says");
}

#[test]
fn p18_an_erased_message_takes_its_references_along_and_the_others_stay() {
    let mut harness = worked(Format::OpenaiChat);
    let entries = harness.session.explain().unwrap();
    let offloaded: Vec<_> = entries.iter().filter(|entry| entry.fate == Fate::Offloaded).collect();
    let (gone, stays) = (offloaded[0].clone(), offloaded[1].clone());
    let (gone_ref, stays_ref) = (gone.reference.unwrap(), stays.reference.unwrap());
    let text = harness.read(&stays_ref);
    harness.host.run(harness.session.erase(gone.index, "a secret".into())).unwrap();
    assert_eq!(harness.read(&stays_ref), text);
    let error = harness.host.run(harness.session.read(gone_ref, 0, None)).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert_eq!((problems(&mut harness), copies(&harness.memory)), (Vec::new(), 0));
}

#[test]
fn p18_a_damaged_message_is_told_by_its_reference() {
    let mut harness = worked(Format::OpenaiChat);
    let entry =
        harness.session.explain().unwrap().into_iter().find(|entry| entry.fate == Fate::Offloaded).unwrap();
    let body: Vec<u8> = {
        let rows = harness.memory.rows();
        let text = harness.read(entry.reference.as_ref().unwrap());
        let is_it = |(key, value): &&(Key, Vec<u8>)| {
            key.to_string().starts_with("log/") && String::from_utf8_lossy(value).contains(&text)
        };
        let (key, value) = rows.iter().find(is_it).unwrap();
        let mut broken = value.clone();
        broken[100] ^= 1;
        harness.memory.damage(key, Some(broken.clone()));
        broken
    };
    assert!(!body.is_empty());
    let error =
        harness.host.run(harness.session.read(entry.reference.clone().unwrap(), 0, None)).unwrap_err();
    assert_eq!(error.code, Code::StoreCorrupt);
    let found = problems(&mut harness);
    assert!(
        found.iter().any(|what| what.starts_with("I1")) && found.iter().any(|what| what.starts_with("I2")),
        "{found:?}"
    );
    let mut again = Harness::over(Rc::clone(&harness.memory), "b", offloads());
    again.append(&[user("and now?")]);
    again.prepare();
}

/// Bytes by table: those of messages, those that are kept, and those that were written.
type Bytes = BTreeMap<String, usize>;

fn table_of(key: &Key) -> String {
    let Some(KeyPart::Text(table)) = key.0.first() else { panic!("a table") };
    match key.0.get(2) {
        Some(KeyPart::Text(of)) if table == "blobs" && of == "terms" => "terms".into(),
        _ => table.clone(),
    }
}

/// Question, call, result and answer: about four kilobytes.
fn one(nth: usize) -> Vec<Body> {
    let mut bodies = vec![user(&format!("Question {nth:06}: what does src/file_{nth:06}.rs do?"))];
    let result = format!("src/file_{nth:06}.rs: fn run_{nth:06}() -> u32\n").repeat(80);
    bodies.extend(exchange(Format::OpenaiChat, &format!("call_{nth:06}"), &result));
    bodies.push(assistant(&format!("It runs job {nth:06}.")));
    bodies
}

/// What so many turns keep and write, and the largest row of the session.
fn stored(preset: &str, turns: usize) -> Bytes {
    let options = json!({ "preset": preset, "format": "openai-chat", "contextWindow": 40_000, "summarize": "extractive" });
    let mut harness = Harness::new(options);
    let written: Rc<RefCell<Bytes>> = Rc::default();
    let seen = Rc::clone(&written);
    harness.host.meanwhile = Box::new(move |effect| {
        let Effect::Commit(batch) = effect else { return };
        let mut seen = seen.borrow_mut();
        for (key, value) in &batch.puts {
            let table = table_of(key);
            if table == "sessions" && key.0.len() == 2 {
                let most = seen.entry("largest row of the session".into()).or_default();
                *most = value.len().max(*most);
            }
            *seen.entry(format!("written: {table}")).or_default() += value.len();
        }
    });
    let mut messages = 0;
    for nth in 0..turns {
        let bodies = one(nth);
        messages += bodies.iter().map(|body| body.len()).sum::<usize>();
        harness.append(&bodies[..1]);
        harness.prepare();
        harness.append(&bodies[1..3]);
        harness.prepare();
        harness.append(&bodies[3..]);
    }
    let mut bytes = written.borrow().clone();
    for (key, value) in harness.memory.rows() {
        *bytes.entry(format!("kept: {}", table_of(&key))).or_default() += value.len();
    }
    let all = |what: &str| {
        bytes.iter().filter(|(key, _)| key.starts_with(what)).map(|(_, bytes)| bytes).sum::<usize>()
    };
    let (kept, all_written) = (all("kept: "), all("written: "));
    println!(
        "{preset}, {turns} turns: kept {:.3}, written {:.3}",
        kept as f64 / messages as f64,
        all_written as f64 / messages as f64
    );
    bytes.insert("messages".into(), messages);
    bytes
}

#[test]
fn p18_what_is_kept_and_written_is_what_is_noted() {
    let mut found: BTreeMap<String, Bytes> = BTreeMap::new();
    for preset in ["balanced", "layered", "offload"] {
        for turns in [100, 400, 1_000] {
            let bytes = stored(preset, turns);
            let all = |what: &str| {
                bytes.iter().filter(|(key, _)| key.starts_with(what)).map(|(_, bytes)| bytes).sum::<usize>()
            };
            let messages = bytes["messages"];
            assert!(all("kept: ") * 2 <= messages * 3, "{preset}, {turns} turns keep {bytes:?}");
            assert!(all("written: ") * 2 <= messages * 5, "{preset}, {turns} turns write {bytes:?}");
            let largest = bytes["largest row of the session"];
            assert!(largest <= 500, "{preset}, {turns} turns: the session's row takes {largest} bytes");
            found.insert(format!("{preset}, {turns} turns"), bytes);
        }
    }
    let found = format!("{}\n", serde_json::to_string_pretty(&found).unwrap());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../bench/snapshots/stored.json");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        found, before,
        "bench/snapshots/stored.json says otherwise; run with BLESS=1 and review the change"
    );
}

/// What the views take of the messages, in thousandths, and the largest row of the session.
fn views_of(preset: &str, turns: usize) -> (usize, usize) {
    let bytes = stored(preset, turns);
    println!("{preset}, {turns} turns: {bytes:?}");
    (bytes["kept: views"] * 1_000 / bytes["messages"], bytes["largest row of the session"])
}

#[test]
fn p4_views_take_a_small_share_of_the_messages() {
    for (preset, most) in [("balanced", 40), ("offload", 20), ("layered", 70)] {
        let (share, row) = views_of(preset, 1_000);
        assert!(share <= most && row <= 500, "{preset}: {share} thousandths, a row of {row} bytes");
    }
}

#[test]
#[ignore = "takes a minute and a half"]
fn p4_views_take_no_larger_share_of_a_session_of_10_000_turns() {
    let (share, row) = views_of("balanced", 10_000);
    assert!(share <= 45 && row <= 500, "{share} thousandths, a row of {row} bytes");
}

/// The rows of the views as they are stored, and their texts.
fn views(memory: &MemoryStore) -> Vec<(Key, Vec<u8>, Vec<u8>)> {
    let rows = memory.rows().into_iter().filter(|(key, _)| table_of(key) == "views");
    rows.map(|(key, row)| (key, view_text(&row), row)).map(|(key, text, row)| (key, row, text)).collect()
}

#[test]
fn p4_a_session_whose_views_are_not_packed_opens_verifies_and_goes_on() {
    let mut harness = worked(Format::OpenaiChat);
    let packed = views(&harness.memory);
    assert!(packed.iter().all(|(_, row, text)| row.len() * 2 < text.len()), "{packed:?}");
    // As releases up to schema 101 wrote them.
    for (key, _, text) in &packed {
        harness.memory.damage(key, Some(text.clone()));
    }
    let mut again = Harness::over(Rc::clone(&harness.memory), "b", offloads());
    let items = |session: &Session| look(session).unwrap().context.items().to_vec();
    assert_eq!(items(&again.session), items(&harness.session));
    let [before, after] = [&mut harness, &mut again].map(|of| archive(&mut of.host, &of.session));
    // But for the first line, which has what is in memory.
    assert_eq!(after.split_once('\n').unwrap().1, before.split_once('\n').unwrap().1);
    assert_eq!(problems(&mut again), [""; 0]);
    again.append(&turn(Format::OpenaiChat, 9, 300));
    again.append(&talk(8, 40));
    again.prepare();
    again.stored();
    let rows = views(&again.memory);
    assert!(rows.len() > packed.len() && rows.iter().any(|(_, row, text)| row.len() < text.len()));
    assert_eq!(problems(&mut again), [""; 0]);
}

#[test]
fn p4_a_damaged_row_of_a_view_is_told_and_an_earlier_context_stands() {
    let mut harness = worked(Format::OpenaiChat);
    let (key, row, _) = views(&harness.memory).pop().unwrap();
    let mut broken = row.clone();
    broken[row.len() / 2] ^= 4;
    harness.memory.damage(&key, Some(broken));
    let found = problems(&mut harness);
    assert!(
        found.iter().any(|what| what.starts_with("I3") && what.ends_with("is not what was written")),
        "{found:?}"
    );
    let mut again = Harness::over(Rc::clone(&harness.memory), "b", offloads());
    let told =
        |notice: &Notice| matches!(notice, Notice::DataLoss { loss } if loss.kind == LossKind::Context);
    assert!(again.host.seen.notices.iter().any(told));
    again.append(&talk(2, 40));
    again.prepare();
    let entries = again.session.explain().unwrap();
    assert!(entries.iter().all(|entry| entry.fate != Fate::Dropped), "the log has every message");
}

#[test]
fn p19_messages_of_a_kilobyte_keep_a_tenth_more_in_the_log() {
    let mut harness = Harness::new(json!({ "format": "openai-chat", "contextWindow": 100_000_000 }));
    let mut messages = 0;
    for nth in 0..40 {
        let bodies: Vec<Body> =
            (0..100).map(|at| user(&format!("{nth}/{at}: {}", "abcdefg ".repeat(124)))).collect();
        messages += bodies.iter().map(|body| body.len()).sum::<usize>();
        harness.append(&bodies);
    }
    let log = harness
        .memory
        .rows()
        .iter()
        .filter(|(key, _)| table_of(key) == "log")
        .map(|(_, value)| value.len())
        .sum::<usize>();
    assert!(log * 10 <= messages * 11, "{log} bytes for {messages}");
    assert_eq!(problems(&mut harness), [""; 0]);
}

fn notes_of(memory: &MemoryStore) -> Option<Key> {
    memory.rows().into_iter().map(|(key, _)| key).find(|key| key.to_string().ends_with("/notes"))
}

#[test]
fn p5_what_grows_is_written_when_it_changes_and_opens_again() {
    let mut harness = Harness::new(offloads());
    let notes: Rc<RefCell<usize>> = Rc::default();
    let seen = Rc::clone(&notes);
    harness.host.meanwhile = Box::new(move |effect| {
        if let Effect::Commit(batch) = effect {
            *seen.borrow_mut() +=
                batch.puts.iter().filter(|(key, _)| key.to_string().ends_with("/notes")).count();
        }
    });
    for nth in 0..5 {
        harness.append(&turn(Format::OpenaiChat, nth, 20));
        harness.prepare();
    }
    assert_eq!(*notes.borrow(), 1, "when it began");
    harness.host.run(harness.session.pin(3)).unwrap();
    let id = harness
        .host
        .run(harness.session.snapshot(context_compactor_core::log::SnapshotPurpose::Rollback))
        .unwrap();
    assert_eq!(*notes.borrow(), 3);
    for nth in 5..10 {
        harness.append(&turn(Format::OpenaiChat, nth, 20));
        harness.prepare();
    }
    assert_eq!(*notes.borrow(), 3, "appends write none of it");
    let mut again = Harness::over(Rc::clone(&harness.memory), "b", offloads());
    assert_eq!(again.host.run(again.session.snapshots()).unwrap().remove(0).id, id);
    again.compact();
    assert_eq!(again.session.explain().unwrap()[3].fate, Fate::Verbatim, "the pin holds");
    assert_eq!(problems(&mut again), [""; 0]);
    again.stored();
}

#[test]
fn p5_notes_that_are_damaged_or_gone_are_told_and_the_session_goes_on() {
    for is_gone in [true, false] {
        let mut harness = Harness::new(offloads());
        harness.append(&turn(Format::OpenaiChat, 0, 20));
        harness.host.run(harness.session.pin(1)).unwrap();
        let key = notes_of(&harness.memory).unwrap();
        harness.memory.damage(&key, (!is_gone).then(|| b"{}".to_vec()));
        let found = problems(&mut harness);
        assert!(found.iter().any(|what| what.starts_with("I5")), "{found:?}");
        let mut again = Harness::over(Rc::clone(&harness.memory), "b", offloads());
        let told = again.host.seen.notices.iter().any(|notice| {
            matches!(notice, Notice::DataLoss { loss } if loss.kind == LossKind::Repaired && loss.reason.contains("its row was damaged"))
        });
        assert!(told, "{:?}", again.host.seen.notices);
        again.append(&[user("go on"), assistant("yes")]);
        assert_eq!((again.stored().messages.len(), problems(&mut again)), (6, Vec::new()));
    }
}
