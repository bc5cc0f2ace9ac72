//! Names that stand in everybody's projects and therefore say nothing about one of them.

/// Sorted, because it is searched by halves.
pub(super) const GENERIC: [&str; 0] = [];
