//! History to a summary: written, committed, or the history stays as it was (`S1.5` to `S1.11`).

use super::call::CallCost;
use super::cut::{self, Aim, Proposal};
use super::floor::{Least, floor};
use super::frame::tokens_of;
use super::result::{CompactionResult, Edit};
use super::rung::{AGAIN, Climbed, Run, RungSpec};
use super::write::{Written, by_model, fell_back, input_limit, tell};
use super::{emergency, last, reasoning};
use crate::checkpoint::{self, warn_after};
use crate::context::{Keep, LogEntry};
use crate::error::{Code, Error, Result};
use crate::log::{Cause, ContextChange, Job, SessionGuard, State, Summarised, elsewhere};
use crate::policy::{Rung, Trigger};
use crate::step::{Effect, Io, LogLevel, Notice, Stage};
use crate::summary::PROMPT_VERSION;

/// Why preset `checkpoint` does nothing (`S5.5`).
const NOTHING: &str = "No messages to compress";

/// Why nothing is done where the built-in summary would not be smaller than what it stands for.
const TOO_LITTLE: &str = "Nothing to compress: too little to summarize";

/// Due by hand, when the provider said that the prompt was too long, and by what offloading left.
pub(super) const RUNG: RungSpec = RungSpec {
    rung: Rung::Summarise,
    fires: |state, run, done| {
        let forced = matches!(run.trigger, Trigger::Manual | Trigger::Overflow);
        forced || fires(state, done.freed_by(Rung::Offload))
    },
    waits: Some(can_wait),
    apply: |io, held, run, done| Box::pin(apply(io, held, run, done)),
    least,
    idle: |_| Some("the next summary is not due yet"),
};

/// What the options say is kept; of a share of what is left, which is smaller with every summary, one message.
fn least(state: &State, least: &mut Least) -> Result<()> {
    let mut aim = Aim::of(&state.settings);
    least.proposal = cut::propose(state, aim)?.ok();
    if least.proposal.is_some() && matches!(aim.keep, Keep::Fraction(_)) {
        aim.keep = Keep::Messages(1);
        least.proposal = cut::propose(state, aim)?.ok();
    }
    Ok(())
}

/// Summarising is due when offloading freed too little and the last attempt is long enough ago (`S1.4`), or when the
/// context does not fit the window at all.
fn fires(state: &State, freed: usize) -> bool {
    let numbers = &state.settings.numbers;
    let tokens = state.tokens();
    let cooled = state
        .row
        .attempted_at
        .is_none_or(|at| state.row.steps.saturating_sub(at) >= numbers.compact_cooldown_steps);
    let due = state.is_due()
        && freed < numbers.compact_trigger_threshold
        && cooled
        && gain(state) >= numbers.min_savings;
    due || tokens > state.settings.hard_limit
}

/// The most that a summary could free: everything but the messages that are kept at the end (`S3.3`).
fn gain(state: &State) -> usize {
    let total = state.context.totals().tokens;
    let kept = match state.settings.keep {
        Keep::Tokens(tokens) => tokens,
        Keep::Fraction(fraction) => (total as f64 * fraction) as usize,
        Keep::Messages(count) => {
            state.context.items().iter().rev().take(count).map(|item| item.size.tokens).sum()
        }
    };
    total.saturating_sub(kept)
}

/// Where a share of the tokens is kept, one summary may not be enough: another one keeps the share of what it left. It is
/// tried again as long as that gets anywhere.
async fn apply(io: &Io, held: &mut SessionGuard, run: &Run<'_>, done: &mut Climbed) -> Result<bool> {
    let limit = held.settings().hard_limit;
    for _ in 0..AGAIN {
        // A summary may fail: what the step that needs none would leave decides.
        let floor = floor(io, held, run.trigger, true).await?;
        if floor.total > limit && run.trigger != Trigger::Manual {
            // No summary makes it fit: the model would be asked in vain, step after step.
            done.idle.push(floor.to_string().into());
            return Ok(true);
        }
        let room = held.settings().numbers.target_tokens.min(limit / 4);
        let excess = floor.before.saturating_add(room).saturating_sub(limit);
        if held.tokens() > limit && excess > 0 {
            last::shorten(io, held, run, (excess, &|index| floor.stays.holds(index)), done).await?;
            if run.trigger == Trigger::Auto && !held.state().is_due() && held.tokens() <= limit {
                return Ok(true);
            }
        }
        let proposal = cut::propose(&held.state(), Aim::of(&held.settings()))?;
        let unproposed = proposal.as_ref().err().cloned();
        emergency::secure(io, held, run.trigger).await?;
        let mut result = self::run(io, held, (run, Rung::Summarise), proposal).await?;
        if !result.changed {
            done.idle.extend(unproposed.or_else(|| result.reason.clone()).map(Into::into));
        }
        if let Some(before) = &done.result {
            result.follow(before);
        }
        let freed = result.freed_tokens;
        done.edits.extend(result.applied_edits.iter().cloned());
        done.result = Some(result);
        if run.trigger == Trigger::Manual || freed == 0 || held.tokens() <= limit {
            return Ok(true);
        }
    }
    Ok(true)
}

/// True when a summary that is due may be made while the conversation goes on: a model is asked for it, there is something
/// to summarise, and the prompt fits without it.
fn can_wait(state: &State, trigger: Trigger) -> Result<bool> {
    if trigger != Trigger::Auto || !state.settings.asks_a_model() || !emergency::has_room(state) {
        return Ok(false);
    }
    Ok(cut::propose(state, Aim::of(&state.settings))?.is_ok())
}

/// Replaces the older part of the history by a summary.
///
/// A failed summary is a result with `success: false` and an unchanged history; a failed commit is an error, and the
/// history and every offload are intact (`S1.11`).
pub(crate) async fn run(
    io: &Io,
    held: &mut SessionGuard,
    (run, rung): (&Run<'_>, Rung),
    proposal: Result<Proposal, String>,
) -> Result<CompactionResult> {
    let started = io.now().await?;
    let mut result = CompactionResult::begin(held, run.trigger);
    tell(io, held, Stage::Identify, 1, 0);
    match proposal {
        Err(_) if held.settings().preset.checkpoints => result.reason = Some(NOTHING.into()),
        Err(reason) => result.reason = Some(reason),
        Ok(mut proposal) => {
            proposal.unanswered = held.state().unanswered(&proposal.compress)?;
            io.breathe(proposal.compress.iter().map(|item| item.body.len()).sum()).await?;
            let attempted_at = {
                let mut state = held.state_mut();
                let steps = state.row.steps;
                state.row.attempted_at.replace(steps)
            };
            let mut spent = CallCost::default();
            let how = (run, rung, started);
            let written = match run.writer.summary(io, held, &mut proposal, how, &mut spent).await {
                Ok(Some(written)) => Ok(written),
                Ok(None) => {
                    held.state_mut().row.attempted_at = attempted_at;
                    result.reason = Some(elsewhere().message);
                    return result.end(io, held, started).await;
                }
                Err(error) => Err(error),
            };
            let update = match &written {
                Ok(written) => SummaryUpdate::of(io, held, &proposal, (run, rung), written).await,
                Err(error) => Err(error.clone()),
            };
            match update {
                Ok(update) => {
                    result.preserved_count = proposal.preserved;
                    result.retired_refs = proposal.retired();
                    let entry = update.entry;
                    let edit = update.commit(io, held, &proposal, (run, rung)).await?;
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
                    warn(io, held);
                }
                Err(error) if matches!(error.code, Code::Aborted | Code::Closed) => return Err(error),
                // Nobody was asked to write, so nobody failed, as long as the context fits.
                Err(error)
                    if error.code == Code::SummaryRejected
                        && !by_model(&held.settings(), rung)
                        && held.tokens() <= held.settings().hard_limit =>
                {
                    result.reason = Some(format!("{TOO_LITTLE}, {} tokens", proposal.replaced_tokens));
                }
                Err(error) => {
                    io.log(LogLevel::Error, format!("Compaction failed, the history is unchanged: {error}"));
                    result.fail(error);
                }
            }
            result.usage = spent.usage;
            result.llm_calls = spent.calls;
        }
    }
    let result = result.end(io, held, started).await?;
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
fn warn(io: &Io, held: &SessionGuard) {
    let settings = held.settings();
    let Some(model) = settings.summariser_model().filter(|_| settings.preset.checkpoints) else { return };
    let compressions = held.state().row.compressions;
    if compressions == warn_after(checkpoint::model_size(model)) {
        let score = held.state().reliability().score;
        io.log(
            LogLevel::Warn,
            format!(
                "{compressions} compressions by {model}: reliability {score:.2}; consider a fresh session"
            ),
        );
    }
}

/// The calls of a model that the summary takes; none where nobody is asked. `None` when someone else makes them, and
/// there is room to wait for what they lead to.
pub(super) async fn begin(
    io: &Io,
    held: &SessionGuard,
    proposal: &Proposal,
    trigger: Trigger,
    rung: Rung,
) -> Result<Option<Job>> {
    let settings = held.settings();
    if !by_model(&settings, rung) {
        return Ok(Some(Job::default()));
    }
    let insist = trigger != Trigger::Auto || held.tokens() > settings.hard_limit;
    // As long as the calls for the parts of a long history may take, about.
    let rounds = proposal.replaced_tokens / input_limit(&settings, proposal.target_tokens).max(1);
    let rounds = 1 + rounds.div_ceil(settings.concurrency) as u64;
    Job::begin(io, held, settings.timeout_ms.saturating_mul(rounds), insist).await
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
    async fn of(
        io: &Io,
        held: &SessionGuard,
        proposal: &Proposal,
        (run, rung): (&Run<'_>, Rung),
        written: &Written,
    ) -> Result<SummaryUpdate> {
        tell(io, held, Stage::Update, 1, 0);
        let settings = held.settings();
        let before = held.tokens();
        let splice = proposal.splice(written.items.clone());
        let (splices, of_reasoning) = reasoning::unbind(io, held, vec![splice]).await?;
        let replaced = proposal.replaced_tokens + tokens_of(&proposal.stay);
        let freed = replaced.saturating_sub(tokens_of(&written.items)) + of_reasoning;
        let after = held.tokens_without(freed);
        tell(io, held, Stage::Validate, 1, freed);
        let fits = checkpoint::validate(after, settings.hard_limit, checkpoint::Parts::default());
        if let Some(message) = fits.message.filter(|_| settings.preset.checkpoints) {
            let what = format!("Compression failed validation: {message}");
            return Err(Error::new(Code::ContextOverflow, what));
        }
        let cause = Cause {
            trigger: run.trigger.as_str().into(),
            prompt_version: Some(PROMPT_VERSION),
            model: written.model.clone(),
            ..Cause::of(&held.state(), rung.stored(), after)
        };
        let entry = LogEntry {
            at: written.started,
            messages: proposal.compress.len(),
            saved: replaced.saturating_sub(tokens_of(&written.items)),
            summaries: 1,
            before,
            after,
            budget: settings.window,
        };
        let summary = Some(Summarised { text: written.text.clone(), entry });
        let job = written.job.clone();
        let change = ContextChange { job, summary, ..ContextChange::compaction(splices, cause) };
        Ok(SummaryUpdate { change, freed, entry, detail: written.fell_back.as_ref().map(fell_back) })
    }

    /// Puts it into the context, in one transaction.
    async fn commit(
        self,
        io: &Io,
        held: &SessionGuard,
        proposal: &Proposal,
        (run, rung): (&Run<'_>, Rung),
    ) -> Result<Edit> {
        tell(io, held, Stage::Commit, 1, self.freed);
        held.change(io, self.change).await?;
        let indices = proposal.indices();
        let (count, freed) = (indices.len(), self.freed);
        io.log(LogLevel::Info, format!("Summarised {count} messages, {freed} tokens freed"));
        let edit = Edit { detail: self.detail, ..Edit::named(rung.as_str(), indices, freed) };
        Ok(run.writer.told(rung, edit))
    }
}
