//! How things stand: files, open errors and open tasks, as the messages so far leave them.

use super::super::extractive::quote;
use super::super::render::without_base64;
use super::super::text::head;
use super::collect::MustKeep;
use super::entities;
use super::files::{self, Action, Files};
use super::happened::{change_number, plain, removed};
use super::open::{self, Open, TaskChange};
use super::stored::stored;
use crate::message::{Message, Part, Role, ToolCall, ToolResult};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Bytes of a label.
const SOURCE: usize = 80;

/// A call that nothing has answered yet.
#[derive(Debug, Clone)]
struct OpenCall {
    target: String,
    actions: Vec<Action>,
    /// What a passage of its texts is labelled with.
    source: String,
    /// Numbers of the lines that it removes.
    removes: Vec<u64>,
    /// What it does to a task.
    task: Option<TaskChange>,
    /// The number of the change that it makes.
    change: Option<u64>,
}

stored!(OpenCall { target, actions, source, removes, task, change });

/// What became of files, errors and tasks. It goes on with each message, wherever the conversation is cut.
#[derive(Debug, Default, Clone)]
pub(crate) struct WorkState {
    pub(super) files: Files,
    pub(super) open: Open,
    waiting: HashMap<String, Vec<OpenCall>>,
    /// Numbers of changes that failed or were refused, and were not made since.
    refused: HashSet<u64>,
}

stored!(WorkState { files, open, waiting, refused });

impl WorkState {
    /// Takes in the next message.
    pub(crate) fn read(&mut self, message: &Message<'_>) {
        for part in &message.parts {
            match part {
                Part::Text(text) if message.role != Role::System => {
                    self.said(text, message.role == Role::User);
                }
                Part::ToolCall(call) => {
                    let arguments = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
                    self.called(call, &arguments, files::actions(&call.name, &arguments));
                }
                Part::ToolResult(result) => {
                    self.answered(result, &without_base64(&result.text));
                }
                _ => {}
            }
        }
    }

    /// Errors that nothing has succeeded after, newest first, and open tasks.
    pub(crate) fn left_open(&self) -> impl Iterator<Item = MustKeep> {
        let failures = self.open.failures().rev().map(|failure| MustKeep::Failure(failure.line.clone()));
        failures.chain(self.open.tasks().map(MustKeep::Task))
    }

    pub(super) fn said(&mut self, text: &str, by_user: bool) {
        if by_user {
            self.open.request();
        }
        self.open.prose(text);
    }

    pub(super) fn called(&mut self, call: &ToolCall<'_>, arguments: &Value, actions: Vec<Action>) {
        let task = self.open.call(&call.name, arguments);
        let target = open::target(&call.name, arguments, &call.arguments);
        let source = source(call, arguments, &actions);
        let is_change = actions.iter().any(|action| action.did != files::Did::Read);
        let removes = if is_change {
            removed(arguments).into_iter().map(entities::number).collect()
        } else {
            Vec::new()
        };
        let change = change_number(arguments, &actions);
        let waiting = OpenCall { target, actions, source, removes, task, change };
        self.waiting.entry(call.id.to_string()).or_default().push(waiting);
    }

    /// What the newest call of this id reads or runs; empty for none.
    pub(super) fn source(&self, id: &str) -> String {
        let call = self.waiting.get(id).and_then(|calls| calls.last());
        call.map_or_else(String::new, |call| call.source.clone())
    }

    /// Numbers of the lines that the newest call of this id removes.
    pub(super) fn removes(&self, id: &str) -> Vec<u64> {
        self.waiting.get(id).and_then(|calls| calls.last()).map_or_else(Vec::new, |call| call.removes.clone())
    }

    /// The number of the change that the newest call of this id makes.
    pub(super) fn change(&self, id: &str) -> Option<u64> {
        self.waiting.get(id).and_then(|calls| calls.last())?.change
    }

    /// A call that changes a task has no answer.
    #[cfg(test)]
    pub(super) fn waits_for_a_task(&self) -> bool {
        let mut calls = self.waiting.values().flatten();
        calls.any(|call| matches!(call.task, Some(TaskChange::Change { .. })))
    }

    /// True where a change that failed or was refused was made since.
    pub(super) fn was_made(&self, change: u64) -> bool {
        !self.refused.contains(&change)
    }

    /// Takes in a result, `text` without encoded bytes; what it says when its call failed.
    pub(super) fn answered(&mut self, result: &ToolResult<'_>, text: &str) -> Option<String> {
        let id = result.call_id.as_ref();
        let call = self.waiting.get_mut(id).and_then(Vec::pop);
        if self.waiting.get(id).is_some_and(Vec::is_empty) {
            self.waiting.remove(id);
        }
        let OpenCall { target, actions, task, change, .. } = call?;
        let failure = self.open.result(&target, result.is_error, text);
        if let Some(task) = task.filter(|_| failure.is_none() && !result.is_error) {
            self.open.change(task, text);
        }
        if let Some(change) = change {
            match result.is_error {
                true => self.refused.insert(change),
                false => self.refused.remove(&change),
            };
        }
        if !result.is_error {
            let shown = if actions.len() == 1 { files::shown(text) } else { None };
            for action in actions {
                let lines = action.lines.or(shown);
                self.files.note(Action { lines, ..action });
            }
        }
        failure
    }
}

/// A call as a person would name it: its tool, and its file or command, in one line that holds no mark of ours.
pub(crate) fn called(call: &ToolCall<'_>) -> String {
    let arguments = serde_json::from_str::<Value>(&call.arguments).unwrap_or(Value::Null);
    let source = source(call, &arguments, &files::actions(&call.name, &arguments));
    let source = source.strip_prefix("$ ").unwrap_or(&source);
    let tool = call.name.as_ref();
    let told = if source.starts_with(tool) { source.to_string() } else { format!("{tool} {source}") };
    let words: Vec<&str> = told.split_whitespace().collect();
    quote(head(&words.join(" "), 2 * SOURCE)).replace("off_", "off-")
}

/// Where the texts of a call are from: its file, its command, or its tool with the beginning of its arguments.
fn source(call: &ToolCall<'_>, arguments: &Value, actions: &[Action]) -> String {
    let line = |text: &str| head(text.lines().next().unwrap_or(""), SOURCE).trim_end().to_string();
    match (files::command(arguments), actions) {
        (Some(command), _) => format!("$ {}", line(open::program(&command))),
        (None, [action]) => action.path.clone(),
        (None, _) => line(&format!("{} {}", call.name, plain(arguments, &call.arguments))),
    }
}
