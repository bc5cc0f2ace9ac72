//! The ladder knows its rungs as values, and a dry run is the same climb.

use crate::recall_recorded::transcripts;
use crate::support::settings;
use context_compactor_core::Code;
use context_compactor_core::policy::{PRESETS, Trigger};
use context_compactor_core::session::Session;
use context_compactor_core::step::Event;
use context_compactor_core::summary::SummaryRequest;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::host::summary;
use context_compactor_store_tests::{Host, MemoryStore};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// As long as it is asked for, at most half of what it is shown, and made of a word.
fn obedient(request: &SummaryRequest, word: &str) -> Event {
    let asked = request.system.rsplit_once("at most ").and_then(|(_, asked)| asked.split_once(" characters"));
    match asked.and_then(|(chars, _)| chars.parse().ok()) {
        Some(chars) => summary(&"s".repeat(chars)),
        None => {
            let shown: usize = request.messages.iter().map(|message| message.content.len()).sum();
            summary(&format!("{word} ").repeat((request.target_tokens * 4 / 5).min(shown / 10)))
        }
    }
}

#[test]
fn h7_a_plan_of_any_preset_and_recorded_history_tells_the_edits_of_the_prepare() {
    let (mut runs, mut edits) = (0, 0);
    for (folder, format) in [("anthropic", Format::Anthropic), ("openai", Format::OpenaiChat)] {
        for (nth, bodies) in transcripts(folder).into_iter().take(4).enumerate() {
            for preset in PRESETS {
                let mut host = Host::new(Rc::<MemoryStore>::default() as _, "h");
                host.summarise = Box::new(|_, _| unreachable!());
                let options = json!({ "format": format.as_str(), "preset": preset.name, "contextWindow": 24_000,
                    "summarize": { "call": true, "attempts": 1 }, "background": false });
                let (session, _) =
                    host.run(Session::open(settings(options), Some("s".into()), 10_000)).unwrap();
                // Words of their own: an earlier answer is not repeated.
                for (part, word) in bodies.chunks(bodies.len().div_ceil(3)).zip(["zorb", "flim", "quux"]) {
                    host.run(session.append(part.to_vec())).unwrap();
                    let plan = host.run(session.plan()).unwrap();
                    host.summarise = Box::new(|request, _| obedient(request, word));
                    let prepared = match host.run(session.prepare(Trigger::Auto, Vec::new())) {
                        Ok(prepared) => prepared,
                        Err(error) => {
                            assert_eq!(error.code, Code::ContextOverflow);
                            break;
                        }
                    };
                    host.summarise = Box::new(|_, _| unreachable!());
                    let failed = prepared.result.and_then(|result| result.error);
                    let told = format!("{folder} {nth} {}: {} {failed:?}", preset.name, plan.reason);
                    let made = prepared.edits.iter().filter(|edit| edit.kind != "repair");
                    let made: Vec<_> = made.map(|edit| (edit.kind, &edit.indices)).collect();
                    let planned = plan.edits.iter().filter(|rung| rung.freed_tokens > 0);
                    let planned: Vec<_> = planned.map(|rung| (rung.kind, &rung.indices)).collect();
                    assert_eq!(planned, made, "{told}");
                    (runs, edits) = (runs + 1, edits + made.len());
                }
            }
        }
    }
    println!("{runs} prepares with {edits} edits");
    assert!(runs == 0 || edits > runs / 4, "{runs} {edits}");
}

/// The sources of the engine without their tests, with their names.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| match path.is_dir() {
        true => sources(&path),
        false => vec![(path.clone(), std::fs::read_to_string(path).unwrap())],
    };
    entries.flat_map(read).collect()
}

#[test]
fn h7_no_rung_and_no_one_else_knows_a_dry_run() {
    for (path, text) in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../src")) {
        assert!(!text.contains("rehears"), "{}", path.display());
    }
}

#[test]
fn h9_one_loop_asks_a_model() {
    let all = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/compaction"));
    let calls = |(path, text): &(PathBuf, String)| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        text.matches("call(io,").map(move |_| name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(all.iter().flat_map(calls).collect::<Vec<_>>(), ["ask"], "who calls a model");
    assert_eq!(all.iter().map(|(_, text)| text.matches("for attempt in").count()).sum::<usize>(), 1);
}
