//! What the metrics read in a text: names, content words with their places, and spans of eight tokens.

use crate::entities::{self, Kind, entities, hash};
use context_compactor_core::message::{Message, Part, Role};
use serde_json::Value;
use std::collections::HashSet;

/// Tokens of a span.
const SPAN: usize = 8;
/// A span of fewer different tokens is decoration: rules, columns of zeros.
const LEAST_DIFFERENT: usize = 5;

/// Who a text is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// The user.
    User,
    /// The model's prose.
    Assistant,
    /// A call's name and arguments.
    Call,
    /// A tool's result.
    Result,
}

/// A text of a history: a message's prose, a call, or a result.
#[derive(Debug, Clone)]
pub struct Text {
    /// Index of its message.
    pub message: usize,
    /// Who it is from.
    pub voice: Voice,
    /// What it says.
    pub text: String,
    /// What names the call that it is, or is the answer of: its path, or the first line of its longest argument.
    pub stub: Option<Stub>,
}

/// What is left of a call whose result is stored: enough to ask for the result again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Stub {
    /// A path, by the hash of its entity.
    Path(u64),
    /// The beginning of its main argument.
    Argument(String),
}

/// The texts of a history in order. Instructions of the app are none of them (no compaction touches them), nor is
/// reasoning (providers drop it themselves). Arguments are parsed: their strings are read, never the JSON around them.
pub fn texts(messages: &[Message<'_>]) -> Vec<Text> {
    let mut texts: Vec<Text> = Vec::new();
    let mut open: Vec<(&str, Option<Stub>)> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if message.role == Role::System {
            continue;
        }
        for part in &message.parts {
            let (voice, text, stub) = match part {
                Part::Text(text) => match message.role {
                    Role::Assistant => (Voice::Assistant, text.to_string(), None),
                    _ => (Voice::User, text.to_string(), None),
                },
                Part::ToolCall(call) => {
                    let leaves = leaves(&call.arguments);
                    let stub = stub(&leaves);
                    open.push((&call.id, stub.clone()));
                    (Voice::Call, rendered(&call.name, &leaves), stub)
                }
                Part::ToolResult(result) => {
                    let call = open.iter().rposition(|(id, _)| *id == result.call_id);
                    (Voice::Result, result.text.to_string(), call.and_then(|at| open.remove(at).1))
                }
                _ => continue,
            };
            if !text.trim().is_empty() {
                texts.push(Text { message: index, voice, text, stub });
            }
        }
    }
    texts
}

/// The strings in a call's arguments with the key that each is under.
fn leaves(arguments: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    match serde_json::from_str::<Value>(arguments) {
        Ok(value) => leaf("", &value, &mut found),
        Err(_) => found.push((String::new(), arguments.to_owned())),
    }
    found
}

fn leaf(key: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => found.push((key.to_owned(), text.clone())),
        Value::Array(items) => items.iter().for_each(|item| leaf(key, item, found)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| leaf(key, value, found)),
        Value::Number(number) => found.push((key.to_owned(), number.to_string())),
        Value::Null | Value::Bool(_) => {}
    }
}

fn rendered(name: &str, leaves: &[(String, String)]) -> String {
    let mut text = name.to_owned();
    for (key, value) in leaves {
        let gap = if value.contains('\n') { '\n' } else { ' ' };
        text.push_str(&format!("\n{key}:{gap}{value}"));
    }
    text
}

fn stub(leaves: &[(String, String)]) -> Option<Stub> {
    for (_, value) in leaves.iter().filter(|(key, value)| key.contains("path") && !value.contains('\n')) {
        let mut path = None;
        entities(value, &mut |kind, name, _| {
            if kind == Kind::Path {
                path.get_or_insert(hash(name));
            }
        });
        if let Some(path) = path {
            return Some(Stub::Path(path));
        }
    }
    let (_, longest) = leaves.iter().max_by_key(|(_, value)| value.len())?;
    let line = longest.lines().map(str::trim).find(|line| !line.is_empty())?;
    let start: String = line.chars().take(60).collect();
    (start.len() >= 4).then_some(Stub::Argument(start))
}

/// A text taken apart.
#[derive(Debug, Default)]
pub(super) struct Lexed {
    /// Hash, kind and place of each entity, places in characters.
    pub(super) names: Vec<(u64, Kind, usize)>,
    /// Hash and place of each content word that stands in no entity.
    pub(super) words: Vec<(u64, usize)>,
}

impl Lexed {
    /// Takes a text apart.
    pub(super) fn of(text: &str) -> Self {
        let mut lexed = Lexed::default();
        let mut taken = Vec::new();
        let mut place = Place { text, byte: 0, characters: 0 };
        entities(text, &mut |kind, name, range| {
            lexed.names.push((hash(name), kind, place.of(range.start)));
            taken.push(range);
        });
        let mut place = Place { text, byte: 0, characters: 0 };
        let mut taken = taken.into_iter().peekable();
        words(text, &mut |word, start| {
            while taken.next_if(|range| range.end <= start).is_some() {}
            if taken.peek().is_none_or(|range| start + word.len() <= range.start) && is_content(word) {
                lexed.words.push((hash(&word.to_lowercase()), place.of(start)));
            }
        });
        lexed
    }

    /// The words within `reach` characters of a place.
    pub(super) fn near(&self, place: usize, reach: usize) -> impl Iterator<Item = u64> {
        let from = self.words.partition_point(|(_, at)| at + reach < place);
        let words = self.words[from..].iter();
        words.take_while(move |(_, at)| *at <= place + reach).map(|(word, _)| *word)
    }
}

/// Counts characters up to bytes that only grow.
struct Place<'t> {
    text: &'t str,
    byte: usize,
    characters: usize,
}

impl Place<'_> {
    fn of(&mut self, byte: usize) -> usize {
        // A path is told before what stands on its line; nothing goes further back than that.
        if byte >= self.byte {
            self.characters += self.text[self.byte..byte].chars().count();
            self.byte = byte;
        }
        self.characters
    }
}

/// Runs of letters, and where they begin.
fn words<'t>(text: &'t str, found: &mut impl FnMut(&'t str, usize)) {
    let mut start = None;
    for (at, character) in text.char_indices().chain([(text.len(), ' ')]) {
        match (start, character.is_alphabetic()) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                found(&text[from..at], from);
                start = None;
            }
            _ => {}
        }
    }
}

/// Words that say something: four letters or more (two where letters are no ASCII), and no grammar.
fn is_content(word: &str) -> bool {
    const GRAMMAR: [&str; 44] = [
        "that", "this", "with", "from", "have", "will", "your", "what", "when", "then", "them", "they",
        "there", "here", "into", "also", "which", "were", "been", "would", "could", "should", "about",
        "these", "those", "some", "more", "than", "only", "just", "like", "each", "does", "done", "where",
        "their", "while", "after", "before", "other", "such", "very", "both", "because",
    ];
    if !word.is_ascii() {
        return word.chars().count() >= 2;
    }
    word.len() >= 4 && !GRAMMAR.contains(&word.to_ascii_lowercase().as_str())
}

/// Where the tokens of a text stand: runs of letters, digits and `_`; a character each in scripts without spaces.
pub(super) fn tokens(text: &str, found: &mut impl FnMut(std::ops::Range<usize>)) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let from = start + entities::numbering(line);
        let mut open: Option<usize> = None;
        let body = &text[from..start + line.len()];
        for (at, character) in body.char_indices() {
            let at = from + at;
            let dense = u32::from(character) >= 0x2E80 && character.is_alphanumeric();
            let part = !dense && (character.is_alphanumeric() || character == '_');
            if let (Some(begun), false) = (open, part) {
                found(begun..at);
                open = None;
            }
            if dense {
                found(at..at + character.len_utf8());
            } else if part && open.is_none() {
                open = Some(at);
            }
        }
        start += line.len();
        if let Some(begun) = open {
            found(begun..start);
        }
    }
}

/// Hashes of the spans of eight tokens, and the bytes that each stands at.
pub(super) fn spans(text: &str, found: &mut impl FnMut(u64, std::ops::Range<usize>)) {
    let mut window: Vec<(u64, std::ops::Range<usize>)> = Vec::with_capacity(SPAN + 1);
    tokens(text, &mut |range| {
        if window.len() == SPAN {
            window.remove(0);
        }
        window.push((hash(&text[range.clone()]), range));
        if let [first, .., last] = window.as_slice()
            && window.len() == SPAN
        {
            let different: HashSet<u64> = window.iter().map(|(token, _)| *token).collect();
            if different.len() >= LEAST_DIFFERENT {
                let span = window.iter().fold(0, |span: u64, (token, _)| span.rotate_left(7) ^ token);
                found(span.wrapping_mul(0x9E37_79B9_7F4A_7C15), first.1.start..last.1.end);
            }
        }
    });
}
