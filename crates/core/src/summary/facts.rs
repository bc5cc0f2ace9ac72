//! Facts: what a summary should repeat to the letter, found without a model.

use super::scan::entities;
use super::sentence::{LONGEST, is_constraint, is_decision};
use super::text::{head, sentences, unlisted};
use crate::message::{Message, Part, Role, ToolCall};
use crate::order;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;

/// A command or an error line is kept up to this many bytes.
const LINE: usize = 200;

/// The kinds of fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FactKind {
    /// A file or folder.
    Path,
    /// A URL without credentials.
    Url,
    /// A hash, UUID, ticket, order or booking number.
    Id,
    /// A version, a date, an amount, a quantity with its unit.
    Number,
    /// A command that was run or named.
    Command,
    /// The name of an error, or the line that reports it.
    Error,
    /// A sentence of the user that requires, limits or forbids.
    Constraint,
    /// A sentence that reports a decision.
    Decision,
    /// A name in code: `snake_case`, `camelCase`, `--flag`.
    Identifier,
}

impl FactKind {
    fn weight(self) -> f64 {
        match self {
            FactKind::Constraint => 6.0,
            FactKind::Decision => 3.0,
            FactKind::Error => 2.5,
            FactKind::Path | FactKind::Command | FactKind::Id => 2.0,
            FactKind::Url => 1.5,
            FactKind::Identifier => 1.0,
            FactKind::Number => 0.8,
        }
    }
}

/// Something that a summary should repeat to the letter.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    /// What it is.
    pub kind: FactKind,
    /// Its text, to the letter.
    pub text: String,
    /// Index of the first message that has it; none for a message that is not the app's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// Importance, to compare facts of one history: kind × √(mentions by role and recency).
    pub weight: f64,
}

impl Fact {
    /// A constraint that the app's message `index` states.
    pub(super) fn constraint(text: &str, index: usize) -> Self {
        let kind = FactKind::Constraint;
        Fact { kind, text: text.to_string(), index: Some(index), weight: kind.weight() }
    }
}

/// Everything that was found. A thing's id is its place in the order of discovery.
#[derive(Default)]
pub(super) struct FoundFacts {
    /// The newest entry with this text; entries of other kinds with the same text are chained to it.
    newest: HashMap<String, usize>,
    entries: Vec<FactEntry>,
}

struct FactEntry {
    kind: FactKind,
    first: usize,
    mass: f64,
    chained: Option<usize>,
}

impl FactEntry {
    fn weight(&self) -> f64 {
        self.kind.weight() * self.mass.sqrt()
    }
}

impl FoundFacts {
    /// Counts a mention; the thing's id.
    fn add(&mut self, kind: FactKind, text: &str, index: usize, mass: f64) -> usize {
        self.add_times(kind, text, index, mass, 1)
    }

    /// Counts so many mentions; the thing's id.
    pub(super) fn add_times(
        &mut self,
        kind: FactKind,
        text: &str,
        index: usize,
        mass: f64,
        count: u32,
    ) -> usize {
        let known = self.newest.get(text).copied();
        let mut at = known;
        while let Some((id, entry)) = at.and_then(|id| Some((id, self.entries.get_mut(id)?))) {
            if entry.kind == kind {
                // One by one: a sum of fractions depends on its order.
                (0..count).for_each(|_| entry.mass += mass);
                return id;
            }
            at = entry.chained;
        }
        let id = self.entries.len();
        let mass = (1..count).fold(mass, |sum, _| sum + mass);
        self.entries.push(FactEntry { kind, first: index, mass, chained: known });
        match self.newest.get_mut(text) {
            Some(newest) => *newest = id,
            None => {
                self.newest.insert(text.to_string(), id);
            }
        }
        id
    }

    /// Calls `see` with the id of everything in `text` that was found before.
    pub(super) fn known(&self, text: &str, see: &mut impl FnMut(usize)) {
        entities(text, &mut |kind, text| {
            let mut at = self.newest.get(text).copied();
            while let Some((id, entry)) = at.and_then(|id| Some((id, self.entries.get(id)?))) {
                if entry.kind == kind {
                    see(id);
                }
                at = entry.chained;
            }
        });
    }

    /// Weights by id.
    pub(super) fn weights(&self) -> Vec<f64> {
        self.entries.iter().map(FactEntry::weight).collect()
    }

    /// The facts of the wanted kinds, best first; ties in order of appearance, then of text.
    pub(super) fn facts(&self, wanted: impl Fn(FactKind) -> bool) -> Vec<Fact> {
        let mut facts = Vec::new();
        for (text, &id) in &self.newest {
            let mut at = Some(id);
            while let Some(entry) = at.and_then(|id| self.entries.get(id)) {
                if wanted(entry.kind) {
                    // Three decimals: enough to rank, and readable in JSON.
                    let weight = (entry.weight() * 1000.0).round() / 1000.0;
                    facts.push(Fact {
                        kind: entry.kind,
                        text: text.clone(),
                        index: Some(entry.first),
                        weight,
                    });
                }
                at = entry.chained;
            }
        }
        order::sort(&mut facts, |a, b| {
            let by_weight = b.weight.total_cmp(&a.weight);
            by_weight.then_with(|| (a.index, a.kind, &a.text).cmp(&(b.index, b.kind, &b.text))).is_lt()
        });
        facts
    }
}

/// The newest mention counts twice as much as the first.
pub(super) fn recency(index: usize, count: usize) -> f64 {
    0.5 + 0.5 * (index as f64 + 1.0) / count.max(1) as f64
}

/// All facts of a history with their weights, in one pass that shows every line of prose and of results to `see`:
/// the index of its message, the line, the ids of what is in it.
pub(super) fn collect<'m>(
    messages: &'m [Message<'_>],
    see: &mut impl FnMut(usize, &'m str, &[usize]),
) -> FoundFacts {
    let mut found = FoundFacts::default();
    let mut ids = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let recency = recency(index, messages.len());
        for part in &message.parts {
            let mass = recency * emphasis(part, message.role);
            look(part, message.role, &mut |named| match named {
                SeenInPart::InLine(kind, text) => ids.push(found.add(kind, text, index, mass)),
                SeenInPart::Apart(kind, text) => _ = found.add(kind, text, index, mass),
                SeenInPart::Line(line) => {
                    see(index, line, &ids);
                    ids.clear();
                }
            });
        }
    }
    found
}

/// What is seen of a part.
pub(super) enum SeenInPart<'m, 't> {
    /// Something that the line names which is being read.
    InLine(FactKind, &'t str),
    /// Something of no line.
    Apart(FactKind, &'t str),
    /// A line that was read.
    Line(&'m str),
}

/// How much is made of what a part names.
pub(super) fn emphasis(part: &Part<'_>, role: Role) -> f64 {
    match part {
        Part::Text(_) if role == Role::User => 3.0,
        Part::Text(_) => 1.0,
        Part::ToolCall(_) => 0.8,
        Part::ToolResult(result) if result.is_error => 0.6,
        Part::ToolResult(_) => 0.25,
        Part::Reasoning { .. } | Part::Media(_) | Part::Opaque { .. } | Part::Compaction { .. } => 0.0,
    }
}

/// Reads a part.
pub(super) fn look<'m>(part: &'m Part<'_>, role: Role, see: &mut impl FnMut(SeenInPart<'m, '_>)) {
    match part {
        Part::Text(text) => {
            for line in text.lines() {
                entities(line, &mut |kind, text| see(SeenInPart::InLine(kind, text)));
                see(SeenInPart::Line(line));
            }
            prose(text, role, |kind, text| see(SeenInPart::Apart(kind, text)));
        }
        Part::ToolCall(call) => arguments(call, &mut |kind, text| see(SeenInPart::Apart(kind, text))),
        Part::ToolResult(result) => {
            for line in result.text.lines() {
                entities(line, &mut |kind, text| {
                    // Numbers in results are data by the thousand; the telling ones are said again in prose.
                    if kind != FactKind::Number {
                        see(SeenInPart::InLine(kind, text));
                    }
                });
                see(SeenInPart::Line(line));
                if is_error_line(line) {
                    see(SeenInPart::Apart(FactKind::Error, head(unlisted(line), LINE)));
                }
            }
        }
        Part::Reasoning { .. } | Part::Media(_) | Part::Opaque { .. } | Part::Compaction { .. } => {}
    }
}

/// Constraints, decisions, error lines and commands in prose.
fn prose(text: &str, role: Role, mut found: impl FnMut(FactKind, &str)) {
    for line in text.lines().map(unlisted) {
        if let Some(command) = line.strip_prefix("$ ") {
            found(FactKind::Command, head(command.trim(), LINE));
        } else if is_error_line(line) {
            found(FactKind::Error, head(line, LINE));
        }
        // Between backticks: `npm run build`.
        for command in line.split('`').skip(1).step_by(2).filter(|code| is_command(code)) {
            found(FactKind::Command, command);
        }
    }
    if role == Role::System {
        return;
    }
    for sentence in sentences(text) {
        if role == Role::User && is_constraint(sentence) {
            found(FactKind::Constraint, sentence);
        } else if sentence.len() <= LONGEST && is_decision(sentence) {
            found(FactKind::Decision, sentence);
        }
    }
}

/// Facts in a call's arguments: parsed, because escapes in raw JSON make up names that nobody wrote.
pub(super) fn arguments(call: &ToolCall<'_>, found: &mut impl FnMut(FactKind, &str)) {
    match serde_json::from_str::<Value>(&call.arguments) {
        Ok(value) => argument("", &value, found),
        Err(_) => entities(&call.arguments, &mut |kind, text| found(kind, text)),
    }
}

/// Facts in arguments that are parsed.
pub(super) fn arguments_of(arguments: &Value, found: &mut impl FnMut(FactKind, &str)) {
    argument("", arguments, found);
}

fn argument(key: &str, value: &Value, found: &mut impl FnMut(FactKind, &str)) {
    match value {
        Value::String(text) if is_path_key(key) && text.len() <= 300 && !text.contains('\n') => {
            found(FactKind::Path, text);
        }
        Value::String(text) if is_command_key(key) => {
            if let Some(line) = text.lines().map(str::trim).find(|line| !line.is_empty()) {
                found(FactKind::Command, head(line, LINE));
            }
            entities(text, &mut |kind, text| found(kind, text));
        }
        Value::String(text) => entities(text, &mut |kind, text| found(kind, text)),
        // `["bash", "-lc", "cargo test"]`
        Value::Array(items) if is_command_key(key) && items.iter().all(Value::is_string) => {
            if let Some(Value::String(script)) = items.last() {
                argument(key, &Value::String(script.clone()), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| argument(key, item, found)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| argument(key, value, found)),
        Value::Number(number) => {
            let text = number.to_string();
            if text.len() >= 3 {
                found(FactKind::Number, &text);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Arguments whose whole value is a path.
pub(super) fn is_path_key(key: &str) -> bool {
    const KEYS: [&str; 13] = [
        "path",
        "file_path",
        "filePath",
        "filename",
        "file",
        "notebook_path",
        "cwd",
        "workdir",
        "directory",
        "dir",
        "target_file",
        "absolute_path",
        "relative_path",
    ];
    KEYS.contains(&key)
}

/// Arguments that hold a command.
fn is_command_key(key: &str) -> bool {
    ["command", "cmd", "script"].contains(&key)
}

/// Programs that make code between backticks a command.
fn is_command(code: &str) -> bool {
    const PROGRAMS: [&str; 30] = [
        "git",
        "npm",
        "npx",
        "pnpm",
        "yarn",
        "node",
        "bun",
        "deno",
        "cargo",
        "rustup",
        "python",
        "python3",
        "pip",
        "uv",
        "pytest",
        "go",
        "make",
        "cmake",
        "docker",
        "kubectl",
        "terraform",
        "curl",
        "wget",
        "gh",
        "ssh",
        "psql",
        "sqlite3",
        "brew",
        "apt",
        "wrangler",
    ];
    let mut words = code.split_whitespace();
    words.next().is_some_and(|program| PROGRAMS.contains(&program))
        && words.next().is_some()
        && code.len() <= LINE
}

/// A line that reports an error.
pub(super) fn is_error_line(line: &str) -> bool {
    let line = unlisted(line);
    if line.len() < 12 || line.len() > 2 * LINE {
        return false;
    }
    const STARTS: [&str; 9] =
        ["error:", "error[", "Error:", "ERROR", "fatal:", "panic:", "FATAL", "Traceback", "npm ERR!"];
    let names_error = |(at, _)| {
        line.get(..at).is_some_and(|before| before.ends_with("Error") || before.ends_with("Exception"))
    };
    STARTS.iter().any(|start| line.starts_with(start))
        || line.match_indices(':').any(names_error)
        || (line.starts_with("thread ") && line.contains("panicked at"))
}
