//! What providers keep on a part for themselves: `providerOptions` of model messages, `providerMetadata` and
//! `callProviderMetadata` of UI messages. Each is an object of the providers' names.

use crate::{edit, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;

const HOLDERS: [&str; 3] = ["providerOptions", "providerMetadata", "callProviderMetadata"];

/// Fields of Anthropic's reasoning, also by Bedrock and Vertex: bound to everything that stood before it (AN8).
const BINDING: [&str; 3] = ["signature", "redactedData", "redactedContent"];

/// Fields of other providers' reasoning that the server checks or looks up.
const CHECKED: [&str; 4] = ["thoughtSignature", "itemId", "reasoningEncryptedContent", "encryptedContent"];

fn providers<'a>(holder: &'a Value<'a>) -> impl Iterator<Item = &'a Value<'a>> {
    tagged::object(holder).into_iter().flat_map(|names| names.values())
}

/// What each provider noted on a part.
fn notes<'a>(part: &'a Value<'a>) -> impl Iterator<Item = &'a Value<'a>> {
    HOLDERS.into_iter().filter_map(|key| tagged::given(part, key)).flat_map(providers)
}

fn has_any(part: &Value<'_>, keys: &[&str]) -> bool {
    let filled = |note: &Value<'_>| {
        keys.iter().any(|key| super::text_of(note, key).is_some_and(|text| !text.is_empty()))
    };
    notes(part).any(filled)
}

/// True for reasoning that is bound to what stood before it.
pub(super) fn is_bound(part: &Value<'_>) -> bool {
    super::kind(part) == "reasoning" && has_any(part, &BINDING)
}

/// True for reasoning that its provider checks: sent as it is or not at all.
pub(super) fn is_signed(part: &Value<'_>) -> bool {
    has_any(part, &BINDING) || has_any(part, &CHECKED)
}

/// True for Anthropic's compaction block, which comes as a text.
pub(super) fn is_compaction(part: &Value<'_>) -> bool {
    notes(part).any(|note| super::text_of(note, "type").as_deref() == Some("compaction"))
}

/// Id of the call whose code made this one (AI3): `toolId` of Anthropic, `callerId` of OpenAI.
pub(super) fn caller<'a>(part: &'a Value<'a>) -> Option<Cow<'a, str>> {
    notes(part).find_map(|note| {
        let caller = tagged::given(note, "caller")?;
        super::text_of(caller, "toolId").or_else(|| super::text_of(caller, "callerId"))
    })
}

/// Says of a call that the model made it, and not its code.
pub(super) fn make_direct(part: &mut Value<'_>) {
    for key in HOLDERS {
        let Some(names) = edit::field_mut(part, key).and_then(edit::fields_mut) else { continue };
        let providers: Vec<String> = names.keys().map(str::to_owned).collect();
        for provider in providers {
            let Some(note) = names.get_mut(&provider) else { continue };
            if edit::field_mut(note, "caller").is_some() {
                let direct = [("type", Value::Str(Cow::Borrowed("direct")))].into_iter().collect();
                edit::set(note, "caller", Value::Object(direct));
            }
        }
    }
}

/// What the providers noted, without the ids that their servers know the part by: an edited part is news to them
/// (OR4). `None` when there are none.
pub(super) fn without_server_ids<'v>(part: &'v Value<'v>, key: &'static str) -> Option<Value<'v>> {
    let names = tagged::object(tagged::given(part, key)?)?;
    let has_id = |note: &Value<'_>| tagged::given(note, "itemId").is_some();
    if !names.values().any(has_id) {
        return None;
    }
    Some(Value::Object(names.iter().map(|(name, note)| (name, edit::without(note, &["itemId"]))).collect()))
}
