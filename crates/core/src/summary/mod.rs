//! Summaries: what a summariser is asked, what the built-in one writes, and which answers are acceptable.
//!
//! * [`build`] renders a history between fences that its content cannot forge, inside a token budget (`S1.7`).
//! * A history that one request cannot hold is shown in parts, and their summaries are made one (`parts`).
//! * [`facts`] lists what a good summary repeats literally.
//! * [`extractive`] writes a summary without a model.
//! * [`check`] accepts an answer or says why not (`S5.16`).
//!
//! Everything in a message is untrusted: it is described, escaped and cut, never obeyed.

mod again;
mod budget;
mod check;
mod constraint;
mod extractive;
mod facts;
mod focus;
mod guard;
pub mod keep;
mod message_facts;
mod parts;
mod prompt;
mod quote;
mod render;
pub(crate) mod result;
mod scan;
mod sentence;
pub(crate) mod text;
mod thread;
mod verify;

pub(crate) use again::again;
pub use check::{Rejection, check};
pub use constraint::constraints;
pub(crate) use constraint::proposal;
pub use extractive::extractive;
pub(crate) use extractive::is_earlier;
pub use facts::{Fact, FactKind};
pub use focus::Focus;
pub(crate) use guard::guarded;
pub(crate) use message_facts::NamedFacts;
pub use message_facts::facts;
pub(crate) use parts::once_more;
pub(crate) use prompt::fill;
pub(crate) use quote::{
    NOTICE, find_quote, kind_of, quote, quoted_file, quotes, quotes_heading, quotes_of_system, rules,
};
pub(crate) use render::ShownMessages;
pub(crate) use scan::names;
pub use thread::ThreadRequest;
pub(crate) use thread::ThreadTail;
pub(crate) use verify::{goes_on, objection, word_for_word};

pub use prompt::{
    BALANCED, CHECKPOINT, FACTOR3, LAYERED, OFFLOAD, PROMPT_VERSION, PromptMessage, PromptOptions,
    PromptTemplate, SECTIONS, SummaryRequest,
};

#[cfg(test)]
mod tests;
