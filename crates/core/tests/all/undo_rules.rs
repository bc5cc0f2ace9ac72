//! A compaction taken back: the context is what it would be without it.

use crate::support::*;
use context_compactor_core::context::{Fate, Item};
use context_compactor_core::session::audit::look;
use context_compactor_core::{Code, Error};
use context_compactor_store_tests::conversation::{assistant, user};
use serde_json::{Value, json};
use std::rc::Rc;

fn undo(harness: &mut Harness) -> Result<(), Error> {
    harness.host.run(harness.session.undo())
}

fn refused(harness: &mut Harness) -> String {
    let error = undo(harness).unwrap_err();
    assert_eq!(error.code, Code::NotFound, "{error}");
    error.into_parts().message
}

fn context(harness: &Harness) -> Vec<Item> {
    look(&harness.session).unwrap().context.items().to_vec()
}

fn compressions(harness: &Harness) -> u64 {
    harness.session.metadata().unwrap().compression_count
}

fn reopened(harness: &Harness, over: Value) -> Harness {
    Harness::over(Rc::clone(&harness.memory), "b", over)
}

#[test]
fn x14_undo_gives_the_bytes_of_before_and_what_came_since() {
    for preset in ["offload", "layered", "react", "factor3", "checkpoint", "balanced"] {
        for format in FORMATS {
            let options = json!({ "preset": preset, "keep": { "messages": 2 } });
            let mut harness = Harness::new(options.clone());
            for nth in 0..4 {
                harness.append(&turn(format, nth, 60));
            }
            let (before, count) = (context(&harness), compressions(&harness));
            assert!(harness.compact().success, "{preset}");
            let compacted = context(&harness);
            assert_ne!(compacted, before);
            let since = turn(format, 9, 5);
            harness.append(&since);
            undo(&mut harness).unwrap();
            let after = context(&harness);
            assert_eq!(after[..before.len()], before, "{preset}");
            assert!(after[before.len()..].iter().map(|item| &item.body).eq(&since));
            assert_eq!(compressions(&harness), count);
            let again = reopened(&harness, options);
            assert_eq!(context(&again), after, "read back");
            again.stored();
        }
    }
}

#[test]
fn x14_one_after_another_they_are_taken_back_to_the_first() {
    let mut harness = Harness::new(json!({}));
    let mut said = Vec::new();
    for round in 0..3 {
        for nth in 0..4 {
            said.extend(turn(FORMATS[0], 10 * round + nth, 60));
        }
        harness.append(&said[harness.stored().messages.len()..]);
        assert!(harness.compact().success);
    }
    let third = context(&harness);
    undo(&mut harness).unwrap();
    // What was taken back is compacted again, and that is the last one then.
    assert!(harness.compact().success);
    undo(&mut harness).unwrap();
    for left in [1, 0] {
        undo(&mut harness).unwrap();
        assert_eq!(compressions(&harness), left);
    }
    assert!(context(&harness).iter().map(|item| &item.body).eq(&said));
    assert!(refused(&mut harness).contains("the context was not compacted"));
    assert!(harness.compact().success);
    assert_ne!(context(&harness), third);
}

#[test]
fn x14_all_steps_of_a_compaction_are_one() {
    let busy = json!({ "presetOptions": { "offloadThreshold": 400, "compactCooldownSteps": 0 }, "contextWindow": 3_000 });
    let mut harness = Harness::new(busy);
    for nth in 0..6 {
        harness.append(&turn(FORMATS[0], nth, 120));
    }
    harness.append(&talk(20, 60));
    let (before, generation) = (context(&harness), harness.stored().generation);
    harness.prepare();
    assert!(harness.stored().generation > generation + 1, "several steps");
    undo(&mut harness).unwrap();
    assert_eq!(context(&harness), before);
}

#[test]
fn x14_where_messages_left_the_context_since_there_is_nothing_to_take_back() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(6, 60));
    assert!(harness.compact().success);
    harness.append(&[user("one"), assistant("1"), user("two")]);
    harness.host.run(harness.session.rewind(13)).unwrap();
    assert!(refused(&mut harness).contains("since its last rewind"));
    harness.append(&talk(6, 60));
    assert!(harness.compact().success);
    undo(&mut harness).unwrap();
    assert!(refused(&mut harness).contains("since its last rewind"), "no way behind a branch");
}

#[test]
fn x14_pins_stay_and_do_not_keep_a_compaction_from_being_taken_back() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(6, 60));
    let before = context(&harness);
    assert!(harness.compact().success);
    harness.host.run(harness.session.pin(0)).unwrap();
    undo(&mut harness).unwrap();
    assert_eq!(context(&harness), before);
    harness.append(&talk(6, 60));
    assert!(harness.compact().success);
    assert_eq!(harness.session.explain().unwrap()[0].fate, Fate::Verbatim, "still pinned");
}

#[test]
fn x14_a_preview_names_the_messages_whose_fate_would_be_another_and_changes_nothing() {
    let mut harness = Harness::new(json!({ "keep": { "messages": 2 } }));
    harness.append(&talk(6, 60));
    let before = harness.session.explain().unwrap();
    let preview = harness.host.run(harness.session.preview()).unwrap();
    assert_eq!(harness.session.explain().unwrap(), before);
    assert!(harness.compact().success);
    let after = harness.session.explain().unwrap();
    let pairs = before.iter().zip(&after).map(|(before, after)| (before.index, before.fate, after.fate));
    let changed: Vec<_> = pairs.filter(|(_, before, after)| before != after).collect();
    let told: Vec<_> = preview.changes.iter().map(|c| (c.index, c.before, c.after)).collect();
    assert_eq!(told, changed);
    assert!(told.len() > 2 && told.len() < before.len(), "some of them: {told:?}");
}
