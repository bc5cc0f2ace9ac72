//! Vercel AI SDK, versions 6 and 7: two shapes of message under one format.
//!
//! | shape | message | its parts |
//! |---|---|---|
//! | model messages | `{ role, content }` | in `content`, or a text |
//! | UI messages | `{ id, role, parts }` | in `parts`; a call and its result are one part |
//!
//! A history has one of the two. A message with `parts` is a UI message.

mod model;
mod options;
mod output;
mod read;
mod repair;
mod rules;
mod tools;
mod ui;

use super::{
    Author, Change, Evidence, Format, Hints, Past, Problem, Repaired, Rules, Unbound, Wire, blocks, edit,
    tagged,
};
use crate::error::Result;
use crate::message::{Media, Message};
use serde::Serialize;
use serde_json_borrow::Value;
use std::borrow::Cow;

pub(super) struct AiSdk;

impl Wire for AiSdk {
    fn evidence_of(&self, message: &Value<'_>) -> Evidence {
        let foreign = ["tool_calls", "tool_call_id", "function_call"];
        if read::message(0, message).is_err()
            || foreign.into_iter().any(|key| tagged::given(message, key).is_some())
        {
            return Evidence::Against;
        }
        match Shape::of(message) {
            // Of the formats whose messages have parts, only this one gives them types.
            Shape::Ui if parts(message).is_empty() => Evidence::Possible,
            Shape::Ui => Evidence::Certain,
            Shape::Model => model_evidence(message),
        }
    }

    fn evidence(&self, messages: &[Value<'_>]) -> Evidence {
        let mut shapes = messages.iter().map(Shape::of);
        let first = shapes.next();
        if shapes.any(|shape| Some(shape) != first) {
            return Evidence::Against;
        }
        messages.iter().map(|message| self.evidence_of(message)).fold(Evidence::Possible, Evidence::and)
    }

    fn hints(&self) -> &'static Hints {
        &read::HINTS
    }

    fn read<'a>(&self, index: usize, message: &'a Value<'a>) -> Result<Message<'a>> {
        read::message(index, message)
    }

    /// In the shape of `like`, also of its content: the provider's prompts of the SDK know parts alone. A model message
    /// when there is none to be like.
    fn text_message(&self, author: Author, text: &str, id: &str, like: Option<&Value<'_>>) -> String {
        match like {
            Some(like) if Shape::of(like) == Shape::Ui => ui_message(author, text, id),
            Some(like) if has_parts(like) => model_message(author, text),
            _ => super::plain_message(author, text),
        }
    }

    fn grows(&self, past: &mut Past, window: &[Value<'_>]) -> bool {
        rules::grows(past, &window.iter().collect::<Vec<_>>())
    }
}

impl Rules for AiSdk {
    fn with_result_text(&self, message: &Value<'_>, nth: usize, text: &str) -> Option<String> {
        match Shape::of(message) {
            Shape::Model => model::with_result_text(message, nth, text),
            Shape::Ui => ui::with_result_text(message, nth, text),
        }
    }

    fn with_call_arguments(&self, message: &Value<'_>, nth: usize, arguments: &str) -> Option<String> {
        let is_call = match Shape::of(message) {
            Shape::Model => model::is_plain_call,
            Shape::Ui => ui::is_plain_call,
        };
        let is_any = match Shape::of(message) {
            Shape::Model => model::is_call,
            Shape::Ui => ui::is_call,
        };
        let found = parts(message).iter().enumerate().filter(|(_, part)| is_any(part)).nth(nth);
        let (at, _) = found.filter(|(_, part)| is_call(part))?;
        let mut edited = edit::copy(message);
        let (call, behind) = parts_mut(&mut edited)?.get_mut(at..)?.split_first_mut()?;
        if behind.iter().any(|part| options::is_bound(part)) {
            return None;
        }
        edit::replace_arguments(call, "input", arguments)?;
        Some(super::json(&edited))
    }

    fn media_path(&self, value: &Value<'_>) -> &'static [&'static str] {
        if tagged::given(value, "type").is_none() {
            // What a tool of the provider answered stands in messages of the model, and is its provider's.
            return match Shape::of(value) {
                Shape::Ui => &["parts"],
                Shape::Model if role(value) == "assistant" => &[],
                Shape::Model => &["content"],
            };
        }
        // A part of a UI message has a state, and in its output whatever the tool returned.
        let is_content = tagged::given(value, "output").is_some_and(|output| kind(output) == "content");
        if kind(value) == "tool-result" && tagged::given(value, "state").is_none() && is_content {
            &["output", "value"]
        } else {
            &[]
        }
    }

    fn shown(&self, block: &Value<'_>) -> Option<Media> {
        if options::is_signed(block) {
            return None;
        }
        match kind(block).as_ref() {
            "image" => Some(read::media(block, "image")),
            "file" if tagged::given(block, "url").is_some() => Some(read::media(block, "url")),
            kind => output::item_media(kind, block),
        }
    }

    fn validate(&self, messages: &[Value<'_>], strict: bool) -> Vec<Problem> {
        super::rules::validate(messages, strict, rules::find, rules::strict)
    }

    fn repair(&self, messages: &[Value<'_>]) -> (Vec<Repaired>, Vec<Change>) {
        repair::repair(messages)
    }

    /// Reasoning that Anthropic signed, over whatever platform; other providers' reasoning may stay.
    fn without_bound_reasoning(&self, message: &Value<'_>) -> Unbound {
        repair::without_reasoning(message)
    }
}

/// Which of the two kinds of message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Ui,
    Model,
}

impl Shape {
    fn of(message: &Value<'_>) -> Self {
        if tagged::given(message, "parts").is_some() { Shape::Ui } else { Shape::Model }
    }

    /// The field that holds the parts.
    fn parts_key(self) -> &'static str {
        match self {
            Shape::Ui => "parts",
            Shape::Model => "content",
        }
    }
}

/// The parts of a message; none when its content is a text.
fn parts<'a>(message: &'a Value<'a>) -> &'a [Value<'a>] {
    match tagged::given(message, Shape::of(message).parts_key()) {
        Some(Value::Array(parts)) => parts,
        _ => &[],
    }
}

/// The parts of a message, to be changed.
fn parts_mut<'e, 'v>(message: &'e mut Value<'v>) -> Option<&'e mut Vec<Value<'v>>> {
    match edit::field_mut(message, Shape::of(message).parts_key()) {
        Some(Value::Array(parts)) => Some(parts),
        _ => None,
    }
}

fn text_of<'a>(value: &'a Value<'a>, key: &str) -> Option<Cow<'a, str>> {
    tagged::given(value, key).and_then(tagged::text)
}

/// The type of a part.
fn kind<'a>(part: &'a Value<'a>) -> Cow<'a, str> {
    text_of(part, "type").unwrap_or_default()
}

fn role<'a>(message: &'a Value<'a>) -> Cow<'a, str> {
    text_of(message, "role").unwrap_or_default()
}

/// A flag that is set.
fn is_true(value: &Value<'_>, key: &str) -> bool {
    matches!(tagged::given(value, key), Some(Value::Bool(true)))
}

fn has_parts(message: &Value<'_>) -> bool {
    matches!(tagged::given(message, "content"), Some(Value::Array(_)))
}

/// A part with a text.
#[derive(Serialize)]
struct TextPart<'a> {
    r#type: &'a str,
    text: &'a str,
}

impl<'a> TextPart<'a> {
    fn of(text: &'a str) -> Self {
        Self { r#type: "text", text }
    }
}

fn ui_message(author: Author, text: &str, id: &str) -> String {
    #[derive(Serialize)]
    struct Ui<'a> {
        id: &'a str,
        role: &'a str,
        parts: [TextPart<'a>; 1],
    }
    serde_json::to_string(&Ui { id, role: author.role(), parts: [TextPart::of(text)] }).unwrap_or_default()
}

fn model_message(author: Author, text: &str) -> String {
    #[derive(Serialize)]
    struct Model<'a> {
        role: &'a str,
        content: [TextPart<'a>; 1],
    }
    serde_json::to_string(&Model { role: author.role(), content: [TextPart::of(text)] }).unwrap_or_default()
}

/// Parts of model messages that are its own when they have this field.
const OWN_WITH: [(&str, &str); 4] =
    [("image", "image"), ("file", "mediaType"), ("reasoning", "text"), ("custom", "kind")];

fn model_evidence(message: &Value<'_>) -> Evidence {
    let has_options = |value: &Value<'_>| tagged::given(value, "providerOptions").is_some();
    let mut found = if has_options(message) { Evidence::Certain } else { Evidence::Possible };
    for part in parts(message) {
        let kind = kind(part);
        let own = has_options(part)
            || OWN_WITH.iter().any(|(name, field)| *name == kind && tagged::given(part, field).is_some());
        found = found.and(if own { Evidence::Certain } else { Evidence::Possible });
        found = found.and(blocks::evidence(&kind, Format::AiSdk));
    }
    found
}
