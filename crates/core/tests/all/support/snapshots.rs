//! What the tests of snapshots and of the active context share.

use super::{Harness, long};
use context_compactor_core::context::Item;
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::session::SnapshotInfo;
use context_compactor_core::session::audit::look;
use context_compactor_store_tests::conversation::{Body, assistant, user};

pub fn items(harness: &Harness) -> Vec<Item> {
    look(&harness.session).unwrap().context.items().to_vec()
}

pub fn chat(from: usize, count: usize, tokens: usize) -> Vec<Body> {
    (from..from + count)
        .flat_map(|nth| [user(&format!("ask {nth}")), assistant(&long(&format!("answer {nth}"), tokens))])
        .collect()
}

pub fn take_for(harness: &mut Harness, purpose: SnapshotPurpose) -> String {
    harness.host.run(harness.session.snapshot(purpose)).unwrap()
}

pub fn take(harness: &mut Harness) -> String {
    take_for(harness, SnapshotPurpose::Rollback)
}

pub fn list(harness: &mut Harness) -> Vec<SnapshotInfo> {
    harness.host.run(harness.session.snapshots()).unwrap()
}

pub fn restore(harness: &mut Harness, id: &str) {
    harness.host.run(harness.session.restore(id.into())).unwrap();
    assert_eq!(harness.stored().restored.as_deref(), Some(id));
}
