//! Blobs that are too large for the transaction that refers to them (T1'): their parts come first, in several, under a job
//! of their own. The batch that refers to a blob ends its job, and holds only as long as the job is this caller's. So a
//! blob with a job is referred to by nothing, and one without is whole.

use super::guard::SessionGuard;
use super::jobs::JobRow;
use super::offloads::{NewBlob, PART};
use super::record::{self, SCHEMA};
use super::stage::{LargeRows, StagedJob, TO_UPKEEP};
use super::state::ContextChange;
use super::stored::commit_again;
use super::wide::{self, LargeRow};
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Batch, Durability, Key, keys};
use crate::step::{Io, Scan};

/// Larger blobs are staged, in bytes.
pub(crate) const BIG: usize = 8 << 20;
/// Parts of a blob that nobody went on with for this long are removed, in ms.
const LEASE: u64 = 3_600_000;
/// Keys that one read returns.
const KEYS: usize = 1_000;

/// What the log says about a message besides is less than this, in bytes.
const ABOUT: usize = 4 << 10;

/// Rows that a message takes in the batch that appends it, at most.
pub(crate) fn rows_of(body: &str) -> usize {
    match body.len() + ABOUT {
        bytes if bytes <= PART => 1,
        bytes if bytes > BIG + ABOUT => 3,
        bytes => bytes.div_ceil(PART) + 1,
    }
}

impl SessionGuard {
    /// Writes a batch of this session, with whatever of it is too large for one value or for one batch in parts of their
    /// own. `large` are rows of which the batch has only what stands in their places, `change` is the one that it makes.
    ///
    /// Errors: those of the store and of `check_new`; [`Code::TooLarge`] when the rest is still more than one batch holds, and then nothing
    /// was written.
    pub(super) async fn commit(
        &self,
        io: &Io,
        mut batch: Batch,
        large: Vec<LargeRow<'_>>,
        change: Option<&ContextChange>,
    ) -> Result<()> {
        self.check_new(io).await?;
        let (sid, most) = {
            let state = self.state();
            (state.sid.clone(), state.max_batch_ops)
        };
        let blobs: &[NewBlob] = change.map_or(&[], |change| &change.blobs);
        let big: Vec<&NewBlob> = blobs.iter().filter(|blob| blob.is_big()).collect();
        let rows: Vec<_> = wide::apart(std::mem::take(&mut batch.puts), large).collect();
        let of_parts: usize = rows.iter().flat_map(|(large, _)| large).map(LargeRow::operations).sum();
        let needed = batch.expect.len() + batch.deletes.len() + big.len() * 2 + rows.len() + of_parts;
        if needed > most {
            let what = format!(
                "it takes {needed} operations in one batch, and the store takes {most}: pass fewer or smaller messages \
                 at once"
            );
            return Err(Error::new(Code::TooLarge, what));
        }
        let mut staged = Vec::new();
        for blob in big {
            let reference = &blob.offload.reference;
            let rows = Box::new(blob.rows_of(&sid)?);
            staged.extend((TO_UPKEEP.enter(io).await?.stage)(self, io, reference, rows).await?);
        }
        for (large, put) in rows {
            match large {
                Some(row) if row.is_big() => {
                    let parts = Box::new(row.parts(&sid));
                    staged.extend((TO_UPKEEP.enter(io).await?.stage)(self, io, row.id(), parts).await?);
                }
                Some(row) => batch.puts.extend(row.parts(&sid)),
                None => {}
            }
            batch.puts.push(put);
        }
        for (job, ver) in staged {
            batch.expect.push((job.clone(), Some(ver)));
            batch.deletes.push(job);
        }
        io.commit(batch).await
    }

    /// Writes the rows of a blob, some at a time: the job that has them, and its version. Nothing where the blob is there:
    /// what it is called says what it is.
    ///
    /// Errors: [`Code::Conflict`] when the session was changed since it was read, or someone else writes the same blob.
    pub(super) async fn stage(&self, io: &Io, blob: &str, rows: LargeRows<'_>) -> Result<StagedJob> {
        let (sid, most, session) = {
            let state = self.state();
            (state.sid.clone(), state.max_batch_ops, (keys::session(&state.sid), Some(state.row.ver)))
        };
        let job = keys::job(&sid, blob);
        let mut rows = rows.peekable();
        let first = rows.peek().map_or_else(|| job.clone(), |(key, _)| key.clone());
        // At one moment: in between, others might end the job or sweep the parts.
        let mut found = wide::read(io, vec![job.clone(), first]).await?.into_iter();
        let before = match (found.next().flatten(), found.next().flatten()) {
            (Some(bytes), _) => match record::decode(&bytes, "job") {
                Ok(JobRow::Staging { ver, .. }) => Some(ver),
                Ok(_) => return Err(Error::new(Code::StoreCorrupt, "the job of a blob is another one")),
                // What is damaged does not say its version: it is begun anew, and whoever else goes on with it finds it gone.
                Err(error) if error.code == Code::StoreCorrupt => {
                    let (expect, puts) = Default::default();
                    let (deletes, durability) = (vec![job.clone()], Durability::Relaxed);
                    io.commit(Batch { expect, puts, deletes, durability }).await?;
                    None
                }
                Err(error) => return Err(error),
            },
            (None, Some(bytes)) if !bytes.is_empty() => return Ok(None),
            (None, _) => None,
        };
        let ver = before.unwrap_or(0) + 1;
        let lease = io.now().await?.saturating_add(LEASE);
        let begun = record::encode(&JobRow::Staging { v: SCHEMA, ver, lease });
        // Only while the session is as it was read: what others referred to since must not be taken for a leftover.
        let mut expect = vec![session, (job.clone(), before)];
        let mut puts = vec![(job.clone(), begun)];
        let mut bytes = 0;
        let durability = Durability::Relaxed;
        for (key, value) in rows {
            if bytes + value.len() > BIG || puts.len() + expect.len() >= most {
                let batch = Batch {
                    expect: std::mem::replace(&mut expect, vec![(job.clone(), Some(ver))]),
                    puts: std::mem::take(&mut puts),
                    deletes: Vec::new(),
                    durability,
                };
                io.commit(batch).await?;
                bytes = 0;
            }
            bytes += value.len();
            puts.push((key, value));
        }
        io.commit(Batch { expect, puts, deletes: Vec::new(), durability }).await?;
        Ok(Some((job, ver)))
    }

    /// A session that is not in the store yet is begun before anything is staged in it: else nothing would lead there.
    pub(crate) async fn begin_for(&self, io: &Io, bytes: usize) -> Result<()> {
        if bytes <= BIG || self.state().row.ver > 0 || !self.state().durable {
            return Ok(());
        }
        self.update_row(io, |_, _| Ok(())).await
    }
}

/// Removes the parts of a blob that nobody went on with (R6). The job goes with the last of them: whoever still writes the
/// blob finds it changed.
pub(super) async fn sweep(io: &Io, (sid, most): (&str, usize), job: &Key, ver: u64, now: u64) -> Result<()> {
    let Some(blob) = keys::job_of(job) else { return Ok(()) };
    let ver = ver + 1;
    let taken = record::encode(&JobRow::Staging { v: SCHEMA, ver, lease: now.saturating_add(LEASE) });
    let durability = Durability::Relaxed;
    let (expect, puts) = (vec![(job.clone(), Some(ver - 1))], vec![(job.clone(), taken)]);
    io.commit(Batch { expect, puts, deletes: Vec::new(), durability }).await?;
    let expect = vec![(job.clone(), Some(ver))];
    loop {
        let prefix = keys::parts(sid, blob);
        let limit = KEYS.min(most.saturating_sub(2)).max(1);
        let scan = Scan { prefix, after: None, limit, max_bytes: BIG, reverse: false, keys_only: true };
        let mut deletes: Vec<Key> = wide::scan(io, scan).await?.into_iter().map(|(key, _)| key).collect();
        let is_last = deletes.is_empty();
        if is_last {
            deletes.push(job.clone());
        }
        commit_again(io, Batch { expect: expect.clone(), puts: Vec::new(), deletes, durability }).await?;
        if is_last {
            return Ok(());
        }
    }
}
