//! What happened, in order: what was said, run and changed, and what came of it, under the request that it was done for.

use super::super::render::without_base64;
use super::super::text::{first_words, last_words};
use super::files::{self, Action, Did};
use super::stored::{stored, stored_as_numbers};
use super::{entities, noise, open};
use crate::message::{ToolCall, ToolResult};
use serde_json::Value;
use std::collections::{HashSet, VecDeque};

/// TurnEvents that are kept; the newest.
const MOST: usize = 4_096;
/// So many of the newest are kept nearly whole,
const NEWEST: usize = 128;
/// in this many bytes,
const WHOLE: usize = 12 << 10;
/// and what came before them in so many.
const SHORT: usize = 700;
/// Bytes of what came of a call.
const OUTCOME: usize = 320;
/// Lines that a change removed, where it wrote others.
const REMOVED: usize = 2;
/// A change of more lines than these is told with what it wrote first.
const LONG: usize = 6;
/// A text of fewer bytes that ends with a colon announces what comes.
const ANNOUNCES: usize = 160;

/// Parts of the names of tools that keep lists of tasks: what is open has a section of its own.
const LISTS: [&str; 5] = ["todo", "taskcreate", "taskupdate", "task_update", "update_plan"];

/// Lines at the end of an output among which the one that counts is looked for.
const LAST: usize = 8;
/// Parts of the names of tools that run something, and of those that look for something.
const RUNS: [&str; 5] = ["run", "test", "exec", "shell", "build"];
const FINDS: [&str; 5] = ["grep", "glob", "search", "list", "find"];

/// What an event is, the more telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// The agent spoke.
    Said,
    /// A file was changed.
    Changed,
    /// Something failed.
    Failed,
    /// Something was run or looked up.
    Ran,
}

stored_as_numbers!(What { Said, Changed, Failed, Ran });

/// Something that happened.
#[derive(Debug, Clone)]
pub(super) struct TurnEvent {
    /// Messages before it.
    pub(super) at: usize,
    /// The number that the message was added with.
    pub(super) position: usize,
    pub(super) what: What,
    pub(super) text: String,
    /// What came of it.
    pub(super) outcome: String,
    /// The number of a change that failed or was refused ([`change_number`]).
    pub(super) refused: Option<u64>,
}

stored!(TurnEvent { at, position, what, text, outcome, refused });

impl TurnEvent {
    /// The event as it is told: `$ make test → 3 failed`.
    pub(super) fn told(&self) -> String {
        match self.outcome.is_empty() {
            true => self.text.clone(),
            false => format!("{} → {}", self.text, self.outcome),
        }
    }
}

/// The events of a conversation so far.
#[derive(Debug, Default)]
pub(super) struct TurnEvents {
    list: VecDeque<TurnEvent>,
    /// Calls without a result, with their numbers among all events.
    waiting: Vec<(String, usize)>,
    /// TurnEvents that are not kept any more.
    gone: usize,
}

stored!(TurnEvents { waiting, gone } apart { list });

impl TurnEvents {
    /// The events that are kept, oldest first.
    pub(super) fn list(&self) -> &VecDeque<TurnEvent> {
        &self.list
    }

    /// Goes on with events that were there before.
    pub(super) fn extend(&mut self, events: Vec<TurnEvent>) {
        self.list.extend(events);
    }

    /// The agent says something.
    pub(super) fn said(&mut self, at: usize, position: usize, text: &str) {
        let text = text.trim();
        // `Now the tests:` says nothing that the next event does not.
        let announces = text.len() < ANNOUNCES && text.ends_with(':');
        if !text.is_empty() && !announces {
            let text = bounded(&without_base64(text), WHOLE);
            self.push(TurnEvent {
                at,
                position,
                what: What::Said,
                text,
                outcome: String::new(),
                refused: None,
            });
        }
    }

    /// The agent calls a tool. What only reads a file is in the ledger.
    pub(super) fn called(
        &mut self,
        (at, position): (usize, usize),
        call: &ToolCall<'_>,
        arguments: &Value,
        actions: &[Action],
    ) {
        let tool = call.name.to_lowercase();
        if LISTS.iter().any(|list| tool.contains(list)) {
            return;
        }
        let (what, text) = match (files::command(arguments), changed(arguments, actions)) {
            (Some(command), _) => (What::Ran, format!("$ {}", telling(&command))),
            (None, Some(change)) => (What::Changed, change),
            (None, None) if actions.iter().any(|action| action.did == Did::Read) => return,
            (None, None) => (What::Ran, format!("{} {}", call.name, plain(arguments, &call.arguments))),
        };
        self.waiting.push((call.id.to_string(), self.gone + self.list.len()));
        if self.waiting.len() > MOST {
            self.waiting.remove(0);
        }
        let text = bounded(&without_base64(&text), WHOLE);
        self.push(TurnEvent { at, position, what, text, outcome: String::new(), refused: None });
    }

    /// A call is answered; `failure` is what the answer says where the call failed. What was refused is no failure, and was
    /// not done; `change` is its number.
    pub(super) fn answered(
        &mut self,
        result: &ToolResult<'_>,
        failure: Option<&str>,
        text: &str,
        change: Option<u64>,
    ) {
        let id = result.call_id.as_ref();
        // Ids repeat across turns: the newest call is meant.
        let Some(nth) = self.waiting.iter().rposition(|(waiting, _)| waiting == id) else { return };
        let (_, number) = self.waiting.remove(nth);
        let Some(event) = number.checked_sub(self.gone).and_then(|at| self.list.get_mut(at)) else { return };
        event.refused = change.filter(|_| result.is_error && event.what == What::Changed);
        event.outcome = match failure {
            Some(line) => {
                event.what = What::Failed;
                shown(line, OUTCOME)
            }
            None if event.what == What::Changed && result.is_error => {
                event.what = What::Failed;
                let why = open::reason(text).unwrap_or("the tool does not say why");
                format!("not made: {}", shown(why, OUTCOME / 2))
            }
            None if event.what == What::Changed => String::new(),
            None => outcome(&event.text, text),
        };
    }

    fn push(&mut self, event: TurnEvent) {
        self.list.push_back(event);
        if let Some(old) = self.list.len().checked_sub(NEWEST + 1).and_then(|at| self.list.get_mut(at))
            && old.text.len() > SHORT
        {
            old.text = bounded(&old.text, SHORT);
        }
        if self.list.len() > MOST {
            self.list.pop_front();
            self.gone += 1;
        }
    }
}

/// What came of a call that did not fail: of what was run the last line, which counts, of a search how much it found, else
/// the beginning.
fn outcome(call: &str, text: &str) -> String {
    let command = call.strip_prefix("$ ").map(open::program);
    let tool = call.split(' ').next().unwrap_or("").to_lowercase();
    let names = |verbs: &[&str]| command.is_none() && verbs.iter().any(|verb| tool.contains(verb));
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| line.len() > 1).collect();
    let (runs, finds) =
        (command.is_some() || names(&RUNS), command.is_some_and(open::shows) || names(&FINDS));
    match lines.as_slice() {
        [] => String::new(),
        [only] => shown(only, OUTCOME),
        [.., last] if runs && !finds && tells(last) => {
            let counted = lines.iter().rev().take(LAST).find(|line| counts(line));
            shown(counted.unwrap_or(last), OUTCOME / 2)
        }
        all if runs || finds => format!("{} lines", all.len()),
        all => shown(&all.join(" "), OUTCOME),
    }
}

/// A text, and a mark where it is cut.
pub(super) fn shown(text: &str, bytes: usize) -> String {
    match first_words(text, bytes) {
        whole if whole.len() == text.len() => whole.to_string(),
        start => format!("{start}…"),
    }
}

/// A line that says how many of something passed or failed.
fn counts(line: &str) -> bool {
    const COUNTED: [&str; 4] = ["passed", "failed", "errors", "warnings"];
    line.contains(|letter: char| letter.is_ascii_digit()) && COUNTED.iter().any(|word| line.contains(word))
}

/// A line with some words in it.
fn tells(line: &str) -> bool {
    line.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).count() > 1
}

/// A command without the lines that say nothing.
fn telling(command: &str) -> String {
    let lines: Vec<&str> = command.lines().filter(|line| !noise::is_noise(line) || line.len() < 16).collect();
    lines.join("\n").trim().to_string()
}

/// The change that a call makes: the path, and what became of its lines. None where it changes nothing.
fn changed(arguments: &Value, actions: &[Action]) -> Option<String> {
    let Action { path, did, .. } = actions.iter().find(|action| action.did != Did::Read)?;
    let mut edits = Vec::new();
    pairs(arguments, &mut edits);
    let mut lines: Vec<String> = Vec::new();
    let tells = |line: &&str| !noise::is_front(line) && !noise::is_marker(line) && line.trim().len() > 1;
    for (old, new) in edits {
        let (before, after): (HashSet<&str>, HashSet<&str>) = (old.lines().collect(), new.lines().collect());
        let gone: Vec<&str> = old.lines().filter(tells).filter(|line| !after.contains(line)).collect();
        let come: Vec<&str> = new.lines().filter(tells).filter(|line| !before.contains(line)).collect();
        // What stands there now says more than what does not any more, and a long change is told by its beginning.
        let most = if new.is_empty() { gone.len() } else { REMOVED };
        let mut went: Vec<String> = gone.iter().take(most).map(|line| format!("- {line}")).collect();
        went.extend(gone.len().checked_sub(most + 1).map(|more| format!("- …and {} more lines", more + 1)));
        // What is written anew is shown as it is.
        let came =
            come.iter().map(|line| if old.is_empty() { line.to_string() } else { format!("+ {line}") });
        match gone.len() + come.len() > LONG {
            true => lines.extend(came.chain(went)),
            false => lines.extend(went.into_iter().chain(came)),
        }
    }
    let patch = ["input", "patch", "diff"].iter().find_map(|key| arguments.get(key)?.as_str());
    lines.extend(patch.into_iter().flat_map(str::lines).filter(tells).map(str::to_string));
    Some(match lines.as_slice() {
        [] => format!("{path} ({})", did.as_str()),
        lines => format!("{path}:\n{}", lines.join("\n")),
    })
}

/// How the names begin that tools have for what is replaced.
const OLD: [&str; 3] = ["old", "search", "find"];

/// True for the argument of a change that says what is replaced.
pub(super) fn is_replaced(key: &str) -> bool {
    OLD.iter().any(|start| key.starts_with(start))
}

/// A line of fewer bytes stands in more than one place.
const LINE: usize = 12;

/// The lines that a call removes, where it replaces some by others.
pub(super) fn removed(arguments: &Value) -> HashSet<&str> {
    let mut edits = Vec::new();
    pairs(arguments, &mut edits);
    let lines = edits.iter().flat_map(|(old, _)| old.lines()).map(str::trim);
    let mut gone: HashSet<&str> = lines.filter(|line| line.len() >= LINE).collect();
    for line in edits.iter().flat_map(|(_, new)| new.lines()) {
        gone.remove(line.trim());
    }
    gone
}

/// A number of what a call writes into which file: the same when it is tried again, also in another place.
pub(super) fn change_number(arguments: &Value, actions: &[Action]) -> Option<u64> {
    let Action { path, .. } = actions.iter().find(|action| action.did != Did::Read)?;
    let mut edits = Vec::new();
    pairs(arguments, &mut edits);
    let written = match edits.is_empty() {
        true => plain(arguments, ""),
        false => edits.iter().map(|(_, new)| *new).collect::<Vec<_>>().join("\n"),
    };
    Some(entities::number(&format!("{path}\n{written}")))
}

/// What calls replace by what, by the names that tools have for it: `old_string` and `new_string`, `search` and `replace`,
/// `content`; in the arguments, or in a list of edits there.
fn pairs<'v>(arguments: &'v Value, out: &mut Vec<(&'v str, &'v str)>) {
    const NEW: [&str; 5] = ["new", "replace", "content", "file_text", "text"];
    let Some(fields) = arguments.as_object() else { return };
    let named = |starts: &[&str]| {
        let mut found = fields.iter().filter(|(key, _)| starts.iter().any(|start| key.starts_with(start)));
        found.find_map(|(_, value)| value.as_str())
    };
    if let Some(new) = named(&NEW) {
        out.push((named(&OLD).unwrap_or(""), new));
    }
    let lists = fields.values().filter_map(Value::as_array);
    lists.flatten().for_each(|edit| pairs(edit, out));
}

/// The texts of a call's arguments, as they are where there are none.
pub(super) fn plain(arguments: &Value, raw: &str) -> String {
    fn texts(value: &Value, out: &mut Vec<String>) {
        match value {
            Value::String(text) => out.push(text.clone()),
            Value::Number(number) => out.push(number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| texts(item, out)),
            Value::Object(fields) => fields.values().for_each(|field| texts(field, out)),
            Value::Null | Value::Bool(_) => {}
        }
    }
    let mut out = Vec::new();
    texts(arguments, &mut out);
    if out.is_empty() { raw.to_string() } else { out.join(", ") }
}

/// A text of at most about `bytes` bytes: its begin and its end.
pub(super) fn bounded(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_string();
    }
    let (start, end) = (first_words(text, bytes * 2 / 3), last_words(text, bytes / 3));
    let missing = text.get(start.len()..text.len() - end.len()).unwrap_or("").chars().count();
    format!("{start}[… {missing} characters left out …]{end}")
}
