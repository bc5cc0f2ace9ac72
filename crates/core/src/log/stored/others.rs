//! What others wrote to a session, or the platform took from it, while a handle has it open.

use super::super::guard::SessionGuard;
use super::super::intact::sound_row;
use super::super::loss::{gone, lost_session};
use super::super::record::{RowKind, SessionRow, Unread};
use super::super::stage::TO_UPKEEP;
use super::super::state::State;
use super::super::terms::Unindexed;
use super::super::{migrations, seal, watermark, wide};
use super::{deleted, log_page, name_row, row_at, session_row};
use crate::context::{Origin, Place};
use crate::error::{Code, Error, Result};
use crate::keys::batch::keys;
use crate::step::{Effect, Io, LogLevel, Loss, LossKind, Notice};
use std::rc::Rc;

/// What was written anew while it was read is read so often.
const TRIES: usize = 3;

impl SessionGuard {
    /// Takes over what others wrote since the row was last read, and tells it, with what was written through this handle and
    /// answered as lost: nobody can tell the two apart here. `true` when the view is another one now.
    pub(crate) async fn refresh(&self, io: &Io) -> Result<bool> {
        let before = self.state().row.ver;
        let moved = self.take_over(io).await?;
        if self.state().row.ver != before {
            self.tell_change(io);
        }
        Ok(moved)
    }

    pub(in crate::log) fn tell_change(&self, io: &Io) {
        let (messages, generation) = (self.state().row.messages, self.state().row.generation);
        io.tell(Effect::Notify(Notice::Change { messages, generation }));
    }

    /// Takes over what others wrote, and does not tell it; what is lost is told.
    pub(in crate::log) async fn take_over(&self, io: &Io) -> Result<bool> {
        (TO_UPKEEP.enter(io).await?.take_over)(self, io).await
    }

    pub(in crate::log) async fn read_others(&self, io: &Io) -> Result<bool> {
        for _ in 1..TRIES {
            match self.try_take_over(io).await {
                // An erasure may have written the session anew between two reads, and removed what the second was of.
                Err(error) if matches!(error.code, Code::Closed | Code::DataLoss) => {}
                done => return done,
            }
        }
        self.try_take_over(io).await
    }

    async fn try_take_over(&self, io: &Io) -> Result<bool> {
        let mut copy = self.state().clone();
        if copy.row.ver == 0 {
            // Nothing is ours yet: someone else may have taken the name.
            copy.find(io).await?;
            // It may be our own, whose answer was lost.
            copy.mark(io);
            let moved = copy.row.generation > 0;
            *self.state_mut() = copy;
            return Ok(moved);
        }
        let Some(row) = stored_row(io, &copy).await? else {
            if !copy.follow(io).await? {
                return Err(absence(io, &copy).await?);
            }
            copy.mark(io);
            *self.state_mut() = copy;
            return Ok(true);
        };
        // Where the platform took the end of the log, what is known of it is gone too.
        let end = (copy.row.next_seq, copy.row.head.clone());
        let (loss, unread) = match log_behind(io, &copy, &row).await? {
            Ok(unread) => (None, unread),
            Err(loss) => (Some(loss), Vec::new()),
        };
        let moved = row.generation != copy.row.generation || loss.is_some();
        let paid = copy.row.paid;
        // Steps are counted in memory between commits; nobody else counts them down.
        let (steps, attempted_at) =
            (copy.row.steps.max(row.steps), copy.row.attempted_at.max(row.attempted_at));
        // What was measured in another format is measured again.
        if moved {
            copy.unindexed = Unindexed::default();
        }
        if moved || row.format.is_some_and(|format| format != copy.format()) {
            // At this very row: at a later one the context may be another, and `moved` would not say so.
            copy.load_at(io, row).await?;
        } else {
            copy.adopt(row);
            for item in copy.items(io, unread).await? {
                copy.push(item);
            }
        }
        copy.row.steps = steps;
        copy.row.attempted_at = attempted_at;
        copy.row.paid = paid;
        if loss.is_some() {
            // The mark stays that of before until the log moves on: who opens the session until then is told, too.
            copy.told_losses += 1;
        } else if end != (copy.row.next_seq, copy.row.head.clone()) {
            copy.mark(io);
        }
        *self.state_mut() = copy;
        if let Some(loss) = loss {
            io.tell(Effect::Notify(Notice::DataLoss { loss }));
        }
        Ok(moved)
    }

    /// Takes over what other handles on the session wrote, for a call that makes something of all of it. Where the store
    /// cannot be asked, or what reads it not loaded, what is known goes on, with a warning.
    ///
    /// Errors: [`Code::Closed`] when the session was deleted, [`Code::DataLoss`] when it is gone, [`Code::Aborted`].
    pub(crate) async fn catch_up(&self, io: &Io) -> Result<()> {
        if !self.state().durable {
            return Ok(());
        }
        match self.try_catch_up(io).await {
            Err(error)
                if matches!(
                    error.code,
                    Code::StoreUnavailable | Code::Indeterminate | Code::StageUnavailable
                ) =>
            {
                let message =
                    format!("what others wrote to the session could not be read, and is left out: {error}");
                io.log(LogLevel::Warn, message.clone());
                io.tell(Effect::Notify(Notice::Warning { code: error.code, message }));
                Ok(())
            }
            done => done,
        }
    }

    async fn try_catch_up(&self, io: &Io) -> Result<()> {
        let (sid, ver, head) = {
            let state = self.state();
            (state.sid.clone(), state.row.ver, state.row.head.clone())
        };
        let stored = wide::read(io, vec![keys::session(&sid)]).await?.into_iter().next().flatten();
        let is_known = match stored {
            _ if ver == 0 => false,
            None => false,
            Some(stored) if seal::is_of(&stored, ver, &head) => true,
            Some(stored) => match seal::read_head(&stored) {
                // A row that was made again counts its versions anew.
                Ok(row) => (row.ver, row.head) == (ver, head),
                // Whoever writes next mends it.
                Err(error) if error.code == Code::StoreCorrupt => true,
                Err(error) => return Err(error),
            },
        };
        if is_known { Ok(()) } else { self.refresh(io).await.map(|_| ()) }
    }

    /// Before the first commit of a handle that knows of nothing stored: what is kept outside of the store may know better
    /// by now, where others have begun the session and the platform took it since. Where their rows are there, the commit
    /// meets them.
    ///
    /// Errors: [`Code::DataLoss`] when they are not, and the app does not accept that.
    pub(crate) async fn check_new(&self, io: &Io) -> Result<()> {
        let state = self.state().clone();
        if state.row.ver > 0 || !state.durable {
            return Ok(());
        }
        let known = watermark::known(io, &state.settings, &state.row.id).await?;
        if let Some(reason) = known.lost {
            let loss = Loss::new(LossKind::Platform, reason);
            io.tell(Effect::Notify(Notice::DataLoss { loss }));
        }
        // A loss that opening told is one that the app accepted.
        let Some(mark) = known.mark.filter(|mark| mark.losses >= state.told_losses) else { return Ok(()) };
        match name_row(io, &state.row.id).await {
            Ok(None) => {}
            Err(error) if error.code != Code::StoreCorrupt => return Err(error),
            _ => return Ok(()),
        }
        if session_row(io, &mark.sid).await.map_or(true, |row| row.is_some()) {
            // Its name alone is gone: opening mends that.
            return Err(gone());
        }
        let loss = lost_session(&mark);
        state.accept(&loss)?;
        self.state_mut().told_losses = mark.losses + 1;
        io.tell(Effect::Notify(Notice::DataLoss { loss }));
        Ok(())
    }
}

/// Why the session of a handle is not in the store any more: somebody deleted it, or what the host knows of it says that it
/// was not so.
pub(in crate::log) async fn absence(io: &Io, state: &State) -> Result<Error> {
    let known = watermark::known(io, &state.settings, &state.row.id).await?;
    Ok(if known.has(state) { gone() } else { deleted() })
}

/// The row of a session that was written before. Where nothing in it is news, or it is gone or of a shorter log, the log may
/// know better, and it is made again of that: a handle may have written it that knew of an earlier one.
async fn stored_row(io: &Io, state: &State) -> Result<Option<SessionRow>> {
    let row = migrations::session_row(io, &state.sid, &state.settings).await?;
    let known = &state.row;
    let is_news = |row: &SessionRow| (row.ver, &row.head) != (known.ver, &known.head);
    if row.as_ref().is_some_and(|row| is_news(row) && row.next_seq >= known.next_seq) {
        return Ok(row);
    }
    let ver = row.as_ref().map(|row| row.ver);
    let sound = match sound_row(io, state).await {
        Err(error) if error.code != Code::StoreCorrupt => return Err(error),
        sound => sound.ok().flatten(),
    };
    let mended = match sound {
        Some(row) => Some(row),
        None => (TO_UPKEEP.enter(io).await?.row)(io, state).await?,
    };
    let Some(mended) = mended else { return Ok(row) };
    if Some(mended.ver) != ver
        && let Some(loss) = mended.losses.last()
    {
        io.tell(Effect::Notify(Notice::DataLoss { loss: loss.clone() }));
    }
    Ok(Some(mended))
}

/// The messages of the log behind what `state` knows of it, up to where `row` says that it ends; the loss, where the log is
/// another one by then.
async fn log_behind(
    io: &Io,
    state: &State,
    row: &SessionRow,
) -> Result<std::result::Result<Vec<Unread>, Loss>> {
    let known = &state.row;
    let lost = known.next_seq.saturating_sub(row.next_seq);
    if lost > 0 {
        let reason = format!("the log ends {lost} records before what was acknowledged");
        return Ok(Err(Loss::records(LossKind::Records, lost, reason)));
    }
    let (mut items, mut next, mut head) = (Vec::new(), known.next_seq, row.head.clone());
    while next < row.next_seq {
        for bytes in log_page(io, &state.sid, next, row.next_seq).await? {
            let row = row_at(&bytes, next)?;
            if next == known.next_seq {
                head.clone_from(&row.prev);
            }
            if row.kind == RowKind::Message {
                let place = Place { seq: row.seq, index: row.n };
                items.push((Origin::Message(place), Some(Rc::from(row.body.get()))));
            }
            next += 1;
        }
    }
    if head == known.head {
        return Ok(Ok(items));
    }
    let reason = "the log is another one than was acknowledged: the store went back and on from there";
    Ok(Err(Loss::new(LossKind::Records, reason)))
}
