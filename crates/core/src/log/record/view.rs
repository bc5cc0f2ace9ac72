//! A view as it is stored: what stands in the context, item by item, whole or as a change of the view before.

use super::item::{StoredItem, Unread, load_items, store_items};
use super::{LogRow, RowKind, SCHEMA};
use crate::context::{Context, CoveredRange, Departed, Item, Origin, Splice};
use crate::error::Result;
use crate::keys::ids;
use crate::log::View;
use crate::policy::Trigger;
use crate::wire::record::{self, Json, ReadJson, Unreadable, WriteJson};

/// Of so many views at most one holds the whole context. Up to schema 101 every 32nd did.
const WHOLE_EVERY: u64 = 32;
/// A whole view is due when the changes since the last one take so many times its bytes: all of them take no more than a
/// share of what changed, however long the session is.
const CHANGES: u64 = 2;

/// The last view that holds the whole context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WholeView {
    /// Its number.
    pub view: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Those of the changes since.
    pub changes: u64,
}

impl WriteJson for WholeView {
    fn write(&self, out: &mut Vec<u8>) {
        (self.view, self.bytes, self.changes).write(out);
    }
}

impl ReadJson<'_> for WholeView {
    fn read(json: &mut Json<'_>) -> std::result::Result<Self, Unreadable> {
        <(u64, u64, u64)>::read(json).map(|(view, bytes, changes)| WholeView { view, bytes, changes })
    }
}

impl WholeView {
    /// What is known after a view of so many bytes, which changes that of `before`, or is whole.
    pub(crate) fn after(before: Option<WholeView>, view: u64, bytes: usize) -> WholeView {
        let bytes = bytes as u64;
        match before {
            Some(known) => WholeView { changes: known.changes + bytes, ..known },
            None => WholeView { view, bytes, changes: 0 },
        }
    }

    /// View `generation` may be a change. One that is not behind it is of another history: the session was mended.
    pub(crate) fn stands(&self, generation: u64) -> bool {
        let is_near =
            generation.checked_sub(self.view).is_some_and(|behind| (1..WHOLE_EVERY).contains(&behind));
        is_near || (generation > self.view && self.changes < self.bytes.saturating_mul(CHANGES))
    }
}

/// The first of the views that view `generation` is made of, where it does not say it: as releases up to schema 101 wrote
/// them.
pub(crate) fn first_of(generation: u64) -> u64 {
    generation - generation.saturating_sub(1) % WHOLE_EVERY
}

/// Version of a view in which a message leans on another: a release that does not know of that would part them. Or in which
/// media left a message: it could not read that.
const LEANS: u32 = 301;
/// Version of a view in which a summary is the provider's: a release that does not know of that would rewrite it.
pub(super) const NEWEST: u32 = 401;

/// The body of a log row of kind `view`.
#[derive(Debug)]
pub(crate) struct ViewNote {
    pub(crate) view: u64,
    pub(crate) rung: String,
    pub(crate) snapshot: Option<String>,
    /// As in [`Cause`].
    pub(crate) undoes_to: Option<u64>,
    /// Of the view's row: so the log's chain holds the views too. Earlier releases did not note it.
    pub(crate) sha256: Option<String>,
}

crate::wire::record!(ViewNote {
    view = "view",
    rung = "rung",
    snapshot = "snapshot" or nothing,
    undoes_to = "undoesTo" or nothing,
    sha256 = "sha256" or nothing,
});

impl ViewNote {
    /// `None` for a row that is no view's.
    pub(crate) fn of(row: &LogRow<'_>) -> Option<ViewNote> {
        (row.kind == RowKind::View).then(|| record::from_str(row.body.get()).ok()).flatten()
    }

    /// The bytes are those of the view that was written.
    pub(crate) fn is_of(&self, view: &[u8]) -> bool {
        self.sha256.as_ref().is_none_or(|hash| *hash == ids::sha256_hex(view))
    }
}

/// A view as it is stored: a change of the context before it, or now and then the whole context.
#[derive(Debug)]
pub(crate) struct ViewRow {
    /// [`super::SCHEMA`], [`LEANS`] or [`NEWEST`]. Releases up to schema 101 gave 201 to those in which a summary inherits.
    pub v: u32,
    /// Number of the view, from 1.
    pub generation: u64,
    /// Log rows from here on are behind the view.
    pub to: u64,
    /// Messages of the app that the view accounts for.
    pub messages: usize,
    /// Messages of the log that stood behind the view before this one, to be added to it first.
    pub appended: Vec<(u64, usize, usize)>,
    /// The last whole view before, when it is a change.
    pub base: Option<u64>,
    /// The whole context, or `None` when `splices` change the one before.
    pub whole: Option<Vec<StoredItem>>,
    /// Changes to the context before.
    pub splices: Vec<StoredSplice>,
    /// All messages that left the context so far.
    pub left: Vec<Departed>,
    /// What led to it.
    pub cause: Cause,
}

crate::wire::record!(ViewRow {
    v = "v",
    generation = "generation",
    to = "to",
    messages = "messages",
    appended = "appended",
    base = "base" or nothing,
    whole = "whole" or nothing,
    splices = "splices" or nothing,
    left = "left" or nothing,
    cause = "cause",
});

/// What led to a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    /// The rung of the ladder; `restore` or `remove` where the app asked for that.
    pub rung: String,
    /// `auto`, `manual` or `overflow`.
    pub trigger: String,
    /// Tokens before.
    pub tokens_before: usize,
    /// Tokens after.
    pub tokens_after: usize,
    /// The preset.
    pub preset: String,
    /// Version of the prompts, for a summary.
    pub prompt_version: Option<u32>,
    /// Who wrote the summary.
    pub model: Option<String>,
    /// The snapshot that was restored.
    pub snapshot: Option<String>,
    /// The view to which a compaction was taken back; what was appended since stands behind it.
    pub undoes_to: Option<u64>,
    /// Hash of the log row before, which the view's own row of the log has: nothing since schema 201.
    pub input: String,
}

crate::wire::record!(Cause {
    rung = "rung",
    trigger = "trigger",
    tokens_before = "tokensBefore",
    tokens_after = "tokensAfter",
    preset = "preset",
    prompt_version = "promptVersion" or nothing,
    model = "model" or nothing,
    snapshot = "snapshot" or nothing,
    undoes_to = "undoesTo" or nothing,
    input = "input",
});

impl Cause {
    /// A change of a session by hand, for whatever reason, that leaves `tokens_after`.
    pub(crate) fn of(view: &View, rung: &str, tokens_after: usize) -> Self {
        Cause {
            rung: rung.into(),
            trigger: Trigger::Manual.as_str().into(),
            tokens_before: view.usage.tokens,
            tokens_after,
            preset: view.settings.preset.name.into(),
            prompt_version: None,
            model: None,
            snapshot: None,
            undoes_to: None,
            input: String::new(),
        }
    }
}

/// Stored form of [`Splice`].
#[derive(Debug)]
pub(crate) struct StoredSplice {
    /// First item that is replaced.
    pub at: usize,
    /// How many.
    pub remove: usize,
    /// What stands there instead.
    pub insert: Vec<StoredItem>,
}

crate::wire::record!(StoredSplice {
    at = "at",
    remove = "remove",
    insert = "insert",
});

/// The context after a view, from the one before it.
pub(crate) fn replay(mut context: Vec<Unread>, view: ViewRow) -> Vec<Unread> {
    if let Some(whole) = view.whole {
        return load_items(whole);
    }
    for (seq, index, count) in view.appended {
        context.extend(load_items(vec![StoredItem::Messages(seq, index, count)]));
    }
    for mut splice in view.splices.into_iter().rev() {
        let start = splice.at.min(context.len());
        let end = splice.at.saturating_add(splice.remove).min(context.len());
        for item in &mut splice.insert {
            if let StoredItem::Summary { covers, inherits: true, .. } = item {
                let removed = context.get(start..end).into_iter().flatten();
                inherit(covers, removed.map(|(origin, _)| origin));
            }
        }
        context.splice(start..end, load_items(splice.insert));
    }
    context
}

/// Gives `covers` the offloads of the items that they replace.
fn inherit<'a>(covers: &mut [CoveredRange], removed: impl Iterator<Item = &'a Origin>) {
    for origin in removed {
        for (index, offload) in origin.every_offload() {
            if let Some(cover) = covers.iter_mut().find(|cover| (cover.from..cover.to).contains(&index)) {
                cover.offloads.push((index, offload.retired()));
            }
        }
    }
}

/// Leaves the offloads out of the summaries that can inherit them from `removed`.
fn disinherit<'a>(stored: &mut [StoredItem], removed: impl Iterator<Item = &'a Item> + Clone) {
    for item in stored {
        if let StoredItem::Summary { covers, inherits, .. } = item {
            let mut heirs: Vec<CoveredRange> =
                covers.iter().map(|cover| CoveredRange { offloads: Vec::new(), ..*cover }).collect();
            inherit(&mut heirs, removed.clone().map(|item| &item.origin));
            if heirs == *covers && covers.iter().any(|cover| !cover.offloads.is_empty()) {
                covers.iter_mut().for_each(|cover| cover.offloads.clear());
                *inherits = true;
            }
        }
    }
}

/// The version of a view with these changes.
pub(crate) fn version_of(whole: Option<&[StoredItem]>, splices: &[StoredSplice]) -> u32 {
    let changed = splices.iter().flat_map(|splice| &splice.insert);
    let mut items = whole.unwrap_or_default().iter().chain(changed);
    if items.clone().any(StoredItem::is_by_server) {
        NEWEST
    } else if items.any(StoredItem::is_new) {
        LEANS
    } else {
        SCHEMA
    }
}

/// The stored form of a change of `context`, or of the whole result where that is due or nothing of `context` stays.
pub(crate) fn store_change(
    context: &Context,
    splices: &[Splice],
    is_due: bool,
) -> (Option<Vec<StoredItem>>, Vec<StoredSplice>) {
    let replaces_all = matches!(splices, [splice] if splice.at == 0 && splice.remove >= context.len());
    if is_due || replaces_all {
        let mut after = context.clone();
        after.apply(splices);
        return (Some(store_items(after.items())), Vec::new());
    }
    let stored = splices
        .iter()
        .map(|splice| {
            let mut insert = store_items(&splice.insert);
            let removed = context.items().iter().skip(splice.at).take(splice.remove);
            disinherit(&mut insert, removed);
            StoredSplice { at: splice.at, remove: splice.remove, insert }
        })
        .collect();
    (None, stored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn p4_a_release_refuses_views_of_a_later_hundred() {
        let view =
            |v: u32| format!(r#"{{"v":{v},"generation":1,"to":1,"messages":0,"appended":[],"cause":{{}}}}"#);
        let code = |v| super::super::decode_view(view(v).as_bytes()).unwrap_err().code;
        assert_eq!((code(NEWEST + 100), code(NEWEST)), (Code::SchemaTooNew, Code::StoreCorrupt));
        let other = super::super::decode::<ViewRow>(view(NEWEST).as_bytes(), "view").unwrap_err();
        assert_eq!(other.code, Code::SchemaTooNew, "as a release before it says");
    }
}
