//! Where rows are in the store, and the names in them.

pub mod batch;
pub(crate) mod ids;
pub(crate) mod varint;
