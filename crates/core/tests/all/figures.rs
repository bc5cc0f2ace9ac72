//! The figures of the five documents, reproduced: their numbers at the window that they were written for, and their
//! worked examples to the letter. What other tests hold to the letter already is not repeated here.

use crate::support::*;
use context_compactor_core::policy::{RestoreNumbers, Settings};
use context_compactor_core::step::{LogLevel, Purpose};
use context_compactor_core::tokens::budget::percent;
use context_compactor_store_tests::conversation::{Body, assistant, body, calls, results, user};
use context_compactor_store_tests::host::{summary, thrown};
use serde_json::{Value, json};

fn at(window: usize, over: Value) -> Settings {
    let mut options = json!({ "contextWindow": window, "maxOutputTokens": 16_384.min(window / 4) });
    merge(&mut options, &over);
    Settings::read(&serde_json::from_str(&options.to_string()).unwrap()).unwrap()
}

fn documented(preset: &str) -> Settings {
    at(200_000, json!({ "preset": preset }))
}

#[test]
fn s1_1_s1_4_s1_5_s1_7_the_numbers_of_preset_offload() {
    let settings = documented("offload");
    let numbers = settings.numbers;
    assert_eq!((settings.threshold.tokens, settings.threshold.strict), (150_000, false));
    assert_eq!((numbers.offload.scan_ratio, numbers.offload.min_chars), (0.5, 50));
    assert_eq!((numbers.compact_trigger_threshold, numbers.compact_cooldown_steps), (15_000, 5));
    assert_eq!((numbers.target_tokens, numbers.preserve_count), (8_000, 5));
    assert_eq!((numbers.retry_count, numbers.retry_wait_ms), (3, 1_000));
}

#[test]
fn s2_1_s2_4_s2_7_s2_12_the_numbers_of_preset_react() {
    let settings = documented("react");
    let numbers = settings.numbers.react;
    assert_eq!((numbers.single_result_threshold, numbers.chunk_size), (50_000, 50_000));
    assert_eq!((numbers.chunk_ratio, numbers.second_ratio, numbers.global_ratio), (0.1, 0.1, 0.1));
    assert_eq!((numbers.model_context_limit, numbers.global_compression_threshold), (None, 0.8));
    assert_eq!(settings.window, 200_000, "the limit, in tokens");
    assert_eq!((numbers.system_prompt_length, numbers.instruction_length), (5_000, 3_000));
    assert_eq!((numbers.result_compression_min_size, settings.concurrency), (5_000, 4));
    assert!(numbers.single_enabled && numbers.global_enabled);
}

#[test]
fn s3_1_s3_2_s3_3_s3_6_s3_8_the_numbers_of_preset_layered() {
    let settings = documented("layered");
    let numbers = settings.numbers;
    assert_eq!((settings.threshold.tokens, settings.threshold.strict), (170_616, true));
    assert_eq!(percent(settings.threshold.tokens, 200_000), 853, "the document's 85.3 %");
    // An answer of more than 20,000 tokens does not make it act sooner.
    assert_eq!(
        at(200_000, json!({ "preset": "layered", "maxOutputTokens": 64_000 })).threshold.allowance,
        13_000
    );
    assert_eq!((numbers.layered.keep_recent, numbers.layered.clear_min_tokens), (3, 1_000));
    assert_eq!((numbers.min_savings, numbers.preserve_count), (20_000, 5));
    assert_eq!((numbers.layered.large_output_tokens, numbers.layered.preview_chars), (40_000, 2_000));
    let restore = RestoreNumbers { max_files: 5, max_tokens_per_file: 5_000, max_tokens_total: 50_000 };
    assert_eq!(numbers.restore, Some(restore));
    assert_eq!(settings.compactable_tools.unwrap(), ["bash", "read_file", "write_file", "edit_file"]);
}

#[test]
fn s4_1_s4_2_s4_5_s4_6_s4_7_the_numbers_of_preset_factor3() {
    let settings = documented("factor3");
    let numbers = settings.numbers;
    assert_eq!((settings.threshold.tokens, settings.threshold.strict), (100_000, false));
    assert_eq!((numbers.preserve_count, numbers.emergency_share), (3, 0.8));
    assert_eq!((numbers.process.min_tokens, numbers.process.structured_min_tokens), (200, 500));
    assert_eq!((numbers.process.file_lines, numbers.process.query_rows), (500, 100));
}

#[test]
fn s5_1_s5_6_s5_8_the_numbers_of_preset_checkpoint() {
    let settings = documented("checkpoint");
    let numbers = settings.numbers.checkpoint;
    assert_eq!((numbers.safety_margin, settings.numbers.preserve_count), (1_000, 5));
    assert_eq!((numbers.keep_user_messages, numbers.age_moderate, numbers.age_compact), (10, 5, 10));
    let limit = at(200_000, json!({ "preset": "checkpoint", "maxOutputTokens": 1_000 })).hard_limit;
    assert_eq!(limit, 199_000, "the margin, and no more");
}

/// 0.75 × (limit − budget − 1,000), tier by tier.
#[test]
fn s5_9_every_tier_has_its_threshold() {
    let thresholds = [(4_096, 2_172), (8_192, 5_019), (16_384, 10_788), (32_768, 22_701), (200_000, 148_125)];
    for (window, tokens) in thresholds {
        let threshold = at(window, json!({ "preset": "checkpoint" })).threshold;
        assert_eq!((threshold.tokens, threshold.strict), (tokens, true), "{window}");
    }
}

/// The document's history after a compaction: the summary first, and the last five messages as they were.
#[test]
fn s1_8_the_documents_structure_of_a_compressed_history() {
    let format = FORMATS[0];
    let mut harness = Harness::new(eager());
    harness.host.summarise =
        Box::new(|_, _| summary("## Technical Context\nRust, 解析器, tested on every push."));
    harness.append(&talk(3, 60));
    let mut last = calls(format, &[("call_1", "src/lib.rs")]);
    last.extend(results(format, &[("call_1", "file content here...")]));
    last.extend([assistant("文件内容如下..."), user("请修改第 10 行"), assistant("好的，我来修改")]);
    harness.append(&last);
    let result = harness.compact();
    assert_eq!((result.success, result.preserved_count), (true, 5));
    let context = harness.context();
    let head = json!({ "role": "user", "content": format!("[Compressed History]\n\n## Technical Context\nRust, 解析器, tested on every push.{RECORD}") });
    assert_eq!(context[0], head);
    let last: Vec<Value> = last.iter().map(|message| serde_json::from_str(message).unwrap()).collect();
    assert_eq!(context[1..], last, "untouched");
}

fn react_turn(thought: &str, result: &str) -> Body {
    body(&json!({ "thought": thought, "action": { "tool": "read" }, "result": result }))
}

/// Fifteen turns of a trajectory, the first `large` with results of 8,000 characters, that make up `total` with system
/// prompt and instructions.
fn trajectory(large: usize, total: usize) -> Harness {
    let fill = |first: usize| {
        let mut harness = Harness::new(json!({
            "preset": "react", "format": "react", "contextWindow": 200_000, "summarize": { "attempts": 1 },
            "presetOptions": { "strategies": false, "modelContextLimit": 200_000 },
        }));
        let turn = |nth: usize| {
            let result = "r".repeat(if nth < large { 8_000 } else { 5_000 });
            react_turn(&"t".repeat(if nth == 0 { first } else { 10 }), &result)
        };
        harness.append(&(0..15).map(turn).collect::<Vec<_>>());
        harness
    };
    let rest = fill(10).session.stats().unwrap().total_size - 10;
    fill(total - rest)
}

#[test]
fn s2_4_s2_10_the_documents_global_compression() {
    let mut harness = trajectory(8, 165_000);
    // Turn 5 becomes 3,500 characters; with the others 30,000 go.
    let mut lengths = [4_357, 4_357, 4_357, 4_357, 3_500, 4_357, 4_357, 4_358].into_iter();
    harness.host.summarise = Box::new(move |_, _| summary(&"s".repeat(lengths.next().unwrap())));
    let before = harness.session.stats().unwrap();
    assert_eq!((before.total_size, before.needs_compression), (165_000, true));
    harness.prepare();
    let lines: Vec<(LogLevel, &str)> =
        harness.host.seen.logs.iter().map(|(level, line)| (*level, line.as_str())).collect();
    let warning = "Context size 165000 exceeds threshold 160000, triggering global compression...";
    assert_eq!(lines.first(), Some(&(LogLevel::Warn, warning)));
    assert!(lines.contains(&(LogLevel::Info, "Turn 5: Compressed result 8000 → 3500 chars")), "{lines:?}");
    let complete =
        "Global compression complete: 8 results compressed, total size 165000 → 135000 chars (81.8%)";
    assert_eq!(lines.last(), Some(&(LogLevel::Info, complete)));
    let after = harness.session.stats().unwrap();
    assert_eq!((after.total_size, after.usage_percent, after.needs_compression), (135_000, 67.5, false));
}

#[test]
fn s2_10_a_result_whose_call_failed_is_none_that_was_compressed() {
    let mut harness = trajectory(8, 165_000);
    let mut calls = 0;
    harness.host.summarise = Box::new(move |_, _| {
        calls += 1;
        if calls == 3 { thrown("down", None) } else { summary(&"s".repeat(4_000)) }
    });
    harness.prepare();
    let (_, complete) = harness.host.seen.logs.last().unwrap();
    assert!(complete.starts_with("Global compression complete: 7 results compressed, "), "{complete}");
    let told = harness.host.seen.logs.iter().filter(|(_, line)| line.starts_with("Turn ")).count();
    assert_eq!(told, 7, "and no line tells of it");
}

#[test]
fn s2_4_fifteen_turns_with_ten_large_results_are_ten_calls() {
    let mut harness = trajectory(10, 165_000);
    harness.host.summarise = Box::new(|_, _| summary(&"s".repeat(800)));
    harness.prepare();
    assert_eq!(harness.host.seen.purposes, [Purpose::Result; 10]);
    assert_eq!(harness.session.stats().unwrap().turns_count, 15, "no turn is ever removed");
}

#[test]
fn s2_10_the_documents_streaming_compression() {
    let mut harness = trajectory(0, 100_000);
    harness.append(&[react_turn("I look.", &"x".repeat(125_000))]);
    // With the headers of its parts and what stands between them, 35,000.
    let mut lengths = [11_654, 11_654, 11_655].into_iter();
    harness.host.summarise = Box::new(move |_, _| summary(&"s".repeat(lengths.next().unwrap())));
    harness.prepare();
    let lines: Vec<(LogLevel, &str)> =
        harness.host.seen.logs.iter().map(|(level, line)| (*level, line.as_str())).collect();
    let expected = [
        (LogLevel::Info, "Tool result too large (125000 chars), applying streaming compression..."),
        (LogLevel::Info, "Breaking result into 3 chunks for summarization"),
        (LogLevel::Info, "Compressed 125000 → 35000 chars (28.0%)"),
    ];
    assert_eq!(lines[..3], expected);
}

#[test]
fn w17_balanced_keeps_the_newest_results_by_the_window_but_not_where_the_price_decides() {
    let kept = |window, over| at(window, over).numbers.layered.keep_recent;
    assert_eq!(kept(200_000, json!({})), 16);
    assert_eq!(kept(32_000, json!({})), 3);
    assert_eq!(kept(200_000, json!({ "economy": true })), 3);
    let free = json!({ "economy": true, "prices": { "input": 0, "output": 0 } });
    assert_eq!(kept(200_000, free), 16, "nothing costs anything");
    assert_eq!(kept(200_000, json!({ "clear": { "keepRecent": 5 } })), 5);
    assert_eq!(kept(200_000, json!({ "preset": "layered" })), 3);
}
