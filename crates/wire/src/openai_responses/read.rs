//! Reading one item.

use super::item::{self, Link, Side};
use crate::Hints;
use crate::error::Result;
use crate::message::{Media, MediaKind, Message, Pairing, Part, ToolCall, ToolResult};
use crate::read::{At, named};
use crate::{join, json, picture, tagged};
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
        "cache_control",
        "providerData",
    ],
    block: &["cache_control", "cacheControl", "metadata", "annotations", "logprobs", "status"],
};

pub(super) fn message<'a>(index: usize, value: &'a Value<'a>) -> Result<Message<'a>> {
    let at = At::message(index, value)?;
    let Some(kind) = item::kind(value) else {
        return at.fail_at("type", "must be a string: an item has a type, and a message at least a role");
    };
    let role = item::role(value, &kind);
    let mut parts = Vec::new();
    match kind.as_ref() {
        "message" => {
            let name = at.need_text("role")?;
            if item::role_named(&name).is_none() {
                let what = format!("{} is none of system, developer, user, assistant", named(&name));
                return at.fail_at("role", what);
            }
            parts = content(&at, "content")?;
        }
        "reasoning" => parts.push(reasoning(&at)?),
        "function_call" => {
            parts.push(call(&at, at.need_text("name")?, at.need_text("arguments")?)?);
        }
        "custom_tool_call" => {
            let input = Value::Str(at.need_text("input")?);
            parts.push(call(&at, at.need_text("name")?, Cow::Owned(json(&input)))?);
        }
        "local_shell_call" => parts.push(call(&at, "local_shell".into(), object(&at, "action")?)?),
        "shell_call" => parts.push(call(&at, "shell".into(), object(&at, "action")?)?),
        "apply_patch_call" => parts.push(call(&at, "apply_patch".into(), object(&at, "operation")?)?),
        "computer_call" => {
            // One action, or several at once.
            let actions = at.get("actions").or_else(|| at.get("action"));
            let actions =
                actions.map_or(Cow::Borrowed("{}"), |it| Cow::Owned(tagged::plain_json(it.value())));
            parts.push(call(&at, "computer".into(), actions)?);
        }
        "shell_call_output" => parts.push(result(call_id(&at)?, shell_output(&at)?, Vec::new())),
        "apply_patch_call_output" => {
            let failed = item::text_field(value, "status").as_deref() == Some("failed");
            let text = at.get("output").map_or(Ok(Cow::Borrowed("")), |output| output.text())?;
            let call_id = call_id(&at)?;
            parts.push(Part::ToolResult(ToolResult {
                call_id,
                text,
                is_error: failed,
                media: Vec::new(),
                mark: None,
            }));
        }
        "computer_call_output" => {
            let screenshot = at.need_object("output")?;
            let image = media("computer_screenshot", screenshot.value()).into_iter().collect();
            parts.push(result(call_id(&at)?, Cow::Borrowed(""), image));
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            output(&at, &mut parts)?;
        }
        "image_generation_call" => {
            parts.push(opaque(&at, &kind, &["result"]));
            if let Some(image) = at.get("result") {
                parts.push(Part::Media(Media {
                    kind: MediaKind::Image,
                    bytes: tagged::decoded_length(image.value()),
                    pixels: picture::pixels(image.value()),
                }));
            }
        }
        "item_reference" => {
            at.need_text("id")?;
            parts.push(Part::Opaque { kind, chars: tagged::readable_chars(value), tie: Pairing::Refers });
        }
        _ if item::is_compaction(&kind) => {
            parts.push(Part::Compaction { chars: tagged::readable_chars(value) });
        }
        // Items that are news to us may still hold prose that we know (messages between agents).
        _ => match content(&at, "content") {
            Ok(known) => {
                parts.push(opaque(&at, &kind, &["content"]));
                parts.extend(known);
            }
            Err(_) => parts.push(opaque(&at, &kind, &[])),
        },
    }
    Ok(Message { role, parts })
}

/// A part that is never read, with the tie of its item; these fields of it are told apart.
fn opaque<'a>(at: &At<'a>, kind: &str, apart: &[&str]) -> Part<'a> {
    let tie = match item::link(at.value(), kind) {
        Some(Link { side: Side::Ask, id, .. }) => Pairing::Opens(id),
        Some(Link { side: Side::Answer, id, .. }) => Pairing::Closes(id),
        None => Pairing::None,
    };
    let elsewhere = apart.iter().filter_map(|key| at.get(key)).map(|it| tagged::readable_chars(it.value()));
    let chars = tagged::readable_chars(at.value()).saturating_sub(elsewhere.sum());
    Part::Opaque { kind: Cow::Owned(kind.to_owned()), chars, tie }
}

fn call<'a>(at: &At<'a>, name: Cow<'a, str>, arguments: Cow<'a, str>) -> Result<Part<'a>> {
    let caller = item::caller(at.value());
    Ok(Part::ToolCall(ToolCall { id: at.need_text("call_id")?, name, arguments, caller }))
}

/// JSON of an object that must be given.
fn object<'a>(at: &At<'a>, key: &str) -> Result<Cow<'a, str>> {
    Ok(Cow::Owned(tagged::plain_json(at.need_object(key)?.value())))
}

/// The id of the call that an output answers.
fn call_id<'a>(at: &At<'a>) -> Result<Cow<'a, str>> {
    let kind = item::text_field(at.value(), "type").unwrap_or_default();
    match item::link(at.value(), &kind) {
        Some(link) => Ok(link.id),
        None => at.need_text("call_id"),
    }
}

fn result<'a>(call_id: Cow<'a, str>, text: Cow<'a, str>, media: Vec<Media>) -> Part<'a> {
    Part::ToolResult(ToolResult { call_id, text, is_error: false, media, mark: None })
}

/// A text, or an array of texts, images and files.
fn output<'a>(at: &At<'a>, parts: &mut Vec<Part<'a>>) -> Result<()> {
    let call_id = call_id(at)?;
    let (mut texts, mut inside, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for part in content(at, "output")? {
        match part {
            Part::Text(text) => texts.push(text),
            Part::Media(item) => inside.push(item),
            other => rest.push(other),
        }
    }
    parts.push(result(call_id, join(texts), inside));
    parts.extend(rest);
    Ok(())
}

/// What each command wrote, one after the other.
fn shell_output<'a>(at: &At<'a>) -> Result<Cow<'a, str>> {
    let Some(output) = at.get("output") else {
        return at.fail_at("output", "must be an array, and is missing");
    };
    let mut texts = Vec::new();
    for chunk in output.items()? {
        for key in ["stdout", "stderr"] {
            let text = chunk.get(key).map_or(Ok(Cow::Borrowed("")), |text| text.text())?;
            push(text, &mut texts);
        }
    }
    Ok(join(texts))
}

/// An empty text says nothing to anyone.
fn push<'a>(text: Cow<'a, str>, texts: &mut Vec<Cow<'a, str>>) {
    if !text.is_empty() {
        texts.push(text);
    }
}

/// A summary for people, and the model's own words where a server shows them.
fn reasoning<'a>(at: &At<'a>) -> Result<Part<'a>> {
    let mut texts = Vec::new();
    for key in ["summary", "content"] {
        let Some(blocks) = at.get(key) else { continue };
        for (_, block) in blocks.blocks()? {
            if let Some(text) = item::text_field(block.value(), "text") {
                push(text, &mut texts);
            }
        }
    }
    let signed = tagged::given(at.value(), "encrypted_content").is_some();
    Ok(Part::Reasoning { text: join(texts), signed })
}

fn content<'a>(at: &At<'a>, key: &str) -> Result<Vec<Part<'a>>> {
    let expected = "must be a string or an array of content parts";
    let Some(content) = at.get(key) else {
        return at.fail_at(key, format!("{expected}, and is missing"));
    };
    let mut parts = Vec::new();
    let push_text = |text: Cow<'a, str>, parts: &mut Vec<Part<'a>>| {
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
    };
    if let Some(text) = tagged::text(content.value()) {
        push_text(text, &mut parts);
        return Ok(parts);
    }
    if !content.value().is_array() {
        return content.fail(expected);
    }
    for (kind, block) in content.blocks()? {
        match kind.as_ref() {
            "refusal" => push_text(block.need_text("refusal")?, &mut parts),
            _ if is_text(&kind) => push_text(block.need_text("text")?, &mut parts),
            _ => parts.push(match media(&kind, block.value()) {
                Some(media) => Part::Media(media),
                None => {
                    Part::Opaque { kind, chars: tagged::readable_chars(block.value()), tie: Pairing::None }
                }
            }),
        }
    }
    Ok(parts)
}

/// True for the types of part that hold a `text`.
pub(super) fn is_text(kind: &str) -> bool {
    matches!(kind, "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text")
}

pub(super) fn media(kind: &str, block: &Value<'_>) -> Option<Media> {
    let (kind, payload) = match kind {
        "input_image" | "computer_screenshot" => (MediaKind::Image, tagged::given(block, "image_url")),
        "input_file" => (MediaKind::Document, tagged::given(block, "file_data")),
        "input_audio" => {
            let data = tagged::given(block, "input_audio").and_then(|audio| tagged::given(audio, "data"));
            (MediaKind::Audio, data)
        }
        _ => return None,
    };
    let bytes = payload.map_or(0, |payload| match payload.as_str() {
        Some(text) => match tagged::data_url_length(text) {
            Some(bytes) => bytes,
            // A link to a picture; files and sound may come as bare base64.
            None if kind == MediaKind::Image => 0,
            None => tagged::base64_length(text),
        },
        None => tagged::decoded_length(payload),
    });
    let pixels = payload.filter(|_| kind == MediaKind::Image).and_then(picture::pixels);
    Some(Media { kind, bytes, pixels })
}
