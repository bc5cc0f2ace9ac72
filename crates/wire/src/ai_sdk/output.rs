//! What a tool answered: the tagged `output` of model messages (AI5), and values of the app's own making.
//!
//! A value keeps its shape when a text takes the place of what it says, because the tool's `toModelOutput` reads it
//! again. The text goes to the longest string in it; other long strings are emptied, and of an array what holds that
//! string, or media, is left, else its first item, as an example of its items. Keys, short strings, numbers, flags
//! and media are as they were. A value without any string to take gets the text as a field `text`, or as one more item.

use super::read::media_kind;
use super::{kind, text_of};
use crate::message::{Media, MediaKind, Pairing, Part};
use crate::{edit, picture, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// Strings of this many characters and less are labels rather than content: they stay.
const LABEL_CHARS: usize = 64;
/// Fields of an object that stay; a table with more entries is content.
const MAX_FIELDS: usize = 64;
/// Keys whose string says how to read the object that they stand in.
const DISCRIMINATORS: [&str; 5] = ["$cc", "type", "kind", "mediaType", "mimeType"];

/// An output as it is read.
pub(super) struct Output<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) is_error: bool,
    pub(super) media: Vec<Media>,
    /// Items of it that are neither text nor media.
    pub(super) rest: Vec<Part<'a>>,
}

impl<'a> Output<'a> {
    pub(super) fn of_text(text: Cow<'a, str>, is_error: bool) -> Self {
        Output { text, is_error, media: Vec::new(), rest: Vec::new() }
    }

    /// A value of the app's own making: a string as it is, anything else as JSON, media counted apart.
    pub(super) fn of_value(value: &'a Value<'a>, is_error: bool) -> Self {
        if let Some(media) = string_media(value) {
            return Output { media: vec![media], ..Output::of_text(Cow::Borrowed(""), is_error) };
        }
        if let Some(text) = tagged::text(value) {
            return Output::of_text(text, is_error);
        }
        let mut media = Vec::new();
        let json = tagged::plain_json(&without_media(value, &mut media));
        Output { media, ..Output::of_text(Cow::Owned(json), is_error) }
    }

    /// A tagged output; one without a known tag is read like any other value.
    pub(super) fn of_tagged(output: &'a Value<'a>) -> Self {
        let tag = kind(output);
        let is_error = tag.starts_with("error-") || tag == "execution-denied";
        let value = tagged::field(output, "value");
        match (tag.as_ref(), value) {
            ("execution-denied", _) => {
                Output::of_text(text_of(output, "reason").unwrap_or_default(), is_error)
            }
            ("content", Some(Value::Array(items))) => Output::of_items(items),
            ("text" | "error-text" | "json" | "error-json", Some(value)) => Output::of_value(value, is_error),
            _ => Output::of_value(output, is_error),
        }
    }

    fn of_items(items: &'a [Value<'a>]) -> Self {
        let (mut texts, mut media, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for item in items {
            let kind = kind(item);
            if kind == "text" {
                texts.push(text_of(item, "text").unwrap_or_default());
            } else if let Some(found) = item_media(&kind, item) {
                media.push(found);
            } else {
                rest.push(Part::Opaque { kind, chars: tagged::readable_chars(item), tie: Pairing::None });
            }
        }
        Output { text: crate::join(texts), is_error: false, media, rest }
    }
}

/// An item of a `content` output that is an image or a file.
pub(super) fn item_media(kind: &str, item: &Value<'_>) -> Option<Media> {
    let key = match kind {
        "media" | "file" | "file-data" | "image-data" => "data",
        "file-url" | "image-url" => "url",
        "file-id" | "image-file-id" => "fileId",
        "file-reference" | "image-file-reference" => "providerReference",
        _ => return None,
    };
    let media = super::read::media(item, key);
    Some(if kind.starts_with("image-") { Media { kind: MediaKind::Image, ..media } } else { media })
}

/// What is wrong with a tagged output (AI5).
pub(super) fn problem(output: Option<&Value<'_>>) -> Option<&'static str> {
    let Some(output) = output.filter(|output| !output.is_null()) else {
        return Some("a tool result must have an output; remove its exchange");
    };
    let value = tagged::field(output, "value");
    let good = match (kind(output).as_ref(), value) {
        ("text" | "error-text", Some(value)) => tagged::text(value).is_some(),
        ("json" | "error-json", value) => value.is_some(),
        ("execution-denied", _) => {
            tagged::given(output, "reason").is_none_or(|why| tagged::text(why).is_some())
        }
        ("content", Some(Value::Array(items))) => items.iter().all(|item| !kind(item).is_empty()),
        _ => false,
    };
    (!good).then_some("the output of a tool result must be tagged text, json, error-text, error-json, content or execution-denied, with a value of that kind; tag it")
}

/// The output with the tag that its value has: the SDK tags the outputs of tools the same way.
pub(super) fn retagged(mut output: Value<'_>) -> Value<'_> {
    let tag = kind(&output).into_owned();
    let inner = match tag.as_str() {
        "text" | "error-text" | "content" => edit::field_mut(&mut output, "value").map(std::mem::take),
        _ => None,
    };
    let value = inner.filter(|value| !value.is_null()).unwrap_or(output);
    let tag = match (tagged::text(&value).is_some(), tag.starts_with("error-")) {
        (true, false) => "text",
        (true, true) => "error-text",
        (false, false) => "json",
        (false, true) => "error-json",
    };
    Value::Object([("type", Value::Str(Cow::Borrowed(tag))), ("value", value)].into_iter().collect())
}

/// Puts a text in the place of what a tagged output says; its tag stays.
pub(super) fn replace_tagged<'v>(output: &'v Value<'v>, text: &'v str) -> Value<'v> {
    let mut edited = output.clone();
    match (kind(output).as_ref(), tagged::field(output, "value")) {
        ("execution-denied", _) => edit::set(&mut edited, "reason", edit::text(text)),
        ("content", Some(Value::Array(_))) => {
            if let Some(Value::Array(items)) = edit::field_mut(&mut edited, "value") {
                replace_in_items(items, text);
            }
        }
        ("text" | "error-text" | "json" | "error-json", Some(value)) => {
            edit::set(&mut edited, "value", replaced(value, text));
        }
        _ => return replaced(output, text),
    }
    edited
}

/// The first text item gets the text, or a new one before the others; further texts go, media stay.
fn replace_in_items(items: &mut Vec<Value<'_>>, text: &str) {
    let first = items.iter().position(|item| kind(item) == "text");
    let mut at = 0;
    items.retain(|item| {
        at += 1;
        Some(at - 1) == first || kind(item) != "text"
    });
    match first.and_then(|first| items.get_mut(first)) {
        Some(item) => edit::set(item, "text", edit::text(text)),
        None => items.insert(0, edit::text_block(text)),
    }
}

/// A value that says `text` in the shape that it had. JSON of the value's own kind is the value.
pub(super) fn replaced<'v>(value: &'v Value<'v>, text: &'v str) -> Value<'v> {
    if tagged::object(value).is_none() && !value.is_array() {
        return edit::text(text);
    }
    let json = serde_json::from_str::<Value<'v>>(text).ok();
    let of_its_kind = json.filter(|json| json.is_array() == value.is_array());
    let whole = of_its_kind.filter(|json| json.is_object() == value.is_object()).and_then(|mut json| {
        let (there, put_back) = (media_count(value), put_media(value, &mut json));
        (there == put_back).then_some(json)
    });
    whole.unwrap_or_else(|| reshaped(value, text))
}

/// Puts the media of a value back to where they stood in what was written as JSON without them; how many found their
/// place.
fn put_media<'v>(value: &'v Value<'v>, json: &mut Value<'v>) -> usize {
    if string_media(value).is_some() {
        *json = value.clone();
        return 1;
    }
    match (value, json) {
        (Value::Array(items), Value::Array(written)) if items.len() == written.len() => {
            items.iter().zip(written).map(|(item, written)| put_media(item, written)).sum()
        }
        (Value::Object(fields), Value::Object(written)) if tagged::object(value).is_some() => {
            let put = |(key, field): (&'v str, &'v Value<'v>)| match written.get_mut(key) {
                Some(place) if field_media(value, key, field).is_some() => {
                    *place = field.clone();
                    1
                }
                Some(place) => put_media(field, place),
                None => 0,
            };
            fields.iter().map(put).sum()
        }
        _ => 0,
    }
}

fn media_count(value: &Value<'_>) -> usize {
    let mut media = Vec::new();
    without_media(value, &mut media);
    media.len()
}

fn reshaped<'v>(value: &'v Value<'v>, text: &str) -> Value<'v> {
    let mut longest = None;
    find_longest(value, &mut Vec::new(), &mut longest);
    let path = longest.map(|(_, path)| path);
    let mut edited = shrunk(value, path.as_deref(), text);
    if path.is_none() {
        match &mut edited {
            Value::Array(items) => items.push(edit::text(text)),
            fields => edit::set(fields, "text", edit::text(text)),
        }
    }
    edited
}

/// The path to the longest string that may be replaced, by positions; the first of several.
fn find_longest(value: &Value<'_>, path: &mut Vec<usize>, longest: &mut Option<(usize, Vec<usize>)>) {
    let mut visit = |position: usize, inner: &Value<'_>| {
        path.push(position);
        find_longest(inner, path, longest);
        path.pop();
    };
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(at, item)| visit(at, item)),
        Value::Object(fields) if tagged::object(value).is_some() => {
            for (at, (key, field)) in fields.iter().enumerate() {
                if !DISCRIMINATORS.contains(&key) && field_media(value, key, field).is_none() {
                    visit(at, field);
                }
            }
        }
        Value::Str(text) if string_media(value).is_none() => {
            let chars = text.chars().count();
            if longest.as_ref().is_none_or(|(most, _)| chars > *most) {
                *longest = Some((chars, path.clone()));
            }
        }
        _ => {}
    }
}

/// The value with `text` at the end of the path, and little of everything else.
fn shrunk<'v>(value: &'v Value<'v>, path: Option<&[usize]>, text: &str) -> Value<'v> {
    let (next, rest) = match path {
        Some([]) => return edit::text(text),
        Some([next, rest @ ..]) => (Some(*next), Some(rest)),
        None => (None, None),
    };
    let inner =
        |at: usize, value: &'v Value<'v>| shrunk(value, if next == Some(at) { rest } else { None }, text);
    match value {
        Value::Array(items) => {
            let stays = |at: usize, item: &Value<'_>| next == Some(at) || holds_media(item);
            let any = items.iter().enumerate().any(|(at, item)| stays(at, item));
            let kept = items.iter().enumerate().filter(|(at, item)| stays(*at, item) || (!any && *at == 0));
            Value::Array(kept.map(|(at, item)| inner(at, item)).collect())
        }
        Value::Object(fields) if tagged::object(value).is_some() => {
            let stays =
                |at: usize, field: &Value<'_>| at < MAX_FIELDS || next == Some(at) || holds_media(field);
            let kept = fields.iter().enumerate().filter(|(at, (_, field))| stays(*at, field));
            let field = |(at, (key, field)): (usize, (&'v str, &'v Value<'v>))| {
                let media = field_media(value, key, field).is_some();
                (key, if media { field.clone() } else { inner(at, field) })
            };
            Value::Object(kept.map(field).collect())
        }
        Value::Str(content) if string_media(value).is_none() && content.chars().count() > LABEL_CHARS => {
            Value::Str(Cow::Borrowed(""))
        }
        _ => value.clone(),
    }
}

/// Media by what says so: bytes, and `data:` URLs.
fn string_media(value: &Value<'_>) -> Option<Media> {
    if value.is_object() && tagged::object(value).is_none() && tagged::text(value).is_none() {
        let bytes = tagged::decoded_length(value);
        return (bytes > 0).then_some(Media { kind: MediaKind::Document, bytes, pixels: None });
    }
    let text = tagged::text(value)?;
    let bytes = tagged::data_url_length(&text)?;
    let kind = text.strip_prefix("data:").map_or(MediaKind::Document, media_kind);
    Some(Media { kind, bytes, pixels: picture::pixels(value) })
}

/// Media by what its object says of it: `data` with the `mediaType` of an image, audio, a video or a PDF.
fn field_media(object: &Value<'_>, key: &str, field: &Value<'_>) -> Option<Media> {
    if key != "data" {
        return None;
    }
    let media_type = text_of(object, "mediaType").or_else(|| text_of(object, "mimeType"))?;
    let kind = media_kind(&media_type);
    let is_media = kind != MediaKind::Document || media_type == "application/pdf";
    let bytes = || string_media(field).map_or_else(|| tagged::decoded_length(field), |media| media.bytes);
    (is_media && !field.is_null()).then(|| Media { kind, bytes: bytes(), pixels: picture::pixels(field) })
}

fn holds_media(value: &Value<'_>) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds_media),
        Value::Object(fields) if tagged::object(value).is_some() => {
            fields.iter().any(|(key, field)| field_media(value, key, field).is_some() || holds_media(field))
        }
        _ => string_media(value).is_some(),
    }
}

/// The value with an empty string in the place of media, which are noted.
fn without_media<'v>(value: &'v Value<'v>, media: &mut Vec<Media>) -> Value<'v> {
    let mut noted = |found: Media| {
        media.push(found);
        Value::Str(Cow::Borrowed(""))
    };
    if let Some(found) = string_media(value) {
        return noted(found);
    }
    match value {
        Value::Array(items) => Value::Array(items.iter().map(|item| without_media(item, media)).collect()),
        Value::Object(fields) if tagged::object(value).is_some() => {
            let field = |(key, field): (&'v str, &'v Value<'v>)| match field_media(value, key, field) {
                Some(found) => {
                    media.push(found);
                    (key, Value::Str(Cow::Borrowed("")))
                }
                None => (key, without_media(field, media)),
            };
            Value::Object(fields.iter().map(field).collect())
        }
        _ => value.clone(),
    }
}
