//! The archive of a session, a page of lines at a time: first the session, then the log, then the checkpoints in numbers
//! and the offloads.

use super::{Cursor, PageSource, line};
use crate::error::{Code, Error, Result};
use crate::keys::batch::keys;
use crate::log::record::{self, LogRow, RowKind, ViewNote, ViewRow};
use crate::log::stored::PAGE;
use crate::log::wide;
use crate::log::{Gap, NewBlob, Walk, offloads};
use crate::session::checkpoints;
use crate::session::operations::Session;
use crate::step::{Io, LogLevel};
use crate::wire;
use serde::{Deserialize, Serialize};

/// How far an export is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Export {
    /// Nothing is written yet.
    #[default]
    Begin,
    /// The log from there on: views in all, and those before.
    Log(Cursor, u64, u64),
    /// The checkpoints of so many views.
    Checkpoints(u64),
    /// The offloads after this one.
    Offloads(Option<String>),
}

/// The lines from `at` on, as many as make a page, and what comes next, when anything does.
pub(super) async fn page(
    io: &Io,
    session: &Session,
    source: &PageSource,
    at: Export,
) -> Result<(Vec<u8>, Option<Export>)> {
    let mut out = Vec::new();
    let mut next = Some(at);
    while out.len() < PAGE
        && let Some(at) = next
    {
        next = match at {
            Export::Begin => {
                line::session(&mut out, &source.row)?;
                Some(Export::Log(source.begin(None), source.row.generation, 0))
            }
            Export::Log(cursor, generation, _) if cursor.seq == cursor.rows => {
                Some(Export::Checkpoints(generation))
            }
            Export::Log(cursor, generation, views) => {
                let (cursor, views) = log(io, source, cursor, views, &mut out).await?;
                Some(Export::Log(cursor, generation, views))
            }
            Export::Checkpoints(generation) => {
                for record in checkpoints::records(io, &source.sid, generation).await? {
                    line::checkpoint(&mut out, &record)?;
                }
                Some(Export::Offloads(None))
            }
            Export::Offloads(after) => {
                let reference = offloads::next(io, &source.sid, after.as_deref()).await?;
                match &reference {
                    Some(reference) => offload(io, session, source, reference, &mut out).await?,
                    None => lost_offloads(io, session, source, &mut out).await?,
                }
                reference.map(|reference| Export::Offloads(Some(reference)))
            }
        };
    }
    Ok((out, next))
}

/// The lines of one page of the log, from the cursor on, before which there are `views` views. Views are read one by one, so
/// the page may end before all rows are used.
async fn log(
    io: &Io,
    source: &PageSource,
    cursor: Cursor,
    views: u64,
    out: &mut Vec<u8>,
) -> Result<(Cursor, u64)> {
    let mut lines = LogLines { io, source, out, views };
    let mut walk = Walk::at(cursor.seq, cursor.index);
    while let Some(page) = walk.page(io, &source.sid, cursor.rows).await? {
        for (seq, bytes) in page {
            if lines.out.len() >= PAGE && !walk.is_in_gap() {
                break;
            }
            let Some((gap, row)) = walk.row(seq, &bytes)? else { continue };
            if let Some(gap) = gap {
                lines.gap(gap).await?;
            }
            lines.row(&bytes, &row).await?;
        }
        if !walk.is_in_gap() {
            return Ok((Cursor { seq: walk.next, index: walk.index, ..cursor }, lines.views));
        }
    }
    if let Some(gap) = walk.end(cursor.rows, cursor.messages) {
        lines.gap(gap).await?;
    }
    Ok((Cursor { seq: cursor.rows, index: cursor.messages, ..cursor }, lines.views))
}

/// Writes lines of the log.
struct LogLines<'a> {
    io: &'a Io,
    source: &'a PageSource,
    out: &'a mut Vec<u8>,
    /// Views so far.
    views: u64,
}

impl LogLines<'_> {
    async fn row(&mut self, bytes: &[u8], row: &LogRow<'_>) -> Result<()> {
        match row.kind {
            RowKind::Message => line::log(self.out, bytes, Some(role(self.source, row)?), None),
            RowKind::Snapshot => line::log(self.out, bytes, None, None),
            RowKind::View => {
                let noted = ViewNote::of(row).ok_or_else(|| {
                    Error::new(Code::StoreCorrupt, format!("row {} of the log tells of no view", row.seq))
                })?;
                self.views = noted.view;
                let is_sound = |stored: &Vec<u8>| noted.is_of(stored) && record::decode_view(stored).is_ok();
                let stored = self.view(noted.view).await?.filter(is_sound);
                let view = stored.as_deref().and_then(line::stored_view);
                if view.is_none() {
                    let what = format!("View {} cannot be read, and is not in the archive", noted.view);
                    self.io.log(LogLevel::Warn, what);
                }
                line::log(self.out, bytes, None, view)
            }
        }
    }

    async fn view(&self, number: u64) -> Result<Option<Vec<u8>>> {
        Ok(wide::read(self.io, vec![keys::view(&self.source.sid, number)])
            .await?
            .into_iter()
            .next()
            .flatten())
    }

    /// Rows that cannot be read. The views that they had say where in the log they are.
    async fn gap(&mut self, mut gap: Gap) -> Result<()> {
        gap.tell(self.io);
        let (end, messages) = (gap.seq + gap.count, gap.index + gap.messages);
        loop {
            let stored = self.view(self.views + 1).await?.unwrap_or_default();
            let row: Option<ViewRow> = record::decode_view(&stored).ok();
            let row = row.filter(|row| (gap.seq + 1..=end).contains(&row.to) && row.messages <= messages);
            let (Some(row), Some(view)) = (row, line::stored_view(&stored)) else { break };
            let (seq, index) = (row.to - 1, row.messages.max(gap.index));
            if seq > gap.seq {
                let before = Gap::new(gap.seq, seq - gap.seq, gap.index, index - gap.index);
                line::gap(self.out, &before, None)?;
            }
            line::gap(self.out, &Gap::new(seq, 1, index, 0), Some(view))?;
            self.views += 1;
            gap = Gap::new(row.to, end - row.to, index, messages - index);
        }
        if gap.count > 0 { line::gap(self.out, &gap, None) } else { Ok(()) }
    }
}

/// The line of an offload that has rows. One that cannot be read, and that nothing in the context refers to, has none.
async fn offload(
    io: &Io,
    session: &Session,
    source: &PageSource,
    reference: &str,
    out: &mut Vec<u8>,
) -> Result<()> {
    match offloads::load(io, &source.sid, source.format, reference).await {
        Ok(blob) => return line::offload(out, blob),
        Err(error) if matches!(error.code, Code::StoreCorrupt | Code::NotFound) => {
            io.log(LogLevel::Warn, format!("{reference} cannot be read: {error}"));
        }
        Err(error) => return Err(error),
    }
    if let Some(blob) = from_log(io, session, source, reference).await? {
        return line::offload(out, blob);
    }
    let is_wanted = session.look(|state| state.context.offload(reference).is_some())?;
    // One whose rows are not all there is reported after the others.
    let head = offloads::head(io, &source.sid, reference).await?;
    match head.filter(|_| is_wanted) {
        Some(head) => line::lost_offload(out, reference, head.logged_row().as_deref()),
        None => Ok(()),
    }
}

/// The lines of offloads that the context refers to and that are not among those before.
async fn lost_offloads(io: &Io, session: &Session, source: &PageSource, out: &mut Vec<u8>) -> Result<()> {
    let wanted = session.look(|state| state.context.references())?;
    if wanted.is_empty() {
        return Ok(());
    }
    let there = offloads::complete(io, &source.sid, &wanted).await?;
    for reference in wanted.keys().filter(|reference| !there.contains(*reference)) {
        let has_head = offloads::head(io, &source.sid, reference).await?.is_some();
        match from_log(io, session, source, reference).await? {
            Some(_) if offloads::has_rows(io, &source.sid, reference).await? => {}
            Some(blob) => line::offload(out, blob)?,
            None if has_head => {}
            None => line::lost_offload(out, reference, None)?,
        }
    }
    Ok(())
}

/// An offload whose rows cannot be read, from the message that it was taken out of.
async fn from_log(
    io: &Io,
    session: &Session,
    source: &PageSource,
    reference: &str,
) -> Result<Option<NewBlob>> {
    let known = session.look(|state| state.context.offload(reference))?;
    let known = match known {
        Some(known) => Some(known),
        None => offloads::head(io, &source.sid, reference).await?.map(|head| (head.index, head.offload)),
    };
    match known {
        Some(known) => offloads::from_log(io, &source.sid, source.row.next_seq, source.format, known).await,
        None => Ok(None),
    }
}

fn role(source: &PageSource, row: &LogRow<'_>) -> Result<&'static str> {
    let value = wire::parse(row.n, row.body.get())?;
    Ok(source.format.wire().read(row.n, &value)?.role.as_str())
}
