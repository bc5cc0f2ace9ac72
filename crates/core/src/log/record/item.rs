//! The items of a view as they are stored.

use crate::context::{CoveredRange, Item, Offload, Origin, Place, Placeholder, SummaryMeta};
use crate::wire::record::{Json, Raw, ReadJson, Unreadable, WriteJson, write_variant};
use crate::wire::{read_fields, write_fields};
use std::rc::Rc;

/// Stored form of one or several items.
#[derive(Debug)]
pub(crate) enum StoredItem {
    /// A run of the app's messages: first log position, first index, count (log positions are consecutive).
    Messages(u64, usize, usize),
    /// A message with something taken out of it.
    Edited {
        /// Log position.
        seq: u64,
        /// Index among the app's messages.
        index: usize,
        /// The message as it is now.
        body: Raw,
        /// The results that were moved to the store.
        offloads: Vec<Offload>,
        /// The reasoning that was bound to what stood before it is gone.
        reasoning_removed: bool,
    },
    /// A summary.
    Summary {
        /// Its id.
        checkpoint: String,
        /// The message.
        body: Raw,
        /// What it stands for.
        covers: Vec<CoveredRange>,
        /// The offloads of `covers` are those of the items that the splice removes: written out, every summary would hold
        /// again what all earlier ones held, and the views would grow with the square of the session.
        inherits: bool,
        /// What of that stands in it word for word.
        quotes: Vec<Place>,
        /// Bytes of its text before that.
        prose: usize,
        /// How it was made.
        made: Option<Box<SummaryMeta>>,
    },
    /// A message that keeps the roles alternating.
    Acknowledgement {
        /// The message.
        body: Raw,
    },
}

impl WriteJson for StoredItem {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            StoredItem::Messages(seq, index, count) => {
                write_variant(out, "messages", &mut |out| (*seq, *index, *count).write(out));
            }
            StoredItem::Edited { seq, index, body, offloads, reasoning_removed } => {
                write_variant(out, "offloaded", &mut |out| {
                    write_fields!(
                        out,
                        [
                            seq = "seq",
                            index = "index",
                            body = "body",
                            offloads = "offloads",
                            reasoning_removed = "reasoningRemoved" or nothing
                        ]
                    );
                });
            }
            StoredItem::Summary { checkpoint, body, covers, inherits, quotes, prose, made } => {
                write_variant(out, "summary", &mut |out| {
                    write_fields!(
                        out,
                        [
                            checkpoint = "checkpoint",
                            body = "body",
                            covers = "covers",
                            inherits = "inherits" or nothing,
                            quotes = "quotes" or nothing,
                            prose = "prose" or nothing,
                            made = "made" or nothing
                        ]
                    );
                });
            }
            StoredItem::Acknowledgement { body } => {
                write_variant(out, "acknowledgement", &mut |out| write_fields!(out, [body = "body"]));
            }
        }
    }
}

impl ReadJson<'_> for StoredItem {
    fn read(json: &mut Json<'_>) -> std::result::Result<Self, Unreadable> {
        json.variant(|name, json| match name {
            "messages" => <(u64, usize, usize)>::read(json)
                .map(|(seq, index, count)| StoredItem::Messages(seq, index, count)),
            "offloaded" => read_fields!(
                json,
                StoredItem::Edited,
                [
                    seq = "seq",
                    index = "index",
                    body = "body",
                    offloads = "offloads",
                    reasoning_removed = "reasoningRemoved" or nothing
                ]
            ),
            "summary" => read_fields!(
                json,
                StoredItem::Summary,
                [
                    checkpoint = "checkpoint",
                    body = "body",
                    covers = "covers",
                    inherits = "inherits" or nothing,
                    quotes = "quotes" or nothing,
                    prose = "prose" or nothing,
                    made = "made" or nothing
                ]
            ),
            "acknowledgement" => read_fields!(json, StoredItem::Acknowledgement, [body = "body"]),
            _ => Err(Unreadable::no("item of a view")),
        })
    }
}

impl StoredItem {
    /// The id of a summary that inherits.
    pub(crate) fn heir(&self) -> Option<&str> {
        match self {
            StoredItem::Summary { checkpoint, inherits: true, .. } => Some(checkpoint),
            _ => None,
        }
    }

    /// It is a message in which the provider compacted what was before it.
    pub(super) fn is_by_server(&self) -> bool {
        matches!(self, StoredItem::Summary { made: Some(made), .. } if made.server)
    }

    /// It leans on another message, or did, or media left it.
    pub(super) fn is_new(&self) -> bool {
        let is_new = |offload: &Offload| matches!(offload.how, Placeholder::Difference | Placeholder::Media);
        match self {
            StoredItem::Edited { offloads, .. } => offloads.iter().any(is_new),
            StoredItem::Summary { covers, .. } => {
                covers.iter().flat_map(|cover| &cover.offloads).any(|(_, offload)| is_new(offload))
            }
            StoredItem::Messages(..) | StoredItem::Acknowledgement { .. } => false,
        }
    }
}

/// The stored form of items; neighbouring messages become runs.
pub(crate) fn store_items(items: &[Item]) -> Vec<StoredItem> {
    let raw = |body: &Rc<str>| Raw(body.clone());
    let mut stored: Vec<StoredItem> = Vec::new();
    for item in items {
        let next = match &item.origin {
            Origin::Message(Place { seq, index }) => {
                if let Some(StoredItem::Messages(first, start, count)) = stored.last_mut()
                    && *first + *count as u64 == *seq
                    && *start + *count == *index
                {
                    *count += 1;
                    continue;
                }
                StoredItem::Messages(*seq, *index, 1)
            }
            Origin::Edited { place, offloads, reasoning_removed } => StoredItem::Edited {
                seq: place.seq,
                index: place.index,
                body: raw(&item.body),
                offloads: offloads.clone(),
                reasoning_removed: *reasoning_removed,
            },
            Origin::Summary { checkpoint, covers, quotes, prose, made } => StoredItem::Summary {
                checkpoint: checkpoint.to_string(),
                body: raw(&item.body),
                covers: covers.to_vec(),
                inherits: false,
                quotes: quotes.clone(),
                prose: *prose,
                made: made.as_deref().cloned().map(Box::new),
            },
            Origin::Acknowledgement => StoredItem::Acknowledgement { body: raw(&item.body) },
        };
        stored.push(next);
    }
    stored
}

/// An item whose body is not read from the store yet: `None` for a message of the app.
pub(crate) type Unread = (Origin, Option<Rc<str>>);

/// Items from their stored form. Summaries do not have yet what they inherit.
pub(crate) fn load_items(stored: Vec<StoredItem>) -> Vec<Unread> {
    let mut items = Vec::new();
    for item in stored {
        match item {
            StoredItem::Messages(seq, index, count) => {
                items.extend(
                    (0..count)
                        .map(|n| (Origin::Message(Place { seq: seq + n as u64, index: index + n }), None)),
                );
            }
            StoredItem::Edited { seq, index, body, offloads, reasoning_removed } => {
                let place = Place { seq, index };
                items.push((Origin::Edited { place, offloads, reasoning_removed }, Some(body.0)));
            }
            StoredItem::Summary { checkpoint, body, mut covers, quotes, prose, made, inherits: _ } => {
                // Earlier releases stored their hashes.
                for (_, offload) in covers.iter_mut().flat_map(|cover| &mut cover.offloads) {
                    *offload = offload.retired();
                }
                let (checkpoint, covers, made) = (checkpoint.into(), covers.into(), made.map(Rc::from));
                let origin = Origin::Summary { checkpoint, covers, quotes, prose, made };
                items.push((origin, Some(body.0)));
            }
            StoredItem::Acknowledgement { body } => items.push((Origin::Acknowledgement, Some(body.0))),
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::record;

    #[test]
    fn an8_an_item_stored_before_reasoning_was_noted_reads_as_one_with_its_reasoning() {
        let stored = r#"{"offloaded":{"seq":3,"index":2,"body":{"role":"tool"},"offloads":[]}}"#;
        let item: StoredItem = record::from_str(stored).unwrap();
        assert_eq!(record::to_vec(&item), stored.as_bytes());
        let place = Place { seq: 3, index: 2 };
        let origin = Origin::Edited { place, offloads: Vec::new(), reasoning_removed: false };
        assert_eq!(load_items(vec![item]), [(origin, Some(Rc::from(r#"{"role":"tool"}"#)))]);
    }

    #[test]
    fn s5_18_a_summary_stored_before_its_making_was_noted_reads_and_is_written_as_it_was() {
        let stored =
            r#"{"summary":{"checkpoint":"cp_1","body":{"role":"user"},"covers":[{"from":0,"to":2}]}}"#;
        let item: StoredItem = record::from_str(stored).unwrap();
        assert_eq!(record::to_vec(&item), stored.as_bytes());
        let loaded = load_items(vec![item]);
        assert!(matches!(&loaded[0].0, Origin::Summary { made: None, prose: 0, .. }));
    }
}
