//! The context of a session: what is in it, what became of every message, and where a history may be cut.

mod basis;
mod exchange;
mod items;
mod ledger;
mod new_context;
mod offload;
mod origin;
mod recall_tools;
mod session_log;
pub mod split;

pub use basis::{Basis, unfounded};
pub use items::{Context, Item, Size, Splice, Totals};
pub use ledger::{Fate, Ledger, LedgerEntry, conserve};
pub use offload::{Offload, Placeholder};
pub use origin::{CoveredRange, Departed, MessageSource, Origin, PinProposal, Place, SummaryMeta, Why};
pub use session_log::{LogEntry, SessionLog};
pub use split::Keep;

pub(crate) use exchange::{CallFacts, ExchangePart, KnownCall, TouchedFile};
pub(crate) use ledger::{Erased, conserve_origins};
pub(crate) use new_context::NEW_CONTEXT;
pub(crate) use origin::join_left;
pub(crate) use recall_tools::{RECALL_READ, RECALL_SEARCH, is_recall};
