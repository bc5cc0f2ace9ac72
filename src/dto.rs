//! Shapes that only the boundary has.

use context_compactor_core::context::split::Cut;
use context_compactor_core::wire::{Change, Repaired};
use serde::Serialize;

/// A cut.
#[derive(Serialize)]
pub(crate) struct CutDto {
    boundary: usize,
    requested: usize,
    pinned: Vec<usize>,
}

impl From<Cut> for CutDto {
    fn from(cut: Cut) -> Self {
        CutDto { boundary: cut.boundary, requested: cut.requested, pinned: cut.pinned }
    }
}

/// A repaired history.
#[derive(Serialize)]
pub(crate) struct RepairDto {
    parts: Vec<Part>,
    changes: Vec<Change>,
}

/// A message of a repaired history: the caller's own by its index, or a new one as JSON text.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Part {
    Keep(usize),
    Body(String),
}

impl RepairDto {
    pub(crate) fn new(parts: Vec<Repaired>, changes: Vec<Change>) -> Self {
        let parts = parts
            .into_iter()
            .map(|part| match part {
                Repaired::Keep(index) => Part::Keep(index),
                Repaired::Replace { json, .. } => Part::Body(json),
            })
            .collect();
        RepairDto { parts, changes }
    }
}
