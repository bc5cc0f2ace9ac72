//! Limits: at the bound a message is taken, one above it is refused with its place, and nothing of the
//! call is written.

use crate::support::*;
use context_compactor_core::message::limits::{MAX_DEPTH, MAX_PARTS, MAX_REFERENCES};
use context_compactor_core::{Code, Error};
use context_compactor_store_tests::conversation::{Body, body, user};
use serde_json::{Value, json};
use std::rc::Rc;

fn text_blocks(count: usize) -> Body {
    body(&json!({ "role": "user", "content": vec![json!({ "type": "text", "text": "x" }); count] }))
}

fn calls(count: usize) -> Body {
    let call = |nth: usize| json!({ "id": format!("c{nth}"), "type": "function", "function": { "name": "f", "arguments": "{}" } });
    body(
        &json!({ "role": "assistant", "content": null, "tool_calls": (0..count).map(call).collect::<Vec<_>>() }),
    )
}

fn results(count: usize) -> Body {
    let result =
        |nth: usize| json!({ "type": "tool_result", "tool_use_id": format!("c{nth}"), "content": "x" });
    body(&json!({ "role": "user", "content": (0..count).map(result).collect::<Vec<_>>() }))
}

/// A message of so many levels, itself included.
fn deep(levels: usize) -> Body {
    let mut json = "1".to_string();
    for _ in 1..levels {
        json = format!("[{json}]");
    }
    Rc::from(format!(r#"{{"role":"user","content":"x","extra":{json}}}"#))
}

fn append(message: Body) -> Result<(), Error> {
    let mut harness = Harness::new(json!({}));
    let appended = harness.host.run(harness.session.append(vec![user("first"), message]));
    assert_eq!(
        harness.stored().messages.len(),
        if appended.is_ok() { 2 } else { 0 },
        "all of a call or nothing"
    );
    appended.map(drop)
}

#[test]
fn storage_s8_the_bound_is_taken_and_one_above_is_refused_with_its_place() {
    type Make = fn(usize) -> Body;
    let bounds: [(Make, usize, Code, &str); 4] = [
        (text_blocks, MAX_PARTS, Code::TooLarge, "content"),
        (calls, MAX_PARTS, Code::TooLarge, "tool_calls"),
        (results, MAX_REFERENCES, Code::TooLarge, "content"),
        (deep, MAX_DEPTH, Code::InvalidMessage, ""),
    ];
    for (make, bound, code, field) in bounds {
        assert_eq!(append(make(bound)), Ok(()), "{bound} of {field}");
        let error = append(make(bound + 1)).unwrap_err();
        assert_eq!(
            (error.code, error.index, error.field.as_deref()),
            (code, Some(1), Some(field)),
            "{error}"
        );
    }
}

#[test]
fn storage_s8_what_was_refused_leaves_a_session_that_goes_on() {
    let mut harness = Harness::new(json!({}));
    for message in [text_blocks(MAX_PARTS + 1), results(MAX_REFERENCES + 1), deep(500), deep(100_000)] {
        harness.host.run(harness.session.append(vec![message])).unwrap_err();
    }
    harness.append(&talk(2, 10));
    assert_eq!(harness.stored().messages.len(), 4);
    // An answer or an argument of a tool may nest as it likes: it is a text.
    let nested = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let call = json!({ "id": "a", "type": "function", "function": { "name": "f", "arguments": nested } });
    let result: Value = json!({ "role": "tool", "tool_call_id": "a", "content": nested });
    harness.append(&[
        body(&json!({ "role": "assistant", "content": null, "tool_calls": [call] })),
        body(&result),
    ]);
    harness.append(&talk(4, 10));
    assert!(harness.compact().success);
}

/// What was handed over before is not read again: the place of a message is counted from it.
#[test]
fn e1_a_branch_behind_known_messages_is_refused_whole_where_an_append_refuses_one_of_its_messages() {
    // Plain texts leave the format open.
    let answer = body(&json!({ "role": "tool", "tool_call_id": "c0", "content": "x" }));
    let decided = [vec![user("use f"), calls(1), answer], talk(2, 10)].concat();
    for history in [talk(6, 10), decided] {
        let mut harness = Harness::new(json!({}));
        harness.append(&history);
        let before = harness.stored().messages.len();
        for known in 0..=3 {
            let edited = [user("another question"), text_blocks(MAX_PARTS + 1)];
            let given: Vec<Body> = history.iter().take(4).skip(known).chain(&edited).cloned().collect();
            let error = harness.host.run(harness.session.sync(known, given)).unwrap_err();
            assert_eq!((error.code, error.index), (Code::TooLarge, Some(5)), "{known}: {error}");
            assert_eq!(harness.context().len(), history.len(), "nothing is left behind");
            assert_eq!(harness.stored().messages.len(), before);
        }
    }
}
