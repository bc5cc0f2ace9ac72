//! What providers and servers say when a prompt is too long, and what sounds like it.

use context_compactor_core::wire::provider::is_context_overflow;

const TOO_LONG: [&str; 60] = [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "This model's maximum context length is 4097 tokens, however you requested 4100 tokens (4000 in your prompt; 100 for the completion).",
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "context_length_exceeded",
    "Error: Context length exceeded",
    "Context limit exceeded",
    "Prompt too long",
    "Token limit reached",
    "Maximum context size exceeded",
    "context size has been exceeded",
    "The context size was exceeded by the request",
    "Context overflow: prompt too large for the model",
    "prompt is too long: 213462 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    "The input token count exceeds the maximum number of tokens allowed 1048576.",
    "Unable to submit request because the input token count is 1200000 but model only supports up to 1048576. The input token count exceeds the maximum.",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "Please reduce the length of the messages or completion.",
    "Please reduce the length of the messages. Your request is too large.",
    "the request exceeds the available context size, try increasing it",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "prompt too long; exceeded max context length by 12 tokens",
    "the input length exceeds the context length",
    "The number of tokens to keep from the initial prompt is greater than the context length",
    "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
    "Input is too long for requested model.",
    "ValidationException: Input is too long for requested model.",
    "The model returned the following errors: Input is too long for requested model.",
    "The model returned the following errors: too many input tokens: 210000",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "prompt token count of 130000 exceeds the limit of 128000",
    "too many tokens: total number of tokens in the prompt exceeds the size limit",
    "too many tokens: size limit exceeded by 22 tokens. Try using shorter or fewer inputs.",
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 200 `max_new_tokens`",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048",
    "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    "The prompt (total length 33000) is longer than the maximum model length of 32768",
    "invalid params, context window exceeds limit",
    "Invalid request: Your request exceeded model token limit: 131072",
    "Prompt exceeds max length",
    "exceeds max length for the prompt",
    "litellm.ContextWindowExceededError: context window of the model exceeded",
    "Requested token count exceeds the model's context window of 131072 tokens",
    "This request exceeds your model's context window",
    "400 Bad Request: maximum context length reached",
    "Error code: 400 - maximum context length is 32768 tokens. However, you requested 40000 tokens",
    "Requested tokens (5000) exceed context window: the context window of 4096 is exceeded",
    "Conversation too long: the context window was exceeded",
    "The conversation exceeds the context window. Start a new one.",
    "Error: the prompt is longer than the model can hold",
    "Prompt is longer than 32768 tokens",
    "The prompt exceeds 16384 tokens",
    "Your prompt exceeds the model's limit of 8000 tokens",
    "Input is too long: 40000 tokens",
    "Request exceeds the maximum number of input tokens (128000)",
    "PROMPT TOO LONG",
    "context limit exceeded: 201000 > 200000",
    "Generation failed: token limit reached (8192 of 8192)",
];

const OTHERS: [&str; 30] = [
    "Rate limit reached: too many tokens per min (TPM), the size limit is 30000",
    "Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.",
    "Daily token limit reached. Try again tomorrow.",
    "Token limit reached for this minute: 60000 tokens per minute",
    "Monthly token limit reached, upgrade your plan",
    "You exceeded your current quota, please check your plan and billing details.",
    "Your credit balance is too low: token limit reached",
    "max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens",
    "max_tokens is too large: 200000. This model supports at most 16384 completion tokens",
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after",
    "Internal server error",
    "Incorrect API key provided",
    "The model is overloaded. Please try again later.",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "The output was cut off: the output token limit reached",
    "Invalid value for temperature: must be at most 2",
    "The image exceeds the maximum size of 5 MB",
    "Too many requests",
    "The tool name is longer than 64 characters",
    "String too long: expected a string with maximum length 64 for tools[0].function.name",
    "Array too long: expected an array with at most 128 tools",
    "metadata exceeds the limit of 16 keys",
    "Connection timed out",
    "Request timed out after 600000 ms",
    "The prompt was refused by the content filter",
    "The maximum number of stop sequences is 4",
    "Unknown model: gpt-5-context",
    "The user's message must not be empty",
    "Quota exceeded for metric generate_content_free_tier_input_token_count, limit: 250000",
    "Concurrency limit exceeded",
];

#[test]
fn f27_sixty_texts_say_that_a_prompt_is_too_long() {
    for message in TOO_LONG {
        assert!(is_context_overflow(0, "", message, &[]), "{message}");
        assert!(is_context_overflow(400, "invalid_request_error", message, &[]), "{message}");
    }
}

#[test]
fn f27_thirty_texts_that_sound_like_it_do_not() {
    for message in OTHERS {
        assert!(!is_context_overflow(0, "", message, &[]), "{message}");
        assert!(!is_context_overflow(400, "invalid_request_error", message, &[]), "{message}");
    }
}

#[test]
fn f27_an_integration_extends_the_list() {
    let own = ["Das Fenster ist voll".to_owned(), "page is full".to_owned()];
    assert!(!is_context_overflow(400, "", "The page is full.", &[]));
    assert!(is_context_overflow(400, "", "The PAGE is full.", &own));
    assert!(is_context_overflow(429, "", "das fenster ist voll", &own));
    assert!(!is_context_overflow(400, "", "Something else", &own));
    assert!(!is_context_overflow(400, "", "Something else", &[String::new()]));
}

#[test]
fn z16_the_engine_says_what_a_page_says_without_it() {
    let rows = include_str!("../../../../tests/fixtures/overflow.json");
    let rows: Vec<(u16, String, String, Vec<String>, bool)> = serde_json::from_str(rows).unwrap();
    assert!(rows.len() >= 1_000);
    for (status, code, message, patterns, expected) in rows {
        // Without a code, the code of the engine is empty: the two questions are one.
        let said = |code: &str| is_context_overflow(status, code, &message, &patterns);
        assert_eq!(said(&code) || said(""), expected, "{status} {code:?} {message:?} {patterns:?}");
    }
}
