//! A session's state and the operation that holds it. Looking is always possible; changing is for the one operation
//! that holds the state, and it lets go of it while a model works.

use super::state::{Fixed, State};
use super::unstored::Version;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::policy::Settings;
use crate::wire::Format;
use crate::wire::provider::Usage;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::rc::Rc;

/// A session's state, shared by its handles.
#[derive(Debug, Clone)]
pub(crate) struct SessionCell(Rc<Shared>);

#[derive(Debug)]
struct Shared {
    state: RefCell<State>,
    taken: Cell<bool>,
    background: Cell<bool>,
    closed: Cell<bool>,
}

impl SessionCell {
    pub(crate) fn new(state: State) -> Self {
        SessionCell(Rc::new(Shared {
            state: RefCell::new(state),
            taken: Cell::new(false),
            background: Cell::new(false),
            closed: Cell::new(false),
        }))
    }

    /// Takes the state for an operation.
    ///
    /// Errors: [`Code::Closed`]; [`Code::Conflict`] when another operation holds it (hosts queue their calls).
    pub(crate) fn take(&self) -> Result<SessionGuard> {
        self.lift()?;
        Ok(SessionGuard { slot: self.clone(), holds: Cell::new(true), released_at: Cell::default() })
    }

    fn lift(&self) -> Result<()> {
        self.check_open()?;
        if self.0.taken.replace(true) {
            return Err(Error::new(
                Code::Conflict,
                "another call on this session is under way; await it first",
            ));
        }
        Ok(())
    }

    /// From now on, and until what is returned is dropped, a summary is made that nobody waits for.
    pub(crate) fn begin_background(&self) -> Background {
        self.0.background.set(true);
        Background(self.clone())
    }

    /// True while such a summary is made.
    pub(crate) fn is_in_background(&self) -> bool {
        self.0.background.get()
    }

    fn check_open(&self) -> Result<()> {
        if self.0.closed.get() {
            return Err(Error::new(Code::Closed, "the session was closed or deleted; open it again"));
        }
        Ok(())
    }

    /// Refuses everything from now on.
    pub(crate) fn close(&self) {
        self.0.closed.set(true);
    }

    /// Notes what the system prompt and the tools of the next prompt take.
    pub(crate) fn set_fixed(&self, fixed: Fixed) {
        self.0.state.borrow_mut().set_fixed(fixed);
    }

    /// Learns what the provider counted for the last prompt; false when that cannot be it.
    ///
    /// Errors: [`Code::Closed`].
    pub(crate) fn report(&self, usage: &Usage, model: Option<String>) -> Result<bool> {
        self.check_open()?;
        Ok(self.0.state.borrow_mut().report(usage, model))
    }

    /// Looks at the state, between operations or during one.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> Result<T> {
        self.check_open()?;
        Ok(look(&self.0.state.borrow()))
    }
}

/// A summary that nobody waits for.
#[derive(Debug)]
pub(crate) struct Background(SessionCell);

impl Drop for Background {
    fn drop(&mut self) {
        self.0.0.background.set(false);
    }
}

/// An operation's hold on the state. A borrow of the state never lives through an await: what is seen between awaits is
/// always whole, and dropping the operation at any point leaves it so.
#[derive(Debug)]
pub(crate) struct SessionGuard {
    slot: SessionCell,
    holds: Cell<bool>,
    released_at: Cell<Version>,
}

impl SessionGuard {
    /// Holds a copy that nothing else sees and nothing stores: for dry runs.
    pub(crate) fn copy_of(state: &State) -> Self {
        let mut copy = state.clone();
        copy.durable = false;
        copy.secrets = Rc::new(RefCell::clone(&copy.secrets));
        SessionGuard { slot: SessionCell::new(copy), holds: Cell::new(false), released_at: Cell::default() }
    }

    /// The state.
    pub(crate) fn state(&self) -> Ref<'_, State> {
        self.slot.0.state.borrow()
    }

    /// The state, to be changed.
    pub(crate) fn state_mut(&self) -> RefMut<'_, State> {
        self.slot.0.state.borrow_mut()
    }

    /// The options.
    pub(crate) fn settings(&self) -> Rc<Settings> {
        Rc::clone(&self.state().settings)
    }

    /// The messages' format.
    pub(crate) fn format(&self) -> Format {
        self.state().format()
    }

    /// All tokens of the next prompt.
    pub(crate) fn tokens(&self) -> usize {
        self.state().tokens()
    }

    /// Messages of the app so far.
    pub(crate) fn messages(&self) -> usize {
        self.state().row.messages
    }

    /// Indices of the messages that the conversation is made of as it goes on.
    pub(crate) fn history(&self) -> Vec<usize> {
        let state = self.state();
        state.context.history(state.row.messages)
    }

    /// The active context.
    pub(crate) fn context(&self) -> Ref<'_, Context> {
        Ref::map(self.state(), |state| state.context.as_ref())
    }

    /// Lets other calls run: used while a model works.
    pub(crate) fn release(&self) {
        self.released_at.set(self.state().version());
        self.slot.0.taken.set(false);
        self.holds.set(false);
    }

    /// Takes the state again.
    ///
    /// Errors: [`Code::Conflict`] when the context itself was changed meanwhile (appends do not change it),
    /// [`Code::Closed`].
    pub(crate) fn acquire(&self) -> Result<()> {
        self.slot.lift()?;
        self.holds.set(true);
        if self.state().version() == self.released_at.get() {
            Ok(())
        } else {
            Err(Error::new(
                Code::Conflict,
                "the context was changed elsewhere while the summary was written; try again",
            ))
        }
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        if self.holds.get() {
            self.slot.0.taken.set(false);
        }
    }
}
