//! The active context: what the model sees, item by item, with running totals.

use super::exchange::KnownExchange;
use super::offload::Offload;
use super::origin::{Departed, Origin, Why};
use crate::message::Role;
use crate::order;
use crate::tokens::Bounds;
use crate::wire::work::{self, WorkDone};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// One message of the active context.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// JSON text of the message.
    pub body: Rc<str>,
    /// What it costs and holds.
    pub size: Size,
    /// Where it comes from.
    pub origin: Origin,
    pub(super) known: KnownExchange,
}

impl Item {
    /// A message of which nothing else is known.
    pub fn new(body: Rc<str>, size: Size, origin: Origin) -> Self {
        Item { body, origin, known: KnownExchange::of(&size), size }
    }
}

/// What a message costs and holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Tokens by the session's one counter.
    pub tokens: usize,
    /// Who it is from.
    pub role: Role,
    /// Tool calls in it.
    pub calls: usize,
    /// Tool results in it.
    pub results: usize,
    /// It has more than text and media: calls, results, reasoning, or other blocks that bind it to other messages.
    pub is_bound: bool,
    /// Tokens of its results and inputs that are long enough to be cleared, by the estimator.
    pub clearable: usize,
    /// What the bounds of its tokens depend on.
    pub texts: Bounds,
}

/// Replaces `remove` items from `at` on by `insert`; positions are those before any splice of the same change.
#[derive(Debug, Clone, PartialEq)]
pub struct Splice {
    /// First item that is replaced.
    pub at: usize,
    /// How many.
    pub remove: usize,
    /// What is there instead.
    pub insert: Vec<Item>,
}

/// Sums over the items of a context, kept as it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// All tokens.
    pub tokens: usize,
    /// Of system messages.
    pub system: usize,
    /// Of user messages.
    pub user: usize,
    /// Of assistant messages, with their tool calls.
    pub assistant: usize,
    /// Of tool results.
    pub tool: usize,
    /// Of summaries.
    pub summary: usize,
    /// Tool calls.
    pub calls: usize,
    /// References to offloads.
    pub offloads: usize,
    /// Those of them that lean on another message.
    pub leaning: usize,
    /// Tool results.
    pub results: usize,
    /// Tokens of results and inputs that are long enough to be cleared.
    pub clearable: usize,
    /// Of the largest message of the app.
    pub largest: usize,
    /// Messages in which the provider compacted what was before them.
    pub by_server: usize,
    /// Bytes of all messages as JSON in UTF-8.
    pub bytes: usize,
    /// What the bounds of their tokens depend on.
    pub texts: Bounds,
}

impl Totals {
    fn add(&mut self, item: &Item) {
        self.shift(item, usize::saturating_add);
        self.texts = self.texts.and(&item.size.texts);
        if item.origin.place().is_some() {
            self.largest = self.largest.max(item.size.tokens);
        }
    }

    fn remove(&mut self, item: &Item) {
        self.shift(item, usize::saturating_sub);
        self.texts = self.texts.without(&item.size.texts);
    }

    fn shift(&mut self, item: &Item, by: fn(usize, usize) -> usize) {
        let tokens = item.size.tokens;
        let category = match (&item.origin, item.size.role) {
            (Origin::Summary { .. } | Origin::Acknowledgement, _) => &mut self.summary,
            (_, Role::System) => &mut self.system,
            (_, Role::User) => &mut self.user,
            (_, Role::Assistant) => &mut self.assistant,
            (_, Role::Tool) => &mut self.tool,
        };
        *category = by(*category, tokens);
        self.tokens = by(self.tokens, tokens);
        self.bytes = by(self.bytes, item.body.len());
        self.calls = by(self.calls, item.size.calls);
        self.results = by(self.results, item.size.results);
        self.clearable = by(self.clearable, item.size.clearable);
        let references = item.origin.offloads().iter().filter(|offload| offload.how.refers());
        self.offloads = by(self.offloads, references.count());
        let leaning = item.origin.offloads().iter().filter(|offload| offload.basis.is_some());
        self.leaning = by(self.leaning, leaning.count());
        self.by_server = by(self.by_server, usize::from(item.origin.server().is_some()));
    }
}

/// The active context.
#[derive(Debug, Clone, Default)]
pub struct Context {
    items: Vec<Item>,
    totals: Totals,
    left: Vec<Departed>,
    /// Items at the beginning that no change has touched since [`Context::settle`].
    settled: usize,
    /// Behind the message that was looked up last.
    looked_up: Cell<usize>,
}

impl Context {
    /// These items, and the messages that left it.
    pub(crate) fn of(items: Vec<Item>, left: Vec<Departed>) -> Self {
        Context { left, ..items.into_iter().collect() }
    }

    /// The items, oldest first, for whoever goes over all of them.
    pub fn items(&self) -> &[Item] {
        self.since(0)
    }

    /// Those from position `at` on.
    pub(crate) fn since(&self, at: usize) -> &[Item] {
        self.within(at..self.items.len())
    }

    /// Those at these positions.
    pub(crate) fn within(&self, range: Range<usize>) -> &[Item] {
        let items = self.items.get(range).unwrap_or_default();
        work::note(WorkDone::Items, items.len());
        items
    }

    /// All of them with their positions, the newest first, for whoever soon has enough.
    pub(crate) fn newest(&self) -> impl Iterator<Item = (usize, &Item)> {
        self.items.iter().enumerate().rev().inspect(|_| work::note(WorkDone::Items, 1))
    }

    /// Bytes of the messages as a JSON array in UTF-8.
    pub(crate) fn bytes(&self) -> usize {
        // Commas and brackets.
        self.totals.bytes + self.items.len().max(1) + 1
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// The one at a position.
    pub(crate) fn get(&self, at: usize) -> Option<&Item> {
        self.items.get(at)
    }

    /// The newest one.
    pub(crate) fn last(&self) -> Option<&Item> {
        self.items.last()
    }

    /// The app's message at this position of the log, when it stands here as it was given. They are looked up one after the
    /// other, or the newest ones.
    pub(crate) fn message(&self, seq: u64) -> Option<&Item> {
        let place = |item: &Item| {
            work::note(WorkDone::Items, 1);
            if let Origin::Message(place) = item.origin { Some(place) } else { item.origin.server() }
        };
        let from = self.looked_up.get();
        let next = self.items.iter().enumerate().skip(from).find_map(|(at, item)| Some((at, place(item)?)));
        let is_it = |item: &Item| place(item).is_some_and(|place| place.seq == seq);
        let ahead =
            next.filter(|(_, place)| place.seq <= seq).and_then(|(at, place)| match place.seq == seq {
                true => Some(at),
                // The host has some of those between.
                false => self.items.iter().skip(at).position(is_it).map(|behind| at + behind),
            });
        let at = ahead.or_else(|| self.items.iter().rposition(is_it))?;
        self.looked_up.set(at + 1);
        self.items.get(at)
    }

    /// Sums over the items.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The messages that left it, in ascending order.
    pub fn left(&self) -> &[Departed] {
        &self.left
    }

    /// Sets which messages left it.
    pub(crate) fn set_left(&mut self, left: Vec<Departed>) {
        self.left = left;
    }

    /// Those of them that are no part of the conversation any more, since the app went back to before them: index of the
    /// first, index after the last. What was only taken out of the context is part of it.
    pub fn behind(&self) -> Vec<(usize, usize)> {
        let behind = self.left.iter().filter(|left| left.why != Why::Removed);
        behind.map(|left| (left.from, left.to)).collect()
    }

    /// The offload with this reference, with the index of its message, where this context refers to it or replaces it.
    pub(crate) fn offload(&self, reference: &str) -> Option<(usize, Offload)> {
        let found = self.offloads().find(|(_, offload)| offload.reference == reference);
        found.map(|(index, offload)| (index, offload.clone()))
    }

    /// The references of stored texts that this context shows or replaces, in order, with the hashes of the texts.
    pub(crate) fn references(&self) -> BTreeMap<String, String> {
        let offloads = self.offloads().filter(|(_, offload)| !offload.is_media());
        order::map(offloads.map(|(_, offload)| (offload.reference.clone(), offload.sha256.clone())))
    }

    /// The offloads that this context shows or replaces, each with the index of its message.
    pub(crate) fn offloads(&self) -> impl Iterator<Item = (usize, &Offload)> {
        self.items.iter().flat_map(|item| item.origin.every_offload())
    }

    /// The first `messages` of the app without those that were left behind: the conversation as it goes on.
    pub fn history(&self, messages: usize) -> Vec<usize> {
        let behind = self.behind();
        (0..messages).filter(|index| !behind.iter().any(|(from, to)| (*from..*to).contains(index))).collect()
    }

    /// Items at the beginning that are the same as when this was last settled.
    pub(crate) fn settled(&self) -> usize {
        self.settled
    }

    /// Notes that the host knows all items as they are.
    pub(crate) fn settle(&mut self) {
        self.settled = self.items.len();
    }

    /// Adds an item at the end.
    pub fn push(&mut self, item: Item) {
        self.totals.add(&item);
        self.items.push(item);
    }

    /// Applies a change; splices are in ascending order and do not overlap.
    pub fn apply(&mut self, splices: &[Splice]) {
        for splice in splices.iter().rev() {
            let start = splice.at.min(self.items.len());
            let end = splice.at.saturating_add(splice.remove).min(self.items.len());
            self.settled = self.settled.min(start);
            for item in &splice.insert {
                self.totals.add(item);
            }
            for item in self.items.splice(start..end, splice.insert.iter().cloned()) {
                self.totals.remove(&item);
            }
        }
        if splices.iter().any(|splice| splice.remove > 0) {
            let messages = self.items().iter().filter(|item| item.origin.place().is_some());
            self.totals.largest = messages.map(|item| item.size.tokens).max().unwrap_or(0);
        }
    }

    /// Index of the first item that is not a leading system message.
    pub fn head(&self) -> usize {
        self.items.iter().take_while(|item| item.size.role == Role::System).count()
    }
}

impl FromIterator<Item> for Context {
    fn from_iter<I: IntoIterator<Item = Item>>(items: I) -> Self {
        let mut context = Context::default();
        for item in items {
            context.push(item);
        }
        context
    }
}
