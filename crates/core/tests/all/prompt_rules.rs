//! What a prompt leaves out is told by the prompt itself.

use crate::support::Harness;
use context_compactor_core::Code;
use context_compactor_core::policy::Trigger;
use context_compactor_store_tests::conversation::Body;
use serde_json::{Value, json};

/// Formats with tools, each with an answer whose call is missing.
fn answers() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("openai-chat", "OC1", json!({ "role": "tool", "tool_call_id": "c", "content": "x" })),
        ("openai-responses", "OR1", json!({ "type": "function_call_output", "call_id": "c", "output": "x" })),
        (
            "anthropic",
            "AN2",
            json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c", "content": "x" }] }),
        ),
        (
            "gemini",
            "GM",
            json!({ "role": "user", "parts": [{ "functionResponse": { "name": "read", "response": { "output": "x" } } }] }),
        ),
        (
            "ai-sdk",
            "AI1",
            json!({ "role": "tool", "content": [
                { "type": "tool-result", "toolCallId": "c", "toolName": "read", "output": { "type": "text", "value": "x" } }
            ] }),
        ),
    ]
}

fn words(format: &str) -> Value {
    match format {
        "gemini" => json!({ "role": "user", "parts": [{ "text": "Go on." }] }),
        _ => json!({ "role": "user", "content": "Go on." }),
    }
}

fn body(value: &Value) -> Body {
    Body::from(value.to_string())
}

#[test]
fn f12_a_prompt_of_which_nothing_is_left_is_an_error() {
    for (format, rule, answer) in answers() {
        let mut harness = Harness::new(json!({ "format": format }));
        // The calls of outputs that a history begins with may be the server's there; an answer for a call is not.
        let call = json!({ "type": "function_call", "call_id": "c", "name": "read", "arguments": "{}" });
        harness.append(&[body(if format == "openai-responses" { &call } else { &answer })]);
        let told = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new()));
        let error = told.expect_err(format);
        assert_eq!((error.code, error.index), (Code::InvalidMessage, Some(0)), "{format}");
        assert!(error.message.contains(rule), "{format}: {error}");
    }
    let mut empty = Harness::new(json!({}));
    assert_eq!(empty.prepare().items.len(), 0);
}

#[test]
fn f12_a_shortened_prompt_is_listed_in_its_edits() {
    for (format, rule, answer) in answers() {
        let mut harness = Harness::new(json!({ "format": format }));
        harness.append(&[body(&words(format)), body(&answer), body(&words(format))]);
        for _ in 0..2 {
            let prepared = harness.prepare();
            assert_eq!(prepared.items.len(), 2, "{format}");
            let [edit] = &prepared.edits[..] else { panic!("{format}: {:?}", prepared.edits) };
            assert_eq!((edit.kind, &edit.indices[..]), ("repair", &[1][..]), "{format}");
            assert!(edit.freed_tokens > 0, "{format}");
            assert!(edit.detail.as_ref().unwrap().contains(rule), "{format}: {:?}", edit.detail);
        }
    }
    let mut whole = Harness::new(json!({}));
    whole.append(&[body(&words("openai-chat"))]);
    assert!(whole.prepare().edits.is_empty());
}

#[test]
fn f33_a_prompt_always_says_whether_it_exceeds_the_threshold() {
    let mut harness = Harness::new(json!({ "presetOptions": { "offloadThreshold": 5_000 } }));
    harness.append(&[body(&words("openai-chat"))]);
    assert!(!harness.prepare().still_exceeds_threshold);
    // Nothing may go of a few messages of the user, however long.
    let long = json!({ "role": "user", "content": "alpha beta ".repeat(2_000) });
    harness.append(&[body(&long)]);
    assert!(harness.prepare().still_exceeds_threshold);
}
