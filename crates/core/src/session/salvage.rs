//! The sessions of a store that is damaged, found by whatever is left of them. Each gets a name that leads to it, so that it
//! opens as any other: [`crate::log::recovery`] mends the rest.

use super::operations::Session;
use crate::error::{Code, Result};
use crate::keys::batch::{Key, KeyPart, keys};
use crate::log::record::NameRow;
use crate::log::recovery::{batch, read_one};
use crate::log::seal;
use crate::log::stored::page;
use crate::order;
use crate::step::{Io, Loss, LossKind, Machine};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A session of which something is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remains {
    /// The name that it opens by: its own, or a new one where that is not known.
    pub id: String,
    /// What is wrong with its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
}

/// Tables whose keys say which sessions there are.
const TELLING: [&str; 3] = ["sessions", "log", "views"];

impl Session {
    /// The sessions of a store of which anything is left, also those to which no name leads. Names are written where they
    /// are missing: the store should be one that can be thrown away, above the one that is read.
    pub fn remains() -> Machine<Vec<Remains>> {
        Machine::new(|io| async move {
            let names = Names::read(&io).await?;
            let mut found = Vec::new();
            for (id, sid) in names.dead() {
                let reason = format!(
                    "nothing is left of the session: its name leads to {sid}, of which there are no rows"
                );
                found.push(Remains { id: id.into(), loss: Some(Loss::new(LossKind::Session, reason)) });
            }
            let mut taken: BTreeSet<String> = BTreeSet::new();
            for sid in &names.sids {
                if let Some(id) = names.led.get(sid) {
                    found.push(Remains { id: id.clone(), loss: None });
                    continue;
                }
                if names.passing.contains(sid) {
                    continue;
                }
                let own = names.own(&io, sid).await?.filter(|id| !taken.contains(id));
                let is_known = own.is_some();
                let id = own.unwrap_or_else(|| names.made_up(sid));
                taken.insert(id.clone());
                // A name that leads nowhere is in the way no more.
                found.retain(|remains| remains.id != id);
                let row = seal::write_name(&NameRow::new(&id, sid))?;
                io.commit(batch(Vec::new(), vec![(keys::name(&id), row)], Vec::new())).await?;
                let loss = if is_known {
                    Loss::new(
                        LossKind::Repaired,
                        "the name of the session was missing or damaged: its own row says it",
                    )
                } else {
                    let reason = "the name of the session is not known, or another session has it: this one is called so \
                                  by the id of its rows";
                    Loss::new(LossKind::Repaired, reason)
                };
                found.push(Remains { id, loss: Some(loss) });
            }
            Ok(found)
        })
    }
}

/// Which sessions there are, by the rows that say so.
struct Names {
    /// What each name's row says; `None` where it is damaged.
    rows: BTreeMap<Key, Option<NameRow>>,
    /// The name that leads to each session.
    led: BTreeMap<String, String>,
    /// Sessions that have rows.
    sids: BTreeSet<String>,
    /// Sessions that are being deleted, or that are not made yet.
    passing: BTreeSet<String>,
}

impl Names {
    async fn read(io: &Io) -> Result<Names> {
        let (mut rows, mut passing, mut sids) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let mut after = None;
        loop {
            let found = page(io, keys::all_names(), after, false).await?;
            let Some((last, _)) = found.last() else { break };
            after = Some(last.clone());
            for (key, bytes) in found {
                let name = match seal::read_name(&bytes) {
                    Ok(name) if keys::name(&name.id) == key => Some(name),
                    Ok(_) => None,
                    // Its session is of a schema that is known, or opening it says that it is not.
                    Err(error) if matches!(error.code, Code::StoreCorrupt | Code::SchemaTooNew) => None,
                    Err(error) => return Err(error),
                };
                if let Some(name) = name.as_ref().filter(|name| name.deleted) {
                    passing.insert(name.sid.clone());
                }
                rows.insert(key, name);
            }
        }
        all_sids(io, keys::all_staging(), 2, &mut passing).await?;
        for table in TELLING {
            all_sids(io, Key(vec![KeyPart::Text(table.into())]), 1, &mut sids).await?;
        }
        let live = rows.values().flatten().filter(|name: &&NameRow| !name.deleted);
        let led = order::map(live.map(|name| (name.sid.clone(), name.id.clone())));
        Ok(Names { rows, led, sids, passing })
    }

    /// Names that lead to no rows, and where to.
    fn dead(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_dead = |name: &&NameRow| !name.deleted && !self.sids.contains(&name.sid);
        self.rows.values().flatten().filter(is_dead).map(|name| (name.id.as_str(), name.sid.as_str()))
    }

    /// No session that has rows, or is being deleted, is called `id`.
    fn is_free(&self, id: &str) -> bool {
        match self.rows.get(&keys::name(id)) {
            Some(Some(name)) => !name.deleted && !self.sids.contains(&name.sid),
            Some(None) | None => true,
        }
    }

    /// The name that the session's own row says, where no other session has it.
    async fn own(&self, io: &Io, sid: &str) -> Result<Option<String>> {
        let Some(bytes) = read_one(io, keys::session(sid)).await? else { return Ok(None) };
        let id = match seal::read_head(&bytes) {
            Ok(row) => Some(row.id),
            // What a damaged row says is believed where the key of a name, which is a hash, says the same.
            Err(_) => {
                let id = seal::read_broken(&bytes, None).map(|row| row.id);
                id.filter(|id| self.rows.contains_key(&keys::name(id)))
            }
        };
        Ok(id.filter(|id| self.is_free(id)))
    }

    /// A name for a session whose own is not known.
    fn made_up(&self, sid: &str) -> String {
        let plain = format!("salvaged-{sid}");
        let others = (2..).map(|nth| format!("{plain}-{nth}"));
        let is_new = |id: &String| !self.rows.contains_key(&keys::name(id));
        std::iter::once(plain.clone()).chain(others).find(is_new).unwrap_or(plain)
    }
}

/// Collects part `at` of all keys under `prefix`.
async fn all_sids(io: &Io, prefix: Key, at: usize, sids: &mut BTreeSet<String>) -> Result<()> {
    let mut after = None;
    loop {
        let found = page(io, prefix.clone(), after, true).await?;
        let Some((last, _)) = found.last() else { return Ok(()) };
        after = Some(last.clone());
        for (key, _) in found {
            if let Some(KeyPart::Text(sid)) = key.0.get(at) {
                sids.insert(sid.clone());
            }
        }
    }
}
