//! Counting and cutting. Sizes are characters (Unicode scalar values); cuts fall between graphemes.

use std::borrow::Cow;
use unicode_segmentation::GraphemeCursor;

/// What a clip is marked with at most.
const MARK: usize = 40;

pub(super) fn count(text: &str) -> usize {
    text.chars().count()
}

/// The longest start of `text` of at most `chars` characters.
pub(super) fn head(text: &str, chars: usize) -> &str {
    let Some((at, _)) = text.char_indices().nth(chars) else { return text };
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    let end = match cursor.is_boundary(text, 0) {
        Ok(true) => at,
        _ => cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0),
    };
    text.get(..end).unwrap_or("")
}

/// The start of a text and its length, when that is shorter than the text.
pub(super) fn clip(text: &str, chars: usize) -> Cow<'_, str> {
    // A text has no more characters than bytes.
    if text.len() <= chars + MARK {
        return Cow::Borrowed(text);
    }
    let all = count(text);
    if all <= chars + MARK {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}… [{all} characters]", head(text, chars).trim_end()))
}

/// What a line says about how things went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    Error,
    Warning,
    Other,
}

/// Words of a text in ASCII letters, digits and underscores, with the position of each.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = text.as_ptr() as usize;
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(move |word| (word.as_ptr() as usize - start, word))
}

/// Is it one of these words, whatever the letter case?
fn is_any(word: &str, of: &[&str]) -> bool {
    of.iter().any(|one| word.eq_ignore_ascii_case(one))
}

fn ends_with(word: &str, end: &str) -> bool {
    let from = word.len().checked_sub(end.len());
    from.and_then(|from| word.get(from..)).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

const ERRORS: &[&str] = &[
    "error",
    "errors",
    "err",
    "fatal",
    "panic",
    "panicked",
    "critical",
    "crit",
    "exception",
    "traceback",
    "failed",
    "failure",
    "failures",
    "fail",
    "severe",
    "emerg",
    "alert",
    "denied",
    "segfault",
    "abort",
    "aborted",
];
const WARNINGS: &[&str] = &["warn", "warning", "warnings", "deprecated"];
const QUIET: &[&str] = &["info", "debug", "trace", "notice", "verbose"];

/// The level of a line. A line that names itself harmless and speaks of an error counts as a warning.
pub(super) fn level(line: &str) -> Severity {
    let mut found = Severity::Other;
    let mut quiet = false;
    let mut before = "";
    for (at, word) in words(line) {
        // "0 failed", "no errors"
        let none = is_any(before, &["0", "no", "without", "zero"]);
        let is_error = is_any(word, ERRORS) || ends_with(word, "error") || ends_with(word, "exception");
        if is_error && !none {
            found = Severity::Error;
            break;
        }
        if is_any(word, WARNINGS) && !none {
            found = Severity::Warning;
        }
        quiet |= at < 80 && is_any(word, QUIET);
        before = word;
    }
    if quiet && found == Severity::Error { Severity::Warning } else { found }
}

/// A line that a program's log would begin like this: with a time, or with a level.
pub(super) fn is_logged(line: &str) -> bool {
    timestamp(line).is_some() || is_levelled(line)
}

/// A level near the start: in capitals, in brackets, before a colon, behind `level=`.
fn is_levelled(line: &str) -> bool {
    let mut before = "";
    for (nth, (at, word)) in words(line).enumerate() {
        if at > 60 || nth > 8 {
            return false;
        }
        let known = is_any(word, QUIET) || is_any(word, &["error", "fatal", "critical", "warn", "warning"]);
        if known {
            let upper = word.bytes().all(|byte| byte.is_ascii_uppercase());
            let bracketed = line.as_bytes().get(at.wrapping_sub(1)) == Some(&b'[');
            let first = nth == 0 && line.as_bytes().get(at + word.len()) == Some(&b':');
            if upper || bracketed || first || is_any(before, &["level", "lvl", "severity"]) {
                return true;
            }
        }
        before = word;
    }
    false
}

const MONTHS: &[&str] = &["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The time that a line begins with, to the letter.
pub(super) fn timestamp(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let from_month = MONTHS.iter().any(|month| line.starts_with(month));
    let start = if from_month { 3 } else { line.len() - line.trim_start_matches(['[', '(', '"']).len() };
    let end = start + clock(line.get(start..)?);
    let first = line.get(if from_month { 0 } else { start }..end).map(str::trim_end);
    first.filter(|time| is_time(time)).or_else(|| access_time(line))
}

/// Length of the run of digits and marks of a date and a time.
fn clock(text: &str) -> usize {
    text.bytes().take(40).take_while(|byte| byte.is_ascii_digit() || b"-:.,TZ+/ ".contains(byte)).count()
}

/// `… - - [22/Nov/2026:02:43:58 +0000] "GET …`
fn access_time(line: &str) -> Option<&str> {
    let open = line.bytes().take(120).position(|byte| byte == b'[')?;
    let rest = line.get(open + 1..)?;
    let close = rest.bytes().take(40).position(|byte| byte == b']')?;
    rest.get(..close).filter(|time| time.starts_with(|c: char| c.is_ascii_digit()) && is_time(time))
}

/// A colon between digits: a date alone may be the name of something.
fn is_time(text: &str) -> bool {
    let colon = |three: &[u8]| match three {
        [a, b':', c] => a.is_ascii_digit() && c.is_ascii_digit(),
        _ => false,
    };
    text.len() >= 5 && text.as_bytes().windows(3).any(colon)
}

/// A line that belongs to the one above it: a frame of a stack, a cause.
pub(super) fn is_continuation(line: &str) -> bool {
    line.starts_with([' ', '\t']) || line.starts_with("Caused by") || line.starts_with("at ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_between_graphemes_and_count_characters() {
        assert_eq!(head("👩‍👩‍👧x", 4), "");
        assert_eq!(head("👩‍👩‍👧x", 5), "👩‍👩‍👧");
        assert_eq!(head("한국어", 2), "한국");
        assert_eq!(head("e\u{301}x", 1), "");
        assert_eq!(head("שלום עולם", 5), "שלום ");
        let clipped = clip(&"字".repeat(100), 10).into_owned();
        assert_eq!(clipped, format!("{}… [100 characters]", "字".repeat(10)));
        assert_eq!(clip("short", 1), "short", "a mark would be longer");
    }

    #[test]
    fn levels_and_times() {
        for (line, expected) in [
            ("2026-11-22 ERROR boom", Severity::Error),
            ("java.lang.NullPointerException: x", Severity::Error),
            ("12 passed, 0 failed", Severity::Other),
            ("no errors", Severity::Other),
            ("warning: unused variable", Severity::Warning),
            ("INFO retrying after error", Severity::Warning),
            ("all is well", Severity::Other),
        ] {
            assert_eq!(level(line), expected, "{line}");
        }
        for (line, expected) in [
            ("2026-11-22T02:43:58.123Z INFO x", Some("2026-11-22T02:43:58.123Z")),
            ("[2026-11-22 02:43:58] x", Some("2026-11-22 02:43:58")),
            ("Nov 22 02:43:58 host app[1]: x", Some("Nov 22 02:43:58")),
            ("02:43:58,001 x", Some("02:43:58,001")),
            ("10.0.0.1 - - [22/Nov/2026:02:43:58 +0000] \"GET /", Some("22/Nov/2026:02:43:58 +0000")),
            ("한국어 12", None),
            ("May I go? 12", None),
            ("1234 rows", None),
            ("2026-11-22-a1b2c3 session", None),
            ("let a = list[0];", None),
        ] {
            assert_eq!(timestamp(line), expected, "{line}");
        }
        assert!(is_logged("[warn] x") && is_logged("level=info msg=x") && is_logged("error: x"));
        assert!(!is_logged("The error was found in the parser."));
        // A level stands among the first words of a line.
        assert!(is_levelled("a b c d e f g h ERROR x") && !is_levelled("a b c d e f g h i ERROR x"));
        assert_eq!(clock(&"1".repeat(50)), 40, "as long as a time with its zone");
    }
}
