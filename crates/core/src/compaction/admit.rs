//! Results that are too large to stand in a prompt even once (`S3.8`).

use super::calls::{Answered, answered};
use super::replace::{joined, moves};
use super::replacement::{Move, Replacement};
use super::reread::{self, may_reread};
use super::rung::{RungSpec, RungWork};
use crate::context::{Item, Placeholder};
use crate::error::Result;
use crate::log::View;
use crate::policy::{Rung, Trigger};
use crate::text;
use std::collections::HashMap;

/// Run before the first prompt that a result would stand in.
pub(super) const RUNG: RungSpec = RungSpec {
    rung: Rung::Admit,
    fires: |view, run, _| run.trigger != Trigger::None && (may_admit(view) || may_reread(view)),
    work: RungWork::Moves(propose, most),
    idle: |_| Some("no tool result is too large for a prompt"),
};

/// Where the law of `balanced` holds, a model that has no way back to a result reads all of it as long as there is room
/// (`W1`).
pub(super) fn may_admit(view: &View) -> bool {
    let settings = &view.settings;
    let is_full = view.usage.is_due || !view.fits();
    let is_told = settings.admits_at_once || settings.tool_policies.least_tokens().is_some();
    (is_told || settings.leaves.is_none() || view.references.by_model || is_full) && holds_large(view)
}

/// The size of the messages is known; only a large one is read.
fn holds_large(view: &View) -> bool {
    let (limit, own) =
        (view.settings.numbers.layered.large_output_tokens, view.settings.tool_policies.least_tokens());
    view.context.totals().largest > own.map_or(limit, |own| own.min(limit))
}

/// What would be stored: what is too large, and of the others what was read before.
fn propose(view: &View) -> Result<Vec<Move>> {
    with_rereads(view, if may_admit(view) { large(view)? } else { Vec::new() })
}

/// What it may ever store.
fn most(view: &View) -> Result<Vec<Move>> {
    with_rereads(view, large(view)?)
}

fn with_rereads(view: &View, mut found: Vec<Move>) -> Result<Vec<Move>> {
    let rereads = reread::propose(view, &found)?;
    found.extend(rereads);
    Ok(joined(found))
}

/// What would be stored and previewed: every result above `largeOutputTokens`.
fn large(view: &View) -> Result<Vec<Move>> {
    if !holds_large(view) {
        return Ok(Vec::new());
    }
    let numbers = view.settings.numbers.layered;
    let limit = numbers.large_output_tokens;
    let own = limits(view)?;
    let least = own.values().copied().min().map_or(limit, |own| own.min(limit));
    let is_large = |item: &Item| item.size.tokens > least;
    moves(view, 0.., Placeholder::Preview, &is_large, |piece| {
        let limit = own.get(&(piece.place.index, piece.nth)).copied().unwrap_or(limit);
        if piece.tokens(view) <= limit {
            return None;
        }
        // What is hardly shorter than the result is no preview of it.
        let chars = numbers.preview_chars.min(piece.text.chars().count() / 2);
        let preview = text::range(piece.text, 0, Some(chars));
        let write = |reference: &str| match view.references.named {
            true => format!("Output too large. Saved to: {reference}\nPreview:\n{preview}..."),
            false => format!(
                "Output too large, the rest is left out; look up a part of it if needed. Preview:\n{preview}..."
            ),
        };
        Some(Replacement::new(view, piece, Placeholder::Preview, write))
    })
}

/// The limits of results of tools of which the app says one.
fn limits(view: &View) -> Result<HashMap<(usize, usize), usize>> {
    let policies = &view.settings.tool_policies;
    if policies.least_tokens().is_none() {
        return Ok(HashMap::new());
    }
    let limit =
        |result: &Answered| Some(((result.index, result.nth), policies.max_tokens(&result.call.tool)?));
    Ok(answered(view)?.iter().filter_map(limit).collect())
}
