//! What the best choice of lines would retain, knowing what will be needed: greedy coverage of one metric by tokens.

use super::case::{Case, Scores};
use super::page::pieces;
use super::text::{Lexed, spans};
use crate::entities::hash;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::ops::Range;

/// Mentions of one need that are looked at, evenly taken.
const MENTIONS: usize = 24;
/// Lines before and after a mention that may come along for its words.
const AROUND: usize = 3;

/// Which metric an oracle serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// T1.
    Mention,
    /// T2.
    Context,
    /// T3.
    Verbatim,
}

impl Tier {
    /// The metric of scores.
    pub fn of(self, scores: &Scores) -> Option<f64> {
        match self {
            Tier::Mention => Some(scores.mention),
            Tier::Context => Some(scores.context),
            Tier::Verbatim => scores.verbatim,
        }
    }
}

/// A passage of the prefix and what it covers.
struct Passage {
    text: String,
    tokens: usize,
    covers: Vec<usize>,
}

/// Passages of a case in the order in which they are worth most.
pub struct Oracle(Vec<Passage>);

impl Oracle {
    /// The oracle of a case for one metric.
    pub fn new(case: &Case, tier: Tier) -> Self {
        Oracle(greedy(match tier {
            Tier::Mention => mentions(case, |held| held.0),
            Tier::Context => mentions(case, |held| held.1),
            Tier::Verbatim => copied(case),
        }))
    }

    /// What it writes in so many tokens.
    pub fn text(&self, budget: usize) -> String {
        let mut left = budget;
        let mut chosen = Vec::new();
        for passage in &self.0 {
            if passage.tokens <= left {
                left -= passage.tokens;
                chosen.push(passage.text.as_str());
            }
        }
        chosen.join("\n")
    }
}

/// Lines that name a need, alone and with lines around them.
fn mentions(case: &Case, covered: impl Fn((Vec<bool>, Vec<bool>)) -> Vec<bool>) -> Vec<Passage> {
    let needed: HashSet<u64> = case.needs.iter().map(|need| hash(&need.name)).collect();
    let lines: Vec<Vec<&str>> =
        case.texts.iter().map(|text| text.text.lines().flat_map(pieces).collect()).collect();
    let mut places: HashMap<u64, Vec<(usize, usize)>> = HashMap::new();
    for (nth, lines) in lines.iter().enumerate() {
        for (at, line) in lines.iter().enumerate() {
            for (name, _, _) in Lexed::of(line).names {
                if needed.contains(&name) {
                    places.entry(name).or_default().push((nth, at));
                }
            }
        }
    }
    let mut seen: HashSet<(usize, Range<usize>)> = HashSet::new();
    let mut passages = Vec::new();
    let mut names: Vec<_> = places.into_iter().collect();
    names.sort_unstable();
    for (_, places) in names {
        let step = places.len().div_ceil(MENTIONS);
        for (nth, at) in places.into_iter().step_by(step) {
            let lines = &lines[nth];
            for around in 0..=AROUND {
                let range = at.saturating_sub(around.div_ceil(2))..(at + 1 + around / 2).min(lines.len());
                if !seen.insert((nth, range.clone())) {
                    continue;
                }
                let text = lines[range].join("\n");
                let covers = covered(case.held(&Lexed::of(&text)));
                let covers: Vec<usize> = (0..covers.len()).filter(|need| covers[*need]).collect();
                if !covers.is_empty() {
                    passages.push(Passage { tokens: case.estimator().text(&text) + 1, text, covers });
                }
            }
        }
    }
    passages
}

/// Stretches of the prefix that were copied, in pieces that are worth their overlap.
fn copied(case: &Case) -> Vec<Passage> {
    const STRETCH: usize = 48;
    let mut numbers: HashMap<u64, usize> = HashMap::new();
    let mut passages = Vec::new();
    for text in &case.texts {
        let mut stretch: Option<(Range<usize>, Vec<usize>)> = None;
        let mut close = |stretch: &mut Option<(Range<usize>, Vec<usize>)>| {
            if let Some((range, covers)) = stretch.take() {
                let text = text.text[range].to_owned();
                passages.push(Passage { tokens: case.estimator().text(&text) + 1, text, covers });
            }
        };
        spans(&text.text, &mut |span, range| {
            if !case.copied.contains(&span) {
                return close(&mut stretch);
            }
            let next = numbers.len();
            let number = *numbers.entry(span).or_insert(next);
            match &mut stretch {
                Some((whole, covers)) if covers.len() < STRETCH => {
                    whole.end = range.end;
                    covers.push(number);
                }
                _ => {
                    close(&mut stretch);
                    stretch = Some((range, vec![number]));
                }
            }
        });
        close(&mut stretch);
    }
    passages
}

/// Passages by what they add for their tokens. Lazy: a passage's worth only ever falls.
fn greedy(passages: Vec<Passage>) -> Vec<Passage> {
    let mut covered: HashSet<usize> = HashSet::new();
    let worth = |passage: &Passage, covered: &HashSet<usize>| {
        let new = passage.covers.iter().filter(|need| !covered.contains(need)).count();
        new * 1_000_000 / passage.tokens
    };
    let mut queue: BinaryHeap<(usize, Reverse<usize>)> =
        passages.iter().enumerate().map(|(at, passage)| (worth(passage, &covered), Reverse(at))).collect();
    let mut passages: Vec<Option<Passage>> = passages.into_iter().map(Some).collect();
    let mut order = Vec::new();
    while let Some((claimed, Reverse(at))) = queue.pop() {
        let Some(passage) = passages[at].as_ref() else { continue };
        let now = worth(passage, &covered);
        if now == 0 {
            continue;
        }
        if now < claimed {
            queue.push((now, Reverse(at)));
            continue;
        }
        covered.extend(&passage.covers);
        order.extend(passages[at].take());
    }
    order
}
