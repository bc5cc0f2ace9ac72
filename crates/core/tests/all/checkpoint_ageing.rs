//! Old checkpoints made shorter and merged (`S5.8`, `S5.17`), and what all of them may take (`S5.9`).

use crate::support::checkpoints::*;
use crate::support::*;
use context_compactor_core::checkpoint::Level;
use context_compactor_core::context::Origin;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::session::audit::{look, view_text};
use context_compactor_core::step::{Effect, Event, Purpose, ReportedUsage};
use context_compactor_store_tests::conversation::assistant;
use context_compactor_store_tests::host::{summary, thrown};
use serde_json::{Value, json};
use std::rc::Rc;

#[test]
fn s5_8_checkpoints_age_and_merge_and_s5_17_twelve_and_more_stay_bounded() {
    let mut harness = harness(json!({ "summarize": { "detail": 3 } }));
    let mut sizes = Vec::new();
    for nth in 1..=24 {
        let (purposes, rungs) = another(&mut harness, nth);
        // Number 0 is `nth` compressions old now.
        let mut expected = vec![Purpose::History];
        expected.extend((nth >= 5).then_some(Purpose::Age));
        expected.extend((nth >= 10).then_some(Purpose::Age));
        expected.extend((nth >= 12 && nth % 2 == 0).then_some(Purpose::Checkpoints));
        assert_eq!(purposes, expected, "{nth}");
        assert_eq!(rungs.contains(&"age"), nth >= 5, "{nth} {:?}", harness.host.seen.logs);
        let records = harness.session.checkpoints().unwrap();
        for record in &records {
            let level = match nth as u64 - record.number {
                0..=4 => 3,
                5..=9 => 2,
                _ => 1,
            };
            assert_eq!(record.level.map(u8::from), Some(level), "{nth}: {record:?}");
        }
        if nth >= 12 {
            let newest = nth as u64 - 10 - nth as u64 % 2;
            assert_eq!(
                records[0].number, newest,
                "{nth}: one that stands for several is as old as the newest of them"
            );
        }
        assert_valid(FORMATS[0], &harness.context());
        sizes.push((records.len(), harness.session.usage().unwrap().used_tokens));
    }
    assert!(sizes[13..].iter().all(|(count, _)| *count <= 12), "{sizes:?}");
    assert!(sizes[23].1 <= sizes[13].1 + 100, "{sizes:?}");
    assert_eq!(harness.session.explain().unwrap().len(), 24 * 12, "every message has its fate");
}

#[test]
fn f39_s5_8_what_ageing_cost_is_part_of_what_the_compaction_cost() {
    let mut harness = harness(json!({ "summarize": { "detail": 3 } }));
    for nth in 1..=4 {
        another(&mut harness, nth);
    }
    harness.append(&chat(6, 200));
    harness.host.summarise = Box::new(|request, _| {
        let (event, tokens) = match request.system.starts_with("You keep") {
            true => (part("shorter", 50), 300),
            false => (part("part", 80), 2_000),
        };
        let Event::Summary { text, .. } = event else { return event };
        Event::Summary {
            text,
            usage: Some(ReportedUsage { input_tokens: tokens, output_tokens: 1, ..ReportedUsage::default() }),
        }
    });
    let result = harness.compact();
    assert!(result.applied_edits.iter().any(|edit| edit.kind == "age"), "{result:?}");
    let usage = result.usage.unwrap();
    assert_eq!((result.llm_calls, usage.input_tokens, usage.output_tokens), (2, 2_300, 2));
}

#[test]
fn s5_8_what_cannot_be_made_shorter_stays_as_it_was() {
    for fails in [true, false] {
        let mut harness = harness(json!({ "summarize": { "detail": 3 } }));
        for nth in 1..=4 {
            another(&mut harness, nth);
        }
        let before = checkpoints(&harness)[0].clone();
        for nth in 5..=6 {
            let committed = harness.host.seen.commits.len();
            harness.append(&chat(6, 200));
            harness.host.summarise = Box::new(move |request, _| {
                if !request.system.starts_with("You keep") {
                    part(&format!("part {nth}"), 80)
                } else if fails {
                    thrown("busy", None)
                } else {
                    part("longer", 200)
                }
            });
            let result = harness.compact();
            assert!(result.success, "the compaction itself is done: {:?}", result.error);
            let prose = |text: &str| text.split("\n\nThese messages").next().unwrap().to_string();
            assert_eq!(prose(&checkpoints(&harness)[0]), prose(&before));
            // Who wrote nothing is not named as a cause.
            for row in harness.host.seen.commits[committed..].iter().flat_map(|batch| &batch.puts) {
                let row = String::from_utf8_lossy(&row.1);
                assert!(!row.contains("\"rung\":\"age\"") || !row.contains("promptVersion"), "{row}");
            }
        }
        // One that failed is tried again; one that is as short as it gets is not.
        let asked = harness.host.seen.purposes.iter().filter(|purpose| **purpose == Purpose::Age).count();
        assert_eq!(asked, if fails { 3 } else { 2 });
    }
}

#[test]
fn s5_8_checkpoints_that_cannot_be_merged_stay_as_they_were() {
    for fails in [true, false] {
        let mut harness = harness(json!({
            "summarize": { "detail": 1 },
            "presetOptions": { "ageModerate": 1, "ageCompact": 1, "mergeCount": 2 },
        }));
        let compact = |harness: &mut Harness| {
            harness.append(&chat(6, 200));
            harness.host.summarise =
                Box::new(move |request, _| match request.system.starts_with("You keep") {
                    false => part("part", 40),
                    true if fails => thrown("busy", None),
                    true => part("longer", 400),
                });
            assert!(harness.compact().success);
        };
        compact(&mut harness);
        let first = checkpoints(&harness)[0].clone();
        compact(&mut harness);
        compact(&mut harness);
        assert!(harness.host.seen.purposes.contains(&Purpose::Checkpoints));
        let prose = |text: &str| text.split("\n\nThese messages").next().unwrap().to_string();
        assert_eq!((checkpoints(&harness).len(), prose(&checkpoints(&harness)[0])), (3, prose(&first)));
        assert!(warnings(&harness).iter().all(|line| line.contains("stays as it was")) || !fails);
    }
}

#[test]
fn s5_8_messages_that_arrive_while_a_checkpoint_ages_count_on_both_sides() {
    let mut harness = harness(json!({ "summarize": { "detail": 3 } }));
    for nth in 1..=4 {
        another(&mut harness, nth);
    }
    harness.append(&chat(6, 200));
    let mut host = context_compactor_store_tests::Host::new(Rc::clone(&harness.memory) as _, "beside");
    let session = harness.session.clone();
    harness.host.meanwhile = Box::new(move |effect| {
        if matches!(effect, Effect::Summarize { purpose: Purpose::Age, .. }) {
            host.run(session.append(vec![assistant(&long("later", 2_000))])).unwrap();
        }
    });
    let result = harness.compact();
    assert!(result.applied_edits.iter().any(|edit| edit.kind == "age"), "{result:?}");
    assert_eq!(result.current_tokens, result.previous_tokens - result.freed_tokens);
}

#[test]
fn s5_8_another_tab_that_compacts_while_a_checkpoint_ages_is_no_failure() {
    let mut harness = harness(json!({ "summarize": { "detail": 3 } }));
    for nth in 1..=4 {
        another(&mut harness, nth);
    }
    harness.append(&chat(6, 200));
    let mut tab = Some(Harness::over(
        Rc::clone(&harness.memory),
        "tab",
        options(json!({ "summarize": { "detail": 3 } })),
    ));
    harness.host.meanwhile = Box::new(move |effect| {
        if matches!(effect, Effect::Summarize { purpose: Purpose::Age, .. })
            && let Some(mut tab) = tab.take()
        {
            tab.append(&chat(8, 200));
            assert!(tab.compact().success);
        }
    });
    let result = harness.compact();
    assert!(result.success && result.summary.is_some(), "{result:?}");
    assert_eq!(harness.stored().messages.len(), harness.session.explain().unwrap().len());
    assert_valid(FORMATS[0], &harness.context());
}

/// The stored form of the newest change of the context.
fn stored_view(harness: &Harness) -> Value {
    let puts = harness.host.seen.commits.iter().rev().flat_map(|batch| &batch.puts);
    let mut views = puts.filter(|(key, _)| key.to_string().starts_with("views/"));
    serde_json::from_slice(&view_text(&views.next().unwrap().1)).unwrap()
}

#[test]
fn s5_3_s5_8_the_fields_of_a_checkpoint_are_stored_with_it() {
    let mut harness = harness(json!({ "model": "llama3:7b", "presetOptions": { "ageModerate": 2 } }));
    harness.append(&chat(20, 100));
    assert!(harness.compact().success);
    let item = stored_view(&harness)["whole"][0]["summary"].clone();
    let (made, id) = (&item["made"], item["checkpoint"].as_str().unwrap());
    // Its messages: all but the newest five.
    assert_eq!(item["covers"], json!([{ "from": 0, "to": 35 }]));
    let text = item["body"]["content"].as_str().unwrap();
    assert!(text.starts_with(&format!("[Checkpoint {id} @ ")) && text.contains(SUMMARY));
    let record = harness.session.checkpoints().unwrap().remove(0);
    assert_eq!((made["number"].as_u64(), made["level"].as_u64()), (Some(0), Some(3)));
    assert_eq!(made["model"], "llama3:7b");
    assert_eq!(made["createdAt"].as_u64(), Some(record.timestamp));
    assert_eq!(made["originalTokens"].as_u64(), Some(record.original_tokens as u64));
    assert_eq!(made["tokens"].as_u64(), Some(record.compressed_tokens as u64));
    let own = made["textTokens"].as_u64().unwrap();
    assert!(own > 0 && own < made["tokens"].as_u64().unwrap(), "the quotes are not its own: {made}");
    assert_eq!(made.get("compressedAt"), None);
    // Made shorter, it is the same one: when it was made stays, and when it was made shorter is added.
    harness.append(&chat(6, 200));
    harness.host.summarise = Box::new(|request, _| match request.system.starts_with("You keep") {
        true => summary("The parser was read, and it stands."),
        false => part("part", 80),
    });
    assert!(harness.compact().success);
    let aged = stored_view(&harness)["splices"][0]["insert"][0]["summary"].clone();
    assert_eq!((aged["checkpoint"].as_str(), aged["made"]["level"].as_u64()), (Some(id), Some(2)));
    assert_eq!((&aged["made"]["number"], &aged["made"]["createdAt"]), (&made["number"], &made["createdAt"]));
    assert!(aged["made"]["compressedAt"].as_u64() > made["createdAt"].as_u64());
    assert_eq!(aged["covers"], item["covers"]);
}

/// Tokens of the checkpoints themselves, without what they quote, and their levels.
fn own(harness: &Harness) -> (usize, Vec<Option<Level>>) {
    let context = look(&harness.session).unwrap().context;
    let made = context.items().iter().filter_map(|item| match &item.origin {
        Origin::Summary { made, .. } => made.clone(),
        _ => None,
    });
    let made: Vec<_> = made.collect();
    (made.iter().map(|made| made.text_tokens).sum(), made.iter().map(|made| made.level).collect())
}

/// Rounds of twelve messages, each compacted with a system prompt of about `system` tokens to a summary of `tokens`.
fn rounds(harness: &mut Harness, count: usize, system: usize, tokens: usize) {
    for nth in 0..count {
        harness.append(&chat(6, 300));
        harness
            .host
            .run(harness.session.count_fixed(vec![long("You are a tool.", system), long("tools", 3_000)]))
            .unwrap();
        harness.host.summarise = Box::new(move |request, _| {
            let shorter = if request.system.contains("Moderate") { tokens / 2 } else { 40 };
            part(
                &format!("part {nth}"),
                if request.system.starts_with("You keep") { shorter } else { tokens },
            )
        });
        assert!(harness.compact().success, "{nth}");
    }
}

#[test]
fn s5_9_checkpoints_above_their_budget_are_made_shorter_whatever_their_age() {
    let mut harness = harness(json!({ "summarize": { "detail": 3 } }));
    rounds(&mut harness, 3, 400, 300);
    assert_eq!(own(&harness).1, [Some(Level::Detailed); 3], "three fit 1,500 tokens less the prompt's 400");
    assert!(harness.host.seen.purposes.iter().all(|purpose| *purpose == Purpose::History));
    rounds(&mut harness, 1, 400, 300);
    let (tokens, levels) = own(&harness);
    assert!(tokens <= 1_100, "{tokens}");
    assert_eq!(levels[1..], [Some(Level::Detailed); 3], "the oldest alone is enough");
    assert!(levels[0] < Some(Level::Detailed));
    rounds(&mut harness, 10, 400, 300);
    let (tokens, levels) = own(&harness);
    assert!(tokens <= 1_100 && levels.len() > 2, "{tokens} {levels:?}");
    assert_eq!(warnings(&harness), Vec::<String>::new());
    assert_valid(FORMATS[0], &harness.context());
    assert_eq!(harness.session.explain().unwrap().len(), 14 * 12, "every message has its fate");
}

#[test]
fn s5_9_s1_10_the_result_tells_the_summary_that_stands_where_the_budget_made_it_shorter() {
    let mut harness = harness(json!({ "summarize": { "detail": 3 }, "contextWindow": 8_000 }));
    harness.append(&chat(6, 200));
    harness.host.run(harness.session.count_fixed(vec![long("You are a tool.", 700)])).unwrap();
    harness.host.summarise = Box::new(|request, _| match request.system.starts_with("You keep") {
        true => part("shorter", 40),
        false => part("part", 100),
    });
    let summary = harness.compact().summary.unwrap();
    assert!(summary.contains("shorter"), "{summary}");
    assert!(harness.context().iter().any(|message| message["content"].as_str().unwrap().contains(&summary)));
}

#[test]
fn s5_9_a_one_shot_compaction_quotes_what_its_checkpoint_quoted_before_it_was_made_shorter() {
    let mut harness = harness(json!({}));
    let options = options(json!({ "summarize": { "detail": 3 }, "contextWindow": 8_000 }));
    let system = Rc::from(json!({ "role": "system", "content": long("You are a tool.", 700) }).to_string());
    let messages = std::iter::once(system).chain(chat(6, 200)).collect();
    harness.host.summarise = Box::new(|request, _| match request.system.starts_with("You keep") {
        true => part("shorter", 40),
        false => part("part", 100),
    });
    let done = harness.host.run(Session::compact_once(settings(options), messages)).unwrap();
    assert!(done.result.success, "{:?}", done.result.error);
    let rungs: Vec<&str> = done.result.applied_edits.iter().map(|edit| edit.kind).collect();
    assert_eq!(rungs, ["summarize", "age"]);
    let quoted = done.result.ledger.entries().iter().filter(|entry| entry.quoted).count();
    assert!(quoted > 0, "{:?}", done.result.ledger.entries());
    let context: Vec<&str> = done.items.iter().filter_map(|item| item.body.as_deref()).collect();
    assert!(context.concat().contains("ask 0"), "{context:?}");
}

#[test]
fn s5_9_what_is_above_the_budget_after_all_is_said_with_figures_and_stays() {
    for fails in [false, true] {
        let mut harness = harness(json!({ "summarize": { "detail": 3 }, "contextWindow": 8_000 }));
        // All 500 tokens of the prompt's budget are the system prompt's.
        for nth in 0..3 {
            harness.append(&chat(6, 200));
            harness.host.run(harness.session.count_fixed(vec![long("You are a tool.", 700)])).unwrap();
            harness.host.summarise =
                Box::new(move |request, _| match request.system.starts_with("You keep") {
                    true if fails => thrown("busy", None),
                    true => part("shorter", 40),
                    false => part("part", 100),
                });
            assert!(harness.compact().success, "{nth}");
            let (tokens, levels) = own(&harness);
            assert_eq!(levels.len(), if fails { nth + 1 } else { 1 });
            let said = warnings(&harness).pop().unwrap();
            let figures =
                format!("{tokens} tokens, {tokens} more than their budget of 0 (500 less the 704 of");
            assert!(said.contains(&figures), "{said} {figures}");
        }
        assert!(!checkpoints(&harness).is_empty());
        assert_eq!(harness.session.explain().unwrap().len(), 36);
        let asked = harness.host.seen.purposes.len();
        assert_eq!(
            asked,
            3 + 3,
            "once in a compaction, also who does not answer: {:?}",
            harness.host.seen.purposes
        );
    }
}

#[test]
fn s5_9_the_budget_grows_with_the_window_as_the_checkpoints_do_unless_the_app_names_it() {
    let room = |over: Value| settings(options(over)).numbers.checkpoint.room;
    assert_eq!(room(json!({ "contextWindow": 8_000 })), 500);
    assert_eq!(room(json!({ "contextWindow": 32_768 })), 1_500);
    assert_eq!(room(json!({ "contextWindow": 65_536 })), 3_000);
    assert_eq!(room(json!({ "contextWindow": 200_000 })), 9_155);
    assert_eq!(room(json!({ "contextWindow": 200_000, "presetOptions": { "promptBudget": 700 } })), 700);
}

#[test]
fn s5_9_a_system_message_of_the_history_and_the_goal_are_part_of_the_system_prompt() {
    let goal = json!({ "id": "g", "description": long("Ship", 300) });
    for (over, first) in [(json!({}), 1), (json!({ "goal": goal }), 0)] {
        let mut harness =
            harness(json!({ "summarize": { "detail": 3 }, "contextWindow": 8_000, "goal": over["goal"] }));
        let text = long("You are a tool.", 300);
        harness.append(&[Rc::from(json!({ "role": "system", "content": text }).to_string())][..first]);
        harness.append(&chat(6, 200));
        harness.host.run(harness.session.count_fixed(vec![String::new()])).unwrap();
        harness.host.summarise = Box::new(|request, _| match request.system.starts_with("You keep") {
            true => part("shorter", 40),
            false => part("part", 250),
        });
        assert!(harness.compact().success);
        let (tokens, levels) = own(&harness);
        assert_eq!((tokens < 100, levels), (true, vec![Some(Level::Compact)]), "{tokens}");
    }
}

#[test]
fn s5_9_the_plan_tells_what_the_budget_asks_for() {
    let mut harness = harness(json!({ "summarize": { "detail": 3 }, "compactAt": { "tokens": 1_000 } }));
    rounds(&mut harness, 2, 300, 480);
    harness.append(&chat(6, 300));
    let plan = harness.host.run(harness.session.plan()).unwrap();
    let rungs: Vec<&str> = plan.edits.iter().map(|rung| rung.kind).collect();
    assert_eq!(rungs, ["summarize", "age"], "{plan:?}");
    assert_eq!((plan.edits[1].llm_calls, plan.edits[1].indices.first()), (1, Some(&0)));
    let fixed = vec![long("You are a tool.", 300)];
    let done = harness.host.run(harness.session.prepare(Trigger::Auto, fixed)).unwrap();
    let rungs: Vec<&str> = done.edits.iter().map(|edit| edit.kind).collect();
    assert_eq!(rungs, ["summarize", "age"]);
}
