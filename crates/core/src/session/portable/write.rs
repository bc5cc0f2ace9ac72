//! A context as a state, within the bytes that it may take.

use super::form::{Boundary, Cutout, EditedPiece, Portable, SummaryPiece, ViewPiece};
use super::read::{digits, text_of};
use super::{Link, clean_cuts, given};
use crate::compaction::BEGINS;
use crate::context::{Item, Offload, Origin, Placeholder, SummaryMeta};
use crate::error::Result;
use crate::keys::ids;
use crate::message::Role;
use crate::text;
use crate::wire::{self, Author, Format};
use serde_json_borrow::Value;

/// Boundaries that a state has at most.
const BOUNDARIES: usize = 8;
/// No summary is shortened to fewer characters.
const LEAST_CHARS: usize = 200;

/// A state that was written.
pub(crate) struct WrittenState {
    /// Its JSON text; `None` when it does not fit whatever is left out.
    pub text: Option<String>,
    /// It holds less than the context, so that it fits.
    pub is_shortened: bool,
}

impl Portable {
    /// Takes over a context. `items` are the app's messages, measured, and `links` the hashes of their beginnings.
    pub(crate) fn put(&mut self, context: &[Item], items: &[Item], links: &[Link]) -> Result<()> {
        (self.view, self.edits, self.edited) = Default::default();
        for item in context {
            if let Some(place) = item.origin.place() {
                match self.view.last_mut() {
                    Some(ViewPiece::Messages(_, to)) if *to == place.index => *to += 1,
                    _ => self.view.push(ViewPiece::Messages(place.index, place.index + 1)),
                }
            }
            match &item.origin {
                Origin::Message(_) => {}
                Origin::Edited { place, offloads, reasoning_removed } => {
                    self.edit(item, given(items, place.index)?, offloads, *reasoning_removed)?;
                }
                Origin::Summary { .. } => {
                    let piece = self.summarised(item, items)?;
                    self.view.extend(piece);
                }
                Origin::Acknowledgement => self.view.push(ViewPiece::Acknowledgement(item.body.to_string())),
            }
        }
        self.boundaries = boundaries(context, links);
        Ok(())
    }

    fn edit(
        &mut self,
        item: &Item,
        original: &Item,
        offloads: &[Offload],
        reasoning_removed: bool,
    ) -> Result<()> {
        let index = original.origin.place().map_or(0, |place| place.index);
        for offload in offloads {
            let stands = text_of(self.format, &item.body, offload.how, offload.nth)?.unwrap_or_default();
            if let Some(mut cutout) = self.cutout(index, offload, original)? {
                // Columns of databases have no NUL; where there is one, the whole message says it, escaped.
                let stands = stands.replace('\0', "\u{fffd}");
                cutout.put(offload.how, stands, &self.beginning(&offload.reference));
                // How the text began is the app's to say again.
                let line = self.first_line(&cutout, original)?;
                if let Some(more) = cutout.more.as_ref().and_then(|more| more.strip_suffix(&line))
                    && more.ends_with(BEGINS)
                {
                    cutout.more = Some(more.to_owned());
                }
                self.edits.push(cutout);
            }
        }
        if reasoning_removed {
            self.edited.push(EditedPiece { index, reasoning_removed, body: None });
        }
        if !matches!(self.edited(original), Ok(Some((body, _))) if body == item.body) {
            self.edited.retain(|edited| edited.index != index);
            self.edited.push(EditedPiece { index, reasoning_removed, body: Some(item.body.to_string()) });
        }
        Ok(())
    }

    /// What was taken out of a message; `None` where that has no such text.
    fn cutout(&self, index: usize, offload: &Offload, original: &Item) -> Result<Option<Cutout>> {
        let text = text_of(self.format, &original.body, offload.how, offload.nth)?;
        Ok(text.map(|text| {
            let (index, part, how) = (Some(index), offload.nth, Some(offload.how));
            Cutout { index, part, how, sha256: digits(&text), more: None, text: None }
        }))
    }

    fn summarised(&self, item: &Item, items: &[Item]) -> Result<Option<ViewPiece>> {
        let Origin::Summary { checkpoint, covers, quotes, prose, made } = &item.origin else {
            return Ok(None);
        };
        let mut retired = Vec::new();
        for (index, offload) in covers.iter().flat_map(|cover| &cover.offloads) {
            retired.extend(self.cutout(*index, offload, given(items, *index)?)?);
        }
        Ok(Some(ViewPiece::Summary(Box::new(SummaryPiece {
            checkpoint: checkpoint.to_string(),
            body: item.body.to_string(),
            covers: covers.iter().map(|cover| (cover.from, cover.to)).collect(),
            retired,
            quotes: quotes.iter().map(|place| place.index).collect(),
            prose: *prose,
            made: made.as_deref().cloned(),
        }))))
    }

    /// The state as text of at most so many bytes: the oldest stubs become bare references, the oldest checkpoints forget
    /// what they retired and are shortened.
    pub(crate) fn within(mut self, most: usize) -> Result<WrittenState> {
        let mut text = self.text();
        let is_shortened = text.len() > most;
        for at in 0..self.edits.len() {
            if text.len() > most && self.edits.get_mut(at).is_some_and(bare) {
                text = self.text();
            }
        }
        if text.len() > most {
            self.edited.iter_mut().for_each(|edited| edited.body = None);
            text = self.text();
        }
        for step in [forget, shorten] {
            for at in 0..self.view.len() {
                while text.len() > most
                    && let Some(piece) = self.view.get_mut(at)
                    && step(piece, self.format)
                {
                    text = self.text();
                }
            }
        }
        Ok(WrittenState { text: (text.len() <= most).then_some(text), is_shortened })
    }
}

/// Makes a stub a bare reference; false where it is one, or cannot be: an input is JSON.
fn bare(edit: &mut Cutout) -> bool {
    let how = edit.how();
    if how == Placeholder::Input || (edit.more.is_none() && edit.text.is_none()) {
        return false;
    }
    (edit.how, edit.more, edit.text) = (Some(how), None, None);
    true
}

/// Forgets what a checkpoint retired.
fn forget(piece: &mut ViewPiece, _: Format) -> bool {
    let ViewPiece::Summary(piece) = piece else { return false };
    let is_changed = !piece.retired.is_empty();
    piece.retired.clear();
    is_changed
}

/// Halves the text of a checkpoint; false when it is as short as may be.
fn shorten(piece: &mut ViewPiece, format: Format) -> bool {
    let ViewPiece::Summary(piece) = piece else { return false };
    let halved = |value: &Value<'_>| {
        let message = format.wire().read(0, value).ok()?;
        let own = message.text();
        let chars = own.chars().count();
        if chars <= LEAST_CHARS {
            return None;
        }
        let own = text::range(&own, 0, Some((chars / 2).max(LEAST_CHARS).min(chars - 1)));
        let author = if message.role == Role::Assistant { Author::Assistant } else { Author::User };
        Some(format.wire().text_message(author, &own, &piece.checkpoint, Some(value)))
    };
    let Some(body) = wire::parse(0, &piece.body).ok().and_then(|value| halved(&value)) else { return false };
    piece.body = body;
    // What stood behind its text is cut off.
    (piece.quotes, piece.prose) = (Vec::new(), 0);
    if let Some(made) = &mut piece.made {
        let SummaryMeta { level, number, created_at, original_tokens, .. } = std::mem::take(made);
        *made = SummaryMeta { level, number, created_at, original_tokens, ..SummaryMeta::default() };
    }
    true
}

/// Where the context may be cut, should the history be edited behind that: its end, the message before, whose successor may
/// still grow, and the ends of what replaces messages, newest first.
fn boundaries(context: &[Item], links: &[Link]) -> Vec<Boundary> {
    let cuts = clean_cuts(context.iter().map(|item| &item.origin));
    let is_ours = |at: usize| {
        let item = at.checked_sub(1).and_then(|at| context.get(at));
        item.is_some_and(|item| !matches!(item.origin, Origin::Message(_)))
    };
    let last = cuts.len().saturating_sub(2);
    let chosen = cuts.iter().enumerate().filter(|(nth, (at, _))| *nth >= last || is_ours(*at));
    let mut counts: Vec<usize> = chosen.map(|(_, (_, count))| *count).collect();
    counts.dedup();
    let newest = counts.into_iter().rev().take(BOUNDARIES);
    newest.filter_map(|n| Some(Boundary { n, hash: ids::hex(links.get(n)?) })).collect()
}
