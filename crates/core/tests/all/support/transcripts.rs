//! What the tests of the transcript, of archives and of imports share.

use super::{Harness, SUMMARY, merge, settings, turn};
use context_compactor_core::Error;
use context_compactor_core::session::transcript::{Export, Importer, Report, Restore};
use context_compactor_core::session::{Opened, Session};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::Body;
use context_compactor_store_tests::host::summary;
use context_compactor_store_tests::{Host, MemoryStore};
use serde_json::{Value, json};
use std::rc::Rc;

/// The whole archive of a session.
pub fn archive(host: &mut Host, session: &Session) -> String {
    let mut bytes = Vec::new();
    let mut next = Some(Export::Begin);
    while let Some(at) = next {
        let (page, then) = host.run(session.export(at)).unwrap();
        bytes.extend(page);
        next = then;
    }
    String::from_utf8(bytes).unwrap()
}

pub fn lines(archive: &str) -> Vec<Value> {
    archive.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Imports a transcript, fed `chunk` bytes at a time.
pub fn import_in(
    host: &mut Host,
    text: &str,
    id: Option<&str>,
    restore: Restore,
    chunk: usize,
    over: Value,
) -> Result<(Session, Opened, Report), Error> {
    let open = Importer::open(settings(over), id.map(str::to_owned), restore, 10_000);
    let importer = host.run(open)?;
    let fed = text.as_bytes().chunks(chunk).try_for_each(|bytes| host.run(importer.feed(bytes.to_vec())));
    let done = fed.and_then(|()| host.run(importer.finish()));
    if done.is_err() {
        host.run(importer.abandon())?;
    }
    done
}

/// Imports it into a store of its own, as session `s`.
pub fn import(text: &str, restore: Restore, over: Value) -> Result<(Harness, Report), Error> {
    let memory = Rc::new(MemoryStore::default());
    let mut host = Host::new(Rc::clone(&memory) as _, "import");
    host.summarise = Box::new(|_, _| summary(SUMMARY));
    let done = import_in(&mut host, text, Some("s"), restore, 1 << 16, over);
    if done.is_err() {
        assert_eq!(memory.rows(), [], "nothing is left of an import that failed");
    }
    done.map(|(session, _, report)| (Harness { memory, host, session }, report))
}

/// Why it cannot be imported.
pub fn refused(text: &str, restore: Restore, over: Value) -> Error {
    import(text, restore, over).err().unwrap()
}

pub fn history(harness: &mut Harness) -> Vec<String> {
    let mut bodies = Vec::new();
    let mut next = None;
    loop {
        let page = harness.host.run(harness.session.history(next)).unwrap();
        bodies.extend(page.messages.into_iter().map(|said| said.body));
        next = page.next;
        if next.is_none() {
            return bodies;
        }
    }
}

pub fn markdown(harness: &mut Harness) -> String {
    let page = harness.host.run(harness.session.markdown(None)).unwrap();
    assert_eq!(page.next, None);
    page.text
}

/// A session that has offloads and summaries.
pub fn worked(over: Value) -> (Harness, Vec<Body>) {
    let mut options = json!({ "contextWindow": 12_000 });
    merge(&mut options, &over);
    let mut harness = Harness::new(options);
    let mut all = Vec::new();
    for nth in 0..8 {
        let messages = turn(Format::OpenaiChat, nth, 600);
        harness.append(&messages);
        all.extend(messages);
        harness.prepare();
        if nth % 3 == 2 {
            assert!(harness.compact().success);
        }
    }
    (harness, all)
}

pub fn presets() -> [Value; 5] {
    [
        json!({ "preset": "offload" }),
        json!({ "preset": "offload", "presetOptions": { "offloadThreshold": 2_000 } }),
        json!({ "preset": "layered", "presetOptions": { "largeOutputTokens": 500 } }),
        json!({ "preset": "factor3" }),
        json!({ "preset": "checkpoint", "contextWindow": 32_000 }),
    ]
}
