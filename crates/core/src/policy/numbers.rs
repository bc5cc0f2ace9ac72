//! The numbers of the options over those of the preset, scaled to the window.

use super::cost::{Cost, Prices, Rates, Rule, read_prices};
use super::presets::{
    CheckpointNumbers, KeepNumbers, LayeredNumbers, NUMBERS, Numbers, OffloadNumbers, Preset, ProcessNumbers,
    ReactNumbers, RestoreNumbers, When,
};
use super::reader::Reader;
use crate::checkpoint::{Range, Tier, compress_above, in_proportion};
use crate::error::{Error, Result};
use crate::tokens::budget;

/// The largest number of tokens that an option may name.
pub(super) const MAX_TOKENS: usize = 1_000_000_000;

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
    /// The number that a prompt is held against of which `fixed` tokens are system prompt and tools.
    pub(crate) fn of(self, fixed: usize) -> usize {
        self.tokens.saturating_add(fixed.min(self.allowance))
    }

    /// True for a prompt of `tokens` tokens, `fixed` of them system prompt and tools.
    pub(crate) fn is_reached(self, tokens: usize, fixed: usize) -> bool {
        let limit = self.of(fixed);
        if self.strict { tokens > limit } else { tokens >= limit }
    }
}

pub(super) fn threshold(
    options: &Reader<'_>,
    when: When,
    numbers: &Numbers,
    window: Window,
) -> Result<Threshold> {
    let trigger = options.child("trigger")?;
    let offload = options.child("offload")?;
    let given = match (
        trigger.integer("tokens", 1, MAX_TOKENS)?,
        trigger.number("fraction", 0.001, 1.0)?,
        offload.integer("offloadThreshold", 1, MAX_TOKENS)?,
    ) {
        (Some(_), Some(_), _) => {
            return Err(Error::option("trigger", "give tokens or fraction, not both"));
        }
        (Some(tokens), None, _) => Some(tokens),
        (None, Some(fraction), _) => Some((window.tokens as f64 * fraction) as usize),
        (None, None, given) => given,
    };
    let at = |tokens: usize| Threshold { tokens: tokens.max(1), strict: false, allowance: 0 };
    if let Some(tokens) = given {
        return Ok(at(tokens));
    }
    let when = if trigger.flag("price")? { When::Price } else { when };
    Ok(match when {
        // The literal where the window is the document's or larger, its share of a smaller one.
        When::Tokens(tokens) => at(tokens.min(window.tokens / 4 * 3).min(window.hard_limit)),
        When::Price => at(window.hard_limit),
        When::Fraction(fraction) => at((window.tokens as f64 * fraction) as usize),
        When::Left { output, fixed } => {
            let layered = options.child("layered")?;
            let output = layered.integer("outputReserve", 0, MAX_TOKENS)?.unwrap_or(output);
            let fixed = layered
                .integer("fixedReserve", 0, MAX_TOKENS)?
                .unwrap_or_else(|| budget::scale(fixed, window.tokens, 100));
            let left = window.tokens.saturating_sub(window.output.min(output)).saturating_sub(fixed);
            Threshold { tokens: left.min(window.hard_limit).max(1), strict: true, allowance: fixed }
        }
        When::Room => {
            let CheckpointNumbers { prompt_budget, safety_margin, trigger_share, .. } = numbers.checkpoint;
            let above = compress_above(window.tokens, prompt_budget, safety_margin, trigger_share);
            Threshold { tokens: above.min(window.hard_limit).max(1), strict: true, allowance: 0 }
        }
    })
}

/// The rule that the prices decide by, where an option wants it, or the preset and no option says another trigger.
pub(super) fn price_rule(options: &Reader<'_>, when: When) -> Result<Option<Rule>> {
    let (trigger, offload) = (options.child("trigger")?, options.child("offload")?);
    let is_usual = !trigger.has("tokens") && !trigger.has("fraction") && !offload.has("offloadThreshold");
    let wanted = trigger.switch("price")?.unwrap_or(is_usual && when == When::Price);
    Ok(wanted.then_some(Rule::TUNED))
}

/// The prices: the app's, or those that a catalogue has for the model.
pub(super) fn prices(options: &Reader<'_>) -> Result<Option<Prices>> {
    match read_prices(&options.child("prices")?)? {
        None => read_prices(&options.child("facts")?.child("prices")?),
        given => Ok(given),
    }
}

/// What is kept free for the answer (`S5.1`): never more than a quarter of the window.
pub(super) fn safety_margin(options: &Reader<'_>, window: usize) -> Result<usize> {
    let given = options.child("checkpoint")?.integer("safetyMargin", 0, MAX_TOKENS)?;
    Ok(given.unwrap_or_else(|| NUMBERS.checkpoint.safety_margin.min(window / 4)))
}

/// When old results are cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clears {
    EveryTurn,
    BreakEven,
    Never,
}

/// What the option says about it.
pub(super) fn clears(layered: &Reader<'_>) -> Result<Option<Clears>> {
    let choices =
        [("every-turn", Clears::EveryTurn), ("break-even", Clears::BreakEven), ("never", Clears::Never)];
    layered.choice("clear", &choices)
}

pub(super) fn numbers(
    options: &Reader<'_>,
    preset: &Preset,
    window: Window,
    prices: Option<&Prices>,
) -> Result<Numbers> {
    let base = preset.numbers;
    // Shares of the price of input; what is free is no share of it.
    let share = |of: fn(Rates) -> Cost, base: f64| {
        let rates = prices.map(|prices| prices.base).filter(|rates| rates.input > 0);
        rates.map_or(base, |rates| of(rates) as f64 / rates.input as f64)
    };
    // The group that is named as the preset holds what all presets have; `offload`'s is that of old.
    let own = options.child(preset.name)?;
    let offload = options.child("offload")?;
    let count = |key: &str| match own.integer(key, 1, MAX_TOKENS)? {
        None => offload.integer(key, 1, MAX_TOKENS),
        given => Ok(given),
    };
    let scaled = |literal: usize, minimum: usize| budget::scale(literal, window.tokens, minimum);
    let layered = options.child("layered")?;
    Ok(Numbers {
        preserve_count: count("preserveCount")?.unwrap_or(base.preserve_count),
        keep_tokens: scaled(base.keep_tokens, 0),
        keep: base.keep.map(|keep| KeepNumbers {
            must_tokens: scaled(keep.must_tokens, 100),
            least_tokens: scaled(keep.least_tokens, 100),
            most_tokens: scaled(keep.most_tokens, 200),
            ..keep
        }),
        target_tokens: count("targetTokens")?.unwrap_or_else(|| scaled(base.target_tokens, 200)),
        min_savings: layered
            .integer("minSavings", 0, MAX_TOKENS)?
            .unwrap_or_else(|| scaled(base.min_savings, 0)),
        compact_trigger_threshold: offload
            .integer("compactTriggerThreshold", 1, MAX_TOKENS)?
            .unwrap_or_else(|| scaled(base.compact_trigger_threshold, 100)),
        compact_cooldown_steps: offload
            .integer("compactCooldownSteps", 0, MAX_TOKENS)?
            .map_or(base.compact_cooldown_steps, |steps| steps as u64),
        retry_count: options.integer("retryCount", 1, 100)?.map_or(base.retry_count, |count| count as u32),
        retry_wait_ms: base.retry_wait_ms,
        offload: OffloadNumbers {
            scan_ratio: offload.number("scanRatio", 0.0, 1.0)?.unwrap_or(base.offload.scan_ratio),
            min_chars: offload.integer("minChars", 1, MAX_TOKENS)?.unwrap_or(base.offload.min_chars),
        },
        react: react(options, base.react, window)?,
        restore: restore(options, base.restore, window)?,
        checkpoint: checkpoint(options, base.checkpoint, window)?,
        emergency_share: options
            .child("factor3")?
            .number("emergencyShare", 0.001, 1.0)?
            .unwrap_or(base.emergency_share),
        process: process(options, base.process)?,
        layered: LayeredNumbers {
            every_turn: clears(&layered)?
                .map_or(base.layered.every_turn, |clears| clears == Clears::EveryTurn),
            cache_read: layered
                .number("cacheRead", 0.0, 10.0)?
                .unwrap_or_else(|| share(|rates| rates.cache_read, base.layered.cache_read)),
            cache_write: layered
                .number("cacheWrite", 0.0, 10.0)?
                .unwrap_or_else(|| share(|rates| rates.cache_write, base.layered.cache_write)),
            keep_recent: layered.integer("keepRecent", 0, MAX_TOKENS)?.unwrap_or(base.layered.keep_recent),
            clear_min_tokens: layered
                .integer("clearMinTokens", 0, MAX_TOKENS)?
                .unwrap_or_else(|| scaled(base.layered.clear_min_tokens, 100)),
            clear_inputs: layered.switch("clearInputs")?.unwrap_or(base.layered.clear_inputs),
            large_output_tokens: layered
                .integer("largeOutputTokens", 1, MAX_TOKENS)?
                .unwrap_or_else(|| scaled(base.layered.large_output_tokens, 200)),
            preview_chars: layered
                .integer("previewChars", 0, MAX_TOKENS)?
                .unwrap_or(base.layered.preview_chars),
        },
    })
}

/// The session's row, which every commit writes, names them all.
const MAX_SNAPSHOTS: usize = 100;

fn checkpoint(options: &Reader<'_>, base: CheckpointNumbers, window: Window) -> Result<CheckpointNumbers> {
    let group = options.child("checkpoint")?;
    let count = |key: &str, min: usize| group.integer(key, min, MAX_TOKENS);
    let mut levels = base.levels;
    levels.moderate_above = count("moderateAbove", 1)?.unwrap_or(levels.moderate_above);
    levels.compact_above =
        count("compactAbove", 1)?.unwrap_or(levels.compact_above.max(levels.moderate_above));
    if levels.compact_above < levels.moderate_above {
        return Err(Error::option("checkpoint.compactAbove", "must not be less than moderateAbove"));
    }
    // The lower end keeps the document's proportion to the upper.
    let range = |key: &str, base: Range| {
        let high = count(key, 1)?.unwrap_or(base.high);
        Ok::<Range, Error>(Range { low: high * base.low / base.high, high })
    };
    levels.compact = range("compactTokens", levels.compact)?;
    levels.moderate = range("moderateTokens", levels.moderate)?;
    levels.detailed = range("detailedTokens", levels.detailed)?;
    let age_moderate = count("ageModerate", 1)?.map_or(base.age_moderate, |age| age as u64);
    let age_compact = count("ageCompact", 1)?.map_or(base.age_compact.max(age_moderate), |age| age as u64);
    if age_compact < age_moderate {
        return Err(Error::option("checkpoint.ageCompact", "must not be less than ageModerate"));
    }
    let tier = group.choice("tier", &Tier::ALL)?.unwrap_or_else(|| Tier::of(window.tokens));
    let prompt_budget = count("promptBudget", 0)?;
    Ok(CheckpointNumbers {
        levels,
        keep_user_messages: count("keepUserMessages", 0)?.unwrap_or(base.keep_user_messages),
        age_moderate,
        age_compact,
        merge_count: count("mergeCount", 2)?.unwrap_or(base.merge_count),
        safety_margin: safety_margin(options, window.tokens)?,
        prompt_budget: prompt_budget.unwrap_or(tier.prompt_budget()),
        room: prompt_budget.unwrap_or_else(|| in_proportion(tier.prompt_budget(), window.tokens)),
        trigger_share: group.number("triggerShare", 0.001, 1.0)?.unwrap_or(base.trigger_share),
        keep_snapshots: group.integer("keepSnapshots", 1, MAX_SNAPSHOTS)?.unwrap_or(base.keep_snapshots),
    })
}

/// Restoring is on when the preset has it, or when an option names one of its numbers.
fn restore(
    options: &Reader<'_>,
    base: Option<RestoreNumbers>,
    window: Window,
) -> Result<Option<RestoreNumbers>> {
    let group = options.child("layered")?;
    let files = group.integer("maxRestoreFiles", 0, 1_000)?;
    let per_file = group.integer("maxRestoreTokensPerFile", 1, MAX_TOKENS)?;
    let total = group.integer("maxRestoreTokensTotal", 1, MAX_TOKENS)?;
    let given = files.is_some() || per_file.is_some() || total.is_some();
    let Some(base) = base.or(given.then_some(RestoreNumbers::DEFAULT)) else { return Ok(None) };
    let scaled = |literal: usize| budget::scale(literal, window.tokens, 100);
    Ok(Some(RestoreNumbers {
        max_files: files.unwrap_or(base.max_files),
        max_tokens_per_file: per_file.unwrap_or_else(|| scaled(base.max_tokens_per_file)),
        max_tokens_total: total.unwrap_or_else(|| scaled(base.max_tokens_total)),
    }))
}

fn process(options: &Reader<'_>, base: ProcessNumbers) -> Result<ProcessNumbers> {
    let group = options.child("factor3")?;
    let count = |key: &str, min: usize, base: usize| Ok(group.integer(key, min, MAX_TOKENS)?.unwrap_or(base));
    Ok(ProcessNumbers {
        min_tokens: count("minTokens", 0, base.min_tokens)?,
        structured_min_tokens: count("structuredMinTokens", 0, base.structured_min_tokens)?,
        snippet_chars: count("snippetChars", 1, base.snippet_chars)?,
        file_lines: count("fileLines", 1, base.file_lines)?,
        outline_lines: count("outlineLines", 1, base.outline_lines)?,
        query_rows: count("queryRows", 1, base.query_rows)?,
        sample_rows: count("sampleRows", 1, base.sample_rows)?,
        api_chars: count("apiChars", 100, base.api_chars)?,
    })
}

fn react(options: &Reader<'_>, base: ReactNumbers, window: Window) -> Result<ReactNumbers> {
    let group = options.child("react")?;
    let count = |key: &str| group.integer(key, 1, MAX_TOKENS);
    let ratio = |key: &str| group.number(key, 0.001, 1.0);
    let on = |key: &str, base: bool| Ok(group.switch(key)?.unwrap_or(base));
    // What is off may be said with numbers too (`S2.7`).
    let endless = group.is_infinite("singleResultThreshold");
    let threshold = if endless { None } else { count("singleResultThreshold")? };
    let global = ratio("globalCompressionThreshold")?.unwrap_or(base.global_compression_threshold);
    Ok(ReactNumbers {
        single_enabled: on("singleEnabled", base.single_enabled)? && !endless,
        single_result_threshold: threshold.unwrap_or(base.single_result_threshold),
        chunk_size: count("chunkSize")?.unwrap_or(base.chunk_size),
        chunk_ratio: ratio("chunkRatio")?.unwrap_or(base.chunk_ratio),
        second_ratio: ratio("secondRatio")?.unwrap_or(base.second_ratio),
        global_enabled: on("globalEnabled", base.global_enabled)? && global < 1.0,
        global_compression_threshold: global,
        model_context_limit: count("modelContextLimit")?,
        system_prompt_length: group
            .integer("systemPromptLength", 0, MAX_TOKENS)?
            .unwrap_or_else(|| budget::scale(base.system_prompt_length, window.tokens, 0)),
        instruction_length: group
            .integer("instructionLength", 0, MAX_TOKENS)?
            .unwrap_or_else(|| budget::scale(base.instruction_length, window.tokens, 0)),
        result_compression_min_size: group
            .integer("resultCompressionMinSize", 0, MAX_TOKENS)?
            .unwrap_or_else(|| budget::scale(base.result_compression_min_size, window.tokens, 200)),
        global_ratio: ratio("globalRatio")?.unwrap_or(base.global_ratio),
        strategies: on("strategies", base.strategies)?,
        reliance_ratio: ratio("relianceRatio")?.unwrap_or(base.reliance_ratio),
    })
}
