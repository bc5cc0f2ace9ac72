//! What a platform does to a store between two runs of an app: a power cut takes what was not on the disk, rows change, end
//! early or are gone, the whole database is. Whatever it is, the next opening mends it or says it, or `verify` does; the
//! session becomes writable again; and what was appended then is there.

use super::*;
use crate::store::MemoryStore;
use context_compactor_core::keys::batch::{Batch, Durability, Key};
use context_compactor_core::session::Verified;
use context_compactor_core::step::{Loss, Notice, Scan};
use std::cell::RefCell;

/// What a simulation of damage came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Damage {
    /// Nothing that was acknowledged was touched.
    None,
    /// The opening was refused until the app accepted the loss.
    Refused,
    /// The opening told what was lost or mended.
    Told,
    /// `verify` found it: no opening reads all rows.
    Found,
}

/// A store whose relaxed commits are on the disk with the next strict one.
struct Disk {
    memory: Rc<MemoryStore>,
    /// No commit waits for the disk, as an app may choose.
    lazy: bool,
    /// What is on the disk, and after each of the commits that are not.
    states: RefCell<Vec<MemoryStore>>,
}

impl Disk {
    fn state(&self) -> MemoryStore {
        let state = MemoryStore::default();
        state.replace(&self.memory);
        state
    }
}

impl Store for Disk {
    fn read(&self, keys: &[Key]) -> context_compactor_core::Result<Vec<Option<Vec<u8>>>> {
        self.memory.read(keys)
    }

    fn scan(&self, scan: &Scan) -> context_compactor_core::Result<Vec<(Key, Vec<u8>)>> {
        self.memory.scan(scan)
    }

    fn commit(&self, batch: &Batch) -> context_compactor_core::Result<()> {
        self.memory.commit(batch)?;
        let mut states = self.states.borrow_mut();
        if batch.durability == Durability::Strict && !self.lazy {
            states.clear();
        }
        states.push(self.state());
        Ok(())
    }
}

/// Runs a simulation, breaks the store, and opens it again.
///
/// Errors: what was lost without a word, or did not work any more.
pub fn simulate_damage(seed: u64) -> Result<Damage, String> {
    simulate(seed, true)
}

/// The same where nothing is kept outside of the store: it must be caught.
///
/// Errors: as of [`simulate_damage`].
pub fn simulate_damage_without_watermark(seed: u64) -> Result<Damage, String> {
    simulate(seed, false)
}

fn simulate(seed: u64, remembers: bool) -> Result<Damage, String> {
    let mut rng = Rng::with_seed(!seed);
    let made: RefCell<Option<Rc<Disk>>> = RefCell::default();
    let lazy = rng.bool();
    let mut world = World::new(seed, |memory| {
        let disk = Rc::new(Disk { memory, lazy, states: RefCell::new(vec![MemoryStore::default()]) });
        made.replace(Some(Rc::clone(&disk)));
        disk
    });
    let disk = made.take().ok_or("no store was made")?;
    let mut run = |world: &mut World| {
        for _ in 0..rng.usize(10..CHOICES) {
            world.choose()?;
        }
        // Everything dies at once.
        (0..world.tabs.len()).for_each(|tab| world.crash(tab));
        let what = break_store(&mut rng, &disk);
        world.reopened(&what, remembers).map_err(|error| format!("{what}: {error}"))
    };
    run(&mut world).map_err(|what| format!("seed {seed} ({}): {what}", world.settings.preset.name))
}

/// Breaks something; says what.
fn break_store(rng: &mut Rng, disk: &Disk) -> String {
    let memory = &disk.memory;
    let rows = memory.rows();
    // Notes for the next opening may be lost: nothing depends on them.
    let depends =
        |key: &Key| !key.to_string().starts_with("jobs/") && !key.to_string().starts_with("meta/staging");
    let rows: Vec<_> = rows.into_iter().filter(|(key, _)| depends(key)).collect();
    let table = |name: &str| {
        let prefix = format!("{name}/");
        rows.iter().map(|(key, _)| key).filter(|key| key.to_string().starts_with(&prefix)).collect::<Vec<_>>()
    };
    let Some((key, bytes)) = rng.choice(&rows) else { return "nothing".into() };
    match rng.u8(..8) {
        0 | 1 => {
            let states = disk.states.borrow();
            let kept = rng.usize(..states.len());
            memory.replace(&states[kept]);
            format!("a power cut after {} of {} commits that were not on the disk", kept, states.len() - 1)
        }
        2 | 3 => {
            let (at, bit) = (rng.usize(..bytes.len()), rng.u8(..8));
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            memory.damage(key, Some(bytes));
            format!("bit {bit} of byte {at} of {key} flipped")
        }
        4 => {
            let length = rng.usize(..bytes.len());
            memory.damage(key, Some(bytes[..length].to_vec()));
            format!("{key} cut to {length} bytes")
        }
        5 => {
            memory.damage(key, None);
            format!("{key} is gone")
        }
        6 => {
            let log = table("log");
            let gone = rng.usize(..=log.len());
            log.iter().skip(log.len() - gone).for_each(|key| memory.damage(key, None));
            format!("the last {gone} rows of the log are gone")
        }
        _ => {
            let name = ["log", "views", "blobs", "sessions", "all"][rng.usize(..5)];
            let gone = if name == "all" { rows.iter().map(|(key, _)| key).collect() } else { table(name) };
            gone.into_iter().for_each(|key| memory.damage(key, None));
            format!("table {name} is gone")
        }
    }
}

impl World {
    /// The session is opened again. What was broken is told, or found; and it goes on.
    fn reopened(&mut self, what: &str, remembers: bool) -> Result<Damage, String> {
        let before = std::mem::take(&mut self.stored);
        let broken = self.memory.rows();
        if !remembers {
            self.tabs[0].host.marks.borrow_mut().clear();
        }
        let marks = Rc::clone(&self.tabs[0].host.marks);
        let mut tabs = 0;
        let mut host = |memory: &Rc<MemoryStore>| {
            tabs += 1;
            let mut host = Host::new(Rc::clone(memory) as _, &format!("again {tabs}"));
            host.marks = Rc::clone(&marks);
            host.pinned = Box::new(is_pinned);
            host.summarise = Box::new(|_, _| summary("## Current Status\nA summary of what was said."));
            host
        };
        let (memory, most) = (Rc::clone(&self.memory), self.max_batch_ops);
        let open = |host: &mut Host, settings: &Rc<Settings>| {
            host.run(Session::open(Rc::clone(settings), Some(ID.into()), most)).map(|(session, _)| session)
        };
        let mut tab = host(&memory);
        let (session, refused) = match open(&mut tab, &self.settings) {
            Ok(session) => (session, false),
            Err(error) if error.code == Code::DataLoss => {
                let accepting = Rc::new(Settings { accept_data_loss: true, ..(*self.settings).clone() });
                (open(&mut tab, &accepting).map_err(checks::text)?, true)
            }
            Err(error) => return Err(format!("it cannot be opened: {}", checks::text(error))),
        };
        let losses = told(&tab);
        let Verified { ok, .. } = tab.run(session.verify()).map_err(checks::text)?;
        let rows = broken.into_iter().filter(|(key, _)| key.to_string().starts_with("log/"));
        let rows: Vec<String> = rows.map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned()).collect();
        let lost = self.model.missing(&rows);
        let known = losses.iter().filter_map(|loss| loss.lost_records).max().unwrap_or_default();
        // Where `verify` finds a problem, it is not silent.
        if ok && known < lost as u64 {
            return Err(format!("{lost} acknowledged messages are gone, and {losses:?} was told"));
        }
        let damage = match (refused, losses.is_empty(), ok) {
            (true, ..) => Damage::Refused,
            (false, false, _) => Damage::Told,
            (false, true, false) => Damage::Found,
            // The store is whole: a power cut that took nothing, or only what nobody was promised, or the very first
            // messages of a tab that died before it had an answer.
            (false, true, true) => {
                let stored = audit(ID, &self.memory.rows()).map_err(checks::text)?;
                let promised = !what.contains("power cut") && self.model.has_acked();
                if promised && stored.context != before.context {
                    return Err("the context is another one, and nothing was told".into());
                }
                Damage::None
            }
        };
        self.goes_on(&mut tab, &session, ok)?;
        let mut next = host(&memory);
        let again = open(&mut next, &self.settings).map_err(checks::text)?;
        let now = |session: &Session| look(session).map(|seen| seen.context).map_err(checks::text);
        if now(&again)?.items() != now(&session)?.items() {
            return Err("a session that is opened again differs from what it was".into());
        }
        match told(&next).first() {
            Some(loss) => Err(format!("it was told before the append, and again: {loss:?}")),
            None => Ok(damage),
        }
    }

    /// It takes messages, and what it sends is valid.
    fn goes_on(&mut self, host: &mut Host, session: &Session, ok: bool) -> Result<(), String> {
        let talk = self.talk();
        host.run(session.append(talk)).map_err(checks::text)?;
        let prepared = match host.run(session.prepare(Trigger::Auto, Vec::new())) {
            Ok(prepared) => prepared,
            // Without a summariser a whole log need not fit.
            Err(error) if error.code == Code::ContextOverflow => return Ok(()),
            // What a summary would quote of a message that it stands for is in a row that is lost.
            Err(error) if error.code == Code::StoreCorrupt && !ok => return Ok(()),
            Err(error) => return Err(checks::text(error)),
        };
        let mut bodies = Vec::new();
        for item in &prepared.items {
            let own = item.seq.map(|seq| session.body(seq)).transpose().map_err(checks::text)?.flatten();
            bodies.push(
                own.or_else(|| item.body.clone()).ok_or("a message was sent that is not in the context")?,
            );
        }
        let values = bodies.iter().map(|body| wire::parse(0, body)).collect::<Result<Vec<_>, _>>();
        match self.format.rules().validate(&values.map_err(checks::text)?, false).first() {
            Some(problem) => Err(format!("an invalid prompt ({}): {}", problem.rule, problem.message)),
            None => Ok(()),
        }
    }
}

fn told(host: &Host) -> Vec<Loss> {
    let loss = |notice: &Notice| match notice {
        Notice::DataLoss { loss } => Some(loss.clone()),
        _ => None,
    };
    host.seen.notices.iter().filter_map(loss).collect()
}
