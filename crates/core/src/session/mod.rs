//! Sessions: the operations of the public API.

mod active;
mod append;
pub mod audit;
mod branch;
mod checkpoints;
pub(crate) mod erase;
mod fork;
mod kept_tools;
mod live;
mod mend;
mod operations;
mod pins;
mod portable;
mod recognize;
mod removal;
mod salvage;
pub(crate) mod sendable;
mod sessions;
pub(crate) mod snapshots;
pub mod transcript;
mod undo;
mod usage;
mod verify;

pub use active::{ActiveContext, PartTokens};
pub use branch::Branch;
pub use checkpoints::CheckpointRecord;
pub use fork::Forked;
pub use live::{LIVE, Live, LiveFacts, TO_LIVE};
pub use mend::{MENDING, Mending, TO_MENDING};
pub use operations::{
    Appended, BRANCHING, Branching, Carried, Compacted, Later, Opened, OutItem, Prepared, Session, Synced,
    TO_BRANCHING, ToolSet,
};
pub use salvage::Remains;
pub use sessions::{ParentInfo, SessionInfo};
pub use snapshots::SnapshotInfo;
pub use usage::{Category, ContextUsage};
pub use verify::Verified;
