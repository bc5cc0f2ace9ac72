//! What an edit of a message may change: the text of an offloaded result, long texts in the input of a call, a text of the user, and reasoning that its provider binds to what
//! stood before it. Everything else stays, fields that nobody has heard of included.

use super::text;
use context_compactor_core::context::{Offload, Placeholder};
use context_compactor_core::message::{Message, Part};
use context_compactor_core::wire::{self, Format};
use serde_json::{Map, Value};

/// Fields that *are* the result: a new text takes the place of all that is in it, in whatever shape.
const OUTPUTS: [&str; 4] = ["response", "output", "result", "value"];
/// Fields that an edit makes void: the server's id of the item (`OR4`).
const VOID: [&str; 2] = ["id", "itemId"];

/// Compares a message with what an edit made of it.
pub(super) fn check(
    format: Format,
    original: &str,
    edited: &str,
    offloads: &[Offload],
    reasoning_removed: bool,
) -> Result<(), String> {
    let (was, is) = (wire::parse(0, original).map_err(text)?, wire::parse(0, edited).map_err(text)?);
    let mut was = format.wire().read(0, &was).map_err(text)?;
    let is = format.wire().read(0, &is).map_err(text)?;
    let mut texts = Vec::with_capacity(offloads.len());
    for offload in offloads {
        if offload.how == Placeholder::Text {
            let now = is.texts().nth(offload.nth).ok_or("an offload of a text that is not there")?;
            texts.push(now.to_owned());
            replace_text(&mut was, offload.nth, now);
            continue;
        }
        if !offload.is_result() {
            let now = is.calls().nth(offload.nth).ok_or("an offload of an input that is not there")?;
            let before = offload.text_in(&was).ok_or("an offload of an input that never was")?;
            let tree = |json: &str| serde_json::from_str::<Value>(json).map_err(|error| error.to_string());
            let stand_ins = stand_ins(&tree(before)?, &tree(&now.arguments)?, &offload.reference)
                .ok_or_else(|| format!("an input is not what it was\n  {before}\n  {}", now.arguments))?;
            texts.extend(stand_ins);
            texts.push(now.arguments.to_string());
            let arguments = now.arguments.to_string();
            replace_input(&mut was, offload.nth, arguments);
            continue;
        }
        let now = is.results().nth(offload.nth).ok_or("an offload of a result that is not there")?;
        texts.push(now.text.to_string());
        replace(&mut was, offload.nth, &now.text);
    }
    let others = |message: &Message<'_>| {
        let parts = message.parts.iter().filter(|part| !is_reasoning(part));
        parts.map(|part| format!("{part:?}")).collect::<Vec<_>>()
    };
    if was.role != is.role || others(&was) != others(&is) {
        return Err(format!("its parts are not what they were\n  {original}\n  {edited}"));
    }
    // Reasoning may go, a block of it alone too, and it may outlive a signature beside it; its text is never another. One
    // that stood where nothing read it, because another field said more, may be read once that is gone.
    let stays = |part: &Part<'_>| match part {
        Part::Reasoning { text, signed } => {
            let same = |was: &Part<'_>| match was {
                Part::Reasoning { text: old, signed: old_signed } => {
                    let stood = text.lines().all(|line| old.contains(line) || holds(original, line));
                    stood && (*old_signed || !signed)
                }
                _ => false,
            };
            text.is_empty() || was.parts.iter().any(same)
        }
        _ => true,
    };
    if !is.parts.iter().all(stays) {
        return Err(format!("its reasoning was changed\n  {original}\n  {edited}"));
    }
    let drops_reasoning = reasoning_removed || was.parts.len() > is.parts.len();
    let edit = Edit { texts, drops_reasoning };
    let tree = |json| serde_json::from_str::<Value>(json).map_err(|error| error.to_string());
    edit.allows("", &tree(original)?, &tree(edited)?)
        .map_err(|path| format!("`{path}` is not what it was\n  {original}\n  {edited}"))
}

fn is_reasoning(part: &Part<'_>) -> bool {
    matches!(part, Part::Reasoning { .. })
}

fn replace(message: &mut Message<'_>, nth: usize, text: &str) {
    let mut results = message.parts.iter_mut().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        _ => None,
    });
    if let Some(result) = results.nth(nth) {
        result.text = text.to_owned().into();
    }
}

fn replace_text(message: &mut Message<'_>, nth: usize, text: &str) {
    let mut texts = message.parts.iter_mut().filter_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    if let Some(old) = texts.nth(nth) {
        *old = text.to_owned().into();
    }
}

fn replace_input(message: &mut Message<'_>, nth: usize, arguments: String) {
    let mut calls = message.parts.iter_mut().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call),
        _ => None,
    });
    if let Some(call) = calls.nth(nth) {
        call.arguments = arguments.into();
    }
}

/// What stands where long texts of an input were; nothing when anything else is another.
fn stand_ins(was: &Value, is: &Value, reference: &str) -> Option<Vec<String>> {
    match (was, is) {
        (Value::String(was), Value::String(is)) if was != is => {
            let chars = was.chars().count();
            let says = is.starts_with(&format!("Tool input is at: {reference} ({chars} characters)"))
                || is.starts_with(&format!("Tool input of {chars} characters, left out"));
            (says && chars > 300).then(|| vec![is.clone()])
        }
        (Value::Array(was), Value::Array(is)) if was.len() == is.len() => {
            let found = was.iter().zip(is).map(|(was, is)| stand_ins(was, is, reference));
            Some(found.collect::<Option<Vec<_>>>()?.concat())
        }
        (Value::Object(was), Value::Object(is)) if was.keys().eq(is.keys()) => {
            let found = was.values().zip(is.values()).map(|(was, is)| stand_ins(was, is, reference));
            Some(found.collect::<Option<Vec<_>>>()?.concat())
        }
        _ => (was == is).then(Vec::new),
    }
}

struct Edit {
    /// What stands where results were.
    texts: Vec<String>,
    drops_reasoning: bool,
}

impl Edit {
    /// The path of the first field that the edit may not have changed.
    fn allows(&self, path: &str, was: &Value, is: &Value) -> Result<(), String> {
        match (was, is) {
            _ if was == is => Ok(()),
            _ if OUTPUTS.iter().any(|field| path.ends_with(field)) && self.is_new(is) => Ok(()),
            (Value::Object(was), Value::Object(is)) => self.fields(path, was, is),
            (Value::Array(was), Value::Array(is)) => self.elements(path, was, is),
            _ if self.is_new(is) => Ok(()),
            _ => Err(path.into()),
        }
    }

    fn fields(&self, path: &str, was: &Map<String, Value>, is: &Map<String, Value>) -> Result<(), String> {
        for (key, now) in is {
            let path = format!("{path}/{key}");
            match was.get(key) {
                Some(was) => self.allows(&path, was, now)?,
                // What had no place for a text may get one.
                None if self.is_new(now) => {}
                None => return Err(path),
            }
        }
        let mut gone = was.keys().filter(|key| !is.contains_key(*key));
        let may_go = |key: &&String| {
            VOID.contains(&key.as_str()) || (self.drops_reasoning && says_reasoning(key.as_str()))
        };
        gone.find(|key| !may_go(key)).map_or(Ok(()), |key| Err(format!("{path}/{key}")))
    }

    /// An array may lose reasoning; that of a result may lose texts that the new one stands for.
    fn elements(&self, path: &str, was: &[Value], is: &[Value]) -> Result<(), String> {
        let replaced = is.iter().any(|element| self.is_new(element));
        let may_go = |element: &Value| {
            let kind = element["type"].as_str().unwrap_or_default();
            let of_result = replaced && (element["text"].is_string() || kind == "text");
            let of_reasoning = says_reasoning(path) || says_reasoning(kind) || element["thought"] == true;
            of_result || (self.drops_reasoning && of_reasoning)
        };
        let mut left = was.iter().enumerate();
        for now in is {
            loop {
                let Some((at, was)) = left.next() else { return Err(path.into()) };
                match self.allows(&format!("{path}/{at}"), was, now) {
                    Ok(()) => break,
                    Err(_) if may_go(was) => {}
                    Err(path) => return Err(path),
                }
            }
        }
        left.find(|(_, was)| !may_go(was)).map_or(Ok(()), |(at, _)| Err(format!("{path}/{at}")))
    }

    /// The value is what stands where a result was, or holds it.
    fn is_new(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.texts.iter().any(|is| !text.is_empty() && holds(is, text)),
            Value::Array(elements) => elements.iter().any(|value| self.is_new(value)),
            Value::Object(fields) => fields.values().any(|value| self.is_new(value)),
            _ => false,
        }
    }
}

/// The text of a result that is JSON has what stands in it as JSON has it.
fn holds(result: &str, text: &str) -> bool {
    result.contains(text) || result.contains(&Value::from(text).to_string())
}

fn says_reasoning(name: &str) -> bool {
    ["reasoning", "thinking", "thought", "signature"].iter().any(|word| name.to_lowercase().contains(word))
}
