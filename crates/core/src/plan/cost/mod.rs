//! What prompts cost, and when a compaction pays: prices, the cost of compacting now against going on, and the rule that
//! decides (rent or buy). Pure; whole numbers only, so that every runtime decides alike.
//!
//! A compaction costs once: the summary is read and written, and what stays is written to the provider's cache again. A
//! context that is larger than it could be costs at every call: it is read again. The rule is that of who does not know
//! for how long skis will be needed: rent until the rent that was paid is what buying costs.

mod prices;
mod rule;

pub use prices::{Cost, DEFAULT_PRICES, Prices, Rates, Tier};
pub use rule::{Decision, LastCall, Meter, Moment, Rule};

pub(crate) use prices::read as read_prices;

/// How many more calls are expected to read a result that `read` of them have read: as many. Where a summary is near,
/// after `left` calls, no more than these; and as what is cleared is fetched again at times, half of those that read it
/// (measured: `npm run bench -- cost`).
pub fn calls_expected(read: usize, left: Option<u64>) -> u64 {
    left.map_or(read as u64, |left| left.min(read as u64 / 2))
}

/// Clearing makes the provider write the `behind` tokens after the first that is cleared to its cache again, once, and
/// saves that it reads what is cleared at each call that is still to come: `read` tokens in all. What that saves, in the
/// unit of [`Cost`]; negative when it does not pay. For `c` tokens it does from `n > (write − read) × behind / (read × c)`
/// calls on.
pub fn clearing_saves(rates: Rates, read: u64, behind: usize) -> i128 {
    let saved = i128::from(rates.cache_read) * i128::from(read);
    let again = i128::from(rates.cache_write) - i128::from(rates.cache_read);
    saved - again.max(0) * behind as i128
}
