//! Terms of a text for search: words of any script, the parts of identifiers, and names made of several words.
//!
//! * A word is a run of letters and digits, in lower case, without combining marks.
//! * `getUserName` is also `get`, `user` and `name`; `src/lib.rs` is also `src`, `lib` and `rs`, and `lib.rs`.
//! * Scripts that are written without spaces, and Korean, whose particles stick to words, are taken in pairs of
//!   characters.

use std::ops::Range;

/// How a term stands in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A word, or a pair of characters: what the length of a text is counted in.
    Word,
    /// Part of a word, or several words that are written as one.
    Derived,
    /// One character of a pair. A query of one character finds it; longer ones have no use for it.
    Single,
}

/// Names of more bytes than this are found by their words only.
const LONGEST_NAME: usize = 120;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Letters and digits of scripts with spaces.
    Spaced,
    /// Characters of scripts without.
    Dense,
    /// What joins words into names and paths.
    Joiner,
    Other,
}

/// Is told each term of a text, the bytes that it stands at, and its kind.
type Found<'f> = dyn FnMut(&str, Range<usize>, Kind) + 'f;

/// Calls `found` with each term of `text`, in the order of where they begin.
pub fn terms(text: &str, found: &mut Found<'_>) {
    let mut folded = String::new();
    let mut emit = |range: Range<usize>, kind: Kind| {
        folded.clear();
        let term = text.get(range.clone()).unwrap_or_default();
        if term.is_ascii() {
            folded.push_str(term);
            folded.make_ascii_lowercase();
        } else {
            folded.extend(term.chars().filter(|c| !is_mark(*c)).flat_map(char::to_lowercase));
        }
        if !folded.is_empty() {
            found(&folded, range, kind);
        }
    };
    // Words that only joiners stand between.
    let mut name: Vec<Range<usize>> = Vec::new();
    for (class, range) in runs(text) {
        match class {
            Class::Spaced => name.push(range),
            // As many as in `https://`.
            Class::Joiner if range.len() <= 3 => {}
            _ => {
                named(text, &name, &mut emit);
                name.clear();
                if class == Class::Dense {
                    pairs(text, range, &mut emit);
                }
            }
        }
    }
    named(text, &name, &mut emit);
}

/// A name: as a whole, what stands behind its last slash, its words, and the parts of those.
fn named(text: &str, words: &[Range<usize>], emit: &mut dyn FnMut(Range<usize>, Kind)) {
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return };
    let whole = first.start..last.end;
    let is_name = words.len() > 1 && whole.len() <= LONGEST_NAME;
    let slash = text.get(whole.clone()).unwrap_or_default().rfind(['/', '\\']);
    let file = slash.map(|at| whole.start + at + 1);
    if is_name {
        emit(whole, Kind::Derived);
    }
    for word in words {
        // What is behind the slash is a word of its own unless it is joined from several.
        if is_name && file == Some(word.start) && word != last {
            emit(word.start..last.end, Kind::Derived);
        }
        emit(word.clone(), Kind::Word);
        if word.len() <= LONGEST_NAME {
            humps(text, word, emit);
        }
    }
}

/// The parts of `parseHTTPResponse2`, of two bytes at least: parse, HTTP, Response.
fn humps(text: &str, word: &Range<usize>, emit: &mut dyn FnMut(Range<usize>, Kind)) {
    let bytes = text.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or_default();
    let mut start = word.start;
    for index in word.start + 1..=word.end {
        let (before, here, next) = (at(index - 1), at(index), at(index + 1));
        let ends = index == word.end
            || before.is_ascii_lowercase() && here.is_ascii_uppercase()
            || before.is_ascii_digit() != here.is_ascii_digit()
            || before.is_ascii_uppercase()
                && here.is_ascii_uppercase()
                && next.is_ascii_lowercase()
                && index + 1 < word.end;
        if ends && text.is_char_boundary(index) {
            let hump = start..index;
            if hump.len() > 1 && hump != *word {
                emit(hump, Kind::Derived);
            }
            start = index;
        }
    }
}

fn pairs(text: &str, run: Range<usize>, emit: &mut dyn FnMut(Range<usize>, Kind)) {
    let characters = text.get(run.clone()).unwrap_or_default().char_indices();
    let mut before: Option<Range<usize>> = None;
    for (at, character) in characters {
        let start = run.start + at;
        let here = start..start + character.len_utf8();
        if let Some(before) = before {
            emit(before.start..here.end, Kind::Word);
        }
        emit(here.clone(), if here == run { Kind::Word } else { Kind::Single });
        before = Some(here);
    }
}

/// Runs of characters of one class.
fn runs(text: &str) -> impl Iterator<Item = (Class, Range<usize>)> {
    let mut characters = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) = characters.next()?;
        let class = class_of(first);
        let mut end = start + first.len_utf8();
        while let Some((at, next)) = characters.next_if(|(_, next)| class_of(*next) == class) {
            end = at + next.len_utf8();
        }
        Some((class, start..end))
    })
}

fn class_of(character: char) -> Class {
    match character {
        c if c.is_ascii_alphanumeric() => Class::Spaced,
        '_' | '-' | '.' | '/' | '\\' | ':' | '@' => Class::Joiner,
        c if c.is_ascii() => Class::Other,
        c if is_dense(c) => Class::Dense,
        c if c.is_alphanumeric() || is_mark(c) => Class::Spaced,
        _ => Class::Other,
    }
}

/// Characters of scripts without spaces between words, of Korean, and emoji.
fn is_dense(character: char) -> bool {
    match u32::from(character) {
        // Thai, Lao, Tibetan, Myanmar and Khmer, with the marks that are part of their letters.
        0x0E00..=0x0FFF | 0x1000..=0x109F | 0x1780..=0x17FF => true,
        // Kana, Bopomofo, Han, Hangul.
        0x1100..=0x11FF | 0x2E80..=0x2FDF | 0x3005..=0x9FFF | 0xA960..=0xA97F | 0xAC00..=0xD7FF => {
            character.is_alphanumeric()
        }
        0xF900..=0xFAFF | 0x20000..=0x3FFFF => true,
        // Symbols and emoji.
        0x2190..=0x21FF | 0x2600..=0x27BF | 0x1F000..=0x1FAFF => true,
        _ => false,
    }
}

/// Combining marks and joiners, which belong to the word that they stand in and change nothing in what it is found by.
fn is_mark(character: char) -> bool {
    match u32::from(character) {
        0x0300..=0x036F | 0x0483..=0x0489 | 0x0591..=0x05BD | 0x05BF..=0x05C7 | 0x0610..=0x061A => true,
        0x064B..=0x065F | 0x0670 | 0x06D6..=0x06DC | 0x06DF..=0x06E8 | 0x06EA..=0x06ED => true,
        // Indic vowel signs are letters to Unicode; what is not, but for the full stops, are marks.
        0x0900..=0x0DFF => !character.is_alphanumeric() && !matches!(character, '।' | '॥'),
        0x200C..=0x200D | 0x20D0..=0x20FF | 0xFE00..=0xFE0F => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, wanted: impl Fn(Kind) -> bool) -> Vec<String> {
        let mut found = Vec::new();
        let mut start = 0;
        terms(text, &mut |term, range, kind| {
            assert!(text.get(range.clone()).is_some() && range.start >= start);
            start = range.start;
            if wanted(kind) {
                found.push(term.to_owned());
            }
        });
        found
    }

    #[test]
    fn identifiers_are_found_whole_and_by_their_parts() {
        let derived = |text| found(text, |kind| kind == Kind::Derived);
        assert_eq!(derived("getUserName"), ["get", "user", "name"]);
        assert_eq!(derived("parseHTTPResponse2"), ["parse", "http", "response"]);
        assert_eq!(derived("get_user_name"), ["get_user_name"]);
        assert_eq!(derived("std::mem::take"), ["std::mem::take"]);
        assert_eq!(derived("(src/wire/mod.rs:42)."), ["src/wire/mod.rs:42", "mod.rs:42"]);
        assert_eq!(derived("C:\\temp\\a.txt"), ["c:\\temp\\a.txt", "a.txt"]);
        assert_eq!(derived("See v1.2.3."), ["v1.2.3"]);
        assert_eq!(derived("Done. Next"), [""; 0]);
        assert_eq!(derived("éÉé1"), ["ééé"]);
    }

    #[test]
    fn words_of_every_script_are_folded() {
        let words = |text| found(text, |kind| kind == Kind::Word);
        assert_eq!(words("Straße ÜBER, don't!"), ["straße", "über", "don", "t"]);
        assert_eq!(words("e\u{301}te\u{301} שָׁלוֹם"), ["ete", "שלום"]);
        assert_eq!(words("数据库 端口"), ["数据", "据库", "端口"]);
        assert_eq!(words("데이터를"), ["데이", "이터", "터를"]);
        assert_eq!(words("用v2吧"), ["用", "v2", "吧"]);
        assert_eq!(words("🚀 👍🏽"), ["🚀", "👍🏽"]);
        assert_eq!(words(" ,;!"), [""; 0]);
        assert_eq!(found("数据", |kind| kind == Kind::Single), ["数", "据"]);
    }
}
