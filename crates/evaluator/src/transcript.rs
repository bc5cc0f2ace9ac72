//! A transcript as the evaluator reads it: every message's prose, calls and results as owned texts, with the tokens that
//! the engine estimates for it, and what the provider reported.

use context_compactor_core::message::{Part, Role};
use context_compactor_core::tokens::Estimator;
use context_compactor_core::wire::{self, Format};
use context_compactor_core::{Code, Error, Result};
use serde::Deserialize;

/// A conversation of an agent.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    /// Its id.
    pub id: String,
    /// Where it is from: rows of a table.
    pub source: String,
    /// What it is about: rows of a table.
    pub domain: String,
    /// Its messages, complete and in order.
    pub messages: Vec<Turn>,
    /// What the provider reported, by message of the model, in order.
    pub billed: Vec<Billed>,
    /// Messages after which the agent itself compacted: what comes later was written without what came before.
    pub compacted: Vec<usize>,
    /// Tokens of the system prompt and the tools, where nobody reported a prompt.
    pub stable: Option<usize>,
}

/// A message.
#[derive(Debug, Clone)]
pub struct Turn {
    /// Who it is from.
    pub role: Role,
    /// Prose.
    pub text: String,
    /// Visible reasoning.
    pub reasoning: String,
    /// What the model asked tools to do.
    pub calls: Vec<Call>,
    /// What tools answered.
    pub results: Vec<Answer>,
    /// Estimated tokens of the whole message.
    pub tokens: usize,
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct Call {
    /// The provider's id; unique within one step only.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its arguments, JSON text.
    pub arguments: String,
}

/// The result of a call.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The call that it answers.
    pub call_id: String,
    /// Its text.
    pub text: String,
    /// The tool says that it failed.
    pub is_error: bool,
}

/// Tokens of one request, as its provider reported them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Billed {
    /// The message that answered it.
    #[serde(alias = "after_item")]
    pub msg: usize,
    /// Input that was neither read from the cache nor written to it.
    #[serde(default)]
    pub input: u64,
    /// Input read from the cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Input written to the cache.
    #[serde(default)]
    pub cache_write: u64,
    /// Output, reasoning included.
    #[serde(default)]
    pub output: u64,
}

#[derive(Deserialize)]
struct Record {
    id: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    domain: String,
    #[serde(default)]
    meta: Meta,
}

#[derive(Deserialize, Default)]
struct Meta {
    #[serde(default)]
    usage: Vec<Billed>,
    #[serde(default)]
    compactions: Vec<Compaction>,
}

#[derive(Deserialize)]
struct Compaction {
    after_message: Option<usize>,
}

impl Turn {
    /// Reads a message from JSON text.
    ///
    /// Errors: those of the format, with the index.
    pub fn read(format: Format, index: usize, json: &str, estimator: Estimator) -> Result<Self> {
        let value = wire::parse(index, json)?;
        let message = format.wire().read(index, &value)?;
        let mut turn = Self {
            role: message.role,
            text: message.text(),
            reasoning: String::new(),
            calls: Vec::new(),
            results: Vec::new(),
            tokens: estimator.message(&message),
        };
        for part in &message.parts {
            match part {
                Part::Reasoning { text, .. } => turn.reasoning.push_str(text),
                Part::ToolCall(call) => turn.calls.push(Call {
                    id: call.id.to_string(),
                    name: call.name.to_string(),
                    arguments: call.arguments.to_string(),
                }),
                Part::ToolResult(result) => turn.results.push(Answer {
                    call_id: result.call_id.to_string(),
                    text: result.text.to_string(),
                    is_error: result.is_error,
                }),
                _ => {}
            }
        }
        Ok(turn)
    }
}

impl Transcript {
    /// Reads a record of recordings: `{ id, source, domain, format, messages, meta: { usage, compactions } }`, JSON text.
    /// Its messages are given apart, as `bodies` of `format`.
    ///
    /// Errors: [`Code::InvalidMessage`] when it is no record or a message cannot be read.
    pub fn read<'b>(
        record: &str,
        format: Format,
        bodies: impl IntoIterator<Item = &'b str>,
        estimator: Estimator,
    ) -> Result<Self> {
        let read: Record = serde_json::from_str(record).map_err(|error| {
            Error::new(Code::InvalidMessage, format!("not a record of a transcript: {error}"))
        })?;
        let turns =
            bodies.into_iter().enumerate().map(|(index, body)| Turn::read(format, index, body, estimator));
        Ok(Self {
            messages: turns.collect::<Result<_>>()?,
            id: read.id,
            source: read.source,
            domain: read.domain,
            billed: read.meta.usage,
            compacted: read
                .meta
                .compactions
                .iter()
                .filter_map(|compaction| compaction.after_message)
                .collect(),
            stable: None,
        })
    }
}
