//! What a summariser is asked at the end of the conversation's own prompt, which the provider has in its cache (`W7`).

use super::prompt::{PromptOptions, PromptTemplate, fill, kept, rejected};
use super::text::head;
use crate::wire::provider;
use std::rc::Rc;

/// Its beginning; places `{stays}`, `{form}`.
const THREAD: &str = include_str!("prompts/thread.md");

/// So many characters of a message tell it from the others.
const QUOTED_CHARS: usize = 120;

/// A request that continues the conversation's own prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadRequest {
    /// JSON texts of the messages to add to the prompt that was prepared last, in its format.
    pub messages: Vec<String>,
    /// What they ask.
    pub instruction: String,
    /// All of it, where an endpoint is asked and not the app.
    pub prompt: Option<Rc<provider::Thread>>,
}

/// What stays of the messages that the prompt has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ThreadTail {
    /// None of them.
    Nothing,
    /// The newest ones.
    Newest(usize),
    /// All from the one on that begins like this.
    From(String),
}

impl PromptTemplate {
    /// What is asked for a summary at the end of the conversation's prompt.
    pub(crate) fn thread(&self, stays: &ThreadTail, options: &PromptOptions<'_>) -> String {
        let stays = match stays {
            ThreadTail::Nothing => "The summary covers all messages above.".to_owned(),
            ThreadTail::Newest(1) => stay("message of the conversation stays"),
            ThreadTail::Newest(count) => stay(&format!("{count} messages of the conversation stay")),
            ThreadTail::From(text) => format!(
                "The newest messages stay as they are behind the summary, from the one on that begins with «{}». Summarize what stands \
                 before it; of those that stay, say no more than what became of earlier requests and where the work stopped.",
                head(&text.split_whitespace().collect::<Vec<_>>().join(" "), QUOTED_CHARS)
            ),
        };
        let begun = fill(THREAD.trim_end(), &[("stays", &stays), ("form", self.form.trim_end())]);
        let mut asked = self.with_rules(begun, "", options);
        asked += &kept(options);
        asked += &options.rejected.map_or(String::new(), rejected);
        asked
    }
}

fn stay(what: &str) -> String {
    format!(
        "The newest {what} as they are behind the summary. Summarize what stands before; of those that stay, say no more than what \
         became of earlier requests and where the work stopped."
    )
}
