//! A conversation that is longer than one request can be: which messages go into which request, what is asked about each
//! part, and what makes one summary of those of the parts.

use super::budget::{FRAMES, content, fitting, whole};
use super::facts::Fact;
use super::message_facts::NamedFacts;
use super::prompt::{KEPT_PART, PromptOptions, PromptTemplate, SummaryRequest, rejected};
use super::render::{Class, MessageBlock, Piece, ShownMessages, blocks_of};
use crate::error::Result;
use crate::message::{Exchanges, Message};
use std::borrow::Cow;
use std::ops::Range;

const PART: &str = include_str!("prompts/part.md");
const PARTS: &str = include_str!("prompts/parts.md");

/// Tokens that are kept free for the advice to the next attempt; of a small request a tenth.
const REJECTED_TOKENS: usize = 256;
/// What surrounds the summary of a part, in tokens.
const AROUND: usize = 24;

/// A part of a conversation: messages `of`, which take `tokens` in a request that has room for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The messages.
    pub(crate) of: Range<usize>,
    /// All tokens of the request for it, when nothing of it is shortened.
    pub(crate) tokens: usize,
}

impl PromptTemplate {
    /// The messages `all` in as few runs as fit a request each. They end where exchanges end; one that is too long is
    /// parted between its messages, and only a message that is too long by itself is not shown whole.
    pub(crate) fn split(
        &self,
        messages: &[Message<'_>],
        all: Range<usize>,
        options: &PromptOptions<'_>,
    ) -> Vec<Stretch> {
        let limit = options.max_input_tokens.unwrap_or(usize::MAX);
        let estimator = options.estimator;
        let taken = estimator.text(&self.system(PART, options)) + FRAMES;
        let room = (limit - reserve(limit)).saturating_sub(taken);
        let named = NamedFacts::default();
        let shown = ShownMessages { messages, of: all.clone(), named: &named, clean: &[] };
        let texts: Vec<String> = blocks_of(&shown, options).iter().map(whole).collect();
        let sizes: Vec<usize> = texts.iter().map(|text| estimator.text(text)).collect();
        let exchanges = Exchanges::of(messages);
        let ends: Vec<usize> =
            (all.start + 1..=all.end).filter(|end| exchanges.is_boundary(*end) || *end == all.end).collect();
        let measure = |of: Range<usize>| {
            let shown = texts.get(of.start - all.start..of.end - all.start).unwrap_or_default().concat();
            estimator.text(&content(&shown, of.len(), ""))
        };
        let mut runs = Vec::new();
        let mut start = all.start;
        while start < all.end {
            let left = room.saturating_sub(measure(start..start + 1));
            let guess = start + 1 + fitting(sizes.iter().skip(start + 1 - all.start), left);
            let fits = |end: usize| measure(start..end) <= room;
            let ends = ends.get(ends.partition_point(|end| *end <= start)..).unwrap_or_default();
            let end = longest(ends, guess, fits).unwrap_or_else(|| {
                // The exchange is too long, or the rest of one.
                let inside: Vec<usize> = (start + 1..ends.first().copied().unwrap_or(all.end)).collect();
                let end = longest(&inside, guess, fits).unwrap_or(start);
                // What is too long by itself is shown with what led to it.
                if measure(end..end + 1) > room { end + 1 } else { end }
            });
            runs.push(Stretch { of: start..end, tokens: (measure(start..end) + taken).min(limit) });
            start = end;
        }
        runs
    }

    /// The request for a summary of a part of a conversation, with its facts.
    ///
    /// Errors: as [`PromptTemplate::build`].
    pub(crate) fn part(
        &self,
        shown: &ShownMessages<'_>,
        options: &PromptOptions<'_>,
    ) -> Result<SummaryRequest> {
        let max_input_tokens = options.max_input_tokens.map(|limit| limit - reserve(limit));
        let blocks = blocks_of(shown, options);
        let indices = options.indices.and_then(|indices| indices.get(shown.of.clone()));
        self.request(blocks, shown.facts(), PART, &PromptOptions { max_input_tokens, indices, ..*options })
    }

    /// The request for one summary in the place of the summaries of parts, with the facts of all of them.
    ///
    /// Errors: as [`PromptTemplate::build`].
    pub(crate) fn merge(
        &self,
        texts: &[&str],
        facts: Vec<Fact>,
        options: &PromptOptions<'_>,
    ) -> Result<SummaryRequest> {
        let block = |text: &&'_ str| MessageBlock {
            open: "<message>\n".into(),
            clean: false,
            pieces: vec![Piece {
                before: "<previous_summary>\n".into(),
                text: Cow::Owned((*text).to_string()),
                after: "</previous_summary>\n".into(),
                class: Class::User,
                is_whole: false,
            }],
        };
        self.request(texts.iter().map(block).collect(), facts, PARTS, options)
    }

    /// Which summaries of parts, of these sizes, are made one by the same request. One group is all of them.
    pub(crate) fn groups(&self, sizes: &[usize], options: &PromptOptions<'_>) -> Vec<Range<usize>> {
        let limit = options.max_input_tokens.unwrap_or(usize::MAX);
        let estimator = options.estimator;
        let taken =
            estimator.text(&self.system(PARTS, options)) + estimator.text(&content("", 0, "")) + FRAMES;
        let room = limit.saturating_sub(taken + limit / KEPT_PART + reserve(limit));
        let costs: Vec<usize> = sizes.iter().map(|size| size + AROUND).collect();
        let mut groups = Vec::new();
        let mut start = 0;
        while start < costs.len() {
            // Two at least, or it would never end: what is too long is shortened then.
            let count = fitting(costs.iter().skip(start), room).max(2);
            let end = (start + count).min(costs.len());
            groups.push(start..end);
            start = end;
        }
        groups
    }
}

/// The same request, with what was wrong with the answer to it.
pub(crate) fn once_more(request: &SummaryRequest, reason: &str) -> SummaryRequest {
    let mut request = request.clone();
    if let Some(message) = request.messages.last_mut() {
        message.content += &rejected(reason);
    }
    request
}

fn reserve(limit: usize) -> usize {
    REJECTED_TOKENS.min(limit / 10)
}

/// The last of `ends`, ascending, that fits; looked for from near `guess` on, because looking takes time.
fn longest(ends: &[usize], guess: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    let fits_at = |at: usize| ends.get(at).is_some_and(|end| fits(*end));
    // Those before `low` fit, and from `high` on none does.
    let (mut low, mut high) = (0, ends.len());
    let mut at = ends.partition_point(|end| *end < guess).min(high.saturating_sub(1));
    let mut step = 1;
    while low < high {
        if fits_at(at) {
            low = at + 1;
            at = if high == ends.len() { (at + step).min(high - 1) } else { (low + high) / 2 };
        } else {
            high = at;
            at = if low == 0 { at.saturating_sub(step) } else { (low + high) / 2 };
        }
        step *= 2;
    }
    low.checked_sub(1).and_then(|at| ends.get(at)).copied()
}

#[cfg(test)]
mod tests {
    use super::{REJECTED_TOKENS, reserve};

    #[test]
    fn f39_a_tenth_of_a_small_window_is_held_back_for_a_second_request() {
        assert_eq!(reserve(1_000), 100);
        assert_eq!(reserve(usize::MAX), REJECTED_TOKENS);
    }
}
