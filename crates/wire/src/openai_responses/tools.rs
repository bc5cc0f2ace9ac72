//! Tools of Responses: `tools[]`, a `function_call` item, a `function_call_output` item.

use super::OpenaiResponses;
use crate::error::Result;
use crate::message::ToolCall;
use crate::read::At;
use crate::tools::{Calling, Tool, Tools, described, fixed, named, object};
use crate::{json, tagged};
use serde_json_borrow::Value;

impl Tools for OpenaiResponses {
    /// `strict` is said, because the API takes its absence for `true` and would make every argument required.
    fn define_tool(&self, tool: &Tool) -> Value<'static> {
        let [name, description, parameters] = described(tool, "parameters");
        let (kind, strict) = (("type", fixed("function")), ("strict", Value::Bool(false)));
        object([kind, name, description, parameters, strict])
    }
}

impl Calling for OpenaiResponses {
    fn read_call<'a>(&self, call: &'a Value<'a>) -> Result<ToolCall<'a>> {
        let item = At::message(0, call)?;
        if item.need_text("type")? != "function_call" {
            return item.fail_at("type", "must be \"function_call\": hand over that item of the output");
        }
        let caller = item.get("caller").and_then(|caller| tagged::given(caller.value(), "caller_id"));
        Ok(ToolCall {
            id: item.need_text("call_id")?,
            name: item.need_text("name")?,
            arguments: item.need_text("arguments")?,
            caller: caller.and_then(tagged::text),
        })
    }

    /// The output of a call that a program made names that program, as the call does. There is no mark for errors: the
    /// text says it.
    fn answer_call(&self, call: &Value<'_>, read: &ToolCall<'_>, answer: &str, _is_error: bool) -> String {
        let kind = ("type", fixed("function_call_output"));
        let (id, output) = (named("call_id", &read.id), named("output", answer));
        json(&match tagged::given(call, "caller") {
            Some(caller) => object([kind, id, output, ("caller", caller.clone())]),
            None => object([kind, id, output]),
        })
    }
}
