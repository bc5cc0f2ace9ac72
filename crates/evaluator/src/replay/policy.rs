//! Policies: when to do what.

use super::needs::Part;
use super::simulation::{Context, MARK};
use super::trace::Call;
use context_compactor_core::policy::cost::{
    Meter, Rule, Verdict, calls_expected, clearing_saves, fetched_again,
};
use serde::{Deserialize, Serialize};

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
    /// These parts of messages are cleared.
    Clear {
        /// The message, which part of it, and the tokens that this frees.
        parts: Vec<(usize, Part, usize)>,
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
        /// What is cleared from half of `at` on, when that pays.
        clearing: Option<Clearing>,
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
    /// The engine's rule of prices; the last `tail` tokens stay, at least the exchange under way.
    RentOrBuy {
        /// Its numbers.
        rule: Rule,
        /// Tokens.
        tail: usize,
        /// Never a prompt above this.
        ceiling: usize,
        /// What is cleared between summaries, when that pays.
        clearing: Option<Clearing>,
    },
}

/// The engine's clearing of old results, and of the inputs that they answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Clearing {
    /// The newest results that stay.
    pub keep: usize,
    /// Only what has more tokens.
    #[serde(rename = "minTokens")]
    pub least: usize,
    /// Long texts in inputs of calls too.
    pub inputs: bool,
}

impl Clearing {
    /// As in the preset `balanced`, in this window.
    pub const BALANCED: Clearing = Clearing { keep: 16, least: 1_000, inputs: false };
    /// The same with its option `economy`.
    pub const ECONOMY: Clearing = Clearing { keep: 3, ..Clearing::BALANCED };
}

/// The window that thresholds of peers are shares of.
const WINDOW: usize = 200_000;

/// Tokens of messages that the preset `balanced` keeps in this window, beside a page of about 5,000.
const BALANCED_TAIL: usize = 55_000;

/// The same with its option `economy`.
const ECONOMY_TAIL: usize = 15_000;

/// The ceiling of the engine's rule: the window less an answer.
pub const CEILING: usize = WINDOW - 16_384;

/// What is compared: the rule with summaries only, the preset `balanced` as it is, and peers by their published thresholds
/// with one common operator, so read it as a table of triggers.
pub const POLICIES: [(&str, Policy); 18] = [
    ("none (endless window)", Policy::None),
    ("Claude-Code-like, 170.6k", Policy::at(170_600, 10_000)),
    ("Anthropic API, 150k", Policy::at(150_000, 10_000)),
    ("Codex-like, 180k", Policy::at(180_000, 20_000)),
    ("pi, 183.6k", Policy::at(183_600, 20_000)),
    ("DeepAgents, 0.85, keep 0.1", Policy::at(170_000, 20_000)),
    ("Gemini-CLI, 0.5, keep 0.3", Policy::at(100_000, 30_000)),
    ("factor3, 0.5, keep 3", Policy::at(100_000, 3_000)),
    ("sliding window 100k, every call", Policy::Slide { at: 100_000, to: 100_000 }),
    ("window 100k to 50k", Policy::Slide { at: 100_000, to: 50_000 }),
    ("clear every turn, keep 3", Policy::Clear { at: 0, keep: 3 }),
    ("clear from 100k, keep 3", Policy::Clear { at: 100_000, keep: 3 }),
    ("fixed 60k, tail 10k", Policy::at(60_000, 10_000)),
    ("fixed 40k, tail 10k", Policy::at(40_000, 10_000)),
    ("rent or buy", Policy::RentOrBuy { rule: Rule::TUNED, tail: 0, ceiling: CEILING, clearing: None }),
    (
        "rent or buy, tail 5k",
        Policy::RentOrBuy { rule: Rule::TUNED, tail: 5_000, ceiling: CEILING, clearing: None },
    ),
    ("balanced", Policy::At { at: 100_000, tail: BALANCED_TAIL, clearing: Some(Clearing::BALANCED) }),
    (
        "balanced, economy",
        Policy::RentOrBuy {
            rule: Rule { floor: 50_000, ..Rule::TUNED },
            tail: ECONOMY_TAIL,
            ceiling: 100_000,
            clearing: Some(Clearing::ECONOMY),
        },
    ),
];

impl Action {
    /// Clears all results before a call but the newest `keep`.
    pub fn clear(call: &Call, context: &Context<'_>, keep: usize) -> Self {
        let of = |message: usize| context.trace.results[message];
        let results: Vec<usize> = (context.from..call.upto).filter(|message| of(*message) > 0).collect();
        let old = &results[..results.len().saturating_sub(keep)];
        let open = old.iter().filter(|at| !context.cleared.contains_key(&(**at, Part::Result)));
        cleared(open.map(|at| (*at, Part::Result, of(*at).saturating_sub(MARK))).collect())
    }
}

impl Policy {
    /// A summary at `at` tokens that keeps the last `tail`.
    pub const fn at(at: usize, tail: usize) -> Policy {
        Policy::At { at, tail, clearing: None }
    }

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
    pub(super) fn before(&mut self, call: &Call, nth: usize, context: &Context<'_>) -> Action {
        let prices = context.prices;
        let tokens = context.tokens(call);
        // The engine's presets make no summary that frees less than a tenth of the window, a fifth of what they act at, below
        // the hard limit (`W5`); others any that frees something.
        let helps = |at: usize, tail, clearing: Option<Clearing>| {
            let freed = tokens.saturating_sub(context.moment(call, tail).after);
            let least = if clearing.is_some() && tokens < CEILING.max(at) { at / 5 } else { 1 };
            freed >= least
        };
        match self.policy {
            Policy::None => Action::None,
            Policy::At { at, tail, clearing } if tokens >= at && nth > 0 && helps(at, tail, clearing) => {
                Action::Compact { tail }
            }
            Policy::At { at, clearing: Some(clearing), .. } if tokens >= at / 2 => {
                cleared(what_pays(clearing, None, call, context))
            }
            Policy::Slide { at, to } if tokens > at => Action::Slide { to },
            Policy::Clear { at, keep } if tokens >= at => Action::clear(call, context, keep),
            Policy::RentOrBuy { rule, tail, ceiling, clearing } if nth > 0 => {
                let moment = context.moment(call, tail);
                let decision = self.meter.decide(&rule, prices, &moment, true);
                let is_due = decision == Verdict::Buy || tokens >= ceiling;
                if is_due && helps(ceiling, tail, clearing) {
                    return Action::Compact { tail };
                }
                let left = self.meter.calls_left(&rule, prices, &moment);
                let parts = clearing.map(|clearing| what_pays(clearing, Some(left), call, context));
                cleared(parts.unwrap_or_default())
            }
            _ => Action::None,
        }
    }

    pub(super) fn done(&mut self, call: &Call, context: &Context<'_>, action: &Action) {
        let Policy::RentOrBuy { tail, .. } = self.policy else { return };
        if matches!(action, Action::Compact { .. }) {
            self.meter.compacted(context.cached);
        }
        self.meter.pay(context.prices, &context.moment(call, tail), 0);
    }
}

fn cleared(parts: Vec<(usize, Part, usize)>) -> Action {
    if parts.is_empty() { Action::None } else { Action::Clear { parts } }
}

/// What the engine would clear before a call: the batch that saves most, or nothing.
fn what_pays(
    clearing: Clearing,
    left: Option<u64>,
    call: &Call,
    context: &Context<'_>,
) -> Vec<(usize, Part, usize)> {
    let trace = context.trace;
    let range = |message: usize| trace.answers.partition_point(|answer| answer.message < message);
    let answers = &trace.answers[range(context.from)..range(call.upto)];
    let old = &answers[..answers.len().saturating_sub(clearing.keep)];
    let mut open: Vec<(usize, Part, usize)> = old
        .iter()
        .flat_map(|answer| answer.clears(clearing.least, clearing.inputs))
        .filter(|(message, part, _)| {
            *message >= context.from && !context.cleared.contains_key(&(*message, *part))
        })
        .collect();
    open.sort_unstable();
    let (mut read, mut freed, mut best, mut from) = (0, 0, 0, open.len());
    for (nth, (message, _, frees)) in open.iter().enumerate().rev() {
        let answers = trace.spoken[call.upto] - trace.spoken[*message];
        read += *frees as u64 * calls_expected(answers.saturating_sub(clearing.keep), left);
        freed += frees;
        let behind = context.between(*message, call.upto).saturating_sub(freed);
        let again = left.map_or(0, |_| fetched_again(freed));
        let saves = clearing_saves(context.prices.base, read, behind, again);
        if saves > best {
            (best, from) = (saves, nth);
        }
    }
    open.split_off(from)
}
