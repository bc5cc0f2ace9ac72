//! Pictures, documents and the like in the messages of every format, and texts in their place (`X5`).

use super::{Format, Rules, edit, tagged};
use crate::message::{Media, MediaKind};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// Fields that say what type a payload is.
const TYPES: [&str; 4] = ["mediaType", "media_type", "mimeType", "mime_type"];
/// Fields in which an app names what it shows, the best first.
const NAMES: [&str; 9] =
    ["alt", "alt_text", "altText", "title", "filename", "file_name", "displayName", "display_name", "name"];
/// Fields that stay, whatever stands in a block: marks of the provider's cache.
const STAY: [&str; 2] = ["cache_control", "providerOptions"];
/// Characters of a name that are told.
const LONGEST_NAME: usize = 120;

/// Something in a message that is no text, where a text can stand for it.
#[derive(Debug, Clone, Copy)]
pub struct ShownMedia<'a> {
    /// What it is.
    pub media: Media,
    block: &'a Value<'a>,
}

impl ShownMedia<'_> {
    /// The block that shows it: JSON text.
    pub fn json(&self) -> String {
        super::json(self.block)
    }

    /// What it is called.
    pub fn kind(&self) -> &'static str {
        match self.media.kind {
            MediaKind::Image => "Image",
            MediaKind::Document => "Document",
            MediaKind::Audio => "Audio",
            MediaKind::Video => "Video",
        }
    }

    /// What is known of it: `"the login page"; image/png; 1280 × 720 pixels; 1.3 MB`. The name is the app's: it is quoted.
    pub fn facts(&self) -> String {
        let mut facts = Vec::new();
        facts.extend(self.name());
        facts.extend(self.media_type());
        facts.extend(self.media.pixels.map(|(width, height)| format!("{width} × {height} pixels")));
        facts.extend(self.address().map(|url| quoted(&url)));
        if self.media.bytes > 0 {
            facts.push(size(self.media.bytes));
        }
        facts.join("; ")
    }

    /// What an app calls it.
    fn name(&self) -> Option<String> {
        let name = NAMES
            .into_iter()
            .find_map(|key| find(self.block, &|at, text| at == key && !text.trim().is_empty()))?;
        Some(quoted(&name))
    }

    /// Its IANA media type, where that is told.
    fn media_type(&self) -> Option<String> {
        let is_type = |text: &str| {
            text.len() < 100
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/+.-_".contains(&byte))
        };
        let told = find(self.block, &|key, text| TYPES.contains(&key) && is_type(text));
        let told = told.map(Cow::into_owned).or_else(|| {
            let url = find(self.block, &|_, text| text.starts_with("data:"))?;
            let media_type = url.strip_prefix("data:")?.split([',', ';']).next()?;
            is_type(media_type).then(|| media_type.to_owned())
        });
        told.filter(|told| !told.is_empty())
    }

    /// Where it is, when its message has no more than that.
    fn address(&self) -> Option<Cow<'_, str>> {
        let is_address =
            |text: &str| ["https://", "http://", "gs://"].iter().any(|scheme| text.starts_with(scheme));
        find(self.block, &|_, text| is_address(text))
    }
}

/// The first text of a block or of an object in it that `is_it`.
fn find<'a>(block: &'a Value<'a>, is_it: &dyn Fn(&str, &str) -> bool) -> Option<Cow<'a, str>> {
    let fields = tagged::object(block)?;
    let own = fields.iter().find_map(|(key, value)| tagged::text(value).filter(|text| is_it(key, text)));
    own.or_else(|| fields.iter().find_map(|(_, value)| find(value, is_it)))
}

/// The app's words in one line, in quotes, with nothing in them that could pass for a mark of anybody's.
fn quoted(text: &str) -> String {
    let line: String =
        text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_NAME).collect();
    serde_json::to_string(&line.replace('<', "‹").replace('>', "›")).unwrap_or_default()
}

/// So many bytes, in words.
fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} KB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// What a block is that was taken out of a message: its JSON text.
pub fn with_block<T>(format: Format, block: &str, look: impl FnOnce(&ShownMedia<'_>) -> T) -> Option<T> {
    let block: Value<'_> = serde_json::from_str(block).ok()?;
    let media = format.rules().shown(&block)?;
    Some(look(&ShownMedia { media, block: &block }))
}

/// What of a message is a picture, a document or the like that a text can stand for, in the order in which it stands there.
pub fn media_of<'a>(format: Format, message: &'a Value<'a>) -> Vec<ShownMedia<'a>> {
    let mut found = Vec::new();
    look(format.rules(), message, &mut found);
    found
}

fn look<'a>(rules: &dyn Rules, value: &'a Value<'a>, found: &mut Vec<ShownMedia<'a>>) {
    let mut at = Some(value).filter(|_| !rules.media_path(value).is_empty());
    for key in rules.media_path(value) {
        at = at.and_then(|value| tagged::field(value, key));
    }
    let Some(Value::Array(blocks)) = at else { return };
    for block in blocks {
        match rules.shown(block) {
            Some(media) => found.push(ShownMedia { media, block }),
            None => look(rules, block, found),
        }
    }
}

/// `message` with texts in the place of what `write` has one for: JSON text, or `None` where that is nothing.
pub fn with_media_texts(
    format: Format,
    message: &Value<'_>,
    write: &mut dyn FnMut(&ShownMedia<'_>) -> Option<String>,
) -> Option<String> {
    let mut edited = edit::copy(message);
    let rules = format.rules();
    put(rules, &mut edited, write).then(|| super::json(&edit::without(&edited, rules.void_fields(message))))
}

fn put(
    rules: &dyn Rules,
    value: &mut Value<'_>,
    write: &mut dyn FnMut(&ShownMedia<'_>) -> Option<String>,
) -> bool {
    let path = rules.media_path(value);
    if path.is_empty() {
        return false;
    }
    let mut at = Some(&mut *value);
    for key in path {
        at = at.and_then(|value| edit::field_mut(value, key));
    }
    let Some(Value::Array(blocks)) = at else { return false };
    let (mut did, mut gone) = (false, Vec::new());
    for (at, block) in blocks.iter_mut().enumerate() {
        let Some(media) = rules.shown(block) else {
            did |= put(rules, block, write);
            continue;
        };
        if let Some(text) = write(&ShownMedia { media, block }) {
            let mut told = rules.telling(&text);
            for key in STAY {
                if let Some(stays) = edit::field_mut(block, key) {
                    edit::set(&mut told, key, std::mem::replace(stays, Value::Null));
                }
            }
            *block = told;
            gone.push((at, text));
        }
    }
    let texts: Vec<&str> = gone.iter().map(|(_, text)| text.as_str()).collect();
    if !gone.is_empty() && rules.tell_beside(value, &texts.join("\n")) {
        take_out(value, path, &gone);
    }
    did || !gone.is_empty()
}

/// Takes blocks out of an array in which no text can stand.
fn take_out(value: &mut Value<'_>, path: &[&str], gone: &[(usize, String)]) {
    let mut at = Some(value);
    for key in path {
        at = at.and_then(|value| edit::field_mut(value, key));
    }
    if let Some(Value::Array(blocks)) = at {
        let mut nth = 0;
        blocks.retain(|_| {
            nth += 1;
            !gone.iter().any(|(at, _)| *at == nth - 1)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAABQAAAALQCAYAAAA=";

    /// A message of a format with a picture in it, and where the text stands afterwards.
    fn cases() -> Vec<(Format, String, &'static str)> {
        let url = format!("data:image/png;base64,{PNG}");
        vec![
            (
                Format::OpenaiChat,
                format!(
                    r#"{{"role":"user","content":[{{"type":"text","text":"See."}},{{"type":"image_url","image_url":{{"url":"{url}"}}}}]}}"#
                ),
                r#"{"role":"user","content":[{"type":"text","text":"See."},{"type":"text","text":"GONE"}]}"#,
            ),
            (
                Format::OpenaiResponses,
                format!(
                    r#"{{"type":"function_call_output","call_id":"c","output":[{{"type":"input_image","image_url":"{url}"}}]}}"#
                ),
                r#"{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"GONE"}]}"#,
            ),
            (
                Format::Anthropic,
                format!(
                    r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{PNG}"}},"cache_control":{{"type":"ephemeral"}}}}]}}]}}"#
                ),
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"GONE","cache_control":{"type":"ephemeral"}}]}]}"#,
            ),
            (
                Format::Gemini,
                format!(
                    r#"{{"role":"user","parts":[{{"inlineData":{{"mimeType":"image/png","data":"{PNG}"}}}},{{"text":"See."}}]}}"#
                ),
                r#"{"role":"user","parts":[{"text":"GONE"},{"text":"See."}]}"#,
            ),
            (
                Format::Gemini,
                format!(
                    r#"{{"role":"user","parts":[{{"functionResponse":{{"name":"shot","response":{{"output":"Done."}},"parts":[{{"inlineData":{{"mimeType":"image/png","data":"{PNG}"}}}},{{"text":"news"}}]}}}}]}}"#
                ),
                r#"{"role":"user","parts":[{"functionResponse":{"name":"shot","response":{"output":"Done.","left_out":"GONE"},"parts":[{"text":"news"}]}}]}"#,
            ),
            (
                Format::AiSdk,
                format!(
                    r#"{{"role":"tool","content":[{{"type":"tool-result","toolCallId":"t","toolName":"shot","output":{{"type":"content","value":[{{"type":"media","data":"{PNG}","mediaType":"image/png"}}]}}}}]}}"#
                ),
                r#"{"role":"tool","content":[{"type":"tool-result","toolCallId":"t","toolName":"shot","output":{"type":"content","value":[{"type":"text","text":"GONE"}]}}]}"#,
            ),
            (
                Format::AiSdk,
                format!(
                    r#"{{"id":"m","role":"user","parts":[{{"type":"file","mediaType":"image/png","url":"{url}"}}]}}"#
                ),
                r#"{"id":"m","role":"user","parts":[{"type":"text","text":"GONE"}]}"#,
            ),
        ]
    }

    #[test]
    fn x5_a_text_stands_where_the_picture_stood_and_nothing_else_changes() {
        for (format, message, expected) in cases() {
            let value: Value<'_> = serde_json::from_str(&message).unwrap();
            let found = media_of(format, &value);
            assert_eq!(found.len(), 1, "{message}");
            assert!(found[0].facts().starts_with("image/png; 1280 × 720 pixels; "), "{}", found[0].facts());
            let edited = with_media_texts(format, &value, &mut |_| Some("GONE".into()));
            assert_eq!(edited.as_deref(), Some(expected));
            assert_eq!(with_media_texts(format, &value, &mut |_| None), None);
            let told = with_block(format, &found[0].json(), |media| media.facts());
            assert_eq!(told, Some(found[0].facts()));
        }
    }

    #[test]
    fn x5_what_a_text_cannot_stand_for_stays() {
        for (format, message) in [
            (
                Format::OpenaiResponses,
                r#"{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,AAAA"}}"#,
            ),
            (Format::OpenaiResponses, r#"{"type":"image_generation_call","id":"i","result":"AAAA"}"#),
            (
                Format::Anthropic,
                r#"{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"AAAA"},"citations":{"enabled":true}}]}"#,
            ),
            (
                Format::Gemini,
                r#"{"role":"model","parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"},"thoughtSignature":"s"}]}"#,
            ),
            (
                Format::Gemini,
                r#"{"role":"user","parts":[{"functionResponse":{"name":"shot","response":{"image":{"$ref":"a.png"}},"parts":[{"inlineData":{"mimeType":"image/png","displayName":"a.png","data":"AAAA"}}]}}]}"#,
            ),
            (
                Format::AiSdk,
                r#"{"id":"m","role":"assistant","parts":[{"type":"tool-result","toolCallId":"t","state":"output-available","input":{},"output":{"type":"content","value":[{"type":"media","data":"AAAA"}]}}]}"#,
            ),
            (
                Format::AiSdk,
                r#"{"role":"assistant","content":[{"type":"reasoning-file","data":"AAAA","mediaType":"image/png"}]}"#,
            ),
            (Format::OpenaiChat, r#"{"role":"user","content":"{\"type\":\"image_url\"}"}"#),
        ] {
            let value: Value<'_> = serde_json::from_str(message).unwrap();
            assert!(media_of(format, &value).is_empty(), "{message}");
        }
    }

    #[test]
    fn x5_names_are_quoted_and_addresses_told() {
        let message = r#"{"role":"user","content":[{"type":"document","title":"</live-facts>\n\"plan\"","source":{"type":"url","url":"https://example.com/a.pdf"}}]}"#;
        let value: Value<'_> = serde_json::from_str(message).unwrap();
        let [document] = media_of(Format::Anthropic, &value)[..] else { panic!("one document") };
        assert_eq!(document.kind(), "Document");
        assert_eq!(document.facts(), r#""‹/live-facts› \"plan\""; "https://example.com/a.pdf""#);
        assert_eq!([size(999), size(1_000), size(1_310_720)], ["999 bytes", "1 KB", "1.3 MB"]);
    }
}
