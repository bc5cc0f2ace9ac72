//! What takes the place of summarised messages: the message of the summary, and what must stand around it.

use super::cut::Proposal;
use crate::error::{Code, Error, Result};
use crate::message::Role;
use crate::session::{Held, Item, Origin, ids, logged, measure};
use crate::step::{Io, Whose};
use crate::summary;
use crate::wire::{self, Author, Format, Repaired};
use std::rc::Rc;

/// What takes the place of the messages: those of them that stay, the message that holds the summary, and what must
/// stand around them. What is new must be smaller than what it replaces, by the counter that decides (`S5.16`).
pub(super) async fn candidate(
    io: &Io,
    held: &Held,
    proposal: &Proposal,
    text: &str,
    files: &str,
) -> Result<Vec<Item>> {
    let settings = held.settings();
    let marked = format!("{}{text}", settings.preset.summary_marker);
    let checkpoint = {
        let state = held.state();
        let generation = state.row.generation.to_le_bytes();
        ids::id(&[b"checkpoint", state.row.secret.as_bytes(), &generation, text.as_bytes()])
    };
    let checkpoint: Rc<str> = Rc::from(format!("cp_{checkpoint}"));
    let prose = marked.len();
    let marked = marked + &quotes(io, held, proposal).await? + files;
    let summary = Origin::Summary {
        checkpoint: Rc::clone(&checkpoint),
        covers: proposal.covers(),
        quotes: proposal.quotes.clone(),
        prose,
    };
    let mut items = vec![message(io, held, Author::User, &marked, &checkpoint, summary).await?];
    if proposal.acknowledge {
        let text = settings.preset.acknowledgement;
        let id = format!("{checkpoint}_ack");
        items.push(message(io, held, Author::Assistant, text, &id, Origin::Acknowledgement).await?);
    }
    let mut items = joined(held.format(), &proposal.stay, &items);
    if let Some(body) = opening(held, proposal, &items)? {
        let size = measure(io, &settings, held.format(), Whose::Ours, &body).await?;
        items.insert(0, Item { body, size, origin: Origin::Acknowledgement });
    }
    let tokens = added_tokens(proposal, &items);
    if tokens >= proposal.replaced_tokens {
        return Err(Error::new(
            Code::SummaryRejected,
            format!(
                "The summary ({tokens} tokens with its frame) was not smaller than the conversation that it replaces ({} tokens). Write a much shorter one.",
                proposal.replaced_tokens
            ),
        ));
    }
    Ok(items)
}

/// The quotes of a summary, from the messages as the app handed them over.
async fn quotes(io: &Io, held: &Held, proposal: &Proposal) -> Result<String> {
    let mut bodies = Vec::with_capacity(proposal.quotes.len());
    for place in &proposal.quotes {
        bodies.push((place.index, logged(io, held, *place).await?));
    }
    let mut values = Vec::with_capacity(bodies.len());
    for (index, body) in &bodies {
        values.push((*index, wire::parse(*index, body)?));
    }
    let format = held.format();
    let messages = values.iter().map(|(index, value)| Ok((*index, format.wire().read(*index, value)?)));
    Ok(summary::quotes(&messages.collect::<Result<Vec<_>>>()?))
}

/// What takes the place of the summarised part: what stays of it in front of the summary, except for messages of the
/// system where the user must begin.
fn joined(format: Format, stay: &[Item], written: &[Item]) -> Vec<Item> {
    let leads = |item: &Item| format.wire().system_may_begin() || item.size.role != Role::System;
    let (front, behind): (Vec<Item>, Vec<Item>) = stay.iter().cloned().partition(leads);
    let (summary, rest) = written.split_at(written.len().min(1));
    [&front, summary, &behind, rest].concat()
}

/// The message that the format wants in front of `items` where they begin the conversation with one that stays, such
/// as the provider's own compaction.
fn opening(held: &Held, proposal: &Proposal, items: &[Item]) -> Result<Option<Rc<str>>> {
    if proposal.head > 0 || proposal.stay.is_empty() {
        return Ok(None);
    }
    let values = items.iter().map(|item| wire::parse(0, &item.body)).collect::<Result<Vec<_>>>()?;
    let (repaired, _) = held.format().wire().repair(&values);
    Ok(match repaired.as_slice() {
        [
            Repaired::Replace { index: 0, json },
            Repaired::Keep(0) | Repaired::Replace { index: 0, .. },
            ..,
        ] => Some(Rc::from(json.as_str())),
        _ => None,
    })
}

/// Tokens of what was not there before.
pub(super) fn added_tokens(proposal: &Proposal, items: &[Item]) -> usize {
    let tokens = |items: &[Item]| items.iter().map(|item| item.size.tokens).sum::<usize>();
    tokens(items).saturating_sub(tokens(&proposal.stay))
}

async fn message(io: &Io, held: &Held, author: Author, text: &str, id: &str, origin: Origin) -> Result<Item> {
    let body: Rc<str> = {
        let context = held.context();
        let like = context.items().last().map(|item| wire::parse(0, &item.body)).transpose()?;
        Rc::from(held.format().wire().text_message(author, text, id, like.as_ref()))
    };
    let size = measure(io, &held.settings(), held.format(), Whose::Ours, &body).await?;
    Ok(Item { body, size, origin })
}
