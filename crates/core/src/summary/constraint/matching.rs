//! The patterns of the word tables, matched against the words of a sentence.
//!
//! A pattern is words with blanks between them. A word is one of `a|b|c`; `*ing` ends so and `ab*` begins so; `!a|b` is
//! any word but these; `*` is any word; `_` is a piece of code; `VERB` is a verb of the language; `..` is up to eight
//! words; `$` is the end. It begins with a word that is spelled out, or with `_` or `VERB`.

use std::collections::HashMap;

/// Words that `..` may match.
const GAP: usize = 8;

/// The patterns of a table by the words that they may begin with: most are ruled out by one look.
pub(super) struct Index {
    verbs: &'static [&'static str],
    by_word: HashMap<&'static str, Vec<&'static str>>,
}

impl Index {
    pub(super) fn new(patterns: &[&'static str], verbs: &'static [&'static str]) -> Self {
        let mut index = Self { verbs, by_word: HashMap::new() };
        for &pattern in patterns {
            let (first, _) = pattern.split_once(' ').unwrap_or((pattern, ""));
            for choice in first.split('|') {
                match choice {
                    "VERB" => {
                        for &verb in verbs {
                            index.by_word.entry(verb).or_default().push(pattern);
                        }
                    }
                    word => index.by_word.entry(word).or_default().push(pattern),
                }
            }
        }
        index
    }

    /// True when some pattern matches somewhere in `words`.
    pub(super) fn matches_in(&self, words: &[&str]) -> bool {
        (0..words.len()).any(|at| self.matches_at(words.get(at..).unwrap_or_default()))
    }

    /// True when `words` begin with what some pattern says.
    pub(super) fn matches_at(&self, words: &[&str]) -> bool {
        let patterns = words.first().and_then(|word| self.by_word.get(word));
        patterns.is_some_and(|patterns| patterns.iter().any(|pattern| begins(words, pattern, self.verbs)))
    }

    /// Words that some pattern begins with.
    pub(super) fn starts(&self) -> impl Iterator<Item = &'static str> {
        self.by_word.keys().copied()
    }
}

/// True when `words` begin with what `pattern` says.
fn begins(words: &[&str], pattern: &str, verbs: &[&str]) -> bool {
    let (first, rest) = pattern.split_once(' ').unwrap_or((pattern, ""));
    if first.is_empty() {
        return true;
    }
    if first == ".." {
        return (0..=GAP.min(words.len()))
            .any(|skip| begins(words.get(skip..).unwrap_or_default(), rest, verbs));
    }
    match words.split_first() {
        None => first == "$",
        Some((word, behind)) => is_one_of(word, first, verbs) && begins(behind, rest, verbs),
    }
}

fn is_one_of(word: &str, choices: &str, verbs: &[&str]) -> bool {
    if let Some(others) = choices.strip_prefix('!') {
        return !is_one_of(word, others, verbs);
    }
    choices.split('|').any(|choice| match choice {
        "VERB" => verbs.contains(&word),
        "*" => true,
        _ => match (choice.strip_prefix('*'), choice.strip_suffix('*')) {
            (Some(ending), _) => word.len() > ending.len() && word.ends_with(ending),
            (_, Some(beginning)) => word.starts_with(beginning),
            _ => word == choice,
        },
    })
}

/// True when the parts of `pattern`, between `..`, are in `text` one after the other. For scripts without blanks.
pub(super) fn holds_in_order(text: &str, pattern: &str) -> bool {
    let mut rest = text;
    pattern.split("..").all(|part| match rest.split_once(part) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}
