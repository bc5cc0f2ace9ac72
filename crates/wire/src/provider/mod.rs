//! The HTTP request of a summary call, and what its answer means. Who sends it is the edge's business.

mod anthropic;
mod gemini;
mod ollama;
mod openai;
mod overflow;
mod reported;
mod thread;

pub use overflow::is_context_overflow;
pub use reported::reported;
pub use thread::Thread;

use crate::{Format, decimal};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;
use unicode_segmentation::UnicodeSegmentation;

/// The APIs that a summary can be asked of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// OpenAI Chat Completions and every server that speaks it.
    Openai,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini's `generateContent`.
    Gemini,
    /// Ollama's own chat API.
    Ollama,
}

impl Kind {
    /// All, with the names that apps give them.
    pub const ALL: [(&'static str, Kind); 4] = [
        ("openai", Kind::Openai),
        ("anthropic", Kind::Anthropic),
        ("gemini", Kind::Gemini),
        ("ollama", Kind::Ollama),
    ];

    /// The format of a conversation that runs at such an endpoint; nothing where its messages have none of ours.
    fn format(self) -> Option<Format> {
        match self {
            Kind::Openai => Some(Format::OpenaiChat),
            Kind::Anthropic => Some(Format::Anthropic),
            Kind::Gemini => Some(Format::Gemini),
            Kind::Ollama => None,
        }
    }

    /// What takes up requests and answers: nothing that reads options may come by here.
    fn api(self) -> &'static Api {
        match self {
            Kind::Openai => &openai::API,
            Kind::Anthropic => &anthropic::API,
            Kind::Gemini => &gemini::API,
            Kind::Ollama => &ollama::API,
        }
    }
}

/// What differs between the APIs.
struct Api {
    /// The vendor's own base.
    base: &'static str,
    /// How an app's `url` ends where it is a base and not the endpoint.
    bases: &'static [&'static str],
    /// The endpoint, behind the base, of a model.
    path: fn(&str) -> String,
    /// Headers of every request besides the type of its body.
    headers: &'static [(&'static str, &'static str)],
    /// The body that asks the model at the URL.
    body: fn(&str, &Prompt, &str) -> Value,
    /// The text of an answer.
    answer: fn(&Value) -> Result<String, Unusable>,
    /// What an answer says that it cost.
    usage: fn(&Value) -> Option<Usage>,
    /// The body has the model's name; else the address has it.
    names_model: bool,
    /// How a request continues a conversation's own prompt; nothing where a conversation has no format of ours.
    thread: Option<thread::FillThread>,
}

/// Who is asked: the option `provider`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Provider {
    /// The API.
    pub kind: Kind,
    /// The model's name.
    pub model: String,
    /// The endpoint, or a base that ends in `/v1` (`/v1beta` for Gemini, `/api` for Ollama); the vendor's own by default.
    #[serde(default)]
    pub url: Option<String>,
    /// Headers of every request, keys among them; they go before ours whatever their case.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// What the conversation's own requests to this endpoint have besides model and messages: JSON text of an object. Nothing
    /// where the app does not say that they go there.
    #[serde(default)]
    pub request: Option<String>,
}

// Header values hold keys: they are never printed.
impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider")
            .field("kind", &self.kind)
            .field("model", &self.model)
            .field("url", &self.url)
            .field("headers", &self.headers.keys())
            .finish()
    }
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The system prompt.
    pub system: String,
    /// The user's messages.
    pub messages: Vec<String>,
    /// Cap of the answer, in tokens.
    pub max_tokens: usize,
    /// About what system prompt and messages take, in tokens.
    pub tokens: usize,
    /// The conversation's own prompt, where this is asked at its end instead.
    pub thread: Option<Thread>,
}

/// An HTTP request.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct HttpRequest {
    /// Always `POST`.
    pub method: &'static str,
    /// The endpoint.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// JSON text.
    pub body: String,
}

/// The text of a good answer and what it cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Tokens, as the provider counted them.
    pub usage: Option<Usage>,
}

/// Tokens of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// The whole prompt, cached or not. (Anthropic's `input_tokens` leaves the cached part out; it is added here.)
    pub input: u64,
    /// The whole answer, reasoning included.
    pub output: u64,
    /// The part of `input` that was read from the cache.
    pub cache_read: u64,
    /// The part of `input` that was written to the cache.
    pub cache_write: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
}

/// An answer that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// What happened. Quotes at most 300 characters of the answer and none of the request's headers.
    pub message: String,
    /// The HTTP status.
    pub status: u16,
    /// How long the server asks to wait.
    pub retry_after_ms: Option<u64>,
    /// The same request may do better later.
    pub retryable: bool,
    /// The prompt was too long: a smaller one may do better.
    pub overflow: bool,
}

/// The address that `provider` is asked at.
fn endpoint(provider: &Provider) -> String {
    let api = provider.kind.api();
    match provider.url.as_deref().map(|url| (url, url.trim_end_matches('/'))) {
        None => format!("{}{}", api.base, (api.path)(&provider.model)),
        Some((_, base)) if api.bases.iter().any(|end| base.ends_with(end)) => {
            format!("{base}{}", (api.path)(&provider.model))
        }
        Some((endpoint, _)) => endpoint.to_owned(),
    }
}

/// The same for an error: a query may hold a key.
fn place(provider: &Provider) -> String {
    let url = endpoint(provider);
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// What a body is that says nothing to a program: no text, or a page for people.
fn unreadable(body: &str) -> Option<&'static str> {
    let start = body.trim_start();
    let is_page = |tag: &str| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
    if start.is_empty() {
        Some("nothing")
    } else if is_page("<!doctype") || is_page("<html") {
        Some("a page of HTML")
    } else {
        None
    }
}

/// The request that asks `provider` for an answer to `prompt`.
pub fn request(provider: &Provider, prompt: &Prompt) -> HttpRequest {
    let continued = prompt.thread.as_ref();
    if let Some(request) = continued.and_then(|own| thread::request(provider, own, prompt.max_tokens)) {
        return request;
    }
    let url = endpoint(provider);
    let body = (provider.kind.api().body)(&provider.model, prompt, &url);
    http(provider, url, body.to_string())
}

/// A request with the headers of the API and of the app.
fn http(provider: &Provider, url: String, body: String) -> HttpRequest {
    let api = provider.kind.api();
    let own = [("content-type", "application/json")].iter().chain(api.headers);
    let own = own
        .filter(|(name, _)| !provider.headers.keys().any(|given| given.eq_ignore_ascii_case(name)))
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let given = provider.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
    HttpRequest { method: "POST", url, headers: own.chain(given).collect(), body }
}

/// What the answer to such a request means. `header` looks a response header up by its lower-case name; `now_ms` is
/// the time at which it came, for a `Retry-After` that is a date.
pub fn response<'h>(
    provider: &Provider,
    status: u16,
    header: impl Fn(&str) -> Option<&'h str>,
    body: &str,
    now_ms: u64,
) -> Result<Answer, Failure> {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let unusable = if !(200..300).contains(&status) || !json.get("error").unwrap_or(&Value::Null).is_null() {
        refused(provider, status, &json, body)
    } else if json.is_object() {
        let api = provider.kind.api();
        match (api.answer)(&json) {
            Ok(text) if !text.trim().is_empty() => return Ok(Answer { text, usage: (api.usage)(&json) }),
            Ok(_) => Unusable::later("the model's answer is empty"),
            Err(unusable) => unusable,
        }
    } else {
        let what = match unreadable(body) {
            Some(what) => format!(
                "{} answered {status} with {what} in place of JSON: is it the API's address?",
                place(provider)
            ),
            None => format!("the answer is no JSON object: {body}"),
        };
        Unusable::later(&what)
    };
    Err(Failure {
        message: cut(&without_secrets(&unusable.message, provider), QUOTED),
        status,
        retry_after_ms: retry_after(header, now_ms).or_else(|| retry_delay(&json)),
        retryable: unusable.retryable && !unusable.overflow,
        overflow: unusable.overflow,
    })
}

/// Why an answer cannot be used.
struct Unusable {
    message: String,
    retryable: bool,
    overflow: bool,
}

impl Unusable {
    /// Asking again may do better.
    fn later(message: &str) -> Self {
        Unusable { message: message.to_owned(), retryable: true, overflow: false }
    }

    /// Asking again is no use.
    fn never(message: &str) -> Self {
        Unusable { message: message.to_owned(), retryable: false, overflow: false }
    }

    /// Summaries are asked for without tools.
    fn called() -> Self {
        Self::later("the model called a tool instead of writing a summary")
    }

    /// The answer ends where the cap was.
    fn cut() -> Self {
        Self::later(
            "the summary was cut at maxTokens, which follow targetTokens: raise that, as in offload: { targetTokens }, or ask for \
             a shorter summary in `instructions`",
        )
    }
}

/// Servers without a reasoning parser leave the reasoning of open models at the start of the text.
fn without_thinking(text: &str) -> Result<String, Unusable> {
    match text.trim_start().strip_prefix("<think>") {
        None => Ok(text.to_owned()),
        Some(rest) => match rest.split_once("</think>") {
            Some((_, answer)) => Ok(answer.trim_start().to_owned()),
            None => Err(Unusable::cut()),
        },
    }
}

/// Characters of a failure's message.
const QUOTED: usize = 300;

/// An error of the API, in any of the shapes `{ error: { message, code, type } }`, `{ error: text }`, `{ message }`.
fn refused(provider: &Provider, status: u16, json: &Value, body: &str) -> Unusable {
    let error = json.get("error").filter(|error| !error.is_null()).unwrap_or(json);
    let text = |key: &str| error.get(key).and_then(Value::as_str);
    let message = error.as_str().or_else(|| text("message")).unwrap_or(body).trim();
    let code = text("code").or_else(|| text("type")).unwrap_or_default();
    // Some gateways answer 200 and put the status of the model's server into the error.
    let inner = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let status = if (200..300).contains(&status) { inner.unwrap_or(status) } else { status };
    let exhausted = ["insufficient_quota", "billing_hard_limit_reached"].contains(&code);
    let told = match unreadable(message) {
        Some(what) => format!("the provider answered {status} with {what} ({}) {message}", place(provider)),
        None => format!("the provider answered {status}: {message}"),
    };
    Unusable {
        message: told.trim_end().to_owned(),
        retryable: !exhausted && (matches!(status, 408 | 409 | 425 | 429) || status >= 500),
        overflow: is_context_overflow(status, code, message, &[]),
    }
}

/// Milliseconds to wait: `retry-after-ms`, or `retry-after` in seconds or as a date.
fn retry_after<'h>(header: impl Fn(&str) -> Option<&'h str>, now_ms: u64) -> Option<u64> {
    let number = |text: &str| decimal(text.trim()).filter(|n| *n >= 0.0);
    if let Some(ms) = header("retry-after-ms").and_then(number) {
        return Some(ms as u64);
    }
    let value = header("retry-after")?;
    if let Some(seconds) = number(value) {
        return Some((seconds * 1_000.0) as u64);
    }
    let at = httpdate::parse_http_date(value.trim()).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(u64::try_from(at.as_millis()).ok()?.saturating_sub(now_ms))
}

/// Gemini says it in the error: `{ details: [{ retryDelay: "34.5s" }] }`.
fn retry_delay(json: &Value) -> Option<u64> {
    let details = json.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds = decimal(delay.strip_suffix('s')?)?;
    (seconds >= 0.0).then_some((seconds * 1_000.0) as u64)
}

/// A server may echo the key that it was sent.
fn without_secrets(message: &str, provider: &Provider) -> String {
    let secrets = provider.headers.values().flat_map(|value| value.split_whitespace());
    secrets
        .filter(|secret| secret.len() >= 8)
        .fold(message.to_owned(), |message, secret| message.replace(secret, "[redacted]"))
}

/// The start of a text, at most `limit` characters, whole graphemes only.
fn cut(text: &str, limit: usize) -> String {
    let mut left = limit;
    let whole = |grapheme: &&str| {
        let size = grapheme.chars().count();
        let fits = size <= left;
        left = if fits { left - size } else { 0 };
        fits
    };
    text.graphemes(true).take_while(whole).collect()
}

/// A count in a usage object, at a path.
fn count(usage: &Value, path: &str) -> u64 {
    usage.pointer(path).and_then(Value::as_u64).unwrap_or(0)
}

// Headers and body hold keys and the conversation: they are never printed.
impl std::fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpRequest").field("url", &self.url).finish_non_exhaustive()
    }
}
