//! Results made smaller right after they were retrieved, by the type of their tool (`S4.5`), but for those that are kept
//! whatever they are (`S4.6`).

use super::calls::{Answered, answered};
use super::replace::moves;
use super::replacement::{Move, Replaceable, Replacement};
use super::rung::{MOVES_LATER, RungSpec, RungWork};
use super::shape::{digest, is_error, is_structured};
use crate::context::{Item, KnownCall, Placeholder};
use crate::error::Result;
use crate::log::View;
use crate::policy::{Digest, Rung, ToolDigest, Trigger};
use std::collections::HashMap;
use std::rc::Rc;

/// Run before the first prompt that a result would stand in; a manual compaction summarises only.
pub(super) const RUNG: RungSpec = RungSpec {
    rung: Rung::Process,
    fires: |view, run, _| !run.trigger.is_wish() && run.trigger != Trigger::None && may_process(view),
    work: RungWork::Moves(propose, propose),
    idle: |trigger| match trigger {
        Trigger::Manual | Trigger::Model => Some(MOVES_LATER),
        _ => Some("no new tool result is long enough to be processed"),
    },
};

/// Whether a message is large enough that it could hold such a result.
pub(super) fn may_process(view: &View) -> bool {
    view.context.totals().largest >= view.settings.numbers.process.min_tokens
}

fn is_large(view: &View, item: &Item) -> bool {
    item.size.tokens >= view.settings.numbers.process.min_tokens
}

/// What would be stored and digested.
fn propose(view: &View) -> Result<Vec<Move>> {
    let settings = &view.settings;
    let (numbers, tools) = (settings.numbers.process, &settings.process_tools);
    // The floor asks whatever fires.
    if !may_process(view) {
        return Ok(Vec::new());
    }
    let kinds = answered(view)?.into_iter().filter(|result| !result.is_error).filter_map(|result| {
        let Answered { index, nth, call, .. } = result;
        let kind = match settings.tool_policies.digest(&call.tool) {
            Some(ToolDigest::As(kind)) => kind,
            Some(ToolDigest::None) => return None,
            None => tools.kind(&call.tool)?,
        };
        Some(((index, nth), (kind, call)))
    });
    let kinds: HashMap<(usize, usize), (Digest, Rc<KnownCall>)> = kinds.collect();
    let estimator = settings.estimator;
    moves(view, 0.., Placeholder::Processed, &|item| is_large(view, item), |piece| {
        let Replaceable { place, nth, text, .. } = piece;
        let (kind, call) = kinds.get(&(place.index, nth))?;
        let tokens = piece.tokens(view);
        let kept = tokens < numbers.min_tokens
            || tokens < numbers.structured_min_tokens && is_structured(text)
            || is_error(text);
        let digest = (!kept).then(|| digest(*kind, text, &call.arguments, &numbers)).flatten()?;
        let write =
            |reference: &str| format!("[{}; the whole result is at: {reference}]\n{digest}", kind.as_str());
        // A reference is as long as any other.
        let smaller = estimator.text(&write(&"x".repeat(30))) < tokens;
        // What takes much of the window is no digest of it.
        let short = estimator.text(&digest) <= settings.hard_limit / 4;
        (smaller && short).then(|| Replacement::new(view, piece, Placeholder::Processed, write))
    })
}
