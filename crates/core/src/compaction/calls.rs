//! Which call each tool result of the context answers.

use crate::context::{CallFacts, ExchangePart, Item, KnownCall, Place};
use crate::error::Result;
use crate::log::View;
use crate::message::ToolCall;
use crate::summary::keep::{called, touched};
use serde_json::Value;
use std::collections::HashMap;
use std::rc::Rc;

/// Arguments that say how a tool is called, and not what it looks at.
const BESIDE: [&str; 8] = [
    "description",
    "explanation",
    "justification",
    "thought",
    "timeout",
    "timeout_ms",
    "yield_time_ms",
    "max_output_tokens",
];

/// A tool result with the call that it answers.
#[derive(Debug, Clone)]
pub(crate) struct Answered {
    /// Index of its message among the app's.
    pub(crate) index: usize,
    /// Which result of that message, from 0.
    pub(crate) nth: usize,
    /// Index of the message that calls, and which call of it, from 0.
    pub(crate) call_at: (usize, usize),
    /// The call.
    pub(crate) call: Rc<KnownCall>,
    /// The tool says that it failed.
    pub(crate) is_error: bool,
    /// The app says that it need not stay.
    pub(crate) is_disposable: bool,
}

/// What the arguments of a call say.
pub(super) fn facts(call: &KnownCall) -> &CallFacts {
    call.facts.get_or_init(|| {
        let KnownCall { name, tool, arguments, .. } = call;
        let (id, of, text) = ("".into(), (&**name).into(), (&**arguments).into());
        let source = match serde_json::from_str(arguments) {
            Ok(Value::Object(mut fields)) => {
                fields.retain(|name, _| !BESIDE.contains(&name.as_str()));
                format!("{tool} {}", Value::Object(fields))
            }
            _ => format!("{tool} {arguments}"),
        };
        CallFacts {
            source,
            named: called(&ToolCall { id, name: of, arguments: text, caller: None }),
            files: touched(name, arguments),
        }
    })
}

/// A call, the index of its message, and which call of that it is.
type PlacedCall<'c> = ((usize, usize), &'c Rc<KnownCall>);

/// The results of the context in their order. They are paired with calls by order, because ids repeat across turns.
pub(crate) fn answered(view: &View) -> Result<Vec<Answered>> {
    answered_in(view, view.items())
}

/// Those of these items.
pub(super) fn answered_in(view: &View, items: &[Item]) -> Result<Vec<Answered>> {
    let mut waiting: HashMap<&str, Vec<PlacedCall<'_>>> = HashMap::new();
    let mut results = Vec::new();
    for item in items {
        let Some(Place { index, .. }) = item.origin.place().or(item.origin.server()) else { continue };
        let (mut nth, mut calls) = (0, 0);
        for part in item.exchange(view.format)? {
            match part {
                ExchangePart::Call(call) => {
                    waiting.entry(&call.id).or_default().push(((index, calls), call));
                    calls += 1;
                }
                ExchangePart::Result { call_id, is_error, is_disposable, .. } => {
                    if let Some((call_at, call)) = waiting.get_mut(&**call_id).and_then(Vec::pop) {
                        let call = Rc::clone(call);
                        let (is_error, is_disposable) = (*is_error, *is_disposable);
                        results.push(Answered { index, nth, call_at, call, is_error, is_disposable });
                    }
                    nth += 1;
                }
                ExchangePart::Opens(_) | ExchangePart::Closes(_) | ExchangePart::Refers => {}
            }
        }
    }
    Ok(results)
}
