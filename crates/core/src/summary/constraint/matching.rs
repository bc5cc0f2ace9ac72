//! The patterns of the word tables, matched against the words of a sentence.
//!
//! A pattern is words with blanks between them. A word is one of `a|b|c`; `*ing` ends so and `ab*` begins so; `!a|b` is
//! any word but these; `*` is any word; `_` is a piece of code; `VERB` is a verb of the language; `..` is up to eight
//! words; `$` is the end.

/// Words that `..` may stand for.
const GAP: usize = 8;

/// True when some pattern matches somewhere in `words`.
pub(super) fn any(words: &[&str], patterns: &[&str], verbs: &[&str]) -> bool {
    (0..words.len()).any(|at| {
        let rest = words.get(at..).unwrap_or_default();
        patterns.iter().any(|pattern| begins(rest, pattern, verbs))
    })
}

/// True when `words` begin with what `pattern` says.
pub(super) fn begins(words: &[&str], pattern: &str, verbs: &[&str]) -> bool {
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

/// True when the parts of `pattern`, between `..`, stand in `text` one behind the other. For scripts without blanks.
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
