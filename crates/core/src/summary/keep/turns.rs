//! What happened, written turn by turn: each request with what was said, changed and run for it, the end in most detail.

use super::super::extractive::quote;
use super::super::text::{first_words, sentences};
use super::collect::KeepLayerBuilder;
use super::happened::{TurnEvent, What, shown};
use super::headings::HAPPENED;
use super::layer::{Beside, LEAST, Sections};
use crate::tokens::Estimator;
use std::collections::HashSet;

/// What the newest events take of the section, in percent; they are told in full.
const NEWEST: usize = 45;
/// More than the events that are kept: what is of one turn stays together.
const TURN: usize = 1 << 14;
/// Bytes of a request above what was done for it, where it is told whole,
const REQUEST: usize = 320;
/// and of the first line of a longer one.
const TITLE: usize = 160;
/// The same in a conversation without calls.
const WORDS: usize = 400;
/// Tokens of a conclusion, and of other events, by what they are.
const CONCLUSION: usize = 100;
const BRIEF: [(What, usize); 4] =
    [(What::Changed, 60), (What::Failed, 60), (What::Said, 50), (What::Ran, 50)];

/// Adds what happened to `layer`, in at most `room` tokens.
pub(super) fn add(layer: &mut Sections, kept: &KeepLayerBuilder, beside: &Beside<'_>, room: usize) {
    // A change that failed and was made later is told where it was made, which may be behind what the page is of.
    let state = beside.state.unwrap_or(&kept.state);
    let is_told = |event: &&TurnEvent| event.refused.is_none_or(|change| !state.was_made(change));
    let events: Vec<&TurnEvent> = kept.events.list().iter().filter(is_told).collect();
    let mut turns = Turns { layer, kept, beside, shown: HashSet::new(), headed: HashSet::new(), left: room };
    let newest = room.saturating_mul(NEWEST) / 100;
    for (nth, event) in events.iter().enumerate().rev() {
        let spent = room - turns.left;
        if spent + LEAST > newest {
            break;
        }
        turns.show(nth, event, (newest - spent).min(newest / 2));
    }
    // What each turn came to is its last word.
    let is_last =
        |nth: usize, turn: usize| events.get(nth + 1).is_none_or(|next| turns_of(kept, next) != turn);
    let mut last = HashSet::new();
    let mut said = None;
    for (nth, event) in events.iter().enumerate() {
        if event.what == What::Said {
            said = Some(nth);
        }
        if is_last(nth, turns_of(kept, event)) {
            last.extend(said.take());
        }
    }
    // Most of what is left for what the turns came to, and half of the rest for each kind of event.
    turns.each(&events, CONCLUSION, 4, |nth, _| last.contains(&nth));
    for (what, cap) in BRIEF {
        turns.each(&events, cap, 2, |_, event| event.what == what);
    }
}

/// How many requests came before an event, itself the number of its turn.
fn turns_of(kept: &KeepLayerBuilder, event: &TurnEvent) -> usize {
    kept.said.partition_point(|said| said.at <= event.at)
}

struct Turns<'a, 'b> {
    layer: &'a mut Sections,
    kept: &'a KeepLayerBuilder,
    beside: &'a Beside<'b>,
    shown: HashSet<usize>,
    headed: HashSet<usize>,
    left: usize,
}

impl Turns<'_, '_> {
    /// Shows events that are not shown yet, newest first, and leaves one part in so many of the room.
    fn each(
        &mut self,
        events: &[&TurnEvent],
        cap: usize,
        part: usize,
        wanted: impl Fn(usize, &TurnEvent) -> bool,
    ) {
        let least = self.left / part;
        for (nth, event) in events.iter().enumerate().rev() {
            if self.left < least + LEAST {
                return;
            }
            if !self.shown.contains(&nth) && wanted(nth, event) {
                self.show(nth, event, cap.min(self.left - least));
            }
        }
    }

    fn show(&mut self, nth: usize, event: &TurnEvent, cap: usize) {
        let turn = turns_of(self.kept, event);
        let heading = self.heading(turn);
        let estimator = self.layer.estimator;
        let of_heading = heading.as_deref().map_or(0, |heading| estimator.text(heading) + 2);
        if self.left < of_heading + LEAST {
            return;
        }
        // Four for the mark and the deeper lines.
        let cap = cap.min(self.left - of_heading).saturating_sub(4);
        let Some(text) = self.brief(event, cap, estimator) else { return };
        let order = turn * TURN;
        let mut spent = 0;
        if let Some(heading) = heading {
            spent += self.layer.put(HAPPENED, order, 0, &heading);
            self.headed.insert(turn);
        }
        spent += self.layer.put(HAPPENED, order + 1 + nth, 1, &text);
        self.left -= spent.min(self.left);
        self.shown.insert(nth);
    }

    /// What the turn was asked for, where it is not there yet; nothing before the first request.
    fn heading(&self, turn: usize) -> Option<String> {
        let said = turn.checked_sub(1).and_then(|at| self.kept.said.get(at))?;
        if self.headed.contains(&turn) {
            return None;
        }
        let text = said.text.trim();
        // A short request is told whole, of a page of text its title; where nothing but words passed, more of it.
        let whole = if self.kept.talks() { WORDS } else { REQUEST };
        let start = match text.len() <= whole {
            true => text,
            false if self.kept.talks() => first_words(text, WORDS),
            false => first_words(text.lines().next().unwrap_or(""), TITLE),
        };
        let cut = if start.len() < text.len() { " […]" } else { "" };
        Some(quote(&format!("> {}{cut}{}", start.trim_end(), self.label(said.position))).into_owned())
    }

    fn label(&self, position: usize) -> String {
        self.beside.labels.of(position).map_or_else(String::new, |label| format!(" [{label}]"))
    }

    /// An event in at most `cap` tokens: whole lines, then whole sentences, then what fits; nothing where that says too
    /// little.
    fn brief(&self, event: &TurnEvent, cap: usize, estimator: Estimator) -> Option<String> {
        let told = self.layer.short(&event.told());
        let whole = quote(&told);
        if estimator.text(&whole) <= cap {
            return Some(whole.into_owned());
        }
        let label =
            self.beside.labels.of(event.position).map(|label| format!(": {label}")).unwrap_or_default();
        let text = self.layer.short(&event.text);
        let own = estimator.text(&text);
        if !event.outcome.is_empty() && 2 * own <= cap {
            // What was done is whole. Three bytes of what came of it are a token at most.
            let outcome = shown(&self.layer.short(&event.outcome), 3 * (cap - own).saturating_sub(4));
            return Some(quote(&format!("{text} → {outcome}")).into_owned());
        }
        let outcome = match event.outcome.as_str() {
            "" => String::new(),
            // Half of the room, at four bytes a token.
            outcome => format!(" → {}", shown(&self.layer.short(outcome), 2 * cap)),
        };
        let room = cap.checked_sub(estimator.text(&outcome) + 12).filter(|room| *room >= LEAST / 2)?;
        let start = beginning(&text, room, estimator);
        let missing = text.chars().count().saturating_sub(start.chars().count());
        let cut = match missing {
            0 => String::new(),
            missing => format!(" [… {missing} characters left out{label}]"),
        };
        let told = format!("{}{cut}{outcome}", start.trim_end());
        Some(quote(&told).into_owned())
    }
}

/// The beginning of a text in at most `room` tokens.
fn beginning(text: &str, room: usize, estimator: Estimator) -> &str {
    let mut end = 0;
    let mut left = room;
    for line in text.split_inclusive('\n') {
        match left.checked_sub(estimator.text(line)) {
            Some(rest) => (left, end) = (rest, end + line.len()),
            None => {
                // As many sentences of it as fit.
                for sentence in sentences(line) {
                    let at = end_of(text, end, sentence);
                    match left.checked_sub(estimator.text(sentence)) {
                        Some(rest) => (left, end) = (rest, at),
                        None => break,
                    }
                }
                break;
            }
        }
    }
    // Half of the room, at four bytes a token.
    if end >= 2 * room {
        return text.get(..end).unwrap_or("");
    }
    // One long sentence.
    let tokens = estimator.text(text).max(1);
    let bytes = usize::try_from(text.len() as u128 * room as u128 / tokens as u128).unwrap_or(0);
    first_words(text, bytes)
}

/// Where `sentence`, a part of `text` behind `from`, ends in it.
fn end_of(text: &str, from: usize, sentence: &str) -> usize {
    text.get(from..).and_then(|rest| rest.find(sentence)).map_or(from, |at| from + at + sentence.len())
}
