//! Whether replays cost what providers bill: the calls of a transcript as they were, with the agent's own compactions.

use super::trace::{prompt, reported, shared};
use crate::transcript::Transcript;
use context_compactor_core::policy::cost::{Cost, Prices};

/// What a transcript cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// By what the provider reported.
    pub billed: Cost,
    /// By the replay's model of the cache, of the prompts' sizes and of which calls missed it alone.
    pub simulated: Cost,
    /// Calls.
    pub calls: usize,
    /// Calls that missed the cache.
    pub misses: usize,
}

/// A call that had less than this share of what could have been cached missed the cache.
const MISS: f64 = 0.5;

/// Holds the two against each other; nothing where the provider reported nothing.
pub fn check(transcript: &Transcript, prices: &Prices) -> Option<Check> {
    let reported = reported(transcript);
    let mut sums = Check { billed: 0, simulated: 0, calls: reported.len(), misses: 0 };
    let shared = shared(&reported);
    let mut before = shared;
    for call in &reported {
        let (tokens, output) = (prompt(call), call.output as usize);
        let rates = prices.at(tokens);
        sums.billed += call.input * rates.input
            + call.cache_read * rates.cache_read
            + call.cache_write * rates.cache_write
            + call.output * rates.output;
        let could = before.min(tokens);
        let missed = (call.cache_read as f64) < could as f64 * MISS;
        sums.misses += usize::from(missed);
        sums.simulated += prices.request(tokens, if missed { shared } else { could }, output);
        before = tokens;
    }
    (!reported.is_empty()).then_some(sums)
}
