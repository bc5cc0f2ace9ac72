//! Records of checkpoints: those in a context, and all that were ever made.

use crate::checkpoint::Level;
use crate::context::Origin;
use crate::error::{Code, Result};
use crate::keys::batch::{Key, keys};
use crate::log::record::{self, LogRow, ViewNote, ViewRow};
use crate::log::stored::{PAGE, position};
use crate::log::wide;
use crate::step::{self, Io, Scan};
use serde::Serialize;

/// A checkpoint of the context (`S5.3`).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointRecord {
    /// Its id.
    pub id: String,
    /// When it was made, in ms since 1970.
    pub timestamp: u64,
    /// The app's messages from the first that it replaces to after the last; 0 to 0 for one that a fork took over.
    pub message_range: (usize, usize),
    /// Tokens of those.
    pub original_tokens: usize,
    /// Those of them that decided its level: without messages that it quotes; 0 where an earlier release did not note it.
    pub counted_tokens: usize,
    /// Tokens of its message.
    pub compressed_tokens: usize,
    /// Compressed to original.
    pub compression_ratio: f64,
    /// How detailed it is, when that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Compressions of the session before it.
    pub number: u64,
}

impl CheckpointRecord {
    /// The record of an item from there, when it is a summary whose making is known.
    pub(crate) fn of(origin: &Origin) -> Option<Self> {
        let Origin::Summary { checkpoint, covers, made, .. } = origin else { return None };
        let made = made.as_deref()?;
        Some(CheckpointRecord {
            id: checkpoint.to_string(),
            timestamp: made.created_at,
            message_range: (
                covers.first().map_or(0, |cover| cover.from),
                covers.last().map_or(0, |cover| cover.to),
            ),
            original_tokens: made.original_tokens,
            counted_tokens: made.counted_tokens,
            compressed_tokens: made.tokens,
            compression_ratio: made.tokens as f64 / made.original_tokens.max(1) as f64,
            level: made.level,
            number: made.number,
        })
    }
}

/// The records of all checkpoints of the first `generation` views, in the order in which they were made, each as it was
/// when it last changed.
pub(crate) async fn records(io: &Io, sid: &str, generation: u64) -> Result<Vec<CheckpointRecord>> {
    let mut records: Vec<CheckpointRecord> = Vec::new();
    let mut see = |_, origins: &[Origin]| {
        for record in origins.iter().filter_map(CheckpointRecord::of) {
            match records.iter_mut().find(|known| known.id == record.id) {
                Some(known) => *known = record,
                None => records.push(record),
            }
        }
    };
    each_view(io, sid, generation, &mut see).await?;
    Ok(records)
}

/// Is shown the number of a view, and where the items are from that it put into the context.
type SeeView<'s> = dyn FnMut(u64, &[Origin]) + 's;

/// Shows what each of the first `generation` views put into the context, one after the other. A view that cannot be read is
/// left out, and logged.
pub(crate) async fn each_view(io: &Io, sid: &str, generation: u64, see: &mut SeeView<'_>) -> Result<()> {
    let mut read = 0;
    while read < generation {
        let scan = Scan {
            prefix: keys::all("views", sid),
            after: (read > 0).then(|| keys::view(sid, read)),
            limit: (generation - read).min(1_000) as usize,
            max_bytes: PAGE,
            reverse: false,
            keys_only: false,
        };
        let views = wide::scan(io, scan).await?;
        if views.is_empty() {
            break;
        }
        let behind = |(key, _): &(Key, Vec<u8>)| position(key).is_some_and(|number| number <= generation);
        let last = views.last().and_then(|(key, _)| position(key));
        let decoded = views.into_iter().filter(behind).map(|(key, bytes)| {
            let view = record::decode_view(&bytes);
            (position(&key).unwrap_or_default(), view, bytes)
        });
        let decoded: Vec<_> = decoded.collect();
        // The log says what each view was.
        let to = |view: &Result<ViewRow>| view.as_ref().map_or(0, |view| view.to.saturating_sub(1));
        let notes =
            wide::read(io, decoded.iter().map(|(_, view, _)| keys::log(sid, to(view))).collect()).await?;
        read = last.unwrap_or(generation);
        for ((number, view, bytes), note) in decoded.into_iter().zip(notes) {
            let is_other = |row: LogRow<'_>| {
                ViewNote::of(&row).is_none_or(|noted| noted.view != number || !noted.is_of(&bytes))
            };
            let is_damaged = record::read_row(&note.unwrap_or_default()).is_ok_and(|(row, _)| is_other(row));
            let view = match view {
                Ok(view) if !is_damaged => view,
                Err(error) if error.code != Code::StoreCorrupt => return Err(error),
                _ => {
                    let what = format!("View {number} cannot be read, nor can its checkpoints be told");
                    io.log(step::LogLevel::Warn, what);
                    continue;
                }
            };
            let inserted = view.splices.into_iter().flat_map(|splice| splice.insert);
            let stored = view.whole.into_iter().flatten().chain(inserted).collect();
            let origins: Vec<Origin> =
                record::load_items(stored).into_iter().map(|(origin, _)| origin).collect();
            see(number, &origins);
        }
    }
    Ok(())
}
