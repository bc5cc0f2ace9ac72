//! How far a session is, kept by the host outside of the store. A platform can remove a database, or give back an earlier
//! one, without a word: whoever opens the session then compares.
//!
//! The host is told after every commit that moved the log, before the operation ends. It need not keep every mark, for
//! each says all that those before it said; but the last that it was told must be kept.

use super::ids;
use super::record::SessionRow;
use super::state::State;
use crate::error::{Code, Result};
use crate::plan::Settings;
use crate::step::{Effect, Io, Notice};
use serde::{Deserialize, Serialize};

/// How far a session is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Mark {
    /// Names the session's rows.
    pub(super) sid: String,
    /// Rows of its log.
    pub(super) next_seq: u64,
    /// Hash of the last of them.
    pub(super) head: String,
}

/// What the host knows of a session, without its store.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// How far it was.
    pub(super) mark: Option<Mark>,
    /// Why the platform made the database anew.
    pub(super) lost: Option<String>,
}

/// Under which key the host keeps the mark of the session that the app calls `id`. It holds none of the app's text.
fn key(id: &str) -> String {
    ids::id(&[b"watermark", id.as_bytes()])
}

/// Asks the host. What is unreadable is as good as none, and is said.
pub(super) async fn known(io: &Io, settings: &Settings, id: &str) -> Result<Known> {
    if !settings.has_watermark {
        return Ok(Known::default());
    }
    let (mark, lost) = io.read_watermark(key(id)).await?;
    let mark = mark.filter(|text| !text.is_empty()).and_then(|text| {
        let mark = serde_json::from_str(&text).ok();
        if mark.is_none() {
            let message = "the watermark of this session cannot be read: what was lost before cannot be told";
            io.tell(Effect::Notify(Notice::Warning { code: Code::StoreCorrupt, message: message.into() }));
        }
        mark
    });
    Ok(Known { mark, lost })
}

impl State {
    /// Tells the host how far the session is.
    pub(super) fn mark(&self, io: &Io) {
        if !self.settings.has_watermark || !self.durable || self.row.ver == 0 {
            return;
        }
        let SessionRow { id, next_seq, head, .. } = &self.row;
        let mark = Mark { sid: self.sid.clone(), next_seq: *next_seq, head: head.clone() };
        if let Ok(value) = serde_json::to_string(&mark) {
            io.tell(Effect::WriteWatermark { key: key(id), value });
        }
    }

    /// Takes over the row of a commit that took place.
    pub(super) fn wrote(&mut self, io: &Io, row: SessionRow) {
        let moved = (self.row.next_seq, &self.row.head) != (row.next_seq, &row.head);
        self.row = row;
        if moved {
            self.mark(io);
        }
    }

    /// Tells the host that there is no such session any more.
    pub(super) fn unmark(&self, io: &Io) {
        if self.settings.has_watermark {
            io.tell(Effect::WriteWatermark { key: key(&self.row.id), value: String::new() });
        }
    }
}
