//! What is mended when a session is opened, and what of it is lost.
//!
//! * The name leads nowhere: the session's row says whose it is, and the name is written again.
//! * R2: the session's row is missing, damaged, or not that of the log as it ends: it is made again of the log
//!   ([`super::rebuild`]).
//! * R3: the log is shorter than the host remembers: nothing brings that back, and it is said.
//! * R5: the view, or what it refers to, cannot be read: an earlier view stands, down to the plain log.

use super::deletion::free_name;
use super::intact::{StandingView, last_row, offloads_of, view, with_bodies};
use super::loss::{absent, lost_session};
use super::record::{self, Cause, NameRow, SessionRow, Unread};
use super::retry::{Tried, conflict, retry, retryable};
use super::state::{ContextChange, State, measure};
use super::stored::{PAGE, name_row, readable_items, session_row, view_row};
use super::watermark::{HostRecord, Watermark};
use super::wide;
use super::{jobs, offloads, rebuild, renamed, seal};
use crate::context::{
    Context, Departed, Item, MessageSource, Origin, Splice, Why, conserve_origins, join_left, unfounded,
};
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Batch, Durability, Key, KeyPart, keys};
use crate::message::Role;
use crate::step::{Io, Loss, LossKind, Scan};
use crate::wire::{Author, Format};
use std::collections::HashSet;
use std::rc::Rc;

impl State {
    /// Reads the session, and mends it first where that is needed: what was lost or mended.
    pub(super) async fn recover(&mut self, io: &Io, known: &HostRecord, named: bool) -> Result<Vec<Loss>> {
        let begun = self.clone();
        let losses = retry(io, None, async |_| {
            let recovered = self.try_recover(io, known, named).await?;
            if recovered.is_none() {
                self.clone_from(&begun);
            }
            Ok(recovered.map_or_else(|| Tried::Lost(conflict(), None), Tried::Done))
        });
        losses.await
    }

    /// `None` when someone else wrote to it meanwhile.
    async fn try_recover(&mut self, io: &Io, known: &HostRecord, named: bool) -> Result<Option<Vec<Loss>>> {
        let mut losses = Vec::new();
        let platform = known.lost.as_ref().map(|reason| Loss::new(LossKind::Platform, reason.as_str()));
        losses.extend(platform.clone());
        let Some(name) = name(io, self, known).await? else { return Ok(None) };
        let Some(found) = name else {
            let missing = known.mark.as_ref().map(lost_session);
            if let Some(loss) = missing.clone().or(platform.filter(|_| named)) {
                self.accept(&loss)?;
            }
            if self.settings.must_exist && losses.is_empty() && missing.is_none() {
                return Err(absent(&self.row.id));
            }
            losses.extend(missing);
            return Ok(Some(losses));
        };
        self.sid = found.sid;
        let Some(mut row) = rebuild::row(io, self).await? else { return Ok(None) };
        row.losses.extend(found.mended);
        let told = row.losses.iter().filter_map(|loss| loss.lost_records).max();
        if let Some(mark) = &known.mark
            && let Some(loss) = behind(io, self, &row, mark).await?
            && (told.is_none() || loss.lost_records > told)
        {
            losses.push(loss);
        }
        let formerly = row.formerly.clone();
        if context(io, self, row).await?.is_none() {
            return Ok(None);
        }
        renamed::sweep_all(io, &formerly, self.max_batch_ops).await?;
        jobs::recover(io, self).await?;
        losses.extend(self.row.losses.iter().cloned());
        Ok(Some(losses))
    }
}

/// Writes a batch; false when someone else wrote first, or when that is not known.
pub(super) async fn written(io: &Io, batch: Batch) -> Result<bool> {
    match io.commit(batch).await {
        Ok(()) => Ok(true),
        Err(error) if retryable(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn batch(expect: Vec<(Key, Option<u64>)>, puts: Vec<(Key, Vec<u8>)>, deletes: Vec<Key>) -> Batch {
    Batch { expect, puts, deletes, durability: Durability::Strict }
}

pub(crate) async fn read_one(io: &Io, key: Key) -> Result<Option<Vec<u8>>> {
    Ok(wide::read(io, vec![key]).await?.into_iter().next().flatten())
}

// ---- the name -------------------------------------------------------------------------------------------------------

/// The session that a name leads to.
pub(super) struct Named {
    /// Names its rows.
    pub(super) sid: String,
    /// The name was written again.
    pub(super) mended: Option<Loss>,
}

/// The session that this one's name leads to, if any. `None` when someone else wrote meanwhile.
pub(super) async fn name(io: &Io, state: &State, known: &HostRecord) -> Result<Option<Option<Named>>> {
    let (id, most) = (&state.row.id, state.max_batch_ops);
    let found = free_name(io, id, most).await;
    if let Ok(Some(NameRow { sid, .. })) = &found
        && has_rows(io, sid).await?
    {
        return Ok(Some(Some(Named { sid: sid.clone(), mended: None })));
    }
    // An erasure may have given it to other rows meanwhile, and removed those.
    if let Ok(Some(name)) = &found
        && name_row(io, id).await?.is_none_or(|now| now.sid != name.sid)
    {
        return Ok(None);
    }
    let is_missing = matches!(found, Ok(None));
    let is_damaged = matches!(&found, Err(error) if error.code == Code::StoreCorrupt);
    let of_mark = known.mark.as_ref().map(|mark| mark.sid.clone());
    let sid = match of_mark {
        Some(sid) if is_session(io, &sid, id, is_damaged).await? => Some(sid),
        _ if is_missing => None,
        _ => session_of(io, id, |bytes| seal::read_head(bytes).ok()).await?,
    };
    let Some(sid) = sid else {
        // A name that leads nowhere is that of a session of which nothing is left.
        let name = found?;
        return Ok(Some(name.map(|name| Named { sid: name.sid, mended: None })));
    };
    if let Err(error) = found
        && !matches!(error.code, Code::StoreCorrupt | Code::SchemaTooNew)
    {
        return Err(error);
    }
    let key = keys::name(id);
    let reason = "the name of the session was missing or damaged, and was written again";
    let mended = Some(Loss::new(LossKind::Repaired, reason));
    // What is damaged does not say how often it was written: it was rarely written more than once. What the disk put in its
    // place may have been written much more often, and goes first.
    let versions = if is_missing { vec![None] } else { (1..=8).map(Some).chain([None]).collect() };
    for version in versions {
        if version.is_none() && !is_missing {
            io.commit(batch(Vec::new(), Vec::new(), vec![key.clone()])).await?;
        }
        let row = NameRow { ver: version.unwrap_or(0) + 1, ..NameRow::new(id, &sid) };
        if written(
            io,
            batch(vec![(key.clone(), version)], vec![(key.clone(), seal::write_name(&row)?)], vec![]),
        )
        .await?
        {
            return Ok(Some(Some(Named { sid, mended })));
        }
    }
    Ok(None)
}

/// True where the rows called `sid` are those of session `id`. Where its name is damaged and nobody deleted it, any row of its
/// log is enough.
async fn is_session(io: &Io, sid: &str, id: &str, is_damaged: bool) -> Result<bool> {
    match session_row(io, sid).await {
        Ok(Some(row)) => Ok(row.id == *id),
        Err(error) if error.code != Code::StoreCorrupt => Err(error),
        _ => Ok(is_damaged && last_row(io, sid).await?.is_some()),
    }
}

/// Something is left of the session that has these rows.
pub(super) async fn has_rows(io: &Io, sid: &str) -> Result<bool> {
    Ok(read_one(io, keys::session(sid)).await?.is_some() || last_row(io, sid).await?.is_some())
}

/// The session whose row, as `read` has it, says that it is called `id`.
pub(super) async fn session_of(
    io: &Io,
    id: &str,
    read: impl Fn(&[u8]) -> Option<SessionRow>,
) -> Result<Option<String>> {
    let (prefix, mut after) = (Key(vec![KeyPart::Text("sessions".into())]), None);
    loop {
        let scan = Scan {
            prefix: prefix.clone(),
            after,
            limit: 256,
            max_bytes: PAGE,
            reverse: false,
            keys_only: false,
        };
        let rows = wide::scan(io, scan).await?;
        let Some((last, _)) = rows.last() else { return Ok(None) };
        after = Some(last.clone());
        for (key, bytes) in rows {
            // Backups have longer keys.
            if let [_, KeyPart::Text(sid)] = key.0.as_slice()
                && read(&bytes).is_some_and(|row| row.id == id)
            {
                return Ok(Some(sid.clone()));
            }
        }
    }
}

// ---- R3 -------------------------------------------------------------------------------------------------------------

/// What the watermark knows and the log does not (R3).
pub(super) async fn behind(
    io: &Io,
    state: &State,
    row: &SessionRow,
    mark: &Watermark,
) -> Result<Option<Loss>> {
    let is_former = row.formerly.contains(&mark.sid);
    if mark.sid != state.sid && !is_former {
        return Ok(Some(lost_session(mark)));
    }
    let lost = mark.next_seq.saturating_sub(row.next_seq);
    if lost > 0 {
        let reason = format!("the log ends {lost} records before what was acknowledged");
        return Ok(Some(Loss::records(LossKind::Records, lost, reason)));
    }
    let Some(seq) = mark.next_seq.checked_sub(1) else { return Ok(None) };
    let bytes = read_one(io, keys::log(&state.sid, seq)).await?.unwrap_or_default();
    // What cannot be read at all is missed by whoever reads it.
    // An erasure changed all hashes, and who erased may have died before it told the mark.
    let is_other = !is_former && record::read_row(&bytes).is_ok_and(|(_, hash)| hash != mark.head);
    let reason =
        format!("log row {seq} is another one than was acknowledged: the store went back and on from there");
    Ok(is_other.then(|| Loss::new(LossKind::Records, reason)))
}

// ---- R5 -------------------------------------------------------------------------------------------------------------

/// Reads the context into the state. Where it cannot be read as it was, one that can be read takes its place, in one batch
/// (R5). `None` when someone else wrote to the session meanwhile.
pub(crate) async fn context(io: &Io, state: &mut State, row: SessionRow) -> Result<Option<()>> {
    state.check_format(&row)?;
    let sid = state.sid.clone();
    let mut losses = Vec::new();
    let StandingView { mut items, left, to } = standing(io, &sid, &row, &mut losses).await?;
    items.extend(readable_items(io, &sid, to, row.next_seq).await?);
    let restored = restore_results(io, &sid, &mut items).await?;
    if restored > 0 {
        let reason = format!(
            "offloads of {restored} messages were missing: these stand in the context as they were appended"
        );
        losses.push(Loss::new(LossKind::Repaired, reason));
    }
    let (items, left, lost) = readable(io, &sid, items, left, row.messages).await?;
    if lost > 0 {
        let reason = format!("{lost} messages of the log are missing or damaged");
        losses.push(Loss::records(LossKind::Records, lost as u64, reason));
    }
    state.adopt(row);
    state.plausible = Format::ALL.to_vec();
    let mut items = state.items(io, items).await?;
    if losses.iter().any(|loss| loss.kind == LossKind::Records) {
        begin_with_user(io, state, &mut items).await?;
    }
    if losses.is_empty() {
        state.context = Rc::new(Context::of(items, left));
        return Ok(Some(()));
    }
    state.row.losses.extend(losses);
    state.context = Rc::default();
    let tokens = items.iter().map(|item| item.size.tokens).sum();
    let cause = Cause::of(&state.view(), "repair", tokens);
    let splice = Splice { at: 0, remove: 0, insert: items };
    let change = ContextChange { left: Some(left), ..ContextChange::new(vec![splice], cause) };
    let (commit_id, now) = (io.new_id().await?, io.now().await?);
    let (batch, row) = state.change_batch(&change, &commit_id, now)?;
    if !written(io, batch).await? {
        return Ok(None);
    }
    // Not told to the host: as long as its mark is of before, the next opening tells what it knows.
    state.row = row;
    change.apply(Rc::make_mut(&mut state.context));
    Ok(Some(()))
}

/// A conversation begins with its user, as providers want it: where that message is lost, one of ours says so.
async fn begin_with_user(io: &Io, state: &State, items: &mut Vec<Item>) -> Result<()> {
    let head = items.iter().take_while(|item| item.size.role == Role::System).count();
    let is_logged = |item: &Item| item.origin.place().is_some() && item.size.role != Role::User;
    if !items.get(head).is_some_and(is_logged) {
        return Ok(());
    }
    let text = "[What was said here before is lost.]";
    let body: Rc<str> = state.format().wire().text_message(Author::User, text, "", None).into();
    let size = measure(io, &state.settings, state.format(), MessageSource::Ours, &body).await?;
    items.insert(head, Item::new(body, size, Origin::Acknowledgement));
    Ok(())
}

/// View `generation`, or the last one before it that can be read; at last the plain log.
async fn standing(io: &Io, sid: &str, row: &SessionRow, losses: &mut Vec<Loss>) -> Result<StandingView> {
    let generation = row.generation;
    let mut number = generation;
    while number > 0 {
        if let Some(view) = readable_view(io, sid, row, number).await? {
            if number < generation {
                let reason =
                    format!("view {generation} cannot be read: the context is that of view {number}");
                losses.push(Loss::new(LossKind::Context, reason));
            }
            return Ok(view);
        }
        // All that are made of one that cannot be read cannot be read either: found by halves, for they may be many.
        let first = view_row(io, sid, number).await.ok().and_then(|view| view.base).unwrap_or(number);
        let mut sound = first.clamp(1, number) - 1;
        while number - sound > 1 {
            let middle = sound + (number - sound) / 2;
            match readable_view(io, sid, row, middle).await? {
                Some(_) => sound = middle,
                None => number = middle,
            }
        }
        number = sound;
    }
    if generation > 0 {
        let reason =
            format!("view {generation} and those before it cannot be read: the context is the plain log");
        losses.push(Loss::new(LossKind::Context, reason));
    }
    Ok(StandingView::default())
}

/// A view as it was written; `None` where that cannot be read.
async fn readable_view(io: &Io, sid: &str, row: &SessionRow, number: u64) -> Result<Option<StandingView>> {
    match view(io, sid, number, row.next_seq).await {
        // Its session is of a schema that is known.
        Err(error) if matches!(error.code, Code::StoreCorrupt | Code::SchemaTooNew) => Ok(None),
        found => found.map(Some),
    }
}

/// Messages whose offloads are not all in the store stand for themselves again. Returns how many.
async fn restore_results(io: &Io, sid: &str, items: &mut [Unread]) -> Result<usize> {
    let wanted = offloads_of(items);
    if wanted.is_empty() {
        return Ok(0);
    }
    let there = offloads::complete(io, sid, &wanted).await?;
    let mut restored = 0;
    for (origin, body) in items {
        if let Origin::Edited { place, offloads, .. } = origin
            && offloads.iter().any(|offload| !offload.is_media() && !there.contains(&offload.reference))
        {
            (*origin, *body) = (Origin::Message(*place), None);
            restored += 1;
        }
    }
    Ok(restored)
}

/// A context with its bodies. Of its `messages` those whose row of the log cannot be read are left out, and have left it:
/// how many.
pub(crate) async fn readable(
    io: &Io,
    sid: &str,
    items: Vec<Unread>,
    left: Vec<Departed>,
    messages: usize,
) -> Result<(Vec<Unread>, Vec<Departed>, usize)> {
    let mut items = with_bodies(io, sid, items).await?;
    // What leaned on one of those stands for itself again.
    let gone = unfounded(items.iter().map(|(origin, _)| origin));
    if !gone.is_empty() {
        for (origin, body) in &mut items {
            if let Some(place) = origin.place().filter(|_| origin.bases().any(|basis| gone.contains(&basis)))
            {
                (*origin, *body) = (Origin::Message(place), None);
            }
        }
        items = with_bodies(io, sid, items).await?;
    }
    let is_whole =
        |left: &[Departed]| conserve_origins(items.iter().map(|(origin, _)| origin), left, messages);
    if is_whole(&left).is_ok() {
        return Ok((items, left, 0));
    }
    let gone = missing(&items, &left, messages);
    let lost = gone.iter().map(|run| run.to - run.from).sum();
    let left = join_left(left.into_iter().chain(gone).collect());
    is_whole(&left).map_err(|error| Error::new(Code::StoreCorrupt, error.into_parts().message))?;
    Ok((items, left, lost))
}

/// The messages of the first `messages` that have no fate.
fn missing(items: &[Unread], left: &[Departed], messages: usize) -> Vec<Departed> {
    let mut known: HashSet<usize> = left.iter().flat_map(|run| run.from..run.to).collect();
    for (origin, _) in items {
        known.extend(origin.place().map(|place| place.index));
        if let Origin::Summary { covers, .. } = origin {
            known.extend(covers.iter().flat_map(|cover| cover.from..cover.to));
        }
    }
    let gone = (0..messages).filter(|index| !known.contains(index));
    gone.map(|index| Departed { from: index, to: index + 1, why: Why::Lost }).collect()
}
