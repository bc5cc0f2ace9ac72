//! `mutate`: a copy of the engine's sources in which every small change that could be a mistake waits behind a switch.
//!
//! One build holds all of them: the environment variable `CC_MUTANT=7` makes the seventh. With
//! `CC_MUTANT_REACHED=FILE` none is made, and each thread that ends writes a line to that file: its name, which is
//! that of its test, how many microseconds it took, and the numbers that it came by.

mod edit;
mod find;

use crate::Result;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What the switches ask: a module of the lowest crate, which the others have as theirs.
const SWITCH: &str = include_str!("switch.txt");
const SAME: &str = "\npub(crate) use context_compactor_wire::mutant;\n";

/// The sources below `crates`, the lowest last; and what the names of their files begin with, so that those of a file
/// that moves to a crate of its own stay.
const CRATES: [(&str, &str, &str); 2] = [("core/src", "", SAME), ("wire/src", "wire/", SWITCH)];

/// A change that waits.
pub(crate) struct Mutant {
    /// Counted from 1: 0 is none.
    number: usize,
    file: String,
    /// The function that it is in, with the type that the function is of.
    function: String,
    operator: &'static str,
    text: String,
    to: String,
}

impl Mutant {
    /// What names it for as long as its function keeps the text.
    fn key(&self) -> String {
        [&self.file, &self.function, self.operator, &self.text, &self.to].join("\t")
    }
}

/// Writes the sources of the engine's crates from the folder `from` to `to`, with switches, and what they do to `list`: a line for each, with its number,
/// where it stands in the written file (first byte, last byte), its file, function, operator, text and what takes its
/// place. Lines of `without` (from the file on) are left out: those that do not compile.
pub(crate) fn mutate(from: &Path, to: &Path, list: &Path, without: &Path) -> Result<()> {
    let without = fs::read_to_string(without).unwrap_or_default();
    let without: HashSet<&str> = without.lines().collect();
    let (mut lines, mut number) = (String::new(), 0);
    for (source, prefix, own) in CRATES {
        let (from, to) = (from.join(source), to.join(source));
        copy(&from, &to, &mut |name, source| {
            let found = find::find(&format!("{prefix}{name}"), source, &without, number)?;
            number += found.mutants.len();
            let (mut text, places) = found.edits.apply(source);
            if name == "lib.rs" {
                text.push_str(own);
            }
            for mutant in &found.mutants {
                let place = places.get(&mutant.number).ok_or("a mutant without an edit")?;
                lines.push_str(&format!(
                    "{}\t{}\t{}\t{}\n",
                    mutant.number,
                    place.start,
                    place.end,
                    mutant.key()
                ));
            }
            Ok(text)
        })?;
    }
    write(list, lines.as_bytes())?;
    println!("{number} mutants");
    Ok(())
}

/// Brings a copy of a crate's sources up to date; its code, but for tests, as `switched` gives it.
fn copy(from: &Path, to: &Path, switched: &mut dyn FnMut(&str, &str) -> Result<String>) -> Result<()> {
    let mut paths = Vec::new();
    below(from, &mut paths)?;
    paths.sort();
    let is_code = |path: &&PathBuf| path.extension().is_some_and(|is| is == "rs");
    let mut tests = HashSet::new();
    for path in paths.iter().filter(is_code) {
        tests.extend(find::tests_of(path, &fs::read_to_string(path)?)?);
    }
    for path in &paths {
        let name = path.strip_prefix(from)?;
        let is_test = tests.iter().any(|test: &PathBuf| path.starts_with(test));
        if !is_code(&path) || is_test {
            write(&to.join(name), &fs::read(path)?)?;
            continue;
        }
        let text = switched(&name.to_string_lossy().replace('\\', "/"), &fs::read_to_string(path)?)?;
        write(&to.join(name), text.as_bytes())?;
    }
    let mut written = Vec::new();
    below(to, &mut written)?;
    for path in written {
        if !from.join(path.strip_prefix(to)?).exists() {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn below(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() { below(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

/// Only what differs is written: what was compiled stays as long as it can.
fn write(path: &Path, text: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, text)?)
}
