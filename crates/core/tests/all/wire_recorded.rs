//! Recorded traffic: the answers of real providers are read, with their own counts of tokens.

use context_compactor_core::wire::provider::{Kind, Provider, response};
use context_compactor_store_tests::recorded::lines;

/// Recorded answers: what ended on its own with prose is an answer, with the provider's own counts.
fn check_answers(name: &str, kind: Kind, stop: &str, ended: &str, prompt_tokens: &[&str]) {
    let lines = lines(name);
    let provider =
        Provider { kind, model: String::new(), url: None, headers: Default::default(), request: None };
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
    assert!(lines.is_empty() || answers > lines.len() / 4, "{answers} answers of {}", lines.len());
}

#[test]
fn recorded_answers_are_read() {
    check_answers(
        "wire/pydantic_openai-chat",
        Kind::Openai,
        "/choices/0/finish_reason",
        "stop",
        &["/usage/prompt_tokens"],
    );
    check_answers(
        "wire/pydantic_anthropic-messages",
        Kind::Anthropic,
        "/stop_reason",
        "end_turn",
        &["/usage/input_tokens", "/usage/cache_read_input_tokens", "/usage/cache_creation_input_tokens"],
    );
}
