//! Arithmetic of budgets: integers only, and no overflow at any size.

/// The window that the documents' literal numbers were written for.
const WRITTEN_FOR: usize = 200_000;
/// Below this window the literals cannot hold together: the reserves of `S3.2` alone would leave next to nothing.
const SMALL: usize = 48_000;

/// A document's literal number of tokens, for this window.
///
/// * From 200,000 tokens up it is the literal.
/// * From 48,000 it is the literal too, unless that is more than three quarters of the window (the share of the
///   documents' largest threshold, 150,000 of 200,000): then three quarters, or its own share of 200,000 if greater.
/// * Below 48,000 it is in proportion to 200,000, rounded down, but not below `minimum` (nor above the literal).
pub fn scale(literal: usize, window: usize, minimum: usize) -> usize {
    let share = portion(literal, window, WRITTEN_FOR).min(literal);
    if window < SMALL {
        share.max(minimum.min(literal))
    } else {
        literal.min(share.max(portion(window, 3, 4)))
    }
}

/// `part` of `whole` in tenths of a percent, halves up: 725 is 72.5 %. An empty whole is 0; above 100 % is possible.
pub fn percent(part: usize, whole: usize) -> usize {
    if whole == 0 {
        return 0;
    }
    let (part, whole) = (part as u128, whole as u128);
    usize::try_from((part * 2_000 + whole) / (whole * 2)).unwrap_or(usize::MAX)
}

/// `value × numerator / denominator`, rounded down.
fn portion(value: usize, numerator: usize, denominator: usize) -> usize {
    let exact = value as u128 * numerator as u128 / denominator as u128;
    usize::try_from(exact).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn literals_hold_at_200_000_and_above() {
        for literal in [50, 8_000, 13_000, 20_000, 150_000, 170_616, 199_999] {
            assert_eq!(scale(literal, 200_000, 1_000), literal);
            assert_eq!(scale(literal, 1_000_000, 1_000), literal);
        }
    }

    #[test]
    fn literals_hold_from_48_000_unless_the_window_is_too_small_for_them() {
        assert_eq!(scale(8_000, 48_000, 500), 8_000);
        assert_eq!(scale(33_000, 64_000, 500), 33_000);
        assert_eq!(scale(150_000, 128_000, 500), 96_000);
        assert_eq!(scale(40_000, 48_000, 500), 36_000);
        assert_eq!(scale(190_000, 128_000, 500), 121_600);
    }

    #[test]
    fn small_windows_scale_in_proportion_down_to_the_minimum() {
        assert_eq!(scale(20_000, 32_000, 1_000), 3_200);
        assert_eq!(scale(13_000, 32_000, 1_000), 2_080);
        assert_eq!(scale(8_000, 8_000, 1_000), 1_000);
        assert_eq!(scale(8_000, 0, 1_000), 1_000);
        // A minimum never raises a number above what the document says.
        assert_eq!(scale(50, 32_000, 1_000), 50);
    }

    #[test]
    fn s2_9_percent_has_one_decimal() {
        assert_eq!(percent(145_000, 200_000), 725);
        assert_eq!(percent(1, 3), 333);
        assert_eq!(percent(1, 2_000), 1);
        assert_eq!(percent(0, 7), 0);
        assert_eq!(percent(3, 2), 1_500);
        assert_eq!(percent(5, 0), 0);
    }

    proptest! {
        #[test]
        fn never_overflows_and_never_exceeds_the_literal(literal: usize, window: usize, minimum: usize) {
            prop_assert!(scale(literal, window, minimum) <= literal);
            percent(literal, window);
        }

        #[test]
        fn grows_with_the_window(literal in 0..400_000_usize, window in 0..400_000_usize, more in 0..400_000_usize) {
            prop_assert!(scale(literal, window, 1_000) <= scale(literal, window + more, 1_000));
        }
    }
}
