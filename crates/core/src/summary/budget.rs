//! Fits a conversation into the summariser's window: the largest texts give first, what the user said gives last.
//!
//! Every text is measured once. Its kind puts it in a tier; tier after tier, texts above a common cap are clipped to
//! that cap (water filling), never below [`FLOOR`]. If that is not enough, messages in the middle are left out. The
//! result is measured as a whole, because an estimate of a text is not the sum of those of its parts.

use super::prompt::{PREVIOUS, PromptOptions, REQUEST, fill};
use super::render::{CLOSE, Class, ClipAt, MessageBlock, Piece, clip, escape, without_base64};
use crate::error::{Error, Result};
use crate::order;
use crate::tokens::Estimator;
use std::borrow::Cow;
use std::ops::Range;

/// No text is clipped below this many tokens.
const FLOOR: usize = 40;

/// A prompt with less room than this for the conversation is not worth sending.
const LEAST_ROOM: usize = 200;

/// This many messages at the end are shortened with the user's, not before.
const NEWEST: usize = 4;

/// What the role frames of the two messages cost.
pub(super) const FRAMES: usize = 8;

/// The user message of a request.
pub(super) struct Fitted {
    /// Its text.
    pub(super) content: String,
    /// Ranges of it that were searched for secrets, and hold none: all lines of texts that are in it as they are.
    pub(super) searched: Vec<Range<usize>>,
    /// Something was shortened or left out for the budget.
    pub(super) truncated: bool,
}

/// The user message for `blocks` that fits beside `system` into `options.max_input_tokens`.
pub(super) fn fit(
    blocks: Vec<MessageBlock<'_>>,
    system: &str,
    ending: &str,
    options: &PromptOptions<'_>,
) -> Result<Fitted> {
    let (draft, sizes, room, empty) = match attempt(blocks, system, ending, options)? {
        Attempt::Whole(fitted) => return Ok(fitted),
        Attempt::TooLong { draft, sizes, room, empty } => (draft, sizes, room, empty),
    };
    let mut aim = room;
    for _ in 0..6 {
        let content = draft.write(&draft.cut(&sizes, aim));
        let used = options.estimator.text(&content.text);
        if used <= room {
            return Ok(content.fitted(true));
        }
        aim = aim.saturating_sub((used - room) + aim / 50 + 1);
    }
    Ok(empty.fitted(true))
}

/// The same where nothing has to be shortened for it; nothing else.
pub(super) fn unshortened(
    blocks: Vec<MessageBlock<'_>>,
    system: &str,
    ending: &str,
    options: &PromptOptions<'_>,
) -> Result<Option<Fitted>> {
    Ok(match attempt(blocks, system, ending, options)? {
        Attempt::Whole(fitted) => Some(fitted),
        Attempt::TooLong { .. } => None,
    })
}

/// What came of writing all of a conversation out.
enum Attempt<'a> {
    Whole(Fitted),
    /// `empty` is the message without the conversation, which fits into `room`.
    TooLong {
        draft: PromptDraft<'a>,
        sizes: Sizes,
        room: usize,
        empty: WrittenText,
    },
}

fn attempt<'a>(
    blocks: Vec<MessageBlock<'a>>,
    system: &str,
    ending: &'a str,
    options: &PromptOptions<'a>,
) -> Result<Attempt<'a>> {
    let estimator = options.estimator;
    let previous = options.previous_summary.map(str::trim).filter(|text| !text.is_empty());
    let draft = PromptDraft {
        blocks,
        previous: previous.map(|text| Piece {
            before: String::new(),
            text: without_base64(text),
            after: String::new(),
            class: Class::User,
            is_whole: false,
        }),
        ending,
        estimator,
    };
    let Some(limit) = options.max_input_tokens else {
        return Ok(Attempt::Whole(draft.write(&DraftCut::none()).fitted(false)));
    };
    let spent = estimator.text(system) + FRAMES;
    let room = limit.saturating_sub(spent);
    let sizes = draft.measure();
    // Only worth writing out when it can fit: a text is never much smaller than the sum of its parts.
    if sizes.texts <= room {
        let content = draft.write(&DraftCut::none());
        if estimator.text(&content.text) <= room {
            return Ok(Attempt::Whole(content.fitted(false)));
        }
    }
    let empty = draft.write(&DraftCut::all(&draft));
    let frame = estimator.text(&empty.text);
    if frame + LEAST_ROOM > room {
        let least = spent + frame + LEAST_ROOM;
        return Err(Error::option(
            "maxInputTokens",
            format!("{limit} tokens cannot hold the summary prompt; pass at least {least}"),
        ));
    }
    Ok(Attempt::TooLong { draft, sizes, room, empty })
}

/// A text that is written, and the ranges of it that are texts as they were read, of messages that hold no secret.
#[derive(Default)]
struct WrittenText {
    text: String,
    searched: Vec<Range<usize>>,
}

impl WrittenText {
    fn fitted(self, truncated: bool) -> Fitted {
        Fitted { content: self.text, searched: self.searched, truncated }
    }
}

/// A conversation before it is cut to size.
struct PromptDraft<'a> {
    blocks: Vec<MessageBlock<'a>>,
    previous: Option<Piece<'a>>,
    ending: &'a str,
    estimator: Estimator,
}

/// Tokens of every text, in the order of [`PromptDraft::pieces`].
struct Sizes {
    pieces: Vec<usize>,
    /// Sum of the texts alone.
    texts: usize,
    /// Tags of every message, counted generously.
    tags: Vec<usize>,
}

/// How a draft is cut: a cap for each tier, and the messages `from..to` left out.
#[derive(Clone, Copy)]
struct DraftCut {
    caps: [usize; 3],
    from: usize,
    to: usize,
}

impl DraftCut {
    fn none() -> DraftCut {
        DraftCut { caps: [usize::MAX; 3], from: 0, to: 0 }
    }

    fn all(draft: &PromptDraft<'_>) -> DraftCut {
        DraftCut { caps: [FLOOR; 3], from: 0, to: draft.blocks.len() }
    }

    fn cap(&self, tier: Option<usize>) -> usize {
        tier.and_then(|tier| self.caps.get(tier)).copied().unwrap_or(usize::MAX)
    }
}

impl PromptDraft<'_> {
    /// In which order a piece of message `index` gives: 0 first. `None` never.
    fn tier(&self, index: usize, class: Class) -> Option<usize> {
        let newest = index + NEWEST >= self.blocks.len();
        match class {
            Class::Placeholder => None,
            Class::User => Some(2),
            Class::Tool | Class::Prose if newest => Some(2),
            Class::Tool => Some(0),
            Class::Prose => Some(1),
        }
    }

    /// Every piece with its message and tier: those of the messages in order, then the previous summary.
    fn pieces(&self) -> impl Iterator<Item = (usize, Option<usize>, &Piece<'_>)> {
        let of_blocks = self.blocks.iter().enumerate().flat_map(move |(index, block)| {
            block.pieces.iter().map(move |piece| (index, self.tier(index, piece.class), piece))
        });
        of_blocks.chain(self.previous.iter().map(|piece| (usize::MAX, Some(2), piece)))
    }

    fn measure(&self) -> Sizes {
        let pieces: Vec<usize> =
            self.pieces().map(|(_, _, piece)| self.estimator.text(&escape(&piece.text))).collect();
        let texts = pieces.iter().sum();
        let tags = self.blocks.iter().map(|block| self.tags(block)).collect();
        Sizes { pieces, texts, tags }
    }

    /// Tokens of the tags of a message; one more for each text, for what joining adds.
    fn tags(&self, block: &MessageBlock<'_>) -> usize {
        let text = |text: &str| self.estimator.text(text) + 1;
        let inside: usize = block.pieces.iter().map(|p| text(&p.before) + text(&p.after) + 1).sum();
        text(&block.open) + text(CLOSE) + inside
    }

    /// The cut that brings the content to about `aim` tokens.
    fn cut(&self, sizes: &Sizes, aim: usize) -> DraftCut {
        let frame = self.estimator.text(REQUEST) + self.estimator.text(self.ending) + 32;
        let aim = aim.saturating_sub(frame);
        let mut cut = DraftCut::none();
        if self.level(&mut cut, sizes, aim) {
            return cut;
        }
        // Everything is at its floor and there are still too many messages: the middle goes.
        let mut costs = sizes.tags.clone();
        let mut summary = 0;
        for ((index, tier, _), &size) in self.pieces().zip(&sizes.pieces) {
            *costs.get_mut(index).unwrap_or(&mut summary) += size.min(cut.cap(tier));
        }
        let room = aim.saturating_sub(summary);
        // A quarter for how it began, the rest for where it is now.
        cut.from = fitting(costs.iter(), room / 4);
        let begun: usize = costs.iter().take(cut.from).sum();
        cut.to = costs.len() - fitting(costs.iter().skip(cut.from).rev(), room.saturating_sub(begun));
        // What the next message did not fit into goes to those that stay.
        self.level(&mut cut, sizes, aim);
        cut
    }

    /// Sets the caps for the messages that `cut` keeps; true when they then fit into `aim`.
    fn level(&self, cut: &mut DraftCut, sizes: &Sizes, aim: usize) -> bool {
        let kept = |index: usize| !(cut.from..cut.to).contains(&index);
        let mut tiers: [Vec<usize>; 3] = Default::default();
        let mut total: usize =
            sizes.tags.iter().enumerate().filter(|(index, _)| kept(*index)).map(|(_, &tags)| tags).sum();
        for ((_, tier, _), &size) in
            self.pieces().zip(&sizes.pieces).filter(|((index, _, _), _)| kept(*index))
        {
            total += size;
            if let Some(of_tier) = tier.and_then(|tier| tiers.get_mut(tier)) {
                of_tier.push(size);
            }
        }
        let mut excess = total.saturating_sub(aim);
        for (cap, of_tier) in cut.caps.iter_mut().zip(&mut tiers) {
            *cap = water_level(of_tier, excess);
            excess = excess.saturating_sub(of_tier.iter().map(|size| size.saturating_sub(*cap)).sum());
        }
        excess == 0
    }

    fn write(&self, cut: &DraftCut) -> WrittenText {
        let mut out = WrittenText::default();
        for (index, block) in self.blocks.iter().enumerate() {
            if (cut.from..cut.to).contains(&index) {
                if index == cut.from {
                    out.text.push_str(&format!("<omitted messages=\"{}\"/>\n", cut.to - cut.from));
                }
                continue;
            }
            write(&mut out, block, |piece| self.text(piece, cut.cap(self.tier(index, piece.class))));
        }
        let previous = self.previous.as_ref().map_or(String::new(), |piece| {
            let text = format!("{}\n", self.text(piece, cut.cap(Some(2))));
            fill(PREVIOUS, &[("previousSummary", &text)])
        });
        let text = content(&out.text, self.blocks.len(), &previous) + self.ending;
        let before = before_conversation(self.blocks.len(), &previous);
        let moved = |range: Range<usize>| before + range.start..before + range.end;
        WrittenText { text, searched: out.searched.into_iter().map(moved).collect() }
    }

    fn text<'p>(&self, piece: &'p Piece<'_>, cap: usize) -> Cow<'p, str> {
        let whole = escape(&piece.text);
        if cap == usize::MAX {
            return whole;
        }
        match self.estimator.text(&whole) {
            tokens if tokens > cap => {
                Cow::Owned(clip(&piece.text, tokens, cap, self.estimator, ClipAt::Anywhere, escape))
            }
            _ => whole,
        }
    }
}

/// Writes a block, its texts as `text` has them.
fn write<'p>(
    out: &mut WrittenText,
    block: &'p MessageBlock<'_>,
    text: impl Fn(&'p Piece<'_>) -> Cow<'p, str>,
) {
    let WrittenText { text: out, searched } = out;
    out.push_str(&block.open);
    for piece in &block.pieces {
        out.push_str(&piece.before);
        let (start, text) = (out.len(), text(piece));
        out.push_str(&text);
        if block.clean && piece.is_whole && matches!(text, Cow::Borrowed(_)) {
            searched.push(start..out.len());
        }
        out.push('\n');
        out.push_str(&piece.after);
    }
    out.push_str(CLOSE);
}

/// A block as it is in a request that has room for all of it.
pub(super) fn whole(block: &MessageBlock<'_>) -> String {
    let mut out = WrittenText::default();
    write(&mut out, block, |piece| escape(&piece.text));
    out.text
}

/// Bytes of a user message before the conversation.
fn before_conversation(count: usize, previous: &str) -> usize {
    let before = REQUEST.split_once("{conversation}").map_or("", |(before, _)| before);
    fill(before, &[("previousSummary", previous), ("count", &count.to_string())]).len()
}

/// A user message, without what follows the order to summarise it.
pub(super) fn content(conversation: &str, count: usize, previous: &str) -> String {
    let count = count.to_string();
    let values = [("previousSummary", previous), ("count", &count), ("conversation", conversation)];
    fill(REQUEST.trim_end(), &values)
}

/// The highest cap, not below [`FLOOR`], that takes `excess` away from `sizes`. Sorts them.
fn water_level(sizes: &mut [usize], excess: usize) -> usize {
    if excess == 0 {
        return usize::MAX;
    }
    order::sort(sizes, usize::gt);
    let mut above = 0;
    let mut sum = 0_usize;
    for (at, &size) in sizes.iter().enumerate() {
        above = at + 1;
        sum += size;
        let next = sizes.get(above).copied().unwrap_or(FLOOR).max(FLOOR);
        // Cutting the `above` largest down to `next` is enough: the level lies between them.
        if sum.saturating_sub(next * above) >= excess {
            return (sum.saturating_sub(excess) / above).max(FLOOR);
        }
        if next == FLOOR {
            break;
        }
    }
    if above == 0 { usize::MAX } else { FLOOR }
}

/// How many of the first costs fit into `room` together.
pub(super) fn fitting<'c>(costs: impl Iterator<Item = &'c usize>, mut room: usize) -> usize {
    costs
        .take_while(|&&cost| match room.checked_sub(cost) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        })
        .count()
}
