//! What is kept of a conversation while its messages go by.

use super::super::constraint::constraints;
use super::super::extractive::is_earlier;
use super::super::facts::{FactKind, arguments_of, is_error_line};
use super::super::quote::RULES;
use super::super::render::without_base64;
use super::super::scan;
use super::super::text::{head, sentences, tail};
use super::cover::CoverLines;
use super::entities;
use super::files::{self, Action, Files};
use super::headings::{CONSTRAINTS, FILES, Spoken, TASKS};
use super::open::{self, Open};
use crate::message::{Message, Part, Role, ToolCall, ToolResult};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

/// Bytes of one text that are kept for quoting.
const TEXT: usize = 12 << 10;
/// Messages of the user that are kept beside the first.
const MOST_SAID: usize = 256;
/// Constraints that are kept; the newest.
const MOST_CONSTRAINTS: usize = 256;
/// Pieces of the end of the conversation that are kept.
const MOST_LATEST: usize = 128;
/// Bytes of a result among them: it can be read again, and what the agent wrote itself it copies more often.
const LATEST_RESULT: usize = 40;
/// A line of more bytes is looked at sentence by sentence.
const LONG_LINE: usize = 400;

/// Something that a user said.
#[derive(Debug)]
pub(super) struct SaidText {
    /// The number that the message was added with.
    pub(super) position: usize,
    /// Messages before it.
    pub(super) at: usize,
    pub(super) text: String,
    /// Nothing of it is missing.
    pub(super) whole: bool,
}

/// A call that nothing has answered yet.
#[derive(Debug)]
struct OpenCall {
    target: String,
    actions: Vec<Action>,
}

/// Takes in a conversation message by message; [`KeepLayerBuilder::layer`] writes what must be kept of it.
#[derive(Debug, Default)]
pub struct KeepLayerBuilder {
    pub(super) count: usize,
    pub(super) lines: CoverLines,
    pub(super) files: Files,
    pub(super) open: Open,
    pub(super) spoken: Spoken,
    pub(super) said: Vec<SaidText>,
    pub(super) constraints: Vec<(usize, String)>,
    /// The end of the conversation.
    pub(super) latest: VecDeque<(usize, String)>,
    waiting: HashMap<String, Vec<OpenCall>>,
}

/// Something that must not be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MustKeep {
    /// A sentence of the user that binds, in the message that was added with this number.
    Constraint(usize, String),
    /// A file that was created, modified or deleted.
    File(String),
    /// The line of an error that nothing has succeeded after.
    Failure(String),
    /// An open task.
    Task(String),
}

impl MustKeep {
    /// Its text, as a summary that keeps it has it.
    pub fn text(&self) -> &str {
        match self {
            MustKeep::Constraint(_, text)
            | MustKeep::File(text)
            | MustKeep::Failure(text)
            | MustKeep::Task(text) => text,
        }
    }
}

impl KeepLayerBuilder {
    /// Takes in the next message; `position` is the number that the caller knows it by.
    pub fn add(&mut self, position: usize, message: &Message<'_>) {
        let at = self.count;
        self.count += 1;
        if message.role == Role::System {
            message.parts.iter().for_each(|part| self.instruction(at, part));
            return;
        }
        let is_user = message.role == Role::User;
        let is_earlier_part = |part: &Part<'_>| matches!(part, Part::Text(text) if is_earlier(text));
        if is_user && !message.parts.iter().any(is_earlier_part) {
            for sentence in constraints(message) {
                self.constrain(position, sentence);
            }
        }
        for part in &message.parts {
            match part {
                Part::Text(text) if is_user && is_earlier(text) => {
                    self.earlier(at, position, text);
                }
                Part::Text(text) => {
                    self.spoken.hear(head(text, 4_000));
                    self.prose(at, text, if is_user { 3.0 } else { 1.0 });
                    self.open.prose(text);
                    if is_user {
                        self.say(at, position, text);
                    }
                    self.last(at, if is_user { "> " } else { "" }, text);
                }
                Part::ToolCall(call) => self.call(at, call),
                Part::ToolResult(result) => self.result(at, result),
                Part::Reasoning { .. } | Part::Media(_) | Part::Opaque { .. } | Part::Compaction { .. } => {}
            }
        }
    }

    /// What an instruction names is known; nothing of it is kept, as it stays.
    fn instruction(&mut self, at: usize, part: &Part<'_>) {
        let Part::Text(text) = part else { return };
        scan::entities(text, &mut |kind, name| {
            if let Some(id) = entities::id(kind, name) {
                self.lines.emphasise(id, 0.0, at, 0.0);
            }
        });
    }

    fn constrain(&mut self, position: usize, sentence: &str) {
        // What is said again is newer.
        self.constraints.retain(|(_, known)| known != sentence);
        self.constraints.push((position, sentence.to_string()));
        if self.constraints.len() > MOST_CONSTRAINTS {
            self.constraints.remove(0);
        }
    }

    fn say(&mut self, at: usize, position: usize, text: &str) {
        let text = without_base64(text.trim());
        if text.is_empty() {
            return;
        }
        let whole = text.len() <= TEXT;
        self.said.push(SaidText { position, at, text: bounded(&text), whole });
        if self.said.len() > MOST_SAID {
            // The first says what it is all about.
            self.said.remove(1);
        }
    }

    fn last(&mut self, at: usize, label: &str, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        self.latest.push_back((at, format!("{label}{}", bounded(&without_base64(text)))));
        if self.latest.len() > MOST_LATEST {
            self.latest.pop_front();
        }
    }

    /// The lines of a text; those of a paragraph are its sentences.
    fn prose(&mut self, at: usize, text: &str, emphasis: f64) {
        for line in without_base64(text).lines() {
            if line.len() <= LONG_LINE {
                self.lines.add(at, line, emphasis);
            } else {
                sentences(line).for_each(|sentence| self.lines.add(at, sentence, emphasis));
            }
        }
    }

    fn call(&mut self, at: usize, call: &ToolCall<'_>) {
        let arguments = serde_json::from_str::<Value>(&call.arguments).unwrap_or(Value::Null);
        self.open.call(&call.name, &arguments);
        let target = open::target(&call.name, &arguments, &call.arguments);
        let waiting = OpenCall { target, actions: files::actions(&call.name, &arguments) };
        self.waiting.entry(call.id.to_string()).or_default().push(waiting);
        let mut told = String::new();
        texts(&arguments, &mut |text| {
            self.prose(at, text, 0.8);
            told.push_str(if told.is_empty() { "" } else { "\n" });
            told.push_str(text);
        });
        self.last(at, "", &format!("[{}] {told}", call.name));
        // What is named outside of lines: numbers, short texts.
        arguments_of(&arguments, &mut |kind, name| {
            if let Some(id) = entities::id(kind, name) {
                self.lines.emphasise(id, entities::weight(kind), at, 0.8);
            }
        });
    }

    fn result(&mut self, at: usize, result: &ToolResult<'_>) {
        let calls = self.waiting.get_mut(result.call_id.as_ref());
        let call = calls.and_then(Vec::pop);
        if self.waiting.get(result.call_id.as_ref()).is_some_and(Vec::is_empty) {
            self.waiting.remove(result.call_id.as_ref());
        }
        let text = without_base64(&result.text);
        if let Some(OpenCall { target, actions }) = call {
            self.open.result(&target, result.is_error, &text);
            if !result.is_error {
                let shown = if actions.len() == 1 { files::shown(&text) } else { None };
                for action in actions {
                    let lines = action.lines.or(shown);
                    self.files.note(Action { lines, ..action });
                }
            }
        }
        let emphasis = if result.is_error { 0.6 } else { 0.25 };
        for line in text.lines() {
            let emphasis = if is_error_line(line) { emphasis * 2.0 } else { emphasis };
            self.lines.add(at, line, emphasis);
        }
        self.last(at, "[result] ", head(&text, LATEST_RESULT));
    }

    /// The message of an earlier summary, where an app hands over what a compaction made: its sections live on.
    fn earlier(&mut self, at: usize, position: usize, text: &str) {
        let (mut section, mut quote): (_, Option<String>) = (None, None);
        for line in text.lines() {
            // Messages of the user that it kept verbatim. What it says of others is indented or after a bullet.
            if let Some(quoted) = &mut quote {
                if line == "</message>" {
                    self.repeated(at, position, quoted.trim_end());
                    quote = None;
                } else {
                    quoted.push_str(line);
                    quoted.push('\n');
                }
                continue;
            }
            if line.starts_with("<message index=\"") && line.ends_with(" role=\"user\">") {
                quote = Some(String::new());
                continue;
            }
            if line == RULES {
                section = Some(CONSTRAINTS);
                continue;
            }
            if let Some(heading) = line.strip_prefix("## ") {
                section = Spoken::section(heading.trim());
                continue;
            }
            match (section, line.strip_prefix("- ")) {
                (Some(CONSTRAINTS), Some(sentence)) => self.constrain(position, sentence),
                (Some(TASKS), Some(task)) => self.open.prose(&format!("[ ] {task}")),
                (Some(FILES), Some(file)) => {
                    files::carried(file).into_iter().for_each(|action| self.files.note(action));
                }
                _ => {}
            }
            self.lines.add(at, line, 1.5);
        }
    }

    /// Takes in what a user said before an earlier summary.
    fn repeated(&mut self, at: usize, position: usize, said: &str) {
        let message = Message { role: Role::User, parts: vec![Part::Text(Cow::Borrowed(said))] };
        for sentence in constraints(&message) {
            self.constrain(position, sentence);
        }
        self.prose(at, said, 3.0);
        self.say(at, position, said);
    }

    /// What must not be lost, the most important first; constraints the newest first.
    pub fn musts(&self) -> Vec<MustKeep> {
        let constraints = self.constraints.iter().rev();
        let constraints = constraints.map(|(position, text)| MustKeep::Constraint(*position, text.clone()));
        let files = self.files.lines().0.into_iter().map(|(path, _)| MustKeep::File(path));
        let failures = self.open.failures().rev().map(|failure| MustKeep::Failure(failure.line.clone()));
        let tasks = self.open.tasks().map(|task| MustKeep::Task(task.to_string()));
        constraints.chain(files).chain(failures).chain(tasks).collect()
    }

    /// Messages of the user with their sizes in bytes, newest first.
    pub fn said(&self) -> impl Iterator<Item = (usize, &str)> {
        self.said.iter().rev().filter(|said| said.whole).map(|said| (said.position, said.text.as_str()))
    }

    /// What a summary names that the conversation does not: paths, URLs and ids.
    pub fn unsupported<'t>(&self, summary: &'t str) -> Vec<&'t str> {
        let mut made_up = Vec::new();
        scan::entities(summary, &mut |kind, name| {
            // A file may be called by its name alone, and numbers are added up.
            let is_told = match kind {
                FactKind::Path => name.trim_end_matches('/').contains(['/', '\\']),
                FactKind::Url | FactKind::Id | FactKind::Identifier => true,
                _ => false,
            };
            let is_known = || entities::id(kind, name).is_none_or(|id| self.lines.names(id));
            if is_told && !is_known() && !made_up.contains(&name) {
                made_up.push(name);
            }
        });
        made_up
    }
}

/// A text of at most [`TEXT`] bytes: its begin and its end.
fn bounded(text: &str) -> String {
    if text.len() <= TEXT {
        return text.to_string();
    }
    format!("{}\n[…]\n{}", head(text, TEXT / 2), tail(text, TEXT / 2))
}

/// Every text in a call's arguments.
fn texts(value: &Value, each: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, each)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
