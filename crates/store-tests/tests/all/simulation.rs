//! The simulation over an honest store, and over stores that break one promise each: those it must catch.

use context_compactor_core::keys::batch::{Batch, Key};
use context_compactor_core::step::Scan;
use context_compactor_core::{Code, Error, Result};
use context_compactor_store_tests::counts::Counts;
use context_compactor_store_tests::simulation::{
    Damage, Report, simulate, simulate_damage, simulate_damage_without_watermark, simulate_on,
};
use context_compactor_store_tests::{MemoryStore, Store, conformance};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

#[test]
fn the_memory_store_passes_the_suite() {
    conformance::run(MemoryStore::default);
}

/// Seeds of tabs on one session, when no other number is asked for.
const SEEDS: u64 = 4_000;
/// Seeds over each store that breaks a promise.
const MUTANT_SEEDS: u64 = 200;
/// Seeds of damage between two runs.
const DAMAGES: u64 = 10_000;

/// `CC_SIM_SEEDS` asks for another number of seeds than is `usual`, `CC_SIM_SEED` for a single one, `CC_PROGRESS=1` for a word about how far it is.
fn seeds(usual: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    match number("CC_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("CC_SIM_SEEDS").unwrap_or(usual),
    }
}

/// What each seed comes to, and what was found wrong: one that fails does not end the others.
fn of_every_seed<T: Send>(
    usual: u64,
    run: fn(u64) -> std::result::Result<T, String>,
) -> (Vec<T>, Vec<String>) {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    let one = |seed: u64| {
        if seed > 0 && seed.is_multiple_of(10_000) && std::env::var_os("CC_PROGRESS").is_some() {
            println!("simulation: seed {seed}");
        }
        let ran = std::panic::catch_unwind(|| run(seed)).unwrap_or_else(|_| Err("a panic".into()));
        ran.map_err(|what| {
            let what = format!("{what} (CC_SIM_SEED={seed} repeats it)");
            println!("simulation: failed: {what}");
            what
        })
    };
    let stripe = |first: usize| seeds(usual).skip(first).step_by(threads).map(one).collect::<Vec<_>>();
    let ran = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|first| scope.spawn(move || stripe(first))).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("a thread")).collect::<Vec<_>>()
    });
    let (mut done, mut failures) = (Vec::new(), Vec::new());
    for result in ran {
        match result {
            Ok(report) => done.push(report),
            Err(what) => failures.push(what),
        }
    }
    (done, failures)
}

#[test]
fn every_seed_keeps_the_invariants() {
    let (reports, failures) = of_every_seed(SEEDS, simulate);
    let mut sum = Report::default();
    for report in reports {
        sum.commits += report.commits;
        sum.done += report.done;
        sum.failed += report.failed;
        sum.crashes += report.crashes;
        sum.views += report.views;
        sum.messages += report.messages;
        for (rung, count) in report.rungs {
            *sum.rungs.entry(rung).or_default() += count;
        }
        sum.restored += report.restored;
        sum.kept += report.kept;
        sum.resumed += report.resumed;
        sum.forks += report.forks;
        sum.staged += report.staged;
        sum.beside += report.beside;
        sum.erased += report.erased;
    }
    let mut counts = Counts::default();
    counts.add("failures", failures.len());
    for (what, number) in [
        ("seeds", seeds(SEEDS).count()),
        ("commits", sum.commits as usize),
        ("calls that ended well", sum.done as usize),
        ("calls that ended with an error", sum.failed as usize),
        ("crashes", sum.crashes as usize),
        ("views", sum.views as usize),
        ("messages", sum.messages),
        ("snapshots restored", sum.restored as usize),
        ("answers kept at once", sum.kept as usize),
        ("answers used again", sum.resumed as usize),
        ("forks", sum.forks as usize),
        ("batches staged", sum.staged as usize),
        ("prompts that waited for no summary", sum.beside as usize),
        ("messages erased", sum.erased as usize),
    ] {
        counts.add(what, number);
    }
    for (rung, count) in &sum.rungs {
        counts.add(rung, *count);
    }
    println!("{}", counts.line("simulation", "tabs on one session"));
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(
        // One alone, to be looked at, need not have everything.
        seeds(SEEDS).count() == 1 || (sum.failed > 0 && sum.crashes > 0 && sum.views > 0 && sum.restored > 0),
        "faults and compactions happen: {sum:?}"
    );
    assert!(
        seeds(SEEDS).count() < 400 || (sum.kept > 0 && sum.resumed > 0 && sum.erased > 0),
        "answers are kept and used, and messages erased: {sum:?}"
    );
    let rungs = ["admit", "clear", "offload", "compress", "summarize", "age", "merge", "rollover"];
    let missing = rungs.iter().find(|rung| seeds(SEEDS).count() >= 2_000 && !sum.rungs.contains_key(**rung));
    assert_eq!(missing, None, "every rung of every preset has something to do");
    assert!(
        seeds(SEEDS).count() < 4_000 || (sum.forks > 0 && sum.staged > 0 && sum.beside > 0),
        "forks, large results and prompts beside a summary: {sum:?}"
    );
}

#[test]
fn every_damage_between_two_runs_is_mended_or_told_and_the_session_goes_on() {
    let (damages, failures) = of_every_seed(DAMAGES, simulate_damage);
    let mut counts = Counts::default();
    counts.add("failures", failures.len());
    counts.add("seeds", damages.len());
    for (what, of) in [
        ("nothing lost", Damage::None),
        ("refused", Damage::Refused),
        ("told", Damage::Told),
        ("found by verify", Damage::Found),
    ] {
        let count = damages.iter().filter(|damage| **damage == of).count();
        counts.add(what, count);
        assert!(count > 0 || damages.len() < 1_000, "{what}: {damages:?}");
    }
    println!("{}", counts.line("simulation", "damage between two runs"));
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_session_that_ignores_its_watermark_is_caught() {
    let what = (0..200).find_map(|seed| simulate_damage_without_watermark(seed).err());
    println!("{}", what.expect("it must be caught"));
}

#[test]
fn the_same_seed_does_the_same() {
    assert_eq!(simulate(7), simulate(7));
}

/// A store that breaks a promise.
struct Mutant {
    memory: Rc<MemoryStore>,
    commits: Cell<u64>,
    commit: fn(&MemoryStore, u64, &Batch) -> Result<()>,
}

impl Store for Mutant {
    fn read(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        self.memory.read(keys)
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<(Key, Vec<u8>)>> {
        self.memory.scan(scan)
    }

    fn commit(&self, batch: &Batch) -> Result<()> {
        self.commits.set(self.commits.get() + 1);
        (self.commit)(&self.memory, self.commits.get(), batch)
    }
}

/// Tables of the keys of a batch.
fn tables(batch: &Batch) -> Vec<String> {
    batch.puts.iter().map(|(key, _)| key.to_string().split('/').next().unwrap_or_default().into()).collect()
}

/// What the simulation says about a mutant over the seeds: the checks that caught it, and how often each did.
fn checks(seeds: Range<u64>, commit: fn(&MemoryStore, u64, &Batch) -> Result<()>) -> BTreeMap<String, usize> {
    let mut checks = BTreeMap::new();
    for seed in seeds {
        let run = simulate_on(seed, |memory| Rc::new(Mutant { memory, commits: Cell::new(0), commit }));
        let Err(what) = run else { continue };
        // Behind the seed and the choice; numbers and references are of this seed.
        let check = what.split_once(": ").map_or(what.as_str(), |(_, check)| check);
        let words = check.split(' ').take_while(|word| !word.starts_with(['{', '"']));
        let words = words.map(|word| match word {
            _ if word.starts_with("off_") => "a reference",
            _ if word.parse::<u64>().is_ok() => "N",
            _ => word,
        });
        *checks.entry(words.collect::<Vec<_>>().join(" ")).or_default() += 1;
    }
    checks
}

/// The mutant is caught, by the check that is there for it among others.
fn is_caught(name: &str, by: &str, commit: fn(&MemoryStore, u64, &Batch) -> Result<()>) {
    let checks = checks(0..MUTANT_SEEDS, commit);
    println!("a store that {name} is caught in {} of {MUTANT_SEEDS} seeds:", checks.values().sum::<usize>());
    checks.iter().for_each(|(check, count)| println!("  {count} times: {check}"));
    assert!(checks.keys().any(|check| check.contains(by)), "{name}: not caught by: {by}");
}

#[test]
fn an_honest_store_behind_the_mutants_door_is_not_caught() {
    assert_eq!(checks(0..MUTANT_SEEDS, |memory, _, batch| memory.commit(batch)), BTreeMap::new());
}

#[test]
fn a_store_without_compare_and_set_is_caught() {
    is_caught("has no compare-and-set", "messages of the log were changed or removed", |memory, _, batch| {
        memory.commit(&Batch { expect: Vec::new(), ..batch.clone() })
    });
}

#[test]
fn a_store_that_tears_batches_is_caught() {
    is_caught("tears batches", "I1: N rows in the log, N counted", |memory, nth, batch| {
        if nth % 7 != 0 {
            return memory.commit(batch);
        }
        let puts = batch.puts.iter().take(batch.puts.len() / 2).cloned().collect();
        memory.commit(&Batch { puts, ..batch.clone() })?;
        Err(Error::new(Code::StoreUnavailable, "torn"))
    });
}

#[test]
fn a_store_that_loses_what_it_acknowledged_is_caught() {
    is_caught("loses commits", "an acknowledged message is not in the log", |memory, nth, batch| {
        if nth % 11 == 0 { Ok(()) } else { memory.commit(batch) }
    });
}

#[test]
fn a_store_that_forgets_offloads_is_caught() {
    is_caught("forgets offloads", "I2: a reference of message N is missing", |memory, _, batch| {
        let is_blob = |key: &Key| key.to_string().starts_with("blobs/");
        let puts = batch.puts.iter().filter(|(key, _)| !is_blob(key)).cloned().collect();
        memory.commit(&Batch { puts, ..batch.clone() })
    });
}

#[test]
fn a_store_that_changes_what_was_written_is_caught() {
    is_caught("changes earlier rows", "I1: log row N is not what was written", |memory, nth, batch| {
        memory.commit(batch)?;
        let rows = memory.rows();
        let first = rows.iter().find(|(key, _)| key.to_string().starts_with("log/"));
        if let Some((key, bytes)) = first.filter(|_| nth == 20) {
            memory.damage(key, Some(bytes[1..].to_vec()));
        }
        Ok(())
    });
}

#[test]
fn a_store_that_tears_forks_is_caught() {
    is_caught("tears forks", "I1: log row N is missing", |memory, nth, batch| {
        // A name that is given later is a fork's.
        let tables = tables(batch);
        if nth < 10 || !tables.iter().any(|table| table == "meta") {
            return memory.commit(batch);
        }
        let puts = batch.puts.iter().zip(tables).filter(|(_, table)| table != "log");
        memory.commit(&Batch { puts: puts.map(|(put, _)| put.clone()).collect(), ..batch.clone() })
    });
}
