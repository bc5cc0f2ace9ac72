//! Recall: what is no longer in the context can be read back and searched, by the app and, with two tools, by the model.
//!
//! * [`archive`] reads the text of a reference.
//! * [`search`] ranks the whole transcript for a query; [`context_compactor_scan::terms`] says what counts as a term.
//! * [`crate::log::terms`] holds the terms of the log, [`index`] reads them and makes those that are missing.
//! * [`rank`] ranks whole texts by their counts, [`passage`] those that match best by their passages.
//! * [`inquiry`] knows questions about the conversation itself, and [`structure`] answers them in order, by facts.
//! * [`others`] searches and reads the other sessions of the store, where the app allows that.
//! * [`meaning`] ranks by the vectors that the app makes of texts, beside their words.
//! * [`parts`] goes from a checkpoint to what it replaces.
//! * [`call`] answers a model's call of one of the [`TOOLS`].
//!
//! What the tools answer is in the context for the model to use now, so it is never offloaded again: evict, read, evict
//! would go on for ever. [`Answers`] knows those results by the name of the tool that was called.

pub(crate) mod archive;

mod call;
mod index;
mod inquiry;
mod label;
mod meaning;
mod others;
mod parts;
mod passage;
// Tables are laid out by hand.
#[rustfmt::skip]
mod phrases;
mod rank;
mod search;
mod shown;
mod snippet;
mod structure;

pub use archive::HitPlace;
pub(crate) use archive::{Archive, LogIndex};
pub(crate) use call::answer;
pub(crate) use others::text;
pub use parts::RecallPart;
pub(crate) use parts::messages_in;
pub(crate) use search::{Query, search};
pub use shown::Hit;

use crate::context::{ExchangePart, NEW_CONTEXT, RECALL_READ, RECALL_SEARCH, is_recall};
use crate::wire::{Format, Tool};
use serde_json_borrow::Value;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Reads the text of a reference.
const READ: Tool = Tool {
    name: RECALL_READ,
    description: "Reads text of this conversation that was moved out of your context to save space. Call it when a tool \
                  result says only where it is (\"Tool result is at: off_…\") and you need what it said, or to read in \
                  full what recall_search found. A long text comes in parts: the last line of the answer says how much of \
                  it was read and the offset at which to read on.",
    parameters: r#"{"type":"object","properties":{"ref":{"type":"string","description":"The reference (off_… or m104k), copied exactly. m104k..m106x reads the messages from one to the other, m104k@12840 begins at that character."},"offset":{"type":"integer","minimum":0,"description":"Character to begin at; 0, the beginning, when left out."},"limit":{"type":"integer","minimum":1,"description":"How many characters to read at most; as many as suit the context window when left out."}},"required":["ref"],"additionalProperties":false}"#,
};

macro_rules! search_doc {
    () => {
        "Searches everything that was said in this conversation and every tool result, also what was moved out of \
         your context or replaced by a summary. Call it before you guess or redo something whose details (a \
         path, an id, a number, an error, a decision) are no longer in front of you. Answers with the passages \
         that match best, each with a reference for recall_read and what it is; what is in your context comes last."
    };
}

/// Searches the transcript.
const SEARCH: Tool = Tool {
    name: RECALL_SEARCH,
    description: search_doc!(),
    parameters: r#"{"type":"object","properties":{"query":{"type":"string","description":"Words, names, paths or numbers that stand in the text you look for, as exactly as you know them."},"limit":{"type":"integer","minimum":1,"description":"How many passages at most; 10 when left out."}},"required":["query"],"additionalProperties":false}"#,
};

/// The same where the app allows the other sessions of the store.
const SEARCH_ALL: Tool = Tool {
    description: concat!(
        search_doc!(),
        " It searches the user's other conversations, too: what is from one of them says so, and was not said here."
    ),
    ..SEARCH
};

/// Lets the older messages leave.
const ANEW: Tool = Tool {
    name: NEW_CONTEXT,
    description: "Begins with a new context when a task is done or another one begins: the older messages leave your context, \
                  and your notes stand in their place, with what the user asked you to keep to. Nothing is deleted: \
                  recall_search finds what was said before. Call it alone, and not while you wait for other results.",
    parameters: r#"{"type":"object","properties":{"notes":{"type":"string","description":"What you need to go on without the older messages: the task and its state, decisions and their reasons, exact paths, names, numbers and errors, and what is left to do. Several sentences."}},"required":["notes"],"additionalProperties":false}"#,
};

/// The tools with which a model recalls: to read, and to search.
pub const TOOLS: [Tool; 2] = [READ, SEARCH];

/// The definitions of [`TOOLS`] as a format's provider is sent them, with that of the tool that begins anew where the session
/// `hands_off`. It `searches_all` where searches look through the other sessions of the store.
pub fn definitions(format: Format, hands_off: bool, searches_all: bool) -> Vec<Value<'static>> {
    let anew = hands_off.then_some(ANEW);
    let search = if searches_all { SEARCH_ALL } else { SEARCH };
    [READ, search].into_iter().chain(anew).map(|tool| format.tools().define_tool(&tool)).collect()
}

/// Finds the answers of the recall tools among the results of a history, message by message in its order. Which tool a
/// result is from is known from the call that it answers: the nearest earlier unanswered one with its id. Who gives
/// another tool this name keeps that one's results in the context, and harms nobody else.
#[derive(Debug)]
pub(crate) struct Answers<Id = String> {
    /// By id the calls that nothing has answered so far: are they calls of a recall tool?
    open: HashMap<Id, Vec<bool>>,
}

impl<Id> Default for Answers<Id> {
    fn default() -> Self {
        Answers { open: HashMap::new() }
    }
}

impl Answers {
    /// For each result of the next message, in order: does a recall tool say it?
    pub(crate) fn of(&mut self, exchange: &[ExchangePart]) -> Vec<bool> {
        let mut answers = Vec::new();
        for part in exchange {
            match part {
                ExchangePart::Call(call) => self.call(call.id.to_string(), is_recall(&call.name)),
                ExchangePart::Result { call_id, .. } => answers.push(self.take(&**call_id)),
                ExchangePart::Opens(_) | ExchangePart::Closes(_) | ExchangePart::Refers => {}
            }
        }
        answers
    }
}

impl<Id: Eq + Hash> Answers<Id> {
    /// A call.
    fn call(&mut self, id: Id, is_recall: bool) {
        self.open.entry(id).or_default().push(is_recall);
    }

    /// The result of the call with this id: does a recall tool say it?
    fn take<Q: Eq + Hash + ?Sized>(&mut self, id: &Q) -> bool
    where
        Id: Borrow<Q>,
    {
        let Some(calls) = self.open.get_mut(id) else { return false };
        let last = calls.pop();
        if calls.is_empty() {
            self.open.remove(id);
        }
        last == Some(true)
    }
}
