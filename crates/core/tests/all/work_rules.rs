//! What calls go through, in exact figures (P20): `bench/snapshots/work.json`. `BLESS=1 cargo test p20_` writes it anew.

use crate::support::*;
use context_compactor_core::keys::batch::Key;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::step::{Effect, Machine, go_on};
use context_compactor_core::wire::Format;
use context_compactor_core::wire::work::{WorkDone, take};
use context_compactor_store_tests::MemoryStore;
use context_compactor_store_tests::conversation::{Body, assistant, exchange, user};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

/// Messages of a session, few and many.
const SIZES: [usize; 2] = [100, 10_000];
/// A page of what is read and written at once.
const PAGE: u64 = 64 << 10;
/// Messages that a new result is compared with, at most.
const COMPARED: u64 = 500;

/// What a call went through, by name.
type Tally = BTreeMap<String, u64>;

fn add(tally: &mut Tally, what: &str, count: usize) {
    *tally.entry(what.into()).or_default() += count as u64;
}

/// When a store answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    AtOnce,
    Later,
}

/// Is it answered while the engine is called?
fn is_at_once(effect: &Effect, store: Answers) -> bool {
    match effect {
        Effect::Read(_) | Effect::Scan(_) | Effect::Commit(_) => store == Answers::AtOnce,
        Effect::Summarize { .. } | Effect::Fetch { .. } | Effect::Embed(_) | Effect::ReadFile(_) => false,
        Effect::Sleep(_) | Effect::Pause(_) | Effect::ReadWatermark(_) => false,
        // What is loaded stays.
        _ => true,
    }
}

/// What an effect asks of the store.
fn note(tally: &mut Tally, effect: &Effect) {
    match effect {
        Effect::Read(_) => add(tally, "reads", 1),
        Effect::Scan(_) => add(tally, "scans", 1),
        Effect::Commit(batch) => {
            add(tally, "commits", 1);
            for (Key(parts), value) in &batch.puts {
                let table = Key(parts[..1].to_vec()).to_string();
                add(tally, &format!("{table} rows"), 1);
                add(tally, &format!("{table} bytes"), value.len());
            }
        }
        _ => {}
    }
}

/// Runs an operation to its end. What the engine does counts, and what it asks for. A crossing is a call of the engine, in which
/// it asks for what is answered at once.
fn run_with<T>(harness: &mut Harness, mut machine: Machine<T>, store: Answers, tally: &mut Tally) -> T {
    let mut answer = None;
    let mut waiting: Vec<(u32, Effect)> = Vec::new();
    let (mut work, mut asked) = (Tally::new(), Tally::new());
    let mut step = |answer| {
        WorkDone::ALL.into_iter().for_each(|what| _ = take(what));
        let step = machine.step(answer);
        for what in WorkDone::ALL {
            add(&mut work, &format!("{what:?}").to_lowercase(), take(what) as usize);
        }
        (step.effects, step.done)
    };
    let done = loop {
        add(tally, "crossings", 1);
        let mut host = |id, effect| {
            let (id, effect) = harness.host.hear(vec![(id, effect)]).pop()?;
            note(&mut asked, &effect);
            if is_at_once(&effect, store) {
                return Some(harness.host.perform(&effect));
            }
            waiting.push((id, effect));
            None
        };
        if let Some(done) = go_on(&mut step, answer.take(), &mut host) {
            break done.unwrap();
        }
        let (id, effect) = waiting.remove(0);
        answer = Some((id, harness.host.perform(&effect)));
    };
    for (what, count) in work.into_iter().chain(asked) {
        *tally.entry(what).or_default() += count;
    }
    done
}

/// The same over a store that answers later, as nearly all do.
fn run<T>(harness: &mut Harness, machine: Machine<T>, tally: &mut Tally) -> T {
    run_with(harness, machine, Answers::Later, tally)
}

/// Question, call, result and answer: about a kilobyte.
fn one(nth: usize) -> Vec<Body> {
    let mut bodies = vec![user(&format!("Question {nth:06}: what does src/file_{nth:06}.rs do?"))];
    let result = format!("src/file_{nth:06}.rs: fn run_{nth:06}() -> u32\n").repeat(16);
    bodies.extend(exchange(Format::OpenaiChat, &format!("call_{nth:06}"), &result));
    bodies.push(assistant(&format!("It runs job {nth:06}.")));
    bodies
}

fn harness(memory: &Rc<MemoryStore>, name: &str, window: usize) -> Harness {
    let options = json!({ "preset": "balanced", "format": "openai-chat", "contextWindow": window, "summarize": "extractive" });
    Harness::over(Rc::clone(memory), name, options)
}

/// A session of so many messages.
fn filled(messages: usize, window: usize) -> Harness {
    let mut harness = harness(&Rc::default(), "a", window);
    let all: Vec<Body> = (0..messages / 4).flat_map(one).collect();
    all.chunks(1_000).for_each(|some| harness.append(some));
    harness
}

fn prepare(harness: &mut Harness, since: u64, tally: &mut Tally) -> u64 {
    let machine = harness.session.prepare_since(Trigger::Auto, Vec::new(), since);
    run(harness, machine, tally).nth
}

fn append(harness: &mut Harness, bodies: &[Body], tally: &mut Tally) {
    let machine = harness.session.append(bodies.to_vec());
    run(harness, machine, tally);
}

/// Appends and prepares in one call, with a store of either kind: how often the engine is called by one that answers at once
/// is noted beside what it does over the other.
fn together(harness: &mut Harness, nth: usize, tally: &mut Tally) {
    for (store, nth) in [(Answers::Later, nth), (Answers::AtOnce, nth + 1)] {
        let since = prepare(harness, 0, &mut Tally::new());
        let machine = harness.session.append_and_prepare(one(nth), Trigger::Auto, since);
        let mut found = Tally::new();
        run_with(harness, machine, store, &mut found);
        match store {
            Answers::Later => *tally = found,
            Answers::AtOnce => add(tally, "crossings at once", found["crossings"] as usize),
        }
    }
}

/// What append, prepare, both in one call, and a turn of an agent do in a session of so many messages.
fn turns(messages: usize) -> [Tally; 4] {
    let mut harness = filled(messages, 1_000_000_000);
    let [mut appended, mut prepared, mut both, mut turn] = [(); 4].map(|()| Tally::new());
    // What is found of each message once was found before.
    let earlier = one(899_999);
    harness.append(&earlier[..3]);
    harness.prepare();
    harness.append(&earlier[3..]);
    let since = harness.prepare().nth;
    append(&mut harness, &one(900_000), &mut appended);
    let since = prepare(&mut harness, since, &mut prepared);
    let bodies = one(900_001);
    append(&mut harness, &bodies[..1], &mut turn);
    let since = prepare(&mut harness, since, &mut turn);
    append(&mut harness, &bodies[1..3], &mut turn);
    prepare(&mut harness, since, &mut turn);
    append(&mut harness, &bodies[3..], &mut turn);
    together(&mut harness, 900_002, &mut both);
    [appended, prepared, both, turn]
}

/// What opening a session and its first prompt do.
fn opened(messages: usize) -> Tally {
    let before = filled(messages, 1_000_000_000);
    let mut harness = harness(&before.memory, "b", 1_000_000_000);
    let mut tally = Tally::new();
    let open = Session::open(
        settings(json!({ "preset": "balanced", "contextWindow": 1_000_000_000 })),
        Some("s".into()),
        10_000,
    );
    (harness.session, _) = run(&mut harness, open, &mut tally);
    let machine = harness.session.prepare(Trigger::Auto, Vec::new());
    let prepared = run(&mut harness, machine, &mut tally);
    // The host has none of the messages yet.
    for seq in prepared.items.iter().filter_map(|item| item.seq) {
        harness.session.body(seq).unwrap().unwrap();
    }
    add(&mut tally, "items", take(WorkDone::Items) as usize);
    tally
}

/// What the compaction does that comes `nth`, each of 10 new turns.
fn compacted(messages: usize, nth: usize) -> Tally {
    let mut harness = filled(messages, 8_000);
    harness.compact();
    let mut tally = Tally::new();
    for round in 1..=nth {
        harness.append(&(0..10).flat_map(|turn| one(800_000 + round * 100 + turn)).collect::<Vec<_>>());
        tally.clear();
        let machine = harness.session.compact(None);
        let result = run(&mut harness, machine, &mut tally).result;
        assert!(result.changed, "{messages} messages, round {round}: {:?}", result.reason);
    }
    tally
}

/// A line for each call and size.
fn written(found: &BTreeMap<&str, [Tally; 2]>) -> String {
    let line = |size: usize, tally: &Tally| {
        let counted: BTreeMap<_, _> = tally.iter().filter(|(_, count)| **count > 0).collect();
        format!("    \"{size}\": {}", json!(counted))
    };
    let calls = found.iter().map(|(call, tallies)| {
        let lines: Vec<String> = SIZES.iter().zip(tallies).map(|(size, tally)| line(*size, tally)).collect();
        format!("  \"{call}\": {{\n{}\n  }}", lines.join(",\n"))
    });
    format!("{{\n{}\n}}\n", calls.collect::<Vec<_>>().join(",\n"))
}

#[test]
fn p20_calls_do_what_is_written_and_a_turn_does_not_depend_on_the_history() {
    let [few, many] = SIZES.map(turns);
    let mut found: BTreeMap<&str, [Tally; 2]> = BTreeMap::new();
    for (call, (few, many)) in
        ["append", "prepare", "append and prepare", "turn"].into_iter().zip(few.into_iter().zip(many))
    {
        for what in few.keys().chain(many.keys()) {
            let [few, many] = [&few, &many].map(|tally| tally.get(what).copied().unwrap_or_default());
            let may_differ = match what.as_str() {
                "estimated" | "hashed" => PAGE,
                what if what.ends_with("bytes") => PAGE,
                // A new result is compared with those of the newest messages.
                "items" => COMPARED,
                _ => 1,
            };
            assert!(
                few.abs_diff(many) <= may_differ,
                "{call}, {what}: {few} after 100 messages, {many} after 10,000"
            );
        }
        found.insert(call, [few, many]);
    }
    found.insert("open", SIZES.map(opened));
    found.insert("compaction", SIZES.map(|messages| compacted(messages, 1)));
    let found = written(&found);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../bench/snapshots/work.json");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        found, before,
        "bench/snapshots/work.json says otherwise; run with BLESS=1 and review the change"
    );
}

#[test]
fn p3_of_a_session_that_is_opened_each_message_is_looked_at_once() {
    let mut harness = filled(1_000, 1_000_000_000);
    let prepared = harness.prepare();
    take(WorkDone::Items);
    for item in &prepared.items {
        harness.session.body(item.seq.unwrap()).unwrap().unwrap();
    }
    assert_eq!(take(WorkDone::Items), 1_000);
    // The newest ones, which are looked at again before each prompt, are found from the end.
    for item in &prepared.items[992..] {
        harness.session.body(item.seq.unwrap()).unwrap().unwrap();
    }
    let looked_at = take(WorkDone::Items);
    assert!(looked_at < 20, "{looked_at}");
    assert_eq!(harness.session.body(5_000).unwrap(), None);
    // The host may have every other one.
    take(WorkDone::Items);
    for item in prepared.items.iter().step_by(2) {
        harness.session.body(item.seq.unwrap()).unwrap().unwrap();
    }
    let looked_at = take(WorkDone::Items);
    assert!(looked_at < 4_000, "{looked_at}");
}

#[test]
fn p6_what_a_compaction_estimates_does_not_depend_on_how_many_there_were() {
    // What the page tells of grows, up to what a page holds.
    let [second, twentieth, fortieth] = [2, 20, 40].map(|nth| compacted(400, nth)["estimated"]);
    assert!(
        fortieth <= twentieth && twentieth < second * 2,
        "{second} bytes, then {twentieth} and {fortieth}"
    );
}

#[test]
fn p7_what_a_summary_stands_for_is_searched_for_secrets_once() {
    let mut harness = filled(400, 1_000_000_000);
    let text: usize = (0..100).flat_map(one).map(|body| body.len()).sum();
    let mut tally = Tally::new();
    let machine = harness.session.compact(None);
    run(&mut harness, machine, &mut tally);
    let searched = tally["searched"] as usize;
    assert!(searched < text + text / 4, "{searched} bytes of {text}");
}

#[test]
fn p10_a_prepare_in_which_nothing_fires_goes_over_no_message() {
    for preset in ["balanced", "layered", "offload"] {
        let mut harness = Harness::new(
            json!({ "preset": preset, "format": "openai-chat", "contextWindow": 1_000_000_000 }),
        );
        harness.append(&(0..50).flat_map(one).collect::<Vec<_>>());
        let since = harness.prepare().nth;
        let mut tally = Tally::new();
        prepare(&mut harness, since, &mut tally);
        // The end is checked again, with what is added. The newest results are not cleared, and are looked at up to there.
        let most = if preset == "layered" { 16 } else { 2 };
        assert!(tally["items"] <= most, "{preset}: {}", tally["items"]);
    }
}

#[test]
fn p2_a_compaction_whose_ledger_is_not_read_makes_no_entry() {
    let tally = compacted(400, 2);
    assert_eq!(tally["entries"], 0);
    let mut harness = filled(400, 20_000);
    let ledger = harness.compact().ledger;
    assert_eq!(ledger.entries(), harness.session.explain().unwrap());
    let told: Value = serde_json::to_value(&ledger).unwrap();
    let runs: Vec<(usize, Value)> = serde_json::from_str(told.as_str().unwrap()).unwrap();
    assert_eq!(runs.iter().map(|(count, _)| count).sum::<usize>(), 400);
}
