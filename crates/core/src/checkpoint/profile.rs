//! Limits of providers (`S5.12`), as the app gives them: nothing is guessed.

use crate::error::{Code, Error, Result};
use serde::Serialize;

/// What a model can be run with.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The model's id.
    pub model: String,
    /// The size of context that is asked for.
    pub size: usize,
    /// The tokens that the provider then takes, when they are known.
    pub context_size: Option<usize>,
    /// Share of the size that it takes, where they are not: 0.85 where a provider wants that.
    pub share: f64,
}

/// Whether a prompt fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Validation {
    /// It does; equality fits.
    pub valid: bool,
    /// Its tokens.
    pub tokens: usize,
    /// The most that fits: the provider's limit less the margin.
    pub limit: usize,
    /// Tokens too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overage: Option<usize>,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What to do, what costs least first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<&'static str>,
}

/// Tokens that the provider takes when `model` is asked for a context of `size`.
///
/// Errors: [`Code::UnknownModel`] when there is no profile of the model, [`Code::InvalidOption`] when there is none of
/// that size.
pub fn limit_of(profiles: &[Profile], model: &str, size: usize) -> Result<usize> {
    if !profiles.iter().any(|profile| profile.model == model) {
        return Err(Error::new(Code::UnknownModel, format!("Model not found: {model}")));
    }
    let found = profiles.iter().find(|profile| profile.model == model && profile.size == size);
    let Some(profile) = found else {
        return Err(Error::option("contextWindow", format!("No profile for size {size}")));
    };
    Ok(profile.context_size.unwrap_or((size as f64 * profile.share) as usize))
}

/// Tokens of what a prompt is made of, as far as something can be done about it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Parts {
    /// The system prompt and the goal.
    pub prompt: usize,
    /// Definitions of tools.
    pub tools: usize,
    /// Messages that no summary replaces.
    pub messages: usize,
    /// Summaries.
    pub summaries: usize,
}

/// Whether a prompt of `tokens`, with these parts, fits a `limit` that the margin was taken off already.
pub fn validate(tokens: usize, limit: usize, parts: Parts) -> Validation {
    let Some(overage) = tokens.checked_sub(limit).filter(|overage| *overage > 0) else {
        return Validation {
            valid: true,
            tokens,
            limit,
            overage: None,
            message: None,
            suggestions: Vec::new(),
        };
    };
    // What frees enough without losing much comes first; what loses most, last.
    let all = [
        (parts.messages > 0, "compress older messages into a checkpoint"),
        (parts.summaries > 0, "make old checkpoints shorter, or merge them"),
        (parts.prompt > 0, "shorten the system prompt and the goal"),
        (parts.tools > 0, "send fewer tools, or describe them in fewer words"),
        (true, "use a larger context size or model"),
        (parts.messages + parts.summaries > 0, "start a fresh context (rollover)"),
    ];
    let suggestions = all.into_iter().filter(|(is_of_use, _)| *is_of_use).map(|(_, what)| what);
    Validation {
        valid: false,
        tokens,
        limit,
        overage: Some(overage),
        message: Some(format!("Context exceeds provider limit by {overage} tokens")),
        suggestions: suggestions.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profiles() -> Vec<Profile> {
        let profile =
            |size, context_size, share| Profile { model: "llama3:7b".into(), size, context_size, share };
        vec![profile(8_000, None, 0.85), profile(16_000, Some(14_000), 0.85), profile(32_000, None, 1.0)]
    }

    #[test]
    fn s5_12_the_profile_says_what_the_provider_takes() {
        let limit = |size| limit_of(&profiles(), "llama3:7b", size).unwrap();
        assert_eq!((limit(8_000), limit(16_000), limit(32_000)), (6_800, 14_000, 32_000));
    }

    #[test]
    fn s5_12_nothing_is_guessed() {
        let error = limit_of(&profiles(), "other", 8_000).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (Code::UnknownModel, "Model not found: other"));
        let error = limit_of(&profiles(), "llama3:7b", 9_000).unwrap_err();
        assert_eq!(error.code, Code::InvalidOption);
        assert!(error.message.contains("No profile for size 9000"), "{}", error.message);
    }

    #[test]
    fn s5_12_equality_is_valid_and_more_is_told_by_how_much() {
        let parts = Parts { prompt: 1, tools: 1, messages: 1, summaries: 1 };
        let fits = validate(5_800, 5_800, parts);
        assert!(fits.valid && fits.suggestions.is_empty());
        let json = serde_json::to_value(fits).unwrap();
        assert_eq!(json, serde_json::json!({ "valid": true, "tokens": 5_800, "limit": 5_800 }));
        let over = validate(5_801, 5_800, parts);
        assert_eq!((over.valid, over.overage), (false, Some(1)));
        assert_eq!(over.message.as_deref(), Some("Context exceeds provider limit by 1 tokens"));
        // Ranked: what loses least comes first.
        let places = [
            "compress older",
            "old checkpoints",
            "system prompt",
            "fewer tools",
            "larger context",
            "fresh context",
        ];
        assert_eq!(over.suggestions.len(), places.len());
        for (suggestion, words) in over.suggestions.iter().zip(places) {
            assert!(suggestion.contains(words), "{suggestion}");
        }
    }

    #[test]
    fn f33_suggestions_are_of_what_is_found() {
        let found = |parts: Parts| validate(5_801, 5_800, parts).suggestions.join("; ");
        let none = Parts::default();
        assert_eq!(found(none), "use a larger context size or model");
        for (parts, words) in [
            (Parts { messages: 1, ..none }, "compress older"),
            (Parts { summaries: 1, ..none }, "old checkpoints"),
            (Parts { prompt: 1, ..none }, "system prompt"),
            (Parts { tools: 1, ..none }, "fewer tools"),
        ] {
            assert!(found(parts).contains(words) && !found(none).contains(words), "{words}");
        }
    }
}
