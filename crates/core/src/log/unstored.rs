//! Changes of the context that a full store took no more. They stand in memory, so that there is a prompt all the same; the
//! log has every message of them. The next change of the context that finds room stores them first.

use super::guard::SessionGuard;
use super::offloads::NewBlob;
use super::retry::{Tried, conflict, retry, retryable};
use super::stage::TO_UPKEEP;
use super::state::{ContextChange, State};
use crate::context::{Context, Item};
use crate::error::{Code, Error, Result};
use crate::step::{Effect, Io, LogLevel, Notice};
use std::rc::Rc;

/// What is in memory alone.
#[derive(Debug, Clone)]
pub(crate) struct Unstored {
    /// The context as the store has it.
    stored: Rc<Context>,
    /// How it became the one that is used, in order.
    changes: Vec<Rc<ContextChange>>,
}

/// Tells one context of a session in memory from every other. The number alone does not: what stood in memory alone may
/// be given up for a context that someone else stored under the same number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Version {
    given_up: u64,
    view: u64,
}

impl State {
    /// Which context this is.
    pub(super) fn version(&self) -> Version {
        Version { given_up: self.given_up, view: self.generation() }
    }

    /// Counts the contexts that there were, those in memory too.
    pub(crate) fn generation(&self) -> u64 {
        self.row.generation + self.unstored.as_ref().map_or(0, |unstored| unstored.changes.len() as u64)
    }

    /// True when the store has the context; nothing where nothing is ever stored.
    pub(crate) fn is_stored(&self) -> Option<bool> {
        self.durable.then_some(self.unstored.is_none())
    }

    /// Adds a message to the end of the context.
    pub(super) fn push(&mut self, item: Item) {
        if let Some(unstored) = &mut self.unstored {
            Rc::make_mut(&mut unstored.stored).push(item.clone());
        }
        Rc::make_mut(&mut self.context).push(item);
    }

    /// Goes back to the context that the store has.
    fn give_up(&mut self) {
        let Some(unstored) = self.unstored.take() else { return };
        self.context = unstored.stored;
        self.given_up += 1;
    }

    /// Offloads that the store does not have yet.
    pub(crate) fn unstored_blobs(&self) -> Vec<NewBlob> {
        let changes = self.unstored.iter().flat_map(|unstored| &unstored.changes);
        changes.flat_map(|change| change.blobs.iter().cloned()).collect()
    }
}

impl SessionGuard {
    /// Makes `after` the context, in memory alone.
    pub(super) fn change_in_memory(&self, change: Rc<ContextChange>, after: Rc<Context>) {
        let mut state = self.state_mut();
        let before = std::mem::replace(&mut state.context, after);
        let unstored = state.unstored.get_or_insert_with(|| Unstored { stored: before, changes: Vec::new() });
        unstored.changes.push(change);
    }

    /// Stores what is in memory alone. Where there is still no room, it says so, and nothing changes.
    pub(crate) async fn store_or_warn(&self, io: &Io) -> Result<()> {
        if self.state().unstored.is_none() {
            return Ok(());
        }
        match (TO_UPKEEP.enter(io).await?.store_changes)(self, io).await {
            Err(error) if error.code == Code::QuotaExceeded => {
                warn(io, &error);
                Ok(())
            }
            done => done,
        }
    }

    /// Stores what is in memory alone. When it ends, nothing is: it is stored, or given up for what someone else stored.
    ///
    /// Errors: [`Code::QuotaExceeded`] when there is still no room.
    pub(crate) async fn store_changes(&self, io: &Io) -> Result<()> {
        retry(io, Some(self), async |_| {
            while let Some((change, of_store)) = self.first_unstored() {
                let (commit_id, now) = (io.new_id().await?, io.now().await?);
                let (batch, row) = of_store.change_batch(&change, &commit_id, now)?;
                match self.commit(io, batch, Vec::new(), Some(&change)).await {
                    Ok(()) => {
                        let mut state = self.state_mut();
                        state.wrote(io, row);
                        let Some(unstored) = &mut state.unstored else { continue };
                        change.apply(Rc::make_mut(&mut unstored.stored));
                        unstored.changes.remove(0);
                        if unstored.changes.is_empty() {
                            state.unstored = None;
                        }
                    }
                    // Where someone else changed the context, what is in memory goes with the one that it was made of.
                    Err(error) if retryable(&error) => return Ok(Tried::Lost(conflict(), None)),
                    // It never met the store's limit. The log has every message: the next compaction makes smaller
                    // batches.
                    Err(error) if error.code == Code::TooLarge => self.state_mut().give_up(),
                    Err(error) => return Err(error),
                }
            }
            Ok(Tried::Done(()))
        })
        .await
    }

    /// The oldest change that is in memory alone, and the session as the store has it.
    fn first_unstored(&self) -> Option<(Rc<ContextChange>, State)> {
        let state = self.state();
        let Unstored { stored, changes } = state.unstored.as_ref()?;
        Some((Rc::clone(changes.first()?), State { context: stored.clone(), ..state.clone() }))
    }
}

/// Says, once in a call, that the context is in memory alone.
pub(super) fn warn(io: &Io, error: &Error) {
    let message = format!(
        "the store is full: the compacted context is in memory and is sent, and the next call that finds room stores it. \
         Free some space, for example by deleting sessions: until then nothing is appended ({error})"
    );
    io.log(LogLevel::Warn, message.clone());
    io.tell(Effect::Notify(Notice::Warning { code: Code::QuotaExceeded, message }));
}
