//! The engine of context-compactor: a deterministic, sans-I/O core.
//!
//! Events go in, effects come out; time, ids and model answers are passed in. Nothing here performs I/O, reads a
//! clock or draws a random number, so every run can be replayed from its inputs.
//!
//! Its rooms; each uses only those below it and, in its own line, those to its right (`tests/node/rooms.test.mjs`):
//!
//! | rooms | what they are |
//! |---|---|
//! | `session`, `standalone` | the operations of the public API; what is useful without a session |
//! | `compaction` | the ladder, and its rungs |
//! | `recall` | reading and searching what is no longer in the context; the model's tools for both |
//! | `log` | what is stored of a session, and its state in memory |
//! | `step` | the machine, and what crosses between engine and host |
//! | `policy` | presets, options, prices; as data |
//! | `summary` | prompts, rendering, checks, facts, the built-in summariser, what is kept beside a summary |
//! | `context`, `redact`, `checkpoint` | items, ledger and cut; secrets and what was erased; levels, tiers, goals |
//! | `tokens`, `keys` | estimates; keys of rows and ids |
//! | `text`, `clock` | the cut of a text; times as texts |
//! | `wire`, `message`, `order`, `error` | a crate of their own: formats and providers; the message model; sorts in little code; codes; how records are read and written (`wire::record`, `wire::named`, `wire::objects`); what is counted of work (`wire::work`) |
//!
//! The map of the crate is in `ARCHITECTURE.md`.

pub mod checkpoint;
mod clock;
pub mod compaction;
pub mod context;
pub mod keys;
pub mod log;
pub mod policy;
pub mod recall;
mod redact;
pub mod session;
pub mod standalone;
pub mod step;
pub mod summary;
mod text;
pub mod tokens;

use context_compactor_wire::order;
pub use context_compactor_wire::{self as wire, Code, Error, Result, error, message};
