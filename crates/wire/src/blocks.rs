//! Which types of content block, and of item, belong to which formats. A type that is not listed is news to all of
//! them, and no evidence.

use super::{Evidence, Format};
use Format::{AiSdk, Anthropic, OpenaiChat, OpenaiResponses};

/// A type (the value of a block's `type`) and the formats that have it.
const BLOCKS: [(&str, &[Format]); 33] = [
    ("text", &[OpenaiChat, Anthropic, AiSdk]),
    ("image", &[Anthropic, AiSdk]),
    ("file", &[OpenaiChat, AiSdk]),
    ("thinking", &[OpenaiChat, Anthropic]),
    ("refusal", &[OpenaiChat, OpenaiResponses]),
    ("reasoning", &[OpenaiResponses, AiSdk]),
    ("compaction", &[Anthropic, OpenaiResponses]),
    ("image_url", &[OpenaiChat]),
    ("input_audio", &[OpenaiChat, OpenaiResponses]),
    ("video_url", &[OpenaiChat]),
    ("document_url", &[OpenaiChat]),
    ("tool_use", &[Anthropic]),
    ("tool_result", &[Anthropic]),
    ("server_tool_use", &[Anthropic]),
    ("mcp_tool_use", &[Anthropic]),
    ("redacted_thinking", &[Anthropic]),
    ("document", &[Anthropic]),
    ("input_text", &[OpenaiResponses]),
    ("output_text", &[OpenaiResponses]),
    ("input_image", &[OpenaiResponses]),
    ("input_file", &[OpenaiResponses]),
    ("computer_screenshot", &[OpenaiResponses]),
    ("summary_text", &[OpenaiResponses]),
    ("tool-call", &[AiSdk]),
    ("tool-result", &[AiSdk]),
    ("tool-approval-request", &[AiSdk]),
    ("tool-approval-response", &[AiSdk]),
    ("step-start", &[AiSdk]),
    ("reasoning-file", &[AiSdk]),
    ("source-url", &[AiSdk]),
    ("source-document", &[AiSdk]),
    ("steering-message", &[AiSdk]),
    ("dynamic-tool", &[AiSdk]),
];

/// The formats that have blocks of this type; none where it is news.
pub(super) fn formats(kind: &str) -> &'static [Format] {
    BLOCKS.iter().find(|(name, _)| *name == kind).map_or(&[], |(_, formats)| formats)
}

/// What a block of this type says about a history being in this format.
pub(super) fn evidence(kind: &str, format: Format) -> Evidence {
    let Some((_, formats)) = BLOCKS.iter().find(|(name, _)| *name == kind) else { return Evidence::Possible };
    match *formats {
        [only] if *only == format => Evidence::Certain,
        formats if formats.contains(&format) => Evidence::Possible,
        _ => Evidence::Against,
    }
}
