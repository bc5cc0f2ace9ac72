//! A cut of a transcript: what was needed after it, and how much of that a context holds.

use super::Compactor;
use super::page::clipped;
use super::search::Archive;
use super::text::{Lexed, Stub, Text, Voice, spans, texts};
use crate::entities::{Generic, Kind, entities, hash};
use crate::transcript::Turn;
use context_compactor_core::message::{Message, Part, Role, ToolCall, ToolResult};
use context_compactor_core::tokens::Estimator;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Characters around a mention that are its context.
pub(super) const REACH: usize = 280;
/// Words of its own context that a mention must stand beside.
const WORDS: usize = 2;
/// Passages that a search shows.
const PASSAGES: usize = 10;

/// An entity that the agent went on to write from memory.
#[derive(Debug, Clone)]
pub struct Need {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Hashes of the content words around it.
    pub words: HashSet<u64>,
    /// Calls that it, or their results, hold it.
    pub stubs: HashSet<Stub>,
    /// Its place among what a search with the agent's own words finds, from 0.
    pub rank: Option<usize>,
}

/// Shares of what was needed, 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Scores {
    /// Named.
    pub mention: f64,
    /// Named among its own words.
    pub context: f64,
    /// Spans held; nothing where none was copied.
    pub verbatim: Option<f64>,
    /// Named, or what holds it is.
    pub referenced: f64,
    /// Named, referenced, or found by a search.
    pub recoverable: f64,
    /// Entities that stand in the context and not in the prefix, of all that stand in the context. Numbers are none of
    /// them: a context may count what it left out, and name ranges of lines.
    pub invented: f64,
    /// Tokens of the context.
    pub tokens: usize,
}

/// A cut.
pub struct Case {
    /// The messages before the cut, as places in their transcript.
    pub prefix: Range<usize>,
    /// Those messages, without the app's instructions.
    turns: Vec<Turn>,
    /// Their texts.
    pub texts: Vec<Text>,
    /// Estimated tokens of all texts.
    pub tokens: usize,
    /// What was needed.
    pub needs: Vec<Need>,
    /// Spans that were copied.
    pub copied: HashSet<u64>,
    names: HashSet<u64>,
    by_name: HashMap<u64, usize>,
    estimator: Estimator,
}

impl Case {
    /// The cut between `prefix` and `future`; `source` is whose entities are not generic.
    pub fn new(
        prefix: &[Turn],
        future: &[Turn],
        source: &str,
        generic: &Generic,
        estimator: Estimator,
    ) -> Self {
        let is_told = |turn: &&Turn| turn.role != Role::System;
        let turns: Vec<Turn> = prefix.iter().filter(is_told).cloned().collect();
        let texts = texts(&messages(&turns));
        let lexed: Vec<Lexed> = texts.iter().map(|text| Lexed::of(&text.text)).collect();
        let names: HashSet<u64> =
            lexed.iter().flat_map(|lexed| lexed.names.iter().map(|(name, _, _)| *name)).collect();
        let instructions: Vec<&str> = prefix
            .iter()
            .chain(future)
            .filter(|turn| turn.role == Role::System)
            .map(|turn| turn.text.as_str())
            .collect();
        let future: Vec<Turn> = future.iter().filter(is_told).cloned().collect();
        let mut case = Case {
            prefix: 0..prefix.len(),
            tokens: texts.iter().map(|text| estimator.text(&text.text)).sum(),
            turns,
            texts,
            needs: Vec::new(),
            copied: HashSet::new(),
            names,
            by_name: HashMap::new(),
            estimator,
        };
        case.find_needs(&future, &instructions, source, generic);
        case.find_copied(&future, &instructions);
        for (text, lexed) in case.texts.iter().zip(&lexed) {
            for (name, _, place) in &lexed.names {
                if let Some(at) = case.by_name.get(name) {
                    let need = &mut case.needs[*at];
                    need.words.extend(lexed.near(*place, REACH));
                    need.stubs.extend(text.stub.clone());
                }
            }
        }
        case
    }

    fn find_needs(&mut self, future: &[Turn], instructions: &[&str], source: &str, generic: &Generic) {
        let mut told: HashSet<u64> = HashSet::new();
        for text in instructions {
            entities(text, &mut |_, name, _| {
                told.insert(hash(name));
            });
        }
        let of_future = texts(&messages(future));
        // Needs and the index of the message that wrote each first.
        let mut found: Vec<(Need, usize)> = Vec::new();
        for text in &of_future {
            let own = matches!(text.voice, Voice::Assistant | Voice::Call);
            entities(&text.text, &mut |kind, name, _| {
                let key = hash(name);
                let new = told.insert(key);
                if new && own && self.names.contains(&key) && !generic.is_generic(source, name) {
                    let (words, stubs) = Default::default();
                    found
                        .push((Need { name: name.to_owned(), kind, words, stubs, rank: None }, text.message));
                }
            });
        }
        let archive = Archive::new(&self.texts);
        let masked: HashSet<u64> = found.iter().map(|(need, _)| hash(&need.name)).collect();
        let mut asked: Option<(usize, Vec<usize>)> = None;
        for (mut need, message) in found {
            if asked.as_ref().is_none_or(|(of, _)| *of != message) {
                let intent = intent(&self.texts, &of_future, message, &masked);
                asked = Some((message, archive.search(&intent, PASSAGES)));
            }
            let hits = asked.as_ref().map_or(&[][..], |(_, hits)| hits);
            need.rank = hits.iter().position(|hit| archive.passage(*hit).contains(&need.name));
            self.by_name.insert(hash(&need.name), self.needs.len());
            self.needs.push(need);
        }
    }

    fn find_copied(&mut self, future: &[Turn], instructions: &[&str]) {
        let mut here = HashSet::new();
        for text in &self.texts {
            spans(&text.text, &mut |span, _| {
                here.insert(span);
            });
        }
        let mut told = HashSet::new();
        for text in instructions {
            spans(text, &mut |span, _| {
                told.insert(span);
            });
        }
        let mut message = Vec::new();
        let mut index = 0;
        for text in texts(&messages(future)) {
            if text.message != index {
                told.extend(message.drain(..));
                index = text.message;
            }
            spans(&text.text, &mut |span, _| {
                let own = matches!(text.voice, Voice::Assistant | Voice::Call);
                if own && here.contains(&span) && !told.contains(&span) {
                    self.copied.insert(span);
                }
                message.push(span);
            });
        }
    }

    /// The messages before the cut, as the engine reads them.
    pub fn messages(&self) -> Vec<Message<'_>> {
        messages(&self.turns)
    }

    /// Tokens of so many percent of the prefix.
    pub fn budget(&self, percent: usize) -> usize {
        self.tokens * percent / 100
    }

    /// What `compactor` retains in `percent` of the prefix's tokens. What is longer is cut off.
    pub fn measure(&self, compactor: &Compactor<'_>, percent: usize) -> Scores {
        let budget = self.budget(percent);
        self.score_within(&compactor(&self.messages(), budget), budget)
    }

    /// [`Case::score`] of as much of a context as fits in `budget` tokens.
    pub fn score_within(&self, context: &str, budget: usize) -> Scores {
        self.score(clipped(context, budget, self.estimator))
    }

    /// How much of what was needed a context holds.
    pub fn score(&self, context: &str) -> Scores {
        let lexed = Lexed::of(context);
        let (mentioned, placed) = self.held(&lexed);
        let here: HashSet<u64> = lexed.names.iter().map(|(name, _, _)| *name).collect();
        let named = lexed.names.iter().filter(|(_, kind, _)| *kind != Kind::Number);
        let named: HashSet<u64> = named.map(|(name, _, _)| *name).collect();
        let is_kept = |stub: &Stub| match stub {
            Stub::Path(path) => here.contains(path),
            Stub::Argument(start) => context.contains(start.as_str()),
        };
        let mut kept: HashMap<&Stub, bool> = HashMap::new();
        let mut referenced = 0;
        let mut recoverable = 0;
        for (need, named) in self.needs.iter().zip(&mentioned) {
            let found =
                *named || need.stubs.iter().any(|stub| *kept.entry(stub).or_insert_with(|| is_kept(stub)));
            referenced += usize::from(found);
            recoverable += usize::from(found || need.rank.is_some());
        }
        let mut spans_here = HashSet::new();
        spans(context, &mut |span, _| {
            if self.copied.contains(&span) {
                spans_here.insert(span);
            }
        });
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        let count = |found: &[bool]| found.iter().filter(|found| **found).count();
        Scores {
            mention: share(count(&mentioned), self.needs.len()),
            context: share(count(&placed), self.needs.len()),
            verbatim: (!self.copied.is_empty()).then(|| share(spans_here.len(), self.copied.len())),
            referenced: share(referenced, self.needs.len()),
            recoverable: share(recoverable, self.needs.len()),
            invented: share(named.difference(&self.names).count(), named.len()),
            tokens: self.estimator.text(context),
        }
    }

    /// Which needs a text names, and which of them among their own words.
    pub(super) fn held(&self, lexed: &Lexed) -> (Vec<bool>, Vec<bool>) {
        let mut mentioned = vec![false; self.needs.len()];
        let mut placed = mentioned.clone();
        for (name, _, place) in &lexed.names {
            let Some(&at) = self.by_name.get(name) else { continue };
            mentioned[at] = true;
            if !placed[at] {
                let own: HashSet<u64> =
                    lexed.near(*place, REACH).filter(|word| self.needs[at].words.contains(word)).collect();
                placed[at] = own.len() >= WORDS;
            }
        }
        (mentioned, placed)
    }

    /// How tokens are counted.
    pub fn estimator(&self) -> Estimator {
        self.estimator
    }
}

/// What the agent says it is about to do in a message, without the names that it needs: prose and arguments; where that
/// is next to nothing, also what was said last before.
fn intent(prefix: &[Text], future: &[Text], message: usize, masked: &HashSet<u64>) -> String {
    let own = |text: &&Text| text.message == message && matches!(text.voice, Voice::Assistant | Voice::Call);
    let mut intent: String = future.iter().filter(own).map(|text| without(&text.text, masked)).collect();
    if intent.split_whitespace().count() < 12 {
        let earlier = future.iter().rev().filter(|text| text.message < message).chain(prefix.iter().rev());
        if let Some(said) =
            earlier.into_iter().find(|text| matches!(text.voice, Voice::Assistant | Voice::User))
        {
            let start: String = said.text.chars().take(600).collect();
            intent.push_str(&without(&start, masked));
        }
    }
    intent
}

fn without(text: &str, masked: &HashSet<u64>) -> String {
    let mut out = String::new();
    let mut from = 0;
    entities(text, &mut |_, name, range| {
        if masked.contains(&hash(name)) && range.start >= from {
            out.push_str(&text[from..range.start]);
            from = range.end;
        }
    });
    out.push_str(&text[from..]);
    out.push('\n');
    out
}

/// Turns as the engine's messages: prose, calls, results.
pub fn messages(turns: &[Turn]) -> Vec<Message<'_>> {
    let of = |turn| {
        let Turn { role, text, calls, results, .. }: &Turn = turn;
        let mut parts = Vec::new();
        parts.extend(results.iter().map(|result| {
            Part::ToolResult(ToolResult {
                call_id: Cow::Borrowed(&result.call_id),
                text: Cow::Borrowed(&result.text),
                is_error: result.is_error,
                media: Vec::new(),
                mark: None,
            })
        }));
        if !text.is_empty() {
            parts.push(Part::Text(Cow::Borrowed(text)));
        }
        parts.extend(calls.iter().map(|call| {
            Part::ToolCall(ToolCall {
                id: Cow::Borrowed(&call.id),
                name: Cow::Borrowed(&call.name),
                arguments: Cow::Borrowed(&call.arguments),
                caller: None,
            })
        }));
        Message { role: *role, parts }
    };
    turns.iter().map(of).collect()
}
