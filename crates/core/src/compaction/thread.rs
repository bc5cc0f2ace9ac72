//! The request for a summary that continues the conversation's own prompt, where that can be continued (`W7`).

use super::parts::History;
use super::redaction::{holds_secret, messages_without_secrets, without_secrets};
use super::rung::Run;
use super::write::{at_most, max_tokens};
use crate::error::Result;
use crate::log::View;
use crate::log::sent::PromptFront;
use crate::message::{Message, Part};
use crate::summary::{ThreadRequest, ThreadTail};
use crate::wire::{self, Author, provider};
use std::rc::Rc;

/// The name of its message, in formats whose messages have one.
const ID: &str = "summary-request";

/// What JSON lacks is written with this mark: a message with it is not what the app sent.
const TAGGED: &str = "\"$cc\"";

/// What is asked at the end of the prompt that was prepared last; nothing where that prompt does not hold all that is
/// summarised, holds a secret, or has no room for the answer.
pub(super) fn thread(
    run: &Run<'_>,
    history: &History<'_>,
    refused: Option<&str>,
) -> Result<Option<ThreadRequest>> {
    let Some(last) = run.last_prompt() else { return Ok(None) };
    let (view, proposal) = (run.view(), history.proposal);
    let settings = &view.settings;
    let provider = settings.provider();
    let format = provider.and_then(provider::Provider::format).unwrap_or(view.format);
    // Earlier checkpoints that stay are no part of what is asked for, and the prompt has them.
    if proposal.boundary > last.items || !proposal.stay.is_empty() {
        return Ok(None);
    }
    let items = view.items().get(..last.items).unwrap_or_default();
    let values = items.iter().map(|item| wire::parse(0, &item.body)).collect::<Result<Vec<_>>>()?;
    let messages = values
        .iter()
        .enumerate()
        .map(|(at, value)| format.wire().read(at, value))
        .collect::<Result<Vec<_>>>();
    let Ok(messages) = messages else { return Ok(None) };
    if has_secrets(&view, &messages, &last.front) {
        return Ok(None);
    }
    let stays = stays(messages.get(proposal.boundary..).unwrap_or_default());
    let instruction = settings.preset.prompt.thread(&stays, &history.options(refused));
    let instruction = without_secrets(&view, instruction);
    let own = items.iter().map(|item| item.size.tokens).sum::<usize>() + view.usage.fixed;
    let asked = view.usage.corrected(own) + settings.estimator.text(&instruction);
    let asked = at_most(asked, view.usage.counted(own));
    let window = settings.summary_window.map_or(settings.window, |window| window.min(settings.window));
    if asked.saturating_add(max_tokens(proposal.target_tokens)) > window {
        return Ok(None);
    }
    let body = format.wire().text_message(Author::User, &instruction, ID, values.last());
    let prompt = match provider {
        Some(_) if items.iter().any(|item| item.body.contains(TAGGED)) => return Ok(None),
        Some(_) => Some(Rc::new(provider::Thread {
            system: last.front.system.clone(),
            tools: last.front.tools.clone(),
            messages: items.iter().map(|item| Rc::clone(&item.body)).collect(),
            instruction: instruction.clone(),
        })),
        None => None,
    };
    Ok(Some(ThreadRequest { messages: vec![body], instruction, prompt }))
}

/// True when there is a secret in a prompt, where secrets are looked for.
fn has_secrets(view: &View, messages: &[Message<'_>], front: &PromptFront) -> bool {
    if !view.settings.redacts_secrets {
        return false;
    }
    let has_one = |text: &str| holds_secret(view, text);
    messages_without_secrets(view, &mut messages.to_vec()) || has_one(&front.system) || has_one(&front.tools)
}

/// What stays of the messages behind the cut: from which one on, where that can be told by its text.
fn stays(messages: &[Message<'_>]) -> ThreadTail {
    let Some(first) = messages.first() else { return ThreadTail::Nothing };
    let said = first.parts.iter().find_map(|part| match part {
        Part::Text(text) if !text.trim().is_empty() => Some(text),
        _ => None,
    });
    said.map_or(ThreadTail::Newest(messages.len()), |text| ThreadTail::From(text.to_string()))
}
