//! Policies: when to do what.

use super::simulation::Context;
use super::trace::{Call, Trace};
use context_compactor_core::plan::cost::{Decision, Meter, Prices, Rule};

/// What a policy does before a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    None,
    /// A summary of all but the last `tail` tokens.
    Compact {
        /// Tokens.
        tail: usize,
    },
    /// The oldest messages go until the prompt has this many tokens.
    Slide {
        /// Tokens.
        to: usize,
    },
    /// The results of these messages are cleared.
    Clear {
        /// Messages.
        messages: Vec<usize>,
    },
}

/// A policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// No compaction, in a window without end.
    None,
    /// A summary when the prompt has `at` tokens, that keeps the last `tail`, at least the exchange under way.
    At {
        /// Tokens.
        at: usize,
        /// Tokens.
        tail: usize,
    },
    /// The oldest messages go when the prompt has `at` tokens, until it has `to`.
    Slide {
        /// Tokens.
        at: usize,
        /// Tokens.
        to: usize,
    },
    /// From `at` tokens on all results but the newest `keep` are cleared.
    Clear {
        /// Tokens.
        at: usize,
        /// Results.
        keep: usize,
    },
    /// The engine's rule; the last `tail` tokens stay, at least the exchange under way.
    RentOrBuy {
        /// Its numbers.
        rule: Rule,
        /// Tokens.
        tail: usize,
        /// Never a prompt above this.
        ceiling: usize,
    },
}

/// The window that thresholds of peers are shares of.
const WINDOW: usize = 200_000;

/// The ceiling of the engine's rule: the window less an answer.
pub const CEILING: usize = WINDOW - 16_384;

/// What is compared: peers by their published thresholds with one common operator, so read it as a table of triggers.
pub const POLICIES: [(&str, Policy); 16] = [
    ("none (endless window)", Policy::None),
    ("Claude-Code-like, 170.6k", Policy::At { at: 170_600, tail: 10_000 }),
    ("Anthropic API, 150k", Policy::At { at: 150_000, tail: 10_000 }),
    ("Codex-like, 180k", Policy::At { at: 180_000, tail: 20_000 }),
    ("pi, 183.6k", Policy::At { at: 183_600, tail: 20_000 }),
    ("DeepAgents, 0.85, keep 0.1", Policy::At { at: 170_000, tail: 20_000 }),
    ("Gemini-CLI, 0.5, keep 0.3", Policy::At { at: 100_000, tail: 30_000 }),
    ("factor3, 0.5, keep 3", Policy::At { at: 100_000, tail: 3_000 }),
    ("sliding window 100k, every call", Policy::Slide { at: 100_000, to: 100_000 }),
    ("window 100k to 50k", Policy::Slide { at: 100_000, to: 50_000 }),
    ("clear every turn, keep 3", Policy::Clear { at: 0, keep: 3 }),
    ("clear from 100k, keep 3", Policy::Clear { at: 100_000, keep: 3 }),
    ("fixed 60k, tail 10k", Policy::At { at: 60_000, tail: 10_000 }),
    ("fixed 40k, tail 10k", Policy::At { at: 40_000, tail: 10_000 }),
    ("rent or buy", Policy::RentOrBuy { rule: Rule::TUNED, tail: 0, ceiling: CEILING }),
    ("rent or buy, tail 5k", Policy::RentOrBuy { rule: Rule::TUNED, tail: 5_000, ceiling: CEILING }),
];

impl Policy {
    /// Begins a replay.
    pub(super) fn pilot(&self) -> Pilot {
        Pilot { policy: *self, meter: Meter::default() }
    }
}

/// A policy on its way.
#[derive(Debug)]
pub(super) struct Pilot {
    policy: Policy,
    meter: Meter,
}

impl Pilot {
    pub(super) fn before(
        &mut self,
        call: &Call,
        nth: usize,
        context: &Context<'_>,
        trace: &Trace,
        prices: &Prices,
    ) -> Action {
        let tokens = context.tokens(call);
        match self.policy {
            Policy::None => Action::None,
            Policy::At { at, tail } if tokens >= at && nth > 0 => Action::Compact { tail },
            Policy::Slide { at, to } if tokens > at => Action::Slide { to },
            Policy::Clear { at, keep } if tokens >= at => {
                let results: Vec<usize> =
                    (context.from..call.upto).filter(|message| trace.results[*message] > 0).collect();
                let old = &results[..results.len().saturating_sub(keep)];
                let messages: Vec<usize> =
                    old.iter().copied().filter(|at| !context.cleared.contains(at)).collect();
                if messages.is_empty() { Action::None } else { Action::Clear { messages } }
            }
            Policy::RentOrBuy { rule, tail, ceiling } if nth > 0 => {
                let moment = context.moment(call, tail);
                let decision = self.meter.decide(&rule, prices, &moment);
                let full = tokens >= ceiling && moment.after < tokens;
                if decision == Decision::Buy || full { Action::Compact { tail } } else { Action::None }
            }
            _ => Action::None,
        }
    }

    pub(super) fn done(&mut self, call: &Call, context: &Context<'_>, action: &Action, prices: &Prices) {
        let Policy::RentOrBuy { tail, .. } = self.policy else { return };
        if *action != Action::None {
            self.meter.compacted(context.cached);
        }
        self.meter.pay(prices, &context.moment(call, tail), 0);
    }
}
