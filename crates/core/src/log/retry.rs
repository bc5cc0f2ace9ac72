//! Whoever comes second to a commit reads what the other wrote and tries again.

use super::guard::SessionGuard;
use super::record::read_row;
use super::wide;
use crate::error::{Code, Error, Result};
use crate::keys::batch::keys;
use crate::step::Io;

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
pub(crate) async fn retry<T>(
    io: &Io,
    guard: Option<&SessionGuard>,
    attempt: impl AsyncFnMut(Round) -> Result<Tried<T>>,
) -> Result<T> {
    retry_from(io, guard, 0, attempt).await
}

/// The same where `lost` races were lost already.
pub(crate) async fn retry_from<T>(
    io: &Io,
    guard: Option<&SessionGuard>,
    lost: usize,
    mut attempt: impl AsyncFnMut(Round) -> Result<Tried<T>>,
) -> Result<T> {
    let (mut moved, mut last) = (false, conflict());
    for nth in (0..=RACES).skip(lost) {
        let (error, written) = match attempt(Round { nth, moved }).await? {
            Tried::Done(done) => return Ok(done),
            Tried::Lost(error, written) => (error, written),
        };
        if (QUICK_RACES..RACES).contains(&nth) {
            io.pause(1 << nth).await.map_err(|failure| failure.into_error(Code::Aborted))?;
        }
        if let Some(guard) = guard {
            // In a box: what is taken over is written by way of this function, too.
            match Box::pin(guard.after_race(io, written)).await {
                Ok((_, Some(done))) => return Ok(done),
                Ok((is_moved, None)) => moved = is_moved,
                // Whether a batch was written stays unknown when the store cannot be asked.
                Err(_) if error.code == Code::Indeterminate => return Err(error),
                Err(second) => return Err(second),
            }
        }
        last = error;
    }
    Err(last)
}

impl SessionGuard {
    /// Takes over what is stored: whether the view is another one, and what comes of the commit before if it was `written`.
    async fn after_race<T>(&self, io: &Io, written: Option<(String, T)>) -> Result<(bool, Option<T>)> {
        let (from, ver) = (self.state().row.next_seq, self.state().row.ver);
        let taken_over = match (self.take_over(io).await, written) {
            (Ok(moved), Some((id, done))) => {
                self.has_row(io, from, &id).await.map(|has| (moved, has.then_some(done)))
            }
            (Ok(moved), None) => Ok((moved, None)),
            (Err(error), _) => Err(error),
        };
        // One commit that is our own is no news.
        let own = u64::from(matches!(taken_over, Ok((_, Some(_)))));
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
