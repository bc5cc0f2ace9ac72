//! The cheapest that any policy of summaries could have been, who knew what comes: over every call as a point of
//! compaction and every tail.
//!
//! A context right after a compaction depends on the call and the tail only, not on what was before. So the cheapest way to
//! each of these contexts is that to one before it, a replay from there, and a compaction; one replay from each tells the
//! cost of going on to all that come after. What cannot end below the cost of a policy that is known is not gone on with:
//! that is exact, for what is left costs at least what it does where nothing is fetched again (`Bound`).

use super::bound::Bound;
use super::policy::{CEILING, Policy};
use super::simulation::{Context, SUMMARY, kept_from, replay};
use super::trace::Trace;
use context_compactor_core::policy::cost::{Cost, Prices, Rule};
use std::collections::BTreeMap;

/// Tails that are tried, in tokens; the exchange under way stays in any case.
pub const TAILS: [usize; 5] = [0, 2_500, 5_000, 10_000, 20_000];

/// The least cost.
pub fn optimum(trace: &Trace, prices: &Prices) -> Cost {
    let mut search = Search::new(trace, prices);
    while !search.is_done() {
        search.advance();
    }
    search.least
}

/// A search on its way, call by call.
#[derive(Debug)]
pub struct Search<'t> {
    trace: &'t Trace,
    prices: &'t Prices,
    /// What the calls from each on cost at least.
    bound: Bound,
    /// The first message that each of [`TAILS`] keeps before each call.
    kept: Vec<[usize; TAILS.len()]>,
    /// The contexts that can be reached at each call, by the first message that they keep: cost so far.
    best: Vec<BTreeMap<usize, Cost>>,
    /// The least cost of a whole replay, so far.
    pub least: Cost,
    /// Calls after which no context is left to go on from.
    pub calls: usize,
}

impl<'t> Search<'t> {
    /// Begins with the policies that are known.
    pub fn new(trace: &'t Trace, prices: &'t Prices) -> Self {
        // What is needed again is in the prices of the rule that is shipped; without it the rule acts sooner.
        let rules = [Rule::TUNED, Rule { needs: 0, ..Rule::TUNED }];
        let known = rules.iter().flat_map(|rule| {
            TAILS.map(|tail| Policy::RentOrBuy { rule: *rule, tail, ceiling: CEILING, clearing: None })
        });
        let known = known.map(|policy| replay(trace, &policy, prices).cost).min();
        Search {
            trace,
            prices,
            bound: Bound::new(trace, prices),
            kept: trace.calls.iter().map(|call| TAILS.map(|tail| kept_from(trace, call, tail))).collect(),
            best: vec![BTreeMap::new(); trace.calls.len()],
            least: known.unwrap_or(Cost::MAX),
            calls: 0,
        }
    }

    /// Leaves nothing out.
    #[cfg(test)]
    pub(super) fn unbounded(trace: &'t Trace, prices: &'t Prices) -> Self {
        let bound = Bound { left: vec![0; trace.calls.len() + 1], compacted: vec![0; trace.calls.len() + 1] };
        Search { bound, least: Cost::MAX, ..Search::new(trace, prices) }
    }

    /// Calls in all.
    pub fn total(&self) -> usize {
        self.trace.calls.len()
    }

    /// Whether [`Search::least`] is the least of all.
    pub fn is_done(&self) -> bool {
        self.calls >= self.total()
    }

    /// Goes on from all contexts that can be reached at the next call.
    pub fn advance(&mut self) {
        let nth = self.calls;
        self.calls += 1;
        if nth == 0 {
            self.go_on(Context::new(self.trace, self.prices), 0, 0);
        } else if nth < self.best.len() {
            for (kept, paid) in std::mem::take(&mut self.best[nth]) {
                if paid.saturating_add(self.bound.compacted[nth]) <= self.least {
                    self.go_on(Context::after(self.trace, self.prices, nth, kept), nth, paid);
                }
            }
        }
    }

    /// Goes on from a context that `paid` was paid for, before call `from`.
    fn go_on(&mut self, mut context: Context<'t>, from: usize, paid: Cost) {
        for nth in from..self.trace.calls.len() {
            let call = &self.trace.calls[nth];
            let so_far = paid + context.done.cost;
            if so_far.saturating_add(self.bound.left[nth]) > self.least {
                return;
            }
            if call.is_cold {
                context.forget();
            }
            if nth > from {
                self.compact(&context, nth, so_far);
            }
            context.step(nth);
        }
        self.least = self.least.min(paid + context.done.cost);
    }

    /// Compacts before a call, in every way.
    fn compact(&mut self, context: &Context<'t>, nth: usize, so_far: Cost) {
        let upto = self.trace.calls[nth].upto;
        let tokens = context.tokens(&self.trace.calls[nth]);
        // Whatever stays, the whole prompt is read for it.
        let cost = so_far.saturating_add(context.summary_cost(tokens));
        if cost.saturating_add(self.bound.compacted[nth]) > self.least {
            return;
        }
        let mut tried = usize::MAX;
        for kept in self.kept[nth] {
            let kept = kept.max(context.from);
            if kept == tried {
                continue;
            }
            tried = kept;
            if self.trace.stable + SUMMARY + self.trace.between(kept, upto) < tokens {
                let found = self.best[nth].entry(kept).or_insert(Cost::MAX);
                *found = cost.min(*found);
            }
        }
    }
}
