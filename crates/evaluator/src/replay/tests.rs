//! Replays of conversations that are small enough to price by hand.

use super::needs::{Memory, Need, Part};
use super::optimum::{Search, optimum};
use super::policy::Clearing;
use super::simulation::{Context, SUMMARY};
use super::trace::Call;
use super::{POLICIES, Policy, SHEETS, Trace, billed, replay, statistics};
use crate::transcript::{Answer, Billed, Call as ToolCall, Transcript, Turn};
use context_compactor_core::message::Role;
use context_compactor_core::policy::cost::{Cost, PriceTier, Prices, Rates, Rule};

/// Whole prices: 10 for input and writes, 1 for reads, 50 for output.
fn prices() -> Prices {
    let base = Rates { input: 10, output: 50, cache_read: 1, cache_write: 10 };
    Prices { base, tiers: Vec::new(), ttl_ms: 300_000 }
}

fn turn(role: Role, text: &str, tokens: usize) -> Turn {
    let (calls, results, reasoning) = (Vec::new(), Vec::new(), String::new());
    Turn { role, text: text.into(), reasoning, calls, results, tokens }
}

fn result(text: &str, tokens: usize) -> Turn {
    let answer = Answer { call_id: "c".into(), text: text.into(), is_error: false };
    Turn { results: vec![answer], ..turn(Role::Tool, "", tokens) }
}

/// `calls` calls, each with an answer of 100 tokens behind `tokens` tokens of a user.
fn plain(calls: usize, tokens: usize) -> Trace {
    let messages =
        (0..calls).flat_map(|_| [turn(Role::User, "go on", tokens), turn(Role::Assistant, "done", 100)]);
    Trace::of(&Transcript { messages: messages.collect(), ..Transcript::default() })
}

#[test]
fn without_compaction_each_call_reads_what_the_one_before_left_and_writes_the_rest() {
    let trace = plain(3, 1_000);
    let stable = trace.stable as Cost;
    let prompts = [stable + 1_000, stable + 2_100, stable + 3_200];
    let new = prompts[2] * 10;
    let read = prompts[0] + prompts[1];
    let replayed = replay(&trace, &Policy::None, &prices());
    assert_eq!(replayed.cost, new + read + 3 * 100 * 50);
    assert_eq!((replayed.compactions, replayed.broken, replayed.largest), (0, 0, prompts[2] as usize));
}

#[test]
fn a_compaction_reads_writes_and_begins_with_the_front() {
    let trace = plain(3, 1_000);
    let stable = trace.stable as Cost;
    let policy = Policy::at(trace.stable + 3_000, 0);
    let replayed = replay(&trace, &policy, &prices());
    assert_eq!(replayed.compactions, 1);
    // The exchange under way stays: a message of each.
    let first = stable + 1_000;
    let before = first * 10 + 100 * 50 + first + 1_100 * 10 + 100 * 50;
    let kept = 100 + 1_000;
    // Asked at the end of the prompt: what was cached is read from there, the new message and what is asked are written.
    let summary = stable + 2_100 + (1_100 + 1_000) * 10 + SUMMARY as Cost * 50;
    let next = stable + (SUMMARY as Cost + kept) * 10 + 100 * 50;
    assert_eq!(replayed.cost, before + summary + next);
}

#[test]
fn what_the_model_copies_from_what_is_gone_is_fetched_again_once() {
    let long =
        "one two three four five six seven eight nine ten eleven twelve in crates/core/src/plan/rule.rs";
    let mut messages =
        vec![turn(Role::User, "read it", 10), turn(Role::Assistant, "yes", 10), result(long, 4_000)];
    messages.extend([turn(Role::Assistant, "read", 10), turn(Role::User, "what did it say?", 10)]);
    messages.extend([turn(Role::Assistant, "well", 10), turn(Role::User, "and now?", 10)]);
    messages.extend([turn(Role::Assistant, long, 40), turn(Role::User, "again", 10)]);
    messages.push(turn(Role::Assistant, long, 40));
    let trace = Trace::of(&Transcript { messages, ..Transcript::default() });
    let needs: Vec<usize> = trace.calls[3].needs.iter().map(|need| need.source).collect();
    assert_eq!(needs, [2]);
    assert!(trace.calls[3].needs[0].passage);
    assert_eq!(trace.calls[4].needs[0].source, 7, "by then it said so itself");
    let prices = prices();
    let mut whole = Context::new(&trace, &prices);
    (0..trace.calls.len()).for_each(|nth| whole.step(nth));
    assert_eq!(whole.done.faults, 0);
    let mut compacted = Context::after(&trace, &prices, 3, trace.calls[3].exchange);
    (3..trace.calls.len()).for_each(|nth| compacted.step(nth));
    assert_eq!((compacted.done.faults, compacted.done.fetched), (1, 4_000));
}

#[test]
fn names_are_needed_where_nobody_can_guess_them() {
    let mut memory = Memory::default();
    memory.hear(
        0,
        &result("see src/app/main.rs, https://example.com/a and booking 8F3A21C, or just parser", 10),
    );
    let call = ToolCall {
        id: "c".into(),
        name: "read".into(),
        arguments: "{\"path\":\"/project/src/app/main.rs\"}".into(),
    };
    let asks = Turn { calls: vec![call], ..turn(Role::Assistant, "the parser of 8F3A21C", 10) };
    let needs = memory.needs(&asks);
    assert_eq!((needs.len(), needs[0].names.len(), needs[0].passage), (1, 2, false));
    assert_eq!(memory.salient(10).len(), 3);
}

/// The least cost by trying every set of compactions with every tail.
fn exhaustive(trace: &Trace, prices: &Prices) -> Cost {
    fn go_on(trace: &Trace, context: Context<'_>, nth: usize) -> Cost {
        let Some(call) = trace.calls.get(nth) else { return context.done.cost };
        let mut context = context;
        if call.is_cold {
            context.forget();
        }
        let tails = super::optimum::TAILS.iter().filter(|_| nth > 0);
        let actions = tails.map(|tail| super::policy::Action::Compact { tail: *tail });
        let actions = std::iter::once(super::policy::Action::None).chain(actions);
        let cost = |action| {
            let mut context = context.clone();
            context.act(nth, &action);
            context.step(nth);
            go_on(trace, context, nth + 1)
        };
        actions.map(cost).min().unwrap_or(Cost::MAX)
    }
    go_on(trace, Context::new(trace, prices), 0)
}

#[test]
fn the_optimum_is_what_trying_everything_finds() {
    for (tokens, growth) in [(30_000, 1), (4_000, 3), (500, 1)] {
        let mut trace = plain(6, tokens);
        for (nth, call) in trace.calls.iter_mut().enumerate() {
            call.is_cold = nth == 4;
            call.output *= growth;
        }
        for sheet in SHEETS.iter().take(3) {
            let prices = sheet.prices();
            assert_eq!(optimum(&trace, &prices), exhaustive(&trace, &prices), "{tokens} {}", sheet.name);
        }
    }
}

/// A conversation at random: sizes, pauses, and names that are needed again.
fn drawn(random: &mut fastrand::Rng, calls: usize) -> Trace {
    let most = [400, 4_000, 30_000][random.usize(..3)];
    let mut trace = plain(calls, 10);
    for size in trace.sizes.iter_mut().step_by(2) {
        *size = random.usize(10..most);
    }
    trace.stable = random.usize(..20_000);
    trace.shared = random.usize(..=trace.stable);
    trace.before =
        trace.sizes.iter().scan(0, |sum, size| Some(std::mem::replace(sum, *sum + size))).collect();
    trace.before.push(trace.sizes.iter().sum());
    for nth in 1..calls {
        let call = &mut trace.calls[nth];
        call.output = random.usize(10..2_000);
        call.is_cold = random.usize(..6) == 0;
        call.is_turn = random.bool();
        call.salient = (0..3).filter(|_| random.bool()).collect();
        for source in 0..call.upto {
            if random.usize(..8) == 0 {
                let names = vec![random.u32(..4)];
                call.needs.push(Need { source, part: Part::Said, passage: random.bool(), names });
            }
        }
    }
    trace
}

/// A sheet with a break that these conversations reach.
fn broken_at(above: usize) -> Prices {
    let rates = Rates { input: 20, output: 75, cache_read: 2, cache_write: 20 };
    let tiers = vec![PriceTier { above, rates }];
    Prices { tiers, ..prices() }
}

#[test]
fn w17_what_is_left_out_of_the_search_is_never_the_optimum() {
    let mut random = fastrand::Rng::with_seed(17);
    for nth in 0..60 {
        let trace = drawn(&mut random, 6);
        for prices in [prices(), SHEETS[0].prices(), SHEETS[2].prices(), broken_at(30_000)] {
            assert_eq!(optimum(&trace, &prices), exhaustive(&trace, &prices), "{nth}");
        }
    }
    for nth in 0..20 {
        let trace = drawn(&mut random, 60);
        for prices in [SHEETS[nth % SHEETS.len()].prices(), broken_at(60_000)] {
            let mut whole = Search::unbounded(&trace, &prices);
            while !whole.is_done() {
                whole.advance();
            }
            assert_eq!(optimum(&trace, &prices), whole.least, "{nth}");
        }
    }
}

#[test]
fn the_preset_clears_in_batches_what_was_read_often_and_reads_it_again_when_it_is_copied() {
    let long =
        "one two three four five six seven eight nine ten eleven twelve in crates/core/src/plan/rule.rs";
    let written = format!("{{\"path\":\"a.rs\",\"text\":\"{}\"}}", "fn main() ".repeat(800));
    let asks = |nth: usize| {
        let input = if nth == 0 { written.clone() } else { "{}".into() };
        let call = ToolCall { id: format!("c{nth}"), name: "write".into(), arguments: input };
        let answer =
            Answer { call_id: format!("c{nth}"), text: format!("{long} ").repeat(150), is_error: false };
        let tokens = if nth == 0 { 4_000 } else { 20 };
        [
            Turn { calls: vec![call], ..turn(Role::Assistant, "", tokens) },
            Turn { results: vec![answer], ..turn(Role::Tool, "", 3_000) },
        ]
    };
    let mut messages = vec![turn(Role::User, "go on", 20)];
    messages.extend((0..4).flat_map(asks));
    let quiet = (0..300).flat_map(|_| [turn(Role::Assistant, "done", 2), turn(Role::User, "go on", 2)]);
    messages.extend(quiet);
    let trace = Trace::of(&Transcript { messages, ..Transcript::default() });
    assert_eq!((trace.answers.len(), trace.answers[0].call, trace.answers[0].message), (4, 1, 2));
    let clears: Vec<_> = trace.answers[0].clears(1_000, true).map(|(at, part, _)| (at, part)).collect();
    assert_eq!(clears, [(2, Part::Result), (1, Part::Input)]);
    assert_eq!(trace.answers[1].clears(1_000, true).count(), 1, "a short input stays");
    assert_eq!(trace.answers[0].clears(5_000, true).count(), 0);
    let prices = prices();
    let (_, economy) = POLICIES.into_iter().find(|(name, _)| *name == "balanced, economy").unwrap();
    // No summary: it would free too little. The oldest result and its input go, once.
    let replayed = replay(&trace, &economy, &prices);
    assert_eq!((replayed.compactions, replayed.faults, replayed.broken), (1, 0, 0), "{replayed:?}");
    assert!(replayed.cost < replay(&trace, &Policy::None, &prices).cost);
    // Whoever copies from what was cleared fetches it again.
    let mut context = Context::new(&trace, &prices);
    let before = context.tokens(&trace.calls[4]);
    let parts: Vec<_> = trace.answers[3].clears(1_000, true).collect();
    let freed = parts[0].2;
    context.act(4, &super::policy::Action::Clear { parts });
    assert_eq!((context.tokens(&trace.calls[4]), context.cached), (before - freed, trace.shared));
    let copied = |source, part| Call {
        needs: vec![Need { source, part, passage: true, names: Vec::new() }],
        ..trace.calls[4].clone()
    };
    for (part, faults) in [(Part::Said, 0), (Part::Result, 1)] {
        let mut again = trace.clone();
        again.calls[4] = copied(8, part);
        let mut cleared = Context::new(&again, &prices);
        cleared.cleared.clone_from(&context.cleared);
        cleared.step(4);
        assert_eq!(cleared.done.faults, faults, "{part:?}");
    }
}

#[test]
fn no_policy_of_summaries_beats_the_optimum_and_the_rule_is_near_it() {
    let trace = plain(120, 1_500);
    for sheet in &SHEETS {
        let prices = sheet.prices();
        let best = optimum(&trace, &prices) as f64;
        for (name, policy) in POLICIES {
            let cost = replay(&trace, &policy, &prices).cost as f64;
            match policy {
                Policy::RentOrBuy { tail: 0, .. } => {
                    assert!(cost >= best && cost <= best * 1.12, "{} {}", sheet.name, cost / best);
                }
                Policy::None | Policy::At { clearing: None, .. } => {
                    assert!(cost >= best, "{name} {}", sheet.name)
                }
                _ => {}
            }
        }
    }
}

#[test]
fn w5_the_preset_makes_no_summary_that_frees_little_below_the_hard_limit() {
    // The exchange stays: a summary of what is before it frees that less 1,500.
    let summaries = |policy: Policy, before: usize, exchange: usize| {
        let mut trace = plain(3, 0);
        (trace.stable, trace.shared) = (0, 0);
        trace.sizes = vec![before, 0, 0, 0, exchange, 100];
        trace.before = (0..=6).map(|at| trace.sizes[..at].iter().sum()).collect();
        replay(&trace, &policy, &prices()).compactions
    };
    let ours = Policy::At { at: 100_000, tail: 55_000, clearing: Some(Clearing::BALANCED) };
    assert_eq!([20_000, 23_000].map(|before| summaries(ours, before, 90_000)), [0, 1]);
    // Above the hard limit of 183,616 tokens whatever frees something.
    assert_eq!([3_000, 4_000].map(|before| summaries(ours, before, 180_000)), [0, 1]);
    let peer = Policy::at(80_000, 0);
    assert_eq!([0, 1_500, 1_501].map(|before| summaries(peer, before, 90_000)), [0, 0, 1]);
}

#[test]
fn g7_between_compactions_the_prefix_never_changes() {
    for trace in [plain(60, 3_000), plain(10, 40_000)] {
        for (name, policy) in POLICIES {
            assert_eq!(replay(&trace, &policy, &SHEETS[0].prices()).broken, 0, "{name}");
        }
    }
}

#[test]
fn the_rule_stays_below_its_ceiling() {
    let policy = Policy::RentOrBuy {
        rule: Rule { first: 1_000_000, ..Rule::TUNED },
        tail: 0,
        ceiling: 50_000,
        clearing: None,
    };
    let replayed = replay(&plain(100, 2_000), &policy, &SHEETS[0].prices());
    assert!(replayed.compactions > 0 && replayed.largest < 50_000 + 2_100, "{replayed:?}");
}

#[test]
fn sizes_are_those_of_the_provider_where_it_reported_them() {
    let messages = (0..3).flat_map(|_| [turn(Role::User, "go on", 100), turn(Role::Assistant, "done", 100)]);
    let billed =
        |msg, input, cache_read, cache_write| Billed { msg, input, cache_read, cache_write, output: 7 };
    let billed = vec![
        billed(1, 1, 3_000, 2_000),
        // The same call, told twice, and one that the cache missed.
        billed(2, 1, 3_000, 2_000),
        billed(3, 1, 5_000, 399),
        billed(5, 1, 0, 6_000),
    ];
    let transcript = Transcript { messages: messages.collect(), billed, ..Transcript::default() };
    let trace = Trace::of(&transcript);
    assert_eq!(trace.calls.iter().map(|call| call.upto).collect::<Vec<_>>(), [1, 3, 5]);
    assert_eq!(trace.calls.iter().map(|call: &Call| call.is_cold).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!((trace.between(1, 3), trace.between(3, 5), trace.shared), (398, 600, 3_000));
    assert_eq!(trace.stable + trace.between(0, 1), 5_001);
    let check = billed::check(&transcript, &prices()).unwrap();
    assert_eq!((check.calls, check.misses), (3, 1));
    assert_eq!(check.billed, 3 * 10 + 8_000 + 8_399 * 10 + 3 * 7 * 50);
    assert!((check.simulated as f64 / check.billed as f64 - 1.0).abs() < 0.3);
}

#[test]
fn means_and_their_ranges() {
    assert!((statistics::geometric_mean(&[1.0, 4.0]) - 2.0).abs() < 1e-12);
    assert_eq!((statistics::median(&[3.0, 1.0, 2.0]), statistics::largest(&[1.0, 3.0])), (2.0, 3.0));
    let values: Vec<f64> = (0..50).map(|nth| 1.0 + f64::from(nth) / 50.0).collect();
    let (low, high) = statistics::bootstrap(&values);
    let mean = statistics::geometric_mean(&values);
    assert!(low < mean && mean < high && high - low < 0.2, "{low} {mean} {high}");
}
