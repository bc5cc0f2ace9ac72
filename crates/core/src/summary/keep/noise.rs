//! Lines that a project has by the hundred and that say nothing about the work.

/// How lines begin that many files begin with.
const FRONT: [&str; 5] = ["#include", "require(", "Copyright", "Licensed under", "SPDX-"];
/// How lines of progress, of trailers and of tests that passed begin.
const STARTS: [&str; 21] = [
    "✓",
    "✔",
    "√",
    "Co-Authored-By:",
    "Co-authored-by:",
    "Signed-off-by:",
    "Compiling ",
    "Checking ",
    "Downloading ",
    "Downloaded ",
    "Fetching ",
    "Resolving ",
    "=== RUN",
    "=== PAUSE",
    "=== CONT",
    "--- PASS",
    "PASS",
    "create mode ",
    "Author: ",
    "Date: ",
    "index ",
];

/// A line of a file or an output that is an import, a license, progress or a trailer, or one without a word.
pub(super) fn is_noise(line: &str) -> bool {
    let line = line.trim_matches(|letter: char| letter.is_whitespace() || letter == '|');
    let starts = STARTS.iter().any(|start| line.starts_with(start));
    // `ok   package   (cached)`, `?   package   [no test files]`.
    let is_cached =
        (line.starts_with("ok") && line.ends_with("(cached)")) || line.ends_with("[no test files]");
    let letters = line.chars().filter(|letter| letter.is_alphabetic()).take(3).count();
    starts || is_cached || is_front(line) || is_marker(line) || letters < 3
}

/// A mark that a merge leaves between two versions.
pub(super) fn is_marker(line: &str) -> bool {
    ["<<<<<<<", "|||||||", "=======", ">>>>>>>"].iter().any(|mark| line.starts_with(mark))
}

/// A line of imports or of a license.
pub(super) fn is_front(line: &str) -> bool {
    let line = line.trim();
    let bare = line.trim_start_matches(['/', '*', '#', ';']).trim_start();
    is_import(line) || FRONT.iter().any(|start| line.starts_with(start) || bare.starts_with(start))
}

fn is_import(line: &str) -> bool {
    line.starts_with("import ")
        || (line.starts_with("from ") && line.contains(" import "))
        || ((line.starts_with("use ") || line.starts_with("using ")) && line.ends_with(';'))
        || (line.starts_with("package ") && line.split_whitespace().count() == 2)
}
