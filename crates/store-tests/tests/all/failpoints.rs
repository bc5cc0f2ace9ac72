//! A fault at every effect and every call of the store for every operation, under every preset; and protocols that are wrong
//! in one way each, which this must catch.

use context_compactor_core::keys::batch::{Batch, Key, KeyPart};
use context_compactor_core::policy::{PRESETS, Settings};
use context_compactor_core::step::Scan;
use context_compactor_core::{Code, Result};
use context_compactor_store_tests::Store;
use context_compactor_store_tests::failpoints::{self, STEPS};
use std::cell::RefCell;
use std::convert::identity;
use std::rc::Rc;

/// A batch of so many operations takes all that a call writes.
const WHOLE: usize = 10_000;

/// A preset at sizes where its rungs have something to do.
fn settings(preset: &str) -> Rc<Settings> {
    let mut options = serde_json::json!({
        "preset": preset, "contextWindow": 8_000, "compactAt": { "tokens": 300 },
        "advanced": { "estimator": "chars4" }, "summarize": { "call": true, "fallback": "none", "attempts": 1 },
        "keep": { "messages": 3 },
    });
    options["presetOptions"] = match preset {
        "react" => serde_json::json!({
            "singleResultThreshold": 400, "chunkSize": 200, "modelContextLimit": 400_000,
            "globalCompressionThreshold": 0.001, "resultCompressionMinSize": 100, "systemPromptLength": 0,
            "instructionLength": 0,
        }),
        "layered" => serde_json::json!({ "clearMinTokens": 40, "keepRecent": 1, "minSavings": 0 }),
        "factor3" => {
            serde_json::json!({ "minTokens": 40, "fileLines": 3, "outlineLines": 3, "targetTokens": 120 })
        }
        "checkpoint" => serde_json::json!({ "keepUserMessages": 2 }),
        "offload" => serde_json::json!({ "compactTriggerThreshold": 1 }),
        _ => serde_json::json!({}),
    };
    let text = options.to_string();
    let value = serde_json::from_str(&text).expect("options are JSON");
    Rc::new(Settings::read(&value).expect("options are valid"))
}

fn survives(preset: &str, max_batch_ops: usize) {
    let of = format!("{preset}, batches of {max_batch_ops}");
    let counts = failpoints::run(&settings(preset), max_batch_ops, &identity);
    let counts = counts.unwrap_or_else(|what| panic!("{of}: {what}"));
    println!("{}", counts.line("failpoints", &of));
    // Opening writes nothing, and `react` has no history to summarise.
    let writing = STEPS.len() as u64 - if preset == "react" { 2 } else { 1 };
    assert_eq!(counts.of("operations that write"), writing, "{of}: {counts}");
}

#[test]
fn every_operation_survives_a_fault_at_every_effect_under_offload() {
    survives("offload", WHOLE);
}

#[test]
fn every_operation_survives_a_fault_at_every_effect_in_small_batches() {
    survives("offload", 8);
}

#[test]
fn every_operation_survives_a_fault_at_every_effect_under_balanced() {
    survives("balanced", WHOLE);
}

#[test]
fn every_operation_survives_a_fault_at_every_effect_under_react() {
    survives("react", WHOLE);
}

#[test]
fn every_operation_survives_a_fault_at_every_effect_under_layered() {
    survives("layered", WHOLE);
}

#[test]
fn every_operation_survives_a_fault_at_every_effect_under_factor3() {
    survives("factor3", WHOLE);
}

#[test]
fn every_operation_survives_a_fault_at_every_effect_under_checkpoint() {
    survives("checkpoint", WHOLE);
}

#[test]
fn every_preset_is_tested() {
    let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
    assert_eq!(names, ["balanced", "offload", "react", "layered", "factor3", "checkpoint"]);
}

/// A protocol in front of a store that is right.
struct Mutant {
    store: Rc<dyn Store>,
    /// What it has in mind between two calls.
    late: RefCell<Vec<Batch>>,
    commit: fn(&Mutant, &Batch) -> Result<()>,
}

impl Mutant {
    /// Writes what it acknowledged before it had written it.
    fn flush(&self) -> Result<()> {
        self.late.take().iter().try_for_each(|batch| self.store.commit(batch))
    }
}

impl Store for Mutant {
    fn read(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        self.flush()?;
        self.store.read(keys)
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<(Key, Vec<u8>)>> {
        self.flush()?;
        self.store.scan(scan)
    }

    fn commit(&self, batch: &Batch) -> Result<()> {
        (self.commit)(self, batch)
    }
}

fn is_of(key: &Key, table: &str) -> bool {
    key.0.first() == Some(&KeyPart::Text(table.into()))
}

/// Writes the rows of a table in a commit of their own, behind the rest.
fn behind(mutant: &Mutant, batch: &Batch, table: &str) -> Result<()> {
    let (late, puts) = batch.puts.iter().cloned().partition(|(key, _)| is_of(key, table));
    mutant.store.commit(&Batch { puts, ..batch.clone() })?;
    let late: Vec<_> = late;
    if late.is_empty() {
        return Ok(());
    }
    mutant.store.commit(&Batch {
        puts: late,
        expect: Vec::new(),
        deletes: Vec::new(),
        durability: batch.durability,
    })
}

/// The check that finds this protocol, and how.
fn caught(commit: fn(&Mutant, &Batch) -> Result<()>) -> String {
    let protocol = move |store| Rc::new(Mutant { store, late: RefCell::default(), commit }) as Rc<dyn Store>;
    let what = failpoints::run(&settings("offload"), WHOLE, &protocol).expect_err("it must be caught");
    println!("caught by {what}");
    what
}

#[test]
fn an_honest_protocol_behind_the_mutants_door_is_not_caught() {
    let honest = |store| {
        let commit = |mutant: &Mutant, batch: &Batch| mutant.store.commit(batch);
        Rc::new(Mutant { store, late: RefCell::default(), commit }) as Rc<dyn Store>
    };
    assert_eq!(failpoints::run(&settings("offload"), WHOLE, &honest).err(), None);
}

#[test]
fn the_pointer_before_the_view_is_caught() {
    let what = caught(|mutant, batch| behind(mutant, batch, "views"));
    assert!(what.contains("the process dies") && what.contains("I3"), "{what}");
}

#[test]
fn the_reference_before_its_text_is_caught() {
    let what = caught(|mutant, batch| behind(mutant, batch, "blobs"));
    assert!(what.contains("the process dies"), "{what}");
}

#[test]
fn the_sessions_row_before_the_log_is_caught() {
    let what = caught(|mutant, batch| behind(mutant, batch, "log"));
    assert!(what.contains("the process dies") && what.contains("I1"), "{what}");
}

#[test]
fn the_log_before_the_sessions_row_is_caught() {
    let what = caught(|mutant, batch| behind(mutant, batch, "sessions"));
    assert!(what.contains("the process dies") && what.contains("I5"), "{what}");
}

#[test]
fn no_compare_and_set_is_caught() {
    let what = caught(|mutant, batch| mutant.store.commit(&Batch { expect: Vec::new(), ..batch.clone() }));
    assert!(what.contains("by another tab"), "{what}");
}

/// What was acknowledged is not there: by itself, or when the session goes on.
fn is_missed(what: &str) -> bool {
    what.contains("is not there once") || what.contains("does not stand behind what there was")
}

#[test]
fn an_acknowledgement_before_the_commit_is_caught() {
    let what = caught(|mutant, batch| {
        mutant.flush()?;
        mutant.late.borrow_mut().push(batch.clone());
        Ok(())
    });
    assert!(is_missed(&what), "{what}");
}

#[test]
fn a_lost_unsynced_suffix_is_caught() {
    // Of every two commits, both reach the disk with the second.
    let what = caught(|mutant, batch| {
        let mut late = mutant.late.borrow_mut();
        late.push(batch.clone());
        if late.len() < 2 { Ok(()) } else { late.drain(..).try_for_each(|batch| mutant.store.commit(&batch)) }
    });
    assert!(is_missed(&what), "{what}");
}

#[test]
fn a_deletion_before_the_commit_is_caught() {
    let what = caught(|mutant, batch| {
        // The view before is in the way of the new one, and comes back with it.
        let views = batch.puts.iter().filter(|(key, _)| is_of(key, "views"));
        let old: Vec<Key> = views
            .filter_map(|(key, _)| match key.0.as_slice() {
                [table, session, KeyPart::Number(generation)] => Some(Key(vec![
                    table.clone(),
                    session.clone(),
                    KeyPart::Number(generation.checked_sub(1)?),
                ])),
                _ => None,
            })
            .collect();
        let values = mutant.store.read(&old)?;
        let again = old.iter().cloned().zip(values).filter_map(|(key, value)| Some((key, value?)));
        let mut whole = batch.clone();
        whole.puts.extend(again);
        let deletes =
            whole.puts.iter().map(|(key, _)| key).filter(|key| old.contains(key)).cloned().collect();
        let first = Batch { expect: Vec::new(), puts: Vec::new(), deletes, durability: batch.durability };
        mutant.store.commit(&first)?;
        mutant.store.commit(&whole)
    });
    assert!(what.contains("I3"), "{what}");
}

#[test]
fn a_commit_that_takes_place_twice_is_caught() {
    let what = caught(|mutant, batch| {
        mutant.store.commit(batch)?;
        mutant.store.commit(&Batch { expect: Vec::new(), ..batch.clone() })
    });
    assert!(what.contains("conflict"), "{what}");
}

#[test]
fn a_batch_that_is_torn_where_it_fails_is_caught() {
    let what = caught(|mutant, batch| {
        for put in &batch.puts {
            let one = Batch { puts: vec![put.clone()], deletes: Vec::new(), ..batch.clone() };
            let is_first = batch.puts.first() == Some(put);
            mutant.store.commit(&if is_first { one } else { Batch { expect: Vec::new(), ..one } })?;
        }
        mutant.store.commit(&Batch { expect: Vec::new(), puts: Vec::new(), ..batch.clone() })
    });
    assert!(what.contains("the process dies"), "{what}");
}

#[test]
fn a_refusal_that_is_swallowed_is_caught() {
    let what = caught(|mutant, batch| match mutant.store.commit(batch) {
        Err(error) if error.code == Code::Conflict => Ok(()),
        done => done,
    });
    assert!(what.contains("by another tab"), "{what}");
}
