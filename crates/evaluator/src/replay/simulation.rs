//! The replay.

use super::needs::Part;
use super::policy::{Action, Pilot, Policy};
use super::trace::{Call, Trace};
use context_compactor_core::policy::cost::{Cost, CostSnapshot, INSTRUCTION_TOKENS, Prices};
use std::collections::BTreeMap;

/// Tokens of a summary.
pub const SUMMARY: usize = 1_500;
/// The most of a result that is read again.
const MOST_AGAIN: usize = 20_000;
/// The most that a search brings back of anything else.
const MOST_RECALLED: usize = 1_500;
/// Tokens of a call that fetches something.
const FETCH: usize = 150;
/// Tokens of the mark where a result was.
pub const MARK: usize = 12;

/// What a replay cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replayed {
    /// In all.
    pub cost: Cost,
    /// Compactions.
    pub compactions: usize,
    /// Things that were fetched again.
    pub faults: usize,
    /// Their tokens.
    pub fetched: usize,
    /// Tokens of the largest prompt.
    pub largest: usize,
    /// Calls without a compaction before which the prompt's prefix changed.
    pub broken: usize,
}

/// A context on its way through a transcript.
#[derive(Debug, Clone)]
pub struct Context<'t> {
    /// The transcript.
    pub trace: &'t Trace,
    /// What it is priced with.
    pub prices: &'t Prices,
    /// The first message that stands in it word for word.
    pub from: usize,
    /// Tokens of the summary before that, and the call before which it was written.
    summary: Option<(usize, usize)>,
    /// Which messages were fetched again.
    fetched: Vec<bool>,
    /// Tokens of what was fetched.
    extra: usize,
    /// Parts of messages that were cleared, with the tokens that this freed.
    pub cleared: BTreeMap<(usize, Part), usize>,
    /// Tokens that the provider has in its cache.
    pub cached: usize,
    /// What happened.
    pub done: Replayed,
}

impl<'t> Context<'t> {
    /// At the beginning.
    pub fn new(trace: &'t Trace, prices: &'t Prices) -> Self {
        Context {
            trace,
            prices,
            from: 0,
            summary: None,
            fetched: Vec::new(),
            extra: 0,
            cleared: BTreeMap::new(),
            cached: trace.shared,
            done: Replayed::default(),
        }
    }

    /// Right after a compaction before `call` that kept the messages from `from` on.
    pub fn after(trace: &'t Trace, prices: &'t Prices, call: usize, from: usize) -> Self {
        let summary = Some((SUMMARY, call));
        Context { from, summary, cached: trace.stable, ..Context::new(trace, prices) }
    }

    /// Tokens of the prompt of a call.
    pub fn tokens(&self, call: &Call) -> usize {
        self.tokens_before(call.upto) + self.extra
    }

    /// Tokens of the messages `from .. to` as they stand there.
    pub fn between(&self, from: usize, to: usize) -> usize {
        let freed = self.cleared.range((from, Part::Said)..(to.max(from), Part::Said));
        self.trace.between(from, to).saturating_sub(freed.map(|(_, tokens)| tokens).sum())
    }

    /// The first message that is kept when `tail` tokens are: never less than the exchange under way.
    pub fn kept_from(&self, call: &Call, tail: usize) -> usize {
        kept_from(self.trace, call, tail).max(self.from)
    }

    /// What is known before a call, with a compaction in mind that keeps `tail` tokens.
    pub fn moment(&self, call: &Call, tail: usize) -> CostSnapshot {
        let kept = self.kept_from(call, tail);
        let tail = self.between(kept, call.upto);
        let context = self.tokens(call);
        CostSnapshot {
            context,
            cached: self.cached.min(context),
            stable: self.trace.stable,
            after: self.trace.stable + SUMMARY + tail,
            read: context.saturating_sub(tail),
            in_thread: true,
            summary: SUMMARY,
            is_turn: call.is_turn,
        }
    }

    /// What a summary costs that is asked for at the end of a prompt of `tokens` tokens (`W7`): what the provider has of it
    /// in its cache is read from there.
    pub fn summary_cost(&self, tokens: usize) -> Cost {
        self.prices.request(tokens + INSTRUCTION_TOKENS, self.cached, SUMMARY)
    }

    /// Does what a policy wants before call `nth`.
    pub fn act(&mut self, nth: usize, action: &Action) {
        let call = &self.trace.calls[nth];
        match action {
            Action::None => {}
            Action::Compact { tail } => {
                let cost = self.summary_cost(self.tokens(call));
                let from = self.kept_from(call, *tail);
                let after = Context::after(self.trace, self.prices, nth, from);
                let cleared = self.cleared.split_off(&(from, Part::Said));
                *self = Context { done: self.done, cached: self.cached.min(after.cached), cleared, ..after };
                self.done.cost += cost;
                self.done.compactions += 1;
            }
            Action::Slide { to } => {
                let tail = to.saturating_sub(self.trace.stable);
                let from = self.kept_from(call, tail);
                if from > self.from {
                    let cached = self.cached.min(self.trace.stable);
                    let after = Context { from, cached, ..Context::new(self.trace, self.prices) };
                    *self = Context { done: self.done, ..after };
                    self.done.compactions += 1;
                }
            }
            Action::Clear { parts } => {
                let Some(first) = parts.iter().map(|(message, ..)| *message).min() else { return };
                self.cached = self.cached.min(self.tokens_before(first));
                self.cleared.extend(parts.iter().map(|(message, part, frees)| ((*message, *part), *frees)));
                self.done.compactions += 1;
            }
        }
    }

    /// Tokens of the prompt before a message.
    fn tokens_before(&self, message: usize) -> usize {
        let summary = self.summary.map_or(0, |(tokens, _)| tokens);
        self.trace.stable + summary + self.between(self.from, message)
    }

    /// The provider forgets the prompt, but for what other conversations share with it.
    pub fn forget(&mut self) {
        self.cached = self.cached.min(self.trace.shared);
    }

    /// A call, with what has to be fetched for it.
    pub fn step(&mut self, nth: usize) {
        let call = &self.trace.calls[nth];
        let mut tokens = self.tokens(call);
        for need in &call.needs {
            if need.source >= self.from && self.cleared.is_empty() {
                // They are in order.
                break;
            }
            let away = need.source < self.from || self.cleared.contains_key(&(need.source, need.part));
            if !away || self.fetched.get(need.source) == Some(&true) {
                continue;
            }
            let in_summary = |name: &u32| match self.summary {
                Some((_, at)) if need.source < self.from => {
                    self.trace.calls[at].salient.binary_search(name).is_ok()
                }
                _ => false,
            };
            if !need.passage && need.names.iter().all(in_summary) {
                continue;
            }
            let again = match self.trace.results[need.source] {
                0 => self.trace.sizes[need.source].min(MOST_RECALLED),
                result if need.passage => result.min(MOST_AGAIN),
                result => result.min(MOST_RECALLED),
            };
            self.done.cost += self.prices.request(tokens, self.cached, FETCH);
            self.cached = tokens;
            self.extra += FETCH + again;
            tokens += FETCH + again;
            self.done.faults += 1;
            self.done.fetched += again;
            if self.fetched.is_empty() {
                self.fetched = vec![false; self.trace.sizes.len()];
            }
            self.fetched[need.source] = true;
        }
        self.done.cost += self.prices.request(tokens, self.cached, call.output);
        self.cached = tokens;
        self.done.largest = self.done.largest.max(tokens);
    }
}

/// The first message of the last `tail` tokens before a call; at least the exchange under way.
pub fn kept_from(trace: &Trace, call: &Call, tail: usize) -> usize {
    let least = trace.before[call.upto].saturating_sub(tail);
    trace.before.partition_point(|before| *before < least).min(call.exchange)
}

/// A replay on its way, call by call.
#[derive(Debug)]
pub struct Replay<'t> {
    pilot: Pilot,
    /// The context before the next call.
    pub context: Context<'t>,
    /// The next call.
    pub nth: usize,
}

impl<'t> Replay<'t> {
    /// Before the first call.
    pub fn new(trace: &'t Trace, policy: &Policy, prices: &'t Prices) -> Self {
        let mut replay = Replay { pilot: policy.pilot(), context: Context::new(trace, prices), nth: 0 };
        replay.wait();
        replay
    }

    /// The next call, if there is one.
    pub fn call(&self) -> Option<&'t Call> {
        self.context.trace.calls.get(self.nth)
    }

    /// What the policy wants before the next call.
    pub fn decide(&mut self) -> Action {
        let Some(call) = self.call() else { return Action::None };
        self.pilot.before(call, self.nth, &self.context)
    }

    /// Does that, and makes the call.
    pub fn go_on(&mut self, action: &Action) {
        let Some(call) = self.call() else { return };
        let context = &mut self.context;
        let due = context.cached.min(context.tokens(call));
        context.act(self.nth, action);
        if matches!(action, Action::None) && context.cached.min(context.tokens(call)) != due {
            context.done.broken += 1;
        }
        self.pilot.done(call, context, action);
        context.step(self.nth);
        self.nth += 1;
        self.wait();
    }

    /// Until the next call: the provider may forget.
    fn wait(&mut self) {
        if self.call().is_some_and(|call| call.is_cold) {
            self.context.forget();
        }
    }
}

/// Replays a transcript under a policy.
pub fn replay(trace: &Trace, policy: &Policy, prices: &Prices) -> Replayed {
    let mut replay = Replay::new(trace, policy, prices);
    while replay.call().is_some() {
        let action = replay.decide();
        replay.go_on(&action);
    }
    replay.context.done
}
