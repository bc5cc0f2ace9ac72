//! What the keep-layer keeps.

use super::super::tests::{call, result, sample, text as said};
use super::*;
use crate::message::Role;

#[test]
fn the_page_of_a_sample() {
    println!("{}", text(&sample(), 400, Estimator::Chars4));
}
