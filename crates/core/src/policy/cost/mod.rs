//! What prompts cost, and when a compaction pays: prices, the cost of compacting now against going on, and the rule that
//! decides (rent or buy). Pure; whole numbers only, so that every runtime decides alike.
//!
//! A compaction costs once: the summary is read and written, and what stays is written to the provider's cache again. A
//! context that is larger than it could be costs at every call: it is read again. The rule is that of who does not know
//! for how long skis will be needed: rent until the rent that was paid is what buying costs.

mod prices;
mod rule;

pub use prices::{Cost, DEFAULT_PRICES, PriceTier, Prices, Rates};
pub use rule::{CostSnapshot, INSTRUCTION_TOKENS, LastCall, Meter, Rule, Verdict};

pub(crate) use prices::{of_usd, read as read_prices, usd};

/// How many more calls are expected to read a result that `read` of them have read: as many, but where a summary comes
/// after `left` calls no more than these.
pub fn calls_expected(read: usize, left: Option<u64>) -> u64 {
    left.map_or(read as u64, |left| left.min(read as u64))
}

/// Of the tokens that are cleared so many are expected to be fetched again, in percent. Tuned as [`Rule::TUNED`] was.
const FETCHED_AGAIN: usize = 15;

/// How many of `cleared` tokens are expected to be fetched again.
pub fn fetched_again(cleared: usize) -> usize {
    cleared.saturating_mul(FETCHED_AGAIN) / 100
}

/// Clearing makes the provider write the `behind` tokens after the first that is cleared to its cache again, once, and
/// saves that it reads what is cleared at each call that is still to come: `read` tokens in all; `again` tokens are fetched
/// and written once more. What that saves, in the unit of [`Cost`]; negative when it does not pay. For `c` tokens it does
/// from `n > (write − read) × behind / (read × c)` calls on.
pub fn clearing_saves(rates: Rates, read: u64, behind: usize, again: usize) -> i128 {
    let saved = i128::from(rates.cache_read) * i128::from(read);
    let rewritten = i128::from(rates.cache_write) - i128::from(rates.cache_read);
    saved - rewritten.max(0) * behind as i128 - i128::from(rates.cache_write) * again as i128
}
