//! The rungs that need no model.

pub(crate) mod offload;
pub(crate) mod reasoning;
