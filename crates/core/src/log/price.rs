//! What the prices say about a session's context: what its calls paid for being larger than it need be, and whether a
//! compaction pays now. It is noted with whatever else is written; to lose it costs money and nothing else.

use super::guard::SessionGuard;
use super::state::State;
use crate::context::Keep;
use crate::error::Result;
use crate::message::Role;
use crate::policy::cost::{CostSnapshot, DEFAULT_PRICES, Meter, Prices, Verdict};
use crate::step::Io;
use std::borrow::Cow;

/// What was paid, and for which context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Paid {
    /// What was paid.
    pub(crate) meter: Meter,
    /// The view that it was paid for.
    generation: u64,
}

crate::wire::record!(Paid {
    meter = "meter" or default,
    generation = "generation" or default,
} nothing if is_nothing);

impl Paid {
    /// Nothing was paid: then it does not matter for which view.
    fn is_nothing(&self) -> bool {
        self.meter == Meter::default()
    }

    /// False for counts above `most`, or a time after `last`.
    pub(crate) fn is_plausible(&self, most: u64, last: u64) -> bool {
        let Paid { meter, generation } = self;
        let call = meter.last.is_none_or(|call| call.at <= last && call.tokens as u64 <= most);
        call && meter.calls <= most && meter.compactions <= most && *generation <= most
    }
}

/// Asks the prices, where a rule decides by them: from now on the session is due if they say so. The time, for
/// [`State::pay`]; nothing where there is no rule. `is_step` when it is not the call before, made again.
pub(crate) async fn ask(io: &Io, guard: &SessionGuard, is_step: bool) -> Result<Option<u64>> {
    let Some(rule) = guard.settings().price_rule else { return Ok(None) };
    let now = io.now().await?;
    let mut state = guard.state_mut();
    state.settle();
    let moment = state.moment(now);
    let decision = state.row.paid.meter.decide(&rule, &state.prices(), &moment, is_step);
    state.pays = decision == Verdict::Buy;
    state.calls_left = Some(state.row.paid.meter.calls_left(&rule, &state.prices(), &moment));
    Ok(Some(now))
}

impl State {
    /// What the model's tokens cost.
    pub(crate) fn prices(&self) -> Cow<'_, Prices> {
        self.settings.prices.as_ref().map_or(Cow::Owned(DEFAULT_PRICES), Cow::Borrowed)
    }

    /// A call is made with the context as it is now; `is_step` when it is not the one before, made again.
    pub(crate) fn pay(&mut self, now: u64, is_step: bool) {
        self.pays = false;
        self.calls_left = None;
        self.settle();
        if is_step {
            let (moment, prices) = (self.moment(now), self.prices().into_owned());
            self.row.paid.meter.pay(&prices, &moment, now);
        }
    }

    /// Whoever changed the context, and how: what was paid was paid for another one.
    fn settle(&mut self) {
        if self.row.paid.generation != self.generation() {
            let stable = self.stable_tokens();
            self.row.paid.meter.compacted(stable);
            self.row.paid.generation = self.generation();
        }
    }

    /// The context was changed from position `at` on, by what needs no model and does not end the rent: the provider has
    /// what stands before that in its cache still.
    pub(crate) fn cleared(&mut self, at: usize) {
        if !self.pays && self.row.paid.generation + 1 == self.generation() {
            let before = self.context.items().iter().take(at).map(|item| item.size.tokens).sum::<usize>();
            let before = self.corrected(self.fixed_tokens.saturating_add(before));
            self.row.paid.meter.cleared(before);
            self.row.paid.generation = self.generation();
        }
    }

    /// Tokens that no compaction changes.
    fn stable_tokens(&self) -> usize {
        self.before_tokens().saturating_add(self.context.totals().system)
    }

    /// What is known at this moment, with a summary in mind that leaves what the options say.
    pub(crate) fn moment(&self, now: u64) -> CostSnapshot {
        let (context, stable) = (self.tokens(), self.stable_tokens());
        let kept = self.kept_tokens();
        let replaced = context.saturating_sub(stable).saturating_sub(kept);
        let summary = self.settings.target(replaced).1.min(replaced / 2);
        let asks = self.settings.asks_a_model();
        let meter = self.row.paid.meter;
        let cached = match meter.last {
            // Nobody has said when the last call was: as a rule a moment ago.
            None if self.row.id.is_empty() => context,
            _ => meter.cached(now, &self.prices()).min(context),
        };
        CostSnapshot {
            context,
            cached,
            stable,
            after: stable.saturating_add(summary).saturating_add(kept).min(context),
            read: if asks { context.saturating_sub(kept) } else { 0 },
            in_thread: self.asks_in_thread(),
            summary: if asks { summary } else { 0 },
            is_turn: self.context.last().is_some_and(|item| item.size.role == Role::User),
        }
    }

    /// Tokens of the messages that stay at the end, about.
    fn kept_tokens(&self) -> usize {
        let totals = self.context.totals();
        let messages = totals.tokens.saturating_sub(totals.system);
        if let Some(leaves) = self.settings.leaves {
            let (_, page) = self.settings.target(messages);
            return leaves.saturating_sub(self.stable_tokens()).saturating_sub(page).min(messages);
        }
        match self.settings.keep {
            Keep::Messages(count) => {
                let newest = self.context.items().iter().rev().take(count);
                newest.map(|item| item.size.tokens).sum::<usize>().min(messages)
            }
            Keep::Tokens(tokens) => tokens.min(messages),
            Keep::Fraction(fraction) => (messages as f64 * fraction) as usize,
        }
    }
}
