//! Prices: when a session acts by them, what is noted, and what plans tell.

use crate::support::*;
use context_compactor_core::compaction::Plan;
use context_compactor_core::policy::Settings;
use context_compactor_store_tests::conversation::{Body, assistant, user};
use serde_json::{Value, json};

/// A session that acts by the prices, from 16,000 tokens on.
fn priced(over: Value) -> Harness {
    let mut options = json!({
        "contextWindow": 64_000, "economy": true, "keep": { "messages": 2 },
        "presetOptions": { "targetTokens": 500, "compactCooldownSteps": 0, "minChars": 1_000_000 },
    });
    merge(&mut options, &over);
    Harness::new(options)
}

/// Appends a question and an answer of 1,000 tokens each and prepares, `wait` ms after the last, until the session acts;
/// the tokens of the prompt then, and how many steps it took.
fn acts(harness: &mut Harness, wait: u64) -> (usize, usize) {
    for step in 1..=180 {
        harness.append(&[user(&long("question", 500)), assistant(&long("answer", 500))]);
        harness.host.now += wait;
        if let Some(result) = harness.prepare().result {
            assert!(result.success, "{:?}", result.error);
            return (result.previous_tokens, step);
        }
    }
    panic!("it never acted");
}

fn plan(harness: &mut Harness) -> Plan {
    harness.host.run(harness.session.plan()).unwrap()
}

#[test]
fn a_session_acts_when_the_rent_is_the_price_and_again_later() {
    let mut harness = priced(json!({}));
    let (tokens, first) = acts(&mut harness, 1_000);
    assert!((8_000..40_000).contains(&tokens), "{tokens}: long before the window ends");
    let (_, second) = acts(&mut harness, 1_000);
    assert!(second >= first / 2, "it does not thrash: {first}, {second}");
    // Without the option nothing happens there.
    let mut plain = priced(json!({ "economy": null, "contextWindow": 200_000 }));
    for _ in 0..first + second {
        plain.append(&[user(&long("question", 500)), assistant(&long("answer", 500))]);
        assert!(plain.prepare().result.is_none());
    }
}

#[test]
fn w2_w4_balanced_acts_by_the_window_and_by_the_prices_where_the_option_says_so() {
    let rule = |options: Value| {
        let settings = Settings::read(&serde_json::from_str(&options.to_string()).unwrap()).unwrap();
        assert_eq!(settings.preset.name, "balanced", "the default");
        (settings.price_rule.map(|rule| rule.floor), settings.threshold.tokens, settings.leaves)
    };
    let window = 200_000;
    assert_eq!(rule(json!({ "contextWindow": window })), (None, 100_000, Some(60_000)));
    for at in [json!({ "tokens": 30_000 }), json!({ "fraction": 0.15 })] {
        let options = json!({ "contextWindow": window, "compactAt": at });
        assert_eq!(rule(options), (None, 30_000, Some(18_000)), "it leaves less than that at which it acts");
    }
    let economy = json!({ "contextWindow": window, "economy": true });
    assert_eq!(rule(economy), (Some(50_000), 100_000, Some(20_000)));
    let both = json!({ "contextWindow": window, "compactAt": { "tokens": 30_000 }, "economy": true });
    assert_eq!(rule(both), (Some(30_000), 30_000, Some(12_000)));
    let kept = json!({ "contextWindow": window, "keep": { "tokens": 5_000 } });
    assert_eq!(rule(kept), (None, 100_000, None), "the option says what is kept");
    // A model that costs nothing: the prices say nothing.
    let free = json!({ "input": 0, "output": 0 });
    let free = json!({ "contextWindow": window, "economy": true, "prices": free });
    assert_eq!(rule(free), (None, 100_000, Some(60_000)));
}

#[test]
fn the_cheaper_the_cache_the_later_it_acts() {
    let with = |read: f64| {
        let prices = json!({ "input": 3, "output": 15, "cacheRead": read, "cacheWrite": 3.75 });
        acts(&mut priced(json!({ "prices": prices })), 1_000).0
    };
    let (dear, cheap) = (with(1.5), with(0.075));
    assert!(dear < cheap, "{dear} {cheap}");
}

#[test]
fn the_catalogue_has_prices_and_the_app_knows_better() {
    let read =
        |options: Value| Settings::read(&serde_json::from_str(&options.to_string()).unwrap()).unwrap().prices;
    let facts = json!({ "contextWindow": 200_000, "prices": { "input": 2, "output": 10, "tiers": [
        { "above": 200_000, "input": 4, "output": 15 }
    ] } });
    let known = read(json!({ "facts": facts })).unwrap();
    assert_eq!((known.at(200_000).input, known.at(200_001).output), (2_000_000, 15_000_000));
    assert_eq!(known.base.cache_read, 2_000_000, "no cache: all input costs the same");
    assert_eq!(known.ttl_ms, 300_000);
    let own = json!({ "input": 1, "output": 2, "cacheRead": 0.1, "ttlMs": 3_600_000 });
    let own = read(json!({ "facts": facts, "prices": own })).unwrap();
    assert_eq!((own.base.cache_read, own.ttl_ms), (100_000, 3_600_000));
    assert_eq!(read(json!({})), None);
}

#[test]
fn prices_out_of_their_bounds_are_refused_by_name() {
    for (options, field) in [
        (json!({ "prices": { "input": 1 } }), "prices.output"),
        (json!({ "prices": { "input": -1, "output": 1 } }), "prices.input"),
        (
            json!({ "prices": { "input": 1, "output": 1, "tiers": [{ "input": 1, "output": 1 }] } }),
            "prices.tiers[0].above",
        ),
        (json!({ "prices": { "input": 1, "output": 1, "ttlMs": -1 } }), "prices.ttlMs"),
        (json!({ "prices": 3 }), "prices"),
        (json!({ "economy": 1 }), "economy"),
    ] {
        let error = Settings::read(&serde_json::from_str(&options.to_string()).unwrap()).unwrap_err();
        assert_eq!(error.field.as_deref(), Some(field), "{options}");
    }
}

#[test]
fn the_window_and_a_threshold_end_the_wait() {
    let free = json!({ "input": 3, "output": 15, "cacheRead": 0, "cacheWrite": 3.75 });
    let (tokens, _) = acts(&mut priced(json!({ "prices": free, "compactAt": { "tokens": 30_000 } })), 1_000);
    assert!((30_000..31_100).contains(&tokens), "nothing is paid for reading: {tokens}");
    let small = json!({ "prices": free, "contextWindow": 20_000, "maxOutputTokens": 1_000 });
    let (tokens, _) = acts(&mut priced(small), 1_000);
    assert!((15_000..16_100).contains(&tokens), "{tokens}");
}

#[test]
fn a_plan_says_whether_the_price_or_the_size_decides() {
    let mut harness = priced(json!({}));
    harness.append(&[user(&long("question", 500)), assistant(&long("answer", 500))]);
    let early = plan(&mut harness);
    assert!(!early.will_compact && early.reason.contains("does not pay yet"), "{}", early.reason);
    let due = loop {
        harness.append(&[user(&long("question", 500)), assistant(&long("answer", 500))]);
        harness.host.now += 1_000;
        let plan = plan(&mut harness);
        if plan.will_compact {
            break plan;
        }
        harness.prepare();
    };
    assert!(due.tokens < due.limit && due.reason.contains("what a compaction costs"), "{}", due.reason);
    let mut full = priced(json!({ "economy": true, "compactAt": { "tokens": 900 } }));
    full.append(&[
        user(&long("question", 500)),
        assistant(&long("answer", 500)),
        user("and?"),
        assistant("yes"),
    ]);
    let full = plan(&mut full);
    assert!(full.reason.contains("of 900 tokens"), "{}", full.reason);
}

#[test]
fn a_cache_that_has_gone_cold_makes_it_act_sooner() {
    let warm = acts(&mut priced(json!({})), 1_000).0;
    let cold = acts(&mut priced(json!({})), 600_000).0;
    assert!(cold < warm, "{cold} {warm}");
}

#[test]
fn clearing_does_not_end_the_rent() {
    // What is cleared at each step frees little; were the rent to begin anew with it, no summary would ever come.
    let steps = |clear: Value| {
        // Writing to the cache costs no more than reading it: clearing pays at once.
        let prices = json!({ "input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 0.3 });
        let mut harness = priced(json!({ "preset": "offload", "clear": &clear, "prices": prices }));
        let mut cleared = 0;
        for step in 1..=180 {
            harness.append(&turn(FORMATS[0], step, 150));
            harness.append(&[user(&long("question", 400)), assistant(&long("answer", 400))]);
            harness.host.now += 1_000;
            let prepared = harness.prepare();
            if prepared.result.is_some() {
                return (step, cleared);
            }
            cleared += prepared.edits.iter().filter(|edit| edit.kind == "clear").count();
        }
        panic!("it never acted: {clear}");
    };
    let (alone, none) = steps(json!(false));
    let (beside, cleared) = steps(json!({ "when": "break-even", "minTokens": 100 }));
    assert!(none == 0 && cleared > 3, "{cleared} {alone} {beside}");
    assert!(beside >= alone && beside <= alone + alone / 2, "{alone} {beside}");
}

#[test]
fn what_a_summary_will_soon_take_is_not_cleared_before_it() {
    // By the calls so far alone, older results would be cleared, and what is behind them written to the cache again, just
    // before the summary.
    let mut harness = priced(json!({ "preset": "offload", "clear": { "when": "break-even" } }));
    let acted = (0..20).find(|nth| {
        let bodies =
            if *nth < 8 { turn(FORMATS[0], *nth, 2_200) } else { vec![user("q"), assistant("done")] };
        harness.append(&bodies);
        harness.host.now += 1_000;
        let prepared = harness.prepare();
        assert!(prepared.result.is_some() || prepared.edits.is_empty(), "{nth}: {:?}", prepared.edits);
        prepared.result.is_some()
    });
    assert!(acted.is_some_and(|nth| nth > 8), "{acted:?}");
}

#[test]
fn what_was_paid_is_kept_with_the_session_and_losing_it_costs_no_message() {
    let mut harness = priced(json!({}));
    let (_, steps) = acts(&mut harness, 1_000);
    let mut harness = priced(json!({}));
    for step in 1..=steps {
        harness.append(&[user(&long("question", 500)), assistant(&long("answer", 500))]);
        harness.host.now += 1_000;
        let prepared = harness.prepare();
        assert_eq!(prepared.result.is_some(), step == steps, "{step} of {steps}");
        // Another process goes on: it has what the last append noted.
        let options = json!({
            "contextWindow": 64_000, "economy": true, "keep": { "messages": 2 },
            "presetOptions": { "targetTokens": 500, "compactCooldownSteps": 0, "minChars": 1_000_000 },
        });
        if step == steps / 2 {
            harness.append(&[user("one more")]);
            let now = harness.host.now;
            harness = Harness::over(harness.memory, "b", options);
            harness.host.now = now;
        }
    }
    assert!(!harness.stored().messages.is_empty());
}

#[test]
fn a_prepare_that_is_made_again_is_paid_once() {
    let mut harness = priced(json!({}));
    let mut again = priced(json!({}));
    let (_, steps) = acts(&mut harness, 1_000);
    for step in 1..=steps {
        again.append(&[user(&long("question", 500)), assistant(&long("answer", 500))]);
        again.host.now += 1_000;
        let acted = again.prepare().result.is_some();
        assert_eq!(acted, step == steps, "{step} of {steps}");
        if !acted {
            assert!(again.prepare().result.is_none(), "a retry of step {step}");
        }
    }
}

#[test]
fn plans_tell_the_cost_where_prices_are_known() {
    let prices = json!({ "input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75 });
    let mut harness = priced(json!({ "prices": prices }));
    harness.append(&talk(2, 500));
    harness.prepare();
    let early = plan(&mut harness).cost.unwrap();
    assert!(early.now > early.later && early.later > 0.0 && early.currency == "USD", "{early:?}");
    let (mut harness, mut last) = (priced(json!({ "prices": prices })), None);
    for _ in 0..180 {
        harness.append(&talk(1, 500));
        let due = plan(&mut harness);
        let acted = harness.prepare().result.is_some();
        assert_eq!(due.will_compact, acted, "the plan says what prepare does");
        last = due.cost;
        if acted {
            break;
        }
    }
    let due = last.unwrap();
    assert!(due.now < due.later, "{due:?}");
    // W4: what it loses is told, and is less of 100 calls where they are many.
    assert!(early.needs > due.needs && due.needs > 0.0, "{early:?} {due:?}");
    assert!(plan(&mut priced(json!({}))).cost.is_none(), "no prices, no cost");
}

#[test]
fn f39_where_the_user_has_the_word_it_acts_sooner() {
    let acts = |roles: [fn(&str) -> Body; 2]| {
        let mut harness = priced(json!({}));
        let acted = (0..400).find(|nth| {
            harness.append(&[roles[nth % 2](&long("message", 300))]);
            harness.host.now += 1_000;
            nth % 2 == 1 && harness.prepare().result.is_some()
        });
        acted.unwrap()
    };
    let (of_user, of_model) = (acts([assistant, user]), acts([user, assistant]));
    assert!(of_user < of_model, "{of_user} {of_model}");
}

#[test]
fn f39_a_plan_counts_with_a_summary_of_at_most_half_of_what_it_replaces() {
    let prices = json!({ "input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75 });
    let now = |target: usize| {
        let offload = json!({ "targetTokens": target, "minChars": 1_000_000 });
        let mut harness = priced(json!({ "prices": prices, "economy": null, "presetOptions": offload }));
        harness.append(&talk(10, 200));
        let plan = plan(&mut harness);
        assert!(!plan.will_compact && (3_000..6_000).contains(&plan.tokens), "{plan:?}");
        plan.cost.unwrap().now
    };
    let longest = now(100_000);
    for (target, is_longest) in [(50_000, true), (4_000, true), (1_000, false), (100, false)] {
        assert_eq!(now(target) == longest, is_longest, "{target}");
        assert!(now(target) <= longest, "{target}");
    }
}
