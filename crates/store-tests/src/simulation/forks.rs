//! Sessions that begin from the simulated one: there whole or not at all, and they stay what they were.

use super::*;
use context_compactor_core::keys::batch::{Batch, Durability, KeyPart};

/// 1 for a batch with a part of what another batch will refer to.
pub(super) fn is_staged(batch: &Batch) -> u32 {
    let is_part = |part: Option<&KeyPart>| matches!(part, Some(KeyPart::Text(table)) if table == "blobs");
    let parts = batch.puts.iter().any(|(key, _)| is_part(key.0.first()));
    u32::from(parts && batch.durability == Durability::Relaxed)
}

impl World {
    pub(super) fn fork(&mut self, tab: usize, session: &Session) -> Result<(), String> {
        self.said += 1;
        let id = format!("fork {}", self.said);
        self.forks.push(id.clone());
        let machine = session.fork(Some(id.clone()));
        let forked = |(session, _): (Session, Forked)| Outcome::Forked(session);
        self.start(tab, Asked::Fork { id }, Box::new(Mapped(machine, forked)))
    }

    /// A fork was acknowledged: it is stored, and has the context that it began from.
    pub(super) fn forked(&mut self, tab: usize, id: &str, child: &Session) -> Result<(), String> {
        self.report.forks += 1;
        let parent = self.tabs[tab].session.as_ref().ok_or("a fork without a session")?;
        let (parent, child) = (look(parent).map_err(checks::text)?, look(child).map_err(checks::text)?);
        let stored = audit(id, &self.memory.rows()).map_err(checks::text)?;
        let texts = || child.context.items().iter().map(|item| &*item.body);
        if !texts().eq(stored.context.iter().map(|(_, body)| body.as_str())) {
            return Err(format!("{id} is not what is stored of it"));
        }
        if !texts().eq(parent.context.items().iter().map(|item| &*item.body)) {
            return Err(format!("{id} has another context than the session that it began from"));
        }
        Ok(())
    }

    /// Forks, acknowledged or not, are whole or not there.
    pub(super) fn forks_hold(&self) -> Result<(), String> {
        let rows = self.memory.rows();
        self.forks.iter().try_for_each(|id| audit(id, &rows).map(drop).map_err(checks::text))
    }
}
