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

/// Clearing `freed` tokens makes the provider write the `behind` tokens after the first of them to its cache again, once,
/// and saves reading `freed` at each of the `calls` that are still to come. What that saves in all, in the unit of
/// [`Cost`]; negative when it does not pay: it does when `calls > (write − read) × behind / (read × freed)`.
pub fn clearing_saves(rates: Rates, freed: usize, behind: usize, calls: u64) -> i128 {
    let saved = i128::from(calls) * i128::from(rates.cache_read) * freed as i128;
    let again = i128::from(rates.cache_write) - i128::from(rates.cache_read);
    saved - again.max(0) * behind as i128
}
