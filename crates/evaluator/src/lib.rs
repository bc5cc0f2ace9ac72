//! The evaluator: what a compaction costs and what it keeps, measured on transcripts, without a model.
//!
//! Nothing here decides anything for a session; it is a module of its own and never in the engine's.

pub mod entities;
pub mod host;
pub mod recall;
pub mod replay;
pub mod transcript;

#[cfg(target_arch = "wasm32")]
mod wasm;
