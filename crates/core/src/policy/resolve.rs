//! The options as the engine uses them: resolved against the preset and the window.

use super::given::GivenOptions;
use super::limits::SessionLimits;
use super::numbers::{Window, leaves, numbers, price_rule, prices, safety_margin, threshold};
use super::presets::{
    API_TOOLS, COMPACTABLE_TOOLS, Fallback, NUMBERS, Numbers, QUERY_TOOLS, READ_TOOLS, SEARCH_TOOLS, When,
};
use super::reader::OptionReader;
use super::row::MAX;
use super::rung::Rung;
use super::settings::{PinProposals, PrefixMismatch, ProcessTools, Settings, Summariser};
use super::tools::ToolPolicies;
use crate::checkpoint::{Goal, Level, Mode, Profile, limit_of};
use crate::context::Keep;
use crate::error::{Error, Result};
use crate::order;
use crate::tokens::{self, Estimator};
use crate::wire::Format;
use crate::wire::provider::{Kind, Provider};
use serde_json_borrow::Value;
use std::collections::BTreeMap;

/// Where the model is told how much room is left, as a fraction of the threshold.
const HANDOFF: f64 = 0.9;

/// The window that the presets' numbers were written for.
pub(super) const DEFAULT_WINDOW: usize = 200_000;
/// Room for an answer by default.
const DEFAULT_OUTPUT: usize = 16_384;
/// And at most, whatever a model may answer.
const MOST_OUTPUT: usize = 20_000;
/// Calls of a model at once by default (`S2.12`).
const DEFAULT_CONCURRENCY: usize = 4;
/// How long one attempt at a summary may take by default.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;
/// The smallest window that can be worked in.
pub(super) const MIN_WINDOW: usize = 1_000;

/// What `sync` does with a history that is another one; true where it refuses it.
pub(super) const ON_DIVERGED: [(&str, bool); 2] = [("branch", false), ("throw", true)];
/// Values of `recall.scope`; true for all sessions of the store.
pub(super) const RECALL_SCOPES: [(&str, bool); 2] = [("session", false), ("all", true)];
/// Values of `state.when`; true for what acts always.
pub(super) const STATE_WHEN: [(&str, bool); 2] = [("due", false), ("now", true)];
/// Bytes of a state, unless the app says otherwise.
const STATE_BYTES: usize = 65_536;
/// Values of `advanced.prefixMismatchBehavior`.
pub(super) const PREFIX_MISMATCH: [(&str, PrefixMismatch); 2] =
    [("error", PrefixMismatch::Error), ("drop_block", PrefixMismatch::DropBlock)];

/// Values of `summarize.longHistory`: whether it is summarised in parts.
pub(super) const LONG_HISTORY: [(&str, bool); 2] = [("parts", true), ("clip", false)];

/// Values of `pins.proposals`.
pub(super) const PIN_PROPOSALS: [(&str, PinProposals); 3] =
    [("keep", PinProposals::Keep), ("ask", PinProposals::Ask), ("off", PinProposals::Off)];

/// Values of `summarize.fallback`.
pub(super) const FALLBACKS: [(&str, Fallback); 2] =
    [("none", Fallback::None), ("extractive", Fallback::Extractive)];

/// The estimator for a model.
pub(super) type EstimatorOf = fn(Option<&str>) -> Estimator;

/// Values of `advanced.estimator`.
pub(super) const ESTIMATORS: [(&str, EstimatorOf); 2] = [
    ("calibrated", |model| Estimator::Calibrated(model.map(tokens::of_model).unwrap_or_default())),
    ("chars4", |_| Estimator::Chars4),
];

impl Settings {
    /// Reads and checks the options of the public API. For a function that the app gave there is `true`. What a catalogue
    /// says about `model` is passed as `facts: { contextWindow, maxOutputTokens?, prices? }`.
    ///
    /// Errors: [`crate::Code::InvalidOption`] naming the option.
    pub fn read(options: &Value<'_>) -> Result<Settings> {
        let facts = OptionReader::new(options)?.child("facts")?;
        let options = &GivenOptions::read(options)?;
        let preset = options.preset;
        let window = window(options, &facts)?;
        let output = match options.count("maxOutputTokens") {
            Some(output) => kept_free(options, output),
            None => room_for_answer(options, &facts, window)?,
        };
        let reserve = options.count("reserveTokens").unwrap_or(0);
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
        let rungs = rungs(options);
        options.check_effects(&rungs)?;
        let tool_policies = ToolPolicies::read(options.value("toolPolicies"), &rungs)?;
        let prices = prices(options, &facts)?;
        let limits = SessionLimits::read(options, prices.as_ref())?;
        let numbers = numbers(options, size, prices.as_ref())?;
        let model = options.text("model").map(str::to_string);
        let threshold = threshold(options, &numbers, size)?;
        let has_law = preset.when == When::Window;
        let price_rule = price_rule(options, prices.as_ref(), window, threshold.tokens);
        let summariser = summariser(options)?;
        if summariser == Summariser::Server {
            check_beside_server(options, &tool_policies)?;
        }
        let summary_model = options.text("summarize.model").map(str::to_string).or_else(|| model.clone());
        Ok(Settings {
            preset,
            rungs,
            threshold,
            leaves: leaves(options, window, threshold.tokens, price_rule),
            price_rule,
            prices,
            numbers,
            compactable_tools: compactable_tools(options),
            read_tools: tools(options, "restoreFiles.tools", &READ_TOOLS),
            process_tools: process_tools(options),
            tool_policies,
            limits,
            handoff: handoff(options),
            app_reads_files: options.has("restoreFiles.read"),
            format: options.choice("format", &Format::ALL.map(|format| (format.as_str(), format))),
            estimator: estimator(options.choice("advanced.estimator", &ESTIMATORS), model.as_deref()),
            app_counts: options.has("tokenCounter"),
            app_pins: options.has("pins.match"),
            pin_proposals: options.choice("pins.proposals", &PIN_PROPOSALS).unwrap_or(PinProposals::Keep),
            redacts_secrets: options.flag("redact.secrets").unwrap_or(true),
            app_redacts: options.has("redact.text"),
            window,
            is_window_assumed: is_window_assumed(options, &facts)?,
            hard_limit,
            continues_prompts: match &summariser {
                Summariser::App => summary_model == model,
                Summariser::Provider(provider) => {
                    provider.continues() && model.as_ref() == Some(&provider.model)
                }
                Summariser::Server | Summariser::Extractive => false,
            },
            summary_model,
            model,
            summariser,
            is_target_given: options.has("summarize.targetTokens"),
            fallback: options.choice("summarize.fallback", &FALLBACKS).unwrap_or(match has_law {
                true => Fallback::Needed,
                false => Fallback::None,
            }),
            keep: keep(options, &numbers)?,
            // One that says no more than how rereads are told does not say that.
            admits_at_once: options.has_group("admit")
                && (!options.has("admit.rereads")
                    || options.has("admit.maxTokens")
                    || options.has("admit.previewChars")),
            rereads: options.flag("admit.rereads").unwrap_or(has_law),
            recall: options.flag("recall.tools"),
            embeds: options.has("recall.embed"),
            recalls_all: options.choice("recall.scope", &RECALL_SCOPES).unwrap_or(false),
            app_shortens: options.has("summarize.forResults"),
            concurrency: options.count("summarize.concurrency").unwrap_or(DEFAULT_CONCURRENCY),
            by_parts: options.choice("summarize.longHistory", &LONG_HISTORY).unwrap_or(true),
            summary_window: options.count("summarize.contextWindow"),
            prefix_mismatch: options
                .choice("advanced.prefixMismatchBehavior", &PREFIX_MISMATCH)
                .unwrap_or(PrefixMismatch::Error),
            background: options.flag("background").unwrap_or(has_law),
            timeout_ms: options.count("summarize.timeoutMs").map_or(DEFAULT_TIMEOUT_MS, |ms| ms as u64),
            instructions: options.text("summarize.instructions").map(str::to_string),
            mode: options.choice("summarize.mode", &Mode::ALL).unwrap_or_default(),
            level: options.count("summarize.detail").and_then(|detail| Level::try_from(detail as u8).ok()),
            goal: options.value("goal").map(|goal| read_goal(&crate::wire::json(goal))).transpose()?,
            parent: options.text("parent").map(str::to_string),
            has_watermark: options.has("advanced.watermark"),
            accept_data_loss: options.flag("acceptDataLoss").unwrap_or(false),
            must_exist: options.flag("mustExist").unwrap_or(false),
            refuses_diverged: options.choice("onDiverged", &ON_DIVERGED).unwrap_or(false),
            carries_now: options.choice("state.when", &STATE_WHEN).unwrap_or(false),
            carried_bytes: options.count("state.maxBytes").unwrap_or(STATE_BYTES),
        })
    }
}

/// The preset's reserve; else the most that the model can answer, where that is known. Few answers are as long as what
/// models may answer today, which can be the whole window: no more than the document's is kept free (`S3.2`).
fn room_for_answer(options: &GivenOptions<'_>, facts: &OptionReader<'_>, window: usize) -> Result<usize> {
    if options.preset.checkpoints {
        return Ok(safety_margin(options, window));
    }
    let known = facts.integer("maxOutputTokens", 0, MAX)?;
    Ok(known.map_or(DEFAULT_OUTPUT, |most| most.min(MOST_OUTPUT)).min(window / 4))
}

/// What is kept free of the most that an answer may take, where the app says that: all of it, but in a preset that has a
/// reserve no more than the reserve (`S3.2`).
fn kept_free(options: &GivenOptions<'_>, output: usize) -> usize {
    let When::Left { output: reserve, .. } = options.preset.when else { return output };
    output.min(options.count("advanced.maxOutputReserve").unwrap_or(0).max(reserve))
}

/// The window: the app's, the model's, or the presets'; or what the provider takes of it where profiles say so
/// (`S5.12`).
fn window(options: &GivenOptions<'_>, facts: &OptionReader<'_>) -> Result<usize> {
    let known = facts.integer("contextWindow", MIN_WINDOW, MAX)?;
    let size = options.count("contextWindow").or(known).unwrap_or(DEFAULT_WINDOW);
    let path = "presetOptions.profiles";
    let Some(given) = options.value(path) else { return Ok(size) };
    let read = |entry: &OptionReader<'_>| {
        let required = |key: &str| entry.error(key, "is required");
        Ok(Profile {
            model: entry.text("model")?.ok_or_else(|| required("model"))?.to_string(),
            size: entry.integer("size", MIN_WINDOW, MAX)?.ok_or_else(|| required("size"))?,
            context_size: entry.integer("contextSize", MIN_WINDOW, MAX)?,
            share: entry.number("share", 0.001, 1.0)?.unwrap_or(1.0),
        })
    };
    let entries = OptionReader::list(options.path_of(path), given)?;
    let profiles = entries.iter().map(read).collect::<Result<Vec<_>>>()?;
    let model = options.text("model").ok_or_else(|| Error::option("model", "is required with profiles"))?;
    limit_of(&profiles, model, size)
}

/// True where the window is the presets'.
fn is_window_assumed(options: &GivenOptions<'_>, facts: &OptionReader<'_>) -> Result<bool> {
    Ok(!options.has("contextWindow")
        && !options.has("presetOptions.profiles")
        && facts.integer("contextWindow", MIN_WINDOW, MAX)?.is_none())
}

/// A goal from JSON text, checked in full: what follows takes it as it is.
///
/// Errors: [`crate::Code::InvalidOption`] that says what is wrong with it.
pub(crate) fn read_goal(json: &str) -> Result<Goal> {
    let unreadable = |error| Error::option("goal", Error::of_json(&error));
    let value: Value<'_> = serde_json::from_str(json).map_err(unreadable)?;
    check_goal(&OptionReader::named(&value, "goal")?)?;
    crate::wire::record::from_str(json).map_err(|error| Error::option("goal", error.to_string()))
}

/// Names the field of a goal that cannot be read, and what it may be.
fn check_goal(goal: &OptionReader<'_>) -> Result<()> {
    let text = |of: &OptionReader<'_>, key: &str| match of.text(key)? {
        Some(_) => Ok(()),
        None => Err(of.error(key, "must be a text that is not empty, and is missing")),
    };
    text(goal, "id")?;
    text(goal, "description")?;
    let choice = |of: &OptionReader<'_>, key: &str, names: &[&'static str]| {
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

/// From which fraction of the threshold on the model is told how much room is left.
fn handoff(options: &GivenOptions<'_>) -> Option<f64> {
    let is_on = options.has_group("handoff") && !options.is_off("handoff");
    is_on.then(|| options.number("handoff.atFraction").unwrap_or(HANDOFF))
}

/// Names of tools, in lower case; none for every tool.
fn compactable_tools(options: &GivenOptions<'_>) -> Option<Vec<String>> {
    let takes_all = options.preset.clears_every_tool && !options.has("clear.tools");
    (!takes_all).then(|| tools(options, "clear.tools", &COMPACTABLE_TOOLS))
}

fn tools(options: &GivenOptions<'_>, path: &str, default: &[&str]) -> Vec<String> {
    let given = options.names(path);
    given.as_deref().unwrap_or(default).iter().map(|tool| tool.to_lowercase()).collect()
}

fn process_tools(options: &GivenOptions<'_>) -> ProcessTools {
    ProcessTools {
        search: tools(options, "digest.tools.search", &SEARCH_TOOLS),
        files: tools(options, "digest.tools.files", &READ_TOOLS),
        queries: tools(options, "digest.tools.queries", &QUERY_TOOLS),
        apis: tools(options, "digest.tools.apis", &API_TOOLS),
    }
}

/// Groups that switch a rung on or off.
const SWITCHES: [(&str, Rung); 5] = [
    ("digest", Rung::Process),
    ("admit", Rung::Admit),
    ("clear", Rung::Clear),
    ("offload", Rung::Offload),
    ("compress", Rung::Compress),
];

/// The preset's rungs, with those that options switch on, in the order of the ladder.
fn rungs(options: &GivenOptions<'_>) -> Vec<Rung> {
    let preset = options.preset;
    let mut rungs: Vec<Rung> = preset.rungs.to_vec();
    // How results are shortened follows a layout of the whole history that only this preset has.
    let added = SWITCHES.iter().filter(|(group, rung)| options.has_group(group) && *rung != Rung::Compress);
    rungs.extend(added.map(|(_, rung)| *rung));
    rungs.extend(options.has("limits.requestBytes").then_some(Rung::Media));
    rungs.retain(|rung| !SWITCHES.iter().any(|(group, of)| of == rung && options.is_off(group)));
    order::unique(&mut rungs);
    rungs
}

/// Refuses what the provider's compaction takes no notice of.
fn check_beside_server(options: &GivenOptions<'_>, policies: &ToolPolicies) -> Result<()> {
    let refused = [
        (options.has("pins.match"), "pins.match", "summarize: \"server\" keeps no message verbatim"),
        (
            policies.keep_any(),
            "toolPolicies",
            "summarize: \"server\" keeps no result verbatim, whatever keep says",
        ),
        (
            options.flag("economy") == Some(true),
            "economy",
            "with summarize: \"server\" the provider compacts at compactAt, not by price",
        ),
        (
            options.flag("background") == Some(true),
            "background",
            "summarize: \"server\" makes no summary beside the conversation",
        ),
    ];
    match refused.into_iter().find(|(is_given, ..)| *is_given) {
        Some((_, path, what)) => {
            Err(Error::option(path, format!("{what}: leave it out, or give another summarize")))
        }
        None => Ok(()),
    }
}

fn summariser(options: &GivenOptions<'_>) -> Result<Summariser> {
    let provider = "summarize.provider";
    if options.server {
        return Ok(Summariser::Server);
    }
    if options.has("summarize.call") {
        if options.has_group(provider) {
            return Err(Error::option(provider, "is never called beside a function: give one of them"));
        }
        return Ok(Summariser::App);
    }
    if !options.has_group(provider) {
        return Ok(Summariser::Extractive);
    }
    let required = |key: &str| Error::option(format!("{provider}.{key}"), "is required");
    Ok(Summariser::Provider(Provider {
        kind: options.choice("summarize.provider.kind", &Kind::ALL).ok_or_else(|| required("kind"))?,
        model: options.text("summarize.provider.model").ok_or_else(|| required("model"))?.to_string(),
        url: options.text("summarize.provider.url").map(str::to_string),
        headers: match options.value("summarize.provider.headers") {
            Some(headers) => OptionReader::texts(options.path_of("summarize.provider.headers"), headers)?,
            None => BTreeMap::new(),
        },
        request: match options.value("summarize.provider.request") {
            Some(value @ Value::Object(_)) => Some(crate::wire::json(value)),
            Some(_) => return Err(Error::option("summarize.provider.request", "must be an object")),
            None => None,
        },
    }))
}

/// What stays at the end: what the app says, else what the preset does.
fn keep(options: &GivenOptions<'_>, numbers: &Numbers) -> Result<Keep> {
    one_of(options.count("keep.messages"), options.count("keep.tokens"), options.number("keep.fraction"))
        .map(|keep| keep.unwrap_or(Keep::Messages(numbers.preserve_count)))
}

fn one_of(messages: Option<usize>, tokens: Option<usize>, fraction: Option<f64>) -> Result<Option<Keep>> {
    match (messages, tokens, fraction) {
        (None, None, None) => Ok(None),
        (Some(messages), None, None) => Ok(Some(Keep::Messages(messages))),
        (None, Some(tokens), None) => Ok(Some(Keep::Tokens(tokens))),
        (None, None, Some(fraction)) => Ok(Some(Keep::Fraction(fraction))),
        _ => Err(Error::option("keep", "give one of messages, tokens and fraction")),
    }
}

/// What `splitMessages` must keep; the default is the presets'.
pub fn split_keep(options: &Value<'_>) -> Result<Keep> {
    let keep = OptionReader::new(options)?.child("keep")?;
    let (messages, tokens) = (keep.integer("messages", 1, MAX)?, keep.integer("tokens", 1, MAX)?);
    let given = one_of(messages, tokens, keep.number("fraction", 0.0, 1.0)?)?;
    Ok(given.unwrap_or(Keep::Messages(NUMBERS.preserve_count)))
}

/// The estimator that was chosen, else the calibrated one; for the family of the model.
pub(super) fn estimator(chosen: Option<EstimatorOf>, model: Option<&str>) -> Estimator {
    chosen.unwrap_or(|model| Estimator::Calibrated(model.map(tokens::of_model).unwrap_or_default()))(model)
}
