//! Allocations of the hot paths and the memory of a large result, for timings cannot be asserted:
//! `bench/snapshots/allocations.json` and `large-result.json`.
//! `BLESS=1 cargo test --test allocations` writes it anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "all/support/mod.rs"]
mod support;

use context_compactor_core::policy::Trigger;
use context_compactor_core::step::{Effect, Machine};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, exchange, user};
use context_compactor_store_tests::{Host, MemoryStore};
use serde_json::{Value, json};
use std::path::Path;
use std::rc::Rc;
use support::*;

/// Turns that are measured: as many as a vector's growth does not decide.
const TURNS: usize = 8;
/// Bytes of a large result.
const LARGE: usize = 12_000_000;

/// Runs an operation to its end. Adds the engine's own allocations to `count`: those of the host are none of its.
fn run<T>(host: &mut Host, mut machine: Machine<T>, count: &mut u64) -> T {
    let mut answer = None;
    let mut waiting: Vec<(u32, Effect)> = Vec::new();
    loop {
        let mut step = None;
        let given = answer.take();
        let info = allocation_counter::measure(|| step = Some(machine.step(given)));
        *count += info.count_total;
        let step = step.unwrap();
        waiting.extend(host.hear(step.effects));
        if let Some(done) = step.done {
            return done.unwrap();
        }
        let (id, effect) = waiting.remove(0);
        answer = Some((id, host.perform(&effect)));
    }
}

/// Allocations of an append and of the `prepare` behind it, of a session with about `messages` messages.
fn hot_paths(format: Format, messages: usize) -> [u64; 2] {
    let mut harness = Harness::over(
        Rc::new(MemoryStore::default()),
        "a",
        json!({ "format": format, "contextWindow": 1_000_000_000 }),
    );
    let turn = |nth: usize| {
        let mut bodies = vec![user(&format!("question {:06}", nth))];
        bodies.extend(exchange(format, &format!("call_{nth:06}"), "forty-two lines"));
        bodies.push(assistant("an answer"));
        bodies
    };
    let before: Vec<_> = (0..messages / 4).flat_map(turn).collect();
    before.chunks(1_000).for_each(|some| harness.append(some));
    let mut since = harness.prepare().nth;
    let (mut append, mut prepare) = (0, 0);
    for nth in 0..TURNS {
        let appended = harness.session.append(turn(messages + nth));
        run(&mut harness.host, appended, &mut append);
        let machine = harness.session.prepare_since(Trigger::Auto, Vec::new(), since);
        let prepared = run(&mut harness.host, machine, &mut prepare);
        assert_eq!(prepared.items.len(), 4, "{format:?}: what was added is told");
        since = prepared.nth;
    }
    [append / TURNS as u64, prepare / TURNS as u64]
}

#[test]
fn appending_and_preparing_allocate_the_same_however_long_the_history_is() {
    let mut found = json!({});
    for format in Format::ALL {
        let name = format.as_str();
        if !FORMATS.contains(&format) {
            continue;
        }
        let [few, many] = [100, 10_000].map(|messages| hot_paths(format, messages));
        for (at, path) in ["append", "prepare"].into_iter().enumerate() {
            assert!(
                few[at].abs_diff(many[at]) <= 2,
                "{name}, {path}: {} allocations after 100 messages, {} after 10,000",
                few[at],
                many[at]
            );
            found[name][path] = json!(few[at]);
        }
    }
    hold("allocations.json", &found, "allocations of a turn of four messages differ");
}

/// The engine's memory while one operation runs: what it holds, and the most that it held.
#[derive(Default)]
struct Held {
    now: i64,
    most: i64,
}

impl Held {
    fn of<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let mut result = None;
        let info = allocation_counter::measure(|| result = Some(work()));
        self.most = self.most.max(self.now + info.bytes_max as i64);
        self.now += info.bytes_current;
        result.unwrap()
    }

    /// Runs an operation to its end; what crosses to the host and back counts as the engine's, as it does in a module.
    fn run<T>(&mut self, host: &mut Host, mut machine: Machine<T>) -> T {
        let mut answer = None;
        let mut waiting: Vec<(u32, Effect)> = Vec::new();
        loop {
            let given = answer.take();
            let step = self.of(|| machine.step(given));
            if let Some(done) = step.done {
                return done.unwrap();
            }
            waiting.extend(host.hear(step.effects));
            let (id, effect) = waiting.remove(0);
            let event = host.perform(&effect);
            self.of(|| drop(effect));
            answer = Some((id, self.of(|| event.clone())));
        }
    }
}

/// A session that offloads every old result, a conversation with a large one for it, and the memory that this takes.
fn with_large_result(format: Format) -> (Harness, Vec<Body>, Held) {
    const LINE: &str = "src/parser.rs:42: the parser keeps its state in memory\n";
    let text = LINE.repeat(LARGE / LINE.len());
    let harness = Harness::over(
        Rc::new(MemoryStore::default()),
        "a",
        json!({
            "format": format,
            "contextWindow": 1_000_000_000,
            "compactAt": { "tokens": 1 },
            "advanced": { "minOffloadGain": 1, "offload": { "scanFraction": 1.0 } },
        }),
    );
    let mut held = Held::default();
    let bodies = held.of(|| {
        let mut bodies = vec![user("Read it.")];
        bodies.extend(exchange(format, "call_1", &text));
        bodies.extend((0..8).map(|nth| if nth % 2 == 0 { assistant("It is read.") } else { user("And?") }));
        bodies
    });
    // What it took to make the messages is not the engine's.
    held.most = held.now;
    (harness, bodies, held)
}

/// The most that appending a large tool result takes, preparing, which offloads it, and handing over a history with it: in
/// tenths of its bytes.
fn large_result(format: Format) -> [i64; 3] {
    let (mut harness, bodies, mut held) = with_large_result(format);
    let appended = harness.session.append(bodies);
    held.run(&mut harness.host, appended);
    let append = std::mem::take(&mut held.most);
    let prepared = held.run(&mut harness.host, harness.session.prepare_since(Trigger::Auto, Vec::new(), 0));
    assert_eq!(prepared.edits.len(), 1, "{format:?}: it is offloaded");
    // Tables that are made once stay.
    assert!(held.now < LARGE as i64 / 20, "{format:?}: it is let go of, but for {}", held.now);
    let prepare = held.most;
    let (mut harness, bodies, mut held) = with_large_result(format);
    let synced = harness.session.sync(0, bodies);
    held.run(&mut harness.host, synced);
    [append, prepare, held.most].map(|most| most * 10 / LARGE as i64)
}

#[test]
fn p14_a_large_result_takes_few_copies_of_itself() {
    let mut found = json!({});
    for format in FORMATS {
        let [append, prepare, sync] = large_result(format);
        found[format.as_str()] = json!({ "append": append, "prepare": prepare, "sync": sync });
    }
    hold("large-result.json", &found, "the memory that a large result takes, in tenths of its size, differs");
}

/// Holds what was found against a snapshot.
fn hold(name: &str, found: &Value, what: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../bench/snapshots").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{found:#}\n")).unwrap();
    }
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap_or_default()).unwrap_or_default();
    assert_eq!(*found, written, "{what} from bench/snapshots/{name}; run with BLESS=1 and review the change");
}
