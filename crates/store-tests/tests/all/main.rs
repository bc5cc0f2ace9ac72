//! Every test of the store, the simulator and the properties, in one program: it is linked once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod damage;
mod failpoints;
mod formats;
mod later_compactions;
mod recorded;
mod simulation;
mod summarisers;
