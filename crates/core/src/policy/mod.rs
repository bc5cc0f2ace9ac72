//! What is to be done about a context that grows, as data: presets, options, and the rule of prices.

mod clear;
pub mod cost;
mod digest;
mod given;
mod law;
mod limits;
mod numbers;
mod options;
mod presets;
mod reader;
mod resolve;
mod row;
mod rung;
mod settings;
mod standalone;
mod tools;
mod trigger;

pub use given::check_options;
pub use limits::SessionLimits;
pub use numbers::Threshold;
pub use options::OPTIONS;
pub use presets::{
    API_TOOLS, BALANCED, CHECKPOINT, COMPACTABLE_TOOLS, CheckpointNumbers, FACTOR3, Fallback, KeepNumbers,
    LAYERED, LayeredNumbers, Numbers, OFFLOAD, OffloadNumbers, PRESETS, Preset, ProcessNumbers, QUERY_TOOLS,
    REACT, READ_TOOLS, ReactNumbers, RestoreNumbers, SEARCH_TOOLS, When,
};
pub use resolve::split_keep;
pub use row::{Calls, Documented, Off, OptionKind, Row};
pub use rung::Rung;
pub use settings::{PinProposals, PrefixMismatch, ProcessTools, Settings, Summariser};
pub use standalone::StandaloneOptions;
pub(crate) use tools::ToolDigest;
pub use tools::{KeepResults, ToolPolicies};
pub use trigger::Trigger;

pub(crate) use clear::clearable;
pub(crate) use digest::Digest;
pub(crate) use resolve::read_goal;
