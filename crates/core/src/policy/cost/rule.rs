//! The rule: rent until the rent is what buying costs.

use super::prices::{Cost, Prices, times};

/// The rule's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The first compaction comes when the rent that was paid is this share of its price, in percent.
    pub first: u64,
    /// Every later one, when the rent since the one before is.
    pub again: u64,
    /// Where the user has just spoken, this share of these is enough, in percent: what the model worked on is done.
    pub turn: u64,
    /// No compaction that frees less than this share of the context, in percent: it would be the next one's reason.
    pub frees: usize,
    /// Nor one that comes after fewer calls than this since the one before.
    pub calls: u64,
    /// Tokens that are fetched again because of a compaction, on average.
    pub refetch: usize,
    /// Calls after a compaction, in thousandths, that need something that left (`W4`): each is one more call, with the whole
    /// context.
    pub needs: u64,
    /// Nor one of fewer tokens than this.
    pub floor: usize,
}

impl Rule {
    /// Tuned on one half of recorded sessions and measured on the other (`npm run bench -- cost`). The needs are those of that
    /// half in preset `balanced`: 1.1 for each compaction in a window of 200,000 tokens, 1.7 with `economy`, which leaves less.
    pub const TUNED: Rule = Rule {
        first: 100,
        again: 120,
        turn: 80,
        frees: 30,
        calls: 2,
        refetch: 3_000,
        needs: 1_500,
        floor: 0,
    };

    /// What is needed again because of a compaction, of 100 calls when one comes every `calls` calls.
    pub fn needs_of_100(&self, calls: u64) -> f64 {
        (self.needs as f64 / 10.0 / calls.max(1) as f64).min(100.0)
    }
}

/// What is asked for a summary at the end of a conversation's prompt takes about so many tokens.
pub const INSTRUCTION_TOKENS: usize = 1_000;

/// What is known when the next call is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostSnapshot {
    /// Tokens of the prompt as it is.
    pub context: usize,
    /// Those of them that the provider has in its cache; 0 when it cannot have them any more.
    pub cached: usize,
    /// Tokens at the front that no compaction changes: system prompt and tools.
    pub stable: usize,
    /// Tokens of the prompt after a compaction.
    pub after: usize,
    /// Tokens that the summariser reads; 0 when no model is asked.
    pub read: usize,
    /// Its request continues the conversation's prompt: it reads all of that, and what the provider has in its cache at the
    /// price of that (`W7`).
    pub in_thread: bool,
    /// Tokens that it writes.
    pub summary: usize,
    /// The user has just spoken.
    pub is_turn: bool,
}

impl CostSnapshot {
    /// What the next call costs with a compaction before it, and what is needed again afterwards.
    pub fn now(&self, prices: &Prices, rule: &Rule) -> Cost {
        let summary = match self.in_thread {
            true => {
                prices.request(self.context.saturating_add(INSTRUCTION_TOKENS), self.cached, self.summary)
            }
            // A new prompt, of which the provider has nothing in its cache.
            false => prices.lone_request(self.read, self.summary),
        };
        let next = prices.request(self.after, self.stable.min(self.cached), 0);
        let again = times(rule.refetch, prices.at(self.after).cache_write);
        let calls = prices.request(self.context, self.context, 0).saturating_mul(rule.needs) / 1_000;
        summary.saturating_add(next).saturating_add(again).saturating_add(calls)
    }

    /// What the next call costs with the context as it is.
    pub fn later(&self, prices: &Prices) -> Cost {
        prices.request(self.context, self.cached, 0)
    }

    /// What the next `calls` calls cost with a compaction before them, and without one.
    pub fn over(&self, prices: &Prices, rule: &Rule, calls: u64) -> (Cost, Cost) {
        let more = |tokens| prices.request(tokens, tokens, 0).saturating_mul(calls.saturating_sub(1));
        let now = self.now(prices, rule).saturating_add(more(self.after));
        (now, self.later(prices).saturating_add(more(self.context)))
    }

    /// What a compaction costs more than none: nothing, at times, when the provider's cache is cold.
    pub fn price(&self, prices: &Prices, rule: &Rule) -> Cost {
        self.now(prices, rule).saturating_sub(self.later(prices))
    }

    /// What a call costs more with this context than with what a compaction leaves of it.
    pub fn rent(&self, prices: &Prices) -> Cost {
        let whole = prices.request(self.context, self.context, 0);
        whole.saturating_sub(prices.request(self.after, self.after, 0))
    }
}

/// The last call of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastCall {
    /// When, in ms since 1970.
    pub at: u64,
    /// Tokens of its prompt.
    pub tokens: usize,
}

crate::wire::record!(LastCall {
    at = "at",
    tokens = "tokens",
});

/// What a conversation paid for a larger context than it needs. To lose it costs money and nothing else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Meter {
    /// Rent since the last compaction.
    pub rent: Cost,
    /// Calls since then.
    pub calls: u64,
    /// Compactions so far.
    pub compactions: u64,
    /// The last call.
    pub last: Option<LastCall>,
}

crate::wire::record!(Meter {
    rent = "rent" or default,
    calls = "calls" or default,
    compactions = "compactions" or default,
    last = "last" or nothing,
});

/// What the rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The rent is less than what a compaction costs.
    Rent,
    /// A compaction would free too little, or comes too soon.
    Futile,
    /// It is time.
    Buy,
}

impl Meter {
    /// Tokens of the next prompt that the provider can have in its cache at `now`: none of them once it had the time to
    /// forget.
    pub fn cached(&self, now: u64, prices: &Prices) -> usize {
        let warm = self.last.filter(|last| now.saturating_sub(last.at) < prices.ttl_ms);
        warm.map_or(0, |last| last.tokens)
    }

    /// What to do at this moment; the call is paid already where it `is_step` no more.
    pub fn decide(&self, rule: &Rule, prices: &Prices, moment: &CostSnapshot, is_step: bool) -> Verdict {
        let freed = moment.context.saturating_sub(moment.after);
        let is_early = self.compactions > 0 && self.calls < rule.calls;
        if is_early
            || moment.context < rule.floor
            || freed.saturating_mul(100) < moment.context.saturating_mul(rule.frees)
        {
            return Verdict::Futile;
        }
        let share = if moment.is_turn { self.share(rule) * rule.turn / 100 } else { self.share(rule) };
        let price = u128::from(moment.price(prices, rule)) * u128::from(share);
        let next = if is_step { moment.rent(prices) } else { 0 };
        let rent = u128::from(self.rent) + u128::from(next);
        if rent * 100 >= price { Verdict::Buy } else { Verdict::Rent }
    }

    /// Calls until the rule says that it is time, were they all like the next one.
    pub fn calls_left(&self, rule: &Rule, prices: &Prices, moment: &CostSnapshot) -> u64 {
        let price = u128::from(moment.price(prices, rule)) * u128::from(self.share(rule)) / 100;
        let left = price.saturating_sub(u128::from(self.rent)) / u128::from(moment.rent(prices)).max(1);
        u64::try_from(left).unwrap_or(u64::MAX)
    }

    /// The rent at which it is time, as a share of the price of a compaction, in percent.
    fn share(&self, rule: &Rule) -> u64 {
        if self.compactions == 0 { rule.first } else { rule.again }
    }

    /// A call with the context as it is.
    pub fn pay(&mut self, prices: &Prices, moment: &CostSnapshot, at: u64) {
        self.rent = self.rent.saturating_add(moment.rent(prices));
        self.calls += 1;
        self.last = Some(LastCall { at, tokens: moment.context });
    }

    /// What was cleared left `before` tokens as they were: the rent goes on.
    pub fn cleared(&mut self, before: usize) {
        if let Some(last) = &mut self.last {
            last.tokens = last.tokens.min(before);
        }
    }

    /// A compaction that left `stable` tokens as they were.
    pub fn compacted(&mut self, stable: usize) {
        self.rent = 0;
        self.calls = 0;
        self.compactions += 1;
        self.cleared(stable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::cost::{
        DEFAULT_PRICES, PriceTier, Rates, calls_expected, clearing_saves, fetched_again,
    };

    /// Nothing is needed again.
    const FREE: Rule = Rule { refetch: 0, needs: 0, ..Rule::TUNED };
    /// Texts are, and no call.
    const REFETCHES: Rule = Rule { needs: 0, ..Rule::TUNED };

    /// A prompt of `context` tokens, 6,000 of them fixed, that a compaction makes one of 12,500.
    fn moment(context: usize, cached: usize) -> CostSnapshot {
        CostSnapshot {
            context,
            cached,
            stable: 6_000,
            after: 12_500,
            read: context - 5_000,
            in_thread: false,
            summary: 1_500,
            is_turn: false,
        }
    }

    /// Tokens of the prompt before which the first compaction comes, where each call adds `growth`.
    fn compacts_at(prices: &Prices, growth: usize) -> usize {
        let (rule, mut meter, mut context) = (FREE, Meter::default(), 12_500);
        loop {
            let now = moment(context, meter.cached(0, prices));
            if meter.decide(&rule, prices, &now, true) == Verdict::Buy {
                return context;
            }
            meter.pay(prices, &now, 0);
            context += growth;
        }
    }

    #[test]
    fn under_steady_growth_it_is_the_law_of_the_economic_order() {
        // L* = b + √(2 g K / r), K = L − old + k S + w (b − sys) − r (L − sys), in multiples of the price of input.
        for growth in [200_usize, 400, 1_000] {
            let mut law = 20_000.0;
            for _ in 0..50 {
                let price = law - 5_000.0 + 5.0 * 1_500.0 + 1.25 * 6_500.0 - 0.1 * (law - 6_000.0);
                law = 12_500.0 + (2.0 * growth as f64 * price / 0.1_f64).sqrt();
            }
            let found = compacts_at(&DEFAULT_PRICES, growth) as f64;
            assert!((found / law - 1.0).abs() < 0.15, "{growth}: {found} and {law}");
        }
    }

    #[test]
    fn where_reads_of_the_cache_are_cheaper_it_comes_later() {
        let at =
            |read| compacts_at(&Prices { base: Rates::of(3.0, 15.0, read, 3.75), ..DEFAULT_PRICES }, 1_000);
        assert!(at(3.0) < at(0.3) && at(0.3) < at(0.075), "{} {} {}", at(3.0), at(0.3), at(0.075));
    }

    #[test]
    fn a_cold_cache_makes_a_compaction_cheap_and_a_large_one_free() {
        let price = |context, cached| moment(context, cached).price(&DEFAULT_PRICES, &FREE);
        assert!(price(60_000, 0) < price(60_000, 60_000));
        // (w − 1) L ≥ k S + w b − 1 × tail, about.
        assert_eq!(price(120_000, 0), 0);
        let meter = Meter { last: Some(LastCall { at: 1_000, tokens: 50_000 }), ..Meter::default() };
        assert_eq!(meter.cached(1_000 + DEFAULT_PRICES.ttl_ms - 1, &DEFAULT_PRICES), 50_000);
        assert_eq!(meter.cached(1_000 + DEFAULT_PRICES.ttl_ms, &DEFAULT_PRICES), 0);
        assert_eq!(Meter::default().cached(0, &DEFAULT_PRICES), 0);
    }

    #[test]
    fn lesson_thrashing_what_frees_little_or_comes_at_once_does_not_come() {
        let rich = Meter { rent: Cost::MAX, calls: 9, compactions: 1, last: None };
        let decide =
            |meter: Meter, moment: CostSnapshot| meter.decide(&Rule::TUNED, &DEFAULT_PRICES, &moment, true);
        assert_eq!(decide(rich, moment(60_000, 60_000)), Verdict::Buy);
        assert_eq!(decide(rich, moment(17_000, 17_000)), Verdict::Futile);
        assert_eq!(decide(Meter { calls: 1, ..rich }, moment(60_000, 60_000)), Verdict::Futile);
        assert_eq!(decide(Meter::default(), moment(60_000, 60_000)), Verdict::Rent);
    }

    #[test]
    fn where_the_user_speaks_less_rent_is_enough() {
        let price = moment(40_000, 40_000).price(&DEFAULT_PRICES, &Rule::TUNED);
        let paid = price * 9 / 10 - moment(40_000, 40_000).rent(&DEFAULT_PRICES);
        let meter = Meter { rent: paid, calls: 9, ..Meter::default() };
        let turn = CostSnapshot { is_turn: true, ..moment(40_000, 40_000) };
        assert_eq!(meter.decide(&Rule::TUNED, &DEFAULT_PRICES, &turn, true), Verdict::Buy);
        assert_eq!(meter.decide(&Rule::TUNED, &DEFAULT_PRICES, &moment(40_000, 40_000), true), Verdict::Rent);
    }

    #[test]
    fn a_compaction_begins_the_rent_anew_and_leaves_the_front_in_the_cache() {
        let mut meter = Meter::default();
        meter.pay(&DEFAULT_PRICES, &moment(40_000, 0), 7);
        assert_eq!(meter.rent, 27_500 * 300_000);
        assert_eq!(meter.last, Some(LastCall { at: 7, tokens: 40_000 }));
        meter.compacted(6_000);
        let last = Some(LastCall { at: 7, tokens: 6_000 });
        assert_eq!(meter, Meter { rent: 0, calls: 0, compactions: 1, last });
    }

    #[test]
    fn what_is_cleared_leaves_the_rent_and_what_stands_before_it_in_the_cache() {
        let mut meter = Meter::default();
        meter.pay(&DEFAULT_PRICES, &moment(40_000, 0), 7);
        meter.cleared(30_000);
        let last = Some(LastCall { at: 7, tokens: 30_000 });
        assert_eq!(meter, Meter { rent: 27_500 * 300_000, calls: 1, compactions: 0, last });
    }

    #[test]
    fn the_calls_that_are_left_are_as_many_as_the_rule_lets_be_made() {
        let (rule, now, mut meter) = (Rule::TUNED, moment(40_000, 40_000), Meter::default());
        let left = meter.calls_left(&rule, &DEFAULT_PRICES, &now);
        let mut calls = 0;
        while meter.decide(&rule, &DEFAULT_PRICES, &now, true) == Verdict::Rent {
            meter.pay(&DEFAULT_PRICES, &now, 0);
            calls += 1;
        }
        assert!(calls > 3 && left.abs_diff(calls) <= 1, "{left} {calls}");
        assert_eq!(Meter { rent: Cost::MAX, ..meter }.calls_left(&rule, &DEFAULT_PRICES, &now), 0);
    }

    #[test]
    fn prices_are_those_of_the_prompts_size() {
        let tier = PriceTier { above: 200_000, rates: Rates::of(6.0, 22.5, 0.6, 7.5) };
        let prices = Prices { tiers: vec![tier], ..DEFAULT_PRICES };
        assert_eq!(
            prices.request(100_000, 90_000, 100),
            90_000 * 300_000 + 10_000 * 3_750_000 + 100 * 15_000_000
        );
        assert_eq!(prices.request(200_001, 300_000, 0), 200_001 * 600_000);
        assert_eq!(prices.lone_request(10, 0), 10 * 3_000_000);
        // Above the break a token of context costs more, and so does the rent.
        assert!(moment(200_001, 0).rent(&prices) > 2 * moment(200_000, 0).rent(&prices));
    }

    #[test]
    fn no_more_calls_are_expected_than_a_summary_leaves() {
        assert_eq!((calls_expected(40, None), calls_expected(40, Some(100))), (40, 40));
        assert_eq!((calls_expected(40, Some(7)), calls_expected(40, Some(0))), (7, 0));
    }

    #[test]
    fn clearing_pays_from_the_calls_of_the_law_on() {
        // n > (w − r) s / (r c) = 11.5 s / c
        let rates = DEFAULT_PRICES.base;
        assert!(clearing_saves(rates, 11 * 1_000, 1_000, 0) < 0);
        assert!(clearing_saves(rates, 12 * 1_000, 1_000, 0) > 0);
        assert_eq!(clearing_saves(rates, 1_000, 0, 0), 300_000_000);
        // What is fetched again is written again.
        assert_eq!(fetched_again(1_000), 150);
        assert_eq!(clearing_saves(rates, 1_000, 0, 150), 300_000_000 - 150 * 3_750_000);
    }

    #[test]
    fn f39_a_compaction_comes_with_the_very_rent_that_it_costs() {
        const E6: u64 = 1_000_000;
        let (rule, now) = (REFETCHES, moment(40_000, 40_000));
        // 35,000 read and 1,500 written, 6,000 of 12,500 cached, 3,000 fetched again; without one 40,000 cached.
        assert_eq!(now.now(&DEFAULT_PRICES, &REFETCHES), (105_000 + 22_500 + 1_800 + 24_375 + 11_250) * E6);
        assert_eq!((now.later(&DEFAULT_PRICES), now.rent(&DEFAULT_PRICES)), (12_000 * E6, 8_250 * E6));
        assert_eq!(now.price(&DEFAULT_PRICES, &REFETCHES), 152_925 * E6);
        let cold = moment(40_000, 3_000);
        assert_eq!(cold.now(&DEFAULT_PRICES, &REFETCHES), (105_000 + 22_500 + 900 + 35_625 + 11_250) * E6);
        assert_eq!(cold.later(&DEFAULT_PRICES), (900 + 138_750) * E6);
        // The share of the price: the first, a later one, and both where the user has just spoken.
        for (compactions, is_turn, rent) in
            [(0, false, 152_925), (1, false, 183_510), (0, true, 122_340), (1, true, 146_808)]
        {
            let paid = (rent - 8_250) * E6;
            let decide = |rent| {
                let meter = Meter { rent, calls: 2, compactions, last: None };
                meter.decide(&rule, &DEFAULT_PRICES, &CostSnapshot { is_turn, ..now }, true)
            };
            assert_eq!(
                (decide(paid), decide(paid - 1)),
                (Verdict::Buy, Verdict::Rent),
                "{compactions} {is_turn}"
            );
        }
        let left = |rent, compactions| {
            Meter { rent: rent * E6, compactions, ..Meter::default() }.calls_left(
                &rule,
                &DEFAULT_PRICES,
                &now,
            )
        };
        assert_eq!((left(0, 0), left(8_250, 0), left(0, 1)), (18, 17, 22));
    }

    #[test]
    fn w7_a_request_at_the_end_of_the_prompt_reads_it_from_the_cache() {
        const E6: u64 = 1_000_000;
        let rendered = moment(40_000, 38_000);
        let thread = CostSnapshot { in_thread: true, ..rendered };
        // 35,000 read anew; against 38,000 of 40,000 from the cache, and the rest with what is asked written to it.
        let (new, own) = (105_000 * E6, (11_400 + 11_250) * E6);
        let after = rendered.now(&DEFAULT_PRICES, &FREE) - new;
        assert_eq!(thread.now(&DEFAULT_PRICES, &FREE), own + after);
        let cold = CostSnapshot { cached: 0, ..thread };
        assert!(
            cold.now(&DEFAULT_PRICES, &FREE)
                > CostSnapshot { in_thread: false, ..cold }.now(&DEFAULT_PRICES, &FREE)
        );
    }

    #[test]
    fn f39_what_frees_less_than_its_share_or_comes_before_its_calls_is_futile() {
        let rich = Meter { rent: Cost::MAX / 2, calls: 2, compactions: 1, last: None };
        let decide = |meter: Meter, context| {
            meter.decide(&Rule::TUNED, &DEFAULT_PRICES, &moment(context, context), true)
        };
        // 30 percent of 17,857 are more than 5,357, and of 17,858 less than 5,358.
        assert_eq!((decide(rich, 17_857), decide(rich, 17_858)), (Verdict::Futile, Verdict::Buy));
        assert_eq!(decide(Meter { calls: 1, ..rich }, 40_000), Verdict::Futile);
        assert_eq!(decide(Meter { calls: 0, compactions: 0, ..rich }, 40_000), Verdict::Buy);
    }

    #[test]
    fn w4_each_need_that_left_costs_one_more_call_with_the_whole_context() {
        let now = moment(40_000, 40_000);
        let of = |needs| now.price(&DEFAULT_PRICES, &Rule { needs, ..Rule::TUNED });
        // 40,000 tokens from the cache, once and a half.
        assert_eq!(of(1_500) - of(0), 40_000 * 300_000 * 3 / 2);
        let of_100 = |calls| Rule::TUNED.needs_of_100(calls);
        assert_eq!((of_100(100), of_100(75), of_100(0)), (1.5, 2.0, 100.0));
    }

    #[test]
    fn w4_from_the_floor_on_the_price_decides() {
        let rich = Meter { rent: Cost::MAX / 2, ..Meter::default() };
        let rule = Rule { floor: 40_000, ..Rule::TUNED };
        let decide = |context| rich.decide(&rule, &DEFAULT_PRICES, &moment(context, context), true);
        assert_eq!((decide(39_999), decide(40_000)), (Verdict::Futile, Verdict::Buy));
    }

    #[test]
    fn f39_over_many_calls_each_after_the_first_finds_its_prompt_in_the_cache() {
        const E6: u64 = 1_000_000;
        let over = |calls| moment(40_000, 40_000).over(&DEFAULT_PRICES, &REFETCHES, calls);
        assert_eq!((over(0), over(1)), ((164_925 * E6, 12_000 * E6), (164_925 * E6, 12_000 * E6)));
        assert_eq!(over(3), ((164_925 + 2 * 3_750) * E6, 3 * 12_000 * E6));
    }

    #[test]
    fn over_many_calls_a_smaller_context_is_cheaper() {
        let one = moment(80_000, 80_000).over(&DEFAULT_PRICES, &REFETCHES, 1);
        let many = moment(80_000, 80_000).over(&DEFAULT_PRICES, &REFETCHES, 50);
        assert!(one.0 > one.1 && many.0 < many.1, "{one:?} {many:?}");
    }
}
