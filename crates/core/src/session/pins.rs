//! Pins (`S4.3`): messages that stay verbatim for ever. The app marks them, or takes over what the constraint
//! detector proposes; no message is pinned that nobody asked for. The sentences that it proposes one for follow every
//! summary until the app rejects them.

use crate::compaction::{self, Framer, reasoning};
use crate::context::{Origin, Place, Splice};
use crate::error::{Error, Result};
use crate::log::record::SessionRow;
use crate::log::retry::conflict;
use crate::log::{Cause, ContextChange, SessionGuard, State, stored};
use crate::step::Io;

/// Notes that the constraints of a message hold no more: durable when it ends. The next compaction says them no more.
///
/// Errors: [`crate::Code::InvalidOption`] when there is no such message.
pub(crate) async fn reject(io: &Io, guard: &SessionGuard, index: usize) -> Result<()> {
    let messages = guard.messages();
    if index >= messages {
        return Err(Error::option("index", format!("there is no message {index}; there are {messages}")));
    }
    if guard.view().is_rejected(index) {
        return Ok(());
    }
    let update = |row: &mut SessionRow, _| {
        if let Err(at) = row.rejected.binary_search(&index) {
            row.rejected.insert(at, index);
        }
        Ok(())
    };
    guard.update_row(io, update).await
}

/// The position of a message in the context.
enum MessageStanding {
    /// Word for word, itself or in a summary: its tokens.
    Verbatim(usize),
    /// After the summary at this position.
    Summarised(usize),
}

fn standing(state: &State, index: usize) -> Result<MessageStanding> {
    for (at, item) in state.context.items().iter().enumerate() {
        if item.origin.place().is_some_and(|place| place.index == index) {
            return Ok(MessageStanding::Verbatim(item.size.tokens));
        }
        if let Origin::Summary { covers, quotes, .. } = &item.origin
            && covers.iter().any(|cover| (cover.from..cover.to).contains(&index))
        {
            let is_quoted = quotes.iter().any(|place| place.index == index);
            return Ok(if is_quoted {
                MessageStanding::Verbatim(0)
            } else {
                MessageStanding::Summarised(at)
            });
        }
    }
    let what = match state.row.messages {
        messages if index < messages => format!("message {index} is in the context no more"),
        messages => format!("there is no message {index}; there are {messages}"),
    };
    Err(Error::option("index", what))
}

/// Pins a message: durable when it ends. One that was summarised already is quoted after its summary from now on.
///
/// Errors: [`crate::Code::InvalidOption`] when there is no such message.
pub(crate) async fn pin(io: &Io, guard: &SessionGuard, index: usize) -> Result<()> {
    if guard.settings().is_server() {
        return Err(Error::option(
            "summarize",
            "\"server\" keeps no message verbatim: put what must hold into the system prompt, or give another summarize",
        ));
    }
    compaction::dissolve_around(io, guard, index).await?;
    let standing = standing(&guard.state(), index)?;
    match standing {
        MessageStanding::Verbatim(_) if guard.view().is_pinned(index) => Ok(()),
        MessageStanding::Verbatim(tokens) => {
            let update = |row: &mut SessionRow, _| {
                row.pin(index, tokens);
                Ok(())
            };
            guard.update_row(io, update).await
        }
        MessageStanding::Summarised(at) => {
            let place = stored::place_of(io, guard, index).await?;
            quote(io, guard, at, place).await
        }
    }
}

/// Puts a message back, verbatim, after the summary at position `at` of the context.
async fn quote(io: &Io, guard: &SessionGuard, at: usize, place: Place) -> Result<()> {
    let item = guard.context().get(at).cloned();
    let Some(item) = item else { return Err(conflict()) };
    let framer = Framer::of(io, &guard.state());
    let insert = vec![framer.quoting(&item, place).await?];
    let more: usize =
        insert.iter().map(|new| new.size.tokens).sum::<usize>().saturating_sub(item.size.tokens);
    let splice = Splice { at, remove: 1, insert };
    // What signed reasoning was bound to has changed.
    let (splices, freed) = reasoning::unbind(io, &guard.view(), vec![splice]).await?;
    let after = guard.view().usage.after(more, freed);
    let cause = Cause::of(&guard.view(), "pin", after);
    let pin = Some((place.index, more));
    guard.change(io, ContextChange { pin, ..ContextChange::new(splices, cause) }).await
}
