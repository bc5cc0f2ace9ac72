//! Limits that an app sets for a session (`X5`, `X13`).

use super::cost::{Cost, Prices, of_usd};
use super::given::GivenOptions;
use crate::error::{Error, Result};

/// Values of `limits.onExceed`; true where a prompt is refused.
pub(super) const ON_EXCEED: [(&str, bool); 2] = [("warn", false), ("throw", true)];

/// What a session may not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionLimits {
    /// What its calls may cost.
    pub cost: Option<Cost>,
    /// Bytes that the messages of a prompt may have as JSON in UTF-8.
    pub bytes: Option<usize>,
    /// A prompt above a limit is refused; else the app is warned.
    pub refuses: bool,
}

impl SessionLimits {
    /// Errors: [`crate::Code::InvalidOption`] for a limit that could never be told.
    pub(super) fn read(options: &GivenOptions<'_>, prices: Option<&Prices>) -> Result<Self> {
        let cost = options.number("limits.usd").map(of_usd);
        if cost.is_some() && prices.is_none_or(Prices::are_nothing) {
            let what = match prices {
                None => "needs prices: give `prices`, or a `model` that the catalog has prices of",
                Some(_) => "has no effect: all prices of this model are 0",
            };
            return Err(Error::option("limits.usd", what));
        }
        let refuses = options.choice("limits.onExceed", &ON_EXCEED);
        let bytes = options.count("limits.requestBytes");
        if refuses.is_some() && cost.is_none() && bytes.is_none() {
            return Err(Error::option(
                "limits.onExceed",
                "has no effect without limits.usd or limits.requestBytes",
            ));
        }
        Ok(SessionLimits { cost, bytes, refuses: refuses.unwrap_or(false) })
    }
}
