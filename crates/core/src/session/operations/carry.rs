//! A compaction of a history that the app keeps, which goes on from the state that the call before it returned (`E4`), and the
//! recall of what such a state stands for.

use super::prepare::fix;
use super::{Compacted, OutItem, Session, begin_step, report};
use crate::compaction::{self, ClimbPart, Climbed, CompactionResult, Run};
use crate::context::{Context, Item, Splice};
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Batch, Durability};
use crate::log::price::Paid;
use crate::log::stored::commit_again;
use crate::log::{Cause, ContextChange, NewBlob, SessionGuard, State, price};
use crate::message::Role;
use crate::policy::{Settings, Trigger};
use crate::session::append::{AppendInput, append};
use crate::session::portable::{self, Portable, Resumed, WrittenState};
use crate::session::sendable;
use crate::step::{Io, Machine};
use serde::Serialize;
use std::rc::Rc;

/// What a compaction with a state led to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Carried {
    /// What to send.
    pub items: Vec<OutItem>,
    /// What was done. It changed something when the state is another one.
    pub result: CompactionResult,
    /// The state, JSON text; nothing where there is nothing to keep, or nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// The app's own name for a conversation that is not stored.
const CARRIED: &str = "carried";

impl Session {
    /// Compacts a history when that is due, as a `prepare` does, from where `state` left off; by option `state.when`
    /// always.
    ///
    /// Errors: [`Code::StoreCorrupt`] and [`Code::SchemaTooNew`] for a state that cannot be read.
    pub fn compact_carried(
        mut settings: Rc<Settings>,
        bodies: Vec<Rc<str>>,
        state: Option<String>,
    ) -> Machine<Carried> {
        // Only a session keeps whole what is told as a difference.
        Rc::make_mut(&mut settings).rereads = false;
        Machine::new(move |io| async move {
            let before = state.as_deref().map(Portable::parse).transpose()?;
            let history = CarriedHistory::of(&io, &settings, &bodies, before.as_ref(), None).await?;
            let guard = history.session.slot.take()?;
            let resumed = history.resume(&io, &guard, before.as_ref()).await?;
            let told = reason(&history, before.as_ref(), resumed.as_ref());
            let is_whole = before.is_none() || resumed.as_ref().is_some_and(|resumed| resumed.is_whole);
            if let (Some(before), Some(resumed)) = (&before, resumed) {
                history.adopt(&guard, before, resumed)?;
            }
            for (index, body) in bodies.iter().enumerate() {
                Rc::make_mut(&mut guard.state_mut().unlogged).insert(index, Rc::clone(body));
            }
            guard.state_mut().hand_out();
            guard.state_mut().unseen_from = None;
            let known = CarriedFacts::of(&guard.state());

            let trigger = if settings.carries_now { Trigger::Manual } else { Trigger::Auto };
            let (mut result, items) = act(&io, &guard, trigger).await?;
            let after = CarriedFacts::of(&guard.state());
            result.changed |= after != known || !is_whole;
            let mut reasons: Vec<String> = told.into_iter().chain(result.reason.take()).collect();
            let mut state = None;
            if result.changed && after.is_worth_keeping() {
                let WrittenState { text, is_shortened } =
                    history.write(&guard)?.within(settings.carried_bytes)?;
                if is_shortened {
                    reasons.push(shortened(text.is_some(), settings.carried_bytes));
                }
                state = text;
            }
            result.reason = (!reasons.is_empty()).then(|| reasons.join("; "));
            Ok(Carried { items, result, state })
        })
    }

    /// A session over `bodies` in a store of its own, in which what `state` refers to can be read: for the recall tools of
    /// an app that keeps its messages itself.
    ///
    /// Errors: as [`Session::compact_carried`].
    pub fn recall_carried(
        settings: Rc<Settings>,
        bodies: Vec<Rc<str>>,
        state: Option<String>,
        max_batch_ops: usize,
    ) -> Machine<Session> {
        Machine::new(move |io| async move {
            let before = state.as_deref().map(Portable::parse).transpose()?;
            let history =
                CarriedHistory::of(&io, &settings, &bodies, before.as_ref(), Some(max_batch_ops)).await?;
            let Some(before) = before.filter(|before| before.format == history.format) else {
                return Ok(history.session);
            };
            let guard = history.session.slot.take()?;
            let resumed = history.resume(&io, &guard, Some(&before)).await?;
            // What the context no longer refers to is found by its hash, wherever its message stands by now.
            let sid = guard.state().sid.clone();
            for (index, cutout) in before.cutouts() {
                let Some((offload, text)) = before.find(index, cutout, &history.items)? else { continue };
                let blob = NewBlob::new(index, offload, &text, None);
                let puts = blob.rows_of(&sid)?.collect();
                let (expect, deletes, durability) = (Vec::new(), Vec::new(), Durability::Relaxed);
                commit_again(&io, Batch { expect, puts, deletes, durability }).await?;
            }
            if let Some(resumed) = resumed {
                let insert = history.context(resumed);
                let change = {
                    let state = guard.state();
                    let splice = Splice { at: 0, remove: state.context.len(), insert };
                    ContextChange::new(vec![splice], Cause::of(&state.view(), "state", state.tokens()))
                };
                guard.change(&io, change).await?;
            }
            drop(guard);
            Ok(history.session)
        })
    }
}

/// The app's messages, and what tells them from others.
struct CarriedHistory {
    session: Session,
    format: crate::wire::Format,
    /// As they were given, measured.
    items: Vec<Item>,
    /// The hashes of their beginnings.
    links: Vec<portable::Link>,
}

impl CarriedHistory {
    /// A session of the messages alone; in a store, where it is said how much that takes in one batch.
    async fn of(
        io: &Io,
        settings: &Rc<Settings>,
        bodies: &[Rc<str>],
        before: Option<&Portable>,
        max_batch_ops: Option<usize>,
    ) -> Result<CarriedHistory> {
        super::refuse_server(settings)?;
        let drawn = io.new_id().await?;
        let secret = before.map_or(drawn, |before| before.secret.clone());
        let now = io.now().await?;
        let mut state = State::new(CARRIED.into(), secret, Rc::clone(settings), now);
        state.durable = max_batch_ops.is_some();
        state.max_batch_ops = max_batch_ops.unwrap_or(state.max_batch_ops);
        let session = Session { slot: crate::log::guard::SessionCell::new(state) };
        let guard = session.slot.take()?;
        append(io, &guard, bodies, AppendInput::default()).await?;
        let (format, items) = (guard.format(), guard.context().items().to_vec());
        drop(guard);
        let links = portable::chain(format, bodies)?;
        Ok(CarriedHistory { session, format, items, links })
    }

    async fn resume(
        &self,
        io: &Io,
        guard: &SessionGuard,
        before: Option<&Portable>,
    ) -> Result<Option<Resumed>> {
        let settings = guard.settings();
        match before.filter(|before| before.format == self.format) {
            Some(before) => before.resume(io, &settings, &self.items, &self.links).await,
            None => Ok(None),
        }
    }

    /// The context with the messages behind what was resumed.
    fn context(&self, resumed: Resumed) -> Vec<Item> {
        let Resumed { mut items, messages, .. } = resumed;
        items.extend(self.items.get(messages..).unwrap_or_default().iter().cloned());
        items
    }

    /// Goes on from a state.
    fn adopt(&self, guard: &SessionGuard, before: &Portable, resumed: Resumed) -> Result<()> {
        let messages = resumed.messages;
        let answers = self.items.get(messages..).unwrap_or_default().iter();
        let answers = answers.filter(|item| item.size.role == Role::Assistant).count() as u64;
        let context = self.context(resumed);
        let mut state = guard.state_mut();
        state.context = Rc::new(Context::of(context, Vec::new()));
        state.failures = before.failures;
        state.row.generation = before.generation;
        state.row.compressions = before.compressions;
        // There was a call for every answer; the first one is counted.
        state.row.steps = before.steps.saturating_add(answers.saturating_sub(1));
        state.row.attempted_at = before.attempted_at;
        state.row.pending_step = messages < self.items.len();
        state.row.paid = before.paid;
        if !before.secrets.is_empty() {
            *state.secrets.borrow_mut() = before.secrets.clone();
        }
        let given = state.row.goal.as_ref().map(|goal| goal.id.clone());
        if let Some(goal) = before.goal.as_ref().filter(|goal| given.is_none_or(|id| id == goal.id)) {
            state.row.goal = Some(goal.clone());
        }
        Ok(())
    }

    fn write(&self, guard: &SessionGuard) -> Result<Portable> {
        let state = guard.state();
        let CarriedFacts { generation, compressions, attempted_at, failures, paid, goal, secrets } =
            CarriedFacts::of(&state);
        let mut portable = Portable {
            generation,
            compressions,
            steps: state.row.steps,
            attempted_at,
            failures,
            paid,
            goal,
            secrets,
            unnamed: !state.view().references.named,
            ..Portable::new(self.format, state.row.secret.clone())
        };
        portable.put(state.context.items(), &self.items, &self.links)?;
        Ok(portable)
    }
}

/// What a state holds beside the context: where none of it changed, the state of before says it all.
#[derive(PartialEq)]
struct CarriedFacts {
    generation: u64,
    compressions: u64,
    attempted_at: Option<u64>,
    failures: u32,
    paid: Paid,
    goal: Option<crate::checkpoint::Goal>,
    secrets: crate::redact::Secrets,
}

impl CarriedFacts {
    fn of(state: &State) -> Self {
        let row = &state.row;
        CarriedFacts {
            generation: row.generation,
            compressions: row.compressions,
            attempted_at: row.attempted_at,
            failures: state.failures,
            // Only where the prices decide is it of use.
            paid: if state.settings.price_rule.is_some() { row.paid } else { Paid::default() },
            goal: row.goal.clone().filter(|goal| state.settings.goal.as_ref() != Some(goal)),
            secrets: state.secrets.borrow().clone(),
        }
    }

    fn is_worth_keeping(&self) -> bool {
        self.generation > 0
            || self.attempted_at.is_some()
            || self.paid != Paid::default()
            || self.goal.is_some()
            || !self.secrets.is_empty()
    }
}

/// What a prepare does, told as a compaction tells it, and what is to be sent.
async fn act(io: &Io, guard: &SessionGuard, trigger: Trigger) -> Result<(CompactionResult, Vec<OutItem>)> {
    let front = fix(io, guard, Vec::new()).await?.front;
    let is_step = begin_step(&mut guard.state_mut());
    let priced = price::ask(io, guard, is_step).await?;
    let started = io.now().await?;
    let begun = CompactionResult::begin(&guard.view(), trigger);
    let run = Run::new(io, guard, ClimbPart::Whole, trigger);
    let (done, overflow) = match compaction::climb(&run).await {
        Ok(done) => (done, None),
        // What does not fit is told, with what was done about it.
        Err(error) if error.code == Code::ContextOverflow => (Climbed::default(), Some(error)),
        Err(error) => return Err(error),
    };
    compaction::reasoning::settle(io, guard, trigger).await?;
    let mut result = report(io, guard, begun, done, started).await?;
    let sending = match sendable::send(io, guard, 0, front).await {
        Err(error) if error.code == Code::ContextOverflow => return Ok(unsent(guard, result, error)),
        sending => sending?,
    };
    if let Some(now) = priced {
        guard.state_mut().pay(now, is_step);
    }
    result.applied_edits.extend(sending.mended);
    result.ledger = sendable::ledger(&guard.state()).into();
    if let Some(error) = overflow {
        result.fail(error);
    }
    Ok((result, sending.items))
}

fn unsent(
    guard: &SessionGuard,
    mut result: CompactionResult,
    error: Error,
) -> (CompactionResult, Vec<OutItem>) {
    result.fail(error);
    let Compacted { items, result } = Compacted { items: super::out(guard.context().items()), result };
    (result, items)
}

/// Why the state was not used, or not all of it.
fn reason(history: &CarriedHistory, before: Option<&Portable>, resumed: Option<&Resumed>) -> Option<String> {
    let before = before?;
    let what = match resumed {
        Some(resumed) if resumed.is_whole => return None,
        Some(resumed) => {
            format!("the history was edited: the state is used for its first {} messages", resumed.messages)
        }
        None if before.format != history.format => format!(
            "the state was dropped: it is of messages in {}, and these are in {}",
            before.format.as_str(),
            history.format.as_str()
        ),
        None => "the state was dropped: the history does not begin with any that it knows".into(),
    };
    Some(what)
}

fn shortened(fits: bool, most: usize) -> String {
    match fits {
        true => format!(
            "the state holds less than the context, to take no more than {most} bytes (state.maxBytes)"
        ),
        false => format!("there is no state: it would take more than {most} bytes (state.maxBytes)"),
    }
}
