//! The one message model that every format is read into.
//!
//! A [`Message`] borrows from the bytes it was read from. It is for *deciding* only (counting, splitting,
//! prompting); messages that are kept go back to the caller as the caller's own objects and are never written
//! from this model.

mod exchange;
pub mod limits;

pub use exchange::{BoundMessage, Exchanges, MessageLink};

use std::borrow::Cow;

/// Who a message is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Instructions of the app: `system` and `developer`.
    System,
    /// The user. In formats that carry tool results in user messages, a message of results only is [`Role::Tool`].
    User,
    /// The model.
    Assistant,
    /// Results of tools.
    Tool,
}

impl Role {
    /// The name used in prompts, statistics and the public API.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// One message of a history.
#[derive(Debug, Clone, PartialEq)]
pub struct Message<'a> {
    /// Who it is from.
    pub role: Role,
    /// Its content, in order.
    pub parts: Vec<Part<'a>>,
}

/// One part of a message's content.
#[derive(Debug, Clone, PartialEq)]
pub enum Part<'a> {
    /// Prose.
    Text(Cow<'a, str>),
    /// The model asks for a tool to be run by the app.
    ToolCall(ToolCall<'a>),
    /// What the tool answered.
    ToolResult(ToolResult<'a>),
    /// The model's reasoning; `signed` when the provider checks it against what stands before it.
    Reasoning {
        /// The visible text; empty when it is encrypted or redacted.
        text: Cow<'a, str>,
        /// A signature or encrypted content is attached: never edit it, keep it or drop it whole.
        signed: bool,
    },
    /// An image, a document, audio or video: counted by rule, never by the length of its encoding.
    Media(Media),
    /// A block that we do not know, or whose content is the provider's business: kept with its message, counted by its
    /// text, never read.
    Opaque {
        /// The block's own name for its type.
        kind: Cow<'a, str>,
        /// Tokens are estimated from this many characters of JSON.
        chars: usize,
        /// What it opens or closes.
        tie: Pairing<'a>,
    },
    /// The provider's own compaction item. It stands for what was before it, only its provider can read it, and it is
    /// sent verbatim or not at all.
    Compaction {
        /// Tokens are estimated from this many characters of JSON.
        chars: usize,
    },
}

/// What ties a block to another one, in its message or in a later one: a call that the provider runs itself to its
/// result, a request for approval to the answer. No cut may part them. Ids pair by order, as those of calls do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pairing<'a> {
    /// It stands alone.
    None,
    /// A block that closes it comes later, in this message or in another.
    Opens(Cow<'a, str>),
    /// It closes the nearest earlier open one with this id.
    Closes(Cow<'a, str>),
    /// It stands for a message that only the provider has: reasoning, a call, whatever a later one may answer.
    Refers,
}

/// A call of a tool by the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall<'a> {
    /// The provider's id; unique within one step only, so calls and results are paired by order.
    pub id: Cow<'a, str>,
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// The arguments as JSON text.
    pub arguments: Cow<'a, str>,
    /// Id of the call whose code made this one (programmatic tool calling): the two stay together.
    pub caller: Option<Cow<'a, str>>,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult<'a> {
    /// The id of the call that it answers.
    pub call_id: Cow<'a, str>,
    /// Its text; several text blocks are joined by a line break.
    pub text: Cow<'a, str>,
    /// The tool says that it failed.
    pub is_error: bool,
    /// Images and documents inside the result.
    pub media: Vec<Media>,
    /// How long it stays, where the app says so.
    pub mark: Option<Mark>,
}

/// How long a result stays, where the app says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Word for word, as what is pinned.
    Always,
    /// Until the model has read it.
    Disposable,
    /// Something else was written there.
    Unknown,
}

/// A media part: what its token cost depends on, never its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Media {
    /// Image, document, audio or video.
    pub kind: MediaKind,
    /// Bytes of the decoded payload when it is inline, else 0.
    pub bytes: usize,
    /// Width and height of an inline picture whose first bytes say them.
    pub pixels: Option<(u32, u32)>,
}

/// Kinds of media part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    /// A picture.
    Image,
    /// A PDF or another file.
    Document,
    /// Sound.
    Audio,
    /// Moving pictures.
    Video,
}

impl<'a> Message<'a> {
    /// The tool calls of this message, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall<'a>> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The tool results of this message, in order.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult<'a>> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        })
    }

    /// The texts of this message, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_ref()),
            _ => None,
        })
    }

    /// True for a message that holds nothing but reasoning, as an item of its own: it belongs to what the model said next.
    pub fn is_reasoning(&self) -> bool {
        !self.parts.is_empty() && self.parts.iter().all(|part| matches!(part, Part::Reasoning { .. }))
    }

    /// True for a message with a compaction item of the provider.
    pub fn has_compaction(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Compaction { .. }))
    }

    /// All prose of this message, parts joined by a line break.
    pub fn text(&self) -> String {
        self.texts().collect::<Vec<_>>().join("\n")
    }
}
