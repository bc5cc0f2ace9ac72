//! A request that continues a conversation's own prompt: the provider has that in its cache.

use super::{HttpRequest, Provider, http};
use crate::Format;
use crate::record::Json;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A conversation's own prompt, and what is asked at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// The system prompt as it went with the messages; empty for none.
    pub system: String,
    /// The definitions of the tools, JSON text; empty for none.
    pub tools: String,
    /// The messages, JSON texts.
    pub messages: Vec<Rc<str>>,
    /// What is asked.
    pub instruction: String,
}

/// The fields of a request, JSON texts: what is in them stays as it was written, so that the provider knows it again.
type RequestFields = BTreeMap<String, Box<RawValue>>;

/// Of a request of the app these are not the prompt, or are said anew.
const OWN: [&str; 5] = ["model", "messages", "contents", "stream", "stream_options"];

impl Provider {
    /// The format of a conversation that runs at this endpoint; nothing where its messages have none of ours.
    pub fn format(&self) -> Option<Format> {
        self.kind.format()
    }

    /// A request may continue the conversation's own: the app said what else is in that, and it does not make the model call
    /// a tool.
    pub fn continues(&self) -> bool {
        let Some(mut fields) = self.request.as_deref().and_then(|text| Json::of(text).ok()) else {
            return false;
        };
        let mut forces = false;
        let read = fields.object(&mut |name, json| {
            let words: &[&str] = match name {
                "tool_choice" => &["\"any\"", "\"required\"", "\"tool\"", "\"function\""],
                "toolConfig" => &["\"ANY\""],
                _ => &[],
            };
            let choice = json.raw();
            forces |= words.iter().any(|word| choice.contains(word));
            Ok(())
        });
        self.kind.format().is_some() && read.is_ok() && !forces
    }
}

/// Adds the prompt and the cap of the answer to the app's fields.
pub(super) type FillThread = fn(&mut RequestFields, &Thread, usize, &str);

/// The request that continues the conversation's prompt; nothing where `provider` does not say how.
pub(super) fn request(provider: &Provider, thread: &Thread, max_tokens: usize) -> Option<HttpRequest> {
    let api = provider.kind.api();
    let mut fields = fields(provider.request.as_deref()?)?;
    OWN.iter().for_each(|name| drop(fields.remove(*name)));
    let url = super::endpoint(provider);
    (api.thread?)(&mut fields, thread, max_tokens, &url);
    if api.names_model {
        put(&mut fields, "model", json!(provider.model).to_string());
    }
    Some(http(provider, url, object(&fields)))
}

fn fields(text: &str) -> Option<RequestFields> {
    serde_json::from_str(text).ok()
}

fn put(fields: &mut RequestFields, name: &str, json: String) {
    // What is no JSON cannot be sent: a field fewer is refused by the provider, and then another form is asked.
    if let Ok(value) = RawValue::from_string(json) {
        fields.insert(name.to_owned(), value);
    }
}

/// A field of the session, where the app does not say it itself. Servers refuse an empty list.
fn put_own(fields: &mut RequestFields, name: &str, json: &str) {
    if !json.is_empty() && json != "[]" && !fields.contains_key(name) {
        put(fields, name, json.to_owned());
    }
}

fn object(fields: &RequestFields) -> String {
    serde_json::to_string(fields).unwrap_or_default()
}

fn list<'t>(texts: impl Iterator<Item = Cow<'t, str>>) -> String {
    format!("[{}]", texts.collect::<Vec<_>>().join(","))
}

fn messages<'t>(thread: &'t Thread, first: Option<Value>, last: &Value) -> String {
    let own = thread.messages.iter().map(|message| Cow::Borrowed(&**message));
    let first = first.into_iter().map(|message| Cow::<'t, str>::Owned(message.to_string()));
    list(first.chain(own).chain([Cow::Owned(last.to_string())]))
}

/// A number among the fields.
fn number(fields: &RequestFields, name: &str, path: &str) -> usize {
    let value: Option<Value> = fields.get(name).and_then(|value| serde_json::from_str(value.get()).ok());
    let number = value.as_ref().and_then(|value| value.pointer(path)).and_then(Value::as_u64);
    number.and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
}

/// Chat Completions. Reasoning takes its part of the cap, so that the app's own holds where that is larger.
pub(super) fn openai(fields: &mut RequestFields, thread: &Thread, max_tokens: usize, url: &str) {
    let given = ["max_completion_tokens", "max_tokens"].into_iter().find(|name| fields.contains_key(*name));
    let name = given.unwrap_or_else(|| super::openai::cap_name(url));
    let cap = max_tokens.max(number(fields, name, ""));
    put(fields, name, cap.to_string());
    put_own(fields, "tools", &thread.tools);
    let system = (!thread.system.is_empty()).then(|| json!({ "role": "system", "content": thread.system }));
    let asked = json!({ "role": "user", "content": thread.instruction });
    put(fields, "messages", messages(thread, system, &asked));
}

/// A request takes no more marks of the cache than this.
const MOST_MARKS: usize = 4;

/// Messages. What is asked is marked for the cache: from the mark the provider looks back for what it has.
pub(super) fn anthropic(fields: &mut RequestFields, thread: &Thread, max_tokens: usize, _: &str) {
    let thinks = number(fields, "thinking", "/budget_tokens");
    let cap = max_tokens.saturating_add(thinks).max(number(fields, "max_tokens", ""));
    put(fields, "max_tokens", cap.to_string());
    put_own(fields, "tools", &thread.tools);
    if !thread.system.is_empty() {
        put_own(fields, "system", &json!(thread.system).to_string());
    }
    let marks = |text: &str| text.matches("\"cache_control\"").count();
    let marked = fields.values().map(|value| marks(value.get())).sum::<usize>()
        + thread.messages.iter().map(|message| marks(message)).sum::<usize>();
    let mut block = json!({ "type": "text", "text": thread.instruction });
    if let Some(block) = block.as_object_mut()
        && !fields.contains_key("cache_control")
        && marked < MOST_MARKS
    {
        block.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
    put(fields, "messages", messages(thread, None, &json!({ "role": "user", "content": [block] })));
}

/// `generateContent`.
pub(super) fn gemini(fields: &mut RequestFields, thread: &Thread, max_tokens: usize, _: &str) {
    let config = "generationConfig";
    let cap = max_tokens.max(number(fields, config, "/maxOutputTokens"));
    let mut own = fields.get(config).and_then(|own| self::fields(own.get())).unwrap_or_default();
    put(&mut own, "maxOutputTokens", cap.to_string());
    put(fields, config, object(&own));
    put_own(fields, "tools", &thread.tools);
    if !thread.system.is_empty() {
        put_own(fields, "systemInstruction", &json!({ "parts": [{ "text": thread.system }] }).to_string());
    }
    let asked = json!({ "role": "user", "parts": [{ "text": thread.instruction }] });
    put(fields, "contents", messages(thread, None, &asked));
}
