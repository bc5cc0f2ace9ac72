//! What the user laid down, beside a summary: which of it goes on, and which finds no room.

use super::cut::Proposal;
use super::frame::text_in;
use super::redaction::without_secrets;
use crate::context::{Item, Origin, PinProposal};
use crate::error::Result;
use crate::log::View;
use crate::order;
use crate::policy::PinProposals;
use crate::summary;

/// Messages that the line of further rules lists.
const LISTED: usize = 16;

/// Messages of which a summary says more that holds on than is `proposed`; the newest, as many as a line may list.
pub(super) fn more(proposal: &Proposal, proposed: &[PinProposal]) -> Vec<usize> {
    let earlier = proposal.compress.iter().filter_map(|item| match &item.origin {
        Origin::Summary { made: Some(made), .. } => Some(made.more.iter().copied()),
        _ => None,
    });
    let is_whole = |open: &PinProposal| {
        proposed
            .iter()
            .any(|kept| kept.index == open.index && kept.constraints.len() == open.constraints.len())
    };
    let now = proposal.unanswered.iter().filter(|open| !is_whole(open)).map(|open| open.index);
    let all = order::by_key(earlier.flatten().chain(now).collect(), |index| *index as u64);
    let mut all: Vec<usize> = all;
    all.dedup();
    let first = all.len().saturating_sub(LISTED);
    all.split_off(first)
}

/// What the user laid down in `open` and `items` do not say.
pub(super) fn omitted(view: &View, open: &[PinProposal], items: &[Item]) -> Result<Vec<PinProposal>> {
    if view.settings.pin_proposals != PinProposals::Keep {
        return Ok(Vec::new());
    }
    let texts = items.iter().map(|item| text_in(view.format, item)).collect::<Result<Vec<_>>>()?.join("\n");
    let left = open.iter().map(|open| {
        let is_there = |sentence: &String| {
            let sentence = without_secrets(view, sentence.clone());
            texts.contains(&sentence)
                || summary::rules(&[sentence]).lines().next_back().is_some_and(|line| texts.contains(line))
        };
        let constraints = open.constraints.iter().filter(|sentence| !is_there(sentence)).cloned().collect();
        PinProposal { constraints, ..*open }
    });
    Ok(left.filter(|open| !open.constraints.is_empty()).collect())
}

/// What holds on of sessions that these come from.
pub(super) fn rules<'i>(items: impl Iterator<Item = &'i Item>) -> Vec<String> {
    let made = items.filter_map(|item| match &item.origin {
        Origin::Summary { made: Some(made), .. } => Some(&made.rules),
        _ => None,
    });
    made.flatten().cloned().collect()
}
