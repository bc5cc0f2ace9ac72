//! Options: read once, checked once, resolved against the preset and the window.

use super::presets::{Fallback, Numbers, OFFLOAD, PRESETS, Preset};
use super::reader::Reader;
use crate::error::{Error, Result};
use crate::tokens::{Estimator, budget};
use crate::wire::Format;
use crate::wire::provider::{Kind, Provider};
use serde_json_borrow::Value;

/// The largest number of tokens that an option may name.
const MAX_TOKENS: usize = 1_000_000_000;
/// The window that the presets' numbers were written for.
const DEFAULT_WINDOW: usize = 200_000;
/// Room for an answer by default.
const DEFAULT_OUTPUT: usize = 16_384;
/// How long one attempt at a summary may take by default.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;
/// The smallest window that can be worked in.
const MIN_WINDOW: usize = 1_000;

/// Values of `prefixMismatchBehavior`.
const PREFIX_MISMATCH: [(&str, PrefixMismatch); 2] =
    [("error", PrefixMismatch::Error), ("drop_block", PrefixMismatch::DropBlock)];

/// Who writes summaries.
#[derive(Debug, Clone, PartialEq)]
pub enum Summariser {
    /// The app's `summarize`.
    App,
    /// A provider's endpoint, called through the app's `fetch` or the global one.
    Provider(Provider),
    /// The built-in one; no model is called.
    Extractive,
}

/// What stays at the end of the history.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Keep {
    /// This many messages.
    Messages(usize),
    /// As many messages as fit this many tokens.
    Tokens(usize),
    /// As many messages as fit this share of the tokens.
    Fraction(f64),
}

/// What the provider does with signed reasoning behind an edit, as the app's requests have it
/// (`thinking.block_binding.prefix_mismatch_behavior` of Anthropic, AN8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefixMismatch {
    /// It refuses the request: the reasoning must go.
    Error,
    /// It leaves the reasoning out itself: taking it out would only rewrite a prefix that is cached.
    DropBlock,
}

/// Options, checked and resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The preset.
    pub preset: &'static Preset,
    /// Its numbers with the options' over them, scaled to the window.
    pub numbers: Numbers,
    /// The messages' format, when the app says it.
    pub format: Option<Format>,
    /// The estimator.
    pub estimator: Estimator,
    /// The app's `tokenCounter` counts instead.
    pub app_counts: bool,
    /// The app's `redact` is applied to what a summariser sees.
    pub app_redacts: bool,
    /// Context window.
    pub window: usize,
    /// No prompt is ever larger: the window less the answer and the reserve.
    pub hard_limit: usize,
    /// Who writes summaries.
    pub summariser: Summariser,
    /// The summariser's model, else the conversation's, as the app named it.
    pub summary_model: Option<String>,
    /// What happens when that fails for good.
    pub fallback: Fallback,
    /// What stays at the end.
    pub keep: Keep,
    /// What becomes of signed reasoning behind an edit.
    pub prefix_mismatch: PrefixMismatch,
    /// Of one attempt, in ms.
    pub timeout_ms: u64,
    /// The app's guidance for summaries.
    pub instructions: Option<String>,
}

impl Default for Settings {
    /// The settings that an empty options object gives.
    fn default() -> Self {
        let numbers = OFFLOAD.numbers;
        Settings {
            preset: &OFFLOAD,
            numbers,
            format: None,
            estimator: Estimator::default(),
            app_counts: false,
            app_redacts: false,
            window: DEFAULT_WINDOW,
            hard_limit: DEFAULT_WINDOW - DEFAULT_OUTPUT,
            summariser: Summariser::Extractive,
            summary_model: None,
            fallback: OFFLOAD.fallback,
            keep: Keep::Messages(numbers.preserve_count),
            prefix_mismatch: PrefixMismatch::Error,
            timeout_ms: DEFAULT_TIMEOUT_MS,
            instructions: None,
        }
    }
}

impl Settings {
    /// Reads and checks the options of the public API. Functions are passed as flags: `hasSummarize`,
    /// `hasTokenCounter`, `hasRedact`.
    ///
    /// Errors: [`crate::Code::InvalidOption`] naming the option.
    pub fn read(options: &Value<'_>) -> Result<Settings> {
        let options = Reader::new(options)?;
        let preset = preset(&options)?;
        let window = options.integer("contextWindow", MIN_WINDOW, MAX_TOKENS)?.unwrap_or(DEFAULT_WINDOW);
        let output = options
            .integer("maxOutputTokens", 0, MAX_TOKENS)?
            .unwrap_or_else(|| DEFAULT_OUTPUT.min(window / 4));
        let reserve = options.integer("reserveTokens", 0, MAX_TOKENS)?.unwrap_or(0);
        let hard_limit = window
            .checked_sub(output.saturating_add(reserve))
            .filter(|limit| *limit > 0)
            .ok_or_else(|| {
                Error::option(
                    "contextWindow",
                    format!("{window} leaves nothing for messages after maxOutputTokens ({output}) and reserveTokens ({reserve})"),
                )
            })?;
        let numbers = numbers(&options, preset, window, hard_limit)?;
        let summariser = summariser(&options)?;
        let fallback = options
            .choice("fallback", &[("none", Fallback::None), ("extractive", Fallback::Extractive)])?
            .unwrap_or(preset.fallback);
        Ok(Settings {
            preset,
            numbers,
            format: format(&options)?,
            estimator: estimator(&options)?,
            app_counts: options.flag("hasTokenCounter")?,
            app_redacts: options.flag("hasRedact")?,
            window,
            hard_limit,
            summary_model: match options.text("summaryModel")? {
                Some(model) => Some(model.to_string()),
                None => options.text("model")?.map(str::to_string),
            },
            summariser,
            fallback,
            keep: keep(&options, numbers.preserve_count)?,
            prefix_mismatch: options
                .choice("prefixMismatchBehavior", &PREFIX_MISMATCH)?
                .unwrap_or(PrefixMismatch::Error),
            timeout_ms: options
                .integer("timeoutMs", 1, 86_400_000)?
                .map_or(DEFAULT_TIMEOUT_MS, |ms| ms as u64),
            instructions: options.text("instructions")?.map(str::to_string),
        })
    }
}

fn numbers(options: &Reader<'_>, preset: &Preset, window: usize, hard_limit: usize) -> Result<Numbers> {
    let base = preset.numbers;
    let group = options.child("offload")?;
    let trigger = options.child("trigger")?;
    let threshold = match (
        trigger.integer("tokens", 1, MAX_TOKENS)?,
        trigger.number("fraction", 0.001, 1.0)?,
        group.integer("offloadThreshold", 1, MAX_TOKENS)?,
    ) {
        (Some(_), Some(_), _) => {
            return Err(Error::option("trigger", "give tokens or fraction, not both"));
        }
        (Some(tokens), None, _) => Some(tokens),
        (None, Some(fraction), _) => Some((window as f64 * fraction) as usize),
        (None, None, given) => given,
    };
    Ok(Numbers {
        // The literal where the window is the document's or larger, its share of a smaller one.
        offload_threshold: threshold
            .unwrap_or_else(|| base.offload_threshold.min(window / 4 * 3).min(hard_limit))
            .max(1),
        scan_ratio: group.number("scanRatio", 0.0, 1.0)?.unwrap_or(base.scan_ratio),
        min_chars: group.integer("minChars", 1, MAX_TOKENS)?.unwrap_or(base.min_chars),
        compact_trigger_threshold: group
            .integer("compactTriggerThreshold", 1, MAX_TOKENS)?
            .unwrap_or_else(|| budget::scale(base.compact_trigger_threshold, window, 100)),
        compact_cooldown_steps: group
            .integer("compactCooldownSteps", 0, MAX_TOKENS)?
            .map_or(base.compact_cooldown_steps, |steps| steps as u64),
        preserve_count: group.integer("preserveCount", 1, MAX_TOKENS)?.unwrap_or(base.preserve_count),
        target_tokens: group
            .integer("targetTokens", 1, MAX_TOKENS)?
            .unwrap_or_else(|| budget::scale(base.target_tokens, window, 200)),
        retry_count: options.integer("retryCount", 1, 100)?.map_or(base.retry_count, |count| count as u32),
        retry_wait_ms: base.retry_wait_ms,
    })
}

fn summariser(options: &Reader<'_>) -> Result<Summariser> {
    let provider = options.child("provider")?;
    if options.flag("hasSummarize")? {
        return Ok(Summariser::App);
    }
    if !provider.is_given() {
        return Ok(Summariser::Extractive);
    }
    let required = |key: &str| Error::option(format!("provider.{key}"), "is required");
    Ok(Summariser::Provider(Provider {
        kind: provider
            .choice("kind", &[("openai", Kind::Openai), ("anthropic", Kind::Anthropic)])?
            .ok_or_else(|| required("kind"))?,
        model: provider.text("model")?.ok_or_else(|| required("model"))?.to_string(),
        url: provider.text("url")?.map(str::to_string),
        headers: provider.texts("headers")?.into_iter().collect(),
    }))
}

fn keep(options: &Reader<'_>, messages: usize) -> Result<Keep> {
    let keep = options.child("keep")?;
    let given = (
        keep.integer("messages", 1, MAX_TOKENS)?,
        keep.integer("tokens", 1, MAX_TOKENS)?,
        keep.number("fraction", 0.0, 1.0)?,
    );
    match given {
        (None, None, None) => Ok(Keep::Messages(messages)),
        (Some(messages), None, None) => Ok(Keep::Messages(messages)),
        (None, Some(tokens), None) => Ok(Keep::Tokens(tokens)),
        (None, None, Some(fraction)) => Ok(Keep::Fraction(fraction)),
        _ => Err(Error::option("keep", "give one of messages, tokens and fraction")),
    }
}

/// What `splitMessages` is told to keep; the default is the preset's.
pub fn split_keep(options: &Value<'_>) -> Result<Keep> {
    keep(&Reader::new(options)?, OFFLOAD.numbers.preserve_count)
}

/// Options of the functions that need no session.
#[derive(Debug, Clone, PartialEq)]
pub struct StandaloneOptions {
    /// The messages' format, when the app says it.
    pub format: Option<Format>,
    /// The estimator.
    pub estimator: Estimator,
    /// Target length of a summary.
    pub target_tokens: usize,
    /// Ceiling of a summary request.
    pub max_input_tokens: Option<usize>,
    /// Guidance for a summary.
    pub instructions: Option<String>,
    /// The summary that a new one replaces.
    pub previous_summary: Option<String>,
    /// Rules that only some servers enforce are checked too.
    pub strict: bool,
}

impl StandaloneOptions {
    /// Reads and checks them.
    ///
    /// Errors: [`crate::Code::InvalidOption`] naming the option.
    pub fn read(options: &Value<'_>) -> Result<Self> {
        let options = Reader::new(options)?;
        let numbers = preset(&options)?.numbers;
        Ok(StandaloneOptions {
            format: format(&options)?,
            estimator: estimator(&options)?,
            target_tokens: options.integer("targetTokens", 1, MAX_TOKENS)?.unwrap_or(numbers.target_tokens),
            max_input_tokens: options.integer("maxInputTokens", 1, MAX_TOKENS)?,
            instructions: options.text("instructions")?.map(str::to_string),
            previous_summary: options.text("previousSummary")?.map(str::to_string),
            strict: options.flag("strict")?,
        })
    }
}

fn preset(options: &Reader<'_>) -> Result<&'static Preset> {
    let presets: Vec<(&str, &'static Preset)> = PRESETS.iter().map(|preset| (preset.name, *preset)).collect();
    Ok(options.choice("preset", &presets)?.unwrap_or(&OFFLOAD))
}

fn format(options: &Reader<'_>) -> Result<Option<Format>> {
    options.choice("format", &Format::ALL.map(|format| (format.as_str(), format)))
}

fn estimator(options: &Reader<'_>) -> Result<Estimator> {
    let names = [("calibrated", Estimator::Calibrated), ("chars4", Estimator::Chars4)];
    Ok(options.choice("estimator", &names)?.unwrap_or_default())
}
