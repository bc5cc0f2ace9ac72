//! What a call goes through, in exact figures: timings cannot be asserted, work can (P20). Nothing is counted in a release.

use std::cell::Cell;

/// Work that grows with a history where it is done for all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkDone {
    /// Messages that were read as JSON.
    Parses,
    /// Items of the context that were gone over.
    Items,
    /// Offloads that the ledger looked at.
    Offloads,
    /// Entries of ledgers that were made.
    Entries,
    /// Lines that the keep-layer could choose from.
    Lines,
    /// Bytes whose tokens were estimated.
    Estimated,
    /// Bytes that were searched for secrets.
    Searched,
    /// Bytes that were hashed.
    Hashed,
}

impl WorkDone {
    /// All of it.
    pub const ALL: [WorkDone; 8] = [
        WorkDone::Parses,
        WorkDone::Items,
        WorkDone::Offloads,
        WorkDone::Entries,
        WorkDone::Lines,
        WorkDone::Estimated,
        WorkDone::Searched,
        WorkDone::Hashed,
    ];
}

thread_local! {
    static DONE: [Cell<u64>; WorkDone::ALL.len()] = const { [const { Cell::new(0) }; WorkDone::ALL.len()] };
}

/// Notes so much more of it.
pub fn note(what: WorkDone, count: usize) {
    if cfg!(debug_assertions) {
        DONE.with(|done| {
            if let Some(so_far) = done.get(what as usize) {
                so_far.set(so_far.get() + count as u64);
            }
        });
    }
}

/// How much of it this thread has done since it was asked last.
pub fn take(what: WorkDone) -> u64 {
    DONE.with(|done| done.get(what as usize).map_or(0, Cell::take))
}
