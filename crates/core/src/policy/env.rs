//! Options from an environment record (`S1.12`).

use crate::error::{Error, Result};
use serde::Serialize;

/// The variables.
pub const ENVIRONMENT: [&str; 10] = [
    "SYNAPSE_COMPACT_TRIGGER_THRESHOLD",
    "SYNAPSE_COMPACT_TARGET_TOKENS",
    "SYNAPSE_COMPACT_PRESERVE_COUNT",
    "SYNAPSE_COMPACT_MODEL",
    "SYNAPSE_COMPACT_RETRY_COUNT",
    "SYNAPSE_COMPACT_COOLDOWN_STEPS",
    "SYNAPSE_MAX_CONTEXT_WINDOW",
    "SYNAPSE_OFFLOAD_THRESHOLD",
    "SYNAPSE_OFFLOAD_SCAN_RATIO",
    "SYNAPSE_OFFLOAD_MIN_CHARS",
];

/// Options that an environment can set; absent variables are absent here.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvOptions {
    /// `SYNAPSE_MAX_CONTEXT_WINDOW`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u32>,
    /// The rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset_options: Option<EnvOffload>,
}

/// Options of preset `offload` that an environment can set.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvOffload {
    /// `SYNAPSE_COMPACT_MODEL`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `SYNAPSE_COMPACT_RETRY_COUNT`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_count: Option<u32>,
    /// `SYNAPSE_OFFLOAD_THRESHOLD`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload_threshold: Option<u32>,
    /// `SYNAPSE_OFFLOAD_SCAN_RATIO`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_ratio: Option<f64>,
    /// `SYNAPSE_OFFLOAD_MIN_CHARS`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_chars: Option<u32>,
    /// `SYNAPSE_COMPACT_TRIGGER_THRESHOLD`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compact_trigger_threshold: Option<u32>,
    /// `SYNAPSE_COMPACT_COOLDOWN_STEPS`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compact_cooldown_steps: Option<u32>,
    /// `SYNAPSE_COMPACT_PRESERVE_COUNT`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve_count: Option<u32>,
    /// `SYNAPSE_COMPACT_TARGET_TOKENS`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_tokens: Option<u32>,
}

/// Reads the options that `lookup` finds.
///
/// Errors: [`crate::Code::InvalidOption`] with the variable as its field. Counts are positive whole numbers (the
/// cooldown may be 0), the ratio lies in 0 to 1, the model is not empty.
pub fn options_from_env<'e>(lookup: impl Fn(&str) -> Option<&'e str>) -> Result<EnvOptions> {
    let count = |name: &str, min: u32| -> Result<Option<u32>> {
        let Some(text) = lookup(name) else { return Ok(None) };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<u32>() {
            Ok(number) if digits && number >= min => Ok(Some(number)),
            _ if min == 0 => {
                Err(Error::option(name, format!("must be 0 or a positive whole number, not {text:?}")))
            }
            _ => Err(Error::option(name, format!("must be a positive whole number, not {text:?}"))),
        }
    };
    let ratio = |name: &str| -> Result<Option<f64>> {
        let Some(text) = lookup(name) else { return Ok(None) };
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        match text.parse::<f64>() {
            Ok(number) if plain && (0.0..=1.0).contains(&number) => Ok(Some(number)),
            _ => Err(Error::option(name, format!("must be a number from 0 to 1, not {text:?}"))),
        }
    };
    let model = match lookup("SYNAPSE_COMPACT_MODEL") {
        Some(text) if text.trim().is_empty() => {
            return Err(Error::option("SYNAPSE_COMPACT_MODEL", "must be a model's name, not an empty text"));
        }
        found => found.map(|text| text.trim().to_string()),
    };
    let offload = EnvOffload {
        model,
        retry_count: count("SYNAPSE_COMPACT_RETRY_COUNT", 1)?,
        offload_threshold: count("SYNAPSE_OFFLOAD_THRESHOLD", 1)?,
        scan_ratio: ratio("SYNAPSE_OFFLOAD_SCAN_RATIO")?,
        min_chars: count("SYNAPSE_OFFLOAD_MIN_CHARS", 1)?,
        compact_trigger_threshold: count("SYNAPSE_COMPACT_TRIGGER_THRESHOLD", 1)?,
        compact_cooldown_steps: count("SYNAPSE_COMPACT_COOLDOWN_STEPS", 0)?,
        preserve_count: count("SYNAPSE_COMPACT_PRESERVE_COUNT", 1)?,
        target_tokens: count("SYNAPSE_COMPACT_TARGET_TOKENS", 1)?,
    };
    Ok(EnvOptions {
        context_window: count("SYNAPSE_MAX_CONTEXT_WINDOW", 1)?,
        preset_options: (offload != EnvOffload::default()).then_some(offload),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<EnvOptions> {
        options_from_env(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| *value))
    }

    #[test]
    fn s1_12_reads_every_variable() {
        let options = read(&[
            ("SYNAPSE_COMPACT_TRIGGER_THRESHOLD", "1"),
            ("SYNAPSE_COMPACT_TARGET_TOKENS", "2"),
            ("SYNAPSE_COMPACT_PRESERVE_COUNT", "3"),
            ("SYNAPSE_COMPACT_MODEL", "small"),
            ("SYNAPSE_COMPACT_RETRY_COUNT", "4"),
            ("SYNAPSE_COMPACT_COOLDOWN_STEPS", "0"),
            ("SYNAPSE_MAX_CONTEXT_WINDOW", "128000"),
            ("SYNAPSE_OFFLOAD_THRESHOLD", "5"),
            ("SYNAPSE_OFFLOAD_SCAN_RATIO", "0.25"),
            ("SYNAPSE_OFFLOAD_MIN_CHARS", "6"),
        ])
        .unwrap();
        assert_eq!(
            options,
            EnvOptions {
                context_window: Some(128_000),
                preset_options: Some(EnvOffload {
                    model: Some("small".into()),
                    retry_count: Some(4),
                    offload_threshold: Some(5),
                    scan_ratio: Some(0.25),
                    min_chars: Some(6),
                    compact_trigger_threshold: Some(1),
                    compact_cooldown_steps: Some(0),
                    preserve_count: Some(3),
                    target_tokens: Some(2),
                }),
            }
        );
        assert_eq!(read(&[]).unwrap(), EnvOptions::default());
    }

    #[test]
    fn s1_12_the_least_of_every_count_is_taken() {
        for (name, least) in [
            ("SYNAPSE_COMPACT_TRIGGER_THRESHOLD", "1"),
            ("SYNAPSE_COMPACT_TARGET_TOKENS", "1"),
            ("SYNAPSE_COMPACT_PRESERVE_COUNT", "1"),
            ("SYNAPSE_COMPACT_RETRY_COUNT", "1"),
            ("SYNAPSE_COMPACT_COOLDOWN_STEPS", "0"),
            ("SYNAPSE_MAX_CONTEXT_WINDOW", "1"),
            ("SYNAPSE_OFFLOAD_THRESHOLD", "1"),
            ("SYNAPSE_OFFLOAD_MIN_CHARS", "1"),
        ] {
            assert_ne!(read(&[(name, least)]).unwrap(), EnvOptions::default(), "{name}");
        }
    }

    #[test]
    fn s1_12_refuses_anything_else_and_names_the_variable() {
        for (name, value) in [
            ("SYNAPSE_OFFLOAD_THRESHOLD", "0"),
            ("SYNAPSE_OFFLOAD_THRESHOLD", "-5"),
            ("SYNAPSE_OFFLOAD_THRESHOLD", "+5"),
            ("SYNAPSE_OFFLOAD_THRESHOLD", "1e5"),
            ("SYNAPSE_OFFLOAD_THRESHOLD", ""),
            ("SYNAPSE_OFFLOAD_THRESHOLD", "150k"),
            ("SYNAPSE_COMPACT_RETRY_COUNT", "2.5"),
            ("SYNAPSE_COMPACT_COOLDOWN_STEPS", "-1"),
            ("SYNAPSE_OFFLOAD_SCAN_RATIO", "1.5"),
            ("SYNAPSE_OFFLOAD_SCAN_RATIO", "NaN"),
            ("SYNAPSE_COMPACT_MODEL", "  "),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert_eq!(error.field.as_deref(), Some(name), "{value:?}");
            assert_eq!(error.code, crate::Code::InvalidOption);
        }
    }
}
