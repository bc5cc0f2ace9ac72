//! Entities as facts.

use super::facts::FactKind;
use context_compactor_scan::entities::{self, Kind};

/// Calls `found` with every path, URL, id, number, error name and identifier of `text`, in order.
pub(super) fn entities<'t>(text: &'t str, found: &mut dyn FnMut(FactKind, &'t str)) {
    entities::entities(text, &mut |kind, name| found(fact(kind), name));
}

/// Calls `found` with every path, URL, id and identifier of `text`.
pub(crate) fn names<'t>(text: &'t str, found: &mut dyn FnMut(&'t str)) {
    entities::entities(text, &mut |kind, name| {
        if matches!(kind, Kind::Path | Kind::Url | Kind::Id | Kind::Identifier) {
            found(name);
        }
    });
}

fn fact(kind: Kind) -> FactKind {
    match kind {
        Kind::Path => FactKind::Path,
        Kind::Url => FactKind::Url,
        Kind::Id => FactKind::Id,
        Kind::Number => FactKind::Number,
        Kind::Error => FactKind::Error,
        Kind::Identifier => FactKind::Identifier,
    }
}
