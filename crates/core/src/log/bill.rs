//! What the calls of a session cost, as far as their usage was reported (`X13`). Money that was spent stays spent, whatever
//! becomes of the context.

use super::state::State;
use crate::policy::cost::Cost;
use crate::wire::provider::Usage;

/// A sum of costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bill {
    /// Of all calls.
    pub(crate) cost: Cost,
    /// Of the newest call of the conversation; 0 while there is none.
    pub(crate) last: Cost,
}

crate::wire::record!(Bill {
    cost = "cost" or default,
    last = "last" or default,
} nothing if is_nothing);

impl Bill {
    fn is_nothing(&self) -> bool {
        *self == Bill::default()
    }

    /// With what came after it.
    pub(super) fn with(self, later: Bill) -> Bill {
        let last = if later.last > 0 { later.last } else { self.last };
        Bill { cost: self.cost.saturating_add(later.cost), last }
    }
}

/// What a session in memory knows of its costs beside the row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spending {
    /// What is in no row yet.
    pub(super) unstored: Bill,
    /// Prompts since a usage was reported.
    unreported: u64,
}

impl State {
    /// A call of the conversation was reported.
    pub(super) fn charge(&mut self, usage: &Usage) {
        self.spending.unreported = 0;
        if let Some(cost) = self.settings.prices.as_ref().map(|prices| prices.reported(usage)) {
            let call = Bill { cost, last: cost };
            self.spending.unstored = self.spending.unstored.with(call);
        }
    }

    /// A call for a summary was reported.
    pub(crate) fn charge_summary(&mut self, usage: &Usage) {
        if let Some(cost) = self.settings.prices.as_ref().map(|prices| prices.reported(usage)) {
            self.spending.unstored = self.spending.unstored.with(Bill { cost, last: 0 });
        }
    }

    /// All that was spent.
    pub(crate) fn spent(&self) -> Bill {
        self.row.spent.with(self.spending.unstored)
    }

    /// True when some of it is in no row yet.
    pub(crate) fn has_unstored_costs(&self) -> bool {
        self.spending.unstored.cost > 0
    }

    /// A row with `spent` was written in the place of the one that is known.
    pub(super) fn note_charged(&mut self, spent: Bill) {
        let written = spent.cost.saturating_sub(self.row.spent.cost);
        let unstored = &mut self.spending.unstored;
        unstored.cost = unstored.cost.saturating_sub(written);
        if unstored.cost == 0 {
            *unstored = Bill::default();
        }
    }

    /// A prompt goes out.
    pub(crate) fn note_prompt(&mut self) {
        self.spending.unreported += 1;
    }

    /// Prompts since a usage was reported.
    pub(super) fn unreported(&self) -> u64 {
        self.spending.unreported
    }
}
