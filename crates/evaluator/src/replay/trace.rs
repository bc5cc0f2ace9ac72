//! A transcript as a replay takes it: calls, sizes, needs.

use super::needs::{Memory, Need, Part, long_texts};
use crate::transcript::{Billed, Transcript};
use context_compactor_core::message::Role;
use context_compactor_core::tokens::Estimator;
use std::collections::HashMap;

/// Names that the prose of a summary holds.
const NAMES_OF_SUMMARY: usize = 100;
/// The system prompt and the tools of an agent, where nobody reported a prompt.
const STABLE: usize = 20_000;
/// A call whose prompt the provider had this share of in its cache missed it.
const MISS: f64 = 0.5;

/// A transcript, to be replayed.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The transcript's.
    pub id: String,
    /// The transcript's.
    pub source: String,
    /// The transcript's.
    pub domain: String,
    /// Tokens of the system prompt and the tools.
    pub stable: usize,
    /// Those of them that the provider had in its cache before the first call: other conversations have them too.
    pub shared: usize,
    /// Tokens of each message.
    pub sizes: Vec<usize>,
    /// Sums of `sizes`: of the messages before each, and of all.
    pub before: Vec<usize>,
    /// Tokens of the tool results of each message.
    pub results: Vec<usize>,
    /// The results of tools, in order.
    pub answers: Vec<Answer>,
    /// Answers of the model before each message, and in all.
    pub spoken: Vec<usize>,
    /// The calls of the model, in order.
    pub calls: Vec<Call>,
    /// Calls before which the agent itself compacted.
    pub compacted: Vec<usize>,
}

/// The result of a tool, and the input that it answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its message.
    pub message: usize,
    /// Its tokens.
    pub tokens: usize,
    /// The message of its call.
    pub call: usize,
    /// Tokens of the call's input.
    pub input: usize,
    /// Tokens of the input's long texts, and how many there are.
    pub long: (usize, usize),
}

impl Answer {
    /// What leaves the context when it is cleared: where, and how many tokens less that is. What has few tokens stays.
    pub fn clears(&self, least: usize, inputs: bool) -> impl Iterator<Item = (usize, Part, usize)> {
        let result =
            (self.tokens > least).then(|| (self.message, Part::Result, self.tokens.saturating_sub(STUB)));
        let (tokens, texts) = self.long;
        let input = (inputs && texts > 0 && self.input > least)
            .then(|| (self.call, Part::Input, tokens.saturating_sub(texts * STUB)));
        result.into_iter().chain(input).filter(|(_, _, frees)| *frees > 0)
    }
}

/// Tokens of what stands where a text was: its reference, its length and how it begins.
const STUB: usize = 80;

/// A call of the model.
#[derive(Debug, Clone)]
pub struct Call {
    /// The messages before this one are its prompt.
    pub upto: usize,
    /// The exchange that it goes on from begins with this message: no compaction takes it away.
    pub exchange: usize,
    /// Tokens of the answer.
    pub output: usize,
    /// The provider had forgotten the prompt, as it reported.
    pub is_cold: bool,
    /// The user has just spoken.
    pub is_turn: bool,
    /// What the answer needs of earlier messages.
    pub needs: Vec<Need>,
    /// Names that a summary written before the call holds.
    pub salient: Vec<u32>,
}

/// What the provider reported about calls, once for each.
pub fn reported(transcript: &Transcript) -> Vec<Billed> {
    let mut reported: Vec<Billed> = Vec::new();
    for billed in &transcript.billed {
        let is_models = transcript.messages.get(billed.msg).is_some_and(|turn| turn.role == Role::Assistant);
        let is_again = reported.last().is_some_and(|last| {
            (last.input, last.cache_read, last.cache_write)
                == (billed.input, billed.cache_read, billed.cache_write)
        });
        if is_models && !is_again {
            reported.push(*billed);
        }
    }
    reported
}

/// Tokens that the provider had in its cache before the first call.
pub fn shared(reported: &[Billed]) -> usize {
    reported.first().map_or(0, |first| first.cache_read as usize)
}

/// Tokens of a reported prompt.
pub fn prompt(billed: &Billed) -> usize {
    (billed.input + billed.cache_read + billed.cache_write) as usize
}

impl Trace {
    /// Reads a transcript. Where the provider reported its prompts, sizes are what it counted.
    pub fn of(transcript: &Transcript) -> Self {
        let reported = reported(transcript);
        let turns = &transcript.messages;
        let starts = starts(transcript, &reported);
        let (sizes, stable) = sizes(transcript, &reported, &starts);
        let mut memory = Memory::default();
        let mut heard = 0;
        let mut calls = Vec::new();
        for (nth, (upto, end)) in starts.iter().copied().enumerate() {
            for (at, turn) in turns.iter().enumerate().take(upto).skip(heard) {
                memory.hear(at, turn);
            }
            let mut needs: Vec<Need> = Vec::new();
            for (at, turn) in turns.iter().enumerate().take(end).skip(upto) {
                needs.extend(memory.needs(turn));
                memory.hear(at, turn);
            }
            needs.retain(|need| need.source < upto);
            needs.sort_by_key(|need| (need.source, need.part));
            heard = end.max(upto);
            let before = nth.checked_sub(1).and_then(|before| reported.get(before));
            let is_cold = match (before, reported.get(nth)) {
                (Some(before), Some(now)) => {
                    let could = prompt(before).min(prompt(now));
                    (now.cache_read as f64) < could as f64 * MISS
                }
                (None, Some(_)) => true,
                _ => nth == 0,
            };
            let output = sizes[upto..end].iter().sum::<usize>();
            calls.push(Call {
                upto,
                exchange: nth.checked_sub(1).and_then(|before| starts.get(before)).map_or(0, |start| start.0),
                output: output.max(reported.get(nth).map_or(0, |billed| billed.output as usize)),
                is_cold,
                is_turn: upto > 0 && turns[upto - 1].role == Role::User && turns[upto - 1].results.is_empty(),
                needs,
                salient: memory.salient(NAMES_OF_SUMMARY),
            });
        }
        let mut before = vec![0];
        for size in &sizes {
            before.push(before.last().copied().unwrap_or_default() + size);
        }
        let results = turns.iter().zip(&sizes).map(|(turn, size)| {
            let of_results: usize = turn.results.iter().map(|result| result.text.len()).sum();
            let written = turn.text.len() + turn.calls.iter().map(|call| call.arguments.len()).sum::<usize>();
            if of_results == 0 { 0 } else { share(*size, of_results, of_results + written) }
        });
        let results = results.collect();
        let mut spoken = vec![0];
        for turn in turns {
            spoken
                .push(spoken.last().copied().unwrap_or_default() + usize::from(turn.role == Role::Assistant));
        }
        let answers = answers(transcript, &sizes);
        let call_after = |at: usize| calls.iter().position(|call| call.upto > at);
        let compacted = transcript.compacted.iter().filter_map(|at| call_after(*at)).collect();
        Trace {
            id: transcript.id.clone(),
            source: transcript.source.clone(),
            domain: transcript.domain.clone(),
            stable,
            shared: stable.min(shared(&reported)),
            before,
            results,
            answers,
            spoken,
            compacted,
            sizes,
            calls,
        }
    }

    /// Tokens of the largest prompt, were nothing ever compacted.
    pub fn largest(&self) -> usize {
        self.calls.last().map_or(0, |call| self.stable + self.before[call.upto])
    }

    /// Tokens of the messages `from .. to`.
    pub fn between(&self, from: usize, to: usize) -> usize {
        self.before[to] - self.before[from.min(to)]
    }
}

/// The results with the calls that they answer: ids repeat, so each answers the last call of its id.
fn answers(transcript: &Transcript, sizes: &[usize]) -> Vec<Answer> {
    let estimator = Estimator::default();
    let mut waiting: HashMap<&str, Vec<(usize, &str)>> = HashMap::new();
    let mut answers = Vec::new();
    for (at, turn) in transcript.messages.iter().enumerate() {
        // As the message's own tokens were corrected.
        let counted =
            |at: usize, text: &str| share(estimator.text(text), sizes[at], transcript.messages[at].tokens);
        for call in &turn.calls {
            waiting.entry(&call.id).or_default().push((at, &call.arguments));
        }
        for result in &turn.results {
            let Some((call, arguments)) = waiting.get_mut(&*result.call_id).and_then(Vec::pop) else {
                continue;
            };
            let texts = long_texts(arguments);
            answers.push(Answer {
                message: at,
                tokens: counted(at, &result.text),
                call,
                input: counted(call, arguments),
                long: (texts.iter().map(|text| counted(call, text)).sum(), texts.len()),
            });
        }
    }
    answers
}

/// So much of `of` as `part` is of `whole`. Where addresses have 32 bits, the product needs more.
fn share(of: usize, part: usize, whole: usize) -> usize {
    (of as u64 * part as u64 / whole.max(1) as u64) as usize
}

/// Of each call the messages of its prompt, and where its answer ends.
fn starts(transcript: &Transcript, reported: &[Billed]) -> Vec<(usize, usize)> {
    let turns = &transcript.messages;
    let is_models = |at: usize| turns[at].role == Role::Assistant;
    if reported.is_empty() {
        let firsts = (0..turns.len()).filter(|at| is_models(*at) && (*at == 0 || !is_models(*at - 1)));
        return firsts
            .map(|at| (at, (at..turns.len()).find(|end| !is_models(*end)).unwrap_or(turns.len())))
            .collect();
    }
    let mut from = 0;
    let mut starts = Vec::new();
    for billed in reported {
        // The first message of the answer that ends here.
        let first = (from..=billed.msg).rev().take_while(|at| is_models(*at)).last().unwrap_or(billed.msg);
        starts.push((first, billed.msg + 1));
        from = billed.msg + 1;
    }
    starts
}

/// Tokens of every message, and of what stands before them all.
fn sizes(transcript: &Transcript, reported: &[Billed], starts: &[(usize, usize)]) -> (Vec<usize>, usize) {
    let estimated: Vec<usize> = transcript.messages.iter().map(|turn| turn.tokens).collect();
    let sum = |from: usize, to: usize| estimated[from..to].iter().sum::<usize>();
    let grown: Vec<(usize, usize, usize, usize)> = (1..reported.len())
        .filter_map(|nth| {
            let growth = prompt(&reported[nth]).checked_sub(prompt(&reported[nth - 1]))?;
            let (from, to) = (starts[nth - 1].0, starts[nth].0);
            (growth > 0 && sum(from, to) > 0).then_some((from, to, growth, sum(from, to)))
        })
        .collect();
    let (counted, guessed) = grown.iter().fold((0, 0), |sums, one| (sums.0 + one.2, sums.1 + one.3));
    let factor = if guessed == 0 { 1.0 } else { (counted as f64 / guessed as f64).clamp(0.5, 3.0) };
    let mut sizes: Vec<usize> = estimated.iter().map(|tokens| (*tokens as f64 * factor) as usize).collect();
    for (from, to, growth, guess) in grown {
        for at in from..to {
            sizes[at] = share(estimated[at], growth, guess);
        }
    }
    let stable = match (reported.first(), starts.first()) {
        (Some(first), Some(start)) => prompt(first).saturating_sub(sizes[..start.0].iter().sum()),
        _ => transcript.stable.unwrap_or(STABLE),
    };
    (sizes, stable)
}
