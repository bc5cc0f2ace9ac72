//! Where a text is cut into pieces before pairs are merged: the regular expressions of the encodings, written out.
//!
//! Alternatives are tried in their order and repetitions give back what the rest needs, as in the expressions. A
//! piece depends on nothing before it, and on nothing after the characters that were looked at to find its end.

use crate::classes::{self, Class};
use core::cell::Cell;

/// The rules of an encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// `o200k_base`.
    O200k,
    /// `cl100k_base`.
    Cl100k,
}

/// A text to cut, in UTF-8.
pub(crate) struct Text<'a> {
    bytes: &'a [u8],
    length: usize,
    /// Whether something was looked for behind the end.
    touched: Cell<bool>,
}

/// A position and what stands there.
#[derive(Clone, Copy)]
struct Character {
    class: Class,
    /// Where the next one begins.
    next: usize,
}

impl<'a> Text<'a> {
    /// The first `length` of `bytes`.
    pub(crate) fn new(bytes: &'a [u8], length: usize) -> Self {
        Self { bytes, length: length.min(bytes.len()), touched: Cell::new(false) }
    }

    /// Whether the piece that was found last could be another if the text went on.
    pub(crate) fn touched(&self) -> bool {
        self.touched.get()
    }

    /// Where the piece ends that begins at `start`, which is before the end of the text.
    #[inline(always)]
    pub(crate) fn piece(&self, rules: Rules, start: usize) -> usize {
        match rules {
            Rules::O200k => self.o200k(start),
            Rules::Cl100k => self.cl100k(start),
        }
    }

    /// The same where it is not the loop that has to be fast.
    #[inline(never)]
    pub(crate) fn any_piece(&self, rules: Rules, start: usize) -> usize {
        self.piece(rules, start)
    }

    /// ```text
    /// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
    /// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
    /// \p{N}{1,3}
    ///  ?[^\s\p{L}\p{N}]+[\r\n/]*
    /// \s*[\r\n]+
    /// \s+(?!\S)
    /// \s+
    /// ```
    #[inline(always)]
    fn o200k(&self, start: usize) -> usize {
        let first = self.at(start);
        match first.class {
            Class::Upper | Class::Lower | Class::Letter => {
                let (end, _) = self.word(start);
                self.contraction(end).unwrap_or(end)
            }
            Class::Number => self.number(first.next),
            Class::Newline => self.white(start),
            Class::Mark => {
                // The mark in front of a word; when that word has no lower case, the mark is a word by itself.
                let (end, has_lower) = self.word(first.next);
                let end = if end > first.next && has_lower { end } else { first.next };
                self.contraction(end).unwrap_or(end)
            }
            Class::Other | Class::Space | Class::End => {
                let (end, _) = self.word(first.next);
                if end > first.next {
                    return self.contraction(end).unwrap_or(end);
                }
                match self.symbols(start, first) {
                    Some(end) => self.while_byte(end, |byte| matches!(byte, b'\r' | b'\n' | b'/')),
                    None => self.white(start),
                }
            }
        }
    }

    /// ```text
    /// (?i:'s|'t|'re|'ve|'m|'ll|'d)
    /// [^\r\n\p{L}\p{N}]?\p{L}+
    /// \p{N}{1,3}
    ///  ?[^\s\p{L}\p{N}]+[\r\n]*
    /// \s*[\r\n]+
    /// \s+(?!\S)
    /// \s+
    /// ```
    #[inline(always)]
    fn cl100k(&self, start: usize) -> usize {
        let first = self.at(start);
        match first.class {
            Class::Upper | Class::Lower | Class::Letter => self.letters(first.next),
            Class::Number => self.number(first.next),
            Class::Newline => self.white(start),
            Class::Mark | Class::Other | Class::Space | Class::End => {
                if let Some(end) = self.contraction(start) {
                    return end;
                }
                let end = self.letters(first.next);
                if end > first.next {
                    return end;
                }
                match self.symbols(start, first) {
                    Some(end) => self.while_byte(end, |byte| matches!(byte, b'\r' | b'\n')),
                    None => self.white(start),
                }
            }
        }
    }

    /// The end of a word of o200k that begins at `start`, and whether it is one of the first alternative: upper case,
    /// then at least one that is not. There is none when the end is `start`.
    #[inline(always)]
    fn word(&self, start: usize) -> (usize, bool) {
        let mut end = start;
        // Behind the last character that can stand in both parts.
        let mut shared = start;
        loop {
            let character = self.at(end);
            match character.class {
                Class::Upper => end = character.next,
                Class::Letter | Class::Mark => {
                    end = character.next;
                    shared = end;
                }
                Class::Lower => break,
                // Nothing but upper case follows the last shared one: it is the next piece's.
                _ if shared > start => return (shared, true),
                _ => return (end, false),
            }
        }
        loop {
            let character = self.at(end);
            match character.class {
                Class::Lower | Class::Letter | Class::Mark => end = character.next,
                _ => return (end, true),
            }
        }
    }

    /// `\p{L}*`
    #[inline(always)]
    fn letters(&self, start: usize) -> usize {
        self.while_class(start, Class::is_letter)
    }

    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
    #[inline(always)]
    fn contraction(&self, start: usize) -> Option<usize> {
        if self.byte(start) != Some(b'\'') { None } else { self.contracted(start + 1) }
    }

    fn contracted(&self, start: usize) -> Option<usize> {
        let second = |letter| (self.byte(start + 1)? | 0x20 == letter).then_some(start + 2);
        match self.byte(start)? {
            b's' | b'S' | b't' | b'T' | b'm' | b'M' | b'd' | b'D' => Some(start + 1),
            b'r' | b'R' | b'v' | b'V' => second(b'e'),
            b'l' | b'L' => second(b'l'),
            // ſ, whose other case is S.
            0xc5 if self.byte(start + 1)? == 0xbf => Some(start + 2),
            _ => None,
        }
    }

    /// The rest of `\p{N}{1,3}`.
    #[inline(always)]
    fn number(&self, mut end: usize) -> usize {
        for _ in 0..2 {
            let character = self.at(end);
            if character.class != Class::Number {
                break;
            }
            end = character.next;
        }
        end
    }

    /// ` ?[^\s\p{L}\p{N}]+`
    #[inline(always)]
    fn symbols(&self, start: usize, first: Character) -> Option<usize> {
        let from = if self.byte(start) == Some(b' ') { first.next } else { start };
        let end = self.while_class(from, Class::is_symbol);
        (end > from).then_some(end)
    }

    /// `\s*[\r\n]+`, `\s+(?!\S)`, `\s+`
    fn white(&self, start: usize) -> usize {
        let (mut end, mut last, mut newline) = (start, start, start);
        loop {
            let character = self.at(end);
            match character.class {
                Class::Newline => newline = character.next,
                Class::Space => {}
                Class::End => return if newline > start { newline } else { end },
                _ if newline > start => return newline,
                // The last one is left to the word behind it, unless it is the only one.
                _ => return if last > start { last } else { end },
            }
            last = end;
            end = character.next;
        }
    }

    #[inline(always)]
    fn while_class(&self, mut end: usize, is_in: impl Fn(Class) -> bool) -> usize {
        loop {
            let character = self.at(end);
            if character.class == Class::End || !is_in(character.class) {
                return end;
            }
            end = character.next;
        }
    }

    #[inline(always)]
    fn while_byte(&self, mut end: usize, is_in: impl Fn(u8) -> bool) -> usize {
        while self.byte(end).is_some_and(&is_in) {
            end += 1;
        }
        end
    }

    #[inline(always)]
    fn byte(&self, at: usize) -> Option<u8> {
        if at < self.length {
            return self.bytes.get(at).copied();
        }
        self.touched.set(true);
        None
    }

    #[inline(always)]
    fn at(&self, at: usize) -> Character {
        match self.byte(at) {
            None => Character { class: Class::End, next: at },
            Some(byte) if byte < 0x80 => Character { class: classes::ascii(byte), next: at + 1 },
            Some(byte) => self.wide(at, byte),
        }
    }

    fn wide(&self, at: usize, first: u8) -> Character {
        let rest = |nth: usize| u32::from(self.bytes.get(at + nth).copied().unwrap_or_default() & 0x3f);
        let lead = u32::from(first);
        let (code, width) = if lead < 0xe0 {
            ((lead & 0x1f) << 6 | rest(1), 2)
        } else if lead < 0xf0 {
            ((lead & 0x0f) << 12 | rest(1) << 6 | rest(2), 3)
        } else {
            ((lead & 0x07) << 18 | rest(1) << 12 | rest(2) << 6 | rest(3), 4)
        };
        Character { class: classes::of(code), next: (at + width).min(self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Rules, Text};
    use fancy_regex::Regex;
    use proptest::prelude::*;

    /// The expressions as tiktoken has them.
    const O200K: &str = concat!(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    );
    const CL100K: &str = concat!(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    );

    fn expressions() -> [(Rules, Regex); 2] {
        [(Rules::O200k, O200K), (Rules::Cl100k, CL100K)]
            .map(|(rules, expression)| (rules, Regex::new(expression).unwrap()))
    }

    /// The pieces of a text, and how many of them depend on what follows it.
    fn pieces(rules: Rules, text: &str) -> (Vec<&str>, usize) {
        let whole = Text::new(text.as_bytes(), text.len());
        let (mut pieces, mut unsettled, mut at) = (Vec::new(), 0, 0);
        while at < text.len() {
            let next = whole.piece(rules, at);
            pieces.push(&text[at..next]);
            unsettled += usize::from(whole.touched());
            at = next;
        }
        (pieces, unsettled)
    }

    /// Texts of the characters that the rules tell apart, and some of every other.
    fn texts() -> impl Strategy<Value = String> {
        let telling = prop::sample::select(
            " \t\r\n\u{85}\u{a0}\u{2028}\u{3000}\u{feff}'/!.aAzZsSlLrRvVeEdDmMtT0９Ⅳǅʰªſ字ア가אا\u{301}\u{94d}😀\u{200d}\u{fe0f}\u{10ffff}"
                .chars()
                .collect::<Vec<_>>(),
        );
        prop::collection::vec(prop_oneof![9 => telling, 1 => any::<char>()], 0..24)
            .prop_map(|characters| characters.into_iter().collect())
    }

    #[test]
    fn every_character_is_cut_as_the_expressions_cut_it() {
        for (rules, expression) in expressions() {
            for character in '\0'..=char::MAX {
                // Unassigned planes are one block; a part of them says what all do.
                if matches!(u32::from(character), 0x32400..0xe0000 | 0xe0200..)
                    && u32::from(character) % 61 != 0
                {
                    continue;
                }
                for text in [format!("a{character}B"), format!("{character}{character} {character}")] {
                    let expected: Vec<&str> =
                        expression.find_iter(&text).map(|piece| piece.unwrap().as_str()).collect();
                    assert_eq!(pieces(rules, &text).0, expected, "{rules:?} {text:?}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn texts_are_cut_as_the_expressions_cut_them(text in texts()) {
            thread_local!(static EXPRESSIONS: [(Rules, Regex); 2] = expressions());
            EXPRESSIONS.with(|expressions| {
                for (rules, expression) in expressions {
                    let expected: Vec<&str> = expression.find_iter(&text).map(|piece| piece.unwrap().as_str()).collect();
                    prop_assert_eq!(pieces(*rules, &text).0, expected);
                }
                Ok(())
            })?;
        }

        #[test]
        fn settled_pieces_stay_whatever_is_appended(text in texts(), more in texts()) {
            for rules in [Rules::O200k, Rules::Cl100k] {
                let (before, unsettled) = pieces(rules, &text);
                let longer = [text.as_str(), more.as_str()].concat();
                let settled = before.len() - unsettled;
                prop_assert_eq!(&pieces(rules, &longer).0[..settled], &before[..settled]);
            }
        }
    }
}
