//! What holds of re-reads that are told as differences, whatever happens to the session.

use crate::reread_rules::{PRESETS, file, rereads, told};
use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::{Item, Placeholder};
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::session::audit::look;
use context_compactor_core::wire::{self, Format};
use context_compactor_store_tests::conversation::{Body, assistant, calls, results, user};
use context_compactor_store_tests::host::summary;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::HashMap;

/// What holds of a session whenever it hands something out: each result is told against one that stands before it word for
/// word, and with that says what it said when it came.
fn check(harness: &mut Harness, given: &[Body], format: Format) -> Result<(), TestCaseError> {
    let prepared = match harness.host.run(harness.session.prepare(Trigger::None, Vec::new())) {
        Ok(prepared) => prepared,
        Err(error) if matches!(error.code, Code::ContextOverflow | Code::InvalidMessage) => return Ok(()),
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    let sent: Vec<String> = bodies(&harness.session, &prepared).iter().map(Value::to_string).collect();
    let context = look(&harness.session).unwrap().context;
    let text = |body: &str, nth: usize| {
        let value = wire::parse(0, body).unwrap();
        let message = format.wire().read(0, &value).unwrap();
        message.results().nth(nth).map(|result| result.text.to_string()).unwrap()
    };
    let is_sent = |body: &str| {
        let body = serde_json::from_str::<Value>(body).unwrap().to_string();
        sent.iter().position(|sent| *sent == body)
    };
    let by_seq: HashMap<u64, &Item> =
        context.items().iter().filter_map(|item| Some((item.origin.place()?.seq, item))).collect();
    let fates = harness.session.explain().unwrap();
    for item in context.items() {
        for offload in item.origin.offloads().iter().filter(|offload| offload.how == Placeholder::Difference)
        {
            let Some(at) = is_sent(&item.body) else { continue };
            let basis = offload.basis.expect("a difference leans on something");
            let of = by_seq.get(&basis.seq).expect("and that stands in the context");
            prop_assert!(is_sent(&of.body).is_some_and(|of| of < at), "it is sent, too, before it");
            let (index, old) = (item.origin.place().unwrap().index, text(&given[basis.index], basis.nth));
            prop_assert_eq!(&text(&of.body, basis.nth), &old, "word for word");
            prop_assert_eq!(told(&text(&item.body, offload.nth), &old), text(&given[index], offload.nth));
            let fate = &fates[index];
            prop_assert!(fate.basis == Some(basis.index) || fate.bases.contains(&basis.index));
        }
    }
    Ok(())
}

#[derive(Debug, Clone)]
enum Op {
    /// A turn of the model: which files it reads side by side, and whether it says something before.
    Read(Vec<usize>),
    /// Its calls, of which one is never answered.
    Lost(usize),
    Say(usize),
    Prepare,
    Overflow,
    Compact,
    Remove(usize),
    Rewind(usize),
    Snapshot,
    Restore,
    Undo,
    Fork,
    Erase(usize),
    Reopen,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        12 => prop::collection::vec(0..3_usize, 1..3).prop_map(Op::Read),
        1 => (0..3_usize).prop_map(Op::Lost),
        2 => (1..60_usize).prop_map(Op::Say),
        6 => Just(Op::Prepare),
        1 => Just(Op::Overflow),
        2 => Just(Op::Compact),
        2 => (0..1_000_usize).prop_map(Op::Remove),
        1 => (0..1_000_usize).prop_map(Op::Rewind),
        1 => Just(Op::Snapshot),
        1 => Just(Op::Restore),
        1 => Just(Op::Undo),
        1 => Just(Op::Fork),
        1 => (0..1_000_usize).prop_map(Op::Erase),
        1 => Just(Op::Reopen),
    ];
    prop::collection::vec(op, 4..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn x2_whatever_happens_a_difference_stands_behind_what_it_is_told_against(
        format in prop::sample::select(FORMATS.to_vec()), preset in prop::sample::select(PRESETS.to_vec()),
        window in prop::sample::select(vec![6_000_usize, 16_000, 60_000]), lines in 20..120_usize, ops in ops(),
    ) {
        let options = json!({
            "preset": preset, "contextWindow": window, "recall": true, "background": false,
            "admit": { "rereads": true }, "clear": { "keepRecent": 2 },
        });
        let mut harness = rereads(options.clone());
        harness.host.summarise = Box::new(|_, _| summary(SUMMARY));
        let mut given: Vec<Body> = Vec::new();
        let (mut versions, mut calls_made, mut snapshot) = ([0_usize; 3], 0, None);
        let mut forks = 0;
        harness.append(&[user("begin")]);
        given.push(user("begin"));
        for op in ops {
            let append = |harness: &mut Harness, given: &mut Vec<Body>, new: Vec<Body>| {
                harness.append(&new);
                given.extend(new);
            };
            let refused = |code: Code| matches!(
                code, Code::InvalidOption | Code::NotFound | Code::ContextOverflow | Code::InvalidMessage,
            );
            macro_rules! run {
                ($machine:expr) => {{
                    let done = harness.host.run($machine);
                    if let Err(error) = &done {
                        prop_assert!(refused(error.code), "{}: {error}", error.code.as_str());
                    }
                    done.ok()
                }};
            }
            match op.clone() {
                Op::Read(files) => {
                    let mut asked = Vec::new();
                    for which in files {
                        calls_made += 1;
                        versions[which] += calls_made % 3;
                        let name = ["a", "b", "c"][which];
                        let text = file(name, lines, &[(versions[which] % lines, versions[which])]);
                        asked.push((format!("call_{calls_made}"), format!("src/{name}.rs"), text));
                    }
                    let of: Vec<_> = asked.iter().map(|(id, path, _)| (id.as_str(), path.as_str())).collect();
                    let with: Vec<_> = asked.iter().map(|(id, _, text)| (id.as_str(), text.as_str())).collect();
                    let mut new = calls(format, &of);
                    new.extend(results(format, &with));
                    append(&mut harness, &mut given, new);
                    run!(harness.session.prepare(Trigger::Auto, Vec::new()));
                }
                Op::Lost(which) => {
                    calls_made += 2;
                    let name = ["a", "b", "c"][which];
                    let (one, other) = (format!("call_{calls_made}"), format!("call_{calls_made}_"));
                    let path = format!("src/{name}.rs");
                    let mut new = calls(format, &[(&one, &path), (&other, "src/x.rs")]);
                    new.extend(results(format, &[(&one, &file(name, lines, &[]))]));
                    append(&mut harness, &mut given, new);
                    run!(harness.session.prepare(Trigger::Auto, Vec::new()));
                    append(&mut harness, &mut given, vec![user("never mind")]);
                }
                Op::Say(words) => {
                    let said = "字 word ".repeat(words);
                    append(&mut harness, &mut given, vec![assistant(&said), user(&said)]);
                }
                Op::Prepare => { run!(harness.session.prepare(Trigger::Auto, Vec::new())); }
                Op::Overflow => { run!(harness.session.prepare(Trigger::Overflow, Vec::new())); }
                Op::Compact => { run!(harness.session.compact(None)); }
                Op::Remove(at) => { run!(harness.session.remove_messages(vec![at % given.len().max(1)])); }
                Op::Rewind(at) => { run!(harness.session.rewind(at % (given.len() + 1))); }
                Op::Snapshot => { snapshot = run!(harness.session.snapshot(SnapshotPurpose::Rollback)).or(snapshot); }
                Op::Restore => if let Some(id) = snapshot.clone() {
                    run!(harness.session.restore(id));
                },
                Op::Undo => { run!(harness.session.undo()); }
                Op::Fork => {
                    forks += 1;
                    let id = format!("fork_{forks}");
                    let (session, forked) = harness.host.run(harness.session.fork(Some(id))).unwrap();
                    // It has the messages of the context alone.
                    given = forked.places.iter().map(|place| given[place.index].clone()).collect();
                    (harness.session, snapshot) = (session, None);
                }
                Op::Erase(at) => {
                    let at = at % given.len().max(1);
                    if run!(harness.session.erase(at, "asked".into())).is_some() {
                        given[at] = wire::blank(format, at, &given[at]).unwrap().into();
                    }
                }
                Op::Reopen => {
                    let id = if forks == 0 { "s".to_owned() } else { format!("fork_{forks}") };
                    let mut over = json!({ "summarize": { "call": true } });
                    merge(&mut over, &options);
                    harness.session = harness.host.run(Session::open(settings(over), Some(id), 10_000)).unwrap().0;
                }
            }
            check(&mut harness, &given, format)?;
            let id = if forks == 0 { "s".to_owned() } else { format!("fork_{forks}") };
            let audited = context_compactor_core::session::audit::audit(&id, &harness.memory.rows());
            prop_assert!(audited.is_ok(), "{}", audited.unwrap_err());
        }
    }
}

fn cases() -> u32 {
    std::env::var("CC_REREADS").ok().and_then(|cases| cases.parse().ok()).unwrap_or(48)
}
