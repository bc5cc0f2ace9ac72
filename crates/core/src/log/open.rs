//! Opening a session: as it was left ([`super::intact`]), or mended where the platform broke it ([`super::recovery`]). Every
//! step is one batch or none, so whoever dies on the way leaves what the next opening goes on from.

use super::deletion::free_name;
use super::known::KnownMessages;
use super::loss::refused;
use super::migrations;
use super::record::{SessionRow, Unread};
use super::stage::TO_UPKEEP;
use super::state::{State, measure};
use super::stored::{bodies, log_items, view_items};
use super::watermark;
use crate::context::{Context, Item, Origin, conserve};
use crate::error::{Code, Error, Result};
use crate::step::{Breath, Effect, Io, Loss, Notice};
use crate::wire::{self, Evidence, Format};
use std::cell::RefCell;
use std::rc::Rc;

impl State {
    /// Reads the session that has this one's name, when there is one. What was lost or mended is told. `named` says that
    /// the app gave the name: a new session cannot have been lost.
    ///
    /// Errors: [`Code::DataLoss`] where there was a session of that name and is none, and the app does not accept that.
    pub(crate) async fn open(&mut self, io: &Io, named: bool) -> Result<()> {
        let known = watermark::known(io, &self.settings, &self.row.id).await?;
        self.told_losses = known.mark.as_ref().map_or(0, |mark| mark.losses);
        let begun = self.clone();
        let losses = match self.read_intact(io, &known).await? {
            Some(losses) => losses,
            None => {
                *self = begun;
                (TO_UPKEEP.enter(io).await?.recover)(self, io, &known, named).await?
            }
        };
        if losses.is_empty() {
            self.mark(io);
        } else {
            self.told_losses += 1;
        }
        // What the watermark says is told again until the log moves on: who dies now has not heard it.
        for loss in losses {
            io.tell(Effect::Notify(Notice::DataLoss { loss }));
        }
        Ok(())
    }

    /// Refuses to go on without what is lost, unless the app said that it may be.
    pub(super) fn accept(&self, loss: &Loss) -> Result<()> {
        if self.settings.accept_data_loss { Ok(()) } else { Err(refused(&loss.reason)) }
    }

    /// Reads the session that has this one's name, when there is one, as it is.
    pub(super) async fn find(&mut self, io: &Io) -> Result<()> {
        if let Some(name) = free_name(io, &self.row.id, self.max_batch_ops).await? {
            self.sid = name.sid;
            if !self.load(io).await? {
                return Err(Error::new(Code::StoreCorrupt, "the row of the session is missing"));
            }
        }
        Ok(())
    }

    /// Reads the session with this one's rows; false when it is not there.
    pub(crate) async fn load(&mut self, io: &Io) -> Result<bool> {
        let Some(row) = migrations::session_row(io, &self.sid, &self.settings).await? else {
            return Ok(false);
        };
        self.load_at(io, row).await?;
        Ok(true)
    }

    /// Reads the session as it was when its row was `row`.
    pub(crate) async fn load_at(&mut self, io: &Io, row: SessionRow) -> Result<()> {
        self.check_format(&row)?;
        let (mut unread, left) = view_items(io, &self.sid, row.generation).await?;
        unread.extend(log_items(io, &self.sid, row.tail_from, row.next_seq).await?);
        self.adopt(row);
        // Somebody else may have written in the place of what is known.
        self.known = KnownMessages::default();
        self.plausible = Format::ALL.to_vec();
        self.given_up += u64::from(self.unstored.take().is_some());
        self.context = Rc::new(Context::of(self.items(io, unread).await?, left));
        conserve(&self.context, self.row.messages)
            .map_err(|error| Error::new(Code::StoreCorrupt, error.into_parts().message))
    }

    /// Refuses a session in another format than the app says.
    pub(super) fn check_format(&self, row: &SessionRow) -> Result<()> {
        let clash = |format: &Format| self.settings.format.is_some_and(|given| given != *format);
        match row.format.filter(clash) {
            Some(format) => Err(Error::option("format", format!("this session is in {}", format.as_str()))),
            None => Ok(()),
        }
    }

    /// Takes over the row that another process wrote; a format that the app named holds where none is stored.
    pub(super) fn adopt(&mut self, row: SessionRow) {
        // What was set before anything was stored holds where the store has none.
        let goal = self.row.goal.take();
        // What was learned since the last commit is in no row yet.
        if row.calibrations.reports() > self.calibrations.reports() {
            self.calibrations.clone_from(&row.calibrations);
        }
        self.row = row;
        if *self.references.secret != *self.row.secret {
            self.references.secret = self.row.secret.as_str().into();
        }
        // Numbers that a summary under way uses already go on.
        if !self.secrets.borrow().continues(&self.row.secrets) {
            self.secrets = Rc::new(RefCell::new(self.row.secrets.clone()));
            (self.collected, self.facts) = (None, None);
        }
        self.row.goal = self.row.goal.take().or(goal);
        self.row.format = self.row.format.or(self.settings.format);
    }

    /// Items with their bodies and sizes. As long as no format is sure, those that they speak against are ruled out.
    pub(crate) async fn items(&mut self, io: &Io, unread: Vec<Unread>) -> Result<Vec<Item>> {
        let filled = bodies(io, &self.sid, unread).await?;
        if self.row.format.is_none() {
            let values = filled.iter().map(|(_, body)| wire::parse(0, body)).collect::<Result<Vec<_>>>()?;
            self.plausible.retain(|format| format.wire().evidence(&values) != Evidence::Against);
        }
        let (mut items, mut breath) = (Vec::with_capacity(filled.len()), Breath::default());
        for (origin, body) in filled {
            // The app may still have the object of a message that was erased, and is to hand out what stands in its place.
            let origin = match origin {
                Origin::Message(place) if self.row.is_erased(place.index) => {
                    Origin::Edited { place, offloads: Vec::new(), reasoning_removed: false }
                }
                origin => origin,
            };
            let size = measure(io, &self.settings, self.format(), origin.whose(), &body).await?;
            breath.after(io, body.len()).await?;
            items.push(Item::new(body, size, origin));
        }
        Ok(items)
    }
}
