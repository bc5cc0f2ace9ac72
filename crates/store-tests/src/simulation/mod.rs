//! Several tabs on one session under one of the presets, each effect of each operation in an order that a seed decides, with crashes, lost
//! answers, failing stores and summarisers of every temper. After every commit the store must hold its
//! invariants: what was acknowledged stays, once and in order; what is sent is a valid history that fits.

mod checks;
mod damage;
mod forks;
mod jobs;
mod script;
mod turns;

pub use damage::{Damage, simulate_damage, simulate_damage_without_watermark};

use crate::conversation::{self as say, Body};
use crate::host::{Host, Marks, failed, summary, thrown};
use crate::model::Model;
use crate::store::{MemoryStore, Store};
use context_compactor_core::checkpoint::Goal;
use context_compactor_core::context::{Fate, LedgerEntry, Offload, Origin, conserve};
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::policy::{PRESETS, Settings, Trigger};
use context_compactor_core::session::audit::{Audit, Auditor, audit, look};
use context_compactor_core::session::{Compacted, Forked, Later, Opened, Prepared, Session, Synced};
use context_compactor_core::step::{Effect, Event, Machine};
use context_compactor_core::wire::{self, Format};
use context_compactor_core::{Code, Error};
use fastrand::Rng;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// The app's name for the session.
const ID: &str = "the session";
/// What happens in one simulation, in scheduling choices.
const CHOICES: usize = 160;
/// A batch of so many operations takes all that a call appends.
const WHOLE: usize = 10_000;
/// One simulation of so many has large results: they take their time.
const LARGE_EVERY: u64 = 1_000;
/// In one simulation of so many the app erases messages. It appends only, then, and nobody forks: a fork has copies.
const ERASES_EVERY: u64 = 4;
/// More than a store takes as one value, and more than the engine writes in one batch.
const LARGE: [usize; 2] = [(1 << 20) + 1, (8 << 20) + 1];

/// The system prompt of every prepare.
const SYSTEM: &str = "You are a careful engineer.";

/// What a simulation did: figures that say how much a seed exercised.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Report {
    /// Batches that took place.
    pub commits: u32,
    /// Operations that ended well.
    pub done: u32,
    /// Operations that ended with an error.
    pub failed: u32,
    /// Tabs that died.
    pub crashes: u32,
    /// Views of the context.
    pub views: u64,
    /// Messages in the log.
    pub messages: usize,
    /// How often each rung changed a context, as calls that ended told it.
    pub rungs: BTreeMap<&'static str, usize>,
    /// Snapshots that were restored.
    pub restored: u32,
    /// Answers of a model that were kept in a job.
    pub kept: u32,
    /// Those that were used after whoever asked for them had stopped.
    pub resumed: u32,
    /// Sessions that began from another.
    pub forks: u32,
    /// Batches with parts of what was too large for one.
    pub staged: u32,
    /// Prompts that did not wait for a summary.
    pub beside: u32,
    /// Messages that calls erased.
    pub erased: u32,
}

/// Runs a simulation over an honest store.
///
/// Errors: what did not hold, and after which choice.
pub fn simulate(seed: u64) -> Result<Report, String> {
    simulate_on(seed, |store| store)
}

/// Runs a simulation over a store that `make` puts in front of the memory.
///
/// Errors: what did not hold, and after which choice.
pub fn simulate_on(seed: u64, make: impl Fn(Rc<MemoryStore>) -> Rc<dyn Store>) -> Result<Report, String> {
    let mut world = World::new(seed, make);
    if has_large(seed) {
        (world.is_large, world.max_batch_ops) = (true, WHOLE);
    }
    if seed % ERASES_EVERY == 1 {
        (world.erases, world.turns_back) = (true, false);
    }
    let mut at = 0;
    let run = |world: &mut World, at: &mut usize| {
        while *at < CHOICES {
            world.choose()?;
            *at += 1;
        }
        world.settle()
    };
    let ran = run(&mut world, &mut at);
    ran.map_err(|what| format!("seed {seed} ({}), choice {at}: {what}", world.settings.preset.name))?;
    Ok(world.report)
}

/// What a step asks for, and how the operation ended when it did.
type Stepped = (Vec<(u32, Effect)>, Option<Result<Outcome, Error>>);

/// An operation under way, whatever it returns.
trait Work {
    fn step(&mut self, answer: Option<(u32, Event)>) -> Stepped;
}

struct Mapped<T>(Machine<T>, fn(T) -> Outcome);

impl<T> Work for Mapped<T> {
    fn step(&mut self, answer: Option<(u32, Event)>) -> Stepped {
        let step = self.0.step(answer);
        (step.effects, step.done.map(|result| result.map(self.1)))
    }
}

enum Outcome {
    Opened(Session),
    Appended,
    Synced(Synced),
    Prepared(Box<Prepared>),
    PreparedBeside(Box<Option<Prepared>>),
    Later(Box<Later>),
    Compacted(Box<Compacted>),
    Read(String),
    Marked(Goal),
    Taken(String),
    Forked(Session),
    Restored,
    Rewound,
    Undone,
    Removed,
    Erased,
}

/// What a task was asked to do, for the check of what it did.
enum Asked {
    Open,
    Append { bodies: Vec<Body>, before: usize },
    Sync { history: Vec<Body> },
    Prepare,
    PrepareBeside,
    Later,
    Compact,
    Read { index: usize, offload: Offload },
    Mark { decision: String },
    Snapshot,
    Fork { id: String },
    Restore { id: String },
    Rewind,
    Undo,
    Remove,
    Erase { index: usize },
}

struct Task {
    work: Box<dyn Work>,
    asked: Asked,
    /// What it waits for: several things at once when results are compressed side by side.
    waits: Vec<(u32, Effect)>,
}

impl Task {
    /// It waits for models only.
    fn parks(&self) -> bool {
        self.waits.iter().all(|(_, effect)| effect.parks())
    }
}

/// A page of the app: a handle on the session and the calls on it that are under way.
struct Tab {
    host: Host,
    session: Option<Session>,
    tasks: Vec<Task>,
    /// A summary is due that a prepare put off.
    put_off: bool,
    /// A sync that failed and is to be made again.
    again: Option<Vec<Body>>,
}

/// What a snapshot is to bring back.
struct Taken {
    context: Vec<(Origin, String)>,
    decisions: Vec<String>,
}

struct World {
    rng: Rng,
    memory: Rc<MemoryStore>,
    settings: Rc<Settings>,
    /// The most that the store takes in one batch.
    max_batch_ops: usize,
    format: Format,
    tabs: Vec<Tab>,
    model: Model,
    /// What was decided, as far as it was acknowledged and no restore took it back.
    decisions: Vec<String>,
    /// The store after the last commit.
    stored: Audit,
    auditor: Auditor,
    /// Every fork that was ever begun.
    forks: Vec<String>,
    /// Some results are larger than a batch of a store.
    is_large: bool,
    /// Every snapshot that was ever taken.
    taken: HashMap<String, Taken>,
    /// The app takes snapshots and goes back to them. It hands over no whole histories then: which of the branches is
    /// meant would be a guess.
    turns_back: bool,
    /// The app erases messages.
    erases: bool,
    /// Makes every message another one.
    said: u32,
    /// Things may go wrong.
    faults: bool,
    report: Report,
}

/// Whether a seed has results that are larger than a batch.
fn has_large(seed: u64) -> bool {
    seed % LARGE_EVERY == LARGE_EVERY - 1
}

/// Messages that the app pins, when it pins any.
fn is_pinned(index: usize) -> bool {
    index % 23 == 5
}

impl World {
    fn new(seed: u64, make: impl Fn(Rc<MemoryStore>) -> Rc<dyn Store>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let memory = Rc::new(MemoryStore::default());
        let store = make(Rc::clone(&memory));
        let options = script::options(&mut rng, has_large(seed)).to_string();
        let options = serde_json::from_str(&options).expect("options are JSON");
        // The model has one history: what another tab appended meanwhile is refused.
        let settings = Settings::read(&options).expect("options are valid");
        let settings = Rc::new(Settings { refuses_diverged: true, ..settings });
        let format = say::PLAIN[rng.usize(..say::PLAIN.len())];
        let max_batch_ops = [6, WHOLE][rng.usize(..2)];
        let marks = Marks::default();
        let tabs = (0..rng.usize(1..4)).map(|nth| {
            let mut host = Host::new(Rc::clone(&store), &format!("{seed}-{nth}"));
            host.marks = Rc::clone(&marks);
            host.pinned = Box::new(is_pinned);
            Tab { host, session: None, tasks: Vec::new(), put_off: false, again: None }
        });
        let tabs = tabs.collect();
        let (model, decisions) = (Model::default(), Vec::new());
        let (stored, report) = (Audit::default(), Report::default());
        let (taken, turns_back) = (HashMap::new(), rng.u8(..3) == 0);
        World {
            rng,
            memory,
            settings,
            max_batch_ops,
            format,
            tabs,
            model,
            decisions,
            stored,
            auditor: Auditor::default(),
            forks: Vec::new(),
            is_large: false,
            taken,
            turns_back,
            erases: false,
            said: 0,
            faults: true,
            report,
        }
    }

    /// One thing happens.
    fn choose(&mut self) -> Result<(), String> {
        let tab = self.rng.usize(..self.tabs.len());
        if self.faults && self.rng.u8(..100) == 0 {
            self.crash(tab);
            return Ok(());
        }
        let parked = self.tabs[tab].tasks.iter().all(Task::parks);
        let may_begin = self.tabs[tab].tasks.len() < 2 && parked;
        if self.tabs[tab].tasks.is_empty() || (may_begin && self.rng.bool()) {
            self.begin(tab)
        } else {
            // What waits for a model goes on only when no other call is under way, as a host's queue has it.
            let last = self.tabs[tab].tasks.len() - 1;
            self.go_on(tab, last)
        }
    }

    fn crash(&mut self, tab: usize) {
        let tab = &mut self.tabs[tab];
        (tab.session, tab.again, tab.put_off) = (None, None, false);
        tab.tasks.clear();
        self.report.crashes += 1;
    }

    /// Begins a call on a tab.
    fn begin(&mut self, tab: usize) -> Result<(), String> {
        let beside = !self.tabs[tab].tasks.is_empty();
        let Some(session) = self.tabs[tab].session.clone() else {
            let machine = Session::open(Rc::clone(&self.settings), Some(ID.into()), self.max_batch_ops);
            let opened = |(session, _): (Session, Opened)| Outcome::Opened(session);
            return self.start(tab, Asked::Open, Box::new(Mapped(machine, opened)));
        };
        if let Some(history) = self.tabs[tab].again.take() {
            return self.sync(tab, &session, history);
        }
        if !beside && std::mem::take(&mut self.tabs[tab].put_off) {
            let machine = Mapped(session.summarise_later(), |later| Outcome::Later(Box::new(later)));
            return self.start(tab, Asked::Later, Box::new(machine));
        }
        if self.settings.goal.is_some() && self.rng.u8(..10) == 0 {
            return self.mark(tab, &session);
        }
        if self.erases && !beside && self.rng.u8(..12) == 0 {
            return self.erase(tab, &session);
        }
        let chosen = self.rng.u8(..20);
        // Neither a whole history, which would have what was erased, nor a fork.
        let chosen = if self.erases && (8..12).contains(&chosen) { 0 } else { chosen };
        match chosen {
            0..8 => {
                let bodies = self.talk();
                self.append(tab, &session, bodies)
            }
            8..11 if self.turns_back => self.turn_back(tab, &session),
            8..11 => {
                let new = self.talk();
                let history: Vec<Body> = self.model.log().iter().cloned().chain(new).collect();
                self.sync(tab, &session, history)
            }
            11 if self.rng.u8(..4) == 0 => self.fork(tab, &session),
            11..13 => self.read(tab, &session),
            13..18 if !beside => self.prepare(tab, &session),
            13..18 if matches!(self.tabs[tab].tasks[0].asked, Asked::Later) => {
                let prepared = |prepared| Outcome::PreparedBeside(Box::new(prepared));
                let machine = Mapped(session.prepare_beside(vec![SYSTEM.into()], 0), prepared);
                self.start(tab, Asked::PrepareBeside, Box::new(machine))
            }
            18.. if !beside => {
                let machine =
                    Mapped(session.compact(None), |compacted| Outcome::Compacted(Box::new(compacted)));
                self.start(tab, Asked::Compact, Box::new(machine))
            }
            _ => Ok(()),
        }
    }

    fn append(&mut self, tab: usize, session: &Session, bodies: Vec<Body>) -> Result<(), String> {
        let machine = Mapped(session.append(bodies.clone()), |_| Outcome::Appended);
        let before = self.model.begins(&bodies);
        self.start(tab, Asked::Append { bodies, before }, Box::new(machine))
    }

    /// Erases a message, if there is one that can be known again.
    fn erase(&mut self, tab: usize, session: &Session) -> Result<(), String> {
        let log = self.model.log();
        let known: Vec<usize> = (0..log.len()).filter(|at| crate::model::own(&log[*at]).is_some()).collect();
        let Some(index) = self.rng.choice(known) else { return Ok(()) };
        self.model.dooms(index);
        let machine = Mapped(session.erase(index, "asked to".into()), |()| Outcome::Erased);
        self.start(tab, Asked::Erase { index }, Box::new(machine))
    }

    fn sync(&mut self, tab: usize, session: &Session, history: Vec<Body>) -> Result<(), String> {
        self.model.begins(&history);
        let machine = Mapped(session.sync(0, history.clone()), Outcome::Synced);
        self.start(tab, Asked::Sync { history }, Box::new(machine))
    }

    fn prepare(&mut self, tab: usize, session: &Session) -> Result<(), String> {
        let trigger = if self.rng.u8(..6) == 0 { Trigger::Overflow } else { Trigger::Auto };
        let prepared = |prepared| Outcome::Prepared(Box::new(prepared));
        let machine = Mapped(session.prepare(trigger, vec![SYSTEM.into()]), prepared);
        self.start(tab, Asked::Prepare, Box::new(machine))
    }

    /// Reads some offload that the tab knows, in use or retired.
    fn read(&mut self, tab: usize, session: &Session) -> Result<(), String> {
        let seen = look(session).map_err(checks::text)?;
        let mut known = Vec::new();
        for item in seen.context.items() {
            match &item.origin {
                Origin::Edited { place, offloads, .. } => {
                    known.extend(offloads.iter().map(|offload| (place.index, offload.clone())));
                }
                Origin::Summary { covers, .. } => {
                    known.extend(covers.iter().flat_map(|cover| cover.offloads.clone()));
                }
                _ => {}
            }
        }
        let Some((index, offload)) = self.rng.choice(known) else { return Ok(()) };
        let machine = Mapped(session.read(offload.reference.clone(), 0, None), Outcome::Read);
        self.start(tab, Asked::Read { index, offload }, Box::new(machine))
    }

    /// The model decides something.
    fn mark(&mut self, tab: usize, session: &Session) -> Result<(), String> {
        self.said += 1;
        let decision = format!("choice {}", self.said);
        let machine = session.apply_markers(format!("[DECISION] {decision}"));
        self.start(tab, Asked::Mark { decision }, Box::new(Mapped(machine, Outcome::Marked)))
    }

    fn start(&mut self, tab: usize, asked: Asked, mut work: Box<dyn Work>) -> Result<(), String> {
        let (effects, done) = work.step(None);
        let waits = self.tabs[tab].host.hear(effects);
        match done {
            Some(result) => self.ended(tab, asked, result),
            None if waits.is_empty() => Err("an operation waits for nothing".into()),
            None => {
                self.tabs[tab].tasks.push(Task { work, asked, waits });
                Ok(())
            }
        }
    }

    /// Performs one of the things that a task waits for, well or badly.
    fn go_on(&mut self, tab: usize, task: usize) -> Result<(), String> {
        let waits = self.tabs[tab].tasks[task].waits.len();
        let nth = self.rng.usize(..waits);
        let (_, effect) = self.tabs[tab].tasks[task].waits[nth].clone();
        let Some(event) = self.perform(tab, &effect)? else { return Ok(()) };
        self.answer(tab, task, nth, event)
    }

    /// Answers the nth thing that a task waits for.
    fn answer(&mut self, tab: usize, task: usize, nth: usize, event: Event) -> Result<(), String> {
        let host = &mut self.tabs[tab];
        let (id, _) = host.tasks[task].waits.remove(nth);
        let (effects, done) = host.tasks[task].work.step(Some((id, event)));
        self.report.resumed += jobs::resumed(&effects);
        let more = host.host.hear(effects);
        let waits = &mut host.tasks[task].waits;
        waits.extend(more);
        match done {
            Some(result) => {
                let asked = host.tasks.remove(task).asked;
                self.ended(tab, asked, result)
            }
            None if waits.is_empty() => Err("an operation waits for nothing".into()),
            None => Ok(()),
        }
    }

    /// `None` when the tab died over it.
    fn perform(&mut self, tab: usize, effect: &Effect) -> Result<Option<Event>, String> {
        let bad = self.faults && self.rng.u8(..12) == 0;
        let how = self.rng.u8(..6);
        if let Effect::Summarize { .. } = effect {
            return Ok(Some(self.summarise(bad)));
        }
        let is_commit = matches!(effect, Effect::Commit(_));
        let fails = match effect {
            Effect::Now | Effect::NewId | Effect::Pin { .. } | Effect::ReadWatermark(_) => None,
            _ if !bad => None,
            Effect::Sleep(_) | Effect::Pause(_) => Some(Code::Aborted),
            Effect::Load(_) => Some(Code::StageUnavailable),
            _ if is_commit && how == 0 => Some(Code::QuotaExceeded),
            _ if how <= 1 => Some(Code::StoreUnavailable),
            _ if !is_commit && how == 2 => Some(Code::Aborted),
            _ => None,
        };
        if let Some(code) = fails {
            return Ok(Some(failed(code)));
        }
        let dies = bad && how >= 4 && self.rng.bool();
        // Lost on the way to the store, or dead before it.
        if bad && is_commit && how == 3 && self.rng.bool() {
            return Ok(Some(failed(Code::Indeterminate)));
        }
        if dies && how == 4 {
            self.crash(tab);
            return Ok(None);
        }
        let event = self.tabs[tab].host.perform(effect);
        if let Effect::Commit(batch) = effect {
            self.report.staged += forks::is_staged(batch);
            self.committed()?;
        }
        if dies {
            self.crash(tab);
            return Ok(None);
        }
        // Lost on the way back.
        let lost = bad && is_commit && how == 3;
        Ok(Some(if lost { failed(Code::Indeterminate) } else { event }))
    }

    fn summarise(&mut self, bad: bool) -> Event {
        let answer = self.rng.u8(..6);
        self.said += 1;
        let good = format!(
            "## Current Status\nSummary {} of what the user asked and the tools answered.",
            self.said
        );
        match answer {
            _ if !self.faults => summary(&good),
            0 => thrown("503 overloaded", Some(503)),
            1 if bad => failed(Code::Aborted),
            2 => failed(Code::Timeout),
            3 if bad => summary(""),
            4 if bad => {
                summary(&"a summary that is longer than all that was ever said before it ".repeat(400))
            }
            _ => summary(&good),
        }
    }
}
