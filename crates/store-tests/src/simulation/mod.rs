//! Several tabs on one session, each effect of each operation in an order that a seed decides, with crashes, lost
//! answers, failing stores and summarisers of every temper. After every commit the store must hold the invariants of
//! `storage.md` §5.1; what was acknowledged stays, once and in order; what is sent is a valid history that fits.

mod checks;
mod turns;

use crate::conversation::{self as say, Body};
use crate::host::{Host, failed, summary, thrown};
use crate::model::Model;
use crate::store::{MemoryStore, Store};
use context_compactor_core::plan::{Settings, Trigger};
use context_compactor_core::session::audit::{Audit, audit, look};
use context_compactor_core::session::{
    Compacted, Opened, Origin, Prepared, Session, SnapshotPurpose, Synced, conserve,
};
use context_compactor_core::step::{Effect, Event, Machine};
use context_compactor_core::wire::{self, Format};
use context_compactor_core::{Code, Error};
use fastrand::Rng;
use std::collections::HashMap;
use std::rc::Rc;

/// The app's name for the session.
const ID: &str = "the session";
/// What happens in one simulation, in scheduling choices.
const CHOICES: usize = 160;

/// What a simulation did: figures that say how much a seed exercised.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
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
    /// Snapshots that were restored.
    pub restored: u32,
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
    let mut at = 0;
    let run = |world: &mut World, at: &mut usize| {
        while *at < CHOICES {
            world.choose()?;
            *at += 1;
        }
        world.settle()
    };
    run(&mut world, &mut at).map_err(|what| format!("seed {seed}, choice {at}: {what}"))?;
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
    Prepared(Prepared),
    Compacted(Compacted),
    Read(String),
    Taken(String),
    Restored,
    Removed,
}

/// What a task was asked to do, for the check of what it did.
enum Asked {
    Open,
    Append { bodies: Vec<Body>, before: usize },
    Sync { history: Vec<Body> },
    Prepare,
    Compact,
    Read { index: usize, nth: usize },
    Snapshot,
    Restore { id: String },
    Remove,
}

struct Task {
    work: Box<dyn Work>,
    asked: Asked,
    /// What it waits for.
    waits: (u32, Effect),
}

/// A page of the app: a handle on the session and the calls on it that are under way.
struct Tab {
    host: Host,
    session: Option<Session>,
    tasks: Vec<Task>,
    /// A sync that failed and is to be made again.
    again: Option<Vec<Body>>,
}

struct World {
    rng: Rng,
    memory: Rc<MemoryStore>,
    settings: Rc<Settings>,
    format: Format,
    tabs: Vec<Tab>,
    model: Model,
    /// The store after the last commit.
    stored: Audit,
    /// The context of every snapshot that was ever taken.
    taken: HashMap<String, Vec<(Origin, String)>>,
    /// The app takes snapshots and goes back to them. It hands over no whole histories then: which of the branches is
    /// meant would be a guess.
    turns_back: bool,
    /// Makes every message another one.
    said: u32,
    /// Things may go wrong.
    faults: bool,
    report: Report,
}

impl World {
    fn new(seed: u64, make: impl Fn(Rc<MemoryStore>) -> Rc<dyn Store>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let memory = Rc::new(MemoryStore::default());
        let store = make(Rc::clone(&memory));
        let fallback = ["none", "extractive"][rng.usize(..2)];
        let options = serde_json::json!({
            "contextWindow": 4_000, "trigger": { "tokens": rng.usize(700..1_600) }, "retryCount": rng.usize(1..4),
            "hasSummarize": rng.u8(..8) > 0, "fallback": fallback, "estimator": "chars4",
            "keep": { "messages": rng.usize(1..7) },
            "offload": { "compactCooldownSteps": rng.usize(..4), "compactTriggerThreshold": rng.usize(1..600), "targetTokens": 120 },
        });
        let options = options.to_string();
        let options = serde_json::from_str(&options).expect("options are JSON");
        let settings = Rc::new(Settings::read(&options).expect("options are valid"));
        let format = say::PLAIN[rng.usize(..say::PLAIN.len())];
        let tabs = (0..rng.usize(1..4)).map(|nth| {
            let host = Host::new(Rc::clone(&store), &format!("{seed}-{nth}"));
            Tab { host, session: None, tasks: Vec::new(), again: None }
        });
        let tabs = tabs.collect();
        let (model, stored, report) = (Model::default(), Audit::default(), Report::default());
        let (taken, turns_back) = (HashMap::new(), rng.u8(..3) == 0);
        World {
            rng,
            memory,
            settings,
            format,
            tabs,
            model,
            stored,
            taken,
            turns_back,
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
        let parked = self.tabs[tab].tasks.iter().all(|task| task.waits.1.parks());
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
        (tab.session, tab.again) = (None, None);
        tab.tasks.clear();
        self.report.crashes += 1;
    }

    /// Begins a call on a tab.
    fn begin(&mut self, tab: usize) -> Result<(), String> {
        let beside = !self.tabs[tab].tasks.is_empty();
        let Some(session) = self.tabs[tab].session.clone() else {
            let machine = Session::open(Rc::clone(&self.settings), Some(ID.into()), 10_000);
            let opened = |(session, _): (Session, Opened)| Outcome::Opened(session);
            return self.start(tab, Asked::Open, Box::new(Mapped(machine, opened)));
        };
        if let Some(history) = self.tabs[tab].again.take() {
            return self.sync(tab, &session, history);
        }
        match self.rng.u8(..20) {
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
            11..13 => self.read(tab, &session),
            13..18 if !beside => self.prepare(tab, &session),
            18.. if !beside => {
                let machine = Mapped(session.compact(None), Outcome::Compacted);
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

    fn sync(&mut self, tab: usize, session: &Session, history: Vec<Body>) -> Result<(), String> {
        self.model.begins(&history);
        let machine = Mapped(session.sync(0, history.clone()), Outcome::Synced);
        self.start(tab, Asked::Sync { history }, Box::new(machine))
    }

    fn prepare(&mut self, tab: usize, session: &Session) -> Result<(), String> {
        let trigger = if self.rng.u8(..6) == 0 { Trigger::Overflow } else { Trigger::Auto };
        let machine =
            Mapped(session.prepare(trigger, vec!["You are a careful engineer.".into()]), Outcome::Prepared);
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
        let machine = Mapped(session.read(offload.reference, 0, None), Outcome::Read);
        self.start(tab, Asked::Read { index, nth: offload.nth }, Box::new(machine))
    }

    /// A few messages that are valid wherever whole exchanges may stand.
    fn talk(&mut self) -> Vec<Body> {
        self.said += 1;
        let tag = self.said;
        let words = |rng: &mut Rng, most: usize| {
            // No white space at the end: a provider refuses it in a final answer.
            "the parser keeps its state in memory 字 👩‍👩‍👧. ".repeat(rng.usize(1..most)).trim_end().to_string()
        };
        let mut bodies = vec![say::user(&format!("question {tag}: {}", words(&mut self.rng, 5)))];
        let tools = self.rng.usize(..3);
        let ids: Vec<String> = (0..tools).map(|nth| format!("call_{tag}_{nth}")).collect();
        if tools > 0 {
            let calls: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "src/lib.rs")).collect();
            bodies.extend(say::calls(self.format, &calls));
            let texts: Vec<String> = ids
                .iter()
                .map(|id| {
                    let forged = if self.rng.bool() {
                        "Tool result is at: off_aaaaaaaaaaaaaaaaaaaaaaaaaa "
                    } else {
                        ""
                    };
                    format!("{id}: {forged}{}", words(&mut self.rng, 16))
                })
                .collect();
            let results: Vec<(&str, &str)> =
                ids.iter().zip(&texts).map(|(id, text)| (id.as_str(), text.as_str())).collect();
            bodies.extend(say::results(self.format, &results));
        }
        let answer = format!("answer {tag}: {}", words(&mut self.rng, 5));
        // A prompt that ends with white space is refused where the model would go on from it.
        bodies.push(say::assistant(answer.trim_end()));
        bodies
    }

    fn start(&mut self, tab: usize, asked: Asked, mut work: Box<dyn Work>) -> Result<(), String> {
        let (effects, done) = work.step(None);
        let waits = self.tabs[tab].host.hear(effects).pop();
        match (done, waits) {
            (Some(result), _) => self.ended(tab, asked, result),
            (None, Some(waits)) => {
                self.tabs[tab].tasks.push(Task { work, asked, waits });
                Ok(())
            }
            (None, None) => Err("an operation waits for nothing".into()),
        }
    }

    /// Performs what a task waits for, well or badly.
    fn go_on(&mut self, tab: usize, task: usize) -> Result<(), String> {
        let (id, effect) = self.tabs[tab].tasks[task].waits.clone();
        let Some(event) = self.perform(tab, &effect)? else { return Ok(()) };
        self.answer(tab, task, id, event)
    }

    fn answer(&mut self, tab: usize, task: usize, id: u32, event: Event) -> Result<(), String> {
        let host = &mut self.tabs[tab];
        let (effects, done) = host.tasks[task].work.step(Some((id, event)));
        match (done, host.host.hear(effects).pop()) {
            (Some(result), _) => {
                let asked = host.tasks.remove(task).asked;
                self.ended(tab, asked, result)
            }
            (None, Some(waits)) => {
                host.tasks[task].waits = waits;
                Ok(())
            }
            (None, None) => Err("an operation waits for nothing".into()),
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
            Effect::Now | Effect::NewId => None,
            _ if !bad => None,
            Effect::Sleep(_) | Effect::Pause(_) => Some(Code::Aborted),
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
        if is_commit {
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
