//! The ladder: one climb, for the real run and for the dry run, over rungs that it knows as values.

use super::floor::{floor, overflow, settle};
use super::result::{Plan, PlanBytes, PlanCost, PlanLimits, PlanUsd, RungPlan};
use super::rung::{ClimbPart, Climbed, Run, RungSpec, RungWork, reason, reduce};
use super::writer::Writer;
use super::{last, server};
use crate::error::{Code, Result};
use crate::log::SessionGuard;
use crate::policy::cost::{CostSnapshot, Prices, Rule, usd};
use crate::policy::{Rung, Trigger};
use crate::step::Io;
use std::rc::Rc;

/// What a rung is.
fn spec(rung: Rung) -> &'static RungSpec {
    match rung {
        Rung::Process => &super::process::RUNG,
        Rung::Admit => &super::admit::RUNG,
        Rung::Clear => &super::clear::RUNG,
        Rung::Offload => &super::offload::RUNG,
        Rung::Compress => &super::compress::RUNG,
        Rung::Summarise => &super::summarise::RUNG,
        Rung::Age => &super::ageing::RUNG,
        Rung::Merge => &super::checkpoint_budget::RUNG,
        Rung::Media => &super::media::RUNG,
        Rung::Rollover => &super::emergency::RUNG,
    }
}

/// Those of a preset, in its order.
pub(super) fn rungs(of: &[Rung]) -> impl Iterator<Item = &'static RungSpec> {
    of.iter().copied().map(spec)
}

/// Climbs the ladder, cheapest rung first, until the preset has no rung left that fires.
///
/// Errors: [`Code::ContextOverflow`] when the context does not fit the window in the end; errors of the store; abort.
pub(crate) async fn climb(run: &Run<'_>) -> Result<Climbed> {
    let mut done = Climbed::default();
    walk(run, &mut done).await?;
    // What was put off is no prompt: the next one is made to fit before it is sent. Nor is what an app asked for by hand,
    // which is told that it does not fit.
    let must_fit = run.trigger != Trigger::Manual && run.part != ClimbPart::Later;
    let view = run.view();
    if must_fit && !view.fits() {
        let failed = done.result.as_ref().and_then(|result| result.error.as_ref());
        return Err(overflow(run.io, &view, run.trigger, failed.or(done.failed.as_ref())).await?);
    }
    if let Some(result) = &mut done.result {
        settle(run.io, &view, result).await?;
    }
    Ok(done)
}

/// Climbs; whether the context fits in the end is another question.
async fn walk(run: &Run<'_>, done: &mut Climbed) -> Result<()> {
    let settings = run.settings();
    let limit = last::limit(&settings, run.trigger, run.tokens());
    server::dissolve(run).await?;
    let is_later = run.part == ClimbPart::Later;
    done.was_due = run.view().usage.is_due;
    let waits = |rung: &RungSpec| match rung.work {
        RungWork::Steps { waits, .. } => waits,
        RungWork::Moves(..) => None,
    };
    let first = rungs(&settings.rungs).position(|rung| is_later && waits(rung).is_some());
    for rung in rungs(&settings.rungs).skip(first.unwrap_or_default()) {
        let view = run.view();
        // What was put off was due then.
        let fires = (is_later && waits(rung).is_some()) || (rung.fires)(&view, run, done);
        if fires
            && run.part == ClimbPart::Now
            && let Some(waits) = waits(rung)
            && waits(&view, run.trigger)?
        {
            done.put_off = true;
            continue;
        }
        drop(view);
        let did = fires
            && match rung.work {
                RungWork::Moves(propose, _) => reduce(run, rung, propose, done).await?,
                RungWork::Steps { apply, .. } => apply(run, done).await?,
            };
        if !did {
            done.idle.extend((rung.idle)(run.trigger).map(Into::into));
        }
        run.writer.settle(&mut done.edits);
    }
    if settings.is_server() && run.trigger == Trigger::Auto && done.was_due && run.view().fits() {
        done.idle.push("the provider is asked to compact in the next request".into());
    }
    last::shorten_all(run, limit, done).await
}

/// What a climb would do: the same climb, on a copy, with nobody who writes.
pub(crate) async fn plan(io: &Io, copy: &SessionGuard, trigger: Trigger) -> Result<Plan> {
    let view = copy.view();
    let (settings, bytes) = (Rc::clone(&view.settings), view.context.bytes());
    let (tokens, limit, hard_limit) = (view.usage.tokens, copy.state().threshold(), settings.hard_limit);
    let (due, by_price) = (view.usage.is_due, copy.state().is_due_by_price());
    let floor = floor(io, &view, trigger, false).await?;
    drop(view);
    let moment = match settings.prices {
        Some(_) => {
            let now = io.now().await?;
            Some(copy.state().moment(now))
        }
        None => None,
    };
    let mut done = Climbed::default();
    let unheard = io.unheard();
    let mut run = Run::new(&unheard, copy, ClimbPart::Whole, trigger);
    run.writer = Writer::nobody();
    match walk(&run, &mut done).await {
        // The proof says so, where nothing helps.
        Err(error) if error.code == Code::ContextOverflow => {
            done.idle.push(error.into_parts().message.into())
        }
        walked => walked?,
    }
    let rungs: Vec<RungPlan> = done.edits.iter().map(RungPlan::of).collect();
    let freed: usize = rungs.iter().map(|rung| rung.freed_tokens).sum();
    let reason = if !rungs.is_empty() {
        let afterwards = format!("about {} afterwards", tokens.saturating_sub(freed));
        match by_price {
            true => format!("to go on with {tokens} tokens has cost what a compaction costs: {afterwards}"),
            false => format!("{tokens} of {limit} tokens: {afterwards}"),
        }
    } else if !due && trigger == Trigger::Auto && settings.price_rule.is_some() {
        format!("a compaction of {tokens} tokens does not pay yet, and they are below the limit of {limit}")
    } else if !due && trigger == Trigger::Auto && tokens == limit {
        format!("{tokens} tokens are at the limit, and this preset acts above it")
    } else if !due && trigger == Trigger::Auto {
        format!("{tokens} tokens are below the limit of {limit}")
    } else {
        format!("{tokens} of {limit} tokens: {}", reason(&done.idle))
    };
    Ok(Plan {
        will_compact: !rungs.is_empty(),
        reason,
        tokens,
        limit,
        floor: floor.total,
        cost: moment.map(|moment| cost(&copy.state().prices(), copy.state().row.steps, moment, &rungs)),
        limits: limits(copy, bytes),
        proof: (floor.total > hard_limit).then(|| floor.to_string()),
        edits: rungs,
    })
}

/// How far the session is from the limits that the app set. `copy` is as it would be afterwards; its prompt has so many
/// `bytes` now.
fn limits(copy: &SessionGuard, bytes: usize) -> Option<PlanLimits> {
    let limits = copy.settings().limits;
    let spent = copy.state().spent();
    let cost = limits.cost.map(|limit| {
        let left = limit.saturating_sub(spent.cost);
        let prompts = (spent.last > 0).then(|| left.div_ceil(spent.last));
        PlanUsd { limit: usd(limit), spent: usd(spent.cost), left: usd(left), prompts }
    });
    let bytes = limits.bytes.map(|limit| PlanBytes { limit, bytes, after: copy.context().bytes() });
    (cost.is_some() || bytes.is_some()).then_some(PlanLimits { usd: cost, request_bytes: bytes })
}

/// What the calls to come would cost, with this plan and without. As many are expected as there were.
fn cost(prices: &Prices, steps: u64, mut moment: CostSnapshot, rungs: &[RungPlan]) -> PlanCost {
    if !rungs.is_empty() {
        let sum = |of: fn(&RungPlan) -> usize| rungs.iter().map(of).sum::<usize>();
        moment.after = moment.context.saturating_sub(sum(|rung| rung.freed_tokens));
        (moment.read, moment.summary) = (sum(|rung| rung.input_tokens), sum(|rung| rung.output_tokens));
    }
    let (rule, calls) = (Rule::TUNED, steps.max(1));
    let (now, later) = moment.over(prices, &rule, calls);
    PlanCost { now: usd(now), later: usd(later), needs: rule.needs_of_100(calls), currency: "USD" }
}
