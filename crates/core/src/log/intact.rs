//! Opening a session as it was left, which nearly every one is. This reads what recovery reads ([`super::recovery`]), and
//! leaves to that whatever is not as it was written.

use super::jobs;
use super::offloads;
use super::record::{self, RowKind, SessionRow, Unread, ViewNote};
use super::recovery::read_one;
use super::seal;
use super::state::State;
use super::stored::{PAGE, log_items, name_row, page, position, views_from_whole};
use super::watermark::{HostRecord, Watermark};
use super::wide;
use crate::context::{Context, Departed, Place, conserve_origins};
use crate::error::{Code, Error, Result};
use crate::keys::batch::keys;
use crate::order;
use crate::step::{Io, Loss, Scan};
use crate::wire::Format;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

impl State {
    /// Reads the session that has this one's name, if any, as it was left: the losses that its row tells of. `None` where
    /// something of it is missing, damaged, of an earlier release, or was stopped half-way: nothing is written then, and what
    /// was read is to be forgotten.
    pub(super) async fn read_intact(&mut self, io: &Io, known: &HostRecord) -> Result<Option<Vec<Loss>>> {
        match self.try_intact(io, known).await {
            Err(error) if matches!(error.code, Code::StoreCorrupt | Code::SchemaTooNew | Code::Closed) => {
                Ok(None)
            }
            done => done,
        }
    }

    async fn try_intact(&mut self, io: &Io, known: &HostRecord) -> Result<Option<Vec<Loss>>> {
        if known.lost.is_some() {
            return Ok(None);
        }
        let Some(name) = name_row(io, &self.row.id).await? else {
            let is_new = known.mark.is_none() && !self.settings.must_exist;
            return Ok(is_new.then(Vec::new));
        };
        if name.deleted {
            return Ok(None);
        }
        self.sid = name.sid;
        let mut row = sound_row(io, self).await?;
        if row.is_none() {
            // Someone else may have written between the two reads.
            row = sound_row(io, self).await?;
        }
        let Some(row) = row else { return Ok(None) };
        if let Some(mark) = &known.mark
            && !is_as_marked(io, self, &row, mark).await?
        {
            return Ok(None);
        }
        self.check_format(&row)?;
        // What an erasure left is removed by recovery.
        if !row.formerly.is_empty() && !page(io, keys::all_staging(), None, true).await?.is_empty() {
            return Ok(None);
        }
        let StandingView { mut items, left, to } = match row.generation {
            0 => StandingView::default(),
            generation => view(io, &self.sid, generation, row.next_seq).await?,
        };
        items.extend(log_items(io, &self.sid, to, row.next_seq).await?);
        let wanted = offloads_of(&items);
        if !wanted.is_empty() && offloads::complete(io, &self.sid, &wanted).await?.len() < wanted.len() {
            return Ok(None);
        }
        let items = with_bodies(io, &self.sid, items).await?;
        if conserve_origins(items.iter().map(|(origin, _)| origin), &left, row.messages).is_err() {
            return Ok(None);
        }
        self.adopt(row);
        self.plausible = Format::ALL.to_vec();
        self.context = Rc::new(Context::of(self.items(io, items).await?, left));
        jobs::recover(io, self).await?;
        Ok(Some(self.row.losses.clone()))
    }
}

/// The row of a session, where it is one of this release and that of the log as it ends.
///
/// Errors: [`Code::StoreCorrupt`] and [`Code::SchemaTooNew`], as reading it.
pub(super) async fn sound_row(io: &Io, state: &State) -> Result<Option<SessionRow>> {
    let Some((bytes, noted)) = seal::both(io, &state.sid).await? else { return Ok(None) };
    seal::check(&bytes)?;
    if record::version(&bytes, "session")? < record::SCHEMA {
        return Ok(None);
    }
    let row = seal::read(&bytes, noted.as_deref())?;
    if row.id != state.row.id {
        return Ok(None);
    }
    let last = last_row(io, &state.sid).await?;
    Ok(agrees(&row, last.as_ref()).then_some(row))
}

/// The log goes as far as the host remembers, and by the same row.
async fn is_as_marked(io: &Io, state: &State, row: &SessionRow, mark: &Watermark) -> Result<bool> {
    if mark.sid != state.sid || mark.next_seq > row.next_seq {
        return Ok(false);
    }
    if mark.next_seq == row.next_seq {
        return Ok(mark.next_seq == 0 || mark.head == row.head);
    }
    let Some(seq) = mark.next_seq.checked_sub(1) else { return Ok(true) };
    let bytes = read_one(io, keys::log(&state.sid, seq)).await?.unwrap_or_default();
    Ok(record::read_row(&bytes)?.1 == mark.head)
}

/// The last row of the log, and its position.
pub(crate) async fn last_row(io: &Io, sid: &str) -> Result<Option<(u64, Vec<u8>)>> {
    let prefix = keys::all("log", sid);
    let scan = Scan { prefix, after: None, limit: 1, max_bytes: PAGE, reverse: true, keys_only: false };
    Ok(wide::scan(io, scan).await?.into_iter().next().and_then(|(key, bytes)| Some((position(&key)?, bytes))))
}

/// The row is that of a log that ends so.
pub(super) fn agrees(row: &SessionRow, last: Option<&(u64, Vec<u8>)>) -> bool {
    match last {
        None => row.next_seq == 0,
        // A damaged row of the log is no reason to doubt the session's, which says what its hash was.
        Some((seq, bytes)) => {
            seq + 1 == row.next_seq && record::read_row(bytes).map_or(true, |(_, hash)| hash == row.head)
        }
    }
}

/// A view, and what is behind it.
#[derive(Default)]
pub(super) struct StandingView {
    pub(super) items: Vec<Unread>,
    pub(super) left: Vec<Departed>,
    pub(super) to: u64,
}

/// A view, as the log of `rows` rows tells of it.
pub(super) async fn view(io: &Io, sid: &str, generation: u64, rows: u64) -> Result<StandingView> {
    let corrupt = || Error::new(Code::StoreCorrupt, format!("view {generation} is not what was written"));
    let views = views_from_whole(io, sid, generation).await?;
    let keys = views.iter().map(|(view, _)| keys::log(sid, view.to.saturating_sub(1))).collect();
    let notes = wide::read(io, keys).await?;
    let mut standing = StandingView::default();
    for ((mut view, bytes), note) in views.into_iter().zip(notes) {
        // It was written together with its row of the log.
        if view.to > rows {
            return Err(corrupt());
        }
        // A note that is damaged says nothing about its view.
        if let Ok((row, _)) = record::read_row(&note.unwrap_or_default())
            && ViewNote::of(&row).is_none_or(|noted| noted.view != view.generation || !noted.is_of(&bytes))
        {
            return Err(corrupt());
        }
        standing.left = std::mem::take(&mut view.left);
        standing.to = view.to;
        standing.items = record::replay(standing.items, view);
    }
    Ok(standing)
}

/// The offloads that items refer to: by reference, the hash of the text.
pub(super) fn offloads_of(items: &[Unread]) -> BTreeMap<String, String> {
    let wanted = items.iter().flat_map(|(origin, _)| origin.offloads()).filter(|offload| !offload.is_media());
    order::map(wanted.map(|offload| (offload.reference.clone(), offload.sha256.clone())))
}

/// Items with their bodies; messages whose row of the log cannot be read are left out.
pub(super) async fn with_bodies(io: &Io, sid: &str, items: Vec<Unread>) -> Result<Vec<Unread>> {
    let unread = items.iter().filter(|(_, body)| body.is_none()).filter_map(|(origin, _)| origin.place());
    let read = readable_bodies(io, sid, &unread.collect::<Vec<_>>()).await?;
    let with_body = |(origin, body): Unread| {
        let body = body.or_else(|| read.get(&origin.place()?.seq).cloned());
        body.map(|body| (origin, Some(body)))
    };
    Ok(items.into_iter().filter_map(with_body).collect())
}

/// The bodies of messages by their positions in the log, but for those whose row cannot be read.
pub(crate) async fn readable_bodies(io: &Io, sid: &str, places: &[Place]) -> Result<HashMap<u64, Rc<str>>> {
    let mut read = HashMap::new();
    for page in places.chunks(256) {
        let rows = wide::read(io, page.iter().map(|place| keys::log(sid, place.seq)).collect()).await?;
        for (place, bytes) in page.iter().zip(rows) {
            match record::read_row(&bytes.unwrap_or_default()) {
                Ok((row, _)) if (row.seq, row.n, row.kind) == (place.seq, place.index, RowKind::Message) => {
                    read.insert(place.seq, Rc::from(row.body.get()));
                }
                Err(error) if error.code != Code::StoreCorrupt => return Err(error),
                _ => {}
            }
        }
    }
    Ok(read)
}
