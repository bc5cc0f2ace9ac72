//! Tools of the AI SDK: a function tool as its models are sent it, a tool call or a tool part of a UI message, and a
//! `tool` message or that part with its output.

use super::AiSdk;
use crate::error::Result;
use crate::message::ToolCall;
use crate::read::At;
use crate::tools::{Calling, Tool, Tools, described, fixed, message, named, object};
use crate::{edit, json, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;

impl Tools for AiSdk {
    fn define_tool(&self, tool: &Tool) -> Value<'static> {
        let [name, description, schema] = described(tool, "inputSchema");
        object([("type", fixed("function")), name, description, schema])
    }
}

impl Calling for AiSdk {
    fn read_call<'a>(&self, call: &'a Value<'a>) -> Result<ToolCall<'a>> {
        let part = At::message(0, call)?;
        let name = match ui_tool(call) {
            Some(name) => Cow::Owned(name),
            None => part.need_text("toolName")?,
        };
        let Some(input) = part.get("input") else {
            return part.fail_at("input", "is missing: wait until the model has ended its call");
        };
        // A model's own call has its input as JSON text.
        let arguments = input.text().unwrap_or_else(|_| Cow::Owned(tagged::plain_json(input.value())));
        Ok(ToolCall { id: part.need_text("toolCallId")?, name, arguments, caller: None })
    }

    /// For a part of a UI message that part with its output, to be put in its place; else a `tool` message.
    fn answer_call(&self, call: &Value<'_>, read: &ToolCall<'_>, answer: &str, is_error: bool) -> String {
        if is_ui_part(call) {
            let mut part = call.clone();
            let (state, field) =
                if is_error { ("output-error", "errorText") } else { ("output-available", "output") };
            edit::set(&mut part, "state", fixed(state));
            edit::set(&mut part, field, edit::text(answer));
            return json(&part);
        }
        let kind = fixed(if is_error { "error-text" } else { "text" });
        let output = object([("type", kind), named("value", answer)]);
        let part = object([
            ("type", fixed("tool-result")),
            named("toolCallId", &read.id),
            named("toolName", &read.name),
            ("output", output),
        ]);
        message("tool", "content", part)
    }
}

fn kind<'a>(part: &'a Value<'a>) -> Cow<'a, str> {
    tagged::given(part, "type").and_then(tagged::text).unwrap_or_default()
}

/// The name in the type of a part `tool-NAME` of a UI message.
fn ui_tool(part: &Value<'_>) -> Option<String> {
    let kind = kind(part);
    // A part of a model message has the name in a field of its own.
    if tagged::given(part, "toolName").is_some() {
        return None;
    }
    kind.strip_prefix("tool-").map(str::to_owned)
}

fn is_ui_part(part: &Value<'_>) -> bool {
    ui_tool(part).is_some() || kind(part) == "dynamic-tool"
}
