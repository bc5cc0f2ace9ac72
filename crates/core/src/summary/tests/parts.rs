//! A history in as few parts as fit, every message in exactly one of them.

use super::super::parts::Stretch;
use super::super::{NamedFacts, OFFLOAD, PromptOptions, ShownMessages, SummaryRequest, facts};
use super::{call, result, text};
use crate::message::{Exchanges, Message, Role};
use crate::tokens::Estimator;
use proptest::prelude::*;
use std::ops::Range;

/// The room that a request needs beside the conversation is about a thousand tokens.
const FRAME: usize = 1_400;

/// Tokens by which a request may be shorter than it was thought to be.
const SLACK: usize = 4;

fn options(room: usize, estimator: Estimator) -> PromptOptions<'static> {
    PromptOptions { max_input_tokens: Some(FRAME + room), estimator, ..Default::default() }
}

fn part_of(messages: &[Message<'_>], of: Range<usize>, options: &PromptOptions<'_>) -> SummaryRequest {
    let named = NamedFacts::of(messages.len());
    OFFLOAD.part(&ShownMessages { messages, of, named: &named, clean: &[] }, options).unwrap()
}

fn exchange(kind: u8, nth: usize, body: &str) -> Vec<Message<'static>> {
    let id = nth.to_string();
    match kind {
        0 => vec![text(Role::User, body)],
        1 => vec![text(Role::Assistant, body)],
        2 => vec![
            Message { role: Role::Assistant, parts: vec![call(&id, "bash", "{}")] },
            result(&id, body, false),
        ],
        _ => {
            let calls = (0..3).map(|n| call(&format!("{id}.{n}"), "read_file", "{}")).collect();
            let mut messages = vec![Message { role: Role::Assistant, parts: calls }];
            messages.extend((0..3).map(|n| result(&format!("{id}.{n}"), body, false)));
            messages
        }
    }
}

/// The runs are all messages in their order, and what is asked about each fits, shortened only where one message is
/// too long by itself.
fn check(messages: &[Message<'_>], options: &PromptOptions<'_>) -> Vec<Stretch> {
    let runs = OFFLOAD.split(messages, 0..messages.len(), options);
    let covered: Vec<usize> = runs.iter().flat_map(|run| run.of.clone()).collect();
    assert_eq!(covered, (0..messages.len()).collect::<Vec<_>>());
    let exchanges = Exchanges::of(messages);
    let limit = options.max_input_tokens.unwrap();
    let part = |of: std::ops::Range<usize>| part_of(messages, of, options);
    // An estimate of two texts is now and then a token less than that of the first.
    let less = PromptOptions { max_input_tokens: Some(limit - SLACK), ..*options };
    let is_long = |of: std::ops::Range<usize>| part_of(messages, of, &less).truncated;
    for run in &runs {
        let request = part(run.of.clone());
        let size =
            options.estimator.text(&request.system) + options.estimator.text(&request.messages[0].content);
        assert!(size <= limit && run.tokens <= limit, "{size} of {limit}");
        if request.truncated {
            assert!(
                run.of.clone().any(|at| is_long(at..at + 1)),
                "only what is too long by itself is shortened: {run:?}"
            );
        } else {
            assert!(!run.of.clone().any(|at| part(at..at + 1).truncated), "shown whole: {run:?}");
        }
    }
    for two in runs.windows(2) {
        let at = two[0].of.end;
        if exchanges.is_boundary(two[0].of.start) && exchanges.is_boundary(two[1].of.end) {
            assert!(is_long(two[0].of.start..two[1].of.end), "two that fit one request: {two:?}");
        }
        // Nothing is cut inside an exchange that fits a request.
        if !exchanges.is_boundary(at) {
            let start = exchanges.boundary_at_or_before(at);
            let end = (at..=messages.len()).find(|end| exchanges.is_boundary(*end)).unwrap();
            assert!(is_long(start..end), "{start}..{end} was cut at {at}");
        }
    }
    runs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_message_stands_in_exactly_one_part(
        kinds in prop::collection::vec((0_u8..4, 0_usize..5, 1_usize..120), 0..40),
        room in 300_usize..4_000,
        chars4 in any::<bool>(),
    ) {
        let words = ["go on ", "长文本很重要。", "👨‍👩‍👧‍👦", "</message>", "שלום "];
        let messages: Vec<Message<'_>> = kinds
            .iter()
            .enumerate()
            .flat_map(|(nth, (kind, word, times))| exchange(*kind, nth, &words[*word].repeat(*times * 3)))
            .collect();
        let estimator = if chars4 { Estimator::Chars4 } else { Estimator::default() };
        check(&messages, &options(room, estimator));
    }
}

#[test]
fn what_fits_one_request_is_one_part() {
    let messages: Vec<_> = (0..20).flat_map(|nth| exchange(2, nth, "short")).collect();
    assert_eq!(check(&messages, &options(4_000, Estimator::Chars4)).len(), 1);
    assert!(check(&[], &options(4_000, Estimator::Chars4)).is_empty());
}

#[test]
fn a_huge_result_stands_with_its_call_and_nothing_else_is_shortened() {
    let mut messages = exchange(0, 0, &"first ".repeat(300));
    messages.extend(exchange(2, 1, &"x y ".repeat(20_000)));
    messages.extend(exchange(0, 2, &"last ".repeat(300)));
    let runs = check(&messages, &options(1_000, Estimator::Chars4));
    let of: Vec<_> = runs.iter().map(|run| run.of.clone()).collect();
    assert_eq!(of, [0..1, 1..3, 3..4]);
}

#[test]
fn an_exchange_that_is_too_long_is_parted_between_its_results() {
    let messages = exchange(3, 0, &"word ".repeat(1_400));
    let runs = check(&messages, &options(2_000, Estimator::Chars4));
    let of: Vec<_> = runs.iter().map(|run| run.of.clone()).collect();
    assert_eq!(of, [0..2, 2..3, 3..4]);
    let request = part_of(&messages, 2..3, &options(2_000, Estimator::Chars4));
    assert!(
        request.messages[0].content.contains("<tool_result name=\"read_file\">"),
        "its call is in another part"
    );
}

#[test]
fn summaries_of_parts_are_grouped_by_what_fits_and_never_alone() {
    let options = options(2_000, Estimator::Chars4);
    assert_eq!(OFFLOAD.groups(&[300; 3], &options), vec![0..3; 1]);
    assert_eq!(OFFLOAD.groups(&[900; 5], &options), [0..2, 2..4, 4..5]);
    assert_eq!(OFFLOAD.groups(&[9_000; 3], &options), [0..2, 2..3]);
    let texts = ["One. </previous_summary> two", "$& {conversation}"];
    let request = OFFLOAD.merge(&texts, facts(&[text(Role::User, "edit /src/a.rs")]), &options).unwrap();
    let content = &request.messages[0].content;
    assert!(content.contains("One. &lt;/previous_summary> two") && content.contains("$& {conversation}"));
    assert_eq!(content.matches("<previous_summary>\n").count(), 2);
    assert!(request.facts.iter().any(|fact| fact.text == "/src/a.rs"), "facts are those of the messages");
}
