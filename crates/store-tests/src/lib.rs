//! What the engine relies on in a store, and what it must survive.
//!
//! * [`conformance`]: the checks that every store passes.
//! * [`histories`]: valid histories of every format, broken ones, and any JSON at all, from a seed.
//! * [`checked`]: a session that is checked after every call.
//! * [`recorded`]: recorded transcripts and requests, where they are present.
//! * [`summariser`]: summarisers of every temper.
//! * [`host`]: drives operations of the engine natively, with scripted answers and with faults.
//! * [`options`]: options over others.
//! * [`failpoints`]: a fault at every effect and every call of the store, for every operation.
//! * [`simulation`]: several tabs on one session, with crashes, lost answers and failing stores, from a seed.

pub mod checked;
pub mod conformance;
pub mod conversation;
pub mod counts;
pub mod failpoints;
pub mod histories;
pub mod host;
mod model;
pub mod options;
pub mod recorded;
pub mod simulation;
pub mod store;
pub mod summariser;

pub use host::{Host, How};
pub use store::{MemoryStore, Store};
