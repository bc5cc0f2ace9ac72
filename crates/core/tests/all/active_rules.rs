//! The active context and what can be taken out of it (`S5.1`).

use crate::support::checkpoints::{harness, options};
use crate::support::snapshots::*;
use crate::support::*;
use context_compactor_core::context::{Fate, Item};
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::OutItem;
use context_compactor_core::{Code, Error};
use context_compactor_store_tests::conversation::{Body, assistant, user};
use serde_json::{Value, json};
use std::rc::Rc;

#[test]
fn s5_1_an_append_that_fits_to_the_token_is_sent_and_one_more_token_is_refused() {
    let room = |harness: &Harness| harness.session.available_tokens().unwrap();
    let desk_of = || harness(json!({ "contextWindow": 4_000 }));
    // Nothing to compress, so nothing to make room with; the window less 1,000 is the limit.
    let filled = |over: usize| {
        let mut harness = desk_of();
        harness.append(&[user("a question")]);
        // Four characters are a token; what the answer takes beside its text is measured.
        let mut probe = desk_of();
        probe.append(&[user("a question"), assistant("xxxx")]);
        let tokens = 1 + room(&probe) + over;
        harness.append(&[assistant(&"xxxx".repeat(tokens))]);
        harness
    };
    let mut full = filled(0);
    let validation = full.session.validate().unwrap();
    assert_eq!((validation.tokens, validation.limit, validation.valid), (3_000, 3_000, true));
    assert_eq!((room(&full), full.prepare().items.len()), (0, 2));
    let mut over = filled(1);
    let error = over.host.run(over.session.prepare(Trigger::Auto, Vec::new())).unwrap_err();
    assert_eq!(error.code, Code::ContextOverflow);
    let begins = "Cannot add message: would exceed limit (3001 > 3000)";
    assert!(error.message.starts_with(begins), "{error}");
    assert_eq!(over.stored().messages.len(), 2, "the message is in the transcript all the same");
    assert_eq!((room(&over), over.session.validate().unwrap().overage), (0, Some(1)));
}

#[test]
fn s5_1_an_append_that_would_pass_the_limit_is_first_made_to_fit() {
    let mut harness = harness(json!({ "contextWindow": 4_000 }));
    harness.append(&chat(0, 10, 320));
    assert!(!harness.session.validate().unwrap().valid);
    let prepared = harness.prepare();
    assert!(prepared.usage.used_tokens <= 3_000 && harness.session.validate().unwrap().valid);
    assert_eq!(harness.stored().messages.len(), 20);
}

#[test]
fn s5_1_the_parts_of_the_context_and_their_tokens_add_up() {
    let mut harness = harness(json!({}));
    harness.append(&[Rc::from(r#"{"role":"system","content":"You are a tool."}"#)]);
    harness.append(&chat(0, 20, 100));
    assert!(harness.compact().success);
    harness.append(&chat(20, 1, 10));
    harness.host.run(harness.session.count_fixed(vec!["A system prompt of the session.".into()])).unwrap();
    let active = harness.session.active().unwrap();
    let count = active.token_count;
    assert_eq!(count.system + count.checkpoints + count.recent, count.total);
    assert_eq!(count.total, harness.session.usage().unwrap().used_tokens);
    assert_eq!(harness.session.available_tokens().unwrap(), 31_000 - count.total);
    let body = |item: &OutItem| match item.seq {
        Some(seq) => harness.session.body(seq).unwrap().unwrap(),
        None => item.body.clone().unwrap(),
    };
    // System, checkpoint, recent.
    assert!(body(&active.items[0]).contains("You are a tool."));
    assert!(body(&active.items[1]).contains("[Checkpoint cp_"));
    assert_eq!(active.recent.last(), Some(&(active.items.len() - 1)));
    assert!(active.recent.iter().all(|at| *at > 1 && active.items[*at].seq.is_some()));
    let sum: usize = active.recent.iter().map(|at| items(&harness)[*at].size.tokens).sum();
    assert_eq!(sum, count.recent);
}

fn remove(harness: &mut Harness, indices: &[usize]) -> Result<Vec<usize>, Error> {
    let removed = harness.host.run(harness.session.remove_messages(indices.to_vec()))?;
    harness.stored();
    Ok(removed)
}

#[test]
fn s5_1_messages_are_removed_from_the_context_as_whole_exchanges_and_never_from_the_transcript() {
    for format in FORMATS {
        let mut harness = harness(json!({}));
        for nth in 0..3 {
            harness.append(&turn(format, nth, 100));
        }
        let before = items(&harness);
        // The result takes its call along.
        assert_eq!(remove(&mut harness, &[6]).unwrap(), [5, 6]);
        let left: Vec<Item> = before
            .iter()
            .enumerate()
            .filter(|(at, _)| ![5, 6].contains(at))
            .map(|(_, item)| item.clone())
            .collect();
        assert_eq!(items(&harness), left);
        assert_valid(format, &harness.context());
        let entry = &harness.session.explain().unwrap()[6];
        assert_eq!(
            (entry.fate, entry.reason.as_deref()),
            (Fate::Dropped, Some("it was removed from the context; the log keeps it"))
        );
        assert_eq!(harness.stored().messages.len(), 12);
        assert_eq!(remove(&mut harness, &[5, 6]).unwrap(), [0_usize; 0], "once is enough");
        // A snapshot from before brings them back; the next tab sees what is left.
        let other = Harness::over(Rc::clone(&harness.memory), "other", options(json!({})));
        assert_eq!(items(&other), left);
        assert_eq!(remove(&mut harness, &(0..12).collect::<Vec<_>>()).unwrap().len(), 10);
        assert!(items(&harness).is_empty());
        harness.append(&turn(format, 9, 10));
        assert_eq!(harness.sent().len(), 4);
    }
}

#[test]
fn s5_1_what_cannot_be_removed_is_named() {
    let mut harness = harness(json!({ "pins": { "match": true }, "keep": { "messages": 6 } }));
    harness.host.pinned = Box::new(|index| index == 39);
    harness.append(&chat(0, 20, 100));
    assert!(harness.compact().success);
    let before = items(&harness);
    for (index, code, words) in
        [(1, Code::InvalidOption, "a checkpoint stands for it"), (39, Code::InvalidOption, "is pinned")]
    {
        let error = remove(&mut harness, &[38, index]).unwrap_err();
        assert_eq!((error.code, error.index), (code, Some(index)));
        assert!(error.message.contains(words), "{error}");
    }
    assert_eq!(items(&harness), before, "nothing was changed");
}

#[test]
fn s5_1_a_removal_that_would_break_a_rule_of_the_provider_is_refused() {
    let text = |role: &str, text: &str| -> Body {
        Rc::from(json!({ "role": role, "parts": [{ "text": text }] }).to_string())
    };
    let mut harness = harness(json!({ "format": "gemini" }));
    harness.append(&[
        text("user", "a"),
        text("model", "b"),
        text("user", "c"),
        text("model", "d"),
        text("user", "e"),
    ]);
    let error = remove(&mut harness, &[0]).unwrap_err();
    assert_eq!((error.code, error.field.as_deref()), (Code::InvalidOption, Some("ids")));
    assert!(error.message.contains("GM1"), "{error}");
    assert_eq!(remove(&mut harness, &[0, 1]).unwrap(), [0, 1]);
}

#[test]
fn an8_reasoning_behind_a_removed_message_goes_with_it() {
    let body = |value: Value| -> Body { Rc::from(value.to_string()) };
    let mut harness = Harness::new(json!({ "format": "anthropic" }));
    let thinking =
        json!([{ "type": "thinking", "thinking": "t", "signature": "s" }, { "type": "text", "text": "yes" }]);
    harness.append(&[
        body(json!({ "role": "user", "content": "a" })),
        body(json!({ "role": "assistant", "content": "b" })),
        body(json!({ "role": "user", "content": "c" })),
        body(json!({ "role": "assistant", "content": thinking })),
    ]);
    let id = take(&mut harness);
    let before = items(&harness);
    assert_eq!(remove(&mut harness, &[0, 1]).unwrap(), [0, 1]);
    assert!(!items(&harness)[1].body.contains("thinking"));
    restore(&mut harness, &id);
    assert_eq!(items(&harness), before);
}
