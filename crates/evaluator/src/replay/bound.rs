//! What the calls from each on cost at least, whatever was done before them.
//!
//! Every context before a call has the front and the exchange under way, with a summary before that, or the whole history.
//! Where it has no more than that, has it in the provider's cache and fetches nothing again, nothing goes on for less: a
//! larger one pays more for every call and for every summary, and leaves as much. So the bound is an optimum too, of one
//! context for each call, which is found at once.

use super::simulation::SUMMARY;
use super::trace::Trace;
use context_compactor_core::policy::cost::{Cost, INSTRUCTION_TOKENS, Prices, Rates};

/// The least that is left to pay.
#[derive(Debug)]
pub(super) struct Bound {
    /// Before each call; nothing after the last.
    pub(super) left: Vec<Cost>,
    /// The same right after a compaction before that call, which has to be written to the cache.
    pub(super) compacted: Vec<Cost>,
}

impl Bound {
    pub(super) fn new(trace: &Trace, prices: &Prices) -> Self {
        let rates = cheapest(prices);
        let none = vec![0; trace.calls.len() + 1];
        let mut bound = Bound { left: none.clone(), compacted: none };
        for nth in (0..trace.calls.len()).rev() {
            let from = trace.calls[nth].exchange;
            let (mut paid, mut least): (Cost, Cost) = (0, Cost::MAX);
            for (at, call) in trace.calls.iter().enumerate().skip(nth) {
                let prompt = prompt(trace, from, call.upto);
                let most = prompt.saturating_sub(trace.shared);
                let written = if call.is_cold { most } else { new(trace, at).min(most) };
                let read = times(prompt - written, rates.cache_read);
                if at > nth {
                    let summary = read
                        .saturating_add(times(written + INSTRUCTION_TOKENS, rates.cache_write))
                        .saturating_add(times(SUMMARY, rates.output));
                    least = least.min(paid.saturating_add(summary).saturating_add(bound.compacted[at]));
                }
                paid = paid
                    .saturating_add(read)
                    .saturating_add(times(written, rates.cache_write))
                    .saturating_add(times(call.output, rates.output));
                if paid >= least {
                    break;
                }
            }
            bound.left[nth] = least.min(paid);
            let call = &trace.calls[nth];
            // Where it counts as read from the cache.
            let summary = match call.is_cold {
                true => 0,
                false => SUMMARY.min(prompt(trace, from, call.upto) - trace.stable),
            };
            bound.compacted[nth] =
                bound.left[nth].saturating_add(times(summary, rates.cache_write - rates.cache_read));
        }
        bound
    }
}

/// Tokens of the least prompt that ends before message `upto`, of those that were compacted before they had `from`.
fn prompt(trace: &Trace, from: usize, upto: usize) -> usize {
    trace.stable + (SUMMARY + trace.between(from, upto)).min(trace.before[upto])
}

/// Tokens that come with a call.
fn new(trace: &Trace, nth: usize) -> usize {
    let before = nth.checked_sub(1).map_or(0, |before| trace.calls[before].upto);
    trace.between(before, trace.calls[nth].upto)
}

/// The least price of each kind that a prompt of any size has. What is written is never cheaper here than what is read.
fn cheapest(prices: &Prices) -> Rates {
    let tiers = prices.tiers.iter().map(|tier| tier.rates);
    let mut least = tiers.fold(prices.base, |one, other| Rates {
        input: one.input.min(other.input),
        output: one.output.min(other.output),
        cache_read: one.cache_read.min(other.cache_read),
        cache_write: one.cache_write.min(other.cache_write),
    });
    least.cache_read = least.cache_read.min(least.cache_write);
    least
}

fn times(tokens: usize, price: Cost) -> Cost {
    (tokens as u64).saturating_mul(price)
}
