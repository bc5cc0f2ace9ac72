//! Shapes of messages that are no format of ours: which library's they look like, and how to convert them.

use super::{Wire, content_blocks, tagged};
use crate::error::{Code, Error, Result};
use crate::message::Message;
use serde_json_borrow::Value;

/// A shape, and what to do about it.
struct Shape {
    name: &'static str,
    convert: &'static str,
    is_it: fn(&Value<'_>) -> bool,
}

/// The first that fits is named.
const SHAPES: [Shape; 9] = [
    Shape {
        name: "an item of the OpenAI Agents SDK",
        convert: "write `call_id` for `callId`, `function_call_output` for `function_call_result` and its output as a text \
                  (openai-responses)",
        is_it: |message| has(message, "callId") && has(message, "type"),
    },
    Shape {
        name: "a serialized message of LangChain",
        convert: "use convertMessagesToCompletionsMessageParams of @langchain/openai (openai-chat)",
        is_it: |message| {
            has(message, "lc") || kind_is(message, &["human", "ai", "constructor"]) && !has(message, "role")
        },
    },
    Shape {
        name: "a UI message of TanStack AI",
        convert: "use its convertMessagesToModelMessages, then write `tool_calls` for `toolCalls` and `tool_call_id` for \
                  `toolCallId` (openai-chat)",
        is_it: |message| {
            let own = |part: &Value<'_>| match kind(part).as_deref() {
                Some("text") => !has(part, "text") && has(part, "content"),
                Some("tool-call") => has(part, "arguments"),
                Some("tool-result") => has(part, "content"),
                _ => false,
            };
            matches!(tagged::given(message, "parts"), Some(Value::Array(parts)) if parts.iter().any(own))
        },
    },
    Shape {
        name: "AG-UI, TanStack AI or Mistral's client",
        convert: "write `tool_calls: [{ id, type: \"function\", function: { name, arguments } }]` for `toolCalls` and \
                  `tool_call_id` for `toolCallId` (openai-chat)",
        is_it: loses_calls,
    },
    Shape {
        name: "the Converse API of Bedrock",
        convert: "give each block its type: `{ type: \"text\", text }`, `{ type: \"tool_use\", id, name, input }` for `toolUse`, \
                  `{ type: \"tool_result\", tool_use_id, content }` for `toolResult` (anthropic)",
        is_it: |message| {
            let own =
                ["text", "toolUse", "toolResult", "cachePoint", "reasoningContent", "image", "document"];
            let untyped = |block: &Value<'_>| kind(block).is_none() && own.iter().any(|key| has(block, key));
            content_blocks(message).iter().any(untyped)
        },
    },
    Shape {
        name: "Cohere",
        convert: "write `role` in small letters (`assistant` for CHATBOT) and `content` for `message`, and the documents of a \
                  result as one text (openai-chat)",
        is_it: |message| {
            let document =
                |block: &Value<'_>| kind(block).as_deref() == Some("document") && has(block, "document");
            let old = role_is(message, &["USER", "CHATBOT", "SYSTEM", "TOOL"]) && !has(message, "content");
            old || role_is(message, &["tool"]) && content_blocks(message).iter().any(document)
        },
    },
    Shape {
        name: "Ollama",
        convert: "give each call an `id` and `type: \"function\"`, write its arguments as JSON text, and give its result that \
                  `tool_call_id` (openai-chat)",
        is_it: |message| {
            let own = |call: &Value<'_>| {
                let function = tagged::given(call, "function");
                let arguments = function.and_then(|function| tagged::given(function, "arguments"));
                !has(call, "id") && arguments.is_some_and(|arguments| tagged::object(arguments).is_some())
            };
            let calls = matches!(tagged::given(message, "tool_calls"), Some(Value::Array(calls)) if calls.iter().any(own));
            calls || role_is(message, &["tool"]) && has(message, "tool_name") && !has(message, "tool_call_id")
        },
    },
    Shape {
        name: "MCP",
        convert: "write its content in an array, as in `content: [content]`; what a tool answered is the content of a result \
                  (anthropic)",
        is_it: |message| {
            let one = tagged::given(message, "content");
            let prompt =
                one.is_some_and(|content| tagged::object(content).is_some() && kind(content).is_some());
            let answer = !has(message, "role") && !has(message, "type") && has(message, "content");
            prompt || has(message, "jsonrpc") || answer && has(message, "isError")
        },
    },
    Shape {
        name: "a history, not a message",
        convert: "hand over its `messages`",
        is_it: |message| {
            !has(message, "role") && matches!(tagged::given(message, "messages"), Some(Value::Array(_)))
        },
    },
];

/// What a message looks like, and how to convert it.
pub(super) fn advice(message: &Value<'_>) -> Option<String> {
    let shape = SHAPES.iter().find(|shape| (shape.is_it)(message))?;
    Some(format!("this looks like {}: {}", shape.name, shape.convert))
}

/// Reads a message; one that cannot be read says what it looks like.
pub(super) fn read<'a>(wire: &dyn Wire, index: usize, message: &'a Value<'a>) -> Result<Message<'a>> {
    wire.read(index, message).map_err(|error| match advice(message) {
        Some(advice) => Error { message: format!("{}; {advice}", error.message), ..error },
        None => error,
    })
}

/// Refuses messages whose calls stand in `toolCalls` and `toolCallId`: no format has these fields, so the calls and what
/// ties results to them would be lost.
pub(super) fn refuse(messages: &[Value<'_>]) -> Result<()> {
    let Some((index, message)) = messages.iter().enumerate().find(|(_, message)| loses_calls(message)) else {
        return Ok(());
    };
    let advice = advice(message).unwrap_or_default();
    let what = format!("its calls stand in fields that no known format has; {advice}");
    Err(Error { index: Some(index), ..Error::new(Code::UnknownFormat, what) })
}

/// True for a message with calls, or the id of one, that stand nowhere in it where a format has them.
fn loses_calls(message: &Value<'_>) -> bool {
    let calls = matches!(tagged::given(message, "toolCalls"), Some(Value::Array(calls)) if !calls.is_empty());
    let answers = role_is(message, &["tool"]) && has(message, "toolCallId") && !has(message, "tool_call_id");
    (calls && !has(message, "tool_calls") || answers) && !has_parts(message)
}

/// True for a message with a call or a result among its parts.
fn has_parts(message: &Value<'_>) -> bool {
    let is_part = |kind: &str| matches!(kind, "tool-call" | "tool-result" | "tool_use" | "tool_result");
    has(message, "parts") || content_blocks(message).iter().filter_map(kind).any(|kind| is_part(&kind))
}

fn has(value: &Value<'_>, key: &str) -> bool {
    tagged::given(value, key).is_some()
}

fn kind<'a>(value: &'a Value<'a>) -> Option<std::borrow::Cow<'a, str>> {
    tagged::given(value, "type").and_then(tagged::text)
}

fn kind_is(value: &Value<'_>, names: &[&str]) -> bool {
    kind(value).is_some_and(|kind| names.contains(&kind.as_ref()))
}

fn role_is(message: &Value<'_>, names: &[&str]) -> bool {
    let role = tagged::given(message, "role").and_then(tagged::text);
    role.is_some_and(|role| names.contains(&role.as_ref()))
}
