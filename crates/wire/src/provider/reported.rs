//! The usage of a call as an app has it: in this library's names, or as a provider or a framework reports it.

use super::{Usage, count};
use crate::error::{Error, Result};
use serde_json::Value;

/// Names of the prompt's tokens, and whether those from and to the cache are counted apart where the usage tells them by
/// these names.
const INPUT: [(&str, [&str; 2]); 7] = [
    // This library's, the AI SDK's; Bedrock's, which has other names for the cache.
    ("/inputTokens", ["/cacheReadInputTokens", "/cacheWriteInputTokens"]),
    // Anthropic's; OpenAI's Responses, which tells the cache as a detail.
    ("/input_tokens", ["/cache_read_input_tokens", "/cache_creation_input_tokens"]),
    // OpenAI's chat and those that follow it.
    ("/prompt_tokens", NEVER),
    ("/promptTokenCount", NEVER),
    ("/prompt_eval_count", NEVER),
    ("/promptTokens", NEVER),
    // Of what an app keeps of several providers.
    ("/input", ["/cacheRead", "/cacheWrite"]),
];
const NEVER: [&str; 2] = ["", ""];
const READ: [&str; 9] = [
    "/cacheReadTokens",
    "/inputTokenDetails/cacheReadTokens",
    "/cachedInputTokens",
    "/cacheReadInputTokens",
    "/cache_read_input_tokens",
    "/input_tokens_details/cached_tokens",
    "/prompt_tokens_details/cached_tokens",
    "/cachedContentTokenCount",
    "/cacheRead",
];
const WRITTEN: [&str; 5] = [
    "/cacheWriteTokens",
    "/inputTokenDetails/cacheWriteTokens",
    "/cacheWriteInputTokens",
    "/cache_creation_input_tokens",
    "/cacheWrite",
];
const OUTPUT: [&str; 7] = [
    "/outputTokens",
    "/output_tokens",
    "/completion_tokens",
    "/candidatesTokenCount",
    "/eval_count",
    "/completionTokens",
    "/output",
];
const REASONING: [&str; 6] = [
    "/reasoningTokens",
    "/outputTokenDetails/reasoningTokens",
    "/output_tokens_details/reasoning_tokens",
    "/output_tokens_details/thinking_tokens",
    "/completion_tokens_details/reasoning_tokens",
    "/thoughtsTokenCount",
];

/// Reads the usage of a call, JSON text.
///
/// Errors: [`crate::Code::InvalidOption`] when it does not say how long the prompt was.
pub fn reported(usage: &str) -> Result<Usage> {
    let usage: Value = serde_json::from_str(usage).unwrap_or_default();
    let usage = as_sent(usage);
    let has = |path: &str| !path.is_empty() && usage.pointer(path).is_some();
    let first =
        |paths: &[&str]| paths.iter().map(|path| count(&usage, path)).find(|tokens| *tokens > 0).unwrap_or(0);
    let Some((input, apart)) = INPUT.iter().find(|(path, _)| usage.pointer(path).is_some_and(Value::is_u64))
    else {
        return Err(Error::option(
            "usage",
            "does not say how long the prompt was: pass { inputTokens, outputTokens } or what the provider answered as usage",
        ));
    };
    let (cache_read, cache_write) = (first(&READ), first(&WRITTEN));
    let input = count(&usage, input).saturating_add(count(&usage, "/toolUsePromptTokenCount"));
    let cached = cache_read.saturating_add(cache_write);
    // A part is never larger than the whole: some versions of frameworks leave the cache out under the same name.
    let is_apart = apart.iter().any(|path| has(path)) || cached > input;
    let reasoning = first(&REASONING);
    // Gemini counts thoughts apart.
    let output = first(&OUTPUT).saturating_add(count(&usage, "/thoughtsTokenCount"));
    Ok(Usage {
        input: input.saturating_add(if is_apart { cached } else { 0 }),
        output,
        cache_read,
        cache_write,
        reasoning,
    })
}

/// The usage of the prompt as it was sent. Where Anthropic compacted it on the way, its totals are those of what was left, and
/// the prompt is that of the first iteration (<https://platform.claude.com/docs/en/build-with-claude/compaction-threshold>).
fn as_sent(mut usage: Value) -> Value {
    let is_compaction =
        |iteration: &&Value| iteration.get("type").and_then(Value::as_str) == Some("compaction");
    let iterations = usage.get("iterations").and_then(Value::as_array);
    let Some(first) = iterations.and_then(|all| all.iter().find(is_compaction)).cloned() else {
        return usage;
    };
    let output = count(&usage, "/output_tokens").saturating_add(count(&first, "/output_tokens"));
    for name in ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"] {
        if let (Some(field), Some(of_first)) = (usage.get_mut(name), first.get(name)) {
            *field = of_first.clone();
        }
    }
    if let Some(field) = usage.get_mut("output_tokens") {
        *field = output.into();
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(usage: &str) -> (u64, u64, u64, u64, u64) {
        let Usage { input, output, cache_read, cache_write, reasoning } = reported(usage).unwrap();
        (input, output, cache_read, cache_write, reasoning)
    }

    #[test]
    fn the_whole_prompt_in_every_shape() {
        for (usage, found) in [
            (
                r#"{"inputTokens":900,"outputTokens":20,"cacheReadTokens":700,"cacheWriteTokens":100}"#,
                (900, 20, 700, 100, 0),
            ),
            // Anthropic: three parts.
            (
                r#"{"input_tokens":10,"cache_read_input_tokens":700,"cache_creation_input_tokens":190,"output_tokens":20}"#,
                (900, 20, 700, 190, 0),
            ),
            (
                r#"{"input_tokens":900,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":20}"#,
                (900, 20, 0, 0, 0),
            ),
            // Anthropic, which compacted it on the way.
            (
                r#"{"input_tokens":23000,"cache_read_input_tokens":0,"output_tokens":1000,"iterations":[{"type":"compaction","input_tokens":180000,"cache_read_input_tokens":5,"output_tokens":3500},{"type":"message","input_tokens":23000,"output_tokens":1000}]}"#,
                (180_005, 4_500, 5, 0, 0),
            ),
            // OpenAI's Responses, and its chat: one whole.
            (
                r#"{"input_tokens":900,"input_tokens_details":{"cached_tokens":700},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":5}}"#,
                (900, 20, 700, 0, 5),
            ),
            (
                r#"{"prompt_tokens":900,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":700}}"#,
                (900, 20, 700, 0, 0),
            ),
            // A gateway to Anthropic that follows OpenAI.
            (
                r#"{"prompt_tokens":900,"completion_tokens":20,"cache_read_input_tokens":700}"#,
                (900, 20, 700, 0, 0),
            ),
            (
                r#"{"promptTokenCount":900,"cachedContentTokenCount":700,"candidatesTokenCount":15,"thoughtsTokenCount":5}"#,
                (900, 20, 700, 0, 5),
            ),
            // Bedrock.
            (
                r#"{"inputTokens":10,"outputTokens":20,"cacheReadInputTokens":700,"cacheWriteInputTokens":190}"#,
                (900, 20, 700, 190, 0),
            ),
            // The AI SDK 5 over Anthropic, and 6.
            (r#"{"inputTokens":200,"outputTokens":20,"cachedInputTokens":700}"#, (900, 20, 700, 0, 0)),
            (
                r#"{"inputTokens":900,"inputTokenDetails":{"noCacheTokens":200,"cacheReadTokens":700},"outputTokens":20}"#,
                (900, 20, 700, 0, 0),
            ),
            (r#"{"prompt_eval_count":900,"eval_count":20}"#, (900, 20, 0, 0, 0)),
        ] {
            assert_eq!(of(usage), found, "{usage}");
        }
    }

    #[test]
    fn what_says_nothing_is_refused() {
        for usage in [
            "",
            "null",
            "{}",
            "[]",
            r#"{"inputTokens":-1}"#,
            r#"{"inputTokens":1.5}"#,
            r#"{"inputTokens":"9"}"#,
        ] {
            assert_eq!(reported(usage).unwrap_err().field.as_deref(), Some("usage"), "{usage}");
        }
    }
}
