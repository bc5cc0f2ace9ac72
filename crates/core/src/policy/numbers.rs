//! The numbers of the options over those of the preset, scaled to the window.

use super::cost::{Cost, Prices, Rule, read_prices};
use super::given::GivenOptions;
use super::law;
use super::options::OPTIONS;
use super::presets::{NUMBERS, Numbers, RestoreNumbers, When};
use super::reader::OptionReader;
use crate::checkpoint::{Tier, compress_above, in_proportion};
use crate::error::{Error, Result};
use crate::tokens::budget;

/// The window and what is kept free of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) tokens: usize,
    /// Room for an answer.
    pub(super) output: usize,
    /// No prompt is ever larger.
    pub(super) hard_limit: usize,
}

/// When a session acts, resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threshold {
    /// Tokens of the messages, with the system prompt and the tools.
    pub tokens: usize,
    /// It acts above the number, not at it (`S3.2`).
    pub strict: bool,
    /// What the system prompt and the tools may take without being counted (`S3.2`).
    pub allowance: usize,
}

impl Threshold {
    /// The number that a prompt is compared with of which `fixed` tokens are system prompt and tools.
    pub(crate) fn of(self, fixed: usize) -> usize {
        self.tokens.saturating_add(fixed.min(self.allowance))
    }
}

pub(super) fn threshold(options: &GivenOptions<'_>, numbers: &Numbers, window: Window) -> Result<Threshold> {
    if !matches!(options.preset.when, When::Left { .. }) {
        options.refuse("advanced.maxOutputReserve")?;
        options.refuse("advanced.promptReserve")?;
    }
    let given = match (options.count("compactAt.tokens"), options.number("compactAt.fraction")) {
        (Some(_), Some(_)) => {
            return Err(Error::option("compactAt", "give tokens or fraction, not both"));
        }
        (Some(tokens), None) => Some(tokens),
        (None, fraction) => fraction.map(|fraction| (window.tokens as f64 * fraction) as usize),
    };
    let at = |tokens: usize| Threshold { tokens: tokens.max(1), strict: false, allowance: 0 };
    if let Some(tokens) = given {
        return Ok(at(tokens));
    }
    Ok(match options.preset.when {
        // The literal where the window is the document's or larger, its share of a smaller one.
        When::Tokens(tokens) => at(tokens.min(window.tokens / 4 * 3).min(window.hard_limit)),
        When::Window => at(law::acts_at(window.tokens, window.hard_limit)),
        When::Fraction(fraction) => at((window.tokens as f64 * fraction) as usize),
        When::Left { output, fixed } => {
            let output = options.count("advanced.maxOutputReserve").unwrap_or(output);
            let fixed = options
                .count("advanced.promptReserve")
                .unwrap_or_else(|| budget::scale(fixed, window.tokens, 100));
            let left = window.tokens.saturating_sub(window.output.min(output)).saturating_sub(fixed);
            Threshold { tokens: left.min(window.hard_limit).max(1), strict: true, allowance: fixed }
        }
        When::Room => {
            let numbers = numbers.checkpoint;
            let above = compress_above(
                window.tokens,
                numbers.prompt_budget,
                numbers.safety_margin,
                numbers.trigger_share,
            );
            Threshold { tokens: above.min(window.hard_limit).max(1), strict: true, allowance: 0 }
        }
    })
}

/// Whether prices decide. Of a model whose tokens cost nothing the price says nothing (`W4`).
fn is_economical(options: &GivenOptions<'_>, prices: Option<&Prices>) -> bool {
    options.flag("economy") == Some(true) && prices.is_none_or(|prices| prices.base.input > 0)
}

/// The rule that the prices decide by, where the option wants it.
pub(super) fn price_rule(
    options: &GivenOptions<'_>,
    prices: Option<&Prices>,
    window: usize,
    trigger: usize,
) -> Option<Rule> {
    is_economical(options, prices).then(|| Rule { floor: law::price_floor(window, trigger), ..Rule::TUNED })
}

/// Tokens of the prompt that a compaction leaves, where the preset has a law for that and no option says what is kept.
pub(super) fn leaves(
    options: &GivenOptions<'_>,
    window: usize,
    trigger: usize,
    rule: Option<Rule>,
) -> Option<usize> {
    let is_told = ["keep.messages", "keep.tokens", "keep.fraction"].iter().any(|path| options.has(path));
    let has_law = options.preset.when == When::Window && !is_told;
    has_law.then(|| law::leaves(window, trigger, rule.map(|rule| rule.floor)))
}

/// The prices: the app's, or those that a catalogue has for the model.
pub(super) fn prices(options: &GivenOptions<'_>, facts: &OptionReader<'_>) -> Result<Option<Prices>> {
    match options.group("prices") {
        Some(prices) => read_prices(&OptionReader::named(prices, "prices")?),
        None => read_prices(&facts.child("prices")?),
    }
}

/// What is kept free for the answer (`S5.1`): never more than a quarter of the window.
pub(super) fn safety_margin(options: &GivenOptions<'_>, window: usize) -> usize {
    let given = options.count("presetOptions.safetyMargin");
    given.unwrap_or_else(|| NUMBERS.checkpoint.safety_margin.min(window / 4))
}

/// Values of `clear.when`: whether it is at every turn.
pub(super) const CLEARS: [(&str, bool); 2] = [("every-turn", true), ("break-even", false)];

/// The numbers of the preset with those of the options over them.
pub(super) fn numbers(
    options: &GivenOptions<'_>,
    window: Window,
    prices: Option<&Prices>,
) -> Result<Numbers> {
    let base = options.preset.numbers;
    let mut numbers = base;
    numbers.restore = match base.restore {
        _ if options.is_off("restoreFiles") => None,
        None => options.has_group("restoreFiles").then_some(RestoreNumbers::DEFAULT),
        given => given,
    };
    for row in OPTIONS {
        let Some(place) = row.place else { continue };
        let Some(number) = place(&mut numbers) else {
            options.refuse(row.path)?;
            continue;
        };
        if let Some(given) = options.number(row.path) {
            number.set(given);
        } else if let Some(least) = row.scaled {
            number.scale(window.tokens, least);
        }
    }
    if options.preset.when == When::Window && options.number("clear.keepRecent").is_none() {
        // With `economy` more would cost more and bring nothing: its summaries come early.
        numbers.layered.keep_recent = match is_economical(options, prices) {
            true => NUMBERS.layered.keep_recent,
            false => law::recent_results(base.layered.keep_recent, window.tokens),
        };
    }
    if let Some(every_turn) = options.choice("clear.when", &CLEARS) {
        numbers.layered.every_turn = every_turn;
    }
    // Shares of the price of input; what is free is no share of it.
    if let Some(rates) = prices.map(|prices| prices.base).filter(|rates| rates.input > 0) {
        let share = |of: Cost| of as f64 / rates.input as f64;
        numbers.layered.cache_read = share(rates.cache_read);
        numbers.layered.cache_write = share(rates.cache_write);
    }
    let react = &mut numbers.react;
    react.single_enabled &= !options.is_off("compress.resultChars");
    react.global_enabled &=
        !options.is_off("compress.atFraction") && react.global_compression_threshold < 1.0;
    react.model_context_limit = options.count("presetOptions.modelContextLimit");
    checkpoint(options, &mut numbers, window)?;
    Ok(numbers)
}

/// Options of checkpoints that depend on each other.
fn checkpoint(options: &GivenOptions<'_>, numbers: &mut Numbers, window: Window) -> Result<()> {
    let numbers = &mut numbers.checkpoint;
    let levels = &mut numbers.levels;
    let above = "advanced.checkpoints.level1Above";
    if !options.has(above) {
        levels.compact_above = levels.compact_above.max(levels.moderate_above);
    } else if levels.compact_above < levels.moderate_above {
        return Err(Error::option(options.path_of(above), "must not be less than that of level 2"));
    }
    let age = "advanced.checkpoints.level1Age";
    if !options.has(age) {
        numbers.age_compact = numbers.age_compact.max(numbers.age_moderate);
    } else if numbers.age_compact < numbers.age_moderate {
        return Err(Error::option(options.path_of(age), "must not be less than that of level 2"));
    }
    let tier = options.choice("presetOptions.tier", &Tier::ALL).unwrap_or_else(|| Tier::of(window.tokens));
    let prompt_budget = options.count("checkpoints.promptTokens");
    numbers.prompt_budget = prompt_budget.unwrap_or(tier.prompt_budget());
    numbers.room = prompt_budget.unwrap_or_else(|| in_proportion(tier.prompt_budget(), window.tokens));
    numbers.safety_margin = safety_margin(options, window.tokens);
    Ok(())
}
