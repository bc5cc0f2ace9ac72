//! A change of the context, with all that goes with it.

use crate::checkpoint::{Goal, Source, markers};
use crate::context::{Context, Departed, LogEntry, Splice};
use crate::log::record::SessionRow;
use crate::log::{Cause, Closing, NewBlob};

/// A change of the context on its way into the store.
#[derive(Debug)]
pub(crate) struct ContextChange {
    /// What changes.
    pub(crate) splices: Vec<Splice>,
    /// Offloads that go with it.
    pub(crate) blobs: Vec<NewBlob>,
    /// What led to it.
    pub(crate) cause: Cause,
    /// The job that led to it, to be closed.
    pub(crate) job: Option<Closing>,
    /// It is a summary of the history.
    pub(crate) summary: Option<Summarised>,
    /// It pins a message: its index, and the tokens that this takes.
    pub(crate) pin: Option<(usize, usize)>,
    /// All messages that stand in the context no more, where it changes that.
    pub(crate) left: Option<Vec<Departed>>,
    /// What it goes back to.
    pub(crate) restores: Option<Restored>,
    /// It makes the prompt fit: where the store is full it can stand in memory alone.
    pub(crate) can_wait: bool,
}

/// What of a session's row goes back with its context.
#[derive(Debug)]
pub(crate) struct Restored {
    /// What the session is for.
    pub(crate) goal: Option<Goal>,
    /// Summaries of the history.
    pub(crate) compressions: u64,
}

/// A summary of the history that a change of the context is.
#[derive(Debug)]
pub(crate) struct Summarised {
    /// Its text, which may say something about the goal.
    pub(crate) text: String,
    /// What it saved.
    pub(crate) entry: LogEntry,
}

impl ContextChange {
    /// A change of the context and nothing else.
    pub(crate) fn new(splices: Vec<Splice>, cause: Cause) -> Self {
        let (blobs, job, summary, pin) = (Vec::new(), None, None, None);
        ContextChange {
            splices,
            blobs,
            cause,
            job,
            summary,
            pin,
            left: None,
            restores: None,
            can_wait: false,
        }
    }

    /// A compaction.
    pub(crate) fn compaction(splices: Vec<Splice>, cause: Cause) -> Self {
        ContextChange { can_wait: true, ..ContextChange::new(splices, cause) }
    }

    /// Changes `context`.
    pub(crate) fn apply(&self, context: &mut Context) {
        context.apply(&self.splices);
        if let Some(left) = &self.left {
            context.set_left(left.clone());
        }
    }

    /// What it leaves in the session's row.
    pub(crate) fn note(&self, row: &mut SessionRow, now: u64) {
        if let Some((index, tokens)) = self.pin {
            row.pin(index, tokens);
        }
        if let Some(Restored { goal, compressions }) = &self.restores {
            row.goal.clone_from(goal);
            row.compressions = *compressions;
        }
        let Some(summary) = &self.summary else { return };
        row.compressions += 1;
        row.log.push(summary.entry);
        if let Some(goal) = &mut row.goal {
            goal.update(&markers(&summary.text), Source::Summary, now);
        }
    }
}
