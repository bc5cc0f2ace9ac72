//! The conservation ledger: every message of the app has exactly one fate, or the change is refused.

use super::context::{Item, Origin};
use crate::error::{Code, Error, Result};
use serde::Serialize;

/// What became of one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LedgerEntry {
    /// Index among the app's messages.
    pub index: usize,
    /// Its fate.
    pub fate: Fate,
    /// The summary that stands for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// The reference of its (first) offloaded result.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// SHA-256 of that result's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The fates of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// In the context as the app handed it over.
    Verbatim,
    /// In the context through a summary only.
    Summarised,
    /// In the context with a reference in place of a result.
    Offloaded,
}

/// The fate of every message of the app, in order.
pub fn ledger(items: &[Item]) -> Vec<LedgerEntry> {
    let mut entries = Vec::with_capacity(items.len());
    for item in items {
        let entry = |index, fate| LedgerEntry {
            index,
            fate,
            checkpoint: None,
            reference: None,
            sha256: None,
            reason: None,
        };
        match &item.origin {
            Origin::Message(place) => entries.push(entry(place.index, Fate::Verbatim)),
            Origin::Offloaded { place, offloads } => entries.push(LedgerEntry {
                reference: offloads.first().map(|offload| offload.reference.clone()),
                sha256: offloads.first().map(|offload| offload.sha256.clone()),
                reason: (offloads.len() > 1).then(|| format!("{} results offloaded", offloads.len())),
                ..entry(place.index, Fate::Offloaded)
            }),
            Origin::Summary { checkpoint, covers } => {
                for cover in covers {
                    for index in cover.from..cover.to {
                        let offload = cover.offloads.iter().find(|(of, _)| *of == index).map(|(_, o)| o);
                        entries.push(LedgerEntry {
                            checkpoint: Some(checkpoint.to_string()),
                            reference: offload.map(|offload| offload.reference.clone()),
                            sha256: offload.map(|offload| offload.sha256.clone()),
                            ..entry(index, Fate::Summarised)
                        });
                    }
                }
            }
            Origin::Acknowledgement => {}
        }
    }
    entries.sort_by_key(|entry| entry.index);
    entries
}

/// Refuses a context in which a message of the first `messages` has no fate, or two.
///
/// Errors: [`Code::Poisoned`] naming the message; it means a fault of the engine, and nothing was written.
pub fn conserve(items: &[Item], messages: usize) -> Result<()> {
    conserve_origins(items.iter().map(|item| &item.origin), messages)
}

/// The same for items whose bodies were not read.
pub(crate) fn conserve_origins<'o>(origins: impl Iterator<Item = &'o Origin>, messages: usize) -> Result<()> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for origin in origins {
        match origin {
            Origin::Message(place) | Origin::Offloaded { place, .. } => {
                ranges.push((place.index, place.index + 1));
            }
            Origin::Summary { covers, .. } => {
                ranges.extend(covers.iter().map(|cover| (cover.from, cover.to)));
            }
            Origin::Acknowledgement => {}
        }
    }
    ranges.sort_unstable();
    let mut next = 0;
    for (from, to) in ranges {
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
