//! Reasoning that a provider behind the server binds to what stood before it (AN8): Anthropic's, as OpenRouter and
//! LiteLLM hand it over. That of other models is carried from turn to turn and bound to nothing.

use crate::{edit, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// LiteLLM's field: Anthropic's own blocks.
pub(super) const BLOCKS: &str = "thinking_blocks";
/// OpenRouter's field: blocks of any provider, each with the name of its format.
pub(super) const DETAILS: &str = "reasoning_details";

/// True for an entry of `reasoning_details` that Anthropic signed. Where no format is named, a signature is Anthropic's.
fn is_bound(detail: &Value<'_>) -> bool {
    let format = tagged::given(detail, "format").and_then(tagged::text);
    match format.as_deref() {
        Some(format) if format != "unknown" => format.starts_with("anthropic"),
        _ => tagged::given(detail, "signature").is_some(),
    }
}

/// The items of an array in a field.
pub(super) fn items<'a>(message: &'a Value<'a>, field: &str) -> &'a [Value<'a>] {
    match tagged::given(message, field) {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

pub(super) fn has_bound(message: &Value<'_>) -> bool {
    !items(message, BLOCKS).is_empty() || items(message, DETAILS).iter().any(is_bound)
}

/// Takes the bound reasoning out of a message. Returns the fields that are left empty, to be taken out whole.
pub(super) fn unbind(message: &mut Value<'_>) -> Vec<&'static str> {
    let mut empty = Vec::new();
    if !items(message, BLOCKS).is_empty() {
        empty.push(BLOCKS);
    }
    if items(message, DETAILS).iter().any(is_bound) {
        // OpenRouter repeats the text of the entries in one field.
        let repeated = tagged::given(message, "reasoning").and_then(tagged::text).is_some_and(|text| {
            let bound = items(message, DETAILS).iter().filter(|detail| is_bound(detail));
            let texts: Vec<Cow<'_, str>> =
                bound.filter_map(|d| tagged::text(tagged::given(d, "text")?)).collect();
            text == texts.concat()
        });
        if repeated {
            empty.push("reasoning");
        }
        if let Some(Value::Array(details)) = edit::field_mut(message, DETAILS) {
            details.retain(|detail| !is_bound(detail));
            if details.is_empty() {
                empty.push(DETAILS);
            }
        }
    }
    empty
}
