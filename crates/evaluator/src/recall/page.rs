//! Lines of a history and pages made of them: what the baselines are built from.

use super::text::{Voice, texts};
use context_compactor_core::message::Message;
use context_compactor_core::tokens::Estimator;
use std::collections::BTreeSet;

/// Longer lines are taken in pieces of this many bytes.
const PIECE: usize = 400;

/// A line of a history.
pub(super) struct Line {
    pub(super) message: usize,
    pub(super) voice: Voice,
    pub(super) text: String,
    pub(super) tokens: usize,
}

/// The lines of a history, long ones in pieces, empty ones left out.
pub(super) fn lines(messages: &[Message<'_>], estimator: Estimator) -> Vec<Line> {
    let mut lines = Vec::new();
    for text in texts(messages) {
        for piece in text.text.lines().flat_map(pieces).filter(|piece| !piece.trim().is_empty()) {
            // One for the line's break.
            let tokens = estimator.text(piece) + 1;
            lines.push(Line { message: text.message, voice: text.voice, text: piece.to_owned(), tokens });
        }
    }
    lines
}

/// A line in pieces, cut at blanks where there are any.
pub(super) fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = rest.len().min(PIECE);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        if end < rest.len()
            && let Some(blank) = rest[..end].rfind(' ').filter(|blank| *blank > PIECE / 2)
        {
            end = blank + 1;
        }
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// Lines chosen for a page.
pub(super) struct Page<'l> {
    lines: &'l [Line],
    chosen: BTreeSet<usize>,
    left: usize,
}

impl<'l> Page<'l> {
    pub(super) fn new(lines: &'l [Line], budget: usize) -> Self {
        Page { lines, chosen: BTreeSet::new(), left: budget }
    }

    /// Takes lines, in this order, until `budget` tokens are spent or one does not fit any more.
    pub(super) fn take(&mut self, order: impl IntoIterator<Item = usize>, budget: usize) {
        let mut budget = budget.min(self.left);
        for at in order {
            let Some(line) = self.lines.get(at).filter(|_| !self.chosen.contains(&at)) else { continue };
            if line.tokens > budget {
                return;
            }
            budget -= line.tokens;
            self.left -= line.tokens;
            self.chosen.insert(at);
        }
    }

    /// Takes the newest lines.
    pub(super) fn take_tail(&mut self, budget: usize) {
        self.take((0..self.lines.len()).rev(), budget);
    }

    /// What is left to spend.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// The first line taken from the end on, all later ones taken too.
    pub(super) fn tail_start(&self) -> usize {
        (0..self.lines.len())
            .rev()
            .take_while(|at| self.chosen.contains(at))
            .last()
            .unwrap_or(self.lines.len())
    }

    /// The chosen lines in the order of the history.
    pub(super) fn text(&self) -> String {
        let chosen: Vec<&str> = self.chosen.iter().map(|at| self.lines[*at].text.as_str()).collect();
        chosen.join("\n")
    }
}

/// The beginning of a text in so many tokens, whole lines.
pub(super) fn clipped(text: &str, budget: usize, estimator: Estimator) -> &str {
    let fits = |text: &str| estimator.text(text) <= budget;
    if fits(text) {
        return text;
    }
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let fitting = ends.partition_point(|end| fits(&text[..*end]));
    fitting.checked_sub(1).map_or("", |last| &text[..ends[last]])
}
