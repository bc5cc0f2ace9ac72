//! Recorded traffic: what real providers accepted is read without error and breaks no rule of ours.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use context_compactor_core::wire::provider::{Kind, Provider, response};
use context_compactor_core::wire::{self, Format, Problem};
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

/// The lines of a file of transcripts; `None`, with a word about it, where there is none.
fn lines(name: &str) -> Option<Vec<String>> {
    let root = std::env::var_os("CC_DATA")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let path = root.join("core").join(name);
    let Ok(file) = std::fs::File::open(&path) else {
        println!("skipped: no transcripts at {} (set CC_DATA)", path.display());
        return None;
    };
    Some(BufReader::new(GzDecoder::new(file)).lines().map(Result::unwrap).collect())
}

/// Histories read, and the problems of each by its record's id.
fn check(name: &str, format: Format, path: &str) -> Option<(usize, BTreeMap<String, Vec<Problem>>)> {
    let lines = lines(name)?;
    let mut problems = BTreeMap::new();
    for line in &lines {
        let record = wire::parse(0, line).unwrap();
        let id = record.get("id").as_str().unwrap().to_owned();
        let messages = match path {
            "request" => record.get("request").get("messages"),
            _ => record.get("messages"),
        };
        let messages = messages.as_array().expect("a record has messages");
        for (index, message) in messages.iter().enumerate() {
            format.wire().read(index, message).unwrap_or_else(|error| panic!("{id}: {error}"));
        }
        let found = format.wire().validate(messages, false);
        if found.is_empty() {
            let (kept, changes) = format.wire().repair(messages);
            assert_eq!(
                (kept.len(), changes.len()),
                (messages.len(), 0),
                "{id}: a valid history is left alone"
            );
        } else {
            problems.insert(id, found);
        }
    }
    Some((lines.len(), problems))
}

fn assert_clean(name: &str, format: Format, path: &str, known: &[(&str, &str)]) {
    let Some((count, problems)) = check(name, format, path) else { return };
    let found: Vec<(&str, &str)> = problems
        .iter()
        .flat_map(|(id, problems)| problems.iter().map(move |problem| (id.as_str(), problem.rule)))
        .collect();
    assert_eq!(found, known, "{count} histories of {name}; first problems: {problems:#?}");
}

#[test]
fn anthropic_agent_sessions_are_valid() {
    // A transcript, not a request: the user broke off a turn that had only thought so far.
    let interrupted = [("entireio-cc-6113e919-67d3", "AN5")];
    assert_clean("anthropic/claude_code.jsonl.gz", Format::Anthropic, "messages", &interrupted);
}

#[test]
fn openai_agent_sessions_are_valid() {
    for name in ["claude_code", "tau", "tau_composite"] {
        assert_clean(&format!("openai/{name}.jsonl.gz"), Format::OpenaiChat, "messages", &[]);
    }
}

#[test]
fn anthropic_requests_are_valid() {
    assert_clean("wire/pydantic_anthropic-messages.jsonl.gz", Format::Anthropic, "request", &[]);
}

#[test]
fn openai_requests_are_valid() {
    assert_clean("wire/pydantic_openai-chat.jsonl.gz", Format::OpenaiChat, "request", &[]);
}

/// Recorded answers: what ended on its own with prose is an answer, with the provider's own counts.
fn check_answers(name: &str, kind: Kind, stop: &str, ended: &str, prompt_tokens: &[&str]) {
    let Some(lines) = lines(name) else { return };
    let provider = Provider { kind, model: String::new(), url: None, headers: Default::default() };
    let mut answers = 0;
    for line in &lines {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let body = &record["response"];
        let answer = response(&provider, 200, |_| None, &body.to_string(), 0);
        if body.pointer(stop).and_then(|reason| reason.as_str()) != Some(ended) {
            assert!(
                answer.is_err() || body.pointer(stop).is_none_or(|reason| reason.is_null()),
                "{}",
                record["id"]
            );
        } else if let Ok(answer) = answer {
            let usage = answer.usage.unwrap();
            let prompt: u64 = prompt_tokens.iter().filter_map(|path| body.pointer(path)?.as_u64()).sum();
            assert_eq!((usage.input, usage.cache_read <= usage.input), (prompt, true), "{}", record["id"]);
            answers += 1;
        }
    }
    assert!(answers > lines.len() / 4, "{answers} answers of {}", lines.len());
}

#[test]
fn recorded_answers_are_read() {
    check_answers(
        "wire/pydantic_openai-chat.jsonl.gz",
        Kind::Openai,
        "/choices/0/finish_reason",
        "stop",
        &["/usage/prompt_tokens"],
    );
    check_answers(
        "wire/pydantic_anthropic-messages.jsonl.gz",
        Kind::Anthropic,
        "/stop_reason",
        "end_turn",
        &["/usage/input_tokens", "/usage/cache_read_input_tokens", "/usage/cache_creation_input_tokens"],
    );
}
