//! Reads large messages. A parser has room for a text with escapes twice over before it hands out a copy; here a long text is
//! read piece by piece into the room that it takes.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json_borrow::Value;
use std::borrow::Cow;
use std::fmt;

/// Bytes from which a text is long.
pub(crate) const LARGE: usize = 256 << 10;
/// Bytes that are read at once.
const PIECE: usize = 64 << 10;
/// How deep values may nest, as for the parser.
const DEPTH: usize = 127;

/// The value of JSON text; `None` where that is for the parser: what is no JSON, nests too deep, or has escapes in a name.
pub(crate) fn parse(json: &str) -> Option<Value<'_>> {
    let raw: &RawValue = serde_json::from_str(json).ok()?;
    value(raw.get(), DEPTH)
}

/// The value of JSON text that is known to be valid, with `depth` levels left.
fn value(json: &str, depth: usize) -> Option<Value<'_>> {
    if json.len() < LARGE {
        return serde_json::from_str(json).ok().filter(|value| is_within(value, depth));
    }
    match json.as_bytes().first()? {
        b'"' => text(json.get(1..json.len() - 1)?).map(Value::Str),
        b'{' => {
            let depth = depth.checked_sub(1)?;
            let RawFields(fields) = serde_json::from_str(json).ok()?;
            let values = fields.into_iter().map(|(name, raw)| Some((name, value(raw.get(), depth)?)));
            Some(Value::Object(values.collect::<Option<Vec<_>>>()?.into()))
        }
        b'[' => {
            let depth = depth.checked_sub(1)?;
            let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            let values = items.into_iter().map(|raw| value(raw.get(), depth));
            Some(Value::Array(values.collect::<Option<_>>()?))
        }
        _ => serde_json::from_str(json).ok(),
    }
}

/// What the JSON of a text, without its quotes, says.
fn text(json: &str) -> Option<Cow<'_, str>> {
    if !json.contains('\\') {
        return Some(Cow::Borrowed(json));
    }
    let mut text = String::with_capacity(room(json));
    let mut rest = json;
    while !rest.is_empty() {
        let (piece, next) = rest.split_at_checked(cut(rest))?;
        text.push_str(&serde_json::from_str::<String>(&format!("\"{piece}\"")).ok()?);
        rest = next;
    }
    Some(Cow::Owned(text))
}

/// Bytes that a text takes, from its JSON. It is read into no more room: so it fits into what the buffer left free in which the
/// message came.
fn room(json: &str) -> usize {
    let (mut room, mut rest) = (json.len(), json);
    while let Some((_, escape)) = rest.split_once('\\') {
        let unit = escape.strip_prefix('u').and_then(|unit| u16::from_str_radix(unit.get(..4)?, 16).ok());
        let (letters, bytes) = match unit {
            None => (1, 1),
            // The second of a pair, which has four bytes.
            Some(0..=0x7F | 0xDC00..=0xDFFF) => (5, 1),
            Some(0x80..=0x7FF) => (5, 2),
            Some(_) => (5, 3),
        };
        room = room.saturating_sub(1 + letters - bytes);
        rest = escape.get(letters..).unwrap_or_default();
    }
    room
}

/// Where the first piece of a text ends: in no character, no escape and no pair of them.
fn cut(json: &str) -> usize {
    let bytes = json.as_bytes();
    let (mut at, mut is_half) = (0, false);
    while at < bytes.len() && (at < PIECE || is_half || !json.is_char_boundary(at)) {
        let escape = json.get(at..).and_then(|rest| rest.strip_prefix('\\'));
        let unit = escape.and_then(|rest| rest.strip_prefix('u')).and_then(|rest| rest.get(..4));
        is_half = unit.is_some_and(|unit| matches!(u16::from_str_radix(unit, 16), Ok(0xD800..=0xDBFF)));
        at += match (escape, unit) {
            (None, _) => 1,
            (Some(_), None) => 2,
            (Some(_), Some(_)) => 6,
        };
    }
    at.min(bytes.len())
}

/// A value nests no deeper than so many levels.
fn is_within(value: &Value<'_>, depth: usize) -> bool {
    let inside = depth.checked_sub(1);
    match value {
        Value::Object(fields) => {
            inside.is_some_and(|depth| fields.iter().all(|(_, value)| is_within(value, depth)))
        }
        Value::Array(items) => inside.is_some_and(|depth| items.iter().all(|value| is_within(value, depth))),
        _ => true,
    }
}

/// The fields of an object, each with its JSON.
struct RawFields<'a>(Vec<(&'a str, &'a RawValue)>);

impl<'de> Deserialize<'de> for RawFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AsFields;

        impl<'de> Visitor<'de> for AsFields {
            type Value = RawFields<'de>;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(RawFields(fields))
            }
        }

        deserializer.deserialize_map(AsFields)
    }
}

#[cfg(test)]
mod tests {
    use super::{LARGE, parse, room, text};
    use serde_json_borrow::Value;

    fn plain(json: &str) -> Option<Value<'_>> {
        serde_json::from_str(json).ok()
    }

    #[test]
    fn p14_a_large_message_reads_as_the_parser_reads_it() {
        let texts = [
            "line\n".repeat(LARGE / 3),
            "\u{1F600}\"\\\u{7}é漢".repeat(LARGE / 8),
            "a".repeat(LARGE * 2),
            "\\".repeat(LARGE),
        ];
        for text in &texts {
            let text = serde_json::to_string(text).unwrap_or_default();
            for json in [
                format!("{{\"role\":\"tool\",\"content\":{text},\"n\":[1,2.5,-3e300,null,true,{{}}]}}"),
                format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}},{{\"text\":\"\\n\"}}]}}"),
                format!(" [ {text} , {{ \"a\" : {text} }} ] "),
                text.clone(),
            ] {
                let read = parse(&json);
                assert!(read.is_some());
                assert_eq!(read, plain(&json));
            }
        }
    }

    #[test]
    fn p14_escapes_of_units_are_read_wherever_a_piece_would_end() {
        for shift in 0..12 {
            let json = format!("\"{}{}\"", "a".repeat(shift), "\\ud83d\\ude00\\u00e9".repeat(LARGE / 9));
            assert!(parse(&json).is_some());
            assert_eq!(parse(&json), plain(&json));
        }
    }

    #[test]
    fn p14_a_text_takes_no_more_room_than_it_has_bytes() {
        let pieces = [
            r"a line\n",
            r#"\"a\\b\"\t"#,
            r"\u001b[0m",
            r"\u00e9",
            r"\u6f22 \\u6f22",
            r"\ud83d\ude00",
            "漢字 \u{1F600}",
        ];
        for piece in pieces {
            let json = piece.repeat(1_000);
            assert_eq!(text(&json).map(|text| text.len()), Some(room(&json)), "{piece}");
        }
    }

    #[test]
    fn p14_what_the_parser_refuses_is_refused() {
        let text = "a".repeat(LARGE);
        for json in [
            format!("{{\"content\":\"{text}\""),
            format!("{{\"content\":\"{text}\\x\"}}"),
            format!("{{\"content\":\"\\ud83d{text}\"}}"),
            format!("{}\"{text}\"{}", "[".repeat(128), "]".repeat(128)),
            format!("[\"{text}\",{}{}]", "[".repeat(127), "]".repeat(127)),
        ] {
            assert_eq!(plain(&json), None);
            assert_eq!(parse(&json), None);
        }
        // One level less.
        let json = format!("[\"{text}\",{}{}]", "[".repeat(126), "]".repeat(126));
        assert!(plain(&json).is_some() && parse(&json) == plain(&json));
    }
}
