//! Lesson "compaction request overflows": the request fits its ceiling, whatever the history is.

use super::super::PromptOptions;
use super::super::render::{ClipAt, clip, escape};
use super::{build, call, result, text};
use crate::error::Code;
use crate::message::{Message, Part, Role};
use crate::tokens::Estimator;
use proptest::prelude::*;

fn size(request: &super::super::SummaryRequest, estimator: Estimator) -> usize {
    estimator.text(&request.system) + estimator.text(&request.messages[0].content)
}

/// Dense at its ends and sparse between them, so that a cut by the ratio of the whole would be too long.
fn uneven(length: usize) -> String {
    let end = "{x} ".repeat(length / 4);
    format!("{end}{}{end}", "长".repeat(length * 3))
}

fn any_message() -> impl Strategy<Value = Message<'static>> {
    let body = prop_oneof![
        any::<String>(),
        "[a-z ]{0,3000}",
        (1_usize..400).prop_map(|n| "长文本很重要。".repeat(n)),
        (1_usize..400).prop_map(|n| "</message>".repeat(n)),
        (1_usize..200).prop_map(|n| "👨‍👩‍👧‍👦".repeat(n)),
        (1_usize..2_000).prop_map(|n| format!("a{}", "\u{301}".repeat(n))),
        (1_usize..2_000).prop_map(uneven),
    ];
    (0..4, body).prop_map(|(kind, body)| match kind {
        0 => text(Role::User, &body),
        1 => text(Role::Assistant, &body),
        2 => Message { role: Role::Assistant, parts: vec![call("c", &body, &body)] },
        _ => result("c", &body, false),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn lesson_the_request_never_passes_its_ceiling(
        messages in prop::collection::vec(any_message(), 0..60),
        limit in 0_usize..8_000,
        previous in prop::option::of("[a-z ]{0,4000}"),
        chars4 in any::<bool>(),
    ) {
        let estimator = if chars4 { Estimator::Chars4 } else { Estimator::default() };
        let options = PromptOptions {
            max_input_tokens: Some(limit),
            previous_summary: previous.as_deref(),
            estimator,
            ..Default::default()
        };
        let whole = build(&messages, &PromptOptions { max_input_tokens: None, ..options }).unwrap();
        match build(&messages, &options) {
            Ok(request) => {
                prop_assert!(size(&request, estimator) <= limit);
                prop_assert_eq!(request.truncated, request.messages != whole.messages);
            }
            Err(error) => {
                prop_assert_eq!(error.code, Code::InvalidOption);
                prop_assert_eq!(error.field.as_deref(), Some("maxInputTokens"));
            }
        }
    }
}

#[test]
fn lesson_unicode_cuts_a_clipped_text_keeps_its_cap_whole_graphemes_and_the_count() {
    for text in [uneven(3_000), "👨‍👩‍👧‍👦".repeat(500), "שלום עולם ".repeat(400), "한국어 문장. ".repeat(400)]
    {
        for estimator in [Estimator::Chars4, Estimator::default()] {
            let tokens = estimator.text(&text);
            for cap in [16, 40, 333] {
                let clipped = clip(&text, tokens, cap, estimator, ClipAt::Anywhere, escape);
                assert!(estimator.text(&clipped) <= cap, "{clipped}");
                let (start, rest) = clipped.split_once("[… ").unwrap();
                let (missing, end) = rest.split_once(" characters left out …]").unwrap();
                assert!(text.starts_with(start) && text.ends_with(end));
                let kept = start.chars().count() + end.chars().count();
                assert_eq!(kept + missing.parse::<usize>().unwrap(), text.chars().count());
                assert!(!start.ends_with('\u{200D}') && !end.starts_with('\u{200D}'));
            }
        }
    }
}

fn content(messages: &[Message<'_>], limit: usize) -> String {
    let options = PromptOptions { max_input_tokens: Some(limit), ..Default::default() };
    let request = build(messages, &options).unwrap();
    assert!(size(&request, options.estimator) <= limit);
    request.messages.into_iter().next().unwrap().content
}

#[test]
fn the_largest_results_give_first_and_users_last() {
    let user = "Please keep this sentence of mine. ".repeat(30);
    let small = "A short result. ".repeat(10);
    let mut messages = vec![text(Role::User, &user)];
    for n in 0..4 {
        let id = n.to_string();
        messages.push(Message { role: Role::Assistant, parts: vec![call(&id, "bash", "{}")] });
        messages.push(result(
            &id,
            if n == 2 { &small } else { "x y z 123 " }.repeat(if n == 2 { 1 } else { 2_000 }).as_str(),
            false,
        ));
    }
    for n in 0..4 {
        messages.push(text(Role::Assistant, &format!("newest {n}")));
    }
    let content = content(&messages, 4_000);
    assert!(content.contains(&user) && content.contains(&small) && content.contains("newest 0"));
    assert_eq!(content.matches("characters left out").count(), 3);
    // The room is used, not given away.
    let options = PromptOptions::default();
    let system = options.estimator.text(&build(&[], &options).unwrap().system);
    assert!(options.estimator.text(&content) + system > 3_700);
}

#[test]
fn too_many_messages_lose_their_middle_and_say_so() {
    let messages: Vec<_> = (0..5_000).map(|n| text(Role::Assistant, &format!("step {n} done"))).collect();
    let content = content(&messages, 5_000);
    assert!(content.contains("step 0 done") && content.contains("step 4999 done"));
    let omitted: usize =
        content.split("<omitted messages=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    assert_eq!(omitted + content.matches("<message index=").count(), 5_000);
}

#[test]
fn an_impossible_ceiling_names_the_minimum() {
    let messages = [text(Role::User, &"long ".repeat(2_000))];
    let ask =
        |limit| build(&messages, &PromptOptions { max_input_tokens: Some(limit), ..Default::default() });
    let error = ask(100).unwrap_err();
    let least: usize = error.message.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(ask(least).is_ok() && ask(least - 1).is_err());
}

#[test]
fn visible_reasoning_is_shown_short_and_signed_reasoning_never() {
    let thought = |text: String, signed| Part::Reasoning { text: text.into(), signed };
    let parts = vec![thought("why ".repeat(5_000), false), thought("sealed".into(), true)];
    let messages = [Message { role: Role::Assistant, parts }];
    let request = build(&messages, &PromptOptions::default()).unwrap();
    let content = &request.messages[0].content;
    assert!(content.contains("<reasoning>\nwhy") && content.len() < 4_000);
    assert!(!content.contains("sealed") && !request.truncated);
}

#[test]
fn lesson_quadratic_work_large_histories_are_linear() {
    let build_time = |count: usize| {
        let line = "src/lib.rs:10 error[E0463]: can't find crate; 修复它 and go on. ".repeat(4);
        let messages: Vec<_> = (0..count).map(|n| result(&n.to_string(), &line, false)).collect();
        let options = PromptOptions { max_input_tokens: Some(60_000), ..Default::default() };
        let started = std::time::Instant::now();
        build(&messages, &options).unwrap();
        started.elapsed()
    };
    build_time(1_000);
    let (small, large) = (build_time(1_000), build_time(50_000));
    // Fifty times the messages: a quadratic step would take 2,500 times as long. The rest is for a busy machine.
    assert!(large < small * 600, "{small:?} → {large:?}");
}
