//! A trajectory (`S2`): turns `{ thought, action, result }`, each of which is one message with a call and its result.
//!
//! No turn is ever removed and nothing but `result` is ever changed (RT1, S2.5), so a trajectory takes no summary, and
//! its repair mends fields.

mod read;
mod rules;
mod tools;

use super::rules::Repair;
use super::{Author, Change, Evidence, Hints, Past, Problem, Repaired, Rules, Wire, edit, tagged};
use crate::error::Result;
use crate::message::Message;
use serde_json_borrow::Value;

pub use rules::compare;

pub(super) struct React;

impl Wire for React {
    /// Messages of other formats have roles or parts; some of their items have an action, but nothing else of a turn.
    fn evidence_of(&self, message: &Value<'_>) -> Evidence {
        let given = |key: &&str| tagged::given(message, key).is_some();
        let is_other =
            ["role", "parts"].iter().any(given) || read::FIELDS.iter().filter(|key| given(key)).count() < 2;
        if is_other || read::turn(0, message).is_err() {
            Evidence::Against
        } else if ["thought", "action"].iter().all(given) {
            Evidence::Certain
        } else {
            Evidence::Possible
        }
    }

    fn hints(&self) -> &'static Hints {
        &read::HINTS
    }

    fn read<'a>(&self, index: usize, message: &'a Value<'a>) -> Result<Message<'a>> {
        read::turn(index, message)
    }

    /// A trajectory has no messages of prose: this is a turn that only thinks. No compaction adds one
    /// ([`Wire::takes_summary`]); it is what an app's counter is shown of other texts.
    fn text_message(&self, _author: Author, text: &str, _id: &str, _like: Option<&Value<'_>>) -> String {
        super::json(&rules::idle(edit::text(text), edit::text("")))
    }

    fn takes_summary(&self) -> bool {
        false
    }

    fn grows(&self, past: &mut Past, window: &[Value<'_>]) -> bool {
        rules::grows(past, &window.iter().collect::<Vec<_>>())
    }
}

impl Rules for React {
    fn with_result_text(&self, message: &Value<'_>, nth: usize, text: &str) -> Option<String> {
        if nth > 0 || tagged::given(message, "result").and_then(tagged::text).is_none() {
            return None;
        }
        let mut edited = edit::copy(message);
        edit::set(&mut edited, "result", edit::text(text));
        Some(super::json(&edited))
    }

    fn with_call_arguments(&self, message: &Value<'_>, nth: usize, arguments: &str) -> Option<String> {
        // RT1: nothing but results.
        let _ = (message, nth, arguments);
        None
    }

    fn validate(&self, messages: &[Value<'_>], strict: bool) -> Vec<Problem> {
        super::rules::validate(messages, strict, rules::find, |_| Vec::new())
    }

    fn repair(&self, messages: &[Value<'_>]) -> (Vec<Repaired>, Vec<Change>) {
        let mut repair = Repair::of(messages);
        repair.until_clean(rules::find, rules::apply);
        repair.finish()
    }
}
