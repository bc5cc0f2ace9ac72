//! Sessions: the log, the views over it, and the operations of the public API.

mod append;
pub mod audit;
pub mod batch;
mod checkpoints;
mod context;
mod held;
pub(crate) mod ids;
mod ledger;
pub(crate) mod offloads;
mod operations;
pub(crate) mod record;
mod sound;
mod state;
pub(crate) mod stored;
pub mod transcript;
mod usage;

pub use checkpoints::CheckpointRecord;
pub use context::{Context, Cover, How, Item, Made, Offload, Origin, Place, Size, Splice, Totals};
pub use ledger::{Fate, LedgerEntry, conserve, ledger};
pub use operations::{Appended, Compacted, Opened, OutItem, Prepared, Session, Synced, ToolSet};
pub use record::SCHEMA;
pub use usage::{Category, ContextUsage};

pub(crate) use held::Held;
pub(crate) use ledger::conserve_origins;
pub(crate) use offloads::{NewBlob, range as text_range};
pub(crate) use record::Cause;
pub(crate) use state::{Change, State, measure};
pub(crate) use stored::logged;
