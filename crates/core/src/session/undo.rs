//! A compaction taken back (`X14`): the context is what it would be had nothing been compacted. The log has every message,
//! and the view before the compaction is still there, so it is one more view.

use super::branch::{PastContext, Return, context_at, return_to};
use super::operations::Session;
use crate::compaction::reasoning::unbind_since;
use crate::error::{Code, Error, Result};
use crate::log::SessionGuard;
use crate::log::record::ViewRow;
use crate::log::stored::view_row;
use crate::policy::Rung;
use crate::step::{Io, Machine};

/// Changes of the context that leave a compaction to be taken back: its messages stay as they are.
const BESIDE: [&str; 3] = ["pin", "reasoning", "whole"];

impl Session {
    /// Takes the last compaction back, with all its steps: the messages that it changed or replaced stand in the context
    /// again as they were, and what was appended since behind them. Again, it takes back the one before that.
    ///
    /// Errors: [`Code::NotFound`] when there is none, or messages left the context since.
    pub fn undo(&self) -> Machine<()> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let undo = async |io: Io| {
                let guard = slot.take()?;
                return_to(&io, &guard, async || before_last(&io, &guard).await).await
            };
            slot.try_on_rows(&io, undo).await
        })
    }
}

/// The context as it would be without the last compaction.
async fn before_last(io: &Io, guard: &SessionGuard) -> Result<PastContext> {
    let (sid, newest, messages, rows) = {
        let row = &guard.state().row;
        (guard.state().sid.clone(), row.generation, row.messages, row.next_seq)
    };
    let (mut first, mut summaries): (Option<ViewRow>, u64) = (None, 0);
    let (mut at, mut is_joined) = (newest, true);
    // The steps of one compaction have no messages between them.
    while at > 0 && is_joined {
        let view = view_row(io, &sid, at).await?;
        let rung = view.cause.rung.as_str();
        let is_step = Rung::ALL.iter().any(|known| known.stored() == rung);
        if let (Some(before), None) = (view.cause.undoes_to, &first) {
            at = before;
        } else if is_step {
            summaries += u64::from(rung == Rung::Summarise.stored());
            is_joined = view.appended.is_empty();
            at -= 1;
            first = Some(view);
        } else if BESIDE.contains(&rung) {
            is_joined = first.is_none() || view.appended.is_empty();
            at -= 1;
        } else {
            break;
        }
    }
    let Some(first) = first else { return Err(nothing(io, &sid, at).await?) };
    let before = first.generation - 1;
    let tail_from = if before == 0 { 0 } else { view_row(io, &sid, before).await?.to };
    let (mut items, left) = context_at(io, guard, before, tail_from, rows, messages).await?;
    let view = guard.view();
    // What was said since was said behind another context.
    unbind_since(io, &view, &mut items, first.messages).await?;
    Ok(PastContext { items, left, messages, by: Return::Undo { generation: before, summaries } })
}

/// Why there is nothing to take back, by view `at`, which no compaction made.
async fn nothing(io: &Io, sid: &str, at: u64) -> Result<Error> {
    let why = match at {
        0 => "the context was not compacted".to_owned(),
        at => format!(
            "the context was not compacted since its last {}",
            view_row(io, sid, at).await?.cause.rung
        ),
    };
    Ok(Error::new(
        Code::NotFound,
        format!("No compaction to undo: {why}; snapshots.rewind goes back to before a message"),
    ))
}
