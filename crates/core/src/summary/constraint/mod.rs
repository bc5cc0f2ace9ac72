//! The constraint detector (`S4.3`): which sentences of a user require, limit or forbid something. It proposes, the app
//! decides; so it would rather miss a constraint than name a sentence that is none.
//!
//! What is quoted, fenced, pasted between tags or asked is not the user's order and is not looked at.

mod matching;
// Tables are laid out by hand.
#[rustfmt::skip]
mod words;

#[cfg(test)]
mod tests;

use super::extractive::is_earlier;
use super::keep::laid_down;
use super::text::{sentences, unlisted};
use crate::context::PinProposal;
use crate::message::{Message, Part, Role};
use matching::{Index, holds_in_order};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;
use words::{HEADINGS, LANGUAGES, Language, UNSPACED, Unspaced};

/// Sentences of more characters are texts and no rules.
const LONGEST: usize = 400;
/// Tokens of a text are compared in clauses of at most so many, which bounds what a pattern can cost.
const LONGEST_CLAUSE: usize = 80;

/// The constraints that a message states: sentences to the letter, in order. Only the user's own words count, never
/// tool results or what the model wrote.
pub fn constraints<'m>(message: &'m Message<'_>) -> Vec<&'m str> {
    if message.role != Role::User {
        return Vec::new();
    }
    let mut found: Vec<&str> = Vec::new();
    for part in &message.parts {
        if let Part::Text(text) = part {
            // The message of an earlier summary, where an app hands over what a compaction made: what held holds on.
            let sentences = match is_earlier(text) {
                true => laid_down(text, constraints_of),
                false => constraints_of(text),
            };
            for sentence in sentences {
                if !found.contains(&sentence) {
                    found.push(sentence);
                }
            }
        }
    }
    found
}

/// What is proposed for a message, if anything is.
pub(crate) fn proposal(index: usize, message: &Message<'_>, tokens: usize) -> Option<PinProposal> {
    let constraints: Vec<String> = constraints(message).into_iter().map(str::to_string).collect();
    (!constraints.is_empty()).then_some(PinProposal { index, constraints, tokens })
}

/// The constraints in a text of the user.
fn constraints_of(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut skipped = Skip::None;
    let mut listed = false;
    for line in text.lines() {
        if skipped.takes(line, text) {
            listed = false;
            continue;
        }
        let trimmed = line.trim();
        let heading = trimmed.trim_start_matches(['#', '*', ' ']).split_once([':', '：']);
        let title = heading.map(|(title, rest)| (title, rest.trim_matches(['*', ' '])));
        match title.filter(|(title, _)| is_heading(title)) {
            Some((_, "")) => {
                listed = true;
                continue;
            }
            Some((_, rest)) if is_short(rest) && !is_question(rest) => {
                found.push(trimmed);
                continue;
            }
            _ => {}
        }
        let item = unlisted(line);
        if listed && is_item(trimmed) {
            if is_short(item) && !is_question(item) {
                found.push(item);
            }
            continue;
        }
        listed &= trimmed.is_empty();
        found.extend(sentences(line).filter(|sentence| is_constraint(sentence)));
    }
    found
}

/// True when a sentence states a requirement, a limit or a prohibition.
fn is_constraint(sentence: &str) -> bool {
    if !is_short(sentence) || is_question(sentence) {
        return false;
    }
    let own = own_words(sentence).to_lowercase();
    let is_in = |language: &&Unspaced| own.chars().any(|letter| (language.is_own)(letter));
    let unspaced = UNSPACED.iter().find(|language| !own.is_ascii() && is_in(language));
    if let Some(Unspaced { holds, unless, .. }) = unspaced
        && holds.iter().any(|pattern| holds_in_order(&own, pattern))
    {
        return !unless.iter().any(|pattern| holds_in_order(&own, pattern));
    }
    let clauses: Vec<Vec<Cow<'_, str>>> = own.split(is_clause_end).map(words_of).collect();
    let spoken = clauses.iter().flatten().filter_map(|word| STARTS.get(&**word));
    let spoken = spoken.fold(0, |all, languages| all | languages);
    let whole: Vec<&str> = clauses.iter().flatten().map(|word| &**word).take(LONGEST_CLAUSE).collect();
    TABLES.iter().enumerate().filter(|(nth, _)| spoken & (1 << nth) != 0).any(|(_, (language, table))| {
        let opens = clauses.iter().any(|clause| {
            let words: Vec<&str> = clause.iter().map(|word| &**word).take(LONGEST_CLAUSE).collect();
            let leads = words.iter().take_while(|word| language.leads.contains(word)).count();
            // A lead may itself begin the order: "please do not".
            (0..=leads).any(|from| table.opens.matches_at(words.get(from..).unwrap_or_default()))
        });
        (opens || table.holds.matches_in(&whole)) && !table.unless.matches_in(&whole)
    })
}

/// The tables of a language, to be looked up.
struct LanguageTable {
    opens: Index,
    holds: Index,
    unless: Index,
}

static TABLES: LazyLock<Vec<(&Language, LanguageTable)>> = LazyLock::new(|| {
    let table = |language: &'static Language| LanguageTable {
        opens: Index::new(language.opens, language.verbs),
        holds: Index::new(language.holds, language.verbs),
        unless: Index::new(language.unless, language.verbs),
    };
    LANGUAGES.iter().map(|language| (language, table(language))).collect()
});

/// The languages, by their places in a number, in which some pattern that makes an order begins with a word. A sentence without
/// such a word orders nothing.
static STARTS: LazyLock<HashMap<&'static str, u32>> = LazyLock::new(|| {
    let mut starts = HashMap::new();
    for (nth, (_, table)) in TABLES.iter().enumerate() {
        for word in table.opens.starts().chain(table.holds.starts()) {
            *starts.entry(word).or_default() |= 1 << nth;
        }
    }
    starts
});

fn is_short(sentence: &str) -> bool {
    let letters = sentence.chars().take(LONGEST + 1).count();
    (4..=LONGEST).contains(&letters)
}

fn is_question(sentence: &str) -> bool {
    sentence.trim_end_matches(['"', '”', '»', '」', ')', ' ']).ends_with(['?', '？', '؟'])
}

fn is_heading(title: &str) -> bool {
    let title = title.trim().trim_matches('*').to_lowercase();
    HEADINGS.contains(&title.as_str())
}

/// A list item: with a mark or a number before it.
fn is_item(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let behind = line.get(digits..).unwrap_or("");
    ["- ", "* ", "• ", "+ "].iter().any(|mark| line.starts_with(mark))
        || (digits > 0 && (behind.starts_with(". ") || behind.starts_with(") ")))
}

fn is_clause_end(letter: char) -> bool {
    matches!(letter, ',' | ';' | ':' | '(' | ')' | '—' | '–' | '،' | '؛' | '…')
}

/// A sentence without what the user quotes; a piece of code is the word `_`.
fn own_words(sentence: &str) -> Cow<'_, str> {
    const QUOTES: [(char, char); 8] = [
        ('"', '"'),
        ('“', '”'),
        ('„', '“'),
        ('«', '»'),
        ('「', '」'),
        ('『', '』'),
        ('《', '》'),
        ('`', '`'),
    ];
    if !sentence.contains(|letter| QUOTES.iter().any(|(opening, _)| *opening == letter)) {
        return Cow::Borrowed(sentence);
    }
    let mut own = String::with_capacity(sentence.len());
    let mut rest = sentence;
    while let Some(letter) = rest.chars().next() {
        let after = rest.get(letter.len_utf8()..).unwrap_or("");
        let closing = QUOTES.iter().find(|(opening, _)| *opening == letter).map(|(_, closing)| *closing);
        match closing.and_then(|closing| after.split_once(closing)) {
            Some((_, behind)) => {
                own.push_str(if letter == '`' { " _ " } else { " " });
                rest = behind;
            }
            None => {
                own.push(letter);
                rest = after;
            }
        }
    }
    Cow::Owned(own)
}

/// The words of a clause, in the spelling of the tables.
fn words_of(clause: &str) -> Vec<Cow<'_, str>> {
    let is_word = |letter: char| {
        letter.is_alphanumeric()
            || matches!(letter, '\'' | '’' | '_')
            || ('\u{300}'..='\u{36f}').contains(&letter)
    };
    let words = clause.split(|letter| !is_word(letter)).filter(|word| !word.is_empty());
    words
        .map(|word| match word.is_ascii() {
            true => Cow::Borrowed(word),
            false => Cow::Owned(word.chars().filter_map(plain).collect()),
        })
        .collect()
}

/// A letter as the tables spell it: one apostrophe, Arabic without vowel signs and with one alef.
fn plain(letter: char) -> Option<char> {
    match letter {
        '’' => Some('\''),
        'أ' | 'إ' | 'آ' => Some('ا'),
        '\u{64b}'..='\u{652}' | '\u{640}' | '\u{591}'..='\u{5c7}' => None,
        other => Some(other),
    }
}

/// What is not the user's own words: fenced code, quoted lines, what was pasted between tags.
enum Skip<'t> {
    None,
    Fence(&'t str),
    Tag(&'t str),
}

impl<'t> Skip<'t> {
    /// True for a line that is skipped.
    fn takes(&mut self, line: &'t str, text: &'t str) -> bool {
        let start = line.trim();
        match self {
            Skip::Fence(mark) => {
                if start.starts_with(*mark) {
                    *self = Skip::None;
                }
                true
            }
            Skip::Tag(name) => {
                if closes(start, name) {
                    *self = Skip::None;
                }
                true
            }
            Skip::None => {
                if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark)) {
                    *self = Skip::Fence(mark);
                    return true;
                }
                if let Some(name) = opened(start)
                    && text.contains(&format!("</{name}>"))
                {
                    if !closes(start, name) {
                        *self = Skip::Tag(name);
                    }
                    return true;
                }
                let code = (line.starts_with("    ") || line.starts_with('\t')) && !is_item(start);
                code || start.starts_with(['>', '|', '$', '{', '<']) || start.starts_with("//")
            }
        }
    }
}

/// The name of the tag that a line begins with.
fn opened(line: &str) -> Option<&str> {
    let inside = line.strip_prefix('<')?;
    let end = inside.find(|letter: char| !letter.is_ascii_alphanumeric() && !"_-".contains(letter))?;
    let name =
        inside.get(..end).filter(|name| name.starts_with(|letter: char| letter.is_ascii_alphabetic()))?;
    inside.contains('>').then_some(name)
}

fn closes(line: &str, name: &str) -> bool {
    line.contains(&format!("</{name}>"))
}
