//! Reading one message.

use super::names::{self, Name};
use super::response;
use crate::Hints;
use crate::error::Result;
use crate::mark::mark;
use crate::message::{Mark, Media, MediaKind, Message, Pairing, Part, Role, ToolCall, ToolResult};
use crate::read::{At, named, of_user};
use crate::{picture, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// Fields that databases and SDKs add, drop and move: the message is still the same.
pub(super) const HINTS: Hints = Hints {
    message: &["id", "createdAt", "created_at", "metadata", "status", "usage_metadata", "response_metadata"],
    block: &["metadata", "partMetadata", "part_metadata", "cache_control"],
};

pub(super) fn message<'a>(index: usize, value: &'a Value<'a>) -> Result<Message<'a>> {
    let at = At::message(index, value)?;
    let name = match at.get("role") {
        Some(role) => role.text()?,
        // The API's default.
        None => Cow::Borrowed("user"),
    };
    let from_model = match name.as_ref() {
        // The results of tools, as the first models had it.
        "user" | "function" => false,
        "model" => true,
        _ => {
            let what =
                format!("{} is none of user, model; instructions go into `systemInstruction`", named(&name));
            return at.fail_at("role", what);
        }
    };
    let Some(items) = at.get("parts") else {
        return at.fail_at("parts", "must be an array of parts, and is missing");
    };
    let mut parts = Vec::new();
    for item in items.items()? {
        if tagged::object(item.value()).is_none() {
            return item.fail("a part must be an object");
        }
        for key in names::data(item.value()) {
            if let Some(data) = item.get(key) {
                read_data(key, &data, &item, &mut parts)?;
            }
        }
    }
    Ok(if from_model { Message { role: Role::Assistant, parts } } else { of_user(parts) })
}

fn read_data<'a>(key: &'a str, data: &At<'a>, part: &At<'a>, parts: &mut Vec<Part<'a>>) -> Result<()> {
    match key {
        "text" => {
            let text = data.text()?;
            let signed = names::is_signed(part.value());
            // The signature of an answer that ends without a call may come with an empty text.
            if names::is_thought(part.value()) || (signed && text.is_empty()) {
                parts.push(Part::Reasoning { text, signed });
            } else if !text.is_empty() {
                parts.push(Part::Text(text));
            }
        }
        "functionCall" | "function_call" => {
            let name = paired(data)?;
            let arguments = match data.get("args") {
                Some(args) => tagged::plain_json(args.value()),
                None => "{}".to_owned(),
            };
            // Ids are optional, and an answer may lack the one that its call has: what pairs them is the name.
            parts.push(Part::ToolCall(ToolCall {
                id: name.clone(),
                name,
                arguments: Cow::Owned(arguments),
                caller: None,
            }));
        }
        "functionResponse" | "function_response" => {
            result(data, mark(names::PART_METADATA.of(part.value())), parts)?
        }
        _ => parts.push(match media(key, data.value()) {
            Some(media) => Part::Media(media),
            None => {
                let chars = tagged::readable_chars(data.value());
                Part::Opaque { kind: Cow::Borrowed(key), chars, tie: tie(key, data.value()) }
            }
        }),
    }
    Ok(())
}

/// The name of a call or a response, whose other fields are looked at as well.
fn paired<'a>(at: &At<'a>) -> Result<Cow<'a, str>> {
    if tagged::object(at.value()).is_none() {
        return at.fail("must be an object with a name");
    }
    if let Some(id) = at.get("id") {
        id.text()?;
    }
    at.need_text("name")
}

/// Media are files, inline or by address; the type says what they are.
pub(super) fn media(key: &str, data: &Value<'_>) -> Option<Media> {
    let bytes = match key {
        "inlineData" | "inline_data" => tagged::given(data, "data").map_or(0, tagged::decoded_length),
        "fileData" | "file_data" => 0,
        _ => return None,
    };
    let mime = names::MIME_TYPE.of(data).and_then(tagged::text).unwrap_or_default();
    let kind = match mime.split('/').next() {
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        Some("video") => MediaKind::Video,
        _ => MediaKind::Document,
    };
    let payload = tagged::given(data, "data").filter(|_| kind == MediaKind::Image);
    Some(Media { kind, bytes, pixels: payload.and_then(picture::pixels) })
}

/// What a tool that the provider runs opens or closes. Kinds that nobody has heard of yet are paired by their ids.
fn tie<'a>(key: &'a str, data: &'a Value<'a>) -> Pairing<'a> {
    let id = names::text(data, "id");
    let is = |name: Name| key == name.0 || key == name.1;
    if is(names::EXECUTABLE_CODE) || is(names::CODE_EXECUTION_RESULT) {
        // Older models gave no id: code and result are neighbours.
        let id = id.unwrap_or(Cow::Borrowed("executableCode"));
        return if is(names::EXECUTABLE_CODE) { Pairing::Opens(id) } else { Pairing::Closes(id) };
    }
    let id = id.or_else(|| names::TOOL_TYPE.of(data).and_then(tagged::text));
    let ends = |ends: &[&str]| ends.iter().any(|end| key.ends_with(end));
    match id {
        Some(id) if ends(&["Call", "_call"]) => Pairing::Opens(id),
        Some(id) if ends(&["Response", "_response", "Result", "_result", "Output", "_output"]) => {
            Pairing::Closes(id)
        }
        _ => Pairing::None,
    }
}

fn result<'a>(at: &At<'a>, mark: Option<Mark>, parts: &mut Vec<Part<'a>>) -> Result<()> {
    let call_id = paired(at)?;
    let response::Read { text, is_error, rest } = response::read(at.value());
    let mut items = Vec::new();
    let mut others = Vec::new();
    if let Some(inner) = at.get("parts") {
        for item in inner.items()? {
            for key in names::data(item.value()) {
                let Some(data) = tagged::given(item.value(), key) else { continue };
                match media(key, data) {
                    Some(media) => items.push(media),
                    None => others.push((key, tagged::readable_chars(data))),
                }
            }
        }
    }
    parts.push(Part::ToolResult(ToolResult { call_id, text, is_error, media: items, mark }));
    let others = others.into_iter().chain((rest > 0).then_some(("response", rest)));
    parts.extend(others.map(|(kind, chars)| Part::Opaque {
        kind: Cow::Borrowed(kind),
        chars,
        tie: Pairing::None,
    }));
    Ok(())
}
