//! Which family of tokenizers a model is of, by its name.

use super::Family;
use crate::error::{Code, Error, Result};
use crate::order;

/// The family of a model; a name that says nothing is of the default family.
pub fn of_model(model: &str) -> Family {
    family_of(model).unwrap_or_default()
}

/// The same for a name that must say something.
///
/// Errors: [`Code::UnknownModel`] with the names that are nearly so.
pub fn of_known_model(model: &str) -> Result<Family> {
    family_of(model).ok_or_else(|| {
        let near = nearly(model).join(", ");
        let meant = if near.is_empty() { String::new() } else { format!(", such as {near}") };
        let message = format!(
            "nothing is known about the tokenizer of {model:?}: give the name of a model that is known{meant}, or leave \
             model out to count as OpenAI's models since GPT-4o do"
        );
        Error::new(Code::UnknownModel, message).of_field(Some("model".into()))
    })
}

/// Makers whose models have a tokenizer that no family is of: the default family is used for theirs.
const OTHERS: [&str; 36] = [
    "gpt",
    "davinci",
    "babbage",
    "codex",
    "text-embedding-",
    "llama",
    "mistral",
    "mixtral",
    "ministral",
    "codestral",
    "devstral",
    "magistral",
    "pixtral",
    "deepseek",
    "grok",
    "command-",
    "c4ai",
    "phi-",
    "phi3",
    "phi4",
    "nova-",
    "titan",
    "kimi",
    "moonshot",
    "glm",
    "minimax",
    "jamba",
    "sonar",
    "granite",
    "nemotron",
    "olmo",
    "hermes",
    "ernie",
    "doubao",
    "hunyuan",
    "smollm",
];

/// What an error names.
const NAMES: [&str; 22] = [
    "gpt-5",
    "gpt-5-mini",
    "gpt-4.1",
    "gpt-4.1-mini",
    "gpt-4o",
    "gpt-4o-mini",
    "gpt-4-turbo",
    "gpt-4",
    "gpt-3.5-turbo",
    "o3",
    "o4-mini",
    "claude-opus-4-7",
    "claude-sonnet-4-5",
    "claude-haiku-4-5",
    "claude-3-5-haiku",
    "gemini-2.5-pro",
    "gemini-2.5-flash",
    "llama-3.3-70b",
    "qwen3-coder",
    "mistral-large",
    "deepseek-chat",
    "grok-4",
];

/// The three names nearest to one that is misspelt.
fn nearly(model: &str) -> Vec<&'static str> {
    let wanted: Vec<char> = model.to_ascii_lowercase().chars().take(64).collect();
    let mut near: Vec<(usize, &str)> = NAMES.map(|name| (distance(&wanted, name), name)).into();
    near.retain(|(steps, _)| *steps <= wanted.len() / 2);
    order::sort(&mut near, |a, b| a < b);
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Letters to insert, delete or exchange for others until one name is the other.
fn distance(from: &[char], to: &str) -> usize {
    let mut row: Vec<usize> = (0..=from.len()).collect();
    for (at, letter) in to.chars().enumerate() {
        let mut left = at + 1;
        let mut next = vec![left];
        for ((other, diagonal), above) in from.iter().zip(&row).zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(letter != *other)).min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

/// Names may have a provider before them and dates, sizes or regions around the version, as in
/// `us.anthropic.claude-sonnet-4-5-20250929-v1:0`.
fn family_of(model: &str) -> Option<Family> {
    let name = model.to_ascii_lowercase();
    let has = |word: &str| name.contains(word);
    let gpt = name.rsplit_once("gpt-").map_or("", |(_, version)| version);
    let family = if let Some((_, version)) = name.split_once("claude") {
        claude(version)
    } else if has("gemini") || has("gemma") {
        Family::Gemini
    } else if has("qwen") || has("qwq") || has("qvq") {
        Family::Qwen3
    } else if has("llama") && !["llama-2", "llama2", "llama-4", "llama4"].into_iter().any(has) {
        Family::Llama3
    } else if gpt.starts_with('3') || gpt == "4" || gpt.starts_with("4-") || has("text-embedding-") {
        Family::Cl100k
    } else if OTHERS.into_iter().any(has) || is_of_o_series(&name) {
        Family::default()
    } else {
        return None;
    };
    Some(family)
}

/// `o1`, `o3-mini`, `openai/o4-mini`.
fn is_of_o_series(name: &str) -> bool {
    let mut words = name.split(|char: char| !char.is_ascii_alphanumeric());
    words.any(|word| matches!(word.strip_prefix('o').map(|digits| digits.parse::<u8>()), Some(Ok(1..=9))))
}

/// By the version after the name, before or after the model's own (`claude-3-5-haiku`, `claude-opus-4-6`).
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
    fn f11_a_name_that_says_nothing_is_unknown_with_the_names_nearest_to_it() {
        for (model, near) in [
            ("gtp-4o", ", such as gpt-4o, gpt-4,"),
            ("cluade-sonnet-4-5", ", such as claude-sonnet-4-5,"),
            ("gemni-2.5-pro", ", such as gemini-2.5-pro, gemini-2.5-flash,"),
            ("unknown-model-of-nobody", "is known, or leave model out"),
        ] {
            assert_eq!(of_model(model), Family::default());
            let error = of_known_model(model).unwrap_err();
            assert_eq!((error.code, error.field.as_deref()), (Code::UnknownModel, Some("model")));
            assert!(error.message.contains(near), "{model}: {}", error.message);
        }
        for model in
            "gpt-4o chatgpt-4o-latest openai/o3-mini o1 mistral-large grok-4 llama-4-scout claude gemma-3"
                .split(' ')
        {
            assert_eq!(of_known_model(model), Ok(of_model(model)));
        }
    }

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
