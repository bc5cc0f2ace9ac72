//! Search over real agent transcripts: who remembers a line finds its message.

use crate::support::settings;
use context_compactor_core::message::Part;
use context_compactor_core::session::Session;
use context_compactor_core::wire::{self, Format};
use context_compactor_store_tests::conversation::Body;
use context_compactor_store_tests::{Host, MemoryStore};
use flate2::read::GzDecoder;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::rc::Rc;

/// Lines that are looked for in one transcript.
const LINES: usize = 12;

#[test]
fn a_remembered_line_finds_its_message() {
    let (mut asked, mut first, mut found) = (0, 0, 0);
    for (folder, format) in [("anthropic", Format::Anthropic), ("openai", Format::OpenaiChat)] {
        for bodies in transcripts(folder) {
            let mut host = Host::new(Rc::new(MemoryStore::default()) as _, "h");
            let options = json!({ "format": format.as_str(), "contextWindow": 10_000_000 });
            let opened = Session::open(settings(options), Some("s".into()), 10_000);
            let (session, _) = host.run(opened).unwrap();
            host.run(session.append(bodies.clone())).unwrap();
            let mut rng = fastrand::Rng::with_seed(bodies.len() as u64);
            for _ in 0..LINES {
                let seq = rng.usize(0..bodies.len());
                let Some(line) = line(format, &bodies[seq], &mut rng) else { continue };
                let hits = host.run(session.search(line.clone(), 10)).unwrap();
                // The same line may stand in several messages.
                let has_line = |reference: &str, host: &mut Host| {
                    let text = host.run(session.read(reference.to_owned(), 0, None)).unwrap();
                    text.contains(&line)
                };
                let at = hits.iter().position(|hit| has_line(&hit.reference, &mut host));
                asked += 1;
                first += usize::from(at == Some(0));
                found += usize::from(at.is_some());
                for hit in &hits {
                    assert!(!hit.snippet.is_empty() && hit.snippet.len() < 800);
                }
            }
        }
    }
    println!("{asked} lines: {found} among the first ten, {first} first");
    assert!(found * 100 >= asked * 97 && first * 100 >= asked * 85);
}

/// A line of six words or more of what a message says or of its results.
fn line(format: Format, body: &str, rng: &mut fastrand::Rng) -> Option<String> {
    let value = wire::parse(0, body).unwrap();
    let message = format.wire().read(0, &value).unwrap();
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text),
        Part::ToolResult(result) => Some(&result.text),
        _ => None,
    });
    let lines: Vec<&str> = texts
        .flat_map(|text| text.lines())
        .map(str::trim)
        .filter(|line| line.split_whitespace().count() >= 6 && line.len() < 300)
        .collect();
    (!lines.is_empty()).then(|| lines[rng.usize(0..lines.len())].to_owned())
}

pub(crate) fn transcripts(folder: &str) -> Vec<Vec<Body>> {
    let root = std::env::var_os("CC_DATA")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"));
    let path = root.join("core").join(folder);
    let Ok(entries) = std::fs::read_dir(&path) else {
        println!("skipped: no transcripts at {} (set CC_DATA)", path.display());
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let lines = files.iter().flat_map(|file| {
        BufReader::new(GzDecoder::new(std::fs::File::open(file).unwrap())).lines().map(Result::unwrap)
    });
    let bodies = |line: String| {
        let record = wire::parse(0, &line).unwrap();
        let messages = record.get("messages").as_array()?;
        Some(messages.iter().map(|message| Rc::from(serde_json::to_string(message).unwrap())).collect())
    };
    lines.filter_map(bodies).take(12).collect()
}
