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
//!
//! What was reported is no estimate: off may be what came after it, times the factor. How far that is off is seen at each report.
//! Bounds that hold for texts of all kinds are too wide for those of one session: they become [`WIDTHS`] standard deviations of
//! what was seen, among which what is known of other sessions counts as [`SEEN`] reports. They never become wider.

use super::{Bounds, Estimator};
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
/// Parts of what the bounds of new text allow.
const WHOLE: u64 = 1_000;
/// What growth is off by, of that, before any was seen; and as how many reports that counts. Chosen by one half of recorded sessions.
const USUAL: u64 = 300;
const SEEN: u64 = 4;
/// Standard deviations that bounds allow.
const WIDTHS: u64 = 4;
/// A report that is off by more than so many times what was allowed counts as that.
const MOST: u64 = 4;
/// Reports after which older ones count half.
const RECENT: u64 = 64;

/// A prompt that was sent: its estimate, and the view of the context that it was of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Estimated tokens, uncorrected.
    pub(crate) estimated: usize,
    /// Number of the view.
    pub(crate) generation: u64,
    /// What the bounds of that estimate depend on.
    pub(crate) texts: Bounds,
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
    texts: Bounds,
    /// Growth between reports of one view.
    grown_reported: u64,
    grown_estimated: u64,
    /// How often that was compared, and the squares of what it was off by, in parts of [`WHOLE`].
    compared: u64,
    squares: u64,
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
    texts = "texts" or nothing,
    compared = "compared" or nothing,
    squares = "squares" or nothing,
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
    pub(crate) fn report(&mut self, model: &str, sent: Sent, reported: u64, estimator: Estimator) -> bool {
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
        known.report(sent, reported, estimator);
        self.0.push(Rc::new(known));
        let forgotten = self.0.len().saturating_sub(MODELS);
        self.0.drain(..forgotten);
        true
    }
}

impl Calibration {
    fn report(&mut self, sent: Sent, reported: u64, estimator: Estimator) {
        let estimated = sent.estimated as u64;
        if self.reports > 0 && self.generation == sent.generation {
            let more_reported = reported.saturating_sub(self.reported);
            let more_estimated = estimated.saturating_sub(self.estimated);
            // Growth that is far from its estimate is of something else: text that was injected, a prompt that changed.
            if more_reported <= more_estimated.saturating_mul(2)
                && more_estimated <= more_reported.saturating_mul(2)
            {
                if !self.texts.is_empty() {
                    let texts = sent.texts.without(&self.texts);
                    let more = sent.estimated.saturating_sub(self.estimated as usize);
                    let (allowed, _) = texts.off(more, estimator);
                    self.compare(more_reported, more_estimated, allowed as u64);
                }
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
        self.texts = sent.texts;
    }

    /// Sees how far growth was off.
    fn compare(&mut self, reported: u64, estimated: u64, allowed: u64) {
        let off = reported.abs_diff(times(estimated, self.factor(), ONE));
        let off = times(off, WHOLE * ONE, allowed.max(1).saturating_mul(self.factor())).min(MOST * WHOLE);
        self.compared += 1;
        self.squares += off * off;
        if self.compared > RECENT {
            self.compared /= 2;
            self.squares /= 2;
        }
    }

    /// How much of what the bounds of new text allow is allowed here, in parts of [`WHOLE`].
    fn width(&self) -> u64 {
        if self.compared == 0 {
            return WHOLE;
        }
        let mean = (SEEN * USUAL * USUAL + self.squares) / (SEEN + self.compared);
        (WIDTHS * WIDTHS * mean).isqrt().min(WHOLE)
    }

    /// How far below and above its tokens a prompt of view `generation` may be, that is estimated at so many.
    pub(crate) fn off(
        &self,
        estimated: usize,
        generation: u64,
        texts: &Bounds,
        estimator: Estimator,
    ) -> (usize, usize) {
        let goes_on = self.goes_on(estimated, generation) && !self.texts.is_empty();
        let (below, above) = match goes_on {
            true => texts.without(&self.texts).off(estimated - self.estimated as usize, estimator),
            false => texts.off(estimated, estimator),
        };
        let width = if goes_on { self.width() } else { WHOLE };
        let of = |off: usize| {
            usize::try_from(times(off as u64, self.factor() * width, ONE * WHOLE)).unwrap_or(usize::MAX)
        };
        (of(below), of(above))
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

    /// One text of so many tokens.
    fn texts(tokens: usize) -> Bounds {
        let mut texts = Bounds::default();
        texts.add(&"word ".repeat(tokens.clamp(1, 1_000)), tokens);
        texts
    }

    fn sent(estimated: usize, generation: u64) -> Sent {
        Sent { estimated, generation, texts: texts(estimated) }
    }

    fn after(reports: &[(usize, u64)]) -> Calibration {
        let mut known = Calibrations::default();
        for (estimated, reported) in reports {
            assert!(known.report("m", sent(*estimated, 1), *reported, Estimator::default()));
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
        assert!(known.report("m", sent(10_000, 1), 10_000, Estimator::default()));
        assert!(known.report("m", sent(11_000, 2), 12_000, Estimator::default()));
        assert_eq!(known.of("m").unwrap().explain(2).factor, 1.0);
    }

    #[test]
    fn what_cannot_be_the_prompt_is_refused_and_models_are_told_apart() {
        let mut known = Calibrations::default();
        let (sent, estimator) = (sent(10_000, 1), Estimator::default());
        assert!(!known.report("m", sent, 0, estimator));
        assert!(!known.report("m", sent, 2_000, estimator));
        assert!(known.is_empty());
        for nth in 0..20 {
            assert!(known.report(&format!("m{nth}"), sent, 10_000 + nth, estimator));
        }
        assert_eq!(known.0.len(), MODELS);
        assert_eq!(known.of("m0"), None);
        assert_eq!(known.of("m19").unwrap().correct(10_000), 10_019);
    }

    /// What bounds allow beside `tokens` new ones, in one text behind a prompt of 10,000, after these reports of growth.
    fn allowed(growth: &[(u64, u64)], tokens: usize) -> (usize, usize) {
        let (mut known, estimator) = (Calibrations::default(), Estimator::default());
        let (mut estimated, mut reported, mut all) = (10_000, 10_000, texts(10_000));
        for (more_estimated, more_reported) in [&[(0, 0)], growth].concat() {
            estimated += more_estimated as usize;
            reported += more_reported;
            if more_estimated > 0 {
                all = all.and(&texts(more_estimated as usize));
            }
            let sent = Sent { estimated, generation: 1, texts: all };
            assert!(known.report("", sent, reported, estimator));
        }
        let known = known.of("").unwrap();
        let (new, whole) = (texts(tokens), all.and(&texts(tokens)));
        let (below, above) = known.off(estimated + tokens, 1, &whole, estimator);
        assert_eq!(known.off(estimated, 1, &all, estimator), (0, 0), "what was reported is no estimate");
        // Behind a compaction nothing of it was counted.
        let (other, _) = known.off(estimated + tokens, 2, &whole, estimator);
        assert!(other > below, "{other} {below}");
        let (widest, _) = new.off(tokens, estimator);
        assert!(below <= times(widest as u64, known.factor(), ONE) as usize && below == above);
        (below, widest)
    }

    #[test]
    fn p25_bounds_of_new_text_are_those_of_what_the_session_was_off_by() {
        let (none, widest) = allowed(&[], 1_000);
        assert_eq!(none, widest, "after one report nothing was compared");
        let near = allowed(&[(1_000, 1_010); 32], 1_000).0;
        assert!(near * 2 < widest, "{near} of {widest}");
        let far = allowed(&[(1_000, 1_060), (1_000, 940), (1_000, 1_060), (1_000, 940)].repeat(3), 1_000).0;
        assert!(far > near && far <= widest, "{near} {far} {widest}");
        // Text of one session that is off as no other is: never wider.
        let (odd, _) = allowed(&[(1_000, 1_900), (1_000, 600)].repeat(6), 1_000);
        assert!(odd <= widest * 2, "{odd}");
    }

    #[test]
    fn p25_growth_that_is_something_else_says_nothing_of_texts() {
        assert_eq!(allowed(&[(1_000, 30_000); 3], 1_000).0, allowed(&[], 1_000).0);
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
                known.report("", sent(estimated, generation), reported, Estimator::default());
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
