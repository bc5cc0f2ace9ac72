//! Snapshots in a simulation: what they hold and bring back, whatever happens around them.

use super::*;

impl World {
    /// Takes a snapshot, goes back to one or to any point of the log, takes a message out of the context, or a compaction
    /// back.
    pub(super) fn turn_back(&mut self, tab: usize, session: &Session) -> Result<(), String> {
        let known: Vec<String> = self.stored.snapshots.iter().map(|(id, _)| id.clone()).collect();
        match (self.rng.u8(..6), self.rng.choice(known)) {
            (0, Some(id)) => {
                let machine = Mapped(session.restore(id.clone()), |()| Outcome::Restored);
                self.start(tab, Asked::Restore { id }, Box::new(machine))
            }
            (1, _) => {
                let seen = look(session).map_err(checks::text)?;
                let places: Vec<usize> = seen
                    .context
                    .items()
                    .iter()
                    .filter_map(|item| item.origin.place())
                    .map(|at| at.index)
                    .collect();
                let Some(index) = self.rng.choice(places) else { return Ok(()) };
                let machine = Mapped(session.remove_messages(vec![index]), |_| Outcome::Removed);
                self.start(tab, Asked::Remove, Box::new(machine))
            }
            (2, _) => {
                let index = self.rng.usize(..=self.stored.messages.len());
                let machine = Mapped(session.rewind(index), |()| Outcome::Rewound);
                self.start(tab, Asked::Rewind, Box::new(machine))
            }
            (3, _) => {
                let machine = Mapped(session.undo(), |()| Outcome::Undone);
                self.start(tab, Asked::Undo, Box::new(machine))
            }
            _ => {
                let machine = Mapped(session.snapshot(SnapshotPurpose::Recovery), Outcome::Taken);
                self.start(tab, Asked::Snapshot, Box::new(machine))
            }
        }
    }

    /// After a commit: every snapshot makes the context that it was taken of, and a restore brought it back whole.
    pub(super) fn turned(&mut self, found: &Audit) -> Result<(), String> {
        for (id, context) in &found.snapshots {
            let taken = || Taken { context: found.context.clone(), decisions: self.decisions.clone() };
            let as_taken = self.taken.entry(id.clone()).or_insert_with(taken);
            if as_taken.context != *context {
                return Err(format!("{id} is not the context that it was taken of"));
            }
        }
        if let Some(id) = found.restored.as_ref().filter(|_| found.generation > self.stored.generation) {
            self.report.restored += 1;
            let Some(taken) = self.taken.get(id).filter(|taken| taken.context == found.context) else {
                return Err(format!("the context is not what it was when {id} was taken"));
            };
            // The goal is that of the snapshot again.
            self.decisions.clone_from(&taken.decisions);
        }
        Ok(())
    }

    /// What these calls may be refused for, whatever the store does.
    pub(super) fn may_refuse(&self, asked: &Asked, error: &Error) -> Option<()> {
        let is_kept = |id: &str| self.stored.snapshots.iter().any(|(known, _)| known == id);
        match asked {
            Asked::Read { index, .. } if self.model.is_erased(*index) => {
                (error.code == Code::NotFound).then_some(())
            }
            Asked::Restore { id } => (error.code == Code::NotFound && !is_kept(id)).then_some(()),
            Asked::Undo => (error.code == Code::NotFound).then_some(()),
            // A summary may stand for it by now, and some messages cannot go alone.
            // An exchange is not parted, and a tab may know less of the log.
            Asked::Rewind | Asked::Remove | Asked::Erase { .. } => {
                (error.code == Code::InvalidOption).then_some(())
            }
            // Of a call alone, the rest of which was lost or removed, nothing can be sent.
            Asked::Prepare | Asked::PrepareBeside => (error.code == Code::InvalidMessage).then_some(()),
            // Another tab went on with the conversation, or went back in it, since this history was made.
            Asked::Sync { .. } => (error.code == Code::Diverged).then_some(()),
            _ => None,
        }
    }
}
