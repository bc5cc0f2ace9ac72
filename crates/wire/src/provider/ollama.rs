//! Ollama's own chat API. Its OpenAI-compatible one has no way to say how long the window must be, and what is longer
//! than the window (4,096 tokens by default) is dropped in silence.

use super::{Api, Prompt, Unusable, Usage, count, without_thinking};
use serde_json::{Value, json};

pub(super) const API: Api = Api {
    base: "http://localhost:11434/api",
    bases: &["/api"],
    path: |_| "/chat".to_owned(),
    headers: &[],
    body,
    answer,
    usage,
    names_model: true,
    thread: None,
};

/// Another window makes the server load the model again, so that there are few of them.
const WINDOW_STEP: usize = 4_096;

fn body(model: &str, prompt: &Prompt, _: &str) -> Value {
    let system = (!prompt.system.is_empty()).then(|| json!({ "role": "system", "content": prompt.system }));
    let user = prompt.messages.iter().map(|text| json!({ "role": "user", "content": text }));
    let messages: Vec<Value> = system.into_iter().chain(user).collect();
    // A tenth more: what the prompt takes is an estimate, and open models' tokenizers differ.
    let needed = prompt.tokens.saturating_add(prompt.tokens / 10).saturating_add(prompt.max_tokens);
    let window = needed.div_ceil(WINDOW_STEP).saturating_mul(WINDOW_STEP);
    json!({
        "model": model,
        "messages": messages,
        "stream": false,
        // Too long is an error where the server knows these two.
        "truncate": false,
        "shift": false,
        "options": { "num_predict": prompt.max_tokens, "num_ctx": window },
    })
}

fn answer(json: &Value) -> Result<String, Unusable> {
    match json.get("done_reason").and_then(Value::as_str) {
        Some("length") => return Err(Unusable::cut()),
        Some("load" | "unload") => return Err(Unusable::later("the model was loaded and answered nothing")),
        _ => {}
    }
    let Some(message) = json.get("message") else {
        return Err(Unusable::later("the answer has no message"));
    };
    let calls = message.get("tool_calls").and_then(Value::as_array);
    if calls.is_some_and(|calls| !calls.is_empty()) {
        return Err(Unusable::called());
    }
    without_thinking(message.get("content").and_then(Value::as_str).unwrap_or_default())
}

fn usage(json: &Value) -> Option<Usage> {
    json.get("eval_count")?;
    Some(Usage {
        input: count(json, "/prompt_eval_count"),
        output: count(json, "/eval_count"),
        ..Usage::default()
    })
}
