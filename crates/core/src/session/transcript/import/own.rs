//! An archive of ours: every line must follow the one before, and be what was exported.

use super::{Import, Reading, Restore};
use crate::context::{Departed, Origin, Place, SessionLog};
use crate::error::{Code, Error, Result};
use crate::keys::batch::keys;
use crate::log::record::{self, Parent, RowKind, SessionRow, ViewNote};
use crate::log::stored::row_at;
use crate::log::{NewBlob, SCHEMA, State, keyed, offloads, wide};
use crate::session::transcript::line::{self, GapLine, LogLine, Tag};
use crate::session::transcript::{foreign, wrong_line};
use crate::step::{Io, LogLevel};
use std::collections::{HashMap, HashSet};

/// An archive of ours.
pub(super) struct OwnArchive {
    /// The session as it was exported.
    pub(super) whole: SessionRow,
    /// What of it was read.
    pub(super) seen: Seen,
    /// References that it answers, and those that it says were lost.
    pub(super) offloads: HashSet<String>,
    /// Where its messages stand in the log here, by the indices that they had.
    places: HashMap<usize, Place>,
    /// The rows of those are in the store.
    is_logged: bool,
    /// Messages that it says were lost: index of the first, index after the last.
    pub(super) lost: Vec<(usize, usize)>,
    /// It has gaps.
    pub(super) has_gaps: bool,
    /// Messages that left the context so far.
    pub(super) left: Vec<Departed>,
}

#[derive(Default)]
pub(super) struct Seen {
    pub(super) rows: u64,
    pub(super) messages: usize,
    pub(super) generation: u64,
    pub(super) head: String,
    pub(super) chain: String,
    /// A gap is the last that was read: no hash holds what comes next.
    in_gap: bool,
    /// So may have been rows that had views.
    views_lost: bool,
}

/// Rows of a gap: more than any log has that could be read back.
const MOST_LOST: u64 = 1 << 24;

impl OwnArchive {
    pub(super) fn new(whole: SessionRow) -> Self {
        let (seen, offloads, places, lost, left) = Default::default();
        OwnArchive { whole, seen, offloads, places, is_logged: false, lost, has_gaps: false, left }
    }

    /// The index that a message has among those that were not lost; `None` for one that was.
    fn kept(&self, index: usize) -> Option<usize> {
        let is_lost = self.lost.iter().any(|(from, to)| (*from..*to).contains(&index));
        (!is_lost).then(|| self.moved(index))
    }

    /// How many messages before this one were not lost.
    fn moved(&self, index: usize) -> usize {
        let before = self.lost.iter().map(|(from, to)| index.min(*to).saturating_sub(*from));
        index - before.sum::<usize>().min(index)
    }
}

impl Import {
    /// A line after the first.
    pub(super) async fn own_line(&mut self, io: &Io, text: &str) -> Result<()> {
        let foreign = |error| {
            Error::new(
                Code::InvalidMessage,
                format!("it is no line of this transcript: {}", Error::of_json(&error)),
            )
        };
        let Tag { v, kind } = crate::wire::objects::from_str(text).map_err(foreign)?;
        record::check_version(v, "line")?;
        match kind.as_str() {
            "message" | "view" | "snapshot" => self.log_line(text),
            "gap" => self.gap_line(text),
            // The views have all of it.
            "checkpoint" => Ok(()),
            "offload" => {
                let blob = self.offload_in_log(io, line::read_offload(text)?).await?;
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

    /// An offload of the archive, as a reference to the log where its message there has its text.
    async fn offload_in_log(&mut self, io: &Io, blob: NewBlob) -> Result<NewBlob> {
        let Reading::Own(own) = &mut self.reading else { return Ok(blob) };
        let (Some(format), Some(place)) = (own.whole.format, own.places.get(&blob.index).copied()) else {
            return Ok(blob);
        };
        // All rows of the log stand before the first offload.
        if !std::mem::replace(&mut own.is_logged, true) {
            self.flush(io, 0).await?;
        }
        let key = keys::log(&self.state.sid, place.seq);
        let bytes = wide::read(io, vec![key]).await?.into_iter().next().flatten().unwrap_or_default();
        let blob = NewBlob { index: place.index, ..blob };
        // Of an archive whose lines are in another order it stays a copy.
        Ok(match row_at(&bytes, place.seq) {
            Ok(row) => blob.logged_in(format, (place.seq, row.body.get())),
            Err(_) => blob,
        })
    }

    fn log_line(&mut self, text: &str) -> Result<()> {
        let Reading::Own(own) = &mut self.reading else { return Ok(()) };
        let line: LogLine<'_> = line::read(text)?;
        let index = line.index;
        let of_message = |error: Error| error.at(index);
        let (row, written) = line.row().map_err(of_message)?;
        let seen = &mut own.seen;
        let chain = match row.kind {
            RowKind::Message => record::chain(&seen.chain, row.body.get()),
            RowKind::View | RowKind::Snapshot => seen.chain.clone(),
        };
        let follows = (&row.prev, &row.chain) == (&seen.head, &chain);
        if (row.seq, row.n) != (seen.rows, seen.messages) || !(follows || seen.in_gap) {
            let what = "it does not follow the line before: a line is missing, or stands elsewhere";
            return Err(of_message(Error::new(Code::InvalidMessage, what)));
        }
        (seen.rows, seen.head, seen.chain) = (seen.rows + 1, line.hash().to_owned(), row.chain.clone());
        seen.in_gap = false;
        let view = line.view_row(&self.state.sid)?;
        let noted = ViewNote::of(&row).map(|noted| noted.view);
        match (row.kind, &view) {
            (RowKind::Message, None) => seen.messages += 1,
            (RowKind::Snapshot, None) => {}
            (RowKind::View, Some((view, ..))) if seen.is_next(view.generation) => {
                seen.view(view.generation);
                own.left.clone_from(&view.left);
            }
            // The store had lost it, and the line says so.
            (RowKind::View, None) if line.gap.is_some() && noted.is_some_and(|view| seen.is_next(view)) => {
                noted.into_iter().for_each(|view| seen.view(view));
                own.has_gaps = true;
                foreign::skip(&mut self.skipped, "gap");
            }
            _ => return Err(Error::new(Code::InvalidMessage, "it has not the view that it tells of")),
        }
        if row.kind == RowKind::Message {
            let place = match self.restore {
                Restore::Context => Place { seq: row.seq, index },
                Restore::Transcript => Place { seq: self.row.next_seq, index: self.row.messages },
            };
            own.places.insert(index, place);
        }
        let before = self.puts.len();
        match (self.restore, row.kind) {
            (Restore::Context, _) => {
                let (key, written) = keyed::row(&self.state.sid, row.seq, written);
                self.puts.push((key, written.whole()));
                self.puts.extend(view.map(|(_, row)| row));
            }
            (Restore::Transcript, RowKind::Message) => self.add_message(row.id, row.at, row.body.get())?,
            (Restore::Transcript, RowKind::View | RowKind::Snapshot) => {}
        }
        self.count_from(before);
        Ok(())
    }

    /// What the store had lost when the session was exported.
    fn gap_line(&mut self, text: &str) -> Result<()> {
        let Reading::Own(own) = &mut self.reading else { return Ok(()) };
        let line: GapLine<'_> = line::read(text)?;
        foreign::skip(&mut self.skipped, "gap");
        own.has_gaps = true;
        if let Some(reference) = line.reference {
            // A copy of the session says of which message it is, as the session does.
            let row = line.row.filter(|_| self.restore == Restore::Context);
            if let Some(blob) = row.and_then(|row| offloads::of_lost(&reference, row.get().as_bytes())) {
                let before = self.puts.len();
                self.puts.extend(blob.rows_of(&self.state.sid)?);
                self.count_from(before);
            }
            let Reading::Own(own) = &mut self.reading else { return Ok(()) };
            own.offloads.insert(reference);
            return Ok(());
        }
        let seen = &mut own.seen;
        let (Some(seq), Some(count), Some(index), Some(messages)) =
            (line.seq, line.count, line.index, line.messages)
        else {
            return Err(Error::new(Code::InvalidMessage, "it does not say what is missing"));
        };
        let is_next = (seq, index) == (seen.rows, seen.messages);
        if !is_next || count == 0 || messages as u64 > count || seq.saturating_add(count) > own.whole.next_seq
        {
            let what = "it does not follow the line before: a line is missing, or stands elsewhere";
            return Err(Error::new(Code::InvalidMessage, what));
        }
        if count > MOST_LOST {
            return Err(Error::new(Code::TooLarge, format!("it is a gap of more than {MOST_LOST} rows")));
        }
        (seen.rows, seen.messages, seen.in_gap) = (seq + count, index + messages, true);
        if messages > 0 {
            own.lost.push((index, index + messages));
        }
        match line.view.map(|view| line::view_row(&self.state.sid, view)).transpose()? {
            None => seen.views_lost = true,
            Some((view, row)) if seen.is_next(view.generation) && count == 1 => {
                seen.view(view.generation);
                own.left = view.left;
                if self.restore == Restore::Context {
                    let before = self.puts.len();
                    self.puts.push(row);
                    self.count_from(before);
                }
            }
            Some(_) => return Err(Error::new(Code::InvalidMessage, "it has another view than is missing")),
        }
        Ok(())
    }

    /// The session's row from what was exported.
    pub(super) fn own_end(&mut self, io: &Io, own: &OwnArchive) -> Result<()> {
        let OwnArchive { whole, seen, .. } = own;
        let is_last = (&seen.head, &seen.chain) == (&whole.head, &whole.chain) || seen.in_gap;
        let has_views =
            seen.generation == whole.generation || (seen.views_lost && seen.generation < whole.generation);
        let is_whole = (seen.rows, seen.messages) == (whole.next_seq, whole.messages) && is_last && has_views;
        if !is_whole {
            let what = format!(
                "the transcript ends early: {} of {} lines of the log are there",
                seen.rows, whole.next_seq
            );
            if self.restore == Restore::Context {
                let what = format!("{what}; import it with `from: \"transcript\"` to restore these");
                return Err(wrong_line(self.number, Code::InvalidMessage, what));
            }
            io.log(LogLevel::Warn, what);
        }
        let whole = SessionRow { losses: Vec::new(), ..whole.clone() };
        self.row = match self.restore {
            Restore::Context => whole,
            // Nothing of what it was before: no summaries, and no snapshots to go back to.
            Restore::Transcript => {
                let SessionRow { secret, next_seq, messages, head, chain, .. } = self.row.clone();
                let pins = whole.pins.iter().filter_map(|index| own.kept(*index));
                let pins = pins.filter(|index| *index < messages).collect();
                let rejected = whole.rejected.iter().filter_map(|index| own.kept(*index)).collect();
                SessionRow {
                    secret,
                    next_seq,
                    messages,
                    head,
                    chain,
                    pins,
                    rejected,
                    snapshots: Vec::new(),
                    log: SessionLog::default(),
                    parent: whole.parent.map(|parent| Parent { floor: 0, ..parent }),
                    generation: 0,
                    tail_from: 0,
                    whole: None,
                    compressions: 0,
                    steps: 0,
                    attempted_at: None,
                    pending_step: messages > 0,
                    ..whole
                }
            }
        };
        if self.restore == Restore::Context {
            return Ok(());
        }
        let left =
            own.left.iter().map(|run| Departed { from: own.moved(run.from), to: own.moved(run.to), ..*run });
        let left: Vec<Departed> = left.filter(|run| run.from < run.to).collect();
        self.write_left(&left)
    }
}

impl Seen {
    /// The view after those so far, as far as it is known how many there were.
    fn is_next(&self, generation: u64) -> bool {
        generation == self.generation + 1 || (self.views_lost && generation > self.generation)
    }

    fn view(&mut self, generation: u64) {
        (self.generation, self.views_lost) = (generation, false);
    }
}

/// Refuses a context with a reference that nothing answers.
pub(super) fn check_offloads(state: &State, offloads: &HashSet<String>) -> Result<()> {
    let items = state.context.items().iter();
    let mut needed = items.flat_map(|item| {
        let covered = match &item.origin {
            Origin::Summary { covers, .. } => &covers[..],
            _ => &[],
        };
        let covered = covered.iter().flat_map(|cover| cover.offloads.iter().map(|(_, offload)| offload));
        item.origin.offloads().iter().chain(covered)
    });
    match needed.find(|offload| !offload.is_media() && !offloads.contains(&offload.reference)) {
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
