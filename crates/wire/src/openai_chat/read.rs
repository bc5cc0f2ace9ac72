//! Reading one message.

use super::reasoning::{BLOCKS, DETAILS, items};
use crate::Hints;
use crate::error::Result;
use crate::message::{Media, MediaKind, Message, Pairing, Part, Role, ToolCall, ToolResult};
use crate::read::{At, named};
use crate::{json, picture, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// Fields that databases and SDKs add, drop and move: the message is still the same.
pub(super) const HINTS: Hints = Hints {
    message: &[
        "id",
        "createdAt",
        "created_at",
        "metadata",
        "annotations",
        "status",
        "usage_metadata",
        "response_metadata",
        "providerOptions",
        "providerMetadata",
        "cache_control",
        "cacheControl",
    ],
    block: &[
        "cache_control",
        "cacheControl",
        "metadata",
        "annotations",
        "index",
        "providerOptions",
        "providerMetadata",
    ],
};

pub(super) fn message<'a>(index: usize, value: &'a Value<'a>) -> Result<Message<'a>> {
    let at = At::message(index, value)?;
    let name = at.need_text("role")?;
    let role = match name.as_ref() {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => {
            return at.fail_at(
                "role",
                format!("{} is none of system, developer, user, assistant, tool, function", named(&name)),
            );
        }
    };
    let mut parts = Vec::new();
    match role {
        Role::Tool => result(&at, name == "function", &mut parts)?,
        Role::Assistant => {
            reasoning(&at, &mut parts);
            content(&at, &mut parts)?;
            // What Cohere's models say before their calls.
            if let Some(plan) = at.get("tool_plan").and_then(|plan| plan.text().ok()) {
                push_text(plan, &mut parts);
            }
            if let Some(refusal) = at.get("refusal") {
                push_text(refusal.text()?, &mut parts);
            }
            if at.get("audio").is_some() {
                parts.push(Part::Media(Media { kind: MediaKind::Audio, bytes: 0, pixels: None }));
            }
            calls(&at, &mut parts)?;
        }
        Role::System | Role::User => {
            content(&at, &mut parts)?;
            images(&at, &mut parts);
        }
    }
    Ok(Message { role, parts })
}

/// An empty text says nothing to anyone: it is not a part.
fn push_text<'a>(text: Cow<'a, str>, parts: &mut Vec<Part<'a>>) {
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
}

fn content<'a>(at: &At<'a>, parts: &mut Vec<Part<'a>>) -> Result<()> {
    let Some(content) = at.get("content") else { return Ok(()) };
    if let Some(text) = tagged::text(content.value()) {
        push_text(text, parts);
        return Ok(());
    }
    if !content.value().is_array() {
        return content.fail("must be a string, an array of content blocks or null");
    }
    for (kind, block) in content.blocks()? {
        match kind.as_ref() {
            "text" => push_text(block.need_text("text")?, parts),
            "refusal" => push_text(block.need_text("refusal")?, parts),
            "thinking" => parts.push(Part::Reasoning { text: thinking(block.value()), signed: false }),
            _ => parts.push(match media(&kind, block.value()) {
                Some(media) => Part::Media(media),
                None => {
                    Part::Opaque { kind, chars: tagged::readable_chars(block.value()), tie: Pairing::None }
                }
            }),
        }
    }
    Ok(())
}

/// Media blocks of the API and of its dialects.
pub(super) fn media(kind: &str, block: &Value<'_>) -> Option<Media> {
    let (kind, payload) = match kind {
        "image_url" => (MediaKind::Image, inner(block, "image_url", "url")),
        "input_audio" => (MediaKind::Audio, inner(block, "input_audio", "data")),
        "file" => (MediaKind::Document, inner(block, "file", "file_data")),
        // Mistral's name for a file.
        "document_url" => (MediaKind::Document, inner(block, "document_url", "url")),
        "video_url" => (MediaKind::Video, inner(block, "video_url", "url")),
        _ => return None,
    };
    let bytes = payload.map_or(0, |payload| match payload.as_str() {
        Some(text) => match tagged::data_url_length(text) {
            Some(bytes) => bytes,
            None if kind == MediaKind::Audio => tagged::base64_length(text),
            None => 0,
        },
        None => tagged::decoded_length(payload),
    });
    let pixels = payload.filter(|_| kind == MediaKind::Image).and_then(picture::pixels);
    Some(Media { kind, bytes, pixels })
}

/// Ollama's pictures stand beside the content, as base64.
fn images(at: &At<'_>, parts: &mut Vec<Part<'_>>) {
    let Some(images) = at.get("images") else { return };
    let Value::Array(images) = images.value() else { return };
    for image in images {
        let bytes = tagged::text(image).map_or(0, |text| tagged::base64_length(&text));
        parts.push(Part::Media(Media { kind: MediaKind::Image, bytes, pixels: picture::pixels(image) }));
    }
}

/// `block[outer][key]`, or `block[outer]` itself where a dialect has no object there.
fn inner<'a>(block: &'a Value<'a>, outer: &str, key: &str) -> Option<&'a Value<'a>> {
    let found = tagged::given(block, outer)?;
    if tagged::object(found).is_some() { tagged::given(found, key) } else { Some(found) }
}

/// Text of Mistral's `thinking` block: a string or an array of text blocks.
fn thinking<'a>(block: &'a Value<'a>) -> Cow<'a, str> {
    match tagged::given(block, "thinking") {
        Some(Value::Array(blocks)) => {
            let texts: Vec<Cow<'a, str>> =
                blocks.iter().filter_map(|block| tagged::text(tagged::given(block, "text")?)).collect();
            Cow::Owned(texts.join("\n"))
        }
        Some(text) => tagged::text(text).unwrap_or_default(),
        None => Cow::Borrowed(""),
    }
}

/// Reasoning stands in fields that no standard names: `reasoning_content` (DeepSeek), `reasoning` and
/// `reasoning_details` (OpenRouter), `thinking_blocks` (LiteLLM), `thinking` (Ollama). Whatever else stands in them is left alone.
fn reasoning<'a>(at: &At<'a>, parts: &mut Vec<Part<'a>>) {
    let details = items(at.value(), DETAILS).iter().chain(items(at.value(), BLOCKS));
    let has =
        |detail: &Value<'_>, keys: [&str; 2]| keys.iter().any(|key| tagged::given(detail, key).is_some());
    let signed = details.clone().any(|detail| has(detail, ["signature", "data"]));
    let text = ["reasoning_content", "reasoning", "thinking"]
        .into_iter()
        .find_map(|key| tagged::text(tagged::given(at.value(), key)?))
        .filter(|text| !text.is_empty());
    let text = text.unwrap_or_else(|| {
        let said = |detail| tagged::given(detail, "text").or_else(|| tagged::given(detail, "thinking"));
        let texts: Vec<Cow<'a, str>> = details.filter_map(|detail| tagged::text(said(detail)?)).collect();
        Cow::Owned(texts.join("\n"))
    });
    if signed || !text.is_empty() {
        parts.push(Part::Reasoning { text, signed });
    }
}

fn calls<'a>(at: &At<'a>, parts: &mut Vec<Part<'a>>) -> Result<()> {
    if let Some(calls) = at.get("tool_calls") {
        for call in calls.items()? {
            parts.push(Part::ToolCall(tool_call(&call)?));
        }
    }
    // The call of the legacy API has no id: its function's name stands for it, as in the answer.
    if at.get("function_call").is_some() {
        let call = at.need_object("function_call")?;
        let name = call.need_text("name")?;
        let arguments = call.need_text("arguments")?;
        parts.push(Part::ToolCall(ToolCall { id: name.clone(), name, arguments, caller: None }));
    }
    Ok(())
}

pub(super) fn tool_call<'a>(call: &At<'a>) -> Result<ToolCall<'a>> {
    if tagged::object(call.value()).is_none() {
        return call.fail("a tool call must be an object with an id");
    }
    let id = call.need_text("id")?;
    let kind = match call.get("type") {
        Some(kind) => kind.text()?,
        None => Cow::Borrowed("function"),
    };
    match kind.as_ref() {
        "function" => {
            let function = call.need_object("function")?;
            Ok(ToolCall {
                id,
                name: function.need_text("name")?,
                arguments: function.need_text("arguments")?,
                caller: None,
            })
        }
        "custom" => {
            let custom = call.need_object("custom")?;
            let input = Value::Str(custom.need_text("input")?);
            let name = custom.need_text("name")?;
            Ok(ToolCall { id, name, arguments: Cow::Owned(json(&input)), caller: None })
        }
        _ => {
            let arguments = Cow::Owned(tagged::plain_json(call.value()));
            Ok(ToolCall { id, name: kind, arguments, caller: None })
        }
    }
}

fn result<'a>(at: &At<'a>, legacy: bool, parts: &mut Vec<Part<'a>>) -> Result<()> {
    let call_id = at.need_text(if legacy { "name" } else { "tool_call_id" })?;
    let mut inside = Vec::new();
    content(at, &mut inside)?;
    let mut texts = Vec::new();
    let mut media = Vec::new();
    let mut rest = Vec::new();
    for part in inside {
        match part {
            Part::Text(text) => texts.push(text),
            Part::Media(item) => media.push(item),
            other => rest.push(other),
        }
    }
    let text = crate::join(texts);
    parts.push(Part::ToolResult(ToolResult { call_id, text, is_error: false, media, mark: None }));
    parts.extend(rest);
    Ok(())
}
