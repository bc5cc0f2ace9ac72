//! A fault at every effect and at every call of the store, for every operation of a session: the process dies before it or
//! after it, it fails with each code that there is, another tab comes between. Then the rows are audited, the session is
//! opened again and goes on.

mod fuse;
mod script;

pub use fuse::{Dies, Fuse};
pub use script::{STEPS, Step};

use crate::conversation::Body;
use crate::counts::Counts;
use crate::host::{Host, How, summary};
use crate::store::{MemoryStore, Store};
use context_compactor_core::policy::Settings;
use context_compactor_core::session::Session;
use context_compactor_core::session::audit::{Audit, audit, look};
use context_compactor_core::step::Effect;
use context_compactor_core::{Code, Error};
use script::{BESIDE, FORKED, ID, IMPORTED, Script};
use std::cell::RefCell;
use std::convert::identity;
use std::rc::Rc;

/// Puts a protocol of its own in front of a store: `identity` for the honest one.
pub type Protocol<'p> = &'p dyn Fn(Rc<dyn Store>) -> Rc<dyn Store>;

/// What an effect is, as far as it decides how it can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A commit.
    Write,
    /// A read or a scan.
    Read,
    /// A summary, a request, a wait.
    Parked,
    /// A part of the engine.
    Loaded,
    /// The clock, an id, a hook of the app.
    Asked,
}

impl Kind {
    fn of(effect: &Effect) -> Self {
        match effect {
            Effect::Commit(_) => Kind::Write,
            Effect::Read(_) | Effect::Scan(_) => Kind::Read,
            Effect::Summarize { .. }
            | Effect::Fetch { .. }
            | Effect::Embed(_)
            | Effect::Sleep(_)
            | Effect::Pause(_) => Kind::Parked,
            Effect::Load(_) => Kind::Loaded,
            _ => Kind::Asked,
        }
    }

    /// Every way in which it can go wrong.
    fn faults(self) -> Vec<How> {
        let codes: &[Code] = match self {
            Kind::Write => &[
                Code::Conflict,
                Code::QuotaExceeded,
                Code::TooLarge,
                Code::UnsupportedValue,
                Code::InvalidOption,
                Code::StoreUnavailable,
                Code::StoreCorrupt,
                Code::SchemaTooNew,
                Code::Closed,
                // Not written; `Lost` is the same, written.
                Code::Indeterminate,
            ],
            Kind::Read => &[Code::StoreUnavailable, Code::StoreCorrupt, Code::SchemaTooNew, Code::Closed],
            Kind::Parked => &[Code::Aborted, Code::Timeout, Code::SummaryFailed],
            Kind::Loaded => &[Code::StageUnavailable],
            Kind::Asked => &[],
        };
        let mut faults = vec![How::CrashBefore, How::CrashAfter];
        faults.extend(codes.iter().map(|code| How::Fail(*code)));
        if self == Kind::Write {
            faults.push(How::Lost);
        }
        faults
    }
}

/// What the store says, as an app sees it: of the session, of its fork, and of the one that is imported.
#[derive(Debug, Clone, PartialEq)]
struct State(Vec<(Vec<String>, Vec<String>, usize)>);

impl State {
    fn of(memory: &MemoryStore) -> Result<Self, String> {
        let rows = memory.rows();
        let one = |id: &&str| {
            let Audit { messages, context, snapshots, .. } =
                audit(id, &rows).map_err(|error| text(&error))?;
            Ok((messages, context.into_iter().map(|(_, body)| body).collect(), snapshots.len()))
        };
        Ok(State([ID, FORKED, IMPORTED].iter().map(one).collect::<Result<_, String>>()?))
    }

    /// The log of the session.
    fn log(&self) -> &[String] {
        self.0.first().map_or(&[], |(messages, ..)| messages)
    }
}

/// A step without a fault: what each effect of it is, and the states that the store goes through.
struct Clean {
    kinds: Vec<Kind>,
    states: Vec<State>,
    commits: usize,
    calls: usize,
}

/// The process that a fault happens to, and the rows that outlive it.
struct World {
    memory: Rc<MemoryStore>,
    fuse: Rc<Fuse>,
    host: Host,
    session: Option<Session>,
}

/// What a fault led to.
enum Ended {
    /// The process died.
    Died,
    /// The call did what it was asked.
    Done,
    /// The call says that it changed nothing.
    Kept,
    /// It threw.
    Threw(Error),
}

/// Runs every step of the script under these settings with every fault, over `protocol`. `max_batch_ops` is the most that
/// the store takes in one batch.
///
/// Errors: the first thing that does not hold, with the step, the fault and the check that found it.
pub fn run(settings: &Rc<Settings>, max_batch_ops: usize, protocol: Protocol<'_>) -> Result<Counts, String> {
    let mut suite = Suite {
        script: Script::new(Rc::clone(settings), max_batch_ops),
        protocol,
        base: MemoryStore::default(),
        counts: Counts::default(),
    };
    for step in STEPS {
        let base = suite.honest(*step)?;
        suite.every_fault(*step).map_err(|what| format!("{step:?}, {what}"))?;
        suite.base = base;
    }
    Ok(suite.counts)
}

struct Suite<'p> {
    script: Script,
    protocol: Protocol<'p>,
    /// The rows before the step.
    base: MemoryStore,
    counts: Counts,
}

impl Suite<'_> {
    /// A process over a copy of the rows; the session is open, unless the step is to open it.
    fn world(
        &self,
        step: Step,
        dies: Option<(usize, Dies)>,
        protocol: Protocol<'_>,
    ) -> Result<World, String> {
        let memory = Rc::new(self.base.clone());
        let fuse = Rc::new(Fuse::new(Rc::clone(&memory)));
        let mut host = Host::new(protocol(Rc::clone(&fuse) as _), &format!("{step:?}"));
        host.summarise = Box::new(|_, attempt| summary(&script::summary_of(attempt)));
        let session = match step {
            Step::Open => None,
            _ => Some(
                self.script.open(&mut host, ID).ok_or("died at the start")?.map_err(|error| text(&error))?,
            ),
        };
        fuse.dies(dies);
        Ok(World { memory, fuse, host, session })
    }

    /// The rows after the step without any fault, over an honest store.
    fn honest(&self, step: Step) -> Result<MemoryStore, String> {
        let mut world = self.world(step, None, &identity)?;
        match self.perform(&mut world, step) {
            // Not every preset has something to do in every step.
            Ended::Done | Ended::Kept => Ok((*world.memory).clone()),
            Ended::Threw(error) => Err(format!("{step:?} fails without a fault: {}", text(&error))),
            Ended::Died => Err(format!("{step:?} dies without a fault")),
        }
    }

    fn perform(&self, world: &mut World, step: Step) -> Ended {
        let ended = self.script.perform(&mut world.host, &mut world.session, step);
        match ended {
            // Whatever it was told after that, nobody hears it.
            _ if world.fuse.is_blown() => Ended::Died,
            None => Ended::Died,
            Some(Ok(true)) => Ended::Done,
            Some(Ok(false)) => Ended::Kept,
            Some(Err(error)) => Ended::Threw(error),
        }
    }

    fn clean(&self, step: Step) -> Result<Clean, String> {
        let mut world = self.world(step, None, &identity)?;
        let seen = Rc::new(RefCell::new((Vec::new(), Vec::new())));
        let (note, memory) = (Rc::clone(&seen), Rc::clone(&world.memory));
        let look = move |effect: &Effect| {
            let mut seen = note.borrow_mut();
            seen.0.push(Kind::of(effect));
            seen.1.push(State::of(&memory));
            false
        };
        world.host.fault(1, look, How::CrashBefore);
        if !matches!(self.perform(&mut world, step), Ended::Done | Ended::Kept) {
            return Err("it does not do the same twice".into());
        }
        let (commits, calls) = (world.host.seen.commits.len(), world.fuse.calls());
        drop(world.host);
        let (kinds, before) = seen.take();
        let mut states = before.into_iter().collect::<Result<Vec<_>, _>>()?;
        states.push(State::of(&world.memory)?);
        states.dedup();
        Ok(Clean { kinds, states, commits, calls })
    }

    fn every_fault(&mut self, step: Step) -> Result<(), String> {
        let clean = self.clean(step)?;
        self.counts.add("operations that write", usize::from(clean.commits > 0));
        for (at, kind) in clean.kinds.iter().enumerate() {
            for how in kind.faults() {
                let when = format!("{how:?} at effect {} ({kind:?})", at + 1);
                self.counts.add(
                    if matches!(how, How::CrashBefore | How::CrashAfter) {
                        "crashes"
                    } else {
                        "failures injected"
                    },
                    1,
                );
                self.faulty(step, &clean, at, how).map_err(|what| format!("{when}: {what}"))?;
            }
            // Hooks of the app hold the session: another tab does not know of them.
            for beside in if *kind == Kind::Asked { &[][..] } else { BESIDE } {
                self.counts.add("other tabs between", 1);
                let when = format!("{beside:?} by another tab before effect {} ({kind:?})", at + 1);
                self.overtaken(step, at, *beside).map_err(|what| format!("{when}: {what}"))?;
            }
        }
        // A protocol of several commits has more calls than an honest one.
        let mut at = 0;
        loop {
            for dies in [Dies::Before, Dies::After] {
                let when = format!("the process dies {dies:?} call {} of the store", at + 1);
                self.counts.add("crashes", 1);
                let died = self.dying(step, &clean, at, dies).map_err(|what| format!("{when}: {what}"))?;
                if !died {
                    return if at >= clean.calls { Ok(()) } else { Err(format!("{when}: it did not")) };
                }
            }
            at += 1;
        }
    }

    /// A fault of an effect.
    fn faulty(&self, step: Step, clean: &Clean, at: usize, how: How) -> Result<(), String> {
        let mut world = self.world(step, None, self.protocol)?;
        world.host.fault(at + 1, |_| true, how);
        let ended = self.perform(&mut world, step);
        let crashes = matches!(how, How::CrashBefore | How::CrashAfter);
        if crashes != matches!(ended, Ended::Died) {
            return Err("the fault did not take place".into());
        }
        let state = self.holds(&world, clean, &ended)?;
        self.opens_again(&world, step, clean, &ended)?;
        if crashes { Ok(()) } else { self.goes_on(&mut world, step, &state) }
    }

    /// The process dies at a call of the store; `false` when it had ended before that, and dies then.
    fn dying(&self, step: Step, clean: &Clean, at: usize, dies: Dies) -> Result<bool, String> {
        let mut world = self.world(step, Some((at, dies)), self.protocol)?;
        let ended = self.perform(&mut world, step);
        let died = matches!(ended, Ended::Died);
        self.holds(&world, clean, &ended)?;
        self.opens_again(&world, step, clean, &ended)?;
        Ok(died)
    }

    /// Another tab acts before an effect.
    fn overtaken(&self, step: Step, at: usize, beside: Step) -> Result<(), String> {
        let mut world = self.world(step, None, self.protocol)?;
        let mut other = Host::new((self.protocol)(Rc::clone(&world.fuse) as _), "other");
        other.summarise = Box::new(|_, _| summary(&script::summary_of(99)));
        let other = RefCell::new((other, 0));
        let (script, done) = (self.script.clone(), Rc::new(RefCell::new(None)));
        let note = Rc::clone(&done);
        let acts = move |_: &Effect| {
            let (other, effects) = &mut *other.borrow_mut();
            *effects += 1;
            if *effects == at + 1 {
                note.replace(Some(script.beside(other, beside)));
            }
            false
        };
        world.host.fault(1, acts, How::CrashBefore);
        let ended = self.perform(&mut world, step);
        let state = State::of(&world.memory)?;
        let others = done.take().ok_or("the other tab did not act")?;
        if step == Step::Delete || matches!(&ended, Ended::Threw(error) if error.code == Code::Closed) {
            return Ok(());
        }
        if let (Step::Append, Ok(())) = (beside, &others)
            && script::aside()
                .iter()
                .any(|body| state.log().iter().filter(|known| **known == **body).count() != 1)
        {
            return Err("what the other tab appended is not there once".into());
        }
        if let Err(error) = others {
            // Only who comes second may be refused.
            return Err(format!("the other tab was refused: {}", text(&error)));
        }
        let is_there = |body: &Body| state.log().iter().any(|known| **known == **body);
        match ended {
            Ended::Died => Err("it died".into()),
            Ended::Threw(error) if !matches!(error.code, Code::Conflict | Code::InvalidOption) => {
                Err(text(&error))
            }
            Ended::Done if !script::said(step).iter().all(is_there) => {
                Err("what was acknowledged is not there".into())
            }
            _ => self.goes_on(&mut world, step, &state),
        }
    }

    /// The rows hold every invariant and are one of the states of the step without a fault, as the call said.
    fn holds(&self, world: &World, clean: &Clean, ended: &Ended) -> Result<State, String> {
        let state = State::of(&world.memory)?;
        let [first, .., last] = clean.states.as_slice() else {
            return Ok(state);
        };
        let known = clean.states.contains(&state);
        let commits = world.host.seen.commits.len();
        match ended {
            Ended::Done if state.log() != last.log() => {
                Err("acknowledged, and the log is not what it says".into())
            }
            Ended::Died if !known => Err("neither the old state nor the new one".into()),
            Ended::Threw(error) if error.code != Code::Indeterminate && commits == 0 && state != *first => {
                Err(format!("refused ({}), and something was written", text(error)))
            }
            Ended::Threw(_) | Ended::Kept if !clean.states.iter().any(|clean| clean.log() == state.log()) => {
                Err("the log is neither the old one nor the new one".into())
            }
            _ => Ok(state),
        }
    }

    /// The same handle goes on, where there still is one.
    fn goes_on(&self, world: &mut World, step: Step, state: &State) -> Result<(), String> {
        let Some(session) = world.session.clone().filter(|_| step != Step::Delete && !world.fuse.is_blown())
        else {
            return Ok(());
        };
        let said = script::later();
        match world.host.try_run(session.append(said.clone())) {
            None => return Ok(()),
            Some(Err(error)) => return Err(format!("the session does not go on: {}", text(&error))),
            Some(Ok(_)) => {}
        }
        let now = State::of(&world.memory)?;
        let wanted: Vec<&str> =
            state.log().iter().map(String::as_str).chain(said.iter().map(|body| &**body)).collect();
        if now.log().iter().map(String::as_str).ne(wanted) {
            return Err("what was appended after the fault does not stand behind what there was".into());
        }
        Ok(())
    }

    /// Another process opens what is left: it sees what is stored, every reference resolves, and it does the step.
    fn opens_again(&self, world: &World, step: Step, clean: &Clean, ended: &Ended) -> Result<(), String> {
        // A copy: the process that the fault did not end goes on from the same rows.
        let memory = Rc::new((*world.memory).clone());
        let stored = audit(ID, &memory.rows()).map_err(|error| text(&error))?;
        let mut host = Host::new((self.protocol)(Rc::clone(&memory) as _), "again");
        host.summarise = Box::new(|_, attempt| summary(&script::summary_of(attempt)));
        let mut run = || -> Result<(), Error> {
            let (session, _) = self.script.opened(&mut host, ID)?;
            let seen = look(&session)?;
            let held = seen.context.items().iter().map(|item| &*item.body);
            if held.ne(stored.context.iter().map(|(_, body)| body.as_str())) {
                return Err(Error::new(Code::StoreCorrupt, "opened again it is not what is stored"));
            }
            if step == Step::Goal && matches!(ended, Ended::Done) && session.goal()?.is_none() {
                return Err(Error::new(Code::DataLoss, "the goal was acknowledged and is not there"));
            }
            for reference in session.explain()?.into_iter().filter_map(|entry| entry.reference) {
                host.run(session.read(reference, 0, None))?;
            }
            let mut session = Some(session);
            self.script.again(&mut host, &mut session, step)
        };
        run().map_err(|error| format!("opened again: {}", text(&error)))?;
        let (now, Some(last)) = (State::of(&memory)?, clean.states.last()) else {
            return Ok(());
        };
        match step {
            // Handed over once more, nothing is there twice.
            Step::Append | Step::Talk | Step::Sync if !now.log().starts_with(last.log()) => {
                Err("repeated, it is not the same".into())
            }
            Step::Fork | Step::Import if now.0.get(1..) != last.0.get(1..) => {
                Err("repeated, the new session is not what it should be".into())
            }
            Step::Delete if !now.log().is_empty() => Err("deleted again, it is still there".into()),
            _ => Ok(()),
        }
    }
}

fn text(error: &Error) -> String {
    format!("{}: {error}", error.code.as_str())
}
