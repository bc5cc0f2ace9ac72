//! All methods on all cuts: means by domain, against the oracles, with bootstrapped differences to a sliding window.

use super::case::{Case, Scores};
use super::oracle::{Oracle, Tier};
use super::text::Lexed;
use super::{Compactor, bag, head_and_tail, lead, lexrank, masked, shuffled, tail, tfidf};
use context_compactor_core::message::Message;
use context_compactor_core::summary;
use context_compactor_core::tokens::Estimator;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Budgets, in percent of the prefix.
pub const BUDGETS: [usize; 4] = [2, 5, 10, 20];
/// What the differences are to.
const AGAINST: &str = "tail";
const ROUNDS: usize = 2_000;

/// A method under test.
pub struct Method {
    /// Its name in reports.
    pub name: &'static str,
    /// A compactor of the product, not one to compare it with.
    pub is_ours: bool,
    run: fn(&[Message<'_>], usize, Estimator) -> String,
}

impl Method {
    /// What it makes of messages in so many tokens.
    pub fn write(&self, messages: &[Message<'_>], budget: usize, estimator: Estimator) -> String {
        (self.run)(messages, budget, estimator)
    }
}

/// A bag of names in half of the budget, the newest lines in the rest.
fn bag_and_tail(messages: &[Message<'_>], budget: usize, estimator: Estimator) -> String {
    let half = budget / 2;
    format!("{}\n{}", bag(messages, half, estimator), tail(messages, budget - half - 1, estimator))
}

/// The newest lines word for word in half of the budget, the keep-layer of everything in the rest.
fn tail_and_layer(messages: &[Message<'_>], budget: usize, estimator: Estimator) -> String {
    beside_layer(tail(messages, budget / 2, estimator), messages, budget, estimator)
}

/// The same of the newest lines without older results: how a preset that clears them joins the two.
fn masked_and_layer(messages: &[Message<'_>], budget: usize, estimator: Estimator) -> String {
    beside_layer(masked(messages, budget / 2, estimator), messages, budget, estimator)
}

/// The keep-layer of everything in what `newest` leaves of the budget, before it.
fn beside_layer(newest: String, messages: &[Message<'_>], budget: usize, estimator: Estimator) -> String {
    let left = budget.saturating_sub(estimator.text(&newest) + 1);
    format!("{}\n{newest}", summary::keep::text(messages, left, estimator))
}

/// All methods, the product's first.
pub fn methods() -> Vec<Method> {
    let method = |name, run| Method { name, is_ours: false, run };
    vec![
        Method { name: "keep-layer", is_ours: true, run: summary::keep::text },
        Method { name: "tail + keep-layer", is_ours: true, run: tail_and_layer },
        Method { name: "masked tail + keep-layer", is_ours: true, run: masked_and_layer },
        Method { name: "extractive", is_ours: true, run: summary::extractive },
        method("tail", tail),
        method("head + tail", head_and_tail),
        method("masking", masked),
        method("lead + tail", lead),
        method("TF-IDF + tail", tfidf),
        method("LexRank + tail", lexrank),
        method("bag of names + tail", bag_and_tail),
        method("shuffled lines", shuffled),
    ]
}

/// A cut with what it is counted under.
pub struct Cut {
    /// Row of the report.
    pub domain: &'static str,
    /// Its transcript: cuts of one are drawn together.
    pub session: String,
    /// The cut.
    pub case: Case,
}

/// Means of a method at a budget over the cuts of a domain.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The method.
    pub method: String,
    /// The domain, or `all`.
    pub domain: String,
    /// Percent of the prefix.
    pub budget: usize,
    /// T1.
    pub mention: f64,
    /// T2.
    pub context: f64,
    /// T3, over the cuts after which something was copied.
    pub verbatim: f64,
    /// T1, or what holds it is named.
    pub referenced: f64,
    /// That, or a search finds it.
    pub recoverable: f64,
    /// T1 to T3, each as a share of its oracle's.
    pub of_oracle: [f64; 3],
    /// Entities that are not in the prefix.
    pub invented: f64,
    /// T1 to T3: bounds of the difference to the sliding window, 95 %, from bootstrapped transcripts; none where there is
    /// but one.
    pub difference: [Option<[f64; 2]>; 3],
}

/// What the evaluator found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Cuts, their tokens, needs and copied spans by domain: means but for the first.
    pub cuts: BTreeMap<String, [f64; 4]>,
    /// A row for each method, budget and domain.
    pub rows: Vec<Row>,
    /// Names of the product's own methods.
    pub ours: Vec<String>,
    /// T1 and T2 of each of our methods at 5 % by kind of entity, over all needs, whose number comes first.
    pub kinds: BTreeMap<String, BTreeMap<String, (usize, f64, f64)>>,
    /// Shares of needs that a search with the agent's own words finds among the first 5 and 10.
    pub searched: [f64; 2],
}

const TIERS: [Tier; 3] = [Tier::Mention, Tier::Context, Tier::Verbatim];

/// Measures every method on every cut, on as many threads as there are cores.
pub fn measure(cuts: &[Cut], methods: &[Method]) -> Report {
    let names: Vec<String> =
        methods.iter().map(|method| method.name.to_owned()).chain(["oracle".to_owned()]).collect();
    let results = in_parallel(cuts, |cut| of_cut(&cut.case, methods));
    let mut rows = Vec::new();
    let mut domains: Vec<&str> = cuts.iter().map(|cut| cut.domain).collect();
    domains.sort_unstable();
    domains.dedup();
    domains.insert(0, "all");
    let mut counted = BTreeMap::new();
    let against = names.iter().position(|name| name == AGAINST).unwrap_or(0);
    for domain in domains {
        let here: Vec<usize> =
            (0..cuts.len()).filter(|at| domain == "all" || cuts[*at].domain == domain).collect();
        let mean_of = |of: &dyn Fn(usize) -> Option<f64>| {
            let values: Vec<f64> = here.iter().filter_map(|at| of(*at)).collect();
            values.iter().sum::<f64>() / values.len().max(1) as f64
        };
        let of_cases = [
            here.len() as f64,
            mean_of(&|at| Some(cuts[at].case.tokens as f64)),
            mean_of(&|at| Some(cuts[at].case.needs.len() as f64)),
            mean_of(&|at| Some(cuts[at].case.copied.len() as f64)),
        ];
        counted.insert(domain.to_owned(), of_cases);
        for (nth, name) in names.iter().enumerate() {
            for (slot, budget) in BUDGETS.into_iter().enumerate() {
                let of = |at: usize| &results[at][nth][slot];
                let mean = |field: &dyn Fn(&Scores) -> f64| mean_of(&|at| Some(field(of(at))));
                let of_tier = |tier: Tier| mean_of(&|at| tier.of(of(at)));
                let oracle = |tier: Tier| mean_of(&|at| tier.of(&results[at][names.len() - 1][slot]));
                let difference = TIERS.map(|tier| {
                    let of_cut = |at: usize| Some(tier.of(of(at))? - tier.of(&results[at][against][slot])?);
                    bounds(&here, cuts, &of_cut)
                });
                rows.push(Row {
                    method: name.clone(),
                    domain: domain.to_owned(),
                    budget,
                    mention: mean(&|scores| scores.mention),
                    context: mean(&|scores| scores.context),
                    verbatim: of_tier(Tier::Verbatim),
                    referenced: mean(&|scores| scores.referenced),
                    recoverable: mean(&|scores| scores.recoverable),
                    of_oracle: TIERS.map(|tier| of_tier(tier) / oracle(tier).max(1e-9)),
                    invented: mean(&|scores| scores.invented),
                    difference,
                });
            }
        }
    }
    let needs: Vec<&super::Need> = cuts.iter().flat_map(|cut| &cut.case.needs).collect();
    let searched = [5, 10].map(|most| {
        let found = needs.iter().filter(|need| need.rank.is_some_and(|rank| rank < most)).count();
        found as f64 / needs.len().max(1) as f64
    });
    let ours = methods.iter().filter(|method| method.is_ours).map(|method| method.name.to_owned()).collect();
    Report { cuts: counted, rows, ours, kinds: kinds(cuts, methods), searched }
}

/// How our methods do with each kind of entity.
fn kinds(cuts: &[Cut], methods: &[Method]) -> BTreeMap<String, BTreeMap<String, (usize, f64, f64)>> {
    let mut all = BTreeMap::new();
    for method in methods.iter().filter(|method| method.is_ours) {
        let held = in_parallel(cuts, |Cut { case, .. }| {
            case.held(&Lexed::of(&method.write(&case.messages(), case.budget(5), case.estimator())))
        });
        let mut kinds: BTreeMap<String, (usize, f64, f64)> = BTreeMap::new();
        for (cut, (mentioned, placed)) in cuts.iter().zip(held) {
            for (at, need) in cut.case.needs.iter().enumerate() {
                let (count, of_mentioned, of_placed) =
                    kinds.entry(need.kind.as_str().to_owned()).or_default();
                *count += 1;
                *of_mentioned += f64::from(u8::from(mentioned[at]));
                *of_placed += f64::from(u8::from(placed[at]));
            }
        }
        for (count, mentioned, placed) in kinds.values_mut() {
            *mentioned /= *count as f64;
            *placed /= *count as f64;
        }
        all.insert(method.name.to_owned(), kinds);
    }
    all
}

/// Scores by method and budget; the last method is the oracle, each metric by its own.
fn of_cut(case: &Case, methods: &[Method]) -> Vec<Vec<Scores>> {
    let mut scores: Vec<Vec<Scores>> = Vec::new();
    for method in methods {
        let run: &Compactor<'_> = &|messages, budget| method.write(messages, budget, case.estimator());
        scores.push(BUDGETS.iter().map(|percent| case.measure(run, *percent)).collect());
    }
    let oracles = TIERS.map(|tier| Oracle::new(case, tier));
    let best = |percent: &usize| {
        let [mention, context, verbatim] =
            [0, 1, 2].map(|tier: usize| case.score(&oracles[tier].text(case.budget(*percent))));
        Scores { context: context.context, verbatim: verbatim.verbatim, ..mention }
    };
    scores.push(BUDGETS.iter().map(best).collect());
    scores
}

/// 95 % of the means over transcripts that are drawn with replacement.
fn bounds(here: &[usize], cuts: &[Cut], of: &dyn Fn(usize) -> Option<f64>) -> Option<[f64; 2]> {
    let mut sessions: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (at, value) in here.iter().filter_map(|at| Some((*at, of(*at)?))) {
        let (sum, count) = sessions.entry(&cuts[at].session).or_default();
        *sum += value;
        *count += 1.0;
    }
    if sessions.len() < 2 {
        return None;
    }
    let sessions: Vec<(f64, f64)> = sessions.into_values().collect();
    let mut rng = fastrand::Rng::with_seed(1);
    let mut means: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let (mut sum, mut count) = (0.0, 0.0);
            for _ in 0..sessions.len() {
                let drawn = sessions[rng.usize(0..sessions.len())];
                sum += drawn.0;
                count += drawn.1;
            }
            sum / count
        })
        .collect();
    means.sort_by(f64::total_cmp);
    Some([means[ROUNDS / 40], means[ROUNDS - 1 - ROUNDS / 40]])
}

/// Results in the order of the items.
pub(super) fn in_parallel<I: Sync, R: Send>(items: &[I], of: impl Fn(&I) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < items.len())
                {
                    let result = of(&items[at]);
                    results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
