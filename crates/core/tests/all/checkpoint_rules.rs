//! Preset `checkpoint`, item by item of the specification (`S5.1` to `S5.17`).

use crate::support::checkpoints::*;
use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::checkpoint::{GoalStatus, LEVELS};
use context_compactor_core::context::{Fate, LedgerEntry};
use context_compactor_core::policy::{Settings, Trigger};
use context_compactor_core::session::Session;
use context_compactor_core::step::{LogLevel, Stage};
use context_compactor_store_tests::How;
use context_compactor_store_tests::conversation::{Body, assistant, exchange, user};
use context_compactor_store_tests::host::{summary, thrown};
use serde_json::{Value, json};
use std::rc::Rc;

fn read(over: Value) -> Result<Settings, context_compactor_core::Error> {
    Settings::read(&serde_json::from_str(&options(over).to_string()).unwrap())
}

#[test]
fn s5_9_the_threshold_follows_from_the_tier_and_each_number_is_an_option() {
    let limit = |over: Value| read(over).unwrap().threshold.tokens;
    assert_eq!(limit(json!({ "contextWindow": 8_000 })), 4_875);
    assert_eq!(limit(json!({ "contextWindow": 200_000 })), 148_125);
    assert_eq!(
        limit(json!({ "contextWindow": 8_000, "presetOptions": { "tier": "TIER_1_MINIMAL" } })),
        5_100
    );
    assert_eq!(limit(json!({ "contextWindow": 8_000, "presetOptions": { "promptBudget": 0 } })), 5_250);
    assert_eq!(limit(json!({ "contextWindow": 8_000, "presetOptions": { "triggerShare": 0.5 } })), 3_250);
    assert_eq!(limit(json!({ "contextWindow": 8_000, "presetOptions": { "safetyMargin": 500 } })), 5_250);
    assert_eq!(read(json!({ "contextWindow": 8_000 })).unwrap().hard_limit, 7_000);
    for (over, field) in [
        (json!({ "presetOptions": { "tier": "TIER_6" } }), "presetOptions.tier"),
        (json!({ "presetOptions": { "compactAbove": 5 } }), "presetOptions.compactAbove"),
        (json!({ "presetOptions": { "ageCompact": 2 } }), "presetOptions.ageCompact"),
        (json!({ "presetOptions": { "mergeCount": 1 } }), "presetOptions.mergeCount"),
        (json!({ "summarize": { "detail": 4 } }), "summarize.detail"),
        (json!({ "summarize": { "mode": 4 } }), "summarize.mode"),
        (json!({ "goal": { "id": "x" } }), "goal.description"),
    ] {
        assert_eq!(read(over.clone()).unwrap_err().field.as_deref(), Some(field), "{over}");
    }
}

#[test]
fn s5_12_profiles_say_how_large_the_window_is() {
    let profiles = json!([{ "model": "llama3:7b", "size": 8_000, "share": 0.85 }]);
    let over = |model: &str, size: usize| json!({ "model": model, "contextWindow": size, "presetOptions": { "profiles": profiles } });
    let settings = read(over("llama3:7b", 8_000)).unwrap();
    assert_eq!((settings.window, settings.hard_limit), (6_800, 5_800), "the margin is 1,000");
    let error = read(over("gpt", 8_000)).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (Code::UnknownModel, "Model not found: gpt"));
    assert!(read(over("llama3:7b", 9_000)).unwrap_err().message.contains("No profile for size 9000"));
    let broken = json!({ "model": "m", "presetOptions": { "profiles": [{ "model": "m" }] } });
    assert_eq!(read(broken).unwrap_err().field.as_deref(), Some("presetOptions.profiles[0].size"));
}

#[test]
fn facts_of_a_model_stand_where_the_app_says_nothing() {
    let read = |preset: &str, over: Value| {
        let mut options =
            json!({ "preset": preset, "facts": { "contextWindow": 100_000, "maxOutputTokens": 30_000 } });
        merge(&mut options, &over);
        let settings = Settings::read(&serde_json::from_str(&options.to_string()).unwrap()).unwrap();
        (settings.window, settings.hard_limit)
    };
    // Never more than the document's 20,000 (`S3.2`), and a margin in `checkpoint` (`S5.1`).
    assert_eq!(read("offload", json!({})), (100_000, 80_000));
    assert_eq!(read("checkpoint", json!({})), (100_000, 99_000));
    for preset in ["offload", "checkpoint"] {
        assert_eq!(read(preset, json!({ "maxOutputTokens": 30_000 })), (100_000, 70_000));
    }
    let brief = json!({ "facts": { "contextWindow": 100_000, "maxOutputTokens": 4_096 } });
    assert_eq!(read("offload", brief), (100_000, 95_904));
    let small = json!({ "facts": { "contextWindow": 8_000, "maxOutputTokens": 8_000 } });
    assert_eq!(read("offload", small), (8_000, 6_000));
    let only_window = json!({ "facts": { "contextWindow": 40_000 } });
    assert_eq!(read("offload", only_window.clone()), (40_000, 30_000));
    assert_eq!(read("checkpoint", only_window), (40_000, 39_000));
}

#[test]
fn s5_5_six_stages_and_the_result() {
    let mut harness = harness(json!({}));
    harness.append(&chat(20, 100));
    let result = harness.compact();
    assert!(result.success && result.summary.is_some());
    let stages: Vec<Stage> = harness.host.seen.progress.iter().map(|progress| progress.stage).collect();
    use Stage::*;
    assert_eq!(stages, [Identify, Prepare, Summarise, Checkpoint, Update, Validate]);
    let record = &harness.session.checkpoints().unwrap()[0];
    assert_eq!(result.freed_tokens, record.original_tokens - record.compressed_tokens);
}

#[test]
fn f31_the_level_of_a_checkpoint_follows_from_its_record() {
    let mut seen = Vec::new();
    for tokens in [10, 40, 60, 100, 200] {
        for said in [10, 100] {
            let mut harness = harness(json!({}));
            let asked = |nth: usize| user(&long(&format!("ask {nth}"), said));
            let bodies = (0..20).flat_map(|nth| [asked(nth), assistant(&long("answer", tokens))]);
            harness.append(&bodies.collect::<Vec<_>>());
            assert!(harness.compact().success);
            for record in harness.session.checkpoints().unwrap() {
                assert!(record.counted_tokens > 0 && record.counted_tokens < record.original_tokens);
                assert_eq!(Some(LEVELS.of(record.counted_tokens)), record.level, "{record:?}");
                seen.extend(record.level.map(u8::from));
            }
        }
    }
    assert!([1, 2, 3].iter().all(|level| seen.contains(level)), "{seen:?}");
}

#[test]
fn s5_5_f1_nothing_to_compress_is_a_success_that_says_so() {
    for messages in [chat(2, 100), (0..8).map(|nth| user(&format!("ask {nth}"))).collect()] {
        let mut harness = harness(json!({}));
        harness.append(&messages);
        let result = harness.compact();
        assert_eq!((result.success, result.reason.as_deref()), (true, Some("No messages to compress")));
        assert_eq!((result.llm_calls, result.freed_tokens), (0, 0));
    }
}

#[test]
fn s5_5_a_result_that_does_not_fit_is_rolled_back() {
    let mut harness = harness(json!({ "contextWindow": 4_000 }));
    harness.append(&chat(4, 100));
    // The newest five alone are too large.
    harness.append(&chat(3, 1_200));
    let before = harness.context();
    let result = harness.compact();
    let error = result.error.unwrap();
    assert!(
        !result.success && error.message.contains("Compression failed validation: Context exceeds"),
        "{error}"
    );
    assert_eq!((harness.context(), harness.session.checkpoints().unwrap().len()), (before, 0));
    assert_eq!(result.freed_tokens, 0);
}

#[test]
fn s5_6_the_users_last_ten_messages_stay_word_for_word_and_older_ones_are_summarised() {
    for format in FORMATS {
        let mut harness = harness(json!({}));
        for nth in 0..14 {
            harness.append(&[user(&format!("ask {nth} </message>"))]);
            harness.append(&exchange(format, &format!("c{nth}"), &long("result", 100)));
            harness.append(&[assistant("done")]);
        }
        assert!(harness.compact().success);
        let context = harness.context();
        assert_valid(format, &context);
        let text = &checkpoints(&harness)[0];
        for nth in 0..14 {
            let fenced =
                format!("<message index=\"{}\" role=\"user\">\nask {nth} &lt;/message>\n</message>", nth * 4);
            let in_tail = context.iter().any(|message| message["content"] == format!("ask {nth} </message>"));
            assert_eq!(text.contains(&fenced) || in_tail, nth >= 4, "{format:?} {nth} {text}");
        }
        let request = &harness.host.seen.requests[0].0.messages[0].content;
        assert!(request.contains("ask 0 ") && request.contains("ask 8 "), "the summariser sees all of them");
        let fates: Vec<LedgerEntry> = harness.session.explain().unwrap();
        assert_eq!(
            (fates[0].fate, fates[16].fate, fates[16].quoted),
            (Fate::Summarised, Fate::Verbatim, true)
        );
        assert_eq!(fates[17].fate, Fate::Summarised);
    }
}

#[test]
fn s5_6_older_checkpoints_let_go_of_messages_that_are_not_among_the_last_ten_any_more() {
    let mut harness = harness(json!({}));
    for round in 0..4 {
        let messages: Vec<Body> = (0..8)
            .flat_map(|nth| [user(&format!("ask {round}.{nth}.")), assistant(&long("answer", 150))])
            .collect();
        harness.append(&messages);
        harness.host.summarise = Box::new(move |_, _| part(&format!("part {round}"), 60));
        assert!(harness.compact().success);
        let all = texts(&harness).join("\n");
        for past in 0..=round {
            for nth in 0..8 {
                let age = (round - past) * 8 + 8 - nth;
                assert_eq!(all.contains(&format!("ask {past}.{nth}.")), age <= 10, "{round}: {past}.{nth}");
            }
        }
        assert_eq!(checkpoints(&harness).len(), round + 1);
        assert_valid(FORMATS[0], &harness.context());
        // No two messages of the user stand side by side, and the next tab sees the same.
        let roles: Vec<Value> = harness.context().iter().map(|message| message["role"].clone()).collect();
        assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "{roles:?}");
        let memory = Rc::clone(&harness.memory);
        harness = Harness::over(memory, &format!("tab {round}"), options(json!({})));
    }
}

#[test]
fn f39_s5_6_an_older_checkpoint_quotes_the_tenth_last_message_of_the_user_and_lets_go_of_the_eleventh() {
    let mut harness = harness(json!({}));
    let chat = |from: usize, to: usize| -> Vec<Body> {
        (from..to).flat_map(|nth| [user(&format!("ask {nth}.")), assistant(&long("answer", 150))]).collect()
    };
    harness.append(&chat(0, 8));
    assert!(harness.compact().success);
    harness.append(&chat(8, 12));
    assert!(harness.compact().success);
    let older = &checkpoints(&harness)[0];
    let quoted: Vec<usize> = (0..12).filter(|nth| older.contains(&format!("\nask {nth}.\n"))).collect();
    // Of the twelve that the user said, the first two are too old; the last six stand behind it.
    assert_eq!(quoted, [2, 3, 4, 5], "{older}");
}

#[test]
fn s5_1_s5_3_checkpoints_stand_behind_the_system_prompt_with_id_and_time() {
    let mut harness = harness(json!({}));
    harness.append(&[Rc::from(r#"{"role":"system","content":"You are a tool."}"#)]);
    harness.append(&chat(20, 100));
    assert!(harness.compact().success);
    let record = harness.session.checkpoints().unwrap().remove(0);
    let texts = texts(&harness);
    assert_eq!(texts[0], "You are a tool.");
    assert!(texts[1].starts_with(&format!("[Checkpoint {} @ 2023-11-14T22:13:20Z]\n\n{SUMMARY}", record.id)));
    assert_eq!((record.number, record.level.map(u8::from)), (0, Some(3)));
    assert_eq!(record.message_range, (1, 36), "to behind the last: 41 less the newest five");
    assert!(record.compression_ratio > 0.0 && record.compression_ratio < 1.0);
    let loaded = Harness::over(Rc::clone(&harness.memory), "other", options(json!({})));
    assert_eq!(loaded.session.checkpoints().unwrap(), [record]);
}

#[test]
fn s5_7_s5_10_level_and_mode_decide_the_prompt() {
    for (tokens, level, words) in [
        (100, json!(null), "Detailed: 300 to 500"),
        (140, json!(null), "Moderate: 150 to 300"),
        (250, json!(null), "Compact: 50 to 100"),
        (250, json!(3), "Detailed: 300 to 500"),
    ] {
        let mut harness = harness(json!({ "summarize": { "mode": "debugger", "detail": level } }));
        harness.append(&chat(20, tokens));
        assert!(harness.compact().success);
        let request = &harness.host.seen.requests[0].0;
        assert!(request.system.contains(words), "{tokens}: {}", request.system);
        assert!(request.system.contains("stack traces"));
        assert!(words.ends_with(&request.target_tokens.to_string()));
    }
}

#[test]
fn s5_11_reliability_falls_with_every_compression_and_warns() {
    let mut harness = harness(json!({ "model": "llama3:3b" }));
    assert_eq!(harness.session.reliability().unwrap().score, 0.3);
    for nth in 1..=3 {
        assert!(!harness.session.reliability().unwrap().warn);
        another(&mut harness, nth);
    }
    let reliability = harness.session.reliability().unwrap();
    assert!(reliability.warn && (reliability.score - 0.3 * 0.729).abs() < 1e-9);
    let warned = |line: &&(LogLevel, String)| line.0 == LogLevel::Warn && line.1.contains("reliability");
    assert_eq!(harness.host.seen.logs.iter().filter(warned).count(), 1);
    let other = Harness::over(Rc::clone(&harness.memory), "other", options(json!({ "model": "llama3:3b" })));
    assert_eq!(other.session.reliability().unwrap(), reliability, "the count is part of the session");
}

fn goal() -> Value {
    json!({ "id": "g", "description": "Ship the exporter", "priority": "high", "status": "active",
        "checkpoints": [{ "description": "Test it", "status": "pending" }], "decisions": [], "artifacts": [] })
}

#[test]
fn s5_13_the_goal_stands_in_the_system_prompt_guides_the_summary_and_follows_its_markers() {
    let mut harness = harness(json!({ "goal": goal() }));
    harness.append(&chat(20, 100));
    let prepared = harness.prepare();
    assert!(
        prepared.goal.unwrap().starts_with("ACTIVE GOAL: Ship the exporter\nPriority: high\nStatus: active")
    );
    assert!(prepared.usage.categories[0].tokens > 20, "it is counted");
    harness.host.summarise = Box::new(|_, _| {
        summary(
            "The exporter was written.\n[CHECKPOINT] Test it - IN-PROGRESS\n[ARTIFACT] Created a.rs\nAnd [DECISION] none",
        )
    });
    assert!(harness.compact().success);
    assert!(harness.host.seen.requests[0].0.system.contains("<goal>\nACTIVE GOAL: Ship the exporter"));
    let told = harness.host.run(
        harness.session.apply_markers("[DECISION] UTF-8 - LOCKED\n[CHECKPOINT] Test it - COMPLETED".into()),
    );
    let told = told.unwrap();
    assert!(told.checkpoints[0].completed_at.is_some() && told.decisions[0].locked);
    assert_eq!((told.artifacts.len(), told.decisions.len()), (1, 1));
    // Durable, and what is stored is further than what the options say.
    let mut other = Harness::over(Rc::clone(&harness.memory), "other", options(json!({ "goal": goal() })));
    assert_eq!(other.session.goal().unwrap().unwrap(), told);
    let next = json!({ "id": "h", "description": "Rest", "status": "paused" });
    other.host.run(other.session.set_goal(next.to_string())).unwrap();
    assert_eq!(other.session.goal().unwrap().unwrap().status, GoalStatus::Paused);
    assert_eq!(other.prepare().goal, None, "one that is not worked on is not told");
    let error = other.host.run(other.session.set_goal("{}".into())).unwrap_err();
    assert_eq!((error.code, error.field.as_deref()), (Code::InvalidOption, Some("goal.id")));
    let mut bare = Harness::new(options(json!({})));
    let error = bare.host.run(bare.session.apply_markers("[DECISION] x".into())).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
}

fn prepare(
    harness: &mut Harness,
) -> context_compactor_core::Result<context_compactor_core::session::Prepared> {
    harness.host.run(Session::prepare(&harness.session, Trigger::Auto, Vec::new()))
}

#[test]
fn s5_15_recent_messages_are_summarised_when_nothing_else_fits() {
    let mut harness = harness(json!({ "contextWindow": 4_000 }));
    harness.append(&chat(4, 1_000));
    let prepared = prepare(&mut harness).unwrap();
    assert!(harness.session.validate().unwrap().valid && prepared.usage.used_tokens <= 3_000);
    assert!(warnings(&harness).iter().any(|line| line.contains("recent messages are summarized too")));
    assert!(!warnings(&harness).iter().any(|line| line.contains("begins anew")), "it fits now");
    let result = prepared.result.unwrap();
    assert!(result.success && result.summary.is_some());
    assert_valid(FORMATS[0], &harness.context());
    assert!(prepare(&mut harness).unwrap().edits.is_empty(), "done once");
}

#[test]
fn s5_15_the_context_begins_anew_when_the_summariser_fails() {
    for format in FORMATS {
        let mut harness = harness(json!({ "contextWindow": 4_000, "summarize": { "attempts": 1 } }));
        harness.host.summarise = Box::new(|_, _| thrown("down", None));
        harness.append(&chat(5, 600));
        harness.append(&[user("What is the last question? 한국어")]);
        harness.append(&exchange(format, "x", "short"));
        let prepared = prepare(&mut harness).unwrap();
        assert_eq!(prepared.edits.iter().map(|edit| edit.kind).collect::<Vec<_>>(), ["rollover"]);
        assert_eq!(harness.host.seen.requests.len(), 1, "who does not answer is not asked again");
        let sent = bodies(&harness.session, &prepared);
        assert_valid(format, &sent);
        let all = Value::Array(sent).to_string();
        assert!(all.contains("What is the last question? 한국어") && all.contains("short"));
        assert!(prepared.usage.used_tokens <= 3_000);
        let told = warnings(&harness).into_iter().find(|line| line.contains("begins anew")).unwrap();
        assert!(harness.host.seen.logs.contains(&(LogLevel::Warn, told)), "the logger is told too");
        assert!(harness.stored().messages.len() == 13, "the log keeps every message");
    }
}

#[test]
fn s5_1_s5_15_what_cannot_fit_is_refused_with_the_sizes_and_stays_in_the_transcript() {
    let mut harness = harness(json!({ "contextWindow": 4_000 }));
    harness.append(&chat(3, 100));
    harness.append(&[user(&long("too large", 5_000))]);
    // Only what has to stay word for word cannot be made to fit.
    harness.host.run(harness.session.pin(6)).unwrap();
    let error = prepare(&mut harness).unwrap_err();
    assert_eq!(error.code, Code::ContextOverflow);
    assert!(error.message.starts_with("Cannot add message: would exceed limit ("), "{}", error.message);
    assert!(error.message.contains("> 3000)"));
    assert_eq!(harness.stored().messages.len(), 7);
    let validation = harness.session.validate().unwrap();
    assert!(!validation.valid && validation.overage.is_some() && !validation.suggestions.is_empty());
}

#[test]
fn s5_1_equality_fits_and_one_more_is_refused() {
    let message = user(&long("the only one", 2_000));
    let mut alone = harness(json!({ "contextWindow": 8_000 }));
    alone.append(&[Rc::clone(&message)]);
    let tokens = alone.session.usage().unwrap().used_tokens;
    for (limit, fits) in [(tokens, true), (tokens - 1, false)] {
        let margin = json!({ "safetyMargin": 8_000 - limit });
        let mut harness = harness(json!({ "contextWindow": 8_000, "presetOptions": margin }));
        harness.append(&[Rc::clone(&message)]);
        harness.host.run(harness.session.pin(0)).unwrap();
        assert_eq!(harness.session.validate().unwrap().valid, fits);
        match prepare(&mut harness) {
            Ok(prepared) => assert!(fits && prepared.edits.is_empty()),
            Err(error) => {
                let said = format!("Cannot add message: would exceed limit ({tokens} > {limit})");
                assert!(!fits && error.message.starts_with(&said), "{error}");
            }
        }
    }
}

#[test]
fn s4_7_factor3_warns_at_four_fifths_and_makes_room() {
    for (tokens, warns) in [(1_500, false), (3_300, true)] {
        let mut harness = Harness::new(json!({ "preset": "factor3", "maxOutputTokens": 0 }));
        harness.append(&chat(1, 100));
        harness.append(&chat(3, tokens));
        let prepared = prepare(&mut harness).unwrap();
        assert_eq!(warnings(&harness).iter().any(|line| line.starts_with("Emergency")), warns, "{tokens}");
        assert!(prepared.usage.used_tokens < 6_400, "{:?}", prepared.usage);
    }
}

#[test]
fn the_plan_tells_what_ages_and_what_rolls_over() {
    let mut harness = harness(json!({ "summarize": { "detail": 3 } }));
    for nth in 1..=4 {
        another(&mut harness, nth);
    }
    harness.append(&chat(60, 400));
    let plan = harness.host.run(harness.session.plan()).unwrap();
    let rungs: Vec<&str> = plan.edits.iter().map(|rung| rung.kind).collect();
    assert_eq!(rungs, ["summarize", "age"]);
    let mut full = Harness::new(options(json!({ "contextWindow": 4_000 })));
    full.append(&chat(4, 1_000));
    let plan = full.host.run(full.session.plan()).unwrap();
    let rungs: Vec<(&str, bool)> = plan.edits.iter().map(|rung| (rung.kind, rung.freed_tokens > 0)).collect();
    assert_eq!(rungs, [("summarize", false), ("summarize", true)], "{plan:?}");
    let mut alone = Harness::new(options(json!({ "contextWindow": 4_000, "summarize": "extractive" })));
    alone.append(&[
        user("ask"),
        assistant(&long("answer", 1_000)),
        user("more"),
        assistant(&long("all", 1_800)),
    ]);
    let plan = alone.host.run(alone.session.plan()).unwrap();
    let edits = alone.prepare().edits;
    let made: Vec<_> = edits.iter().map(|edit| (edit.kind, &edit.indices)).collect();
    assert_eq!(plan.edits.iter().map(|rung| (rung.kind, &rung.indices)).collect::<Vec<_>>(), made);
}

#[test]
fn lesson_a_crash_or_a_lost_answer_at_any_commit_of_a_compaction_leaves_a_whole_session() {
    let mut crashes = 0;
    for how in [How::CrashBefore, How::CrashAfter, How::Lost, How::Fail(Code::StoreUnavailable)] {
        for commit in 1..=4 {
            let mut harness = harness(json!({
                "summarize": { "detail": 3 },
                "presetOptions": { "ageModerate": 1, "ageCompact": 2, "mergeCount": 2 },
            }));
            for nth in 1..=3 {
                another(&mut harness, nth);
            }
            harness.append(&chat(6, 200));
            harness.host.fault(commit, is_commit, how);
            let ended = harness.host.try_run(harness.session.compact(None));
            crashes += usize::from(ended.is_none());
            let memory = Rc::clone(&harness.memory);
            let mut other = Harness::over(memory, "other", options(json!({ "summarize": { "detail": 3 } })));
            assert_eq!(other.stored().messages.len(), 48, "{how:?} {commit}");
            assert_valid(FORMATS[0], &other.context());
            another(&mut other, 9);
        }
    }
    assert!(crashes >= 6, "{crashes}");
}
