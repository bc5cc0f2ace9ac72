//! Options: read once, checked once.

use super::numbers::{
    Clears, MAX_TOKENS, Window, clears, numbers, price_rule, prices, safety_margin, threshold,
};
use super::presets::{
    API_TOOLS, BALANCED, COMPACTABLE_TOOLS, Fallback, NUMBERS, Numbers, PRESETS, Preset, QUERY_TOOLS,
    READ_TOOLS, SEARCH_TOOLS, When,
};
use super::reader::Reader;
use super::rung::Rung;
use super::settings::{PinProposals, PrefixMismatch, ProcessTools, Settings, Summariser};
use crate::checkpoint::{Goal, LEVELS, Level, Mode, Profile, Range, limit_of};
use crate::context::Keep;
use crate::error::{Error, Result};
use crate::summary::Focus;
use crate::tokens::{self, Estimator};
use crate::wire::Format;
use crate::wire::provider::{Kind, Provider};
use serde_json_borrow::Value;

/// The window that the presets' numbers were written for.
const DEFAULT_WINDOW: usize = 200_000;
/// Room for an answer by default.
const DEFAULT_OUTPUT: usize = 16_384;
/// And at most, whatever a model may answer.
const MOST_OUTPUT: usize = 20_000;
/// Calls of a model at once by default (`S2.12`).
const DEFAULT_CONCURRENCY: usize = 4;
/// How long one attempt at a summary may take by default.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;
/// The smallest window that can be worked in.
const MIN_WINDOW: usize = 1_000;

/// Values of `prefixMismatchBehavior`.
const PREFIX_MISMATCH: [(&str, PrefixMismatch); 2] =
    [("error", PrefixMismatch::Error), ("drop_block", PrefixMismatch::DropBlock)];

/// Values of `longHistory`: whether it is summarised in parts.
const LONG_HISTORY: [(&str, bool); 2] = [("parts", true), ("clip", false)];

/// Values of `pinProposals`.
const PIN_PROPOSALS: [(&str, PinProposals); 4] = [
    ("keep", PinProposals::Keep),
    ("ask", PinProposals::Ask),
    ("accept", PinProposals::Accept),
    ("off", PinProposals::Off),
];

impl Settings {
    /// Reads and checks the options of the public API. Functions are passed as flags: `hasSummarize`,
    /// `hasTokenCounter`, `hasPinned`, `hasRedact`, `hasReadFile`, `hasSummarizeResult`, `hasWatermark`. What a catalogue says about
    /// `model` is passed as `facts: { contextWindow, maxOutputTokens?, prices? }`.
    ///
    /// Errors: [`crate::Code::InvalidOption`] naming the option.
    pub fn read(options: &Value<'_>) -> Result<Settings> {
        let options = Reader::new(options)?;
        let preset = preset(&options)?;
        let window = window(&options)?;
        let output = match options.integer("maxOutputTokens", 0, MAX_TOKENS)? {
            Some(output) => kept_free(&options, preset, output)?,
            None => room_for_answer(&options, preset, window)?,
        };
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
        let size = Window { tokens: window, output, hard_limit };
        let prices = prices(&options)?;
        let numbers = numbers(&options, preset, size, prices.as_ref())?;
        let summariser = summariser(&options)?;
        let fallback = options
            .choice("fallback", &[("none", Fallback::None), ("extractive", Fallback::Extractive)])?
            .unwrap_or(Fallback::None);
        Ok(Settings {
            preset,
            rungs: rungs(&options, preset)?,
            threshold: threshold(&options, preset.when, &numbers, size)?,
            price_rule: price_rule(&options, preset.when)?,
            prices,
            numbers,
            compactable_tools: compactable_tools(&options, preset)?,
            read_tools: tools(&options.child("layered")?, "readTools", &READ_TOOLS)?,
            process_tools: process_tools(&options)?,
            app_reads_files: options.flag("hasReadFile")?,
            format: format(&options)?,
            estimator: estimator(&options)?,
            model: options.text("model")?.map(str::to_string),
            app_counts: options.flag("hasTokenCounter")?,
            app_pins: options.flag("hasPinned")?,
            pin_proposals: options.choice("pinProposals", &PIN_PROPOSALS)?.unwrap_or(PinProposals::Keep),
            redacts_secrets: options.switch("redactSecrets")?.unwrap_or(true),
            app_redacts: options.flag("hasRedact")?,
            window,
            is_window_assumed: is_window_assumed(&options)?,
            hard_limit,
            summary_model: match options.text("summaryModel")? {
                Some(model) => Some(model.to_string()),
                None => options.text("model")?.map(str::to_string),
            },
            summariser,
            fallback,
            keep: keep(&options, kept_by(&options, &numbers)?)?,
            app_shortens: options.flag("hasSummarizeResult")?,
            concurrency: options.integer("concurrency", 1, 100)?.unwrap_or(DEFAULT_CONCURRENCY),
            by_parts: options.choice("longHistory", &LONG_HISTORY)?.unwrap_or(true),
            summary_window: options.integer("summaryContextWindow", MIN_WINDOW, MAX_TOKENS)?,
            prefix_mismatch: options
                .choice("prefixMismatchBehavior", &PREFIX_MISMATCH)?
                .unwrap_or(PrefixMismatch::Error),
            background: options.switch("background")?.unwrap_or(false),
            timeout_ms: options
                .integer("timeoutMs", 1, 86_400_000)?
                .map_or(DEFAULT_TIMEOUT_MS, |ms| ms as u64),
            instructions: options.text("instructions")?.map(str::to_string),
            mode: options.text("mode")?.map_or(Mode::default(), Mode::of),
            level: level(&options)?,
            goal: goal(&options)?,
            parent: options.text("parent")?.map(str::to_string),
            has_watermark: options.flag("hasWatermark")?,
            accept_data_loss: options.flag("acceptDataLoss")?,
            must_exist: options.flag("mustExist")?,
        })
    }
}

/// The preset's reserve; else the most that the model can answer, where that is known. Few answers are as long as what
/// models may answer today, which can be the whole window: no more than the document's is kept free (`S3.2`).
fn room_for_answer(options: &Reader<'_>, preset: &Preset, window: usize) -> Result<usize> {
    if preset.checkpoints {
        return safety_margin(options, window);
    }
    let known = options.child("facts")?.integer("maxOutputTokens", 0, MAX_TOKENS)?;
    Ok(known.map_or(DEFAULT_OUTPUT, |most| most.min(MOST_OUTPUT)).min(window / 4))
}

/// What is kept free of the most that an answer may take, where the app says that: all of it, but in a preset that has a
/// reserve no more than the reserve (`S3.2`).
fn kept_free(options: &Reader<'_>, preset: &Preset, output: usize) -> Result<usize> {
    let When::Left { output: reserve, .. } = preset.when else { return Ok(output) };
    let given = options.child("layered")?.integer("outputReserve", 0, MAX_TOKENS)?;
    Ok(output.min(given.unwrap_or(0).max(reserve)))
}

/// The window: the app's, the model's, or the presets'; or what the provider takes of it where profiles say so
/// (`S5.12`).
fn window(options: &Reader<'_>) -> Result<usize> {
    let given = options.integer("contextWindow", MIN_WINDOW, MAX_TOKENS)?;
    let known = options.child("facts")?.integer("contextWindow", MIN_WINDOW, MAX_TOKENS)?;
    let size = given.or(known).unwrap_or(DEFAULT_WINDOW);
    let Some(given) = options.child("checkpoint")?.children("profiles")? else { return Ok(size) };
    let read = |entry: &Reader<'_>| {
        let required = |key: &str| entry.error(key, "is required");
        Ok(Profile {
            model: entry.text("model")?.ok_or_else(|| required("model"))?.to_string(),
            size: entry.integer("size", MIN_WINDOW, MAX_TOKENS)?.ok_or_else(|| required("size"))?,
            context_size: entry.integer("contextSize", MIN_WINDOW, MAX_TOKENS)?,
            share: entry.number("share", 0.001, 1.0)?.unwrap_or(1.0),
        })
    };
    let profiles = given.iter().map(read).collect::<Result<Vec<_>>>()?;
    let model = options.text("model")?.ok_or_else(|| Error::option("model", "is required with profiles"))?;
    limit_of(&profiles, model, size)
}

/// True where the window is the presets'.
fn is_window_assumed(options: &Reader<'_>) -> Result<bool> {
    Ok(options.integer("contextWindow", MIN_WINDOW, MAX_TOKENS)?.is_none()
        && options.child("facts")?.integer("contextWindow", MIN_WINDOW, MAX_TOKENS)?.is_none()
        && options.child("checkpoint")?.children("profiles")?.is_none())
}

fn level(options: &Reader<'_>) -> Result<Option<Level>> {
    let number = options.integer("level", 1, 3)?;
    Ok(number.and_then(|number| Level::try_from(number as u8).ok()))
}

/// The goal in options, where it is checked in full: what follows takes it as it is.
fn goal(options: &Reader<'_>) -> Result<Option<Goal>> {
    options.json("goal")?.map(|json| read_goal(&json)).transpose()
}

/// A goal from JSON text.
///
/// Errors: [`crate::Code::InvalidOption`] that says what is wrong with it.
pub(crate) fn read_goal(json: &str) -> Result<Goal> {
    let unreadable = |error| Error::option("goal", Error::of_json(&error));
    let value: Value<'_> = serde_json::from_str(json).map_err(unreadable)?;
    check_goal(&Reader::named(&value, "goal")?)?;
    serde_json::from_str(json).map_err(unreadable)
}

/// Names the field of a goal that cannot be read, and what it may be.
fn check_goal(goal: &Reader<'_>) -> Result<()> {
    let text = |of: &Reader<'_>, key: &str| match of.text(key)? {
        Some(_) => Ok(()),
        None => Err(of.error(key, "must be a text that is not empty, and is missing")),
    };
    text(goal, "id")?;
    text(goal, "description")?;
    let choice = |of: &Reader<'_>, key: &str, names: &[&'static str]| {
        of.choice(key, &names.iter().map(|name| (*name, ())).collect::<Vec<_>>())
    };
    choice(goal, "priority", &["low", "medium", "high"])?;
    choice(goal, "status", &["active", "paused", "completed"])?;
    for step in goal.children("checkpoints")?.unwrap_or_default() {
        text(&step, "description")?;
        choice(&step, "status", &["pending", "in-progress", "completed"])?;
    }
    for decision in goal.children("decisions")?.unwrap_or_default() {
        text(&decision, "id")?;
        text(&decision, "description")?;
        decision.switch("locked")?;
    }
    for artifact in goal.children("artifacts")?.unwrap_or_default() {
        text(&artifact, "path")?;
        if choice(&artifact, "action", &["created", "modified", "deleted"])?.is_none() {
            return Err(
                artifact.error("action", "must be \"created\", \"modified\" or \"deleted\", and is missing")
            );
        }
    }
    Ok(())
}

/// Names of tools, in lower case.
fn compactable_tools(options: &Reader<'_>, preset: &Preset) -> Result<Option<Vec<String>>> {
    let layered = options.child("layered")?;
    let is_given = layered.names("compactableTools")?.is_some();
    if preset.clears_every_tool && !is_given {
        return Ok(None);
    }
    tools(&layered, "compactableTools", &COMPACTABLE_TOOLS).map(Some)
}

fn tools(group: &Reader<'_>, key: &str, default: &[&str]) -> Result<Vec<String>> {
    let given = group.names(key)?;
    Ok(given.as_deref().unwrap_or(default).iter().map(|tool| tool.to_lowercase()).collect())
}

fn process_tools(options: &Reader<'_>) -> Result<ProcessTools> {
    let group = options.child("factor3")?.child("processTools")?;
    Ok(ProcessTools {
        search: tools(&group, "search", &SEARCH_TOOLS)?,
        files: tools(&group, "files", &READ_TOOLS)?,
        queries: tools(&group, "queries", &QUERY_TOOLS)?,
        apis: tools(&group, "apis", &API_TOOLS)?,
    })
}

/// The preset's rungs, with those of other presets that options switch on, in the order of the ladder.
fn rungs(options: &Reader<'_>, preset: &Preset) -> Result<Vec<Rung>> {
    let layered = options.child("layered")?;
    let clear = clears(&layered)?;
    let admit = layered.integer("largeOutputTokens", 1, MAX_TOKENS)?.is_some();
    let factor3 = options.child("factor3")?;
    let process = factor3.child("processTools")?.is_given();
    let verbose = factor3.choice("verbosity", &[("normal", false), ("debug", true)])? == Some(true);
    let more = [(Rung::Clear, clear.is_some()), (Rung::Admit, admit), (Rung::Process, process)];
    let mut rungs: Vec<Rung> = preset.rungs.to_vec();
    rungs.extend(more.into_iter().filter(|(_, on)| *on).map(|(rung, _)| rung));
    rungs.retain(|rung| match rung {
        Rung::Clear => clear != Some(Clears::Never),
        // All of a result is wanted (`S4.6`).
        Rung::Process => !verbose,
        _ => true,
    });
    rungs.sort_unstable();
    rungs.dedup();
    Ok(rungs)
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
        kind: provider.choice("kind", &Kind::ALL)?.ok_or_else(|| required("kind"))?,
        model: provider.text("model")?.ok_or_else(|| required("model"))?.to_string(),
        url: provider.text("url")?.map(str::to_string),
        headers: provider.texts("headers")?.into_iter().collect(),
    }))
}

/// What the preset keeps: tokens, unless the app says how many messages.
fn kept_by(options: &Reader<'_>, numbers: &Numbers) -> Result<Keep> {
    let is_counted = options.child("offload")?.integer("preserveCount", 1, MAX_TOKENS)?.is_some();
    Ok(match numbers.keep_tokens {
        0 => Keep::Messages(numbers.preserve_count),
        _ if is_counted => Keep::Messages(numbers.preserve_count),
        tokens => Keep::Tokens(tokens),
    })
}

fn keep(options: &Reader<'_>, default: Keep) -> Result<Keep> {
    let keep = options.child("keep")?;
    let given = (
        keep.integer("messages", 1, MAX_TOKENS)?,
        keep.integer("tokens", 1, MAX_TOKENS)?,
        keep.number("fraction", 0.0, 1.0)?,
    );
    match given {
        (None, None, None) => Ok(default),
        (Some(messages), None, None) => Ok(Keep::Messages(messages)),
        (None, Some(tokens), None) => Ok(Keep::Tokens(tokens)),
        (None, None, Some(fraction)) => Ok(Keep::Fraction(fraction)),
        _ => Err(Error::option("keep", "give one of messages, tokens and fraction")),
    }
}

/// What `splitMessages` is told to keep; the default is the preset's.
pub fn split_keep(options: &Value<'_>) -> Result<Keep> {
    keep(&Reader::new(options)?, Keep::Messages(NUMBERS.preserve_count))
}

/// Options of the functions that need no session.
#[derive(Debug, Clone, PartialEq)]
pub struct StandaloneOptions {
    /// Whose wording a summary prompt has.
    pub preset: &'static Preset,
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
    /// Secrets are replaced.
    pub redacts_secrets: bool,
    /// Rules that only some servers enforce are checked too.
    pub strict: bool,
    /// What the app is used for, when it says (`S5.10`).
    pub mode: Option<Mode>,
    /// How detailed a summary is to be, when the app says.
    pub level: Option<Level>,
    /// What a summary is to tell the progress of (`S5.13`).
    pub goal: Option<Goal>,
    /// The window, which the lengths of levels follow.
    pub window: usize,
    /// The app said how long a summary is to be.
    pub is_target_given: bool,
}

impl StandaloneOptions {
    /// Reads and checks them.
    ///
    /// Errors: [`crate::Code::InvalidOption`] naming the option.
    pub fn read(options: &Value<'_>) -> Result<Self> {
        let options = Reader::new(options)?;
        let preset = preset(&options)?;
        let numbers = preset.numbers;
        let target = options.integer("targetTokens", 1, MAX_TOKENS)?;
        Ok(StandaloneOptions {
            mode: options.text("mode")?.map(Mode::of),
            level: level(&options)?,
            goal: goal(&options)?,
            window: options.integer("contextWindow", MIN_WINDOW, MAX_TOKENS)?.unwrap_or(DEFAULT_WINDOW),
            is_target_given: target.is_some(),
            preset,
            format: format(&options)?,
            estimator: {
                // Nothing else says that a name is misspelt: no window is looked up.
                options.text("model")?.map(tokens::of_known_model).transpose()?;
                estimator(&options)?
            },
            target_tokens: target.unwrap_or(numbers.target_tokens),
            max_input_tokens: options.integer("maxInputTokens", 1, MAX_TOKENS)?,
            instructions: options.text("instructions")?.map(str::to_string),
            previous_summary: options.text("previousSummary")?.map(str::to_string),
            redacts_secrets: options.switch("redactSecrets")?.unwrap_or(true),
            strict: options.flag("strict")?,
        })
    }
}

impl StandaloneOptions {
    /// What a summary of `tokens` tokens is to stress, and how long it is to be.
    pub(crate) fn focus(&self, tokens: usize) -> (Option<Focus>, usize) {
        if !self.preset.checkpoints && self.mode.is_none() && self.level.is_none() {
            return (None, self.target_tokens);
        }
        let level = self.level.unwrap_or_else(|| LEVELS.of(tokens));
        let mut range = LEVELS.target(level, self.window);
        if self.is_target_given {
            range = Range { low: self.target_tokens / 2, high: self.target_tokens };
        }
        (Some(Focus { level, range, mode: self.mode.unwrap_or_default() }), range.high)
    }
}

fn preset(options: &Reader<'_>) -> Result<&'static Preset> {
    let presets: Vec<(&str, &'static Preset)> = PRESETS.iter().map(|preset| (preset.name, *preset)).collect();
    Ok(options.choice("preset", &presets)?.unwrap_or(&BALANCED))
}

fn format(options: &Reader<'_>) -> Result<Option<Format>> {
    options.choice("format", &Format::ALL.map(|format| (format.as_str(), format)))
}

/// The estimator; the calibrated one is that of the model's family.
fn estimator(options: &Reader<'_>) -> Result<Estimator> {
    let family = options.text("model")?.map(tokens::of_model).unwrap_or_default();
    let calibrated = Estimator::Calibrated(family);
    let names = [("calibrated", calibrated), ("chars4", Estimator::Chars4)];
    Ok(options.choice("estimator", &names)?.unwrap_or(calibrated))
}
