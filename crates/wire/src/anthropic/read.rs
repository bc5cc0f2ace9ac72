//! Reading one message.

use super::turns::{caller, is_foreign_call, is_foreign_result};
use crate::Hints;
use crate::error::Result;
use crate::message::{Media, MediaKind, Message, Pairing, Part, Role, ToolCall, ToolResult};
use crate::read::{At, named, of_user};
use crate::{picture, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// Fields that databases and SDKs add, drop and move: the message is still the same.
pub(super) const HINTS: Hints = Hints {
    message: &[
        "id",
        "createdAt",
        "created_at",
        "metadata",
        "model",
        "stop_reason",
        "stop_sequence",
        "stop_details",
        "usage",
        "status",
        "usage_metadata",
        "response_metadata",
        "cache_control",
        "cacheControl",
        "providerOptions",
    ],
    block: &["cache_control", "cacheControl", "metadata", "providerOptions"],
};

pub(super) fn message<'a>(index: usize, value: &'a Value<'a>) -> Result<Message<'a>> {
    let at = At::message(index, value)?;
    let name = at.need_text("role")?;
    let role = match name.as_ref() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        // Instructions in the middle of a conversation; the opening ones are a parameter of the request.
        "system" => Role::System,
        _ => return at.fail_at("role", format!("{} is none of user, assistant, system", named(&name))),
    };
    let Some(content) = at.get("content") else {
        return at.fail_at("content", "must be a string or an array of content blocks, and is missing");
    };
    let mut parts = Vec::new();
    if let Some(text) = tagged::text(content.value()) {
        push_text(text, &mut parts);
    } else if content.value().is_array() {
        for (kind, block) in content.blocks()? {
            read_block(kind, &block, &mut parts)?;
        }
    } else {
        return content.fail("must be a string or an array of content blocks");
    }
    Ok(if role == Role::User { of_user(parts) } else { Message { role, parts } })
}

/// An empty text says nothing to anyone: it is not a part.
fn push_text<'a>(text: Cow<'a, str>, parts: &mut Vec<Part<'a>>) {
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
}

fn read_block<'a>(kind: Cow<'a, str>, block: &At<'a>, parts: &mut Vec<Part<'a>>) -> Result<()> {
    match kind.as_ref() {
        "text" => push_text(block.need_text("text")?, parts),
        "tool_use" => parts.push(Part::ToolCall(tool_use(block)?)),
        "tool_result" => result(block, parts)?,
        "thinking" => {
            let signed = match block.get("signature") {
                Some(signature) => !signature.text()?.is_empty(),
                None => false,
            };
            parts.push(Part::Reasoning { text: block.need_text("thinking")?, signed });
        }
        "redacted_thinking" => parts.push(Part::Reasoning { text: Cow::Borrowed(""), signed: true }),
        _ => parts.push(match media(&kind, block.value()) {
            Some(media) => Part::Media(media),
            None => opaque(kind, block.value()),
        }),
    }
    Ok(())
}

pub(super) fn tool_use<'a>(block: &At<'a>) -> Result<ToolCall<'a>> {
    let input = block.need_object("input")?;
    Ok(ToolCall {
        id: block.need_text("id")?,
        name: block.need_text("name")?,
        arguments: Cow::Owned(tagged::plain_json(input.value())),
        caller: caller(block.value()),
    })
}

/// A block of the provider's own: compaction, calls that it runs itself and their results, and what is not known.
fn opaque<'a>(kind: Cow<'a, str>, block: &'a Value<'a>) -> Part<'a> {
    let chars = tagged::readable_chars(block);
    if kind == "compaction" {
        return Part::Compaction { chars };
    }
    let id = |key: &str| tagged::given(block, key).and_then(tagged::text);
    let tie = match kind.as_ref() {
        call if is_foreign_call(call) => id("id").map(Pairing::Opens),
        result if is_foreign_result(result) => id("tool_use_id").map(Pairing::Closes),
        _ => None,
    };
    Part::Opaque { kind, chars, tie: tie.unwrap_or(Pairing::None) }
}

pub(super) fn media(kind: &str, block: &Value<'_>) -> Option<Media> {
    let kind = match kind {
        "image" => MediaKind::Image,
        "document" => MediaKind::Document,
        _ => return None,
    };
    let source = tagged::given(block, "source")?;
    let data = tagged::given(source, "data");
    let bytes =
        data.map_or(0, |data| match tagged::given(source, "type").and_then(tagged::text).as_deref() {
            Some("text") => tagged::text(data).map_or(0, |text| text.len()),
            _ => tagged::decoded_length(data),
        });
    let pixels = data.filter(|_| kind == MediaKind::Image).and_then(picture::pixels);
    Some(Media { kind, bytes, pixels })
}

fn result<'a>(block: &At<'a>, parts: &mut Vec<Part<'a>>) -> Result<()> {
    let call_id = block.need_text("tool_use_id")?;
    let is_error = match block.get("is_error") {
        Some(flag) => match flag.value() {
            Value::Bool(flag) => *flag,
            _ => return flag.fail("must be true or false"),
        },
        None => false,
    };
    let mut texts = Vec::new();
    let mut items = Vec::new();
    let mut rest = Vec::new();
    if let Some(content) = block.get("content") {
        if let Some(text) = tagged::text(content.value()) {
            texts.push(text);
        } else if content.value().is_array() {
            for (kind, inner) in content.blocks()? {
                if kind == "text" {
                    texts.push(inner.need_text("text")?);
                } else if let Some(item) = media(&kind, inner.value()) {
                    items.push(item);
                } else {
                    rest.push(Part::Opaque {
                        kind,
                        chars: tagged::readable_chars(inner.value()),
                        tie: Pairing::None,
                    });
                }
            }
        } else {
            return content.fail("must be a string or an array of content blocks");
        }
    }
    let text = crate::join(texts);
    parts.push(Part::ToolResult(ToolResult { call_id, text, is_error, media: items, mark: None }));
    parts.extend(rest);
    Ok(())
}
