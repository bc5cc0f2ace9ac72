//! Prices of a model's tokens.

use crate::error::{Error, Result};
use crate::policy::reader::OptionReader;
use crate::policy::row::MAX;
use crate::wire::provider::Usage;
use serde_json_borrow::Value;

/// An amount of money: 10⁻¹² USD. A token at one USD for a million costs a million of these.
pub type Cost = u64;

/// [`Cost`] of a token at one USD for a million.
const USD_PER_MILLION: f64 = 1e6;

/// [`Cost`] of one USD.
const USD: f64 = 1e12;

/// An amount from USD.
pub(crate) fn of_usd(usd: f64) -> Cost {
    (usd * USD + 0.5) as Cost
}

/// An amount in USD.
pub(crate) fn usd(cost: Cost) -> f64 {
    cost as f64 / USD
}

/// The largest price that an option may name, in USD for a million tokens.
const MAX_PRICE: f64 = 1e6;

/// Prices of one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Input that no cache has to do with.
    pub input: Cost,
    /// Output, reasoning included.
    pub output: Cost,
    /// Input that the provider has in its cache.
    pub cache_read: Cost,
    /// Input that it puts there.
    pub cache_write: Cost,
}

/// Prices from a size of the prompt on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceTier {
    /// They hold for prompts of more tokens than this.
    pub above: usize,
    /// Of all tokens of such a request.
    pub rates: Rates,
}

/// What a provider asks for a model's tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prices {
    /// Prices of a prompt of any size.
    pub base: Rates,
    /// Prices of larger ones, by size.
    pub tiers: Vec<PriceTier>,
    /// How long the provider's cache holds a prompt that is not used, in ms.
    pub ttl_ms: u64,
}

/// Prices where none are known: those of a model of the middle class, as they were when this was written.
pub const DEFAULT_PRICES: Prices =
    Prices { base: Rates::of(3.0, 15.0, 0.3, 3.75), tiers: Vec::new(), ttl_ms: DEFAULT_TTL_MS };

/// How long caches hold a prompt, by default.
const DEFAULT_TTL_MS: u64 = 300_000;

impl Rates {
    /// From USD for a million tokens.
    pub const fn of(input: f64, output: f64, cache_read: f64, cache_write: f64) -> Self {
        Rates {
            input: (input * USD_PER_MILLION + 0.5) as Cost,
            output: (output * USD_PER_MILLION + 0.5) as Cost,
            cache_read: (cache_read * USD_PER_MILLION + 0.5) as Cost,
            cache_write: (cache_write * USD_PER_MILLION + 0.5) as Cost,
        }
    }
}

impl Prices {
    /// Reads what the option `prices` holds.
    ///
    /// Errors: [`Code::InvalidOption`](crate::Code::InvalidOption) with the field, as in `tiers[0].above`.
    pub fn of_option(value: &Value<'_>) -> Result<Self> {
        read(&OptionReader::new(value)?)?.ok_or_else(|| Error::option("", "prices are required"))
    }

    /// The prices of a request whose prompt has `tokens` tokens.
    pub fn at(&self, tokens: usize) -> Rates {
        let reached = self.tiers.iter().rev().find(|tier| tokens > tier.above);
        reached.map_or(self.base, |tier| tier.rates)
    }

    /// What a request costs of whose `prompt` tokens the provider has `cached` in its cache, and puts the rest there.
    pub fn request(&self, prompt: usize, cached: usize, output: usize) -> Cost {
        let rates = self.at(prompt);
        let cached = cached.min(prompt);
        times(cached, rates.cache_read)
            .saturating_add(times(prompt - cached, rates.cache_write))
            .saturating_add(times(output, rates.output))
    }

    /// What a request cost whose usage was reported.
    pub fn reported(&self, usage: &Usage) -> Cost {
        let rates = self.at(usage.input.try_into().unwrap_or(usize::MAX));
        let cached = usage.cache_read.min(usage.input);
        let written = usage.cache_write.min(usage.input - cached);
        let parts = [
            (usage.input - cached - written, rates.input),
            (cached, rates.cache_read),
            (written, rates.cache_write),
            (usage.output, rates.output),
        ];
        parts
            .into_iter()
            .fold(0, |sum: Cost, (tokens, price)| sum.saturating_add(tokens.saturating_mul(price)))
    }

    /// True where every token is free.
    pub(crate) fn are_nothing(&self) -> bool {
        let is_nothing = |rates: &Rates| *rates == Rates::of(0.0, 0.0, 0.0, 0.0);
        is_nothing(&self.base) && self.tiers.iter().all(|tier| is_nothing(&tier.rates))
    }

    /// What a new prompt costs that nothing comes after: none of it is in the cache, or put there.
    pub fn lone_request(&self, prompt: usize, output: usize) -> Cost {
        let rates = self.at(prompt);
        times(prompt, rates.input).saturating_add(times(output, rates.output))
    }
}

pub(super) fn times(tokens: usize, price: Cost) -> Cost {
    (tokens as u64).saturating_mul(price)
}

/// Prices of options: USD for a million tokens. What is not said of the cache is what providers without one ask: the
/// price of input.
pub(crate) fn read(group: &OptionReader<'_>) -> Result<Option<Prices>> {
    if !group.is_given() {
        return Ok(None);
    }
    let rates = |group: &OptionReader<'_>| {
        let price = |key: &str| group.number(key, 0.0, MAX_PRICE);
        let required = |key: &str| price(key)?.ok_or_else(|| group.error(key, "is required"));
        let input = required("input")?;
        let cached = |key: &str| Ok::<f64, crate::Error>(price(key)?.unwrap_or(input));
        Ok::<Rates, crate::Error>(Rates::of(
            input,
            required("output")?,
            cached("cacheRead")?,
            cached("cacheWrite")?,
        ))
    };
    let tiers = group.children("tiers")?.unwrap_or_default();
    let tiers = tiers.iter().map(|tier| {
        let above = tier.integer("above", 0, MAX)?;
        let above = above.ok_or_else(|| tier.error("above", "is required"))?;
        Ok(PriceTier { above, rates: rates(tier)? })
    });
    let tiers = crate::order::by_key(tiers.collect::<Result<Vec<_>>>()?, |tier| tier.above as u64);
    let ttl_ms = group.integer("ttlMs", 0, MAX)?.map_or(DEFAULT_TTL_MS, |ms| ms as u64);
    Ok(Some(Prices { base: rates(group)?, tiers, ttl_ms }))
}
