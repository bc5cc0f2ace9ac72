//! How far a session is, kept by the host outside of the store. A platform can remove a database, or give back an earlier
//! one, without a word: whoever opens the session then compares.
//!
//! The host is told after every commit that moved the log, before the operation ends. It need not keep every mark, for
//! each says all that those before it said.

use super::record::SessionRow;
use super::state::State;
use crate::error::{Code, Result};
use crate::keys::ids;
use crate::policy::Settings;
use crate::step::{Effect, Io, LogLevel, Notice};

/// How far a session is. As a text, the later of two marks is the greater: of tabs that write by turns, the one that was
/// first may tell its mark last, and the host keeps the greater.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Watermark {
    /// Losses that were told so far: what comes after one counts, although its log is shorter.
    pub(super) losses: u64,
    /// Rows of the log.
    pub(super) next_seq: u64,
    /// Names the session's rows.
    pub(super) sid: String,
    /// Hash of the last of them.
    pub(super) head: String,
}

impl Watermark {
    fn text(&self) -> String {
        let Watermark { losses, next_seq, sid, head } = self;
        format!("{losses:010}.{next_seq:016}.{sid}.{head}")
    }

    fn parse(text: &str) -> Option<Watermark> {
        let mut parts = text.split('.');
        let (losses, next_seq) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let (sid, head) = (parts.next()?.to_string(), parts.next()?.to_string());
        parts.next().is_none().then_some(Watermark { losses, next_seq, sid, head })
    }
}

/// What the host knows of a session, without its store.
#[derive(Debug, Default)]
pub(super) struct HostRecord {
    /// How far it was.
    pub(super) mark: Option<Watermark>,
    /// Why the platform made the database anew.
    pub(super) lost: Option<String>,
}

impl HostRecord {
    /// The session was there, and nobody deleted it.
    pub(super) fn has(&self, state: &State) -> bool {
        let is_it = |mark: &Watermark| mark.sid == state.sid || mark.losses > state.told_losses;
        self.lost.is_some() || self.mark.as_ref().is_some_and(is_it)
    }
}

/// Under which key the host keeps the mark of the session that the app calls `id`. It holds none of the app's text.
fn key(id: &str) -> String {
    ids::id(&[b"watermark", id.as_bytes()])
}

/// Asks the host. What is unreadable is as good as none, and is said.
pub(super) async fn known(io: &Io, settings: &Settings, id: &str) -> Result<HostRecord> {
    if !settings.has_watermark {
        return Ok(HostRecord::default());
    }
    let (mark, lost) = io.read_watermark(key(id)).await?;
    let mark = mark.filter(|text| !text.is_empty()).and_then(|text| {
        let mark = Watermark::parse(&text);
        if mark.is_none() {
            let message = "the watermark of this session cannot be read: what was lost before cannot be told";
            io.log(LogLevel::Warn, message);
            io.tell(Effect::Notify(Notice::Warning { code: Code::StoreCorrupt, message: message.into() }));
        }
        mark
    });
    Ok(HostRecord { mark, lost })
}

/// Tells the host that there is no session any more that the app calls `id`.
pub(super) fn unmark(io: &Io, id: &str) {
    io.tell(Effect::WriteWatermark { key: key(id), value: String::new() });
}

impl State {
    /// Tells the host how far the session is.
    pub(crate) fn mark(&self, io: &Io) {
        if !self.settings.has_watermark || !self.durable || self.row.ver == 0 {
            return;
        }
        let SessionRow { id, next_seq, head, .. } = &self.row;
        let (losses, sid) = (self.told_losses, self.sid.clone());
        let value = Watermark { losses, next_seq: *next_seq, sid, head: head.clone() }.text();
        io.tell(Effect::WriteWatermark { key: key(id), value });
    }

    /// Takes over the row of a commit that took place.
    pub(crate) fn wrote(&mut self, io: &Io, row: SessionRow) {
        let moved = (self.row.next_seq, &self.row.head) != (row.next_seq, &row.head);
        self.note_charged(row.spent);
        self.row = row;
        if moved {
            self.mark(io);
        }
    }

    /// Tells the host that there is no such session any more.
    pub(crate) fn unmark(&self, io: &Io) {
        if self.settings.has_watermark {
            unmark(io, &self.row.id);
        }
    }
}
