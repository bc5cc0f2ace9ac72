//! What is done about a context that grows: the ladder that both the dry run and the real run climb.

mod ageing;
mod ask;
mod call;
mod checkpoint_budget;
mod compress;
mod cut;
mod emergency;
mod files;
mod floor;
mod frame;
mod in_force;
mod keeping;
mod ladder;
mod parts;
mod redaction;
mod result;
mod strategy;
mod summarise;
mod trajectory;
mod write;

pub use result::{CompactionResult, Edit, OffloadReport, Plan, PlanCost, RungPlan};
pub use trajectory::{Compression, Execution, Metadata, ReactStats, Trajectory, Turn};

pub(crate) use trajectory::{stats, trajectory};

pub(crate) use floor::settle;
pub(crate) use frame::{erased, quoting};
pub(crate) use ladder::{Climb, Climbed, Part, climb, plan, reason};
