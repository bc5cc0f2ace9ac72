//! Sessions: the log, the views over it, and the operations of the public API.

mod active;
mod append;
pub mod audit;
pub mod batch;
mod branch;
mod checkpoints;
mod context;
mod fork;
mod held;
pub(crate) mod ids;
mod ledger;
mod migrations;
pub(crate) mod offloads;
mod operations;
mod pins;
pub(crate) mod record;
mod removal;
mod session_log;
mod sessions;
mod snapshots;
mod sound;
mod state;
pub(crate) mod stored;
pub mod transcript;
mod usage;

pub use active::{ActiveContext, PartTokens};
pub use branch::Branch;
pub use checkpoints::CheckpointRecord;
pub use context::{Context, Cover, How, Item, Left, Made, Offload, Origin, Place, Size, Splice, Totals, Why};
pub use fork::Forked;
pub use ledger::{Fate, LedgerEntry, conserve, ledger};
pub use operations::{Appended, Compacted, Opened, OutItem, Prepared, Session, Synced, ToolSet};
pub use pins::PinProposal;
pub use record::SCHEMA;
pub use session_log::{LogEntry, SessionLog};
pub use sessions::{ParentInfo, SessionInfo};
pub use snapshots::{SnapshotInfo, SnapshotPurpose};
pub use usage::{Category, ContextUsage};

pub(crate) use held::Held;
pub(crate) use ledger::conserve_origins;
pub(crate) use offloads::{NewBlob, range as text_range};
pub(crate) use pins::carried;
pub(crate) use record::Cause;
pub(crate) use state::{Change, State, Summarised, measure};
pub(crate) use stored::logged;
