//! What a checkpoint stands for, one step further down: the checkpoints that it was made of, and the messages.

use super::archive::{Archive, HitPlace, LogIndex};
use super::label::CallLabel;
use super::snippet::beginning;
use crate::context::CoveredRange;
use crate::error::{Code, Result};
use crate::log::Walk;
use crate::log::record::RowKind;
use crate::log::said::said;
use crate::log::stored::place_among;
use crate::message::{Message, Role};
use crate::step::Io;
use crate::wire;
use serde::Serialize;
use std::collections::HashMap;

/// A part of what a checkpoint replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RecallPart {
    /// A checkpoint that was in the context when this one was made.
    Checkpoint {
        /// Its id.
        id: String,
        /// The app's messages from the first that it replaces to after the last.
        message_range: (usize, usize),
        /// What it says.
        text: String,
    },
    /// A message that no such checkpoint replaces.
    Message {
        /// Its index.
        index: usize,
        /// Its reference, for `read`.
        #[serde(rename = "ref")]
        reference: String,
        /// Who says it.
        role: &'static str,
        /// The tool that is called, or whose result it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// What that call is about, in one line.
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// Where the model has it.
        place: HitPlace,
        /// How it begins.
        snippet: String,
    },
}

/// The messages of `covers` that none of `taken` has, in order. One that cannot be read is left out, and reported.
pub(crate) async fn messages_in(
    io: &Io,
    archive: &Archive,
    log_index: &LogIndex,
    covers: &[CoveredRange],
    taken: &[CoveredRange],
) -> Result<Vec<RecallPart>> {
    let (mut parts, mut labels) = (Vec::new(), HashMap::new());
    let is_taken = |index: usize| taken.iter().any(|cover| (cover.from..cover.to).contains(&index));
    for cover in covers {
        let wanted = cover.from..cover.to.min(archive.messages);
        let mut walk = match place_among(io, &archive.sid, archive.rows, wanted.start).await {
            Ok(place) => Walk::at(place.seq, place.index),
            Err(error) if error.code == Code::StoreCorrupt => Walk::at(0, 0),
            Err(error) => return Err(error),
        };
        let mut is_over = wanted.is_empty();
        while !is_over && let Some(page) = walk.page(io, &archive.sid, archive.rows).await? {
            for (seq, bytes) in page {
                let Some((gap, row)) = walk.row(seq, &bytes)? else { continue };
                if let Some(gap) =
                    gap.filter(|gap| gap.index < wanted.end && gap.index + gap.messages > wanted.start)
                {
                    gap.tell(io);
                }
                is_over = row.n >= wanted.end;
                if is_over {
                    break;
                }
                if row.kind != RowKind::Message || row.n < wanted.start || is_taken(row.n) {
                    continue;
                }
                let value = wire::parse(row.n, row.body.get())?;
                let message = archive.format.wire().read(row.n, &value)?;
                parts.push(part(archive, log_index, row.n, &message, &mut labels));
            }
        }
        if let Some(gap) = (!is_over).then(|| walk.end(archive.rows, archive.messages)).flatten() {
            gap.tell(io);
        }
    }
    Ok(parts)
}

/// `labels`: the calls so far, by their ids.
fn part(
    archive: &Archive,
    log_index: &LogIndex,
    index: usize,
    message: &Message<'_>,
    labels: &mut HashMap<String, CallLabel>,
) -> RecallPart {
    for call in message.calls() {
        labels.insert(call.id.to_string(), CallLabel::of(call));
    }
    let own = said(message);
    // A message of results alone is what they say.
    let result = message.results().next().filter(|_| own.is_empty());
    let (text, label, role) = match result {
        Some(result) => (result.text.to_string(), labels.get(&*result.call_id).cloned(), Role::Tool),
        None => (own, CallLabel::in_message(message), message.role),
    };
    let (tool, target) = label.map_or((None, None), |label| (Some(label.tool), label.target));
    RecallPart::Message {
        index,
        reference: archive.message_reference(index),
        role: role.as_str(),
        tool,
        target,
        place: log_index.whereabouts(index, result.map(|_| 0)),
        snippet: beginning(&text),
    }
}
