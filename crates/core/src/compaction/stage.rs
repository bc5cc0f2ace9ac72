//! The ladder from outside: it is behind a seam.

use super::result::Plan;
use super::rung::{Climbed, Run};
use super::{ladder, reasoning};
use crate::error::Result;
use crate::log::SessionGuard;
use crate::policy::Trigger;
use crate::step::{CodeStage, Io, Seam, Work};

/// What is called of the ladder.
pub struct Ladder {
    climb: for<'a> fn(&'a Run<'a>) -> Work<'a, Result<Climbed>>,
    plan: for<'a> fn(&'a Io, &'a SessionGuard, Trigger) -> Work<'a, Result<Plan>>,
    settle: for<'a> fn(&'a Io, &'a SessionGuard, Trigger) -> Work<'a, Result<()>>,
}

/// The ladder.
pub static LADDER: Ladder = Ladder {
    climb: |run| Box::pin(ladder::climb(run)),
    plan: |io, copy, trigger| Box::pin(ladder::plan(io, copy, trigger)),
    settle: |io, guard, trigger| Box::pin(reasoning::settle(io, guard, trigger)),
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
