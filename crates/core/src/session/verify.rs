//! A session read whole and checked ([`crate::log::check`]), a page at a time. What is read was written once, so other calls
//! may go on meanwhile: what they write is not part of it.

use super::operations::Session;
use crate::context::Offload;
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Key, KeyPart, keys};
use crate::log::check::{Findings, LogCheck, ViewCheck, is_derived, resolves};
use crate::log::record::{self, SessionRow};
use crate::log::stored::{self, name_row};
use crate::log::wide;
use crate::log::{Page, offloads, seal};
use crate::step::{Effect, Io, Machine, Progress, Stage};
use crate::wire::Format;
use serde::Serialize;

/// What came of checking a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Everything holds.
    pub ok: bool,
    /// What does not: the invariant and the row, never content.
    pub problems: Vec<String>,
}

impl Session {
    /// Reads all that is stored of the session and checks what must always hold: hashes of records, chains, references,
    /// views, snapshots, the fate of every message, what is derived of them. Reads pages of at most 4 MiB and lets others
    /// run between them.
    ///
    /// Errors: those of the store, [`Code::Closed`] when the session is deleted meanwhile. A problem of what is stored is
    /// none.
    pub fn verify(&self) -> Machine<Verified> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let look = async |io: Io| {
                let (sid, row, tokens) =
                    slot.look(|state| (state.sid.clone(), state.row.clone(), state.tokens()))?;
                if row.ver == 0 {
                    return Ok(Verified { ok: true, problems: Vec::new() });
                }
                let (sid, row) = stored::latest(&io, sid, row).await?;
                let mut verifier = Verifier { io, sid, row, tokens, done: 0, found: Findings::default() };
                verifier.run().await?;
                let problems = verifier.found.into_problems();
                Ok(Verified { ok: problems.is_empty(), problems })
            };
            slot.look_at_rows(&io, look).await
        })
    }
}

/// Says that what is stored is not what was written, and not that it could not be read.
fn is_of_row(error: &Error) -> bool {
    matches!(error.code, Code::StoreCorrupt | Code::NotFound | Code::SchemaTooNew)
}

struct Verifier {
    io: Io,
    sid: String,
    /// The session's row: as it is stored, or, where that cannot be read, as this session knows it.
    row: SessionRow,
    tokens: usize,
    /// Rows of log and views so far.
    done: u64,
    found: Findings,
}

impl Verifier {
    async fn run(&mut self) -> Result<()> {
        self.session().await?;
        let log = self.log().await?;
        self.views(&log).await?;
        self.snapshots(&log).await?;
        self.terms(&log).await?;
        Ok(())
    }

    async fn read(&self, key: Key) -> Result<Option<Vec<u8>>> {
        Ok(wide::read(&self.io, vec![key]).await?.into_iter().next().flatten())
    }

    /// The row of the session and that of its name: I5, I7.
    async fn session(&mut self) -> Result<()> {
        let stored = seal::both(&self.io, &self.sid).await?;
        match stored.map(|(head, noted)| seal::read(&head, noted.as_deref())) {
            Some(Ok(row)) if row.id == self.row.id => self.row = row,
            Some(Ok(_)) => self.found.add("I7", "the session's row is that of another session"),
            Some(Err(error)) if error.code == Code::SchemaTooNew => return Err(error),
            Some(Err(_)) => self.found.add("I5", "the session's row is not what was written"),
            None => self.found.add("I5", "the session's row is missing"),
        }
        match name_row(&self.io, &self.row.id).await {
            Ok(Some(name)) if name.sid == self.sid && name.id == self.row.id => {}
            Ok(Some(_)) => self.found.add("I7", "the session's name leads to another session"),
            Ok(None) => self.found.add("I7", "the session's name is missing"),
            Err(error) if is_of_row(&error) => {
                self.found.add("I7", "the session's name is not what was written");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The rows under `prefix` after `after`, as far as a page holds them, with their positions.
    async fn page(&mut self, prefix: Key, after: Option<Key>) -> Result<Vec<(u64, Key, Vec<u8>)>> {
        let mut rows = Vec::new();
        for (key, bytes) in stored::page(&self.io, prefix.clone(), after, false).await? {
            match key.0.strip_prefix(prefix.0.as_slice()) {
                Some([KeyPart::Number(number)]) => rows.push((*number, key, bytes)),
                _ => self.found.add("I7", format!("the store returned {key} for the rows of {prefix}")),
            }
        }
        Ok(rows)
    }

    /// Reports how far it is, and lets others run: a store in memory answers at once.
    async fn rest(&mut self, rows: usize) -> Result<()> {
        self.done += rows as u64;
        let total = (self.row.next_seq + self.row.generation) as usize;
        self.io.tell(Effect::Progress(Progress {
            stage: Stage::Verify,
            done: (self.done as usize).min(total),
            total,
            previous_tokens: self.tokens,
            current_tokens: self.tokens,
        }));
        self.io.pause(0).await.map_err(|failure| failure.into_error(Code::Aborted))
    }

    /// True when the session was written to since this began, and what comes after its end may be of that.
    async fn went_on(&self) -> Result<bool> {
        let row = self.read(keys::session(&self.sid)).await?;
        Ok(row.and_then(|bytes| seal::read_head(&bytes).ok()).is_some_and(|row| row.ver != self.row.ver))
    }

    async fn log(&mut self) -> Result<LogCheck> {
        let (mut log, mut after) = (LogCheck::default(), None);
        loop {
            let rows = self.page(keys::all("log", &self.sid), after).await?;
            let Some((_, last, _)) = rows.last() else { break };
            after = Some(last.clone());
            for (seq, _, bytes) in &rows {
                if *seq >= self.row.next_seq {
                    if !self.went_on().await? {
                        self.found.add("I1", format!("log row {seq} is behind the end of the log"));
                    }
                    after = None;
                    break;
                }
                log.gap(*seq, &mut self.found);
                log.row(bytes, &mut self.found);
            }
            self.rest(rows.len()).await?;
            if after.is_none() {
                break;
            }
        }
        log.gap(self.row.next_seq, &mut self.found);
        log.end(&self.row, &mut self.found);
        Ok(log)
    }

    async fn views(&mut self, log: &LogCheck) -> Result<()> {
        let (mut check, mut after) = (ViewCheck::default(), None);
        loop {
            let rows = self.page(keys::all("views", &self.sid), after).await?;
            let Some((_, last, _)) = rows.last() else { break };
            after = Some(last.clone());
            let count = rows.len();
            for (number, _, bytes) in rows {
                if number > self.row.generation {
                    if !self.went_on().await? {
                        self.found.add("I3", format!("view {number} is behind the current one"));
                    }
                    after = None;
                    break;
                }
                check.gap(number.saturating_sub(1), &mut self.found);
                let new = check.row(&bytes, log, &mut self.found);
                for offload in new {
                    self.resolve(log, offload).await?;
                }
            }
            self.rest(count).await?;
            if after.is_none() {
                break;
            }
        }
        check.gap(self.row.generation, &mut self.found);
        Ok(())
    }

    async fn resolve(&mut self, log: &LogCheck, offload: (usize, Offload)) -> Result<()> {
        let format = self.row.format.unwrap_or(Format::OpenaiChat);
        let stored = match offloads::load(&self.io, &self.sid, format, &offload.1.reference).await {
            Err(error) if !is_of_row(&error) => return Err(error),
            stored => stored,
        };
        let row = match log.place(offload.0) {
            Some(seq) => self.read(keys::log(&self.sid, seq)).await?,
            None => None,
        };
        let row = row.as_deref().and_then(|bytes| record::read_row(bytes).ok());
        let body = row.as_ref().map(|(row, _)| row.body.get());
        resolves(format, &offload, stored, body, &mut self.found);
        Ok(())
    }

    /// The pages of terms: I9.
    async fn terms(&mut self, log: &LogCheck) -> Result<()> {
        let format = self.row.format.unwrap_or(Format::OpenaiChat);
        let mut after = None;
        loop {
            let pages = self.page(keys::all_terms(&self.sid), after).await?;
            let Some((_, last, _)) = pages.last() else { return Ok(()) };
            after = Some(last.clone());
            for (_, _, stored) in &pages {
                let Some(page) = Page::read(stored, format) else { continue };
                let seqs: Vec<u64> =
                    (page.first..page.first + page.messages).map_while(|index| log.place(index)).collect();
                let mut rows = Vec::with_capacity(seqs.len());
                for seqs in seqs.chunks(256) {
                    rows.extend(
                        wide::read(&self.io, seqs.iter().map(|seq| keys::log(&self.sid, *seq)).collect())
                            .await?,
                    );
                }
                let rows: Vec<_> = rows.iter().map(|row| record::read_row(row.as_deref()?).ok()).collect();
                let message = |index: usize| {
                    let (row, _) = rows.get(index - page.first)?.as_ref()?;
                    Some((row.seq, row.body.get()))
                };
                is_derived(format, stored, message, &mut self.found);
            }
            self.rest(0).await?;
        }
    }

    async fn snapshots(&mut self, log: &LogCheck) -> Result<()> {
        let marks = self.row.snapshots.clone();
        let rows =
            wide::read(&self.io, marks.iter().map(|mark| keys::log(&self.sid, mark.seq)).collect()).await?;
        for (mark, bytes) in marks.iter().zip(rows) {
            log.snapshot(bytes.as_deref(), mark, &mut self.found);
        }
        Ok(())
    }
}
