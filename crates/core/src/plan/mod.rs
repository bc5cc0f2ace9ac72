//! What is done about a context that grows: options, presets and the ladder that both the dry run and the real run
//! climb.

mod cut;
mod env;
mod ladder;
mod options;
mod presets;
mod reader;
mod result;
mod summarise;

pub use env::{ENVIRONMENT, EnvOffload, EnvOptions, options_from_env};
pub use options::{Keep, PrefixMismatch, Settings, StandaloneOptions, Summariser, split_keep};
pub use presets::{Fallback, Numbers, OFFLOAD, PRESETS, Preset, Rung};
pub use result::{CompactionResult, Edit, OffloadReport, Plan, RungPlan, Trigger};

pub(crate) use ladder::{Climb, climb, plan};
