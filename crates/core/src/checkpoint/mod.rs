//! What preset `checkpoint` knows (`S5`): levels, tiers, modes, how reliable a model is, limits of providers, goals.
//! Pure: numbers and texts in, numbers and texts out. What is done with them is in `plan/`.

mod goal;
mod level;
mod marker;
mod mode;
mod profile;
mod reliability;
mod tier;

pub use goal::{
    Artifact, ArtifactAction, Decision, Goal, GoalCheckpoint, GoalStatus, Ms, Priority, StepProgress,
};
pub use level::{Level, Levels, NUMBERS as LEVELS, Range, in_proportion};
pub use marker::{Source, Update, markers};
pub use mode::{Mode, Preservation};
pub use profile::{Parts, Profile, Validation, limit_of, validate};
pub use reliability::{Reliability, model_size, reliability, warn_after};
pub use tier::{Tier, checkpoint_budget, compress_above};
