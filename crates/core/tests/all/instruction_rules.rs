//! Instructions in the midst of a history: only the leading ones are fixed. `CC_INSTRUCTION_TURNS` is how many turns a
//! session has.

use crate::support::*;
use context_compactor_core::policy::{PRESETS, Settings, Trigger};
use context_compactor_core::session::Session;
use context_compactor_core::wire;
use context_compactor_store_tests::conversation::{Body, assistant, body, user};
use context_compactor_store_tests::{Host, MemoryStore};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::rc::Rc;

/// Turns of a usual run.
const TURNS: usize = 100;

fn turns() -> usize {
    std::env::var("CC_INSTRUCTION_TURNS").map_or(TURNS, |count| count.parse().unwrap())
}

fn system(text: &str) -> Body {
    body(&json!({ "role": "system", "content": text }))
}

/// A question, a reminder of 180 tokens, an answer.
fn reminded(nth: usize, kind: &str) -> [Body; 3] {
    [
        user(&long(&format!("question {nth}"), 60)),
        system(&format!("{kind}\n{}", long(&format!("reminder {nth}"), 175))),
        assistant(&long(&format!("answer {nth}"), 60)),
    ]
}

#[test]
fn f3_a_reminder_in_every_turn_never_fills_the_window() {
    for preset in PRESETS.iter().filter(|preset| preset.name != "react") {
        for format in FORMATS {
            for is_one_kind in [true, false] {
                let told = format!("{} {format:?} {is_one_kind}", preset.name);
                let mut harness = Harness::new(json!({
                    "preset": preset.name, "format": format, "contextWindow": 16_000,
                    "summarize": { "call": null },
                }));
                for nth in 0..turns() {
                    let kind = if is_one_kind { "Reminder".into() } else { format!("Reminder {nth}") };
                    harness.append(&reminded(nth, &kind));
                    let prepared = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new()));
                    prepared.unwrap_or_else(|error| panic!("{told}, turn {nth}: {error}"));
                }
                let context = harness.context();
                assert_valid(format, &context);
                let text = serde_json::to_string(&context).unwrap();
                let newest = format!("reminder {}", turns() - 1);
                assert!(text.contains(&newest), "{told}: the newest is in force");
                assert!(
                    text.matches("role=\\\"system\\\"").count() <= 9,
                    "{told}: a tenth of the window is quoted"
                );
            }
        }
    }
}

/// What a summary quotes of the system, in the order of the context.
fn quoted(context: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    for message in context {
        let text = message["content"].as_str().unwrap_or("");
        for part in text.split("<message index=\"").skip(1) {
            if let Some((_, quote)) = part.split_once("role=\"system\">\n") {
                found.push(quote.split_once("\n</message>").unwrap().0.to_string());
            }
        }
    }
    found
}

#[test]
fn f3_a_newer_one_of_its_kind_replaces_an_older_one_and_the_leading_ones_are_fixed() {
    for preset in PRESETS.iter().filter(|preset| preset.name != "react") {
        let mut harness = Harness::new(json!({ "preset": preset.name, "format": "openai-chat" }));
        let leading = [system("You are a tool."), system("Mode\nPlan.")];
        harness.append(&leading);
        let keep = |harness: &mut Harness, texts: &[&str]| {
            for text in texts {
                harness.append(&[user(&long("question", 60)), system(text), assistant(&long("answer", 60))]);
            }
            harness.append(&talk(10, 60));
            assert!(harness.compact().success, "{}", preset.name);
            harness.context()
        };
        let name = preset.name;
        let first = keep(&mut harness, &["Mode\nWrite.", "Be brief.", "Mode\nTest.", "Be brief."]);
        assert_eq!(quoted(&first), ["Mode\nTest.", "Be brief."], "{name}: {first:#?}");
        assert!(serde_json::to_string(&first).unwrap().contains("instructions in force"), "{name}");
        let second = keep(&mut harness, &["Mode\nShip.", "Mind <message> the quota."]);
        let mut now = quoted(&second);
        now.sort();
        assert_eq!(now, ["Be brief.", "Mind &lt;message> the quota.", "Mode\nShip."], "{name}: {second:#?}");
        // One that is still to come in the tail is in force, and not quoted.
        harness.append(&[user("go on"), system("Be brief."), assistant("gladly")]);
        let third = keep(&mut harness, &["Mind <message> the quota."]);
        let mut now = quoted(&third);
        now.sort();
        assert_eq!(now, ["Be brief.", "Mind &lt;message> the quota.", "Mode\nShip."], "{name}: {third:#?}");
        for context in [&first, &second, &third] {
            let begins: Vec<String> = context[..2].iter().map(Value::to_string).collect();
            assert_eq!(begins, leading.each_ref().map(|body| body.to_string()), "{name}");
            assert!(context[2..].iter().all(|message| message["role"] != "system"), "{name}");
        }
    }
}

#[test]
fn f3_what_is_quoted_of_the_system_takes_a_tenth_of_the_window_newest_first() {
    let mut harness =
        Harness::new(json!({ "format": "anthropic", "preset": "offload", "contextWindow": 8_000 }));
    for nth in 0..12 {
        harness.append(&reminded(nth, &format!("Kind {nth}")));
    }
    harness.append(&talk(4, 20));
    assert!(harness.compact().success);
    let kinds: Vec<String> =
        quoted(&harness.context()).iter().map(|text| text.lines().next().unwrap().to_string()).collect();
    assert_eq!(kinds, ["Kind 8", "Kind 9", "Kind 10", "Kind 11"], "800 tokens of four times 180");
}

/// Codex hands over items of the developer again and again; in one session those that lead take 22,460 tokens.
#[test]
fn f3_recorded_sessions_fit_once_later_instructions_are_ordinary() {
    let root = std::env::var_os("CC_DATA")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"));
    let path = root.join("full/responses/codex_entirecontext.jsonl.gz");
    let Ok(file) = std::fs::File::open(&path) else {
        println!("skipped: no transcripts at {} (set CC_DATA)", path.display());
        return;
    };
    for line in BufReader::new(GzDecoder::new(file)).lines().map(Result::unwrap) {
        let record: Value = serde_json::from_str(&line).unwrap();
        let items: Vec<Body> = record["messages"].as_array().unwrap().iter().map(body).collect();
        let options = json!({
            "format": "openai-responses", "contextWindow": 32_000, "maxOutputTokens": 4_000,
            "summarize": { "call": null },
        });
        let settings = Rc::new(Settings::read(&wire::parse(0, &options.to_string()).unwrap()).unwrap());
        let mut host = Host::new(Rc::<MemoryStore>::default() as _, "host");
        let compacted = host.run(Session::compact_once(settings, items)).unwrap();
        let result = compacted.result;
        assert!(result.fits && result.success, "{}: {:?}", record["id"], result.error);
    }
}
