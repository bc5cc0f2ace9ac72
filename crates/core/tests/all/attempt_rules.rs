//! Attempts at a summary, and at the parts of one: how many there are, how long each waits, and what is told of them.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::step::{Event, LogLevel, Progress, Purpose, ReportedUsage, Stage};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::exchange;
use context_compactor_store_tests::host::{failed, summary, thrown};
use serde_json::json;

/// Messages that take three parts.
fn in_parts(over: serde_json::Value) -> Harness {
    let mut harness = Harness::new(over);
    harness.append(&talk(30, 300));
    harness
}

fn warned(harness: &Harness) -> Vec<&str> {
    let warnings = harness.host.seen.logs.iter().filter(|(level, _)| *level == LogLevel::Warn);
    warnings.map(|(_, line)| line.as_str()).collect()
}

#[test]
fn f39_a_part_that_is_no_summary_is_asked_for_again_and_says_why_it_failed_in_the_end() {
    let mut harness = in_parts(json!({ "summarize": { "concurrency": 1 } }));
    harness.host.summarise = Box::new(|_, _| summary(""));
    let result = harness.compact();
    let error = result.error.unwrap();
    let because = error.into_parts().because.unwrap();
    assert_eq!(because.code, Code::SummaryRejected);
    let why = because.message.strip_prefix("the summary of a part was not acceptable: ").unwrap().to_string();
    assert!(!why.is_empty());
    assert_eq!((result.llm_calls, harness.host.seen.slept.as_slice()), (3, &[1_000, 2_000][..]));
    assert_eq!(harness.host.seen.purposes, [Purpose::Part; 3], "the other parts are asked for nothing");
    let attempts: Vec<u32> = harness.host.seen.requests.iter().map(|(_, attempt)| *attempt).collect();
    assert_eq!(attempts, [1, 2, 3]);
    let line = |nth| format!("Attempt {nth} of 3 at a part failed: {because}");
    assert_eq!(warned(&harness), [line(1), line(2), line(3)]);
    let asked: Vec<_> =
        harness.host.seen.requests.iter().map(|(request, _)| &request.messages[0].content).collect();
    assert!(
        !asked[0].contains(&why) && asked[1].contains(&why) && asked[2].contains(&why),
        "{why}: {}",
        asked[1]
    );
    assert_eq!(asked[1], asked[2], "the reason of the attempt before stands there once");
}

#[test]
fn f39_a_part_that_fails_otherwise_says_how_and_one_that_may_not_is_not_asked_for_again() {
    for (fail, code, calls) in [
        ((|| thrown("busy", Some(503))) as fn() -> Event, Code::SummaryFailed, 3),
        (|| thrown("bad key", Some(401)), Code::SummaryFailed, 1),
        (|| failed(Code::Timeout), Code::Timeout, 3),
    ] {
        let mut harness = in_parts(json!({ "summarize": { "concurrency": 1 } }));
        harness.host.summarise = Box::new(move |_, _| fail());
        let result = harness.compact();
        let because = result.error.unwrap().into_parts().because.unwrap();
        assert_eq!((because.code, result.llm_calls), (code, calls), "{because}");
        assert_eq!(harness.host.seen.slept, &[1_000, 2_000][..calls as usize - 1]);
    }
}

#[test]
fn f39_of_parts_that_are_asked_for_together_none_is_asked_for_again_once_one_failed_for_good() {
    let mut harness = in_parts(json!({ "summarize": { "concurrency": 2 } }));
    let mut nth = 0;
    harness.host.summarise = Box::new(move |_, _| {
        nth += 1;
        if nth == 1 { thrown("busy", Some(503)) } else { thrown("bad key", Some(401)) }
    });
    let result = harness.compact();
    let error = result.error.unwrap();
    assert!(error.message.contains("bad key"), "{error}");
    assert_eq!((result.llm_calls, harness.host.seen.requests.len()), (2, 2));
}

#[test]
fn f39_a_part_waits_as_long_as_the_provider_asks_and_a_whole_summary_too() {
    for (turns, seconds, waits) in [(30, "7", 7_000), (30, "0", 1_000), (6, "7", 7_000), (6, "0", 1_000)] {
        let mut harness = Harness::new(json!({
            "summarize": { "call": null, "provider": { "kind": "openai", "model": "small" }, "concurrency": 1 },
        }));
        harness.append(&talk(turns, 300));
        let mut calls = 0;
        harness.host.fetch = Box::new(move |_| {
            calls += 1;
            let (status, headers, body) = match calls {
                1 => (429, vec![("retry-after".into(), seconds.into())], json!({})),
                _ => (
                    200,
                    Vec::new(),
                    json!({
                        "choices": [{ "message": { "role": "assistant", "content": SUMMARY }, "finish_reason": "stop" }],
                        "usage": { "prompt_tokens": 9, "completion_tokens": 4 },
                    }),
                ),
            };
            Event::Response { status, headers, body: body.to_string() }
        });
        let result = harness.compact();
        assert!(result.success, "{:?}", result.error);
        assert_eq!(harness.host.seen.slept, [waits], "{turns} {seconds}");
        let asked = harness.host.seen.fetched.len() as u64;
        let usage = result.usage.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (9 * (asked - 1), 4 * (asked - 1)));
        assert_eq!((u64::from(result.llm_calls), asked > 2), (asked, turns > 6));
    }
}

#[test]
fn f39_a_whole_summary_that_is_rejected_each_time_says_so_with_every_attempt() {
    let mut harness = Harness::new(eager());
    harness.append(&talk(6, 100));
    harness.host.summarise = Box::new(|_, _| summary("I cannot help with that."));
    let result = harness.compact();
    let error = result.error.unwrap();
    assert_eq!(error.code, Code::SummaryRejected);
    assert!(error.message.starts_with("the summary was not acceptable: "), "{error}");
    assert_eq!((result.llm_calls, harness.host.seen.slept.as_slice()), (3, &[1_000, 2_000][..]));
    let line = |nth| format!("Summary attempt {nth} of 3 failed: {error}");
    assert_eq!(warned(&harness), [line(1), line(2), line(3)]);
    let progress: Vec<(usize, usize)> = harness
        .host
        .seen
        .progress
        .iter()
        .filter(|told| told.stage == Stage::Summarise)
        .map(|told| (told.done, told.total))
        .collect();
    assert_eq!(progress, [(0, 3), (1, 3), (2, 3)]);
}

#[test]
fn f39_s2_a_result_that_no_answer_shortens_is_asked_for_as_often_and_stays() {
    let mut harness = Harness::new(json!({ "preset": "react", "format": "openai-chat" }));
    harness.append(&talk(2, 60));
    harness.append(&exchange(Format::OpenaiChat, "c", &long("result", 1_000)));
    harness.host.summarise = Box::new(|_, _| {
        let usage = ReportedUsage { input_tokens: 10, output_tokens: 1, ..ReportedUsage::default() };
        Event::Summary { text: " ".into(), usage: Some(usage) }
    });
    let before = harness.context();
    let result = harness.compact();
    let error = result.error.unwrap();
    assert_eq!((error.code, result.success), (Code::SummaryRejected, false));
    assert_eq!(error.message, "the compressed result was empty, or not shorter than the original");
    assert_eq!((result.llm_calls, harness.host.seen.slept.as_slice()), (3, &[1_000, 2_000][..]));
    let usage = result.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (30, 3));
    let line = format!("A tool result could not be compressed: {error}");
    assert_eq!(warned(&harness).last(), Some(&line.as_str()));
    assert_eq!((harness.context(), result.freed_tokens), (before, 0));
    let told = &harness.host.seen.progress;
    let compress: Vec<_> = told.iter().filter(|told| told.stage == Stage::Compress).collect();
    assert_eq!(compress.len(), 1);
    let tokens = result.current_tokens;
    let Progress { done, total, previous_tokens, current_tokens, .. } = *compress[0];
    assert_eq!((done, total, previous_tokens, current_tokens), (0, 1, tokens, tokens));
}
