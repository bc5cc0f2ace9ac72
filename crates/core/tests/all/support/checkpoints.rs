//! What the tests of preset `checkpoint` share.

use super::{Harness, long, merge};
use context_compactor_core::step::{Event, Notice, Purpose};
use context_compactor_store_tests::conversation::{Body, assistant, user};
use context_compactor_store_tests::host::summary;
use serde_json::{Value, json};

pub fn options(over: Value) -> Value {
    let mut options = json!({ "preset": "checkpoint", "contextWindow": 32_000 });
    merge(&mut options, &over);
    options
}

pub fn harness(over: Value) -> Harness {
    Harness::new(options(over))
}

/// A summary of about `tokens` tokens that names itself.
pub fn part(name: &str, tokens: usize) -> Event {
    summary(&format!(
        "{name}: {}",
        "the tools answered and the parser was read again. ".repeat(tokens * 4 / 50)
    ))
}

/// Questions of a few tokens, answers of many.
pub fn chat(count: usize, tokens: usize) -> Vec<Body> {
    (0..count).flat_map(|nth| [user(&format!("ask {nth}")), assistant(&long("answer", tokens))]).collect()
}

pub fn texts(harness: &Harness) -> Vec<String> {
    harness
        .context()
        .iter()
        .map(|message| message["content"].as_str().unwrap_or_default().to_string())
        .collect()
}

pub fn checkpoints(harness: &Harness) -> Vec<String> {
    texts(harness).into_iter().filter(|text| text.starts_with("[Checkpoint ")).collect()
}

/// Compacts once more: twelve messages and a summary of 80 tokens, or of 20 for a checkpoint that is made shorter.
pub fn another(harness: &mut Harness, nth: usize) -> (Vec<Purpose>, Vec<&'static str>) {
    harness.append(&chat(6, 200));
    let seen = harness.host.seen.purposes.len();
    harness.host.summarise = Box::new(move |request, _| {
        if request.system.starts_with("You keep") {
            let tokens = if request.system.contains("Moderate") { 50 } else { 30 };
            return part(&format!("shorter {nth}"), tokens);
        }
        part(&format!("part {nth}"), 80)
    });
    let result = harness.compact();
    assert!(result.success && result.summary.is_some(), "{nth}: {result:?}");
    assert_eq!(result.current_tokens, result.previous_tokens - result.freed_tokens);
    let rungs = result.applied_edits.iter().map(|edit| edit.kind).collect();
    (harness.host.seen.purposes[seen..].to_vec(), rungs)
}

pub fn warnings(harness: &Harness) -> Vec<String> {
    let notices = harness.host.seen.notices.iter().filter_map(|notice| match notice {
        Notice::Warning { message, .. } => Some(message.clone()),
        _ => None,
    });
    notices.collect()
}
