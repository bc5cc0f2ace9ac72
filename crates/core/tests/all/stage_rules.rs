//! Parts of the engine are loaded by the host when they are first needed, which may fail.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::policy::{PRESETS, Trigger};
use context_compactor_core::session::Session;
use context_compactor_core::step::{CodeStage, Effect, Notice};
use context_compactor_store_tests::conversation::user;
use context_compactor_store_tests::host::How;
use context_compactor_store_tests::{Host, MemoryStore};
use serde_json::json;
use std::cell::Cell;
use std::rc::Rc;

fn is_load(effect: &Effect) -> bool {
    matches!(effect, Effect::Load(_))
}

/// From now on every load fails; how many that were.
fn offline(harness: &mut Harness) -> Rc<Cell<usize>> {
    let asked = Rc::new(Cell::new(0));
    let note = Rc::clone(&asked);
    harness.host.gives_up = Box::new(move |effect| {
        is_load(effect).then(|| note.set(note.get() + 1))?;
        Some(Code::StageUnavailable)
    });
    asked
}

fn online(harness: &mut Harness) {
    harness.host.gives_up = Box::new(|_| None);
}

#[test]
fn z4_a_chat_that_needs_no_compaction_never_asks_for_a_stage() {
    // That of preset `react` looks at the results of every prompt.
    for preset in PRESETS.iter().filter(|preset| preset.name != "react") {
        for format in FORMATS {
            let over = json!({ "preset": preset.name, "contextWindow": 200_000, "format": format.as_str() });
            let mut harness = Harness::new(over);
            let asked = offline(&mut harness);
            for nth in 0..4 {
                harness.append(&turn(format, nth, 50));
                assert_eq!(harness.sent().len(), 4 * (nth + 1));
            }
            assert_eq!(asked.get(), 0, "{}", preset.name);
            assert_eq!(harness.host.seen.notices, [], "{}", preset.name);
        }
    }
}

#[test]
fn z3_what_fits_is_sent_as_it_is_while_the_ladder_cannot_be_loaded_and_compacted_after() {
    let mut harness = Harness::new(eager());
    harness.append(&talk(10, 40));
    let (before, commits) = (harness.memory.rows(), harness.host.seen.commits.len());
    let asked = offline(&mut harness);
    for nth in 1..3 {
        assert_eq!(harness.sent().len(), 20);
        assert_eq!(asked.get(), nth);
    }
    let warned = |notice: &Notice| matches!(notice, Notice::Warning { code: Code::StageUnavailable, .. });
    assert_eq!(harness.host.seen.notices.iter().filter(|notice| warned(notice)).count(), 2);
    assert_eq!(
        (harness.memory.rows(), harness.host.seen.commits.len()),
        (before, commits),
        "nothing is written"
    );
    online(&mut harness);
    assert!(harness.prepare().result.unwrap().success);
}

#[test]
fn z3_what_does_not_fit_is_refused_until_the_ladder_can_be_loaded() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(40, 200));
    let before = harness.memory.rows();
    offline(&mut harness);
    for trigger in [Trigger::Auto, Trigger::Overflow] {
        let error = harness.host.run(harness.session.prepare(trigger, Vec::new())).unwrap_err();
        assert_eq!(error.code, Code::StageUnavailable);
    }
    assert_eq!(harness.memory.rows(), before);
    online(&mut harness);
    assert!(harness.prepare().result.unwrap().success);
}

#[test]
fn z3_a_compaction_by_hand_that_cannot_load_the_ladder_changes_nothing() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(10, 40));
    let before = harness.memory.rows();
    harness.host.fault(1, is_load, How::Fail(Code::StageUnavailable));
    let error = harness.host.run(harness.session.compact(None)).unwrap_err();
    assert_eq!(error.code, Code::StageUnavailable);
    assert_eq!(harness.memory.rows(), before);
    assert!(harness.compact().success);
}

#[test]
fn z3_the_ladder_is_announced_before_it_is_needed() {
    let announced = |harness: &mut Harness| {
        let mut machine = harness.session.prepare(Trigger::Auto, Vec::new());
        let mut step = machine.step(None);
        loop {
            if step.effects.iter().any(|(_, effect)| *effect == Effect::Prefetch(CodeStage::Compact)) {
                return true;
            }
            if step.done.is_some() {
                return false;
            }
            let asked = harness.host.hear(step.effects);
            let (id, effect) = asked.into_iter().next().unwrap();
            let event = harness.host.perform(&effect);
            step = machine.step(Some((id, event)));
        }
    };
    let mut harness = Harness::new(json!({ "compactAt": { "tokens": 4_000 } }));
    harness.append(&talk(5, 200));
    assert!(!announced(&mut harness));
    harness.append(&talk(3, 200));
    assert!(announced(&mut harness));
    // From seven tenths on.
    let of = |words: usize, at: usize| {
        let mut harness = Harness::new(json!({ "compactAt": { "tokens": at } }));
        harness.append(&talk(5, 200));
        harness.append(&[user(&"word ".repeat(words))]);
        harness
    };
    let tokens = |words: usize| of(words, 100_000).session.usage().unwrap().used_tokens;
    let sizes = (1..100).map(|words| (words, tokens(words)));
    let (words, tokens) = sizes.into_iter().find(|(_, tokens)| tokens % 7 == 0).unwrap();
    assert!(announced(&mut of(words, tokens / 7 * 10)));
    assert!(!announced(&mut of(words, tokens / 7 * 10 + 10)));
}

/// Opens the session of `memory` where nothing can be loaded.
fn opened_offline(memory: &Rc<MemoryStore>, name: &str, over: serde_json::Value) -> Result<Harness, Code> {
    let mut host = Host::new(Rc::clone(memory) as _, name);
    host.gives_up = Box::new(|effect| is_load(effect).then_some(Code::StageUnavailable));
    let (session, _) =
        host.run(Session::open(settings(over), Some("s".into()), 10_000)).map_err(|error| error.code)?;
    Ok(Harness { memory: Rc::clone(memory), host, session })
}

#[test]
fn z4_a_session_that_is_opened_again_and_handed_over_needs_no_stage() {
    for format in FORMATS {
        for compacted in [false, true] {
            let over = || json!({ "contextWindow": 200_000, "format": format.as_str() });
            let mut first = Harness::new(over());
            let mut all = Vec::new();
            if compacted {
                // Its views, offloads and jobs are read, too.
                (0..6).for_each(|nth| first.append(&turn(format, nth, 20_000)));
                assert!(first.compact().success);
                assert!(first.memory.rows().iter().any(|(key, _)| key.to_string().starts_with("blobs/")));
            }
            for nth in 10..13 {
                let name = format!("tab {nth}");
                let mut harness = opened_offline(&first.memory, &name, over()).unwrap();
                harness.append(&turn(format, nth, 50));
                all.extend(turn(format, nth, 50));
                if !compacted {
                    let synced = harness.host.run(harness.session.sync(0, all.clone())).unwrap();
                    assert_eq!((synced.appended, synced.recognized), (0, all.len()));
                }
                assert!(harness.session.record_usage(r#"{"inputTokens":90}"#, None).is_ok());
                assert!(!harness.sent().is_empty());
                assert_eq!(harness.host.seen.notices, []);
            }
        }
    }
}

#[test]
fn z5_a_prompt_that_must_be_mended_waits_for_what_mends_it_and_nothing_is_lost() {
    for format in FORMATS {
        let mut harness = Harness::new(json!({ "format": format.as_str() }));
        let bodies = turn(format, 0, 20);
        harness.append(&bodies[..2]);
        let before = harness.memory.rows();
        let asked = offline(&mut harness);
        let error = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap_err();
        assert_eq!((error.code, asked.get()), (Code::StageUnavailable, 1));
        assert_eq!(harness.memory.rows(), before, "nothing is written");
        online(&mut harness);
        assert_eq!(harness.sent().len(), 1, "the call without a result is not sent");
        // What is whole needs no mending.
        let asked = offline(&mut harness);
        harness.append(&bodies[2..]);
        assert_eq!((harness.sent().len(), asked.get()), (bodies.len(), 0));
    }
}

#[test]
fn z23_a_damaged_session_stays_as_it_is_until_recovery_can_be_loaded() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(4, 20));
    let row = harness.memory.rows().into_iter().map(|(key, _)| key);
    let row = row.into_iter().find(|key| key.to_string().starts_with("sessions/")).unwrap();
    for damage in [None, Some(b"{}".to_vec())] {
        harness.memory.damage(&row, damage);
        let before = harness.memory.rows();
        let failed = opened_offline(&harness.memory, "b", json!({})).err();
        assert_eq!(failed, Some(Code::StageUnavailable));
        assert_eq!(harness.memory.rows(), before, "nothing is written");
        let mut again = Harness::over(Rc::clone(&harness.memory), "c", json!({}));
        assert_eq!(again.sent().len(), 8);
    }
}

#[test]
fn z23_a_history_that_goes_on_otherwise_is_left_as_it_is_until_branching_can_be_loaded() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(4, 20));
    let mut other = talk(4, 20);
    other.truncate(4);
    other.extend(talk(9, 20).split_off(16));
    let before = harness.memory.rows();
    offline(&mut harness);
    let error = harness.host.run(harness.session.sync(0, other.clone())).unwrap_err();
    assert_eq!(error.code, Code::StageUnavailable);
    assert_eq!(harness.memory.rows(), before, "nothing is written");
    online(&mut harness);
    assert_eq!(harness.host.run(harness.session.sync(0, other.clone())).unwrap().branched_at, Some(4));
    assert_eq!(harness.sent().len(), other.len());
}

#[test]
fn z23_what_others_wrote_is_read_once_that_can_be_loaded() {
    let mut one = Harness::new(json!({}));
    one.append(&talk(2, 20));
    let mut other = Harness::over(Rc::clone(&one.memory), "b", json!({}));
    other.append(&talk(1, 20));
    offline(&mut one);
    // The prompt is of what is known, and says so; an append would write over what is not.
    assert_eq!(one.sent().len(), 4);
    let warned = |notice: &Notice| matches!(notice, Notice::Warning { code: Code::StageUnavailable, .. });
    assert!(one.host.seen.notices.iter().any(warned));
    let before = one.memory.rows();
    assert_eq!(one.host.run(one.session.append(talk(1, 20))).unwrap_err().code, Code::StageUnavailable);
    assert_eq!(one.memory.rows(), before, "nothing is written");
    online(&mut one);
    one.append(&talk(1, 20));
    assert_eq!(one.sent().len(), 8);
}
