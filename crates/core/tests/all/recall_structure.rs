//! Questions about the conversation itself: answered in order, by facts, and not by their words.

use crate::support::*;
use context_compactor_core::recall::Hit;
use context_compactor_store_tests::conversation::{Body, assistant, body, user};
use serde_json::json;

fn ask(harness: &mut Harness, question: &str, limit: usize) -> Vec<Hit> {
    harness.host.run(harness.session.search(question.into(), limit)).unwrap()
}

fn indices(harness: &mut Harness, question: &str) -> Vec<usize> {
    ask(harness, question, 10).iter().map(|hit| hit.index).collect()
}

fn call(id: &str, tool: &str, arguments: serde_json::Value) -> Body {
    let function = json!({ "name": tool, "arguments": arguments.to_string() });
    body(
        &json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": id, "type": "function", "function": function }] }),
    )
}

fn result(id: &str, text: &str) -> Body {
    body(&json!({ "role": "tool", "tool_call_id": id, "content": text }))
}

/// An agent's session: its messages by what they are.
fn agent() -> Harness {
    let mut harness = Harness::new(json!({}));
    harness.append(&[user("Please port the parser."), assistant("I will look.")]);
    harness.append(&[
        call("a", "bash", json!({ "command": "cat src/error.rs" })),
        result("a", "error: expected a token"),
    ]);
    harness.append(&[user("Never touch the lock file."), assistant("Understood.")]);
    harness.append(&[call("b", "edit", json!({ "file_path": "src/parser.rs" })), result("b", "ok")]);
    harness.append(&[
        call("c", "bash", json!({ "command": "cargo test" })),
        result("c", "error: test failed, 3 of 7\nexit code 101"),
    ]);
    harness.append(&[call("d", "edit", json!({ "file_path": "src/lexer.rs" })), result("d", "ok")]);
    harness.append(&[
        call("e", "bash", json!({ "command": "git add . && git commit -m 'port the parser'" })),
        result("e", "1 file"),
    ]);
    harness.append(&[user("Answers must be in English."), assistant("Yes.")]);
    harness.append(&[call("f", "edit", json!({ "file_path": "src/parser.rs" })), result("f", "ok")]);
    harness
}

#[test]
fn x7_rules_are_the_users_own_and_come_in_order() {
    let mut harness = agent();
    let hits = ask(&mut harness, "What did I ask you never to do?", 10);
    assert_eq!(hits.iter().map(|hit| hit.index).collect::<Vec<_>>(), [4, 14]);
    assert!(hits.iter().all(|hit| hit.role == "user"));
    assert_eq!(hits[0].snippet, "Never touch the lock file.");
}

#[test]
fn x7_files_commands_and_commits_are_those_of_calls() {
    let mut harness = agent();
    assert_eq!(indices(&mut harness, "Which file did you edit first?"), [6, 10]);
    assert_eq!(indices(&mut harness, "Which file did you change last?"), [16, 10]);
    let hits = ask(&mut harness, "List all files that you changed.", 10);
    assert_eq!(
        hits.iter().map(|hit| hit.snippet.as_str()).collect::<Vec<_>>(),
        ["src/parser.rs", "src/lexer.rs"]
    );
    assert_eq!(indices(&mut harness, "Which files did you read?"), [2]);
    assert_eq!(indices(&mut harness, "List all commands that you ran."), [2, 8, 12]);
    let hits = ask(&mut harness, "What was the last commit you made?", 10);
    assert_eq!((hits[0].index, hits[0].tool.as_deref()), (12, Some("bash")));
}

#[test]
fn x7_errors_are_what_failed_and_not_what_was_shown() {
    let mut harness = agent();
    let hits = ask(&mut harness, "What was the first error we hit?", 10);
    assert_eq!(hits.iter().map(|hit| hit.index).collect::<Vec<_>>(), [9], "{hits:#?}");
    assert_eq!((hits[0].role, hits[0].target.as_deref()), ("tool", Some("cargo test")));
}

#[test]
fn x7_what_was_said_comes_in_its_order_by_whom_it_is_asked_of() {
    let mut harness = Harness::new(json!({}));
    let said = [
        "The refund took two weeks.",
        "My sister lives in Oslo.",
        "The refund was late, and the wand is bent.",
    ];
    for text in said {
        harness.append(&[user(text), assistant("I am sorry about the wand, the refund and your sister.")]);
    }
    harness.append(&[user("That is all.")]);
    assert_eq!(indices(&mut harness, "Which did I mention first, the wand or my sister?"), [2, 4]);
    assert_eq!(indices(&mut harness, "In which order did I bring up the refund and my sister?"), [0, 2, 4]);
    assert_eq!(indices(&mut harness, "What was the first thing I told you?")[0], 0);
    assert_eq!(indices(&mut harness, "What was the last thing I said?")[0], 6);
    assert_eq!(indices(&mut harness, "List everything you said about my sister."), [1, 3, 5]);
    // No question about the conversation: as words rank it.
    assert_eq!(indices(&mut harness, "Where does my sister live?")[0], 2);
}

#[test]
fn x7_where_nothing_of_the_kind_is_there_words_answer() {
    let mut harness = Harness::new(json!({}));
    harness.append(&[user("The commits of the parser are in the other repository."), assistant("I see.")]);
    assert_eq!(indices(&mut harness, "List all commits that you made."), [0]);
}
