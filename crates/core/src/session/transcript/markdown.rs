//! A session as Markdown (`S5.3`). Every heading in it is ours: prose keeps its looks, but what would be a heading there
//! is escaped and what it leaves open is closed; the texts of tools are in fences.

use crate::clock::iso8601_ms;
use crate::error::Result;
use crate::log::Gap;
use crate::log::record::{LogRow, SessionRow};
use crate::message::{Media, MediaKind, Message, Part};
use crate::wire::{self, Format};

/// The lines before the messages.
pub(super) fn head(out: &mut String, row: &SessionRow) {
    let started = iso8601_ms(row.created_at);
    out.push_str(&format!("# Session {}\n\n**Started:** {started}\n", in_one_line(&row.id)));
    out.push_str(&format!("**Messages:** {}\n**Compressions:** {}\n\n", row.messages, row.compressions));
}

/// A message under its heading.
pub(super) fn message(out: &mut String, format: Format, row: &LogRow<'_>) -> Result<()> {
    let value = wire::parse(row.n, row.body.get())?;
    let message = format.wire().read(row.n, &value)?;
    out.push_str(&format!("## {} ({})\n\n", message.role.as_str(), iso8601_ms(row.at)));
    for block in blocks(&message) {
        out.push_str(&block);
        out.push_str("\n\n");
    }
    Ok(())
}

/// The placeholder of messages that cannot be read.
pub(super) fn gap(out: &mut String, gap: &Gap) {
    match gap.messages {
        0 => {}
        1 => out.push_str(&format!("[message {} cannot be read]\n\n", gap.index)),
        more => {
            let last = gap.index + more - 1;
            out.push_str(&format!("[messages {} to {last} cannot be read]\n\n", gap.index));
        }
    }
}

fn blocks(message: &Message<'_>) -> Vec<String> {
    let mut blocks = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text(text) if text.trim().is_empty() => {}
            Part::Text(text) => blocks.push(prose(text)),
            Part::ToolCall(call) => {
                blocks.push("**Tool call:**".into());
                blocks.push(fenced(&format!("{} {}", call.name, call.arguments)));
            }
            Part::ToolResult(result) => {
                blocks.push(if result.is_error { "**Tool error:**" } else { "**Tool result:**" }.into());
                if !result.text.is_empty() {
                    blocks.push(fenced(&result.text));
                }
                blocks.extend(result.media.iter().map(named));
            }
            Part::Reasoning { text, .. } if text.trim().is_empty() => blocks.push("*[reasoning]*".into()),
            Part::Reasoning { text, .. } => {
                blocks.push("**Reasoning:**".into());
                blocks.push(fenced(text));
            }
            Part::Media(media) => blocks.push(named(media)),
            Part::Opaque { kind, .. } => {
                let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
                let kind: String = kind.chars().map(|c| if is_word(c) { c } else { ' ' }).collect();
                blocks.push(format!("*[{}]*", kind.trim()));
            }
            Part::Compaction { .. } => blocks.push("*[compaction]*".into()),
        }
    }
    blocks
}

/// Media by their kind and size, never their bytes.
fn named(media: &Media) -> String {
    let kind = match media.kind {
        MediaKind::Image => "image",
        MediaKind::Document => "document",
        MediaKind::Audio => "audio",
        MediaKind::Video => "video",
    };
    if media.bytes == 0 { format!("*[{kind}]*") } else { format!("*[{kind}, {} bytes]*", media.bytes) }
}

/// A text in a fence longer than any in it. The fence is set in by two columns and so are its lines, which Markdown takes
/// off again: no line of the text begins a line of the document.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    let mut out = format!("  {fence}\n");
    for (line, _) in lines(text) {
        out.push_str(&format!("  {line}\n"));
    }
    out.push_str(&format!("  {fence}"));
    out
}

/// Prose as it is, but that it opens no section of the document: headings and HTML are escaped. Where a fence is not
/// certain to end with it, as in a list or when it is never closed, the prose is shown as its source.
fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut open: Option<(char, usize)> = None;
    for (line, end) in lines(text) {
        let mut escape_at = line.len();
        match (open, fence(line)) {
            (None, Some(fence)) if fence.is_first => open = Some((fence.mark, fence.length)),
            (None, Some(_)) => return fenced(text),
            (None, None) => escape_at = opening(line),
            (Some((mark, length)), Some(fence)) if fence.closes(mark, length) => open = None,
            (Some(_), _) => {}
        }
        let (before, behind) = line.split_at_checked(escape_at).unwrap_or((line, ""));
        out.push_str(before);
        if !behind.is_empty() {
            out.push('\\');
        }
        out.push_str(behind);
        out.push_str(end);
    }
    if open.is_some() { fenced(text) } else { out }
}

/// What is left of a line after the marks of lists and quotes, in which headings and fences may be, too.
fn inside(line: &str) -> &str {
    let mut rest = line;
    loop {
        let inner = rest.trim_start_matches([' ', '\t']);
        let digits = inner.trim_start_matches(|c: char| c.is_ascii_digit());
        let item = match inner.strip_prefix('>') {
            Some(quoted) => Some(quoted),
            None if digits.len() < inner.len() => digits.strip_prefix(['.', ')']),
            None => inner.strip_prefix(['-', '*', '+']),
        };
        match item {
            Some(item) if inner.starts_with('>') || item.starts_with([' ', '\t']) => rest = item,
            _ => return inner,
        }
    }
}

/// Where a line has the character that makes it, or the line before it, a heading or HTML; its length when it has none.
fn opening(line: &str) -> usize {
    let rest = inside(line);
    let underline = rest.trim_end();
    let is_run = |mark: char| !underline.is_empty() && underline.chars().all(|c| c == mark);
    if rest.starts_with(['#', '<']) || is_run('=') || is_run('-') {
        line.len() - rest.len()
    } else {
        line.len()
    }
}

/// A line that opens or closes a fence.
struct Fence {
    mark: char,
    length: usize,
    /// Nothing is before it.
    is_first: bool,
    /// It is set in by three columns at most, and nothing follows it.
    may_close: bool,
}

impl Fence {
    fn closes(&self, mark: char, length: usize) -> bool {
        self.may_close && self.mark == mark && self.length >= length
    }
}

fn fence(line: &str) -> Option<Fence> {
    let inner = inside(line);
    let mark = inner.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = inner.trim_start_matches(mark);
    let length = inner.len() - rest.len();
    let (before, _) = line.split_at_checked(line.len() - inner.len())?;
    let may_close = before.len() < 4 && before.chars().all(|c| c == ' ') && rest.trim().is_empty();
    let is_fence = length >= 3 && !(mark == '`' && rest.contains('`'));
    is_fence.then_some(Fence { mark, length, is_first: before.is_empty(), may_close })
}

/// The lines of a text with what ends each. Markdown ends a line at a lone carriage return too, and some readers at the
/// separators of Unicode.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    let mut done = false;
    std::iter::from_fn(move || {
        if done {
            return None;
        }
        let at = rest.find(['\n', '\r', '\u{2028}', '\u{2029}']);
        let Some(at) = at else {
            done = true;
            return Some((rest, ""));
        };
        let (line, behind) = rest.split_at(at);
        let length =
            if behind.starts_with("\r\n") { 2 } else { behind.chars().next().map_or(0, char::len_utf8) };
        let (end, next) = behind.split_at(length);
        rest = next;
        Some((line, end))
    })
}

fn in_one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{fenced, prose};

    #[test]
    fn s5_3_prose_keeps_its_looks_and_opens_no_section() {
        for (text, expected) in [
            ("Fix `a.rs` – see *below*.\n\n- one\n- two", "Fix `a.rs` – see *below*.\n\n- one\n- two"),
            ("```rust\n# not a heading\n```\nafter", "```rust\n# not a heading\n```\nafter"),
            ("## user (2025)", "\\## user (2025)"),
            ("a\r# b\r\n  ## c", "a\r\\# b\r\n  \\## c"),
            ("title\n===\nmore\n---", "title\n\\===\nmore\n\\---"),
            ("- ## item\n> # quote\n1. # x", "- \\## item\n> \\# quote\n1. \\# x"),
            ("<!-- open", "\\<!-- open"),
            ("~~~\n# x\n   ~~~\n# y", "~~~\n# x\n   ~~~\n\\# y"),
            ("~~~\nopen\n```", "  ````\n  ~~~\n  open\n  ```\n  ````"),
            ("- ```\n  # x\n```", "  ````\n  - ```\n    # x\n  ```\n  ````"),
            ("한글 \u{2028}# x", "한글 \u{2028}\\# x"),
            ("", ""),
        ] {
            assert_eq!(prose(text), expected);
        }
    }

    #[test]
    fn s5_3_a_fence_is_longer_than_any_in_it_and_no_line_of_it_begins_a_line() {
        assert_eq!(fenced("a\n# b"), "  ```\n  a\n  # b\n  ```");
        assert_eq!(fenced("````\r## c\n````"), "  `````\n  ````\n  ## c\n  ````\n  `````");
    }
}
