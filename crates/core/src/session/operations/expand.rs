//! A checkpoint, one step further down.

use super::Session;
use super::looks::archive_of;
use crate::context::{CoveredRange, Origin};
use crate::error::{Code, Error, Result};
use crate::log::stored::view_items;
use crate::recall::{Archive, RecallPart, messages_in};
use crate::session::checkpoints;
use crate::step::{Io, LogLevel, Machine};
use crate::wire;
use std::rc::Rc;

impl Session {
    /// What a checkpoint replaces, in the order of the log: the checkpoints that were in the context when it was made, each to
    /// be expanded in turn, and the messages that none of them replaces.
    ///
    /// Errors: [`Code::NotFound`] when this session made no checkpoint with this id.
    pub fn expand(&self, checkpoint: String) -> Machine<Vec<RecallPart>> {
        let slot = self.slot.clone();
        Machine::new(move |io| async move {
            let look = async |io: Io| {
                let (archive, log_index) = archive_of(&io, &slot).await?;
                let Some((made_by, covers)) = made_by(&io, &archive, &checkpoint).await? else {
                    return Err(unknown(&checkpoint));
                };
                let (before, _) = match view_items(&io, &archive.sid, made_by - 1).await {
                    Err(error) if error.code == Code::StoreCorrupt => {
                        let what = format!("{checkpoint} is expanded to messages alone: {error}");
                        io.log(LogLevel::Warn, what);
                        Default::default()
                    }
                    before => before?,
                };
                let mut parts = Vec::new();
                let mut taken: Vec<CoveredRange> = Vec::new();
                for (origin, body) in before {
                    let Origin::Summary { checkpoint: id, covers: earlier, .. } = origin else { continue };
                    let is_inside = |cover: &CoveredRange| {
                        covers.iter().any(|whole| whole.from <= cover.from && cover.to <= whole.to)
                    };
                    if *id == *checkpoint || earlier.is_empty() || !earlier.iter().all(is_inside) {
                        continue;
                    }
                    let message_range = range(&earlier);
                    let text = text(&archive, body)?;
                    parts.push((
                        message_range.0,
                        RecallPart::Checkpoint { id: id.to_string(), message_range, text },
                    ));
                    taken.extend(earlier.iter().cloned());
                }
                for part in messages_in(&io, &archive, &log_index, &covers, &taken).await? {
                    let RecallPart::Message { index, .. } = part else { continue };
                    parts.push((index, part));
                }
                parts.sort_by_key(|(index, _)| *index);
                Ok(parts.into_iter().map(|(_, part)| part).collect())
            };
            slot.look_at_rows(&io, look).await
        })
    }
}

/// The view that put a checkpoint into the context, and what the checkpoint replaces.
async fn made_by(io: &Io, archive: &Archive, wanted: &str) -> Result<Option<(u64, Rc<[CoveredRange]>)>> {
    let mut found = None;
    let mut see = |number: u64, origins: &[Origin]| {
        for origin in origins {
            if let Origin::Summary { checkpoint, covers, .. } = origin
                && **checkpoint == *wanted
                && found.is_none()
            {
                found = Some((number, covers.clone()));
            }
        }
    };
    checkpoints::each_view(io, &archive.sid, archive.generation, &mut see).await?;
    Ok(found.filter(|(_, covers)| !covers.is_empty()))
}

fn range(covers: &[CoveredRange]) -> (usize, usize) {
    (covers.first().map_or(0, |cover| cover.from), covers.last().map_or(0, |cover| cover.to))
}

/// What a message of ours says.
fn text(archive: &Archive, body: Option<Rc<str>>) -> Result<String> {
    let Some(body) = body else { return Ok(String::new()) };
    let value = wire::parse(0, &body)?;
    Ok(archive.format.wire().read(0, &value)?.text())
}

fn unknown(checkpoint: &str) -> Error {
    Error::new(
        Code::NotFound,
        format!(
            "this session made no checkpoint {checkpoint:?}: archive.checkpoints() lists those that it made; one of a fork's parent is the parent's to expand"
        ),
    )
}
