//! What is stored of a session, and its state in memory: the log, the views over it, and the batches that change both.

pub(crate) mod check;
pub(crate) mod deletion;
mod due;
mod gaps;
pub(crate) mod guard;
mod jobs;
pub(crate) mod keyed;
mod loss;
pub(crate) mod migrations;
pub(crate) mod offloads;
mod open;
mod pins;
pub(crate) mod price;
mod raw;
pub(crate) mod rebuild;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod renamed;
pub(crate) mod retry;
pub(crate) mod said;
pub(crate) mod seal;
pub(crate) mod sent;
pub(crate) mod snapshots;
pub(crate) mod staging;
pub(crate) mod state;
pub(crate) mod stored;
pub(crate) mod terms;
mod unstored;
mod usage;
mod view;
mod watermark;
pub(crate) mod wide;

pub use gaps::Gap;
pub use record::SCHEMA;
pub use snapshots::SnapshotPurpose;

pub(crate) use gaps::Walk;
pub(crate) use guard::SessionGuard;
pub(crate) use jobs::{Closing, Job, elsewhere, question};
pub(crate) use offloads::NewBlob;
pub(crate) use pins::carried;
pub(crate) use raw::LogReader;
pub(crate) use record::Cause;
pub(crate) use state::{ContextChange, State, Summarised, measure};
pub(crate) use terms::{Page, encode as page_of};
pub(crate) use view::{References, View};
