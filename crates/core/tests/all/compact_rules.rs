//! Compaction, item by item of the specification (`S1.4` to `S1.11`, `S1.14`, `S5.16`), in both formats.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::Fate;
use context_compactor_core::keys::batch::Key;
use context_compactor_core::policy::Trigger;
use context_compactor_core::step::{Effect, Event, Notice, ReportedUsage, Stage};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::How;
use context_compactor_store_tests::conversation::{assistant, user};
use context_compactor_store_tests::host::{summary, thrown};
use serde_json::json;
use std::rc::Rc;

#[test]
fn s1_4_compacts_when_offloading_freed_too_little_and_not_when_it_freed_enough() {
    for format in FORMATS {
        for (threshold, compacts) in [(150, false), (600, true)] {
            let mut harness = Harness::new(
                json!({ "compactAt": { "tokens": 400 }, "presetOptions": { "compactTriggerThreshold": threshold } }),
            );
            harness.append(&turn(format, 0, 300));
            harness.append(&talk(4, 80));
            let prepared = harness.prepare();
            assert!(prepared.edits[0].freed_tokens > 200 && prepared.edits[0].freed_tokens < 600);
            assert_eq!(prepared.result.is_some(), compacts, "{format:?} {threshold}");
            let rungs: Vec<&str> = prepared.edits.iter().map(|edit| edit.kind).collect();
            assert_eq!(rungs, if compacts { vec!["offload", "summarize"] } else { vec!["offload"] });
        }
    }
}

#[test]
fn s1_4_does_not_compact_below_the_threshold() {
    let mut harness = Harness::new(json!({ "compactAt": { "tokens": 5_000 } }));
    harness.append(&talk(10, 40));
    let prepared = harness.prepare();
    assert!(prepared.result.is_none() && prepared.edits.is_empty());
}

#[test]
fn s1_4_five_steps_between_attempts_and_a_failed_one_does_not_stop_the_turn() {
    let mut harness = Harness::new(json!({ "compactAt": { "tokens": 100 }, "summarize": { "attempts": 1 } }));
    harness.host.summarise = Box::new(|_, _| thrown("no", None));
    harness.append(&talk(6, 40));
    let mut attempts = Vec::new();
    for step in 1..=12 {
        harness.append(&[user("go"), assistant("on")]);
        // Asking twice after one append is one step.
        for _ in 0..2 {
            if let Some(result) = harness.prepare().result {
                assert!(!result.success && result.freed_tokens == 0);
                attempts.push(step);
            }
        }
    }
    assert_eq!(attempts, [1, 6, 11], "the first is never delayed");
}

#[test]
fn s1_4_the_counters_are_part_of_the_session() {
    let options = json!({ "compactAt": { "tokens": 100 }, "summarize": { "attempts": 1 } });
    let mut harness = Harness::new(options.clone());
    harness.append(&talk(6, 40));
    assert!(harness.prepare().result.unwrap().success);
    let mut fired = Vec::new();
    for step in 2..=7 {
        harness.append(&talk(1, 60));
        harness = Harness::over(Rc::clone(&harness.memory), &format!("tab{step}"), options.clone());
        if harness.prepare().result.is_some() {
            fired.push(step);
        }
        // The next append stores what the prepare counted.
    }
    assert_eq!(fired, [6]);
}

#[test]
fn s1_13_by_hand_neither_threshold_nor_cooldown_nor_gain_count_and_the_last_five_stay() {
    let mut harness =
        Harness::new(json!({ "compactAt": { "tokens": 5_000 }, "advanced": { "minSavings": 100_000 } }));
    for round in 0..2 {
        harness.append(&talk(6, 40));
        assert!(harness.prepare().result.is_none(), "{round}: it is not due");
        let result = harness.compact();
        assert!(result.success && result.summary.is_some(), "{round}");
        assert_eq!((result.preserved_count, harness.context().len()), (5, 6), "{round}");
    }
    let result = harness.compact();
    assert!(result.success && result.summary.is_none() && result.reason.is_some());
    assert_eq!((result.llm_calls, harness.context().len()), (0, 6));
}

#[test]
fn s1_5_keeps_the_last_five_and_compresses_the_rest() {
    for format in FORMATS {
        let mut harness = Harness::new(eager());
        harness.append(&talk(5, 40));
        let result = harness.compact();
        let context = harness.context();
        // Five would begin with an answer of the model: the boundary stays there.
        assert_eq!((result.success, result.preserved_count, context.len()), (true, 5, 6), "{format:?}");
        assert_eq!(result.applied_edits[0].indices, [0, 1, 2, 3, 4]);
        let fates: Vec<Fate> = result.ledger.entries().iter().map(|entry| entry.fate).collect();
        assert_eq!(fates, [[Fate::Summarised; 5], [Fate::Verbatim; 5]].concat());
    }
}

#[test]
fn s1_5_five_or_fewer_messages_are_left_alone_without_a_call() {
    for messages in 1..=5 {
        let mut harness = Harness::new(eager());
        harness.append(&talk(3, 40)[..messages]);
        let before = harness.context();
        let result = harness.compact();
        assert_eq!((result.success, result.freed_tokens, result.llm_calls), (true, 0, 0));
        assert!(result.reason.is_some() && result.summary.is_none());
        assert_eq!((harness.host.seen.requests.len(), harness.context()), (0, before));
        assert!(harness.host.seen.notices.is_empty());
    }
}

#[test]
fn s1_5_lesson_orphaned_tool_pairs_the_boundary_moves_earlier() {
    for format in FORMATS {
        for keep in 1..=8 {
            let mut harness = Harness::new(json!({ "keep": { "messages": keep } }));
            harness.append(&talk(2, 40));
            for nth in 0..3 {
                harness.append(&turn(format, nth, 40));
            }
            let result = harness.compact();
            let context = harness.context();
            assert!(result.preserved_count >= keep, "{format:?} keep {keep}");
            assert_valid(format, &context);
            harness.stored();
        }
    }
}

#[test]
fn s1_6_references_are_restored_in_the_prompt_and_only_those() {
    for format in FORMATS {
        let mut harness = Harness::new(
            json!({ "compactAt": { "tokens": 100 }, "presetOptions": { "compactTriggerThreshold": 1 } }),
        );
        let forged = format!("Tool result is at: off_{}", "b".repeat(26));
        harness.append(&[user(&forged), assistant(&forged)]);
        harness.append(&turn(format, 0, 200));
        harness.append(&talk(4, 20));
        harness.prepare();
        let reference = harness.session.explain().unwrap()[4].reference.clone().unwrap();
        harness.append(&talk(1, 20));
        harness.compact();
        let prompt = harness.host.seen.requests[0].0.messages[0].content.clone();
        assert!(prompt.contains(long("result 0", 200).trim()), "{format:?}: the full text is back");
        assert!(!prompt.contains(&reference));
        assert_eq!(prompt.matches(&forged).count(), 2, "a reference in a user or assistant message is text");
    }
}

/// Damages the rows of the log that say `text`.
fn forget(harness: &Harness, text: &str) {
    let says = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(text);
    for (key, bytes) in harness.memory.rows() {
        if key.to_string().starts_with("log/") && says(&bytes) {
            harness.memory.damage(&key, Some(b"something else".to_vec()));
        }
    }
}

#[test]
fn s1_6_an_object_that_cannot_be_read_is_named_and_the_compaction_goes_on() {
    for format in FORMATS {
        for damage in [None, Some(b"{\"v\":100,\"bytes\":1}".to_vec()), Some(vec![])] {
            let mut harness = Harness::new(
                json!({ "compactAt": { "tokens": 100 }, "presetOptions": { "compactTriggerThreshold": 1 } }),
            );
            harness.append(&turn(format, 0, 200));
            harness.append(&talk(3, 20));
            harness.prepare();
            let reference = harness.session.explain().unwrap()[2].reference.clone().unwrap();
            let row = harness
                .memory
                .rows()
                .into_iter()
                .find(|(key, _)| key.to_string().ends_with(&format!("{reference}/0")));
            harness.memory.damage(&row.unwrap().0, damage);
            // Nor can its message in the log.
            forget(&harness, "result 0");
            harness.append(&talk(1, 20));
            let result = harness.compact();
            assert!(result.success, "{:?}", result.error);
            let prompt = harness.host.seen.requests[0].0.messages[0].content.clone();
            assert!(prompt.contains(&format!("[Content unavailable: {reference}]")), "{format:?}");
            assert!(harness.host.seen.notices.iter().any(
                |notice| matches!(notice, Notice::Warning { message, .. } if message.contains(&reference))
            ));
        }
    }
}

#[test]
fn s1_6_a_read_that_is_aborted_aborts() {
    for summariser in [true, false] {
        let mut harness = Harness::new(json!({
            "summarize": { "call": summariser.then_some(true) }, "compactAt": { "tokens": 100 },
            "presetOptions": { "compactTriggerThreshold": 1 },
        }));
        harness.append(&turn(Format::Anthropic, 0, 200));
        harness.append(&talk(3, 20));
        harness.prepare();
        let before = harness.context();
        harness.host.fault(1, |effect| matches!(effect, Effect::Read(_)), How::Fail(Code::Aborted));
        let error = harness.host.run(harness.session.compact(None)).unwrap_err();
        assert_eq!((error.code, harness.context()), (Code::Aborted, before));
    }
}

#[test]
fn s1_7_what_the_summariser_is_asked() {
    for format in FORMATS {
        let mut harness = Harness::new(json!({ "contextWindow": 200_000, "model": "large" }));
        harness.append(&turn(format, 0, 2_000));
        harness.append(&talk(20, 400));
        harness.compact();
        let (request, attempt) = harness.host.seen.requests[0].clone();
        let mut at = 0;
        for section in [
            "Technical Context",
            "Project Overview",
            "Code Changes",
            "Debugging & Issues",
            "Current Status",
            "Pending Tasks",
            "User Preferences",
            "Key Decisions",
        ] {
            at += request.system[at..].find(section).expect(section);
        }
        assert!(
            request.system.contains("Target length: approximately 8000 tokens")
                || request.system.contains("Target length: approximately 8,000 tokens")
        );
        assert_eq!((request.max_tokens, request.target_tokens, attempt), (9_600, 8_000, 1));
        assert_eq!(request.model.as_deref(), Some("large"), "else the conversation's model");
    }
    let mut harness = Harness::new(json!({
        "model": "large", "summarize": { "model": "small" }, "presetOptions": { "targetTokens": 333 },
    }));
    harness.append(&talk(5, 40));
    harness.compact();
    let request = &harness.host.seen.requests[0].0;
    assert_eq!((request.model.as_deref(), request.max_tokens), (Some("small"), 400));
}

#[test]
fn s1_7_s1_10_three_attempts_with_waits_and_then_the_history_is_unchanged() {
    for format in FORMATS {
        let mut harness = Harness::new(eager());
        harness.append(&turn(format, 0, 200));
        harness.append(&talk(4, 40));
        harness.host.summarise = Box::new(|_, _| thrown("503 overloaded", Some(503)));
        let before = harness.memory.rows().len();
        let context = harness.context();
        let result = harness.compact();
        assert_eq!(harness.host.seen.slept, [1_000, 2_000]);
        assert_eq!(
            harness.host.seen.requests.iter().map(|(_, attempt)| *attempt).collect::<Vec<_>>(),
            [1, 2, 3]
        );
        assert_eq!((result.success, result.freed_tokens, result.llm_calls), (false, 0, 3));
        assert_eq!(
            (result.previous_tokens, result.summary.is_none(), result.retired_refs.len()),
            (result.current_tokens, true, 0)
        );
        let error = result.error.unwrap();
        assert!(
            error.code == Code::SummaryFailed
                && error.message.contains("overloaded")
                && error.cause.is_some()
        );
        assert_eq!(harness.context(), context, "{format:?}");
        assert_eq!(harness.memory.rows().len(), before + 1, "a note that it was tried, and nothing else");
        assert!(harness.host.seen.notices.is_empty());
    }
}

#[test]
fn s1_7_a_later_attempt_succeeds_and_is_told_what_was_wrong() {
    let mut harness = Harness::new(eager());
    harness.append(&talk(5, 100));
    harness.host.summarise = Box::new(|_, attempt| match attempt {
        1 => summary("  "),
        2 => summary("too short"),
        _ => Event::Summary {
            text: SUMMARY.into(),
            usage: Some(ReportedUsage { input_tokens: 7, ..ReportedUsage::default() }),
        },
    });
    let result = harness.compact();
    assert!(result.success);
    assert_eq!((result.llm_calls, result.usage.unwrap().input_tokens), (3, 7));
    let systems: Vec<&str> =
        harness.host.seen.requests.iter().map(|(request, _)| request.system.as_str()).collect();
    let all: Vec<String> = harness
        .host
        .seen
        .requests
        .iter()
        .map(|(request, _)| format!("{}{}", request.system, request.messages[0].content))
        .collect();
    assert_eq!(systems.len(), 3);
    assert!(
        !all[0].contains("was empty") && all[1].contains("was empty") && all[2].contains("too short to be")
    );
}

#[test]
fn s1_7_a_summary_longer_than_its_target_is_accepted_whole() {
    let mut harness = Harness::new(json!({ "presetOptions": { "targetTokens": 20 } }));
    harness.append(&talk(6, 100));
    let wordy: String = (0..60).map(|nth| format!("Point {nth} of the summary. ")).collect();
    let answer = wordy.clone();
    harness.host.summarise = Box::new(move |_, _| summary(&answer));
    let result = harness.compact();
    assert_eq!(result.summary.as_deref(), Some(wordy.trim()));
    assert_eq!(harness.host.seen.requests.len(), 1);
}

#[test]
fn s5_16_what_is_no_summary_is_a_failed_attempt() {
    for bad in ["", "   ", "short", "Error: too many requests", "I'm sorry, but I cannot help with that."] {
        let mut harness = Harness::new(eager());
        harness.append(&talk(5, 60));
        harness.host.summarise = Box::new(move |_, _| summary(bad));
        let result = harness.compact();
        assert_eq!((result.success, harness.host.seen.requests.len()), (false, 3), "{bad:?}");
        assert_eq!(result.error.unwrap().code, Code::SummaryRejected);
    }
    let mut harness = Harness::new(eager());
    harness.append(&talk(5, 60));
    harness.host.summarise = Box::new(|request, _| summary(&request.system));
    assert!(!harness.compact().success, "an echo of the prompt");
}

#[test]
fn s5_16_longer_than_what_it_replaces_fails_by_the_counter_that_decides_and_is_tried_again() {
    let wordy = |sentences: usize| {
        (0..sentences).map(|nth| format!("Sentence number {nth} of a summary. ")).collect::<String>()
    };
    let mut harness = Harness::new(eager());
    harness.append(&talk(4, 60));
    let (context, long) = (harness.context(), wordy(200));
    harness.host.summarise = Box::new(move |_, _| summary(&long));
    let result = harness.compact();
    assert_eq!((result.success, harness.host.seen.requests.len(), harness.context()), (false, 3, context));
    // As text it is shorter, as a message with its marker it is not.
    let mut harness = Harness::new(json!({ "keep": { "messages": 1 } }));
    harness.append(&[user(&"word ".repeat(35)), assistant("ok")]);
    harness.host.summarise =
        Box::new(|_, attempt| summary(&"A summary of it. ".repeat(if attempt == 1 { 6 } else { 2 })));
    let result = harness.compact();
    assert_eq!((result.success, harness.host.seen.requests.len()), (true, 2), "{:?}", result.error);
    assert!(result.current_tokens < result.previous_tokens);
    // An app that counts itself is asked; the estimator has no say.
    let mut harness = Harness::new(
        json!({ "tokenCounter": true, "compactAt": { "tokens": 5 }, "keep": { "messages": 5 } }),
    );
    harness.host.count = Box::new(|_, _| Event::Number(1.0));
    harness.append(&talk(5, 20));
    let long = wordy(300);
    harness.host.summarise = Box::new(move |_, _| summary(&long));
    let result = harness.compact();
    assert!(result.success, "five messages became one: {:?}", result.error);
    assert_eq!((result.previous_tokens, result.current_tokens), (10, 6));
}

#[test]
fn s1_8_one_user_message_and_the_preserved_ones_untouched() {
    for format in FORMATS {
        let mut harness = Harness::new(eager());
        let mut messages = talk(2, 40);
        messages.extend(turn(format, 0, 30));
        messages.push(user("and then?"));
        harness.append(&messages);
        harness.compact();
        let context = harness.context();
        assert_eq!(
            context[0],
            json!({ "role": "user", "content": format!("[Compressed History]\n\n{SUMMARY}{RECORD}") })
        );
        // The five begin with a question, which an answer parts from the summary: both are the user's.
        assert_eq!(context[1]["role"], "assistant", "{format:?}");
        assert_eq!(context.len(), 2 + 5);
        for (body, message) in messages[messages.len() - 5..].iter().zip(&context[2..]) {
            assert_eq!(**body, message.to_string(), "{format:?}");
        }
        assert_valid(format, &context);
    }
}

// lesson: role order
#[test]
fn s1_8_words_of_the_system_stay_as_a_quote_and_the_roles_go_on_alternating() {
    for format in FORMATS {
        let mut harness = Harness::new(json!({ "format": format, "presetOptions": { "preserveCount": 3 } }));
        let mut messages = talk(2, 40);
        messages.insert(3, Rc::from(json!({ "role": "system", "content": "Be brief." }).to_string()));
        messages.extend(talk(4, 40));
        harness.append(&messages);
        assert!(harness.compact().success);
        let context = harness.context();
        let found: Vec<&str> = context.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(found, ["user", "assistant", "user", "assistant"]);
        let quote = "<message index=\"3\" role=\"system\">\nBe brief.\n</message>";
        assert!(context[0]["content"].to_string().contains(json!(quote).to_string().trim_matches('"')));
        assert_valid(format, &context);
    }
}

#[test]
fn s1_9_only_what_nothing_references_is_retired_and_all_of_it_can_be_read() {
    for format in FORMATS {
        let options = json!({
            "compactAt": { "tokens": 100 }, "presetOptions": { "scanRatio": 1.0, "compactTriggerThreshold": 1 },
            "keep": { "messages": 5 },
        });
        let mut harness = Harness::new(options.clone());
        for nth in 0..3 {
            harness.append(&turn(format, nth, 100));
        }
        harness.prepare();
        let references: Vec<String> =
            harness.session.explain().unwrap().into_iter().filter_map(|entry| entry.reference).collect();
        assert_eq!(references.len(), 3);
        let result = harness.compact();
        assert_eq!(
            result.retired_refs,
            references[..2],
            "{format:?}: the last is referenced by a preserved message"
        );
        assert!(serde_json::to_string(&harness.context()).unwrap().contains(&references[2]));
        // Retired ones are read all the same, in another process too, and the ledger names their checkpoint.
        let mut again = Harness::over(Rc::clone(&harness.memory), "b", options);
        for (nth, reference) in references.iter().enumerate() {
            assert_eq!(harness.read(reference), long(&format!("result {nth}"), 100));
            assert_eq!(again.read(reference), long(&format!("result {nth}"), 100));
            let named = again
                .host
                .seen
                .logs
                .iter()
                .any(|(_, line)| line.starts_with(&format!("{reference} is retired: checkpoint cp_")));
            assert_eq!(named, nth < 2, "reading a retired reference names its checkpoint");
            let entry = again
                .session
                .explain()
                .unwrap()
                .into_iter()
                .find(|entry| entry.reference.as_ref() == Some(reference));
            assert_eq!(entry.unwrap().checkpoint.is_some(), nth < 2);
        }
        assert_eq!(harness.stored().messages.len(), 12, "the transcript keeps everything");
        let is_job = |key: &Key| key.to_string().starts_with("jobs/");
        assert!(harness.host.seen.commits.iter().all(|batch| batch.deletes.iter().all(is_job)));
        let retired = harness.host.seen.notices.iter().find_map(|notice| match notice {
            Notice::Compact { retired_ref_count, .. } => Some(*retired_ref_count),
            _ => None,
        });
        assert_eq!(retired, Some(2));
    }
}

#[test]
fn f39_s1_10_as_long_as_nothing_was_freed_the_progress_says_so() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(8, 100));
    let before = harness.session.usage().unwrap().used_tokens;
    assert!(harness.compact().success);
    let told = &harness.host.seen.progress;
    let read = told.iter().find(|told| told.stage == Stage::Read).unwrap();
    assert_eq!((read.previous_tokens, read.current_tokens), (before, before));
    let last = told.last().unwrap();
    assert!(last.current_tokens < before, "{last:?}");
}

#[test]
fn s1_10_s1_14_the_result_and_the_event_agree() {
    for (results, deleted) in [(0, 0), (2, 2)] {
        let options =
            json!({ "compactAt": { "tokens": 100 }, "presetOptions": { "compactTriggerThreshold": 1 } });
        let mut harness = Harness::new(options);
        for nth in 0..results {
            harness.append(&turn(Format::OpenaiChat, nth, 200));
        }
        harness.append(&talk(6, 60));
        if results > 0 {
            harness.prepare();
        }
        harness.host.seen.notices.clear();
        let before = harness.session.usage().unwrap().used_tokens;
        let result = harness.compact();
        let usage = harness.session.usage().unwrap();
        assert_eq!((result.previous_tokens, result.current_tokens), (before, usage.used_tokens));
        assert_eq!(before - usage.used_tokens, result.freed_tokens);
        assert_eq!((result.success, result.preserved_count, result.trigger), (true, 5, Trigger::Manual));
        assert_eq!((result.retired_refs.len(), harness.context().len()), (deleted, 6));
        let expected = Notice::Compact {
            previous_tokens: result.previous_tokens,
            current_tokens: result.current_tokens,
            freed_tokens: result.freed_tokens,
            retired_ref_count: deleted,
        };
        assert_eq!(harness.host.seen.notices, [expected]);
    }
}
