//! The transcript of a session: everything that the app said to it, uncompressed, whatever is in the context
//! (`S3.9`, `S5.3`). It is handed out page by page: as messages, as lines of an archive ([`export`], [`import`]) and as
//! Markdown ([`markdown`]). None of it is ever sent to a model.

mod claude_code;
mod codex;
mod export;
mod foreign;
mod import;
mod line;
mod markdown;
mod messages;

pub use export::Export;
pub use import::{Importer, Report, Restore, TranscriptKind};

use super::checkpoints::{self, CheckpointRecord};
use super::operations::Session;
use crate::error::{Code, Error, Result};
use crate::log::record::{self, LogRow, SessionRow};
use crate::log::stored::latest;
use crate::log::{Gap, State, Walk};
use crate::step::{Io, Machine};
use crate::wire::Format;
use serde::{Deserialize, Serialize};

/// What a session is, in numbers (`S5.3`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// When it began, in ms since 1970.
    pub start_time: u64,
    /// When something was last written, in ms since 1970.
    pub last_update: u64,
    /// Messages of the app so far.
    pub total_messages: usize,
    /// Tokens of all of them, by the session's one counter.
    pub total_tokens: usize,
    /// Summaries of the history so far.
    pub compression_count: u64,
}

impl Metadata {
    fn of(row: &SessionRow) -> Self {
        Metadata {
            start_time: row.created_at,
            last_update: row.updated_at,
            total_messages: row.messages,
            total_tokens: row.tokens,
            compression_count: row.compressions,
        }
    }
}

/// Messages of the app, in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryPage {
    /// Each with its JSON text.
    pub messages: Vec<Said>,
    /// What of them cannot be read.
    pub gaps: Vec<Gap>,
    /// Where the next page begins, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Cursor>,
}

/// A message of the app.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Said {
    /// Position in the log.
    pub seq: u64,
    /// Index among the app's messages, from 0.
    pub index: usize,
    /// JSON text.
    pub body: String,
}

/// A piece of Markdown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MarkdownPage {
    /// It.
    pub text: String,
    /// Where the next one begins, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Cursor>,
}

/// Where a page begins. What is appended after the first page is not part of the rest, so that the pages together are
/// the session as it was at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Position in the log.
    pub seq: u64,
    /// Log rows that there were at the first page.
    pub rows: u64,
    /// Messages before `seq`.
    pub index: usize,
    /// Messages that there were at the first page.
    pub messages: usize,
}

/// What comes next in the log.
enum NextRow<'b> {
    Row(LogRow<'b>),
    Gap(Gap),
}

/// What the pages of a session are made of, as it was when the page began.
struct PageSource {
    sid: String,
    format: Format,
    row: SessionRow,
}

impl PageSource {
    fn of(state: &State) -> Self {
        PageSource { sid: state.sid.clone(), format: state.format(), row: state.row.clone() }
    }

    /// With what other handles on the session wrote. Only a first page begins so: the rest is of the same moment; or a
    /// handle that wrote nothing, and does not know the rows' name.
    async fn latest(self, io: &Io) -> Result<Self> {
        let PageSource { sid, format, row } = self;
        let (sid, row) = latest(io, sid, row).await?;
        Ok(PageSource { sid, format: row.format.unwrap_or(format), row })
    }

    /// What the page at `cursor` is made of.
    async fn at(session: &Session, io: &Io, cursor: Option<Cursor>) -> Result<Self> {
        let source = session.look(PageSource::of)?;
        if cursor.is_some() && source.row.ver > 0 { Ok(source) } else { source.latest(io).await }
    }

    fn begin(&self, cursor: Option<Cursor>) -> Cursor {
        cursor.unwrap_or(Cursor { seq: 0, rows: self.row.next_seq, index: 0, messages: self.row.messages })
    }

    /// Calls `each` for the log rows after the cursor and the gaps between them, as many as one page of the store holds
    /// and on to the end of a gap. Returns where the next page begins.
    async fn page(
        &self,
        io: &Io,
        cursor: Cursor,
        mut each: impl FnMut(NextRow<'_>) -> Result<()>,
    ) -> Result<Option<Cursor>> {
        let mut walk = Walk::at(cursor.seq, cursor.index);
        while let Some(page) = walk.page(io, &self.sid, cursor.rows).await? {
            for (seq, bytes) in page {
                let Some((gap, row)) = walk.row(seq, &bytes)? else { continue };
                gap.map_or(Ok(()), |gap| each(NextRow::Gap(gap)))?;
                each(NextRow::Row(row))?;
            }
            if !walk.is_in_gap() {
                let cursor = Cursor { seq: walk.next, index: walk.index, ..cursor };
                return Ok((cursor.seq < cursor.rows).then_some(cursor));
            }
        }
        walk.end(cursor.rows, cursor.messages).map_or(Ok(()), |gap| each(NextRow::Gap(gap)))?;
        Ok(None)
    }
}

impl Session {
    /// What the session is, in numbers.
    pub fn metadata(&self) -> Result<Metadata> {
        self.look(|state| Metadata::of(&state.row))
    }

    /// The complete conversation, page by page (`S5.3`): every message of the log, those too that were left behind when the
    /// app went back to before them. What cannot be read is left out, and the page says so.
    pub fn history(&self, cursor: Option<Cursor>) -> Machine<HistoryPage> {
        let session = self.clone();
        Machine::new(move |io| async move {
            let look = async |io: Io| {
                let source = PageSource::at(&session, &io, cursor).await?;
                let (mut messages, mut gaps) = (Vec::new(), Vec::new());
                let next = source.page(&io, source.begin(cursor), |next| {
                    match next {
                        NextRow::Row(row) if row.kind == record::RowKind::Message => {
                            let body = row.body.get().to_owned();
                            messages.push(Said { seq: row.seq, index: row.n, body });
                        }
                        NextRow::Gap(gap) if gap.messages > 0 => gaps.push(gap),
                        NextRow::Row(_) | NextRow::Gap(_) => {}
                    }
                    Ok(())
                });
                let next = next.await?;
                Ok(HistoryPage { messages, gaps, next })
            };
            session.slot.look_at_rows(&io, look).await
        })
    }

    /// The conversation as Markdown, piece by piece (`S5.3`). It says where messages cannot be read, and so the app learns it.
    pub fn markdown(&self, cursor: Option<Cursor>) -> Machine<MarkdownPage> {
        let session = self.clone();
        Machine::new(move |io| async move {
            let look = async |io: Io| {
                let source = PageSource::at(&session, &io, cursor).await?;
                let mut text = String::new();
                if cursor.is_none() {
                    markdown::head(&mut text, &source.row);
                }
                let next = source.page(&io, source.begin(cursor), |next| match next {
                    NextRow::Row(row) if row.kind == record::RowKind::Message => {
                        markdown::message(&mut text, source.format, &row)
                    }
                    NextRow::Row(_) => Ok(()),
                    NextRow::Gap(gap) => {
                        gap.tell(&io);
                        markdown::gap(&mut text, &gap);
                        Ok(())
                    }
                });
                let next = next.await?;
                Ok(MarkdownPage { text, next })
            };
            session.slot.look_at_rows(&io, look).await
        })
    }

    /// Every checkpoint that was ever made, oldest first, as it was when it last changed: also those that another one
    /// replaces by now (`S5.3`). [`Session::checkpoints`] has those of the context.
    pub fn checkpoint_records(&self) -> Machine<Vec<CheckpointRecord>> {
        let session = self.clone();
        Machine::new(move |io| async move {
            let look = async |io: Io| {
                let source = PageSource::at(&session, &io, None).await?;
                checkpoints::records(&io, &source.sid, source.row.generation).await
            };
            session.slot.look_at_rows(&io, look).await
        })
    }

    /// The lines of the archive from `at` on, as many as make a page, and what comes next, when anything does (`S3.9`). What
    /// cannot be read is a line that says so, and a lost message is reported to the app.
    pub fn export(&self, at: Export) -> Machine<(Vec<u8>, Option<Export>)> {
        let session = self.clone();
        Machine::new(move |io| async move {
            let look = async |io: Io| {
                let source = session.look(PageSource::of)?;
                let is_new = at == Export::Begin || source.row.ver == 0;
                let source = if is_new { source.latest(&io).await? } else { source };
                export::page(&io, &session, &source, at.clone()).await
            };
            session.slot.look_at_rows(&io, look).await
        })
    }
}

/// What is wrong with a line, counted from 1.
fn wrong_line(number: usize, code: Code, what: impl Into<String>) -> Error {
    Error::new(code, what).of_field(Some(line_name(number)))
}

fn line_name(number: usize) -> String {
    format!("line {number}")
}
