//! The ladder from outside: it is behind a seam.

use super::result::Plan;
use super::rung::{AGAIN, Climbed, Run};
use super::{ladder, reasoning, server};
use crate::error::{Code, Result};
use crate::log::SessionGuard;
use crate::policy::Trigger;
use crate::step::{CodeStage, Io, Seam, Work};

/// What is called of the ladder.
pub struct Ladder {
    climb: for<'a> fn(&'a Run<'a>) -> Work<'a, Result<Climbed>>,
    plan: for<'a> fn(&'a Io, &'a SessionGuard, Trigger) -> Work<'a, Result<Plan>>,
    settle: for<'a> fn(&'a Io, &'a SessionGuard, Trigger) -> Work<'a, Result<()>>,
    take_over: for<'a> fn(&'a Io, &'a SessionGuard, usize) -> Work<'a, Result<()>>,
    dissolve_around: for<'a> fn(&'a Io, &'a SessionGuard, usize) -> Work<'a, Result<()>>,
}

/// The ladder.
pub static LADDER: Ladder = Ladder {
    climb: |run| Box::pin(ladder::climb(run)),
    plan: |io, copy, trigger| Box::pin(ladder::plan(io, copy, trigger)),
    settle: |io, guard, trigger| Box::pin(reasoning::settle(io, guard, trigger)),
    take_over: |io, guard, at| Box::pin(server::take_over(io, guard, at)),
    dissolve_around: |io, guard, index| Box::pin(server::dissolve_around(io, guard, index)),
};

/// The way to it.
pub static TO_LADDER: Seam<Ladder> = Seam::new(CodeStage::Compact, &LADDER);

/// Climbs the ladder: see [`ladder::climb`].
pub(crate) async fn climb(run: &Run<'_>) -> Result<Climbed> {
    (TO_LADDER.enter(run.io).await?.climb)(run).await
}

/// What a climb would do: see [`ladder::plan`].
pub(crate) async fn plan(io: &Io, copy: &SessionGuard, trigger: Trigger) -> Result<Plan> {
    (TO_LADDER.enter(io).await?.plan)(io, copy, trigger).await
}

/// Settles messages that nobody was handed yet: see [`reasoning::settle`].
pub(crate) async fn settle_reasoning(io: &Io, guard: &SessionGuard, trigger: Trigger) -> Result<()> {
    if guard.state().unseen_from.is_none() {
        return Ok(());
    }
    (TO_LADDER.enter(io).await?.settle)(io, guard, trigger).await
}

/// Looks for a compaction of the provider among the messages that nobody looked at yet, and takes it over (`X10`).
///
/// Errors: those of the store and the stage; the messages are appended all the same, and the next prepare looks again.
pub(crate) async fn recognize(io: &Io, guard: &SessionGuard) -> Result<()> {
    if !guard.settings().is_server() {
        return Ok(());
    }
    for again in 0.. {
        let (from, next) = guard.state().unlooked();
        if from >= next {
            break;
        }
        let found = server::newest(&guard.view(), from)?;
        let taken = match found {
            Some(at) => (TO_LADDER.enter(io).await?.take_over)(io, guard, at).await,
            None => Ok(()),
        };
        match taken {
            // Another tab came first: what it made of the context is looked at.
            Err(error) if error.code == Code::Conflict && again < AGAIN => {}
            taken => {
                taken?;
                guard.state_mut().looked_at = next;
                break;
            }
        }
    }
    Ok(())
}

/// Puts back what the provider's compaction stands for that the message `index` is in.
pub(crate) async fn dissolve_around(io: &Io, guard: &SessionGuard, index: usize) -> Result<()> {
    if guard.context().totals().by_server == 0 {
        return Ok(());
    }
    (TO_LADDER.enter(io).await?.dissolve_around)(io, guard, index).await
}
