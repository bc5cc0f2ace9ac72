//! Tools of Messages: `tools[]`, a `tool_use` block, a user message with a `tool_result` block.

use super::{Anthropic, read};
use crate::error::Result;
use crate::message::ToolCall;
use crate::read::At;
use crate::tools::{Calling, Tool, Tools, described, fixed, message, named, object};
use serde_json_borrow::Value;

impl Tools for Anthropic {
    fn define_tool(&self, tool: &Tool) -> Value<'static> {
        object(described(tool, "input_schema"))
    }
}

impl Calling for Anthropic {
    fn read_call<'a>(&self, call: &'a Value<'a>) -> Result<ToolCall<'a>> {
        let block = At::message(0, call)?;
        if block.need_text("type")? != "tool_use" {
            return block.fail_at("type", "must be \"tool_use\": hand over that block of the answer");
        }
        read::tool_use(&block)
    }

    fn answer_call(&self, _call: &Value<'_>, read: &ToolCall<'_>, answer: &str, is_error: bool) -> String {
        let kind = ("type", fixed("tool_result"));
        let (id, content) = (named("tool_use_id", &read.id), named("content", answer));
        let block = match is_error {
            true => object([kind, id, content, ("is_error", Value::Bool(true))]),
            false => object([kind, id, content]),
        };
        message("user", "content", block)
    }
}
