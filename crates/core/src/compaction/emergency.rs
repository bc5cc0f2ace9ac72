//! When a prompt does not fit after all else (`S5.15`, `S4.7`): recent messages are summarised too, and then the context
//! begins anew with a built-in summary of everything and what the user said last. The log keeps every message, a snapshot
//! is taken before each step, and each is told as a warning.

use super::cut::{self, Aim};
use super::floor::Least;
use super::result::CompactionResult;
use super::rung::{Run, RungSpec};
use super::{last, summarise};
use crate::error::{Code, Error, Result};
use crate::log::{SessionGuard, State};
use crate::policy::{Rung, Trigger};
use crate::step::{Effect, Io, LogLevel, Notice};

/// Tokens at which the emergency begins.
fn limit(state: &State) -> usize {
    let share = (state.settings.window as f64 * state.settings.numbers.emergency_share) as usize;
    // The share is reached, the hard limit is passed.
    share.min(state.settings.hard_limit.saturating_add(1))
}

/// A compaction by hand does what it was asked for, whatever the size.
fn fires(state: &State, trigger: Trigger, tokens: usize) -> bool {
    trigger != Trigger::Manual && tokens >= limit(state)
}

/// True when the prompt can be sent as it is.
pub(crate) fn has_room(state: &State) -> bool {
    state.tokens() < limit(state)
}

/// Whether it is needed is looked at after the last resort, and after each step.
pub(super) const RUNG: RungSpec = RungSpec {
    rung: Rung::Rollover,
    fires: |_, _, _| true,
    waits: None,
    apply: |io, held, run, done| {
        Box::pin(async {
            last::shorten_all(io, held, run, done).await?;
            let failed = done.result.as_ref().and_then(|result| result.error.clone());
            let results = rescue(io, held, run, failed.as_ref()).await?;
            done.rescue(held, results)?;
            Ok(true)
        })
    },
    least,
    idle: |_| None,
};

/// All but the newest messages. A compaction by hand has no emergency to follow.
fn least(state: &State, least: &mut Least) -> Result<()> {
    if least.trigger == Trigger::Manual {
        return Ok(());
    }
    let aggressive = cut::propose(state, Aim::AGGRESSIVE)?.ok().filter(|_| !least.failed);
    least.proposal = match aggressive {
        Some(proposal) => Some(proposal),
        None => cut::propose(state, Aim::ROLLOVER)?.ok(),
    };
    Ok(())
}

/// Takes a snapshot before a step of the ladder that is to make a prompt fit which does not.
pub(super) async fn secure(io: &Io, held: &SessionGuard, trigger: Trigger) -> Result<()> {
    let settings = held.settings();
    let must_fit = trigger != Trigger::Manual;
    if must_fit && held.tokens() > settings.hard_limit && settings.rungs.contains(&Rung::Rollover) {
        snapshot(io, held).await?;
    }
    Ok(())
}

/// Takes a snapshot; nothing where the store is full: then what follows is in memory alone, and the store keeps the
/// context that it has. A copy has no store.
async fn snapshot(io: &Io, held: &SessionGuard) -> Result<Option<String>> {
    if !held.state().durable {
        return Ok(None);
    }
    match held.emergency_snapshot(io).await {
        Err(error) if error.code == Code::QuotaExceeded => Ok(None),
        taken => taken.map(Some),
    }
}

/// Makes the prompt fit, if that is possible at all; whether it fits is looked at after each step. `failed` is why the
/// summary before it failed: a summariser that does not answer is not asked again.
async fn rescue(
    io: &Io,
    held: &mut SessionGuard,
    run: &Run<'_>,
    failed: Option<&Error>,
) -> Result<Vec<CompactionResult>> {
    let mut results = Vec::new();
    let answers = failed.is_none_or(|error| !matches!(error.code, Code::SummaryFailed | Code::Timeout));
    let steps = [
        (Rung::Summarise, Aim::AGGRESSIVE, "recent messages are summarised too"),
        (Rung::Rollover, Aim::ROLLOVER, "the context begins anew with a short summary of everything"),
    ];
    for (rung, aim, what) in steps {
        let (tokens, limit) = (held.tokens(), limit(&held.state()));
        if !fires(&held.state(), run.trigger, tokens) || (rung == Rung::Summarise && !answers) {
            continue;
        }
        let proposal = cut::propose(&held.state(), aim)?;
        if proposal.is_err() {
            continue;
        }
        let undo = match snapshot(io, held).await? {
            Some(snapshot) => format!(", and restoring {snapshot} undoes it"),
            None => String::new(),
        };
        let message = format!(
            "Emergency: {tokens} tokens, the limit is {limit}: {what}; the log keeps every message{undo}"
        );
        io.log(LogLevel::Warn, message.clone());
        io.tell(Effect::Notify(Notice::Warning { code: Code::ContextOverflow, message }));
        results.push(summarise::run(io, held, (run, rung), proposal).await?);
    }
    Ok(results)
}
