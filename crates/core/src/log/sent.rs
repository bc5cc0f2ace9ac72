//! What the last `prepare` sent.

use crate::context::Fate;

/// A message of the app that the last `prepare` did not send as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OmittedMessage {
    /// Index among the app's messages.
    pub(crate) index: usize,
    /// [`Fate::Dropped`], or [`Fate::Reduced`] when a part of it was sent.
    pub(crate) fate: Fate,
    /// The rule that it would break.
    pub(crate) reason: String,
}

/// A context that was handed out as it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HandedOut {
    /// Which `prepare` did.
    pub(crate) nth: u64,
    /// How many items it had.
    pub(crate) items: usize,
}
