//! OpenAI Responses: the items of `input`.
//!
//! Every item is a message of the model. The history is the whole input: a request that names a
//! `previous_response_id` continues one that the server holds, which cannot be rewritten here (OR4).
//!
//! Reasoning is encrypted, but not bound to what stood before it: the API takes it after an edit of earlier items, and
//! leaves out by itself what it cannot use any more. So nothing is stripped; it goes with its response, whole.

mod item;
mod read;
mod repair;
mod rules;
mod tools;
mod write;

use super::{Author, Change, Evidence, Format, Hints, Past, Problem, Repaired, Rules, Wire, blocks, tagged};
use crate::error::Result;
use crate::message::{Media, Message};
use serde_json_borrow::Value;

pub(super) struct OpenaiResponses;

impl Wire for OpenaiResponses {
    fn evidence_of(&self, item: &Value<'_>) -> Evidence {
        let foreign = ["tool_calls", "tool_call_id", "parts", "providerOptions"];
        if read::message(0, item).is_err()
            || foreign.into_iter().any(|key| tagged::given(item, key).is_some())
        {
            return Evidence::Against;
        }
        if !is_message(item) {
            return if is_known(item) { Evidence::Certain } else { Evidence::Possible };
        }
        let typed = tagged::given(item, "type").is_some();
        let mut found = if typed { Evidence::Certain } else { Evidence::Possible };
        for block in super::content_blocks(item) {
            let kind = item::text_field(block, "type").unwrap_or_default();
            found = found.and(blocks::evidence(&kind, Format::OpenaiResponses));
        }
        found
    }

    fn evidence(&self, messages: &[Value<'_>]) -> Evidence {
        let found =
            messages.iter().map(|message| self.evidence_of(message)).fold(Evidence::Possible, Evidence::and);
        // An object of any type could be an item; that it is one, others must tell.
        let strange = || messages.iter().any(|message| !is_message(message) && !is_known(message));
        if found == Evidence::Possible && strange() { Evidence::Against } else { found }
    }

    fn hints(&self) -> &'static Hints {
        &read::HINTS
    }

    fn read<'a>(&self, index: usize, message: &'a Value<'a>) -> Result<Message<'a>> {
        read::message(index, message)
    }

    fn alternates(&self) -> bool {
        false
    }

    fn assistant_may_begin(&self) -> bool {
        true
    }

    fn text_message(&self, author: Author, text: &str, _id: &str, like: Option<&Value<'_>>) -> String {
        write::text_message(author, text, like)
    }

    fn grows(&self, past: &mut Past, window: &[Value<'_>]) -> bool {
        rules::grows(past, &window.iter().collect::<Vec<_>>())
    }
}

impl Rules for OpenaiResponses {
    fn with_result_text(&self, message: &Value<'_>, nth: usize, text: &str) -> Option<String> {
        if nth > 0 { None } else { write::with_output_text(message, text) }
    }

    fn with_call_arguments(&self, message: &Value<'_>, nth: usize, arguments: &str) -> Option<String> {
        if nth > 0 { None } else { write::with_call_arguments(message, arguments) }
    }

    fn media_path(&self, value: &Value<'_>) -> &'static [&'static str] {
        match item::kind(value).as_deref() {
            Some("message") => &["content"],
            Some("function_call_output" | "custom_tool_call_output") => &["output"],
            _ => &[],
        }
    }

    fn shown(&self, block: &Value<'_>) -> Option<Media> {
        // The output of a computer is a screenshot, and can be nothing else.
        let kind = item::text_field(block, "type").filter(|kind| kind.starts_with("input_"))?;
        read::media(&kind, block)
    }

    fn telling<'v>(&self, text: &str) -> Value<'v> {
        write::text_part(text)
    }

    /// The id that the server knows the item by (OR4).
    fn void_fields(&self, message: &Value<'_>) -> &'static [&'static str] {
        let is_known = item::kind(message).is_some_and(|kind| item::server_id(message, &kind).is_some());
        if is_known { &["id"] } else { &[] }
    }

    fn validate(&self, messages: &[Value<'_>], strict: bool) -> Vec<Problem> {
        super::rules::validate(messages, strict, rules::find, rules::strict)
    }

    fn repair(&self, messages: &[Value<'_>]) -> (Vec<Repaired>, Vec<Change>) {
        repair::repair(messages)
    }
}

/// Items of the API, as against those that are news to us.
const KNOWN: [&str; 30] = [
    "reasoning",
    "compaction",
    "compaction_summary",
    "compaction_trigger",
    "item_reference",
    "additional_tools",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "computer_call",
    "computer_call_output",
    "tool_search_call",
    "tool_search_output",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "program",
    "program_output",
];

fn is_message(item: &Value<'_>) -> bool {
    item::kind(item).as_deref() == Some("message")
}

fn is_known(item: &Value<'_>) -> bool {
    item::text_field(item, "type").is_some_and(|kind| KNOWN.contains(&kind.as_ref()))
}
