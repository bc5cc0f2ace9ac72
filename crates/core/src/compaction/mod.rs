//! What is done about a context that grows: the ladder that both the dry run and the real run climb, and its rungs. Some
//! need no model (`offload`, `clear`, `admit`, `process`), some ask one (`compress`, `summarise`, `ageing`).

mod admit;
mod ageing;
mod ask;
mod call;
mod calls;
mod checkpoint_budget;
mod clear;
mod compress;
mod cut;
mod due;
mod emergency;
mod files;
mod floor;
mod frame;
mod in_force;
mod keeping;
mod ladder;
mod laid_down;
mod last;
pub(crate) mod lean;
mod media;
mod offload;
mod parts;
mod process;
pub(crate) mod reasoning;
mod redaction;
mod replace;
mod replacement;
mod reread;
mod result;
mod rung;
mod server;
mod shape;
mod stage;
mod strategy;
mod summarise;
mod superseded;
mod thread;
mod trajectory;
mod write;
mod writer;

pub use result::{
    CompactionPreview, CompactionResult, Edit, FateChange, OffloadReport, Plan, PlanBytes, PlanCost,
    PlanLimits, PlanUsd, RungPlan,
};
pub use stage::{LADDER, Ladder, TO_LADDER};
pub use trajectory::{Compression, Execution, ReactStats, Trajectory, TrajectoryMetadata, TrajectoryTurn};

pub(crate) use due::is_due;
pub(crate) use floor::settle;
pub(crate) use frame::{Framer, erased};
pub(crate) use offload::{LEFT_OUT, reference as stub_of};
pub(crate) use replace::{BEGINS, first_line, reference_of, with_text};
pub(crate) use rung::{ClimbPart, Climbed, Run, reason};
pub(crate) use stage::{climb, dissolve_around, plan, recognize, settle_reasoning};
pub(crate) use trajectory::{stats, trajectory};
