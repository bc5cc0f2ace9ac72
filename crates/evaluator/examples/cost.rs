//! What policies of compaction cost on recorded sessions, as JSON: `npm run bench -- cost`.
//!
//! The engine's rule was tuned on the even ones of the sessions, by their ids; what is told is about the odd ones.

use context_compactor_core::policy::cost::Prices;
use context_compactor_core::tokens::Estimator;
use context_compactor_evaluator::replay::statistics::{bootstrap, geometric_mean, largest, median};
use context_compactor_evaluator::replay::{
    POLICIES, Policy, SHEETS, Sheet, Trace, billed, optimum, replay, simulation,
};
use context_compactor_evaluator::transcript::Transcript;
use context_compactor_store_tests::recorded;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Where the sheet of the models of `codex` is.
const GPT_5: usize = 3;
/// Recordings, and the sheet that they are billed by.
const RECORDINGS: [(&str, usize); 5] = [
    ("anthropic/claude_code_entire_cli", 0),
    ("anthropic/claude_code_entirecontext", 0),
    ("anthropic/pi_mono", 0),
    ("responses/codex_entirecontext", GPT_5),
    ("openai/tau_composite_long", 0),
];
/// Sessions whose whole history is smaller have little to gain.
const LEAST_TOKENS: usize = 100_000;
/// So many calls after a compaction are looked at for what was fetched again.
const AFTER: usize = 20;
/// Tokens that the agents themselves kept, about.
const KEPT: usize = 5_000;

/// The sessions' costs under one sheet.
struct Priced {
    sheet: &'static Sheet,
    prices: Prices,
    best: Vec<f64>,
    none: Vec<f64>,
}

fn main() {
    let mut checks: BTreeMap<&str, Vec<billed::Check>> = BTreeMap::new();
    let mut traces = Vec::new();
    for (name, sheet) in RECORDINGS {
        for line in recorded::lines(name) {
            let Ok(record) = recorded::record(&line) else { continue };
            let bodies = record.bodies.iter().map(|body| &**body);
            let Ok(mut transcript) = Transcript::read(&line, record.format, bodies, Estimator::default())
            else {
                continue;
            };
            transcript.source = name.into();
            if name.starts_with("responses") {
                // There what was read from the cache is told as a part of the input.
                for billed in &mut transcript.billed {
                    billed.input = billed.input.saturating_sub(billed.cache_read);
                }
            }
            let check = billed::check(&transcript, &SHEETS[sheet].prices());
            checks.entry(name).or_default().extend(check);
            let trace = Trace::of(&transcript);
            if trace.largest() >= LEAST_TOKENS {
                traces.push(trace);
            }
        }
    }
    if traces.is_empty() {
        println!("null");
        return;
    }
    traces.sort_by(|one, other| one.id.cmp(&other.id));
    let best = optima(&traces);
    let half = |odd: usize| {
        let of: Vec<(&Trace, &[f64; SHEETS.len()])> = traces.iter().zip(&best).skip(odd).step_by(2).collect();
        rows(&of, odd == 0)
    };
    let report = json!({
        "sessions": traces.len(),
        "billed": checks.iter().filter_map(|(name, checks)| billed_row(name, checks)).collect::<Vec<_>>(),
        "fetched": fetched(&traces),
        "tuned": half(0),
        "held out": half(1),
    });
    println!("{report:#}");
}

/// The optimum of every session under every sheet. That takes the time, so every core has sessions, the longest first, and
/// each that is done is told.
fn optima(traces: &[Trace]) -> Vec<[f64; SHEETS.len()]> {
    let mut order: Vec<usize> = (0..traces.len()).collect();
    order.sort_by_key(|at| Reverse(traces[*at].calls.len()));
    let (next, done, began) = (AtomicUsize::new(0), AtomicUsize::new(0), Instant::now());
    let work = || {
        let mut found = Vec::new();
        while let Some(at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let trace = &traces[*at];
            found.push((*at, SHEETS.each_ref().map(|sheet| optimum::optimum(trace, &sheet.prices()) as f64)));
            let nth = done.fetch_add(1, Ordering::Relaxed) + 1;
            let (calls, seconds) = (trace.calls.len(), began.elapsed().as_secs());
            eprintln!("cost: session {nth} of {} ({calls} calls), {seconds} s", traces.len());
        }
        found
    };
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut found: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no replay panics")).collect()
    });
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, best)| best).collect()
}

/// How far the simulated cost is from what was billed.
fn billed_row(name: &str, checks: &[billed::Check]) -> Option<Value> {
    let error = |check: &billed::Check| check.simulated as f64 / check.billed.max(1) as f64 - 1.0;
    let errors: Vec<f64> = checks.iter().map(error).collect();
    let sum = |of: fn(&billed::Check) -> u64| checks.iter().map(of).sum::<u64>();
    (!checks.is_empty()).then(|| {
        json!({
            "source": name,
            "sessions": checks.len(),
            "calls": checks.iter().map(|check| check.calls).sum::<usize>(),
            "misses": checks.iter().map(|check| check.misses).sum::<usize>(),
            "error": rounded(sum(|check| check.simulated) as f64 / sum(|check| check.billed) as f64 - 1.0),
            "median error": rounded(median(&errors)),
        })
    })
}

/// What is fetched again after the compactions that the agents made themselves.
fn fetched(traces: &[Trace]) -> Value {
    let prices = SHEETS[0].prices();
    let mut tokens = Vec::new();
    for trace in traces {
        for call in &trace.compacted {
            let from = simulation::kept_from(trace, &trace.calls[*call], KEPT);
            let mut context = simulation::Context::after(trace, &prices, *call, from);
            (*call..trace.calls.len()).take(AFTER).for_each(|nth| context.step(nth));
            tokens.push(context.done.fetched as f64);
        }
    }
    let mean = tokens.iter().sum::<f64>() / tokens.len().max(1) as f64;
    json!({ "compactions": tokens.len(), "mean tokens": mean.round(), "median tokens": median(&tokens) })
}

/// Every policy under every sheet, over the optimum and over no compaction.
fn rows(sessions: &[(&Trace, &[f64; SHEETS.len()])], is_tuned: bool) -> Value {
    let traces: Vec<&Trace> = sessions.iter().map(|(trace, _)| *trace).collect();
    let traces = &traces[..];
    let price = |(nth, sheet): (usize, &'static Sheet)| {
        let prices = sheet.prices();
        let best = sessions.iter().map(|(_, best)| best[nth]).collect();
        let none = costs(traces, &Policy::None, &prices);
        Priced { sheet, prices, best, none }
    };
    let priced: Vec<Priced> = SHEETS.iter().enumerate().map(price).collect();
    let mut policies = Vec::new();
    let (mut losing, mut domains) = (Vec::new(), Vec::new());
    for (name, policy) in POLICIES {
        let is_ours = matches!(policy, Policy::RentOrBuy { .. });
        if is_tuned && !is_ours {
            continue;
        }
        let mut all = Vec::new();
        let mut sheets = Vec::new();
        let mut by_source: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for Priced { sheet, prices, best, none } in &priced {
            let costs = costs(traces, &policy, prices);
            let over = ratios(&costs, best);
            for (trace, ratio) in traces.iter().zip(&over) {
                by_source.entry(&trace.source).or_default().push(*ratio);
            }
            let of_none = ratios(&costs, none);
            let lost = of_none.iter().filter(|ratio| **ratio > 1.0);
            let (low, high) = bootstrap(&over);
            sheets.push(json!({
                "sheet": sheet.name,
                "mean": rounded(geometric_mean(&over)),
                "low": rounded(low),
                "high": rounded(high),
                "worst": rounded(largest(&over)),
                "of none": rounded(geometric_mean(&of_none)),
                "worst of none": rounded(largest(&of_none)),
                "above none": lost.count(),
            }));
            if is_ours {
                let calls = traces.iter().zip(&of_none).filter(|(_, ratio)| **ratio > 1.0);
                losing.extend(calls.map(|(trace, ratio)| {
                    json!({ "policy": name, "sheet": sheet.name, "calls": trace.calls.len(),
                        "tokens": trace.largest(), "of none": rounded(*ratio) })
                }));
            }
            all.extend(over);
        }
        policies.push(json!({
            "policy": name,
            "mean": rounded(geometric_mean(&all)),
            "worst": rounded(largest(&all)),
            "changed prefixes": broken(traces, &policy, &priced),
            "sheets": sheets,
        }));
        if is_ours {
            domains.extend(by_source.iter().map(|(source, ratios)| {
                json!({ "policy": name, "source": source, "sessions": ratios.len() / SHEETS.len(),
                    "mean": rounded(geometric_mean(ratios)), "worst": rounded(largest(ratios)) })
            }));
        }
    }
    json!({ "sessions": traces.len(), "policies": policies, "sources": domains, "above none": losing })
}

fn costs(traces: &[&Trace], policy: &Policy, prices: &Prices) -> Vec<f64> {
    traces.iter().map(|trace| replay(trace, policy, prices).cost as f64).collect()
}

/// Calls without a compaction whose prompt did not begin with the one before it.
fn broken(traces: &[&Trace], policy: &Policy, priced: &[Priced]) -> usize {
    let of = |prices: &Prices| traces.iter().map(|trace| replay(trace, policy, prices).broken).sum::<usize>();
    priced.iter().map(|one| of(&one.prices)).sum()
}

fn ratios(costs: &[f64], base: &[f64]) -> Vec<f64> {
    costs.iter().zip(base).map(|(cost, base)| cost / base).collect()
}

fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}
