//! Tools of Chat Completions: `tools[]`, an item of `tool_calls`, a `tool` message.

use super::{OpenaiChat, read};
use crate::error::Result;
use crate::json;
use crate::message::ToolCall;
use crate::read::At;
use crate::tools::{Calling, Tool, Tools, described, fixed, named, object};
use serde_json_borrow::Value;

impl Tools for OpenaiChat {
    /// Without `strict`, which some servers do not know and which would make every argument required.
    fn define_tool(&self, tool: &Tool) -> Value<'static> {
        object([("type", fixed("function")), ("function", object(described(tool, "parameters")))])
    }
}

impl Calling for OpenaiChat {
    fn read_call<'a>(&self, call: &'a Value<'a>) -> Result<ToolCall<'a>> {
        read::tool_call(&At::message(0, call)?)
    }

    /// There is no mark for errors: the text says it.
    fn answer_call(&self, _call: &Value<'_>, read: &ToolCall<'_>, answer: &str, _is_error: bool) -> String {
        let role = ("role", fixed("tool"));
        json(&object([role, named("tool_call_id", &read.id), named("content", answer)]))
    }
}
