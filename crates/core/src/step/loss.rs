//! What the platform took from a session, and what was mended.

use serde::Serialize;

/// Something that was found when a session was opened, or when its log was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Loss {
    /// What it is about.
    pub kind: LossKind,
    /// Rows of the log that are gone, where their number is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_records: Option<u64>,
    /// Position in the log of the first of them, where something that was asked for goes on over a gap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Index of the first message that is missing there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// What happened, for people. It holds nothing that was said.
    pub reason: String,
}

crate::wire::record!(Loss {
    kind = "kind",
    lost_records = "lostRecords" or nothing,
    seq = "seq" or nothing,
    index = "index" or nothing,
    reason = "reason",
});

/// What was lost or mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// The platform says that it removed data of this store.
    Platform,
    /// A session that was there is not in the store.
    Session,
    /// Messages that were acknowledged are gone, or cannot be read.
    Records,
    /// The context is an earlier one; every message is still there.
    Context,
    /// Rows were mended; nothing that was said is lost.
    Repaired,
}

crate::wire::named!(LossKind {
    Platform = "platform",
    Session = "session",
    Records = "records",
    Context = "context",
    Repaired = "repaired",
});

impl Loss {
    /// A loss of no known number of records.
    pub(crate) fn new(kind: LossKind, reason: impl Into<String>) -> Self {
        Loss { kind, lost_records: None, seq: None, index: None, reason: reason.into() }
    }

    /// A loss of so many records.
    pub(crate) fn records(kind: LossKind, lost: u64, reason: impl Into<String>) -> Self {
        Loss { lost_records: Some(lost), ..Loss::new(kind, reason) }
    }
}
