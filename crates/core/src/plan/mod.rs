//! What is done about a context that grows: options, presets and the ladder that both the dry run and the real run
//! climb.

mod ageing;
mod ask;
mod call;
mod checkpoint_budget;
mod compress;
pub mod cost;
mod cut;
mod emergency;
mod env;
mod files;
mod floor;
mod frame;
mod in_force;
mod keeping;
mod ladder;
mod numbers;
mod options;
mod parts;
mod presets;
mod reader;
mod redaction;
mod result;
mod settings;
mod strategy;
mod summarise;
mod trajectory;
mod write;

pub use env::{ENVIRONMENT, EnvOffload, EnvOptions, options_from_env};
pub use numbers::Threshold;
pub use options::{StandaloneOptions, split_keep};
pub use presets::{
    API_TOOLS, BALANCED, CHECKPOINT, COMPACTABLE_TOOLS, CheckpointNumbers, FACTOR3, Fallback, KeepNumbers,
    LAYERED, LayeredNumbers, Numbers, OFFLOAD, OffloadNumbers, PRESETS, Preset, ProcessNumbers, QUERY_TOOLS,
    REACT, READ_TOOLS, ReactNumbers, RestoreNumbers, SEARCH_TOOLS, When,
};
pub use result::{CompactionResult, Edit, OffloadReport, Plan, PlanCost, RungPlan};
pub use settings::{PinProposals, PrefixMismatch, ProcessTools, Settings, Summariser};

pub use trajectory::{Compression, Execution, Metadata, ReactStats, Trajectory, Turn};

pub(crate) use options::read_goal;
pub(crate) use trajectory::{stats, trajectory};

pub(crate) use floor::settle;
pub(crate) use frame::{erased, quoting};
pub(crate) use keeping::Collected;
pub(crate) use ladder::{Climb, Climbed, Part, climb, plan, reason};
