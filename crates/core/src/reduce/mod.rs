//! The rungs that need no model.

pub(crate) mod admit;
mod calls;
pub(crate) mod clear;
pub(crate) mod last;
pub(crate) mod offload;
pub(crate) mod process;
pub(crate) mod reasoning;
pub(crate) mod replace;
pub(crate) mod shape;
