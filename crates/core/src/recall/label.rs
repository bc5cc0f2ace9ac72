//! What a passage is: who said it, or which call of a tool it is the result of. The model that reads it decides by that
//! whether to read more.

use super::archive::Archive;
use crate::error::{Code, Result};
use crate::message::{Message, ToolCall};
use crate::step::Io;
use crate::summary::keep::files::PATH_KEYS;
use crate::summary::text::head;
use serde_json_borrow::Value;

/// Messages before a result among which its call is looked for: calls that run side by side have their results in as many.
const NEAR: u64 = 16;
/// Bytes of a target that are shown.
const TARGET: usize = 100;
/// Arguments that say what a call is about where it names no file, the first that it has.
const TARGETS: [&str; 6] = ["command", "cmd", "script", "url", "pattern", "query"];

/// A call of a tool, for people and models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallLabel {
    pub(super) tool: String,
    /// The file, the command or whatever else it is about.
    pub(super) target: Option<String>,
}

impl CallLabel {
    pub(super) fn of(call: &ToolCall<'_>) -> CallLabel {
        let arguments: Option<Value<'_>> = serde_json::from_str(&call.arguments).ok();
        let fields = arguments.as_ref().and_then(Value::as_object);
        let target = fields
            .and_then(|fields| PATH_KEYS.iter().chain(&TARGETS).find_map(|name| fields.get(name)?.as_str()));
        CallLabel { tool: in_one_line(&call.name), target: target.map(in_one_line) }
    }

    /// The call that a message makes, of several the first.
    pub(super) fn in_message(message: &Message<'_>) -> Option<CallLabel> {
        message.calls().next().map(CallLabel::of)
    }
}

/// It is written beside a reference, and must not look like the next one.
pub(super) fn in_one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let shown = head(&line, TARGET);
    if shown.len() < line.len() { format!("{shown}…") } else { line }
}

/// The call that the result `call_id` of the message at log position `seq` answers; `None` where it cannot be found.
pub(super) async fn call_of(
    io: &Io,
    archive: &Archive,
    seq: u64,
    call_id: &str,
) -> Result<Option<CallLabel>> {
    find_call(io, archive, seq, call_id, CallLabel::of).await
}

/// What `look` sees in that call.
pub(super) async fn find_call<T>(
    io: &Io,
    archive: &Archive,
    seq: u64,
    call_id: &str,
    look: impl Fn(&ToolCall<'_>) -> T,
) -> Result<Option<T>> {
    for before in (seq.saturating_sub(NEAR)..seq).rev() {
        let found = archive.with_message(io, before, |message| {
            message.calls().filter(|call| call.id == call_id).last().map(&look)
        });
        match found.await {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => {}
            // A row that is no message, or that cannot be read.
            Err(error) if matches!(error.code, Code::NotFound | Code::StoreCorrupt) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
