//! Who writes what is shorter: a model, or nobody, in a dry run. Then every text is as long as it is asked for, and what the
//! calls would take is counted.

use super::ageing::{self, shorter_item};
use super::ask::{Ask, Spent, shorten_each};
use super::call::{CallCost, CallTally};
use super::cut::Proposal;
use super::keeping::{Kept, budget};
use super::parts::foretell;
use super::result::Edit;
use super::rung::Run;
use super::summarise::begin;
use super::write::{Written, by_model, max_tokens, notes_of_model, room_anew, write};
use crate::checkpoint::Level;
use crate::context::{Item, Origin, Size, SummaryMeta};
use crate::error::{Code, Error, Result};
use crate::log::{Job, View};
use crate::message::Role;
use crate::policy::Rung;
use crate::tokens::Bounds;
use crate::wire::{self, Author};
use std::cell::RefCell;
use std::rc::Rc;

/// Who writes.
#[derive(Debug)]
pub(super) enum Writer {
    /// The app's summariser, or the built-in one.
    Model,
    /// Nobody. What was asked for since the last edit.
    Nobody(RefCell<Vec<Foretold>>),
}

/// What a rung would ask a model about.
#[derive(Debug)]
pub(super) struct Foretold {
    rung: Rung,
    indices: Vec<usize>,
    calls: CallTally,
}

impl Writer {
    /// Nobody.
    pub(super) fn nobody() -> Writer {
        Writer::Nobody(RefCell::default())
    }

    /// Shorter texts.
    pub(super) async fn shorten(
        &self,
        run: &Run<'_>,
        asks: Vec<Ask<'_>>,
        stored: &Job,
        spent: &mut Spent,
    ) -> Result<Vec<Result<String>>> {
        let Writer::Nobody(foretold) = self else { return shorten_each(run, asks, stored, spent).await };
        let calls = CallTally { count: asks.len(), ..CallTally::default() };
        foretold.borrow_mut().push(Foretold { rung: Rung::Compress, indices: Vec::new(), calls });
        Ok(asks.iter().map(|ask| Ok("x".repeat(ask.target().max(1)))).collect())
    }

    /// A summary; nothing when someone else asks for it, and there is room to wait for what that leads to.
    pub(super) async fn summary(
        &self,
        run: &Run<'_>,
        rung: Rung,
        started: u64,
        proposal: &mut Proposal,
        spent: &mut CallCost,
    ) -> Result<Option<Written>> {
        let Writer::Nobody(foretold) = self else {
            let Some(job) = begin(run, rung, proposal).await? else { return Ok(None) };
            let kept = match run.settings().numbers.keep {
                Some(numbers) => Some(Kept::of(run, proposal, rung, numbers).await?),
                None => None,
            };
            return write(run, rung, (&*proposal, kept.as_ref()), (started, &job), spent).await.map(Some);
        };
        let (view, replaced) = (run.view(), proposal.replaced_tokens);
        let settings = &view.settings;
        let beside = settings.numbers.keep.map_or(0, |keep| budget(keep, replaced));
        let mut own = proposal.target_tokens + beside;
        if let Some(notes) = notes_of_model(run, rung) {
            own = settings.estimator.text(&notes) + beside;
        } else if by_model(settings, rung) {
            let calls = foretell(run, proposal)?;
            foretold.borrow_mut().push(Foretold { rung, indices: proposal.indices(), calls });
        } else {
            own = own.min(replaced / 2);
        }
        if rung == Rung::Rollover {
            own = own.min(room_anew(&view, proposal));
        }
        if own + proposal.quoted_tokens >= replaced {
            let what = "a summary would not be smaller than what it replaces";
            return Err(Error::new(Code::SummaryRejected, what));
        }
        let items = [proposal.stay.clone(), vec![stand_in(&view, proposal, own, started)?]].concat();
        let (text, fell_back, model, job) = Default::default();
        Ok(Some(Written { text, items, fell_back, model, started, job }))
    }

    /// One checkpoint of `level` in the place of `items`; nothing when the summariser fails.
    pub(super) async fn checkpoint(
        &self,
        run: &Run<'_>,
        items: &[Item],
        (rung, level): (Rung, Level),
        spent: &mut CallCost,
    ) -> Result<Option<Item>> {
        let Writer::Nobody(foretold) = self else {
            return ageing::written(run, items, level, spent).await;
        };
        let settings = run.settings();
        let target = settings.checkpoint_tokens(level);
        let (item, input) = shorter_item(items, level, target);
        if settings.asks_a_model() {
            let calls = CallTally { count: 1, input, output: max_tokens(target) };
            let indices = items.iter().flat_map(ageing::indices).collect();
            foretold.borrow_mut().push(Foretold { rung, indices, calls });
        }
        Ok(item)
    }

    /// The edit with what was asked for it.
    pub(super) fn told(&self, rung: Rung, mut edit: Edit) -> Edit {
        if let Writer::Nobody(foretold) = self {
            for told in foretold.borrow_mut().extract_if(.., |told| told.rung == rung) {
                edit.calls.add(told.calls);
            }
        }
        edit
    }

    /// What was asked for in vain: with the edits of the same rung, or as one that frees nothing.
    pub(super) fn settle(&self, edits: &mut Vec<Edit>) {
        let Writer::Nobody(foretold) = self else { return };
        for Foretold { rung, indices, calls } in foretold.take() {
            match edits.iter_mut().rfind(|edit| edit.kind == rung.as_str()) {
                Some(edit) => edit.calls.add(calls),
                None => edits.push(Edit { indices, calls, ..Edit::of(rung) }),
            }
        }
    }
}

/// What stands for a summary of `own` tokens that nobody wrote.
fn stand_in(view: &View, proposal: &Proposal, own: usize, started: u64) -> Result<Item> {
    let row = view.compressions;
    let like = view.context.last().map(|item| wire::parse(0, &item.body)).transpose()?;
    let checkpoint: Rc<str> = Rc::from(format!("cp_{row}"));
    let body = view.format.wire().text_message(proposal.author, "…", &checkpoint, like.as_ref());
    let tokens = own + proposal.quoted_tokens;
    let made = SummaryMeta {
        level: proposal.level,
        number: row,
        created_at: started,
        tokens,
        text_tokens: own,
        ..SummaryMeta::default()
    };
    let role = if proposal.author == Author::Assistant { Role::Assistant } else { Role::User };
    let texts = Bounds::default();
    let size = Size { tokens, role, calls: 0, results: 0, is_bound: false, clearable: 0, texts };
    let origin = Origin::Summary {
        checkpoint,
        covers: proposal.covers().into(),
        quotes: proposal.quotes.clone(),
        prose: 0,
        made: Some(Rc::new(made)),
    };
    Ok(Item::new(Rc::from(body), size, origin))
}
