//! The sessions of a store, by their names and rows, and what a session that searches the others keeps of them in memory.

use super::record::{self, NameRow, RowKind, SCHEMA, SessionRow};
use super::stored::readable_page;
use super::{seal, wide};
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Key, keys};
use crate::step::{Io, Scan};
use crate::wire::{self, Evidence, Format};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Names that are read at once.
const PAGE: usize = 256;

/// A session of the store.
#[derive(Debug)]
pub(crate) struct ListedSession {
    pub(crate) name: NameRow,
    /// Its row, or why that cannot be read.
    pub(crate) row: Result<SessionRow>,
}

/// A page of sessions, each under the key of its name, or why that cannot be read; in no order that means anything.
#[derive(Debug, Default)]
pub(crate) struct SessionsPage {
    pub(crate) sessions: Vec<(Key, Result<ListedSession>)>,
    /// Where the next page begins; `None` where there is none.
    pub(crate) last: Option<Key>,
}

/// The sessions behind `after`, but for those that are being deleted. `is_whole`: their rows with what changes seldom.
pub(crate) async fn sessions_page(io: &Io, after: Option<Key>, is_whole: bool) -> Result<SessionsPage> {
    let prefix = keys::all_names();
    let scan = Scan { prefix, after, limit: PAGE, max_bytes: 1 << 20, reverse: false, keys_only: false };
    let names = wide::scan(io, scan).await?;
    let Some((last, _)) = names.last() else { return Ok(SessionsPage::default()) };
    let last = Some(last.clone());
    let (mut sessions, mut known) = (Vec::new(), Vec::new());
    for (key, bytes) in names {
        match seal::read_name(&bytes) {
            Ok(name) if name.deleted => {}
            Ok(name) => known.push((key, name)),
            Err(error) => sessions.push((key, Err(error))),
        }
    }
    let heads = known.iter().map(|(_, name)| keys::session(&name.sid));
    let notes = known.iter().filter(|_| is_whole).map(|(_, name)| keys::notes(&name.sid));
    let mut rows = wide::read(io, heads.chain(notes).collect()).await?;
    let mut notes = rows.split_off(known.len()).into_iter();
    for ((key, name), head) in known.into_iter().zip(rows) {
        let noted = notes.next().flatten();
        // Nothing is there of a session that is deleted just now.
        let Some(head) = head else { continue };
        let row = if is_whole { seal::read(&head, noted.as_deref()) } else { of_this_schema(&head) };
        let row = row.and_then(|row| if row.id == name.id { Ok(row) } else { Err(of_another()) });
        sessions.push((key, Ok(ListedSession { name, row })));
    }
    Ok(SessionsPage { sessions, last })
}

fn of_another() -> Error {
    Error::new(Code::StoreCorrupt, "it is the row of another session")
}

/// A row that needs no migration.
fn of_this_schema(head: &[u8]) -> Result<SessionRow> {
    let row = seal::read_head(head)?;
    if row.v < SCHEMA {
        let what = "an older release wrote it, and it was not opened since";
        return Err(Error::new(Code::StoreCorrupt, what));
    }
    Ok(row)
}

/// The format of a session that is not open: `usual`, as long as none is sure and no message speaks against that.
pub(crate) async fn format_of(io: &Io, sid: &str, row: &SessionRow, usual: Format) -> Result<Format> {
    if let Some(format) = row.format {
        return Ok(format);
    }
    let mut plausible = Format::ALL.to_vec();
    for (_, bytes) in readable_page(io, sid, 0).await?.unwrap_or_default() {
        let Ok((row, _)) = record::read_row(&bytes) else { continue };
        if row.kind == RowKind::Message {
            let value = [wire::parse(row.n, row.body.get())?];
            plausible.retain(|format| format.wire().evidence(&value) != Evidence::Against);
        }
    }
    let first = plausible.first().copied().unwrap_or(usual);
    Ok(if plausible.contains(&usual) { usual } else { first })
}

/// What is known of other sessions of the store since they were searched (`X9`). Nothing of it is written.
#[derive(Debug, Default)]
pub(crate) struct OtherSessions {
    /// By the names of their rows.
    pub(crate) known: HashMap<String, Rc<KnownSession>>,
    /// Those that the app was told cannot be read.
    pub(crate) told: HashSet<String>,
}

/// Another session as it was when it was searched last.
#[derive(Debug)]
pub(crate) struct KnownSession {
    /// Commits of its row, and the hash of the last row of its log: it is the same as long as these are.
    pub(crate) ver: u64,
    pub(crate) head: String,
    pub(crate) format: Format,
    /// Pages of its terms, each with the first of its messages that the pages before it do not have.
    pub(crate) pages: Vec<(usize, Vec<u8>)>,
    /// Messages that its app went back to before.
    pub(crate) behind: Vec<(usize, usize)>,
}

impl KnownSession {
    /// Bytes of its pages.
    pub(crate) fn bytes(&self) -> usize {
        self.pages.iter().map(|(_, page)| page.len()).sum()
    }
}
