//! What is open: errors that nothing has succeeded after, tasks that nobody ticked off.

use super::super::facts::is_error_line;
use super::super::text::{head, unlisted};
use super::files;
use super::stored::{AsBytes, StoredReader, stored, stored_as_numbers};
use serde_json::Value;

/// Errors and tasks that are kept; the newest.
const MOST: usize = 32;
/// Bytes of one.
const LINE: usize = 240;

/// After so many further requests of the user nobody mends what failed before them.
const MOVED_ON: usize = 3;

/// What a result says of its failure, where it failed: the tool says so, or what a command printed.
pub(crate) fn failure(is_error: bool, command: Option<&str>, text: &str) -> Option<String> {
    // What a command shows of files may tell of any failure.
    let failed = is_error || (command.is_some_and(|command| !shows(command)) && fails(text));
    let start = head(text, LINE);
    if !failed || NO_FAILURE.iter().any(|phrase| start.contains(phrase)) {
        return None;
    }
    Some(head(unlisted(reason(text)?), LINE).to_string())
}

/// How the target of a call begins that reads a file, and of one that changes it.
const READ: &str = "read ";
const CHANGE: &str = "change ";

/// What says that a call was not made, or asked for something else: nothing is broken, and nothing has to be mended.
const NO_FAILURE: [&str; 7] = [
    "doesn't want to proceed with this tool use",
    "tool use was rejected",
    "doesn't want to take this action",
    "requested permission",
    "File does not exist",
    "File has not been read yet",
    "Sibling tool call errored",
];

/// How git begins the line that names a file which it could not merge.
const CONFLICT: &str = "CONFLICT (";

/// An error that a tool reported.
#[derive(Debug, Clone)]
pub(super) struct ToolFailure {
    /// What failed: a call of the same target that succeeds closes it.
    target: String,
    /// The line that says it.
    pub(super) line: String,
    /// Requests of the user before it.
    asked: usize,
}

stored!(ToolFailure { target, line, asked });

/// A task that was written down.
#[derive(Debug, Clone)]
pub(super) struct Task {
    text: String,
    state: TaskState,
    /// It is in the list of a tool, which the next one replaces.
    listed: bool,
    /// What calls name it by, where it was written down by itself.
    number: Option<String>,
}

stored!(Task { text, state, listed, number });

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskState {
    Waiting,
    Begun,
    Done,
}

stored_as_numbers!(TaskState { Waiting, Begun, Done });

/// What a call does to one task, once it is answered.
#[derive(Debug, Clone)]
pub(super) enum TaskChange {
    Add(Task),
    Change { number: String, text: Option<String>, state: Option<TaskState> },
}

impl AsBytes for TaskChange {
    fn write(&self, out: &mut Vec<u8>) {
        matches!(self, TaskChange::Add(_)).write(out);
        match self {
            TaskChange::Add(task) => task.write(out),
            TaskChange::Change { number, text, state } => {
                number.write(out);
                text.write(out);
                state.write(out);
            }
        }
    }

    fn read(from: &mut StoredReader<'_>) -> Self {
        match bool::read(from) {
            true => TaskChange::Add(Task::read(from)),
            false => {
                let (number, text, state) = (AsBytes::read(from), AsBytes::read(from), AsBytes::read(from));
                TaskChange::Change { number, text, state }
            }
        }
    }
}

/// What is open so far.
#[derive(Debug, Default, Clone)]
pub(super) struct Open {
    failures: Vec<ToolFailure>,
    tasks: Vec<Task>,
    /// Requests of the user.
    asked: usize,
}

stored!(Open { failures, tasks, asked });

impl Open {
    /// The user asked for something. Who asks for other things twice has moved on from what failed before.
    pub(super) fn request(&mut self) {
        self.asked += 1;
        self.failures.retain(|failure| failure.asked + MOVED_ON > self.asked);
    }

    /// Notes what a call answered; the line that says so when it failed. `is_error` is what the tool says; a command's
    /// output may say it too.
    pub(super) fn result(&mut self, target: &str, is_error: bool, text: &str) -> Option<String> {
        let command = target.strip_prefix("$ ");
        let failed = is_error || (command.is_some_and(|command| !shows(command)) && fails(text));
        // What could be changed can be read.
        let path = target.strip_prefix(CHANGE).filter(|_| !failed);
        let is_closed = |known: &str| known == target || (path.is_some() && known.strip_prefix(READ) == path);
        self.failures.retain(|failure| !is_closed(&failure.target));
        let line = failure(is_error, command, text)?;
        self.failures.push(ToolFailure { target: target.to_string(), line: line.clone(), asked: self.asked });
        if self.failures.len() > MOST {
            self.failures.remove(0);
        }
        Some(line)
    }

    /// Notes the list of tasks that a call writes, when it does; what it does to one task is known when it is answered.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Option<TaskChange> {
        let tool = tool.to_lowercase().replace(['_', '-'], "");
        match tool.as_str() {
            "taskcreate" => {
                return task(arguments).map(|task| TaskChange::Add(Task { listed: false, ..task }));
            }
            "taskupdate" => {
                let number =
                    ["taskId", "task_id", "id"].iter().find_map(|key| number(arguments.get(key)?))?;
                let text = text(arguments, &["subject"]).map(|text| head(text.trim(), LINE).to_string());
                return Some(TaskChange::Change { number, text, state: state(arguments) });
            }
            _ if !["todo", "plan", "task"].iter().any(|word| tool.contains(word)) => return None,
            _ => {}
        }
        let lists = arguments.as_object().into_iter().flat_map(|fields| fields.values());
        for list in lists.filter_map(Value::as_array) {
            let listed: Vec<Task> = list.iter().filter_map(task).collect();
            if !listed.is_empty() || list.is_empty() {
                self.tasks.retain(|task| !task.listed);
                self.tasks.extend(listed);
            }
        }
        None
    }

    /// Notes what a call did to one task, by its answer.
    pub(super) fn change(&mut self, change: TaskChange, answer: &str) {
        match change {
            TaskChange::Add(task) => self.add(Task { number: told(answer), ..task }),
            TaskChange::Change { number, text, state } => {
                let of = self.tasks.iter_mut().filter(|task| task.number.as_ref() == Some(&number));
                for task in of {
                    task.state = state.unwrap_or(task.state);
                    task.text = text.clone().unwrap_or_else(|| task.text.clone());
                }
            }
        }
    }

    fn add(&mut self, task: Task) {
        self.tasks.push(task);
        if self.tasks.len() > 4 * MOST {
            self.tasks.retain(|task| task.state != TaskState::Done);
            self.tasks.drain(..self.tasks.len().saturating_sub(MOST));
        }
    }

    /// Notes the boxes of a text: `- [ ] …`, `- [x] …`.
    pub(super) fn prose(&mut self, text: &str) {
        for line in text.lines() {
            let Some(rest) = unlisted(line).strip_prefix('[') else { continue };
            let Some((mark, text)) = rest.split_once(']') else { continue };
            let state = match mark {
                "x" | "X" | "✓" | "✔" => TaskState::Done,
                mark if mark.trim().is_empty() => TaskState::Waiting,
                _ => continue,
            };
            let text = head(text.trim(), LINE);
            if text.len() < 3 {
                continue;
            }
            self.tasks.retain(|task| task.text != text);
            self.add(Task { text: text.to_string(), state, listed: false, number: None });
        }
    }

    /// The errors, oldest first.
    pub(super) fn failures(&self) -> impl DoubleEndedIterator<Item = &ToolFailure> {
        self.failures.iter()
    }

    /// The open tasks, in order; what is begun says so.
    pub(super) fn tasks(&self) -> impl DoubleEndedIterator<Item = String> {
        self.tasks.iter().filter_map(|task| match task.state {
            TaskState::Waiting => Some(task.text.clone()),
            TaskState::Begun => Some(format!("{} (in progress)", task.text)),
            TaskState::Done => None,
        })
    }
}

/// One task of a tool's list: `{ content, status }`, `{ step, status }`, `{ subject, description }`.
fn task(item: &Value) -> Option<Task> {
    let said = text(item, &["subject", "content", "step", "title", "text", "task", "description"])?;
    let done = item.get("done").or(item.get("completed")).and_then(Value::as_bool) == Some(true);
    let state = if done { TaskState::Done } else { state(item).unwrap_or(TaskState::Waiting) };
    Some(Task { text: head(said.trim(), LINE).to_string(), state, listed: true, number: None })
}

fn text<'v>(of: &'v Value, keys: &[&str]) -> Option<&'v str> {
    keys.iter().find_map(|key| of.get(key)?.as_str())
}

/// What a task's status says; nothing where there is none.
fn state(of: &Value) -> Option<TaskState> {
    let status = text(of, &["status", "state"])?.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| status.contains(word));
    Some(match () {
        () if says(&["incomplete"]) => TaskState::Waiting,
        () if says(&["complete", "done", "cancel", "closed", "deleted"]) => TaskState::Done,
        () if says(&["progress", "doing", "started", "active"]) && !says(&["not", "inactive"]) => {
            TaskState::Begun
        }
        () => TaskState::Waiting,
    })
}

/// A number as calls give it: as one or as a text.
fn number(value: &Value) -> Option<String> {
    value.as_str().map(str::to_string).or_else(|| value.as_u64().map(|number| number.to_string()))
}

/// The number of a task that was written down: `Task #7 created …`, or as JSON.
fn told(answer: &str) -> Option<String> {
    let digits = |text: &str| -> String { text.chars().take_while(char::is_ascii_digit).collect() };
    let marked = answer.split('#').skip(1).map(digits).find(|digits| !digits.is_empty());
    marked.or_else(|| {
        let value: Value = serde_json::from_str(answer.trim()).ok()?;
        ["id", "taskId", "task_id"].iter().find_map(|key| number(value.get(key)?))
    })
}

/// The program of a command and what it must do: `cd folder && cargo test -p x 2>&1 | tail`.
pub(super) fn program(command: &str) -> &str {
    command.split("&&").map(str::trim).find(|part| !part.starts_with("cd ")).unwrap_or("")
}

/// What a call is about: its command, its file, or all of its arguments.
pub(super) fn target(tool: &str, arguments: &Value, raw: &str) -> String {
    if let Some(command) =
        files::command(arguments).filter(|command| command.contains(' ') || arguments.get("path").is_none())
    {
        let words: Vec<&str> = words(program(&command)).take(2).collect();
        return format!("$ {}", words.join(" "));
    }
    match files::actions(tool, arguments).first() {
        Some(action) if action.did == files::Did::Read => format!("{READ}{}", action.path),
        Some(action) => format!("{CHANGE}{}", action.path),
        None => format!("{tool} {}", head(raw, LINE)),
    }
}

/// The line of a failed call's answer that says most: an error, a test that failed, else the first one, and its exit code
/// only where it says nothing else.
pub(super) fn reason(text: &str) -> Option<&str> {
    let lines = || {
        text.lines().map(|line| {
            line.trim().trim_start_matches("<tool_use_error>").trim_end_matches("</tool_use_error>")
        })
    };
    let is_code = |line: &&str| line.to_lowercase().starts_with("exit code");
    let first = || lines().filter(|line| line.len() > 3).find(|line| !is_code(line));
    let told = lines()
        .find(|line| is_error_line(line) || line.starts_with(CONFLICT))
        .or_else(|| lines().find(|line| is_red(line)));
    told.or_else(first).or_else(|| lines().find(is_code))
}

/// A command that only shows what is there.
pub(crate) fn shows(command: &str) -> bool {
    const SHOW: [&str; 11] = ["cat", "grep", "rg", "head", "tail", "sed", "ls", "find", "less", "awk", "jq"];
    const OF_GIT: [&str; 5] = ["log", "show", "diff", "grep", "blame"];
    let mut words = words(command);
    match words.next() {
        Some("git") => words.next().is_some_and(|what| OF_GIT.contains(&what)),
        program => program.is_some_and(|program| SHOW.contains(&program)),
    }
}

/// The words of a command; of `git -C folder log` the folder is left out.
fn words(command: &str) -> impl Iterator<Item = &str> {
    let is_elsewhere = command.starts_with("git -C ");
    command
        .split_whitespace()
        .enumerate()
        .filter(move |(nth, _)| !is_elsewhere || !(1..=2).contains(nth))
        .map(|(_, word)| word)
}

/// The output of a command says that it failed.
fn fails(text: &str) -> bool {
    let start = head(text, 64).to_lowercase();
    let code = ["exit code ", "exit code: ", "exited with code ", "exit status "]
        .iter()
        .find_map(|mark| start.split_once(mark))
        .and_then(|(_, after)| after.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok());
    match code {
        Some(0) => text.lines().any(is_red),
        Some(_) => true,
        None => text.lines().take(200).any(is_error_line) || text.lines().any(is_red),
    }
}

/// A line in which a run of tests says that it failed; behind a pipe the command itself exits with 0.
fn is_red(line: &str) -> bool {
    let line = line.trim_start();
    line.strip_prefix("--- FAIL")
        .or_else(|| line.strip_prefix("FAIL"))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', ':', 'E']))
        || line.starts_with("test result: FAILED")
}
