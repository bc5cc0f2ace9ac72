//! When a prompt does not fit after all else (`S5.15`, `S4.7`): recent messages are summarized too, and then the context
//! begins anew with a built-in summary of everything and what the user said last. The log keeps every message, a snapshot
//! is taken before each step, and each is told as a warning.

use super::cut::{self, Aim};
use super::floor::Least;
use super::result::CompactionResult;
use super::rung::{Run, RungSpec, RungWork};
use super::{last, summarise};
use crate::error::{Code, Error, Result};
use crate::log::View;
use crate::policy::{Rung, Trigger};
use crate::step::{Effect, LogLevel, Notice};

/// Tokens at which the emergency begins.
fn limit(view: &View) -> usize {
    let share = (view.settings.window as f64 * view.settings.numbers.emergency_share) as usize;
    // The share is reached, the hard limit is passed.
    share.min(view.settings.hard_limit.saturating_add(1))
}

/// True when the prompt can be sent as it is.
pub(crate) fn has_room(view: &View) -> bool {
    view.usage.tokens < limit(view)
}

/// Whether it is needed is looked at after the last resort, and after each step.
pub(super) const RUNG: RungSpec = RungSpec {
    rung: Rung::Rollover,
    fires: |_, _, _| true,
    work: RungWork::Steps {
        waits: None,
        apply: |run, done| {
            Box::pin(async {
                last::shorten_all(run, run.settings().hard_limit, done).await?;
                let failed = done.result.as_ref().and_then(|result| result.error.clone());
                let results = rescue(run, failed.as_ref()).await?;
                done.rescue(&run.view(), results)?;
                Ok(true)
            })
        },
        least,
    },
    idle: |_| None,
};

/// All but the newest messages. A compaction by hand has no emergency to follow.
fn least(view: &View, least: &mut Least) -> Result<()> {
    if least.trigger == Trigger::Manual {
        return Ok(());
    }
    let aggressive = cut::propose(view, Aim::AGGRESSIVE)?.ok().filter(|_| !least.failed);
    least.proposal = match aggressive {
        Some(proposal) => Some(proposal),
        None => cut::propose(view, Aim::ROLLOVER)?.ok(),
    };
    Ok(())
}

/// Takes a snapshot before a step of the ladder that is to make a prompt fit which does not.
pub(super) async fn secure(run: &Run<'_>) -> Result<()> {
    let view = run.view();
    let must_fit = run.trigger != Trigger::Manual;
    if must_fit && !view.fits() && view.settings.rungs.contains(&Rung::Rollover) {
        run.snapshot().await?;
    }
    Ok(())
}

/// Makes the prompt fit, if that is possible at all; whether it fits is looked at after each step. `failed` is why the
/// summary before it failed: a summariser that does not answer is not asked again. A compaction by hand does what it was
/// asked for, whatever the size.
async fn rescue(run: &Run<'_>, failed: Option<&Error>) -> Result<Vec<CompactionResult>> {
    let mut results = Vec::new();
    let answers = failed.is_none_or(|error| !matches!(error.code, Code::SummaryFailed | Code::Timeout));
    let steps = [
        (Rung::Summarise, Aim::AGGRESSIVE, "recent messages are summarized too"),
        (Rung::Rollover, Aim::ROLLOVER, "the context begins anew with a short summary of everything"),
    ];
    for (rung, aim, what) in steps {
        let view = run.view();
        let (tokens, limit) = (view.usage.tokens, limit(&view));
        if run.trigger == Trigger::Manual || has_room(&view) || (rung == Rung::Summarise && !answers) {
            continue;
        }
        let proposal = cut::propose(&view, aim)?;
        drop(view);
        if proposal.is_err() {
            continue;
        }
        let undo = match run.snapshot().await? {
            Some(snapshot) => format!(", and restoring {snapshot} undoes it"),
            None => String::new(),
        };
        let message = format!(
            "Emergency: {tokens} tokens, the limit is {limit}: {what}; the log keeps every message{undo}"
        );
        run.io.log(LogLevel::Warn, message.clone());
        run.io.tell(Effect::Notify(Notice::Warning { code: Code::ContextOverflow, message }));
        results.push(summarise::run(run, rung, proposal).await?);
    }
    Ok(results)
}
