//! Erasing a message for good (`D24`). All that stays of the session is rewritten under other keys: the log with an empty
//! message in its place, the views with their summaries, the offloads of the other messages. One commit then gives the
//! session's name to the new rows and takes it from the old ones, which go after that; what stops on the way leaves the
//! message whole or erased, and the next opening removes the rows to which no name leads. Nothing is changed in place, so
//! every chain and hash holds as in any other session.

use super::fork::begin_staging;
use super::operations::Session;
use crate::checkpoint::Goal;
use crate::compaction;
use crate::context::{CoveredRange, Erased, Item, Offload, Origin, Size};
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Batch, Durability, Key, KeyPart, keys};
use crate::keys::ids;
use crate::log::deletion::remove_rows;
use crate::log::record::{self, LogRow, RowKind, SessionRow, StoredItem, ViewNote, load_items, store_items};
use crate::log::renamed::{StagingRow, renamed, sweep_all};
use crate::log::retry::{Tried, conflict, retry, retryable};
use crate::log::snapshots::SnapshotNote;
use crate::log::stored::{PAGE, commit_again, name_row, page, place_of};
use crate::log::{LogReader, SCHEMA, SessionGuard, Walk, keyed, offloads, packed, seal, wide};
use crate::message::Role;
use crate::redact::{Erasure, Own};
use crate::step::{Effect, Io, LogLevel, Machine, Progress, Stage};
use crate::tokens::Bounds;
use crate::wire;
use serde_json::value::RawValue;
use std::rc::Rc;

impl Session {
    /// Removes what message `index` said, for good: from the log, the context, summaries, snapshots and offloads. An empty
    /// message with its hash and `reason` stays. Durable when it ends, and what is left of the old rows is gone.
    ///
    /// Errors: [`Code::InvalidOption`] for an index of no message; [`Code::StoreCorrupt`] when the message cannot be read;
    /// those of the store: the message is whole then, or erased where [`Code::Indeterminate`] says that nobody knows.
    pub fn erase(&self, index: usize, reason: String) -> Machine<()> {
        let slot = self.slot.clone();
        Machine::new(move |io| async move {
            let guard = slot.take()?;
            retry(&io, None, async |_| {
                guard.catch_up(&io).await?;
                guard.store_changes(&io).await?;
                if index >= guard.messages() {
                    let what = format!("there are {} messages, counted from 0", guard.messages());
                    return Err(Error::option("index", what).at(index));
                }
                if guard.state().row.is_erased(index) {
                    // Who erased it may not have come to the end.
                    let (formerly, most) = (guard.state().row.formerly.clone(), guard.state().max_batch_ops);
                    return sweep_all(&io, &formerly, most).await.map(Tried::Done);
                }
                // Nobody can take it out of what the provider made of it.
                compaction::dissolve_around(&io, &guard, index).await?;
                let (id, sid) = (guard.state().row.id.clone(), guard.state().sid.clone());
                match erase(&io, &guard, index, &reason).await {
                    Err(error) if retryable(&error) => Ok(Tried::Lost(conflict(), None)),
                    // Another one erased something meanwhile, and removed the rows that were being read.
                    Err(_) if renamed(&io, &id, &sid).await?.is_some() => Ok(Tried::Lost(conflict(), None)),
                    done => done.map(Tried::Done),
                }
            })
            .await
        })
    }
}

async fn erase(io: &Io, guard: &SessionGuard, index: usize, reason: &str) -> Result<()> {
    let place = place_of(io, guard, index).await?;
    let log = LogReader::of(&guard.state());
    let body = log.body(io, place).await?;
    let now = io.now().await?;
    let sid = ids::id(&[b"sid", io.new_id().await?.as_bytes()]);
    let (old, most) = (guard.state().sid.clone(), guard.state().max_batch_ops);
    let note = begin_staging(io, &sid, Some(old.clone()), now).await?;
    let written = async {
        let erasure = erasure(io, guard, index, &body).await?;
        let mut copy = ErasedCopy::new(io, guard, &erasure, &sid);
        copy.all().await?;
        let mut row = copy.row;
        row.erased.push(Erased {
            index,
            sha256: ids::sha256_hex(body.as_bytes()),
            at: now,
            reason: reason.into(),
        });
        row.formerly.push(old.clone());
        row.pins.retain(|pin| *pin != index);
        row.updated_at = now;
        rename(io, guard, &sid, row).await
    };
    if let Err(error) = written.await {
        // It may have been written all the same.
        let id = guard.state().row.id.clone();
        if name_row(io, &id).await?.is_some_and(|name| name.sid == sid) {
            return follow_to(io, guard, most).await;
        }
        // What is left where this fails goes with the next fork.
        if remove_rows(io, &sid, most).await.is_ok() {
            let _ = commit_again(io, batch(Vec::new(), Vec::new(), vec![note])).await;
        }
        return Err(error);
    }
    follow_to(io, guard, most).await
}

/// What only this message says: all others are read for it.
async fn erasure(io: &Io, guard: &SessionGuard, index: usize, body: &str) -> Result<Erasure> {
    let format = guard.format();
    let mut own = Own::of(format, index, body)?;
    let (sid, rows) = (guard.state().sid.clone(), guard.state().row.next_seq);
    let mut walk = Walk::at(0, 0);
    while let Some(page) = walk.page(io, &sid, rows).await? {
        for (seq, bytes) in page {
            match walk.row(seq, &bytes)? {
                Some((_, row)) if row.kind == RowKind::Message && row.n != index => {
                    own.share(format, row.n, row.body.get())?;
                }
                _ => {}
            }
        }
        rest(io, guard, walk.next, rows * 2).await?;
    }
    Ok(Erasure { index, blank: wire::blank(format, index, body)?.into(), own })
}

/// Gives the session's name to its new rows. The old ones are nobody's from then on, and a note leads to them.
async fn rename(io: &Io, guard: &SessionGuard, sid: &str, mut row: SessionRow) -> Result<()> {
    let (old, ver) = (guard.state().sid.clone(), guard.state().row.ver);
    let name =
        name_row(io, &row.id).await?.filter(|name| name.sid == old && !name.deleted).ok_or_else(conflict)?;
    let (new, note, left) = (keys::session(sid), keys::staging(sid), keys::staging(&old));
    let staged = StagingRow { v: SCHEMA, sid: old.clone(), at: 0, of: None };
    let ver_of_name = name.ver;
    let renamed = record::NameRow { sid: sid.into(), ver: name.ver + 1, ..name };
    io.commit(Batch {
        expect: vec![
            (keys::session(&old), Some(ver)),
            (new, None),
            (note.clone(), Some(1)),
            (keys::name(&row.id), Some(ver_of_name)),
        ],
        puts: [
            seal::write_new(sid, &mut row),
            vec![(left, record::encode(&staged)), (keys::name(&row.id), seal::write_name(&renamed)?)],
        ]
        .concat(),
        deletes: vec![note, keys::session(&old), keys::notes(&old)],
        durability: Durability::Strict,
    })
    .await
}

/// Goes on with the new rows, and removes the old ones.
async fn follow_to(io: &Io, guard: &SessionGuard, most: usize) -> Result<()> {
    let mut copy = guard.state().clone();
    if !copy.follow(io).await? {
        return Err(conflict());
    }
    copy.mark(io);
    let formerly = copy.row.formerly.clone();
    *guard.state_mut() = copy;
    io.log(LogLevel::Info, "Erased a message, and wrote the session anew without it");
    sweep_all(io, &formerly, most).await
}

fn batch(expect: Vec<(Key, Option<u64>)>, puts: Vec<(Key, Vec<u8>)>, deletes: Vec<Key>) -> Batch {
    Batch { expect, puts, deletes, durability: Durability::Strict }
}

/// Reports how far it is, and lets others run.
async fn rest(io: &Io, guard: &SessionGuard, done: u64, total: u64) -> Result<()> {
    let tokens = guard.tokens();
    let (done, total) = (done as usize, total as usize);
    io.tell(Effect::Progress(Progress {
        stage: Stage::Erase,
        done,
        total,
        previous_tokens: tokens,
        current_tokens: tokens,
    }));
    io.pause(0).await.map_err(|failure| failure.into_error(Code::Aborted))
}

/// The rows of a session on their way to other keys.
struct ErasedCopy<'a> {
    io: &'a Io,
    guard: &'a SessionGuard,
    erasure: &'a Erasure,
    /// What the rows are called now, and will be.
    old: String,
    new: &'a str,
    /// The session's row: its end of the log is as far as the copy is.
    row: SessionRow,
    /// Views so far.
    views: u64,
    puts: Vec<(Key, Vec<u8>)>,
    bytes: usize,
}

impl<'a> ErasedCopy<'a> {
    fn new(io: &'a Io, guard: &'a SessionGuard, erasure: &'a Erasure, new: &'a str) -> Self {
        let state = guard.state();
        let (old, mut row) = (state.sid.clone(), state.row.clone());
        (row.head, row.chain) = (String::new(), String::new());
        // It is of what the message said.
        row.known = None;
        row.goal = row.goal.map(|goal| without(erasure, goal));
        row.ver = 1;
        ErasedCopy { io, guard, erasure, old, new, row, views: 0, puts: Vec::new(), bytes: 0 }
    }

    async fn all(&mut self) -> Result<()> {
        let (rows, messages) = (self.row.next_seq, self.row.messages);
        let (head, chain) = (self.guard.state().row.head.clone(), self.guard.state().row.chain.clone());
        let mut walk = Walk::at(0, 0);
        while let Some(page) = walk.page(self.io, &self.old, rows).await? {
            for (seq, bytes) in page {
                let Some((gap, row)) = walk.row(seq, &bytes)? else { continue };
                self.log_row(&row, gap.is_some()).await?;
                self.flush(PAGE).await?;
            }
            rest(self.io, self.guard, rows + walk.next, rows * 2).await?;
        }
        if walk.end(rows, messages).is_some() {
            (self.row.head, self.row.chain) = (head, chain);
        }
        // Those whose rows of the log are lost.
        for number in self.views + 1..=self.row.generation {
            if let Some(view) = self.view(number).await? {
                self.put(packed::row(self.new, number, view));
            }
        }
        self.offloads().await?;
        self.flush(0).await
    }

    async fn log_row(&mut self, row: &LogRow<'_>, is_behind_gap: bool) -> Result<()> {
        let body = match row.kind {
            RowKind::Message if row.n == self.erasure.index => Some(self.erasure.blank.to_string()),
            RowKind::Message => None,
            RowKind::Snapshot => {
                let note: Option<SnapshotNote> = crate::wire::record::from_str(row.body.get()).ok();
                note.map(|note| self.snapshot(note))
            }
            RowKind::View => self.view_note(row).await?,
        };
        let raw = body.map(|body| RawValue::from_string(body).map_err(unwritable)).transpose()?;
        let body: &RawValue = raw.as_deref().unwrap_or(row.body);
        // No hash covers what comes after a gap.
        let (prev, chain) = match (is_behind_gap, row.kind) {
            (true, _) => (row.prev.clone(), row.chain.clone()),
            (false, RowKind::Message) => {
                (std::mem::take(&mut self.row.head), record::chain(&self.row.chain, body.get()))
            }
            (false, _) => (std::mem::take(&mut self.row.head), self.row.chain.clone()),
        };
        let (v, seq, n, kind, at) = (row.v, row.seq, row.n, row.kind, row.at);
        let written = LogRow { v, seq, n, id: row.id.clone(), kind, at, prev, chain: chain.clone(), body };
        let (written, hash) = record::write_row(&written);
        (self.row.head, self.row.chain) = (hash, chain);
        let (key, written) = keyed::row(self.new, row.seq, written);
        self.put((key, written.whole()));
        Ok(())
    }

    fn snapshot(&self, note: SnapshotNote) -> String {
        let goal = note.goal.map(|goal| without(self.erasure, goal));
        crate::wire::record::to_text(&SnapshotNote { goal, ..note })
    }

    /// The body of a row that has a view, and the view.
    async fn view_note(&mut self, row: &LogRow<'_>) -> Result<Option<String>> {
        let Some(noted) = ViewNote::of(row) else { return Ok(None) };
        self.views = noted.view;
        let Some(view) = self.view(noted.view).await? else { return Ok(None) };
        let snapshot = record::decode_view(&view)?.cause.snapshot;
        let (number, sha256) = (noted.view, Some(ids::sha256_hex(&view)));
        let note = crate::wire::record::to_text(&ViewNote { snapshot, sha256, ..noted });
        self.put(packed::row(self.new, number, view));
        Ok(Some(note))
    }

    /// A view without the message; `None` where it cannot be read.
    async fn view(&self, number: u64) -> Result<Option<Vec<u8>>> {
        let stored =
            wide::read(self.io, vec![keys::view(&self.old, number)]).await?.into_iter().next().flatten();
        let Ok(mut view) = record::decode_view(&stored.unwrap_or_default()) else {
            return Ok(None);
        };
        if let Some(whole) = view.whole.take() {
            view.whole = Some(self.items(whole).await?);
        }
        for splice in &mut view.splices {
            splice.insert = self.items(std::mem::take(&mut splice.insert)).await?;
        }
        if !view.cause.input.is_empty() {
            view.cause.input.clone_from(&self.row.head);
        }
        Ok(Some(record::encode(&view)))
    }

    async fn items(&self, stored: Vec<StoredItem>) -> Result<Vec<StoredItem>> {
        let heirs: Vec<String> = stored.iter().filter_map(StoredItem::heir).map(Into::into).collect();
        let mut items = Vec::new();
        for (origin, body) in load_items(stored) {
            items.push(self.item(origin, body.unwrap_or_else(|| "null".into())).await?);
        }
        let mut stored = store_items(&items);
        // They inherit from views that are without the message, too.
        for item in &mut stored {
            if let StoredItem::Summary { checkpoint, inherits, .. } = item {
                *inherits = heirs.contains(checkpoint);
            }
        }
        Ok(stored)
    }

    async fn item(&self, origin: Origin, body: Rc<str>) -> Result<Item> {
        let index = self.erasure.index;
        let (origin, body) = match origin {
            Origin::Edited { place, .. } if place.index == index => (Origin::Message(place), body),
            // What differs from the message quotes it.
            Origin::Edited { place, ref offloads, .. } if leans_on(offloads, index) => {
                (Origin::Message(place), body)
            }
            Origin::Summary { checkpoint, covers, quotes, prose, made } => {
                let without = |cover: &CoveredRange| {
                    let offloads = cover.offloads.iter().filter(|(of, _)| *of != index).cloned().collect();
                    CoveredRange { offloads, ..*cover }
                };
                let covers = covers.iter().map(without).collect();
                let origin = Origin::Summary { checkpoint, covers, quotes, prose, made };
                compaction::erased(self.guard.format(), origin, body, self.erasure)?
            }
            other => (other, body),
        };
        // Sizes are not stored.
        let texts = Bounds::default();
        let size =
            Size { tokens: 0, role: Role::User, calls: 0, results: 0, is_bound: false, clearable: 0, texts };
        Ok(Item::new(body, size, origin))
    }

    /// The offloads of the other messages. Pages of terms are made again when they are searched.
    async fn offloads(&mut self) -> Result<()> {
        let mut last: Option<String> = None;
        while let Some(reference) = offloads::next(self.io, &self.old, last.as_deref()).await? {
            let head = offloads::head(self.io, &self.old, &reference).await?;
            // One that does not say whose it is may be of the message.
            if head.is_some_and(|head| head.index != self.erasure.index) {
                let (prefix, mut after) = (keys::parts(&self.old, &reference), None);
                loop {
                    let rows = page(self.io, prefix.clone(), after, false).await?;
                    let Some((end, _)) = rows.last() else { break };
                    after = Some(end.clone());
                    for (key, bytes) in rows {
                        self.put((renamed_key(key, self.new), bytes));
                    }
                    self.flush(PAGE).await?;
                }
            }
            last = Some(reference);
        }
        Ok(())
    }

    fn put(&mut self, row: (Key, Vec<u8>)) {
        self.bytes += row.1.len();
        self.puts.push(row);
    }

    /// Writes what waits when it is more than `bytes`.
    async fn flush(&mut self, bytes: usize) -> Result<()> {
        let most = self.guard.state().max_batch_ops.saturating_sub(1).clamp(1, 1_000);
        if self.bytes < bytes && self.puts.len() < most {
            return Ok(());
        }
        self.bytes = 0;
        let puts = wide::beside(self.new, std::mem::take(&mut self.puts), Vec::new());
        for page in puts.chunks(most) {
            let expect = vec![(keys::staging(self.new), Some(1))];
            commit_again(self.io, batch(expect, page.to_vec(), Vec::new())).await?;
        }
        Ok(())
    }
}

fn leans_on(offloads: &[Offload], index: usize) -> bool {
    offloads.iter().any(|offload| offload.basis.is_some_and(|basis| basis.index == index))
}

fn renamed_key(mut key: Key, sid: &str) -> Key {
    if let Some(part) = key.0.get_mut(1) {
        *part = KeyPart::Text(sid.into());
    }
    key
}

/// A goal without what only the message says.
fn without(erasure: &Erasure, goal: Goal) -> Goal {
    fn texts(value: &mut serde_json::Value, erasure: &Erasure) {
        match value {
            serde_json::Value::String(text) if erasure.is_in(text) => *text = erasure.without(text),
            serde_json::Value::Array(items) => items.iter_mut().for_each(|item| texts(item, erasure)),
            serde_json::Value::Object(fields) => fields.values_mut().for_each(|field| texts(field, erasure)),
            _ => {}
        }
    }
    // As texts, which every record is written to and read from anyway.
    let Ok(mut value) = serde_json::from_str(&wire::record::to_text(&goal)) else { return goal };
    texts(&mut value, erasure);
    wire::record::from_str(&value.to_string()).unwrap_or(goal)
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::new(Code::Poisoned, format!("a record could not be written: {error}"))
}
