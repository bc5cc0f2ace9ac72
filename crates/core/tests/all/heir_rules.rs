//! Views do not hold again what the views before them hold (P4): a summary inherits the offloads of what it replaces.

use crate::support::*;
use context_compactor_core::context::{Item, Origin};
use context_compactor_core::keys::batch::Key;
use context_compactor_core::session::audit::{look, view_text};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::user;
use serde_json::{Value, json};
use std::rc::Rc;

const TURNS: usize = 120;

fn options() -> Value {
    json!({ "preset": "balanced", "contextWindow": 4_000, "keep": { "messages": 4 } })
}

/// A long session whose results are offloaded, then summarised, again and again.
fn worked() -> Harness {
    let mut harness = Harness::new(options());
    for nth in 0..TURNS {
        harness.append(&turn(Format::OpenaiChat, nth, 400));
        harness.prepare();
    }
    harness
}

fn context(harness: &Harness) -> Vec<Item> {
    look(&harness.session).unwrap().context.items().to_vec()
}

/// The references that the summaries of the context stand for, each with the index of its message.
fn inherited(harness: &Harness) -> Vec<(usize, String)> {
    let covers = context(harness).into_iter().filter_map(|item| match item.origin {
        Origin::Summary { covers, .. } => Some(covers.to_vec()),
        _ => None,
    });
    let offloads = covers.flatten().flat_map(|cover| cover.offloads);
    offloads.map(|(index, offload)| (index, offload.reference)).collect()
}

/// The rows of the views in their order.
fn views(harness: &Harness) -> Vec<(Key, Value)> {
    let rows = harness.memory.rows().into_iter();
    let views = rows.filter(|(key, _)| key.to_string().starts_with("views/"));
    let mut views: Vec<(Key, Value)> =
        views.map(|(key, bytes)| (key, serde_json::from_slice(&view_text(&bytes)).unwrap())).collect();
    views.sort_by_key(|(_, view)| view["generation"].as_u64());
    views
}

fn reopened(harness: &Harness, name: &str) -> Harness {
    Harness::over(Rc::clone(&harness.memory), name, options())
}

#[test]
fn p4_a_view_that_changes_the_one_before_is_as_large_at_the_end_as_at_the_beginning() {
    let harness = worked();
    let views = views(&harness);
    let sizes: Vec<usize> = views
        .iter()
        .filter(|(_, view)| view.get("whole").is_none() && view["cause"]["rung"] == "summarise")
        .map(|(_, view)| view.to_string().len())
        .collect();
    assert!(sizes.len() > 8 && inherited(&harness).len() > TURNS / 2, "{sizes:?}");
    let [first, last] = [&sizes[1..4], &sizes[sizes.len() - 3..]].map(|sizes| sizes.iter().sum::<usize>());
    assert!(last < first * 13 / 10, "{sizes:?}");
}

#[test]
fn p4_what_is_inherited_is_there_at_the_next_opening_and_every_text_is_read() {
    let harness = worked();
    let mut again = reopened(&harness, "b");
    assert_eq!(context(&again), context(&harness));
    again.stored();
    let verified = again.host.run(again.session.verify()).unwrap();
    assert_eq!(verified.problems, [""; 0]);
    for (index, reference) in inherited(&harness) {
        assert_eq!(again.read(&reference), long(&format!("result {}", index / 4), 400), "message {index}");
    }
}

#[test]
fn p4_an_erased_message_is_inherited_no_more() {
    let harness = worked();
    let (index, reference) = inherited(&harness).remove(0);
    let mut again = reopened(&harness, "b");
    let before = inherited(&again).len();
    again.host.run(again.session.erase(index, "a leaked token".into())).unwrap();
    assert!(inherited(&again).iter().all(|(_, known)| *known != reference));
    let last = reopened(&again, "c");
    assert_eq!((context(&last), inherited(&last).len()), (context(&again), before - 1));
    last.stored();
    assert!(views(&last).iter().any(|(_, view)| view.to_string().contains("\"inherits\":true")));
}

#[test]
fn p4_undo_gives_the_bytes_of_before_where_a_summary_had_inherited() {
    let mut harness = worked();
    harness.append(&[user("and now?")]);
    let before = context(&harness);
    assert!(harness.compact().success);
    assert_ne!(context(&harness), before);
    harness.host.run(harness.session.undo()).unwrap();
    assert_eq!(context(&harness), before);
    assert_eq!(context(&reopened(&harness, "b")), before);
}
