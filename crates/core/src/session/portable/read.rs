//! The context that a state and the app's messages make.

use super::form::{Cutout, Portable, SummaryPiece, ViewPiece};
use super::{Link, clean_cuts, corrupt, given};
use crate::compaction;
use crate::compaction::BEGINS;
use crate::context::{
    CoveredRange, Item, MessageSource, Offload, Origin, Place, Placeholder, conserve_origins,
};
use crate::error::Result;
use crate::keys::ids;
use crate::log::measure;
use crate::message::{Role, limits};
use crate::order;
use crate::policy::Settings;
use crate::step::Io;
use crate::wire::{self, Format, Unbound};
use std::rc::Rc;

/// Hex digits of a hash that a state keeps.
pub(super) const DIGITS: usize = 16;

/// A context that goes on from a state.
pub(crate) struct Resumed {
    /// What stands for the first messages.
    pub items: Vec<Item>,
    /// How many those are.
    pub messages: usize,
    /// It is all that the state had.
    pub is_whole: bool,
}

impl Portable {
    /// The context of the longest beginning of the history that the state knows; `None` when it knows none. `items` are the
    /// app's messages, measured, and `links` the hashes of their beginnings.
    ///
    /// Errors: [`crate::Code::StoreCorrupt`] when what it says of messages that it knows cannot be.
    pub(crate) async fn resume(
        &self,
        io: &Io,
        settings: &Settings,
        items: &[Item],
        links: &[Link],
    ) -> Result<Option<Resumed>> {
        let mut known: Vec<usize> = Vec::new();
        for boundary in &self.boundaries {
            if links.get(boundary.n).is_some_and(|link| ids::hex(link) == boundary.hash) {
                known.push(boundary.n);
            }
        }
        order::sort(&mut known, usize::lt);
        let newest = self.boundaries.iter().map(|boundary| boundary.n).max();
        while let Some(messages) = known.pop() {
            let Some(pieces) = self.pieces(messages, newest.unwrap_or(0))? else { continue };
            let mut made = Vec::new();
            for piece in pieces {
                self.load(io, settings, items, piece, &mut made).await?;
            }
            conserve_origins(made.iter().map(|item| &item.origin), &[], messages)
                .map_err(|_| corrupt("what it says of the messages does not add up"))?;
            return Ok(Some(Resumed { items: made, messages, is_whole: newest == Some(messages) }));
        }
        Ok(None)
    }

    /// The pieces that stand for the first `messages` of the `most` that the view is of; `None` when one stands for others
    /// too.
    fn pieces(&self, messages: usize, most: usize) -> Result<Option<Vec<ViewPiece>>> {
        let (mut pieces, mut count) = (Vec::new(), 0_usize);
        for piece in &self.view {
            let (piece, more) = match piece {
                ViewPiece::Messages(from, to) => {
                    if from >= to || *to > most {
                        return Err(corrupt(format!(
                            "messages {from} to {to} are no run of {most} messages"
                        )));
                    }
                    let to = (*to).min(messages);
                    (ViewPiece::Messages(*from, to), to.saturating_sub(*from))
                }
                ViewPiece::Summary(summary) => {
                    let is_run = |(from, to): &(usize, usize)| from < to && *to <= most;
                    let is_in_order =
                        summary.covers.iter().zip(summary.covers.iter().skip(1)).all(|(a, b)| a.1 <= b.0);
                    if summary.covers.is_empty() || !is_in_order || !summary.covers.iter().all(is_run) {
                        return Err(corrupt(format!("a summary stands for no run of {most} messages")));
                    }
                    (piece.clone(), summary.covers.iter().map(|(from, to)| to - from).sum())
                }
                ViewPiece::Acknowledgement(_) => (piece.clone(), 0),
            };
            if count == messages && more > 0 {
                break;
            }
            if more > 0 || matches!(piece, ViewPiece::Acknowledgement(_)) {
                pieces.push(piece);
            }
            count = count.saturating_add(more);
            if count > messages {
                return Ok(None);
            }
        }
        let origins: Vec<Origin> = pieces.iter().flat_map(origins).collect();
        let is_clean = clean_cuts(origins.iter()).last() == Some(&(origins.len(), messages));
        Ok(is_clean.then_some(pieces))
    }

    async fn load(
        &self,
        io: &Io,
        settings: &Settings,
        items: &[Item],
        piece: ViewPiece,
        made: &mut Vec<Item>,
    ) -> Result<()> {
        match piece {
            ViewPiece::Messages(from, to) => {
                for item in items.get(from..to).unwrap_or_default() {
                    let edited = self.edited(item)?;
                    made.push(match edited {
                        Some((body, origin)) => {
                            let body = readable(self.format, &body)?;
                            sized(io, settings, self.format, body, origin).await?
                        }
                        None => item.clone(),
                    });
                }
            }
            ViewPiece::Summary(piece) => {
                let origin = self.summary(items, &piece)?;
                made.push(sized(io, settings, self.format, ours(self.format, &piece.body)?, origin).await?);
            }
            ViewPiece::Acknowledgement(body) => {
                let body = ours(self.format, &body)?;
                made.push(sized(io, settings, self.format, body, Origin::Acknowledgement).await?);
            }
        }
        Ok(())
    }

    /// The app's message, edited as it was; `None` when nothing was done to it.
    pub(super) fn edited(&self, item: &Item) -> Result<Option<(Rc<str>, Origin)>> {
        let place = item.origin.place().ok_or_else(|| corrupt("a message of the app is none"))?;
        let edits = self.edits.iter().filter(|edit| edit.index == Some(place.index));
        let more = self.edited.iter().find(|edited| edited.index == place.index);
        let mut offloads: Vec<Offload> = Vec::new();
        let mut body = Rc::clone(&item.body);
        for edit in edits {
            let offload = self.offload(edit, item)?;
            let text = match &edit.text {
                Some(text) => text.clone(),
                None => {
                    let more = edit.more.as_deref().unwrap_or_default();
                    let line =
                        if more.ends_with(BEGINS) { self.first_line(edit, item)? } else { String::new() };
                    self.beginning(&offload.reference) + more + &line
                }
            };
            let value = wire::parse(place.index, &body)?;
            let edited = compaction::with_text(self.format, &value, &offload, &text);
            body = Rc::from(edited.ok_or_else(|| corrupt("an edit does not fit its message"))?);
            offloads.push(offload);
        }
        if offloads.is_empty() && more.is_none() {
            return Ok(None);
        }
        let reasoning_removed = more.is_some_and(|more| more.reasoning_removed);
        if reasoning_removed {
            let value = wire::parse(place.index, &body)?;
            if let Unbound::Changed(json) = self.format.rules().without_bound_reasoning(&value) {
                body = json.into();
            }
        }
        if let Some(whole) = more.and_then(|more| more.body.as_ref()) {
            body = readable(self.format, whole)?;
        }
        let is_in_order = offloads.iter().zip(offloads.iter().skip(1)).all(|(a, b)| a.order() < b.order());
        if !is_in_order {
            return Err(corrupt("a text of a message was taken out twice"));
        }
        Ok(Some((body, Origin::Edited { place, offloads, reasoning_removed })))
    }

    fn summary(&self, items: &[Item], piece: &SummaryPiece) -> Result<Origin> {
        let mut covers: Vec<CoveredRange> = piece
            .covers
            .iter()
            .map(|(from, to)| CoveredRange { from: *from, to: *to, offloads: Vec::new() })
            .collect();
        for cutout in &piece.retired {
            let index = cutout.index.unwrap_or(usize::MAX);
            let cover = covers.iter_mut().find(|cover| (cover.from..cover.to).contains(&index));
            let cover = cover.ok_or_else(|| corrupt("a summary retires what it does not stand for"))?;
            cover.offloads.push((index, self.offload(cutout, given(items, index)?)?));
        }
        let is_covered = |index: &usize| piece.covers.iter().any(|(from, to)| (*from..*to).contains(index));
        if !piece.quotes.iter().all(is_covered) {
            return Err(corrupt("a summary quotes what it does not stand for"));
        }
        let quotes = piece.quotes.iter().filter_map(|index| items.get(*index)?.origin.place());
        let most = piece.body.len();
        let made = piece.made.as_ref();
        if piece.prose > most || made.is_some_and(|made| made.front > most || made.header > most) {
            return Err(corrupt("a summary is shorter than it says"));
        }
        Ok(Origin::Summary {
            checkpoint: piece.checkpoint.as_str().into(),
            covers: covers.into(),
            quotes: quotes.collect::<Vec<Place>>(),
            prose: piece.prose,
            made: made.cloned().map(Rc::new),
        })
    }

    /// What was taken out of a message of the app, as that has it.
    pub(super) fn offload(&self, cutout: &Cutout, item: &Item) -> Result<Offload> {
        let index = item.origin.place().map_or(usize::MAX, |place| place.index);
        let value = wire::parse(index, &item.body)?;
        let message = self.format.wire().read(index, &value)?;
        let texts = cutout.how().texts(&message);
        let text =
            texts.get(cutout.part).ok_or_else(|| corrupt(format!("message {index} has no such text")))?;
        let offload = self.offload_of(cutout, index, text);
        match offload.sha256.get(..DIGITS) == Some(cutout.sha256.as_str()) {
            true => Ok(offload),
            false => Err(corrupt(format!("message {index} says something else by now"))),
        }
    }

    /// The line that a preview of a text shows.
    pub(super) fn first_line(&self, cutout: &Cutout, item: &Item) -> Result<String> {
        let text = text_of(self.format, &item.body, cutout.how(), cutout.part)?;
        Ok(text.and_then(|text| compaction::first_line(&text)).unwrap_or_default())
    }

    /// The offload of a text.
    pub(super) fn offload_of(&self, cutout: &Cutout, index: usize, text: &str) -> Offload {
        let (nth, how) = (cutout.part, cutout.how());
        Offload {
            nth,
            reference: compaction::reference_of(&self.secret, index, how, nth),
            sha256: ids::sha256_hex(text.as_bytes()),
            chars: text.chars().count(),
            how,
            basis: None,
        }
    }

    /// All that was taken out of messages, each with the index that its message had.
    pub(crate) fn cutouts(&self) -> impl Iterator<Item = (usize, &Cutout)> {
        let retired = self.view.iter().flat_map(|piece| match piece {
            ViewPiece::Summary(piece) => piece.retired.as_slice(),
            _ => &[],
        });
        self.edits.iter().chain(retired).filter_map(|cutout| Some((cutout.index?, cutout)))
    }

    /// An offload whose message may stand elsewhere by now, with its text; `None` when no message has it any more.
    pub(crate) fn find(
        &self,
        index: usize,
        cutout: &Cutout,
        items: &[Item],
    ) -> Result<Option<(Offload, String)>> {
        let nearest = items.get(index).into_iter().chain(items);
        for item in nearest {
            let value = wire::parse(0, &item.body)?;
            let message = self.format.wire().read(0, &value)?;
            for text in cutout.how().texts(&message) {
                let offload = self.offload_of(cutout, index, text);
                if offload.sha256.get(..DIGITS) == Some(cutout.sha256.as_str()) {
                    return Ok(Some((offload, text.to_owned())));
                }
            }
        }
        Ok(None)
    }
}

/// Where what a piece is made of comes from; enough of it to count messages.
fn origins(piece: &ViewPiece) -> Vec<Origin> {
    let message = |index: usize| Origin::Message(Place { seq: index as u64, index });
    match piece {
        ViewPiece::Messages(from, to) => (*from..*to).map(message).collect(),
        ViewPiece::Summary(piece) => {
            let covers = piece.covers.iter().map(|(from, to)| CoveredRange {
                from: *from,
                to: *to,
                offloads: Vec::new(),
            });
            let (checkpoint, covers) = (piece.checkpoint.as_str().into(), covers.collect());
            vec![Origin::Summary { checkpoint, covers, quotes: Vec::new(), prose: 0, made: None }]
        }
        ViewPiece::Acknowledgement(_) => vec![Origin::Acknowledgement],
    }
}

async fn sized(io: &Io, settings: &Settings, format: Format, body: Rc<str>, origin: Origin) -> Result<Item> {
    let size = measure(io, settings, format, MessageSource::Ours, &body).await?;
    Ok(Item::new(body, size, origin))
}

/// A message of a state that is one of the format.
fn readable(format: Format, body: &str) -> Result<Rc<str>> {
    let what = |_| corrupt("a message in it is none of its format");
    limits::check_bytes(0, body.len()).map_err(what)?;
    let value = wire::parse(0, body).map_err(what)?;
    let message = wire::take(format, 0, &value).map_err(what)?;
    limits::check(0, &value, &message).map_err(what)?;
    Ok(body.into())
}

/// A text of ours: no call, no result, and nothing that speaks for the system.
fn ours(format: Format, body: &str) -> Result<Rc<str>> {
    let text = readable(format, body)?;
    let value = wire::parse(0, body)?;
    let message = format.wire().read(0, &value)?;
    let is_text = matches!(message.role, Role::User | Role::Assistant)
        && message.calls().next().is_none()
        && message.results().next().is_none()
        && message.texts().next().is_some();
    if is_text { Ok(text) } else { Err(corrupt("a summary in it is no text")) }
}

/// How much of a text is there.
pub(super) fn digits(text: &str) -> String {
    ids::sha256_hex(text.as_bytes()).get(..DIGITS).unwrap_or_default().to_owned()
}

/// The texts of a message that may have been taken out.
pub(super) fn text_of(format: Format, body: &str, how: Placeholder, nth: usize) -> Result<Option<String>> {
    let value = wire::parse(0, body)?;
    let message = format.wire().read(0, &value)?;
    Ok(how.texts(&message).get(nth).map(|text| (*text).to_owned()))
}
