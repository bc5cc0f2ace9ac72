//! Anthropic Messages.

use super::thread;
use super::{Api, Prompt, Unusable, Usage, count};
use serde_json::{Value, json};

pub(super) const API: Api = Api {
    base: "https://api.anthropic.com/v1",
    bases: &["/v1"],
    path: |_| "/messages".to_owned(),
    headers: &[("anthropic-version", "2023-06-01")],
    body,
    answer,
    usage,
    names_model: true,
    thread: Some(thread::anthropic),
};

fn body(model: &str, prompt: &Prompt, _: &str) -> Value {
    let messages: Vec<Value> =
        prompt.messages.iter().map(|text| json!({ "role": "user", "content": text })).collect();
    let mut body = json!({ "model": model, "max_tokens": prompt.max_tokens, "messages": messages });
    if let Some(fields) = body.as_object_mut().filter(|_| !prompt.system.is_empty()) {
        fields.insert("system".to_owned(), Value::from(prompt.system.as_str()));
    }
    body
}

fn answer(json: &Value) -> Result<String, Unusable> {
    match json.get("stop_reason").and_then(Value::as_str) {
        Some("max_tokens") => return Err(Unusable::cut()),
        Some("model_context_window_exceeded") => {
            let message = "the answer was cut at the end of the context window";
            return Err(Unusable { overflow: true, ..Unusable::never(message) });
        }
        Some("refusal") => return Err(Unusable::never("the model refused to answer")),
        Some("tool_use" | "pause_turn") => {
            return Err(Unusable::called());
        }
        _ => {}
    }
    let blocks = json.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if blocks.iter().any(|block| block.get("type").and_then(Value::as_str) == Some("tool_use")) {
        return Err(Unusable::called());
    }
    Ok(blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect())
}

fn usage(json: &Value) -> Option<Usage> {
    let usage = json.get("usage").filter(|usage| usage.is_object())?;
    let cache_read = count(usage, "/cache_read_input_tokens");
    let cache_write = count(usage, "/cache_creation_input_tokens");
    Some(Usage {
        input: count(usage, "/input_tokens").saturating_add(cache_read).saturating_add(cache_write),
        output: count(usage, "/output_tokens"),
        cache_read,
        cache_write,
        reasoning: count(usage, "/output_tokens_details/thinking_tokens"),
    })
}
