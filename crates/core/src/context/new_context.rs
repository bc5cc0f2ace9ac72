//! The model's own wish to begin anew: a call of [`NEW_CONTEXT`] that was answered and that nothing has come of yet (`X11`).

use super::{Context, ExchangePart, Item, KnownCall, Origin};
use crate::message::Role;
use crate::wire::Format;
use serde_json_borrow::Value;
use std::collections::HashSet;

/// The tool with which a model says that the older messages may leave.
pub(crate) const NEW_CONTEXT: &str = "new_context";

/// What a model asked for with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelNotes {
    /// What is to stand for the older messages.
    pub(crate) notes: String,
    /// Position of the call in the log.
    pub(crate) call: u64,
    /// How many of the newest messages stay: the call, and what came with and after it.
    pub(crate) stay: usize,
}

impl Context {
    /// What the model asked for in the last turn that it has had; nothing where no older message stands before that.
    pub(crate) fn model_notes(&self, format: Format) -> Option<ModelNotes> {
        let mut answered: HashSet<&str> = HashSet::new();
        let mut found: Option<ModelNotes> = None;
        let mut was_model = false;
        for (at, item) in self.newest() {
            let place = item.origin.place().filter(|_| item.size.role == Role::Assistant);
            if let Some(place) = place {
                was_model = true;
                let calls = exchange(item, format).iter().rev().filter_map(ExchangePart::call);
                let asked = calls.filter(|call| answered.contains(&*call.id)).find_map(notes_of);
                if let Some(notes) = asked.filter(|_| found.is_none()) {
                    found = Some(ModelNotes { notes, call: place.seq, stay: self.len() - at });
                }
            } else if was_model {
                // Behind a summary, the wish was fulfilled.
                let is_older = !matches!(item.origin, Origin::Summary { .. } | Origin::Acknowledgement);
                return found.filter(|_| is_older && at >= self.head());
            } else {
                answered.extend(exchange(item, format).iter().filter_map(|part| match part {
                    ExchangePart::Result { call_id, is_error: false, .. } => Some(&**call_id),
                    _ => None,
                }));
            }
        }
        None
    }
}

/// One that cannot be read asks for nothing.
fn exchange(item: &Item, format: Format) -> &[ExchangePart] {
    item.exchange(format).unwrap_or_default()
}

/// What a call asks to keep.
fn notes_of(call: &KnownCall) -> Option<String> {
    if &*call.name != NEW_CONTEXT {
        return None;
    }
    let arguments: Value<'_> = serde_json::from_str(&call.arguments).ok()?;
    Some(arguments.as_object()?.get("notes")?.as_str()?.to_owned())
}
