//! What a command line does to files, as far as its words say it.

use super::files::{Action, Did};

/// Adds what `command` does. Reading is noted for what shows files, changing for what writes, moves or deletes them.
pub(super) fn actions(command: &str, out: &mut Vec<Action>) {
    // What a here-document holds is text, not commands.
    let script = command.split_once("<<").map_or(command, |(before, after)| {
        // `cat > file <<EOF`, `cat <<EOF > file`
        after
            .split_once('\n')
            .map_or(command, |(line, _)| command.get(..before.len() + 2 + line.len()).unwrap_or(before))
    });
    for part in script.split(['\n', ';', '|', '&']) {
        simple(part.trim(), out);
    }
}

fn simple(part: &str, out: &mut Vec<Action>) {
    let words = words(part);
    let mut written = None;
    let mut plain: Vec<&str> = Vec::new();
    let mut at = 0;
    while let Some(&word) = words.get(at) {
        at += 1;
        if let Some(target) = word.strip_prefix(">>").or_else(|| word.strip_prefix('>')) {
            let target = if target.is_empty() {
                at += 1;
                words.get(at - 1).copied().unwrap_or("")
            } else {
                target
            };
            written = Some((target, if word.starts_with(">>") { Did::Modified } else { Did::Created }));
        } else if !word.starts_with("<<") && !word.starts_with("2>") {
            plain.push(word);
        }
    }
    let mut note = |path: &str, did, lines| {
        if is_path(path) {
            out.push(Action { path: path.to_string(), did, lines });
        }
    };
    if let Some((target, did)) = written {
        note(target, did, None);
    }
    let Some((&program, arguments)) = plain.split_first() else { return };
    let named = arguments.iter().copied().filter(|word| !word.starts_with('-'));
    match program {
        "cat" | "less" | "nl" | "bat" => named.for_each(|path| note(path, Did::Read, None)),
        "head" | "tail" => {
            if let Some(path) = named.last() {
                note(path, Did::Read, None);
            }
        }
        "sed" => {
            let in_place = arguments.iter().any(|word| word.starts_with("-i"));
            let lines = named.clone().next().and_then(printed);
            if let Some(path) = named.skip(1).last() {
                note(path, if in_place { Did::Modified } else { Did::Read }, lines.filter(|_| !in_place));
            }
        }
        "rm" | "unlink" => named.for_each(|path| note(path, Did::Deleted, None)),
        "touch" => named.for_each(|path| note(path, Did::Created, None)),
        "tee" => named.for_each(|path| note(path, Did::Created, None)),
        "mv" | "cp" => {
            let paths: Vec<&str> = named.collect();
            if let [from, to] = paths.as_slice() {
                if program == "mv" {
                    note(from, Did::Deleted, None);
                }
                note(to, Did::Created, None);
            }
        }
        _ => {}
    }
}

/// `120,180p`
fn printed(script: &str) -> Option<(u64, u64)> {
    let (from, to) = script.strip_suffix('p')?.split_once(',')?;
    Some((from.parse().ok()?, to.parse().ok()?)).filter(|(from, to)| from <= to)
}

/// The words of a simple command, quotes taken off.
fn words(part: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = part.trim_start();
    while let Some(first) = rest.chars().next() {
        let quote = Some(first).filter(|letter| matches!(letter, '"' | '\''));
        let (word, after) = match quote.and_then(|quote| rest.get(1..)?.split_once(quote)) {
            Some((word, after)) => (word, after),
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        out.push(word);
        rest = after.trim_start();
    }
    out
}

/// A word that names a file: nothing that the shell would expand, and not a device.
fn is_path(word: &str) -> bool {
    (1..=300).contains(&word.len())
        && word.contains(['/', '.'])
        && !word.contains(['*', '$', '`', '{', '(', '<', '>', '=', '"'])
        && !word.starts_with("/dev/")
        && !word.ends_with(['/', '.'])
        && !word.contains("://")
}
