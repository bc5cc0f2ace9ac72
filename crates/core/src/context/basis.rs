//! What leans on another message (`X2`): a result that is told as what differs from an earlier one says nothing without that
//! one, so both are in a context, or neither is.

use super::items::{Origin, Placeholder};
use std::collections::HashSet;

/// A result of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Basis {
    /// Position of its message in the log.
    pub seq: u64,
    /// Index of that among the app's messages.
    pub index: usize,
    /// Which result of it, from 0.
    pub nth: usize,
}

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
pub fn unfounded<'o>(origins: impl Iterator<Item = &'o Origin> + Clone) -> HashSet<Basis> {
    let mut wanted: HashSet<Basis> = origins.clone().flat_map(Origin::bases).collect();
    if wanted.is_empty() {
        return wanted;
    }
    let (mut missing, mut seen) = (HashSet::new(), HashSet::new());
    for origin in origins {
        missing.extend(origin.bases().filter(|basis| !seen.contains(basis)));
        wanted.retain(|basis| {
            let has = origin.has(*basis);
            if has {
                seen.insert(*basis);
            }
            !has
        });
    }
    missing
}
