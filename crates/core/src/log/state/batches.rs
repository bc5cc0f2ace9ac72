//! The batches that the changes of a session make. Every one expects the session's row as it was read.

use super::super::record::{
    self, Cause, LogRow, NameRow, RowKind, SCHEMA, SessionRow, ViewNote, ViewRow, WholeView, WrittenRow,
};
use super::super::staging::rows_of;
use super::super::terms::Unindexed;
use super::super::wide::{LargeRow, is_wide};
use super::super::{keyed, packed, seal};
use super::{ContextChange, FormatDecision, PendingMessage, State};
use crate::context::{Item, Origin, Place};
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Batch, Durability, Key, keys};
use crate::keys::ids;
use serde_json::value::RawValue;
use std::rc::Rc;

/// What a batch that appends does besides log rows: the session's row and its name, each expected and put, and what of the
/// row changes seldom.
pub(crate) const APPEND_OVERHEAD_OPS: usize = 5;

/// A batch that appends messages.
pub(crate) struct AppendBatch<'b> {
    pub(crate) batch: Batch,
    /// Rows of which the batch has only what stands in their places.
    pub(crate) large: Vec<LargeRow<'b>>,
    /// The row after it.
    pub(crate) row: SessionRow,
    /// What it adds to the context.
    pub(crate) items: Vec<Item>,
    /// Messages in no page of terms after it.
    pub(crate) unindexed: Unindexed,
}

impl State {
    /// The row as it is after a commit.
    pub(in crate::log) fn next_row(&self, now: u64) -> SessionRow {
        let v = self.row.v.max(SCHEMA);
        let (calibrations, secrets) = (self.calibrations.clone(), self.secrets.borrow().clone());
        let (ver, spent) = (self.row.ver + 1, self.spent());
        SessionRow { v, ver, updated_at: now, calibrations, secrets, spent, ..self.row.clone() }
    }

    pub(in crate::log) fn batch(&self, row: &mut SessionRow, mut puts: Vec<(Key, Vec<u8>)>) -> Result<Batch> {
        puts.extend(seal::write(&self.sid, row));
        let mut expect = vec![(keys::session(&self.sid), (self.row.ver > 0).then_some(self.row.ver))];
        if self.row.ver == 0 {
            // The first commit takes the name.
            let name = keys::name(&self.row.id);
            let row = NameRow::new(&self.row.id, &self.sid);
            puts.push((name.clone(), seal::write_name(&row)?));
            expect.push((name, None));
        } else {
            // A row that the platform took and that was made again of the log counts its versions anew, so that a handle of
            // before may hold one that is given a second time. It does not know of what was appended since. A store
            // that went back and on to the same version and length is known by its last hash alone: prepares compare that.
            expect.push((keys::log(&self.sid, self.row.next_seq), None));
        }
        Ok(Batch { expect, puts, deletes: Vec::new(), durability: Durability::Strict })
    }

    /// The batch that appends messages (T1).
    pub(crate) fn append_batch<'b>(
        &self,
        settled: &FormatDecision,
        bodies: &'b [PendingMessage],
        batch_id: &str,
        now: u64,
    ) -> Result<AppendBatch<'b>> {
        let mut row = self.next_row(now);
        if settled.sure {
            row.format = Some(settled.format);
        }
        row.pending_step = true;
        // Who appends has opened the session, and was told.
        row.losses.clear();
        let mut puts = Vec::with_capacity(bodies.len());
        let mut large = Vec::new();
        let mut items = Vec::with_capacity(bodies.len());
        for (nth, PendingMessage { body, size, pinned, .. }) in bodies.iter().enumerate() {
            if *pinned {
                row.pin(row.messages, size.tokens);
            }
            let place = Place { seq: row.next_seq, index: row.messages };
            row.chain = record::chain(&row.chain, body);
            if self.durable {
                let id = record_id(batch_id, nth);
                let (key, written) = self.written_row(&mut row, id, RowKind::Message, now, body)?;
                if is_wide(&key, written.bytes()) {
                    let row = LargeRow::new(key, written);
                    puts.push(row.stands());
                    large.push(row);
                } else {
                    puts.push((key, written.whole()));
                }
            } else {
                row.next_seq += 1;
            }
            row.messages += 1;
            row.tokens += size.tokens;
            items.push(Item::new(Rc::clone(body), *size, Origin::Message(place)));
        }
        let known: Vec<_> = bodies.iter().map(|message| message.known).collect();
        self.append_keys(&mut row, settled.format, &known);
        let mut unindexed = Unindexed::default();
        if self.durable {
            let taken =
                bodies.iter().map(|message| rows_of(&message.body)).sum::<usize>() + APPEND_OVERHEAD_OPS;
            let room = self.max_batch_ops.saturating_sub(taken);
            let (pages, left) = self.unindexed.append(&self.sid, settled.format, &items, room)?;
            puts.extend(pages);
            unindexed = left;
        }
        let batch = self.batch(&mut row, puts)?;
        Ok(AppendBatch { batch, large, row, items, unindexed })
    }

    /// Serialises a log row and moves `row` behind it.
    pub(crate) fn log_row(
        &self,
        row: &mut SessionRow,
        id: String,
        kind: RowKind,
        at: u64,
        body: &str,
    ) -> Result<(Key, Vec<u8>)> {
        let (key, written) = self.written_row(row, id, kind, at, body)?;
        Ok((key, written.whole()))
    }

    /// The same with its body where that is.
    fn written_row<'b>(
        &self,
        row: &mut SessionRow,
        id: String,
        kind: RowKind,
        at: u64,
        body: &'b str,
    ) -> Result<(Key, WrittenRow<'b>)> {
        let body: &RawValue = serde_json::from_str(body)
            .map_err(|error| Error::new(Code::Poisoned, format!("a record's body is not JSON: {error}")))?;
        let (written, hash) = record::write_row(&LogRow {
            v: SCHEMA,
            seq: row.next_seq,
            n: row.messages,
            id,
            kind,
            at,
            prev: std::mem::take(&mut row.head),
            chain: row.chain.clone(),
            body,
        });
        let keyed = keyed::row(&self.sid, row.next_seq, written);
        row.head = hash;
        row.next_seq += 1;
        Ok(keyed)
    }

    /// The batch that changes the context (T3) and the row after it: view, log row, offloads, job and pointer.
    /// `commit_id` is new for every change, so that two that are alike are told apart.
    pub(crate) fn change_batch(
        &self,
        change: &ContextChange,
        commit_id: &str,
        now: u64,
    ) -> Result<(Batch, SessionRow)> {
        let mut row = self.next_row(now);
        row.generation += 1;
        change.note(&mut row, now);
        if let Some(left) = &change.left {
            self.change_keys(&mut row, left);
        }
        let generation = row.generation;
        row.tail_from = row.next_seq + 1;
        let base = self.row.whole.filter(|known| known.stands(generation));
        let (whole, splices) = record::store_change(&self.context, &change.splices, base.is_none());
        let base = base.filter(|_| whole.is_none());
        let view = ViewRow {
            v: record::version_of(whole.as_deref(), &splices),
            generation,
            to: row.tail_from,
            messages: row.messages,
            appended: self.appended(),
            base: base.map(|known| known.view),
            whole,
            splices,
            left: change.left.clone().unwrap_or_else(|| self.context.left().to_vec()),
            cause: change.cause.clone(),
        };
        let view = record::encode(&view);
        let Cause { rung, snapshot, undoes_to, .. } = change.cause.clone();
        let sha256 = Some(ids::sha256_hex(&view));
        let note = ViewNote { view: generation, rung, snapshot, undoes_to, sha256 };
        let note = String::from_utf8_lossy(&record::encode(&note)).into_owned();
        let id = view_id(commit_id, &row.head);
        let mut puts = vec![self.log_row(&mut row, id, RowKind::View, now, &note)?];
        let view = packed::row(&self.sid, generation, view);
        row.whole = Some(WholeView::after(base, generation, view.1.len()));
        puts.push(view);
        for blob in change.blobs.iter().filter(|blob| !blob.is_big()) {
            puts.extend(blob.rows_of(&self.sid)?);
        }
        // Beside the session's row, what it is of, and the job that this ends.
        if puts.len() + APPEND_OVERHEAD_OPS < self.max_batch_ops {
            puts.extend(self.facts.clone());
        }
        let mut batch = self.batch(&mut row, puts)?;
        if let Some(job) = &change.job {
            let room = self.max_batch_ops.saturating_sub(batch.expect.len() + batch.puts.len());
            job.close(&self.sid, generation, room, &mut batch)?;
        }
        Ok((batch, row))
    }

    /// The batch that changes nothing but the session's row, and the row after it. As long as the row was mended and nothing
    /// was appended since, the log moves on with it: a handle of before may hold a version that is given a second time, and
    /// would write over the change.
    pub(crate) fn row_batch(
        &self,
        now: u64,
        update: impl Fn(&mut SessionRow, u64) -> Result<()>,
    ) -> Result<(Batch, SessionRow)> {
        let mut row = self.next_row(now);
        update(&mut row, now)?;
        let mut puts = Vec::new();
        if !row.losses.is_empty() {
            puts.push(self.note_mended(&mut row, now)?);
        }
        let batch = self.batch(&mut row, puts)?;
        Ok((batch, row))
    }

    /// The batch that writes `puts` beside the session's row, and the row after it.
    pub(crate) fn row_batch_with(&self, now: u64, puts: Vec<(Key, Vec<u8>)>) -> Result<(Batch, SessionRow)> {
        let mut row = self.next_row(now);
        let batch = self.batch(&mut row, puts)?;
        Ok((batch, row))
    }

    /// Runs of messages behind the current view: first position, first index, count.
    fn appended(&self) -> Vec<(u64, usize, usize)> {
        let mut runs: Vec<(u64, usize, usize)> = Vec::new();
        let places = self.context.items().iter().filter_map(|item| item.origin.place());
        for place in places.filter(|place| place.seq >= self.row.tail_from) {
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
}

/// The id of the log row of a view that follows the row with hash `head`: the same at each attempt there.
pub(in crate::log) fn view_id(commit_id: &str, head: &str) -> String {
    format!("view_{}", ids::id(&[commit_id.as_bytes(), head.as_bytes()]))
}

/// The id of the nth record of a batch.
pub(crate) fn record_id(batch_id: &str, nth: usize) -> String {
    format!("msg_{}", ids::id(&[batch_id.as_bytes(), &nth.to_le_bytes()]))
}
