//! The conservation ledger: every message of the app has exactly one fate, or the change is refused.

use super::items::{Context, Departed, Offload, Origin, Placeholder, Why};
use crate::error::{Code, Error, Result};
use crate::order;
use serde::{Deserialize, Serialize};

/// What became of one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LedgerEntry {
    /// Index among the app's messages.
    pub index: usize,
    /// Its fate.
    pub fate: Fate,
    /// It is verbatim in the summary.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quoted: bool,
    /// The summary that replaces it, or quotes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// The reference of its (first) offloaded result.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The references of all its offloaded results, when there are several.
    #[serde(rename = "refs", skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
    /// SHA-256 of the first one's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A message that was erased. Its row of the log says who it was from, and nothing of what it said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Erased {
    /// Index among the app's messages.
    pub index: usize,
    /// Of the message as it was, in hex.
    pub sha256: String,
    /// When, in ms since 1970.
    pub at: u64,
    /// Why, as the app says.
    pub reason: String,
}

impl LedgerEntry {
    /// Of a message that was erased.
    pub(crate) fn erased(erased: &Erased) -> LedgerEntry {
        let reason = Some(format!("it was erased: {}", erased.reason));
        LedgerEntry { sha256: Some(erased.sha256.clone()), reason, ..entry(erased.index, Fate::Dropped) }
    }

    /// Says what became of the message where nobody keeps its texts.
    pub(crate) fn forget_references(&mut self) {
        if self.reference.take().is_none() {
            return;
        }
        (self.references, self.sha256) = (Vec::new(), None);
        if self.fate == Fate::Offloaded {
            self.fate = Fate::Reduced;
        }
        if self.fate == Fate::Reduced {
            self.reason = Some(SHORTENED.into());
        }
    }
}

/// The fates of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// In the context as the app handed it over.
    Verbatim,
    /// In the context through a summary only.
    #[serde(rename = "summarized")]
    Summarised,
    /// In the context with a reference in place of a result.
    Offloaded,
    /// In the context without a part of it, or sent without it.
    Reduced,
    /// In the context, but left out of what the last `prepare` sent; or not in the context any more.
    Dropped,
}

const REWOUND: &str =
    "a rewind left it behind; the log keeps it, and rewinding to an index behind it brings it back";
const CLEARED: &str = "an old result was cleared, its call stays; the reference reads it";
const COMPRESSED: &str = "a result was compressed; the reference reads the original";
const SHORTENED: &str = "what was too long in it was shortened; without a session nothing keeps the original";
const RESTORED: &str = "it came after a snapshot that was restored; the log keeps it";
const REMOVED: &str = "it was removed from the context; the log keeps it";
const LOST: &str = "the store lost it: its row of the log is missing, or is not what was written";
const REASONING_REMOVED: &str =
    "its signed reasoning is bound to what stood before it, and that changed (AN8); the log keeps it";

/// The fate of every message of the app, in order.
pub fn ledger(context: &Context) -> Vec<LedgerEntry> {
    let mut entries = Vec::with_capacity(context.items().len());
    for Departed { from, to, why } in context.left() {
        let reason = match why {
            Why::Restored => RESTORED,
            Why::Rewound => REWOUND,
            Why::Removed => REMOVED,
            Why::Lost => LOST,
        };
        let gone = |index| LedgerEntry { reason: Some(reason.into()), ..entry(index, Fate::Dropped) };
        entries.extend((*from..*to).map(gone));
    }
    for item in context.items() {
        match &item.origin {
            Origin::Message(place) => entries.push(entry(place.index, Fate::Verbatim)),
            Origin::Edited { place, offloads, reasoning_removed } => {
                let refers = offloads.iter().any(|offload| offload.how.refers());
                let fate = if refers { Fate::Offloaded } else { Fate::Reduced };
                // Those that the context shows come first.
                let (shown, hidden): (Vec<_>, Vec<_>) =
                    offloads.iter().partition(|offload| offload.how.refers());
                let references = shown.into_iter().chain(hidden);
                let did = offloads.iter().find_map(|offload| match offload.how {
                    Placeholder::Reference
                    | Placeholder::Preview
                    | Placeholder::Processed
                    | Placeholder::Input
                    | Placeholder::Text => None,
                    Placeholder::Cleared => Some(CLEARED),
                    Placeholder::Compressed => Some(COMPRESSED),
                });
                let reasons = [did.filter(|_| !refers), reasoning_removed.then_some(REASONING_REMOVED)];
                let reasons: Vec<&str> = reasons.into_iter().flatten().collect();
                let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
                entries.push(LedgerEntry { reason, ..referring(entry(place.index, fate), references) });
            }
            Origin::Summary { checkpoint, covers, quotes, .. } => {
                for cover in covers {
                    for index in cover.from..cover.to {
                        let own =
                            cover.offloads.iter().filter(|(of, _)| *of == index).map(|(_, offload)| offload);
                        let quoted = quotes.iter().any(|place| place.index == index);
                        let fate = if quoted { Fate::Verbatim } else { Fate::Summarised };
                        let checkpoint = Some(checkpoint.to_string());
                        entries.push(LedgerEntry {
                            quoted,
                            checkpoint,
                            ..referring(entry(index, fate), own)
                        });
                    }
                }
            }
            Origin::Acknowledgement => {}
        }
    }
    order::by_key(entries, |entry| entry.index as u64)
}

fn entry(index: usize, fate: Fate) -> LedgerEntry {
    LedgerEntry {
        index,
        fate,
        quoted: false,
        checkpoint: None,
        reference: None,
        references: Vec::new(),
        sha256: None,
        reason: None,
    }
}

/// The entry with its references.
fn referring<'o>(entry: LedgerEntry, offloads: impl Iterator<Item = &'o Offload> + Clone) -> LedgerEntry {
    let references: Vec<String> = offloads.clone().map(|offload| offload.reference.clone()).collect();
    LedgerEntry {
        reference: references.first().cloned(),
        references: if references.len() > 1 { references } else { Vec::new() },
        sha256: offloads.map(|offload| offload.sha256.clone()).next(),
        ..entry
    }
}

/// Refuses a context in which a message of the first `messages` has no fate, or two.
///
/// Errors: [`Code::Poisoned`] naming the message; it means a fault of the engine, and nothing was written.
pub fn conserve(context: &Context, messages: usize) -> Result<()> {
    conserve_origins(context.items().iter().map(|item| &item.origin), context.left(), messages)
}

/// The same for items whose bodies were not read.
pub(crate) fn conserve_origins<'o>(
    origins: impl Iterator<Item = &'o Origin>,
    left: &[Departed],
    messages: usize,
) -> Result<()> {
    let mut ranges: Vec<(usize, usize)> = left.iter().map(|left| (left.from, left.to)).collect();
    for origin in origins {
        match origin {
            Origin::Message(place) | Origin::Edited { place, .. } => {
                ranges.push((place.index, place.index + 1));
            }
            Origin::Summary { covers, .. } => {
                ranges.extend(covers.iter().map(|cover| (cover.from, cover.to)));
            }
            Origin::Acknowledgement => {}
        }
    }
    let mut next = 0;
    for (from, to) in order::by_key(ranges, |range| range.0 as u64) {
        if from != next {
            let what = if from < next { "has two fates" } else { "has no fate" };
            return Err(broken(from.min(next), what));
        }
        next = to;
    }
    if next == messages { Ok(()) } else { Err(broken(next.min(messages), "has no fate")) }
}

fn broken(index: usize, what: &str) -> Error {
    let mut error = Error::new(
        Code::Poisoned,
        format!("the ledger does not add up: it {what}; the change was refused and nothing was written"),
    );
    error.index = Some(index);
    error
}
