//! What is to be done about a context that grows, as data.

mod clear;
mod digest;
mod rung;
mod trigger;

pub(crate) use clear::clearable;
pub(crate) use digest::Digest;
pub use rung::Rung;
pub use trigger::Trigger;
