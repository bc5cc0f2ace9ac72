//! The session's row, made again of its log (R2): field by field what it was.

use crate::support::snapshots::take;
use crate::support::transcripts::{archive, lines};
use crate::support::*;
use context_compactor_core::keys::batch::Key;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::user;
use serde_json::{Value, json};
use std::rc::Rc;

fn options() -> Value {
    json!({ "compactAt": { "tokens": 400 }, "advanced": { "minOffloadGain": 1 }, "keep": { "messages": 4 } })
}

fn goal(description: &str) -> String {
    json!({ "id": description, "description": description, "priority": "low", "status": "active",
        "checkpoints": [], "decisions": [], "artifacts": [] })
    .to_string()
}

fn row_of(harness: &Harness, table: &str) -> Vec<(Key, Value)> {
    let rows = harness.memory.rows().into_iter().filter(|(key, _)| key.to_string().starts_with(table));
    rows.map(|(key, bytes)| (key, serde_json::from_slice(&bytes).unwrap())).collect()
}

/// The session's two rows as one: its head, and what changes seldom.
fn session_row(harness: &Harness) -> (Key, Value) {
    let mut rows = row_of(harness, "sessions/").into_iter();
    let (key, mut row) = rows.next().unwrap();
    for (_, notes) in rows.filter(|(key, _)| key.to_string().ends_with("/notes")) {
        merge(&mut row, &notes);
    }
    (key, row)
}

/// A session with offloads, summaries, a goal and two snapshots.
fn rich() -> Harness {
    let mut harness = Harness::new(options());
    for nth in 0..3 {
        harness.append(&turn(Format::OpenaiChat, nth, 150));
        harness.prepare();
    }
    harness.host.run(harness.session.set_goal(goal("First"))).unwrap();
    take(&mut harness);
    assert!(harness.compact().success);
    harness.append(&talk(3, 40));
    harness.host.run(harness.session.set_goal(goal("Second"))).unwrap();
    take(&mut harness);
    harness.append(&talk(3, 40));
    assert!(harness.compact().success);
    harness.append(&talk(3, 40));
    assert!(harness.compact().success);
    harness.host.run(harness.session.undo()).unwrap();
    harness.append(&[user("and now?")]);
    harness
}

#[test]
fn f39_r2_a_row_that_is_gone_is_made_again_with_all_that_the_log_says() {
    for is_missing in [true, false] {
        let mut harness = rich();
        let (key, before) = session_row(&harness);
        let log: Vec<Value> = lines(&archive(&mut harness.host, &harness.session))
            .into_iter()
            .filter(|line| line["seq"].is_u64())
            .collect();
        let bytes = (!is_missing).then(|| b"{\"v\":101,\"ver\":broken".to_vec());
        harness.memory.damage(&key, bytes);
        let other = Harness::over(Rc::clone(&harness.memory), "other", options());
        let after = session_row(&other).1;
        for field in [
            "v",
            "id",
            "format",
            "nextSeq",
            "head",
            "chain",
            "messages",
            "tokens",
            "generation",
            "tailFrom",
            "compressions",
            "snapshots",
            "goal",
        ] {
            assert_eq!(after[field], before[field], "{field}");
        }
        assert_eq!((&before["compressions"], &before["goal"]["id"]), (&json!(2), &json!("Second")));
        assert_eq!(before["snapshots"].as_array().unwrap().len(), 2);
        assert_eq!(after["createdAt"], log[0]["timestamp"], "the session is as old as its first message");
        let opened = after["updatedAt"].as_u64().unwrap();
        assert!(opened >= log.last().unwrap()["timestamp"].as_u64().unwrap(), "{opened}");
        assert_eq!((&after["ver"], &after["pendingStep"]), (&json!(1), &json!(true)));
        let what = if is_missing { "missing" } else { "damaged" };
        let told = format!("the session was mended from its log: its row was {what}");
        assert_eq!(after["losses"], json!([{ "kind": "repaired", "reason": told }]));
        let views =
            other.memory.rows().iter().filter(|(key, _)| key.to_string().starts_with("views/")).count();
        assert_eq!(before["generation"], views, "no view is lost");
    }
}
