//! Messages before they are in the log.

use crate::context::{Context, Size};
use crate::log::known::KnownMessage;
use crate::wire::Format;
use std::rc::Rc;

/// A message on its way into the log.
#[derive(Debug, Clone)]
pub(crate) struct PendingMessage {
    /// JSON text.
    pub(crate) body: Rc<str>,
    /// What it costs and holds.
    pub(crate) size: Size,
    /// The app wants it verbatim for ever (`S4.3`).
    pub(crate) pinned: bool,
    /// What it is recognized by, where that is kept.
    pub(crate) known: Option<KnownMessage>,
}

/// The format that messages on their way into the log settle. It is the session's once they are written.
pub(crate) struct FormatDecision {
    /// The format.
    pub(crate) format: Format,
    /// Some message says it.
    pub(crate) sure: bool,
    /// Formats that nothing speaks against, as long as none is sure.
    pub(crate) plausible: Vec<Format>,
    /// The context measured in it, where the session was read in another one so far.
    pub(crate) context: Option<Context>,
}
