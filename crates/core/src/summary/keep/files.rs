//! The ledger of files: what tools did to which, by the arguments of their calls.

use super::shell;
use super::stored::{stored, stored_as_numbers};
use crate::context::TouchedFile;
use crate::order;
use serde_json::Value;
use std::collections::HashMap;

/// Files that are known apart; the ones that were touched longest ago go first.
const MOST: usize = 4_096;

/// What tools print behind the number of a line.
pub(super) const NUMBERED: [char; 4] = ['→', '\t', '|', '│'];

/// A folder with a shorter name is repeated before each file.
const ROOT: usize = 12;

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Did {
    Read,
    Modified,
    Created,
    Deleted,
}

stored_as_numbers!(Did { Read, Modified, Created, Deleted });

impl Did {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Did::Read => "read",
            Did::Modified => "modified",
            Did::Created => "created",
            Did::Deleted => "deleted",
        }
    }
}

/// What a call does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Action {
    pub(super) path: String,
    pub(super) did: Did,
    /// The lines that it names, from 1.
    pub(super) lines: Option<(u64, u64)>,
}

stored!(Action { path, did, lines });

/// A file of the ledger.
#[derive(Debug, Clone)]
struct FileEntry {
    did: Did,
    lines: Option<(u64, u64)>,
    /// When it was touched last.
    at: u64,
}

stored!(FileEntry { did, lines, at });

/// A file's path, and the line that says what became of it.
pub(super) type FileLine = (String, String);

/// What became of the files of a conversation.
#[derive(Debug, Default, Clone)]
pub(super) struct Files {
    entries: HashMap<String, FileEntry>,
    touched: u64,
}

stored!(Files { entries, touched });

impl Files {
    /// Notes what a call that succeeded did.
    pub(super) fn note(&mut self, action: Action) {
        self.touched += 1;
        let at = self.touched;
        let Action { path, did, lines } = action;
        match self.entries.get_mut(&path) {
            Some(entry) => {
                entry.at = at;
                entry.lines = lines.or(entry.lines);
                entry.did = match (entry.did, did) {
                    // Writing a file that is known changes it; what was created in this conversation stays its creation.
                    (before @ (Did::Created | Did::Modified), Did::Read) => before,
                    (Did::Created, Did::Modified | Did::Created) => Did::Created,
                    (Did::Read | Did::Modified, Did::Created) => Did::Modified,
                    (_, now) => now,
                };
            }
            None => {
                self.entries.insert(path, FileEntry { did, lines, at });
            }
        }
        if self.entries.len() > MOST {
            let oldest = self.entries.values().map(|entry| entry.at);
            let mut oldest: Vec<u64> = oldest.collect();
            order::sort(&mut oldest, u64::lt);
            let least = oldest.get(MOST / 4).copied().unwrap_or(0);
            // A change is never forgotten for a file that was only looked at.
            self.entries.retain(|_, entry| entry.at > least || entry.did != Did::Read);
        }
    }

    /// The folder that nearly all files are below, with its slash; empty where there is none, or where it is short.
    pub(super) fn root(&self) -> &str {
        let absolute: Vec<&str> =
            self.entries.keys().map(String::as_str).filter(|path| path.starts_with('/')).collect();
        let newest =
            self.entries.iter().filter(|(path, _)| path.starts_with('/')).max_by_key(|(_, entry)| entry.at);
        let Some((newest, _)) = newest else { return "" };
        let ends = newest.rmatch_indices('/').map(|(at, _)| newest.get(..=at).unwrap_or(""));
        let holds = |folder: &&str| {
            let below = absolute.iter().filter(|path| path.starts_with(folder)).count();
            below > 1 && 4 * below >= 3 * absolute.len()
        };
        ends.filter(|folder| folder.len() >= ROOT).find(holds).unwrap_or("")
    }

    /// One line for each file, with its path: those that were changed, then those that were only read, each newest first.
    pub(super) fn lines(&self) -> (Vec<FileLine>, Vec<FileLine>) {
        let newest_first = |(_, entry): &(&String, &FileEntry)| u64::MAX - entry.at;
        let entries = order::by_key(self.entries.iter().collect(), newest_first);
        let line = |(path, entry): (&String, &FileEntry)| {
            let did = entry.did.as_str();
            let line = match entry.lines {
                Some((from, to)) if from == to => format!("{path} ({did}; line {from})"),
                Some((from, to)) => format!("{path} ({did}; lines {from}-{to})"),
                None => format!("{path} ({did})"),
            };
            (path.clone(), line)
        };
        let (read, changed): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(_, entry)| entry.did == Did::Read);
        (changed.into_iter().map(line).collect(), read.into_iter().map(line).collect())
    }
}

/// The line of a folder that the files below it are listed under.
pub(super) fn folder_line(folder: &str) -> String {
    format!("in {folder}:")
}

/// The folder of a line that [`folder_line`] wrote.
pub(super) fn folder(line: &str) -> Option<&str> {
    line.strip_prefix("in ")?.strip_suffix("/:").and_then(|folder| line.get(3..3 + folder.len() + 1))
}

/// Arguments that name the file of a call. Folders are not files.
pub(crate) const PATH_KEYS: [&str; 12] = [
    "file_path",
    "path",
    "filePath",
    "filename",
    "file",
    "notebook_path",
    "target_file",
    "absolute_path",
    "relative_path",
    "file_name",
    "filepath",
    "uri",
];

/// Parts of the names of tools (and of their `command`) that say what they do to a file, the first that fits.
const VERBS: [(&str, Option<Did>); 22] = [
    ("delete", Some(Did::Deleted)),
    ("remove", Some(Did::Deleted)),
    ("edit", Some(Did::Modified)),
    ("replace", Some(Did::Modified)),
    ("insert", Some(Did::Modified)),
    ("update", Some(Did::Modified)),
    ("patch", Some(Did::Modified)),
    ("append", Some(Did::Modified)),
    ("modify", Some(Did::Modified)),
    ("write", Some(Did::Created)),
    ("create", Some(Did::Created)),
    ("save", Some(Did::Created)),
    ("read", Some(Did::Read)),
    ("view", Some(Did::Read)),
    ("open", Some(Did::Read)),
    ("cat", Some(Did::Read)),
    ("get", Some(Did::Read)),
    ("show", Some(Did::Read)),
    ("glob", None),
    ("grep", None),
    ("list", None),
    ("search", None),
];

/// What a call of `tool` with these arguments does to files.
pub(super) fn actions(tool: &str, arguments: &Value) -> Vec<Action> {
    let mut out = Vec::new();
    let fields = arguments.as_object();
    let field = |key: &str| fields.and_then(|fields| fields.get(key));
    let text = |key: &str| field(key).and_then(Value::as_str);
    for value in fields.into_iter().flat_map(|fields| fields.values()).filter_map(Value::as_str) {
        patched(value, &mut out);
    }
    if let Some(command) = command(arguments) {
        shell::actions(&command, &mut out);
    }
    if !out.is_empty() {
        return out;
    }
    let tool = tool.to_lowercase();
    // `str_replace_based_edit_tool` says in an argument what it does.
    let named = text("command").or(text("action")).map(str::to_lowercase).unwrap_or_default();
    let verb = |name: &str| VERBS.iter().find(|(verb, _)| name.contains(verb)).map(|(_, did)| *did);
    let Some(did) = verb(&named).or_else(|| verb(&tool)).flatten() else { return out };
    let Some(path) = PATH_KEYS.iter().find_map(|key| text(key)).filter(|path| is_file(path)) else {
        return out;
    };
    out.push(Action { path: path.to_string(), did, lines: range(arguments) });
    out
}

/// The files that a call of `tool` with these arguments reads or changes.
pub(crate) fn touched(tool: &str, arguments: &str) -> Vec<TouchedFile> {
    let arguments = serde_json::from_str(arguments).unwrap_or(Value::Null);
    let touched = |Action { path, did, .. }| TouchedFile { path, changes: did != Did::Read };
    actions(tool, &arguments).into_iter().map(touched).collect()
}

fn is_file(path: &str) -> bool {
    (1..=300).contains(&path.len()) && !path.contains(['\n', '*']) && !path.ends_with('/')
}

/// The files that a patch in `text` names (`*** Update File: …`).
fn patched(text: &str, out: &mut Vec<Action>) {
    const MARKS: [(&str, Did); 3] = [
        ("*** Add File: ", Did::Created),
        ("*** Update File: ", Did::Modified),
        ("*** Delete File: ", Did::Deleted),
    ];
    if !text.contains("*** ") {
        return;
    }
    for line in text.lines() {
        let file = MARKS.iter().find_map(|(mark, did)| Some((line.strip_prefix(mark)?, *did)));
        if let Some((path, did)) = file.filter(|(path, _)| is_file(path.trim())) {
            out.push(Action { path: path.trim().to_string(), did, lines: None });
        }
    }
}

/// The command line of a call, when it runs one.
pub(super) fn command(arguments: &Value) -> Option<String> {
    let value = ["command", "cmd", "script"].iter().find_map(|key| arguments.get(key))?;
    match value {
        Value::String(text) => Some(text.clone()),
        // `["bash", "-lc", "cargo test"]`
        Value::Array(items) => {
            let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            match words.as_slice() {
                [_, flag, script] if flag.starts_with('-') => Some((*script).to_string()),
                words => Some(words.join(" ")),
            }
        }
        _ => None,
    }
}

/// The command line that a call with these arguments runs, when it runs one.
pub(crate) fn command_of(arguments: &str) -> Option<String> {
    command(&serde_json::from_str(arguments).ok()?)
}

/// The lines that a call's arguments name.
fn range(arguments: &Value) -> Option<(u64, u64)> {
    let number = |keys: &[&str]| keys.iter().find_map(|key| arguments.get(key)?.as_u64());
    if let Some(Value::Array(ends)) = arguments.get("view_range")
        && let [from, to] = ends.as_slice()
    {
        return Some((from.as_u64()?, to.as_u64()?));
    }
    let from = number(&["offset", "start_line", "startLine", "line_start", "start", "from_line"]);
    let to = number(&["end_line", "endLine", "line_end", "end", "to_line"]);
    let limit = number(&["limit", "num_lines", "lines"]);
    match (from, to, limit) {
        (Some(from), Some(to), _) if to >= from => Some((from, to)),
        (from, None, Some(limit)) if limit > 0 => {
            let from = from.unwrap_or(1).max(1);
            Some((from, from.saturating_add(limit - 1)))
        }
        _ => None,
    }
}

/// The lines that a tool shows, by the numbers before them: `  42→`, `42<tab>`, `42:`.
pub(super) fn shown(result: &str) -> Option<(u64, u64)> {
    let number = |line: &str| {
        let line = line.trim_start();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let rest = line.get(digits..)?;
        rest.starts_with(NUMBERED).then(|| line.get(..digits)?.parse::<u64>().ok()).flatten()
    };
    let mut numbers = result.lines().filter_map(number);
    let first = numbers.next()?;
    // Only a run of lines, not figures in the text.
    let last = numbers.try_fold(first, |last, next| if next == last + 1 { Ok(next) } else { Err(last) });
    let last = last.unwrap_or_else(|last| last);
    (last > first).then_some((first, last))
}

/// The file of a line that [`Files::lines`] wrote.
pub(super) fn carried(line: &str) -> Option<Action> {
    let (path, rest) = line.strip_suffix(')')?.rsplit_once(" (")?;
    let (did, lines) = rest.split_once("; ").map_or((rest, None), |(did, lines)| (did, Some(lines)));
    let all = [Did::Read, Did::Modified, Did::Created, Did::Deleted];
    let did = all.into_iter().find(|known| known.as_str() == did)?;
    let lines = lines.and_then(|lines| {
        let numbers = lines.trim_start_matches(|c: char| !c.is_ascii_digit());
        let (from, to) = numbers.split_once('-').unwrap_or((numbers, numbers));
        Some((from.parse().ok()?, to.parse().ok()?))
    });
    Some(Action { path: path.to_string(), did, lines })
}

#[cfg(test)]
mod tests {
    use super::{Action, Did, Files, MOST};

    #[test]
    fn f39_of_too_many_files_the_quarter_that_was_read_longest_ago_is_forgotten() {
        let mut files = Files::default();
        for nth in 0..=MOST {
            let did = if nth == 3 { Did::Modified } else { Did::Read };
            files.note(Action { path: format!("f{nth}"), did, lines: None });
        }
        let knows = |nth: usize| files.entries.contains_key(&format!("f{nth}"));
        assert!(!knows(0) && !knows(MOST / 4) && knows(MOST / 4 + 1) && knows(MOST));
        assert!(knows(3), "what was changed is never forgotten for what was only read");
    }
}
