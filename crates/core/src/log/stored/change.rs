//! Changing a session in the store: its context, or its row alone.

use crate::checkpoint::Goal;
use crate::context::{Context, Origin, conserve};
use crate::error::{Code, Error, Result};
use crate::log::record::SessionRow;
use crate::log::retry::{Tried, conflict, retry, retryable};
use crate::log::state::view_id;
use crate::log::{ContextChange, SessionGuard, unstored};
use crate::step::Io;
use std::rc::Rc;

impl SessionGuard {
    /// Commits a change of the context (T3): all of it in one batch, or nothing. Messages that were appended meanwhile,
    /// here or elsewhere, stay behind it.
    ///
    /// A compaction that finds the store full stands in memory alone ([`SessionGuard::store_changes`]).
    ///
    /// Errors: [`Code::Conflict`] when someone else changed the context itself.
    pub(crate) async fn change(&self, io: &Io, change: ContextChange) -> Result<()> {
        if !change.can_wait {
            let version = self.state().version();
            self.store_changes(io).await?;
            if self.state().version() != version {
                return Err(conflict());
            }
        }
        let (change, commit_id) = (Rc::new(change), io.new_id().await?);
        retry(io, Some(self), async |attempt| {
            if attempt.moved {
                return Err(conflict());
            }
            let after = self.changed(&change)?;
            if !self.state().durable {
                let mut state = self.state_mut();
                let before = std::mem::replace(&mut state.context, after);
                for item in before.items() {
                    if let Origin::Message(place) = item.origin {
                        Rc::make_mut(&mut state.unlogged).insert(place.index, Rc::clone(&item.body));
                    }
                }
                state.row.generation += 1;
                let now = state.row.updated_at;
                change.note(&mut state.row, now);
                return Ok(Tried::Done(()));
            }
            if self.state().unstored.is_some() {
                self.change_in_memory(Rc::clone(&change), after);
                return Ok(Tried::Done(()));
            }
            match self.try_change(io, &change, after, &commit_id).await {
                Err(error) if error.code == Code::QuotaExceeded && change.can_wait => {
                    unstored::warn(io, &error);
                    let after = self.changed(&change)?;
                    self.change_in_memory(Rc::clone(&change), after);
                    Ok(Tried::Done(()))
                }
                tried => tried,
            }
        })
        .await
    }

    /// Tries once to commit a change that makes `after` the context.
    pub(crate) async fn try_change(
        &self,
        io: &Io,
        change: &ContextChange,
        after: Rc<Context>,
        commit_id: &str,
    ) -> Result<Tried<()>> {
        debug_assert!(self.state().unstored.is_none(), "a context in memory is stored before the next one");
        let now = io.now().await?;
        let id = view_id(commit_id, &self.state().row.head);
        loop {
            let (batch, row) = self.state().change_batch(change, commit_id, now)?;
            match self.commit(io, batch, Vec::new(), Some(change)).await {
                Ok(()) => {
                    let mut state = self.state_mut();
                    state.wrote(io, row);
                    (state.context, state.facts) = (after, None);
                    return Ok(Tried::Done(()));
                }
                Err(error) if retryable(&error) => return Ok(Tried::Lost(error, Some((id, ())))),
                // There may be room for all that is needed.
                Err(error) if is_too_much(&error) && self.state_mut().facts.take().is_some() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The context as `change` makes it.
    ///
    /// Errors: [`Code::Poisoned`] when a message would have no fate, or two.
    pub(crate) fn changed(&self, change: &ContextChange) -> Result<Rc<Context>> {
        let mut after = self.context().clone();
        change.apply(&mut after);
        conserve(&after, self.state().row.messages)?;
        Ok(Rc::new(after))
    }

    /// Sets the goal to what `update` makes of the one that is stored; durable when it ends.
    pub(crate) async fn update_goal(
        &self,
        io: &Io,
        update: impl Fn(Option<Goal>, u64) -> Result<Goal>,
    ) -> Result<Option<Goal>> {
        let update = |row: &mut SessionRow, now| {
            row.goal = Some(update(row.goal.take(), now)?);
            Ok(())
        };
        self.update_row(io, update).await?;
        Ok(self.state().row.goal.clone())
    }

    /// Changes the session's row alone to what `update` makes of the one that is stored; durable when it ends.
    pub(crate) async fn update_row(
        &self,
        io: &Io,
        update: impl Fn(&mut SessionRow, u64) -> Result<()>,
    ) -> Result<()> {
        retry(io, Some(self), async |_| {
            let now = io.now().await?;
            let (batch, row) = self.state().row_batch(now, &update)?;
            self.check_new(io).await?;
            match io.commit(batch).await {
                Ok(()) => {
                    self.state_mut().wrote(io, row);
                    Ok(Tried::Done(()))
                }
                // One that was written after all is taken over again, which changes nothing.
                Err(error) if retryable(&error) => Ok(Tried::Lost(error, None)),
                Err(error) => Err(error),
            }
        })
        .await
    }
}

/// True where the store would take less at once.
fn is_too_much(error: &Error) -> bool {
    matches!(error.code, Code::QuotaExceeded | Code::TooLarge)
}
