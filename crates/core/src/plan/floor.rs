//! The smallest prompt that a compaction can leave, and the error for one that does not fit.

use super::compress;
use super::cut::{self, Aim, Proposal};
use super::presets::Rung;
use super::result::{CompactionResult, Trigger};
use crate::error::{Code, Error, Result};
use crate::reduce::last;
use crate::session::{Held, Item, State};
use crate::step::Io;
use std::cmp::Reverse;
use std::collections::HashSet;

/// The smallest prompt that any compaction can leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Floor {
    fixed: usize,
    mandatory: usize,
    /// Their sum.
    pub(super) total: usize,
    /// The same before the last resort.
    pub(super) before: usize,
    /// What that may shorten.
    pub(super) stays: Stays,
}

impl Floor {
    fn of(state: &State, fixed: usize, mandatory: usize) -> Floor {
        let total = state.corrected(fixed.saturating_add(mandatory));
        // What the provider counts beside is as little to be compacted as the system prompt.
        Floor {
            fixed: total.saturating_sub(mandatory),
            mandatory: mandatory.min(total),
            total,
            before: total,
            stays: Stays::default(),
        }
    }
}

impl std::fmt::Display for Floor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Floor { fixed, mandatory, total, .. } = self;
        write!(
            f,
            "cannot go below {total} tokens: fixed {fixed} (system prompt, tools) + mandatory {mandatory}"
        )
    }
}

/// The floor of a session: what is fixed, and what stays verbatim after a summary; of that, where it does not fit, what the
/// last resort leaves.
pub(super) async fn floor(io: &Io, held: &Held, trigger: Trigger) -> Result<Floor> {
    let settings = held.settings();
    let fixed = held.state().fixed_tokens;
    let (mandatory, stays) = if settings.rungs.contains(&Rung::Summarise) {
        // A compaction by hand has no emergency to follow.
        let is_emergency = settings.rungs.contains(&Rung::Rollover) && trigger != Trigger::Manual;
        let aim = if is_emergency { Aim::ROLLOVER } else { Aim::of(&settings) };
        let proposal = cut::propose(&held.state(), aim)?;
        match proposal {
            Ok(proposal) => {
                let unbound = proposal.unbound_tokens(io, held).await?;
                (proposal.mandatory_tokens.saturating_sub(unbound), Stays::beside(&proposal))
            }
            Err(_) => (held.context().totals().tokens, Stays::default()),
        }
    } else {
        // Nothing is ever removed: what is left is what compressing every result leaves.
        (compress::least_tokens(&held.state())?, Stays::default())
    };
    let state = held.state();
    let before = Floor::of(&state, fixed, mandatory).total;
    let frees =
        if before > settings.hard_limit { last::frees(&state, &|index| stays.holds(index))? } else { 0 };
    Ok(Floor { before, stays, ..Floor::of(&state, fixed, mandatory.saturating_sub(frees)) })
}

/// The messages of the app that a summary leaves, or quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stays {
    goes: HashSet<usize>,
}

impl Stays {
    fn beside(proposal: &Proposal) -> Stays {
        let quoted = |index: usize| proposal.quotes.iter().any(|place| place.index == index);
        let summarised = proposal.compress.iter().filter_map(|item| item.origin.place());
        Stays { goes: summarised.map(|place| place.index).filter(|index| !quoted(*index)).collect() }
    }

    /// True for such a message.
    pub(super) fn holds(&self, index: usize) -> bool {
        !self.goes.contains(&index)
    }
}

/// Says whether the context fits, and of one that does not that this is no success.
pub(crate) async fn settle(io: &Io, held: &Held, result: &mut CompactionResult) -> Result<()> {
    result.fits = held.tokens() <= held.settings().hard_limit;
    if !result.fits {
        result.success = false;
        result.error = Some(overflow(io, held, result.trigger, result.error.as_ref()).await?);
    }
    Ok(())
}

/// The error for a context that does not fit; `failed` is why the last summary was none.
pub(super) async fn overflow(
    io: &Io,
    held: &Held,
    trigger: Trigger,
    failed: Option<&Error>,
) -> Result<Error> {
    let (tokens, limit) = (held.tokens(), held.settings().hard_limit);
    let floor = floor(io, held, trigger).await?;
    let why = match failed {
        Some(error) => format!("the summary failed ({error}); {floor}"),
        None => floor.to_string(),
    };
    // What `S5.1` says about the append that did not fit; the message is in the transcript all the same.
    let refused = if held.settings().preset.checkpoints {
        format!("Cannot add message: would exceed limit ({tokens} > {limit}): ")
    } else {
        String::new()
    };
    let largest = held.context().items().iter().filter_map(Largest::of).max();
    let named = largest.map_or_else(String::new, |Largest { tokens, index }| {
        format!("; the largest message is {} with {tokens} tokens", index.0)
    });
    let pinned = match held.state().row.pinned_tokens {
        0 => String::new(),
        pinned => format!("pin less ({pinned} tokens are), "),
    };
    Ok(Error {
        index: largest.map(|largest| largest.index.0),
        cause: failed.and_then(|error| error.cause),
        ..Error::new(
            Code::ContextOverflow,
            format!(
                "{refused}{tokens} tokens do not fit {limit} (the context window less the answer): {why}{named}; {pinned}keep \
                 fewer messages, offload results or use a larger window"
            ),
        )
    })
}

/// A message of the app, by what it takes; of two that take as much the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Largest {
    tokens: usize,
    index: Reverse<usize>,
}

impl Largest {
    fn of(item: &Item) -> Option<Largest> {
        let place = item.origin.place()?;
        Some(Largest { tokens: item.size.tokens, index: Reverse(place.index) })
    }
}
