//! The law of preset `balanced`: when it acts, what it leaves, what may leave before, and what comes of a summariser that
//! fails.

use crate::support::*;
use context_compactor_core::compaction::CompactionResult;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::step::{Event, Notice};
use context_compactor_core::wire::Format;
use context_compactor_core::{Code, recall};
use context_compactor_store_tests::conversation::{assistant, exchange, user};
use context_compactor_store_tests::host::{failed, summary, thrown};
use serde_json::{Value, json};

/// A session of the default preset whose summaries are waited for.
fn harness(window: usize, over: Value) -> Harness {
    let mut options = json!({ "preset": "balanced", "contextWindow": window, "background": false });
    merge(&mut options, &over);
    answering(Harness::new(options))
}

/// With a summariser that says enough.
fn answering(mut harness: Harness) -> Harness {
    let text =
        (0..60).map(|nth| format!("Question {nth} was answered, and it was read.\n")).collect::<String>();
    harness.host.summarise = Box::new(move |_, _| summary(&text));
    harness
}

/// A turn of a question, a call with its result, and an answer.
fn work(nth: usize, tokens: usize) -> Vec<context_compactor_store_tests::conversation::Body> {
    let [question, answer] = [format!("Question {nth}?"), long(&format!("answer {nth}"), tokens / 2)];
    let result =
        exchange(Format::OpenaiChat, &format!("c{nth}"), &long(&format!("result {nth}"), tokens / 2));
    [vec![user(&question)], result, vec![assistant(&answer)]].concat()
}

/// Prepares turn after turn until there is a summary; nothing else may change below the trigger.
fn acts(harness: &mut Harness, window: usize, tokens: usize) -> CompactionResult {
    for nth in 0..2_000 {
        harness.append(&work(nth, tokens));
        let plan = harness.host.run(harness.session.plan()).unwrap();
        let prepared = harness.prepare();
        assert_eq!(
            plan.will_compact,
            !prepared.edits.is_empty(),
            "the plan says what happens: {}",
            plan.reason
        );
        if let Some(result) = prepared.result {
            assert!(result.success && result.changed, "{result:?}");
            let cleared = prepared.edits.iter().filter(|edit| edit.kind != "summarize");
            let cleared: usize = cleared.map(|edit| edit.freed_tokens).sum();
            assert!(cleared < window / 10, "that was too little to do without");
            assert!(result.previous_tokens + cleared >= plan.limit, "no summary below {}", plan.limit);
            return result;
        }
        assert!(prepared.usage.used_tokens < plan.limit, "{nth}: {}", prepared.usage.used_tokens);
    }
    panic!("it never acted");
}

#[test]
fn w2_w3_it_acts_at_the_trigger_and_leaves_its_share_of_every_window() {
    let mut left = 0;
    for window in [8_000, 16_000, 32_000, 64_000, 128_000, 200_000, 500_000] {
        // Nothing to clear: all of it are words.
        let mut harness = harness(window, json!({ "summarize": { "call": null } }));
        let trigger = harness.host.run(harness.session.plan()).unwrap().limit;
        let result = (0..).find_map(|nth| {
            harness.append(&[user(&long(&format!("question {nth}"), window / 200))]);
            harness.append(&[assistant(&long(&format!("answer {nth}"), window / 200))]);
            let prepared = harness.prepare();
            assert!(prepared.result.is_some() || prepared.usage.used_tokens < trigger, "{window}");
            prepared.result
        });
        let CompactionResult { previous_tokens, current_tokens, .. } = result.unwrap();
        assert!((trigger..trigger + window / 50).contains(&previous_tokens), "{window}: {previous_tokens}");
        assert!((25..=35).contains(&(current_tokens * 100 / window)), "{window}: {current_tokens}");
        assert!(current_tokens > left, "the larger the window, the more stays");
        left = current_tokens;
    }
}

#[test]
fn w1_w5_what_can_be_had_back_leaves_first_and_no_summary_comes_where_that_is_enough() {
    let mut harness = harness(32_000, json!({}));
    let result = acts(&mut harness, 32_000, 800);
    assert!(result.freed_tokens >= 3_200, "a tenth of the window: {result:?}");
    let kinds: Vec<&str> = result.applied_edits.iter().map(|edit| edit.kind).collect();
    assert_eq!(kinds, ["summarize"]);
}

#[test]
fn w3_what_the_user_began_with_and_said_last_stays_word_for_word() {
    let mut harness = harness(32_000, json!({}));
    let (first, last) = (long("first", 1_000), long("last", 3_000));
    harness.append(&[user(&first), assistant("Yes.")]);
    (0..10).for_each(|nth| harness.append(&work(nth, 600)));
    harness.append(&[user(&last)]);
    // The agent works on that alone, for much longer than what stays.
    let mut compactions = 0;
    for nth in 10..120 {
        harness.append(&exchange(Format::OpenaiChat, &format!("d{nth}"), &long("found", 100)));
        harness.append(&[assistant(&long("thought", 500))]);
        compactions += usize::from(harness.prepare().result.is_some_and(|result| result.changed));
        let sent = harness.sent().iter().map(Value::to_string).collect::<String>();
        assert!(sent.contains(&first) && sent.contains(&last), "{nth}");
    }
    assert!(compactions > 1, "{compactions}");
}

#[test]
fn w20_a_long_request_that_is_worked_on_stays_whole_where_a_history_is_compacted_once() {
    let request = long("log", 3_800);
    let mut bodies = vec![user("Rebase the branch, please."), assistant("Done.")];
    (0..60).for_each(|nth| bodies.extend(work(nth, 600)));
    bodies.push(user(&request));
    for nth in 60..90 {
        bodies.extend(exchange(Format::OpenaiChat, &format!("d{nth}"), &long("found", 300)));
    }
    // What the user said in between stays, and is no new request.
    bodies.push(user("Not that way."));
    bodies.extend(exchange(Format::OpenaiChat, "d90", &long("found", 300)));
    let mut harness = answering(Harness::new(json!({})));
    let options = settings(json!({ "preset": "balanced", "contextWindow": 27_000 }));
    let done = harness.host.run(Session::compact_once(options, bodies)).unwrap();
    let sent: String = done.items.iter().filter_map(|item| item.body.as_deref()).collect();
    assert!(sent.contains(&request), "{:?} {sent}", done.result);
    assert!(sent.contains("what follows this message answers 242:"), "{sent}");
}

#[test]
fn w3_a_first_message_that_takes_more_than_its_share_is_not_quoted_whole() {
    let mut harness = harness(32_000, json!({}));
    let first = long("first", 1_800);
    harness.append(&[user(&first), assistant("Yes.")]);
    acts(&mut harness, 32_000, 800);
    let sent = harness.sent().iter().map(Value::to_string).collect::<String>();
    assert!(!sent.contains(&first) && sent.contains("first"), "{sent}");
}

#[test]
fn w1_without_recall_nothing_is_cleared_below_half_of_the_trigger() {
    let tools = |names: &[&str]| {
        let tools = names.iter().map(|name| json!({ "type": "function", "function": { "name": name } }));
        json!(tools.collect::<Vec<_>>()).to_string()
    };
    // Writing to the cache costs no more than reading it: clearing pays as soon as it may.
    let prices = json!({ "input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 0.3 });
    let cleared_at = |over: Value, tools: String| {
        let mut options = json!({ "prices": prices, "clear": { "minTokens": 200 } });
        merge(&mut options, &over);
        let mut harness = harness(64_000, options);
        for nth in 0..200 {
            harness.append(&work(nth, 900));
            let prepared =
                harness.host.run(harness.session.prepare(Trigger::Auto, vec![String::new(), tools.clone()]));
            let prepared = prepared.unwrap();
            if !prepared.edits.is_empty() {
                return prepared.edits[0].freed_tokens + prepared.usage.used_tokens;
            }
        }
        panic!("nothing was cleared");
    };
    let half = 43_200 / 2;
    let without = cleared_at(json!({}), tools(&["recall_search", "read_recall_read"]));
    let refused = cleared_at(json!({ "recall": false }), tools(&["recall_read"]));
    for without in [without, refused] {
        assert!((half..half + 1_500).contains(&without), "{without}");
    }
    for with in [
        cleared_at(json!({}), tools(&["bash", recall::TOOLS[0].name])),
        cleared_at(json!({}), json!({ "recall_read": { "description": "reads" } }).to_string()),
        cleared_at(json!({ "recall": true }), String::new()),
    ] {
        assert!(with < half / 2, "{with}");
    }
}

#[test]
fn w1_a_large_result_is_previewed_below_that_only_where_it_can_be_had_back() {
    let admitted = |over: Value| {
        let mut options = json!({ "preset": "balanced", "contextWindow": 200_000 });
        merge(&mut options, &over);
        let mut harness = Harness::new(options);
        harness.append(&[user("Read it.")]);
        harness.append(&exchange(Format::OpenaiChat, "a", &long("line", 25_000)));
        !harness.prepare().edits.is_empty()
    };
    assert!(!admitted(json!({})));
    assert!(admitted(json!({ "recall": true })));
    assert!(admitted(json!({ "admit": { "maxTokens": 20_000 } })), "the app says so");
}

#[test]
fn w1_a_model_that_cannot_read_a_reference_is_told_to_look_it_up_again() {
    for (preset, recall, is_named) in [
        ("balanced", false, false),
        ("balanced", true, true),
        ("offload", false, true),
        ("layered", false, true),
    ] {
        let clear = match preset {
            "balanced" => json!({ "when": "every-turn", "minTokens": 200 }),
            _ => Value::Null,
        };
        let mut harness = harness(32_000, json!({ "preset": preset, "recall": recall, "clear": clear }));
        harness.append(&[user("Read it.")]);
        harness.append(&exchange(Format::OpenaiChat, "large", &long("line", 13_000)));
        (0..12).for_each(|nth| harness.append(&work(nth, 900)));
        harness.prepare();
        let told = format!("{preset}, {recall}");
        let sent = harness.sent().iter().map(Value::to_string).collect::<String>();
        let absent = harness.session.explain().unwrap().into_iter().filter_map(|entry| entry.reference);
        let absent: Vec<String> = absent.collect();
        assert!(!absent.is_empty(), "{told}");
        assert_eq!(absent.iter().any(|reference| sent.contains(reference)), is_named, "{told}: {sent}");
        for again in ["look it up again if needed", "look up a part of it"] {
            assert_eq!(sent.contains(again), !is_named, "{told}: {sent}");
        }
        // The app can read it, whatever the model is told.
        absent.iter().for_each(|reference| assert!(!harness.read(reference).is_empty(), "{told}"));
    }
}

#[test]
fn w5_no_summary_that_frees_little_before_the_window_is_full() {
    // What is pinned stays: a summary has almost nothing to take the place of.
    let mut harness = harness(32_000, json!({}));
    harness.append(&[user("Begin."), assistant("Yes.")]);
    for nth in 0..24 {
        harness.append(&[user(&long(&format!("rule {nth}"), 900))]);
        let index = 2 + nth * 2;
        harness.host.run(harness.session.pin(index)).unwrap();
        harness.append(&[assistant("Noted.")]);
        let prepared = harness.prepare();
        assert!(prepared.result.is_none(), "{nth}: {:?}", prepared.result);
    }
    assert!(harness.prepare().usage.used_tokens > 21_600, "it was due");
}

/// How a summariser fails, and with which code.
type Failure = (&'static str, fn() -> Event, Code);

const FAILURES: [Failure; 6] = [
    ("401", || thrown("invalid key", Some(401)), Code::SummaryFailed),
    ("429", || thrown("slow down", Some(429)), Code::SummaryFailed),
    ("503", || thrown("overloaded", Some(503)), Code::SummaryFailed),
    ("offline", || thrown("fetch failed", None), Code::SummaryFailed),
    ("timeout", || failed(Code::Timeout), Code::Timeout),
    ("empty", || summary(""), Code::SummaryRejected),
];

fn warnings(harness: &Harness, of: Code) -> usize {
    let notices = harness.host.seen.notices.iter();
    notices.filter(|notice| matches!(notice, Notice::Warning { code, .. } if *code == of)).count()
}

#[test]
fn w22_below_the_hard_limit_a_turn_goes_out_as_it_is_whatever_the_summariser_does() {
    for (name, fail, code) in FAILURES {
        for background in [true, false] {
            let mut harness =
                harness(32_000, json!({ "background": background, "summarize": { "attempts": 1 } }));
            harness.host.summarise = Box::new(move |_, _| fail());
            harness.append(&[user("Begin."), assistant("Yes.")]);
            let mut tried = Vec::new();
            // Up to the trigger in large steps, and from there on to the hard limit in small ones.
            for nth in 0..90 {
                let size = if nth < 20 { 1_080 } else { 8 };
                harness.append(&[user(&long("question", size / 2)), assistant(&long("answer", size / 2))]);
                let asked = harness.host.seen.requests.len();
                let prepared = harness.prepare();
                assert!(prepared.usage.used_tokens <= 24_000, "{name}: it fits");
                assert_eq!(prepared.items.len(), 2 + 2 * (nth + 1), "{name}: and is all there");
                if prepared.put_off {
                    let later = harness.host.run(harness.session.summarise_later()).unwrap();
                    assert!(!later.result.unwrap().success, "{name}");
                }
                if harness.host.seen.requests.len() > asked {
                    tried.push(nth);
                }
            }
            assert!(tried.len() > 2, "{name}: {tried:?}");
            let waits: Vec<usize> = tried.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(
                waits.is_sorted() && waits[0] < waits[waits.len() - 1],
                "{name}: it waits longer: {waits:?}"
            );
            assert_eq!(warnings(&harness, code), 1, "{name}: and says so once");
        }
    }
}

#[test]
fn w22_what_does_not_fit_gets_the_built_in_summary_unless_the_app_wants_none() {
    for (name, fail, code) in FAILURES {
        for fallback in [None, Some("none"), Some("extractive")] {
            let mut summarize = json!({ "attempts": 1 });
            summarize["fallback"] = fallback.map_or(Value::Null, Into::into);
            let mut harness = harness(32_000, json!({ "summarize": summarize }));
            harness.host.summarise = Box::new(move |_, _| fail());
            harness.append(&talk(60, 500));
            let prepared = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new()));
            if fallback == Some("none") {
                let error = prepared.unwrap_err();
                assert_eq!(error.code, Code::ContextOverflow, "{name}");
                assert_eq!(error.because.as_ref().unwrap().code, code, "{name}");
                continue;
            }
            let prepared = prepared.unwrap();
            let result = prepared.result.unwrap();
            assert!(result.success && prepared.usage.used_tokens <= 24_000, "{name}");
            assert_eq!(result.fell_back.unwrap().code, code, "{name}: it says why");
            assert_eq!(warnings(&harness, code), 1, "{name}");
            assert!(!prepared.items.is_empty());
        }
    }
}

#[test]
fn w22_by_default_no_turn_waits_for_a_summary_that_can_wait() {
    let mut harness = answering(Harness::new(json!({ "preset": "balanced", "contextWindow": 32_000 })));
    harness.append(&talk(22, 500));
    let prepared = harness.prepare();
    assert!(prepared.put_off && prepared.result.is_none(), "{:?}", prepared.usage);
    let later = harness.host.run(harness.session.summarise_later()).unwrap();
    assert!(later.result.unwrap().success);
}

#[test]
fn w14_eighty_pasted_rules_stand_after_a_summary_whoever_writes_it() {
    let rules: Vec<String> =
        (0..80).map(|nth| format!("Never call function_{nth} from module_{nth}.")).collect();
    for window in [16_000, 32_000, 200_000] {
        for call in [Value::Bool(true), Value::Null] {
            let mut harness = harness(window, json!({ "summarize": { "call": call } }));
            harness.append(&[
                user(&format!("Our rules:\n- {}", rules.join("\n- "))),
                assistant("I will keep to them."),
            ]);
            acts(&mut harness, window, window / 40);
            let sent = harness.sent().iter().map(Value::to_string).collect::<String>();
            let kept = rules.iter().filter(|rule| sent.contains(*rule)).count();
            assert_eq!(kept, 80, "{window}, {call}");
        }
    }
}

#[test]
fn w16_no_preset_shows_a_number_at_which_the_prompt_would_not_fit_any_more() {
    for preset in ["balanced", "offload", "react", "layered", "factor3", "checkpoint"] {
        for window in [16_000, 32_000, 64_000, 200_000] {
            let harness = Harness::new(json!({ "preset": preset, "contextWindow": window }));
            let usage = harness.session.usage().unwrap();
            let buffer = usage.categories.iter().find(|part| part.kind == "buffer").unwrap().tokens;
            let room = window - buffer;
            assert!(usage.threshold <= room, "{preset}, {window}: {} of {room}", usage.threshold);
        }
    }
}

#[test]
fn w1_a_result_that_the_model_cannot_have_back_is_read_whole_as_long_as_there_is_room() {
    for (recall, tokens, moved) in [(false, 5_000, 0), (true, 5_000, 1), (false, 11_000, 1)] {
        let mut harness = harness(16_000, json!({ "recall": recall }));
        harness.append(&[user("Read it.")]);
        harness.append(&exchange(Format::OpenaiChat, "a", &long("line", tokens)));
        let edits = harness.prepare().edits;
        assert_eq!(edits.iter().filter(|edit| edit.kind == "admit").count(), moved, "{recall}, {tokens}");
    }
}

#[test]
fn w10_a_request_that_the_kept_messages_go_on_with_is_not_called_answered() {
    for (goes_on, told) in [(true, "What follows this message answers"), (false, "was answered")] {
        let mut harness = harness(32_000, json!({}));
        let mut work = vec![user("Mend the exporter.")];
        for nth in 0..60 {
            work.extend(exchange(Format::OpenaiChat, &format!("c{nth}"), &long("line", 200)));
        }
        if !goes_on {
            work.extend([assistant("It is mended."), user("Thanks, that is all."), assistant("Good.")]);
        }
        harness.append(&work);
        harness.compact();
        let sent = harness.sent().iter().map(Value::to_string).collect::<String>();
        assert!(sent.contains(told), "{told}: {sent}");
    }
}

#[test]
fn w10_a_page_says_what_it_stands_for_and_how_the_rest_is_read_only_where_that_is_so() {
    for recall in [true, false] {
        let mut harness = harness(32_000, json!({ "recall": recall }));
        harness.append(&talk(60, 300));
        let result = harness.compact();
        let sent = harness.sent().iter().map(Value::to_string).collect::<String>();
        let count = 120 - result.preserved_count;
        let frame = format!(
            "This page stands for {count} earlier messages of this conversation. It tells what happened"
        );
        assert!(sent.contains(&frame), "{frame}: {sent}");
        assert_eq!(sent.contains("Read one with recall_read"), recall);
        assert_eq!(
            result.summary.unwrap().matches("This page stands for").count(),
            0,
            "it is no part of the summary"
        );
    }
}

#[test]
fn w11_beside_a_models_summary_the_page_takes_1500_tokens_and_does_not_tell_what_happened_again() {
    for (call, tells) in [(Value::Bool(true), false), (Value::Null, true)] {
        let mut harness = harness(200_000, json!({ "summarize": { "call": call } }));
        for nth in 0..60 {
            let input = json!({ "path": format!("src/part_{nth}.rs"), "content": long(&format!("part_{nth}"), 1_000) });
            let call = json!({ "id": format!("c{nth}"), "type": "function", "function": { "name": "write_file", "arguments": input.to_string() } });
            let called = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
            let result = json!({ "role": "tool", "tool_call_id": format!("c{nth}"), "content": "written" });
            harness.append(&[
                user(&format!("Write part {nth}.")),
                called.to_string().as_str().into(),
                result.to_string().as_str().into(),
            ]);
            harness.append(&[assistant(&format!(
                "Part {nth} of the exporter is written, in src/part_{nth}.rs."
            ))]);
        }
        let result = harness.compact();
        assert!(result.success && result.changed, "{result:?}");
        let sent = harness.sent();
        let text = sent[0]["content"].as_str().unwrap();
        assert_eq!(text.contains("## What happened"), tells);
        let (_, page) = text.split_once("## Files\n").unwrap();
        assert!(tells || page.len() < 1_500 * 5, "{} bytes", page.len());
    }
}

#[test]
fn f5_every_rule_is_in_the_context_or_the_result_lists_it() {
    let rules: Vec<String> = (0..120)
        .map(|nth| format!("Never touch module {nth} of the service before its owner has agreed to the change in writing."))
        .collect();
    let apart = || rules.iter().flat_map(|rule| [user(rule), assistant("Fine.")]).collect::<Vec<_>>();
    for (window, said) in [16_000, 32_000, 200_000]
        .into_iter()
        .flat_map(|window| [(window, vec![user(&rules.join("\n")), assistant("Fine.")]), (window, apart())])
    {
        for recall in [true, false] {
            let mut harness = harness(window, json!({ "recall": recall }));
            harness.append(&said);
            harness.append(&talk(60, 200));
            let result = harness.compact();
            assert!(result.success, "{result:?}");
            let sent = harness.sent().iter().map(Value::to_string).collect::<String>();
            let omitted =
                |rule: &String| result.omitted_constraints.iter().any(|open| open.constraints.contains(rule));
            let (kept, left): (Vec<&String>, Vec<&String>) =
                rules.iter().partition(|rule| sent.contains(*rule));
            assert!(
                left.iter().all(|rule| omitted(rule)) && !kept.iter().any(|rule| omitted(rule)),
                "{window}"
            );
            // A tenth of the window is theirs.
            assert!(
                kept.len() == 120 || kept.len() * 24 > window / 10 - 48,
                "{window}: {} of 120",
                kept.len()
            );
            assert_eq!(warnings(&harness, Code::TooLarge), usize::from(!left.is_empty()), "{window}");
            let is_listed = sent.contains("- and more, for which there is no room here: read m");
            assert_eq!(is_listed, recall && !left.is_empty(), "{window}");
        }
    }
}

#[test]
fn a_preview_is_at_most_half_of_its_result() {
    let mut harness = harness(5_000, json!({ "recall": true }));
    harness.append(&[user("Read it.")]);
    harness.append(&exchange(Format::OpenaiChat, "a", &long("line", 700)));
    let edits = harness.prepare().edits;
    assert_eq!(edits.iter().map(|edit| edit.kind).collect::<Vec<_>>(), ["admit"]);
    assert!((300..400).contains(&edits[0].freed_tokens), "{edits:?}");
}

/// Adds turns of work until a summary is asked for; the request.
fn asked(window: usize, over: Value) -> std::rc::Rc<context_compactor_core::summary::SummaryRequest> {
    let mut harness = harness(window, over);
    for nth in 0..400 {
        harness.append(&work(nth, window / 60));
        harness.prepare();
        if let Some((request, _)) = harness.host.seen.requests.first() {
            return request.clone();
        }
    }
    panic!("no summary was asked for");
}

#[test]
fn w8_every_preset_asks_where_the_work_stopped_and_what_became_of_each_request() {
    for preset in ["balanced", "offload", "layered", "factor3", "checkpoint"] {
        let request = asked(32_000, json!({ "preset": preset }));
        for what in [
            "each request of the user: done or not done",
            "what each file became, and why",
            "what was tried and rejected, and why",
            "how results were verified",
            "where exactly the work stopped: the last thing done, its result, and what was about to be done",
        ] {
            assert!(request.system.contains(what), "{preset}, {what}: {}", request.system);
        }
    }
}

#[test]
fn w8_a_summary_is_as_long_as_there_is_to_say_and_small_windows_stay_small() {
    for (window, least, most) in [
        (8_000, 200, 400),
        (32_000, 320, 640),
        (64_000, 2_000, 3_400),
        (200_000, 3_000, 4_000),
        (1_000_000, 4_000, 4_000),
    ] {
        let request = asked(window, json!({}));
        assert!((least..=most).contains(&request.target_tokens), "{window}: {}", request.target_tokens);
        assert_eq!(request.max_tokens, (request.target_tokens * 6).div_ceil(5), "{window}");
        // Of the third of the window that a compaction leaves the summary takes a small part.
        assert!(request.target_tokens * 15 <= window, "{window}: {}", request.target_tokens);
    }
    let given = asked(200_000, json!({ "summarize": { "targetTokens": 1_000 } }));
    assert_eq!(given.target_tokens, 1_000, "the app says how long");
    let offload = asked(200_000, json!({ "preset": "offload" }));
    assert_eq!(offload.target_tokens, 8_000, "the original systems have their own numbers");
}
