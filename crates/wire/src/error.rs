//! The one error type of the engine: a stable code, what to do about it, and where in the input it stands.

use serde::Serialize;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Stable error codes, part of the public API: callers match on them, so a code is never renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// A message is not what its format says; `index` and `field` name the place.
    InvalidMessage,
    /// An option is out of its bounds or of the wrong type; `field` names it.
    InvalidOption,
    /// A value that the codec cannot keep (a function, a cycle, a class instance).
    UnsupportedValue,
    /// The format could not be told from the messages; pass `format`.
    UnknownFormat,
    /// No facts are known about a model; pass `contextWindow`.
    UnknownModel,
    /// The prompt cannot be made to fit; the message says what the floor is.
    ContextOverflow,
    /// Every attempt to get a summary failed; the history is unchanged.
    SummaryFailed,
    /// A summary came back and did not pass its checks.
    SummaryRejected,
    /// The caller's signal was aborted before the commit.
    Aborted,
    /// The summariser took longer than `timeoutMs`.
    Timeout,
    /// Someone else changed the session between reading and committing.
    Conflict,
    /// The history that was handed over is another one than the session's, from `index` on; nothing of it was taken over.
    Diverged,
    /// The store is full; nothing of the refused batch was written.
    QuotaExceeded,
    /// A limit that the app set for a session is reached; `field` names the option.
    LimitReached,
    /// A value is larger than the store or the engine accepts.
    TooLarge,
    /// The store cannot be opened or reached.
    StoreUnavailable,
    /// What the store returned is not what was written.
    StoreCorrupt,
    /// The platform removed data that had been acknowledged.
    DataLoss,
    /// The connection broke after the batch was sent: it may or may not have been written.
    Indeterminate,
    /// The stored session was written by a newer version of the library.
    SchemaTooNew,
    /// No such session, offload, snapshot or message.
    NotFound,
    /// The session was closed or deleted.
    Closed,
    /// A part of the engine could not be loaded; nothing was changed.
    StageUnavailable,
    /// What is counted by is not loaded yet.
    NotReady,
    /// The engine met a fatal fault earlier and refuses to go on with torn state.
    Poisoned,
}

impl Code {
    /// The code as callers see it, in snake case.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::InvalidMessage => "invalid_message",
            Code::InvalidOption => "invalid_option",
            Code::UnsupportedValue => "unsupported_value",
            Code::UnknownFormat => "unknown_format",
            Code::UnknownModel => "unknown_model",
            Code::ContextOverflow => "context_overflow",
            Code::SummaryFailed => "summary_failed",
            Code::SummaryRejected => "summary_rejected",
            Code::Aborted => "aborted",
            Code::Timeout => "timeout",
            Code::Conflict => "conflict",
            Code::Diverged => "diverged",
            Code::QuotaExceeded => "quota_exceeded",
            Code::LimitReached => "limit_reached",
            Code::TooLarge => "too_large",
            Code::StoreUnavailable => "store_unavailable",
            Code::StoreCorrupt => "store_corrupt",
            Code::DataLoss => "data_loss",
            Code::Indeterminate => "indeterminate",
            Code::SchemaTooNew => "schema_too_new",
            Code::NotFound => "not_found",
            Code::Closed => "closed",
            Code::StageUnavailable => "stage_unavailable",
            Code::NotReady => "not_ready",
            Code::Poisoned => "poisoned",
        }
    }

    /// The code with this name, or `None` (a host may hand back a code that we do not know).
    pub fn parse(name: &str) -> Option<Code> {
        use Code::*;
        [
            InvalidMessage,
            InvalidOption,
            UnsupportedValue,
            UnknownFormat,
            UnknownModel,
            ContextOverflow,
            SummaryFailed,
            SummaryRejected,
            Aborted,
            Timeout,
            Conflict,
            Diverged,
            QuotaExceeded,
            LimitReached,
            TooLarge,
            StoreUnavailable,
            StoreCorrupt,
            DataLoss,
            Indeterminate,
            SchemaTooNew,
            NotFound,
            Closed,
            StageUnavailable,
            NotReady,
            Poisoned,
        ]
        .into_iter()
        .find(|code| code.as_str() == name)
    }
}

/// An error with a stable code: [`ErrorParts`], which its fields are read and set through. It is as small as a pointer, since
/// nearly every function may hand one back, and each of them has code that moves it.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Error(Box<ErrorParts>);

/// What an [`Error`] holds. `message` says what is wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorParts {
    /// What kind of error it is.
    pub code: Code,
    /// What is wrong and what to do about it.
    pub message: String,
    /// Index of the message at fault, in the caller's array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// Path of the field at fault inside that message or inside the options, as in `tool_calls[1].id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The effect whose failure caused it: the host attaches what was thrown there as the error's cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<u32>,
    /// The error that led to this one: of a context that does not fit, why there is no summary of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<Error>,
    /// Of [`Code::Diverged`]: what differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same call may succeed later. Says so where the code alone does not: of a summary that failed, after an
    /// answer that asks to come back or a connection that was lost.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub retryable: bool,
}

/// Result with the engine's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error with no place.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self::of(code, None, message.into())
    }

    /// A malformed message: `index` in the caller's array, `field` as a path inside it.
    pub fn message(index: usize, field: impl Into<String>, what: impl Into<String>) -> Self {
        Self::of(Code::InvalidMessage, Some(field.into()), what.into()).at(index)
    }

    /// An option out of bounds.
    pub fn option(field: impl Into<String>, what: impl Into<String>) -> Self {
        Self::of(Code::InvalidOption, Some(field.into()), what.into())
    }

    #[cold]
    #[inline(never)]
    fn of(code: Code, field: Option<String>, message: String) -> Self {
        let (index, cause, because, reason) = (None, None, None, None);
        Error(Box::new(ErrorParts { code, message, index, field, cause, because, reason, retryable: false }))
    }

    /// The same error, of message `index` of the caller's array.
    #[must_use]
    pub fn at(mut self, index: usize) -> Self {
        self.index = Some(index);
        self
    }

    /// The same error, with its field.
    #[must_use]
    pub fn of_field(mut self, field: Option<String>) -> Self {
        self.field = field;
        self
    }

    /// What it holds.
    pub fn into_parts(self) -> ErrorParts {
        *self.0
    }

    /// Why JSON could not be read, without any of it: what stands in a message or a record stays out of errors and logs.
    pub fn of_json(error: &serde_json::Error) -> String {
        let text = error.to_string();
        if !error.is_data() || text.starts_with("missing field") {
            return text;
        }
        format!("a value of another type was expected at line {} column {}", error.line(), error.column())
    }

    /// The same error, caused by the failure of effect `id`.
    pub fn caused_by(mut self, id: u32) -> Self {
        self.cause = Some(id);
        self
    }
}

impl Deref for Error {
    type Target = ErrorParts;

    fn deref(&self) -> &ErrorParts {
        &self.0
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut ErrorParts {
        &mut self.0
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.index, &self.field) {
            (Some(index), Some(field)) => write!(f, "message {index}, {field}: {}", self.message),
            (Some(index), None) => write!(f, "message {index}: {}", self.message),
            (None, Some(field)) => write!(f, "{field}: {}", self.message),
            (None, None) => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}
