//! The outline of a file: definitions and headings with the lines that they span, by simple rules for each language.
//! It reads lines, not grammars: a definition inside a string or a comment is taken for one.

use super::text::clip;
use std::fmt::Write as _;

/// The longest line of an outline.
const LONGEST: usize = 160;
/// Where a file has no definitions, every so many lines one is shown.
const STRIDE: usize = 100;

/// How definitions of a language begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeLanguage {
    Markdown,
    Code(&'static [&'static str]),
    /// `key:` or `[section]` at the left edge.
    Keys,
}

/// Words that may stand before a definition.
const MODIFIERS: &[&str] = &[
    "pub",
    "async",
    "unsafe",
    "const",
    "extern",
    "export",
    "default",
    "declare",
    "abstract",
    "public",
    "private",
    "protected",
    "internal",
    "static",
    "final",
    "virtual",
    "override",
    "sealed",
    "partial",
    "open",
    "data",
    "inline",
    "local",
    "\"C\"",
];
const PYTHON: &[&str] = &["def", "class"];
const RUST: &[&str] =
    &["fn", "struct", "enum", "trait", "impl", "mod", "union", "type", "macro_rules!", "impl<"];
const SCRIPT: &[&str] = &["function", "class", "interface", "type", "enum", "namespace", "function*"];
const GO: &[&str] = &["func", "type"];
const C_LIKE: &[&str] =
    &["class", "struct", "enum", "interface", "namespace", "record", "union", "typedef", "object"];
const OTHERS: &[&str] = &[
    "def",
    "class",
    "module",
    "function",
    "sub",
    "fun",
    "func",
    "protocol",
    "extension",
    "trait",
    "struct",
    "enum",
];
const SQL: &[&str] = &["create", "alter", "CREATE", "ALTER"];
/// For files of no known name.
const ANY: &[&str] = &[
    "def",
    "class",
    "fn",
    "func",
    "function",
    "struct",
    "enum",
    "trait",
    "impl",
    "interface",
    "module",
    "namespace",
    "protocol",
];

/// The language, and whether functions of C's form (`int main(…) {`) are in it.
fn language(path: &str) -> (CodeLanguage, bool) {
    let name = path.rsplit(['/', '\\']).next().unwrap_or("");
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    match extension.as_str() {
        "md" | "mdx" | "markdown" => (CodeLanguage::Markdown, false),
        "py" | "pyi" => (CodeLanguage::Code(PYTHON), false),
        "rs" => (CodeLanguage::Code(RUST), false),
        "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "vue" | "svelte" => {
            (CodeLanguage::Code(SCRIPT), true)
        }
        "go" => (CodeLanguage::Code(GO), false),
        "c" | "h" | "cc" | "cpp" | "hpp" | "cxx" | "java" | "cs" | "kt" | "scala" | "dart" => {
            (CodeLanguage::Code(C_LIKE), true)
        }
        "rb" | "php" | "swift" | "lua" | "pl" | "ex" | "exs" | "sh" | "bash" | "zig" => {
            (CodeLanguage::Code(OTHERS), true)
        }
        "sql" => (CodeLanguage::Code(SQL), false),
        "yaml" | "yml" | "toml" | "ini" | "cfg" | "conf" => (CodeLanguage::Keys, false),
        _ => (CodeLanguage::Code(ANY), false),
    }
}

/// A definition: the line (from 0), its depth, its text.
struct Definition<'t> {
    line: usize,
    depth: usize,
    text: &'t str,
}

/// The outline of these lines in at most `most` entries. `number` is that of the first line.
pub(super) fn outline(lines: &[&str], number: usize, path: &str, most: usize) -> String {
    let (language, functions) = language(path);
    let mut entries = match language {
        CodeLanguage::Markdown => headings(lines),
        CodeLanguage::Keys => keys(lines),
        CodeLanguage::Code(words) => definitions(lines, words, functions),
    };
    if entries.is_empty() && language == CodeLanguage::Code(ANY) {
        entries = headings(lines);
    }
    if entries.is_empty() {
        entries = strides(lines);
    }
    let ends = ends(&entries, lines.len());
    // The outermost ones stay when there are too many.
    let mut deepest = entries.iter().map(|entry| entry.depth).max().unwrap_or(0);
    while deepest > 0 && entries.iter().filter(|entry| entry.depth <= deepest).count() > most {
        deepest -= 1;
    }
    let mut out = String::new();
    let shown = entries.iter().zip(ends).filter(|(entry, _)| entry.depth <= deepest).take(most);
    let mut count = 0;
    for (entry, end) in shown {
        let indent = "  ".repeat(entry.depth.min(6));
        let _ =
            writeln!(out, "{}-{}: {indent}{}", number + entry.line, number + end, clip(entry.text, LONGEST));
        count += 1;
    }
    if entries.len() > count {
        let _ = writeln!(out, "[… {} definitions left out …]", entries.len() - count);
    }
    out.pop();
    out
}

/// The last line of each: the one before the next entry that is not inside it.
fn ends(entries: &[Definition<'_>], lines: usize) -> Vec<usize> {
    let mut ends = vec![lines.saturating_sub(1); entries.len()];
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        while let Some((depth, outer)) = open.pop() {
            if depth < entry.depth {
                open.push((depth, outer));
                break;
            }
            if let Some(end) = ends.get_mut(outer) {
                *end = entry.line.saturating_sub(1);
            }
        }
        open.push((entry.depth, at));
    }
    ends
}

fn headings<'t>(lines: &[&'t str]) -> Vec<Definition<'t>> {
    let mut fenced = false;
    let mut entries = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        let marks = line.bytes().take_while(|byte| *byte == b'#').count();
        if !fenced && (1..=6).contains(&marks) && line.as_bytes().get(marks) == Some(&b' ') {
            entries.push(Definition { line: at, depth: marks - 1, text: line.trim_end() });
        }
    }
    entries
}

fn keys<'t>(lines: &[&'t str]) -> Vec<Definition<'t>> {
    let is_key = |line: &str| {
        let named = line.split_once(':').is_some_and(|(key, _)| !key.contains(' '));
        line.starts_with('[') || line.starts_with(char::is_alphabetic) && named
    };
    let found = lines.iter().enumerate().filter(|(_, line)| is_key(line));
    found.map(|(line, text)| Definition { line, depth: 0, text: text.trim_end() }).collect()
}

fn definitions<'t>(lines: &[&'t str], words: &[&str], functions: bool) -> Vec<Definition<'t>> {
    let unit = lines
        .iter()
        .map(|line| line.len() - line.trim_start().len())
        .filter(|indent| *indent > 0)
        .min()
        .unwrap_or(1);
    let mut entries = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let text = line.trim();
        if is_definition(text, words) || functions && is_function(line, text) {
            let indent = line.len() - line.trim_start().len();
            let text = text.trim_end_matches(['{', ' ']);
            entries.push(Definition { line: at, depth: indent / unit, text });
        }
    }
    entries
}

/// A defining word, with modifiers before it and a name behind it.
fn is_definition(text: &str, words: &[&str]) -> bool {
    for word in text.split(' ').take(8) {
        let bare = word.split('(').next().unwrap_or("");
        let name = text.len() > word.len();
        if words.contains(&word) || words.iter().any(|known| known.ends_with('<') && word.starts_with(known))
        {
            return name;
        }
        if !MODIFIERS.contains(&bare) {
            return false;
        }
    }
    false
}

/// `int main(int argc) {`, `render() {`, `const handler = async (request) => {`, `greet() {`.
fn is_function(line: &str, text: &str) -> bool {
    const STATEMENTS: &[&str] = &[
        "if", "for", "while", "switch", "catch", "else", "return", "do", "try", "with", "new", "throw",
        "await", "}",
    ];
    let first = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '}')).next().unwrap_or("");
    if first.is_empty()
        || STATEMENTS.contains(&first)
        || !text.ends_with('{')
        || line.len() - line.trim_start().len() > 8
    {
        return false;
    }
    match text.find('(') {
        Some(open) => {
            let before = text.get(..open).unwrap_or("");
            let arrow = text.ends_with("=> {") && before.contains('=');
            arrow
                || !before.contains(['=', '.', '"', '\''])
                    && before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
        }
        None => false,
    }
}

/// A line of every stretch, the first that says something.
fn strides<'t>(lines: &[&'t str]) -> Vec<Definition<'t>> {
    let stretches = lines.chunks(STRIDE).enumerate();
    stretches
        .map(|(nth, stretch)| {
            let text = stretch.iter().map(|line| line.trim()).find(|line| !line.is_empty()).unwrap_or("");
            Definition { line: nth * STRIDE, depth: 0, text }
        })
        .collect()
}

/// Lines that stand behind their own numbers, as `cat -n` prints them, without them; and the first number.
pub(super) fn numbered(text: &str) -> (Vec<&str>, usize) {
    let lines: Vec<&str> = text.lines().collect();
    let split = |line: &'_ str| -> Option<(usize, usize)> {
        let start = line.len() - line.trim_start().len();
        let digits = line.get(start..)?.bytes().take_while(u8::is_ascii_digit).count();
        let number = line.get(start..start + digits)?.parse().ok()?;
        let mark = line.get(start + digits..)?.chars().next()?;
        matches!(mark, '\t' | '→' | ':' | '|').then(|| (number, start + digits + mark.len_utf8()))
    };
    let first = lines.first().and_then(|line| split(line)).map(|(number, _)| number);
    let Some(first) = first else { return (lines, 1) };
    let counts = |(nth, line): (usize, &&str)| split(line).is_some_and(|(number, _)| number == first + nth);
    if !lines.iter().enumerate().take(20).all(counts) {
        return (lines, 1);
    }
    let bare = |line: &&'_ str| split(line).map_or(0, |(_, at)| at);
    (lines.iter().map(|line| line.get(bare(line)..).unwrap_or(line)).collect(), first)
}
