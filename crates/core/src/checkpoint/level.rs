//! How detailed a checkpoint is (`S5.7`).

use crate::wire::record::{Json, ReadJson, Unreadable, WriteJson};
use serde::{Deserialize, Serialize};

/// The window that the lengths of checkpoints are written for.
const WRITTEN_FOR: usize = 32_768;

/// How detailed a checkpoint is. Stored and reported as its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum Level {
    /// 1: what it cannot do without.
    Compact,
    /// 2: the main points.
    Moderate,
    /// 3: with details.
    Detailed,
}

impl From<Level> for u8 {
    fn from(level: Level) -> u8 {
        match level {
            Level::Compact => 1,
            Level::Moderate => 2,
            Level::Detailed => 3,
        }
    }
}

impl TryFrom<u8> for Level {
    type Error = &'static str;

    fn try_from(number: u8) -> Result<Level, Self::Error> {
        match number {
            1 => Ok(Level::Compact),
            2 => Ok(Level::Moderate),
            3 => Ok(Level::Detailed),
            _ => Err("a level is 1, 2 or 3"),
        }
    }
}

impl ReadJson<'_> for Level {
    fn read(json: &mut Json<'_>) -> std::result::Result<Self, Unreadable> {
        Level::try_from(u8::read(json)?).map_err(Unreadable::no)
    }
}

impl WriteJson for Level {
    fn write(&self, out: &mut Vec<u8>) {
        u8::from(*self).write(out);
    }
}

/// The length that a level asks for, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// At least about this many.
    pub low: usize,
    /// At most about this many.
    pub high: usize,
}

/// The numbers of levels, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    /// More than this compressed is level 1.
    pub compact_above: usize,
    /// More than this, level 2; the rest, level 3.
    pub moderate_above: usize,
    /// Target lengths of levels 1 to 3, for a window up to 32K.
    pub compact: Range,
    /// Of level 2.
    pub moderate: Range,
    /// Of level 3.
    pub detailed: Range,
}

/// The document's numbers.
pub const NUMBERS: Levels = Levels {
    compact_above: 3_000,
    moderate_above: 2_000,
    compact: Range { low: 50, high: 100 },
    moderate: Range { low: 150, high: 300 },
    detailed: Range { low: 300, high: 500 },
};

impl Levels {
    /// The level of a checkpoint that replaces `tokens` tokens.
    pub fn of(&self, tokens: usize) -> Level {
        if tokens > self.compact_above {
            Level::Compact
        } else if tokens > self.moderate_above {
            Level::Moderate
        } else {
            Level::Detailed
        }
    }

    /// The length that a level asks for in a window of `window` tokens.
    pub fn target(&self, level: Level, window: usize) -> Range {
        let range = match level {
            Level::Compact => self.compact,
            Level::Moderate => self.moderate,
            Level::Detailed => self.detailed,
        };
        Range { low: in_proportion(range.low, window), high: in_proportion(range.high, window) }
    }
}

/// Tokens in a window of `window` tokens: in one above 32K, in proportion more.
pub fn in_proportion(tokens: usize, window: usize) -> usize {
    let exact = tokens as u128 * window.max(WRITTEN_FOR) as u128 / WRITTEN_FOR as u128;
    usize::try_from(exact).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_7_the_level_follows_from_the_tokens_compressed() {
        let levels = [(0, 3), (2_000, 3), (2_001, 2), (3_000, 2), (3_001, 1), (usize::MAX, 1)];
        for (tokens, level) in levels {
            assert_eq!(u8::from(NUMBERS.of(tokens)), level, "{tokens}");
        }
    }

    #[test]
    fn s5_7_target_lengths_grow_in_proportion_above_32k_only() {
        for window in [1_000, 8_000, 32_768] {
            assert_eq!(NUMBERS.target(Level::Compact, window), Range { low: 50, high: 100 });
            assert_eq!(NUMBERS.target(Level::Moderate, window), Range { low: 150, high: 300 });
            assert_eq!(NUMBERS.target(Level::Detailed, window), Range { low: 300, high: 500 });
        }
        assert_eq!(NUMBERS.target(Level::Compact, 65_536), Range { low: 100, high: 200 });
        assert_eq!(NUMBERS.target(Level::Detailed, 131_072), Range { low: 1_200, high: 2_000 });
        assert_eq!(NUMBERS.target(Level::Compact, usize::MAX).high, usize::MAX / WRITTEN_FOR * 100 + 99);
    }

    #[test]
    fn levels_are_stored_as_their_numbers() {
        for level in [Level::Compact, Level::Moderate, Level::Detailed] {
            let text = serde_json::to_string(&level).unwrap();
            assert_eq!(text, u8::from(level).to_string());
            assert_eq!(serde_json::from_str::<Level>(&text).unwrap(), level);
        }
        assert!(serde_json::from_str::<Level>("4").is_err());
    }
}
