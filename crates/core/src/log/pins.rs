//! Pins (`S4.3`) as the state knows them.

use crate::context::PinProposal;
use crate::policy::Settings;

/// Sentences of messages that were summarised take up to one part in so many of the window: the newest.
const CARRIED_PART: usize = 10;

/// What of `open` goes on with a summary of `replaced` tokens, which must stay smaller than these.
pub(crate) fn carried(open: &[PinProposal], settings: &Settings, replaced: usize) -> Vec<PinProposal> {
    let mut room = (settings.window / CARRIED_PART).min(replaced / 2);
    let fits = |proposal: &&PinProposal| {
        let tokens: usize = proposal.constraints.iter().map(|text| settings.estimator.text(text) + 2).sum();
        let left = room.checked_sub(tokens);
        room = left.unwrap_or(0);
        left.is_some()
    };
    let newest: Vec<&PinProposal> = open.iter().rev().take_while(fits).collect();
    newest.into_iter().rev().cloned().collect()
}
