//! Which call each tool result of the context answers.

use crate::error::Result;
use crate::log::View;
use crate::message::{Part, ToolCall};
use crate::summary::keep::called;
use crate::wire;
use serde_json::Value;
use std::collections::HashMap;

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
    pub(crate) call: (usize, usize),
    /// The tool's name, in lower case.
    pub(crate) tool: String,
    /// The call's arguments as JSON text.
    pub(crate) arguments: String,
    /// The tool says that it failed.
    pub(crate) is_error: bool,
}

impl Answered {
    /// What its call is named by; empty where nothing names it.
    pub(super) fn named(&self) -> String {
        let (name, arguments) = (self.tool.as_str().into(), self.arguments.as_str().into());
        called(&ToolCall { id: "".into(), name, arguments, caller: None })
    }

    /// What its call looks at: its tool, and what of its arguments says what.
    pub(super) fn source(&self) -> String {
        let Answered { tool, arguments, .. } = self;
        match serde_json::from_str(arguments) {
            Ok(Value::Object(mut fields)) => {
                fields.retain(|name, _| !BESIDE.contains(&name.as_str()));
                format!("{tool} {}", Value::Object(fields))
            }
            _ => format!("{tool} {arguments}"),
        }
    }
}

/// Where a call is, its tool and its arguments.
type Call = ((usize, usize), String, String);

/// The results of the context in their order. They are paired with calls by order, because ids repeat across turns.
pub(crate) fn answered(view: &View) -> Result<Vec<Answered>> {
    let mut waiting: HashMap<String, Vec<Call>> = HashMap::new();
    let mut results = Vec::new();
    for item in view.items() {
        let Some(place) = item.origin.place() else { continue };
        let value = wire::parse(place.index, &item.body)?;
        let message = view.format.wire().read(place.index, &value)?;
        let (mut nth, mut calls) = (0, 0);
        for part in &message.parts {
            match part {
                Part::ToolCall(call) => {
                    let place = (place.index, calls);
                    let call_of = (place, call.name.to_lowercase(), call.arguments.to_string());
                    waiting.entry(call.id.to_string()).or_default().push(call_of);
                    calls += 1;
                }
                Part::ToolResult(result) => {
                    let call = waiting.get_mut(result.call_id.as_ref()).and_then(Vec::pop);
                    if let Some((call, tool, arguments)) = call {
                        let (index, is_error) = (place.index, result.is_error);
                        results.push(Answered { index, nth, call, tool, arguments, is_error });
                    }
                    nth += 1;
                }
                _ => {}
            }
        }
    }
    Ok(results)
}
