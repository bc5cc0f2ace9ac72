//! What is counted by rule: the frames around texts, definitions of tools, and media, by family. Measured against what
//! providers reported for recorded requests, in tokens beyond the estimate of the texts themselves.

use super::Family;
use crate::message::{Media, MediaKind};

/// Tokens of the frames of a family.
#[derive(Debug, Clone, Copy)]
pub(super) struct Overhead {
    /// Around a message.
    pub(super) message: usize,
    /// Around a tool call, beside its name and its arguments as JSON.
    pub(super) call: usize,
    /// For each argument of a call.
    pub(super) argument: usize,
    /// Around a result, beside the message that has it.
    pub(super) result: usize,
    /// Once, when there are tools: what the provider writes before them.
    tools: usize,
    /// For each definition of a tool, beside its JSON.
    tool: usize,
    image: fn(u64, u64) -> u64,
    /// Of an image whose size is not known: a large one.
    large_image: usize,
    /// Of a page of a document.
    page: usize,
}

/// The chat format of the o200k models; others cost about as much. A message has `<|start|>`, the role, `<|message|>` and
/// `<|end|>`, a token each; a call is a message of its own with ` to=functions.`, a channel and a constraint (`json`); a
/// result names the function it is from and whom it is for. Definitions of tools cost what their JSON does.
const OPENAI: Overhead = Overhead {
    message: 4,
    call: 8,
    argument: 0,
    result: 6,
    tools: 0,
    tool: 0,
    image: tiles_of_512,
    large_image: 1_600,
    page: 1_500,
};

/// Claude writes a call as tags with a tag for each argument, and instructions before the tools.
const CLAUDE_3: Overhead =
    Overhead { call: 36, argument: 10, tools: 450, tool: 50, image: pixels_by_750, ..OPENAI };

/// The same with shorter instructions, and three times as many pixels of an image.
const CLAUDE_47: Overhead =
    Overhead { tools: 210, tool: 45, image: more_pixels_by_750, large_image: 4_784, ..CLAUDE_3 };

/// Gemini counts texts, and nothing around them.
const GEMINI: Overhead =
    Overhead { message: 0, call: 0, result: 0, image: tiles_of_768, large_image: 1_548, page: 258, ..OPENAI };

impl Overhead {
    pub(super) fn of(family: Family) -> Overhead {
        match family {
            Family::O200k | Family::Cl100k | Family::Llama3 | Family::Qwen3 => OPENAI,
            Family::Claude3 => CLAUDE_3,
            Family::Claude47 => CLAUDE_47,
            Family::Gemini => GEMINI,
        }
    }

    /// Tokens of a call beside its name and its arguments.
    pub(super) fn of_call(&self, arguments: &str) -> usize {
        let named = if self.argument > 0 { fields(arguments) } else { 0 };
        self.call + named * self.argument
    }

    /// Tokens of the definitions of tools, JSON text, beside their texts.
    pub(super) fn of_tools(&self, tools: &str) -> usize {
        if tools.is_empty() {
            return 0;
        }
        let count = match serde_json::from_str(tools) {
            Ok(serde_json::Value::Array(tools)) => tools.len(),
            // By name, as frameworks have them.
            Ok(serde_json::Value::Object(tools)) => tools.len(),
            _ => 1,
        };
        if count == 0 { 0 } else { self.tools + count * self.tool }
    }

    /// Tokens of a media part: never by the length of its encoding.
    pub(super) fn of_media(&self, item: &Media) -> usize {
        match item.kind {
            MediaKind::Image => match item.pixels {
                Some((width, height)) => {
                    (self.image)(u64::from(width.max(1)), u64::from(height.max(1))) as usize
                }
                None => self.large_image,
            },
            // A page of a PDF is taken as 50 KB, and there is at least one.
            MediaKind::Document => (item.bytes / 50_000 + 1) * self.page,
            // Gemini's rule is 32 tokens a second; a second of compressed speech is taken as 16 KB.
            MediaKind::Audio => (item.bytes / 500).max(32),
            // Gemini's rule is about 300 tokens a second; a second of compressed video is taken as 250 KB.
            MediaKind::Video => (item.bytes / 833).max(300),
        }
    }
}

/// Anthropic's rule: width × height / 750, of an image made smaller until its longer side has 1,568 pixels and it costs
/// about 1,600 tokens.
fn pixels_by_750(width: u64, height: u64) -> u64 {
    scaled_by_750(width, height, 1_568, 1_600)
}

/// The same for the models that see more.
fn more_pixels_by_750(width: u64, height: u64) -> u64 {
    scaled_by_750(width, height, 2_576, 4_784)
}

fn scaled_by_750(width: u64, height: u64, longest: u64, most: u64) -> u64 {
    let (width, height) = within(width, height, longest);
    (width * height / 750).clamp(1, most)
}

/// OpenAI's rule: within 2,048 × 2,048, the shorter side made at most 768, then 170 tokens for each tile of 512 × 512 and
/// 85 more.
fn tiles_of_512(width: u64, height: u64) -> u64 {
    let (width, height) = within(width, height, 2_048);
    let shorter = width.min(height);
    let (width, height) =
        if shorter > 768 { (width * 768 / shorter, height * 768 / shorter) } else { (width, height) };
    85 + 170 * width.div_ceil(512).max(1) * height.div_ceil(512).max(1)
}

/// Google's rule: 258 tokens for a small image, and for each tile of 768 × 768 of a larger one.
fn tiles_of_768(width: u64, height: u64) -> u64 {
    if width <= 384 && height <= 384 { 258 } else { 258 * width.div_ceil(768) * height.div_ceil(768) }
}

/// The size of an image whose longer side is made at most `longest`.
fn within(width: u64, height: u64, longest: u64) -> (u64, u64) {
    let longer = width.max(height);
    if longer <= longest {
        return (width, height);
    }
    ((width * longest / longer).max(1), (height * longest / longer).max(1))
}

/// Fields of an object, JSON text: colons at its own level.
fn fields(json: &str) -> usize {
    let (mut depth, mut quoted, mut escaped, mut found) = (0_usize, false, false, 0);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b':' if depth == 1 => found += 1,
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(family: Family, pixels: Option<(u32, u32)>) -> usize {
        Overhead::of(family).of_media(&Media { kind: MediaKind::Image, bytes: 9_000_000, pixels })
    }

    #[test]
    fn images_by_the_providers_rules() {
        // The documents' own examples.
        assert_eq!(image(Family::Claude3, Some((200, 200))), 53);
        assert_eq!(image(Family::Claude3, Some((1_000, 1_000))), 1_333);
        assert_eq!(image(Family::Claude3, Some((1_092, 1_092))), 1_589);
        assert_eq!(image(Family::Claude3, Some((8_000, 8_000))), 1_600);
        assert_eq!(image(Family::Claude47, Some((8_000, 8_000))), 4_784);
        assert_eq!(image(Family::O200k, Some((1_024, 1_024))), 765);
        assert_eq!(image(Family::O200k, Some((2_048, 4_096))), 1_105);
        assert_eq!(image(Family::O200k, Some((100, 100))), 255);
        assert_eq!(image(Family::Gemini, Some((384, 384))), 258);
        assert_eq!(image(Family::Gemini, Some((960, 540))), 2 * 258);
        // Small on one side only.
        assert_eq!(image(Family::Gemini, Some((384, 800))), 2 * 258);
        assert_eq!(image(Family::Gemini, Some((800, 384))), 2 * 258);
        for family in Family::ALL {
            assert!(image(family, None) > 1_000);
            for pixels in [(0, 0), (u32::MAX, u32::MAX), (1, u32::MAX), (u32::MAX, 1)] {
                assert!(image(family, Some(pixels)) > 0);
            }
        }
    }

    #[test]
    fn calls_of_claude_cost_their_arguments_tags() {
        for (json, count) in [
            ("", 0),
            ("{}", 0),
            ("null", 0),
            (r#"{"a":1}"#, 1),
            (r#"{"a:b\":":{"c":1,"d":[{"e":2}]},"f":"x:{\\"}"#, 2),
            (r#"["a:b"]"#, 0),
            ("}}:{:", 1),
        ] {
            assert_eq!(fields(json), count, "{json}");
        }
        assert_eq!(Overhead::of(Family::Claude3).of_call(r#"{"path":"a","limit":2}"#), 56);
        assert_eq!(Overhead::of(Family::O200k).of_call(r#"{"path":"a","limit":2}"#), 8);
    }

    #[test]
    fn tools_cost_what_is_written_before_them() {
        let claude = Overhead::of(Family::Claude3);
        for (tools, tokens) in [
            ("", 0),
            ("[]", 0),
            (r#"[{"name":"a"}]"#, 500),
            (r#"{"a":{},"b":{}}"#, 550),
            ("what is no JSON", 500),
        ] {
            assert_eq!(claude.of_tools(tools), tokens, "{tools}");
            assert_eq!(Overhead::of(Family::Gemini).of_tools(tools), 0);
        }
    }
}
