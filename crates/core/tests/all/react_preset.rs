//! Preset `react`, item by item of the specification (`S2.1` to `S2.12`). Sizes are characters.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::Fate;
use context_compactor_core::policy::Trigger;
use context_compactor_core::step::{Event, LogLevel, Purpose};
use context_compactor_core::summary::SummaryRequest;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{assistant, body, exchange, user};
use context_compactor_store_tests::host::{summary, thrown};
use serde_json::{Value, json};

/// A summariser that writes as many characters as it is asked for.
fn obedient(request: &SummaryRequest, _: u32) -> Event {
    let asked = request.system.rsplit_once("at most ").unwrap().1;
    let chars: usize = asked.split(' ').next().unwrap().parse().unwrap();
    summary(&"s".repeat(chars))
}

/// With the document's limit, in characters.
fn react(over: Value) -> Harness {
    let mut options = json!({
        "preset": "react", "contextWindow": 200_000, "summarize": { "attempts": 1 },
        "presetOptions": { "modelContextLimit": 200_000 },
    });
    merge(&mut options, &over);
    let mut harness = Harness::new(options);
    harness.host.summarise = Box::new(obedient);
    harness
}

fn tool(harness: &mut Harness, format: Format, id: &str, text: &str) {
    harness.append(&[user("look")]);
    harness.append(&exchange(format, id, text));
    harness.append(&[assistant("I see.")]);
}

fn results(format: Format, sent: &[Value]) -> Vec<String> {
    sent.iter().filter_map(|message| result_text(format, message)).collect()
}

fn lines(harness: &Harness) -> Vec<(LogLevel, &str)> {
    harness.host.seen.logs.iter().map(|(level, line)| (*level, line.as_str())).collect()
}

#[test]
fn s2_1_150k_characters_are_three_chunks_on_their_own_with_the_tool_as_context() {
    for format in FORMATS {
        let mut harness = react(json!({}));
        tool(&mut harness, format, "a", &"x".repeat(150_000));
        let sent = harness.sent();
        assert_valid(format, &sent);
        assert_eq!(harness.host.seen.purposes, [Purpose::Chunk; 3], "{format:?}");
        let s = "s".repeat(5_000);
        let expected = format!("[Part 1/3]\n{s}\n\n[Part 2/3]\n{s}\n\n[Part 3/3]\n{s}");
        assert_eq!(results(format, &sent), [expected]);
        for (request, _) in &harness.host.seen.requests {
            let content = &request.messages[0].content;
            assert!(content.contains("<tool_call name=\"read_file\">") && content.contains("src/lib.rs"));
            assert!(request.system.contains("at most 5000 characters"));
            assert!(request.system.contains("Do not answer it"));
            assert_eq!(
                request.max_tokens,
                (request.target_tokens * 6).div_ceil(5),
                "a fifth above its target"
            );
        }
        let entry = harness.session.explain().unwrap().into_iter().find(|entry| entry.fate == Fate::Reduced);
        assert_eq!(
            harness.read(&entry.unwrap().reference.unwrap()),
            "x".repeat(150_000),
            "the original is kept"
        );
        assert!(harness.prepare().edits.is_empty(), "never twice");
    }
}

#[test]
fn s2_1_a_result_of_exactly_the_threshold_stays() {
    for (size, compressed) in [(50_000, false), (50_001, true)] {
        let mut harness = react(json!({}));
        tool(&mut harness, FORMATS[0], "a", &"字".repeat(size));
        assert_eq!(!harness.prepare().edits.is_empty(), compressed, "{size} characters");
    }
}

#[test]
fn s2_2_the_second_level_only_when_the_chunks_together_are_too_large() {
    // The document's example: 300K in 6 chunks of 5K stay 30K.
    let mut harness = react(json!({}));
    tool(&mut harness, FORMATS[0], "a", &"x".repeat(300_000));
    harness.prepare();
    assert_eq!(harness.host.seen.purposes, [Purpose::Chunk; 6]);
    // 6 chunks of 10K are 60K: once more, to 10 %.
    let mut harness = react(json!({ "presetOptions": { "chunkRatio": 0.2 } }));
    tool(&mut harness, FORMATS[0], "a", &"x".repeat(300_000));
    let sent = harness.sent();
    assert_eq!(harness.host.seen.purposes.len(), 7);
    assert_eq!(harness.host.seen.purposes[6], Purpose::Merge);
    assert!((6_000..6_020).contains(&results(FORMATS[0], &sent)[0].len()), "headers included");
    // 5 chunks of 10K are no more than 50,000 but for their headers.
    let mut harness = react(json!({ "presetOptions": { "chunkRatio": 0.2 } }));
    tool(&mut harness, FORMATS[0], "a", &"x".repeat(250_000));
    harness.prepare();
    assert_eq!((harness.host.seen.purposes.len(), harness.host.seen.purposes[5]), (6, Purpose::Merge));
}

#[test]
fn s2_2_targets_are_rounded_down_and_the_second_level_is_taken_however_long_it_is() {
    let mut harness = react(json!({ "presetOptions": { "strategies": false } }));
    harness.host.summarise = Box::new(|request, _| {
        let joined = request.messages[0].content.contains("[Part 1/3]");
        summary(&"s".repeat(if joined { 52_000 } else { 18_000 }))
    });
    tool(&mut harness, FORMATS[0], "a", &"x".repeat(123_456));
    let sent = harness.sent();
    assert_eq!(harness.host.seen.purposes, [Purpose::Chunk, Purpose::Chunk, Purpose::Chunk, Purpose::Merge]);
    // Tenths of 50,000, of 23,456 and of three answers with their headers.
    let targets = [5_000, 5_000, 2_345, 5_403].map(|chars| format!("at most {chars} characters"));
    for ((request, _), target) in harness.host.seen.requests.iter().zip(targets) {
        assert!(request.system.contains(&target), "{target}: {}", request.system);
    }
    assert_eq!(results(FORMATS[0], &sent)[0].len(), 52_000, "still too large, and returned");
    assert!(harness.prepare().edits.is_empty());
}

#[test]
fn s2_3_a_chunk_or_a_second_level_that_fails_keeps_a_marked_start() {
    let mut harness = react(json!({}));
    let mut calls = 0;
    harness.host.summarise = Box::new(move |request, attempt| {
        calls += 1;
        if calls == 2 { thrown("down", None) } else { obedient(request, attempt) }
    });
    tool(&mut harness, FORMATS[0], "a", &format!("{}{}", "x".repeat(50_000), "👩‍👩‍👧".repeat(10_000)));
    let text = results(FORMATS[0], &harness.sent()).remove(0);
    let second = text.split_once("[Part 2/2]\n").unwrap().1;
    assert!(second.starts_with("👩‍👩‍👧") && second.ends_with("\n[… cut here: the summarizer failed]"));
    assert_eq!(second.chars().filter(|c| *c == '👧').count(), 200, "1,000 characters, whole clusters");

    let mut harness = react(json!({ "presetOptions": { "chunkRatio": 0.3 } }));
    harness.host.summarise = Box::new(|request, attempt| {
        if request.messages[0].content.contains("[Part 1/") {
            thrown("down", None)
        } else {
            obedient(request, attempt)
        }
    });
    tool(&mut harness, FORMATS[0], "a", &"x".repeat(300_000));
    let text = results(FORMATS[0], &harness.sent()).remove(0);
    assert!(text.starts_with("[Part 1/6]\n") && text.contains("cut here"));
    assert!((40_000..40_100).contains(&text.len()));
}

#[test]
fn s2_4_s2_5_s2_10_every_result_of_some_size_once_the_whole_is_too_large() {
    for format in FORMATS {
        let mut harness = react(json!({}));
        for nth in 0..4 {
            tool(&mut harness, format, &format!("call_{nth}"), &"y".repeat(36_000));
        }
        tool(&mut harness, format, "small", &"z".repeat(5_000));
        assert!(harness.prepare().edits.is_empty(), "{format:?}: below 160,000 characters");
        tool(&mut harness, format, "call_9", &"y".repeat(6_000));
        let before = harness.stored().context.len();
        let prepared = harness.prepare();
        assert_eq!(prepared.edits.len(), 1);
        let sent = bodies(&harness.session, &prepared);
        assert_eq!(sent.len(), before, "no turn is ever removed");
        assert_valid(format, &sent);
        let lengths: Vec<usize> = results(format, &sent).iter().map(String::len).collect();
        assert_eq!(lengths, [3_600, 3_600, 3_600, 3_600, 5_000, 600]);
        assert_eq!(harness.host.seen.purposes, [Purpose::Result; 5], "one call a result");
        let lines = lines(&harness);
        let (level, warning) = lines[0];
        assert!(
            level == LogLevel::Warn
                && warning.ends_with("exceeds threshold 160000, triggering global compression...")
        );
        assert!(
            lines.iter().any(|(_, line)| line.ends_with(": Compressed result 36000 → 3600 chars")),
            "{lines:?}"
        );
        assert!(lines.iter().any(|(_, line)| {
            line.starts_with("Global compression complete: 5 results compressed, total size 1")
        }));
    }
}

#[test]
fn s2_4_the_whole_prompt_counts_and_exactly_the_threshold_is_not_too_large() {
    let said = ["look", "I see.", r#"{"path":"src/lib.rs"}"#].map(str::len).iter().sum::<usize>();
    for (more, compresses) in [(0, false), (1, true)] {
        let mut harness = react(json!({}));
        for nth in 0..3 {
            tool(&mut harness, FORMATS[0], &format!("call_{nth}"), &"y".repeat(40_000));
        }
        // System prompt and instructions take 8,000.
        let left = 160_000 - 8_000 - 3 * 40_000 - 4 * said;
        tool(&mut harness, FORMATS[0], "last", &"y".repeat(left + more));
        assert_eq!(!harness.prepare().edits.is_empty(), compresses, "{more}");
    }
}

#[test]
fn s2_4_the_summariser_is_told_thought_and_action() {
    let mut harness = react(json!({ "presetOptions": { "globalCompressionThreshold": 0.05 } }));
    let turn = json!({ "thought": "The lock must be somewhere.", "action": { "tool": "grep", "pattern": "flock(" },
        "result": "words ".repeat(2_000) });
    harness.append(&[body(&turn)]);
    harness.prepare();
    let (request, _) = &harness.host.seen.requests[0];
    let content = &request.messages[0].content;
    for told in ["The lock must be somewhere.", "grep", "flock("] {
        assert!(content.contains(told), "{told}: {content}");
    }
}

#[test]
fn s2_5_thought_and_action_stay_as_they_were() {
    let mut harness = react(json!({ "presetOptions": { "globalCompressionThreshold": 0.05 } }));
    let mut turn = json!({ "thought": "I look. 한국어", "action": { "tool": "grep", "pattern": ["flock("] },
        "result": "words ".repeat(2_000), "mine": 1 });
    harness.append(&[body(&turn)]);
    let sent = harness.sent();
    turn["result"] = Value::from("s".repeat(1_200));
    assert_eq!(sent, [turn]);
}

#[test]
fn s2_5_by_hand_no_message_goes_either() {
    for format in FORMATS {
        let mut harness = react(json!({}));
        harness.append(&talk(8, 100));
        tool(&mut harness, format, "a", &"words ".repeat(1_500));
        let before = harness.context();
        let result = harness.compact();
        assert!(result.success && result.summary.is_none());
        assert_eq!(harness.host.seen.purposes, [Purpose::Result]);
        let after = harness.context();
        assert_eq!((after.len(), &after[..17], after.last()), (before.len(), &before[..17], before.last()));
    }
}

#[test]
fn s2_6_a_failed_call_keeps_its_result_as_it_was() {
    let mut harness = react(json!({ "presetOptions": { "globalCompressionThreshold": 0.05 } }));
    let mut calls = 0;
    harness.host.summarise = Box::new(move |request, attempt| {
        calls += 1;
        if calls == 1 { thrown("down", None) } else { obedient(request, attempt) }
    });
    tool(&mut harness, FORMATS[1], "a", &"a".repeat(6_000));
    tool(&mut harness, FORMATS[1], "b", &"b".repeat(6_000));
    let results = results(FORMATS[1], &harness.sent());
    assert_eq!((results[0].len(), results[1].len()), (6_000, 600));
}

#[test]
fn s2_7_each_layer_can_be_switched_off_and_every_number_is_an_option() {
    for off in [json!({ "singleResultThreshold": "Infinity" }), json!({ "singleEnabled": false })] {
        let mut harness = react(json!({ "presetOptions": off }));
        tool(&mut harness, FORMATS[0], "a", &"x".repeat(60_000));
        assert!(harness.prepare().edits.is_empty());
    }
    for off in [json!({ "globalCompressionThreshold": 1.0 }), json!({ "globalEnabled": false })] {
        let mut harness = react(json!({ "presetOptions": off }));
        // More than the limit, too.
        for nth in 0..6 {
            tool(&mut harness, FORMATS[0], &format!("{nth}"), &"x".repeat(40_000));
        }
        assert!(harness.prepare().edits.is_empty());
    }
    let mut harness = react(json!({
        "presetOptions": { "modelContextLimit": 1_000, "systemPromptLength": 0, "instructionLength": 0, "globalCompressionThreshold": 0.5, "resultCompressionMinSize": 100, "globalRatio": 0.5 },
    }));
    tool(&mut harness, FORMATS[0], "a", &"x".repeat(600));
    assert_eq!(results(FORMATS[0], &harness.sent())[0].len(), 300);
    let mut harness = react(json!({
        "presetOptions": { "singleResultThreshold": 1_000, "chunkSize": 500, "chunkRatio": 0.5, "secondRatio": 0.25 },
    }));
    tool(&mut harness, FORMATS[0], "a", &"x".repeat(2_000));
    // Four parts of 250 with their headers and what stands between them.
    let joined = 4 * (250 + "[Part 1/4]\n".len()) + 3 * 2;
    assert_eq!(results(FORMATS[0], &harness.sent())[0].len(), joined / 4);
}

#[test]
fn s2_7_nothing_left_to_compress_and_still_too_large_is_an_error() {
    let mut harness = react(json!({ "presetOptions": { "modelContextLimit": 9_000 } }));
    harness.append(&[user(&"long question ".repeat(200))]);
    let error = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap_err();
    assert_eq!(error.code, Code::ContextOverflow);
    assert!(error.message.contains("S2.5"), "{error}");
}

#[test]
fn s2_10_the_lines_of_the_first_layer() {
    let mut harness = react(json!({ "presetOptions": { "chunkRatio": 0.28 } }));
    tool(&mut harness, FORMATS[0], "a", &"x".repeat(125_000));
    harness.prepare();
    let lines = lines(&harness);
    assert_eq!(lines[0].1, "Tool result too large (125000 chars), applying streaming compression...");
    assert_eq!(lines[1].1, "Breaking result into 3 chunks for summarization");
    assert_eq!(lines[2].1, "Compressed 125000 → 35037 chars (28.0%)");
}

#[test]
fn s2_12_chunks_run_side_by_side_up_to_the_limit_and_in_order() {
    for (limit, most) in [(json!(4), 4), (json!(2), 2), (Value::Null, 4)] {
        let mut harness = react(json!({ "summarize": { "concurrency": limit } }));
        harness.host.summarise = Box::new(|request, _| {
            let part = request.system.split_once("(part ").unwrap().1.split(' ').next().unwrap();
            summary(&format!("answer {part}"))
        });
        tool(&mut harness, FORMATS[0], "a", &"x".repeat(300_000));
        let text = results(FORMATS[0], &harness.sent()).remove(0);
        assert_eq!(harness.host.seen.at_once, most);
        let parts: Vec<String> = (1..=6).map(|part| format!("[Part {part}/6]\nanswer {part}")).collect();
        assert_eq!(text, parts.join("\n\n"));
    }
}

#[test]
fn a_plan_tells_the_calls_and_makes_none() {
    let mut harness = react(json!({}));
    tool(&mut harness, FORMATS[0], "a", &"x".repeat(150_000));
    let plan = harness.host.run(harness.session.plan()).unwrap();
    assert!(plan.will_compact && harness.host.seen.requests.is_empty());
    assert_eq!((plan.edits[0].kind, plan.edits[0].llm_calls), ("compress", 3));
    assert!(harness.host.seen.logs.is_empty());
}

#[test]
fn f39_a_plan_frees_what_is_freed_where_answers_are_as_long_as_asked_for() {
    let mut harness = react(json!({}));
    tool(&mut harness, FORMATS[0], "a", &"x".repeat(150_000));
    let plan = harness.host.run(harness.session.plan()).unwrap();
    let edits = harness.prepare().edits;
    let freed = |all: Vec<usize>| all.into_iter().sum::<usize>();
    let planned = freed(plan.edits.iter().map(|rung| rung.freed_tokens).collect());
    assert_eq!(planned, freed(edits.iter().map(|edit| edit.freed_tokens).collect()));
    assert!(planned > 30_000, "{planned}");
}

#[test]
fn a_manual_compaction_compresses_at_once_and_reports() {
    let mut harness = react(json!({}));
    tool(&mut harness, FORMATS[0], "a", &"x".repeat(6_000));
    let result = harness.compact();
    assert!(result.success && result.freed_tokens > 1_000 && result.llm_calls == 1);
    assert_eq!(result.applied_edits[0].kind, "compress");
}

#[test]
fn s2_9_stats_and_the_trajectory_have_the_documents_shape() {
    for format in FORMATS {
        let mut harness = react(json!({}));
        tool(&mut harness, format, "a", &"x".repeat(2_000));
        let stats = harness.session.stats().unwrap();
        let size = 8_000 + 2_000 + "look".len() + "I see.".len() + r#"{"path":"src/lib.rs"}"#.len();
        let expected = json!({
            "total_size": size, "model_limit": 200_000, "usage_percent": 5.0, "turns_count": 1,
            "compression_threshold": 160_000, "needs_compression": false });
        assert_eq!(serde_json::to_value(&stats).unwrap(), expected, "{format:?}");
        let trajectory = serde_json::to_value(harness.session.trajectory().unwrap()).unwrap();
        let action = json!({ "tool": "read_file", "arguments": { "path": "src/lib.rs" } });
        let turn = json!({ "thought": "", "action": action, "result": "x".repeat(2_000) });
        assert_eq!(trajectory["execution"], json!({ "final_response": "I see.", "tool_calls": [turn] }));
        assert_eq!(trajectory["context_compression"], json!({ "enabled": true, "stats": expected }));
        assert!(trajectory["reasoning_trace"].is_array() && trajectory["metadata"].is_object());
    }
    // The document's figures: 145,000 of 200,000.
    let mut harness = react(json!({}));
    harness.append(&[user(&"x".repeat(137_000))]);
    let stats = harness.session.stats().unwrap();
    assert_eq!(
        (stats.usage_percent, stats.compression_threshold, stats.needs_compression),
        (72.5, 160_000, false)
    );
    for (chars, needs) in [(152_000, false), (152_001, true)] {
        let mut harness = react(json!({}));
        harness.append(&[user(&"x".repeat(chars))]);
        assert_eq!(harness.session.stats().unwrap().needs_compression, needs, "{chars}");
    }
}

/// Trajectories of a usual run; `CC_REACT_CASES` says another number.
const TRAJECTORIES: u64 = 9;

#[test]
fn f10_no_trajectory_overflows_below_95_percent_of_the_window() {
    let count = std::env::var("CC_REACT_CASES").map_or(TRAJECTORIES, |count| count.parse().unwrap());
    for seed in 0..count {
        let mut rng = fastrand::Rng::with_seed(seed);
        let window = [8_000, 64_000, 200_000][seed as usize % 3];
        let format = FORMATS[rng.usize(..2)];
        let room = window / 50;
        let options = json!({
            "preset": "react", "contextWindow": window, "maxOutputTokens": room, "summarize": { "attempts": 1 },
            "format": format.as_str(), "advanced": { "estimator": "calibrated" },
        });
        let mut harness = Harness::new(options);
        harness.host.summarise = Box::new(obedient);
        let error = loop {
            // Words as they are said: about five characters a token.
            let words =
                |rng: &mut fastrand::Rng| "the parser keeps its state ".repeat(rng.usize(1..window / 150));
            harness.append(&[user(&words(&mut rng))]);
            if rng.bool() {
                harness.append(&exchange(format, "c", &words(&mut rng)));
            }
            harness.append(&[assistant(&words(&mut rng))]);
            if let Err(error) = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())) {
                break error;
            }
        };
        assert_eq!(error.code, Code::ContextOverflow);
        assert!(error.message.contains("tokens do not fit"), "{error}");
        let tokens = harness.host.run(harness.session.plan()).unwrap().tokens;
        assert!(tokens * 100 >= window * 95, "seed {seed}: {tokens} of {window}: {error}");
    }
    println!("F10: {count} trajectories");
}

#[test]
fn f10_stats_are_of_the_window_in_tokens() {
    let mut harness = Harness::new(json!({ "preset": "react", "contextWindow": 8_000 }));
    harness.append(&talk(4, 400));
    let (stats, plan) = (harness.session.stats().unwrap(), harness.host.run(harness.session.plan()).unwrap());
    assert_eq!(
        (stats.total_size, stats.model_limit, stats.compression_threshold),
        (plan.tokens, 8_000, 6_000)
    );
    assert!(!stats.needs_compression && !plan.will_compact);
}

#[test]
fn s2_3_a_call_that_cannot_succeed_is_made_once_and_another_as_often_as_asked_for() {
    for (message, status, calls) in [("prompt is too long", 400, 2), ("busy", 503, 6)] {
        let mut harness = react(json!({ "summarize": { "attempts": 3 } }));
        harness.host.summarise = Box::new(move |_, _| thrown(message, Some(status)));
        tool(&mut harness, FORMATS[0], "a", &"x".repeat(60_000));
        harness.prepare();
        assert_eq!(harness.host.seen.requests.len(), calls, "two chunks: {message}");
    }
}
