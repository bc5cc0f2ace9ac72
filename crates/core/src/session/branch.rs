//! An earlier context made the current one again. The log and the views keep everything: what was said since is left
//! behind, and can be come back to.

use super::operations::Session;
use crate::context::{Departed, Item, Place, Splice, Why, join_left};
use crate::error::{Code, Error, Result};
use crate::log::record::{LogRow, RowKind, ViewNote};
use crate::log::retry::retry;
use crate::log::snapshots::SnapshotNote;
use crate::log::stored::{place_of, readable_items, readable_page, row_at, view_items, view_row};
use crate::log::{Cause, ContextChange, Restored, SessionGuard, State, recovery};
use crate::message::{Exchanges, Message};
use crate::step::{Io, Machine};
use crate::wire;
use serde::Serialize;
use std::rc::Rc;

/// Which messages of the log are the session's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Branch {
    /// Messages of the log.
    pub messages: usize,
    /// Those that were left behind, by a rewind or a restore: index of the first, index after the last.
    pub behind: Vec<(usize, usize)>,
}

impl Session {
    /// Makes the context what it was just before message `index` of the log, counted as [`Session::explain`] does. What was
    /// said since stays in the log.
    ///
    /// Errors: [`Code::InvalidOption`] naming an index that works, for one that does not or that is inside an exchange.
    pub fn rewind(&self, index: usize) -> Machine<()> {
        let slot = self.slot.clone();
        Machine::new(move |io| async move {
            let rewind = async |io: Io| {
                let guard = slot.take()?;
                branch_at(&io, &guard, index).await
            };
            slot.try_on_rows(&io, rewind).await
        })
    }

    /// What of the log is not in the session's history, for hosts that have the messages by their index.
    pub fn branch(&self) -> Result<Branch> {
        self.slot.look(|state| Branch { messages: state.row.messages, behind: state.context.behind() })
    }
}

/// What the log says of views that made an earlier context the current one.
const RETURNS: [&str; 2] = [REWIND, RESTORE];
const REWIND: &str = "rewind";
const RESTORE: &str = "restore";
/// A way back that leaves no branch behind.
const UNDO: &str = "undo";

/// A context of the past.
pub(super) struct PastContext {
    /// What it was made of.
    pub(super) items: Vec<Item>,
    /// The messages that had left it by then.
    pub(super) left: Vec<Departed>,
    /// Messages of the log by then.
    pub(super) messages: usize,
    /// How it is gone back to.
    pub(super) by: Return,
}

/// A way back to a context of the past.
pub(super) enum Return {
    /// To just before a message.
    Rewind,
    /// To a snapshot.
    Restore(SnapshotNote),
    /// To before a compaction: the view of then, and how many summaries are taken back. No message leaves the context.
    Undo { generation: u64, summaries: u64 },
}

impl PastContext {
    /// The change that makes it the current one. All messages that came after it leave the context.
    fn change(self, state: &State) -> ContextChange {
        let (rung, why) = match self.by {
            Return::Rewind => (REWIND, Why::Rewound),
            Return::Restore(_) => (RESTORE, Why::Restored),
            Return::Undo { .. } => (UNDO, Why::Rewound),
        };
        let (from, to) = (self.messages, state.row.messages);
        let mut left = self.left;
        if from < to {
            left.push(Departed { from, to, why });
        }
        let tokens = self.items.iter().map(|item| item.size.tokens).sum::<usize>();
        let mut cause =
            Cause::of(&state.view(), rung, state.corrected(tokens.saturating_add(state.fixed_tokens)));
        let restores = match self.by {
            Return::Rewind => None,
            Return::Restore(SnapshotNote { snapshot, goal, compressions, .. }) => {
                cause.snapshot = Some(snapshot);
                Some(Restored { goal, compressions })
            }
            Return::Undo { generation, summaries } => {
                cause.undoes_to = Some(generation);
                let compressions = state.row.compressions.saturating_sub(summaries);
                Some(Restored { goal: state.row.goal.clone(), compressions })
            }
        };
        let splice = Splice { at: 0, remove: state.context.len(), insert: self.items };
        ContextChange { left: Some(join_left(left)), restores, ..ContextChange::new(vec![splice], cause) }
    }
}

/// Makes the context that `find` returns the current one, in one batch (T3). Whatever was appended before that, here or
/// elsewhere, is left.
pub(super) async fn return_to(
    io: &Io,
    guard: &SessionGuard,
    find: impl AsyncFn() -> Result<PastContext>,
) -> Result<()> {
    let commit_id = io.new_id().await?;
    retry(io, Some(guard), async |_| {
        guard.store_changes(io).await?;
        let change = find().await?.change(&guard.state());
        let after = guard.changed(&change)?;
        guard.try_change(io, &change, after, &commit_id).await
    })
    .await?;
    guard.state_mut().omitted.clear();
    Ok(())
}

/// The context of the past that view `generation` and the messages of the log rows `tail_from .. seq` made, `messages`
/// of the log by then, and the messages that had left it. What cannot be read any more has left it, too.
pub(super) async fn context_at(
    io: &Io,
    guard: &SessionGuard,
    generation: u64,
    tail_from: u64,
    seq: u64,
    messages: usize,
) -> Result<(Vec<Item>, Vec<Departed>)> {
    let mut copy = guard.state().clone();
    let (mut unread, left) = view_items(io, &copy.sid, generation).await?;
    unread.extend(readable_items(io, &copy.sid, tail_from, seq).await?);
    let (unread, left, _) = recovery::readable(io, &copy.sid, unread, left, messages).await?;
    Ok((copy.items(io, unread).await?, left))
}

/// The context as it was just before message `index` of the log was appended: the view of that time, and what came after
/// it. It counts messages as `explain` does, those that were left behind too; so every point of the past can be gone back
/// to, also one on another branch. The goal and the session's counts go on.
///
/// Errors: [`Code::InvalidOption`] for an index inside an exchange, naming the next that works.
async fn context_before(io: &Io, guard: &SessionGuard, index: usize) -> Result<PastContext> {
    let point = place_of(io, guard, index).await?;
    let (generation, tail_from) = view_at(io, guard, point.seq).await?;
    let (items, left) = context_at(io, guard, generation, tail_from, point.seq, index).await?;
    check_whole(io, guard, point, &items).await?;
    Ok(PastContext { items, left, messages: index, by: Return::Rewind })
}

/// The last view before row `seq` of the log, and the first row after it.
async fn view_at(io: &Io, guard: &SessionGuard, seq: u64) -> Result<(u64, u64)> {
    let (sid, mut behind) = (guard.state().sid.clone(), guard.state().row.generation + 1);
    let mut found = (0, 0);
    while behind - found.0 > 1 {
        let middle = found.0 + (behind - found.0) / 2;
        let to = view_row(io, &sid, middle).await?.to;
        if to <= seq { found = (middle, to) } else { behind = middle }
    }
    Ok(found)
}

/// False for the end of the log, where the session is.
///
/// Errors: [`Code::InvalidOption`] for an index that there is not, or no context ends before.
fn is_past(state: &State, index: usize) -> Result<bool> {
    let (messages, floor) = (state.row.messages, state.row.parent.as_ref().map_or(0, |parent| parent.floor));
    if index > messages {
        return Err(Error::option("index", format!("the session has {messages} messages, not {index}")));
    }
    if index < floor {
        let what = format!(
            "the first {floor} messages came from the parent with a summary before them; rewind to {floor} or later"
        );
        return Err(Error::option("index", what));
    }
    Ok(index < messages)
}

/// Refuses to part an exchange: what ends with a call cannot be sent.
async fn check_whole(io: &Io, guard: &SessionGuard, point: Place, items: &[Item]) -> Result<()> {
    let Some((first, next)) = exchange(io, guard, point, items).await? else { return Ok(()) };
    let works: Vec<String> = [first, next].into_iter().flatten().map(|index| index.to_string()).collect();
    let what = format!(
        "message {} is inside an exchange, which is kept or left as a whole; rewind to {}",
        point.index,
        works.join(" or ")
    );
    Err(Error::option("index", what).at(point.index))
}

/// Index of the message at which the exchange begins that message `index` of the log is inside of; `index` itself where it
/// begins one.
pub(super) async fn exchange_start(io: &Io, guard: &SessionGuard, index: usize) -> Result<usize> {
    let point = place_of(io, guard, index).await?;
    let (generation, tail_from) = view_at(io, guard, point.seq).await?;
    let (items, _) = context_at(io, guard, generation, tail_from, point.seq, index).await?;
    let inside = exchange(io, guard, point, &items).await?;
    Ok(inside.and_then(|(first, _)| first).unwrap_or(index))
}

/// Makes the context what it was just before message `index` of the log.
pub(super) async fn branch_at(io: &Io, guard: &SessionGuard, index: usize) -> Result<()> {
    if !is_past(&guard.state(), index)? {
        return Ok(());
    }
    return_to(io, guard, async || context_before(io, guard, index).await).await
}

/// Where a context of these items may end before message `point` and behind it, when that is inside an exchange.
async fn exchange(
    io: &Io,
    guard: &SessionGuard,
    point: Place,
    items: &[Item],
) -> Result<Option<(Option<usize>, Option<usize>)>> {
    let (sid, rows) = (guard.state().sid.clone(), guard.state().row.next_seq);
    // One page: no exchange is longer. Where a branch ends, what follows belongs to another.
    let mut bodies: Vec<(Option<usize>, Rc<str>)> = items
        .iter()
        .map(|item| (item.origin.place().map(|place| place.index), Rc::clone(&item.body)))
        .collect();
    let page = readable_page(io, &sid, point.seq).await?.unwrap_or_default();
    for (seq, bytes) in page.into_iter().take_while(|(seq, _)| *seq < rows) {
        let row = match row_at(&bytes, seq) {
            Ok(row) => row,
            Err(error) if error.code == Code::StoreCorrupt => continue,
            Err(error) => return Err(error),
        };
        match row.kind {
            RowKind::Message => bodies.push((Some(row.n), Rc::from(row.body.get()))),
            RowKind::View if returns(&row)? => break,
            RowKind::View | RowKind::Snapshot => {}
        }
    }
    let wire = guard.format().wire();
    let values = bodies.iter().map(|(_, body)| wire::parse(0, body)).collect::<Result<Vec<_>>>()?;
    let messages = values.iter().map(|value| wire.read(0, value)).collect::<Result<Vec<Message<'_>>>>()?;
    let exchanges = Exchanges::of(&messages);
    let cut = items.len();
    if exchanges.is_boundary(cut) {
        return Ok(None);
    }
    let index_at = |at: usize| bodies.get(at).and_then(|(index, _)| *index);
    let first = index_at(exchanges.boundary_at_or_before(cut));
    let next = (cut..bodies.len()).find(|at| exchanges.is_boundary(*at)).and_then(index_at);
    Ok(Some((first, next)))
}

/// True for the row of a view that made an earlier context the current one.
fn returns(row: &LogRow<'_>) -> Result<bool> {
    let unreadable = || Error::new(Code::StoreCorrupt, "the note of a view cannot be read");
    Ok(RETURNS.contains(&ViewNote::of(row).ok_or_else(unreadable)?.rung.as_str()))
}
