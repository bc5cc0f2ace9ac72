//! Tools as a provider is told of them, their calls as it returns them, and the messages that answer those.

use super::edit::text;
use crate::error::Result;
use crate::message::ToolCall;
use serde_json_borrow::Value;
use std::borrow::Cow;

/// A tool that a model can call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// Its name: letters, digits, `_` and `-`, at most 64 of them, which every provider takes.
    pub name: &'static str,
    /// Tells the model when to call it and what it answers.
    pub description: &'static str,
    /// JSON Schema of its arguments, JSON text.
    pub parameters: &'static str,
}

/// How a format tells its provider of tools. Implemented in each format's folder, in `tools.rs`, as is [`Calling`].
pub trait Tools: Sync {
    /// The definition of a tool, as it stands in the list of tools that the provider is sent.
    fn define_tool(&self, tool: &Tool) -> Value<'static>;
}

/// How a format has calls of tools, and answers to them.
pub trait Calling {
    /// Reads a call as the provider returned it.
    ///
    /// Errors: [`crate::Code::InvalidMessage`] naming the field, when it is no call of this format.
    fn read_call<'a>(&self, call: &'a Value<'a>) -> Result<ToolCall<'a>>;

    /// The message that answers a call: JSON text. `read` is what [`Calling::read_call`] made of it.
    fn answer_call(&self, call: &Value<'_>, read: &ToolCall<'_>, answer: &str, is_error: bool) -> String;
}

/// An object with these fields, in this order.
pub(super) fn object<'v, const N: usize>(fields: [(&'v str, Value<'v>); N]) -> Value<'v> {
    Value::Object(fields.into_iter().collect())
}

/// A text that the engine knows beforehand.
pub(super) fn fixed<'v>(text: &'static str) -> Value<'v> {
    Value::Str(Cow::Borrowed(text))
}

/// Name, description and schema of a tool, the schema under the name that a format has for it.
pub(super) fn described(tool: &Tool, schema: &'static str) -> [(&'static str, Value<'static>); 3] {
    let parameters: Value<'static> = serde_json::from_str(tool.parameters).unwrap_or(Value::Null);
    [("name", fixed(tool.name)), ("description", fixed(tool.description)), (schema, parameters)]
}

/// The message `{ role, [list]: [part] }`.
pub(super) fn message<'v>(role: &'static str, list: &'static str, part: Value<'v>) -> String {
    super::json(&object([("role", fixed(role)), (list, Value::Array(vec![part]))]))
}

/// A text under a name.
pub(super) fn named<'v>(name: &'static str, value: &str) -> (&'static str, Value<'v>) {
    (name, text(value))
}
