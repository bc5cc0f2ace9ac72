//! Exchanges (`S1.5`): a cut never parts a call from its result.

use context_compactor_core::message::{Exchanges, Message, Pairing, Part, Role, ToolCall, ToolResult};
use context_compactor_core::wire::{Format, parse};
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// A message of results and calls: `"<a >b"` answers a and calls b.
fn message(script: &str) -> Message<'_> {
    let part = |word: &str| -> Part<'static> {
        let id = word[1..].to_owned();
        match &word[..1] {
            ">" => Part::ToolCall(ToolCall {
                id: id.into(),
                name: "f".into(),
                arguments: "{}".into(),
                caller: None,
            }),
            "<" => Part::ToolResult(ToolResult {
                call_id: id.into(),
                text: "".into(),
                is_error: false,
                media: vec![],
                mark: None,
            }),
            _ => Part::Text(word.to_owned().into()),
        }
    };
    Message { role: Role::User, parts: script.split_whitespace().map(part).collect() }
}

fn exchanges(history: &[&str]) -> Exchanges {
    let messages: Vec<Message<'_>> = history.iter().map(|script| message(script)).collect();
    Exchanges::of(&messages)
}

fn boundaries(history: &[&str]) -> Vec<usize> {
    let exchanges = exchanges(history);
    (0..=history.len() + 1).filter(|&position| exchanges.is_boundary(position)).collect()
}

#[test]
fn s1_5_parallel_calls_are_one_exchange() {
    assert_eq!(boundaries(&["hi", ">a >b", "<b", "<a", "bye"]), [0, 1, 4, 5]);
}

#[test]
fn s1_5_ids_repeat_across_turns() {
    let history = [">a", "<a", "hm", ">a", "<a"];
    assert_eq!(boundaries(&history), [0, 2, 3, 5]);
    assert_eq!(exchanges(&history).pairs(), [(0, 1), (3, 4)]);
}

#[test]
fn s1_5_an_unanswered_call_leaves_its_id_to_the_next() {
    let history = [">a", "stop", ">a", "<a"];
    let exchanges = exchanges(&history);
    assert_eq!(exchanges.pairs(), [(2, 3)]);
    assert_eq!(
        (exchanges.unanswered.as_slice(), exchanges.orphaned.as_slice()),
        ([0].as_slice(), [].as_slice())
    );
    assert_eq!(boundaries(&history), [0, 1, 2, 4]);
}

#[test]
fn s1_5_orphaned_results_bind_nothing() {
    let history = ["<x", "hi", ">a", "<a <x"];
    assert_eq!(exchanges(&history).orphaned, [0, 3]);
    assert_eq!(boundaries(&history), [0, 1, 2, 4]);
}

#[test]
fn s1_5_nested_and_interleaved_calls_are_one_exchange() {
    assert_eq!(boundaries(&[">a", ">b", "<a", "x", "<b", "bye"]), [0, 5, 6]);
    assert_eq!(boundaries(&[">a", ">b", "<b", "<a"]), [0, 4]);
    // A message that answers one call and makes the next stands between two exchanges and binds them.
    assert_eq!(boundaries(&[">a", "<a >b", "<b"]), [0, 3]);
}

#[test]
fn s1_5_the_nearest_boundary_before() {
    let exchanges = exchanges(&["hi", ">a", "x", "<a"]);
    let nearest: Vec<usize> = (0..6).map(|position| exchanges.boundary_at_or_before(position)).collect();
    assert_eq!(nearest, [0, 1, 1, 1, 4, 4]);
    assert_eq!(Exchanges::of(&[]).boundary_at_or_before(usize::MAX), 0);
    assert!(Exchanges::of(&[]).is_boundary(0));
}

#[test]
fn s1_5_results_with_prose_belong_to_the_call_before() {
    let history = [
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}"#,
        r#"{"role":"user","content":[{"type":"text","text":"stop"},{"type":"tool_result","tool_use_id":"a"}]}"#,
    ];
    let parsed: Vec<_> = history.iter().map(|json| parse(0, json).unwrap()).collect();
    let messages: Vec<_> =
        parsed.iter().map(|value| Format::Anthropic.wire().read(0, value).unwrap()).collect();
    assert!(!Exchanges::of(&messages).is_boundary(1));
}

/// A message of the model with one block that is never read.
fn tied(tie: Pairing<'static>) -> Message<'static> {
    let part = Part::Opaque { kind: "x".into(), chars: 1, tie };
    Message { role: Role::Assistant, parts: vec![part] }
}

fn cuts(history: &[Message<'_>]) -> Vec<usize> {
    let exchanges = Exchanges::of(history);
    (0..=history.len()).filter(|&position| exchanges.is_boundary(position)).collect()
}

#[test]
fn s1_5_a_reference_may_be_what_a_result_answers() {
    let refers = || tied(Pairing::Refers);
    let history = [message("hi"), refers(), refers(), message("<a"), message("<b"), message("bye")];
    assert_eq!(cuts(&history), [0, 1, 5, 6], "the response and its results");
    assert!(Exchanges::of(&history).orphaned.is_empty());
    // A result that a call asked for has nothing to do with it.
    assert_eq!(cuts(&[refers(), message("hi"), message(">a"), message("<a")]), [0, 1, 2, 4]);
    assert_eq!(cuts(&[refers(), message("hi"), tied(Pairing::Closes("r".into()))]), [0, 3]);
}

#[test]
fn s1_5_what_closes_a_block_once_more_stays_with_it() {
    let (opens, closes) = (|| tied(Pairing::Opens("r".into())), || tied(Pairing::Closes("r".into())));
    assert_eq!(cuts(&[opens(), closes(), message("x"), closes(), message("bye")]), [0, 4, 5]);
    assert_eq!(cuts(&[opens(), closes(), opens(), closes()]), [0, 2, 4], "ids repeat");
    assert_eq!(cuts(&[closes(), message("x"), opens(), closes()]), [0, 1, 2, 4]);
}

#[test]
fn a_hundred_thousand_messages_take_linear_time() {
    let scripts = [">a >b", "<a", "<b", ">c", "hm"];
    let messages: Vec<Message<'_>> = (0..100_000).map(|at| message(scripts[at % scripts.len()])).collect();
    let start = Instant::now();
    let exchanges = Exchanges::of(&messages);
    let total: usize = (0..=messages.len()).map(|at| exchanges.boundary_at_or_before(at)).sum();
    assert!(total > 0 && start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

proptest! {
    #[test]
    fn a_boundary_is_never_inside_a_pair(history in prop::collection::vec("([<>][abc] ){0,3}", 0..40)) {
        let messages: Vec<Message<'_>> = history.iter().map(|script| message(script)).collect();
        let exchanges = Exchanges::of(&messages);
        prop_assert!(exchanges.is_boundary(0) && exchanges.is_boundary(messages.len()));
        for position in 0..=messages.len() {
            let parts = exchanges.pairs().iter().any(|&(call, result)| call < position && position <= result);
            prop_assert_eq!(exchanges.is_boundary(position), !parts);
            let nearest = exchanges.boundary_at_or_before(position);
            prop_assert!(nearest <= position && exchanges.is_boundary(nearest));
        }
        let results: usize = messages.iter().map(|message| message.results().count()).sum();
        prop_assert!(exchanges.pairs().len() <= results);
    }
}
