//! OpenAI Chat Completions.

use super::thread;
use super::{Api, Prompt, Unusable, Usage, count, without_thinking};
use serde_json::{Value, json};

pub(super) const API: Api = Api {
    base: "https://api.openai.com/v1",
    bases: &["/v1"],
    path: |_| "/chat/completions".to_owned(),
    headers: &[],
    body,
    answer,
    usage,
    names_model: true,
    thread: Some(thread::openai),
};

fn body(model: &str, prompt: &Prompt, url: &str) -> Value {
    let system = (!prompt.system.is_empty()).then(|| json!({ "role": "system", "content": prompt.system }));
    let user = prompt.messages.iter().map(|text| json!({ "role": "user", "content": text }));
    let messages: Vec<Value> = system.into_iter().chain(user).collect();
    json!({ "model": model, "messages": messages, cap_name(url): prompt.max_tokens })
}

/// OpenAI's reasoning models refuse `max_tokens`; most other servers know no other name.
pub(super) fn cap_name(url: &str) -> &'static str {
    let own = url
        .split_once("://")
        .is_some_and(|(_, rest)| rest.split(['/', ':']).next() == Some("api.openai.com"));
    if own { "max_completion_tokens" } else { "max_tokens" }
}

fn answer(json: &Value) -> Result<String, Unusable> {
    let Some(choice) = json.pointer("/choices/0") else {
        return Err(Unusable::later("the answer has no choices"));
    };
    let message = choice.get("message").unwrap_or(&Value::Null);
    let given = |key: &str| message.get(key).filter(|value| !value.is_null());
    match choice.get("finish_reason").and_then(Value::as_str) {
        Some("length") => return Err(Unusable::cut()),
        Some("content_filter") => {
            return Err(Unusable::never("the provider's content filter stopped the answer"));
        }
        _ => {}
    }
    if let Some(refusal) = given("refusal").and_then(Value::as_str).filter(|text| !text.is_empty()) {
        return Err(Unusable::never(&format!("the model refused: {refusal}")));
    }
    let calls = given("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty());
    if calls || given("function_call").is_some() {
        return Err(Unusable::called());
    }
    let text = match given("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect()
        }
        _ => String::new(),
    };
    without_thinking(&text)
}

fn usage(json: &Value) -> Option<Usage> {
    let usage = json.get("usage").filter(|usage| usage.is_object())?;
    Some(Usage {
        input: count(usage, "/prompt_tokens"),
        output: count(usage, "/completion_tokens"),
        cache_read: count(usage, "/prompt_tokens_details/cached_tokens"),
        cache_write: count(usage, "/prompt_tokens_details/cache_write_tokens"),
        reasoning: count(usage, "/completion_tokens_details/reasoning_tokens"),
    })
}
