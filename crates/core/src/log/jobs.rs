//! Calls of a model on their way to one change of the context (T2): who makes them, until when, and what was answered so
//! far. A crash before the commit then costs no call again. All of it is advisory: the compare-and-set of the commit is
//! what makes a change right, a job only saves calls.

use super::guard::SessionGuard;
use super::record::{self, SCHEMA};
use super::retry::{Tried, conflict, retry, retryable};
use super::stage::TO_UPKEEP;
use super::staging;
use super::state::State;
use super::stored::{PAGE, commit_again};
use super::wide;
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Batch, Durability, Key, keys};
use crate::keys::ids;
use crate::step::{Io, LogLevel, Scan};
use crate::wire::record::{Json, ReadJson, Unreadable, WriteJson};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Answers that the commit of a change removes; more of them wait for the next open.
const CLOSED_AT_ONCE: usize = 64;
/// Operations of the same commit that come later.
const OTHERS: usize = 16;
/// Rows that one read of jobs returns.
const ROWS: usize = 1_000;
/// So many jobs that ended are kept, for whoever looks into the store.
const ENDED: usize = 64;

/// The row of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JobRow {
    /// Somebody asks a model.
    Prepared {
        /// [`SCHEMA`].
        v: u32,
        /// Counts the commits that put this row, from 1; 0 in a row of an earlier release.
        ver: u64,
        /// The view that is to be changed.
        base_generation: u64,
        /// Rows of the log at that time.
        to: u64,
        /// Hash of the last of them.
        input: String,
        /// When, in ms since 1970.
        at: u64,
        /// Until when nobody else need ask, in ms since 1970.
        lease: u64,
        /// Who asks.
        owner: String,
    },
    /// The change was made.
    Done {
        /// [`SCHEMA`].
        v: u32,
        /// The view that it made.
        generation: u64,
    },
    /// A blob is being written in parts.
    Staging {
        /// [`SCHEMA`].
        v: u32,
        /// Counts the commits that put this row, from 1.
        ver: u64,
        /// Until when it is under way, in ms since 1970.
        lease: u64,
    },
    /// The context became another one before the change was made.
    Abandoned {
        /// [`SCHEMA`].
        v: u32,
        /// The view that it was to change.
        base_generation: u64,
    },
}

/// A row of a job with the fields of all states.
#[derive(Debug, Default)]
struct JobFields {
    state: String,
    v: u32,
    ver: Option<u64>,
    generation: Option<u64>,
    base_generation: Option<u64>,
    to: Option<u64>,
    input: Option<String>,
    at: Option<u64>,
    lease: Option<u64>,
    owner: Option<String>,
}

crate::wire::record!(JobFields {
    state = "state",
    v = "v",
    ver = "ver" or nothing,
    generation = "generation" or nothing,
    base_generation = "baseGeneration" or nothing,
    to = "to" or nothing,
    input = "input" or nothing,
    at = "at" or nothing,
    lease = "lease" or nothing,
    owner = "owner" or nothing,
});

impl WriteJson for JobRow {
    fn write(&self, out: &mut Vec<u8>) {
        let fields = match self.clone() {
            JobRow::Prepared { v, ver, base_generation, to, input, at, lease, owner } => JobFields {
                state: "prepared".into(),
                v,
                ver: Some(ver),
                base_generation: Some(base_generation),
                to: Some(to),
                input: Some(input),
                at: Some(at),
                lease: Some(lease),
                owner: Some(owner),
                generation: None,
            },
            JobRow::Done { v, generation } => {
                JobFields { state: "done".into(), v, generation: Some(generation), ..JobFields::default() }
            }
            JobRow::Staging { v, ver, lease } => {
                let (ver, lease) = (Some(ver), Some(lease));
                JobFields { state: "staging".into(), v, ver, lease, ..JobFields::default() }
            }
            JobRow::Abandoned { v, base_generation } => {
                let base_generation = Some(base_generation);
                JobFields { state: "abandoned".into(), v, base_generation, ..JobFields::default() }
            }
        };
        fields.write(out);
    }
}

impl ReadJson<'_> for JobRow {
    fn read(json: &mut Json<'_>) -> std::result::Result<Self, Unreadable> {
        let JobFields { state, v, ver, generation, base_generation, to, input, at, lease, owner } =
            JobFields::read(json)?;
        let need = |value: Option<u64>| value.ok_or_else(|| Unreadable::no("whole job"));
        match state.as_str() {
            "prepared" => Ok(JobRow::Prepared {
                v,
                ver: ver.unwrap_or_default(),
                base_generation: need(base_generation)?,
                to: need(to)?,
                input: input.ok_or_else(|| Unreadable::no("whole job"))?,
                at: need(at)?,
                lease: need(lease)?,
                owner: owner.unwrap_or_default(),
            }),
            "done" => Ok(JobRow::Done { v, generation: need(generation)? }),
            "staging" => Ok(JobRow::Staging { v, ver: need(ver)?, lease: need(lease)? }),
            "abandoned" => Ok(JobRow::Abandoned { v, base_generation: need(base_generation)? }),
            _ => Err(Unreadable::no("state of a job")),
        }
    }
}

/// An answer of a model that passed its checks.
#[derive(Debug)]
struct AnswerRow {
    v: u32,
    text: String,
}

crate::wire::record!(AnswerRow {
    v = "v",
    text = "text",
});

/// The calls that lead to the next change of the context.
#[derive(Debug, Default)]
pub(crate) struct Job {
    stored: Option<StoredJob>,
    /// What was answered before this job was taken up, by what was asked.
    answers: RefCell<BTreeMap<String, String>>,
    /// What of the answers is in the store.
    kept: RefCell<BTreeSet<String>>,
}

#[derive(Debug)]
struct StoredJob {
    sid: String,
    id: String,
    ver: u64,
}

/// A job to be closed by the commit of the change that it led to.
#[derive(Debug, Clone)]
pub(crate) struct Closing {
    id: String,
    answers: Vec<String>,
}

impl Closing {
    /// Adds to `batch`, which makes view `generation`, that the job is done; at most `room` operations.
    pub(super) fn close(&self, sid: &str, generation: u64, room: usize, batch: &mut Batch) -> Result<()> {
        if room == 0 {
            return Ok(());
        }
        let done = JobRow::Done { v: SCHEMA, generation };
        batch.puts.push((keys::job(sid, &self.id), record::encode(&done)));
        let answers = self.answers.iter().take(CLOSED_AT_ONCE.min(room.saturating_sub(OTHERS)));
        batch.deletes.extend(answers.map(|answer| keys::answer(sid, &self.id, answer)));
        Ok(())
    }
}

/// What is asked, as far as the answer depends on it: the same question has the same key in every process.
pub(crate) fn question(parts: &[&[u8]]) -> String {
    ids::id(parts)
}

/// The id of the job that leads to the view behind this one.
fn job_id(state: &State) -> String {
    ids::id(&[b"calls", state.row.secret.as_bytes(), &state.row.generation.to_le_bytes()])
}

impl Job {
    /// Takes up the calls that lead from the context that is held to the next one, with the answers that whoever began
    /// them left. Nobody else need make them for `lease_ms`. `None` when someone else has them and this caller does not
    /// `insist`. What cannot be noted is logged, and the calls are made all the same.
    ///
    /// It also writes the session's row, and with it when the attempt was made (`S1.4`).
    ///
    /// Errors: [`Code::Conflict`] when the context was changed elsewhere, [`Code::Closed`] when the session is gone,
    /// [`Code::Aborted`].
    pub(crate) async fn begin(
        io: &Io,
        guard: &SessionGuard,
        lease_ms: u64,
        insist: bool,
    ) -> Result<Option<Job>> {
        if !guard.state().durable {
            return Ok(Some(Job::default()));
        }
        if guard.state().tab.is_empty() {
            let tab = io.new_id().await?;
            guard.state_mut().tab = ids::id(&[b"tab", tab.as_bytes()]);
        }
        retry(io, Some(guard), async |attempt| {
            if attempt.moved {
                return Err(conflict());
            }
            match Self::try_begin(io, guard, lease_ms, insist).await {
                Ok(begun) => Ok(Tried::Done(begun)),
                Err(error) if retryable(&error) && !attempt.is_last() => Ok(Tried::Lost(conflict(), None)),
                Err(error) if matches!(error.code, Code::Aborted | Code::Closed) => Err(error),
                Err(error) => {
                    io.log(LogLevel::Warn, format!("The attempt could not be noted in the store: {error}"));
                    Ok(Tried::Done(Some(Job::default())))
                }
            }
        })
        .await
    }

    async fn try_begin(io: &Io, guard: &SessionGuard, lease_ms: u64, insist: bool) -> Result<Option<Job>> {
        let (sid, id) = {
            let state = guard.state();
            (state.sid.clone(), job_id(&state))
        };
        let (row, answers) = read(io, &sid, &id).await?;
        let now = io.now().await?;
        let before = match row {
            Some(JobRow::Prepared { ver, lease, owner, .. }) => {
                if owner != guard.state().tab && lease > now && !insist {
                    return Ok(None);
                }
                Some(ver)
            }
            // Only the commit of the next view closes it.
            Some(_) => return Err(conflict()),
            None => None,
        };
        let ver = before.unwrap_or(0) + 1;
        let (batch, row) = {
            let state = guard.state();
            let prepared = JobRow::Prepared {
                v: SCHEMA,
                ver,
                base_generation: state.row.generation,
                to: state.row.next_seq,
                input: state.row.head.clone(),
                at: now,
                lease: now.saturating_add(lease_ms),
                owner: state.tab.clone(),
            };
            let put = (keys::job(&sid, &id), record::encode(&prepared));
            let (mut batch, row) = state.row_batch_with(now, vec![put])?;
            batch.expect.push((keys::job(&sid, &id), before));
            batch.durability = Durability::Relaxed;
            (batch, row)
        };
        io.commit(batch).await?;
        guard.state_mut().wrote(io, row);
        let kept = answers.keys().cloned().collect();
        let stored = Some(StoredJob { sid, id, ver });
        Ok(Some(Job { stored, answers: RefCell::new(answers), kept: RefCell::new(kept) }))
    }

    /// The answer that was paid for before, once.
    pub(crate) fn take(&self, io: &Io, question: &str) -> Option<String> {
        let answer = self.answers.borrow_mut().remove(question)?;
        io.log(LogLevel::Debug, format!("An answer that was given before is used again ({question})"));
        Some(answer)
    }

    /// Stores an answer, so that a crash before the commit does not cost it. Only a record: what fails here is logged.
    pub(crate) async fn keep(&self, io: &Io, question: &str, text: &str) {
        let Some(StoredJob { sid, id, ver }) = &self.stored else { return };
        let row = record::encode(&AnswerRow { v: SCHEMA, text: text.into() });
        let put = (keys::answer(sid, id, question), row);
        // A session that was deleted meanwhile has no job any more, and nothing may be left of it.
        let expect = vec![(keys::job(sid, id), Some(*ver))];
        let batch = Batch { expect, puts: vec![put], deletes: Vec::new(), durability: Durability::Relaxed };
        match io.commit(batch).await {
            Ok(()) => {
                self.kept.borrow_mut().insert(question.to_string());
            }
            Err(error) => io.log(LogLevel::Debug, format!("An answer could not be kept for later: {error}")),
        }
    }

    /// What the commit of the change closes.
    pub(crate) fn closing(&self) -> Option<Closing> {
        let StoredJob { id, .. } = self.stored.as_ref()?;
        Some(Closing { id: id.clone(), answers: self.kept.borrow().iter().cloned().collect() })
    }
}

/// A job with its answers. One that cannot be read has none.
async fn read(io: &Io, sid: &str, id: &str) -> Result<(Option<JobRow>, BTreeMap<String, String>)> {
    let prefix = keys::job(sid, id);
    let scan = Scan {
        prefix: prefix.clone(),
        after: None,
        limit: ROWS,
        max_bytes: PAGE,
        reverse: false,
        keys_only: false,
    };
    let (mut row, mut answers) = (None, BTreeMap::new());
    for (key, bytes) in wide::scan(io, scan).await? {
        match keys::answer_of(&key) {
            None => row = Some(record::decode(&bytes, "job")?),
            Some(question) => {
                if let Ok(AnswerRow { text, .. }) = record::decode(&bytes, "answer") {
                    answers.insert(question.to_string(), text);
                }
            }
        }
    }
    Ok((row, answers))
}

/// Closes what nobody goes on with: jobs whose lease is over and whose view is not the current one any more, with their
/// answers (R4), and blobs that were never whole (R6). Those of the current view wait for the next compaction. What fails here is logged: the next open
/// tries again.
///
/// Errors: [`Code::Aborted`].
pub(super) async fn recover(io: &Io, state: &State) -> Result<()> {
    let closed = async {
        if !are_open(io, state).await? {
            return Ok(());
        }
        (TO_UPKEEP.enter(io).await?.close_jobs)(io, state).await
    };
    match closed.await {
        Err(error) if error.code == Code::Aborted => Err(error),
        Err(error) => {
            io.log(LogLevel::Warn, format!("Jobs that were stopped half-way could not be closed: {error}"));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Is there anything to close? Not where a few jobs are all that there is, and all of them ended.
async fn are_open(io: &Io, state: &State) -> Result<bool> {
    struct OfState {
        state: String,
    }
    crate::wire::record!(OfState { state = "state" });
    let (jobs, answers) = all_of(io, &state.sid).await?;
    if !answers.is_empty() || jobs.len() > ENDED {
        return Ok(true);
    }
    if jobs.is_empty() {
        return Ok(false);
    }
    let has_ended = |bytes: &[u8]| {
        let row = std::str::from_utf8(bytes).ok().and_then(|text| crate::wire::record::from_str(text).ok());
        row.is_some_and(|OfState { state }| matches!(state.as_str(), "done" | "abandoned"))
    };
    Ok(!wide::read(io, jobs).await?.iter().flatten().all(|bytes| has_ended(bytes)))
}

/// The keys of a session's jobs, and of the answers that they have.
async fn all_of(io: &Io, sid: &str) -> Result<(Vec<Key>, Vec<Key>)> {
    let (mut jobs, mut answers): (Vec<Key>, Vec<Key>) = Default::default();
    let mut after = None;
    loop {
        let prefix = keys::all("jobs", sid);
        let scan = Scan { prefix, after, limit: ROWS, max_bytes: PAGE, reverse: false, keys_only: true };
        let entries = wide::scan(io, scan).await?;
        let Some((last, _)) = entries.last() else { return Ok((jobs, answers)) };
        after = Some(last.clone());
        let (of_jobs, of_answers): (Vec<Key>, Vec<Key>) =
            entries.into_iter().map(|(key, _)| key).partition(|key| keys::answer_of(key).is_none());
        jobs.extend(of_jobs);
        answers.extend(of_answers);
    }
}

/// Closes what was stopped half-way.
pub(super) async fn close(io: &Io, state: &State) -> Result<()> {
    let sid = &state.sid;
    let (jobs, answers) = all_of(io, sid).await?;
    let now = io.now().await?;
    let mut live: BTreeSet<&Key> = BTreeSet::new();
    let (mut ended, mut abandoned, mut staged) = (Vec::new(), Vec::new(), Vec::new());
    for page in jobs.chunks(ROWS) {
        for (key, bytes) in page.iter().zip(wide::read(io, page.to_vec()).await?) {
            let Some(bytes) = bytes else { continue };
            match record::decode::<JobRow>(&bytes, "job") {
                Ok(JobRow::Prepared { ver, base_generation, lease, .. })
                    if base_generation != state.row.generation && lease <= now =>
                {
                    abandoned.push((key, ver, base_generation));
                }
                Ok(JobRow::Done { .. } | JobRow::Abandoned { .. }) => ended.push(key),
                Ok(JobRow::Staging { ver, lease, .. }) if lease <= now => staged.push((key, ver)),
                // One that waits, and one of a release that knows more.
                Ok(JobRow::Prepared { .. } | JobRow::Staging { .. }) | Err(_) => {
                    live.insert(key);
                }
            }
        }
    }
    for (key, ver, base_generation) in abandoned {
        let row = record::encode(&JobRow::Abandoned { v: SCHEMA, base_generation });
        let expect = if ver > 0 { vec![(key.clone(), Some(ver))] } else { Vec::new() };
        let puts = vec![(key.clone(), row)];
        match io.commit(Batch { expect, puts, deletes: Vec::new(), durability: Durability::Relaxed }).await {
            Err(error) if !retryable(&error) => return Err(error),
            _ => {}
        }
    }
    for (job, ver) in staged {
        match staging::sweep(io, (sid, state.max_batch_ops), job, ver, now).await {
            Err(error) if !retryable(&error) => return Err(error),
            _ => {}
        }
    }
    let is_over = |key: &Key| !live.iter().any(|job| key.0.starts_with(&job.0));
    let mut deletes: Vec<Key> = answers.iter().filter(|key| is_over(key)).cloned().collect();
    if ended.len() > ENDED {
        deletes.extend(ended.into_iter().cloned());
    }
    for page in deletes.chunks(state.max_batch_ops.max(1)) {
        let (expect, puts) = Default::default();
        let batch = Batch { expect, puts, deletes: page.to_vec(), durability: Durability::Relaxed };
        commit_again(io, batch).await?;
    }
    Ok(())
}

/// The error of a caller that leaves the calls to whoever makes them.
pub(crate) fn elsewhere() -> Error {
    Error::new(
        Code::Conflict,
        "another tab or process asks the model for this already; its result will be here",
    )
}
