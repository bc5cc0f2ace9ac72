//! What the last `prepare` sent.

use super::state::State;
use crate::context::{Context, Fate};
use crate::wire::Past;
use std::rc::Rc;

/// A message of the app that the last `prepare` did not send as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OmittedMessage {
    /// Index among the app's messages.
    pub(crate) index: usize,
    /// [`Fate::Dropped`], or [`Fate::Reduced`] when a part of it was sent.
    pub(crate) fate: Fate,
    /// The rule that it would break.
    pub(crate) reason: String,
}

/// A context that was handed out as it was.
#[derive(Debug, Clone)]
pub(crate) struct HandedOut {
    /// Which `prepare` did.
    pub(crate) nth: u64,
    /// How many items it had.
    pub(crate) items: usize,
    /// What went before them.
    pub(crate) front: Rc<PromptFront>,
}

/// A prompt that was mended, and that goes on as it is for as long as its context is only added to.
#[derive(Debug, Clone)]
pub(crate) struct MendedPrompt {
    /// Which `prepare` handed it out.
    pub(crate) nth: u64,
    /// How many items the context had.
    pub(crate) items: usize,
    /// What was sent of them.
    pub(crate) sent: Context,
    /// What is known of that: it breaks no rule.
    pub(crate) past: Past,
    /// The rules that the context breaks.
    pub(crate) rules: Vec<&'static str>,
}

/// What goes before the messages of a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PromptFront {
    /// The system prompt, with the goal.
    pub(crate) system: String,
    /// The definitions of the tools, JSON text.
    pub(crate) tools: String,
}

/// A prompt that a request may continue.
#[derive(Debug, Clone)]
pub(crate) struct LastPrompt {
    /// So many items of the context are in it, as they are now.
    pub(crate) items: usize,
    /// What went before them.
    pub(crate) front: Rc<PromptFront>,
}

impl State {
    /// True when the endpoint for summaries would be asked at the end of the conversation's prompt, as far as that is known
    /// before: what an app's own function sends is the app's.
    pub(crate) fn asks_in_thread(&self) -> bool {
        let settings = &self.settings;
        let is_clean = !settings.redacts_secrets || self.secrets.borrow().is_empty();
        settings.provider().is_some() && is_clean && self.last_prompt().is_some()
    }

    /// The prompt that was prepared last, where a summariser's request may continue it (`W7`): it runs at the conversation's
    /// own model, nothing of the prompt was changed since, and what the summariser sees is not the app's to redact.
    pub(crate) fn last_prompt(&self) -> Option<LastPrompt> {
        let settings = &self.settings;
        let is_of_format = match settings.provider() {
            Some(provider) => self.may_be().any(|format| provider.format() == Some(format)),
            None => self.format().wire().takes_summary(),
        };
        if !settings.continues_prompts || settings.app_redacts || !is_of_format {
            return None;
        }
        let sent = self.handed_out.as_ref()?;
        let is_same = sent.items > 0 && sent.items <= self.context.settled();
        is_same.then(|| LastPrompt { items: sent.items, front: Rc::clone(&sent.front) })
    }
}
