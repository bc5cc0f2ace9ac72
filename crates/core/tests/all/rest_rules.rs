//! How long the next attempt waits after one that failed, as long as the prompt fits: a model of no use is not asked at every
//! step.

use crate::support::*;
use context_compactor_core::step::{Event, Notice};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::exchange;
use context_compactor_store_tests::host::{summary, thrown};
use serde_json::json;

/// How a summariser fails.
type Failure = (&'static str, fn() -> Event);

const FAILURES: [Failure; 2] = [("offline", || thrown("fetch failed", None)), ("empty", || summary(""))];

/// Steps at which a model was asked, of so many above the threshold.
fn asked(harness: &mut Harness, steps: usize, mut step: impl FnMut(&mut Harness, usize)) -> Vec<usize> {
    let mut asked = Vec::new();
    for nth in 1..=steps {
        step(harness, nth);
        let before = harness.host.seen.requests.len();
        harness.prepare();
        if harness.host.seen.requests.len() > before {
            asked.push(nth);
        }
    }
    asked
}

fn warnings(harness: &Harness) -> usize {
    let notices = harness.host.seen.notices.iter();
    notices
        .filter(|notice| matches!(notice, Notice::Warning { message, .. } if message.contains("wait longer")))
        .count()
}

#[test]
fn x17_a_preset_without_a_wait_of_its_own_waits_longer_after_each_failure() {
    for preset in ["factor3", "checkpoint"] {
        for (name, fail) in FAILURES {
            let mut harness = Harness::new(json!({
                "preset": preset, "compactAt": { "tokens": 2_000 }, "contextWindow": 200_000,
                "background": false, "summarize": { "attempts": 1 },
            }));
            harness.host.summarise = Box::new(move |_, _| fail());
            harness.append(&talk(12, 200));
            let told = format!("{preset}, {name}");
            let tried = asked(&mut harness, 40, |harness, _| harness.append(&talk(1, 20)));
            assert_eq!(tried, [1, 3, 7, 15, 31], "{told}");
            assert_eq!(warnings(&harness), 1, "{told}: it is said once");
            // One that succeeds ends it.
            harness.host.summarise = Box::new(|_, _| summary("The questions were answered, all of them."));
            assert!(harness.compact().success, "{told}");
            harness.host.summarise = Box::new(move |_, _| fail());
            harness.append(&talk(12, 200));
            let tried = asked(&mut harness, 4, |harness, _| harness.append(&talk(1, 20)));
            assert_eq!(tried, [1, 3], "{told}");
        }
    }
}

#[test]
fn x17_results_that_no_model_shortens_are_not_asked_for_at_every_step() {
    for (name, fail) in FAILURES {
        let mut harness = Harness::new(json!({
            "preset": "react", "contextWindow": 40_000, "format": "openai-chat", "summarize": { "attempts": 1 },
            "presetOptions": { "globalCompressionThreshold": 0.5 },
        }));
        harness.host.summarise = Box::new(move |_, _| fail());
        harness.append(&talk(20, 500));
        harness.append(&exchange(Format::OpenaiChat, "c", &long("result", 3_000)));
        let tried = asked(&mut harness, 12, |harness, _| harness.append(&talk(1, 4)));
        assert_eq!(tried, [1, 3, 7], "{name}");
        assert_eq!(warnings(&harness), 1, "{name}: it is said once");
        // By hand it is tried at once.
        let before = harness.host.seen.requests.len();
        harness.compact();
        assert!(harness.host.seen.requests.len() > before, "{name}");
    }
}
