//! JSON: keys and nesting stay, long lists are sampled, long texts clipped. What comes out is JSON again; what is left
//! out is told in its place. Numbers, ids and escapes are those of the input, to the letter.

use super::text::{Severity, clip, count, level};
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::fmt::Write as _;

/// A text without blanks up to this length is a name, a path or an id: never cut while there is some room.
const NAME: usize = 200;
/// How much of lists, texts and objects is shown, from little to all but all.
const SCALE: [usize; 18] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 160, 320, 640, 1_600, 6_400];
/// Less than the least of them: an outline.
const OUTLINES: [Limits; 6] = [
    Limits { items: 1, fields: 3, text: 16, names: false, depth: 1 },
    Limits { items: 1, fields: 8, text: 16, names: false, depth: 1 },
    Limits { items: 1, fields: 4, text: 16, names: false, depth: 2 },
    Limits { items: 1, fields: 8, text: 16, names: true, depth: 2 },
    Limits { items: 1, fields: 3, text: 16, names: true, depth: 3 },
    Limits { items: 1, fields: 5, text: 16, names: true, depth: 3 },
];
/// A text in a text is shaped by its own content where there is room for it
const LEAST_INNER: usize = 400;
/// and it has as many lines.
const LEAST_LINES: usize = 5;

/// Fields that say what an object is: shown however many there are.
const KEYS: &[&str] =
    &["id", "name", "title", "status", "state", "type", "url", "path", "total", "count", "message"];

/// A value that borrows the text it was read from.
#[derive(Debug)]
pub(super) struct Node<'t> {
    pub(super) value: Value<'t>,
    /// An error is reported in it.
    alarming: bool,
}

#[derive(Debug)]
pub(super) enum Value<'t> {
    /// Number, `true`, `false`, `null`.
    Scalar(&'t str),
    /// A text, quoted and escaped.
    Text(&'t str),
    List(Vec<Node<'t>>),
    /// Keys are quoted and escaped.
    Object(Vec<(&'t str, Node<'t>)>),
}

/// Reads an object or a list; nothing for any other text.
pub(super) fn read(text: &str) -> Option<Node<'_>> {
    let text = text.trim_start_matches('\u{feff}').trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    // Checked whole first, its depth too: the walk below takes it as it is.
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    JsonWalk { text, at: 0 }.value()
}

struct JsonWalk<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> JsonWalk<'t> {
    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !byte.is_ascii_whitespace() {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    fn value(&mut self) -> Option<Node<'t>> {
        let (value, alarming) = match self.peek()? {
            b'{' => {
                let mut fields = Vec::new();
                let mut alarming = false;
                self.at += 1;
                while self.peek()? != b'}' {
                    if self.peek()? == b',' {
                        self.at += 1;
                        continue;
                    }
                    let key = self.string()?;
                    self.peek()?;
                    self.at += 1;
                    let mut node = self.value()?;
                    let told =
                        !matches!(node.value, Value::Scalar("null" | "false" | "0")) && !is_empty(&node);
                    node.alarming |= told && level(key) == Severity::Error;
                    alarming |= node.alarming;
                    fields.push((key, node));
                }
                self.at += 1;
                (Value::Object(fields), alarming)
            }
            b'[' => {
                let mut items = Vec::new();
                self.at += 1;
                while self.peek()? != b']' {
                    if self.peek()? == b',' {
                        self.at += 1;
                        continue;
                    }
                    items.push(self.value()?);
                }
                self.at += 1;
                let alarming = items.iter().any(|item| item.alarming);
                (Value::List(items), alarming)
            }
            b'"' => {
                let text = self.string()?;
                // Prose that speaks of errors does not report one.
                let alarming = text.len() < NAME && level(text) == Severity::Error;
                (Value::Text(text), alarming)
            }
            _ => {
                let rest = self.text.get(self.at..)?;
                let end = rest.find([',', ']', '}', ' ', '\n', '\r', '\t']).unwrap_or(rest.len());
                self.at += end;
                (Value::Scalar(rest.get(..end)?), false)
            }
        };
        Some(Node { value, alarming })
    }

    fn string(&mut self) -> Option<&'t str> {
        let start = self.at;
        let mut escaped = false;
        for (nth, byte) in self.text.as_bytes().get(start + 1..)?.iter().enumerate() {
            match byte {
                b'"' if !escaped => {
                    self.at = start + nth + 2;
                    return self.text.get(start..self.at);
                }
                b'\\' => escaped = !escaped,
                _ => escaped = false,
            }
        }
        None
    }
}

fn is_empty(node: &Node<'_>) -> bool {
    match &node.value {
        Value::Scalar(_) => false,
        Value::Text(text) => text.len() <= 2,
        Value::List(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// The text of a quoted one.
pub(super) fn unquoted(text: &str) -> Cow<'_, str> {
    match text.get(1..text.len().saturating_sub(1)) {
        Some(plain) if !plain.contains('\\') => Cow::Borrowed(plain),
        _ => Cow::Owned(serde_json::from_str(text).unwrap_or_default()),
    }
}

impl<'t> Node<'t> {
    /// The field of an object.
    pub(super) fn get(&self, name: &str) -> Option<&Node<'t>> {
        let Value::Object(fields) = &self.value else { return None };
        fields.iter().find(|(key, _)| unquoted(key) == name).map(|(_, node)| node)
    }

    /// The text of a text, a number as it is written.
    pub(super) fn text(&self) -> Option<Cow<'_, str>> {
        match &self.value {
            Value::Text(text) => Some(unquoted(text)),
            Value::Scalar("null") => None,
            Value::Scalar(text) => Some(Cow::Borrowed(text)),
            _ => None,
        }
    }
}

/// How much is shown.
#[derive(Debug, Clone, Copy)]
struct Limits {
    items: usize,
    fields: usize,
    text: usize,
    names: bool,
    depth: usize,
}

impl Limits {
    const NONE: Limits =
        Limits { items: usize::MAX, fields: usize::MAX, text: usize::MAX, names: true, depth: usize::MAX };

    /// The `nth` of them, from little to much.
    fn of(nth: usize) -> Option<Self> {
        if let Some(outline) = OUTLINES.get(nth) {
            return Some(*outline);
        }
        let scale = *SCALE.get(nth - OUTLINES.len())?;
        let (fields, text, names, depth) = (scale * 8, scale * 24, scale > 1, scale + 2);
        Some(Limits { items: scale, fields, text, names, depth })
    }
}

/// The largest of some forms that fits; each is larger than the one before.
fn largest(target: usize, form: impl Fn(Limits) -> String) -> Option<String> {
    let fits = |limits| Some(form(limits)).filter(|text| count(text) <= target);
    if let Some(whole) = fits(Limits::NONE) {
        return Some(whole);
    }
    let (mut low, mut high) = (0, OUTLINES.len() + SCALE.len());
    let mut best = None;
    while low < high {
        let middle = low.midpoint(high);
        match Limits::of(middle).and_then(fits) {
            Some(text) => (best, low) = (Some(text), middle + 1),
            None => high = middle,
        }
    }
    best
}

/// The value in at most `target` characters; nothing when not even its outline fits.
pub(super) fn shape(node: &Node<'_>, target: usize) -> Option<String> {
    largest(target, |limits| {
        let mut out = String::new();
        write(node, limits, 0, &mut out);
        out
    })
}

/// JSON lines; each stays a line.
pub(super) fn shape_lines(nodes: &[Node<'_>], target: usize) -> Option<String> {
    largest(target, |limits| {
        let mut out = String::new();
        each(nodes, limits.items, "lines", &mut |part| {
            match part {
                Sampled::Item(node) => write(node, limits, 1, &mut out),
                Sampled::Gap(text) => {
                    let _ = write!(out, "{{\"…\":\"{text}\"}}");
                }
            }
            out.push('\n');
        });
        out.pop();
        out
    })
}

enum Sampled<'n, 't> {
    Item(&'n Node<'t>),
    Gap(String),
}

/// The first items, the last one, and those that report an error, up to the limit each.
fn each<'n, 't>(nodes: &'n [Node<'t>], limit: usize, unit: &str, show: &mut dyn FnMut(Sampled<'n, 't>)) {
    let all = nodes.len() <= limit.saturating_add(1);
    let first = limit - usize::from(limit > 1);
    let mut alarms = limit;
    let mut left_out = 0;
    for (at, node) in nodes.iter().enumerate() {
        let is_last = limit > 1 && at + 1 == nodes.len();
        let is_alarm = node.alarming && alarms > 0;
        if !(all || at < first || is_last || is_alarm) {
            left_out += 1;
            continue;
        }
        if at >= first && node.alarming {
            alarms = alarms.saturating_sub(1);
        }
        if left_out > 0 {
            show(Sampled::Gap(format!("… {left_out} {unit} left out")));
            left_out = 0;
        }
        show(Sampled::Item(node));
    }
    if left_out > 0 {
        show(Sampled::Gap(format!("… {left_out} {unit} left out")));
    }
}

fn write(node: &Node<'_>, limits: Limits, depth: usize, out: &mut String) {
    match &node.value {
        Value::Scalar(text) => out.push_str(text),
        Value::Text(text) => write_text(text, limits, out),
        Value::List(items) if depth >= limits.depth && !items.is_empty() => {
            let _ = write!(out, "\"… {} items\"", items.len());
        }
        Value::Object(fields) if depth >= limits.depth && !fields.is_empty() => {
            let _ = write!(out, "\"… {} keys\"", fields.len());
        }
        Value::List(items) => {
            out.push('[');
            let mut between = "";
            each(items, limits.items, "items", &mut |part| {
                out.push_str(between);
                between = ",";
                match part {
                    Sampled::Item(node) => write(node, limits, depth + 1, out),
                    Sampled::Gap(text) => {
                        let _ = write!(out, "\"{text}\"");
                    }
                }
            });
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            let mut between = "";
            let mut left_out = 0;
            for (nth, (key, node)) in fields.iter().enumerate() {
                if nth >= limits.fields && !node.alarming && !KEYS.contains(&unquoted(key).as_ref()) {
                    left_out += 1;
                    continue;
                }
                let _ = write!(out, "{between}{key}:");
                between = ",";
                write(node, limits, depth + 1, out);
            }
            if left_out > 0 {
                let _ = write!(out, "{between}\"…\":\"{left_out} keys left out\"");
            }
            out.push('}');
        }
    }
}

fn write_text(text: &str, limits: Limits, out: &mut String) {
    let is_name = limits.names && text.len() <= NAME && !text.contains(char::is_whitespace);
    if is_name || text.len() <= limits.text {
        return out.push_str(text);
    }
    let plain = unquoted(text);
    let has_lines = plain.lines().nth(LEAST_LINES - 1).is_some();
    let shaped = (limits.text >= LEAST_INNER && has_lines).then(|| super::shape(&plain, limits.text));
    let short = match shaped.flatten() {
        Some(shaped) => Cow::Owned(shaped.text),
        None => clip(&plain, limits.text),
    };
    match short {
        Cow::Borrowed(_) => out.push_str(text),
        // Writing a text into memory has no way to fail.
        Cow::Owned(short) => out.push_str(&serde_json::to_string(&short).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests;
