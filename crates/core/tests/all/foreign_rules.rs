//! Shapes of messages that are no format of ours.

use crate::support::Harness;
use context_compactor_core::Code;
use context_compactor_core::wire::{Format, detect};
use context_compactor_store_tests::conversation::Body;
use context_compactor_store_tests::recorded;
use serde_json::{Value, json};

fn bodies(messages: &Value) -> Vec<Body> {
    messages.as_array().unwrap().iter().map(|message| Body::from(message.to_string())).collect()
}

fn detected(bodies: &[Body]) -> context_compactor_core::Result<Format> {
    let values: Vec<_> = bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    detect(&values)
}

/// Content as the early compactors had it: calls beside the content, the result's call by `toolCallId`.
fn camel(content: impl Fn(&str) -> Value) -> Vec<Body> {
    bodies(&json!([
        { "role": "user", "content": content("Read a.") },
        { "role": "assistant", "content": content("I read it."), "toolCalls": [{ "id": "c1", "name": "read", "arguments": {} }] },
        { "role": "tool", "toolCallId": "c1", "content": content("text of a") },
        { "role": "assistant", "content": content("Done.") }
    ]))
}

#[test]
fn f9_calls_in_fields_of_no_format_are_refused_by_name() {
    for history in [camel(|text| json!([{ "type": "text", "text": text }])), camel(|text| json!(text))] {
        let error = detected(&history).unwrap_err();
        assert_eq!((error.code, error.index), (Code::UnknownFormat, Some(1)));
        assert!(error.message.contains("`toolCalls`"), "{error}");
        let mut harness = Harness::new(json!({}));
        let told = harness.host.run(harness.session.append(history.clone())).unwrap_err();
        assert_eq!(told, error);
        // One by one: the message that has them is refused, at its place in the call.
        let mut harness = Harness::new(json!({}));
        harness.append(&history[..1]);
        let told = harness.host.run(harness.session.append(history[1..2].to_vec())).unwrap_err();
        assert_eq!((told.code, told.index), (Code::UnknownFormat, Some(0)));
        let result = detected(&history[2..]).unwrap_err();
        assert_eq!((result.code, result.index), (Code::UnknownFormat, Some(0)));
    }
}

#[test]
fn f9_a_field_beside_the_calls_of_a_format_is_no_matter() {
    let history = bodies(&json!([
        { "role": "user", "content": "Read a." },
        { "role": "assistant", "content": null, "toolCalls": [{ "id": "c1" }],
          "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "read", "arguments": "{}" } }] },
        { "role": "tool", "tool_call_id": "c1", "toolCallId": "c1", "content": "x" }
    ]));
    assert_eq!(detected(&history).unwrap(), Format::OpenaiChat);
}

#[test]
fn f9_a_tool_message_without_a_result_is_a_problem() {
    let history = camel(|text| json!([{ "type": "text", "text": text }]));
    let values: Vec<_> = history.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    let problems = Format::AiSdk.rules().validate(&values, false);
    let found: Vec<_> = problems.iter().map(|problem| (problem.rule, problem.index)).collect();
    assert_eq!(found, [("AI1", 2)]);
}

#[test]
fn f9_a_session_reads_what_detection_says() {
    let mut counted = 0;
    for folder in recorded::FOLDERS {
        for recording in recorded::recordings(folder) {
            // A few of each file; all of them where more time is given.
            let most = if std::env::var_os("CC_DATA_ALL").is_some() { usize::MAX } else { 5 };
            for line in recording.lines().take(most) {
                let Ok(history) = recorded::record(&line) else { continue };
                let Ok(format) = detected(&history.bodies) else { continue };
                let mut harness = Harness::new(json!({ "contextWindow": 1_000_000 }));
                let appended = harness.host.run(harness.session.append(history.bodies)).unwrap();
                assert_eq!(appended.format, format, "{}", history.id);
                counted += 1;
            }
        }
    }
    println!("{counted} histories");
}
