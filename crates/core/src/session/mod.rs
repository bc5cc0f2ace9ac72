//! Sessions: the log, the views over it, and the operations of the public API.

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
pub(crate) mod record;
mod sessions;
mod sound;
mod state;
pub(crate) mod stored;
mod usage;

pub use branch::Branch;
pub use checkpoints::CheckpointRecord;
pub use context::{Context, Cover, How, Item, Made, Offload, Origin, Place, Size, Splice, Totals};
pub use fork::Forked;
pub use ledger::{Fate, LedgerEntry, conserve, conserve_with, ledger};
pub use operations::{Appended, Compacted, Opened, OutItem, Prepared, Session, Synced, ToolSet};
pub use record::SCHEMA;
pub use sessions::{ParentInfo, SessionInfo};
pub use usage::{Category, ContextUsage};

pub(crate) use held::Held;
pub(crate) use ledger::conserve_origins;
pub(crate) use offloads::{NewBlob, range as text_range};
pub(crate) use record::Cause;
pub(crate) use state::{Change, State, measure};
pub(crate) use stored::logged;
