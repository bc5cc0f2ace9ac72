//! Reading one message, and what both shapes share.

use super::Shape;
use super::{model, options, ui};
use crate::Hints;
use crate::error::Result;
use crate::message::{Media, MediaKind, Message, Pairing, Part, Role};
use crate::read::{At, named};
use crate::{picture, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// Fields that databases and SDKs add, drop and move: the message is still the same.
pub(super) const HINTS: Hints = Hints {
    message: &[
        "id",
        "createdAt",
        "metadata",
        "annotations",
        "status",
        "providerOptions",
        "providerMetadata",
        "experimental_providerMetadata",
        "cacheControl",
        "cache_control",
    ],
    block: &[
        "providerOptions",
        "providerMetadata",
        "callProviderMetadata",
        "resultProviderMetadata",
        "experimental_providerMetadata",
        "metadata",
        "cacheControl",
        "cache_control",
    ],
};

pub(super) fn message<'a>(index: usize, value: &'a Value<'a>) -> Result<Message<'a>> {
    let at = At::message(index, value)?;
    let name = at.need_text("role")?;
    let shape = Shape::of(value);
    let role = match (name.as_ref(), shape) {
        ("system", _) => Role::System,
        ("user", _) => Role::User,
        ("assistant", _) => Role::Assistant,
        ("tool", Shape::Model) => Role::Tool,
        (_, Shape::Model) => {
            return at.fail_at("role", format!("{} is none of system, user, assistant, tool", named(&name)));
        }
        (_, Shape::Ui) => {
            return at.fail_at(
                "role",
                format!("a UI message is from system, user or assistant, and never from {}", named(&name)),
            );
        }
    };
    let parts = match shape {
        Shape::Model => model::parts(&at, role)?,
        Shape::Ui => ui::parts(&at)?,
    };
    Ok(Message { role, parts })
}

/// An empty text says nothing to anyone: it is not a part.
pub(super) fn push_text<'a>(text: Cow<'a, str>, parts: &mut Vec<Part<'a>>) {
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
}

/// A `text` part, which may be a compaction block of Anthropic.
pub(super) fn text<'a>(part: &At<'a>, parts: &mut Vec<Part<'a>>) -> Result<()> {
    let text = part.need_text("text")?;
    if options::is_compaction(part.value()) {
        parts.push(Part::Compaction { chars: text.chars().count() });
    } else {
        push_text(text, parts);
    }
    Ok(())
}

/// A `reasoning` part.
pub(super) fn reasoning<'a>(part: &At<'a>) -> Result<Part<'a>> {
    Ok(Part::Reasoning { text: part.need_text("text")?, signed: options::is_signed(part.value()) })
}

/// A part without content of its own: `custom`, with the provider's `kind`.
pub(super) fn custom<'a>(part: &'a Value<'a>) -> Part<'a> {
    let kind = super::text_of(part, "kind").unwrap_or(Cow::Borrowed("custom"));
    let chars = tagged::readable_chars(part);
    if kind.ends_with(".compaction") {
        return Part::Compaction { chars };
    }
    Part::Opaque { kind, chars, tie: Pairing::None }
}

/// A media part with its payload in `data`, `image` or `url`.
pub(super) fn media(part: &Value<'_>, key: &str) -> Media {
    let kind = match super::text_of(part, "mediaType") {
        Some(media_type) => media_kind(&media_type),
        None if key == "image" => MediaKind::Image,
        None => MediaKind::Document,
    };
    let payload = tagged::given(part, key);
    Media { kind, bytes: payload.map_or(0, payload_length), pixels: payload.and_then(picture::pixels) }
}

/// The kind of an IANA media type, or of its first half.
pub(super) fn media_kind(media_type: &str) -> MediaKind {
    match media_type.split('/').next() {
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        Some("video") => MediaKind::Video,
        _ => MediaKind::Document,
    }
}

/// Bytes of what a payload holds: base64, bytes, a `data:` URL, or one of these in `{ type, data | url | text }`. What
/// only points somewhere has none.
fn payload_length(payload: &Value<'_>) -> usize {
    if tagged::object(payload).is_some() {
        let text = super::text_of(payload, "text").map(|text| text.len());
        let inner = ["data", "url"].into_iter().find_map(|key| tagged::given(payload, key));
        return text.or(inner.map(payload_length)).unwrap_or(0);
    }
    match tagged::text(payload) {
        Some(url) if url.contains(':') => tagged::data_url_length(&url).unwrap_or(0),
        _ => tagged::decoded_length(payload),
    }
}
