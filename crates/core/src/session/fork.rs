//! Sub-agents (`S3.10`): sessions that begin from another, with rows of their own from the first on. A fork copies what its
//! parent's context is made of; neither then depends on the other.
//!
//! Its log begins with the messages of that context, as the app handed them over, those in front of the last summary
//! first. A view then puts the summaries among them, and, after the rest, a second one has the results that were
//! offloaded: so a rewind works inside a fork too. The offloads keep their references and are rows of the fork's own.

use super::operations::{Opened, Session};
use crate::context::{Basis, CoveredRange, Item, MessageSource, Offload, Origin, Place, Splice, SummaryMeta};
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Batch, Durability, Key, KeyPart, keys};
use crate::keys::ids;
use crate::log::deletion::{free_name, remove_rows};
use crate::log::guard::SessionCell;
use crate::log::intact::readable_bodies;
use crate::log::record::{self, Parent, SessionRow};
use crate::log::renamed::{StagingRow, is_moved};
use crate::log::retry::{Tried, conflict, retry, retryable};
use crate::log::state::{AppendBatch, FormatDecision, PendingMessage};
use crate::log::stored::{commit_again, name_row, session_row};
use crate::log::wide::{self, LargeRow};
use crate::log::{Cause, ContextChange, Gap, NewBlob, SessionGuard, State, measure};
use crate::step::{Io, Machine, Scan};
use crate::wire;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// What a fork begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Forked {
    /// What it is.
    #[serde(flatten)]
    pub opened: Opened,
    /// The positions of its messages in the session that it began from.
    pub places: Vec<Place>,
}

impl Session {
    /// Begins a session, called `id` when it is given, with the context of this one, for a sub-agent (`S3.10`): linked to
    /// it and independent of it. Returns it with the places that its messages have here.
    ///
    /// Errors: [`Code::Conflict`] when there is a session called `id`.
    pub fn fork(&self, id: Option<String>) -> Machine<(Session, Forked)> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let begin = async |io: Io| fork(&io, &slot.take()?, id.clone()).await;
            let (state, places) = slot.try_on_rows(&io, begin).await?;
            let opened = Opened::of(&state);
            Ok((Session { slot: SessionCell::new(state) }, Forked { opened, places }))
        })
    }
}

/// A fork that was not finished after this long is taken for abandoned, in ms.
const LEASE: u64 = 3_600_000;

/// A session that begins with the context of this one. Returns it with the places in the parent that its
/// messages come from.
///
/// Errors: [`Code::Conflict`] when there is a session called `id`.
async fn fork(io: &Io, guard: &SessionGuard, id: Option<String>) -> Result<(State, Vec<Place>)> {
    // Its offloads are read from the store.
    guard.store_changes(io).await?;
    let secret = io.new_id().await?;
    let id = id.unwrap_or_else(|| ids::session(&secret));
    let now = io.now().await?;
    let parent = guard.state().clone();
    if free_name(io, &id, parent.max_batch_ops).await?.is_some() {
        return Err(taken(&id));
    }
    sweep_abandoned(io, now, parent.max_batch_ops).await?;
    let (parent_id, parent_sid) = (parent.row.id.clone(), parent.sid.clone());
    let copy = ForkDraft::of(io, parent, id, secret, now).await?;
    let (state, batch, places) = copy.end()?;
    // Its commit does not expect the rows that it was made of.
    if guard.state().row.ver > 0 && is_moved(io, &parent_id, &parent_sid).await {
        return Err(conflict());
    }
    write(io, &state, batch, now).await?;
    state.unmark(io);
    state.mark(io);
    Ok((state, places))
}

fn taken(id: &str) -> Error {
    Error::new(Code::Conflict, format!("there is a session called {id:?} already; choose another id"))
}

/// A fork in the making: the state that it is in, and the rows that lead there.
struct ForkDraft {
    parent: State,
    child: State,
    puts: Vec<(Key, Vec<u8>)>,
    /// Where the child's messages come from.
    places: Vec<Place>,
    /// The child's place of a message, by its position in the parent's log.
    moved: HashMap<u64, Place>,
    /// Positions in the parent's log of messages that cannot be read there any more.
    lost: HashSet<u64>,
    now: u64,
}

impl ForkDraft {
    async fn of(io: &Io, parent: State, id: String, secret: String, now: u64) -> Result<ForkDraft> {
        let mut child = State::new(id, secret, Rc::clone(&parent.settings), now);
        let row = &parent.row;
        child.row.format = row.format;
        child.row.goal.clone_from(&row.goal);
        child.row.compressions = row.compressions;
        child.secrets = Rc::new(RefCell::clone(&parent.secrets));
        child.calibrations.clone_from(&parent.calibrations);
        child.reported_model.clone_from(&parent.reported_model);
        child.row.steps = row.steps;
        child.row.attempted_at = row.attempted_at;
        child.plausible.clone_from(&parent.plausible);
        child.fixed_tokens = parent.fixed_tokens;
        child.prompt_tokens = parent.prompt_tokens;
        child.tool_tokens = parent.tool_tokens;
        child.fixed_texts = parent.fixed_texts;
        child.recalls = parent.recalls;
        child.max_batch_ops = parent.max_batch_ops;
        let (id, sid, seq) = (row.id.clone(), parent.sid.clone(), row.next_seq);
        let items = parent.context.items().to_vec();
        let of_ours = |item: &Item| matches!(item.origin, Origin::Summary { .. } | Origin::Acknowledgement);
        let summed = items.iter().rposition(of_ours).map_or(0, |last| last + 1);
        let (head, tail) = items.split_at(summed);
        let (puts, places, moved, lost) = Default::default();
        let mut copy = ForkDraft { parent, child, puts, places, moved, lost, now };
        copy.append(io, head).await?;
        let floor = copy.child.row.messages;
        copy.child.row.parent = Some(Parent { id, sid, seq, floor });
        if !head.is_empty() {
            copy.view(io, 0, head).await?;
        }
        copy.append(io, tail).await?;
        if tail.iter().any(|item| matches!(item.origin, Origin::Edited { .. })) {
            copy.view(io, summed, tail).await?;
        }
        copy.child.row.pending_step = copy.parent.row.pending_step;
        Ok(copy)
    }

    /// Appends the app's messages of `items` as they were handed over, with those that a summary quotes. Of one that the
    /// store lost there is what is in the context.
    async fn append(&mut self, io: &Io, items: &[Item]) -> Result<()> {
        let stands = |item: &Item| matches!(item.origin, Origin::Message(_));
        let own = items.iter().flat_map(|item| {
            let places = item.origin.place().into_iter().chain(item.origin.server());
            let places = places.chain(item.origin.quotes().iter().copied());
            places.map(move |place| (place, item))
        });
        let own: Vec<(Place, &Item)> = own.collect();
        let unread: Vec<Place> =
            own.iter().filter(|(_, item)| !stands(item)).map(|(place, _)| *place).collect();
        let read = readable_bodies(io, &self.parent.sid, &unread).await?;
        let mut found = Vec::with_capacity(own.len());
        for (place, item) in own {
            let size = stands(item).then_some(item.size);
            let body = if stands(item) { Some(&item.body) } else { read.get(&place.seq) };
            if body.is_none() {
                self.lost.insert(place.seq);
                Gap::new(place.seq, 1, place.index, 1).tell(io);
            }
            let body = body.or(item.origin.place().map(|_| &item.body));
            found.extend(body.map(|body| (place, Rc::clone(body), size)));
        }
        if found.is_empty() {
            return Ok(());
        }
        let from: Vec<Place> = found.iter().map(|(place, ..)| *place).collect();
        let mut measured = Vec::with_capacity(found.len());
        // Only a message that is unchanged has its size.
        for (place, body, size) in found {
            let (settings, whose) = (&self.parent.settings, MessageSource::Logged(place.seq));
            let size = match size {
                Some(size) => size,
                None => measure(io, settings, self.child.format(), whose, &body).await?,
            };
            let pinned = self.parent.row.pins.contains(&place.index);
            measured.push(PendingMessage { body, size, pinned, known: None });
        }
        let settled = FormatDecision {
            format: self.child.format(),
            sure: self.child.row.format.is_some(),
            plausible: Vec::new(),
            context: None,
        };
        let batch_id = io.new_id().await?;
        let AppendBatch { batch, large, row, items, unindexed } =
            self.child.append_batch(&settled, &measured, &batch_id, self.now)?;
        self.child.unindexed = unindexed;
        for (from, item) in from.iter().zip(&items) {
            self.moved.extend(item.origin.place().map(|place| (from.seq, place)));
        }
        self.places.extend(from);
        let context = Rc::make_mut(&mut self.child.context);
        items.into_iter().for_each(|item| context.push(item));
        self.take(batch, large, row);
        Ok(())
    }

    /// A view in which the context from `at` on is `items`, in the child's places.
    async fn view(&mut self, io: &Io, at: usize, items: &[Item]) -> Result<()> {
        let insert = items.iter().map(|item| self.moved(item)).collect::<Result<Vec<Item>>>()?;
        let remove = self.child.context.len().saturating_sub(at);
        let tokens = self.parent.tokens();
        let cause = Cause { tokens_before: tokens, ..Cause::of(&self.child.view(), "fork", tokens) };
        let blobs = self.blobs(&insert)?;
        let change =
            ContextChange { blobs, ..ContextChange::new(vec![Splice { at, remove, insert }], cause) };
        let commit_id = io.new_id().await?;
        let (batch, row) = self.child.change_batch(&change, &commit_id, self.now)?;
        for blob in change.blobs.iter().filter(|blob| blob.is_big()) {
            self.puts.extend(blob.rows_of(&self.child.sid)?);
        }
        Rc::make_mut(&mut self.child.context).apply(&change.splices);
        self.take(batch, Vec::new(), row);
        Ok(())
    }

    /// An item of the parent's context in the child's places. A summary covers what it quotes; the rest of what it
    /// covered stays in the parent.
    fn moved(&self, item: &Item) -> Result<Item> {
        let to = |place: &Place| {
            let moved = self.moved.get(&place.seq).copied();
            moved.ok_or_else(|| Error::new(Code::Poisoned, "a message of the context was not copied"))
        };
        let origin = match &item.origin {
            Origin::Message(place) => Origin::Message(to(place)?),
            Origin::Edited { place, .. } if self.lost.contains(&place.seq) => Origin::Message(to(place)?),
            Origin::Edited { place, offloads, reasoning_removed } => {
                let moved = |offload: &Offload| {
                    let basis = offload.basis.map(|Basis { seq, index, nth }| {
                        let Place { seq, index } = to(&Place { seq, index })?;
                        Ok::<_, Error>(Basis { seq, index, nth })
                    });
                    Ok(Offload { basis: basis.transpose()?, ..offload.clone() })
                };
                Origin::Edited {
                    place: to(place)?,
                    offloads: offloads.iter().map(moved).collect::<Result<_>>()?,
                    reasoning_removed: *reasoning_removed,
                }
            }
            Origin::Summary { checkpoint, quotes, prose, made, .. } => {
                let quotes = quotes.iter().filter(|place| !self.lost.contains(&place.seq));
                let quotes = quotes.map(to).collect::<Result<Vec<Place>>>()?;
                let cover = |place: &Place| CoveredRange {
                    from: place.index,
                    to: place.index + 1,
                    offloads: Vec::new(),
                };
                let covers = quotes.iter().map(cover).collect();
                // Pins of messages that are not the child's are nobody's here.
                // What the user laid down in them holds here too.
                let made = made.as_deref().map(|made| {
                    let open =
                        made.proposed.iter().filter(|open| !self.parent.row.rejected.contains(&open.index));
                    let sentences = open.flat_map(|open| open.constraints.iter().cloned());
                    let rules = made.rules.iter().cloned().chain(sentences).collect();
                    Rc::new(SummaryMeta { proposed: Vec::new(), rules, ..made.clone() })
                });
                let checkpoint = Rc::clone(checkpoint);
                Origin::Summary { checkpoint, covers, quotes, prose: *prose, made }
            }
            Origin::Acknowledgement => Origin::Acknowledgement,
        };
        Ok(Item::new(Rc::clone(&item.body), item.size, origin))
    }

    /// The offloads of items, with their texts from the messages that they were taken out of.
    fn blobs(&self, items: &[Item]) -> Result<Vec<NewBlob>> {
        let (mut blobs, format) = (Vec::new(), self.child.format());
        for item in items {
            let Origin::Edited { place, offloads, .. } = &item.origin else { continue };
            let own = Origin::Message(*place);
            let whole = self.child.context.items().iter().find(|item| item.origin == own);
            let body = whole.map_or("null", |item| &item.body);
            let value = wire::parse(place.index, body)?;
            let message = format.wire().read(place.index, &value)?;
            for offload in offloads.iter().filter(|offload| !offload.is_media()) {
                let text = offload.text_in(&message);
                let text = text.filter(|text| ids::sha256_hex(text.as_bytes()) == offload.sha256);
                let text = text.ok_or_else(|| {
                    let what = format!("{} is not a text of the message that it was in", offload.reference);
                    Error::new(Code::StoreCorrupt, what)
                })?;
                let logged = self.child.row.format.is_some().then_some(place.seq);
                let (index, offload) = (place.index, offload.clone());
                blobs.push(NewBlob::new(index, offload, text, logged));
            }
        }
        Ok(blobs)
    }

    /// Takes over what a step would write: all but the session's row and name, which are written once, at the end.
    fn take(&mut self, batch: Batch, large: Vec<LargeRow<'_>>, row: SessionRow) {
        let own =
            [keys::session(&self.child.sid), keys::notes(&self.child.sid), keys::name(&self.child.row.id)];
        let puts = batch.puts.into_iter().filter(|(key, _)| !own.contains(key));
        self.puts.extend(wide::beside(&self.child.sid, puts.collect(), large));
        self.child.row = SessionRow { ver: 0, notes: None, ..row };
    }

    /// The state at the end, and the batch that makes it.
    fn end(mut self) -> Result<(State, Batch, Vec<Place>)> {
        let (batch, row) = self.child.row_batch_with(self.now, self.puts)?;
        self.child.row = row;
        self.child.hand_out();
        Ok((self.child, batch, self.places))
    }
}

/// Writes the note that leads to the rows called `sid` until a name does; returns its key. They are a copy of those called
/// `of` for an erasure.
pub(super) async fn begin_staging(io: &Io, sid: &str, of: Option<String>, now: u64) -> Result<Key> {
    let note = keys::staging(sid);
    let row = StagingRow { v: record::SCHEMA, sid: sid.into(), at: now, of };
    let (expect, puts) = (vec![(note.clone(), None)], vec![(note.clone(), record::encode(&row))]);
    let begin = Batch { expect, puts, deletes: Vec::new(), durability: Durability::Strict };
    match commit_again(io, begin).await {
        // Nobody else writes it: the answer to the first was lost.
        Err(error) if error.code == Code::Conflict => {}
        begun => begun?,
    }
    Ok(note)
}

/// Writes a fork: in one batch where the store takes it, else after a note that leads to its rows until it is whole.
async fn write(io: &Io, state: &State, mut last: Batch, now: u64) -> Result<()> {
    let most = state.max_batch_ops;
    if last.expect.len() + last.puts.len() > most {
        let note = begin_staging(io, &state.sid, None, now).await?;
        let put = |expect, puts| Batch { expect, puts, deletes: Vec::new(), durability: Durability::Strict };
        // Row and name of the session come last, and are written last.
        let rows: Vec<(Key, Vec<u8>)> = last.puts.drain(..last.puts.len().saturating_sub(2)).collect();
        for page in rows.chunks(most.saturating_sub(1).max(1)) {
            commit_again(io, put(vec![(note.clone(), Some(1))], page.to_vec())).await?;
        }
        last.expect.push((note.clone(), Some(1)));
        last.deletes.push(note);
    }
    retry(io, None, async |_| {
        let error = match io.commit(last.clone()).await {
            Err(error) if retryable(&error) => error,
            done => return done.map(Tried::Done),
        };
        match name_row(io, &state.row.id).await {
            Ok(Some(name)) if name.sid == state.sid => Ok(Tried::Done(())),
            Ok(Some(_)) => Err(taken(&state.row.id)),
            Ok(None) if error.code == Code::Indeterminate => Ok(Tried::Lost(conflict(), None)),
            _ => Err(error),
        }
    })
    .await
}

/// Removes the rows of forks that were stopped half-way. Whoever still writes one finds its note changed, and gives up.
async fn sweep_abandoned(io: &Io, now: u64, most: usize) -> Result<()> {
    let prefix = keys::all_staging();
    let scan = Scan { prefix, after: None, limit: 100, max_bytes: 1 << 20, reverse: false, keys_only: false };
    for (note, bytes) in wide::scan(io, scan).await? {
        let sid = match record::decode::<StagingRow>(&bytes, "note of a fork") {
            Ok(row) if row.at.saturating_add(LEASE) > now => continue,
            Ok(row) => row.sid,
            // Nobody knows any more how old it is: its key says whose rows they are.
            Err(error) if error.code == Code::StoreCorrupt => match note.0.last() {
                Some(KeyPart::Text(sid)) => sid.clone(),
                _ => continue,
            },
            Err(error) => return Err(error),
        };
        let batch =
            |puts, deletes| Batch { expect: Vec::new(), puts, deletes, durability: Durability::Strict };
        io.commit(batch(vec![(note.clone(), bytes)], Vec::new())).await?;
        remove_rows(io, &sid, most).await?;
        io.commit(batch(Vec::new(), vec![note])).await?;
    }
    Ok(())
}

/// Links a session that begins to its parent; durable when it ends. One that was begun before must have that parent.
///
/// Errors: [`Code::NotFound`] when there is no such parent, [`Code::InvalidOption`] when it is another.
pub(super) async fn link(io: &Io, guard: &SessionGuard, id: &str) -> Result<()> {
    retry(io, Some(guard), async |_| {
        if guard.state().row.ver > 0 {
            return match &guard.state().row.parent {
                Some(parent) if parent.id == id => Ok(Tried::Done(())),
                Some(parent) => Err(not_the_parent(&format!("{:?}", parent.id))),
                None => Err(not_the_parent("none")),
            };
        }
        let not_found = || Error::new(Code::NotFound, format!("there is no session called {id:?}"));
        let name = name_row(io, id).await?.filter(|name| !name.deleted).ok_or_else(not_found)?;
        let row = session_row(io, &name.sid).await?.ok_or_else(not_found)?;
        let parent = Parent { id: id.into(), sid: name.sid, seq: row.next_seq, floor: 0 };
        let now = io.now().await?;
        let (batch, row) = {
            let mut state = guard.state_mut();
            state.row.parent = Some(parent);
            state.row_batch_with(now, Vec::new())?
        };
        guard.check_new(io).await?;
        match io.commit(batch).await {
            Ok(()) => {
                guard.state_mut().wrote(io, row);
                Ok(Tried::Done(()))
            }
            // Someone else began it, or it was written after all.
            Err(error) if retryable(&error) => Ok(Tried::Lost(conflict(), None)),
            Err(error) => Err(error),
        }
    })
    .await
}

fn not_the_parent(own: &str) -> Error {
    Error::option("parent", format!("this session was begun before, and its parent is {own}"))
}
