//! What leans on another message (`X2`): a result that is told as what differs from an earlier one says nothing without that
//! one, so both are in a context, or neither is.

use super::offload::Placeholder;
use super::origin::Origin;

/// A result of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Basis {
    /// Position of its message in the log.
    pub seq: u64,
    /// Index of that among the app's messages.
    pub index: usize,
    /// Which result of it, from 0.
    pub nth: usize,
}

crate::wire::record!(Basis {
    seq = "seq",
    index = "index",
    nth = "nth",
});

impl Origin {
    /// The results that this item leans on.
    pub fn bases(&self) -> impl Iterator<Item = Basis> {
        self.offloads().iter().filter_map(|offload| offload.basis)
    }

    /// True where this is the message of `basis`, and has it word for word.
    pub fn has(&self, basis: Basis) -> bool {
        self.place().is_some_and(|place| place.seq == basis.seq)
            && !self.is_replaced(Placeholder::Difference, basis.nth)
    }
}

/// What items lean on that does not stand before them, word for word.
pub fn unfounded<'o>(origins: impl Iterator<Item = &'o Origin> + Clone) -> Vec<Basis> {
    let mut missing = Vec::new();
    for (at, origin) in origins.clone().enumerate() {
        for basis in origin.bases() {
            if !missing.contains(&basis) && !origins.clone().take(at).any(|before| before.has(basis)) {
                missing.push(basis);
            }
        }
    }
    missing
}
