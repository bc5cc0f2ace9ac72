//! The ladder: one climb, for the real run and for the dry run.

use super::ask::Spent;
use super::call::CallCost;
use super::cut::{self, Aim};
use super::floor::{floor, overflow, settle};
use super::replace::{self, Move};
use super::result::{CompactionResult, Edit, Plan, PlanCost, RungPlan};
use super::write::Order;
use super::{
    admit, ageing, checkpoint_budget, clear, compress, emergency, last, offload, process, summarise,
};
use crate::checkpoint::Level;
use crate::error::{Code, Error, Result};
use crate::log::{SessionGuard, State};
use crate::policy::cost::{CostSnapshot, Rule};
use crate::policy::{Rung, Trigger};
use crate::step::Io;

/// How often a rung that another tab overtook is tried again.
const AGAIN: usize = 3;

/// Which rungs a climb takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClimbPart {
    /// All of them.
    Whole,
    /// Those that need no summary yet: one that can wait is put off.
    Now,
    /// The summary that was put off, and what follows it.
    Later,
}

/// How a climb is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Climb<'r> {
    /// Which rungs of the preset.
    pub(crate) part: ClimbPart,
    /// What set it off.
    pub(crate) trigger: Trigger,
    /// More guidance for the summary.
    pub(crate) instructions: Option<&'r str>,
    /// A dry run on a copy of the session: nothing is stored and no model is called.
    pub(crate) rehearse: bool,
}

impl<'r> Climb<'r> {
    /// All rungs, for real.
    pub(crate) fn whole(trigger: Trigger, instructions: Option<&'r str>) -> Self {
        Climb { part: ClimbPart::Whole, trigger, instructions, rehearse: false }
    }
}

/// What a climb did, or would do.
#[derive(Debug, Default)]
pub(crate) struct Climbed {
    /// What was changed.
    pub(crate) edits: Vec<Edit>,
    /// The same as a plan, with what the calls of a model take.
    pub(crate) rungs: Vec<RungPlan>,
    /// What compressing results cost.
    pub(crate) spent: Spent,
    /// What the summary rung did, when it was tried.
    pub(crate) result: Option<CompactionResult>,
    /// Why a rung that fired had nothing to do.
    pub(crate) idle: Vec<String>,
    /// Why a summary was none, whatever came of the others.
    failed: Option<Error>,
    /// A summary is due, and put off.
    pub(crate) put_off: bool,
    /// How detailed the summary of a dry run would be.
    level: Option<Level>,
}

impl Climbed {
    /// Adds what a rung behind the summary did; the result of the summary tells it too.
    fn add(&mut self, held: &SessionGuard, edits: Vec<Edit>, spent: CallCost) -> Result<()> {
        if let Some(result) = &mut self.result {
            result.add(held, &edits, spent)?;
        }
        self.rungs.extend(edits.iter().map(RungPlan::of));
        self.edits.extend(edits);
        Ok(())
    }

    /// Adds what the emergency did: the last summary that was made is the one that counts.
    fn rescue(&mut self, held: &SessionGuard, results: Vec<CompactionResult>) -> Result<()> {
        for mut result in results {
            self.failed = self.failed.take().or_else(|| result.error.clone());
            if let Some(before) = &self.result {
                result.follow(before);
            }
            self.edits.extend(result.applied_edits.iter().cloned());
            let spent = CallCost { calls: result.llm_calls, usage: result.usage };
            match &mut self.result {
                Some(before) if before.success || !result.success => {
                    before.add(held, &result.applied_edits, spent)?;
                    before.summary = result.summary.or(before.summary.take());
                    (before.saved_tokens, before.log_entry) = (result.saved_tokens, result.log_entry);
                    before.pin_proposals = result.pin_proposals;
                    before.fell_back = result.fell_back;
                }
                _ => {
                    let before = self.result.replace(result);
                    if let (Some(before), Some(now)) = (before, &mut self.result) {
                        let spent = CallCost { calls: before.llm_calls, usage: before.usage };
                        now.add(held, &[], spent)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Climbs the ladder, cheapest rung first, until the preset has no rung left that fires.
///
/// Errors: [`Code::ContextOverflow`] when the context does not fit the window in the end; errors of the store; abort.
pub(crate) async fn climb(io: &Io, held: &mut SessionGuard, climb: Climb<'_>) -> Result<Climbed> {
    let mut done = Climbed::default();
    let forced = matches!(climb.trigger, Trigger::Manual | Trigger::Overflow);
    let settings = held.settings();
    let mut freed = 0;
    let put_off = settings.rungs.iter().position(|rung| *rung == Rung::Summarise);
    let first = if climb.part == ClimbPart::Later { put_off.unwrap_or_default() } else { 0 };
    // A prepare tells nobody why it did nothing.
    let tells = climb.rehearse || climb.trigger == Trigger::Manual;
    for rung in settings.rungs.iter().skip(first) {
        match rung {
            Rung::Process | Rung::Admit | Rung::Clear | Rung::Offload => {
                let edit = reduce(io, held, *rung, climb).await?;
                let Some(edit) = edit.filter(|edit| !edit.indices.is_empty()) else {
                    if tells {
                        done.idle.push(idle(*rung, climb.trigger).into());
                    }
                    continue;
                };
                if *rung == Rung::Offload {
                    freed = edit.freed_tokens;
                }
                done.rungs.push(RungPlan::of(&edit));
                done.edits.push(edit);
            }
            Rung::Compress => {
                let mut spent = Spent::default();
                let edits = compress::run(io, held, climb, &mut spent).await?;
                if edits.is_empty() {
                    done.idle.push(idle(*rung, climb.trigger).into());
                }
                for (nth, edit) in edits.into_iter().enumerate() {
                    // What the calls take is told once.
                    let calls = if nth == 0 { spent.cost.calls as usize } else { 0 };
                    done.rungs.push(RungPlan { llm_calls: calls, ..RungPlan::of(&edit) });
                    done.edits.push(edit);
                }
                done.spent = spent;
            }
            Rung::Summarise if climb.part == ClimbPart::Later => {
                summarise(io, held, climb, &mut done).await?
            }
            Rung::Summarise if forced || summarise::fires(&held.state(), freed) => {
                if climb.part == ClimbPart::Now && can_wait(&held.state(), climb.trigger)? {
                    done.put_off = true;
                } else {
                    summarise(io, held, climb, &mut done).await?;
                }
            }
            Rung::Summarise if tells => done.idle.push("the next summary is not due yet".into()),
            Rung::Summarise => {}
            Rung::Age | Rung::Merge => {
                let summarises = done.rungs.iter().any(|plan| plan.kind == Rung::Summarise.as_str());
                let summarised = done.result.as_ref().is_some_and(|result| result.summary.is_some());
                if climb.rehearse {
                    if summarises {
                        done.rungs.extend(ageing::rehearse(&held.state(), *rung, true));
                    }
                    if *rung == Rung::Merge
                        && let Some(level) = done.level
                    {
                        done.rungs.extend(checkpoint_budget::rehearse(&held.state(), level));
                    }
                } else if summarised || held.tokens() > settings.hard_limit {
                    emergency::secure(io, held, climb).await?;
                    let mut spent = CallCost::default();
                    let mut edits = match rung {
                        Rung::Age => ageing::age(io, held, climb, &mut spent).await?,
                        _ => ageing::merge(io, held, climb, &mut spent).await?.into_iter().collect(),
                    };
                    if *rung == Rung::Merge {
                        edits.extend(checkpoint_budget::enforce(io, held, climb, &mut spent).await?);
                    }
                    done.add(held, edits, spent)?;
                }
            }
            Rung::Rollover if climb.rehearse => {
                let freed: usize = done.rungs.iter().map(|plan| plan.freed_tokens).sum();
                let after = held.tokens_without(freed);
                done.rungs.extend(emergency::rehearse(&held.state(), climb.trigger, after)?);
            }
            Rung::Rollover => {
                shorten_all(io, held, climb, &mut done).await?;
                let failed = done.result.as_ref().and_then(|result| result.error.clone());
                let results = emergency::run(io, held, climb, failed.as_ref()).await?;
                done.rescue(held, results)?;
            }
        }
    }
    if climb.rehearse {
        return Ok(done);
    }
    shorten_all(io, held, climb, &mut done).await?;
    // What was put off is no prompt: the next one is made to fit before it is sent. Nor is what an app asked for by hand,
    // which is told that it does not fit.
    let must_fit = climb.trigger != Trigger::Manual && climb.part != ClimbPart::Later;
    if must_fit && held.tokens() > held.settings().hard_limit {
        let failed = done.result.as_ref().and_then(|result| result.error.as_ref());
        return Err(overflow(io, held, climb.trigger, failed.or(done.failed.as_ref())).await?);
    }
    if let Some(result) = &mut done.result {
        settle(io, held, result).await?;
    }
    Ok(done)
}

/// Why nothing was done, each reason once.
pub(crate) fn reason(idle: &[String]) -> String {
    let mut reasons: Vec<&str> = idle.iter().map(String::as_str).collect();
    reasons.dedup();
    if reasons.is_empty() { "no step that frees tokens is due".into() } else { reasons.join("; ") }
}

/// Why a rung that needs no summary did nothing.
fn idle(rung: Rung, trigger: Trigger) -> &'static str {
    match (rung, trigger) {
        (Rung::Process | Rung::Clear | Rung::Offload, Trigger::Manual) => {
            "tool results are moved when a prompt is prepared, not by a compaction by hand"
        }
        (Rung::Process, _) => "no new tool result is long enough to be processed",
        (Rung::Admit, _) => "no tool result is too large for a prompt",
        (Rung::Clear, _) => "no old tool result is left to clear",
        (Rung::Compress, _) => "no tool result is left to compress",
        _ => "no tool result is left to offload",
    }
}

/// True when a summary that is due may be made while the conversation goes on: a model is asked for it, there is something
/// to summarise, and the prompt fits without it.
fn can_wait(state: &State, trigger: Trigger) -> Result<bool> {
    if trigger != Trigger::Auto || !state.settings.asks_a_model() || !emergency::has_room(state) {
        return Ok(false);
    }
    Ok(cut::propose(state, Aim::of(&state.settings))?.is_ok())
}

/// The summary rung. Where a share of the tokens is kept, one summary may not be enough: another one keeps the share of
/// what it left. It is tried again as long as that gets anywhere.
async fn summarise(io: &Io, held: &mut SessionGuard, climb: Climb<'_>, done: &mut Climbed) -> Result<()> {
    let limit = held.settings().hard_limit;
    for _ in 0..AGAIN {
        // A summary may fail: what the step that needs none would leave decides.
        let floor = floor(io, held, climb.trigger, true).await?;
        if floor.total > limit && climb.trigger != Trigger::Manual {
            // No summary makes it fit: the model would be asked in vain, step after step.
            done.idle.push(floor.to_string());
            return Ok(());
        }
        let room = held.settings().numbers.target_tokens.min(limit / 4);
        let excess = floor.before.saturating_add(room).saturating_sub(limit);
        if held.tokens() > limit && excess > 0 {
            shorten(io, held, climb, (excess, &|index| floor.stays.holds(index)), done).await?;
            if climb.trigger == Trigger::Auto && !held.state().is_due() && held.tokens() <= limit {
                return Ok(());
            }
        }
        let proposal = cut::propose(&held.state(), Aim::of(&held.settings()))?;
        if climb.rehearse {
            match proposal {
                Ok(proposal) => {
                    done.rungs.push(summarise::rehearse(io, held, &proposal).await?);
                    done.level = proposal.level;
                }
                Err(reason) => done.idle.push(reason),
            }
            return Ok(());
        }
        emergency::secure(io, held, climb).await?;
        let mut result = summarise::run(io, held, Order::new(climb, Rung::Summarise), proposal).await?;
        if let Some(before) = &done.result {
            result.follow(before);
        }
        let freed = result.freed_tokens;
        done.edits.extend(result.applied_edits.iter().cloned());
        done.result = Some(result);
        if climb.trigger == Trigger::Manual || freed == 0 || held.tokens() <= limit {
            return Ok(());
        }
    }
    Ok(())
}

/// The last resort: of the messages of which `may` holds what is too large by itself is stored and previewed, where that
/// frees `excess` tokens; otherwise it would change the context in vain.
async fn shorten(
    io: &Io,
    held: &SessionGuard,
    climb: Climb<'_>,
    (excess, may): (usize, &dyn Fn(usize) -> bool),
    done: &mut Climbed,
) -> Result<()> {
    let propose = |state: &State| Ok(Some(last::propose(state, excess, may)?));
    let edit = carry_out(io, held, Rung::Admit, climb, &propose).await?;
    match edit.filter(|edit| !edit.indices.is_empty()) {
        Some(edit) => done.add(held, vec![edit], CallCost::default()),
        None => Ok(()),
    }
}

/// The same for all messages, when the prompt does not fit.
async fn shorten_all(io: &Io, held: &SessionGuard, climb: Climb<'_>, done: &mut Climbed) -> Result<()> {
    let (tokens, limit) = (held.tokens(), held.settings().hard_limit);
    match tokens.checked_sub(limit) {
        None | Some(0) => Ok(()),
        Some(excess) => shorten(io, held, climb, (excess, &|_| true), done).await,
    }
}

/// A rung that needs no model.
async fn reduce(io: &Io, held: &SessionGuard, rung: Rung, climb: Climb<'_>) -> Result<Option<Edit>> {
    let propose = |state: &State| match rung {
        Rung::Process => process::propose(state, climb.trigger),
        Rung::Admit => admit::propose(state, climb.trigger),
        Rung::Clear => clear::propose(state, climb.trigger),
        Rung::Offload => offload::propose(state, climb.trigger),
        Rung::Compress | Rung::Summarise | Rung::Age | Rung::Merge | Rung::Rollover => Ok(None),
    };
    carry_out(io, held, rung, climb, &propose).await
}

/// Makes the moves that are proposed. When another tab changed the context first, what it made of it is looked at again:
/// it may have freed enough.
async fn carry_out(
    io: &Io,
    held: &SessionGuard,
    rung: Rung,
    climb: Climb<'_>,
    propose: &dyn Fn(&State) -> Result<Option<Vec<Move>>>,
) -> Result<Option<Edit>> {
    let mut again = 0;
    loop {
        let Some(moves) = propose(&held.state())? else { return Ok(None) };
        match replace::run(io, held, rung, moves, (climb.trigger, None), climb.rehearse).await {
            Err(error) if error.code == Code::Conflict && again < AGAIN => again += 1,
            done => return done.map(Some),
        }
    }
}

/// What a climb would do: the same climb, on a copy.
pub(crate) async fn plan(io: &Io, mut copy: SessionGuard, trigger: Trigger) -> Result<Plan> {
    let settings = copy.settings();
    let (tokens, limit, hard_limit) = (copy.tokens(), copy.state().threshold(), settings.hard_limit);
    let (due, by_price) = (copy.state().is_due(), copy.state().is_due_by_price());
    let floor = floor(io, &copy, trigger, false).await?;
    let moment = moment(io, &copy).await?;
    let done = climb(io, &mut copy, Climb { rehearse: true, ..Climb::whole(trigger, None) }).await?;
    let freed: usize = done.rungs.iter().map(|rung| rung.freed_tokens).sum();
    let reason = if !done.rungs.is_empty() {
        let afterwards = format!("about {} afterwards", tokens.saturating_sub(freed));
        match by_price {
            true => format!("to go on with {tokens} tokens has cost what a compaction costs: {afterwards}"),
            false => format!("{tokens} of {limit} tokens: {afterwards}"),
        }
    } else if !due && trigger == Trigger::Auto && settings.price_rule.is_some() {
        format!("a compaction of {tokens} tokens does not pay yet, and they are below the limit of {limit}")
    } else if !due && trigger == Trigger::Auto {
        format!("{tokens} tokens are below the limit of {limit}")
    } else {
        format!("{tokens} of {limit} tokens: {}", reason(&done.idle))
    };
    Ok(Plan {
        will_compact: !done.rungs.is_empty(),
        reason,
        tokens,
        limit,
        floor: floor.total,
        cost: moment.map(|moment| cost(&copy.state(), moment, &done.rungs)),
        proof: (floor.total > hard_limit).then(|| floor.to_string()),
        edits: done.rungs,
    })
}

/// A USD in [`crate::policy::cost::CallCost`].
const USD: f64 = 1e12;

/// What is known before a compaction, where prices are.
async fn moment(io: &Io, held: &SessionGuard) -> Result<Option<CostSnapshot>> {
    if held.settings().prices.is_none() {
        return Ok(None);
    }
    let now = io.now().await?;
    Ok(Some(held.state().moment(now)))
}

/// What the calls to come would cost, with this plan and without. As many are expected as there were.
fn cost(state: &State, mut moment: CostSnapshot, rungs: &[RungPlan]) -> PlanCost {
    if !rungs.is_empty() {
        let sum = |of: fn(&RungPlan) -> usize| rungs.iter().map(of).sum::<usize>();
        moment.after = moment.context.saturating_sub(sum(|rung| rung.freed_tokens));
        (moment.read, moment.summary) = (sum(|rung| rung.input_tokens), sum(|rung| rung.output_tokens));
    }
    let (now, later) = moment.over(&state.prices(), Rule::TUNED.refetch, state.row.steps.max(1));
    PlanCost { now: now as f64 / USD, later: later as f64 / USD, currency: "USD" }
}
