//! What holds for every history: no cut parts an exchange, no successful compaction makes the context larger, a plan is
//! what the next `prepare` does.

use crate::support::*;
use context_compactor_core::context::split::cut;
use context_compactor_core::context::{Keep, conserve};
use context_compactor_core::message::Exchanges;
use context_compactor_core::policy::Trigger;
use context_compactor_core::tokens::Estimator;
use context_compactor_core::wire::{self, Format};
use context_compactor_store_tests::conversation::{Body, PLAIN, assistant, calls, results, user};
use context_compactor_store_tests::host::{summary, thrown};
use proptest::prelude::*;
use serde_json::json;

/// One turn: words of the question, tokens of each result, words of the answer.
type Turn = (usize, Vec<usize>, usize);

fn turns(most: usize) -> impl Strategy<Value = Vec<Turn>> {
    let turn = (0..80_usize, prop::collection::vec(0..300_usize, 0..4), 0..80_usize);
    prop::collection::vec(turn, 1..most)
}

fn format() -> impl Strategy<Value = Format> {
    prop::sample::select(PLAIN.to_vec())
}

fn messages(format: Format, turns: &[Turn], first: usize) -> Vec<Vec<Body>> {
    let one = |(nth, (question, tools, answer)): (usize, &Turn)| {
        let nth = nth + first;
        let mut bodies = vec![user(&format!("question {nth} {}", "字 word ".repeat(*question)))];
        if !tools.is_empty() {
            // The same ids in every turn, as providers give them.
            let ids: Vec<String> = (0..tools.len()).map(|at| format!("call_{at}")).collect();
            bodies.extend(calls(format, &ids.iter().map(|id| (id.as_str(), "x")).collect::<Vec<_>>()));
            let texts: Vec<String> =
                tools.iter().map(|tokens| long(&format!("result {nth}"), *tokens)).collect();
            let pairs: Vec<(&str, &str)> =
                ids.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
            bodies.extend(results(format, &pairs));
        }
        bodies.push(assistant(format!("answer {nth} {}", "word 👩‍👩‍👧 ".repeat(*answer)).trim()));
        bodies
    };
    turns.iter().enumerate().map(one).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s1_5_no_cut_parts_a_call_from_its_results(
        format in format(), turns in turns(8), missing in 0..6_usize, keep in 0..40_usize, by in 0..3,
    ) {
        let mut bodies = messages(format, &turns, 0).concat();
        bodies.truncate(bodies.len().saturating_sub(missing));
        let values: Vec<_> = bodies.iter().map(|body| wire::parse(0, body).unwrap()).collect();
        let read: Vec<_> = values.iter().map(|value| format.wire().read(0, value).unwrap()).collect();
        let tokens: Vec<usize> = read.iter().map(|message| Estimator::Chars4.message(message)).collect();
        let keep = match by {
            0 => Keep::Messages(keep),
            1 => Keep::Tokens(keep * 20),
            _ => Keep::Fraction(keep as f64 / 40.0),
        };
        let cut = cut(&read, &tokens, keep, |_| false);
        let exchanges = Exchanges::of(&read);
        prop_assert!(cut.boundary <= cut.requested && cut.requested <= read.len());
        for (call, result) in exchanges.pairs() {
            prop_assert!((*call < cut.boundary) == (*result < cut.boundary), "{call} and {result} at {}", cut.boundary);
        }
        // Calls whose results may still come are not behind the cut either.
        let last = read.iter().rposition(|message| message.results().next().is_none());
        if let Some(open) = last.filter(|last| exchanges.unanswered.contains(last)) {
            prop_assert!(cut.boundary <= open);
        }
    }

    #[test]
    fn s5_16_a_compaction_that_succeeds_makes_the_context_smaller_and_keeps_it_valid(
        format in format(), turns in turns(10), keep in 1..12_usize, words in 1..120_usize, fallback in 0..2_usize, counts in any::<bool>(),
        preset in prop::sample::select(vec!["offload", "checkpoint"]), rounds in 2..5_usize,
    ) {
        let options = json!({
            "preset": preset, "keep": { "messages": keep },
            "summarize": { "attempts": 1, "fallback": (["none", "extractive"][fallback]) },
            "tokenCounter": counts.then_some(true),
        });
        let mut harness = Harness::new(options);
        harness.host.count = Box::new(|_, body| context_compactor_core::step::Event::Number(body.len() as f64 / 9.0));
        harness.host.summarise = Box::new(move |_, _| summary(&"Something was done about it. ".repeat(words)));
        for round in 0..rounds {
            harness.append(&messages(format, &turns, round * turns.len()).concat());
            let (before, tokens) = (harness.context(), harness.session.usage().unwrap().used_tokens);
            let result = harness.compact();
            let after = harness.context();
            prop_assert_eq!(result.previous_tokens, tokens);
            prop_assert_eq!(result.current_tokens, harness.session.usage().unwrap().used_tokens);
            if result.summary.is_some() {
                prop_assert!(result.success && result.current_tokens < result.previous_tokens);
            } else if result.applied_edits.is_empty() {
                prop_assert_eq!(after.clone(), before);
            }
            assert_valid(format, &after);
            prop_assert_eq!(result.ledger.entries().len(), harness.stored().messages.len());
        }
    }

    #[test]
    fn a_plan_is_what_the_next_prepare_does(
        format in format(), turns in turns(14), threshold in 100..3_000_usize, gain in 1..800_usize, cooldown in 0..4_usize,
        keep in 1..8_usize, ratio in 0..=10_u8, fails in any::<bool>(),
    ) {
        let options = json!({
            "contextWindow": 30_000, "compactAt": { "tokens": threshold }, "keep": { "messages": keep },
            "summarize": { "attempts": 1 },
            "presetOptions": { "compactTriggerThreshold": gain, "compactCooldownSteps": cooldown, "scanRatio": f64::from(ratio) / 10.0 },
        });
        let mut harness = Harness::new(options);
        if fails {
            harness.host.summarise = Box::new(|_, _| thrown("no", None));
        }
        for bodies in messages(format, &turns, 0) {
            harness.append(&bodies);
            let (context, seen) = (harness.context(), harness.host.seen.requests.len());
            let plan = harness.host.run(harness.session.plan()).unwrap();
            prop_assert_eq!(harness.context(), context);
            prop_assert_eq!(harness.host.seen.requests.len(), seen);
            let prepared = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap();
            let planned: Vec<_> = plan.edits.iter().map(|rung| (rung.kind, rung.indices.clone())).collect();
            let mut done: Vec<_> = prepared.edits.iter().map(|edit| (edit.kind, edit.indices.clone())).collect();
            if let Some(result) = prepared.result.filter(|result| !result.success) {
                // What a summary could not do was planned all the same.
                prop_assert!(result.error.is_some());
                done.extend(planned.last().cloned());
            }
            prop_assert_eq!(planned, done, "{}", plan.reason);
            prop_assert_eq!(plan.will_compact, !plan.edits.is_empty());
            let items = context_compactor_core::session::audit::look(&harness.session).unwrap();
            prop_assert!(conserve(&items.context, harness.session.explain().unwrap().len()).is_ok());
        }
    }
}
