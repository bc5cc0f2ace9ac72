//! The request for a summary that continues the conversation's own prompt, where that can be continued (`W7`).

use super::parts::History;
use super::redaction::{holds_secret, messages_without_secrets, without_secrets};
use super::rung::Run;
use super::write::{at_most, max_tokens};
use crate::error::Result;
use crate::log::View;
use crate::log::sent::PromptFront;
use crate::message::{Message, Part};
use crate::step::Breath;
use crate::summary::{ThreadRequest, ThreadTail};
use crate::wire::{self, Author, provider};
use std::rc::Rc;

/// The name of its message, in formats whose messages have one.
const ID: &str = "summary-request";

/// What JSON lacks is written with this mark: a message with it is not what the app sent.
const TAGGED: &str = "\"$cc\"";

/// What is asked at the end of the prompt that was prepared last; nothing where that prompt does not hold all that is
/// summarised, holds a secret, or has no room for the answer.
pub(super) async fn thread(
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
    let mut breath = Breath::default();
    let (mut stays, mut end, mut has_secrets) = (ThreadTail::Nothing, None, false);
    for (at, item) in items.iter().enumerate() {
        let value = wire::parse(at, &item.body)?;
        let Ok(message) = format.wire().read(at, &value) else { return Ok(None) };
        if at == proposal.boundary {
            stays = from(&message, items.len() - at);
        }
        has_secrets |= messages_without_secrets(&view, &mut [message]);
        end = Some(value);
        breath.after(run.io, item.body.len()).await?;
    }
    if has_secrets || holds_secrets(&view, &last.front) {
        return Ok(None);
    }
    let instruction = settings.preset.prompt.thread(&stays, &history.options(refused));
    let instruction = without_secrets(&view, instruction);
    let own = items.iter().map(|item| item.size.tokens).sum::<usize>() + view.usage.fixed;
    let asked = view.usage.corrected(own) + settings.estimator.text(&instruction);
    let asked = at_most(asked, view.usage.counted(own));
    let window = settings.summary_window.map_or(settings.window, |window| window.min(settings.window));
    if asked.saturating_add(max_tokens(proposal.target_tokens)) > window {
        return Ok(None);
    }
    let body = format.wire().text_message(Author::User, &instruction, ID, end.as_ref());
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

/// True when there is a secret beside the messages, where secrets are looked for.
fn holds_secrets(view: &View, front: &PromptFront) -> bool {
    view.settings.redacts_secrets && [&front.system, &front.tools].iter().any(|text| holds_secret(view, text))
}

/// Of `count` messages that stay, the first is this one: from which one on, where that can be told by its text.
fn from(first: &Message<'_>, count: usize) -> ThreadTail {
    let said = first.parts.iter().find_map(|part| match part {
        Part::Text(text) if !text.trim().is_empty() => Some(text),
        _ => None,
    });
    said.map_or(ThreadTail::Newest(count), |text| ThreadTail::From(text.to_string()))
}
