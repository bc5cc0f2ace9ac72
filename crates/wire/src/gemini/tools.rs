//! Tools of Gemini: a function declaration, a `functionCall`, a content with a `functionResponse`.

use super::Gemini;
use crate::error::Result;
use crate::message::ToolCall;
use crate::read::At;
use crate::tagged;
use crate::tools::{Calling, Tool, Tools, described, message, named, object};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// The fields of a part with a call and of one with its response. The API takes both spellings.
const SPELLINGS: [(&str, &str); 2] =
    [("functionCall", "functionResponse"), ("function_call", "function_response")];

impl Tools for Gemini {
    /// One of `functionDeclarations`, not a tool around it: the API takes one tool with the declarations of all.
    fn define_tool(&self, tool: &Tool) -> Value<'static> {
        object(described(tool, "parametersJsonSchema"))
    }
}

impl Calling for Gemini {
    /// A part with a `functionCall`, or the call in it, as `response.functionCalls` lists them.
    fn read_call<'a>(&self, call: &'a Value<'a>) -> Result<ToolCall<'a>> {
        let given = At::message(0, call)?;
        let call = SPELLINGS.into_iter().find_map(|(key, _)| given.get(key)).unwrap_or(given);
        let name = call.need_text("name")?;
        let id = match call.get("id") {
            Some(id) => id.text()?,
            None => name.clone(),
        };
        let arguments = match call.get("args") {
            Some(_) => Cow::Owned(tagged::plain_json(call.need_object("args")?.value())),
            None => Cow::Borrowed("{}"),
        };
        Ok(ToolCall { id, name, arguments, caller: None })
    }

    fn answer_call(&self, call: &Value<'_>, read: &ToolCall<'_>, answer: &str, is_error: bool) -> String {
        let part =
            SPELLINGS.into_iter().find_map(|(key, response)| Some((tagged::given(call, key)?, response)));
        let (call, key) = part.unwrap_or((call, "functionResponse"));
        let name = named("name", &read.name);
        let response = ("response", object([named(if is_error { "error" } else { "output" }, answer)]));
        let response = match tagged::given(call, "id") {
            Some(_) => object([named("id", &read.id), name, response]),
            None => object([name, response]),
        };
        message("user", "parts", object([(key, response)]))
    }
}
