//! What a session needs seldom, from outside: recovery, what others wrote, texts of many megabytes. It is behind a seam.

use super::guard::SessionGuard;
use super::record::SessionRow;
use super::state::State;
use super::watermark::HostRecord;
use super::{jobs, migrations, rebuild};
use crate::error::Result;
use crate::keys::batch::Key;
use crate::policy::Settings;
use crate::step::{CodeStage, Io, Loss, Seam, Work};

/// What is called of upkeep.
pub struct Upkeep {
    /// See [`State::recover`].
    pub(super) recover: for<'a> fn(&'a mut State, &'a Io, &'a HostRecord, bool) -> Worked<'a, Vec<Loss>>,
    /// See [`rebuild::row`].
    pub(super) row: for<'a> fn(&'a Io, &'a State) -> Worked<'a, Option<SessionRow>>,
    /// See [`migrations::migrated`].
    pub(super) migrated: for<'a> fn(&'a Io, &'a str, &'a Settings) -> Worked<'a, Option<SessionRow>>,
    /// See [`jobs::close`].
    pub(super) close_jobs: for<'a> fn(&'a Io, &'a State) -> Worked<'a, ()>,
    /// See [`SessionGuard::take_over`].
    pub(super) take_over: for<'a> fn(&'a SessionGuard, &'a Io) -> Worked<'a, bool>,
    /// See [`SessionGuard::store_changes`].
    pub(super) store_changes: for<'a> fn(&'a SessionGuard, &'a Io) -> Worked<'a, ()>,
    /// See [`SessionGuard::stage`].
    pub(super) stage: for<'a> fn(&'a SessionGuard, &'a Io, &'a str, LargeRows<'a>) -> Worked<'a, StagedJob>,
}

/// What a call comes to.
type Worked<'a, T> = Work<'a, Result<T>>;

/// The job that a text was written under, and its version; `None` where the text was there.
pub(super) type StagedJob = Option<(Key, u64)>;

/// Rows of a large text, one at a time.
pub(super) type LargeRows<'a> = Box<dyn Iterator<Item = (Key, Vec<u8>)> + 'a>;

/// Upkeep.
pub static UPKEEP: Upkeep = Upkeep {
    recover: |state, io, known, named| Box::pin(state.recover(io, known, named)),
    row: |io, state| Box::pin(rebuild::row(io, state)),
    migrated: |io, sid, settings| Box::pin(migrations::migrated(io, sid, settings)),
    close_jobs: |io, state| Box::pin(jobs::close(io, state)),
    take_over: |guard, io| Box::pin(guard.read_others(io)),
    store_changes: |guard, io| Box::pin(guard.store_changes(io)),
    stage: |guard, io, blob, rows| Box::pin(guard.stage(io, blob, rows)),
};

/// The way to it.
pub static TO_UPKEEP: Seam<Upkeep> = Seam::new(CodeStage::Rest, &UPKEEP);
