//! How far an estimate may be off: bounds that hold for about 99 of 100 held-out texts.
//!
//! What an estimate is off by grows with a text in two ways. Every text has a kind, which leans to one side: by so much of its
//! tokens, however long it is, and by another share where its characters are beyond ASCII. And every word is off by itself:
//! that grows with the root. Several texts are of several kinds, which lean to both sides: then the leanings add up as the root of
//! their squares, but for what the family leans by in all of them. The shares are fitted to the residuals of held-out text by
//! `bench/fit/bounds.py`, which also judges them (`bench/reports/bounds.json`).

use super::{Estimator, Family};
use context_compactor_estimator::beyond_ascii;

/// What a family leans by in all texts, at most.
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
            Family::O200k => spread(21, 75, 1_850),
            Family::Cl100k => spread(18, 15, 2_400),
            Family::Claude3 => spread(66, 155, 1_200),
            Family::Claude47 => spread(51, 85, 1_400),
            Family::Gemini => spread(33, 45, 1_750),
            Family::Llama3 => spread(42, 35, 1_800),
            Family::Qwen3 => spread(36, 90, 1_550),
        }
    }
}

/// What bounds depend on, of all that was estimated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// Tokens of texts, and the squares of each text's.
    texts: u64,
    squares: u64,
    /// Bytes of texts, and those of characters beyond ASCII.
    bytes: u64,
    other: u64,
}

crate::wire::record!(Bounds {
    texts = "texts",
    squares = "squares",
    bytes = "bytes",
    other = "other" or default,
} nothing if is_empty);

impl Bounds {
    /// True where no text was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Of these texts and others.
    pub(crate) fn and(&self, others: &Bounds) -> Bounds {
        self.with(others, u64::saturating_add)
    }

    /// Without others, which are among these.
    pub(crate) fn without(&self, others: &Bounds) -> Bounds {
        self.with(others, u64::saturating_sub)
    }

    fn with(&self, others: &Bounds, by: fn(u64, u64) -> u64) -> Bounds {
        Bounds {
            texts: by(self.texts, others.texts),
            squares: by(self.squares, others.squares),
            bytes: by(self.bytes, others.bytes),
            other: by(self.other, others.other),
        }
    }

    /// Adds a text that is estimated at `tokens`.
    pub(crate) fn add(&mut self, text: &str, tokens: usize) {
        let tokens = tokens as u64;
        self.texts += tokens;
        self.squares = self.squares.saturating_add(tokens.saturating_mul(tokens));
        self.bytes += text.len() as u64;
        self.other += beyond_ascii(text) as u64;
    }

    /// The bounds of `tokens` tokens, of which those texts are a part.
    pub(crate) fn of(&self, tokens: usize, estimator: Estimator) -> (usize, usize) {
        let (below, above) = self.off(tokens, estimator);
        let least = if below == 0 { 0 } else { usize::from(estimator.counts_for().is_some()) };
        (tokens.saturating_sub(below).max(least), tokens.saturating_add(above))
    }

    /// How far below and above `tokens` those bounds are. What is counted by rule may be half of that off.
    pub(crate) fn off(&self, tokens: usize, estimator: Estimator) -> (usize, usize) {
        let by_rule = (tokens as u64).saturating_sub(self.texts) / 2;
        let Estimator::Calibrated(family) = estimator else {
            // Four characters a token may be one, or eight.
            return (tokens.div_ceil(2), tokens.saturating_mul(5));
        };
        if tokens == 0 {
            return (0, 0);
        }
        let Spread { plain, other, root } = Spread::of(family);
        let (texts, bytes) = (self.texts as f64, self.bytes.max(1) as f64);
        let beyond = (self.other as f64 / bytes).min(1.0);
        let lean = (plain as f64 * (1.0 - beyond) + other as f64 * beyond) / 1_000.0;
        let words = root as f64 / 1_000.0;
        let kinds = (lean * lean * self.squares as f64 + FLOOR * FLOOR * texts * texts).sqrt();
        let off = (kinds + words * texts.sqrt()) as u64;
        let off = usize::try_from(off + 1 + by_rule).unwrap_or(usize::MAX);
        (off, off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "The parser keeps what it has read, and answers with the line. ";

    /// Of `texts` texts, each the words so many times.
    fn width(family: Family, times: usize, texts: usize) -> f64 {
        let text = WORDS.repeat(times);
        let tokens = family.text(&text);
        let mut bounds = Bounds::default();
        (0..texts).for_each(|_| bounds.add(&text, tokens));
        let tokens = texts * tokens;
        let (low, high) = bounds.of(tokens, Estimator::Calibrated(family));
        assert!(low <= tokens && tokens <= high);
        (high - low) as f64 / tokens as f64
    }

    #[test]
    fn bounds_are_as_narrow_as_they_are_said_to_be() {
        for family in Family::ALL {
            let [one, thousand, many] = [1, 72, 3_600].map(|times| width(family, times, 1));
            assert!(thousand <= 0.25 && many <= 0.16, "{family:?}: {thousand}, {many}");
            assert!(one > thousand && thousand > many);
        }
    }

    #[test]
    fn p24_what_a_kind_leans_by_stays_in_one_text_and_averages_out_over_several() {
        for family in Family::ALL {
            let [once, tenfold] = [width(family, 3_600, 1), width(family, 36_000, 1)];
            // Only the words of a text average out.
            assert!(tenfold > 0.75 * once, "{family:?}: {tenfold} of {once}");
            let [one, fifty] = [width(family, 3_600, 1), width(family, 72, 50)];
            assert!(fifty < one.max(0.08), "{family:?}: {fifty}, {one} of one text");
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
