//! Wire formats: a folder each. A format reads the app's messages into the model, writes the few *new* messages
//! that compaction needs, and knows the rules its provider enforces.
//!
//! With the message model, the codes of errors and the one sort it is all that reading and checking a history takes.
//!
//! To add a format: a folder beside this file with a type that implements [`Wire`], [`Rules`] and [`Tools`], and a line of `formats!`. Nothing outside
//! this folder names a format's fields.

mod ai_sdk;
mod anthropic;
mod blank;
mod blocks;
mod decimal;
mod detect;
mod edit;
pub mod error;
mod foreign;
mod gemini;
mod identity;
mod large;
mod mark;
mod media;
pub mod message;
pub mod named;
pub mod objects;
mod openai_chat;
mod openai_responses;
pub mod order;
mod past;
mod picture;
mod prose;
pub mod provider;
mod react;
mod read;
pub mod record;
mod rules;
pub mod server;
mod tagged;
mod tools;
mod trailing;
pub mod work;

pub use blank::{ERASED, blank};
pub use decimal::decimal;
pub use detect::{detect, rate};
pub use error::{Code, Error, ErrorParts, Result};
pub use identity::{Hints, Identity, identity};
pub use media::{ShownMedia, media_of, with_block, with_media_texts};
pub use past::Past;
pub use prose::with_text;
pub use react::compare as compare_trajectories;
pub use tools::{Calling, Tool, Tools};
pub use trailing::{Rest, end, with_end, without_end};

use crate::large::LARGE;
use crate::message::{Media, Message};
use crate::work::WorkDone;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};
use serde_json_borrow::Value;
use std::borrow::Cow;

/// The wire formats from one table, in the order in which detection asks them.
macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident = $name:literal, $wire:expr;)*) => {
        /// The wire formats.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Format {
            $($(#[$doc])* $format,)*
        }

        named!(Format { $($format = $name),* });

        impl Format {
            /// Every format that exists, in the order in which detection asks them.
            pub const ALL: [Format; [$($name),*].len()] = [$(Format::$format),*];

            /// The format's name in the public API.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Format::$format => $name,)*
                }
            }

            /// The format's reader.
            pub fn wire(self) -> &'static dyn Wire {
                match self {
                    $(Format::$format => &$wire,)*
                }
            }

            /// The format's rules, and edits that keep to them.
            pub fn rules(self) -> &'static dyn Rules {
                match self {
                    $(Format::$format => &$wire,)*
                }
            }

            /// How the format speaks of tools.
            pub fn tools(self) -> &'static dyn Tools {
                match self {
                    $(Format::$format => &$wire,)*
                }
            }
        }
    };
}

formats! {
    /// OpenAI Chat Completions and everything compatible with it.
    OpenaiChat = "openai-chat", openai_chat::OpenaiChat;
    /// Anthropic Messages.
    Anthropic = "anthropic", anthropic::Anthropic;
    /// OpenAI Responses: input items.
    OpenaiResponses = "openai-responses", openai_responses::OpenaiResponses;
    /// Gemini: contents.
    Gemini = "gemini", gemini::Gemini;
    /// Vercel AI SDK: UI messages or model messages.
    AiSdk = "ai-sdk", ai_sdk::AiSdk;
    /// A trajectory of thoughts, actions and results.
    React = "react", react::React;
}

impl Format {
    /// The format with this name in the public API.
    ///
    /// Errors: [`crate::Code::InvalidOption`].
    pub fn named(name: &str) -> Result<Format> {
        Format::deserialize(StrDeserializer::<serde::de::value::Error>::new(name))
            .map_err(|_| Error::option("format", format!("is not the name of a format: {name}")))
    }
}

/// How surely a history is in a format, judged by fields that other formats do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// Something in it cannot stand in this format.
    Against,
    /// It could be: plain roles and text only.
    Possible,
    /// A field that only this format has.
    Certain,
}

impl Evidence {
    /// What two messages say together: one that cannot stand in the format decides, then a certain one.
    fn and(self, other: Evidence) -> Evidence {
        if self == Evidence::Against {
            self
        } else if other == Evidence::Against {
            other
        } else {
            self.max(other)
        }
    }
}

/// A broken rule of a provider, by its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The rule's id, as in `OC1`.
    pub rule: &'static str,
    /// Index of the message that breaks it.
    pub index: usize,
    /// What is wrong and what to do.
    pub message: String,
}

/// A change that a repair made.
pub type Change = Problem;

/// What a repair does with one message of its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repaired {
    /// The caller's own message, untouched.
    Keep(usize),
    /// A new message in place of (part of) message `index`: JSON text.
    Replace {
        /// The message that it comes from.
        index: usize,
        /// The new message, JSON text.
        json: String,
    },
}

/// What is left of a message without its bound reasoning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unbound {
    /// It has none.
    Same,
    /// The message without it: JSON text.
    Changed(String),
    /// Nothing: it is all that there is.
    Nothing,
}

/// Who a new message is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Author {
    /// The role of its messages in most formats.
    fn role(self) -> &'static str {
        match self {
            Author::User => "user",
            Author::Assistant => "assistant",
        }
    }
}

/// How a wire format is read, and whether it is in order: all that a history takes that only grows. Methods get a message as
/// a borrowed JSON tree together with its index for errors.
pub trait Wire: Sync {
    /// How surely a message is in this format.
    fn evidence_of(&self, message: &Value<'_>) -> Evidence;

    /// How surely these messages are, together.
    fn evidence(&self, messages: &[Value<'_>]) -> Evidence {
        messages.iter().map(|message| self.evidence_of(message)).fold(Evidence::Possible, Evidence::and)
    }

    /// The format whose types of content blocks it has, where it is a dialect of another.
    fn dialect_of(&self) -> Option<Format> {
        None
    }

    /// Fields that say nothing of what a message says.
    fn hints(&self) -> &'static Hints;

    /// Reads one message. Unknown blocks become [`crate::message::Part::Opaque`]; what the format forbids outright
    /// is [`crate::Code::InvalidMessage`] with index and field. Roles, types and the order of messages are not judged
    /// here: that is [`Rules::validate`].
    fn read<'a>(&self, index: usize, message: &'a Value<'a>) -> Result<Message<'a>>;

    /// A new message of prose: JSON text. `id` is for formats whose messages have one; `like` is a message of the
    /// history that it is for, where a format has more than one shape of message.
    fn text_message(&self, author: Author, text: &str, id: &str, like: Option<&Value<'_>>) -> String;

    /// True when a summary can stand in a history of this format in place of earlier messages: as a message of the
    /// user (or of the model, [`Wire::assistant_may_begin`]), behind leading system messages.
    fn takes_summary(&self) -> bool {
        true
    }

    /// Checks the rules of [`Rules::validate`] (not strict) on a history that has grown: `window` is what stands behind the
    /// messages that `past` is of. True when no rule is broken, and then `past` takes up as much of the window as nothing
    /// that is added later can depend on. False when one is broken or may be: a history with an empty `past` is judged
    /// exactly.
    fn grows(&self, past: &mut Past, window: &[Value<'_>]) -> bool;

    /// True when two messages of the user should not stand side by side: the provider wants the roles to alternate, or
    /// merges such messages, or servers of the format refuse them.
    fn alternates(&self) -> bool {
        true
    }

    /// True when a message of the model may be the first one behind those of the system.
    fn assistant_may_begin(&self) -> bool {
        false
    }
}

/// What a format's provider holds a history to, and edits that keep to it: what a compaction, a check or an archive takes. It
/// stands apart from [`Wire`], so that who only reads does not carry it.
pub trait Rules: Calling + Sync {
    /// `message` with the text of its `nth` tool result (0-based, in the order of [`Message::results`]) replaced;
    /// everything else, also unknown fields, media inside the result and the shape of its content (a string stays a
    /// string, an array an array, a tagged output keeps its tag, an object stays an object), is as it was. What an edit
    /// makes void goes with it: server ids of the edited item (OR4), reasoning in the same message that is bound to
    /// what stood before it. JSON text, or `None` when there is no such result.
    fn with_result_text(&self, message: &Value<'_>, nth: usize, text: &str) -> Option<String>;

    /// `message` with other arguments (JSON text of an object) of its `nth` call (0-based, in the order of
    /// [`Message::calls`]); everything else is as it was. `None` when there is no such call, when its arguments are no
    /// object, and when the provider holds them to something else: a record of its own, a signature, what was said after
    /// them in the same message.
    fn with_call_arguments(&self, message: &Value<'_>, nth: usize, arguments: &str) -> Option<String>;

    /// Where a message, or a block of one, holds an array of blocks that may be media: the fields on the way to it; empty for
    /// none.
    fn media_path(&self, _value: &Value<'_>) -> &'static [&'static str] {
        &[]
    }

    /// What a block of such an array shows that is no text, where a text can stand for it.
    fn shown(&self, _block: &Value<'_>) -> Option<Media> {
        None
    }

    /// A block of such an array that says this.
    fn telling<'v>(&self, text: &str) -> Value<'v> {
        edit::text_block(text)
    }

    /// Says this beside such an array, where no text can stand in it; false where one can.
    fn tell_beside(&self, _holder: &mut Value<'_>, _text: &str) -> bool {
        false
    }

    /// Fields of `message` that an edit of its blocks makes void.
    fn void_fields(&self, _message: &Value<'_>) -> &'static [&'static str] {
        &[]
    }

    /// Checks the provider's rules. `strict` adds those that only some servers enforce (alternation, system first).
    fn validate(&self, messages: &[Value<'_>], strict: bool) -> Vec<Problem>;

    /// The smallest deterministic change after which [`Rules::validate`] (not strict) finds nothing, and what was
    /// changed. Exchanges that are broken (a call with no result, a result with no call, arguments that are not a
    /// JSON object) are removed whole (`S1.15`).
    fn repair(&self, messages: &[Value<'_>]) -> (Vec<Repaired>, Vec<Change>);

    /// `message` without the reasoning that the provider binds to what stood before it: for messages that are kept
    /// after an edit of earlier ones (AN8).
    fn without_bound_reasoning(&self, _message: &Value<'_>) -> Unbound {
        Unbound::Same
    }
}

/// Reads one message with [`Wire::read`]; the error of one in the shape of another library says which, and what to do.
pub fn read<'a>(format: Format, index: usize, message: &'a Value<'a>) -> Result<Message<'a>> {
    foreign::read(format, index, message)
}

/// The same for a message that a session takes: what it would lose of it is refused.
pub fn take<'a>(format: Format, index: usize, message: &'a Value<'a>) -> Result<Message<'a>> {
    foreign::take(format, index, message)
}

/// Parses one message from JSON text.
///
/// Errors: [`crate::Code::InvalidMessage`] when it is not an object or nests deeper than 128 levels.
pub fn parse(index: usize, json: &str) -> Result<Value<'_>> {
    work::note(WorkDone::Parses, 1);
    let large = if json.len() < LARGE { None } else { large::parse(json) };
    let value: Value<'_> = large
        .map_or_else(|| serde_json::from_str(json), Ok)
        .map_err(|error| Error::message(index, "", format!("not readable as JSON: {error}")))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(Error::message(index, "", "a message must be an object with a role"))
    }
}

/// A message from plain JSON, as the codec would write it; nearly always the very text. Halves of surrogate pairs that
/// stand alone, which no provider takes, become U+FFFD.
pub fn as_kept(index: usize, json: String) -> Result<String> {
    let json = pair_surrogates(json);
    if !json.contains("\"$cc\"") {
        return Ok(json);
    }
    let mut value = parse(index, &json)?;
    tagged::escape(&mut value);
    Ok(self::json(&value))
}

/// JSON text without escapes of lone surrogates.
fn pair_surrogates(json: String) -> String {
    /// The unit of an escape at the start of a text.
    fn unit(text: &str) -> Option<u16> {
        u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
    }
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let (take, put) = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, None),
            (Some(0xD800..=0xDFFF), _) => (6, Some("\\ufffd")),
            (Some(_), _) => (6, None),
            (None, _) => (escape.char_indices().nth(2).map_or(escape.len(), |(at, _)| at), None),
        };
        let (taken, next) = escape.split_at_checked(take).unwrap_or((escape, ""));
        out.push_str(put.unwrap_or(taken));
        rest = next;
    }
    out.push_str(rest);
    out
}

/// JSON text of a tree, its fields in their order.
pub fn json(value: &Value<'_>) -> String {
    // Writing a tree of strings, finite numbers and string keys into memory has no way to fail.
    serde_json::to_string(value).unwrap_or_default()
}

/// JSON text of a tree, the fields of each object by name. It is read once more, into a tree that keeps them so.
pub fn ordered_json(value: &Value<'_>) -> String {
    serde_json::from_str(&json(value)).map(|value: serde_json::Value| value.to_string()).unwrap_or_default()
}

/// A message of prose in the formats whose messages are `{ role, content }`.
fn plain_message(author: Author, text: &str) -> String {
    #[derive(Serialize)]
    struct Plain<'a> {
        role: &'a str,
        content: &'a str,
    }
    serde_json::to_string(&Plain { role: author.role(), content: text }).unwrap_or_default()
}

/// The blocks of an array of content; none when the content is a string.
fn content_blocks<'a>(message: &'a Value<'a>) -> &'a [Value<'a>] {
    match tagged::given(message, "content") {
        Some(Value::Array(blocks)) => blocks,
        _ => &[],
    }
}

/// Texts joined by a line break; a single one stays borrowed.
fn join(mut texts: Vec<Cow<'_, str>>) -> Cow<'_, str> {
    match texts.len() {
        0 | 1 => texts.pop().unwrap_or_default(),
        _ => Cow::Owned(texts.join("\n")),
    }
}
