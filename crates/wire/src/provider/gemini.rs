//! Gemini's `generateContent`.

use super::thread;
use super::{Api, Prompt, Unusable, Usage, count};
use serde_json::{Value, json};

pub(super) const API: Api = Api {
    base: "https://generativelanguage.googleapis.com/v1beta",
    bases: &["/v1beta", "/v1"],
    path: |model| format!("/{}:generateContent", resource(model)),
    headers: &[],
    body,
    answer,
    usage,
    names_model: false,
    thread: Some(thread::gemini),
};

/// `gemini-x` is `models/gemini-x`; a name with a folder stands as it is. Nothing in a name ends the path.
fn resource(model: &str) -> String {
    let model: String = model
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect();
    if model.contains('/') { model } else { format!("models/{model}") }
}

fn body(_: &str, prompt: &Prompt, _: &str) -> Value {
    let parts = |text: &str| json!([{ "text": text }]);
    let contents: Vec<Value> =
        prompt.messages.iter().map(|text| json!({ "role": "user", "parts": parts(text) })).collect();
    let mut body =
        json!({ "contents": contents, "generationConfig": { "maxOutputTokens": prompt.max_tokens } });
    if let Some(fields) = body.as_object_mut().filter(|_| !prompt.system.is_empty()) {
        fields.insert("systemInstruction".to_owned(), json!({ "parts": parts(&prompt.system) }));
    }
    body
}

fn answer(json: &Value) -> Result<String, Unusable> {
    let text = |path: &str| json.pointer(path).and_then(Value::as_str);
    let Some(candidate) = json.pointer("/candidates/0") else {
        return Err(match text("/promptFeedback/blockReason") {
            Some(reason) => Unusable::never(&format!("the provider refused the prompt: {reason}")),
            None => Unusable::later("the answer has no candidates"),
        });
    };
    match text("/candidates/0/finishReason") {
        None | Some("STOP" | "FINISH_REASON_UNSPECIFIED") => {}
        Some("MAX_TOKENS") => return Err(Unusable::cut()),
        Some("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS") => {
            return Err(Unusable::called());
        }
        Some("OTHER") => return Err(Unusable::later("the provider stopped the answer without a reason")),
        Some(reason) => return Err(Unusable::never(&format!("the provider stopped the answer: {reason}"))),
    }
    let parts = candidate.pointer("/content/parts").and_then(Value::as_array).map(Vec::as_slice);
    let parts = parts.unwrap_or_default();
    if parts.iter().any(|part| part.get("functionCall").is_some()) {
        return Err(Unusable::called());
    }
    let is_thought = |part: &&Value| part.get("thought").and_then(Value::as_bool) == Some(true);
    let texts = parts.iter().filter(|part| !is_thought(part));
    Ok(texts.filter_map(|part| part.get("text").and_then(Value::as_str)).collect())
}

fn usage(json: &Value) -> Option<Usage> {
    let usage = json.get("usageMetadata").filter(|usage| usage.is_object())?;
    let reasoning = count(usage, "/thoughtsTokenCount");
    Some(Usage {
        input: count(usage, "/promptTokenCount"),
        output: count(usage, "/candidatesTokenCount").saturating_add(reasoning),
        cache_read: count(usage, "/cachedContentTokenCount"),
        cache_write: 0,
        reasoning,
    })
}
