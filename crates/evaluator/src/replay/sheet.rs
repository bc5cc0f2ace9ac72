//! Price sheets: what replays are priced with.

use context_compactor_core::policy::cost::{PriceTier, Prices, Rates};

/// A name, and prices.
#[derive(Debug)]
pub struct Sheet {
    /// The model that is priced so.
    pub name: &'static str,
    /// Input, output, cache read, cache write, in USD for a million tokens.
    pub rates: [f64; 4],
    /// The same for prompts of more tokens than this.
    pub above: Option<(usize, [f64; 4])>,
}

/// What a provider's cache holds for five minutes.
const TTL_MS: u64 = 300_000;

/// The sheets: each a shape of prices of its own (a fee for writes or none, reads at 0.25 to 0.025 of input, a break).
pub const SHEETS: [Sheet; 6] = [
    Sheet { name: "sonnet-4.5", rates: [3.0, 15.0, 0.3, 3.75], above: None },
    Sheet { name: "sonnet-5.5", rates: [2.0, 10.0, 0.1, 2.5], above: None },
    Sheet { name: "fable-5.1", rates: [10.0, 50.0, 0.25, 12.5], above: None },
    Sheet { name: "gpt-5", rates: [1.25, 10.0, 0.125, 1.25], above: None },
    Sheet { name: "gpt-4.1", rates: [2.0, 8.0, 0.5, 2.0], above: None },
    Sheet {
        name: "gemini-2.5-pro",
        rates: [1.25, 10.0, 0.125, 1.25],
        above: Some((200_000, [2.5, 15.0, 0.25, 2.5])),
    },
];

impl Sheet {
    /// Its prices.
    pub fn prices(&self) -> Prices {
        let rates = |[input, output, read, write]: [f64; 4]| Rates::of(input, output, read, write);
        let tiers =
            self.above.iter().map(|(above, prices)| PriceTier { above: *above, rates: rates(*prices) });
        Prices { base: rates(self.rates), tiers: tiers.collect(), ttl_ms: TTL_MS }
    }
}
