//! What the ladder reports: plans, edits and results, in the shapes of the public API.

use super::call::{CallCost, CallTally};
use super::frame::text_of;
use crate::context::{Context, Fate, Ledger, Origin, PinProposal};
use crate::error::{Error, Result};
use crate::log::View;
use crate::order;
use crate::policy::{Rung, Trigger};
use crate::step::{Io, ReportedUsage};
use serde::Serialize;

/// A change that a rung made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Edit {
    /// The rung; `repair` for what a prompt leaves out or mends.
    pub kind: &'static str,
    /// The app's messages that it touched.
    pub indices: Vec<usize>,
    /// Tokens freed.
    pub freed_tokens: usize,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What offloading reports (`S1.2`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload: Option<OffloadReport>,
    /// What was asked for it in a dry run.
    #[serde(skip)]
    pub(crate) calls: CallTally,
}

impl Edit {
    /// A rung that has changed nothing yet.
    pub(crate) fn of(rung: Rung) -> Self {
        Edit::named(rung.as_str(), Vec::new(), 0)
    }

    /// An edit of some messages.
    pub(crate) fn named(kind: &'static str, indices: Vec<usize>, freed_tokens: usize) -> Self {
        Edit { kind, indices, freed_tokens, detail: None, offload: None, calls: CallTally::default() }
    }
}

/// What offloading did (`S1.2`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OffloadReport {
    /// Results that were moved.
    pub offloaded_count: usize,
    /// Tokens before.
    pub previous_tokens: usize,
    /// Tokens after.
    pub current_tokens: usize,
    /// Tokens freed.
    pub freed_tokens: usize,
    /// The threshold is still reached.
    pub still_exceeds_threshold: bool,
}

/// What as many calls as there were so far would cost, answers aside.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PlanCost {
    /// With a compaction before them, its own cost included.
    pub now: f64,
    /// With the context as it is.
    pub later: f64,
    /// Of 100 of them, how many need something that left, with a compaction: `now` has each as one more call.
    pub needs: f64,
    /// Of both.
    pub currency: &'static str,
}

/// How far a session is from the limits that the app set (`X5`, `X13`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanLimits {
    /// From what it may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<PlanUsd>,
    /// From what its prompts may hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_bytes: Option<PlanBytes>,
}

/// How far a prompt is from what it may hold, in bytes of its messages as JSON in UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlanBytes {
    /// What it may hold.
    pub limit: usize,
    /// What it holds now.
    pub bytes: usize,
    /// What it would hold after the plan.
    pub after: usize,
}

/// How far a session is from what it may cost, in USD.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PlanUsd {
    /// What it may cost.
    pub limit: f64,
    /// What its calls cost, as far as they were reported.
    pub spent: f64,
    /// What is left of it.
    pub left: f64,
    /// Prompts until it is reached, if each costs as much as the newest call that was reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<u64>,
}

/// A rung of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RungPlan {
    /// The rung; `repair` for what a prompt leaves out or mends.
    pub kind: &'static str,
    /// The app's messages that it would touch.
    pub indices: Vec<usize>,
    /// Tokens that it would free.
    pub freed_tokens: usize,
    /// Calls of a model.
    pub llm_calls: usize,
    /// Tokens of those calls' prompts.
    pub input_tokens: usize,
    /// Tokens of their answers, at most.
    pub output_tokens: usize,
}

impl RungPlan {
    /// The edit that a dry run made.
    pub(crate) fn of(edit: &Edit) -> Self {
        RungPlan {
            kind: edit.kind,
            indices: edit.indices.clone(),
            freed_tokens: edit.freed_tokens,
            llm_calls: edit.calls.count,
            input_tokens: edit.calls.input,
            output_tokens: edit.calls.output,
        }
    }
}

/// What the next `prepare` would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Some rung would fire.
    pub will_compact: bool,
    /// Why, or why not.
    pub reason: String,
    /// Tokens now.
    pub tokens: usize,
    /// Tokens at which the preset acts.
    pub limit: usize,
    /// Tokens that no compaction can go below.
    pub floor: usize,
    /// What would be done, in order.
    pub edits: Vec<RungPlan>,
    /// What the calls that are still to come would cost, where prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<PlanCost>,
    /// How far the session is from its limits, where it has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<PlanLimits>,
    /// Why compaction cannot help, when it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// What a compaction would do (`X14`).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionPreview {
    /// Its steps and their cost.
    #[serde(flatten)]
    pub plan: Plan,
    /// Tokens afterwards.
    pub tokens_after: usize,
    /// The messages that would stand in the context otherwise, or not at all.
    pub changes: Vec<FateChange>,
}

/// What would become of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FateChange {
    /// Index among the app's messages.
    pub index: usize,
    /// Its tokens now.
    pub tokens: usize,
    /// Its fate now.
    pub before: Fate,
    /// Its fate then.
    pub after: Fate,
}

impl FateChange {
    /// The messages of `before` whose fates are others in `after`, by index.
    pub(crate) fn between(before: &Context, after: &Context) -> Vec<FateChange> {
        let tokens =
            before.items().iter().filter_map(|item| Some((item.origin.place()?.index, item.size.tokens)));
        let tokens = order::map(tokens);
        let mut then = Ledger::of(after).entries().into_iter().peekable();
        let changes = Ledger::of(before).entries().into_iter().filter_map(|now| {
            while then.next_if(|entry| entry.index < now.index).is_some() {}
            let after = then.peek().filter(|entry| entry.index == now.index)?.fate;
            let tokens = *tokens.get(&now.index)?;
            (after != now.fate).then_some(FateChange { index: now.index, tokens, before: now.fate, after })
        });
        changes.collect()
    }
}

impl CompactionResult {
    /// A compaction that changed nothing so far.
    pub(crate) fn begin(view: &View, trigger: Trigger) -> Self {
        let tokens = view.usage.tokens;
        CompactionResult {
            success: true,
            changed: false,
            stored: view.stored,
            fits: view.fits(),
            error: None,
            fell_back: None,
            trigger,
            previous_tokens: tokens,
            current_tokens: tokens,
            freed_tokens: 0,
            preserved_count: view.context.len().saturating_sub(view.context.head()),
            retired_refs: Vec::new(),
            summary: None,
            saved_tokens: None,
            log_entry: None,
            pin_proposals: Vec::new(),
            omitted_constraints: Vec::new(),
            applied_edits: Vec::new(),
            ledger: Ledger::default(),
            usage: None,
            llm_calls: 0,
            duration_ms: 0,
            reason: None,
        }
    }

    /// The same, ended now; messages that were appended meanwhile count on both sides.
    pub(crate) async fn end(mut self, io: &Io, view: &View, started: u64) -> Result<Self> {
        self.count(view);
        self.ledger = Ledger::of(&view.context);
        self.duration_ms = io.now().await?.saturating_sub(started);
        Ok(self)
    }
}

impl CompactionResult {
    /// The same of a history that stays as it was `before`, whose summary failed.
    pub(crate) fn undone(self, before: &View) -> Self {
        let error = self.error.map(|mut error| match error.because.take() {
            Some(because) => because,
            None => error,
        });
        let mut result = CompactionResult {
            success: false,
            usage: self.usage,
            llm_calls: self.llm_calls,
            duration_ms: self.duration_ms,
            ledger: Ledger::of(&before.context),
            ..CompactionResult::begin(before, self.trigger)
        };
        if let Some(error) = error {
            result.fail(error);
        }
        result
    }

    /// What was asked for could not be had.
    pub(crate) fn fail(&mut self, error: Error) {
        self.success = false;
        self.fell_back = None;
        self.reason = Some(error.message.clone());
        self.error = Some(error);
    }

    /// Takes the tokens as they are now.
    fn count(&mut self, view: &View) {
        self.current_tokens = view.usage.tokens;
        self.previous_tokens = self.current_tokens.saturating_add(self.freed_tokens);
        self.fits = view.fits();
        self.stored = view.stored;
    }

    /// Tells of every edit of the compaction, those before its summary too.
    pub(crate) fn tell(&mut self, view: &View, edits: Vec<Edit>) {
        self.freed_tokens = edits.iter().map(|edit| edit.freed_tokens).sum();
        self.changed = !edits.is_empty();
        self.applied_edits = edits;
        self.count(view);
    }

    /// Leaves out references, where nobody keeps what they stand for.
    pub(crate) fn forget_references(&mut self) {
        self.retired_refs.clear();
        self.ledger.forget_references();
    }

    /// Takes over what an earlier summary of the same compaction saved.
    pub(super) fn follow(&mut self, earlier: &CompactionResult) {
        let saved = [earlier.saved_tokens, self.saved_tokens].into_iter().flatten();
        self.saved_tokens = saved.reduce(|sum, saved| sum + saved);
        if self.fell_back.is_none() {
            self.fell_back.clone_from(&earlier.fell_back);
        }
        if self.omitted_constraints.is_empty() {
            self.omitted_constraints.clone_from(&earlier.omitted_constraints);
        }
        if self.pin_proposals.is_empty() {
            self.pin_proposals.clone_from(&earlier.pin_proposals);
        }
        let entries = [earlier.log_entry.as_deref(), self.log_entry.as_deref()].into_iter().flatten();
        self.log_entry = entries.map(str::to_string).reduce(|before, entry| format!("{before}\n\n{entry}"));
    }

    /// Adds what later rungs did; messages that were appended meanwhile count on both sides.
    pub(super) fn add(&mut self, view: &View, edits: &[Edit], spent: CallCost) -> Result<()> {
        self.freed_tokens += edits.iter().map(|edit| edit.freed_tokens).sum::<usize>();
        self.count(view);
        self.applied_edits.extend_from_slice(edits);
        self.changed |= !edits.is_empty();
        self.ledger = Ledger::of(&view.context);
        self.llm_calls += spent.calls;
        if let Some(usage) = spent.usage {
            *self.usage.get_or_insert_default() += usage;
        }
        if self.summary.is_some() && !edits.is_empty() {
            // The new checkpoint may have been made shorter, too.
            let newest = view.items().iter().rfind(|item| matches!(item.origin, Origin::Summary { .. }));
            self.summary = newest.map(|newest| text_of(view.format, newest, true)).transpose()?;
        }
        Ok(())
    }
}

/// What a compaction did (`S1.10`).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// False when what was asked for could not be had: the summary failed, or the context does not fit.
    pub success: bool,
    /// Something of the context was edited.
    pub changed: bool,
    /// The context fits the window, with room for the answer.
    pub fits: bool,
    /// The store has the context. False when it is full: then the context is in memory, and is stored by the next call
    /// that finds room. Nothing where nothing is ever stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<bool>,
    /// Why it is no success; [`crate::Code::ContextOverflow`] whenever the context does not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// Why the built-in summariser wrote the summary, where the app chose that: the failure of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fell_back: Option<Error>,
    /// What set it off.
    pub trigger: Trigger,
    /// Tokens before.
    pub previous_tokens: usize,
    /// Tokens after.
    pub current_tokens: usize,
    /// Tokens freed.
    pub freed_tokens: usize,
    /// Messages that were kept as they are behind the summary.
    pub preserved_count: usize,
    /// Offloads that were retired.
    pub retired_refs: Vec<String>,
    /// The summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Tokens of what was summarised less those of the summary (`S4.4`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved_tokens: Option<usize>,
    /// What the session log says about it (`S4.4`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_entry: Option<String>,
    /// Pins that were proposed for what was summarised and that nobody answered (`S4.3`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pin_proposals: Vec<PinProposal>,
    /// Of those, the sentences that the new context does not hold, because they take more than a tenth of the window.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub omitted_constraints: Vec<PinProposal>,
    /// What was done.
    pub applied_edits: Vec<Edit>,
    /// The fate of every message.
    pub ledger: Ledger,
    /// What the summariser reported, summed over the attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ReportedUsage>,
    /// Calls of a model.
    pub llm_calls: u32,
    /// From start to commit.
    pub duration_ms: u64,
    /// Why nothing was done, or how a fallback was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
