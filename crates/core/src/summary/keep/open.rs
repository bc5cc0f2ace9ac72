//! What is open: errors that nothing has succeeded after, tasks that nobody ticked off.

use super::super::facts::is_error_line;
use super::super::text::{head, unlisted};
use super::files;
use serde_json::Value;

/// Errors and tasks that are kept; the newest.
const MOST: usize = 32;
/// Bytes of one.
const LINE: usize = 240;

/// How the target of a call begins that reads a file, and of one that changes it.
const READ: &str = "read ";
const CHANGE: &str = "change ";

/// What says that a call was not made, or asked for something else: nothing is broken, and nothing has to be mended.
const NO_FAILURE: [&str; 6] = [
    "doesn't want to proceed with this tool use",
    "tool use was rejected",
    "doesn't want to take this action",
    "requested permission",
    "File does not exist",
    "File has not been read yet",
];

/// An error that a tool reported.
#[derive(Debug)]
pub(super) struct ToolFailure {
    /// What failed: a call of the same target that succeeds closes it.
    target: String,
    /// The line that says it.
    pub(super) line: String,
}

/// A task that was written down.
#[derive(Debug)]
struct Task {
    text: String,
    open: bool,
    /// It is in the list of a tool, which the next one replaces.
    listed: bool,
}

/// What is open so far.
#[derive(Debug, Default)]
pub(super) struct Open {
    failures: Vec<ToolFailure>,
    tasks: Vec<Task>,
}

impl Open {
    /// Notes what a call answered. `is_error` is what the tool says; a command's output may say it too.
    pub(super) fn result(&mut self, target: &str, is_error: bool, text: &str) {
        let ran = target.starts_with("$ ");
        let failed = is_error || (ran && fails(text));
        // What could be changed can be read.
        let path = target.strip_prefix(CHANGE).filter(|_| !failed);
        let is_closed = |known: &str| known == target || (path.is_some() && known.strip_prefix(READ) == path);
        self.failures.retain(|failure| !is_closed(&failure.target));
        let start = head(text, LINE);
        if !failed || NO_FAILURE.iter().any(|phrase| start.contains(phrase)) {
            return;
        }
        let told = text.lines().find(|line| is_error_line(line));
        let first = || text.lines().map(str::trim).find(|line| line.len() > 3);
        let Some(line) = told.or_else(first) else { return };
        self.failures
            .push(ToolFailure { target: target.to_string(), line: head(unlisted(line), LINE).to_string() });
        if self.failures.len() > MOST {
            self.failures.remove(0);
        }
    }

    /// Notes the list of tasks that a call writes, when it does.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) {
        let tool = tool.to_lowercase();
        if !["todo", "plan", "task"].iter().any(|word| tool.contains(word)) {
            return;
        }
        let lists = arguments.as_object().into_iter().flat_map(|fields| fields.values());
        for list in lists.filter_map(Value::as_array) {
            let listed: Vec<Task> = list.iter().filter_map(task).collect();
            if !listed.is_empty() || list.is_empty() {
                self.tasks.retain(|task| !task.listed);
                self.tasks.extend(listed);
            }
        }
    }

    /// Notes the boxes of a text: `- [ ] …`, `- [x] …`.
    pub(super) fn prose(&mut self, text: &str) {
        for line in text.lines() {
            let Some(rest) = unlisted(line).strip_prefix('[') else { continue };
            let Some((mark, text)) = rest.split_once(']') else { continue };
            let open = mark.trim().is_empty();
            let text = head(text.trim(), LINE);
            if text.len() < 3 || !(open || matches!(mark, "x" | "X" | "✓" | "✔")) {
                continue;
            }
            self.tasks.retain(|task| task.text != text);
            self.tasks.push(Task { text: text.to_string(), open, listed: false });
            if self.tasks.len() > 4 * MOST {
                self.tasks.retain(|task| task.open);
                self.tasks.drain(..self.tasks.len().saturating_sub(MOST));
            }
        }
    }

    /// The errors, oldest first.
    pub(super) fn failures(&self) -> impl DoubleEndedIterator<Item = &ToolFailure> {
        self.failures.iter()
    }

    /// The open tasks, in order.
    pub(super) fn tasks(&self) -> impl DoubleEndedIterator<Item = &str> {
        let open = self.tasks.iter().filter(|task| task.open);
        open.map(|task| task.text.as_str())
    }
}

/// One task of a tool's list: `{ content, status }`, `{ step, status }`.
fn task(item: &Value) -> Option<Task> {
    let text = |keys: &[&str]| keys.iter().find_map(|key| item.get(key)?.as_str());
    let said = text(&["content", "step", "title", "text", "task", "description", "subject"])?;
    let status = text(&["status", "state"]).unwrap_or("pending").to_lowercase();
    let done = ["complete", "done", "cancel", "closed"].iter().any(|word| status.contains(word))
        || item.get("done").or(item.get("completed")).and_then(Value::as_bool) == Some(true);
    Some(Task { text: head(said.trim(), LINE).to_string(), open: !done, listed: true })
}

/// What a call is about: its command, its file, or all of its arguments.
pub(super) fn target(tool: &str, arguments: &Value, raw: &str) -> String {
    if let Some(command) =
        files::command(arguments).filter(|command| command.contains(' ') || arguments.get("path").is_none())
    {
        // `cd folder && cargo test -p x 2>&1 | tail`: the program and what it must do.
        let told = command.split("&&").map(str::trim).find(|part| !part.starts_with("cd ")).unwrap_or("");
        let words: Vec<&str> = told.split_whitespace().take(2).collect();
        return format!("$ {}", words.join(" "));
    }
    match files::actions(tool, arguments).first() {
        Some(action) if action.did == files::Did::Read => format!("{READ}{}", action.path),
        Some(action) => format!("{CHANGE}{}", action.path),
        None => format!("{tool} {}", head(raw, LINE)),
    }
}

/// The output of a command says that it failed.
fn fails(text: &str) -> bool {
    let start = head(text, 64).to_lowercase();
    let code = ["exit code ", "exit code: ", "exited with code ", "exit status "]
        .iter()
        .find_map(|mark| start.split_once(mark))
        .and_then(|(_, after)| after.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok());
    match code {
        Some(code) => code != 0,
        None => text.lines().take(200).any(is_error_line),
    }
}
