//! Recorded OpenAI Responses traffic: requests that the API answered, and sessions of an agent that speaks nothing else.
//! Read without loss, valid before and after a cut at any boundary.

use context_compactor_core::message::{Exchanges, Message, Pairing, Part};
use context_compactor_core::wire::{self, Format, detect};
use flate2::read::GzDecoder;
use serde_json_borrow::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

const FORMAT: Format = Format::OpenaiResponses;

/// The lines of a file of transcripts in both sizes; none, with a word about it, where there is none.
fn lines(names: [&str; 2]) -> Vec<String> {
    let root = std::env::var_os("CC_DATA")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"));
    let mut lines = Vec::new();
    for path in names.map(|name| root.join(name)) {
        match std::fs::File::open(&path) {
            Ok(file) => lines.extend(BufReader::new(GzDecoder::new(file)).lines().map(Result::unwrap)),
            Err(_) => println!("skipped: no transcripts at {} (set CC_DATA)", path.display()),
        }
    }
    lines
}

/// The messages of a history, after asserting that each holds what its item says.
fn read<'a>(id: &str, items: &'a [Value<'a>]) -> Vec<Message<'a>> {
    let read = |(index, item): (usize, &'a Value<'a>)| {
        let message = FORMAT.wire().read(index, item).unwrap_or_else(|error| panic!("{id}: {error}"));
        let kind = item.get("type").as_str().unwrap_or("message");
        let asks = ["function_call", "custom_tool_call"].contains(&kind);
        let answers = ["function_call_output", "custom_tool_call_output"].contains(&kind);
        assert_eq!(
            (message.calls().count(), message.results().count()),
            (asks.into(), answers.into()),
            "{id}"
        );
        let texts = match item.get(if answers { "output" } else { "content" }) {
            Value::Str(text) => text.chars().count(),
            Value::Array(parts) => parts.iter().filter_map(|part| part.get("text").as_str()).map(count).sum(),
            _ => 0,
        };
        let found: usize = message
            .parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => count(text),
                Part::ToolResult(result) => count(&result.text) - breaks(item),
                _ => 0,
            })
            .sum();
        assert!(kind == "reasoning" || found == texts, "{id}: {kind} {index}: {found} of {texts} characters");
        message
    };
    items.iter().enumerate().map(read).collect()
}

fn count(text: &str) -> usize {
    text.chars().count()
}

/// Line breaks that join the texts of an output.
fn breaks(item: &Value<'_>) -> usize {
    let texts = |parts: &[Value<'_>]| {
        parts.iter().filter(|part| part.get("text").as_str().is_some_and(|text| !text.is_empty())).count()
    };
    item.get("output").as_array().map_or(0, |parts| texts(parts).saturating_sub(1))
}

/// Checks a history whole, untouched by a repair, and in two at every boundary.
fn check(id: &str, items: &[Value<'_>]) -> usize {
    let problems = FORMAT.rules().validate(items, false);
    assert_eq!(problems, [], "{id}");
    let (kept, changes) = FORMAT.rules().repair(items);
    assert_eq!((kept.len(), changes), (items.len(), vec![]), "{id}: a valid history is left alone");
    let messages = read(id, items);
    let exchanges = Exchanges::of(&messages);
    let boundaries: Vec<usize> = (1..items.len()).filter(|&at| exchanges.is_boundary(at)).collect();
    for &at in &boundaries {
        for half in [&items[..at], &items[at..]] {
            assert_eq!(FORMAT.rules().validate(half, false), [], "{id}, cut at {at}");
        }
    }
    boundaries.len()
}

#[test]
fn agent_sessions_are_valid_and_can_be_cut() {
    let lines = lines(["core/responses/codex.jsonl.gz", "full/responses/codex_entirecontext.jsonl.gz"]);
    if lines.is_empty() {
        return;
    }
    let mut cuts = 0;
    for line in &lines {
        let record = wire::parse(0, line).unwrap();
        let id = record.get("id").as_str().unwrap();
        let items = record.get("messages").as_array().unwrap();
        assert_eq!(detect(items).unwrap(), FORMAT, "{id}");
        cuts += check(id, items);
    }
    assert!(cuts > lines.len() * 5, "{cuts} boundaries in {} sessions", lines.len());
}

#[test]
fn requests_that_the_api_answered_are_valid_and_can_be_cut() {
    let name = "wire/pydantic_openai-responses.jsonl.gz";
    let lines = lines([&format!("core/{name}"), &format!("full/{name}")]);
    let mut checked = 0;
    for line in &lines {
        let record = wire::parse(0, line).unwrap();
        let id = record.get("id").as_str().unwrap();
        let request = record.get("request");
        // The rest of such a history is the server's.
        let continued = ["previous_response_id", "conversation"]
            .into_iter()
            .any(|key| !matches!(request.get(key), Value::Null));
        // A text alone is not an array of items.
        let Some(items) = request.get("input").as_array() else { continue };
        let messages = read(id, items);
        if continued {
            continue;
        }
        check(id, items);
        checked += 1;
        let told = items.iter().any(|item| item.get("type").as_str().is_some());
        if told {
            assert_eq!(detect(items).unwrap(), FORMAT, "{id}");
        }
        let referring = messages
            .iter()
            .flat_map(|message| &message.parts)
            .any(|part| matches!(part, Part::Opaque { tie: Pairing::Refers, .. }));
        assert!(!referring, "{id}");
    }
    assert!(checked * 3 >= lines.len() * 2, "{checked} of {} requests", lines.len());
}
