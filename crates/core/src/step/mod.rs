//! The machine: events in, effects out.
//!
//! An operation (append, prepare, compact …) is an `async` block that awaits effects through [`Io`]. Nothing in it
//! performs anything: awaiting an effect parks the block and hands the effect to whoever drives the [`Machine`]
//! (the JS driver, a test, a simulator), which answers with an [`Event`]. The machine has no executor, no waker and
//! no clock; the same events give the same effects. Dropping a machine at any await is a crash at that point.

mod all;
mod effect;
mod loss;
mod seam;

pub(crate) use all::{Work, all};

pub use effect::{
    Effect, EffectFailure, Event, LogLevel, Notice, Progress, Purpose, ReportedUsage, Scan, Stage, Stored,
};

pub use loss::{Loss, LossKind};

pub use seam::{CodeStage, Seam};

use crate::context::{MessageSource, Place};
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Batch, Key};
use crate::summary::SummaryRequest;
use crate::wire::Format;
use crate::wire::provider::HttpRequest;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Bytes of messages that take about as long to go through as a frame of a page may (about 10 ms each).
pub const LONG: usize = 256 * 1024;

/// The engine's side of the conversation with its host.
#[derive(Clone, Default)]
pub struct Io {
    mail: Rc<Mail>,
    /// Losses that are not told yet.
    losses: Option<Rc<RefCell<Vec<Effect>>>>,
    unheard: bool,
}

#[derive(Default)]
struct Mail {
    next: Cell<u32>,
    outbox: RefCell<Vec<(u32, Effect)>>,
    inbox: RefCell<BTreeMap<u32, Event>>,
}

/// The answer to an effect, once the host gives it.
struct EffectAnswer {
    id: u32,
    mail: Rc<Mail>,
}

impl Future for EffectAnswer {
    type Output = Event;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Event> {
        match self.mail.inbox.borrow_mut().remove(&self.id) {
            Some(event) => Poll::Ready(event),
            None => Poll::Pending,
        }
    }
}

/// Counts the bytes of a long work, so that the host can do other things now and then.
#[derive(Debug, Default)]
pub struct Breath(usize);

impl Breath {
    /// So many bytes more were gone through.
    pub async fn after(&mut self, io: &Io, bytes: usize) -> Result<()> {
        self.0 += bytes;
        if self.0 >= LONG {
            io.breathe(std::mem::take(&mut self.0)).await?;
        }
        Ok(())
    }
}

impl Io {
    /// Puts an answer where who asked looks for it. No part of [`Machine::step`], which there is once for each type.
    #[inline(never)]
    fn hear(&self, answer: Option<(u32, Event)>) {
        if let Some((id, mut event)) = answer {
            if let Event::Failed(failure) = &mut event {
                failure.effect = id;
            }
            self.mail.inbox.borrow_mut().insert(id, event);
        }
    }

    fn ask(&self, effect: Effect) -> EffectAnswer {
        let id = self.mail.next.get() + 1;
        self.mail.next.set(id);
        self.mail.outbox.borrow_mut().push((id, effect));
        EffectAnswer { id, mail: Rc::clone(&self.mail) }
    }

    /// The same host for what only might happen: it is told nothing, shown no text, and not waited for.
    pub(crate) fn unheard(&self) -> Io {
        Io { unheard: true, ..self.clone() }
    }

    /// Tells the host something; there is no answer.
    pub fn tell(&self, effect: Effect) {
        if self.unheard {
            return;
        }
        if let (Some(losses), Effect::Notify(Notice::DataLoss { .. })) = (&self.losses, &effect) {
            losses.borrow_mut().push(effect);
            return;
        }
        self.mail.outbox.borrow_mut().push((0, effect));
    }

    /// The same, where losses wait until it is known that they are some.
    pub(crate) fn keeping_losses(&self) -> (Io, Rc<RefCell<Vec<Effect>>>) {
        let losses = Rc::default();
        (Io { losses: Some(Rc::clone(&losses)), ..self.clone() }, losses)
    }

    /// A line for the app's logger.
    pub fn log(&self, level: LogLevel, line: impl Into<String>) {
        self.tell(Effect::Log(level, line.into()));
    }

    /// The time in ms since 1970.
    pub async fn now(&self) -> Result<u64> {
        match self.ask(Effect::Now).await {
            Event::Number(ms) if ms.is_finite() && ms >= 0.0 => Ok(ms as u64),
            other => Err(answer_error("advanced.runtime.now", &other)),
        }
    }

    /// A string never given before.
    pub async fn new_id(&self) -> Result<String> {
        match self.ask(Effect::NewId).await {
            Event::Text(id) if !id.is_empty() => Ok(id),
            other => Err(answer_error("advanced.runtime.id", &other)),
        }
    }

    /// Tokens of one message by the app's own counter.
    pub async fn count(&self, whose: MessageSource, body: &Rc<str>) -> Result<usize> {
        match self.ask(Effect::Count { whose, body: Rc::clone(body) }).await {
            Event::Number(tokens) if tokens.is_finite() && tokens >= 0.0 => Ok(tokens.ceil() as usize),
            other => Err(answer_error("tokenCounter", &other)),
        }
    }

    /// Whether the app pins a message.
    pub async fn pin(&self, whose: MessageSource, index: usize, body: &Rc<str>) -> Result<bool> {
        match self.ask(Effect::Pin { whose, index, body: Rc::clone(body) }).await {
            Event::Number(pinned) => Ok(pinned != 0.0),
            other => Err(answer_error("pins.match", &other)),
        }
    }

    /// The app's own redaction of `text`.
    pub async fn redact(&self, text: String) -> Result<String> {
        if self.unheard {
            return Ok(text);
        }
        match self.ask(Effect::Redact(text)).await {
            Event::Text(text) => Ok(text),
            other => Err(answer_error("redact.text", &other)),
        }
    }

    /// The app's summariser.
    pub async fn summarize(
        &self,
        request: Rc<SummaryRequest>,
        attempt: u32,
        purpose: Purpose,
        timeout_ms: u64,
    ) -> Result<(String, Option<ReportedUsage>), EffectFailure> {
        match self.ask(Effect::Summarize { request, attempt, purpose, timeout_ms }).await {
            Event::Summary { text, usage } => Ok((text, usage)),
            other => Err(failure("summarize", other)),
        }
    }

    /// The vectors that the app's function makes of texts.
    pub async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f64>>, EffectFailure> {
        match self.ask(Effect::Embed(texts)).await {
            Event::Vectors(vectors) => Ok(vectors),
            other => Err(failure("recall.embed", other)),
        }
    }

    /// The app's own content of a file.
    pub async fn read_file(&self, path: String) -> Result<String, EffectFailure> {
        match self.ask(Effect::ReadFile(path)).await {
            Event::Text(text) => Ok(text),
            other => Err(failure("restoreFiles.read", other)),
        }
    }

    /// A request to a provider.
    pub async fn fetch(
        &self,
        request: HttpRequest,
        timeout_ms: u64,
    ) -> Result<(u16, Vec<(String, String)>, String), EffectFailure> {
        match self.ask(Effect::Fetch { request, timeout_ms }).await {
            Event::Response { status, headers, body } => Ok((status, headers, body)),
            other => Err(failure("fetch", other)),
        }
    }

    /// Waits.
    pub async fn sleep(&self, ms: u64) -> Result<(), EffectFailure> {
        match self.ask(Effect::Sleep(ms)).await {
            Event::Done => Ok(()),
            other => Err(failure("sleep", other)),
        }
    }

    /// Waits without letting go of the state.
    pub async fn pause(&self, ms: u64) -> Result<(), EffectFailure> {
        match self.ask(Effect::Pause(ms)).await {
            Event::Done => Ok(()),
            other => Err(failure("pause", other)),
        }
    }

    /// Lets the host do other things once `bytes` of messages were gone through; nothing where they are few.
    pub async fn breathe(&self, bytes: usize) -> Result<()> {
        if bytes < LONG || self.unheard {
            return Ok(());
        }
        self.pause(0).await.map_err(|failure| failure.into_error(Code::Aborted))
    }

    /// What the host knows of a session outside of its store: its mark, and why the platform made the store anew.
    pub async fn read_watermark(&self, key: String) -> Result<(Option<String>, Option<String>)> {
        match self.ask(Effect::ReadWatermark(key)).await {
            Event::Watermark { mark, lost } => Ok((mark, lost)),
            other => Err(failure("watermark.get", other).into_error(Code::StoreUnavailable)),
        }
    }

    /// The bytes of what is stored; none where it is damaged.
    fn bytes(&self, key: &Key, stored: Stored) -> Vec<u8> {
        match stored {
            Stored::Bytes(bytes) => bytes,
            Stored::Damaged(reason) => {
                self.log(LogLevel::Warn, format!("The store says that {key} is damaged: {reason}"));
                Vec::new()
            }
        }
    }

    /// Tells the host where the messages are that a call appended which then prepares: what goes with the prompt.
    pub(crate) async fn appended(&self, places: Vec<Place>, format: Format) -> Result<Vec<String>> {
        match self.ask(Effect::Appended { places, format }).await {
            Event::Texts(fixed) => Ok(fixed),
            other => Err(failure("what goes with the messages", other).into_error(Code::InvalidOption)),
        }
    }

    /// Reads values as the store has them. One that is damaged is empty, which no value that is written is: whoever reads a
    /// page then finds this row unreadable, and the others whole.
    pub async fn read(&self, keys: Vec<Key>) -> Result<Vec<Option<Vec<u8>>>> {
        let (wanted, asked) = (keys.len(), keys.clone());
        match self.ask(Effect::Read(keys)).await {
            Event::Values(values) if values.len() == wanted => {
                let told = values.into_iter().zip(&asked);
                Ok(told.map(|(value, key)| value.map(|value| self.bytes(key, value))).collect())
            }
            Event::Values(values) => Err(Error::new(
                Code::StoreCorrupt,
                format!("the store's read() returned {} values for {wanted} keys", values.len()),
            )),
            other => Err(failure("store.read", other).into_error(Code::StoreUnavailable)),
        }
    }

    /// Reads a range of keys from the store.
    pub async fn scan(&self, scan: Scan) -> Result<Vec<(Key, Vec<u8>)>> {
        match self.ask(Effect::Scan(scan)).await {
            Event::Entries(entries) => {
                let values = entries.into_iter().map(|(key, value)| {
                    let value = self.bytes(&key, value);
                    (key, value)
                });
                Ok(values.collect())
            }
            other => Err(failure("store.scan", other).into_error(Code::StoreUnavailable)),
        }
    }

    /// Writes a batch, all or nothing.
    pub async fn commit(&self, batch: Batch) -> Result<()> {
        match self.ask(Effect::Commit(batch)).await {
            Event::Done => Ok(()),
            other => Err(failure("store.commit", other).into_error(Code::StoreUnavailable)),
        }
    }

    /// Has the host load a part of the engine.
    pub async fn load(&self, stage: CodeStage) -> Result<()> {
        match self.ask(Effect::Load(stage)).await {
            Event::Done => Ok(()),
            other => Err(failure("a part of the engine", other).into_error(Code::StageUnavailable)),
        }
    }
}

fn failure(what: &str, event: Event) -> EffectFailure {
    match event {
        Event::Failed(failure) => failure,
        other => EffectFailure {
            code: None,
            message: format!("{what} was answered with {}", name(&other)),
            status: None,
            overflow: false,
            effect: 0,
        },
    }
}

fn answer_error(field: &str, event: &Event) -> Error {
    match event {
        Event::Failed(failure) => {
            Error::option(field, format!("it failed: {}", failure.message)).caused_by(failure.effect)
        }
        other => Error::option(
            field,
            format!("it must return a finite, non-negative number or a text, not {}", name(other)),
        ),
    }
}

fn name(event: &Event) -> &'static str {
    match event {
        Event::Done => "nothing",
        Event::Number(_) => "an unusable number",
        Event::Text(_) => "an unusable text",
        Event::Texts(_) => "texts",
        Event::Summary { .. } => "a summary",
        Event::Vectors(_) => "vectors",
        Event::Response { .. } => "a response",
        Event::Watermark { .. } => "a watermark",
        Event::Values(_) => "values",
        Event::Entries(_) => "entries",
        Event::Failed(_) => "a failure",
    }
}

/// What a step led to.
#[derive(Debug)]
pub struct Step<T> {
    /// What the host is asked to do now, in order. Those with id 0 are not answered.
    pub effects: Vec<(u32, Effect)>,
    /// The operation's result, once it has ended.
    pub done: Option<Result<T>>,
}

/// A step of an operation: its effects, and its end.
pub type Stepped<D> = (Vec<(u32, Effect)>, Option<D>);

/// Steps an operation until it has ended, or waits for what takes time. `host` performs each effect as it comes, and answers
/// what it can at once; what it does not is the next `answer`.
pub fn go_on<D>(
    step: &mut dyn FnMut(Option<(u32, Event)>) -> Stepped<D>,
    answer: Option<(u32, Event)>,
    host: &mut dyn FnMut(u32, Effect) -> Option<Event>,
) -> Option<D> {
    let mut answers: VecDeque<(u32, Event)> = answer.into_iter().collect();
    loop {
        let (effects, done) = step(answers.pop_front());
        for (id, effect) in effects {
            answers.extend(host(id, effect).map(|event| (id, event)));
        }
        if done.is_some() || answers.is_empty() {
            return done;
        }
    }
}

/// One operation under way.
pub struct Machine<T> {
    io: Io,
    work: Option<Pin<Box<dyn Future<Output = Result<T>>>>>,
}

impl<T> Machine<T> {
    /// An operation that has not begun: the first [`Machine::step`] starts it.
    pub fn new<F>(work: impl FnOnce(Io) -> F) -> Self
    where
        F: Future<Output = Result<T>> + 'static,
    {
        let io = Io::default();
        let work = Box::pin(work(io.clone()));
        Machine { io, work: Some(work) }
    }

    /// Starts the operation, or goes on after the host's answer to effect `id`.
    pub fn step(&mut self, answer: Option<(u32, Event)>) -> Step<T> {
        self.io.hear(answer);
        let Some(work) = self.work.as_mut() else {
            return Step { effects: Vec::new(), done: None };
        };
        let polled = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let effects = std::mem::take(&mut *self.io.mail.outbox.borrow_mut());
        match polled {
            Poll::Ready(result) => {
                self.work = None;
                Step { effects, done: Some(result) }
            }
            Poll::Pending => Step { effects, done: None },
        }
    }
}
