//! Content of every type, made here; sizes are characters.

mod digests;
mod fixtures;
mod properties;
mod recorded;
mod shapes;
