//! What a change of the context does to the messages that stay, and what of the context is sent.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use context_compactor_store_tests::conversation::{assistant, user};
use serde_json::{Value, json};
use support::*;

/// Nothing to offload, always over the threshold.
fn eager() -> Value {
    json!({ "trigger": { "tokens": 100 } })
}

#[test]
fn s1_5_a_cut_behind_a_long_run_of_user_messages_still_frees_something() {
    let mut desk = Desk::new(eager());
    let mut history = vec![user(&long("first", 40)), assistant(&long("answer", 40))];
    history.extend((0..60).map(|nth| user(&long(&format!("note {nth}"), 20))));
    desk.append(&history);
    let result = desk.compact();
    assert!(result.success, "{:?}", result.error);
    assert_eq!(result.preserved_count, 5);
    let context = desk.context();
    assert_eq!(context.len(), 7, "summary, acknowledgement and the preserved five");
    assert_eq!(context[1]["role"], "assistant");
}

#[test]
fn s1_5_the_cut_never_moves_back_to_where_nothing_is_left_to_compress() {
    let mut desk = Desk::new(eager());
    desk.append(&[assistant(&long("greeting", 200))]);
    desk.append(&(0..6).map(|nth| user(&long(&format!("note {nth}"), 40))).collect::<Vec<_>>());
    let result = desk.compact();
    assert!(result.success && result.summary.is_some(), "{:?} {:?}", result.error, result.reason);
}

