//! What a plan foretells, what results, events, progress and log lines tell, to the number.

use crate::support::checkpoints::{another, harness as checkpoint};
use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::compaction::OffloadReport;
use context_compactor_core::context::Fate;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::session::audit::look;
use context_compactor_core::step::{Event, LogLevel, Notice, ReportedUsage, Stage};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, body, user};
use context_compactor_store_tests::host::summary;
use context_compactor_store_tests::{Host, MemoryStore};
use serde_json::{Value, json};
use std::rc::Rc;

/// Progress of one stage: done, total, tokens before and now.
fn progress(harness: &Harness, stage: Stage) -> Vec<(usize, usize, usize, usize)> {
    let of_stage = harness.host.seen.progress.iter().filter(|progress| progress.stage == stage);
    of_stage.map(|told| (told.done, told.total, told.previous_tokens, told.current_tokens)).collect()
}

fn telling(text: &str) -> Event {
    let usage = ReportedUsage { input_tokens: 10, output_tokens: 1, ..ReportedUsage::default() };
    Event::Summary { text: text.into(), usage: Some(usage) }
}

#[test]
fn f39_rungs_without_a_model_do_what_the_plan_foretold_and_tell_it_to_the_number() {
    let cases = [
        (json!({ "compactAt": { "tokens": 400 }, "advanced": { "minOffloadGain": 1 } }), "offload", 300),
        (json!({ "preset": "layered", "contextWindow": 200_000 }), "clear", 1_200),
        (
            json!({ "preset": "layered", "contextWindow": 200_000, "presetOptions": { "largeOutputTokens": 900,
            "keepRecent": 10 } }),
            "admit",
            1_200,
        ),
        (
            json!({ "preset": "balanced", "contextWindow": 200_000, "compactAt": { "tokens": 4_000 },
            "clear": { "keepRecent": 3 }, "offload": { "minChars": 1_000_000 } }),
            "clear",
            1_200,
        ),
    ];
    for (options, rung, tokens) in cases {
        let told = format!("{options}");
        let mut harness = Harness::new(options.clone());
        for nth in 0..5 {
            harness.append(&turn(Format::Anthropic, nth, tokens));
        }
        let plan = harness.host.run(harness.session.plan()).unwrap();
        let seen = &harness.host.seen;
        assert!(
            seen.progress.is_empty() && seen.notices.is_empty() && seen.logs.is_empty(),
            "{told}: a plan is silent"
        );
        assert!(plan.will_compact, "{told}");
        let before = plan.tokens;
        let prepared = harness.prepare();
        let edit = &prepared.edits[0];
        let foretold = &plan.edits[0];
        assert_eq!(foretold.kind, rung, "{told}");
        assert_eq!(
            (foretold.kind, &foretold.indices, foretold.freed_tokens),
            (edit.kind, &edit.indices, edit.freed_tokens),
            "{told}"
        );
        assert_eq!((foretold.llm_calls, foretold.input_tokens, foretold.output_tokens), (0, 0, 0));
        let after = prepared.usage.used_tokens;
        assert_eq!(before - after, edit.freed_tokens, "{told}");
        let count = edit.indices.len();
        assert_eq!(edit.detail, Some(format!("{count} results")));
        assert_eq!(
            progress(&harness, Stage::Offload),
            [(0, count, before, before), (count, count, before, after)],
            "{told}"
        );
        // Clearing is silent, but not where it leaves references.
        let silent = rung == "clear" && options["preset"] == "layered";
        let (level, did) = if silent { (LogLevel::Debug, "Cleared") } else { (LogLevel::Info, "Offloaded") };
        let line = format!("{did} {count} tool results, {} tokens freed", edit.freed_tokens);
        assert_eq!(harness.host.seen.logs, [(level, line)], "{told}");
        let report = OffloadReport {
            offloaded_count: count,
            previous_tokens: before,
            current_tokens: after,
            freed_tokens: edit.freed_tokens,
            still_exceeds_threshold: prepared.still_exceeds_threshold,
        };
        let notice = Notice::Offload { count, freed_tokens: edit.freed_tokens };
        let (report, notices) = if silent { (None, vec![]) } else { (Some(report), vec![notice]) };
        assert_eq!((edit.offload.clone(), harness.host.seen.notices.clone()), (report, notices), "{told}");
        let limit = plan.limit;
        assert_eq!(plan.reason, format!("{before} of {limit} tokens: about {after} afterwards"), "{told}");
    }
}

#[test]
fn f39_the_result_of_a_prepare_adds_up_with_all_that_came_behind_the_summary() {
    let ages = json!({ "summarize": { "detail": 3 }, "presetOptions": { "ageModerate": 1, "ageCompact": 2, "mergeCount": 2 } });
    let mut harness = checkpoint(ages);
    for nth in 1..=3 {
        another(&mut harness, nth);
    }
    harness.append(&crate::support::checkpoints::chat(6, 200));
    harness.host.summarise = Box::new(|request, _| match request.system.starts_with("You keep") {
        true => telling("shorter: the parser was read."),
        false => telling(&"part: the tools answered and the parser was read again. ".repeat(6)),
    });
    let before = harness.session.usage().unwrap().used_tokens;
    let calls = harness.host.seen.requests.len();
    let prepared = harness.host.run(harness.session.prepare(Trigger::Overflow, Vec::new())).unwrap();
    let result = prepared.result.unwrap();
    let rungs: Vec<&str> = result.applied_edits.iter().map(|edit| edit.kind).collect();
    assert_eq!(rungs[0], "summarize");
    assert!(rungs.contains(&"age"), "{rungs:?}");
    assert_eq!(result.applied_edits, prepared.edits);
    let freed: usize = result.applied_edits.iter().map(|edit| edit.freed_tokens).sum();
    assert_eq!((result.freed_tokens, result.previous_tokens), (freed, before));
    assert_eq!(result.current_tokens, before - freed);
    assert_eq!(result.current_tokens, prepared.usage.used_tokens);
    let made = harness.host.seen.requests.len() - calls;
    assert_eq!(result.llm_calls as usize, made);
    let usage = result.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (10 * made as u64, made as u64));
    assert!(result.success && result.fits && result.error.is_none());
    assert_eq!(result.stored, Some(true));
    assert_eq!(result.ledger.entries(), harness.session.explain().unwrap());
}

#[test]
fn f39_s5_8_s5_9_the_plan_of_ageing_foretells_the_calls_and_what_they_may_write() {
    // What each rung may write, what it is shown, and what it frees.
    let cases = [
        (json!({}), vec![("age", 360, 98, 0)]),
        (json!({ "ageModerate": 1, "ageCompact": 2 }), vec![("age", 480, 573, 200)]),
        (json!({ "promptBudget": 250 }), vec![("age", 240, 598, 400)]),
        (json!({ "promptBudget": 100 }), vec![("merge", 120, 548, 448)]),
    ];
    let mut all = Vec::new();
    let expected: Vec<_> = cases.iter().map(|(_, expected)| expected.clone()).collect();
    for (options, _) in cases {
        let mut harness = checkpoint(json!({ "summarize": { "detail": 3 }, "presetOptions": options }));
        for nth in 1..=4 {
            another(&mut harness, nth);
        }
        harness.append(&crate::support::checkpoints::chat(60, 400));
        let plan = harness.host.run(harness.session.plan()).unwrap();
        let foretold: Vec<_> = plan.edits[1..]
            .iter()
            .map(|plan| (plan.kind, plan.output_tokens, plan.input_tokens, plan.freed_tokens))
            .collect();
        all.push(foretold);
        let seen = harness.host.seen.requests.len();
        assert!(harness.prepare().result.unwrap().success);
        let asked: Vec<usize> =
            harness.host.seen.requests[seen..].iter().map(|(request, _)| request.max_tokens).collect();
        let may_write: Vec<usize> = plan.edits.iter().map(|plan| plan.output_tokens).collect();
        assert_eq!(asked[0], may_write[0], "{options}");
        // What the answers leave may need no more of it.
        assert!(asked.iter().sum::<usize>() <= may_write.iter().sum(), "{options}: {asked:?} {may_write:?}");
    }
    assert_eq!(all, expected);
}

#[test]
fn f39_s1_3_results_of_one_message_that_the_store_takes_one_by_one_are_told_as_one_message() {
    let block = |id: &str| json!({ "type": "tool_use", "id": id, "name": "read_file", "input": {} });
    let result = |id: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": long(id, 300) });
    let ids = ["a", "b", "c"];
    let mut harness =
        Harness::new(json!({ "compactAt": { "tokens": 400 }, "presetOptions": { "scanRatio": 1 } }));
    harness.append(&[
        user("read them"),
        body(&json!({ "role": "assistant", "content": ids.map(block) })),
        body(&json!({ "role": "user", "content": ids.map(result) })),
        assistant("done"),
    ]);
    harness.host.refuse = Box::new(|batch| {
        let blobs: std::collections::BTreeSet<String> = batch
            .puts
            .iter()
            .map(|(key, _)| key.to_string())
            .filter(|key| key.starts_with("blobs/"))
            .map(|key| key.split('/').nth(2).unwrap().to_owned())
            .collect();
        (blobs.len() > 1).then_some(Code::TooLarge)
    });
    let before = harness.session.usage().unwrap().used_tokens;
    let prepared = harness.prepare();
    let edit = &prepared.edits[0];
    assert_eq!(
        (edit.kind, &edit.indices[..], edit.detail.as_deref()),
        ("offload", &[2][..], Some("3 results"))
    );
    assert_eq!(edit.freed_tokens, before - prepared.usage.used_tokens);
    let done: Vec<(usize, usize)> =
        progress(&harness, Stage::Offload).into_iter().map(|(done, total, ..)| (done, total)).collect();
    assert_eq!(done, [(0, 3), (1, 3), (2, 3), (3, 3)]);
}

#[test]
fn f39_s5_3_a_checkpoint_tells_what_it_stands_for_and_one_that_a_fork_took_over_no_message_of_its_own() {
    let mut harness =
        checkpoint(json!({ "summarize": { "detail": 3 }, "presetOptions": { "keepUserMessages": 0 } }));
    another(&mut harness, 1);
    let record = harness.session.checkpoints().unwrap().remove(0);
    let result = harness.session.explain().unwrap();
    assert_eq!(record.message_range.0, 0);
    assert_eq!(result[record.message_range.1].fate, Fate::Verbatim);
    assert_eq!(record.compression_ratio, record.compressed_tokens as f64 / record.original_tokens as f64);
    assert_eq!(record.number, 0);
    let (child, _) = harness.host.run(harness.session.fork(Some("child".into()))).unwrap();
    let taken = child.checkpoints().unwrap().remove(0);
    assert_eq!((taken.id, taken.message_range), (record.id, (0, 0)));
    assert_eq!(taken.original_tokens, record.original_tokens);
}

/// A message that costs what it says.
fn costing(harness: &mut Harness, tokens: &[u32]) {
    let said = tokens.iter().enumerate().map(|(nth, tokens)| {
        let text = format!("message {nth}, t={tokens}");
        if nth % 2 == 0 { user(&text) } else { assistant(&text) }
    });
    harness.append(&said.collect::<Vec<Body>>());
}

fn factor3(window: usize) -> Harness {
    let options = json!({ "preset": "factor3", "tokenCounter": true, "maxOutputTokens": 0, "summarize": { "call": true, "attempts": 1 },
        "contextWindow": window });
    let memory = Rc::<MemoryStore>::default();
    let mut host = Host::new(Rc::clone(&memory) as _, "a");
    host.summarise = Box::new(|_, _| summary(SUMMARY));
    host.count = Box::new(|_, body| {
        let said = body.split("t=").nth(1).map(|rest| rest.chars().take_while(char::is_ascii_digit));
        let said = said.and_then(|digits| digits.collect::<String>().parse::<u32>().ok());
        Event::Number(f64::from(said.unwrap_or(100)))
    });
    let (session, _) = host.run(Session::open(settings(options), Some("s".into()), 10_000)).unwrap();
    Harness { memory, host, session }
}

#[test]
fn f39_s4_7_the_plan_of_a_context_that_begins_anew_foretells_what_a_short_summary_leaves() {
    // Message 2 is quoted, and 3 stays. A summary of 200 tokens is asked for, and it is no more than half of what it replaces.
    let cases: [([u32; 4], &[usize], usize); 2] = [
        // What is kept recent does not fit, and is summarised too. What is left then does.
        ([1_000, 2_700, 2_700, 2_700], &[1_000 - 200, 200 + 5_400 - 200], 2_700 + 200),
        // No summary of 200 tokens takes the place of fewer: both are asked for in vain.
        ([60, 60, 80, 7_000], &[0, 7_200 - 7_080 - 100], 7_080 + 100),
    ];
    for (tokens, freed, after) in cases {
        let begins_anew = after > 7_000;
        let mut harness = factor3(8_000);
        costing(&mut harness, &tokens);
        let plan = harness.host.run(harness.session.plan()).unwrap();
        let rungs: Vec<&str> = plan.edits.iter().map(|rung| rung.kind).collect();
        assert_eq!(rungs, ["summarize", if begins_anew { "rollover" } else { "summarize" }], "{plan:?}");
        assert_eq!(plan.edits.iter().map(|rung| rung.freed_tokens).collect::<Vec<_>>(), freed, "{plan:?}");
        let told = format!("{} of 4000 tokens: about {after} afterwards", tokens.iter().sum::<u32>());
        assert_eq!(plan.reason, told);
        assert_eq!(plan.edits[1].indices, [0, 1, 2]);
        // As many tokens as it is asked for and a fifth more.
        let calls: Vec<_> = plan.edits.iter().map(|rung| (rung.llm_calls, rung.output_tokens)).collect();
        assert_eq!(calls, if begins_anew { [(2, 480), (0, 0)] } else { [(1, 240), (1, 240)] });
    }
}

#[test]
fn f39_a_one_shot_compaction_tells_the_same_summary_as_a_session() {
    let options = json!({ "preset": "balanced", "contextWindow": 60_000, "keep": { "messages": 2 } });
    let mut bodies =
        vec![user("Never touch migrations/, whatever the tests say. Read src/export/writer.rs.")];
    bodies.extend((0..6).flat_map(|nth| turn(Format::OpenaiChat, nth, 600)));
    let mut harness = Harness::new(options.clone());
    harness.append(&bodies);
    let result = harness.compact();
    let of_session = harness.context()[0].clone();
    let once = harness.host.run(Session::compact_once(settings(options), bodies)).unwrap();
    let of_once: Value = serde_json::from_str(once.items[0].body.as_deref().unwrap()).unwrap();
    assert_eq!(result.summary, once.result.summary);
    assert!(of_once.to_string().contains("Never touch migrations/, whatever the tests say."), "{of_once}");
    assert_eq!(of_once, of_session);
}

#[test]
fn f39_a_plan_without_a_model_foretells_no_call_and_what_the_summary_may_take() {
    for (preset, has, calls) in [("offload", false, 0), ("offload", true, 1), ("factor3", false, 0)] {
        let call = if has { json!({ "call": true }) } else { json!("extractive") };
        let options = json!({ "preset": preset, "summarize": call, "compactAt": { "tokens": 1_000 } });
        let mut harness = Harness::new(options);
        harness.append(&talk(12, 150));
        let plan = harness.host.run(harness.session.plan()).unwrap();
        let rung = plan.edits.iter().find(|rung| rung.kind == "summarize").unwrap();
        let replaced: usize = {
            let items = look(&harness.session).unwrap().context.items().to_vec();
            rung.indices.iter().map(|index| items[*index].size.tokens).sum()
        };
        // A summary of 320 tokens is asked for in this window, or of 200.
        let target = if preset == "offload" { 320 } else { 200 };
        assert_eq!(rung.freed_tokens, replaced - target, "{preset} {has}");
        let output = calls * (target * 6).div_ceil(5);
        assert_eq!(
            (rung.llm_calls, rung.input_tokens, rung.output_tokens),
            (calls, calls * replaced, output)
        );
    }
}

#[test]
fn f39_s5_2_a_prompt_that_fills_the_window_to_the_token_needs_no_snapshot_and_one_more_does() {
    for (last, snapshots) in [(4_000, 0), (4_001, 1)] {
        let mut harness = factor3(8_000);
        costing(&mut harness, &[1_000, 1_000, 1_000, 1_000, last]);
        assert!(harness.prepare().result.unwrap().success);
        let taken = crate::support::snapshots::list(&mut harness);
        assert_eq!(taken.len(), snapshots, "{last}");
    }
}
