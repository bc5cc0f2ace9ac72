//! What the model writes from memory: runs of words that it copies from earlier messages, and names.

use crate::transcript::Turn;
use serde_json::Value;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Words of a run.
const RUN: usize = 8;
/// So many runs of one message that are copied make it needed; fewer are a turn of phrase.
const LEAST_RUNS: u32 = 3;

/// Which part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// What its author said, and short inputs of calls.
    Said,
    /// Inputs of calls that have long texts.
    Input,
    /// Results of tools.
    Result,
}

/// What a call needs of an earlier message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The newest message that has it.
    pub source: usize,
    /// Where it stands there.
    pub part: Part,
    /// Whole passages are copied from it, not only names.
    pub passage: bool,
    /// Names, as numbers.
    pub names: Vec<u32>,
}

/// Finds needs, message by message.
#[derive(Debug, Default)]
pub struct Memory {
    runs: HashMap<u64, (u32, Part)>,
    names: HashMap<String, u32>,
    /// Of each name, the newest message that has it, where it stands there, and how many have it.
    seen: Vec<(u32, Part, u32)>,
}

impl Memory {
    /// What the model's message `turn` needs of the messages so far. What it says itself is not heard yet.
    pub fn needs(&self, turn: &Turn) -> Vec<Need> {
        let mut found: HashMap<(u32, Part), (u32, Vec<u32>)> = HashMap::new();
        each_written(turn, &mut |_, text| {
            runs(text, &mut |run| {
                if let Some(source) = self.runs.get(&run) {
                    found.entry(*source).or_default().0 += 1;
                }
            });
            names(text, &mut |name| {
                if let Some(name) = self.names.get(name) {
                    let (source, part, _) = self.seen[*name as usize];
                    let names = &mut found.entry((source, part)).or_default().1;
                    if !names.contains(name) {
                        names.push(*name);
                    }
                }
            });
        });
        let needs = found.into_iter().map(|((source, part), (runs, mut names))| {
            names.sort_unstable();
            Need { source: source as usize, part, passage: runs >= LEAST_RUNS, names }
        });
        let mut needs: Vec<Need> = needs.filter(|need| need.passage || !need.names.is_empty()).collect();
        needs.sort_by_key(|need| (need.source, need.part));
        needs
    }

    /// Hears message `at`.
    pub fn hear(&mut self, at: usize, turn: &Turn) {
        let at = at as u32;
        let mut hear = |part: Part, text: &str| {
            runs(text, &mut |run| {
                self.runs.insert(run, (at, part));
            });
            names(text, &mut |name| match self.names.get(name) {
                Some(known) => {
                    let seen = &mut self.seen[*known as usize];
                    *seen = (at, part, seen.2 + u32::from(seen.0 != at));
                }
                None => {
                    self.names.insert(name.to_string(), self.seen.len() as u32);
                    self.seen.push((at, part, 1));
                }
            });
        };
        each_written(turn, &mut hear);
        turn.results.iter().for_each(|result| hear(Part::Result, &result.text));
    }

    /// The `most` names that a summary of what was heard would hold: those of many messages, and of late ones.
    pub fn salient(&self, most: usize) -> Vec<u32> {
        let newest = self.seen.iter().map(|seen| seen.0).max().unwrap_or_default();
        let mut ranked: Vec<(f64, u32)> = self
            .seen
            .iter()
            .enumerate()
            .map(|(name, (last, _, times))| {
                let age = f64::from(newest - last) / 100.0;
                (-f64::from(*times) / (1.0 + age), name as u32)
            })
            .collect();
        if ranked.len() > most {
            ranked.select_nth_unstable_by(most, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            ranked.truncate(most);
        }
        let mut names: Vec<u32> = ranked.into_iter().map(|(_, name)| name).collect();
        names.sort_unstable();
        names
    }
}

/// The texts of a message that its author wrote.
fn each_written(turn: &Turn, hear: &mut impl FnMut(Part, &str)) {
    hear(Part::Said, &turn.text);
    for call in &turn.calls {
        let part = if long_texts(&call.arguments).is_empty() { Part::Said } else { Part::Input };
        hear(part, &call.arguments);
    }
}

/// Texts of an input that are no longer than this stay where the engine clears inputs, in characters.
const LONG_TEXT: usize = 300;

/// The texts of a call's arguments that leave a context whose inputs are cleared.
pub(super) fn long_texts(arguments: &str) -> Vec<String> {
    fn walk(value: Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) if text.chars().count() > LONG_TEXT => found.push(text),
            Value::Array(values) => values.into_iter().for_each(|value| walk(value, found)),
            Value::Object(fields) => fields.into_iter().for_each(|(_, value)| walk(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    if arguments.len() > LONG_TEXT
        && let Ok(value) = serde_json::from_str::<Value>(arguments)
    {
        walk(value, &mut found);
    }
    found
}

fn runs(text: &str, found: &mut impl FnMut(u64)) {
    let mut window = [0_u64; RUN];
    let mut count = 0;
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let mut hasher = DefaultHasher::new();
        word.hash(&mut hasher);
        window.rotate_left(1);
        window[RUN - 1] = hasher.finish();
        count += 1;
        if count >= RUN {
            let mut hasher = DefaultHasher::new();
            window.hash(&mut hasher);
            found(hasher.finish());
        }
    }
}

/// Names that nobody can guess: paths by their last two parts, addresses, ids and long numbers.
fn names(text: &str, found: &mut impl FnMut(&str)) {
    let ends = |c: char| c.is_whitespace() || "\"'`()[]{}<>,;|\\".contains(c);
    for word in text.split(ends) {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        if word.len() < 5 || word.len() > 200 {
            continue;
        }
        if word.contains("://") {
            found(word);
        } else if word.contains('/') {
            let word = word.split(':').next().unwrap_or(word);
            let mut slashes = word.rmatch_indices('/').skip(1);
            let name = slashes.next().map_or(word, |(at, _)| &word[at + 1..]);
            if name.contains('.') {
                found(name);
            }
        } else if word.len() >= 7 && is_id(word) {
            found(word);
        }
    }
}

/// A hash, a ticket, an order, a long number: mostly digits and hexadecimal letters.
fn is_id(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let others =
        word.bytes().filter(|byte| !byte.is_ascii_hexdigit() && *byte != b'-' && *byte != b'_').count();
    digits * 4 >= word.len() && others * 4 <= word.len()
}
