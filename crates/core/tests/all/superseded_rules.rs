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
    let mut harness = full(json!({ "clear": { "keepRecent": 15 } }));
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

/// What is sent of `steps` and four more, of which so many results stay whatever they say.
fn sent_of(steps: Vec<Vec<Body>>, keep_recent: usize) -> Vec<Value> {
    let mut harness = full(json!({ "clear": { "keepRecent": keep_recent } }));
    harness.append(&[user("go")]);
    for step in steps {
        harness.append(&step);
    }
    for (nth, name) in ["one", "two", "three", "four"].into_iter().enumerate() {
        let arguments = json!({ "command": format!("git show {name}") });
        harness.append(&step(&format!("new{nth}"), "Bash", &arguments, &long(name, 2_400)));
    }
    harness.append(&[assistant("So it is.")]);
    harness.sent()
}

#[test]
fn x3_a_read_of_what_was_changed_and_read_again_leaves_first() {
    let part = json!({ "file_path": "a.ts", "offset": 40 });
    let steps = vec![
        read("spec", "spec.ts", 1_000),
        read("a", "a.ts", 2_000),
        edit("b", "a.ts"),
        step("c", "Read", &part, &long("a.ts in c", 200)),
    ];
    let sent = sent_of(steps, 8);
    let stub = result_of(&sent, "a");
    assert!(stub.contains("; the file was changed and read again since; "), "{stub}");
    assert!(result_of(&sent, "spec").starts_with("spec.ts in spec"), "nothing changed it");
}

#[test]
fn x3_the_stub_of_a_read_tells_that_the_file_was_changed_since() {
    let steps = vec![read("spec", "spec.ts", 1_000), read("a", "a.ts", 2_000), edit("b", "a.ts")];
    let sent = sent_of(steps, 2);
    let stub = result_of(&sent, "a");
    assert!(stub.contains("; the file was changed since; "), "{stub}");
    assert!(!result_of(&sent, "spec").contains("since"));
}

#[test]
fn x3_a_call_that_was_made_again_is_superseded_and_one_that_fails_later_replaces_nothing() {
    let run = |id: &str, command: &str, text: &str, is_error: bool| {
        let input = json!({ "command": command });
        let call = json!({ "type": "tool_use", "id": id, "name": "Bash", "input": input });
        let result =
            json!({ "type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error });
        vec![
            body(&json!({ "role": "assistant", "content": [call] })),
            body(&json!({ "role": "user", "content": [result] })),
        ]
    };
    let mut harness = full(json!({ "format": "anthropic", "clear": { "keepRecent": 8 } }));
    harness.append(&[user("go")]);
    harness.append(&run("first", "npm test", &long("FAIL", 1_500), true));
    harness.append(&run("lint", "npm run lint", &long("clean", 500), false));
    harness.append(&run("second", "npm test", &long("ok", 1_500), false));
    harness.append(&run("fails", "npm run lint", "out of memory", true));
    for name in ["one", "two", "three", "four"] {
        harness.append(&run(name, &format!("git show {name}"), &long(name, 2_400), false));
    }
    harness.append(&[assistant("So it is.")]);
    let sent = harness.sent();
    let result = |id: &str| {
        let blocks = sent.iter().filter_map(|message| message["content"].as_array()).flatten();
        blocks.into_iter().find(|block| block["tool_use_id"] == id).unwrap()["content"].to_string()
    };
    assert!(result("first").contains("; the same call was made again since; "), "{}", result("first"));
    assert!(result("lint").contains("clean: "), "what failed later tells nothing in its place");
    assert!(result("second").contains("ok: "));
}
