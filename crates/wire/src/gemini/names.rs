//! The fields of the API. It takes each in two spellings, at every level, and messages mix them: both are read, and what
//! is written has the spelling of the message that it is written into.

use crate::tagged;
use serde_json_borrow::Value;
use std::borrow::Cow;

/// A field in its two spellings: `camelCase` and `snake_case`.
#[derive(Clone, Copy)]
pub(super) struct Name(pub(super) &'static str, pub(super) &'static str);

pub(super) const TEXT: Name = Name("text", "text");
pub(super) const FUNCTION_CALL: Name = Name("functionCall", "function_call");
pub(super) const FUNCTION_RESPONSE: Name = Name("functionResponse", "function_response");
pub(super) const INLINE_DATA: Name = Name("inlineData", "inline_data");
pub(super) const FILE_DATA: Name = Name("fileData", "file_data");
pub(super) const EXECUTABLE_CODE: Name = Name("executableCode", "executable_code");
pub(super) const CODE_EXECUTION_RESULT: Name = Name("codeExecutionResult", "code_execution_result");
pub(super) const TOOL_CALL: Name = Name("toolCall", "tool_call");
pub(super) const TOOL_RESPONSE: Name = Name("toolResponse", "tool_response");
pub(super) const THOUGHT_SIGNATURE: Name = Name("thoughtSignature", "thought_signature");
pub(super) const MIME_TYPE: Name = Name("mimeType", "mime_type");
pub(super) const PART_METADATA: Name = Name("partMetadata", "part_metadata");
pub(super) const TOOL_TYPE: Name = Name("toolType", "tool_type");

/// What a part holds: one of these.
const DATA: [Name; 9] = [
    TEXT,
    FUNCTION_CALL,
    FUNCTION_RESPONSE,
    INLINE_DATA,
    FILE_DATA,
    EXECUTABLE_CODE,
    CODE_EXECUTION_RESULT,
    TOOL_CALL,
    TOOL_RESPONSE,
];

/// What is said about it.
const ABOUT: [Name; 7] = [
    Name("thought", "thought"),
    THOUGHT_SIGNATURE,
    Name("videoMetadata", "video_metadata"),
    Name("mediaResolution", "media_resolution"),
    Name("mediaProcessing", "media_processing"),
    Name("speechMetadata", "speech_metadata"),
    PART_METADATA,
];

impl Name {
    /// The spelling that an object has this field in; `camelCase` when it does not have it.
    pub(super) fn spelling(self, value: &Value<'_>) -> &'static str {
        if self.0 != self.1
            && tagged::given(value, self.0).is_none()
            && tagged::given(value, self.1).is_some()
        {
            self.1
        } else {
            self.0
        }
    }

    /// The field, when it is given.
    pub(super) fn of<'a>(self, value: &'a Value<'a>) -> Option<&'a Value<'a>> {
        tagged::given(value, self.0).or_else(|| tagged::given(value, self.1))
    }

    fn is(self, key: &str) -> bool {
        key == self.0 || key == self.1
    }
}

/// The fields with what a part holds, of kinds that are known and kinds that are not. There is one of them; a part with
/// more is read whole.
pub(super) fn data<'a>(part: &'a Value<'a>) -> impl Iterator<Item = &'a str> {
    let keys = tagged::object(part).into_iter().flat_map(|fields| fields.keys());
    keys.filter(move |key| tagged::given(part, key).is_some() && !ABOUT.iter().any(|name| name.is(key)))
}

/// True for a field with what a part holds, of a kind that is known.
pub(super) fn is_known(key: &str) -> bool {
    DATA.iter().any(|name| name.is(key))
}

/// True for a part that bears a signature.
pub(super) fn is_signed(part: &Value<'_>) -> bool {
    let signature = THOUGHT_SIGNATURE.of(part).map(tagged::text);
    // Bytes are one too.
    signature.is_some_and(|text| text.is_none_or(|text| !text.is_empty()))
}

/// True for a part of the model's reasoning.
pub(super) fn is_thought(part: &Value<'_>) -> bool {
    matches!(tagged::given(part, "thought"), Some(Value::Bool(true)))
}

/// A text field that may be given.
pub(super) fn text<'a>(value: &'a Value<'a>, key: &str) -> Option<Cow<'a, str>> {
    tagged::given(value, key).and_then(tagged::text)
}

/// The parts of a message.
pub(super) fn parts<'a>(message: &'a Value<'a>) -> &'a [Value<'a>] {
    match tagged::given(message, "parts") {
        Some(Value::Array(parts)) => parts,
        _ => &[],
    }
}
