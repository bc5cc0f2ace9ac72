//! Texts put into a source. What is around others is put in first, and stays around them.

use std::collections::HashMap;
use std::ops::Range;

/// What stands at one place: ends of what is before it, then what begins there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    End,
    Begin,
}

struct Edit {
    at: Range<usize>,
    side: Side,
    nth: usize,
    text: String,
    numbers: Vec<usize>,
}

#[derive(Default)]
pub(crate) struct Edits(Vec<Edit>);

impl Edits {
    /// Puts `before` and `after` around a text, for the mutants with these numbers.
    pub(crate) fn around(&mut self, text: &Range<usize>, before: String, after: &str, numbers: Vec<usize>) {
        let nth = self.0.len();
        let (start, end) = (text.start..text.start, text.end..text.end);
        self.0.push(Edit { at: start, side: Side::Begin, nth, text: before, numbers: numbers.clone() });
        self.0.push(Edit { at: end, side: Side::End, nth, text: after.into(), numbers });
    }

    /// Puts a text behind what ends there.
    pub(crate) fn behind(&mut self, at: usize, text: String, numbers: Vec<usize>) {
        let nth = self.0.len();
        self.0.push(Edit { at: at..at, side: Side::End, nth, text, numbers });
    }

    /// Replaces a text that nothing else changes.
    pub(crate) fn replace(&mut self, at: Range<usize>, text: &str) {
        let nth = self.0.len();
        self.0.push(Edit { at, side: Side::Begin, nth, text: text.into(), numbers: Vec::new() });
    }

    /// The source with the edits, and which part of it each mutant is.
    pub(crate) fn apply(mut self, source: &str) -> (String, HashMap<usize, Range<usize>>) {
        let inner = |edit: &Edit| match edit.side {
            Side::Begin => edit.nth,
            Side::End => usize::MAX - edit.nth,
        };
        self.0.sort_by_key(|edit| (edit.at.start, edit.side, inner(edit)));
        let (mut text, mut from) = (String::new(), 0);
        let mut places: HashMap<usize, Range<usize>> = HashMap::new();
        for edit in self.0 {
            text.push_str(&source[from..edit.at.start]);
            from = edit.at.end;
            let start = text.len();
            text.push_str(&edit.text);
            for number in edit.numbers {
                let place = places.entry(number).or_insert(start..start);
                place.end = text.len();
            }
        }
        text.push_str(&source[from..]);
        (text, places)
    }
}
