//! Content of every type, made here; sizes are characters.

mod diffs;
mod digest_limits;
mod digests;
mod fixtures;
mod html;
mod lines;
mod outlines;
mod overlaps;
mod properties;
mod recorded;
mod searches;
mod shapes;
mod tables;
