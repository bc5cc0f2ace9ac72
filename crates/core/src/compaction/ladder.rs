//! The ladder: one climb, for the real run and for the dry run, over rungs that it knows as values.

use super::floor::{floor, overflow, settle};
use super::last;
use super::result::{Plan, PlanCost, RungPlan};
use super::rung::{ClimbPart, Climbed, Run, RungSpec, reason};
use super::writer::Writer;
use crate::error::{Code, Result};
use crate::log::{SessionGuard, State};
use crate::policy::cost::{CostSnapshot, Rule};
use crate::policy::{Rung, Trigger};
use crate::step::Io;

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
pub(crate) async fn climb(io: &Io, held: &mut SessionGuard, run: &Run<'_>) -> Result<Climbed> {
    let mut done = Climbed::default();
    walk(io, held, run, &mut done).await?;
    // What was put off is no prompt: the next one is made to fit before it is sent. Nor is what an app asked for by hand,
    // which is told that it does not fit.
    let must_fit = run.trigger != Trigger::Manual && run.part != ClimbPart::Later;
    if must_fit && held.tokens() > held.settings().hard_limit {
        let failed = done.result.as_ref().and_then(|result| result.error.as_ref());
        return Err(overflow(io, held, run.trigger, failed.or(done.failed.as_ref())).await?);
    }
    if let Some(result) = &mut done.result {
        settle(io, held, result).await?;
    }
    Ok(done)
}

/// Climbs; whether the context fits in the end is another question.
async fn walk(io: &Io, held: &mut SessionGuard, run: &Run<'_>, done: &mut Climbed) -> Result<()> {
    let settings = held.settings();
    let all = || rungs(&settings.rungs);
    let is_later = run.part == ClimbPart::Later;
    let first = all().position(|rung| is_later && rung.waits.is_some()).unwrap_or_default();
    for rung in all().skip(first) {
        // What was put off was due then.
        let fires = (is_later && rung.waits.is_some()) || (rung.fires)(&held.state(), run, done);
        if fires
            && run.part == ClimbPart::Now
            && let Some(waits) = rung.waits
            && waits(&held.state(), run.trigger)?
        {
            done.put_off = true;
            continue;
        }
        let did = fires && (rung.apply)(io, held, run, done).await?;
        if !did {
            done.idle.extend((rung.idle)(run.trigger).map(Into::into));
        }
        run.writer.settle(&mut done.edits);
    }
    last::shorten_all(io, held, run, done).await
}

/// What a climb would do: the same climb, on a copy, with nobody who writes.
pub(crate) async fn plan(io: &Io, mut copy: SessionGuard, trigger: Trigger) -> Result<Plan> {
    let settings = copy.settings();
    let (tokens, limit, hard_limit) = (copy.tokens(), copy.state().threshold(), settings.hard_limit);
    let (due, by_price) = (copy.state().is_due(), copy.state().is_due_by_price());
    let floor = floor(io, &copy, trigger, false).await?;
    let moment = moment(io, &copy).await?;
    let mut done = Climbed::default();
    let run = Run { writer: Writer::nobody(), ..Run::new(ClimbPart::Whole, trigger, None) };
    match walk(&io.unheard(), &mut copy, &run, &mut done).await {
        // The proof says so, where nothing helps.
        Err(error) if error.code == Code::ContextOverflow => done.idle.push(error.message.into()),
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
        cost: moment.map(|moment| cost(&copy.state(), moment, &rungs)),
        proof: (floor.total > hard_limit).then(|| floor.to_string()),
        edits: rungs,
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
