//! Old images and documents leave a prompt that has more bytes than the app's limit (`X5`): a request dies of bytes long before
//! it dies of tokens.

use super::call::CallCost;
use super::replace::{leaning, reference_of};
use super::replacement::{Move, Replacement};
use super::rung::{Climbed, MOVES_LATER, Run, RungSpec, RungWork, carry_out};
use crate::context::{Item, Offload, Place, Placeholder, RECALL_READ};
use crate::error::Result;
use crate::keys::ids;
use crate::log::{NewBlob, View};
use crate::message::Role;
use crate::policy::{Rung, Trigger};
use crate::wire::{self, Format, ShownMedia};
use serde_json_borrow::Value;
use std::iter;

/// What leaves, one and many.
pub(super) const WORDS: (&str, &str) = ("image or document", "images or documents");

/// What stands where an image was that the model has no way back to.
const LEFT_OUT: &str = "left out; look at it again if needed";
/// A block of no more bytes stays: what stands for it is hardly shorter.
const LEAST: usize = 1_024;
/// Bytes of a block with a text, beside the text.
const FRAME: usize = 32;

/// It runs behind the summary, which may have taken some of them away.
pub(super) const RUNG: RungSpec = RungSpec {
    rung: Rung::Media,
    fires: |view, run, _| run.trigger != Trigger::Manual && may_leave(view),
    work: RungWork::Steps {
        waits: None,
        apply: |run, done| Box::pin(leave(run, done)),
        least: |view, least| least.replace(view, propose(view)?),
    },
    idle: |trigger| match trigger {
        Trigger::Manual => Some(MOVES_LATER),
        _ => Some("no image or document is left that may leave"),
    },
};

/// True where the messages have more bytes than they may.
pub(super) fn may_leave(view: &View) -> bool {
    view.settings.limits.bytes.is_some_and(|limit| view.context.bytes() > limit)
}

async fn leave(run: &Run<'_>, done: &mut Climbed) -> Result<bool> {
    let edit = carry_out(run, Rung::Media, &propose).await?;
    let did = !edit.indices.is_empty();
    if did {
        done.add(&run.view(), vec![edit], CallCost::default())?;
    }
    Ok(did)
}

/// An image, a document or the like of the context.
struct OldMedia {
    place: Place,
    /// Its block, JSON text.
    block: String,
    kind: &'static str,
    facts: String,
}

/// What leaves: the oldest first, down to three quarters of the limit, so that the next turns leave the beginning of the prompt
/// as it is. What the user showed last stays, as does what is shown last of all. What tools showed since the user's last
/// message leaves only where the prompt is too large without.
fn propose(view: &View) -> Result<Vec<Move>> {
    let Some(limit) = view.settings.limits.bytes else { return Ok(Vec::new()) };
    let (all, target) = (view.context.bytes(), limit / 4 * 3);
    if all <= limit {
        return Ok(Vec::new());
    }
    let user = view.context.newest().find(|(_, item)| item.size.role == Role::User).map(|(at, _)| at);
    let user = user.unwrap_or(view.context.len());
    let Some(newest) = newest(view)? else { return Ok(Vec::new()) };
    let leaning = leaning(view);
    let is_leaned_on = |item: &Item| {
        let seq = item.origin.place().map(|place| place.seq);
        leaning.keys().any(|(basis, _)| Some(*basis) == seq)
    };
    let (mut left, mut moves) = (all, Vec::new());
    let mut since_user = false;
    for (at, item) in view.items().iter().enumerate().take(newest) {
        if at == user || is_leaned_on(item) {
            continue;
        }
        if at > user && !std::mem::replace(&mut since_user, true) && left <= limit {
            break;
        }
        if left <= target {
            break;
        }
        let gone = item.origin.offloads().iter().filter(|offload| offload.is_media()).count();
        let mut blobs = Vec::new();
        for media in shown(view, item)? {
            if left <= target {
                break;
            }
            let new = media.leaves(view, gone + blobs.len());
            left = left.saturating_sub(new.blob.bytes.saturating_sub(new.text.len() + FRAME));
            blobs.push(new);
        }
        if !blobs.is_empty() {
            moves.push(Move { at, item: item.clone(), blobs });
        }
    }
    Ok(moves)
}

/// Where the newest of all stands.
fn newest(view: &View) -> Result<Option<usize>> {
    for (at, item) in view.context.newest() {
        let value = wire::parse(0, &item.body)?;
        if !wire::media_of(view.format, &value).is_empty() {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// What an item shows that may leave, in order.
fn shown(view: &View, item: &Item) -> Result<Vec<OldMedia>> {
    let Some(place) = item.origin.place().filter(|place| !view.is_pinned(place.index)) else {
        return Ok(Vec::new());
    };
    // Of a text of the user that was shortened the log has another place.
    let is_shortened = item.origin.offloads().iter().any(|offload| offload.how == Placeholder::Text);
    if item.body.len() < LEAST || is_shortened {
        return Ok(Vec::new());
    }
    let value = wire::parse(place.index, &item.body)?;
    let of = |media: &ShownMedia<'_>| {
        let (block, kind, facts) = (media.json(), media.kind(), media.facts());
        OldMedia { place, block, kind, facts }
    };
    let found = wire::media_of(view.format, &value);
    Ok(found.iter().map(of).filter(|media| media.block.len() >= LEAST).collect())
}

impl OldMedia {
    /// With what tells what it was in its place; it is the `nth` that leaves its message.
    fn leaves(self, view: &View, nth: usize) -> Replacement {
        let OldMedia { place, block, kind, facts } = self;
        let (references, how) = (&view.references, Placeholder::Media);
        let reference = reference_of(&references.secret, place.index, how, nth);
        let stands = match references.named {
            true => format!("{kind} is at: {reference}"),
            false => format!("{kind} {LEFT_OUT}"),
        };
        let reads = references.by_model.then(|| format!("{RECALL_READ} says what it was"));
        let told: Vec<String> = iter::once(facts).filter(|facts| !facts.is_empty()).chain(reads).collect();
        let text = if told.is_empty() { stands } else { format!("{stands} ({})", told.join("; ")) };
        let offload =
            Offload { nth, reference, sha256: ids::sha256_hex(block.as_bytes()), chars: 0, how, basis: None };
        let blob = NewBlob::new(place.index, offload, &block, Some(place.seq));
        Replacement { blob, text, tokens: None }
    }
}

/// A message with texts in the place of media, each where it stands; `None` where one of them is not there.
pub(super) fn without(format: Format, message: &Value<'_>, mut media: Vec<&Replacement>) -> Option<String> {
    let edited = wire::with_media_texts(format, message, &mut |shown| {
        let block = shown.json();
        // Few are as long: no other is hashed.
        let is_it = |NewBlob { bytes, offload, .. }: &NewBlob| {
            *bytes == block.len() && offload.sha256 == ids::sha256_hex(block.as_bytes())
        };
        let at = media.iter().position(|new| is_it(&new.blob))?;
        Some(media.remove(at).text.clone())
    });
    edited.filter(|_| media.is_empty())
}
