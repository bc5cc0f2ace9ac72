//! What a policy of compaction costs on a transcript: a replay in the manner of demand paging.
//!
//! The conversation is taken as it was (a frozen trajectory): before each call a policy may compact, and whatever the model
//! then writes from memory has to be in the context, or is fetched again, at its price ([`trace`], [`simulation`]). The
//! best that anybody could have done, who knew how it goes on, is found exactly ([`optimum`]).

pub mod billed;
mod bound;
pub mod needs;
pub mod optimum;
pub mod policy;
pub mod sheet;
pub mod simulation;
pub mod statistics;
pub mod trace;

#[cfg(test)]
mod tests;

pub use policy::{Action, POLICIES, Policy};
pub use sheet::{SHEETS, Sheet};
pub use simulation::{Replay, Replayed, replay};
pub use trace::Trace;
