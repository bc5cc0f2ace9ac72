//! The parts of the engine that are useful alone: no session, no store, no effects.

use crate::context::PinProposal;
use crate::context::split::{self, Cut};
use crate::error::{Error, Result};
use crate::message::Message;
use crate::policy::{StandaloneOptions, split_keep};
use crate::redact::{SearchedTexts, Secrets};
use crate::summary::{self, PromptOptions, SummaryRequest};
use crate::tokens::{self, Bounds, Estimator, Family};
use crate::wire::{self, Change, Format, Problem, Repaired};
use serde::Serialize;
use serde_json_borrow::Value;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A history as its messages' JSON texts.
pub type Bodies = [Rc<str>];

fn parse(bodies: &Bodies) -> Result<Vec<Value<'_>>> {
    bodies.iter().enumerate().map(|(index, body)| wire::parse(index, body)).collect()
}

fn format(values: &[Value<'_>], given: Option<Format>) -> Result<Format> {
    match given {
        Some(format) => Ok(format),
        None => wire::detect(values),
    }
}

/// Reads a history and hands it to `with`. An empty history has no format and reads as no messages.
fn read<T>(
    bodies: &Bodies,
    given: Option<Format>,
    with: impl FnOnce(&[Message<'_>]) -> Result<T>,
) -> Result<T> {
    let values = parse(bodies)?;
    if values.is_empty() {
        return with(&[]);
    }
    let format = format(&values, given)?;
    let messages = values
        .iter()
        .enumerate()
        .map(|(index, value)| wire::read(format, index, value))
        .collect::<Result<Vec<_>>>()?;
    with(&messages)
}

/// Estimated tokens of each message.
pub fn estimate(bodies: &Bodies, options: &Value<'_>) -> Result<Vec<usize>> {
    let options = StandaloneOptions::read(options)?;
    read(bodies, options.format, |messages| {
        Ok(messages.iter().map(|message| options.estimator.message(message)).collect())
    })
}

/// An estimate and how far it may be off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Detailed {
    /// Estimated tokens.
    pub tokens: usize,
    /// About 99 of 100 texts have at least this many.
    pub low: usize,
    /// And at most this many.
    pub high: usize,
    /// The family of tokenizers that was counted for; none by characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<&'static str>,
    /// Of each role that there is.
    pub by_role: BTreeMap<&'static str, usize>,
    /// Of each message.
    pub by_message: Vec<usize>,
}

/// Estimated tokens of a history, with bounds.
pub fn estimate_detailed(bodies: &Bodies, options: &Value<'_>) -> Result<Detailed> {
    let StandaloneOptions { estimator, format, .. } = StandaloneOptions::read(options)?;
    read(bodies, format, |messages| {
        let mut bounds = Bounds::default();
        let (mut by_role, mut by_message) = (BTreeMap::new(), Vec::with_capacity(messages.len()));
        for message in messages {
            let tokens = estimator.message_within(message, &mut bounds);
            *by_role.entry(message.role.as_str()).or_default() += tokens;
            by_message.push(tokens);
        }
        let tokens = by_message.iter().sum();
        let (low, high) = bounds.of(tokens, estimator);
        Ok(Detailed { tokens, low, high, family: name_of(estimator), by_role, by_message })
    })
}

/// The same of a text.
pub fn estimate_text_detailed(text: &str, options: &Value<'_>) -> Result<Detailed> {
    let estimator = StandaloneOptions::read(options)?.estimator;
    let tokens = estimator.text(text);
    let mut bounds = Bounds::default();
    bounds.add(text, tokens);
    let (low, high) = bounds.of(tokens, estimator);
    let (family, by_role) = (name_of(estimator), BTreeMap::new());
    Ok(Detailed { tokens, low, high, family, by_role, by_message: vec![tokens] })
}

fn name_of(estimator: Estimator) -> Option<&'static str> {
    estimator.counts_for().map(Family::name)
}

/// The texts of a history, for an exact counter, and the tokens of everything else.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// All texts, one after the other.
    pub bytes: Vec<u8>,
    /// Where each ends in `bytes`.
    pub ends: Vec<usize>,
    /// Tokens of frames and media, which the estimate counts by the same rules.
    pub by_rule: usize,
}

/// Takes a history apart into its texts and what is counted by rule.
pub fn texts(bodies: &Bodies, options: &Value<'_>) -> Result<Texts> {
    let options = StandaloneOptions::read(options)?;
    read(bodies, options.format, |messages| {
        let mut texts = Texts::default();
        for message in messages {
            texts.by_rule += tokens::message_by(message, Family::default(), &mut |text| {
                texts.bytes.extend_from_slice(text.as_bytes());
                texts.ends.push(texts.bytes.len());
                0
            });
        }
        Ok(texts)
    })
}

/// Where a history may be cut; `pinned` are indices of messages that stay wherever they are.
pub fn split(bodies: &Bodies, pinned: &[usize], options: &Value<'_>) -> Result<Cut> {
    let keep = split_keep(options)?;
    let options = StandaloneOptions::read(options)?;
    read(bodies, options.format, |messages| {
        let tokens: Vec<usize> = messages.iter().map(|message| options.estimator.message(message)).collect();
        Ok(split::cut(messages, &tokens, keep, |index| pinned.contains(&index)))
    })
}

/// What to ask a summariser (`S1.7`).
///
/// Errors: [`crate::Code::InvalidOption`] when `maxInputTokens` cannot hold even the frame.
pub fn summary_prompt(bodies: &Bodies, options: &Value<'_>) -> Result<SummaryRequest> {
    let options = StandaloneOptions::read(options)?;
    read(bodies, options.format, |messages| {
        let tokens = messages.iter().map(|message| options.estimator.message(message)).sum();
        let (focus, target_tokens) = options.focus(tokens);
        let mut secrets = Secrets::new("");
        let previous_summary =
            options.previous_summary.as_deref().map(|text| match options.redacts_secrets {
                true => secrets.redact(text),
                false => text.into(),
            });
        let messages = without_secrets(messages, &options, &mut secrets);
        let mut request = options.preset.prompt.build(
            &messages,
            &PromptOptions {
                focus,
                goal: options.goal.as_ref(),
                target_tokens,
                max_input_tokens: options.max_input_tokens,
                instructions: options.instructions.as_deref(),
                previous_summary: previous_summary.as_deref(),
                rejected: None,
                keep: &[],
                indices: None,
                estimator: options.estimator,
            },
        )?;
        if options.redacts_secrets {
            request.system = secrets.redact(&request.system).into_owned();
        }
        Ok(request)
    })
}

/// Messages as a summariser may see them.
fn without_secrets<'m>(
    messages: &[Message<'m>],
    options: &StandaloneOptions,
    secrets: &mut Secrets,
) -> Vec<Message<'m>> {
    let mut messages = messages.to_vec();
    if options.redacts_secrets {
        secrets.redact_messages(&mut messages, &mut SearchedTexts::default());
    }
    messages
}

/// The messages of the user that state constraints, for which a pin is proposed (`S4.3`).
pub fn propose_pins(bodies: &Bodies, options: &Value<'_>) -> Result<Vec<PinProposal>> {
    let options = StandaloneOptions::read(options)?;
    read(bodies, options.format, |messages| {
        let numbered = messages.iter().enumerate();
        let of = |(index, message)| summary::proposal(index, message, options.estimator.message(message));
        Ok(numbered.filter_map(of).collect())
    })
}

/// A summary that no model is needed for.
pub fn extractive(bodies: &Bodies, options: &Value<'_>) -> Result<String> {
    let options = StandaloneOptions::read(options)?;
    read(bodies, options.format, |messages| {
        let messages = without_secrets(messages, &options, &mut Secrets::new(""));
        let (target, estimator) = (options.target_tokens, options.estimator);
        Ok(match options.preset.numbers.keep {
            Some(_) => summary::keep::text(&messages, target, estimator),
            None => summary::extractive(&messages, target, estimator),
        })
    })
}

/// The format of a history.
pub fn detect(bodies: &Bodies) -> Result<Format> {
    wire::detect(&parse(bodies)?)
}

/// The provider's rules that a history breaks. What cannot even be read is an error.
pub fn validate(bodies: &Bodies, options: &Value<'_>) -> Result<Vec<Problem>> {
    let options = StandaloneOptions::read(options)?;
    let values = parse(bodies)?;
    if values.is_empty() && options.format.is_none() {
        return Err(Error::message(
            0,
            "",
            "an empty history is refused by every provider; pass `format` to check it",
        ));
    }
    let format = format(&values, options.format)?;
    for (index, value) in values.iter().enumerate() {
        wire::read(format, index, value)?;
    }
    Ok(format.rules().validate(&values, options.strict))
}

/// The smallest change that makes a history acceptable, and what it changed (`S1.15`).
pub fn repair(bodies: &Bodies, options: &Value<'_>) -> Result<(Vec<Repaired>, Vec<Change>)> {
    let options = StandaloneOptions::read(options)?;
    let values = parse(bodies)?;
    if values.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    Ok(format(&values, options.format)?.rules().repair(&values))
}
