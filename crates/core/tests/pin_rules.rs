//! Pinned messages (`S4.3`, `wire.md` Common): word for word for ever, quoted behind the summary when they leave the tail.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use context_compactor_core::session::Fate;
use context_compactor_store_tests::conversation::{Body, assistant, exchange, user};
use serde_json::{Value, json};
use std::rc::Rc;
use support::*;

const RULE: &str = "Never touch </message> main.rs. 한국어 $& 👩‍👩‍👧";

fn desk(over: Value, pinned: impl Fn(usize) -> bool + 'static) -> Desk {
    let mut options = json!({ "hasPinned": true });
    for (key, value) in over.as_object().unwrap() {
        options[key] = value.clone();
    }
    let mut desk = Desk::new(options);
    desk.host.pinned = Box::new(pinned);
    desk
}

fn summary_text(desk: &Desk) -> String {
    desk.context()[0]["content"].as_str().unwrap().to_string()
}

fn fenced(index: usize, text: &str) -> String {
    format!("<message index=\"{index}\" role=\"user\">\n{text}\n</message>")
}

#[test]
fn s4_3_a_pinned_message_is_quoted_in_full_and_fenced_behind_the_summary() {
    for preset in ["offload", "layered", "factor3"] {
        let mut desk = desk(json!({ "preset": preset }), |index| index == 2);
        let mut messages = talk(1, 100);
        messages.push(user(RULE));
        messages.push(assistant("I will not."));
        messages.extend(talk(5, 100));
        desk.append(&messages);
        assert!(desk.compact().success);
        let text = summary_text(&desk);
        let escaped = RULE.replace("</message>", "&lt;/message>");
        assert!(text.ends_with(&fenced(2, &escaped)), "{text}");
        let entry = &desk.session.explain().unwrap()[2];
        assert_eq!((entry.fate, entry.quoted), (Fate::Verbatim, true));
        assert!(entry.checkpoint.is_some());
        assert_valid(FORMATS[0], &desk.context());
    }
}

#[test]
fn s4_3_a_pin_survives_ten_compactions_and_a_reload_and_is_never_doubled() {
    let mut desk = desk(json!({}), |index| index == 0 || index == 13);
    desk.append(&[user(RULE)]);
    for round in 0..10 {
        let mut messages = talk(6, 100);
        if round == 1 {
            messages.push(user("Pinned later."));
        }
        desk.append(&messages);
        if round == 4 {
            desk = Desk::over(Rc::clone(&desk.memory), "other", json!({ "hasPinned": true }));
        }
        let result = desk.compact();
        assert!(result.success && result.summary.is_some(), "{round} {result:?}");
        let text = summary_text(&desk);
        assert_eq!(text.matches("한국어 $& 👩‍👩‍👧").count(), 1, "{round}: {text}");
        let request = desk.host.seen.requests.last().unwrap().0.messages[0].content.clone();
        assert!(
            round == 0 || !request.contains("word for word"),
            "the summariser is not shown the quotes again"
        );
        assert!(desk.session.explain().unwrap()[0].quoted);
    }
    let entries = desk.session.explain().unwrap();
    assert_eq!(entries.iter().filter(|entry| entry.quoted).count(), 2);
}

#[test]
fn s4_3_a_pinned_result_is_quoted_as_the_app_handed_it_over() {
    for format in FORMATS {
        let mut desk = desk(json!({ "trigger": { "tokens": 200 } }), |index| index == 2);
        let text = long("pinned result", 300);
        desk.append(&[user("read")]);
        desk.append(&exchange(format, "a", &text));
        desk.append(&talk(2, 400));
        // Offloaded first, then summarised.
        assert_eq!(desk.prepare().edits[0].rung, "offload", "{format:?}");
        desk.append(&talk(4, 100));
        assert!(desk.compact().success);
        assert!(summary_text(&desk).contains(&text));
    }
}

#[test]
fn s4_3_pins_go_by_the_index_that_a_message_has_in_the_end() {
    let mut desk = desk(json!({}), |index| index == 1);
    let mut other = Some(Desk::over(Rc::clone(&desk.memory), "b", json!({})));
    desk.host.meanwhile = Box::new(move |effect| {
        if let Some(mut other) = other.take_if(|_| is_commit(effect)) {
            other.append(&[user("first")]);
        }
    });
    desk.append(&[user(RULE)]);
    desk.append(&talk(6, 100));
    assert!(desk.compact().success);
    let fates: Vec<bool> = desk.session.explain().unwrap().iter().map(|entry| entry.quoted).collect();
    assert_eq!(fates[..3], [false, true, false]);
}

#[test]
fn nothing_but_pins_is_nothing_to_compress() {
    let mut desk = desk(json!({}), |_| true);
    let messages: Vec<Body> = talk(8, 100);
    desk.append(&messages);
    let result = desk.compact();
    assert!(result.success && result.summary.is_none() && result.llm_calls == 0);
}
