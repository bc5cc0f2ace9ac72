//! What must hold, and when: after a commit, when a call has ended, when the faults have stopped.

use super::*;
use context_compactor_core::compaction::Edit;
use context_compactor_core::policy::Rung;
use context_compactor_core::step::Notice;

impl World {
    /// The store's invariants, after a commit.
    pub(super) fn committed(&mut self) -> Result<(), String> {
        self.report.commits += 1;
        let rows = self.memory.rows();
        self.jobs_hold(&rows)?;
        let found = self.auditor.audit(ID, &rows).map_err(text)?;
        self.report.views = found.generation;
        self.report.messages = found.messages.len();
        self.model.grew(&found.messages)?;
        // What a snapshot holds changes with what is erased.
        if !self.erases {
            self.turned(&found)?;
        }
        self.stored = found;
        Ok(())
    }

    /// What must hold when a call has ended.
    pub(super) fn ended(
        &mut self,
        tab: usize,
        asked: Asked,
        result: Result<Outcome, Error>,
    ) -> Result<(), String> {
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(error) => {
                self.report.failed += 1;
                if let Asked::Sync { history } = &asked {
                    self.tabs[tab].again = self.rng.bool().then(|| history.clone());
                }
                return self.may_refuse(&asked, &error).map_or_else(|| self.excused(&error), Ok);
            }
        };
        self.report.done += 1;
        match (asked, outcome) {
            (Asked::Open, Outcome::Opened(session)) => self.tabs[tab].session = Some(session),
            (Asked::Append { bodies, before }, Outcome::Appended) => self.model.acked(&bodies, before)?,
            (Asked::Sync { history }, Outcome::Synced(synced)) => {
                if synced.appended + synced.recognized != history.len() || synced.branched_at.is_some() {
                    return Err(format!("a history was taken over in part: {synced:?}"));
                }
                self.model.synced(&history)?;
                self.model.acked(&history, 0)?;
            }
            (Asked::Prepare, Outcome::Prepared(prepared)) => {
                self.changed(&prepared.edits);
                self.tabs[tab].put_off |= prepared.put_off;
                self.sent(tab, &prepared)?;
            }
            (Asked::PrepareBeside, Outcome::PreparedBeside(prepared)) => {
                if let Some(prepared) = *prepared {
                    self.report.beside += 1;
                    let leaves_out = |edit: &Edit| edit.kind == "repair";
                    if !prepared.edits.iter().all(leaves_out) || prepared.put_off {
                        return Err("a prompt beside a summary changed the context".into());
                    }
                    self.sent(tab, &prepared)?;
                }
            }
            (Asked::Later, Outcome::Later(later)) => self.changed(&later.edits),
            (Asked::Compact, Outcome::Compacted(compacted)) => {
                let result = compacted.result;
                self.changed(&result.applied_edits);
                if result.current_tokens > result.previous_tokens {
                    return Err(format!("a compaction made the context larger: {result:?}"));
                }
            }
            (Asked::Read { index, offload }, Outcome::Read(found)) => {
                let body =
                    self.model.log().get(index).ok_or("an offload of a message that is not in the log")?;
                let value = wire::parse(index, body).map_err(text)?;
                let message = self.format.wire().read(index, &value).map_err(text)?;
                // Erased by another tab while it was read.
                let is_gone = self.model.is_erased(index);
                if offload.text_in(&message) != Some(&found) && !is_gone {
                    return Err("an offload is not the text that it stands for".into());
                }
            }
            (Asked::Erase { index }, Outcome::Erased) => {
                self.report.erased += 1;
                self.model.is_gone(index);
                self.model.nothing_is_left(&self.memory.rows(), false)?;
            }
            (Asked::Mark { decision }, Outcome::Marked(goal)) => {
                self.decisions.push(decision);
                self.remembers(&goal)?;
            }
            (Asked::Snapshot, Outcome::Taken(id)) => {
                if !self.taken.contains_key(&id) {
                    return Err(format!("{id} was acknowledged and never stored"));
                }
            }
            (Asked::Fork { id }, Outcome::Forked(child)) => self.forked(tab, &id, &child)?,
            (Asked::Restore { .. }, Outcome::Restored)
            | (Asked::Rewind, Outcome::Rewound)
            | (Asked::Undo, Outcome::Undone)
            | (Asked::Remove, Outcome::Removed) => {}
            _ => return Err("an operation ended with the result of another".into()),
        }
        self.same_as_stored(tab)
    }

    fn changed(&mut self, edits: &[Edit]) {
        for edit in edits {
            *self.report.rungs.entry(edit.kind).or_default() += 1;
        }
    }

    /// What is sent fits, and is a valid history.
    fn sent(&self, tab: usize, prepared: &Prepared) -> Result<(), String> {
        if prepared.usage.used_tokens > self.settings.hard_limit {
            return Err(format!("a prompt of {} tokens was prepared", prepared.usage.used_tokens));
        }
        let session = self.tabs[tab].session.as_ref().ok_or("a prepare without a session")?;
        let mut bodies = Vec::new();
        for item in &prepared.items {
            let own = item.seq.map(|seq| session.body(seq)).transpose().map_err(text)?.flatten();
            bodies.push(
                own.or_else(|| item.body.clone()).ok_or("a message was sent that is not in the context")?,
            );
        }
        let values =
            bodies.iter().map(|body| wire::parse(0, body)).collect::<Result<Vec<_>, _>>().map_err(text)?;
        match self.format.rules().validate(&values, false).first() {
            Some(problem) => Err(format!("an invalid prompt ({}): {}", problem.rule, problem.message)),
            None => Ok(()),
        }
    }

    /// A tab that is up to date holds in memory what the store says.
    fn same_as_stored(&self, tab: usize) -> Result<(), String> {
        let Some(session) = &self.tabs[tab].session else { return Ok(()) };
        let seen = look(session).map_err(text)?;
        let fates = session.explain().map_err(text)?;
        conserve(&seen.context, fates.len()).map_err(text)?;
        let is_lost = |entry: &&LedgerEntry| is_pinned(entry.index) && entry.fate == Fate::Summarised;
        if let Some(entry) = fates.iter().find(is_lost).filter(|_| self.settings.app_pins) {
            return Err(format!("message {} is pinned and was summarised", entry.index));
        }
        let stored = &self.stored;
        if (seen.generation, seen.rows) != (stored.generation, stored.rows) {
            return Ok(());
        }
        let held = seen.context.items().iter().map(|item| (&item.origin, &*item.body));
        // What another tab erased, this one may not know of yet.
        let is_behind = self.model.has_blanks();
        if held.eq(stored.context.iter().map(|(origin, body)| (origin, body.as_str()))) || is_behind {
            Ok(())
        } else {
            Err("the context in memory is not the one that is stored".into())
        }
    }

    /// What was decided and acknowledged is part of the goal, whoever wrote it.
    fn remembers(&self, goal: &Goal) -> Result<(), String> {
        // What was in an erased message is erased of the goal, too.
        let is_erased = |known: &str| known == wire::ERASED && self.model.has_blanks();
        let is_known = |text: &String| {
            goal.decisions.iter().any(|known| known.description == *text || is_erased(&known.description))
        };
        match self.decisions.iter().find(|text| !is_known(text)) {
            Some(text) => Err(format!("an acknowledged decision is gone: {text}")),
            None => Ok(()),
        }
    }

    /// Errors that a fault may lead to; anything else is one of ours.
    fn excused(&self, error: &Error) -> Result<(), String> {
        let expected = matches!(
            error.code,
            Code::StoreUnavailable
                | Code::QuotaExceeded
                | Code::Conflict
                | Code::Indeterminate
                | Code::Aborted
                | Code::StageUnavailable
                | Code::ContextOverflow
        );
        // Its rows were written anew and removed while it read them: the next call reads the new ones.
        let expected = expected || self.erases && matches!(error.code, Code::Closed | Code::StoreCorrupt);
        // It leaves the results of the newest messages where they are (`S1.2`), however large.
        let leaves = self.is_large && self.settings.preset.name == "offload";
        let overflows = error.code == Code::ContextOverflow && (leaves || self.pins_what_is_too_large());
        if (expected && self.faults) || overflows {
            Ok(())
        } else {
            Err(format!("{}: {error}", error.code.as_str()))
        }
    }

    /// True when the app pins a result that no window takes, and nothing of the preset makes every result shorter:
    /// `Process` knows those of some tools.
    fn pins_what_is_too_large(&self) -> bool {
        let shortens = |rung: &Rung| matches!(rung, Rung::Admit | Rung::Offload | Rung::Compress);
        let is_large = |(index, body): (usize, &Body)| is_pinned(index) && body.len() > LARGE[0];
        self.settings.app_pins
            && !self.settings.rungs.iter().any(shortens)
            && self.model.log().iter().enumerate().any(is_large)
    }

    /// Faults stop: every tab becomes writable again, and what all of them see is what is stored.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        for tab in 0..self.tabs.len() {
            self.drain(tab)?;
        }
        self.faults = false;
        for tab in 0..self.tabs.len() {
            if self.tabs[tab].session.is_none() {
                self.begin(tab)?;
                self.finish(tab)?;
            }
            let session = self.tabs[tab].session.clone().ok_or("a tab cannot open the session")?;
            let bodies = self.talk();
            self.append(tab, &session, bodies)?;
            self.finish(tab)?;
            self.prepare(tab, &session)?;
            self.finish(tab)?;
        }
        self.model.holds()?;
        self.forks_hold()?;
        // Read as a whole, not only what is new: the same.
        let whole = audit(ID, &self.memory.rows()).map_err(text)?;
        if (&whole.messages, &whole.context) != (&self.stored.messages, &self.stored.context) {
            return Err("the rows are not what they were when they were written".into());
        }
        let told = self.tabs.iter().flat_map(|tab| &tab.host.seen.notices);
        if let Some(loss) = told.into_iter().find(|notice| matches!(notice, Notice::DataLoss { .. })) {
            return Err(format!("nothing was lost, and this was told: {loss:?}"));
        }
        let last = self.tabs.len() - 1;
        let session = self.tabs[last].session.as_ref().ok_or("no session")?;
        if let Some(goal) = session.goal().map_err(text)? {
            self.remembers(&goal)?;
        }
        // Opened once more, it is the same.
        let before = look(self.tabs[last].session.as_ref().ok_or("no session")?).map_err(text)?;
        self.tabs[last].session = None;
        self.begin(last)?;
        self.finish(last)?;
        self.jobs_are_closed(last)?;
        let after = look(self.tabs[last].session.as_ref().ok_or("no session")?).map_err(text)?;
        if before.context.items() != after.context.items() {
            return Err("a session that is opened again differs from what it was".into());
        }
        // Also where those who erased it died: opening ends what they began.
        self.model.nothing_is_left(&self.memory.rows(), true)?;
        Ok(())
    }

    /// Ends the calls of a tab without new faults; they may still end with the consequence of an earlier one.
    fn drain(&mut self, tab: usize) -> Result<(), String> {
        while let Some(last) = self.tabs[tab].tasks.len().checked_sub(1) {
            let faults = std::mem::replace(&mut self.faults, false);
            let (_, effect) = self.tabs[tab].tasks[last].waits[0].clone();
            let event = self.perform(tab, &effect);
            self.faults = faults;
            if let Some(event) = event? {
                self.answer(tab, last, 0, event)?;
            }
        }
        Ok(())
    }

    /// Ends the calls of a tab; none may fail.
    pub(super) fn finish(&mut self, tab: usize) -> Result<(), String> {
        while let Some(last) = self.tabs[tab].tasks.len().checked_sub(1) {
            self.go_on(tab, last)?;
        }
        Ok(())
    }
}

pub(super) fn text(error: Error) -> String {
    format!("{}: {error}", error.code.as_str())
}
