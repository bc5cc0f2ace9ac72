//! What summaries took in of the log is stored, and the first one after an opening reads on from there (P13).

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::keys::batch::{Key, KeyPart};
use context_compactor_core::step::Effect;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::MemoryStore;
use context_compactor_store_tests::conversation::{Body, assistant, exchange, user};
use context_compactor_store_tests::host::summary;
use serde_json::{Value, json};
use std::cell::Cell;
use std::rc::Rc;

/// Bytes of messages after which a row is written.
const EVERY: usize = 4 << 20;

/// A turn of some 20 KB that names things of its own.
fn work(nth: usize) -> Vec<Body> {
    let line = |at: usize| match at % 15 {
        0 => format!("  {at}\u{2192}let part_{at}_of_{nth} = read(\"src/dir{nth}/file{at}.rs\", {at});\n"),
        _ => format!(
            "  {at}\u{2192}// and then all of it is read once more, which is what it was {at} times before\n"
        ),
    };
    let text: String = (1..=250).map(line).collect();
    let mut turn = vec![user(&format!(
        "Never change src/dir{nth}/kept.rs. Where is part_{nth}? My key is AKIA2E0A8F3B244C{nth:04}."
    ))];
    turn.extend(exchange(Format::OpenaiChat, &format!("call_{nth}"), &text));
    turn.push(assistant(&format!("It is in src/dir{nth}/file15.rs, and part_15_of_{nth} is wrong.")));
    turn
}

fn options() -> Value {
    json!({ "preset": "balanced", "contextWindow": 4_000_000, "compactAt": { "fraction": 1 } })
}

/// A session whose summariser tells enough of so long a history.
fn session(memory: Rc<MemoryStore>, name: &str, over: Value) -> Harness {
    let mut harness = Harness::over(memory, name, over);
    let told: String =
        (0..90).map(|nth| format!("- The user asked where part {nth} is, and was told.\n")).collect();
    harness.host.summarise = Box::new(move |_, _| summary(&format!("{SUMMARY}\n{told}")));
    harness
}

/// A session of twice [`EVERY`] bytes that was compacted, and what came behind it.
fn long() -> Harness {
    let mut harness = session(Rc::default(), "a", options());
    let mut bytes = 0;
    let mut nth = 0;
    while bytes < 2 * EVERY {
        let turn = work(nth);
        bytes += turn.iter().map(|body| body.len()).sum::<usize>();
        harness.append(&turn);
        nth += 1;
    }
    assert!(harness.compact().success);
    for more in 0..20 {
        harness.append(&work(nth + more));
    }
    harness
}

/// The same store, for another process.
fn copy(harness: &Harness) -> Rc<MemoryStore> {
    let copy = MemoryStore::default();
    copy.replace(&harness.memory);
    Rc::new(copy)
}

/// The key and bytes of the row.
fn row(memory: &MemoryStore) -> Option<(Key, Vec<u8>)> {
    memory.rows().into_iter().find(|(key, _)| is_row(key))
}

fn is_row(key: &Key) -> bool {
    key.to_string().contains("/facts/")
}

/// The next compaction of another process: what stands there then, and after which row of the log it began to read.
fn reopened(memory: Rc<MemoryStore>, over: Value) -> (Vec<Value>, u64) {
    let mut harness = session(memory, "b", over);
    harness.prepare();
    let first = Rc::new(Cell::new(u64::MAX));
    let seen = Rc::clone(&first);
    harness.host.meanwhile = Box::new(move |effect| {
        if let Effect::Scan(scan) = effect
            && scan.prefix.to_string().starts_with("log/")
        {
            let after = scan.after.as_ref().and_then(|key| key.0.last());
            seen.set(seen.get().min(after.map_or(0, number)));
        }
    });
    assert!(harness.compact().success);
    (harness.context(), first.get())
}

fn number(part: &KeyPart) -> u64 {
    match part {
        KeyPart::Number(number) => *number,
        KeyPart::Text(text) => panic!("{text} is no place in the log"),
    }
}

#[test]
fn p13_the_first_summary_after_an_opening_reads_on_where_the_last_one_ended() {
    let mut harness = long();
    let (_, stored) = row(&harness.memory).expect("more than enough was taken in");
    assert!(stored.len() < EVERY / 8, "{} bytes", stored.len());
    let with = reopened(copy(&harness), options());
    let without = copy(&harness);
    let (key, _) = row(&without).unwrap();
    without.damage(&key, None);
    let without = reopened(without, options());
    assert!(harness.compact().success);
    assert_eq!(with.0, harness.context(), "it goes on as the session that was never closed");
    assert_eq!(with.0, without.0, "it goes on as one that reads all of the log");
    assert_eq!(without.1, 0);
    let rows = harness.stored().rows;
    assert!(with.1 > rows / 3, "after row {} of {rows}", with.1);
}

#[test]
fn p13_a_row_that_is_damaged_or_of_other_options_is_not_used() {
    let harness = long();
    let (key, stored) = row(&harness.memory).unwrap();
    let (context, first) = {
        let without = copy(&harness);
        without.damage(&key, None);
        reopened(without, options())
    };
    let memory = copy(&harness);
    memory.report_damage(&key);
    assert_eq!(reopened(memory, options()), (context.clone(), first), "the store says that it is damaged");
    for at in [0, 1, 7, stored.len() / 2, stored.len() - 1] {
        let memory = copy(&harness);
        let mut damaged = stored.clone();
        damaged[at] ^= 4;
        memory.damage(&key, Some(damaged));
        assert_eq!(reopened(memory, options()), (context.clone(), first), "byte {at}");
        let memory = copy(&harness);
        memory.damage(&key, Some(stored[..at].to_vec()));
        assert_eq!(reopened(memory, options()), (context.clone(), first), "{at} bytes");
    }
    assert!(json!(context).to_string().contains("[redacted"));
    let mut redacts = options();
    merge(&mut redacts, &json!({ "redact": { "secrets": false } }));
    let (context, other) = reopened(copy(&harness), redacts);
    assert_eq!((first, other), (0, 0));
    assert!(!json!(context).to_string().contains("[redacted"));
}

#[test]
fn p13_the_row_leaves_with_what_it_is_of_and_goes_to_no_fork() {
    let mut harness = long();
    harness.host.run(harness.session.fork(Some("child".into()))).unwrap();
    assert_eq!(harness.memory.rows().iter().filter(|(key, _)| is_row(key)).count(), 1);
    harness.host.run(harness.session.erase(0, "asked to".into())).unwrap();
    assert_eq!(row(&harness.memory), None, "it was of the session's old rows");
    // The next summaries take in what is left, and store it.
    assert!(harness.compact().success);
    assert!(row(&harness.memory).is_some());
}

#[test]
fn p13_where_the_store_takes_less_the_summary_is_stored_without_the_row() {
    for code in [Code::QuotaExceeded, Code::TooLarge] {
        let mut harness = session(Rc::default(), "a", options());
        for nth in 0..450 {
            harness.append(&work(nth));
        }
        harness.host.refuse =
            Box::new(move |batch| batch.puts.iter().any(|(key, _)| is_row(key)).then_some(code));
        let result = harness.compact();
        assert!(result.success, "{result:?}");
        assert_eq!(harness.stored().generation, 1, "it is in the store");
        assert_eq!(row(&harness.memory), None);
    }
}
