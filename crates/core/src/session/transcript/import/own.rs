//! An archive of ours: every line must follow the one before, and be what was exported.

use super::{Import, Reading, Restore};
use crate::error::{Code, Error, Result};
use crate::session::batch::keys;
use crate::session::context::{Left, Origin};
use crate::session::record::{self, Kind as RowKind, Parent, SCHEMA, SessionRow};
use crate::session::session_log::SessionLog;
use crate::session::state::State;
use crate::session::transcript::line::{self, LogLine, Tag};
use crate::session::transcript::{foreign, wrong_line};
use crate::step::{Io, Level};
use std::collections::HashSet;

/// An archive of ours.
pub(super) struct Own {
    /// The session as it was exported.
    pub(super) whole: SessionRow,
    /// What of it was read.
    pub(super) seen: Seen,
    pub(super) offloads: HashSet<String>,
    /// Messages that left the context so far.
    pub(super) left: Vec<Left>,
}

#[derive(Default)]
pub(super) struct Seen {
    pub(super) rows: u64,
    pub(super) messages: usize,
    pub(super) generation: u64,
    pub(super) head: String,
    pub(super) chain: String,
}

impl Import {
    /// A line behind the first.
    pub(super) fn own_line(&mut self, text: &str) -> Result<()> {
        let foreign = |error| {
            Error::new(
                Code::InvalidMessage,
                format!("it is no line of this transcript: {}", Error::of_json(&error)),
            )
        };
        let Tag { v, kind } = serde_json::from_str(text).map_err(foreign)?;
        record::check_version(v, "line")?;
        match kind.as_str() {
            "message" | "view" | "snapshot" => self.log_line(text),
            // The views have all of it.
            "checkpoint" => Ok(()),
            "offload" => {
                let blob = line::read_offload(text)?;
                let before = self.puts.len();
                self.puts.extend(blob.rows_of(&self.state.sid)?);
                self.count_from(before);
                if let Reading::Own(own) = &mut self.reading {
                    own.offloads.insert(blob.offload.reference);
                }
                Ok(())
            }
            // Of a later release that we can read otherwise.
            _ if v > SCHEMA => {
                foreign::skip(&mut self.skipped, &kind);
                Ok(())
            }
            _ => Err(Error::new(Code::InvalidMessage, "it is of a kind that cannot stand here")),
        }
    }

    fn log_line(&mut self, text: &str) -> Result<()> {
        let Reading::Own(own) = &mut self.reading else { return Ok(()) };
        let line: LogLine<'_> = line::read(text)?;
        let index = line.index;
        let of_message = |error| Error { index: Some(index), ..error };
        let (row, bytes) = line.row().map_err(of_message)?;
        let seen = &mut own.seen;
        let chain = match row.kind {
            RowKind::Message => record::chain(&seen.chain, row.body.get()),
            RowKind::View | RowKind::Snapshot => seen.chain.clone(),
        };
        if (row.seq, row.n, &row.prev, &row.chain) != (seen.rows, seen.messages, &seen.head, &chain) {
            let what = "it does not follow the line before: a line is missing, or stands elsewhere";
            return Err(of_message(Error::new(Code::InvalidMessage, what)));
        }
        (seen.rows, seen.head, seen.chain) = (seen.rows + 1, line.hash().to_owned(), chain);
        let view = line.view_row(&self.state.sid)?;
        match (row.kind, &view) {
            (RowKind::Message, None) => seen.messages += 1,
            (RowKind::Snapshot, None) => {}
            (RowKind::View, Some((view, ..))) if view.generation == seen.generation + 1 => {
                seen.generation += 1;
                own.left.clone_from(&view.left);
            }
            _ => return Err(Error::new(Code::InvalidMessage, "it has not the view that it tells of")),
        }
        let before = self.puts.len();
        match (self.restore, row.kind) {
            (Restore::Context, _) => {
                self.puts.push((keys::log(&self.state.sid, row.seq), bytes));
                self.puts.extend(view.map(|(_, key, bytes)| (key, bytes)));
            }
            (Restore::Transcript, RowKind::Message) => self.add_message(row.id, row.at, row.body.get())?,
            (Restore::Transcript, RowKind::View | RowKind::Snapshot) => {}
        }
        self.count_from(before);
        Ok(())
    }

    /// The session's row from what was exported.
    pub(super) fn own_end(&mut self, io: &Io, own: &Own) -> Result<()> {
        let Own { whole, seen, .. } = own;
        let is_whole = (seen.rows, seen.messages, seen.generation)
            == (whole.next_seq, whole.messages, whole.generation)
            && (&seen.head, &seen.chain) == (&whole.head, &whole.chain);
        if !is_whole {
            let what = format!(
                "the transcript ends early: {} of {} lines of the log are there",
                seen.rows, whole.next_seq
            );
            if self.restore == Restore::Context {
                let what = format!("{what}; import it with `from: \"transcript\"` to restore these");
                return Err(wrong_line(self.number, Code::InvalidMessage, what));
            }
            io.log(Level::Warn, what);
        }
        let whole = SessionRow { losses: Vec::new(), ..whole.clone() };
        self.row = match self.restore {
            Restore::Context => whole,
            // Nothing of what it was before: no summaries, and no snapshots to go back to.
            Restore::Transcript => {
                let SessionRow { secret, next_seq, messages, head, chain, .. } = self.row.clone();
                let mut pins = whole.pins;
                pins.retain(|index| *index < messages);
                SessionRow {
                    secret,
                    next_seq,
                    messages,
                    head,
                    chain,
                    pins,
                    snapshots: Vec::new(),
                    log: SessionLog::default(),
                    parent: whole.parent.map(|parent| Parent { floor: 0, ..parent }),
                    generation: 0,
                    tail_from: 0,
                    compressions: 0,
                    steps: 0,
                    attempted_at: None,
                    pending_step: messages > 0,
                    ..whole
                }
            }
        };
        if self.restore == Restore::Transcript { self.write_left(&own.left) } else { Ok(()) }
    }
}

/// Refuses a context with a reference that nothing answers.
pub(super) fn check_offloads(state: &State, offloads: &HashSet<String>) -> Result<()> {
    let items = state.context.items().iter();
    let mut needed = items.flat_map(|item| {
        let covered = match &item.origin {
            Origin::Summary { covers, .. } => covers.as_slice(),
            _ => &[],
        };
        let covered = covered.iter().flat_map(|cover| cover.offloads.iter().map(|(_, offload)| offload));
        item.origin.offloads().iter().chain(covered)
    });
    match needed.find(|offload| !offloads.contains(&offload.reference)) {
        None => Ok(()),
        Some(missing) => {
            let what = format!(
                "the transcript lacks the offload {}, to which the context refers",
                missing.reference
            );
            Err(Error::new(Code::InvalidMessage, what))
        }
    }
}
