//! What a rung of the ladder is, and what a climb is made with.

use super::ask::Spent;
use super::call::CallCost;
use super::floor::Least;
use super::frame::Framer;
use super::replace;
use super::replacement::Move;
use super::result::{CompactionResult, Edit};
use super::writer::Writer;
use crate::checkpoint::Goal;
use crate::error::{Code, Error, Result};
use crate::keys::batch::Key;
use crate::log::sent::LastPrompt;
use crate::log::{Cause, ContextChange, Job, LogReader, SessionGuard, View};
use crate::policy::{Rung, Settings, Trigger};
use crate::recall::Archive;
use crate::step::{Effect, Io, Notice, ReportedUsage, Work};
use crate::summary::keep::Collected;
use std::borrow::Cow;
use std::cell::RefMut;
use std::rc::Rc;

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
pub(crate) struct Run<'r> {
    /// The host.
    pub(super) io: &'r Io,
    guard: &'r SessionGuard,
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
    pub(crate) fn new(io: &'r Io, guard: &'r SessionGuard, part: ClimbPart, trigger: Trigger) -> Self {
        Run { io, guard, part, trigger, instructions: None, writer: Writer::Model }
    }

    /// The session as it is now.
    pub(super) fn view(&self) -> View {
        self.guard.view()
    }

    /// All tokens of the next prompt.
    pub(super) fn tokens(&self) -> usize {
        self.guard.tokens()
    }

    /// The options.
    pub(super) fn settings(&self) -> Rc<Settings> {
        self.guard.settings()
    }

    /// What makes the messages of summaries.
    pub(super) fn framer(&self) -> Framer<'r> {
        Framer::of(self.io, &self.guard.state())
    }

    /// Messages as the log has them.
    pub(super) fn log(&self) -> LogReader {
        LogReader::of(&self.guard.state())
    }

    /// The texts of references.
    pub(super) fn archive(&self) -> Archive {
        Archive::of(&self.guard.state())
    }

    /// The prompt that a summariser's request may continue.
    pub(super) fn last_prompt(&self) -> Option<LastPrompt> {
        self.guard.state().last_prompt()
    }

    /// The endpoint for summaries would be asked at the end of it.
    pub(super) fn asks_in_thread(&self) -> bool {
        self.guard.state().asks_in_thread()
    }

    /// What the session is for.
    pub(super) fn goal(&self) -> Option<Goal> {
        self.guard.state().row.goal.clone()
    }

    /// True for a session that began with the context of another one.
    pub(super) fn is_fork(&self) -> bool {
        self.guard.state().row.parent.is_some()
    }

    /// Notes that a summary is tried now: when that was before.
    pub(super) fn note_attempt(&self) -> Option<u64> {
        let mut state = self.guard.state_mut();
        let steps = state.row.steps;
        state.row.attempted_at.replace(steps)
    }

    /// Notes that an attempt failed, and warns of the first since one that did not, where the next ones wait longer and the
    /// prompt goes out without it.
    pub(super) fn note_failure(&self, what: &str, error: &Error) {
        let mut state = self.guard.state_mut();
        state.failures += 1;
        let is_first = state.failures == 1 && state.waits_longer();
        drop(state);
        if is_first && self.trigger == Trigger::Auto && self.view().fits() {
            let message = format!(
                "{what} ({error}): the prompt fits and goes out as it is, and the next attempts wait longer each"
            );
            self.io.tell(Effect::Notify(Notice::Warning { code: error.code, message }));
        }
    }

    /// Notes that one was made.
    pub(super) fn note_success(&self) {
        self.guard.state_mut().failures = 0;
    }

    /// Notes when a summary was tried last.
    pub(super) fn take_back_attempt(&self, before: Option<u64>) {
        self.guard.state_mut().row.attempted_at = before;
    }

    /// What the last summary took in, for the next one.
    pub(super) fn collected(&self) -> RefMut<'_, Option<Rc<Collected>>> {
        RefMut::map(self.guard.state_mut(), |state| &mut state.collected)
    }

    /// Keeps that, and what is to be stored of it with the next change, if anything is.
    pub(super) fn keep_collected(&self, collected: Rc<Collected>, row: Option<(Key, Vec<u8>)>) {
        let mut state = self.guard.state_mut();
        state.collected = Some(collected);
        state.facts = row.or(state.facts.take());
    }

    /// True for a message of the app that was erased.
    pub(super) fn is_erased(&self, index: usize) -> bool {
        self.guard.state().row.is_erased(index)
    }

    /// A call of a model was reported.
    pub(super) fn charge(&self, usage: Option<ReportedUsage>) {
        if let Some(usage) = usage {
            self.guard.state_mut().charge_summary(&usage.into());
        }
    }

    /// The most that the store takes in one batch.
    pub(super) fn max_batch_ops(&self) -> usize {
        self.guard.state().max_batch_ops
    }

    /// Takes up the calls that lead to the next context.
    pub(super) async fn begin(&self, lease_ms: u64, insist: bool) -> Result<Option<Job>> {
        Job::begin(self.io, self.guard, lease_ms, insist).await
    }

    /// Takes a snapshot; nothing where the store is full: then what follows is in memory alone, and the store keeps the
    /// context that it has. A copy has no store.
    pub(super) async fn snapshot(&self) -> Result<Option<String>> {
        if !self.guard.state().durable {
            return Ok(None);
        }
        match self.guard.emergency_snapshot(self.io).await {
            Err(error) if error.code == Code::QuotaExceeded => Ok(None),
            taken => taken.map(Some),
        }
    }

    /// What is noted of a change by `rung` that leaves `after` tokens.
    pub(super) fn cause(&self, rung: &str, after: usize) -> Cause {
        Cause { trigger: self.trigger.as_str().into(), ..Cause::of(&self.view(), rung, after) }
    }

    /// Changes the context.
    pub(super) async fn change(&self, change: ContextChange) -> Result<()> {
        self.guard.change(self.io, change).await
    }

    /// The last change needed no model, and began at position `at`.
    pub(super) fn cleared(&self, at: usize) {
        self.guard.state_mut().cleared(at);
    }

    /// Lets other calls run: used while a model works.
    pub(super) fn release(&self) {
        self.guard.release();
    }

    /// Holds the session again.
    ///
    /// Errors: as [`SessionGuard::acquire`].
    pub(super) fn acquire(&self) -> Result<()> {
        self.guard.acquire()
    }
}

/// A rung.
pub(super) struct RungSpec {
    /// Its name.
    pub(super) rung: Rung,
    /// True when it is due.
    pub(super) fires: fn(&View, &Run<'_>, &Climbed) -> bool,
    /// What it does.
    pub(super) work: RungWork,
    /// What is said where it had nothing to do.
    pub(super) idle: fn(Trigger) -> Option<&'static str>,
}

/// What a rung does.
pub(super) enum RungWork {
    /// It replaces results: those that are proposed. At the most it may replace those of the second list.
    Moves(fn(&View) -> Result<Vec<Move>>, fn(&View) -> Result<Vec<Move>>),
    /// More than that.
    Steps {
        /// Whether it may be put off while the conversation goes on; nothing for a rung that never is.
        waits: Option<fn(&View, Trigger) -> Result<bool>>,
        /// Does it; false when there was nothing to do.
        apply: for<'a> fn(&'a Run<'a>, &'a mut Climbed) -> Work<'a, Result<bool>>,
        /// What it leaves at the least.
        least: fn(&View, &mut Least) -> Result<()>,
    },
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
    /// The session was due when the climb began.
    pub(super) was_due: bool,
    /// A summary is due, and put off.
    pub(crate) put_off: bool,
}

impl Climbed {
    /// Tokens that all rungs freed.
    fn freed(&self) -> usize {
        self.edits.iter().map(|edit| edit.freed_tokens).sum()
    }

    /// The session was due, and what was done about it without a summary is too little: the next prompts would be full
    /// again, and each time the provider's cache be written anew (`W5`).
    pub(super) fn is_too_little(&self, view: &View) -> bool {
        let has_law = view.settings.leaves.is_some();
        self.was_due && has_law && self.freed() < view.settings.numbers.compact_trigger_threshold
    }

    /// Tokens that a rung freed.
    pub(super) fn freed_by(&self, rung: Rung) -> usize {
        self.edits.iter().filter(|edit| edit.kind == rung.as_str()).map(|edit| edit.freed_tokens).sum()
    }

    /// Adds what a rung behind the summary did; the result of the summary tells it too.
    pub(super) fn add(&mut self, view: &View, edits: Vec<Edit>, spent: CallCost) -> Result<()> {
        if let Some(result) = &mut self.result {
            result.add(view, &edits, spent)?;
        }
        self.edits.extend(edits);
        Ok(())
    }

    /// Adds what the emergency did: the last summary that was made is the one that counts.
    pub(super) fn rescue(&mut self, view: &View, results: Vec<CompactionResult>) -> Result<()> {
        for mut result in results {
            self.failed = self.failed.take().or_else(|| result.error.clone());
            if let Some(before) = &self.result {
                result.follow(before);
            }
            self.edits.extend(result.applied_edits.iter().cloned());
            let spent = CallCost { calls: result.llm_calls, usage: result.usage };
            match &mut self.result {
                Some(before) if before.success || !result.success => {
                    before.add(view, &result.applied_edits, spent)?;
                    before.summary = result.summary.or(before.summary.take());
                    (before.saved_tokens, before.log_entry) = (result.saved_tokens, result.log_entry);
                    before.pin_proposals = result.pin_proposals;
                    before.fell_back = result.fell_back;
                }
                _ => {
                    let before = self.result.replace(result);
                    if let (Some(before), Some(now)) = (before, &mut self.result) {
                        let spent = CallCost { calls: before.llm_calls, usage: before.usage };
                        now.add(view, &[], spent)?;
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
    run: &Run<'_>,
    rung: &RungSpec,
    propose: fn(&View) -> Result<Vec<Move>>,
    done: &mut Climbed,
) -> Result<bool> {
    let propose = |view: &View| match (rung.fires)(view, run, done) {
        true => propose(view),
        false => Ok(Vec::new()),
    };
    let edit = carry_out(run, rung.rung, &propose).await?;
    let did = !edit.indices.is_empty();
    done.edits.extend(Some(edit).filter(|_| did));
    Ok(did)
}

/// Makes the moves that are proposed, and anew where another tab came first.
pub(super) async fn carry_out(
    run: &Run<'_>,
    rung: Rung,
    propose: &dyn Fn(&View) -> Result<Vec<Move>>,
) -> Result<Edit> {
    let mut again = 0;
    loop {
        let moves = propose(&run.view())?;
        match replace::run(run, rung, moves, None).await {
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
