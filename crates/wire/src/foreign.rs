//! Shapes of messages that are no format of ours: which library's they look like, and how to have them read.

use super::{Format, blocks, content_blocks, tagged};
use crate::error::{Code, Error, Result};
use crate::message::Message;
use serde_json_borrow::Value;

/// A shape, and what to do about it.
struct Shape {
    name: &'static str,
    fix: Fix,
    is_it: fn(&Value<'_>) -> bool,
}

/// What to do about messages of a shape.
enum Fix {
    /// Pass one of these of `context-compactor/formats` as `format`.
    Table(&'static str),
    Convert(&'static str),
}

/// The first that fits is named.
const SHAPES: [Shape; 13] = [
    Shape {
        name: "an item of the OpenAI Agents SDK",
        fix: Fix::Table("openaiAgents"),
        is_it: |message| has(message, "callId") && has(message, "type"),
    },
    Shape {
        name: "a serialized message of LangChain",
        fix: Fix::Table("langchain"),
        is_it: |message| {
            has(message, "lc") || kind_is(message, &["human", "ai", "constructor"]) && !has(message, "role")
        },
    },
    Shape {
        name: "a message of Mastra's storage",
        fix: Fix::Table("mastra"),
        is_it: |message| {
            let content = tagged::given(message, "content");
            content.is_some_and(|content| has(content, "format") && has(content, "parts"))
        },
    },
    Shape {
        name: "a UI message of TanStack AI",
        fix: Fix::Table("tanstack"),
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
    Shape { name: "a message of the AI SDK 4", fix: Fix::Table("aiSdk4"), is_it: loses_invocations },
    Shape {
        name: "AG-UI, TanStack AI or Mistral's client",
        fix: Fix::Table("agui, tanstack or mistral"),
        is_it: loses_calls,
    },
    Shape {
        name: "the Converse API of Bedrock",
        fix: Fix::Table("bedrock"),
        is_it: |message| {
            let own =
                ["text", "toolUse", "toolResult", "cachePoint", "reasoningContent", "image", "document"];
            let untyped = |block: &Value<'_>| kind(block).is_none() && own.iter().any(|key| has(block, key));
            content_blocks(message).iter().any(untyped)
        },
    },
    Shape {
        name: "Cohere's first API",
        fix: Fix::Convert(
            "write `role` in small letters (`assistant` for CHATBOT) and `content` for `message` (openai-chat)",
        ),
        is_it: |message| role_is(message, &["USER", "CHATBOT", "SYSTEM", "TOOL"]) && !has(message, "content"),
    },
    Shape {
        name: "Cohere",
        fix: Fix::Table("cohere"),
        is_it: |message| {
            let document =
                |block: &Value<'_>| kind(block).as_deref() == Some("document") && has(block, "document");
            role_is(message, &["tool"]) && content_blocks(message).iter().any(document)
        },
    },
    Shape {
        name: "Ollama",
        fix: Fix::Table("ollama"),
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
        name: "what a tool of MCP answered",
        fix: Fix::Convert("write its content as that of a result of the tool (anthropic)"),
        is_it: |message| {
            let answer = !has(message, "role") && !has(message, "type") && has(message, "content");
            has(message, "jsonrpc") || answer && has(message, "isError")
        },
    },
    Shape {
        name: "MCP",
        fix: Fix::Table("mcp"),
        is_it: |message| {
            let one = tagged::given(message, "content");
            one.is_some_and(|content| tagged::object(content).is_some() && kind(content).is_some())
        },
    },
    Shape {
        name: "a history, not a message",
        fix: Fix::Convert("hand over its `messages`"),
        is_it: |message| {
            !has(message, "role") && matches!(tagged::given(message, "messages"), Some(Value::Array(_)))
        },
    },
];

/// What a message looks like, and what to do about it.
pub(super) fn advice(message: &Value<'_>) -> Option<String> {
    let Shape { name, fix, .. } = SHAPES.iter().find(|shape| (shape.is_it)(message))?;
    Some(match fix {
        Fix::Table(table) => {
            format!("this looks like {name}: pass `format: {table}`, imported from context-compactor/formats")
        }
        Fix::Convert(how) => format!("this looks like {name}: {how}"),
    })
}

/// Reads a message; one that cannot be read says what it looks like.
///
/// Errors: [`Code::UnknownFormat`] for calls in fields of no format; those of [`super::Wire::read`].
pub(super) fn read<'a>(format: Format, index: usize, message: &'a Value<'a>) -> Result<Message<'a>> {
    if loses_calls(message) {
        return Err(lost(index, message));
    }
    format.wire().read(index, message).map_err(|mut error| {
        let mut told = error.message.clone();
        if error.field.as_deref() == Some(CONTENT) && !has(message, CONTENT) {
            told += &instead_of_content(message);
        }
        if let Some(advice) = advice(message) {
            told = format!("{told}; {advice}");
        }
        error.message = told;
        error
    })
}

/// The same for a message on its way into a session, where nothing of it may be lost without a word.
///
/// Errors: besides, [`Code::InvalidMessage`] for blocks of another format, and for a message without content.
pub(super) fn take<'a>(format: Format, index: usize, message: &'a Value<'a>) -> Result<Message<'a>> {
    let read = read(format, index, message)?;
    let like = format.wire().dialect_of().unwrap_or(format);
    for (nth, block) in content_blocks(message).iter().enumerate() {
        let Some(kind) = kind(block) else { continue };
        let formats = blocks::formats(&kind);
        if formats.is_empty() || formats.contains(&like) {
            continue;
        }
        let theirs: Vec<&str> = formats.iter().map(|format| format.as_str()).collect();
        let what = format!(
            "a block `{kind}` is of {}, and this conversation is in {}: convert the message, or begin a session of its own for \
             that format",
            theirs.join(" and "),
            format.as_str()
        );
        return Err(Error::message(index, format!("{CONTENT}[{nth}]"), what));
    }
    if like == Format::OpenaiChat && !says_something(message) {
        let what = format!(
            "must be a string or an array of content blocks, and is missing{}",
            instead_of_content(message)
        );
        return Err(Error::message(index, CONTENT, what));
    }
    Ok(read)
}

const CONTENT: &str = "content";

/// What a message of OpenAI chat may have in the place of content: what a model did, or thought.
const BESIDE_CONTENT: [&str; 11] = [
    "tool_calls",
    "function_call",
    "refusal",
    "audio",
    "images",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "thinking",
    "thinking_blocks",
    "tool_plan",
];

/// Models answer with a content of `null` beside a call, or when they say nothing: that is content, too.
fn says_something(message: &Value<'_>) -> bool {
    has(message, CONTENT)
        || matches!(tagged::field(message, CONTENT), Some(Value::Null))
        || BESIDE_CONTENT.iter().any(|key| has(message, key))
}

/// The field that probably holds what should stand in `content`.
fn instead_of_content(message: &Value<'_>) -> String {
    let fields = ["text", "message", "parts", "body", "output", "result", "value", "input"];
    match fields.into_iter().find(|key| has(message, key)) {
        Some(key) => format!("; it has `{key}`: write that as `content`"),
        None => String::new(),
    }
}

/// Refuses messages whose calls stand in `toolCalls` and `toolCallId`: no format has these fields, so the calls and what
/// ties results to them would be lost.
pub(super) fn refuse(messages: &[Value<'_>]) -> Result<()> {
    match messages.iter().enumerate().find(|(_, message)| loses_calls(message)) {
        Some((index, message)) => Err(lost(index, message)),
        None => Ok(()),
    }
}

fn lost(index: usize, message: &Value<'_>) -> Error {
    let advice = advice(message).unwrap_or_default();
    let field =
        ["toolInvocations", "toolCalls"].into_iter().find(|key| has(message, key)).unwrap_or("toolCallId");
    let what = format!("its calls stand in `{field}`, which no known format has; {advice}");
    Error::new(Code::UnknownFormat, what).at(index)
}

/// True for a message of the AI SDK 4 whose calls stand in no part of a later version.
fn loses_invocations(message: &Value<'_>) -> bool {
    let calls =
        matches!(tagged::given(message, "toolInvocations"), Some(Value::Array(calls)) if !calls.is_empty());
    let is_call = |part: &Value<'_>| {
        kind(part).is_some_and(|kind| {
            kind.starts_with("tool-") && kind != "tool-invocation" || kind == "dynamic-tool"
        })
    };
    let has_own = match tagged::given(message, "parts") {
        Some(Value::Array(parts)) => parts.iter().any(is_call),
        _ => false,
    };
    calls && !has_own && !has(message, "tool_calls")
}

/// True for a message with calls, or the id of one, that stand nowhere in it where a format has them.
fn loses_calls(message: &Value<'_>) -> bool {
    let calls = matches!(tagged::given(message, "toolCalls"), Some(Value::Array(calls)) if !calls.is_empty());
    let answers = role_is(message, &["tool"]) && has(message, "toolCallId") && !has(message, "tool_call_id");
    loses_invocations(message) || (calls && !has(message, "tool_calls") || answers) && !has_parts(message)
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
