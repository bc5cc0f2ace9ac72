//! Holding a session's state through an operation, and letting go of it while a model works.

use super::state::State;
use crate::error::{Code, Error, Result};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// Where a session's state lies when no operation holds it.
#[derive(Debug, Clone)]
pub(crate) struct Slot(Rc<RefCell<Rest>>);

#[derive(Debug)]
enum Rest {
    /// Free to be taken.
    Free(Box<State>),
    /// An operation holds it.
    Taken,
    /// The session was closed or deleted.
    Closed,
}

impl Slot {
    pub(crate) fn new(state: State) -> Self {
        Slot(Rc::new(RefCell::new(Rest::Free(Box::new(state)))))
    }

    /// Takes the state for an operation.
    ///
    /// Errors: [`Code::Closed`]; [`Code::Conflict`] when another operation holds it (hosts queue their calls).
    pub(crate) fn take(&self) -> Result<Held> {
        let state = self.lift()?;
        Ok(Held { slot: self.clone(), state: Some(state), released_at: 0, job: None, idle: idle() })
    }

    fn lift(&self) -> Result<Box<State>> {
        match self.0.replace(Rest::Taken) {
            Rest::Free(state) => Ok(state),
            Rest::Taken => Err(Error::new(Code::Conflict, "another call on this session is under way; await it first")),
            Rest::Closed => {
                self.0.replace(Rest::Closed);
                Err(Error::new(Code::Closed, "the session was closed or deleted; open it again"))
            }
        }
    }

    fn put_back(&self, state: Box<State>) {
        let mut rest = self.0.borrow_mut();
        if matches!(*rest, Rest::Taken) {
            *rest = Rest::Free(state);
        }
    }

    /// Refuses everything from now on.
    pub(crate) fn close(&self) {
        self.0.replace(Rest::Closed);
    }

    /// Looks at the state between operations.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> Result<T> {
        match &*self.0.borrow() {
            Rest::Free(state) => Ok(look(state)),
            Rest::Taken => Err(Error::new(Code::Conflict, "another call on this session is under way; await it first")),
            Rest::Closed => Err(Error::new(Code::Closed, "the session was closed or deleted; open it again")),
        }
    }
}

/// Stands in for the state while an operation has let go of it.
fn idle() -> Box<State> {
    Box::new(State::new(String::new(), String::new(), String::new(), Rc::new(crate::plan::Settings::default()), 0))
}

/// The state, held by an operation. Dropping it puts the state back: nothing in it was changed but by a commit.
#[derive(Debug)]
pub(crate) struct Held {
    slot: Slot,
    state: Option<Box<State>>,
    released_at: u64,
    /// The job under way, to be closed by the commit.
    pub(crate) job: Option<String>,
    idle: Box<State>,
}

impl Held {
    /// Holds a copy that nothing else sees and nothing stores: for dry runs.
    pub(crate) fn copy_of(state: &State) -> Self {
        let mut copy = state.clone();
        copy.durable = false;
        Held {
            slot: Slot(Rc::new(RefCell::new(Rest::Taken))),
            state: Some(Box::new(copy)),
            released_at: 0,
            job: None,
            idle: idle(),
        }
    }

    /// Lets other calls run: used while a model works.
    pub(crate) fn release(&mut self) {
        if let Some(state) = self.state.take() {
            self.released_at = state.row.generation;
            self.slot.put_back(state);
        }
    }

    /// Takes the state again.
    ///
    /// Errors: [`Code::Conflict`] when the context itself was changed meanwhile (appends do not change it),
    /// [`Code::Closed`].
    pub(crate) fn acquire(&mut self) -> Result<()> {
        let state = self.slot.lift()?;
        let unchanged = state.row.generation == self.released_at;
        self.state = Some(state);
        if unchanged {
            Ok(())
        } else {
            Err(Error::new(Code::Conflict, "the context was changed elsewhere while the summary was written; try again"))
        }
    }
}

impl Deref for Held {
    type Target = State;

    fn deref(&self) -> &State {
        self.state.as_deref().unwrap_or(&self.idle)
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut State {
        self.state.as_deref_mut().unwrap_or(&mut self.idle)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            self.slot.put_back(state);
        }
    }
}
