//! What a rung of the ladder is, and what a climb is made with.

use super::ask::Spent;
use super::call::CallCost;
use super::floor::Least;
use super::replace::{self, Move};
use super::result::{CompactionResult, Edit};
use super::writer::Writer;
use crate::error::{Code, Error, Result};
use crate::log::{SessionGuard, State};
use crate::policy::{Rung, Trigger};
use crate::step::{Io, Work};
use std::borrow::Cow;

/// How often a rung that another tab overtook is tried again.
pub(super) const AGAIN: usize = 3;

/// Which rungs a climb takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClimbPart {
    /// All of them.
    Whole,
    /// Those that need no summary yet: one that can wait is put off.
    Now,
    /// The summary that was put off, and what follows it.
    Later,
}

/// How a climb is made. What is told, asked and stored goes through doors: the host, who writes, and the session that is
/// held. A dry run is the same climb with a host that hears nothing, a writer that costs nothing, and a copy.
#[derive(Debug)]
pub(crate) struct Run<'r> {
    /// Which rungs of the preset.
    pub(crate) part: ClimbPart,
    /// What set it off.
    pub(crate) trigger: Trigger,
    /// More guidance for the summary.
    pub(crate) instructions: Option<&'r str>,
    /// Who writes what is shorter.
    pub(super) writer: Writer,
}

impl<'r> Run<'r> {
    /// With a model.
    pub(crate) fn new(part: ClimbPart, trigger: Trigger, instructions: Option<&'r str>) -> Self {
        Run { part, trigger, instructions, writer: Writer::Model }
    }
}

/// A rung.
pub(super) struct RungSpec {
    /// Its name.
    pub(super) rung: Rung,
    /// True when it is due.
    pub(super) fires: fn(&State, &Run<'_>, &Climbed) -> bool,
    /// Whether it may be put off while the conversation goes on; nothing for a rung that never is.
    pub(super) waits: Option<fn(&State, Trigger) -> Result<bool>>,
    /// Does it; false when there was nothing to do.
    pub(super) apply:
        for<'a> fn(&'a Io, &'a mut SessionGuard, &'a Run<'a>, &'a mut Climbed) -> Work<'a, Result<bool>>,
    /// What it leaves at the least.
    pub(super) least: fn(&State, &mut Least) -> Result<()>,
    /// What is said where it had nothing to do.
    pub(super) idle: fn(Trigger) -> Option<&'static str>,
}

/// What a climb did.
#[derive(Debug, Default)]
pub(crate) struct Climbed {
    /// What was changed.
    pub(crate) edits: Vec<Edit>,
    /// What compressing results cost.
    pub(crate) spent: Spent,
    /// What the summary rung did, when it was tried.
    pub(crate) result: Option<CompactionResult>,
    /// Why a rung had nothing to do.
    pub(crate) idle: Vec<Cow<'static, str>>,
    /// Why a summary was none, whatever came of the others.
    pub(super) failed: Option<Error>,
    /// A summary is due, and put off.
    pub(crate) put_off: bool,
}

impl Climbed {
    /// Tokens that a rung freed.
    pub(super) fn freed_by(&self, rung: Rung) -> usize {
        self.edits.iter().filter(|edit| edit.kind == rung.as_str()).map(|edit| edit.freed_tokens).sum()
    }

    /// Adds what a rung behind the summary did; the result of the summary tells it too.
    pub(super) fn add(&mut self, held: &SessionGuard, edits: Vec<Edit>, spent: CallCost) -> Result<()> {
        if let Some(result) = &mut self.result {
            result.add(held, &edits, spent)?;
        }
        self.edits.extend(edits);
        Ok(())
    }

    /// Adds what the emergency did: the last summary that was made is the one that counts.
    pub(super) fn rescue(&mut self, held: &SessionGuard, results: Vec<CompactionResult>) -> Result<()> {
        for mut result in results {
            self.failed = self.failed.take().or_else(|| result.error.clone());
            if let Some(before) = &self.result {
                result.follow(before);
            }
            self.edits.extend(result.applied_edits.iter().cloned());
            let spent = CallCost { calls: result.llm_calls, usage: result.usage };
            match &mut self.result {
                Some(before) if before.success || !result.success => {
                    before.add(held, &result.applied_edits, spent)?;
                    before.summary = result.summary.or(before.summary.take());
                    (before.saved_tokens, before.log_entry) = (result.saved_tokens, result.log_entry);
                    before.pin_proposals = result.pin_proposals;
                    before.fell_back = result.fell_back;
                }
                _ => {
                    let before = self.result.replace(result);
                    if let (Some(before), Some(now)) = (before, &mut self.result) {
                        let spent = CallCost { calls: before.llm_calls, usage: before.usage };
                        now.add(held, &[], spent)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Makes the moves that a rung without a model proposes; false when there are none. When another tab changed the context
/// first, what it made of it is looked at again: it may have freed enough.
pub(super) async fn reduce(
    io: &Io,
    held: &SessionGuard,
    (rung, run): (&RungSpec, &Run<'_>),
    propose: fn(&State) -> Result<Vec<Move>>,
    done: &mut Climbed,
) -> Result<bool> {
    let propose = |state: &State| match (rung.fires)(state, run, done) {
        true => propose(state),
        false => Ok(Vec::new()),
    };
    let edit = carry_out(io, held, rung.rung, run.trigger, &propose).await?;
    let did = !edit.indices.is_empty();
    done.edits.extend(Some(edit).filter(|_| did));
    Ok(did)
}

/// Makes the moves that are proposed, and anew where another tab came first.
pub(super) async fn carry_out(
    io: &Io,
    held: &SessionGuard,
    rung: Rung,
    trigger: Trigger,
    propose: &dyn Fn(&State) -> Result<Vec<Move>>,
) -> Result<Edit> {
    let mut again = 0;
    loop {
        let moves = propose(&held.state())?;
        match replace::run(io, held, rung, moves, (trigger, None)).await {
            Err(error) if error.code == Code::Conflict && again < AGAIN => again += 1,
            done => return done,
        }
    }
}

/// Why nothing was done, each reason once.
pub(crate) fn reason(idle: &[Cow<'static, str>]) -> String {
    let mut reasons: Vec<&str> = idle.iter().map(AsRef::as_ref).collect();
    reasons.dedup();
    if reasons.is_empty() { "no step that frees tokens is due".into() } else { reasons.join("; ") }
}

/// Why a rung that moves results did nothing in a compaction by hand.
pub(super) const MOVES_LATER: &str =
    "tool results are moved when a prompt is prepared, not by a compaction by hand";
