//! What a handed-over history is recognized by (`E1`): a key for each message, of what it says, and which messages of ours
//! stand for what. The session's row has the keys of its history as one hash, so that a history that goes on is known
//! without reading any message of the log.

use super::record::SessionRow;
use super::state::State;
use crate::context::{CoveredRange, Departed, Item, Origin, Why};
use crate::error::Result;
use crate::keys::ids;
use crate::wire::{self, Format};
use std::collections::HashMap;
use std::rc::Rc;

/// Half of the hash of what a message says.
pub(crate) type MessageKey = [u8; 16];

/// What tells a message from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownMessage {
    /// Of what it says.
    pub(crate) key: MessageKey,
    /// Of the id that the app's library gave it.
    pub(crate) id: Option<MessageKey>,
    /// It is of the app, as the system prompt is.
    pub(crate) is_system: bool,
}

impl KnownMessage {
    /// Errors: those of [`wire::parse`].
    pub(crate) fn of(format: Format, index: usize, body: &str) -> Result<Self> {
        let value = wire::parse(index, body)?;
        let identity = wire::identity(format, &value);
        let id = identity.id.filter(|id| !id.is_empty()).map(|id| half(&[b"id", id.as_bytes()]));
        Ok(KnownMessage { key: half(&[&identity.canonical]), id, is_system: identity.is_system })
    }
}

fn half(parts: &[&[u8]]) -> MessageKey {
    ids::hash(parts).first_chunk::<16>().copied().unwrap_or_default()
}

/// A message of ours that the app was given and may hand back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnMessage {
    /// It stands for these messages of the log.
    Summary(Vec<CoveredRange>),
    /// A message of the app with something taken out of it.
    Part(usize),
    /// It stands for nothing.
    Filler,
}

/// What this process knows of the messages of a session. Nothing of it is needed: what is missing is read from the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownMessages {
    /// The rows and the format that it is of.
    of: Option<(String, Format)>,
    /// By index.
    messages: Rc<HashMap<usize, KnownMessage>>,
    own: Rc<HashMap<MessageKey, Vec<OwnMessage>>>,
    /// Histories are handed over whole.
    is_kept: bool,
}

/// The keys of a history as one hash, as it was when the session had `messages` messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyChain {
    /// Messages of the log.
    pub(crate) n: usize,
    /// Which of them are the history, and in which format they are read.
    pub(crate) of: String,
    /// The hash of all keys, behind those of the history without its last messages.
    pub(crate) ends: Vec<String>,
}

crate::wire::record!(KeyChain {
    n = "n",
    of = "of",
    ends = "ends",
});

/// So many ends are kept: the last message may be another one.
const ENDS: usize = 4;

impl KeyChain {
    /// Of no messages.
    fn begin(of: String) -> Self {
        KeyChain { n: 0, ends: vec![of.clone()], of }
    }

    /// Adds a message; leading ones of the system count as one another.
    fn add(&mut self, message: &KnownMessage, leads: bool) {
        let key = if leads { MessageKey::default() } else { message.key };
        let before = self.ends.last().map_or("", String::as_str);
        self.ends.push(ids::hex(&half(&[before.as_bytes(), &key])));
        if self.ends.len() > ENDS {
            self.ends.remove(0);
        }
    }

    /// The longest beginning of `given`, of `history` messages at most, that is the history's; 0 where none of those that can
    /// be told is.
    pub(crate) fn proves(&self, given: &[KnownMessage], history: usize) -> usize {
        let mut chain = KeyChain::begin(self.of.clone());
        let mut leads = true;
        let mut proven = 0;
        for nth in 0..=history.min(given.len()) {
            let back = history - nth;
            let end = self.ends.len().checked_sub(back + 1).and_then(|at| self.ends.get(at));
            if end.is_some() && end == chain.ends.last() {
                proven = nth;
            }
            if let Some(message) = given.get(nth) {
                leads &= message.is_system;
                chain.add(message, leads);
            }
        }
        proven
    }
}

/// Names a history: the format, and what of the log is no part of it.
fn name_of(format: Format, left: &[Departed]) -> String {
    let behind = left.iter().filter(|left| left.why != Why::Removed);
    let behind: Vec<String> = behind.map(|left| format!("{}-{}", left.from, left.to)).collect();
    ids::hex(&half(&[b"history", format.as_str().as_bytes(), behind.join(",").as_bytes()]))
}

impl State {
    /// From now on, keys are kept. What was known of other rows, or in another format, is forgotten.
    pub(crate) fn keep_keys(&mut self) {
        let of = (self.sid.clone(), self.format());
        if self.known.of.as_ref() != Some(&of) {
            self.known = KnownMessages { of: Some(of), ..KnownMessages::default() };
            self.known.is_kept = true;
            let items = self.context.items().to_vec();
            self.note_own(&items);
        }
        self.known.is_kept = true;
    }

    /// Keys are kept of what is appended.
    pub(crate) fn keeps_keys(&self) -> bool {
        self.durable && (self.known.is_kept || self.row.known.is_some())
    }

    /// What is known of message `index`.
    pub(crate) fn known(&self, index: usize) -> Option<KnownMessage> {
        self.known.messages.get(&index).copied()
    }

    /// What a message of ours stands for.
    pub(crate) fn own(&self) -> Rc<HashMap<MessageKey, Vec<OwnMessage>>> {
        Rc::clone(&self.known.own)
    }

    /// Notes what message `index` of the log is.
    pub(crate) fn note_known(&mut self, index: usize, message: KnownMessage) {
        Rc::make_mut(&mut self.known.messages).insert(index, message);
    }

    /// Notes the messages of ours among items that the app is given.
    pub(crate) fn note_own(&mut self, items: &[Item]) {
        let format = self.format();
        if !self.known.is_kept || self.known.of.as_ref().is_none_or(|of| *of != (self.sid.clone(), format)) {
            return;
        }
        for item in items {
            self.note_own_text(&item.origin, &item.body);
        }
    }

    /// Notes a message that is sent in the place of one that the provider would refuse.
    pub(crate) fn note_own_mend(&mut self, origin: &Origin, body: &str) {
        if self.known.is_kept {
            match origin.place() {
                Some(place) => {
                    let (offloads, reasoning_removed) = (Vec::new(), false);
                    self.note_own_text(&Origin::Edited { place, offloads, reasoning_removed }, body);
                }
                None => self.note_own_text(origin, body),
            }
        }
    }

    /// Notes a message of ours.
    pub(crate) fn note_own_text(&mut self, origin: &Origin, body: &str) {
        let own = match origin {
            Origin::Message(_) => return,
            _ if origin.server().is_some() => return,
            Origin::Edited { place, .. } => OwnMessage::Part(place.index),
            Origin::Summary { covers, .. } => OwnMessage::Summary(
                covers.iter().map(|cover| CoveredRange { offloads: Vec::new(), ..cover.clone() }).collect(),
            ),
            Origin::Acknowledgement => OwnMessage::Filler,
        };
        if let Ok(message) = KnownMessage::of(self.format(), 0, body) {
            // Two may say the same, as marks of what was cleared do.
            let all = Rc::make_mut(&mut self.known.own).entry(message.key).or_default();
            all.retain(|known| *known != own);
            all.push(own);
        }
    }

    /// The row's hash of keys, where it is of the history as it is.
    pub(crate) fn key_chain(&self) -> Option<&KeyChain> {
        let chain = self.row.known.as_ref()?;
        (chain.n == self.row.messages && chain.of == name_of(self.format(), self.context.left()))
            .then_some(chain)
    }

    /// The hash of the keys of a history, where all are known.
    fn chain_of(&self, format: Format, left: &[Departed], messages: usize) -> Option<KeyChain> {
        let mut chain = KeyChain::begin(name_of(format, left));
        let behind = |index: &usize| {
            left.iter().any(|left| left.why != Why::Removed && (left.from..left.to).contains(index))
        };
        let mut leads = true;
        for index in (0..messages).filter(|index| !behind(index)) {
            let message = self.known.messages.get(&index)?;
            leads &= message.is_system;
            chain.add(message, leads);
        }
        chain.n = messages;
        Some(chain)
    }

    /// Sets the hash of keys of the row that appends messages to this state's.
    pub(crate) fn append_keys(&self, row: &mut SessionRow, format: Format, new: &[Option<KnownMessage>]) {
        row.known = None;
        let Some(new) = new.iter().copied().collect::<Option<Vec<_>>>().filter(|_| self.keeps_keys()) else {
            return;
        };
        let left = self.context.left();
        let name = name_of(format, left);
        let before = self.row.known.as_ref().filter(|chain| chain.n == self.row.messages && chain.of == name);
        let is_of_format = self.known.of.as_ref().is_some_and(|(sid, of)| *sid == self.sid && *of == format);
        let own = || {
            if is_of_format || self.row.messages == 0 {
                self.chain_of(format, left, self.row.messages)
            } else {
                None
            }
        };
        let Some(mut chain) = before.cloned().or_else(own) else { return };
        // A message of the system leads where only such are before it.
        let behind = self.context.behind();
        let is_behind = |index: &usize| behind.iter().any(|(from, to)| (from..to).contains(&index));
        let is_system = |index| self.known.messages.get(&index).is_some_and(|message| message.is_system);
        let mut leads = (0..self.row.messages).filter(|index| !is_behind(index)).all(is_system);
        for message in &new {
            leads &= message.is_system;
            chain.add(message, leads);
        }
        chain.n = row.messages;
        row.known = Some(chain);
    }

    /// Sets the hash of keys of the row after a change by which `left` have left the context.
    pub(crate) fn change_keys(&self, row: &mut SessionRow, left: &[Departed]) {
        if row.known.is_some() || self.known.is_kept {
            row.known = self.chain_of(self.format(), left, row.messages);
        }
    }
}
