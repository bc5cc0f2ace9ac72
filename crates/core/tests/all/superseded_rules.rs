//! Results that tell nothing any more leave first, the newest state of the files in work last (`X3`).

use crate::support::*;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, body, user};
use serde_json::{Value, json};

/// A session that clears by itself in the end, and not before.
fn full(over: Value) -> Harness {
    let mut options = json!({
        "preset": "balanced", "contextWindow": 40_000, "maxOutputTokens": 2_000, "compactAt": { "tokens": 12_000 },
        "recall": true, "summarize": { "call": true }, "clear": { "keepRecent": 1, "minTokens": 100 },
    });
    merge(&mut options, &over);
    Harness::new(options)
}

/// A call in Chat Completions, and its result.
pub(crate) fn step(id: &str, tool: &str, arguments: &Value, text: &str) -> Vec<Body> {
    let function = json!({ "name": tool, "arguments": arguments.to_string() });
    vec![
        body(&json!({ "role": "assistant", "content": null, "tool_calls": [
            { "id": id, "type": "function", "function": function },
        ] })),
        body(&json!({ "role": "tool", "tool_call_id": id, "content": text })),
    ]
}

/// The result of a call as it stands in a prompt.
pub(crate) fn result_of(sent: &[Value], id: &str) -> String {
    let found = sent.iter().find(|message| message["tool_call_id"] == id);
    found.unwrap_or_else(|| panic!("no result of {id}"))["content"].as_str().unwrap().to_owned()
}

fn read(id: &str, path: &str, tokens: usize) -> Vec<Body> {
    step(id, "Read", &json!({ "file_path": path }), &long(&format!("{path} in {id}"), tokens))
}

fn edit(id: &str, path: &str) -> Vec<Body> {
    step(id, "Edit", &json!({ "file_path": path, "old_string": "a", "new_string": "b" }), "done")
}

#[test]
fn x3_six_reads_of_a_file_in_work_leave_before_a_file_that_nothing_replaced() {
    let mut harness = full(json!({}));
    harness.append(&[user("Change a.ts as spec.ts says.")]);
    harness.append(&read("spec", "spec.ts", 1_500));
    for round in 0..6 {
        harness.append(&read(&format!("read{round}"), "a.ts", 2_000));
        harness.append(&edit(&format!("edit{round}"), "a.ts"));
    }
    harness.append(&read("last", "a.ts", 2_000));
    harness.append(&[assistant("Done with a.ts.")]);
    harness.append(&step("test", "Bash", &json!({ "command": "npm test" }), "ok"));
    let sent = harness.sent();
    assert!(result_of(&sent, "spec").starts_with("spec.ts in spec"), "nothing replaced it");
    assert!(result_of(&sent, "last").starts_with("a.ts in last"), "it is how the file stands");
    for round in 0..6 {
        let stub = result_of(&sent, &format!("read{round}"));
        assert!(stub.contains("Read a.ts; ") && stub.len() < 400, "{stub}");
    }
    assert!(result_of(&sent, "read0").contains("; the same call was made again since; "));
    assert_valid(Format::OpenaiChat, &sent);
    harness.stored();
}

#[test]
fn x3_a_read_of_what_was_changed_since_says_so() {
    let mut harness = full(json!({}));
    harness.append(&[user("go")]);
    harness.append(&read("a", "a.ts", 5_000));
    harness.append(&edit("b", "a.ts"));
    harness.append(&step("c", "Bash", &json!({ "command": "git log" }), &long("log", 5_000)));
    harness.append(&step("d", "Bash", &json!({ "command": "cat spec.md" }), &long("spec", 5_000)));
    harness.append(&[assistant("So it is.")]);
    let stub = result_of(&harness.sent(), "a");
    assert!(stub.contains("; the file was changed since; "), "{stub}");
}

#[test]
fn x3_a_call_that_failed_and_was_made_again_is_superseded_and_one_that_fails_later_replaces_nothing() {
    let run = |id: &str, text: &str| step(id, "Bash", &json!({ "command": "npm test" }), text);
    let mut harness = full(json!({}));
    harness.append(&[user("go")]);
    harness.append(&run("first", &long("FAIL", 2_000)));
    harness.append(&run("second", &long("ok", 2_000)));
    harness.append(&read("spec", "spec.ts", 5_000));
    harness.append(&step("log", "Bash", &json!({ "command": "git log" }), &long("log", 5_000)));
    harness.append(&[assistant("So it is.")]);
    let sent = harness.sent();
    assert!(result_of(&sent, "first").contains("; the same call was made again since; "));
}
