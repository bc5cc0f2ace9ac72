//! What holds for every history of every format, over histories made from seeds.
//!
//! `CC_HISTORIES` says how many for each format (5,000 when it does not), `CC_HISTORY_FIRST` from which seed on,
//! `CC_HISTORY_FORMAT` for which format alone; `CC_HISTORY_SEED` repeats a single one, `CC_PROGRESS=1` says how far it is.

mod compaction;
mod harness;
mod long;
mod shrink;
mod wire;
