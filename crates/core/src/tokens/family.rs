//! Which family of tokenizers a model is of, by its name.

use super::Family;

/// The family of a model. Names may have a provider before them and dates, sizes or regions around the version, as in
/// `us.anthropic.claude-sonnet-4-5-20250929-v1:0`; a name that says nothing is of the default family.
pub fn of_model(model: &str) -> Family {
    let name = model.to_ascii_lowercase();
    let has = |word: &str| name.contains(word);
    let gpt = name.rsplit_once("gpt-").map_or("", |(_, version)| version);
    if let Some((_, version)) = name.split_once("claude") {
        claude(version)
    } else if has("gemini") || has("gemma") {
        Family::Gemini
    } else if has("qwen") || has("qwq") || has("qvq") {
        Family::Qwen3
    } else if has("llama") && !["llama-2", "llama2", "llama-4", "llama4"].into_iter().any(has) {
        Family::Llama3
    } else if gpt.starts_with('3') || gpt == "4" || gpt.starts_with("4-") || has("text-embedding-") {
        Family::Cl100k
    } else {
        Family::O200k
    }
}

/// By the version that stands behind the name, before or after the model's own (`claude-3-5-haiku`, `claude-opus-4-6`).
/// A name without a version is of the newest models.
fn claude(version: &str) -> Family {
    // Dates have more digits than a version.
    let mut numbers = version
        .split(|char: char| !char.is_ascii_digit())
        .filter(|digits| !digits.is_empty() && digits.len() <= 2)
        .filter_map(|digits| digits.parse::<u32>().ok());
    let Some(major) = numbers.next() else {
        // Instant was the second generation's.
        return if version.contains("instant") { Family::Claude3 } else { Family::Claude47 };
    };
    match (major, is_minor_next(version).then(|| numbers.next()).flatten().unwrap_or(0)) {
        (5.., _) | (4, 7..) => Family::Claude47,
        _ => Family::Claude3,
    }
}

/// True when the version's second number belongs to it: `4-20250514-v1` has none.
fn is_minor_next(version: &str) -> bool {
    let from = version.trim_start_matches(|char: char| !char.is_ascii_digit());
    let rest = from.trim_start_matches(|char: char| char.is_ascii_digit());
    let minor = rest.strip_prefix(['-', '.', '_']).unwrap_or_default();
    matches!(minor.find(|char: char| !char.is_ascii_digit()).unwrap_or(minor.len()), 1..=2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_providers_write_them() {
        for (family, models) in [
            (
                Family::O200k,
                "gpt-4o gpt-4o-mini gpt-4.1 gpt-4.5-preview chatgpt-4o-latest gpt-5.1 o3 o4-mini openai/gpt-5 mistral-large deepseek-chat llama-4-scout meta-llama/Llama-2-7b unknown",
            ),
            (
                Family::Cl100k,
                "gpt-4 gpt-4-turbo gpt-4-0613 gpt-3.5-turbo gpt-35-turbo openai/gpt-4 text-embedding-3-small",
            ),
            (
                Family::Claude3,
                "claude-3-opus-20240229 claude-3-5-sonnet-latest claude-3.7-sonnet claude-sonnet-4-20250514 claude-opus-4-1-20250805 anthropic/claude-sonnet-4.5 us.anthropic.claude-sonnet-4-5-20250929-v1:0 claude-opus-4-6 claude-opus-4@20250514 claude-instant-1 claude-2.1",
            ),
            (
                Family::Claude47,
                "claude-opus-4-7 claude-opus-4.8 anthropic/claude-sonnet-5 claude-fable-5-20270101 claude-opus-4-10 claude",
            ),
            (Family::Gemini, "gemini-2.5-pro models/gemini-3-flash google/gemma-3-27b-it"),
            (
                Family::Llama3,
                "llama-3.3-70b-versatile meta-llama/Meta-Llama-3-8B us.meta.llama3-1-70b-instruct-v1:0",
            ),
            (Family::Qwen3, "qwen3-coder Qwen/Qwen2.5-72B-Instruct qwq-32b"),
        ] {
            for model in models.split(' ') {
                assert_eq!(of_model(model), family, "{model}");
            }
        }
    }
}
