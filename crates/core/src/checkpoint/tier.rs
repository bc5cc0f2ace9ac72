//! Windows by size, and what the system prompt may take of each (`S5.9`).

/// A size of window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Up to 4K.
    Minimal,
    /// Up to 8K.
    Basic,
    /// Up to 16K.
    Standard,
    /// Up to 32K.
    Premium,
    /// Larger.
    Ultra,
}

impl Tier {
    /// Every tier with its id.
    pub const ALL: [(&'static str, Tier); 5] = [
        ("TIER_1_MINIMAL", Tier::Minimal),
        ("TIER_2_BASIC", Tier::Basic),
        ("TIER_3_STANDARD", Tier::Standard),
        ("TIER_4_PREMIUM", Tier::Premium),
        ("TIER_5_ULTRA", Tier::Ultra),
    ];

    /// The tier of a window. 4K is 4,096 here, so that 4,000 and 4,096 are both.
    pub fn of(window: usize) -> Tier {
        match window {
            0..=4_096 => Tier::Minimal,
            4_097..=8_192 => Tier::Basic,
            8_193..=16_384 => Tier::Standard,
            16_385..=32_768 => Tier::Premium,
            _ => Tier::Ultra,
        }
    }

    /// What the system prompt may take, in tokens.
    pub fn prompt_budget(self) -> usize {
        match self {
            Tier::Minimal => 200,
            Tier::Basic => 500,
            Tier::Standard => 1_000,
            Tier::Premium | Tier::Ultra => 1_500,
        }
    }
}

/// Tokens that checkpoints may take of a prompt budget beside the system prompt.
pub fn checkpoint_budget(prompt_budget: usize, system_prompt_tokens: usize) -> usize {
    prompt_budget.saturating_sub(system_prompt_tokens)
}

/// The tokens above which a session compresses: `share` of what is left of `limit` after the prompt's budget and the
/// margin.
pub fn compress_above(limit: usize, prompt_budget: usize, margin: usize, share: f64) -> usize {
    (limit.saturating_sub(prompt_budget).saturating_sub(margin) as f64 * share) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_9_tiers_have_ids_and_prompt_budgets() {
        let budgets: Vec<usize> = Tier::ALL.iter().map(|(_, tier)| tier.prompt_budget()).collect();
        assert_eq!(budgets, [200, 500, 1_000, 1_500, 1_500]);
        for (window, id) in [
            (2_000, "TIER_1_MINIMAL"),
            (4_096, "TIER_1_MINIMAL"),
            (4_097, "TIER_2_BASIC"),
            (8_192, "TIER_2_BASIC"),
            (8_193, "TIER_3_STANDARD"),
            (16_384, "TIER_3_STANDARD"),
            (16_385, "TIER_4_PREMIUM"),
            (32_768, "TIER_4_PREMIUM"),
            (32_769, "TIER_5_ULTRA"),
            (200_000, "TIER_5_ULTRA"),
        ] {
            let found = Tier::ALL.iter().find(|(name, _)| *name == id).unwrap().1;
            assert_eq!(Tier::of(window), found, "{window}");
        }
    }

    #[test]
    fn s5_9_what_is_left_for_checkpoints_is_never_negative() {
        assert_eq!(checkpoint_budget(1_500, 400), 1_100);
        assert_eq!(checkpoint_budget(200, 400), 0);
    }

    #[test]
    fn s5_9_compresses_above_three_quarters_of_the_room() {
        assert_eq!(compress_above(8_000, 500, 1_000, 0.75), 4_875);
        assert_eq!(compress_above(200_000, 1_500, 1_000, 0.75), 148_125);
        assert_eq!(compress_above(1_000, 500, 1_000, 0.75), 0);
    }
}
