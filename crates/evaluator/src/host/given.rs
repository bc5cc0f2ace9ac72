//! What is given in a question.

use crate::recall::Cutting;
use crate::replay::Policy;
use crate::replay::policy::{CEILING, Clearing};
use crate::transcript::Billed;
use context_compactor_core::policy::cost::Rule;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A question.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(super) enum Asked<'a> {
    /// What can be asked for by name?
    Known,
    /// Read these.
    #[serde(borrow)]
    Read(Vec<&'a RawValue>),
    /// What does a policy cost?
    Replay {
        transcript: usize,
        #[serde(borrow)]
        policy: &'a RawValue,
        #[serde(borrow)]
        prices: &'a RawValue,
    },
    /// A replay whose policy is the host's: what is known before the first call?
    Begin {
        transcript: usize,
        #[serde(borrow)]
        prices: &'a RawValue,
    },
    /// Do this, and make the call: what is known before the next, or what did it cost in all?
    #[serde(borrow)]
    Act(&'a RawValue),
    /// What was billed, and what would the replay have billed for the same calls?
    Billed {
        transcript: usize,
        #[serde(borrow)]
        prices: &'a RawValue,
    },
    /// What is the least that summaries could cost? Begins.
    Optimum {
        transcript: usize,
        #[serde(borrow)]
        prices: &'a RawValue,
    },
    /// Goes on with that.
    Advance,
    /// Where is a transcript cut?
    Cases {
        transcript: usize,
        #[serde(borrow)]
        cutting: &'a RawValue,
    },
    /// What does a compactor that is known retain?
    Measure { case: usize, compactor: String, budget: usize },
    /// What does this context hold?
    Score {
        case: usize,
        #[serde(borrow, default)]
        text: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        messages: Option<Vec<&'a RawValue>>,
        #[serde(default)]
        format: Option<String>,
        budget: usize,
    },
}

/// A transcript.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GivenTranscript<'a> {
    #[serde(borrow)]
    pub(super) messages: Vec<&'a RawValue>,
    #[serde(default)]
    pub(super) format: Option<String>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) source: Option<String>,
    #[serde(default)]
    pub(super) usage: Vec<GivenUsage>,
    #[serde(default)]
    pub(super) compactions: Vec<usize>,
    #[serde(default)]
    pub(super) stable_tokens: Option<usize>,
}

/// What a provider reported.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GivenUsage {
    message: usize,
    input_tokens: u64,
    output_tokens: u64,
    #[serde(default)]
    cache_read_tokens: u64,
    #[serde(default)]
    cache_write_tokens: u64,
    /// A part of the output.
    #[serde(default, rename = "reasoningTokens")]
    _reasoning_tokens: u64,
}

impl From<&GivenUsage> for Billed {
    fn from(given: &GivenUsage) -> Self {
        let cached = given.cache_read_tokens + given.cache_write_tokens;
        Billed {
            msg: given.message,
            input: given.input_tokens.saturating_sub(cached),
            cache_read: given.cache_read_tokens,
            cache_write: given.cache_write_tokens,
            output: given.output_tokens,
        }
    }
}

/// How transcripts are cut.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct GivenCutting {
    prefix_tokens: usize,
    future_tokens: usize,
    needs: usize,
    cuts: usize,
    seed: u64,
}

impl Default for GivenCutting {
    fn default() -> Self {
        let Cutting { prefix, future, needs, cuts, seed } = Cutting::default();
        GivenCutting { prefix_tokens: prefix, future_tokens: future, needs, cuts, seed }
    }
}

impl From<GivenCutting> for Cutting {
    fn from(given: GivenCutting) -> Self {
        let GivenCutting { prefix_tokens: prefix, future_tokens: future, needs, cuts, seed } = given;
        Cutting { prefix, future, needs, cuts, seed }
    }
}

/// A policy.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(super) enum GivenPolicy {
    None {},
    Threshold {
        at: usize,
        keep: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clear: Option<Clearing>,
    },
    Slide {
        at: usize,
        to: usize,
    },
    Clear {
        at: usize,
        keep: usize,
    },
    Price {
        keep: usize,
        #[serde(default)]
        floor: usize,
        #[serde(default = "ceiling")]
        ceiling: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clear: Option<Clearing>,
    },
}

fn ceiling() -> usize {
    CEILING
}

impl From<Policy> for GivenPolicy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::None => GivenPolicy::None {},
            Policy::At { at, tail, clearing } => GivenPolicy::Threshold { at, keep: tail, clear: clearing },
            Policy::Slide { at, to } => GivenPolicy::Slide { at, to },
            Policy::Clear { at, keep } => GivenPolicy::Clear { at, keep },
            Policy::RentOrBuy { rule, tail, ceiling, clearing } => {
                GivenPolicy::Price { keep: tail, floor: rule.floor, ceiling, clear: clearing }
            }
        }
    }
}

impl From<GivenPolicy> for Policy {
    fn from(policy: GivenPolicy) -> Self {
        match policy {
            GivenPolicy::None {} => Policy::None,
            GivenPolicy::Threshold { at, keep, clear } => Policy::At { at, tail: keep, clearing: clear },
            GivenPolicy::Slide { at, to } => Policy::Slide { at, to },
            GivenPolicy::Clear { at, keep } => Policy::Clear { at, keep },
            GivenPolicy::Price { keep, floor, ceiling, clear } => Policy::RentOrBuy {
                rule: Rule { floor, ..Rule::TUNED },
                tail: keep,
                ceiling,
                clearing: clear,
            },
        }
    }
}

/// What a host's policy does before a call.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum GivenAction {
    None {},
    Compact { keep: usize },
    Slide { to: usize },
    Clear { keep: usize },
}
