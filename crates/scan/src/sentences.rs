//! Lines and sentences.

/// A line without blanks around it and without the mark of a list item before it.
pub fn unlisted(line: &str) -> &str {
    let line = line.trim();
    ["- ", "* ", "• "].iter().find_map(|mark| line.strip_prefix(mark)).map_or(line, str::trim_start)
}

/// Sentences of a text, unlisted, without the empty ones: a line break or the end mark of a sentence closes one.
pub fn sentences(text: &str) -> Sentences<'_> {
    Sentences { rest: text }
}

/// What [`sentences`] returns.
#[derive(Debug, Clone)]
pub struct Sentences<'t> {
    rest: &'t str,
}

impl<'t> Iterator for Sentences<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        loop {
            let (sentence, rest) = self.rest.split_at_checked(end(self.rest))?;
            if sentence.is_empty() {
                return None;
            }
            self.rest = rest;
            let sentence = unlisted(sentence);
            if !sentence.is_empty() {
                return Some(sentence);
            }
        }
    }
}

/// Where the first sentence ends, behind its mark.
fn end(text: &str) -> usize {
    for (at, byte) in text.bytes().enumerate() {
        let length = match byte {
            b'\n' => 1,
            b'.' | b'!' | b'?' => {
                let next = text.get(at + 1..).and_then(|rest| rest.chars().next());
                if next.is_some_and(|next| !next.is_whitespace()) {
                    continue;
                }
                1
            }
            0xE3 | 0xEF | 0xD8 => {
                let rest = text.get(at..).unwrap_or_default();
                match rest.chars().next().filter(|mark| matches!(mark, '。' | '！' | '？' | '؟')) {
                    Some(mark) => mark.len_utf8(),
                    None => continue,
                }
            }
            _ => continue,
        };
        return at + length;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_at_marks_of_several_scripts() {
        let found: Vec<&str> = sentences("Use v1.2 only. Never push!\n必须测试。不要提交？ok").collect();
        assert_eq!(found, ["Use v1.2 only.", "Never push!", "必须测试。", "不要提交？", "ok"]);
        let found: Vec<&str> = sentences("\n - a.\n\n* هل؟نعم！そう。。 \n").collect();
        assert_eq!(found, ["a.", "هل؟", "نعم！", "そう。", "。"]);
        assert_eq!(sentences("").next(), None);
    }
}
