//! When preset `balanced` acts, and what it leaves: one law for every window (`W2`, `W3`).

/// Up to this many tokens of the window it acts at three quarters of it,
const SHARE_UP_TO: usize = 96_000;
/// A compaction leaves a prompt of this share of the window, in percent.
const LEAVES: usize = 30;
/// And no more than this share of the tokens at which it comes, in percent: or the next one would come at once.
const LEAVES_OF_TRIGGER: usize = 60;
/// Where the price decides, a compaction leaves this share of the tokens from which on it may come, in percent.
const LEAVES_OF_FLOOR: usize = 40;
/// The price makes no smaller prompt pay, whatever the window.
const FLOOR: usize = 16_000;
/// The window that the number of newest results is written for, which are not cleared,
const RESULTS_FOR: usize = 200_000;
/// and how many these are at least.
const LEAST_RESULTS: usize = 3;

/// Tokens at which it acts: three quarters of the window up to 128,000 tokens, 96,000 up to 192,000, and half of it above.
/// Of what can be sent a tenth stays free: for the next turn, and for an estimate that is off.
pub(super) fn acts_at(window: usize, hard_limit: usize) -> usize {
    let at = (window / 4 * 3).min(SHARE_UP_TO).max(window / 2);
    at.min(hard_limit / 10 * 9).max(1)
}

/// Tokens of the prompt that a compaction leaves which comes at `trigger`, and from `floor` on where the price decides.
pub(super) fn leaves(window: usize, trigger: usize, floor: Option<usize>) -> usize {
    let share = (window / 100 * LEAVES).min(trigger / 100 * LEAVES_OF_TRIGGER);
    floor.map_or(share, |floor| share.min(floor / 100 * LEAVES_OF_FLOOR))
}

/// Tokens below which no price makes it act (`W4`).
pub(super) fn price_floor(window: usize, trigger: usize) -> usize {
    (window / 4).max(FLOOR).min(trigger)
}

/// How many of the newest results stay: in a window of 200,000 tokens `results`, which take about an eighth of it.
pub(super) fn recent_results(results: usize, window: usize) -> usize {
    (window / (RESULTS_FOR / results)).max(LEAST_RESULTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w2_the_trigger_is_one_number_for_each_window() {
        let at = |window| acts_at(window, window);
        let found = [8_000, 32_000, 128_000, 160_000, 192_000, 200_000, 1_000_000].map(at);
        assert_eq!(found, [6_000, 24_000, 96_000, 96_000, 96_000, 100_000, 500_000]);
        assert_eq!(acts_at(32_000, 24_000), 21_600, "a tenth of what can be sent stays free");
        assert_eq!(acts_at(1_000, 1), 1);
    }

    #[test]
    fn w3_the_larger_the_window_the_later_it_acts_and_the_more_it_leaves() {
        let (mut before, mut left) = (0, 0);
        for window in (4_000..2_000_000).step_by(997) {
            let hard_limit = window - 16_384.min(window / 4);
            let trigger = acts_at(window, hard_limit);
            let leaves = leaves(window, trigger, None);
            assert!(trigger >= before && leaves >= left, "{window}: {trigger}, {leaves}");
            assert!(trigger * 10 <= hard_limit * 9, "{window}: {trigger} of {hard_limit}");
            assert!((25..=35).contains(&(leaves * 100 / window)), "{window}: {leaves}");
            (before, left) = (trigger, leaves);
        }
    }

    #[test]
    fn w17_the_newest_results_that_stay_are_in_proportion_to_the_window() {
        let found =
            [4_000, 32_000, 50_000, 128_000, 200_000, 1_000_000].map(|window| recent_results(16, window));
        assert_eq!(found, [3, 3, 4, 10, 16, 80]);
    }

    #[test]
    fn w4_the_price_acts_from_a_quarter_of_the_window_on_and_leaves_much_less() {
        assert_eq!(price_floor(200_000, 100_000), 50_000);
        assert_eq!(price_floor(32_000, 21_600), 16_000);
        assert_eq!(price_floor(8_000, 5_400), 5_400);
        assert_eq!(leaves(200_000, 100_000, Some(50_000)), 20_000);
        assert_eq!(leaves(200_000, 30_000, None), 18_000);
    }
}
