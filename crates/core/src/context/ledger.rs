//! The conservation ledger: every message of the app has exactly one fate, or the change is refused.

use super::basis::unfounded;
use super::items::Context;
use super::offload::{Offload, Placeholder};
use super::origin::{CoveredRange, Departed, Origin, Place, Why};
use crate::error::{Code, Error, Result};
use crate::order;
use crate::wire::work::{self, WorkDone};
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use std::iter;

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
    /// SHA-256 of the first one's text, as long as no summary stands for the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Index of the message with the result that its (first) result is told as what differs from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<usize>,
    /// The same of all its results, when there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<usize>,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A message that was erased. Its row of the log says who it was from, and nothing of what it said.
#[derive(Debug, Clone, PartialEq, Eq)]
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

crate::wire::record!(Erased {
    index = "index",
    sha256 = "sha256",
    at = "at",
    reason = "reason",
});

impl LedgerEntry {
    /// Of a message that was erased.
    pub(crate) fn erased(erased: &Erased) -> LedgerEntry {
        let reason = Some(format!("it was erased: {}", erased.reason));
        LedgerEntry { sha256: Some(erased.sha256.clone()), reason, ..entry(erased.index, Fate::Dropped) }
    }

    /// Says what became of the message where nobody keeps its texts.
    fn forget_references(&mut self) {
        if self.reference.take().is_none() {
            return;
        }
        (self.references, self.sha256) = (Vec::new(), None);
        (self.basis, self.bases) = (None, Vec::new());
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
const DIFFERS: &str =
    "a result is told as what differs from that of its basis; the reference reads all of it";
const MEDIA_LEFT: &str = "an image, document or the like was left out to keep the request small; the log keeps it, and the reference says what it was";
const SHORTENED: &str = "what was too long in it was shortened; without a session nothing keeps the original";
const RESTORED: &str = "it came after a snapshot that was restored; the log keeps it";
const REMOVED: &str = "it was removed from the context; the log keeps it";
const LOST: &str = "the store lost it: its row of the log is missing, or is not what was written";
const REASONING_REMOVED: &str =
    "its signed reasoning is bound to what stood before it, and that changed (AN8); the log keeps it";
const COMPACTION_REMOVED: &str = "its compaction is of use to its provider alone, and what that stood for is back in the context; the log keeps it";

/// The fate of every message of the app: runs of neighbours that have the same, so that a long past takes little. It is told
/// as JSON text, of which the host makes the entries when somebody asks for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger(Vec<FateRun>);

/// So many messages from the one of the entry on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FateRun {
    count: usize,
    first: LedgerEntry,
}

impl Ledger {
    /// Of the messages of a context.
    pub fn of(context: &Context) -> Self {
        Ledger::joined(order::by_key(runs(context), |run| run.first.index as u64))
    }

    fn joined(runs: impl IntoIterator<Item = FateRun>) -> Self {
        let mut joined: Vec<FateRun> = Vec::new();
        for run in runs {
            match joined.last_mut() {
                Some(last) if last.is_before(&run) => last.count += run.count,
                _ => joined.push(run),
            }
        }
        Ledger(joined)
    }

    /// The entry of every message, in order.
    pub fn entries(&self) -> Vec<LedgerEntry> {
        let entries = self.0.iter().flat_map(|FateRun { count, first }| {
            (first.index..first.index + count).map(|index| LedgerEntry { index, ..first.clone() })
        });
        entries.inspect(|_| work::note(WorkDone::Entries, 1)).collect()
    }

    /// Says what became of the messages where nobody keeps their texts.
    pub(crate) fn forget_references(&mut self) {
        self.0.iter_mut().for_each(|run| run.first.forget_references());
    }
}

impl From<Vec<LedgerEntry>> for Ledger {
    fn from(entries: Vec<LedgerEntry>) -> Self {
        Ledger::joined(entries.into_iter().map(|entry| run(1, entry)))
    }
}

impl Serialize for Ledger {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let runs: Vec<_> = self.0.iter().map(|FateRun { count, first }| (count, first)).collect();
        to.serialize_str(&serde_json::to_string(&runs).map_err(S::Error::custom)?)
    }
}

impl FateRun {
    /// The other one goes on with the same.
    fn is_before(&self, other: &FateRun) -> bool {
        let LedgerEntry {
            index,
            fate,
            quoted,
            checkpoint,
            reference,
            references,
            sha256,
            basis,
            bases,
            reason,
        } = &self.first;
        let next = &other.first;
        index + self.count == next.index
            && (fate, quoted, reference, sha256) == (&next.fate, &next.quoted, &next.reference, &next.sha256)
            && (checkpoint, references, reason) == (&next.checkpoint, &next.references, &next.reason)
            && (basis, bases) == (&next.basis, &next.bases)
    }
}

fn run(count: usize, first: LedgerEntry) -> FateRun {
    FateRun { count, first }
}

/// The runs of a context, in the order of its items.
fn runs(context: &Context) -> Vec<FateRun> {
    let mut runs = Vec::with_capacity(context.len());
    for Departed { from, to, why } in context.left() {
        let reason = match why {
            Why::Restored => RESTORED,
            Why::Rewound => REWOUND,
            Why::Removed => REMOVED,
            Why::Lost => LOST,
        };
        let gone = LedgerEntry { reason: Some(reason.into()), ..entry(*from, Fate::Dropped) };
        runs.push(run(to - from, gone));
    }
    for item in context.items() {
        match &item.origin {
            Origin::Message(place) => runs.push(run(1, entry(place.index, Fate::Verbatim))),
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
                    | Placeholder::Text
                    | Placeholder::Difference
                    | Placeholder::Media => None,
                    Placeholder::Cleared => Some(CLEARED),
                    Placeholder::Compressed => Some(COMPRESSED),
                });
                let bases: Vec<usize> = item.origin.bases().map(|basis| basis.index).collect();
                let basis = bases.first().copied();
                let bases = if bases.len() > 1 { bases } else { Vec::new() };
                let nothing_else = offloads.is_empty() && !reasoning_removed;
                let reasons = [
                    nothing_else.then_some(COMPACTION_REMOVED),
                    did.filter(|_| !refers),
                    basis.map(|_| DIFFERS),
                    offloads.iter().any(Offload::is_media).then_some(MEDIA_LEFT),
                    reasoning_removed.then_some(REASONING_REMOVED),
                ];
                let reasons: Vec<&str> = reasons.into_iter().flatten().collect();
                let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
                let edited =
                    LedgerEntry { basis, bases, reason, ..referring(entry(place.index, fate), references) };
                runs.push(run(1, edited));
            }
            Origin::Summary { checkpoint, covers, quotes, .. } => {
                let mut own: Vec<FateRun> =
                    covers.iter().flat_map(|cover| covered(cover, quotes, checkpoint)).collect();
                if let Some(place) = item.origin.server() {
                    own.iter_mut().for_each(|run| by_server(&mut run.first, place.index));
                }
                runs.extend(own);
            }
            Origin::Acknowledgement => {}
        }
    }
    runs
}

/// The messages that a summary stands for in the place of: up to the next one with offloads, or that is quoted, all are alike.
fn covered(cover: &CoveredRange, quotes: &[Place], checkpoint: &str) -> Vec<FateRun> {
    let within = cover.from..cover.to;
    let offloads = cover.offloads.iter().filter(|(index, _)| within.contains(index));
    let offloads = order::by_key(offloads.collect(), |(index, _)| *index as u64);
    let quotes = quotes.iter().map(|place| place.index).filter(|index| within.contains(index));
    let quotes = order::by_key(quotes.collect(), |index| *index as u64);
    work::note(WorkDone::Offloads, offloads.len());
    let (mut offloads, mut quotes) = (offloads.into_iter().peekable(), quotes.into_iter().peekable());
    let (mut runs, mut at) = (Vec::new(), cover.from);
    while at < cover.to {
        let own = iter::from_fn(|| offloads.next_if(|(index, _)| *index == at)).map(|(_, offload)| offload);
        let own: Vec<&Offload> = own.collect();
        let quoted = iter::from_fn(|| quotes.next_if_eq(&at)).count() > 0;
        let next = [offloads.peek().map(|(index, _)| *index), quotes.peek().copied()];
        let to = match own.is_empty() && !quoted {
            true => next.into_iter().flatten().min().unwrap_or(cover.to),
            false => at + 1,
        };
        let fate = if quoted { Fate::Verbatim } else { Fate::Summarised };
        let first = LedgerEntry { quoted, checkpoint: Some(checkpoint.into()), ..entry(at, fate) };
        runs.push(run(to - at, referring(first, own.into_iter())));
        at = to;
    }
    runs
}

/// Says that the provider compacted it, in the app's message `by`.
fn by_server(entry: &mut LedgerEntry, by: usize) {
    match entry.quoted {
        true => entry.quoted = false,
        false => entry.reason = Some(format!("its provider compacted it, in message {by}; the log keeps it")),
    }
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
        basis: None,
        bases: Vec::new(),
        reason: None,
    }
}

/// The entry with its references.
fn referring<'o>(entry: LedgerEntry, offloads: impl Iterator<Item = &'o Offload> + Clone) -> LedgerEntry {
    let references: Vec<String> = offloads.clone().map(|offload| offload.reference.clone()).collect();
    LedgerEntry {
        reference: references.first().cloned(),
        references: if references.len() > 1 { references } else { Vec::new() },
        sha256: offloads.map(|offload| offload.sha256.clone()).next().filter(|hash| !hash.is_empty()),
        ..entry
    }
}

/// Refuses a context in which a message of the first `messages` has no fate, or two, or leans on one that does not stand in it
/// (`X2`).
///
/// Errors: [`Code::Poisoned`] naming the message; it means a fault of the engine, and nothing was written.
pub fn conserve(context: &Context, messages: usize) -> Result<()> {
    conserve_origins(context.items().iter().map(|item| &item.origin), context.left(), messages)
}

/// The same for items whose bodies were not read.
pub(crate) fn conserve_origins<'o>(
    origins: impl Iterator<Item = &'o Origin> + Clone,
    left: &[Departed],
    messages: usize,
) -> Result<()> {
    if let Some(basis) = unfounded(origins.clone()).into_iter().next() {
        return Err(broken(basis.index, "is leaned on, and does not stand there"));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Item, Size};
    use crate::message::Role;
    use crate::tokens::Bounds;

    /// A summary of so many messages, every fourth with an offload and every tenth quoted, and a message behind it.
    fn context(messages: usize) -> Context {
        let offload = |index: usize| Offload {
            nth: 0,
            reference: format!("off_{index}"),
            sha256: format!("{index:x}"),
            chars: 1,
            how: Placeholder::Reference,
            basis: None,
        };
        let offloads = (0..messages).step_by(4).map(|index| (index, offload(index))).collect();
        let origin = Origin::Summary {
            checkpoint: "cp_1".into(),
            covers: [CoveredRange { from: 0, to: messages, offloads }].into(),
            quotes: (0..messages).step_by(10).map(|index| Place { seq: index as u64, index }).collect(),
            prose: 0,
            made: None,
        };
        let last = Origin::Message(Place { seq: messages as u64, index: messages });
        let texts = Bounds::default();
        let size =
            Size { tokens: 1, role: Role::User, calls: 0, results: 0, is_bound: false, clearable: 0, texts };
        [origin, last].into_iter().map(|origin| Item::new("{}".into(), size, origin)).collect()
    }

    #[test]
    fn p2_a_ledger_looks_at_each_offload_once_and_makes_no_entry_until_it_is_asked() {
        for messages in [500, 4_000] {
            let context = context(messages);
            WorkDone::ALL.into_iter().for_each(|what| _ = work::take(what));
            let ledger = Ledger::of(&context);
            let visited = work::take(WorkDone::Offloads) as usize;
            assert_eq!((visited, work::take(WorkDone::Entries)), (messages / 4, 0));
            let entries = ledger.entries();
            assert_eq!(work::take(WorkDone::Entries) as usize, messages + 1);
            for (index, entry) in entries.iter().enumerate().take(messages) {
                let quoted = index % 10 == 0;
                assert_eq!((entry.index, entry.quoted), (index, quoted));
                assert_eq!(entry.fate, if quoted { Fate::Verbatim } else { Fate::Summarised });
                assert_eq!(entry.reference, (index % 4 == 0).then(|| format!("off_{index}")));
                assert_eq!(entry.checkpoint.as_deref(), Some("cp_1"));
            }
            assert_eq!(entries.last().unwrap().fate, Fate::Verbatim);
            assert_eq!(Ledger::from(entries), ledger);
        }
    }
}
