//! The engine of context-compactor: a deterministic, sans-I/O core.
//!
//! Events go in, effects come out; time, ids and model answers are passed in. Nothing here performs I/O, reads a
//! clock or draws a random number, so every run can be replayed from its inputs.
//!
//! The map of the crate is in `ARCHITECTURE.md`.

pub mod checkpoint;
mod clock;
pub mod compaction;
pub mod context;
pub mod error;
pub mod keys;
pub mod log;
pub mod message;
mod order;
pub mod policy;
pub mod recall;
mod redact;
pub mod session;
pub mod standalone;
pub mod step;
pub mod summary;
mod text;
pub mod tokens;
pub mod wire;

pub use error::{Code, Error, Result};
