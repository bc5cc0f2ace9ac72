//! History to a summary: written, committed, or the history stays as it was (`S1.5` to `S1.11`).

use super::call::CallCost;
use super::cut::{self, Aim, Proposal};
use super::floor::{Least, floor};
use super::frame::tokens_of;
use super::keeping::page_tokens;
use super::laid_down::omitted;
use super::lean::{self, Newest};
use super::result::{CompactionResult, Edit};
use super::rung::{AGAIN, Climbed, Run, RungSpec, RungWork};
use super::write::{Written, by_model, fell_back, input_limit, tell};
use super::{emergency, last, reasoning};
use crate::checkpoint::{self, model_size, reliability, warn_after};
use crate::context::{Keep, LogEntry, PinProposal};
use crate::error::{Code, Error, Result};
use crate::log::{Cause, ContextChange, Job, Summarised, View, elsewhere};
use crate::policy::{Rung, Trigger};
use crate::step::{Breath, Effect, Io, LogLevel, Notice, Stage};
use crate::summary::PROMPT_VERSION;
use std::rc::Rc;

/// Why preset `checkpoint` does nothing (`S5.5`).
const NOTHING: &str = "No messages to compress";

/// Why nothing is done where the built-in summary would not be smaller than what it stands for.
const TOO_LITTLE: &str = "Nothing to compress: too little to summarize";

/// Due by hand, when the provider said that the prompt was too long, and by what offloading left.
pub(super) const RUNG: RungSpec = RungSpec {
    rung: Rung::Summarise,
    fires: |view, run, done| {
        let forced = run.trigger.is_wish() || run.trigger == Trigger::Overflow;
        forced || fires(view, done)
    },
    work: RungWork::Steps { waits: Some(can_wait), apply: |run, done| Box::pin(apply(run, done)), least },
    idle: |_| Some("the next summary is not due yet"),
};

/// What the options say is kept; of a share of what is left, which is smaller with every summary, one message.
fn least(view: &View, least: &mut Least) -> Result<()> {
    let mut aim = Aim::of(view, least.trigger);
    least.proposal = cut::propose(view, aim)?.ok();
    if least.proposal.is_some() && matches!(aim.keep, Keep::Fraction(_)) {
        aim.keep = Keep::Messages(1);
        least.proposal = cut::propose(view, aim)?.ok();
    }
    Ok(())
}

/// Summarising is due when offloading freed too little and the last attempt is long enough ago (`S1.4`), or when the
/// context does not fit the window at all.
fn fires(view: &View, done: &Climbed) -> bool {
    if view.settings.is_server() {
        // It is the provider's to do, as long as the prompt can be sent.
        return !view.fits() || (view.settings.rungs.contains(&Rung::Rollover) && !emergency::has_room(view));
    }
    let numbers = &view.settings.numbers;
    let is_full = match view.settings.leaves {
        Some(_) => view.usage.is_due || done.is_too_little(view),
        None => view.usage.is_due && done.freed_by(Rung::Offload) < numbers.compact_trigger_threshold,
    };
    !view.fits() || (is_full && !view.rests && frees_enough(view))
}

/// True when a summary would free as much as the options want (`S3.3`, `W5`): what it replaces, where a page stands beside
/// it less that.
fn frees_enough(view: &View) -> bool {
    let least = view.settings.numbers.min_savings;
    if least == 0 {
        return true;
    }
    // What cannot be read is told by the rung itself.
    let Ok(proposal) = cut::propose(view, Aim::of(view, Trigger::Auto)) else { return true };
    proposal.is_ok_and(|Proposal { replaced_tokens: replaced, quoted_tokens, .. }| {
        let page =
            view.settings.numbers.keep.map_or(0, |_| page_tokens(&view.settings, replaced) + quoted_tokens);
        replaced.saturating_sub(page) >= least
    })
}

/// Where a share of the tokens is kept, one summary may not be enough: another one keeps the share of what it left. It is
/// tried again as long as that gets anywhere.
async fn apply(run: &Run<'_>, done: &mut Climbed) -> Result<bool> {
    let settings = run.settings();
    let limit = settings.hard_limit;
    for round in 1..=AGAIN {
        if run.tokens() > limit && !make_room(run, done).await? {
            return Ok(true);
        }
        let view = run.view();
        let proposal = cut::propose(&view, Aim::of(&view, run.trigger))?;
        let compressions = view.compressions;
        drop(view);
        let unproposed = proposal.as_ref().err().cloned();
        emergency::secure(run).await?;
        let mut result = match self::run(run, Rung::Summarise, proposal).await {
            // Not another summary but an erasure or a moved result came first: it is made anew, of what there is now.
            Err(error)
                if error.code == Code::Conflict
                    && round < AGAIN
                    && run.view().compressions == compressions =>
            {
                continue;
            }
            result => result?,
        };
        if !result.changed {
            done.idle.extend(unproposed.or_else(|| result.reason.clone()).map(Into::into));
        }
        if let Some(before) = &done.result {
            result.follow(before);
        }
        let freed = result.freed_tokens;
        done.edits.extend(result.applied_edits.iter().cloned());
        done.result = Some(result);
        if run.trigger == Trigger::Manual || freed == 0 || run.tokens() <= limit {
            return Ok(true);
        }
    }
    Ok(true)
}

/// Shortens what is too large by itself, where even the shortest summary would leave a prompt that does not fit. False where
/// a summary would be of no use, or is not due any more.
async fn make_room(run: &Run<'_>, done: &mut Climbed) -> Result<bool> {
    let settings = run.settings();
    let limit = settings.hard_limit;
    // A summary may fail: what the step that needs none would leave decides.
    let floor = floor(run.io, &run.view(), run.trigger, true).await?;
    if floor.total > limit && run.trigger != Trigger::Manual {
        // No summary makes it fit: the model would be asked in vain, step after step.
        done.idle.push(floor.to_string().into());
        return Ok(false);
    }
    let room = settings.numbers.target_tokens.min(limit / 4);
    let excess = floor.before.saturating_add(room).saturating_sub(limit);
    if excess == 0 {
        return Ok(true);
    }
    last::shorten(run, excess, &|index| floor.stays.holds(index), done).await?;
    let view = run.view();
    Ok(run.trigger != Trigger::Auto || view.usage.is_due || !view.fits())
}

/// True when a summary that is due may be made while the conversation goes on: a model is asked for it, there is something
/// to summarise, and the prompt fits without it.
fn can_wait(view: &View, trigger: Trigger) -> Result<bool> {
    if trigger != Trigger::Auto || !view.settings.asks_a_model() || !emergency::has_room(view) {
        return Ok(false);
    }
    Ok(cut::propose(view, Aim::of(view, trigger))?.is_ok())
}

/// Replaces the older part of the history by a summary.
///
/// A failed summary is a result with `success: false` and an unchanged history; a failed commit is an error, and the
/// history and every offload are intact (`S1.11`).
pub(super) async fn run(
    run: &Run<'_>,
    rung: Rung,
    proposal: Result<Proposal, String>,
) -> Result<CompactionResult> {
    let io = run.io;
    let started = io.now().await?;
    let view = run.view();
    let settings = Rc::clone(&view.settings);
    let mut result = CompactionResult::begin(&view, run.trigger);
    tell(io, &view, Stage::Identify, 1, 0);
    match proposal {
        Err(_) if settings.preset.checkpoints => result.reason = Some(NOTHING.into()),
        Err(reason) => result.reason = Some(reason),
        Ok(mut proposal) => {
            let mut breath = Breath::default();
            for item in &proposal.compress {
                proposal.unanswered.append(&mut view.unanswered_of(item)?);
                breath.after(io, item.body.len()).await?;
            }
            drop(view);
            let attempted_at = run.note_attempt();
            let mut spent = CallCost::default();
            let written = match run.writer.summary(run, rung, started, &mut proposal, &mut spent).await {
                Ok(Some(written)) => Ok(written),
                Ok(None) => {
                    run.take_back_attempt(attempted_at);
                    result.reason = Some(elsewhere().into_parts().message);
                    return result.end(io, &run.view(), started).await;
                }
                Err(error) => Err(error),
            };
            let update = match &written {
                Ok(written) => SummaryUpdate::of(run, rung, &proposal, written).await,
                Err(error) => Err(error.clone()),
            };
            match update {
                Ok(update) => {
                    result.preserved_count = proposal.preserved;
                    result.retired_refs = proposal.retired();
                    let entry = update.entry;
                    let edit = update.commit(run, rung, &proposal).await?;
                    run.note_success();
                    if let Ok(written) = &written {
                        result.omitted_constraints =
                            omitted(&run.view(), &proposal.unanswered, &written.items)?;
                        tell_omitted(io, &result.omitted_constraints);
                    }
                    result.pin_proposals = proposal.unanswered;
                    result.saved_tokens = Some(entry.saved);
                    result.log_entry = Some(entry.text());
                    result.reason = edit.detail.clone();
                    result.freed_tokens = edit.freed_tokens;
                    result.changed = true;
                    result.applied_edits.push(edit);
                    if let Ok(written) = written {
                        (result.summary, result.fell_back) = (Some(written.text), written.fell_back);
                    }
                    warn(io, &run.view());
                }
                Err(error) if matches!(error.code, Code::Aborted | Code::Closed) => return Err(error),
                // Nobody was asked to write, so nobody failed, as long as the context fits.
                Err(error)
                    if error.code == Code::SummaryRejected
                        && !by_model(&settings, rung)
                        && run.tokens() <= settings.hard_limit =>
                {
                    result.reason = Some(format!("{TOO_LITTLE}, {} tokens", proposal.replaced_tokens));
                }
                Err(error) => {
                    io.log(LogLevel::Error, format!("Compaction failed, the history is unchanged: {error}"));
                    run.note_failure("no summary was made", &error);
                    result.fail(error);
                }
            }
            result.usage = spent.usage;
            result.llm_calls = spent.calls;
        }
    }
    let result = result.end(io, &run.view(), started).await?;
    if result.summary.is_some() {
        io.tell(Effect::Notify(Notice::Compact {
            previous_tokens: result.previous_tokens,
            current_tokens: result.current_tokens,
            freed_tokens: result.freed_tokens,
            retired_ref_count: result.retired_refs.len(),
        }));
    }
    Ok(result)
}

/// Says so once a model of this size has summarised as often as it takes (`S5.11`).
fn warn(io: &Io, View { settings, compressions, .. }: &View) {
    let Some(model) = settings.summariser_model().filter(|_| settings.preset.checkpoints) else { return };
    let size = model_size(model);
    if *compressions == warn_after(size) {
        let score = reliability(size, *compressions).score;
        io.log(
            LogLevel::Warn,
            format!(
                "{compressions} compressions by {model}: reliability {score:.2}; consider a fresh session"
            ),
        );
    }
}

/// Says which sentences of the user are not in the context any more.
fn tell_omitted(io: &Io, omitted: &[PinProposal]) {
    let count: usize = omitted.iter().map(|open| open.constraints.len()).sum();
    if count == 0 {
        return;
    }
    let indices: Vec<String> = omitted.iter().map(|open| open.index.to_string()).collect();
    let message = format!(
        "{count} constraints of the user take more than a tenth of the window and left the context (messages {}): pin them with `pins.add`, or put them into the system prompt",
        indices.join(", ")
    );
    io.log(LogLevel::Warn, message.clone());
    io.tell(Effect::Notify(Notice::Warning { code: Code::TooLarge, message }));
}

/// The calls of a model that the summary takes; none where nobody is asked. `None` when someone else makes them, and
/// there is room to wait for what they lead to.
pub(super) async fn begin(run: &Run<'_>, rung: Rung, proposal: &Proposal) -> Result<Option<Job>> {
    let settings = run.settings();
    if !by_model(&settings, rung) {
        return Ok(Some(Job::default()));
    }
    let insist = run.trigger != Trigger::Auto || run.tokens() > settings.hard_limit;
    // As long as the calls for the parts of a long history may take, about.
    let rounds = proposal.replaced_tokens / input_limit(&settings, proposal.target_tokens).max(1);
    let rounds = 1 + rounds.div_ceil(settings.concurrency) as u64;
    run.begin(settings.timeout_ms.saturating_mul(rounds), insist).await
}

/// The change that a summary makes, complete and checked, on its way into the store.
struct SummaryUpdate {
    change: ContextChange,
    freed: usize,
    entry: LogEntry,
    detail: Option<String>,
}

impl SummaryUpdate {
    /// The change with all that follows from it. In preset `checkpoint` it must leave a prompt that fits (`S5.5`).
    async fn of(run: &Run<'_>, rung: Rung, proposal: &Proposal, written: &Written) -> Result<SummaryUpdate> {
        let view = run.view();
        tell(run.io, &view, Stage::Update, 1, 0);
        let settings = &view.settings;
        let splice = proposal.splice(written.items.clone());
        let replaced = proposal.replaced_tokens + tokens_of(&proposal.stay);
        let own = replaced.saturating_sub(tokens_of(&written.items));
        let log = run.log();
        let (mut settled, mut more) =
            lean::settle(run.io, &view, vec![splice.clone()], Newest::Whole(&log)).await?;
        // What is whole again is not to take what the summary freed.
        if more > 0 && 2 * more.unsigned_abs() > own {
            (settled, more) = lean::settle(run.io, &view, vec![splice], Newest::Short).await?;
        }
        let (splices, of_reasoning) = reasoning::unbind(run.io, &view, settled).await?;
        let freed = own.saturating_add_signed(-more) + of_reasoning;
        let after = view.usage.after(0, freed);
        tell(run.io, &view, Stage::Validate, 1, freed);
        let fits = checkpoint::validate(after, settings.hard_limit, checkpoint::Parts::default());
        if let Some(message) = fits.message.filter(|_| settings.preset.checkpoints) {
            let what = format!("Compression failed validation: {message}");
            return Err(Error::new(Code::ContextOverflow, what));
        }
        let cause = Cause {
            prompt_version: Some(PROMPT_VERSION),
            model: written.model.clone(),
            ..run.cause(rung.stored(), after)
        };
        let entry = LogEntry {
            at: written.started,
            messages: proposal.compress.len(),
            saved: own,
            summaries: 1,
            before: view.usage.tokens,
            after,
            budget: settings.window,
        };
        let summary = Some(Summarised { text: written.text.clone(), entry });
        let job = written.job.clone();
        let change = ContextChange { job, summary, ..ContextChange::compaction(splices, cause) };
        Ok(SummaryUpdate { change, freed, entry, detail: written.fell_back.as_ref().map(fell_back) })
    }

    /// Puts it into the context, in one transaction.
    async fn commit(self, run: &Run<'_>, rung: Rung, proposal: &Proposal) -> Result<Edit> {
        tell(run.io, &run.view(), Stage::Commit, 1, self.freed);
        run.change(self.change).await?;
        let (count, freed) = (proposal.compress.len(), self.freed);
        run.io.log(LogLevel::Info, format!("Summarized {count} messages, {freed} tokens freed"));
        let edit = Edit { detail: self.detail, ..Edit::named(rung.as_str(), proposal.indices(), freed) };
        Ok(run.writer.told(rung, edit))
    }
}
