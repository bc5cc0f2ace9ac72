//! The summary call's request and what its answers mean.

use context_compactor_core::wire::provider::{
    Answer, Failure, HttpRequest, Kind, Prompt, Provider, Usage, is_context_overflow, request, response,
};
use serde_json::{Value, json};

const KEY: &str = "sk-test-0123456789";

fn provider(kind: Kind) -> Provider {
    let headers = [("Authorization".to_owned(), format!("Bearer {KEY}"))].into_iter().collect();
    Provider { kind, model: "m".to_owned(), url: None, headers, request: None }
}

fn ask(provider: &Provider) -> (HttpRequest, Value) {
    let prompt = Prompt {
        system: "Summarise.".to_owned(),
        messages: vec!["안녕 \"x\"".to_owned()],
        max_tokens: 900,
        tokens: 3_000,
        thread: None,
    };
    let request = request(provider, &prompt);
    let body = serde_json::from_str(&request.body).unwrap();
    (request, body)
}

fn answer(kind: Kind, status: u16, body: &Value) -> Result<Answer, Failure> {
    response(&provider(kind), status, |_| None, &body.to_string(), 0)
}

fn failure(kind: Kind, status: u16, body: &Value) -> Failure {
    answer(kind, status, body).unwrap_err()
}

#[test]
fn s1_7_openai_request() {
    let (request, body) = ask(&provider(Kind::Openai));
    assert_eq!(
        (request.method, request.url.as_str()),
        ("POST", "https://api.openai.com/v1/chat/completions")
    );
    assert_eq!(
        body,
        json!({ "model": "m", "max_completion_tokens": 900, "messages": [
            { "role": "system", "content": "Summarise." }, { "role": "user", "content": "안녕 \"x\"" }] }),
        "no tools, not even an empty list"
    );
    assert!(request.headers.contains(&("content-type".to_owned(), "application/json".to_owned())));
    assert!(request.headers.contains(&("Authorization".to_owned(), format!("Bearer {KEY}"))));
}

#[test]
fn s1_7_compatible_servers() {
    for (url, endpoint) in [
        ("http://localhost:11434/v1", "http://localhost:11434/v1/chat/completions"),
        ("http://localhost:11434/v1/", "http://localhost:11434/v1/chat/completions"),
        ("https://example.com/api.openai.com/chat", "https://example.com/api.openai.com/chat"),
        ("https://api.openai.com.example.com/v1", "https://api.openai.com.example.com/v1/chat/completions"),
    ] {
        let (request, body) = ask(&Provider { url: Some(url.to_owned()), ..provider(Kind::Openai) });
        assert_eq!(request.url, endpoint);
        assert_eq!((&body["max_tokens"], &body["max_completion_tokens"]), (&json!(900), &Value::Null));
    }
    let own = Provider { url: Some("https://api.openai.com/v1".to_owned()), ..provider(Kind::Openai) };
    assert_eq!(ask(&own).1["max_completion_tokens"], 900);
}

#[test]
fn s1_7_anthropic_request() {
    let (request, body) = ask(&provider(Kind::Anthropic));
    assert_eq!(request.url, "https://api.anthropic.com/v1/messages");
    assert_eq!(
        body,
        json!({ "model": "m", "max_tokens": 900, "system": "Summarise.",
            "messages": [{ "role": "user", "content": "안녕 \"x\"" }] })
    );
    let names: Vec<&str> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["content-type", "anthropic-version", "Authorization"]);
}

#[test]
fn the_callers_headers_win_whatever_their_case() {
    let headers = [("Anthropic-Version", "2030-01-01"), ("CONTENT-TYPE", "application/json; charset=utf-8")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let provider = Provider { headers: headers.clone().into_iter().collect(), ..provider(Kind::Anthropic) };
    assert_eq!(ask(&provider).0.headers, headers);
}

#[test]
fn keys_are_never_printed() {
    assert!(!format!("{:?}", provider(Kind::Openai)).contains(KEY));
    assert!(!format!("{:?}", ask(&provider(Kind::Openai)).0).contains(KEY));
    let echo = json!({ "error": { "message": format!("Incorrect API key provided: {KEY}."), "code": "invalid_api_key" } });
    for kind in [Kind::Openai, Kind::Anthropic] {
        let failure = failure(kind, 401, &echo);
        assert_eq!(failure.message, "the provider answered 401: Incorrect API key provided: [redacted].");
        assert!(!failure.retryable);
    }
}

#[test]
fn a_good_answer_with_its_usage() {
    let body = json!({ "choices": [{ "finish_reason": "stop", "message": { "role": "assistant", "content": "Sum.",
            "tool_calls": [], "refusal": null } }],
        "usage": { "prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": { "cached_tokens": 60 },
            "completion_tokens_details": { "reasoning_tokens": 7 } } });
    let usage = Usage { input: 100, output: 20, cache_read: 60, cache_write: 0, reasoning: 7 };
    assert_eq!(answer(Kind::Openai, 200, &body), Ok(Answer { text: "Sum.".to_owned(), usage: Some(usage) }));

    let body = json!({ "stop_reason": "end_turn", "content": [{ "type": "thinking", "thinking": "hm" },
            { "type": "text", "text": "Su" }, { "type": "text", "text": "m." }],
        "usage": { "input_tokens": 10, "output_tokens": 20, "cache_read_input_tokens": 60,
            "cache_creation_input_tokens": 30 } });
    let usage = Usage { input: 100, output: 20, cache_read: 60, cache_write: 30, reasoning: 0 };
    assert_eq!(
        answer(Kind::Anthropic, 200, &body),
        Ok(Answer { text: "Sum.".to_owned(), usage: Some(usage) })
    );
}

fn openai(finish: &str, message: Value) -> Value {
    json!({ "choices": [{ "finish_reason": finish, "message": message }] })
}

#[test]
fn reasoning_that_servers_leave_in_the_text_is_no_summary() {
    let text = |content: &str| {
        answer(Kind::Openai, 200, &openai("stop", json!({ "content": content }))).map(|answer| answer.text)
    };
    assert_eq!(text("<think>\nhm\n</think>\n\nSum.").unwrap(), "Sum.");
    assert_eq!(text("Mind <think> tags.").unwrap(), "Mind <think> tags.");
    assert!(text("<think>hm").is_err());
}

// lesson: output cap wrong
#[test]
fn a_cut_answer_is_a_failure() {
    let cut = "the summary was cut at maxTokens";
    let body = openai("length", json!({ "content": "Sum" }));
    assert!(failure(Kind::Openai, 200, &body).message.starts_with(cut));
    let body = json!({ "stop_reason": "max_tokens", "content": [{ "type": "text", "text": "Sum" }] });
    assert!(failure(Kind::Anthropic, 200, &body).message.starts_with(cut));
    let body = json!({ "stop_reason": "model_context_window_exceeded", "content": [] });
    assert!(failure(Kind::Anthropic, 200, &body).overflow);
}

// lesson: summariser misbehaves
#[test]
fn refusals_calls_and_silence_are_failures() {
    let call = json!([{ "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } }]);
    for (body, retryable) in [
        (openai("stop", json!({ "content": null, "refusal": "No." })), false),
        (openai("content_filter", json!({ "content": "Su" })), false),
        (openai("tool_calls", json!({ "content": "Sum.", "tool_calls": call })), true),
        (openai("stop", json!({ "content": " \n" })), true),
        (openai("stop", json!({ "content": null })), true),
        (openai("stop", Value::Null), true),
        (json!({ "choices": [] }), true),
        (json!({}), true),
        (json!("Sum."), true),
    ] {
        let failure = failure(Kind::Openai, 200, &body);
        assert_eq!((failure.retryable, failure.overflow, failure.status), (retryable, false, 200), "{body}");
    }
    let text = json!({ "type": "text", "text": "Sum." });
    for (body, retryable) in [
        (json!({ "stop_reason": "refusal", "content": [text] }), false),
        (json!({ "stop_reason": "tool_use", "content": [text] }), true),
        (json!({ "stop_reason": "end_turn", "content": [text, { "type": "tool_use" }] }), true),
        (json!({ "stop_reason": "end_turn", "content": [] }), true),
        (json!({}), true),
    ] {
        assert_eq!(failure(Kind::Anthropic, 200, &body).retryable, retryable, "{body}");
    }
}

#[test]
fn s1_7_gemini_request() {
    let (request, body) = ask(&provider(Kind::Gemini));
    let base = "https://generativelanguage.googleapis.com/v1beta";
    assert_eq!(request.url, format!("{base}/models/m:generateContent"));
    assert_eq!(
        body,
        json!({ "systemInstruction": { "parts": [{ "text": "Summarise." }] },
            "contents": [{ "role": "user", "parts": [{ "text": "안녕 \"x\"" }] }],
            "generationConfig": { "maxOutputTokens": 900 } })
    );
    for (url, model, endpoint) in [
        (base, "models/gemini-3-pro", format!("{base}/models/gemini-3-pro:generateContent")),
        (base, "tunedModels/mine", format!("{base}/tunedModels/mine:generateContent")),
        (
            "https://proxy.example/v1/",
            "a?b#c 字",
            "https://proxy.example/v1/models/a%3Fb%23c%20%E5%AD%97:generateContent".into(),
        ),
        ("https://proxy.example/x:generateContent", "m", "https://proxy.example/x:generateContent".into()),
    ] {
        let asked = Provider { url: Some(url.to_owned()), model: model.to_owned(), ..provider(Kind::Gemini) };
        assert_eq!(ask(&asked).0.url, endpoint);
    }
}

#[test]
fn s1_7_gemini_answers() {
    let of = |candidate: Value| {
        json!({ "candidates": [candidate], "usageMetadata": {
        "promptTokenCount": 900, "cachedContentTokenCount": 100, "candidatesTokenCount": 30, "thoughtsTokenCount": 12 } })
    };
    let parts = json!([{ "text": "I think.", "thought": true }, { "text": "Read " }, { "text": "it." }]);
    let good =
        answer(Kind::Gemini, 200, &of(json!({ "content": { "parts": parts }, "finishReason": "STOP" })));
    let usage = Usage { input: 900, output: 42, cache_read: 100, cache_write: 0, reasoning: 12 };
    assert_eq!(good, Ok(Answer { text: "Read it.".to_owned(), usage: Some(usage) }));
    let call =
        json!({ "content": { "parts": [{ "functionCall": { "name": "read" } }] }, "finishReason": "STOP" });
    for (body, retryable) in [
        (of(json!({ "content": { "parts": parts }, "finishReason": "MAX_TOKENS" })), true),
        (of(json!({ "content": { "parts": parts }, "finishReason": "SAFETY" })), false),
        (of(json!({ "content": { "parts": parts }, "finishReason": "OTHER" })), true),
        (of(json!({ "finishReason": "UNEXPECTED_TOOL_CALL" })), true),
        (of(json!({ "finishReason": "STOP" })), true),
        (of(call), true),
        (json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" } }), false),
        (json!({ "candidates": [] }), true),
    ] {
        assert_eq!(failure(Kind::Gemini, 200, &body).retryable, retryable, "{body}");
    }
    let busy = json!({ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota",
        "details": [{ "@type": "x/RetryInfo", "retryDelay": "34.5s" }] } });
    assert_eq!(failure(Kind::Gemini, 429, &busy).retry_after_ms, Some(34_500));
    let long = json!({ "error": { "code": 400, "status": "INVALID_ARGUMENT",
        "message": "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)." } });
    assert!(failure(Kind::Gemini, 400, &long).overflow);
}

// lesson: the model's server drops what is longer than its window
#[test]
fn s1_7_ollama_request_names_the_window_that_it_needs() {
    let (request, body) = ask(&provider(Kind::Ollama));
    assert_eq!(request.url, "http://localhost:11434/api/chat");
    assert_eq!(
        body,
        json!({ "model": "m", "stream": false, "truncate": false, "shift": false, "messages": [
            { "role": "system", "content": "Summarise." }, { "role": "user", "content": "안녕 \"x\"" }],
            // 3,000 and a tenth, and 900 of the answer: the next multiple of 4,096.
            "options": { "num_predict": 900, "num_ctx": 8_192 } })
    );
    let remote = Provider { url: Some("https://models.example/api/".to_owned()), ..provider(Kind::Ollama) };
    assert_eq!(ask(&remote).0.url, "https://models.example/api/chat");
}

#[test]
fn s1_7_ollama_answers() {
    let of = |text: &str, reason: &str| {
        json!({ "message": { "role": "assistant", "content": text, "thinking": "Hm." },
        "done": true, "done_reason": reason, "prompt_eval_count": 900, "eval_count": 30 })
    };
    let usage = Usage { input: 900, output: 30, ..Usage::default() };
    let good = Ok(Answer { text: "Read it.".to_owned(), usage: Some(usage) });
    assert_eq!(answer(Kind::Ollama, 200, &of("Read it.", "stop")), good);
    assert_eq!(answer(Kind::Ollama, 200, &of("<think>Hm.</think>\n\nRead it.", "stop")), good);
    let called = json!({ "message": { "content": "", "tool_calls": [{ "function": { "name": "read" } }] } });
    for body in [of("Read", "length"), of("", "load"), of("", "stop"), called, json!({ "done": true })] {
        assert!(failure(Kind::Ollama, 200, &body).retryable, "{body}");
    }
    let missing = json!({ "error": "model 'm' not found" });
    let failed = failure(Kind::Ollama, 404, &missing);
    assert_eq!(
        (failed.message.as_str(), failed.retryable),
        ("the provider answered 404: model 'm' not found", false)
    );
    let long = json!({ "error": "the input length exceeds the context length" });
    assert!(failure(Kind::Ollama, 400, &long).overflow);
}

#[test]
fn errors_inside_a_good_status_are_errors() {
    let body = json!({ "error": { "code": 502, "message": "Upstream died" }, "choices": [] });
    let failure = failure(Kind::Openai, 200, &body);
    assert_eq!(
        (failure.message.as_str(), failure.retryable),
        ("the provider answered 502: Upstream died", true)
    );
}

#[test]
fn which_errors_may_pass() {
    let error = |code: &str| json!({ "type": "error", "error": { "type": code, "message": "x" } });
    for (status, code, retryable) in [
        (400, "invalid_request_error", false),
        (401, "authentication_error", false),
        (404, "not_found_error", false),
        (408, "timeout", true),
        (429, "rate_limit_error", true),
        (429, "insufficient_quota", false),
        (500, "api_error", true),
        (529, "overloaded_error", true),
    ] {
        assert_eq!(failure(Kind::Anthropic, status, &error(code)).retryable, retryable, "{status} {code}");
    }
}

#[test]
fn an_error_body_is_quoted_up_to_whole_graphemes() {
    let family = "👩‍👩‍👧‍👦";
    let body = format!("<html>{}", family.repeat(200));
    let failure = response(&provider(Kind::Openai), 503, |_| None, &body, 0).unwrap_err();
    assert!(failure.message.starts_with("the provider answered 503 with a page of HTML (https://"));
    assert!(failure.message.contains(") <html>"));
    assert!(failure.message.chars().count() <= 300 && failure.message.chars().count() > 290);
    assert!(failure.message.ends_with(family), "{}", failure.message);
}

#[test]
fn retry_after_in_every_form() {
    let now = 784_111_777_000; // Sun, 06 Nov 1994 08:49:37 GMT
    let wait = |name: &'static str, value: &'static str| {
        let header = move |asked: &str| (asked == name).then_some(value);
        response(&provider(Kind::Openai), 429, header, "{}", now).unwrap_err().retry_after_ms
    };
    assert_eq!(wait("retry-after", "2"), Some(2_000));
    assert_eq!(wait("retry-after", "0.5"), Some(500));
    assert_eq!(wait("retry-after-ms", "1500"), Some(1_500));
    assert_eq!(wait("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT"), Some(3_000));
    assert_eq!(wait("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
    for nonsense in ["soon", "-1", "NaN", "inf", ""] {
        assert_eq!(wait("retry-after", nonsense), None, "{nonsense}");
    }
}

// lesson: compaction request overflows
#[test]
fn overflow_is_recognised_by_code_status_and_message() {
    for (status, code, message) in [
        (400, "context_length_exceeded", ""),
        (
            400,
            "",
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000.",
        ),
        (400, "", "Your input exceeds the context window of this model."),
        (400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"),
        (400, "", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        (413, "request_too_large", "Request exceeds the maximum size"),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        ),
        (
            400,
            "",
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        ),
        (400, "", "Please reduce the length of the messages or completion."),
        (400, "", "the request exceeds the available context size, try increasing it"),
        (400, "", "prompt too long; exceeded max context length by 12 tokens"),
        (400, "", "The number of tokens to keep from the initial prompt is greater than the context length"),
        (
            400,
            "",
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 200000.",
        ),
        (400, "ValidationException", "Input is too long for requested model."),
        (400, "", "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
        (400, "", "prompt token count of 130000 exceeds the limit of 128000"),
        (400, "", "invalid params, context window exceeds limit"),
        (400, "", "Your request exceeded model token limit: 131072"),
        (500, "", "Requested tokens exceed context window: the input exceeds the context window"),
    ] {
        assert!(is_context_overflow(status, code, message, &[]), "{status} {code} {message}");
    }
    for (status, code, message) in [
        (
            429,
            "rate_limit_exceeded",
            "Rate limit reached: too many tokens per min (TPM), the size limit is 30000",
        ),
        (
            400,
            "invalid_request_error",
            "max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens",
        ),
        (400, "", "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after"),
        (500, "api_error", "Internal server error"),
        (401, "", "Incorrect API key provided"),
        (0, "", ""),
    ] {
        assert!(!is_context_overflow(status, code, message, &[]), "{status} {code} {message}");
    }
    let body = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "prompt is too long: 2 > 1" } });
    let failure = failure(Kind::Anthropic, 400, &body);
    assert!(failure.overflow && !failure.retryable);
}
