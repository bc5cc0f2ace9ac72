//! What crosses between the engine and its host: effects out, events in.

use super::loss::Loss;
use super::seam::CodeStage;
use crate::context::{MessageSource, Place};
use crate::error::{Code, Error};
use crate::keys::batch::{Batch, Key};
use crate::summary::SummaryRequest;
use crate::wire::Format;
use crate::wire::provider::{self, HttpRequest};
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// What the engine asks its host to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    // ---- answered at once: allowed in synchronous calls ---------------------------------------------------------
    /// The time: [`Event::Number`], ms since 1970.
    Now,
    /// A string never given before: [`Event::Text`].
    NewId,
    /// The app's own `tokenCounter` for one message: [`Event::Number`]. `whose` names a message that the app
    /// handed over, so that it is asked about its own object.
    Count {
        /// Whose it is.
        whose: MessageSource,
        /// JSON text.
        body: Rc<str>,
    },
    /// Whether the app pins a message (`S4.3`), asked once when it is appended: [`Event::Number`], 0 for no.
    Pin {
        /// Whose it is.
        whose: MessageSource,
        /// Its index among the app's.
        index: usize,
        /// JSON text.
        body: Rc<str>,
    },
    /// The app's own `redact`: [`Event::Text`].
    Redact(String),
    /// Messages were appended, by a call that then prepares: [`Event::Texts`], what goes with them to the model, or
    /// [`Event::Failed`], which ends the call.
    Appended {
        /// Where they are, in order.
        places: Vec<Place>,
        /// The format that the session's messages are read in.
        format: Format,
    },
    // ---- reported: not answered ----------------------------------------------------------------------------------
    /// How far a compaction is.
    Progress(Progress),
    /// A line for the app's logger.
    Log(LogLevel, String),
    /// An event for listeners of the session.
    Notify(Notice),
    /// How far a session is, to be kept outside of its store under this key, unless what is kept there is greater as a
    /// text; an empty value when it is deleted, which replaces all.
    WriteWatermark {
        /// Made by the engine, never from user text.
        key: String,
        /// What [`Effect::ReadWatermark`] is to find.
        value: String,
    },
    /// A part of the engine is likely to be asked for soon ([`Effect::Load`]).
    Prefetch(CodeStage),
    // ---- awaited ------------------------------------------------------------------------------------------------
    /// Ask the app's `summarize`: [`Event::Summary`] or [`Event::Failed`].
    Summarize {
        /// What to ask.
        request: Rc<SummaryRequest>,
        /// From 1.
        attempt: u32,
        /// What the summary is for.
        purpose: Purpose,
        /// The answer is not waited for any longer than this, in ms.
        timeout_ms: u64,
    },
    /// Ask the app's `recall.embed`, with some texts: [`Event::Vectors`], one for each, or [`Event::Failed`].
    Embed(Vec<String>),
    /// The app's own content of a file (`S3.6`): [`Event::Text`] or [`Event::Failed`].
    ReadFile(String),
    /// Send a request to a provider: [`Event::Response`] or [`Event::Failed`].
    Fetch {
        /// The request.
        request: HttpRequest,
        /// The answer is not waited for any longer than this, in ms.
        timeout_ms: u64,
    },
    /// What is known of a session outside of its store: [`Event::Watermark`], also when that is unknown.
    ReadWatermark(String),
    /// Wait this many ms: [`Event::Done`].
    Sleep(u64),
    /// The same, while the operation keeps its hold on the state: [`Event::Done`].
    Pause(u64),
    /// Read values: [`Event::Values`].
    Read(Vec<Key>),
    /// Read a range of keys: [`Event::Entries`].
    Scan(Scan),
    /// Write a batch, all or nothing: [`Event::Done`] or [`Event::Failed`].
    Commit(Batch),
    /// Load a part of the engine, where that is not done: [`Event::Done`] or [`Event::Failed`].
    Load(CodeStage),
}

impl Effect {
    /// True for effects that may take long and hold no state: other calls on the session may run meanwhile.
    pub fn parks(&self) -> bool {
        matches!(self, Effect::Summarize { .. } | Effect::Fetch { .. } | Effect::Embed(_) | Effect::Sleep(_))
    }
}

/// A range of keys to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// Keys that begin with this.
    pub prefix: Key,
    /// Only keys after this one, in the direction of the scan.
    pub after: Option<Key>,
    /// At most this many entries.
    pub limit: usize,
    /// Stop before passing this many bytes (one entry at least is returned).
    pub max_bytes: usize,
    /// From the end.
    pub reverse: bool,
    /// Only the keys are wanted.
    pub keys_only: bool,
}

/// What a summary is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The history up to a boundary.
    History,
    /// A part of a history that is longer than one request can be.
    #[serde(rename = "chunk")]
    Part,
    /// The summaries of such parts, to become one.
    #[serde(rename = "merge")]
    Parts,
    /// A tool result (`S2.4`).
    Result,
    /// A part of a tool result (`S2.1`).
    Chunk,
    /// The shortened parts of a tool result, together (`S2.2`).
    Merge,
    /// An old checkpoint, to be made shorter (`S5.8`).
    Age,
    /// Several old checkpoints, to become one (`S5.8`).
    #[serde(rename = "merge")]
    Checkpoints,
}

impl Purpose {
    /// True for single tool results, which a cheaper model may shorten (`S2.8`).
    pub fn is_of_result(self) -> bool {
        matches!(self, Purpose::Result | Purpose::Chunk | Purpose::Merge)
    }
}

/// Severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// For developers of the engine.
    Debug,
    /// What happened.
    Info,
    /// Something went wrong and was handled.
    Warn,
    /// Something went wrong.
    Error,
}

/// How far an operation is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// Done, of `total`.
    pub done: usize,
    /// Steps of this stage.
    pub total: usize,
    /// Tokens before the operation.
    pub previous_tokens: usize,
    /// Tokens now.
    pub current_tokens: usize,
}

/// Stages of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Finding what to summarise.
    Identify,
    /// Reading what is summarised, for the summariser.
    Prepare,
    /// Reading from the store.
    Read,
    /// Moving results to the store.
    Offload,
    /// Making tool results shorter.
    Compress,
    /// Waiting for a summary.
    #[serde(rename = "summarize")]
    Summarise,
    /// Making the message that holds the summary.
    Checkpoint,
    /// Putting it in the place of what it replaces.
    Update,
    /// Checking the new context.
    Validate,
    /// Writing.
    Commit,
    /// Checking what is stored.
    Verify,
    /// Rewriting a session without a message.
    Erase,
}

/// Events of a session for the app (`S1.14`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Notice {
    /// Results were moved to the store.
    Offload {
        /// How many.
        count: usize,
        /// Tokens.
        freed_tokens: usize,
    },
    /// The history was compacted.
    Compact {
        /// Tokens before.
        previous_tokens: usize,
        /// Tokens after.
        current_tokens: usize,
        /// Tokens freed.
        freed_tokens: usize,
        /// Offloads that nothing refers to any more.
        retired_ref_count: usize,
    },
    /// The platform took something from the session, or something was mended when it was opened.
    DataLoss {
        /// What.
        #[serde(flatten)]
        loss: Loss,
    },
    /// What another handle on the session wrote was taken over.
    Change {
        /// Messages of the app in the session.
        messages: usize,
        /// Of the context.
        generation: u64,
    },
    /// A history that was handed over differs from the session's, which goes on as a branch.
    Branch {
        /// First message of the log that was left behind.
        index: usize,
        /// Index of the first given message that was not recognized.
        given: usize,
        /// What differs.
        reason: String,
    },
    /// Something went wrong and was handled.
    Warning {
        /// A stable code.
        code: Code,
        /// What happened and what to do.
        message: String,
    },
}

/// What a store has under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// The value.
    Bytes(Vec<u8>),
    /// A value that is not what was written: the store says why. The row is there, with its version.
    Damaged(String),
}

/// What the host answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// An effect that has nothing to say was carried out.
    Done,
    /// Answer of [`Effect::Now`] and [`Effect::Count`].
    Number(f64),
    /// Answer of [`Effect::NewId`] and [`Effect::Redact`].
    Text(String),
    /// Answer of [`Effect::Appended`].
    Texts(Vec<String>),
    /// Answer of [`Effect::Summarize`].
    Summary {
        /// What the summariser wrote.
        text: String,
        /// What it cost, when the app says.
        usage: Option<ReportedUsage>,
    },
    /// Answer of [`Effect::Embed`], as the app gave it.
    Vectors(Vec<Vec<f64>>),
    /// Answer of [`Effect::Fetch`], whatever the status.
    Response {
        /// HTTP status.
        status: u16,
        /// Lower-cased names.
        headers: Vec<(String, String)>,
        /// The body as text.
        body: String,
    },
    /// Answer of [`Effect::ReadWatermark`].
    Watermark {
        /// What was written last, if anything.
        mark: Option<String>,
        /// Why the platform created the store again, when it did.
        lost: Option<String>,
    },
    /// Answer of [`Effect::Read`], in the order of the keys.
    Values(Vec<Option<Stored>>),
    /// Answer of [`Effect::Scan`].
    Entries(Vec<(Key, Stored)>),
    /// The effect failed; nothing of it took place unless the code is [`Code::Indeterminate`].
    Failed(EffectFailure),
}

/// Why an effect failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectFailure {
    /// The code that the thrown error carried, when it is one of ours.
    pub code: Option<Code>,
    /// What was thrown, as text.
    pub message: String,
    /// HTTP status, when the thrown error carried one.
    pub status: Option<u16>,
    /// The host found that the error says that the prompt was too long.
    pub overflow: bool,
    /// The effect, so that the host can attach the original as the cause. Set by the machine.
    pub effect: u32,
}

impl EffectFailure {
    /// This failure as an error, with `otherwise` when what was thrown had no code of ours.
    pub fn into_error(self, otherwise: Code) -> Error {
        Error::new(self.code.unwrap_or(otherwise), self.message).caused_by(self.effect)
    }
}

/// Token usage that a provider reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedUsage {
    /// Prompt tokens, cached or not.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// The part of them that was read from a cache.
    #[serde(default)]
    pub cache_read_tokens: u64,
    /// The part of them that was written to a cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// The part of them that was reasoning.
    #[serde(default)]
    pub reasoning_tokens: u64,
}

impl ReportedUsage {
    /// The largest count that is reported: the largest that JavaScript has exactly.
    pub const MAX_TOKENS: u64 = (1 << 53) - 1;
}

impl From<provider::Usage> for ReportedUsage {
    fn from(usage: provider::Usage) -> Self {
        ReportedUsage {
            input_tokens: usage.input,
            output_tokens: usage.output,
            cache_read_tokens: usage.cache_read,
            cache_write_tokens: usage.cache_write,
            reasoning_tokens: usage.reasoning,
        }
    }
}

impl From<ReportedUsage> for provider::Usage {
    fn from(usage: ReportedUsage) -> Self {
        provider::Usage {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cache_read: usage.cache_read_tokens,
            cache_write: usage.cache_write_tokens,
            reasoning: usage.reasoning_tokens,
        }
    }
}

impl std::ops::AddAssign for ReportedUsage {
    fn add_assign(&mut self, other: ReportedUsage) {
        // Counts are whatever an app or a provider claims.
        let add =
            |sum: &mut u64, tokens: u64| *sum = sum.saturating_add(tokens).min(ReportedUsage::MAX_TOKENS);
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.cache_read_tokens, other.cache_read_tokens);
        add(&mut self.cache_write_tokens, other.cache_write_tokens);
        add(&mut self.reasoning_tokens, other.reasoning_tokens);
    }
}
