//! Prompts as data, and the request that is built from one: always inside its budget.

use super::budget::{self, Fitted};
use super::facts::Fact;
use super::focus::{self, Focus};
use super::message_facts::NamedFacts;
use super::quote::quoted_text;
use super::render::{MessageBlock, ShownMessages, blocks_of, escape};
use super::text::head;
use super::thread::ThreadRequest;
use crate::checkpoint::Goal;
use crate::error::Result;
use crate::message::Message;
use crate::tokens::Estimator;
use serde::Serialize;
use std::ops::Range;

/// Version of the wording of all prompts. Raised with every change of a file in `prompts/`, because a summary is
/// comparable only with those of the same wording.
pub const PROMPT_VERSION: u32 = 5;

/// A prompt: what presets differ in, in a frame that they share. Templates have `{name}` places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptTemplate {
    /// The preset that it is written for.
    pub name: &'static str,
    /// What the summary should look like.
    pub form: &'static str,
    /// The `## ` headings that it asks for, in order, without the marks.
    pub sections: &'static [&'static str],
}

/// The eight sections of `S1.7`, in their order.
pub const SECTIONS: [&str; 8] = [
    "Technical Context",
    "Project Overview",
    "Code Changes",
    "Debugging & Issues",
    "Current Status",
    "Pending Tasks",
    "User Preferences",
    "Key Decisions",
];

/// The prompt of preset `offload` (`S1.7`).
pub static OFFLOAD: PromptTemplate =
    PromptTemplate { name: "offload", form: include_str!("prompts/offload.md"), sections: &SECTIONS };

/// The prompt of preset `balanced`: what a list of facts beside it cannot tell.
pub static BALANCED: PromptTemplate = PromptTemplate {
    name: "balanced",
    form: include_str!("prompts/balanced.md"),
    sections: &["Goal", "State", "Decisions", "What failed", "Next"],
};

/// The prompt of preset `layered` (`S3.4`).
pub static LAYERED: PromptTemplate = PromptTemplate {
    name: "layered",
    form: include_str!("prompts/layered.md"),
    sections: &["Goals", "Actions", "Decisions", "Current State"],
};

/// The prompt of preset `factor3` (`S4.2`).
pub static FACTOR3: PromptTemplate = PromptTemplate {
    name: "factor3",
    form: include_str!("prompts/factor3.md"),
    sections: &["Key Decisions", "Unresolved Issues", "Current Task State"],
};

/// The prompt of preset `checkpoint` (`S5.10`).
pub static CHECKPOINT: PromptTemplate =
    PromptTemplate { name: "checkpoint", form: include_str!("prompts/checkpoint.md"), sections: &[] };

/// The beginning of the system prompt; place `{form}`.
const FRAME: &str = include_str!("prompts/frame.md");
/// What every summary says and keeps to, behind the form; place `{targetTokens}`.
const RULES: &str = include_str!("prompts/rules.md");

pub(super) const REQUEST: &str = include_str!("prompts/request.md");
pub(super) const PREVIOUS: &str = include_str!("prompts/previous_summary.md");
const INSTRUCTIONS: &str = include_str!("prompts/instructions.md");
const KEEP: &str = include_str!("prompts/keep.md");
const REJECTED: &str = include_str!("prompts/rejected.md");

/// Constraints that the summary must keep take up to one part in so many of the request.
pub(super) const KEPT_PART: usize = 20;

/// What a summary request is built for.
#[derive(Debug, Clone, Copy)]
pub struct PromptOptions<'a> {
    /// Length asked for, in tokens (`S1.7`: 8,000).
    pub target_tokens: usize,
    /// Ceiling of the whole request in tokens, system prompt included; `None` for no ceiling.
    pub max_input_tokens: Option<usize>,
    /// The app's or user's instructions for this summary (`S3.7`); trusted, they stand in the system prompt.
    pub instructions: Option<&'a str>,
    /// The summary that the new one replaces; data, fenced.
    pub previous_summary: Option<&'a str>,
    /// Counts everything here.
    pub estimator: Estimator,
    /// Why the attempt before was not accepted: [`super::Rejection::reason`].
    pub rejected: Option<&'a str>,
    /// Index of each message among the app's own, `None` for one that is not the app's; without them they are
    /// counted from 0.
    pub indices: Option<&'a [Option<usize>]>,
    /// How detailed the summary is to be and what it must preserve (`S5.7`, `S5.10`).
    pub focus: Option<Focus>,
    /// The goal that it is to tell the progress of (`S5.13`).
    pub goal: Option<&'a Goal>,
    /// Constraints of the user that the summary must keep (`S4.3`), oldest first, with the index of their message.
    pub keep: &'a [(usize, String)],
}

impl PromptOptions<'_> {
    /// The index that the message at `position` is known by.
    pub(super) fn index(&self, position: usize) -> Option<usize> {
        match self.indices {
            Some(indices) => indices.get(position).copied().flatten(),
            None => Some(position),
        }
    }
}

impl Default for PromptOptions<'_> {
    fn default() -> Self {
        PromptOptions {
            target_tokens: 8_000,
            max_input_tokens: None,
            instructions: None,
            previous_summary: None,
            estimator: Estimator::default(),
            rejected: None,
            indices: None,
            focus: None,
            goal: None,
            keep: &[],
        }
    }
}

/// What a summariser is asked.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryRequest {
    /// The system prompt.
    pub system: String,
    /// One user message: the fenced conversation and the order to summarise it.
    pub messages: Vec<PromptMessage>,
    /// Output ceiling for the model, in tokens: `ceil(target_tokens × 1.2)`.
    pub max_tokens: usize,
    /// Length asked for, in tokens.
    pub target_tokens: usize,
    /// What a good summary repeats literally, best first.
    pub facts: Vec<Fact>,
    /// Something was shortened or left out to stay within `max_input_tokens`.
    pub truncated: bool,
    /// The summariser's model as the app named it, for its `summarize` to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The same asked at the end of the conversation's own prompt, where that can be continued. No part of what an answer is
    /// known by: another process has another prompt.
    #[serde(skip)]
    pub thread: Option<ThreadRequest>,
}

/// A message of a [`SummaryRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptMessage {
    /// Always `user`.
    pub role: &'static str,
    /// Its text.
    pub content: String,
    /// Ranges of it, in order and apart: all lines of texts that were searched for secrets, and that hold none.
    #[serde(skip)]
    pub searched: Vec<Range<usize>>,
}

impl PromptTemplate {
    /// The request for a summary of `messages`.
    ///
    /// # Errors
    ///
    /// `invalid_option` on `maxInputTokens` when the prompt and a little of the conversation cannot fit; the message
    /// says the minimum.
    pub fn build(&self, messages: &[Message<'_>], options: &PromptOptions<'_>) -> Result<SummaryRequest> {
        let named = NamedFacts::of(messages.len());
        let shown = ShownMessages { messages, of: 0..messages.len(), named: &named, clean: &[] };
        self.shown(&shown, options)
    }

    /// The same with all that the messages say; nothing where that does not fit.
    ///
    /// Errors: as [`PromptTemplate::build`].
    pub(crate) fn whole(
        &self,
        shown: &ShownMessages<'_>,
        options: &PromptOptions<'_>,
    ) -> Result<Option<SummaryRequest>> {
        let (system, ending) = (self.system("", options), ending(options));
        let fitted = budget::unshortened(blocks_of(shown, options), &system, &ending, options)?;
        Ok(fitted.map(|fitted| asked(system, fitted, shown.facts(), options)))
    }

    /// The same with as much of it as fits.
    ///
    /// Errors: as [`PromptTemplate::build`].
    pub(crate) fn shown(
        &self,
        shown: &ShownMessages<'_>,
        options: &PromptOptions<'_>,
    ) -> Result<SummaryRequest> {
        self.request(blocks_of(shown, options), shown.facts(), "", options)
    }

    /// The request for a summary of `blocks`, which stand for messages of these facts; `more` is said behind the rules.
    pub(super) fn request(
        &self,
        blocks: Vec<MessageBlock<'_>>,
        facts: Vec<Fact>,
        more: &str,
        options: &PromptOptions<'_>,
    ) -> Result<SummaryRequest> {
        let (system, ending) = (self.system(more, options), ending(options));
        let fitted = budget::fit(blocks, &system, &ending, options)?;
        Ok(asked(system, fitted, facts, options))
    }

    /// The system prompt.
    pub(super) fn system(&self, more: &str, options: &PromptOptions<'_>) -> String {
        let system = fill(FRAME.trim_end(), &[("form", self.form.trim_end())]);
        self.with_rules(system, more, options)
    }

    /// The beginning of a prompt with what every summary keeps to, and what is asked of this one; `more` is said behind the
    /// rules.
    pub(super) fn with_rules(&self, mut system: String, more: &str, options: &PromptOptions<'_>) -> String {
        let target = options.target_tokens.to_string();
        system.push_str("\n\n");
        system.push_str(&fill(RULES.trim_end(), &[("targetTokens", &target)]));
        system.push_str(more.trim_end());
        if let Some(what) = options.focus {
            system.push_str(&focus::focus(what));
        }
        if let Some(goal) = options.goal {
            system.push_str(&focus::goal(goal));
        }
        if let Some(instructions) = present(options.instructions) {
            system.push_str(fill(INSTRUCTIONS, &[("instructions", instructions)]).trim_end());
        }
        system
    }
}

/// What stands behind the conversation, so that a retry keeps the prefix that the provider has cached.
fn ending(options: &PromptOptions<'_>) -> String {
    kept(options) + &present(options.rejected).map_or(String::new(), rejected)
}

/// A request of its texts and facts.
fn asked(
    system: String,
    fitted: Fitted,
    mut facts: Vec<Fact>,
    options: &PromptOptions<'_>,
) -> SummaryRequest {
    for fact in &mut facts {
        fact.index = fact.index.and_then(|position| options.index(position));
    }
    for (index, text) in options.keep.iter().rev() {
        if !facts.iter().any(|fact| fact.text == *text) {
            facts.insert(0, Fact::constraint(text, *index));
        }
    }
    let target = options.target_tokens;
    let Fitted { content, searched, truncated } = fitted;
    SummaryRequest {
        system,
        messages: vec![PromptMessage { role: "user", content, searched }],
        max_tokens: target.saturating_mul(6).div_ceil(5),
        target_tokens: target,
        facts,
        truncated,
        model: None,
        thread: None,
    }
}

/// Why the attempt before was not accepted, for the end of a request.
pub(super) fn rejected(reason: &str) -> String {
    fill(REJECTED, &[("reason", &escape(head(reason, 500)))]).trim_end().to_string()
}

/// What the summary must keep, as much of it as a twentieth of the request holds: the newest.
pub(super) fn kept(options: &PromptOptions<'_>) -> String {
    let room = options.max_input_tokens.map_or(usize::MAX, |limit| limit / KEPT_PART);
    let mut quotes: Vec<String> = Vec::new();
    let mut tokens = 0;
    for (index, text) in options.keep.iter().rev() {
        let quote = quoted_text(*index, text);
        tokens += options.estimator.text(&quote);
        if tokens > room {
            break;
        }
        quotes.push(quote);
    }
    quotes.reverse();
    if quotes.is_empty() {
        return String::new();
    }
    fill(KEEP.trim_end_matches('\n'), &[("constraints", &quotes.join("\n"))])
}

fn present(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

/// `template` with each `{name}` replaced. Values are inserted as they are: a place inside a value stays text.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() + values.iter().map(|(_, v)| v.len()).sum::<usize>());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let value = after
            .split_once('}')
            .and_then(|(name, tail)| values.iter().find(|(n, _)| *n == name).map(|(_, value)| (value, tail)));
        match value {
            Some((value, tail)) => {
                out.push_str(value);
                rest = tail;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}
