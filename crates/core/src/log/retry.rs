//! Whoever comes second to a commit reads what the other wrote and tries again.

use super::guard::SessionGuard;
use super::record::read_row;
use super::wide;
use crate::error::{Code, Error, Result};
use crate::keys::batch::keys;
use crate::step::Io;
use std::pin::Pin;

/// Commits that lose a race are tried again this often: a few times at once, then after longer and longer waits, for
/// someone who writes without a pause wins every time. The waits make about four seconds.
const RACES: usize = 12;
/// Races that are run again without a wait.
const QUICK_RACES: usize = 3;

/// How an attempt ended.
pub(crate) enum Tried<T> {
    Done(T),
    /// Someone else wrote first, or nobody knows who: what is told when it was the last attempt, and the id of the log row
    /// that would have been written, with what the attempt would then have led to.
    Lost(Error, Option<(String, T)>),
}

/// What an attempt follows.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    /// Attempts before it.
    pub(crate) nth: usize,
    /// The view is another one than at the attempt before.
    pub(crate) moved: bool,
}

impl Round {
    pub(crate) fn is_last(self) -> bool {
        self.nth >= RACES
    }
}

/// Attempts a commit until it is done, or fails for another reason than a race. Before each further attempt `guard` takes
/// over what is stored, and when the commit before it is found there, it is done. Without a guard the attempts read for
/// themselves.
///
/// Errors: those of an attempt; that of the last race; where the store cannot be asked after an attempt, that one's if it
/// was [`Code::Indeterminate`].
pub(crate) fn retry<T>(
    io: &Io,
    guard: Option<&SessionGuard>,
    attempt: impl AsyncFnMut(Round) -> Result<Tried<T>>,
) -> impl Future<Output = Result<T>> {
    retry_from(io, guard, 0, attempt)
}

/// The same where `lost` races were lost already.
pub(crate) async fn retry_from<T>(
    io: &Io,
    guard: Option<&SessionGuard>,
    lost: usize,
    mut attempt: impl AsyncFnMut(Round) -> Result<Tried<T>>,
) -> Result<T> {
    let (mut moved, mut last) = (false, None);
    for nth in (0..=RACES).skip(lost) {
        let (error, written) = match attempt(Round { nth, moved }).await? {
            Tried::Done(done) => return Ok(done),
            Tried::Lost(error, written) => (error, written),
        };
        let (id, done) = written.unzip();
        // In a box, and not a part of each caller: what is taken over is written by way of this function, too.
        let after: Pin<Box<dyn Future<Output = _> + '_>> = Box::pin(after_race(io, guard, nth, &error, id));
        let is_written;
        (moved, is_written) = after.await?;
        if let (true, Some(done)) = (is_written, done) {
            return Ok(done);
        }
        last = Some(error);
    }
    Err(last.unwrap_or_else(conflict))
}

/// Waits after race `nth`, and takes over what is stored: whether the view is another one, and whether the row called `id`
/// is there after all.
async fn after_race(
    io: &Io,
    guard: Option<&SessionGuard>,
    nth: usize,
    error: &Error,
    id: Option<String>,
) -> Result<(bool, bool)> {
    if (QUICK_RACES..RACES).contains(&nth) {
        io.pause(1 << nth).await.map_err(|failure| failure.into_error(Code::Aborted))?;
    }
    let Some(guard) = guard else { return Ok((false, false)) };
    // Whether a batch was written stays unknown when the store cannot be asked.
    guard.take_over_after(io, id).await.map_err(|second| match error.code {
        Code::Indeterminate => error.clone(),
        _ => second,
    })
}

impl SessionGuard {
    async fn take_over_after(&self, io: &Io, id: Option<String>) -> Result<(bool, bool)> {
        let (from, ver) = (self.state().row.next_seq, self.state().row.ver);
        let taken_over = match (self.take_over(io).await, id) {
            (Ok(moved), Some(id)) => self.has_row(io, from, &id).await.map(|has| (moved, has)),
            (taken_over, _) => taken_over.map(|moved| (moved, false)),
        };
        // One commit that is our own is no news.
        let own = u64::from(matches!(taken_over, Ok((_, true))));
        if self.state().row.ver != ver + own {
            self.tell_change(io);
        }
        taken_over
    }

    /// Is the row called `id` among those that were written since the log had `from`?
    async fn has_row(&self, io: &Io, from: u64, id: &str) -> Result<bool> {
        let (sid, to) = (self.state().sid.clone(), self.state().row.next_seq);
        let rows = wide::read(io, (from..to).map(|seq| keys::log(&sid, seq)).collect()).await?;
        // What is damaged is not what was written just now.
        Ok(rows.iter().flatten().any(|bytes| read_row(bytes).is_ok_and(|(row, _)| row.id == id)))
    }
}

/// Did someone else write first, or does nobody know who?
pub(crate) fn retryable(error: &Error) -> bool {
    matches!(error.code, Code::Conflict | Code::Indeterminate)
}

pub(crate) fn conflict() -> Error {
    Error::new(Code::Conflict, "another tab or process changed this session meanwhile; try again")
}
