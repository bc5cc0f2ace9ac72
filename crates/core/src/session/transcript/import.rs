//! A session from lines: of an archive of ours, which is checked line by line and restored as it was, or of another
//! agent's transcript. The rows are written under ids of their own as they come; the name, which is what makes them a
//! session, is written last. So a session is there whole or not at all.

mod own;
mod write;

use own::{OwnArchive, check_offloads};

use super::foreign::{self, Reader, Skipped};
use super::line::{self, SessionLine, Tag};
use super::{line_name, messages, wrong_line};
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Batch, Durability, Key, keys};
use crate::keys::ids;
use crate::log::deletion::remove_rows;
use crate::log::record::{self, NameRow, RowKind, SessionRow};
use crate::log::retry::{conflict, retryable};
use crate::log::stored::{PAGE, commit_again, name_row};
use crate::log::{SCHEMA, State, recovery, seal, wide};
use crate::policy::Settings;
use crate::session::operations::{Opened, Session};
use crate::step::{Effect, Io, LogLevel, Machine, Notice};
use serde::Serialize;
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

/// What a session is restored from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restore {
    /// From its context: summaries replace what they replaced, references stay references.
    #[default]
    Context,
    /// From its messages alone: all of them are in the context.
    Transcript,
}

impl Restore {
    /// The value of this name in the public API.
    ///
    /// Errors: [`Code::InvalidOption`].
    pub fn named(name: &str) -> Result<Restore> {
        match name {
            "context" => Ok(Restore::Context),
            "transcript" => Ok(Restore::Transcript),
            _ => Err(Error::option("from", "must be \"context\" or \"transcript\"")),
        }
    }
}

/// Whose transcript it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TranscriptKind {
    /// An archive of ours.
    ContextCompactor,
    /// Of Claude Code: read as `anthropic`.
    ClaudeCode,
    /// Of Codex: read as `openai-responses`.
    Codex,
    /// Nothing but messages, in one of the formats.
    Messages,
}

/// What was imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whose transcript it was.
    pub kind: TranscriptKind,
    /// Lines with something in them.
    pub lines: usize,
    /// Messages of the session.
    pub messages: usize,
    /// Lines that are no part of the conversation, by what they are.
    pub skipped: Skipped,
}

/// The longest line, in bytes: it must be in memory whole.
const LONGEST_LINE: usize = 256 << 20;

/// An import under way: fed with bytes, then finished, or abandoned.
#[derive(Clone)]
pub struct Importer {
    import: Rc<RefCell<Option<Import>>>,
    /// The name, once it may have been written.
    naming: Rc<RefCell<Option<String>>>,
    sid: Rc<str>,
    max_batch_ops: usize,
}

struct Import {
    /// The name that the app gives it.
    id: Option<String>,
    restore: Restore,
    settings: Rc<Settings>,
    state: State,
    /// The session's row as it grows.
    row: SessionRow,
    reading: Reading,
    /// The beginning of a line.
    torn: Vec<u8>,
    /// Lines so far, also empty ones.
    number: usize,
    lines: usize,
    skipped: Skipped,
    /// Rows to be written.
    puts: Vec<(Key, Vec<u8>)>,
    bytes: usize,
}

enum Reading {
    Nothing,
    Own(Box<OwnArchive>),
    Foreign(TranscriptKind, Box<dyn Reader>),
}

impl Importer {
    /// Begins the import of a session that the app will call `id`, else what it was called.
    ///
    /// Errors: [`Code::InvalidOption`] when there is a session of that name.
    pub fn open(
        settings: Rc<Settings>,
        id: Option<String>,
        restore: Restore,
        max_batch_ops: usize,
    ) -> Machine<Importer> {
        Machine::new(move |io| async move {
            if let Some(id) = &id {
                check_free(&io, id).await?;
            }
            if settings.parent.is_some() {
                return Err(Error::option("parent", "a session that is imported has the parent that it had"));
            }
            let secret = io.new_id().await?;
            let mut state = State::new(String::new(), secret, Rc::clone(&settings), io.now().await?);
            state.max_batch_ops = max_batch_ops;
            let import = Import {
                id,
                restore,
                settings,
                row: state.row.clone(),
                state,
                reading: Reading::Nothing,
                torn: Vec::new(),
                number: 0,
                lines: 0,
                skipped: Skipped::new(),
                puts: Vec::new(),
                bytes: 0,
            };
            let sid = Rc::from(import.state.sid.as_str());
            let import = Rc::new(RefCell::new(Some(import)));
            Ok(Importer { import, naming: Rc::default(), sid, max_batch_ops })
        })
    }

    /// Takes the next bytes of the transcript, cut anywhere.
    ///
    /// Errors: [`Code::InvalidMessage`], [`Code::SchemaTooNew`], [`Code::UnknownFormat`], [`Code::TooLarge`], with the
    /// line as the field; those of the store. The import must be abandoned then.
    pub fn feed(&self, bytes: Vec<u8>) -> Machine<()> {
        let this = self.clone();
        Machine::new(move |io| async move {
            let mut import = this.take()?;
            import.feed(&io, bytes).await?;
            this.import.replace(Some(import));
            Ok(())
        })
    }

    /// Ends the import: the session is there, and open.
    ///
    /// Errors: as of [`Importer::feed`].
    pub fn finish(&self) -> Machine<(Session, Opened, Report)> {
        let this = self.clone();
        Machine::new(move |io| async move { this.take()?.finish(&io, &this.naming).await })
    }

    /// Removes what was written of a session that will not be.
    pub fn abandon(&self) -> Machine<()> {
        let this = self.clone();
        Machine::new(move |io| async move {
            this.import.take();
            let naming = this.naming.take();
            // A name that was written after all makes it a session.
            if let Some(id) = naming
                && is_named(&io, &id, &this.sid).await?
            {
                return Ok(());
            }
            remove_rows(&io, &this.sid, this.max_batch_ops).await
        })
    }

    fn take(&self) -> Result<Import> {
        self.import
            .take()
            .ok_or_else(|| Error::new(Code::Closed, "this import failed or has ended: begin anew"))
    }
}

async fn check_free(io: &Io, id: &str) -> Result<()> {
    match name_row(io, id).await? {
        None => Ok(()),
        Some(_) => {
            let what =
                format!("there is a session called {id:?} already: pass another `id`, or delete that one");
            Err(Error::option("id", what))
        }
    }
}

async fn is_named(io: &Io, id: &str, sid: &str) -> Result<bool> {
    Ok(name_row(io, id).await?.is_some_and(|name| name.sid == sid))
}

/// The error of what was handed over: what is wrong with it is not the store's fault.
fn of_input(mut error: Error) -> Error {
    if error.code == Code::StoreCorrupt {
        error.code = Code::InvalidMessage;
    }
    error
}

/// The error with the line that it is about.
fn at_line(number: usize, mut error: Error) -> Error {
    let field = match error.field.take().filter(|field| !field.is_empty()) {
        Some(field) if field.starts_with("line ") => field,
        Some(field) => format!("{}, {field}", line_name(number)),
        None => line_name(number),
    };
    of_input(error).of_field(Some(field))
}

impl Import {
    async fn feed(&mut self, io: &Io, bytes: Vec<u8>) -> Result<()> {
        let mut unread = std::mem::take(&mut self.torn);
        // What is in memory has no end of a line.
        let mut search = unread.len();
        unread.extend_from_slice(&bytes);
        drop(bytes);
        let mut start = 0;
        while let Some(length) =
            unread.get(search..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n'))
        {
            let end = search + length;
            self.line(io, unread.get(start..end).unwrap_or_default()).await?;
            start = end + 1;
            search = start;
        }
        unread.drain(..start);
        if unread.len() > LONGEST_LINE {
            let what = format!("it is longer than {} MiB", LONGEST_LINE >> 20);
            return Err(wrong_line(self.number + 1, Code::TooLarge, what));
        }
        self.torn = unread;
        Ok(())
    }

    async fn line(&mut self, io: &Io, bytes: &[u8]) -> Result<()> {
        self.number += 1;
        let number = self.number;
        let text = std::str::from_utf8(bytes)
            .map_err(|_| wrong_line(number, Code::InvalidMessage, "it is not readable as UTF-8"))?;
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Ok(());
        }
        self.lines += 1;
        match &mut self.reading {
            Reading::Nothing => {
                self.first(text).map_err(|error| at_line(number, error))?;
                if let (Reading::Own(own), None) = (&self.reading, &self.id) {
                    let id = own.whole.id.clone();
                    check_free(io, &id).await?;
                    self.id = Some(id);
                }
            }
            Reading::Own(_) => self.own_line(io, text).await.map_err(|error| at_line(number, error))?,
            Reading::Foreign(_, reader) => reader.line(number, text)?,
        }
        self.flush(io, PAGE).await
    }

    /// Recognises the transcript by its first line.
    fn first(&mut self, text: &str) -> Result<()> {
        if let Ok(Tag { v, kind }) = crate::wire::objects::from_str::<Tag>(text) {
            record::check_version(v, "transcript")?;
            if kind != "session" {
                return Err(Error::new(
                    Code::InvalidMessage,
                    "a transcript begins with the line of its session",
                ));
            }
            let whole = line::read::<SessionLine<'_>>(text)?.state()?;
            record::check_version(whole.v, "session")?;
            if let (Some(given), Some(format)) = (self.settings.format, whole.format)
                && given != format
            {
                return Err(Error::option("format", format!("this session is in {}", format.as_str())));
            }
            self.reading = Reading::Own(Box::new(OwnArchive::new(whole)));
            return Ok(());
        }
        if let Err(error) = serde_json::from_str::<&RawValue>(text) {
            return Err(Error::new(
                Code::InvalidMessage,
                format!("it is not readable as JSON: {}", Error::of_json(&error)),
            ));
        }
        let given = self.settings.format;
        let known = foreign::reader(text);
        let Some((kind, mut reader)) = known.or_else(|| messages::reader(text, given)) else {
            let what = "this is no transcript of this library, of Claude Code or of Codex, and its first line is no message: \
                        append its messages instead";
            return Err(Error::new(Code::UnknownFormat, what));
        };
        if given.is_some_and(|given| given != reader.format()) {
            let what = format!("this transcript is in {}", reader.format().as_str());
            return Err(Error::option("format", what));
        }
        reader.line(self.number, text)?;
        self.reading = Reading::Foreign(kind, reader);
        Ok(())
    }

    fn count_from(&mut self, before: usize) {
        let new = self.puts.get(before..).unwrap_or_default();
        self.bytes += new.iter().map(|(_, value)| value.len()).sum::<usize>();
    }

    /// Adds a message to the log as it grows here.
    fn add_message(&mut self, id: String, at: u64, body: &str) -> Result<()> {
        self.row.chain = record::chain(&self.row.chain, body);
        let put = self.state.log_row(&mut self.row, id, RowKind::Message, at, body)?;
        self.row.messages += 1;
        self.puts.push(put);
        Ok(())
    }

    /// Writes what waits when it is more than `bytes`.
    async fn flush(&mut self, io: &Io, bytes: usize) -> Result<()> {
        let most = self.state.max_batch_ops.max(1);
        if self.bytes < bytes && self.puts.len() < most.min(1_000) {
            return Ok(());
        }
        // Nothing leads to them before the last batch.
        let mut puts = wide::beside(&self.state.sid, std::mem::take(&mut self.puts), Vec::new());
        self.bytes = 0;
        while !puts.is_empty() {
            let rest = puts.split_off(most.min(puts.len()));
            commit(io, Vec::new(), std::mem::replace(&mut puts, rest)).await?;
        }
        Ok(())
    }

    async fn finish(
        mut self,
        io: &Io,
        naming: &RefCell<Option<String>>,
    ) -> Result<(Session, Opened, Report)> {
        let torn = std::mem::take(&mut self.torn);
        if let Err(error) = self.line(io, &torn).await {
            let torn = String::from_utf8_lossy(&torn);
            let is_whole = serde_json::from_str::<serde::de::IgnoredAny>(&torn).is_ok();
            let what = "the transcript ends inside it: remove it and import what is left from the transcript";
            return Err(if is_whole { error } else { wrong_line(self.number, Code::InvalidMessage, what) });
        }
        let reading = std::mem::replace(&mut self.reading, Reading::Nothing);
        let (kind, offloads, has_gaps) = match reading {
            Reading::Nothing => return Err(Error::new(Code::UnknownFormat, "the transcript is empty")),
            Reading::Own(own) => {
                self.own_end(io, &own)?;
                let has_gaps = own.has_gaps && self.restore == Restore::Context;
                (TranscriptKind::ContextCompactor, own.offloads, has_gaps)
            }
            Reading::Foreign(kind, mut reader) => {
                reader.check()?;
                self.row.format = Some(reader.format());
                let (entries, skipped) = reader.end()?;
                self.skipped = skipped;
                self.write(io, entries).await?;
                (kind, HashSet::new(), false)
            }
        };
        let id = self.id.take().unwrap_or_else(|| ids::session(&self.state.row.secret));
        self.row = SessionRow { v: SCHEMA, ver: 1, id: id.clone(), ..self.row };
        self.flush(io, 0).await?;
        let Import { mut state, mut row, lines, skipped, .. } = self;
        let session = keys::session(&state.sid);
        match commit(io, vec![(session, None)], seal::write_new(&state.sid, &mut row)).await {
            // Nobody else writes it: the answer to the first was lost, or it is not there.
            Err(error) if error.code == Code::Conflict => {}
            written => written?,
        }
        // Before it has a name, so that what cannot be opened is no session.
        let is_there = if has_gaps {
            // As a session with such a store is opened.
            recovery::context(io, &mut state, row.clone()).await.map(|read| read.is_some())
        } else {
            state.load(io).await
        };
        if !is_there.map_err(of_input)? {
            return Err(conflict());
        }
        check_offloads(&state, &offloads)?;
        let name = NameRow::new(&id, &state.sid);
        let key = keys::name(&id);
        naming.replace(Some(id.clone()));
        match commit(io, vec![(key.clone(), None)], vec![(key, seal::write_name(&name)?)]).await {
            Err(error) if retryable(&error) && !is_named(io, &id, &state.sid).await? => {
                return Err(if error.code == Code::Conflict { conflict() } else { error });
            }
            Err(error) if !retryable(&error) => return Err(error),
            _ => {}
        }
        for loss in state.row.losses.clone() {
            io.tell(Effect::Notify(Notice::DataLoss { loss }));
        }
        // Whatever was called so before is another session.
        state.unmark(io);
        state.mark(io);
        let report = Report { kind, lines, messages: row.messages, skipped };
        io.log(LogLevel::Info, format!("Imported {} messages from {} lines", report.messages, report.lines));
        let (session, opened) = Session::begin(io, state).await?;
        Ok((session, opened, report))
    }
}

async fn commit(io: &Io, expect: Vec<(Key, Option<u64>)>, puts: Vec<(Key, Vec<u8>)>) -> Result<()> {
    commit_again(io, Batch { expect, puts, deletes: Vec::new(), durability: Durability::Strict }).await
}
