//! Cutting and finding inside text: on grapheme boundaries, in linear time.

use unicode_segmentation::GraphemeCursor;

pub(super) use context_compactor_scan::sentences::{sentences, unlisted};

/// The longest start of `text` that is at most `bytes` long and ends on a grapheme boundary.
pub(crate) fn head(text: &str, bytes: usize) -> &str {
    if bytes >= text.len() {
        return text;
    }
    let at = (0..=bytes).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    let end = match cursor.is_boundary(text, 0) {
        Ok(true) => at,
        _ => cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0),
    };
    text.get(..end).unwrap_or("")
}

/// The longest end of `text` that is at most `bytes` long and starts on a grapheme boundary.
pub(crate) fn tail(text: &str, bytes: usize) -> &str {
    if bytes >= text.len() {
        return text;
    }
    let from = text.len() - bytes;
    let at = (from..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    let start = match cursor.is_boundary(text, 0) {
        Ok(true) => at,
        _ => cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len()),
    };
    text.get(start..).unwrap_or("")
}

/// A word of more bytes, or of more than its part of a text, is cut: a short text would lose most of itself.
const LONG_WORD: usize = 40;
const LONG_PART: usize = 8;
/// A number has no more.
const NUMBER: usize = 12;

fn is_short(word: usize, text: usize) -> bool {
    word <= LONG_WORD.min(NUMBER.max(text / LONG_PART))
}

/// The start of `text` in at most `bytes` bytes, without the word that it would end in the middle of, where that is short:
/// half a number is another number.
pub(crate) fn first_words(text: &str, bytes: usize) -> &str {
    let start = head(text, bytes);
    if text.get(start.len()..).is_none_or(|rest| rest.starts_with(char::is_whitespace) || rest.is_empty()) {
        return start;
    }
    let at = start.rfind(char::is_whitespace).filter(|at| is_short(start.len() - at, start.len()));
    start.get(..at.unwrap_or(start.len())).unwrap_or(start)
}

/// The end of `text` in the same way.
pub(crate) fn last_words(text: &str, bytes: usize) -> &str {
    let end = tail(text, bytes);
    let before = text.get(..text.len() - end.len()).unwrap_or("");
    if before.is_empty() || before.ends_with(char::is_whitespace) {
        return end;
    }
    let at = end.find(char::is_whitespace).filter(|at| is_short(*at, end.len()));
    end.get(at.unwrap_or(0)..).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lesson_unicode_cuts_fall_between_graphemes() {
        let family = "a👨‍👩‍👧‍👦b";
        assert_eq!(head(family, 12), "a");
        assert_eq!(tail(family, 12), "b");
        assert_eq!(head("e\u{301}x", 1), "");
        assert_eq!(tail("xe\u{301}", 2), "");
        assert_eq!(head("한국어", 5), "한");
        assert_eq!(head("\r\n", 1), "");
        assert_eq!(head("🇩🇪🇫🇷", 8), "🇩🇪");
        assert_eq!(tail("שלום", 3), "ם");
    }
}
