//! How far an estimate may be off: bounds that hold for about 99 of 100 held-out texts.
//!
//! What an estimate is off by grows with the text in three ways. Every text has a kind, which leans to one side: so much of
//! its tokens, another share where its characters are beyond ASCII, and less in a long text, which has many kinds. The
//! family leans a little in all of them. And every word is off by itself: that grows with the root. The shares are fitted to
//! the residuals of held-out text by `bench/fit/bounds.py`, which also judges them (`bench/reports/bounds.json`).

use super::{Estimator, Family};

/// Tokens from which on a text has more than one kind.
const KINDS: f64 = 1_000.0;
/// What a family leans by at most, whatever the text.
const FLOOR: f64 = 0.018;

/// A family's spread, in thousandths of a token.
struct Spread {
    /// Of each token of ASCII text.
    plain: u64,
    /// Of each token of other text.
    other: u64,
    /// Of the root of the tokens.
    root: u64,
}

const fn spread(plain: u64, other: u64, root: u64) -> Spread {
    Spread { plain, other, root }
}

impl Spread {
    fn of(family: Family) -> Spread {
        match family {
            Family::O200k => spread(78, 145, 1_835),
            Family::Cl100k => spread(138, 34, 1_710),
            Family::Claude3 => spread(102, 74, 1_651),
            Family::Claude47 => spread(91, 68, 1_434),
            Family::Gemini => spread(49, 208, 1_766),
            Family::Llama3 => spread(116, 58, 1_872),
            Family::Qwen3 => spread(102, 46, 1_909),
        }
    }
}

/// What bounds depend on, of all that was estimated together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bounds {
    /// Tokens of texts.
    texts: u64,
    /// Bytes of texts, and those of characters beyond ASCII.
    bytes: u64,
    other: u64,
}

impl Bounds {
    /// Adds a text that is estimated at `tokens`.
    pub(crate) fn add(&mut self, text: &str, tokens: usize) {
        self.texts += tokens as u64;
        self.bytes += text.len() as u64;
        self.other += text.bytes().filter(|byte| !byte.is_ascii()).count() as u64;
    }

    /// The bounds of `tokens` tokens, of which those texts are a part. What is counted by rule may be half of that off.
    pub(crate) fn of(&self, tokens: usize, estimator: Estimator) -> (usize, usize) {
        let by_rule = (tokens as u64).saturating_sub(self.texts) / 2;
        let Estimator::Calibrated(family) = estimator else {
            // Four characters a token may be one, or eight.
            return (tokens / 2, tokens.saturating_mul(6));
        };
        if tokens == 0 {
            return (0, 0);
        }
        let Spread { plain, other, root } = Spread::of(family);
        let (texts, bytes) = (self.texts as f64, self.bytes.max(1) as f64);
        let beyond = (self.other as f64 / bytes).min(1.0);
        let lean = (plain as f64 * (1.0 - beyond) + other as f64 * beyond) / 1_000.0;
        let words = root as f64 / 1_000.0;
        let variance =
            texts * texts * (lean * lean / (1.0 + texts / KINDS) + FLOOR * FLOOR) + words * words * texts;
        let off = variance.sqrt() as u64;
        let off = usize::try_from(off + 1 + by_rule).unwrap_or(usize::MAX);
        (tokens.saturating_sub(off).max(1), tokens.saturating_add(off))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn width(family: Family, text: &str, times: usize) -> f64 {
        let text = text.repeat(times);
        let tokens = family.text(&text);
        let mut bounds = Bounds::default();
        bounds.add(&text, tokens);
        let (low, high) = bounds.of(tokens, Estimator::Calibrated(family));
        assert!(low <= tokens && tokens <= high);
        (high - low) as f64 / tokens as f64
    }

    #[test]
    fn bounds_are_as_narrow_as_they_are_said_to_be() {
        for family in Family::ALL {
            let words = "The parser keeps what it has read, and answers with the line. ";
            let [thousand, many] = [72, 3_600].map(|times| width(family, words, times));
            assert!(thousand <= 0.24 && many <= 0.06, "{family:?}: {thousand}, {many}");
            assert!(width(family, words, 1) > thousand);
        }
    }

    #[test]
    fn nothing_is_off_by_nothing_and_anything_costs_something() {
        assert_eq!(Bounds::default().of(0, Estimator::default()), (0, 0));
        let mut bounds = Bounds::default();
        bounds.add("a", 1);
        let (low, high) = bounds.of(1, Estimator::default());
        assert!(low == 1 && high >= 2);
        // By rule alone.
        assert_eq!(Bounds::default().of(100, Estimator::default()), (49, 151));
    }
}
