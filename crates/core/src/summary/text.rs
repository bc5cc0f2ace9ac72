//! Cutting and finding inside text: on grapheme boundaries, in linear time.

use unicode_segmentation::GraphemeCursor;

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

/// A line without blanks around it and without the mark of a list item before it.
pub(super) fn unlisted(line: &str) -> &str {
    let line = line.trim();
    ["- ", "* ", "• "].iter().find_map(|mark| line.strip_prefix(mark)).map_or(line, str::trim_start)
}

/// Sentences of a text, unlisted, without the empty ones: a line break or the end mark of a sentence closes one.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = rest.len();
        let mut characters = rest.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            let closes = match character {
                '\n' | '。' | '！' | '？' | '؟' => true,
                '.' | '!' | '?' => characters.peek().is_none_or(|(_, next)| next.is_whitespace()),
                _ => false,
            };
            if closes {
                end = at + character.len_utf8();
                break;
            }
        }
        let (sentence, after) = rest.split_at_checked(end)?;
        rest = after;
        Some(unlisted(sentence))
    })
    .filter(|sentence| !sentence.is_empty())
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

    #[test]
    fn sentences_end_at_marks_of_several_scripts() {
        let found: Vec<&str> = sentences("Use v1.2 only. Never push!\n必须测试。不要提交？ok").collect();
        assert_eq!(found, ["Use v1.2 only.", "Never push!", "必须测试。", "不要提交？", "ok"]);
    }
}
