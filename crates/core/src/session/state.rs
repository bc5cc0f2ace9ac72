//! What a session knows, and how it reads and writes it. Every change is one batch that expects the session's row
//! as it was read (`storage.md` T1 and T3): whoever comes second reads what the other wrote and tries again.

use super::batch::{Batch, Durability, keys};
use super::context::{Context, Item, Offload, Origin, Place, Size, Splice};
use super::ids;
use super::ledger;
use super::record::{self, Cause, Kind, LogRow, SCHEMA, SessionRow, Unread, ViewRow};
use crate::error::{Code, Error, Result};
use crate::message::Message;
use crate::plan::Settings;
use crate::step::{Io, Scan, Whose};
use crate::wire::{self, Format};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::rc::Rc;

/// Bytes of one part of an offload.
pub(crate) const PART: usize = 1 << 20;
/// Commits that lose a race are tried again this often.
const RACES: usize = 8;
/// Bytes that one read of the store may return.
const PAGE: usize = 4 << 20;

/// A session in memory.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// Names the session's rows.
    pub(crate) sid: String,
    /// The row as it was last read or written.
    pub(crate) row: SessionRow,
    /// The active context.
    pub(crate) context: Context,
    /// Options.
    pub(crate) settings: Rc<Settings>,
    /// False for a one-shot compaction and for a dry run: nothing is stored.
    pub(crate) durable: bool,
    /// Tokens of the system prompt and the tools of the last `prepare`.
    pub(crate) fixed_tokens: usize,
}

/// A text on its way into the store.
#[derive(Debug, Clone)]
pub(crate) struct NewBlob {
    /// Index of the message it comes from.
    pub(crate) index: usize,
    /// What it becomes.
    pub(crate) offload: Offload,
    /// Its text.
    pub(crate) text: String,
}

/// A change of the context on its way into the store.
pub(crate) struct Change {
    pub(crate) splices: Vec<Splice>,
    pub(crate) blobs: Vec<NewBlob>,
    pub(crate) cause: Cause,
    /// The job that led to it, to be closed.
    pub(crate) job: Option<String>,
}

impl State {
    /// A session that is nowhere but in memory.
    pub(crate) fn new(sid: String, id: String, secret: String, settings: Rc<Settings>, now: u64) -> Self {
        let row = SessionRow {
            v: SCHEMA,
            ver: 0,
            id,
            format: settings.format,
            secret,
            next_seq: 0,
            messages: 0,
            generation: 0,
            tail_from: 0,
            head: String::new(),
            chain: String::new(),
            steps: 0,
            attempted_at: None,
            pending_step: false,
            created_at: now,
            updated_at: now,
        };
        State { sid, row, context: Context::default(), settings, durable: true, fixed_tokens: 0 }
    }

    /// The messages' format; OpenAI chat as long as they could be of several.
    pub(crate) fn format(&self) -> Format {
        self.row.format.unwrap_or(Format::OpenaiChat)
    }

    /// All tokens of the next prompt.
    pub(crate) fn tokens(&self) -> usize {
        self.context.totals().tokens.saturating_add(self.fixed_tokens)
    }

    /// What the session row expects in a batch.
    fn expect(&self) -> (super::batch::Key, Option<u64>) {
        (keys::session(&self.sid), (self.row.ver > 0).then_some(self.row.ver))
    }

    /// Reads the session from the store; false when it is not there.
    pub(crate) async fn load(&mut self, io: &Io) -> Result<bool> {
        let Some(row) = self.read_session_row(io).await? else { return Ok(false) };
        let mut unread = self.read_view(io, row.generation).await?;
        unread.extend(self.read_tail(io, row.tail_from, row.next_seq).await?);
        if let Some(format) = row.format {
            if self.settings.format.is_some_and(|given| given != format) {
                return Err(Error::option("format", format!("this session is in {}", format.as_str())));
            }
        }
        self.row = row;
        let format = self.format();
        self.context = Context::default();
        for (origin, body) in self.fill(io, unread).await? {
            let size = measure(io, &self.settings, format, origin.whose(), &body).await?;
            self.context.push(Item { body, size, origin });
        }
        ledger::conserve(self.context.items(), self.row.messages)
            .map_err(|error| Error::new(Code::StoreCorrupt, error.message))?;
        Ok(true)
    }

    /// Takes over what others wrote since the row was last read. `true` when the view is another one now.
    pub(crate) async fn refresh(&mut self, io: &Io) -> Result<bool> {
        let Some(row) = self.read_session_row(io).await? else {
            return Err(Error::new(Code::Closed, "the session was deleted elsewhere"));
        };
        if row.generation != self.row.generation {
            self.load(io).await?;
            return Ok(true);
        }
        let unread = self.read_tail(io, self.row.next_seq, row.next_seq).await?;
        self.row = row;
        let format = self.format();
        for (origin, body) in self.fill(io, unread).await? {
            let size = measure(io, &self.settings, format, origin.whose(), &body).await?;
            self.context.push(Item { body, size, origin });
        }
        Ok(false)
    }

    async fn read_session_row(&self, io: &Io) -> Result<Option<SessionRow>> {
        let values = io.read(vec![keys::session(&self.sid)]).await?;
        match values.into_iter().next().flatten() {
            Some(bytes) => Ok(Some(record::decode(&bytes, "session")?)),
            None => Ok(None),
        }
    }

    /// The items of view `generation`: from the newest whole view on, one change after the other.
    async fn read_view(&self, io: &Io, generation: u64) -> Result<Vec<Unread>> {
        if generation == 0 {
            return Ok(Vec::new());
        }
        let whole = generation - (generation - 1) % 32;
        let rows = io.read((whole..=generation).map(|number| keys::view(&self.sid, number)).collect()).await?;
        let mut items: Vec<Unread> = Vec::new();
        for bytes in rows {
            let bytes = bytes.ok_or_else(|| Error::new(Code::StoreCorrupt, "a view of the session is missing"))?;
            let view: ViewRow = record::decode(&bytes, "view")?;
            if let Some(whole) = view.whole {
                items = record::load_items(whole);
                continue;
            }
            for (seq, index, count) in view.appended {
                items.extend(record::load_items(vec![record::StoredItem::Messages(seq, index, count)]));
            }
            for splice in view.splices.into_iter().rev() {
                let start = splice.at.min(items.len());
                let end = splice.at.saturating_add(splice.remove).min(items.len());
                items.splice(start..end, record::load_items(splice.insert));
            }
        }
        Ok(items)
    }

    /// The messages of log rows `from .. to`, with their bodies.
    async fn read_tail(&self, io: &Io, from: u64, to: u64) -> Result<Vec<Unread>> {
        let mut items = Vec::new();
        let mut next = from;
        while next < to {
            let scan = Scan {
                prefix: keys::all("log", &self.sid),
                after: next.checked_sub(1).map(|seq| keys::log(&self.sid, seq)),
                limit: (to - next).min(1_000) as usize,
                max_bytes: PAGE,
                reverse: false,
            };
            let before = next;
            for (_, bytes) in io.scan(scan).await? {
                let (row, _) = record::read_row(&bytes)?;
                if row.seq != next {
                    return Err(missing_row(next));
                }
                if row.kind == Kind::Message {
                    let place = Place { seq: row.seq, index: row.n };
                    items.push((Origin::Message(place), Some(Rc::from(row.body.get()))));
                }
                next += 1;
            }
            if next == before {
                return Err(missing_row(next));
            }
        }
        Ok(items)
    }

    /// Bodies of the app's messages `from .. to` (as far as there are any), from memory or from the log.
    pub(crate) async fn log_bodies(&self, io: &Io, from: usize, to: usize) -> Result<Vec<Rc<str>>> {
        let held: HashMap<usize, &Rc<str>> = self
            .context
            .items()
            .iter()
            .filter_map(|item| match item.origin {
                Origin::Message(place) => Some((place.index, &item.body)),
                _ => None,
            })
            .collect();
        let wanted = from..to.min(self.row.messages);
        if let Some(bodies) = wanted.clone().map(|index| held.get(&index).map(|body| Rc::clone(body))).collect() {
            return Ok(bodies);
        }
        let all = self.read_tail(io, 0, self.row.next_seq).await?;
        Ok(all.into_iter().skip(from).take(wanted.len()).filter_map(|(_, body)| body).collect())
    }

    /// Reads the bodies that are still missing from the log.
    async fn fill(&self, io: &Io, unread: Vec<Unread>) -> Result<Vec<(Origin, Rc<str>)>> {
        let mut items = Vec::with_capacity(unread.len());
        let mut pending = Vec::new();
        for (origin, body) in unread {
            match (body, origin.place()) {
                (Some(body), _) => items.push((origin, body)),
                (None, Some(place)) => {
                    pending.push((items.len(), place.seq));
                    items.push((origin, Rc::from("")));
                }
                (None, None) => return Err(Error::new(Code::StoreCorrupt, "a view holds an item without a body")),
            }
        }
        for page in pending.chunks(256) {
            let rows = io.read(page.iter().map(|(_, seq)| keys::log(&self.sid, *seq)).collect()).await?;
            for ((at, seq), bytes) in page.iter().zip(rows) {
                let bytes = bytes.ok_or_else(|| missing_row(*seq))?;
                let (row, _) = record::read_row(&bytes)?;
                if let Some(item) = items.get_mut(*at) {
                    item.1 = Rc::from(row.body.get());
                }
            }
        }
        Ok(items)
    }

    /// Appends messages (T1): durable when it returns, and only then part of the context.
    pub(crate) async fn append(&mut self, io: &Io, bodies: Vec<(Rc<str>, Size)>, batch_id: &str) -> Result<()> {
        for race in 0.. {
            let now = io.now().await?;
            let mut row = self.row.clone();
            let mut puts = Vec::with_capacity(bodies.len() + 1);
            let mut items = Vec::with_capacity(bodies.len());
            for (nth, (body, size)) in bodies.iter().enumerate() {
                let place = Place { seq: row.next_seq, index: row.messages };
                let id = format!("msg_{}", ids::id(&[batch_id.as_bytes(), &nth.to_le_bytes()]));
                row.chain = record::chain(&row.chain, body);
                if self.durable {
                    puts.push(self.log_row(&mut row, id, Kind::Message, now, body)?);
                } else {
                    row.next_seq += 1;
                }
                row.messages += 1;
                items.push(Item { body: Rc::clone(body), size: *size, origin: Origin::Message(place) });
            }
            row.pending_step = true;
            row.updated_at = now;
            row.ver += 1;
            if self.durable {
                let first = self.row.next_seq;
                puts.push((keys::session(&self.sid), record::encode(&row)?));
                let batch = Batch {
                    expect: vec![self.expect()],
                    puts,
                    deletes: Vec::new(),
                    durability: Durability::Strict,
                };
                match io.commit(batch).await {
                    Ok(()) => {}
                    Err(error) if retryable(&error) && race < RACES => {
                        self.refresh_or_new(io).await?;
                        if error.code == Code::Indeterminate && self.was_written(io, first, batch_id).await? {
                            return Ok(());
                        }
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            self.row = row;
            for item in items {
                self.context.push(item);
            }
            return Ok(());
        }
        Ok(())
    }

    /// After a batch whose fate is unknown: is its first record at or behind `first`?
    async fn was_written(&self, io: &Io, first: u64, batch_id: &str) -> Result<bool> {
        let id = format!("msg_{}", ids::id(&[batch_id.as_bytes(), &0_usize.to_le_bytes()]));
        let rows = io.read((first..self.row.next_seq).map(|seq| keys::log(&self.sid, seq)).collect()).await?;
        for bytes in rows.into_iter().flatten() {
            if record::read_row(&bytes)?.0.id == id {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn refresh_or_new(&mut self, io: &Io) -> Result<bool> {
        if self.row.ver == 0 && self.read_session_row(io).await?.is_none() {
            return Ok(false);
        }
        self.refresh(io).await
    }

    /// Serialises a log row and moves `row` behind it.
    fn log_row(
        &self,
        row: &mut SessionRow,
        id: String,
        kind: Kind,
        at: u64,
        body: &str,
    ) -> Result<(super::batch::Key, Vec<u8>)> {
        let body: &RawValue = serde_json::from_str(body)
            .map_err(|error| Error::new(Code::Poisoned, format!("a record's body is not JSON: {error}")))?;
        let (bytes, hash) = record::write_row(&LogRow {
            v: SCHEMA,
            seq: row.next_seq,
            n: row.messages,
            id,
            kind,
            at,
            prev: std::mem::take(&mut row.head),
            chain: row.chain.clone(),
            body,
        })?;
        let key = keys::log(&self.sid, row.next_seq);
        row.head = hash;
        row.next_seq += 1;
        Ok((key, bytes))
    }

    /// Commits a change of the context (T3): view, log row, offloads, job and pointer in one batch, or nothing.
    /// Messages that were appended meanwhile, here or elsewhere, stay behind it.
    ///
    /// Errors: [`Code::Conflict`] when someone else changed the context itself.
    pub(crate) async fn change(&mut self, io: &Io, mut change: Change) -> Result<()> {
        for race in 0.. {
            let mut after = self.context.clone();
            after.apply(&change.splices);
            ledger::conserve(after.items(), self.row.messages)?;
            change.cause.input = self.row.head.clone();
            if !self.durable {
                self.context = after;
                self.row.generation += 1;
                return Ok(());
            }
            let now = io.now().await?;
            let mut row = self.row.clone();
            let batch = self.change_batch(&mut row, &change, now)?;
            match io.commit(batch).await {
                Ok(()) => {
                    self.row = row;
                    self.context = after;
                    return Ok(());
                }
                Err(error) if retryable(&error) && race < RACES => {
                    let written = row.generation;
                    let head = row.head.clone();
                    if self.refresh(io).await? {
                        let ours = self.row.generation == written && self.log_head_was(io, &row, &head).await?;
                        return if ours { Ok(()) } else { Err(conflict()) };
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Was the log row before `row.next_seq` the one with this hash?
    async fn log_head_was(&self, io: &Io, row: &SessionRow, head: &str) -> Result<bool> {
        let Some(seq) = row.next_seq.checked_sub(1) else { return Ok(false) };
        let rows = io.read(vec![keys::log(&self.sid, seq)]).await?;
        match rows.into_iter().next().flatten() {
            Some(bytes) => Ok(record::read_row(&bytes)?.1 == head),
            None => Ok(false),
        }
    }

    fn change_batch(&self, row: &mut SessionRow, change: &Change, now: u64) -> Result<Batch> {
        row.generation += 1;
        let generation = row.generation;
        let note = serde_json::json!({ "view": generation, "rung": change.cause.rung }).to_string();
        let id = format!("view_{}", ids::id(&[row.head.as_bytes(), &generation.to_le_bytes()]));
        let mut puts = vec![self.log_row(row, id, Kind::View, now, &note)?];
        row.tail_from = row.next_seq;
        row.updated_at = now;
        row.ver += 1;
        let (whole, splices) = record::store_change(&self.context, &change.splices, generation)?;
        let view = ViewRow {
            v: SCHEMA,
            generation,
            to: row.tail_from,
            messages: row.messages,
            appended: self.appended(),
            whole,
            splices,
            cause: change.cause.clone(),
        };
        puts.push((keys::view(&self.sid, generation), record::encode(&view)?));
        for blob in &change.blobs {
            super::offloads::put(&self.sid, blob, &mut puts)?;
        }
        if let Some(job) = &change.job {
            let done = serde_json::json!({ "v": SCHEMA, "state": "done", "generation": generation });
            puts.push((keys::job(&self.sid, job), record::encode(&done)?));
        }
        puts.push((keys::session(&self.sid), record::encode(&row)?));
        Ok(Batch { expect: vec![self.expect()], puts, deletes: Vec::new(), durability: Durability::Strict })
    }

    /// Runs of messages behind the current view: first position, first index, count.
    fn appended(&self) -> Vec<(u64, usize, usize)> {
        let mut runs: Vec<(u64, usize, usize)> = Vec::new();
        for item in self.context.items() {
            let Some(place) = item.origin.place().filter(|place| place.seq >= self.row.tail_from) else { continue };
            match runs.last_mut() {
                Some((seq, index, count))
                    if *seq + *count as u64 == place.seq && *index + *count == place.index =>
                {
                    *count += 1;
                }
                _ => runs.push((place.seq, place.index, 1)),
            }
        }
        runs
    }

    /// Notes that a summary is being asked for (T2). Advisory: nothing depends on it.
    pub(crate) async fn begin_job(&self, io: &Io, job: &str, lease_ms: u64) -> Result<()> {
        if !self.durable {
            return Ok(());
        }
        let now = io.now().await?;
        let prepared = serde_json::json!({
            "v": SCHEMA, "state": "prepared", "baseGeneration": self.row.generation, "to": self.row.next_seq,
            "input": self.row.head, "at": now, "lease": now.saturating_add(lease_ms),
        });
        io.commit(Batch {
            expect: Vec::new(),
            puts: vec![(keys::job(&self.sid, job), record::encode(&prepared)?)],
            deletes: Vec::new(),
            durability: Durability::Relaxed,
        })
        .await
    }
}

fn missing_row(seq: u64) -> Error {
    Error::new(Code::StoreCorrupt, format!("row {seq} of the log is missing"))
}

fn conflict() -> Error {
    Error::new(Code::Conflict, "another tab or process changed this session's context meanwhile; try again")
}

fn retryable(error: &Error) -> bool {
    matches!(error.code, Code::Conflict | Code::Indeterminate)
}

/// What a message costs, by the session's one counter, and what it holds.
pub(crate) async fn measure(
    io: &Io,
    settings: &Settings,
    format: Format,
    whose: Whose,
    body: &Rc<str>,
) -> Result<Size> {
    let value = wire::parse(0, body)?;
    let message = format.wire().read(0, &value)?;
    let mut size = size_of(settings, &message);
    if settings.app_counts {
        size.tokens = io.count(whose, body).await?;
    }
    Ok(size)
}

/// What a message costs by the estimator, and what it holds.
pub(crate) fn size_of(settings: &Settings, message: &Message<'_>) -> Size {
    Size { tokens: settings.estimator.message(message), role: message.role, calls: message.calls().count() }
}
