//! The operations of a session, each a [`Machine`] for the host to drive. Hosts queue them: one at a time, except that
//! others may run while one waits for a summariser ([`crate::step::Effect::parks`]).

mod branching;
mod carry;
mod expand;
mod looks;
mod prepare;
mod sync;

pub use branching::{BRANCHING, Branching, TO_BRANCHING};
pub use carry::Carried;
pub use looks::ToolSet;
pub use prepare::{Later, Prepared};
pub use sync::Synced;

use super::append::{AppendInput, append};
use super::{fork, pins};
use crate::checkpoint::{Goal, Source, markers};
use crate::compaction::{
    self, ClimbPart, Climbed, CompactionPreview, CompactionResult, FateChange, Plan, Run,
};
use crate::context::{Item, MessageSource, Origin, Place};
use crate::error::{Code, Error, Result};
use crate::keys::ids;
use crate::log::guard::SessionCell;
use crate::log::state::Fixed;
use crate::log::{SessionGuard, State, price};
use crate::policy::{Rung, Settings, Trigger, read_goal};
use crate::step::{Io, Machine};
use crate::wire::{Author, Format};
use serde::Serialize;
use std::rc::Rc;

/// A session of the public API. Cloning gives another handle on the same session.
#[derive(Debug, Clone)]
pub struct Session {
    pub(super) slot: SessionCell,
}

/// A message of the context for the host: the app's own, or a text of ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutItem {
    /// Log position of the app's own message; the host hands out the object that it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Index of that message among the app's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// JSON text of a message of ours, or of the app's with something replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Rc<str>>,
}

/// What an append led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Appended {
    /// Where the messages are, in order.
    pub places: Vec<Place>,
    /// The format that the session's messages are read in.
    pub format: Format,
}

/// Where the system prompt stands among the texts that go with the messages.
const PROMPT: usize = 0;
/// Where the tools do.
const TOOLS: usize = 1;
/// Where live facts do (`X12`).
const LIVE_TEXT: usize = 2;

/// What a session was found to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Opened {
    /// The app's own name for it.
    pub id: String,
    /// The format that its messages are read in.
    pub format: Format,
    /// Messages of the app so far.
    pub messages: usize,
}

impl Opened {
    pub(super) fn of(state: &State) -> Self {
        let row = &state.row;
        Opened { id: row.id.clone(), format: state.format(), messages: row.messages }
    }
}

/// What a compaction led to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compacted {
    /// The context.
    pub items: Vec<OutItem>,
    /// What was done.
    pub result: CompactionResult,
}

impl Session {
    /// Opens the session that the app calls `id`, or begins it; with no id, begins one. `max_batch_ops` is the most
    /// that the store takes in one batch.
    pub fn open(
        settings: Rc<Settings>,
        id: Option<String>,
        max_batch_ops: usize,
    ) -> Machine<(Session, Opened)> {
        Machine::new(move |io| async move {
            let secret = io.new_id().await?;
            let named = id.is_some();
            let id = id.unwrap_or_else(|| ids::session(&secret));
            let now = io.now().await?;
            let mut state = State::new(id, secret, settings, now);
            state.max_batch_ops = max_batch_ops;
            state.open(&io, named).await?;
            Session::begin(&io, state).await
        })
    }

    /// A session from its state, which takes over the goal that the app gives it.
    pub(super) async fn begin(io: &Io, mut state: State) -> Result<(Session, Opened)> {
        if let Some(format) = state.row.format.or(state.settings.format) {
            state.check_server(format)?;
        }
        // A goal that the session does not work on yet.
        let given = state.settings.goal.clone();
        let new = given.filter(|goal| state.row.goal.as_ref().is_none_or(|own| own.id != goal.id));
        let parent = state.settings.parent.clone();
        state.hand_out();
        let session = Session { slot: SessionCell::new(state) };
        if let Some(parent) = parent {
            fork::link(io, &session.slot.take()?, &parent).await?;
        }
        if let Some(goal) = new {
            session.slot.take()?.update_goal(io, |_, _| Ok(goal.clone())).await?;
        }
        let opened = session.slot.look(Opened::of)?;
        Ok((session, opened))
    }

    /// Compacts a history once, unconditionally, storing nothing.
    pub fn compact_once(settings: Rc<Settings>, bodies: Vec<Rc<str>>) -> Machine<Compacted> {
        Machine::new(|io| async move {
            let session = Session::once(&io, settings, bodies, false).await?;
            let guard = session.slot.take()?;
            let before = guard.view();
            let done = compact(&io, &guard, None).await?;
            if !summary_failed(&guard.settings(), &done.result) {
                return Ok(done);
            }
            // Nobody keeps the texts that other steps took out: without a summary the history stays as it is.
            let mut result = done.result.undone(&before);
            compaction::settle(&io, &before, &mut result).await?;
            let items = out(before.items());
            Ok(Compacted { items, result })
        })
    }

    /// What a session with these messages would do at its next `prepare`.
    pub fn plan_once(settings: Rc<Settings>, bodies: Vec<Rc<str>>) -> Machine<Plan> {
        Machine::new(|io| async move {
            let session = Session::once(&io, settings, bodies, true).await?;
            let guard = session.slot.take()?;
            let copy = SessionGuard::copy_of(&guard.state());
            compaction::plan(&io, &copy, Trigger::Auto).await
        })
    }

    /// A session that nothing is stored of; one that `recalls` stands for a session to come.
    async fn once(io: &Io, settings: Rc<Settings>, bodies: Vec<Rc<str>>, recalls: bool) -> Result<Session> {
        refuse_server(&settings)?;
        let secret = io.new_id().await?;
        let mut state = State::new(String::new(), secret, settings, 0);
        state.durable = false;
        state.references.recalls = recalls;
        let session = Session { slot: SessionCell::new(state) };
        let guard = session.slot.take()?;
        append(io, &guard, &bodies, AppendInput::default()).await?;
        drop(guard);
        Ok(session)
    }

    /// Appends messages of the app: durable when it ends.
    pub fn append(&self, bodies: Vec<Rc<str>>) -> Machine<Appended> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let guard = slot.take()?;
            let (places, _) = append(&io, &guard, &bodies, AppendInput::default()).await?;
            Ok(Appended { places, format: guard.format() })
        })
    }

    /// Counts what goes with the messages, for [`Session::usage`] and [`Session::plan`] before the next prepare. Asks only
    /// for what is answered at once.
    pub fn count_fixed(&self, fixed: Vec<String>) -> Machine<()> {
        let slot = self.slot.clone();
        Machine::new(move |io| async move {
            let (settings, format, goal) =
                slot.look(|state| (Rc::clone(&state.settings), state.format(), state.goal_text()))?;
            slot.set_fixed(count_fixed(&io, &settings, format, &fixed, goal.as_deref()).await?);
            Ok(())
        })
    }

    /// Compacts now, whatever the size (`S1.13`).
    pub fn compact(&self, instructions: Option<String>) -> Machine<Compacted> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let guard = slot.take()?;
            compact(&io, &guard, instructions.as_deref()).await
        })
    }

    /// What the next `prepare` would do.
    pub fn plan(&self) -> Machine<Plan> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let copy = slot.look(SessionGuard::copy_of)?;
            // The prepare that it speaks of is a step of its own.
            begin_step(&mut copy.state_mut());
            price::ask(&io, &copy, true).await?;
            let trigger = copy.state().wished(Trigger::Auto);
            compaction::plan(&io, &copy, trigger).await
        })
    }

    /// What [`Session::compact`] would do now, message by message. Asks no model: a summary counts with its target length.
    pub fn preview(&self) -> Machine<CompactionPreview> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let copy = slot.look(SessionGuard::copy_of)?;
            price::ask(&io, &copy, true).await?;
            let before = copy.context().clone();
            let plan = compaction::plan(&io, &copy, Trigger::Manual).await?;
            let tokens_after = copy.view().usage.tokens;
            Ok(CompactionPreview {
                tokens_after,
                changes: FateChange::between(&before, &copy.context()),
                plan,
            })
        })
    }

    /// Sets what the session is for; `json` is a [`Goal`]. Durable when it ends.
    ///
    /// Errors: [`Code::InvalidOption`].
    pub fn set_goal(&self, json: String) -> Machine<()> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let goal = read_goal(&json)?;
            slot.take()?.update_goal(&io, |_, _| Ok(goal.clone())).await?;
            Ok(())
        })
    }

    /// Takes over what the markers in a model's output say about the goal (`S5.13`). Durable when it ends.
    ///
    /// Errors: [`Code::NotFound`] when there is no goal.
    pub fn apply_markers(&self, output: String) -> Machine<Goal> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let updates = markers(&output);
            let update = |goal: Option<Goal>, now| {
                let none = || Error::new(Code::NotFound, "this session has no goal: set one first");
                let mut goal = goal.ok_or_else(none)?;
                goal.update(&updates, Source::Output, now);
                Ok(goal)
            };
            let goal = slot.take()?.update_goal(&io, update).await?;
            goal.ok_or_else(|| Error::new(Code::NotFound, "this session has no goal: set one first"))
        })
    }

    /// Pins the app's message `index` (`S4.3`): word for word for ever, also when it was summarised already. Durable when
    /// it ends.
    ///
    /// Errors: [`Code::InvalidOption`] when there is no such message.
    pub fn pin(&self, index: usize) -> Machine<()> {
        let slot = self.slot.clone();
        Machine::new(move |io| async move {
            slot.try_on_rows(&io, async |io: Io| pins::pin(&io, &slot.take()?, index).await).await
        })
    }

    /// Rejects what is proposed for the app's message `index` (`S4.3`): its constraints hold no more. Durable when it ends.
    ///
    /// Errors: [`Code::InvalidOption`] when there is no such message.
    pub fn reject_pin(&self, index: usize) -> Machine<()> {
        let slot = self.slot.clone();
        Machine::new(move |io| async move {
            let guard = slot.take()?;
            pins::reject(&io, &guard, index).await
        })
    }

    /// Removes everything that the session stored.
    pub fn delete(&self) -> Machine<()> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let guard = slot.take()?;
            guard.delete(&io).await?;
            guard.state().unmark(&io);
            slot.close();
            Ok(())
        })
    }

    /// Takes over what other handles on the session wrote, and tells it ([`crate::step::Notice::Change`]). A host calls it when it hears
    /// of a commit that [`Session::is_news`].
    ///
    /// Errors: [`Code::Closed`] when the session was deleted.
    pub fn catch_up(&self) -> Machine<()> {
        let slot = self.slot.clone();
        Machine::new(|io| async move { slot.take()?.catch_up(&io).await })
    }

    /// May this handle not know of commit `ver` of the session whose rows are `sid`'s? While nothing was written through it,
    /// somebody else may have begun the session, under an id that is not known here.
    ///
    /// Errors: [`Code::Closed`].
    pub fn is_news(&self, sid: &str, ver: u64) -> Result<bool> {
        let is_news = |state: &State| state.row.ver == 0 || (state.sid == sid && state.row.ver < ver);
        self.look(|state| state.durable && is_news(state))
    }

    /// True when a handle that opens it now and takes over what this one passes on is as this one: nothing of its context stands
    /// in memory alone, or is under way.
    ///
    /// Errors: [`Code::Closed`].
    pub fn can_pass_on(&self) -> Result<bool> {
        Ok(self.look(State::can_pass_on)? && !self.slot.is_in_background())
    }

    /// What a handle that takes its place needs besides the store, as JSON text.
    ///
    /// Errors: [`Code::Closed`].
    pub fn passed_on(&self) -> Result<String> {
        self.look(State::passed_on)
    }

    /// Takes the place of a handle that passed this on.
    ///
    /// Errors: [`Code::Poisoned`] for anything else, [`Code::Closed`], [`Code::Conflict`].
    pub fn take_over(&self, passed: &str) -> Result<()> {
        self.slot.take()?.state_mut().take_over(passed)
    }

    /// Refuses every later call.
    pub fn close(&self) {
        self.slot.close();
    }

    /// Looks at the state for [`super::audit`].
    pub(crate) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> Result<T> {
        self.slot.look(look)
    }
}

async fn compact(io: &Io, guard: &SessionGuard, instructions: Option<&str>) -> Result<Compacted> {
    let mut run = Run::new(io, guard, ClimbPart::Whole, Trigger::Manual);
    run.instructions = instructions;
    let started = io.now().await?;
    guard.catch_up(io).await?;
    guard.store_or_warn(io).await?;
    let begun = CompactionResult::begin(&guard.view(), Trigger::Manual);
    let done = compaction::climb(&run).await?;
    let mut result = report(io, guard, begun, done, started).await?;
    if !guard.state().references.recalls {
        result.forget_references();
    }
    guard.state_mut().hand_out();
    Ok(Compacted { items: out(guard.context().items()), result })
}

/// What a climb did.
async fn report(
    io: &Io,
    guard: &SessionGuard,
    begun: CompactionResult,
    done: Climbed,
    started: u64,
) -> Result<CompactionResult> {
    Ok(match done.result {
        Some(mut result) => {
            result.tell(&guard.view(), done.edits);
            result
        }
        // A preset that never summarises.
        None => {
            let freed_tokens = done.edits.iter().map(|edit| edit.freed_tokens).sum();
            let reason = done.edits.is_empty().then(|| compaction::reason(&done.idle));
            let (cost, error) = (done.spent.cost, done.spent.failed);
            let edits = done.edits;
            let mut result = CompactionResult {
                changed: !edits.is_empty(),
                freed_tokens,
                applied_edits: edits,
                usage: cost.usage,
                llm_calls: cost.calls,
                reason,
                ..begun
            };
            if let Some(error) = error {
                result.fail(error);
            }
            let mut result = result.end(io, &guard.view(), started).await?;
            compaction::settle(io, &guard.view(), &mut result).await?;
            result
        }
    })
}

/// True when a summary that was asked for could not be had.
fn summary_failed(settings: &Settings, result: &CompactionResult) -> bool {
    let of =
        |error: &Error| matches!(error.code, Code::SummaryFailed | Code::SummaryRejected | Code::Timeout);
    let error = result.error.as_ref().filter(|_| settings.rungs.contains(&Rung::Summarise));
    error.is_some_and(|error| of(error) || error.because.as_ref().is_some_and(of))
}

/// A step is a prepare that comes after an append (`S1.4`).
fn begin_step(state: &mut State) -> bool {
    let is_step = state.row.pending_step;
    if state.row.pending_step {
        state.row.pending_step = false;
        state.row.steps += 1;
    }
    is_step
}

/// Counts the texts that go with the messages, and the goal, which is added to the system prompt. The prompt is the
/// caller's: counted, never compressed (`S5.14`).
async fn count_fixed(
    io: &Io,
    settings: &Settings,
    format: Format,
    fixed: &[String],
    goal: Option<&str>,
) -> Result<Fixed> {
    let mut counted = Fixed::default();
    let goal = goal.map(|goal| (PROMPT, goal));
    for (what, text) in fixed.iter().map(String::as_str).enumerate().chain(goal) {
        if text.is_empty() {
            continue;
        }
        let tokens = if settings.app_counts {
            let body: Rc<str> = Rc::from(format.wire().text_message(Author::User, text, "", None));
            io.count(MessageSource::Ours, &body).await?
        } else {
            let (estimator, texts) = (settings.estimator, &mut counted.texts);
            if what == TOOLS {
                estimator.tools_within(text, texts)
            } else {
                estimator.text_within(text, texts)
            }
        };
        counted.tokens += tokens;
        counted.prompt += if what == PROMPT { tokens } else { 0 };
        counted.tools += if what == TOOLS { tokens } else { 0 };
        counted.live += if what == LIVE_TEXT { tokens } else { 0 };
    }
    Ok(counted)
}

/// Refuses a provider that is to compact where nothing says what it is sent next.
fn refuse_server(settings: &Settings) -> Result<()> {
    match settings.is_server() {
        true => Err(Error::option("summarize", "\"server\" needs a session: open one with openSession")),
        false => Ok(()),
    }
}

pub(super) fn out(items: &[Item]) -> Vec<OutItem> {
    items
        .iter()
        .map(|item| {
            let whole =
                if let Origin::Message(place) = item.origin { Some(place) } else { item.origin.server() };
            match whole {
                Some(place) => OutItem { seq: Some(place.seq), index: Some(place.index), body: None },
                None => OutItem { seq: None, index: None, body: Some(Rc::clone(&item.body)) },
            }
        })
        .collect()
}
