//! Preset `layered`, item by item of the specification (`S3.1` to `S3.8`), in both formats.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::Fate;
use context_compactor_core::policy::{Settings, Trigger};
use context_compactor_core::step::{EffectFailure, Event};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, body, calls, exchange, results, user};
use context_compactor_store_tests::host::thrown;
use serde_json::{Value, json};
use std::rc::Rc;

const CLEARED: &str = "[Output compacted - re-read if needed]";

fn layered(over: Value) -> Harness {
    let mut options = json!({ "preset": "layered" });
    merge(&mut options, &over);
    Harness::new(options)
}

fn limit(options: Value) -> usize {
    Settings::read(&serde_json::from_str(&options.to_string()).unwrap()).unwrap().threshold.tokens
}

#[test]
fn s3_1_clears_old_results_of_compactable_tools_every_turn_and_keeps_the_calls() {
    for format in FORMATS {
        let mut harness = layered(json!({ "contextWindow": 200_000 }));
        for nth in 0..5 {
            harness.append(&turn(format, nth, 1_200));
        }
        let prepared = harness.prepare();
        assert_eq!(prepared.edits.iter().map(|edit| edit.kind).collect::<Vec<_>>(), ["clear"]);
        let sent = bodies(&harness.session, &prepared);
        let results: Vec<String> = sent.iter().filter_map(|message| result_text(format, message)).collect();
        assert_eq!(results.len(), 5, "{format:?}");
        assert_eq!(results.iter().filter(|text| *text == CLEARED).count(), 2);
        assert!(results[2..].iter().all(|text| text != CLEARED), "the newest three stay");
        assert_valid(format, &sent);
        let ledger = harness.session.explain().unwrap();
        let cleared: Vec<_> = ledger.iter().filter(|entry| entry.fate == Fate::Reduced).collect();
        assert_eq!(cleared.len(), 2);
        let text = harness.read(cleared[0].reference.as_deref().unwrap());
        assert_eq!(text, long("result 0", 1_200), "what was cleared can still be read");
        assert!(harness.host.seen.notices.is_empty(), "it is silent");
        assert!(harness.prepare().edits.is_empty(), "and done once");
    }
}

#[test]
fn s3_1_of_results_in_one_message_the_old_ones_are_cleared() {
    let calls =
        ["a", "b", "c"].map(|id| json!({ "type": "tool_use", "id": id, "name": "read_file", "input": {} }));
    let results = ["a", "b", "c"]
        .map(|id| json!({ "type": "tool_result", "tool_use_id": id, "content": long(id, 1_200) }));
    let mut harness = layered(json!({ "contextWindow": 200_000, "presetOptions": { "keepRecent": 1 } }));
    harness.append(&[
        user("read them"),
        body(&json!({ "role": "assistant", "content": calls })),
        body(&json!({ "role": "user", "content": results })),
    ]);
    let sent = harness.sent();
    let texts: Vec<_> = (0..3).map(|nth| sent[2]["content"][nth]["content"].as_str().unwrap()).collect();
    assert_eq!(texts, [CLEARED, CLEARED, &long("c", 1_200)]);
}

#[test]
fn s3_1_small_results_and_other_tools_are_left_alone() {
    for (tools, tokens, cleared) in
        [(json!(["read_file"]), 990, 0), (json!(["Read_File"]), 1_100, 2), (json!(["grep"]), 1_100, 0)]
    {
        let options = json!({ "contextWindow": 200_000, "presetOptions": { "compactableTools": tools } });
        let mut harness = layered(options);
        for nth in 0..5 {
            harness.append(&turn(FORMATS[0], nth, tokens));
        }
        let edits = harness.prepare().edits;
        assert_eq!(edits.iter().map(|edit| edit.indices.len()).sum::<usize>(), cleared, "{tools} {tokens}");
    }
}

#[test]
fn f39_s3_1_a_result_of_exactly_the_least_size_is_not_cleared() {
    let mut harness =
        layered(json!({ "contextWindow": 200_000, "presetOptions": { "clearMinTokens": 100 } }));
    for (nth, chars) in [400, 404, 40, 40, 40].into_iter().enumerate() {
        harness.append(&[user(&format!("question {nth}"))]);
        harness.append(&exchange(FORMATS[0], &format!("call_{nth}"), &"x".repeat(chars)));
        harness.append(&[assistant("ok")]);
    }
    let edits = harness.prepare().edits;
    let indices: Vec<usize> = edits.iter().flat_map(|edit| edit.indices.clone()).collect();
    assert_eq!(indices, [6], "100 tokens stay, 101 go");
}

#[test]
fn s3_1_can_be_mixed_into_another_preset_and_switched_off() {
    for (options, clears) in [
        (json!({ "contextWindow": 200_000, "preset": "offload", "clear": {} }), true),
        (json!({ "contextWindow": 200_000, "preset": "offload" }), false),
        (json!({ "contextWindow": 200_000, "preset": "layered", "clear": false }), false),
    ] {
        let mut harness = Harness::new(options.clone());
        for nth in 0..5 {
            harness.append(&turn(FORMATS[1], nth, 1_200));
        }
        assert_eq!(harness.prepare().edits.len(), usize::from(clears), "{options}");
    }
}

#[test]
fn s3_1_break_even_clears_in_one_batch_when_the_calls_so_far_would_have_paid_for_it() {
    let step_of = |clear: Value, cache_read: f64, cache_write: f64, tokens: usize| {
        let mut harness = Harness::new(json!({
            "contextWindow": 200_000, "preset": "offload", "maxOutputTokens": 0,
            "clear": clear, "compactAt": { "tokens": tokens },
            "prices": { "input": 1, "output": 1, "cacheRead": cache_read, "cacheWrite": cache_write }
        }));
        for nth in 0..5 {
            harness.append(&turn(FORMATS[0], nth, 2_000));
        }
        (1..=80).find(|step| {
            harness.append(&[user("go on"), assistant("done")]);
            let edits = harness.prepare().edits;
            assert!(edits.iter().all(|edit| edit.kind == "clear" && edit.indices.len() == 2), "{step}");
            !edits.is_empty()
        })
    };
    let paying = json!({ "when": "break-even" });
    // Two of 2,000 are cleared, and three of 2,000 stand behind: 11.5 × 6,000 / 4,000 calls each. In the turns that were
    // there at once the older one had been read six times, the other four times.
    let usual = step_of(paying.clone(), 0.1, 1.25, 150_000).unwrap();
    assert!((12..=14).contains(&usual), "{usual}");
    let no_fee = step_of(paying.clone(), 0.1, 1.0, 150_000).unwrap();
    assert!((8..=10).contains(&no_fee), "9 × 6,000 / 4,000: {no_fee}");
    // Where a change costs nothing it is made, where nothing is saved it is not, and where the session acts it must be.
    assert_eq!(step_of(paying.clone(), 0.1, 0.1, 150_000), Some(1));
    assert_eq!(step_of(paying.clone(), 0.0, 1.25, 150_000), None);
    assert_eq!(step_of(paying.clone(), 0.0, 1.25, 10_000), Some(1));
    assert_eq!(step_of(json!(false), 0.1, 1.25, 150_000), None);
}

#[test]
fn s3_2_the_threshold_is_what_is_left_of_the_window() {
    let of = |window: usize, output: usize| {
        limit(json!({ "preset": "layered", "contextWindow": window, "maxOutputTokens": output }))
    };
    assert_eq!(of(200_000, 16_384), 170_616);
    assert_eq!(of(200_000, 64_000), 200_000 - 20_000 - 13_000, "the reserve, however long an answer may be");
    assert_eq!(limit(json!({ "preset": "layered" })), 170_616);
    let small = of(16_000, 4_000);
    assert!(small > 8_000 && small < 12_000, "scaled where the literals cannot hold: {small}");
}

#[test]
fn s3_2_it_acts_above_the_threshold_and_known_fixed_tokens_use_up_the_reserve() {
    let options =
        json!({ "maxOutputTokens": 1_000, "presetOptions": { "fixedReserve": 1_000, "minSavings": 0 } });
    let mut harness = layered(options);
    harness.append(&talk(6, 400));
    let plan = harness.host.run(harness.session.plan()).unwrap();
    assert_eq!(plan.limit, 6_000);
    let tokens = plan.tokens;
    assert!(!plan.will_compact && tokens < 6_000);
    // Fixed tokens within the reserve move the line with them.
    let system = |tokens: usize| vec!["abcd".repeat(tokens)];
    harness.host.run(harness.session.count_fixed(system(1_000))).unwrap();
    let plan = harness.host.run(harness.session.plan()).unwrap();
    assert_eq!((plan.limit, plan.tokens), (7_000, tokens + 1_000));
    harness.host.run(harness.session.count_fixed(system(1_500))).unwrap();
    assert_eq!(harness.host.run(harness.session.plan()).unwrap().limit, 7_000, "and no further");
    // Strictly above.
    for (more, acts) in [(7_000 - tokens, false), (7_001 - tokens, true)] {
        harness.host.run(harness.session.count_fixed(system(more))).unwrap();
        assert_eq!(harness.host.run(harness.session.plan()).unwrap().will_compact, acts, "{more}");
    }
}

#[test]
fn s3_3_no_summary_when_it_could_save_too_little() {
    for (savings, compacts) in [(2_000, true), (3_000, false)] {
        let mut harness =
            layered(json!({ "compactAt": { "tokens": 1_000 }, "presetOptions": { "minSavings": savings } }));
        harness.append(&talk(8, 200));
        assert_eq!(harness.prepare().result.is_some(), compacts, "{savings}");
    }
}

#[test]
fn s3_3_the_least_gain_itself_is_enough() {
    let messages = talk(8, 200);
    let tokens = |messages: &[Body]| {
        let mut harness = layered(json!({}));
        harness.append(messages);
        harness.session.usage().unwrap().used_tokens
    };
    let gain = tokens(&messages) - tokens(&messages[11..]);
    for (savings, compacts) in [(gain, true), (gain + 1, false)] {
        let mut harness =
            layered(json!({ "compactAt": { "tokens": 1_000 }, "presetOptions": { "minSavings": savings } }));
        harness.append(&messages);
        assert_eq!(harness.prepare().result.is_some(), compacts, "{savings}");
    }
}

#[test]
fn s3_4_summary_acknowledgement_and_the_last_five() {
    for format in FORMATS {
        let mut harness =
            layered(json!({ "compactAt": { "tokens": 1_000 }, "presetOptions": { "minSavings": 0 } }));
        harness.append(&talk(8, 200));
        harness.append(&[user("go")]);
        let sent = harness.sent();
        assert_valid(format, &sent);
        // The last five begin with a message of the user: the acknowledgement stands between.
        assert_eq!(sent.len(), 7, "{format:?}");
        assert_eq!(sent[0]["role"], "user");
        assert_eq!(sent[0]["content"], format!("[Conversation compressed]\n{SUMMARY}{RECORD}"));
        let acknowledgement =
            json!({ "role": "assistant", "content": "Understood. Continuing with compressed context." });
        assert_eq!(sent[1], acknowledgement);
        assert_eq!(sent[6]["content"], "go");
        // S3.5: nothing of it stands in the system prompt.
        assert!(sent.iter().all(|message| message["role"] != "system"));
    }
}

#[test]
fn s3_7_manual_compaction_takes_instructions_and_asks_for_a_chronology() {
    let mut harness = layered(json!({}));
    harness.append(&talk(8, 200));
    harness.host.run(harness.session.compact(Some("Keep the exporter.".into()))).unwrap();
    let request = harness.host.seen.requests.last().unwrap().0.clone();
    assert!(request.system.contains("Keep the exporter.") && request.system.contains("## Actions"));
}

#[test]
fn s3_8_a_large_output_is_stored_and_previewed_before_it_is_ever_sent() {
    for format in FORMATS {
        let options = json!({
            "contextWindow": 200_000, "presetOptions": { "largeOutputTokens": 4_000, "previewChars": 20 },
        });
        let mut harness = layered(options);
        let text = format!("{}{}", "👩‍👩‍👧 字 start of it. ", "x".repeat(40_000));
        harness.append(&[user("read it")]);
        harness.append(&exchange(format, "a", &text));
        let sent = harness.sent();
        assert_valid(format, &sent);
        let ledger = harness.session.explain().unwrap();
        let entry = ledger.iter().find(|entry| entry.fate == Fate::Offloaded).unwrap();
        let reference = entry.reference.clone().unwrap();
        let shown = sent.iter().find_map(|message| result_text(format, message)).unwrap();
        let preview: String = text.chars().take(20).collect();
        assert_eq!(shown, format!("Output too large. Saved to: {reference}\nPreview:\n{preview}..."));
        assert_eq!(harness.read(&reference), text);
        harness.append(&[assistant("read")]);
        assert!(harness.prepare().edits.is_empty(), "done once");
    }
}

#[test]
fn s3_8_a_result_of_the_limit_is_not_too_large() {
    for (tokens, too_large) in [(4_000, false), (4_001, true)] {
        let mut harness =
            layered(json!({ "contextWindow": 200_000, "presetOptions": { "largeOutputTokens": 4_000 } }));
        harness.append(&[user("read it")]);
        harness.append(&exchange(FORMATS[0], "a", &"abcd".repeat(tokens)));
        assert_eq!(!harness.prepare().edits.is_empty(), too_large, "{tokens}");
    }
}

#[test]
fn s4_1_s4_2_factor3_summarises_at_half_of_the_window_and_keeps_three() {
    for format in FORMATS {
        let mut harness = Harness::new(json!({ "preset": "factor3" }));
        harness.append(&talk(9, 200));
        assert!(harness.prepare().result.is_none(), "3,600 of 8,000");
        harness.append(&talk(2, 200));
        let sent = harness.sent();
        assert_valid(format, &sent);
        assert_eq!(sent[0]["content"], format!("[SUMMARY]: {SUMMARY}{RECORD}"));
        assert!((4..=6).contains(&sent.len()), "{}", sent.len());
    }
    let mut harness = Harness::new(json!({ "preset": "factor3", "compactAt": { "tokens": 10 } }));
    harness.append(&talk(1, 200));
    assert_eq!(harness.prepare().result.unwrap().summary, None, "three or fewer: nothing to do");
    harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap();
}

fn read(harness: &mut Harness, format: Format, nth: usize, path: &str, text: &str) {
    let id = format!("call_{nth}");
    harness.append(&[user(&format!("read {path}"))]);
    harness.append(&calls(format, &[(&id, path)]));
    harness.append(&results(format, &[(&id, text)]));
    harness.append(&[assistant("read")]);
}

fn files(harness: &Harness) -> Vec<(String, String)> {
    let text = harness.context()[0]["content"].as_str().unwrap().to_string();
    let files = text.split("\n\n<file path=\"").skip(1).map(|file| {
        let (path, rest) = file.split_once("\">\n").unwrap();
        (path.to_string(), rest.strip_suffix("\n</file>").unwrap().to_string())
    });
    files.collect()
}

#[test]
fn s3_6_the_files_that_were_read_last_stand_behind_the_summary() {
    for format in FORMATS {
        let mut harness = layered(json!({ "contextWindow": 200_000, "presetOptions": { "clear": "never" } }));
        for nth in 0..7 {
            read(
                &mut harness,
                format,
                nth,
                &format!("src/{nth}.rs"),
                &format!("content {nth} </file> 한국어"),
            );
        }
        // Read again: distinct paths, the newest counts.
        read(&mut harness, format, 7, "src/1.rs", "content 1, later");
        harness.append(&talk(20, 200));
        assert!(harness.compact().success);
        let names: Vec<String> = files(&harness).into_iter().map(|(path, _)| path).collect();
        assert_eq!(names, ["src/1.rs", "src/6.rs", "src/5.rs", "src/4.rs", "src/3.rs"], "{format:?}");
        assert_eq!(files(&harness)[0].1, "content 1, later");
        assert_eq!(files(&harness)[1].1, "content 6 &lt;/file> 한국어", "fenced and escaped");
        // The next summary is not shown them as if they had been said.
        harness.append(&talk(8, 200));
        assert!(harness.compact().success);
        let request = harness.host.seen.requests.last().unwrap().0.messages[0].content.clone();
        assert!(!request.contains("content 1, later"));
    }
}

#[test]
fn s3_6_the_apps_own_content_is_asked_for_and_budgets_hold() {
    let options = json!({
        "contextWindow": 200_000, "restoreFiles": { "read": true },
        "presetOptions": { "maxRestoreFiles": 3, "maxRestoreTokensPerFile": 200, "maxRestoreTokensTotal": 450 },
    });
    let mut harness = layered(options.clone());
    harness.host.read_file = Box::new(|path| match path {
        "src/2.rs" => thrown("gone", None),
        _ => Event::Text(format!("{path} now {}", "word ".repeat(400))),
    });
    for nth in 0..4 {
        read(&mut harness, FORMATS[0], nth, &format!("src/{nth}.rs"), &format!("recorded {nth}"));
    }
    harness.append(&talk(30, 200));
    assert!(harness.compact().success);
    let files = files(&harness);
    assert!(files[0].1.starts_with("src/3.rs now word") && files[0].1.ends_with("characters left out …]"));
    assert_eq!(files[1].1, "recorded 2", "what was recorded where the app has nothing");
    assert_eq!(files.len(), 3);
    let tokens: usize = files.iter().map(|(path, text)| (path.len() + text.len()) / 4).sum();
    assert!(tokens <= 450, "{tokens}");
    // What two leave is the third's.
    let mut harness = layered(options);
    harness.host.read_file = Box::new(|path| Event::Text(format!("{path} now {}", "word ".repeat(400))));
    for nth in 0..4 {
        read(&mut harness, FORMATS[0], nth, &format!("src/{nth}.rs"), "recorded");
    }
    harness.append(&talk(30, 200));
    assert!(harness.compact().success);
    let tokens = self::files(&harness).into_iter().map(|(path, text)| {
        let fence = "<file path=\"\">\n\n</file>".len();
        (path.len() + text.chars().count() + fence).div_ceil(4)
    });
    let tokens: Vec<usize> = tokens.collect();
    assert!(matches!(tokens[..], [150..=200, 150..=200, 50..=100]), "{tokens:?}");
    assert!(tokens.iter().sum::<usize>() <= 450, "{tokens:?}");
}

#[test]
fn f39_s3_6_files_take_at_most_half_of_what_the_summary_replaces() {
    let mut harness = layered(json!({ "contextWindow": 200_000, "clear": false }));
    read(&mut harness, FORMATS[0], 0, "src/a.rs", &"word".repeat(3_000));
    harness.append(&talk(8, 200));
    assert!(harness.compact().success);
    // The file has 3,000 tokens, the talk that is replaced some 1,650.
    let [(_, text)] = &files(&harness)[..] else { panic!("{:?}", files(&harness)) };
    let tokens = text.len() / 4;
    assert!((2_250..2_400).contains(&tokens), "{tokens}");
}

#[test]
fn f39_s3_6_who_aborts_while_a_file_is_read_aborts_the_summary() {
    let mut harness = layered(json!({ "contextWindow": 200_000, "restoreFiles": { "read": true } }));
    harness.host.read_file = Box::new(|_| {
        let failure = EffectFailure {
            code: Some(Code::Aborted),
            message: "stop".into(),
            status: None,
            overflow: false,
            effect: 0,
        };
        Event::Failed(failure)
    });
    read(&mut harness, FORMATS[0], 0, "src/a.rs", "text");
    harness.append(&talk(8, 200));
    let before = harness.context();
    let ended = harness.host.run(harness.session.compact(None));
    assert_eq!(ended.err().map(|error| error.code), Some(Code::Aborted));
    assert_eq!(harness.context(), before);
}

#[test]
fn s3_6_a_file_that_the_context_still_shows_is_not_put_back() {
    let mut harness = layered(json!({ "contextWindow": 200_000 }));
    read(&mut harness, FORMATS[0], 0, "src/a.rs", "old");
    read(&mut harness, FORMATS[0], 1, "src/b.rs", "other");
    // What another tool was told of a file is not its content.
    let listed = exchange(FORMATS[0], "call_9", "src/lib.rs");
    let listed = listed.iter().map(|body| Body::from(body.replace("\"read_file\"", "\"list\"")));
    harness.append(&listed.collect::<Vec<_>>());
    harness.append(&talk(8, 200));
    read(&mut harness, FORMATS[0], 2, "src/a.rs", "new");
    assert!(harness.compact().success);
    assert_eq!(files(&harness), [("src/b.rs".to_string(), "other".to_string())]);
}

#[test]
fn s4_2_a_failed_call_changes_nothing() {
    let mut harness = Harness::new(json!({ "preset": "factor3" }));
    harness.host.summarise = Box::new(|_, _| thrown("down", None));
    harness.append(&talk(9, 200));
    let before = harness.context();
    let result = harness.compact();
    assert!(!result.success && result.error.is_some() && result.freed_tokens == 0);
    assert_eq!(harness.context(), before);
}

#[test]
fn s3_5_s5_14_the_summary_goes_into_the_conversation_and_the_system_prompt_stays() {
    for preset in ["offload", "layered", "factor3", "checkpoint"] {
        let mut harness = layered(json!({ "preset": preset, "advanced": { "minSavings": 0 } }));
        let system = body(&json!({ "role": "system", "content": "You are careful. 한국어", "x": 1 }));
        harness.append(&[Rc::clone(&system)]);
        let fixed = || vec![long("The prompt of the app.", 60), long("tools", 100)];
        let before = harness.host.run(harness.session.prepare(Trigger::Auto, fixed())).unwrap();
        let mut tokens = vec![before.usage.categories[0].tokens];
        for round in 0..3 {
            harness.append(&talk(10, 200));
            let result = harness.compact();
            assert!(result.success && result.summary.is_some(), "{preset} {round}: {result:?}");
            let prepared = harness.host.run(harness.session.prepare(Trigger::Auto, fixed())).unwrap();
            assert_eq!(prepared.goal, before.goal, "{preset}: nothing is added to the prompt");
            let sent = bodies(&harness.session, &prepared);
            assert_eq!(
                sent[0].to_string(),
                *system,
                "{preset}: what a provider has cached before the summary"
            );
            assert!(sent[1..].iter().all(|message| message["role"] != "system"));
            assert!(sent[1]["content"].as_str().unwrap().contains(SUMMARY), "{preset}: {}", sent[1]);
            let [system, tools, ..] = &prepared.usage.categories[..] else { panic!("no categories") };
            assert!(tools.tokens > 100, "{preset}");
            tokens.push(system.tokens);
        }
        assert!(tokens[0] > 60 && tokens.iter().all(|now| *now == tokens[0]), "{preset}: {tokens:?}");
    }
}

#[test]
fn f21_an_answer_that_may_be_long_takes_the_reserve_whoever_says_so() {
    let facts = json!({ "contextWindow": 200_000, "maxOutputTokens": 64_000 });
    let given = [20_000, 64_000, 128_000].map(|output| json!({ "maxOutputTokens": output }));
    for over in given.into_iter().chain([json!({ "model": "claude-sonnet-4-5", "facts": facts })]) {
        let mut options = json!({ "preset": "layered", "contextWindow": 200_000 });
        merge(&mut options, &over);
        let settings = settings(options);
        assert_eq!(settings.threshold.tokens, 167_000, "{over}");
        assert!(
            settings.hard_limit >= 167_000 && settings.hard_limit + 20_000 <= settings.window,
            "{over}: the answer fits"
        );
    }
    // Who wants more kept free says so.
    let more = settings(json!({
        "preset": "layered", "contextWindow": 200_000, "maxOutputTokens": 64_000,
        "presetOptions": { "outputReserve": 64_000 },
    }));
    assert_eq!((more.threshold.tokens, more.hard_limit), (200_000 - 64_000 - 13_000, 136_000));
}
