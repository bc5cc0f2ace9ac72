//! How a page reads: what happened, passages with their source, how things stand at the end.

use super::super::tests::{call, result, text as said};
use super::*;
use crate::message::{Message, Role};

fn calls(id: &str, name: &str, arguments: serde_json::Value) -> Message<'static> {
    Message { role: Role::Assistant, parts: vec![call(id, name, &arguments.to_string())] }
}

fn page(messages: &[Message<'_>], budget: usize) -> String {
    text(messages, budget, Estimator::Chars4)
}

fn section<'p>(page: &'p str, heading: &str) -> &'p str {
    let rest = page.split_once(&format!("## {heading}\n")).map_or("", |(_, rest)| rest);
    rest.split_once("\n## ").map_or(rest, |(section, _)| section)
}

fn work() -> Vec<Message<'static>> {
    let cargo = |id: &str, more: &str| {
        let command = format!("cd /srv/exporter && cargo test {more}");
        calls(id, "bash", serde_json::json!({ "command": command }))
    };
    vec![
        said(Role::User, "Mend the exporter in /srv/exporter. It writes the header twice."),
        said(Role::Assistant, "Let me look at the writer first:"),
        calls("1", "Read", serde_json::json!({ "file_path": "/srv/exporter/src/writer.rs" })),
        result(
            "1",
            "   40→use std::io;\n   41→fn write_header(&mut self) {\n   42→    self.header_done = false;\n   43→}\n",
            false,
        ),
        said(Role::Assistant, "`write_header` forgets that it ran. I set `header_done` to true."),
        calls(
            "2",
            "Edit",
            serde_json::json!({
                "file_path": "/srv/exporter/src/writer.rs",
                "old_string": "    self.header_done = false;\n}",
                "new_string": "    self.header_done = true;\n}",
            }),
        ),
        result("2", "ok", false),
        cargo("3", "writer"),
        result("3", "running 3 tests\n--- FAIL: header_once\nexit status 0", false),
        said(Role::Assistant, "One test is left: it counted on the second header. I mended it."),
        cargo("4", "writer"),
        result("4", "running 3 tests\ntest result: ok. 3 passed; 0 failed", false),
        said(Role::Assistant, "The header is written once, and all three tests pass."),
        said(Role::User, "Thanks. Now write the changelog."),
        calls(
            "5",
            "Write",
            serde_json::json!({ "file_path": "/srv/exporter/CHANGELOG.md", "content": "## 0.2\nThe header is written once." }),
        ),
        result("5", "File created", false),
    ]
}

#[test]
fn w12_what_happened_is_told_turn_by_turn_with_what_came_of_it() {
    let page = page(&work(), 1_000);
    let expected = "\
- > Mend the exporter in /srv/exporter. It writes the header twice.
  - `write_header` forgets that it ran. I set `header_done` to true.
  - src/writer.rs:
    -     self.header_done = false;
    +     self.header_done = true;
  - $ cd /srv/exporter && cargo test writer → --- FAIL: header_once
  - One test is left: it counted on the second header. I mended it.
  - $ cd /srv/exporter && cargo test writer → test result: ok. 3 passed; 0 failed
  - The header is written once, and all three tests pass.
- > Thanks. Now write the changelog.
  - CHANGELOG.md:
    ## 0.2
    The header is written once.";
    assert_eq!(section(&page, "What happened").trim_end(), expected, "{page}");
}

#[test]
fn w12_files_are_listed_below_the_folder_that_they_have_in_common_and_live_on_from_there() {
    let mut messages = work();
    let page = page(&messages, 1_000);
    let expected =
        "- in /srv/exporter/:\n  - CHANGELOG.md (created)\n  - src/writer.rs (modified; lines 40-43)";
    assert_eq!(section(&page, "Files").trim_end(), expected, "{page}");
    // An app may hand the page over as a message.
    messages = vec![said(Role::User, &format!("[Compressed History]\n\n{page}"))];
    let mut collector = KeepLayerBuilder::default();
    messages.iter().enumerate().for_each(|(position, message)| collector.add(position, message));
    let files = ["/srv/exporter/CHANGELOG.md", "/srv/exporter/src/writer.rs"];
    for file in files {
        assert!(collector.musts().contains(&MustKeep::File(file.into())), "{:?}", collector.musts());
    }
}

#[test]
fn w12_a_passage_says_where_it_is_from_and_holds_no_imports_licenses_or_progress() {
    let mut file = String::from(
        "    1→// SPDX-License-Identifier: MIT\n    2→import { parse } from \"./parse\";\n    3→\n",
    );
    for nth in 4..=60 {
        file += &format!("{nth:5}→export const retry_limit_{nth} = {nth} * baseDelayMs_{nth};\n");
    }
    let messages = [
        said(Role::User, "What are the limits?"),
        calls("1", "Read", serde_json::json!({ "file_path": "src/limits.ts" })),
        result("1", &file, false),
        calls("2", "bash", serde_json::json!({ "command": "cargo test --all" })),
        result(
            "2",
            "   Compiling exporter_core v0.1.0\nok  \texample.com/a/b\t(cached)\ntest result: ok. 214 passed in exporter_core",
            false,
        ),
        said(Role::Assistant, "They are all in one file."),
    ];
    let page = page(&messages, 700);
    let details = section(&page, "Details");
    assert!(
        details.contains(
            "- src/limits.ts:4-6:\n  export const retry_limit_4 = 4 * baseDelayMs_4;\n  export const"
        ),
        "{page}"
    );
    for noise in ["SPDX", "import {", "Compiling", "(cached)"] {
        assert!(!page.contains(noise), "{noise}: {page}");
    }
}

#[test]
fn w12_what_is_cut_says_how_much_and_where_the_rest_is() {
    let long = "The writer keeps the header in a field that nothing resets. ".repeat(40);
    let mut collector = KeepLayerBuilder::default();
    let messages = [said(Role::User, "Why twice?"), said(Role::Assistant, &long)];
    messages.iter().enumerate().for_each(|(position, message)| collector.add(position, message));
    let label = |position: usize| format!("m{position}x");
    for (labels, marks) in [
        (Labels(Some(&label)), ["[m0x]", "characters left out: m1x]"]),
        (Labels(None), ["twice?", "characters left out]"]),
    ] {
        let beside = Beside { labels, ..Beside::default() };
        let page = collector.layer_beside(250, Shares::ALONE, beside, Estimator::Chars4).text;
        let told = section(&page, "What happened");
        assert!(marks.iter().all(|mark| told.contains(mark)), "{page}");
        assert!(
            !told.contains("resets.\n") && told.contains("nothing resets. [… "),
            "whole sentences: {page}"
        );
    }
}

#[test]
fn w13_an_error_is_open_until_the_command_succeeds_or_the_user_moves_on() {
    let failing = |id: &str, command: &str| {
        [
            calls(id, "bash", serde_json::json!({ "command": command })),
            result(id, "FAIL\texample.com/a/b 0.3s", false),
        ]
    };
    let mut messages = vec![said(Role::User, "Run the tests.")];
    messages.extend(failing("1", "go test ./a/b | tail -3"));
    messages.extend(failing("2", "git -C /work log | tail -3"));
    let open = |messages: &[Message<'_>]| section(&page(messages, 600), "Open errors").lines().count();
    assert_eq!(open(&messages), 1, "what a log shows is no failure of its own");
    for request in ["Now the manual.", "And the changelog."] {
        messages.push(said(Role::User, request));
        messages.push(said(Role::Assistant, "Done."));
    }
    assert_eq!(open(&messages), 1, "{}", page(&messages, 600));
    messages.push(said(Role::User, "Then publish it."));
    assert_eq!(open(&messages), 0, "{}", page(&messages, 600));
}

#[test]
fn w13_the_words_of_an_agents_surroundings_are_not_the_users() {
    let put = [
        "<system-reminder>\nThe list of tasks is empty.\n</system-reminder>",
        "<environment_context>\n  <cwd>/work</cwd>\n</environment_context>",
        "<command-name>/init</command-name>",
        "Base directory for this skill: /skills/review",
    ];
    let mut messages: Vec<Message<'_>> = put.iter().map(|text| said(Role::User, text)).collect();
    messages.push(said(Role::User, "Review the writer."));
    messages.push(said(Role::Assistant, "I begin."));
    messages.push(said(Role::User, "[Request interrupted by user]"));
    messages.push(said(Role::User, "Only the header, please."));
    let page = page(&messages, 600);
    assert_eq!(section(&page, "Goal").trim_end(), "- Review the writer.", "{page}");
    assert!(section(&page, "What happened").contains("  - [Request interrupted by user]"), "{page}");
    assert!(!page.contains("Base directory") && !page.contains("<cwd>"), "{page}");
}

#[test]
fn w15_a_greeting_is_no_goal() {
    let messages = [
        said(Role::User, "hi"),
        said(Role::Assistant, "Hello! How can I help?"),
        said(Role::User, "Plan my trip to Xiamen in May, and nothing by plane."),
    ];
    let page = page(&messages, 300);
    assert_eq!(
        section(&page, "Goal").trim_end(),
        "- Plan my trip to Xiamen in May, and nothing by plane.",
        "{page}"
    );
}

#[test]
fn w23_what_the_agent_recalled_is_told_where_it_was_said_first_and_a_cut_outcome_says_so() {
    let hit = "2 found in 30 messages, best first.\n\n[m8z] result of post_entry\n> birch balance: 4711";
    let messages = [
        said(Role::User, "Post the entries."),
        calls("1", "recall_search", serde_json::json!({ "query": "birch balance" })),
        result("1", hit, false),
        calls("2", "post_entry", serde_json::json!({ "name": "birch", "amount": 12 })),
        result("2", &format!("Recorded. {}", "birch balance: 4723. ".repeat(40)), false),
    ];
    let page = page(&messages, 600);
    assert!(!page.contains("recall_search") && !page.contains("m8z"), "{page}");
    assert!(page.contains("post_entry 12, birch → Recorded. birch") && page.contains("…"), "{page}");
}

#[test]
fn w23_no_number_is_cut_in_two() {
    let more = "It is 7000 and 8000. ".repeat(40);
    let text = format!("By the way, my basin code is 5503, and the fee is 2001. {more}");
    for budget in 60..400 {
        let page = page(&[said(Role::User, &text), said(Role::Assistant, "Good.")], budget);
        for part in page.split(|letter: char| !letter.is_ascii_digit()).filter(|part| part.len() < 4) {
            let is_count = part.is_empty() || page.contains(&format!("… {part} characters left out"));
            assert!(is_count, "{part}: {page}");
        }
    }
}

#[test]
fn w12_a_file_alone_keeps_its_whole_path() {
    let messages = [
        said(Role::User, "Read it."),
        calls("1", "Read", serde_json::json!({ "file_path": "/srv/exporter/src/writer.rs" })),
        result("1", "fn main() {}", false),
    ];
    let page = page(&messages, 300);
    assert_eq!(section(&page, "Files").trim_end(), "- /srv/exporter/src/writer.rs (read)", "{page}");
}

/// An edit of a file, and what the tool says of it.
fn edit(id: &str, old: &str, new: &str, answer: &str, fails: bool) -> [Message<'static>; 2] {
    let arguments =
        serde_json::json!({ "file_path": "/srv/app/src/main.rs", "old_string": old, "new_string": new });
    [calls(id, "Edit", arguments), result(id, answer, fails)]
}

#[test]
fn w20_a_change_that_was_not_made_is_not_told_as_made() {
    for answer in [
        "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>",
        "The user doesn't want to proceed with this tool use. The tool use was rejected.",
        "String to replace not found in file.",
    ] {
        let mut messages = vec![said(Role::User, "Set the limit of retries to nine.")];
        messages.extend(edit("1", "let limit = 3;", "let limit = 9;", answer, true));
        let page = page(&messages, 600);
        let told = section(&page, "What happened");
        assert!(told.contains("→ not made: ") || told.contains("→ String to replace"), "{page}");
        assert!(!page.contains("(modified"), "{page}");
    }
}

#[test]
fn w20_a_change_that_was_refused_and_made_later_is_not_told_as_not_made() {
    for answer in [
        "<tool_use_error>File has not been read yet.</tool_use_error>",
        "String to replace not found in file.",
    ] {
        let mut messages = vec![said(Role::User, "Set the limit of retries to nine.")];
        messages.extend(edit("1", "let limit  = 3;", "let limit = 9;", answer, true));
        messages.extend(edit("2", "let limit = 3;", "let limit = 9;", "ok", false));
        let told = page(&messages, 600);
        assert!(!told.contains("not made") && !told.contains("not found"), "{told}");
        assert!(told.contains("let limit = 9;"), "{told}");
    }
    const UNREAD: &str = "<tool_use_error>File has not been read yet.</tool_use_error>";
    let mut messages = vec![said(Role::User, "Set the limit of retries to nine.")];
    messages.extend(edit("1", "let limit = 3;", "let limit = 9;", UNREAD, true));
    // Another change of the file is none of that one.
    messages.extend(edit("2", "let delay = 3;", "let delay = 9;", "ok", false));
    let told = page(&messages, 600);
    assert!(told.contains("not made"), "{told}");
    // It was made in a message that stays.
    messages.truncate(3);
    let mut builder = KeepLayerBuilder::default();
    messages.iter().enumerate().for_each(|(at, message)| builder.add(at, message));
    let mut state = builder.state();
    let beside = |state: &WorkState| {
        let beside = Beside { state: Some(state), ..Beside::default() };
        builder.layer_beside(600, Shares::ALONE, beside, Estimator::Chars4).text
    };
    assert!(beside(&state).contains("not made"));
    edit("2", "let limit = 3;", "let limit = 9;", "ok", false).iter().for_each(|message| state.read(message));
    assert!(!beside(&state).contains("not made"), "{}", beside(&state));
}

#[test]
fn w20_of_a_long_change_what_stands_there_now_is_told() {
    let old: Vec<String> =
        (0..40).map(|nth| format!("    let before_{nth} = read_old_value({nth});")).collect();
    let new: Vec<String> =
        (0..6).map(|nth| format!("    let after_{nth} = read_new_value({nth});")).collect();
    let mut messages = vec![said(Role::User, "Read the new values.")];
    messages.extend(edit("1", &old.join("\n"), &new.join("\n"), "ok", false));
    let page = page(&messages, 1_000);
    let told = section(&page, "What happened");
    assert!(told.contains("- …and 38 more lines"), "{page}");
    for line in new {
        assert!(told.contains(&format!("+ {line}")), "{page}");
    }
}

#[test]
fn w20_details_hold_no_lines_that_were_changed_since() {
    let file = "   10→fn total(orders: &[Order]) -> Money {\n   11→    let discount = legacy_discount_table(orders);\n   12→    sum_without_vat(orders, discount)\n";
    let mut messages = vec![
        said(Role::User, "The total ignores the VAT rate of the customer."),
        calls("0", "Read", serde_json::json!({ "file_path": "/srv/app/src/main.rs" })),
        result("0", file, false),
    ];
    let standing = page(&messages, 600);
    assert!(standing.contains("legacy_discount_table"), "{standing}");
    let new = "    let discount = seasonal_discount_table(orders);";
    messages.extend(edit("1", "    let discount = legacy_discount_table(orders);", new, "ok", false));
    messages.push(said(Role::Assistant, "Done."));
    let page = page(&messages, 600);
    assert!(!section(&page, "Details").contains("legacy_discount_table"), "{page}");
    assert!(section(&page, "What happened").contains("seasonal_discount_table"), "{page}");
}

#[test]
fn w20_a_merge_that_conflicts_is_told_by_the_conflict() {
    let merged = "Exit code 1\nAuto-merging src/a.rs\nCONFLICT (content): Merge conflict in src/a.rs\nAutomatic merge failed; fix conflicts and then commit the result.";
    let messages = [
        said(Role::User, "Merge main."),
        calls("1", "bash", serde_json::json!({ "command": "git merge origin/main" })),
        result("1", merged, true),
    ];
    let page = page(&messages, 400);
    assert_eq!(
        section(&page, "Open errors").trim_end(),
        "- CONFLICT (content): Merge conflict in src/a.rs",
        "{page}"
    );
}
