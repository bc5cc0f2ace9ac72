//! What is mended when a session is opened (`storage.md` §5.3), and what of it is lost.
//!
//! * The name leads nowhere: the session's row says whose it is, and the name is written again.
//! * R2: the session's row is missing, damaged, or not that of the log as it ends: it is made again of the log.
//! * R3: the log is shorter than the host remembers: nothing brings that back, and it is said.
//! * R5: the view, or what it refers to, cannot be read: an earlier view stands, down to the plain log.

use super::batch::{Batch, Durability, Key, KeyPart, keys};
use super::check::Noted;
use super::context::{Context, Item, Left, Origin, Splice, Why, join_left};
use super::deletion::free_name;
use super::loss::{Loss, LossKind};
use super::record::{self, Cause, Kind, LogRow, NameRow, SessionRow, Unread};
use super::snapshots::{Mark as SnapshotMark, SnapshotNote};
use super::state::{Change, State, measure};
use super::stored::{
    PAGE, position, readable_items, readable_page, retryable, session_row, views_from_whole,
};
use super::watermark::{Known, Mark};
use super::{conserve_origins, migrations, offloads, seal};
use crate::checkpoint::Goal;
use crate::error::{Code, Error, Result};
use crate::message::Role;
use crate::step::{Io, Scan, Whose};
use crate::wire::{self, Author, Evidence, Format};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

/// Writes a batch; false when someone else wrote first, or when that is not known.
async fn written(io: &Io, batch: Batch) -> Result<bool> {
    match io.commit(batch).await {
        Ok(()) => Ok(true),
        Err(error) if retryable(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn batch(expect: Vec<(Key, Option<u64>)>, puts: Vec<(Key, Vec<u8>)>, deletes: Vec<Key>) -> Batch {
    Batch { expect, puts, deletes, durability: Durability::Strict }
}

async fn read_one(io: &Io, key: Key) -> Result<Option<Vec<u8>>> {
    Ok(io.read(vec![key]).await?.into_iter().next().flatten())
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
pub(super) async fn name(io: &Io, state: &State, known: &Known) -> Result<Option<Option<Named>>> {
    let (id, most) = (&state.row.id, state.max_batch_ops);
    let found = free_name(io, id, most).await;
    if let Ok(Some(NameRow { id: of, sid, .. })) = &found
        && of == id
        && (read_one(io, keys::session(sid)).await?.is_some() || last_row(io, sid).await?.is_some())
    {
        return Ok(Some(Some(Named { sid: sid.clone(), mended: None })));
    }
    let is_missing = matches!(found, Ok(None));
    let of_mark = known.mark.as_ref().map(|mark| mark.sid.clone());
    let sid = match of_mark {
        Some(sid) if is_session(io, &sid, id).await? => Some(sid),
        _ if is_missing => None,
        _ => session_of(io, id).await?,
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
    // What is damaged does not say how often it was written: it was rarely written more than once.
    let versions = if is_missing { vec![None] } else { (1..=8).map(Some).collect() };
    for version in versions {
        let row = NameRow { ver: version.unwrap_or(0) + 1, ..NameRow::new(id, &sid) };
        if written(
            io,
            batch(vec![(key.clone(), version)], vec![(key.clone(), record::encode(&row)?)], vec![]),
        )
        .await?
        {
            return Ok(Some(Some(Named { sid, mended })));
        }
    }
    Ok(None)
}

async fn is_session(io: &Io, sid: &str, id: &str) -> Result<bool> {
    match session_row(io, sid).await {
        Ok(row) => Ok(row.is_some_and(|row| row.id == *id)),
        Err(error) if error.code == Code::StoreCorrupt => Ok(false),
        Err(error) => Err(error),
    }
}

/// The session whose row says that it is called `id`.
async fn session_of(io: &Io, id: &str) -> Result<Option<String>> {
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
        let rows = io.scan(scan).await?;
        let Some((last, _)) = rows.last() else { return Ok(None) };
        after = Some(last.clone());
        for (key, bytes) in rows {
            // Backups have longer keys.
            if let [_, KeyPart::Text(sid)] = key.0.as_slice()
                && seal::read(&bytes).is_ok_and(|row| row.id == id)
            {
                return Ok(Some(sid.clone()));
            }
        }
    }
}

// ---- R2 -------------------------------------------------------------------------------------------------------------

/// The session's row as it was found.
enum Found {
    Row(Box<SessionRow>),
    Missing,
    /// With what can be read of it.
    Damaged(Vec<u8>, Option<Box<SessionRow>>),
}

impl Found {
    async fn of(io: &Io, state: &State) -> Result<Found> {
        match migrations::session_row(io, &state.sid, &state.settings).await {
            Ok(Some(row)) => Ok(Found::Row(Box::new(row))),
            Ok(None) => Ok(Found::Missing),
            Err(error) if error.code == Code::StoreCorrupt => {
                // What no release wrote is damaged. What one wrote and this one cannot read is not.
                match read_one(io, keys::session(&state.sid)).await? {
                    Some(bytes) if seal::check(&bytes).is_err() => {
                        let row = seal::read_broken(&bytes).map(Box::new);
                        Ok(Found::Damaged(bytes, row))
                    }
                    _ => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Nobody wrote it since `earlier`.
    fn is_still(&self, earlier: &Found) -> bool {
        match (self, earlier) {
            (Found::Row(now), Found::Row(then)) => now.ver == then.ver,
            (Found::Missing, Found::Missing) => true,
            (Found::Damaged(now, _), Found::Damaged(then, _)) => now == then,
            _ => false,
        }
    }
}

/// The session's row, made again of the log where it is not that of the log as it ends (R2). `None` when someone else
/// wrote to the session meanwhile.
///
/// Errors: [`Code::DataLoss`] when nothing is left of it, and the app does not accept that.
pub(super) async fn row(io: &Io, state: &State) -> Result<Option<SessionRow>> {
    let (sid, id) = (&state.sid, &state.row.id);
    let found = Found::of(io, state).await?;
    let last = last_row(io, sid).await?;
    if let Found::Row(row) = &found
        && agrees(row, last.as_ref())
    {
        return Ok(Some((**row).clone()));
    }
    // Someone else may have written between the two reads, or be deleting the session.
    if !Found::of(io, state).await?.is_still(&found)
        || free_name(io, id, state.max_batch_ops).await?.is_none_or(|name| name.sid != *sid)
    {
        return Ok(None);
    }
    let tail = Tail::read(io, state, &found).await?;
    let (base, version) = match &found {
        Found::Row(row) => (row, Some(row.ver)),
        Found::Missing => (&Box::new(state.row.clone()), None),
        Found::Damaged(_, row) => (&row.clone().unwrap_or_else(|| Box::new(state.row.clone())), None),
    };
    let (lost, what) = match &found {
        Found::Row(row) => (row.next_seq.saturating_sub(tail.rows), "its row named another end of the log"),
        Found::Missing => (tail.unreadable, "its row was missing"),
        Found::Damaged(..) => (tail.unreadable, "its row was damaged"),
    };
    let loss = if lost > 0 {
        let reason =
            format!("the end of the log is missing: the session ends {lost} records earlier than it did");
        Loss::records(LossKind::Records, lost, reason)
    } else {
        Loss::new(LossKind::Repaired, format!("the session was mended from its log: {what}"))
    };
    if tail.rows == 0 {
        state
            .accept(&Loss::new(loss.kind, "nothing is left of the session that was stored under this id"))?;
    }
    let mut row = tail.row(base, version.unwrap_or(0) + 1);
    row.losses.push(loss);
    let key = keys::session(sid);
    if let Found::Damaged(..) = &found {
        // How often it was written is not known any more: it is counted anew. Who dies here leaves a row that is missing.
        io.commit(batch(Vec::new(), Vec::new(), vec![key.clone()])).await?;
    }
    let expect = vec![(key.clone(), version)];
    for page in tail.strays.chunks(state.max_batch_ops.saturating_sub(2).max(1)) {
        if !written(io, batch(expect.clone(), Vec::new(), page.to_vec())).await? {
            return Ok(None);
        }
    }
    let is_written = written(io, batch(expect, vec![(key, seal::write(&row)?)], Vec::new())).await?;
    Ok(is_written.then_some(row))
}

/// The last row of the log, and its position.
async fn last_row(io: &Io, sid: &str) -> Result<Option<(u64, Vec<u8>)>> {
    let prefix = keys::all("log", sid);
    let scan = Scan { prefix, after: None, limit: 1, max_bytes: PAGE, reverse: true, keys_only: false };
    Ok(io.scan(scan).await?.into_iter().next().and_then(|(key, bytes)| Some((position(&key)?, bytes))))
}

fn agrees(row: &SessionRow, last: Option<&(u64, Vec<u8>)>) -> bool {
    match last {
        None => row.next_seq == 0,
        // A damaged row of the log is no reason to doubt the session's, which says what its hash was.
        Some((seq, bytes)) => {
            seq + 1 == row.next_seq && record::read_row(bytes).map_or(true, |(_, hash)| hash == row.head)
        }
    }
}

/// What the log says of its session.
#[derive(Default)]
struct Tail {
    /// Rows, up to the last that can be read.
    rows: u64,
    head: String,
    chain: String,
    messages: usize,
    tokens: usize,
    generation: u64,
    tail_from: u64,
    compressions: u64,
    snapshots: Vec<SnapshotMark>,
    goal: Option<Goal>,
    format: Option<Format>,
    created_at: Option<u64>,
    updated_at: u64,
    /// Rows behind the last that can be read.
    unreadable: u64,
    /// Keys of those, and of views that the log does not tell of.
    strays: Vec<Key>,
}

impl Tail {
    async fn read(io: &Io, state: &State, found: &Found) -> Result<Tail> {
        let sid = &state.sid;
        let known = match found {
            Found::Row(row) => row.format,
            Found::Damaged(_, row) => row.as_ref().and_then(|row| row.format),
            Found::Missing => None,
        };
        let mut tail = Tail { format: known.or(state.settings.format), ..Tail::default() };
        let (mut plausible, mut certain) = (Format::ALL.to_vec(), Vec::new());
        let mut next = 0;
        while let Some(page) = readable_page(io, sid, next).await? {
            for (seq, bytes) in page {
                next = seq + 1;
                let Ok((row, hash)) = record::read_row(&bytes) else {
                    tail.unreadable += 1;
                    tail.strays.push(keys::log(sid, seq));
                    continue;
                };
                if row.kind == Kind::Message && tail.format.is_none() {
                    let value = [wire::parse(row.n, row.body.get())?];
                    let evidence = |format: &Format| format.wire().evidence(&value);
                    plausible.retain(|format| evidence(format) != Evidence::Against);
                    certain.extend(plausible.iter().find(|format| evidence(format) == Evidence::Certain));
                }
                tail.follow(seq, &row, hash);
            }
        }
        let first = plausible.first().copied();
        tail.format = tail.format.or(certain.last().copied());
        tail.tokens = tokens(io, state, tail.format.or(first).unwrap_or(Format::OpenaiChat)).await?;
        let prefix = keys::all("views", sid);
        let mut after = Some(keys::view(sid, tail.generation));
        loop {
            let scan = Scan {
                prefix: prefix.clone(),
                after,
                limit: 1_000,
                max_bytes: PAGE,
                reverse: false,
                keys_only: true,
            };
            let views = io.scan(scan).await?;
            let Some((last, _)) = views.last() else { return Ok(tail) };
            after = Some(last.clone());
            tail.strays.extend(views.into_iter().map(|(key, _)| key));
        }
    }

    /// A row that can be read.
    fn follow(&mut self, seq: u64, row: &LogRow<'_>, hash: String) {
        // What could not be read before it is inside the log.
        (self.unreadable, self.strays) = (0, Vec::new());
        (self.rows, self.head, self.chain) = (seq + 1, hash, row.chain.clone());
        self.messages = row.n + usize::from(row.kind == Kind::Message);
        self.created_at.get_or_insert(row.at);
        self.updated_at = row.at;
        if let Some(noted) = Noted::of(row) {
            (self.generation, self.tail_from) = (noted.view, seq + 1);
            self.compressions += u64::from(noted.rung == "summarise");
        }
        if row.kind == Kind::Snapshot {
            self.snapshots.push(SnapshotMark { id: row.id.clone(), seq });
            if let Ok(note) = serde_json::from_str::<SnapshotNote>(row.body.get()) {
                self.goal = note.goal;
            }
        }
    }

    /// The session's row as the log says it; what the log does not say is as in `base`.
    fn row(&self, base: &SessionRow, ver: u64) -> SessionRow {
        let mut row = SessionRow {
            v: base.v.max(record::SCHEMA),
            ver,
            format: self.format.or(base.format),
            next_seq: self.rows,
            head: self.head.clone(),
            chain: self.chain.clone(),
            messages: self.messages,
            tokens: self.tokens,
            generation: self.generation,
            tail_from: self.tail_from,
            compressions: self.compressions,
            pending_step: true,
            created_at: self.created_at.unwrap_or(base.created_at),
            updated_at: self.updated_at.max(base.updated_at),
            goal: base.goal.clone().or_else(|| self.goal.clone()),
            ..base.clone()
        };
        row.pins.retain(|index| *index < self.messages);
        row.snapshots.retain(|mark| mark.seq < self.rows);
        if base.ver == 0 {
            row.snapshots.clone_from(&self.snapshots);
        }
        row
    }
}

/// Tokens of all messages of the log that can be read.
async fn tokens(io: &Io, state: &State, format: Format) -> Result<usize> {
    let (mut tokens, mut next) = (0, 0);
    while let Some(page) = readable_page(io, &state.sid, next).await? {
        for (seq, bytes) in page {
            next = seq + 1;
            let Ok((row, _)) = record::read_row(&bytes) else { continue };
            if row.kind == Kind::Message {
                let body: Rc<str> = Rc::from(row.body.get());
                tokens += measure(io, &state.settings, format, Whose::Logged(seq), &body).await?.tokens;
            }
        }
    }
    Ok(tokens)
}

// ---- R3 -------------------------------------------------------------------------------------------------------------

/// What the watermark knows and the log does not (R3).
pub(super) async fn behind(io: &Io, state: &State, row: &SessionRow, mark: &Mark) -> Result<Option<Loss>> {
    if mark.sid != state.sid {
        return Ok(Some(Loss::session(mark)));
    }
    let lost = mark.next_seq.saturating_sub(row.next_seq);
    if lost > 0 {
        let reason = format!("the log ends {lost} records before what was acknowledged");
        return Ok(Some(Loss::records(LossKind::Records, lost, reason)));
    }
    let Some(seq) = mark.next_seq.checked_sub(1) else { return Ok(None) };
    let bytes = read_one(io, keys::log(&state.sid, seq)).await?.unwrap_or_default();
    // What cannot be read at all is missed by whoever reads it.
    let is_other = record::read_row(&bytes).is_ok_and(|(_, hash)| hash != mark.head);
    let reason =
        format!("log row {seq} is another one than was acknowledged: the store went back and on from there");
    Ok(is_other.then(|| Loss::new(LossKind::Records, reason)))
}

// ---- R5 -------------------------------------------------------------------------------------------------------------

/// A view, and what is behind it.
#[derive(Default)]
struct Standing {
    items: Vec<Unread>,
    left: Vec<Left>,
    to: u64,
}

/// Reads the context into the state. Where it cannot be read as it was, one that can be read takes its place, in one batch
/// (R5). `None` when someone else wrote to the session meanwhile.
pub(super) async fn context(io: &Io, state: &mut State, row: SessionRow) -> Result<Option<()>> {
    state.check_format(&row)?;
    let sid = state.sid.clone();
    let mut losses = Vec::new();
    let Standing { mut items, mut left, to } = standing(io, &sid, row.generation, &mut losses).await?;
    items.extend(readable_items(io, &sid, to, row.next_seq).await?);
    let restored = restore_results(io, &sid, &mut items).await?;
    if restored > 0 {
        let reason = format!(
            "offloads of {restored} messages were missing: these stand in the context as they were appended"
        );
        losses.push(Loss::new(LossKind::Repaired, reason));
    }
    let items = with_bodies(io, &sid, items).await?;
    let is_whole =
        |left: &[Left]| conserve_origins(items.iter().map(|(origin, _)| origin), left, row.messages);
    if is_whole(&left).is_err() {
        let gone = missing(&items, &left, row.messages);
        let lost: usize = gone.iter().map(|run| run.to - run.from).sum();
        let reason = format!("{lost} messages of the log are missing or damaged");
        losses.push(Loss::records(LossKind::Records, lost as u64, reason));
        left = join_left(left.into_iter().chain(gone).collect());
        is_whole(&left).map_err(|error| Error::new(Code::StoreCorrupt, error.message))?;
    }
    state.adopt(row);
    state.plausible = Format::ALL.to_vec();
    let mut items = state.items(io, items).await?;
    if losses.iter().any(|loss| loss.kind == LossKind::Records) {
        begin_with_user(io, state, &mut items).await?;
    }
    if losses.is_empty() {
        state.context = items.into_iter().collect();
        state.context.set_left(left);
        return Ok(Some(()));
    }
    state.row.losses.extend(losses);
    state.context = Context::default();
    let tokens = items.iter().map(|item| item.size.tokens).sum();
    let cause = Cause::of(state, "repair", tokens);
    let splice = Splice { at: 0, remove: 0, insert: items };
    let change = Change { left: Some(left), ..Change::new(vec![splice], cause) };
    let (commit_id, now) = (io.new_id().await?, io.now().await?);
    let (batch, row) = state.change_batch(&change, &commit_id, now)?;
    if !written(io, batch).await? {
        return Ok(None);
    }
    // Not told to the host: as long as its mark is of before, the next opening tells what it knows.
    state.row = row;
    change.apply(&mut state.context);
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
    let size = measure(io, &state.settings, state.format(), Whose::Ours, &body).await?;
    items.insert(head, Item { body, size, origin: Origin::Acknowledgement });
    Ok(())
}

/// View `generation`, or the last one before it that can be read; at last the plain log.
async fn standing(io: &Io, sid: &str, generation: u64, losses: &mut Vec<Loss>) -> Result<Standing> {
    for number in (1..=generation).rev() {
        match view(io, sid, number).await {
            Ok(view) => {
                if number < generation {
                    let reason =
                        format!("view {generation} cannot be read: the context is that of view {number}");
                    losses.push(Loss::new(LossKind::Context, reason));
                }
                return Ok(view);
            }
            // Its session is of a schema that is known.
            Err(error) if matches!(error.code, Code::StoreCorrupt | Code::SchemaTooNew) => {}
            Err(error) => return Err(error),
        }
    }
    if generation > 0 {
        let reason =
            format!("view {generation} and those before it cannot be read: the context is the plain log");
        losses.push(Loss::new(LossKind::Context, reason));
    }
    Ok(Standing::default())
}

/// A view, as the log tells of it.
async fn view(io: &Io, sid: &str, generation: u64) -> Result<Standing> {
    let corrupt = || Error::new(Code::StoreCorrupt, format!("view {generation} is not what was written"));
    let views = views_from_whole(io, sid, generation).await?;
    let keys = views.iter().map(|(view, _)| keys::log(sid, view.to.saturating_sub(1))).collect();
    let notes = io.read(keys).await?;
    let mut standing = Standing::default();
    for ((mut view, bytes), note) in views.into_iter().zip(notes) {
        // A note that is damaged says nothing about its view.
        if let Ok((row, _)) = record::read_row(&note.unwrap_or_default())
            && Noted::of(&row).is_none_or(|noted| noted.view != view.generation || !noted.is_of(&bytes))
        {
            return Err(corrupt());
        }
        standing.left = std::mem::take(&mut view.left);
        standing.to = view.to;
        standing.items = record::replay(standing.items, view);
    }
    Ok(standing)
}

/// Messages whose offloads are not all in the store stand for themselves again. Returns how many.
async fn restore_results(io: &Io, sid: &str, items: &mut [Unread]) -> Result<usize> {
    let wanted = items.iter().flat_map(|(origin, _)| origin.offloads());
    let wanted: BTreeMap<String, String> =
        wanted.map(|offload| (offload.reference.clone(), offload.sha256.clone())).collect();
    if wanted.is_empty() {
        return Ok(0);
    }
    let there = offloads::complete(io, sid, &wanted).await?;
    let mut restored = 0;
    for (origin, body) in items {
        if let Origin::Edited { place, offloads, .. } = origin
            && offloads.iter().any(|offload| !there.contains(&offload.reference))
        {
            (*origin, *body) = (Origin::Message(*place), None);
            restored += 1;
        }
    }
    Ok(restored)
}

/// Items with their bodies, but for those whose row of the log cannot be read.
async fn with_bodies(io: &Io, sid: &str, items: Vec<Unread>) -> Result<Vec<Unread>> {
    let unread = items.iter().filter(|(_, body)| body.is_none()).filter_map(|(origin, _)| origin.place());
    let unread: Vec<_> = unread.collect();
    let mut read: HashMap<u64, Rc<str>> = HashMap::new();
    for page in unread.chunks(256) {
        let rows = io.read(page.iter().map(|place| keys::log(sid, place.seq)).collect()).await?;
        for (place, bytes) in page.iter().zip(rows) {
            match record::read_row(&bytes.unwrap_or_default()) {
                Ok((row, _)) if (row.seq, row.n, row.kind) == (place.seq, place.index, Kind::Message) => {
                    read.insert(place.seq, Rc::from(row.body.get()));
                }
                Err(error) if error.code != Code::StoreCorrupt => return Err(error),
                _ => {}
            }
        }
    }
    let with_body = |(origin, body): Unread| {
        let body = body.or_else(|| read.get(&origin.place()?.seq).cloned());
        body.map(|body| (origin, Some(body)))
    };
    Ok(items.into_iter().filter_map(with_body).collect())
}

/// The messages of the first `messages` that have no fate.
fn missing(items: &[Unread], left: &[Left], messages: usize) -> Vec<Left> {
    let mut known: HashSet<usize> = left.iter().flat_map(|run| run.from..run.to).collect();
    for (origin, _) in items {
        known.extend(origin.place().map(|place| place.index));
        if let Origin::Summary { covers, .. } = origin {
            known.extend(covers.iter().flat_map(|cover| cover.from..cover.to));
        }
    }
    let gone = (0..messages).filter(|index| !known.contains(index));
    gone.map(|index| Left { from: index, to: index + 1, why: Why::Lost }).collect()
}
