//! Histories of the format.

use fastrand::Rng;
use serde_json::Value;

pub(super) fn history(_rng: &mut Rng) -> Vec<Value> {
    Vec::new()
}
