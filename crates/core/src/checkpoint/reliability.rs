//! How far a context can be trusted after some compressions by a model of some size (`S5.11`).

use crate::wire::decimal;
use serde::Serialize;

/// Size of a model whose name does not say it.
const DEFAULT_SIZE: f64 = 7.0;
/// What a compression leaves of the reliability.
const PER_COMPRESSION: f64 = 0.9;

/// How far a context can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reliability {
    /// From 0 to 1.
    pub score: f64,
    /// There were as many compressions as a model of this size takes.
    pub warn: bool,
}

/// Billions of parameters, from a model's name: `llama3:7b` is 7, `qwen2.5:1.5b` is 1.5.
pub fn model_size(name: &str) -> f64 {
    let is_number = |character: char| character.is_ascii_digit() || character == '.';
    let sizes = name.match_indices(['b', 'B']).filter_map(|(at, _)| {
        let (before, after) = (name.get(..at)?, name.get(at + 1..)?);
        // `8bit` says something else.
        if after.chars().next().is_some_and(char::is_alphanumeric) {
            return None;
        }
        let number = before.get(before.trim_end_matches(is_number).len()..)?.trim_start_matches('.');
        decimal(number).filter(|size| *size > 0.0)
    });
    let mut sizes = sizes;
    sizes.next().unwrap_or(DEFAULT_SIZE)
}

/// Compressions after which a user is warned.
pub fn warn_after(model_size: f64) -> u64 {
    if model_size <= 3.0 {
        3
    } else if model_size <= 7.0 {
        5
    } else if model_size <= 13.0 {
        7
    } else {
        10
    }
}

/// How far a context can be trusted after `compressions`.
pub fn reliability(model_size: f64, compressions: u64) -> Reliability {
    let factor = if model_size >= 70.0 {
        0.95
    } else if model_size >= 30.0 {
        0.85
    } else if model_size >= 13.0 {
        0.7
    } else if model_size >= 7.0 {
        0.5
    } else {
        0.3
    };
    let power = i32::try_from(compressions).unwrap_or(i32::MAX);
    Reliability { score: factor * PER_COMPRESSION.powi(power), warn: compressions >= warn_after(model_size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_11_the_size_stands_in_the_name() {
        for (name, size) in [
            ("llama3:7b", 7.0),
            ("qwen2.5:1.5b", 1.5),
            ("Llama-3.1-70B-Instruct", 70.0),
            ("deepseek-r1:671b", 671.0),
            ("mixtral-8x22b", 22.0),
            ("phi-3-8bit-3.8b", 3.8),
            ("gpt-4o", 7.0),
            ("b", 7.0),
            ("模型-13b", 13.0),
            ("0b", 7.0),
            ("v..b", 7.0),
            ("", 7.0),
        ] {
            assert_eq!(model_size(name), size, "{name}");
        }
    }

    #[test]
    fn s5_11_each_compression_leaves_nine_tenths() {
        for (size, factor) in
            [(671.0, 0.95), (70.0, 0.95), (30.0, 0.85), (13.0, 0.7), (7.0, 0.5), (6.9, 0.3), (3.0, 0.3)]
        {
            assert_eq!(reliability(size, 0).score, factor);
            assert!((reliability(size, 3).score - factor * 0.729).abs() < 1e-12);
        }
        assert_eq!(reliability(70.0, u64::MAX).score, 0.0);
    }

    #[test]
    fn s5_11_smaller_models_warn_sooner() {
        for (size, after) in
            [(1.5, 3), (3.0, 3), (3.8, 5), (7.0, 5), (8.0, 7), (13.0, 7), (14.0, 10), (70.0, 10)]
        {
            assert_eq!(warn_after(size), after, "{size}");
            assert!(!reliability(size, after - 1).warn && reliability(size, after).warn);
        }
    }
}
