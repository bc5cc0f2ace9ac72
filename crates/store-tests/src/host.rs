//! A host for the engine, natively: it performs effects with a store, a scripted summariser and a clock of its own,
//! notes what it saw, and fails or crashes where it is told to.

use crate::store::Store;
use context_compactor_core::context::MessageSource;
use context_compactor_core::keys::batch::{Batch, Key};
use context_compactor_core::step::{
    Effect, EffectFailure, Event, LogLevel, Machine, Notice, Progress, Purpose, Stored,
};
use context_compactor_core::summary::SummaryRequest;
use context_compactor_core::wire::provider::HttpRequest;
use context_compactor_core::{Code, Result};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// How an effect goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It fails and does not take place.
    Fail(Code),
    /// It takes place, and the answer is lost.
    Lost,
    /// The process dies before it.
    CrashBefore,
    /// The process dies after it took place.
    CrashAfter,
}

/// The effect that goes wrong.
struct Fault {
    /// Effects it may be.
    which: Box<dyn Fn(&Effect) -> bool>,
    /// How many of them go well before.
    skip: usize,
    how: How,
}

/// What a host was told and asked.
#[derive(Debug, Default)]
pub struct Seen {
    /// Events of the session.
    pub notices: Vec<Notice>,
    /// Progress reports.
    pub progress: Vec<Progress>,
    /// Log lines.
    pub logs: Vec<(LogLevel, String)>,
    /// Requests for a summary, with the number of the attempt.
    pub requests: Vec<(Rc<SummaryRequest>, u32)>,
    /// What each of them was for.
    pub purposes: Vec<Purpose>,
    /// The most that was waited for at once.
    pub at_once: usize,
    /// Requests to a provider.
    pub fetched: Vec<HttpRequest>,
    /// Waits, in ms.
    pub slept: Vec<u64>,
    /// Batches that took place.
    pub commits: Vec<Batch>,
}

/// Makes vectors of texts.
pub type Embed = Box<dyn FnMut(&[String]) -> Event>;
/// Writes summaries: the request and the number of the attempt.
pub type Summarise = Box<dyn FnMut(&SummaryRequest, u32) -> Event>;
/// Counts the tokens of a message.
pub type Count = Box<dyn FnMut(MessageSource, &str) -> Event>;
/// Says with which code an effect is given up, when it is.
pub type GiveUp = Box<dyn FnMut(&Effect) -> Option<Code>>;
/// Says why a batch is refused, when it is.
pub type Refuse = Box<dyn Fn(&Batch) -> Option<Code>>;

/// Watermarks by their keys.
pub type Marks = Rc<RefCell<BTreeMap<String, String>>>;

/// Performs what the engine asks for.
pub struct Host {
    /// Where commits go.
    pub store: Rc<dyn Store>,
    /// ms since 1970; moves on with every look at it and with sleeps.
    pub now: u64,
    /// Writes summaries.
    pub summarise: Summarise,
    /// Answers HTTP requests.
    pub fetch: Box<dyn FnMut(&HttpRequest) -> Event>,
    /// Counts tokens, when the engine asks.
    pub count: Count,
    /// Says which messages are pinned, by their index, when the engine asks.
    pub pinned: Box<dyn Fn(usize) -> bool>,
    /// Reads a file of the app.
    pub read_file: Box<dyn FnMut(&str) -> Event>,
    /// Makes vectors of texts.
    pub embed: Embed,
    /// What goes with a prompt that is prepared with what it appends.
    pub fixed: Vec<String>,
    /// Redacts.
    pub redact: Box<dyn FnMut(String) -> Event>,
    /// Looks at a batch first and may refuse it: a full disk, a value that is too large.
    pub refuse: Refuse,
    /// Looks at an effect first and may give it up. It is performed all the same, and its answer comes late: with that
    /// of the next one, or behind the end.
    pub gives_up: GiveUp,
    /// Is called before each awaited effect: another tab that acts meanwhile.
    pub meanwhile: Box<dyn FnMut(&Effect)>,
    /// Watermarks, outside of the store: those of one browser are shared by its tabs.
    pub marks: Marks,
    /// Why the platform made the store anew, when it did.
    pub lost: Option<String>,
    /// What it saw.
    pub seen: Seen,
    faults: Vec<Fault>,
    name: String,
    ids: u64,
}

/// A failure with a code.
pub fn failed(code: Code) -> Event {
    let message = format!("{} (injected)", code.as_str());
    Event::Failed(EffectFailure { code: Some(code), message, status: None, overflow: false, effect: 0 })
}

/// A failure as an app throws it: no code of ours.
pub fn thrown(message: &str, status: Option<u16>) -> Event {
    Event::Failed(EffectFailure { code: None, message: message.into(), status, overflow: false, effect: 0 })
}

/// A summary.
pub fn summary(text: &str) -> Event {
    Event::Summary { text: text.into(), usage: None }
}

impl Host {
    /// A host over `store`; `name` keeps its ids apart from those of other hosts.
    pub fn new(store: Rc<dyn Store>, name: &str) -> Self {
        let no_fetch = |_: &HttpRequest| thrown("no network", None);
        Host {
            store,
            now: 1_700_000_000_000,
            summarise: Box::new(|_, _| thrown("no summariser", None)),
            fetch: Box::new(no_fetch),
            count: Box::new(|_, _| thrown("no counter", None)),
            pinned: Box::new(|_| false),
            read_file: Box::new(|_| thrown("no such file", None)),
            embed: Box::new(|_| thrown("no model for vectors", None)),
            fixed: Vec::new(),
            redact: Box::new(Event::Text),
            refuse: Box::new(|_| None),
            gives_up: Box::new(|_| None),
            meanwhile: Box::new(|_| {}),
            marks: Rc::default(),
            lost: None,
            seen: Seen::default(),
            faults: Vec::new(),
            name: name.into(),
            ids: 0,
        }
    }

    /// The `nth` (from 1) effect from now on of which `which` holds goes wrong.
    pub fn fault(&mut self, nth: usize, which: impl Fn(&Effect) -> bool + 'static, how: How) {
        self.faults.push(Fault { which: Box::new(which), skip: nth - 1, how });
    }

    /// Runs an operation to its end.
    ///
    /// # Panics
    ///
    /// When a fault made it crash.
    pub fn run<T>(&mut self, machine: Machine<T>) -> Result<T> {
        self.try_run(machine).expect("a fault ended the process")
    }

    /// Runs an operation to its end; `None` when it crashed on the way.
    pub fn try_run<T>(&mut self, mut machine: Machine<T>) -> Option<Result<T>> {
        let mut step = machine.step(None);
        let mut waiting = VecDeque::new();
        let mut late = Vec::new();
        loop {
            waiting.extend(self.hear(step.effects));
            self.seen.at_once = self.seen.at_once.max(waiting.len());
            if let Some(result) = step.done {
                for answer in late {
                    let after = machine.step(Some(answer));
                    assert!(after.effects.is_empty() && after.done.is_none(), "it had ended");
                }
                return Some(result);
            }
            let (id, effect) =
                waiting.pop_front().expect("an operation that has not ended waits for something");
            for answer in std::mem::take(&mut late) {
                let after = machine.step(Some(answer));
                assert!(after.effects.is_empty() && after.done.is_none(), "nobody waited for it");
            }
            let how = self.due(&effect);
            let event = match how {
                Some(How::CrashBefore) => return None,
                Some(How::Fail(code)) => failed(code),
                None => match (self.gives_up)(&effect) {
                    Some(code) => {
                        late.push((id, self.perform(&effect)));
                        failed(code)
                    }
                    None => self.perform(&effect),
                },
                Some(How::CrashAfter | How::Lost) => {
                    self.perform(&effect);
                    if how == Some(How::CrashAfter) {
                        return None;
                    }
                    failed(Code::Indeterminate)
                }
            };
            step = machine.step(Some((id, event)));
        }
    }

    /// Notes what is told; returns what is asked.
    pub fn hear(&mut self, effects: Vec<(u32, Effect)>) -> Vec<(u32, Effect)> {
        let mut asked = Vec::new();
        for (id, effect) in effects {
            match effect {
                Effect::Notify(notice) => self.seen.notices.push(notice),
                Effect::Progress(progress) => self.seen.progress.push(progress),
                Effect::WriteWatermark { key, value } => {
                    let mut marks = self.marks.borrow_mut();
                    let kept = marks.entry(key).or_default();
                    if value.is_empty() || value > *kept {
                        *kept = value;
                    }
                }
                Effect::Log(level, line) => self.seen.logs.push((level, line)),
                Effect::Prefetch(_) => {}
                effect => {
                    assert!(id != 0, "only what is told has no number");
                    asked.push((id, effect));
                }
            }
        }
        asked
    }

    /// What the store answers for a row.
    fn stored(&self, key: &Key, value: Vec<u8>) -> Stored {
        self.store.damaged(key).map_or(Stored::Bytes(value), Stored::Damaged)
    }

    fn due(&mut self, effect: &Effect) -> Option<How> {
        let mut due = None;
        self.faults.retain_mut(|fault| {
            if due.is_some() || !(fault.which)(effect) {
                return true;
            }
            let now = fault.skip == 0;
            if now {
                due = Some(fault.how);
            } else {
                fault.skip -= 1;
            }
            !now
        });
        due
    }

    /// Performs an effect.
    pub fn perform(&mut self, effect: &Effect) -> Event {
        let answer = |result: Result<Event>| {
            result.unwrap_or_else(|error| {
                let (code, message) = (Some(error.code), error.into_parts().message);
                Event::Failed(EffectFailure { code, message, status: None, overflow: false, effect: 0 })
            })
        };
        match effect {
            Effect::Now => {
                self.now += 1;
                return Event::Number(self.now as f64);
            }
            Effect::NewId => {
                self.ids += 1;
                return Event::Text(format!("{}-{}", self.name, self.ids));
            }
            Effect::Count { whose, body } => return (self.count)(*whose, body),
            Effect::Pin { index, .. } => return Event::Number(f64::from((self.pinned)(*index))),
            Effect::ReadFile(path) => return (self.read_file)(path),
            Effect::Redact(text) => return (self.redact)(text.clone()),
            Effect::Appended { .. } => return Event::Texts(self.fixed.clone()),
            _ => (self.meanwhile)(effect),
        }
        match effect {
            Effect::Summarize { request, attempt, purpose, .. } => {
                self.seen.purposes.push(*purpose);
                self.seen.requests.push((Rc::clone(request), *attempt));
                (self.summarise)(request, *attempt)
            }
            Effect::Fetch { request, .. } => {
                self.seen.fetched.push(request.clone());
                (self.fetch)(request)
            }
            Effect::Embed(texts) => (self.embed)(texts),
            Effect::Sleep(ms) | Effect::Pause(ms) => {
                self.seen.slept.push(*ms);
                self.now += ms;
                Event::Done
            }
            Effect::Load(_) => Event::Done,
            Effect::ReadWatermark(key) => {
                Event::Watermark { mark: self.marks.borrow().get(key).cloned(), lost: self.lost.clone() }
            }
            Effect::Read(keys) => answer(self.store.read(keys).map(|values| {
                let stored =
                    |(key, value): (&Key, Option<Vec<u8>>)| value.map(|value| self.stored(key, value));
                Event::Values(keys.iter().zip(values).map(stored).collect())
            })),
            Effect::Scan(scan) => answer(self.store.scan(scan).map(|entries| {
                let stored = |(key, value): (Key, Vec<u8>)| {
                    let value = self.stored(&key, value);
                    (key, value)
                };
                Event::Entries(entries.into_iter().map(stored).collect())
            })),
            Effect::Commit(batch) => match (self.refuse)(batch) {
                Some(code) => failed(code),
                None => answer(self.store.commit(batch).map(|()| {
                    self.seen.commits.push(batch.clone());
                    Event::Done
                })),
            },
            other => unreachable!("{other:?} is not awaited"),
        }
    }
}
