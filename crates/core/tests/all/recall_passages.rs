//! A question ranks texts by their passages, and reads a bounded part of the log for that.

use crate::support::*;
use context_compactor_core::keys::batch::KeyPart;
use context_compactor_core::recall::Hit;
use context_compactor_core::step::Effect;
use context_compactor_store_tests::conversation::{assistant, exchange, user};
use serde_json::json;
use std::cell::RefCell;
use std::rc::Rc;

const QUESTION: &str = "Which color did the committee choose for the harbor bridge?";

fn asked(harness: &mut Harness, query: &str, limit: usize) -> Vec<Hit> {
    harness.host.run(harness.session.search(query.into(), limit)).unwrap()
}

/// A text of about 1,300 words with `said` in its middle.
fn around(said: &str) -> String {
    let filler = "the minutes go on about fees and dates of other works ".repeat(60);
    format!("{filler}{said} {filler}")
}

#[test]
fn x6_words_that_stand_together_rank_before_more_of_them_that_are_far_apart() {
    let mut harness = Harness::new(json!({ "contextWindow": 1_000_000 }));
    let answer = "The committee did choose a color for the harbor bridge: cobalt.";
    // Each word five times, none near another.
    let words = ["committee", "choose", "color", "harbor", "bridge"].repeat(5);
    let apart: String =
        words.iter().map(|word| format!("{word} {}", "fees and dates of works ".repeat(50))).collect();
    harness.append(&[user(&around(answer)), assistant("I see."), user(&apart), assistant("I see.")]);
    let hits = asked(&mut harness, QUESTION, 10);
    assert_eq!((hits[0].index, hits[1].index), (0, 2));
    assert!(hits[0].snippet.contains("cobalt"), "{}", hits[0].snippet);
    // As a list of words it is about the texts as wholes.
    assert_eq!(asked(&mut harness, "committee choose color harbor bridge", 10)[0].index, 2);
}

#[test]
fn x6_the_snippet_is_the_passage_that_ranked_the_message() {
    let mut harness = Harness::new(json!({ "contextWindow": 1_000_000 }));
    // One name in a crowd of the others' words is the densest stretch of bytes; the passage has its neighbors, too.
    let answer = "The committee met twice about the harbor. Its bridge gets a new color, which they choose in May: cobalt.";
    let text = format!("bridge color {} {}", around("committee harbor"), around(answer));
    harness.append(&[user(&text), assistant("I see.")]);
    let hits = asked(&mut harness, QUESTION, 1);
    assert!(hits[0].snippet.contains("cobalt"), "{}", hits[0].snippet);
}

#[test]
fn x6_what_the_user_says_and_what_stands_beside_it_counts_more_than_what_a_tool_prints() {
    for format in FORMATS {
        let mut harness = Harness::new(json!({ "contextWindow": 1_000_000 }));
        harness.append(&[assistant("The bridge is cobalt."), user("The bridge is cobalt.")]);
        harness.append(&exchange(format, "a", "The bridge is cobalt."));
        let hits = asked(&mut harness, "what is the bridge?", 3);
        let roles: Vec<&str> = hits.iter().map(|hit| hit.role).collect();
        assert_eq!(roles, ["user", "assistant", "tool"], "{format:?}");
    }
}

#[test]
fn x6_a_question_in_quotes_is_one() {
    let mut harness = Harness::new(json!({}));
    harness.append(&[user("My cat is called Tom.")]);
    for _ in 0..20 {
        harness.append(&[user("The cat of the tests is a fixture, and the cat is fine."), assistant("ok")]);
    }
    for query in ["what is my cat called?", "\"What is my cat called?\"", "(what is my cat called?)"] {
        assert_eq!(asked(&mut harness, query, 1)[0].index, 0, "{query}");
    }
}

#[test]
fn x6_a_question_reads_few_rows_of_the_log_and_few_words() {
    // Messages, words of each, and how many of them are read for ten hits.
    for (messages, words, most) in [(400, 20, 128), (60, 9_900, 20), (12, 60_000, 10)] {
        let mut harness = Harness::new(json!({ "contextWindow": 1_000_000_000 }));
        for nth in 0..messages / 2 {
            let text = format!("the bridge {nth} {}", "is old ".repeat(words / 2));
            harness.append(&[user(&text), assistant(&text)]);
        }
        let reads = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&reads);
        harness.host.meanwhile = Box::new(move |effect| {
            if let Effect::Read(keys) = effect {
                let is_log = |key: &&_| matches!(key, context_compactor_core::keys::batch::Key(parts) if parts[0] == KeyPart::Text("log".into()));
                seen.borrow_mut().push(keys.iter().filter(is_log).count());
            }
        });
        assert_eq!(asked(&mut harness, "what is the bridge?", 10).len(), 10);
        let rows: usize = reads.borrow().iter().sum();
        assert_eq!(rows, most, "{messages} messages of {words} words");
        // Many small rows are one read.
        assert!(words > 20 || reads.borrow().iter().filter(|rows| **rows > 0).count() == 1);
    }
}
