//! The context as a trajectory of thoughts, actions and results, and how full it is (`S2.9`).

use super::compress::{self, Load};
use crate::error::Result;
use crate::log::View;
use crate::message::{Message, Part, Role};
use crate::policy::Rung;
use crate::tokens::budget::percent;
use crate::wire::{self, Format};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;

/// How full the context is: in tokens of the window, or in characters where `modelContextLimit` is given, which is in them.
/// The names are the document's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReactStats {
    /// System prompt, instructions and messages.
    pub total_size: usize,
    /// `modelContextLimit`, or the window.
    pub model_limit: usize,
    /// Used of the limit, with one decimal.
    pub usage_percent: f64,
    /// Turns: calls of tools.
    pub turns_count: usize,
    /// Size above which every result of some size is compressed.
    pub compression_threshold: usize,
    /// That size is passed.
    pub needs_compression: bool,
}

/// A trajectory as it is saved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trajectory {
    /// About the session.
    pub metadata: TrajectoryMetadata,
    /// What the model thought, in order.
    pub reasoning_trace: Vec<String>,
    /// What it did.
    pub execution: Execution,
    /// How full its context is.
    pub context_compression: Compression,
}

impl Trajectory {
    /// As JSON text.
    pub fn json(&self) -> String {
        // Texts, numbers and JSON values into memory: there is no way to fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// About the session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrajectoryMetadata {
    /// The app's own name for it.
    pub session: String,
    /// ms since 1970.
    pub created_at: u64,
    /// ms since 1970.
    pub updated_at: u64,
    /// Messages of the app so far.
    pub messages: usize,
}

/// What the model did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Execution {
    /// Its last answer that called no tool; empty when there is none.
    pub final_response: String,
    /// Its turns.
    pub tool_calls: Vec<TrajectoryTurn>,
}

/// A turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrajectoryTurn {
    /// What the model said with the call.
    pub thought: String,
    /// The call: in a trajectory the action as it is, else the tool's name and its arguments.
    pub action: Value,
    /// What the model sees of its result.
    pub result: String,
}

/// How full the context is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compression {
    /// Some layer is on.
    pub enabled: bool,
    /// How full.
    pub stats: ReactStats,
}

/// How full a session's context is.
pub(crate) fn stats(view: &View) -> Result<ReactStats> {
    let Load { size: total_size, limit: model_limit, threshold: compression_threshold, .. } =
        compress::load(view)?;
    Ok(ReactStats {
        total_size,
        model_limit,
        usage_percent: percent(total_size, model_limit) as f64 / 10.0,
        turns_count: view.context.totals().calls,
        compression_threshold,
        needs_compression: total_size > compression_threshold,
    })
}

/// The context as a trajectory.
pub(crate) fn trajectory(view: &View, metadata: TrajectoryMetadata) -> Result<Trajectory> {
    let numbers = view.settings.numbers.react;
    let on = numbers.single_enabled || numbers.global_enabled;
    let mut reasoning_trace = Vec::new();
    let mut execution = Execution { final_response: String::new(), tool_calls: Vec::new() };
    let mut waiting: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, item) in view.items().iter().enumerate() {
        let value = wire::parse(at, &item.body)?;
        let message = view.format.wire().read(at, &value)?;
        let is_trajectory = view.format == Format::React;
        read(&message, is_trajectory, &mut waiting, &mut reasoning_trace, &mut execution);
    }
    Ok(Trajectory {
        metadata,
        reasoning_trace,
        execution,
        context_compression: Compression {
            enabled: on && view.settings.rungs.contains(&Rung::Compress),
            stats: stats(view)?,
        },
    })
}

fn read(
    message: &Message<'_>,
    is_trajectory: bool,
    waiting: &mut HashMap<String, Vec<usize>>,
    trace: &mut Vec<String>,
    execution: &mut Execution,
) {
    let said = message.text();
    for part in &message.parts {
        match part {
            Part::Reasoning { text, .. } if !text.is_empty() => trace.push(text.to_string()),
            Part::ToolCall(call) => {
                let arguments = serde_json::from_str(&call.arguments)
                    .unwrap_or_else(|_| Value::String(call.arguments.to_string()));
                // In a trajectory the call is the action itself.
                let action = if is_trajectory {
                    arguments
                } else {
                    serde_json::json!({ "tool": call.name, "arguments": arguments })
                };
                waiting.entry(call.id.to_string()).or_default().push(execution.tool_calls.len());
                execution.tool_calls.push(TrajectoryTurn {
                    thought: said.clone(),
                    action,
                    result: String::new(),
                });
            }
            Part::ToolResult(result) => {
                let turn = waiting.get_mut(result.call_id.as_ref()).and_then(Vec::pop);
                if let Some(turn) = turn.and_then(|turn| execution.tool_calls.get_mut(turn)) {
                    turn.result = result.text.to_string();
                }
            }
            _ => {}
        }
    }
    if message.role == Role::Assistant && !said.is_empty() {
        if message.calls().next().is_some() {
            trace.push(said);
        } else {
            execution.final_response = said;
        }
    }
}
