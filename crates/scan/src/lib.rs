//! What stands in a text, found by hand-written scanners in one pass that copy nothing: [`entities`] that a summary should
//! repeat, the [`terms`] of search, [`sentences`], [`secrets`], and runs of [`base64`].
//!
//! A crate of its own because it is compiled for speed, and the engine for size: every character of a conversation goes
//! through it. What a caller does with what is found is a `dyn FnMut`, so that the loops themselves are compiled here.

pub mod base64;
mod bytes;
pub mod entities;
pub mod keyed;
pub mod phrases;
pub mod secrets;
pub mod sentences;
pub mod terms;
