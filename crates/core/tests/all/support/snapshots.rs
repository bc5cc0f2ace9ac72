//! What the tests of snapshots and of the active context share.

use super::{Harness, long};
use context_compactor_core::context::Item;
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::session::SnapshotInfo;
use context_compactor_core::session::audit::look;
use context_compactor_store_tests::conversation::{Body, assistant, user};

pub fn items(desk: &Harness) -> Vec<Item> {
    look(&desk.session).unwrap().context.items().to_vec()
}

pub fn chat(from: usize, count: usize, tokens: usize) -> Vec<Body> {
    (from..from + count)
        .flat_map(|nth| [user(&format!("ask {nth}")), assistant(&long(&format!("answer {nth}"), tokens))])
        .collect()
}

pub fn take_for(desk: &mut Harness, purpose: SnapshotPurpose) -> String {
    desk.host.run(desk.session.snapshot(purpose)).unwrap()
}

pub fn take(desk: &mut Harness) -> String {
    take_for(desk, SnapshotPurpose::Rollback)
}

pub fn list(desk: &mut Harness) -> Vec<SnapshotInfo> {
    desk.host.run(desk.session.snapshots()).unwrap()
}

pub fn restore(desk: &mut Harness, id: &str) {
    desk.host.run(desk.session.restore(id.into())).unwrap();
    assert_eq!(desk.stored().restored.as_deref(), Some(id));
}
