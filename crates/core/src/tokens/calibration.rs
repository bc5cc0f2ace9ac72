//! What a provider counted corrects what was estimated of the whole prompt, for a session and each of its models.
//!
//! A report says what one prompt cost, and that prompt had been estimated too: the *anchor*. From there
//!
//! * a longer prompt costs what was reported and the estimate of what came after it, times the *factor*: reported growth
//!   by estimated growth between reports, drawn to 1 as long as little was seen, and never below a half or above two;
//! * a shorter one, as after a compaction, costs the *overhead* and its share of the rest. The overhead is what the
//!   provider counts and nobody shows us (a system prompt, tools, injected text), learned where the prompt was shortest.
//!
//! Integers only: the same prompt costs the same on every platform.

use crate::wire::record::{Json, ReadJson, Unreadable, WriteJson};
use serde::Serialize;
use std::rc::Rc;

/// Tokens of growth, reported and estimated, that are taken to agree before any was seen.
const PRIOR: u64 = 1_500;
/// Growth after which older growth counts half.
const MEMORY: u64 = 100_000;
/// A report that is so many times below the estimate is of another prompt.
const OTHER: u64 = 4;
/// The same of a prompt that begins with the one that was reported before: one without what was read from a cache, as a rule.
const LESS: u64 = 2;
/// Models that are remembered: the latest.
const MODELS: usize = 8;
/// Parts of a factor of 1.
const ONE: u64 = 10_000;

/// A prompt that was sent: its estimate, and the view of the context that it was of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Estimated tokens, uncorrected.
    pub(crate) estimated: usize,
    /// Number of the view.
    pub(crate) generation: u64,
}

/// What was learned from the reports of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Calibrations(Vec<Rc<Calibration>>);

impl ReadJson<'_> for Calibrations {
    fn read(json: &mut Json<'_>) -> Result<Self, Unreadable> {
        ReadJson::read(json).map(Calibrations)
    }
}

impl WriteJson for Calibrations {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

/// What was learned of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Calibration {
    /// As the app names it; empty where it does not.
    model: String,
    /// Reports so far.
    reports: u64,
    /// The last one: tokens reported and estimated, and the view that it was of.
    reported: u64,
    estimated: u64,
    generation: u64,
    /// Growth between reports of one view.
    grown_reported: u64,
    grown_estimated: u64,
    /// The report of the shortest prompt.
    least_reported: u64,
    least_estimated: u64,
}

crate::wire::record!(Calibration {
    model = "model",
    reports = "reports",
    reported = "reported",
    estimated = "estimated",
    generation = "generation",
    grown_reported = "grownReported",
    grown_estimated = "grownEstimated",
    least_reported = "leastReported",
    least_estimated = "leastEstimated",
});

/// How an estimate is corrected.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Corrected {
    /// The model; `None` where the app names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Reports that it was learned from.
    pub reports: u64,
    /// Tokens of the prompt that was reported last.
    pub reported: u64,
    /// What that prompt was estimated at.
    pub estimated: u64,
    /// By what the estimate of what comes after it is multiplied.
    pub factor: f64,
    /// Tokens that no message, system prompt or tool of the session accounts for.
    pub overhead: u64,
    /// The context still begins with that prompt; otherwise it was compacted or gone back from since.
    pub anchored: bool,
}

impl Calibrations {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What was learned of a model.
    pub(crate) fn of(&self, model: &str) -> Option<&Rc<Calibration>> {
        self.0.iter().find(|known| known.model == model)
    }

    /// Reports so far: of two sessions' rows that one knows more that has more.
    pub(crate) fn reports(&self) -> u64 {
        self.0.iter().map(|known| known.reports).sum()
    }

    /// Learns that a prompt cost `reported` tokens; false for one that cannot be the one that was sent.
    pub(crate) fn report(&mut self, model: &str, sent: Sent, reported: u64) -> bool {
        let at = self.0.iter().position(|known| known.model == model);
        let known = at.and_then(|at| self.0.get(at));
        let (expected, times) = match known.filter(|known| known.goes_on(sent.estimated, sent.generation)) {
            Some(known) => (known.correct(sent.estimated), LESS),
            None => (sent.estimated, OTHER),
        };
        if reported == 0 || reported.saturating_mul(times) < expected as u64 {
            return false;
        }
        let mut known = match at {
            Some(at) => Rc::unwrap_or_clone(self.0.remove(at)),
            None => Calibration { model: model.into(), ..Calibration::default() },
        };
        known.report(sent, reported);
        self.0.push(Rc::new(known));
        let forgotten = self.0.len().saturating_sub(MODELS);
        self.0.drain(..forgotten);
        true
    }
}

impl Calibration {
    fn report(&mut self, sent: Sent, reported: u64) {
        let estimated = sent.estimated as u64;
        if self.reports > 0 && self.generation == sent.generation {
            let more_reported = reported.saturating_sub(self.reported);
            let more_estimated = estimated.saturating_sub(self.estimated);
            // Growth that is far from its estimate is of something else: text that was injected, a prompt that changed.
            if more_reported <= more_estimated.saturating_mul(2)
                && more_estimated <= more_reported.saturating_mul(2)
            {
                self.grown_reported += more_reported;
                self.grown_estimated += more_estimated;
                if self.grown_estimated > MEMORY {
                    self.grown_reported /= 2;
                    self.grown_estimated /= 2;
                }
            }
        }
        // One that is about as short is newer.
        if self.reports == 0 || estimated <= self.least_estimated.saturating_add(self.least_estimated / 4) {
            self.least_reported = reported;
            self.least_estimated = estimated;
        }
        self.reports += 1;
        (self.reported, self.estimated, self.generation) = (reported, estimated, sent.generation);
    }

    /// In parts of [`ONE`].
    fn factor(&self) -> u64 {
        let factor = times(ONE, self.grown_reported + PRIOR, self.grown_estimated + PRIOR);
        factor.clamp(ONE / 2, ONE * 2)
    }

    fn overhead(&self) -> u64 {
        let seen = times(self.least_estimated, self.factor(), ONE);
        self.least_reported.saturating_sub(seen).min(self.reported)
    }

    /// Tokens of a prompt that is estimated at `estimated`: never fewer for a longer one.
    pub(crate) fn correct(&self, estimated: usize) -> usize {
        let estimated = estimated as u64;
        let tokens = match estimated.checked_sub(self.estimated) {
            Some(more) => self.reported.saturating_add(times(more, self.factor(), ONE)),
            None => self.overhead() + times(self.reported - self.overhead(), estimated, self.estimated),
        };
        usize::try_from(tokens).unwrap_or(usize::MAX)
    }

    /// A prompt of view `generation` that is estimated at so many tokens begins with the one that was reported last.
    fn goes_on(&self, estimated: usize, generation: u64) -> bool {
        generation == self.generation && estimated as u64 >= self.estimated
    }

    /// Tokens of a prompt that were reported: none of one that does not begin with the prompt that was.
    pub(crate) fn counted(&self, estimated: usize, generation: u64) -> usize {
        let goes_on = self.goes_on(estimated, generation);
        if goes_on { usize::try_from(self.reported).unwrap_or(usize::MAX) } else { 0 }
    }

    /// How it corrects the estimate of a context of view `generation`.
    pub(crate) fn explain(&self, generation: u64) -> Corrected {
        Corrected {
            model: (!self.model.is_empty()).then(|| self.model.clone()),
            reports: self.reports,
            reported: self.reported,
            estimated: self.estimated,
            factor: self.factor() as f64 / ONE as f64,
            overhead: self.overhead(),
            anchored: self.generation == generation,
        }
    }
}

/// `value × numerator / denominator`, rounded to the nearest.
fn times(value: u64, numerator: u64, denominator: u64) -> u64 {
    let exact = (u128::from(value) * u128::from(numerator) + u128::from(denominator / 2))
        / u128::from(denominator.max(1));
    u64::try_from(exact).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn after(reports: &[(usize, u64)]) -> Calibration {
        let mut known = Calibrations::default();
        for (estimated, reported) in reports {
            assert!(known.report("m", Sent { estimated: *estimated, generation: 1 }, *reported));
        }
        Calibration::clone(known.of("m").unwrap())
    }

    #[test]
    fn the_prompt_that_was_reported_costs_what_was_reported() {
        let known = after(&[(500, 20_480), (9_000, 30_000)]);
        assert_eq!(known.correct(9_000), 30_000);
    }

    #[test]
    fn what_nobody_shows_us_is_overhead_and_what_comes_after_is_added() {
        let known = after(&[(500, 20_500)]);
        assert_eq!(known.explain(1).overhead, 20_000);
        assert_eq!(known.correct(1_500), 21_500);
        assert_eq!(known.correct(0), 20_000);
    }

    #[test]
    fn another_tokenizer_is_learned_from_growth() {
        let known = after(&[(1_000, 1_230), (51_000, 62_730), (101_000, 124_230)]);
        let Corrected { factor, overhead, .. } = known.explain(1);
        assert!((1.22..=1.24).contains(&factor), "{factor}");
        assert!(overhead < 20, "{overhead}");
        assert!(known.correct(111_000).abs_diff(136_530) < 100);
        // After a compaction.
        assert!(known.correct(10_000).abs_diff(12_300) < 50);
        assert!(!known.explain(2).anchored);
    }

    #[test]
    fn growth_that_is_something_else_moves_the_anchor_and_not_the_factor() {
        // Between the reports the app injected 30,000 tokens.
        let known = after(&[(1_000, 1_000), (2_000, 32_000), (3_000, 33_000)]);
        assert_eq!(known.explain(1).factor, 1.0);
        assert_eq!(known.correct(4_000), 34_000);
    }

    #[test]
    fn views_between_reports_are_no_growth() {
        let mut known = Calibrations::default();
        assert!(known.report("m", Sent { estimated: 10_000, generation: 1 }, 10_000));
        assert!(known.report("m", Sent { estimated: 11_000, generation: 2 }, 12_000));
        assert_eq!(known.of("m").unwrap().explain(2).factor, 1.0);
    }

    #[test]
    fn what_cannot_be_the_prompt_is_refused_and_models_are_told_apart() {
        let mut known = Calibrations::default();
        let sent = Sent { estimated: 10_000, generation: 1 };
        assert!(!known.report("m", sent, 0));
        assert!(!known.report("m", sent, 2_000));
        assert!(known.is_empty());
        for nth in 0..20 {
            assert!(known.report(&format!("m{nth}"), sent, 10_000 + nth));
        }
        assert_eq!(known.0.len(), MODELS);
        assert_eq!(known.of("m0"), None);
        assert_eq!(known.of("m19").unwrap().correct(10_000), 10_019);
    }

    proptest! {
        #[test]
        fn never_falls_never_overflows_and_stays_bounded(
            reports in prop::collection::vec((0..2_000_000_usize, 1..2_000_000_u64, 0..3_u64), 1..12),
            at in 0..3_000_000_usize,
            more in 0..1_000_000_usize,
        ) {
            let mut known = Calibrations::default();
            for (estimated, reported, generation) in reports {
                known.report("", Sent { estimated, generation }, reported);
            }
            if let Some(known) = known.of("") {
                prop_assert!(known.correct(at) <= known.correct(at + more));
                prop_assert!(known.correct(at + more) <= known.correct(at).max(known.reported as usize) + 2 * (at + more));
                prop_assert!((0.5..=2.0).contains(&known.explain(0).factor));
                known.correct(usize::MAX);
            }
        }
    }
}
