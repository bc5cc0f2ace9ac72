//! Where an item of the context comes from, what stands for parts of it, and what left.

use super::offload::{Offload, Placeholder};
use crate::checkpoint::Level;
use crate::order;
use std::rc::Rc;

/// Where an item of the context comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// The app's own message, untouched.
    Message(Place),
    /// The app's message with something taken out of it.
    Edited {
        /// Which message.
        place: Place,
        /// The tool results that were moved to the store, in the order of the message's results.
        offloads: Vec<Offload>,
        /// The reasoning that was bound to what was before it is gone (`AN8`).
        reasoning_removed: bool,
    },
    /// A summary that replaces earlier messages.
    Summary {
        /// Its id.
        checkpoint: Rc<str>,
        /// What it replaces, in order. Shared, as it grows with the session and items are copied.
        covers: Rc<[CoveredRange]>,
        /// Those of them that are verbatim in it.
        quotes: Vec<Place>,
        /// Bytes of its text before the quotes.
        prose: usize,
        /// How it was made; not known of one that an earlier release wrote.
        made: Option<Rc<SummaryMeta>>,
    },
    /// A message of ours that keeps the roles alternating; it replaces nothing.
    Acknowledgement,
}

/// Whose message is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageSource {
    /// The nth of the messages that this operation was given.
    New(usize),
    /// The app's, at this position of the log.
    Logged(u64),
    /// One of ours.
    Ours,
}

/// How a summary was made (`S5.3`, `S5.8`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SummaryMeta {
    /// How detailed it is, when that was asked for.
    pub level: Option<Level>,
    /// Compressions of the session before it.
    pub number: u64,
    /// ms since 1970.
    pub created_at: u64,
    /// When it was made shorter, in ms since 1970.
    pub compressed_at: Option<u64>,
    /// Tokens of what it replaces.
    pub original_tokens: usize,
    /// Those of them that decide its level: without messages that it quotes; 0 where an earlier release did not note it.
    pub counted_tokens: usize,
    /// Tokens of its message.
    pub tokens: usize,
    /// Tokens of its mark and text alone, without what it quotes; 0 where an earlier release did not note it.
    pub text_tokens: usize,
    /// Bytes of the mark before its text.
    pub header: usize,
    /// Who wrote it, when that is known.
    pub model: Option<String>,
    /// Pins that were proposed for what it replaces and that nobody answered (`S4.3`).
    pub proposed: Vec<PinProposal>,
    /// Indices of messages with sentences that hold on and for which there was no room.
    pub more: Vec<usize>,
    /// Sentences of the user that hold on, of messages that another session has.
    pub rules: Vec<String>,
    /// Bytes of what is between its text and the quotes; 0 where an earlier release had nothing there.
    pub front: usize,
    /// Indices of messages that it quotes and that nothing of what it replaces answers.
    pub waiting: Vec<usize>,
    /// It is the app's own message, the only one that it quotes: the provider compacted what was before it (`X10`).
    pub server: bool,
}

crate::wire::record!(SummaryMeta {
    level = "level" or nothing,
    number = "number" or default,
    created_at = "createdAt" or default,
    compressed_at = "compressedAt" or nothing,
    original_tokens = "originalTokens" or default,
    counted_tokens = "countedTokens" or default,
    tokens = "tokens" or default,
    text_tokens = "textTokens" or default,
    header = "header" or default,
    model = "model" or nothing,
    proposed = "proposed" or nothing,
    more = "more" or nothing,
    rules = "rules" or nothing,
    front = "front" or default,
    waiting = "waiting" or nothing,
    server = "server" or nothing,
});

/// A message of the user that states constraints.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PinProposal {
    /// Its index among the app's messages.
    pub index: usize,
    /// The sentences that require, limit or forbid something, to the letter.
    pub constraints: Vec<String>,
    /// What the whole message costs: that much stays in the context with the pin.
    pub tokens: usize,
}

crate::wire::record!(PinProposal {
    index = "index",
    constraints = "constraints",
    tokens = "tokens",
});

/// A message of the app: its position in the log and among the app's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Place {
    /// Position in the log.
    pub seq: u64,
    /// Index among the app's messages, from 0.
    pub index: usize,
}

crate::wire::record!(Place {
    seq = "seq",
    index = "index",
});

/// A run of the app's messages that a summary replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoveredRange {
    /// Index of the first.
    pub from: usize,
    /// Index after the last.
    pub to: usize,
    /// Their offloads: retired, readable as long as the session lives (`S1.9`).
    pub offloads: Vec<(usize, Offload)>,
}

crate::wire::record!(CoveredRange {
    from = "from",
    to = "to",
    offloads = "offloads" or nothing,
});

impl Origin {
    /// The app's message that this item is, whole or in part.
    pub fn place(&self) -> Option<Place> {
        match self {
            Origin::Message(place) | Origin::Edited { place, .. } => Some(*place),
            Origin::Summary { .. } | Origin::Acknowledgement => None,
        }
    }

    /// Whose message it is, for the app's own counter.
    pub(crate) fn whose(&self) -> MessageSource {
        match self {
            Origin::Message(place) => MessageSource::Logged(place.seq),
            _ => self.server().map_or(MessageSource::Ours, |place| MessageSource::Logged(place.seq)),
        }
    }

    /// True when the `nth` text of the kind of `how` was moved to the store.
    pub(crate) fn is_replaced(&self, how: Placeholder, nth: usize) -> bool {
        self.offloads().iter().any(|offload| offload.nth == nth && offload.how.kind() == how.kind())
    }

    /// True where media left the message: what is told of them is one more text of it, or of a result in it.
    pub(crate) fn lacks_media(&self) -> bool {
        self.offloads().iter().any(Offload::is_media)
    }

    /// The messages that a summary of ours quotes verbatim.
    pub(crate) fn quotes(&self) -> &[Place] {
        match self {
            Origin::Summary { quotes, .. } if self.server().is_none() => quotes,
            _ => &[],
        }
    }

    /// The app's message in which the provider compacted what was before it, when this is one.
    pub(crate) fn server(&self) -> Option<Place> {
        match self {
            Origin::Summary { quotes, made: Some(made), .. } if made.server => quotes.first().copied(),
            _ => None,
        }
    }

    /// The references that this item's text holds.
    pub fn offloads(&self) -> &[Offload] {
        match self {
            Origin::Edited { offloads, .. } => offloads,
            _ => &[],
        }
    }

    /// The offloads that this item refers to or stands for, each with the index of its message.
    pub(crate) fn every_offload(&self) -> impl Iterator<Item = (usize, &Offload)> {
        let own = self.place().into_iter();
        let own = own.flat_map(|place| self.offloads().iter().map(move |offload| (place.index, offload)));
        let covers = if let Origin::Summary { covers, .. } = self { covers } else { &[][..] };
        let covered = covers.iter().flat_map(|cover| &cover.offloads);
        own.chain(covered.map(|(index, offload)| (*index, offload)))
    }
}

/// A run of the app's messages that are no longer in the context, in any form; the log keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departed {
    /// Index of the first.
    pub from: usize,
    /// Index after the last.
    pub to: usize,
    /// Why they left.
    pub why: Why,
}

crate::wire::record!(Departed {
    from = "from",
    to = "to",
    why = "why",
});

/// Why messages left the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// They came after a snapshot that was restored (`S5.2`).
    Restored,
    /// They came after a point of the log that the app went back to.
    Rewound,
    /// The app removed them (`S5.1`).
    Removed,
    /// The store lost them.
    Lost,
}

crate::wire::named!(Why { Restored = "restored", Rewound = "rewound", Removed = "removed", Lost = "lost" });

/// Runs in ascending order, neighbours of one kind as one.
pub(crate) fn join_left(runs: Vec<Departed>) -> Vec<Departed> {
    let mut joined: Vec<Departed> = Vec::new();
    for run in order::by_key(runs, |run| run.from as u64) {
        match joined.last_mut() {
            Some(last) if last.to == run.from && last.why == run.why => last.to = run.to,
            _ => joined.push(run),
        }
    }
    joined
}
