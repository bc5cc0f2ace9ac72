//! Recognising that a prompt was too long: no two providers say it alike.

/// Error codes and types that say it, whatever the message.
const CODES: [&str; 6] = [
    "context_length_exceeded",
    "context_window_exceeded",
    "model_context_window_exceeded",
    "string_above_max_length",
    // LM Studio and llama.cpp.
    "exceed_context_size_error",
    // Bedrock, by way of gateways.
    "context_window_exceeded_error",
];

/// Parts of messages that say it; all parts of one line must occur. Lower case.
const MESSAGES: [&[&str]; 34] = [
    // OpenAI, OpenRouter, Mistral, vLLM, DeepSeek, Together.
    &["maximum context length"],
    &["context_length_exceeded"],
    &["context length exceeded"],
    &["exceeds the context window"],
    // Groq.
    &["reduce the length of the messages"],
    // Anthropic, also on Bedrock and Vertex.
    &["prompt is too long"],
    &["input length and `max_tokens` exceed context limit"],
    // Gemini.
    &["input token count", "exceeds the maximum"],
    // GitHub Copilot.
    &["prompt token count", "exceeds the limit"],
    // Bedrock.
    &["input is too long for requested model"],
    &["too many input tokens"],
    // xAI.
    &["maximum prompt length is"],
    // Cohere.
    &["too many tokens", "size limit"],
    // llama.cpp and Ollama.
    &["exceeds the available context size"],
    &["exceeded max context length"],
    &["input length exceeds", "context length"],
    // LM Studio.
    &["greater than the context length"],
    &["context length of only"],
    // TGI and vLLM.
    &["`inputs` tokens + `max_new_tokens` must be"],
    &["longer than the maximum model length"],
    // MiniMax, Kimi, GLM.
    &["context window exceeds limit"],
    &["exceeded model token limit"],
    &["exceeds max length", "prompt"],
    // Gateways.
    &["context window", "exceeded"],
    &["exceeds", "model's context window"],
    &["context limit exceeded"],
    &["context size", "exceeded"],
    &["context overflow"],
    &["prompt too long"],
    &["prompt is longer than"],
    &["prompt exceeds", "tokens"],
    &["input is too long"],
    &["exceeds", "maximum number of input tokens"],
    &["token limit reached"],
];

/// What a message speaks of that is no matter of one prompt's length: a rate, a bill, an answer's length.
const OTHER: [&str; 14] = [
    "rate limit",
    "rate_limit",
    "quota",
    "per minute",
    "per min",
    "per hour",
    "per day",
    "daily",
    "hourly",
    "monthly",
    "billing",
    "credit",
    "output token limit",
    "max_tokens limit",
];

/// True when an error of a provider says that the prompt is longer than the model's context window: by its HTTP
/// `status` (0 when unknown), the `code` or `type` of its body, and its message. `patterns` are texts of a server of the
/// app's own: a message with one of them says it too, in upper or lower case.
pub fn is_context_overflow(status: u16, code: &str, message: &str, patterns: &[String]) -> bool {
    let message = message.to_lowercase();
    if patterns.iter().any(|own| !own.is_empty() && message.contains(&own.to_lowercase())) {
        return true;
    }
    // Rate limits speak of tokens too, and a shorter prompt is not what they ask for.
    if status == 429 || (500..600).contains(&status) && !says_so(&message) {
        return false;
    }
    status == 413 || CODES.contains(&code.to_ascii_lowercase().as_str()) || says_so(&message)
}

/// `message` is in lower case.
fn says_so(message: &str) -> bool {
    MESSAGES.iter().any(|parts| parts.iter().all(|part| message.contains(part)))
        && !OTHER.iter().any(|other| message.contains(other))
}
