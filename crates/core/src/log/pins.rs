//! Pins (`S4.3`) as the state knows them.

use super::record::SessionRow;
use super::view::View;
use crate::context::{Item, Origin, PinProposal};
use crate::error::Result;
use crate::message::Role;
use crate::policy::{PinProposals, Settings};
use crate::summary;
use crate::wire;

/// Sentences of messages that were summarised take up to one part in so many of the window: the newest.
const CARRIED_PART: usize = 10;

impl View {
    /// The proposals of these items that nobody answered: of the user's messages, and of those that summaries stand
    /// for.
    pub(crate) fn unanswered(&self, items: &[Item]) -> Result<Vec<PinProposal>> {
        let mut open = Vec::new();
        for item in items {
            open.append(&mut self.unanswered_of(item)?);
        }
        Ok(open)
    }

    /// Those of one of them.
    pub(crate) fn unanswered_of(&self, item: &Item) -> Result<Vec<PinProposal>> {
        if self.settings.pin_proposals == PinProposals::Off {
            return Ok(Vec::new());
        }
        let mut open = Vec::new();
        match &item.origin {
            Origin::Summary { made: Some(made), .. } => open.extend(made.proposed.iter().cloned()),
            origin if item.size.role == Role::User => {
                let Some(place) = origin.place() else { return Ok(open) };
                let value = wire::parse(place.index, &item.body)?;
                let message = self.format.wire().read(place.index, &value)?;
                open.extend(summary::proposal(place.index, &message, item.size.tokens));
            }
            _ => {}
        }
        open.retain(|proposal| !self.is_pinned(proposal.index) && !self.is_rejected(proposal.index));
        Ok(open)
    }
}

impl SessionRow {
    /// Notes that a message is pinned.
    pub(crate) fn pin(&mut self, index: usize, tokens: usize) {
        if let Err(at) = self.pins.binary_search(&index) {
            self.pins.insert(at, index);
            self.pinned_tokens = self.pinned_tokens.saturating_add(tokens);
        }
    }
}

/// What of `open` goes on with a summary of `replaced` tokens, which must stay smaller than these: the newest messages, and
/// of the one that is too much its first sentences.
pub(crate) fn carried(open: &[PinProposal], settings: &Settings, replaced: usize) -> Vec<PinProposal> {
    let mut room = (settings.window / CARRIED_PART).min(replaced / 2);
    let mut kept = Vec::new();
    for proposal in open.iter().rev() {
        let fits = |text: &&String| match room.checked_sub(settings.estimator.text(text) + 2) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        };
        let constraints: Vec<String> = proposal.constraints.iter().take_while(fits).cloned().collect();
        let is_whole = constraints.len() == proposal.constraints.len();
        if !constraints.is_empty() {
            kept.push(PinProposal { constraints, ..*proposal });
        }
        if !is_whole {
            break;
        }
    }
    kept.reverse();
    kept
}
