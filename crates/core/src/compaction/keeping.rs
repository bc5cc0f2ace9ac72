//! What stands beside a summary whatever it says: the keep-layer, made from the messages themselves at every compaction,
//! and what an answer must name to be a summary of them.

use super::cut::Proposal;
use super::redaction::{messages_without_secrets, redact};
use super::rung::Run;
use crate::context::{CoveredRange, Item, Origin, Place};
use crate::error::Result;
use crate::keys::ids;
use crate::log::{References, View, facts};
use crate::message::{Message, Part, Role};
use crate::order;
use crate::policy::{KeepNumbers, Rung, Settings};
use crate::step::{Breath, Io};
use crate::summary::keep::{Beside, Collected, KeepLayerBuilder, Labels, MustKeep, Shares, WorkState};
use crate::summary::{is_earlier, objection, word_for_word};
use crate::tokens::Estimator;
use crate::wire;
use std::rc::Rc;

/// With less of the must-keeps in an answer than all but one in so many it is asked for once more. What is still missing
/// then stands beside it all the same: a second call costs the whole request, a line that is added costs a line.
const MISSING_PART: usize = 3;

/// Tokens of the page beside a model's summary, which tells what happened; pins and rules of the user come on top.
const BESIDE: usize = 1_500;

/// A page that no model writes takes one part in so many of what it replaces, where that is less than these tokens.
const ALONE_PART: usize = 8;
const ALONE: usize = 2_500;

/// Messages of the user that are being worked on stay word for word in one part of so many of the window.
const WAITING_PART: usize = 5;

/// The user's first message stays word for word when it takes no more than one part in so many of the window.
const FIRST_PART: usize = 20;

/// Takes in what a summary of `proposal` would stand for.
async fn collect(run: &Run<'_>, view: &View, proposal: &Proposal) -> Result<Rc<Collected>> {
    // A fork begins with a summary of messages that another session has: nothing but summaries tells of them.
    let is_fork = run.is_fork();
    let before = proposal.compress.iter().filter(|item| is_fork && is_summary(item));
    let before: Vec<Rc<str>> = before.map(|item| Rc::clone(&item.body)).collect();
    let (covers, log) = (proposal.covers(), run.log());
    let (runs, read_as) = (runs(&covers), read_as(view));
    // What was taken in last, when it is how all of that begins. Whoever still writes a summary with it keeps it.
    let last = run.collected().take().and_then(|last| Rc::try_unwrap(last).ok());
    let is_same = |last: &Collected| last.sid == log.sid && last.read_as == read_as && last.before == before;
    let is_beginning = |last: &Collected| is_same(last) && is_beginning(&last.runs, &runs);
    let mut last = last.filter(|last| log.is_stored() && is_beginning(last));
    if last.is_none() && log.is_stored() {
        last = facts::read(run.io, &log.sid).await?.filter(is_beginning);
    }
    let mut collected = match last {
        Some(last) => last,
        None => {
            let mut new = Collected {
                sid: log.sid.clone(),
                read_as: read_as.clone(),
                before: before.clone(),
                runs: Vec::new(),
                next: 0,
                fresh: 0,
                collector: KeepLayerBuilder::default(),
                said: Vec::new(),
            };
            // The system prompt is no part of what is replaced, and what it names is no invention.
            for item in view.items().iter().take(proposal.head) {
                take_in(&mut new, view, Place { seq: 0, index: usize::MAX }, &item.body)?;
            }
            for body in &before {
                take_in(&mut new, view, Place { seq: 0, index: usize::MAX }, body)?;
            }
            new
        }
    };
    let next = collected.next;
    log.each(run.io, &covers, next, |place, body| {
        collected.next = place.seq + 1;
        collected.fresh += body.len();
        take_in(&mut collected, view, place, body)
    })
    .await?;
    collected.runs = runs;
    if !log.is_stored() {
        return Ok(Rc::new(collected));
    }
    let row = facts::row(run.io, &mut collected).await?;
    let collected = Rc::new(collected);
    run.keep_collected(Rc::clone(&collected), row);
    Ok(collected)
}

/// All that decides what is taken in of a message.
fn read_as(view: &View) -> String {
    let Settings { estimator, redacts_secrets, .. } = &*view.settings;
    format!("{} {:?} {estimator:?} {redacts_secrets}", env!("CARGO_PKG_VERSION"), view.format)
}

fn take_in(collected: &mut Collected, view: &View, place: Place, body: &str) -> Result<()> {
    let value = wire::parse(place.index, body)?;
    let mut message = [view.format.wire().read(place.index, &value)?];
    messages_without_secrets(view, &mut message);
    let [message] = message;
    if is_said(&message) {
        collected.said.push((place, view.settings.estimator.message(&message)));
    }
    collected.collector.add(place.index, &message);
    Ok(())
}

/// Runs of messages that these hold, in order and apart.
fn runs(covers: &[CoveredRange]) -> Vec<(usize, usize)> {
    let covers = order::by_key(covers.iter().collect(), |cover| cover.from as u64);
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for cover in covers {
        match runs.last_mut() {
            Some((_, to)) if cover.from <= *to => *to = cover.to.max(*to),
            _ => runs.push((cover.from, cover.to)),
        }
    }
    runs
}

/// True when what `all` holds begins with what `first` holds.
fn is_beginning(first: &[(usize, usize)], all: &[(usize, usize)]) -> bool {
    let Some((last, before)) = first.split_last() else { return true };
    all.starts_with(before) && all.get(before.len()).is_some_and(|run| run.0 == last.0 && run.1 >= last.1)
}

/// What is kept of the messages that a summary takes the place of.
pub(super) struct Kept {
    collected: Rc<Collected>,
    /// Messages of the user that are quoted whole, by their indices.
    quoted: Vec<usize>,
    /// Those whose constraints the app rejected.
    rejected: Vec<usize>,
    /// Tokens of what stands beside a model's summary.
    budget: usize,
    /// How things stand at the end of the conversation, behind what is replaced.
    standing: WorkState,
    /// What messages are called in the page.
    references: References,
}

impl Kept {
    /// What is kept of what `proposal` replaces: read from the log, page by page, and never from an earlier summary. The
    /// proposal quotes the user's newest messages from now on.
    pub(super) async fn of(
        run: &Run<'_>,
        proposal: &mut Proposal,
        rung: Rung,
        numbers: KeepNumbers,
    ) -> Result<Kept> {
        let view = run.view();
        let estimator = view.settings.estimator;
        let collected = collect(run, &view, proposal).await?;
        let said = &collected.said;
        let replaced = proposal.replaced_tokens;
        let mut room = numbers.must_tokens.max((replaced as f64 * numbers.must_share) as usize);
        // No more than a quarter of what they are kept from.
        room = room.min(replaced / 4);
        if rung == Rung::Rollover {
            // It leaves what the user said last, and makes room for nothing else.
            room = 0;
        }
        let pinned: Vec<usize> = proposal.quotes.iter().map(|place| place.index).collect();
        for (place, tokens) in said {
            if pinned.contains(&place.index) {
                room = room.saturating_sub(*tokens);
            }
        }
        for (index, text) in collected.collector.constraints() {
            if !pinned.contains(&index) && !view.is_rejected(index) {
                room = room.saturating_sub(estimator.text(text));
            }
        }
        // What stays and the page fit with it.
        let stays = view.usage.corrected(view.usage.fixed.saturating_add(proposal.mandatory_tokens));
        let free = view.settings.hard_limit.saturating_sub(stays).saturating_sub(proposal.target_tokens);
        // What the messages that stay go on with stays whole, whatever is said beside it (`W3`).
        let waiting = proposal.waiting(view.context.since(proposal.boundary));
        let mut left = free.min(view.settings.window / WAITING_PART);
        let mut quoted: Vec<usize> = pinned;
        for (place, tokens) in said.iter().rev().filter(|(place, _)| waiting.contains(&place.index)) {
            if rung == Rung::Rollover || *tokens > left || quoted.contains(&place.index) {
                continue;
            }
            left -= tokens;
            quoted.push(place.index);
            proposal.quotes.push(*place);
        }
        for (place, tokens) in said.iter().rev().filter(|(place, _)| place.index != usize::MAX) {
            if quoted.contains(&place.index) {
                continue;
            }
            if *tokens > room {
                break;
            }
            room -= tokens;
            proposal.quotes.push(*place);
        }
        // What the user began with stays word for word as long as it is small, and the prompt fits with it.
        let most = free.min(view.settings.window / FIRST_PART);
        let first = said
            .first()
            .filter(|(place, tokens)| place.index != usize::MAX && *tokens <= most && rung != Rung::Rollover);
        let is_quoted = |place: &Place| proposal.quotes.iter().any(|quoted| quoted.index == place.index);
        if let Some((place, _)) = first.filter(|(place, _)| !is_quoted(place)) {
            proposal.quotes.push(*place);
        }
        proposal.quotes = order::by_key(std::mem::take(&mut proposal.quotes), |place| place.index as u64);
        let quoted = proposal.quotes.iter().map(|place| place.index).collect();
        let standing = standing_at_end(run.io, &view, proposal, &collected).await?;
        let budget = budget(numbers, replaced);
        Ok(Kept { collected, quoted, rejected: view.rejected, budget, standing, references: view.references })
    }

    /// What stands behind a model's summary: what it does not say itself.
    pub(super) async fn behind(&self, io: &Io, view: &View, summary: &str) -> Result<String> {
        let text = self.page(&view.settings, summary, self.budget.min(BESIDE), Shares::BESIDE);
        Ok(if text.is_empty() { text } else { format!("\n\n{}", redact(io, view, text).await?) })
    }

    /// The summary that no model is needed for, in about `target` tokens and what is kept beside one.
    pub(super) fn summary(&self, settings: &Settings, target: usize) -> String {
        self.page(settings, "", target, Shares::ALONE)
    }

    /// Tokens of a summary of `replaced` tokens without a model, where one of a model would take `target`.
    pub(super) fn alone(&self, settings: &Settings, target: usize, replaced: usize) -> usize {
        alone(settings, target + self.budget, replaced)
    }

    /// What an answer must repeat.
    fn musts(&self) -> Vec<MustKeep> {
        let mut musts = self.collected.collector.musts();
        // What the messages behind the summary close is not asked for.
        let at_end: Vec<MustKeep> = self.standing.left_open().collect();
        musts.retain(|must| match must {
            MustKeep::Constraint(index, _) => !self.rejected.contains(index),
            MustKeep::File(_) => true,
            MustKeep::Failure(_) | MustKeep::Task(_) => at_end.contains(must),
        });
        musts
    }

    fn page(&self, settings: &Settings, summary: &str, tokens: usize, shares: Shares) -> String {
        let label = |index| ids::message_reference(&self.references.secret, index);
        let labels = Labels(self.references.by_model.then_some(&label));
        let (quoted, rejected) = (&self.quoted, &self.rejected);
        let beside = Beside { summary, quoted, rejected, state: Some(&self.standing), labels };
        let shares = shares.preserving(settings.mode.preservation());
        self.collected.collector.layer_beside(tokens, shares, beside, settings.estimator).text
    }

    /// Constraints for the summariser to repeat, oldest first, with the indices of their messages.
    pub(super) fn constraints(&self) -> Vec<(usize, String)> {
        let constraints = self.collected.collector.constraints().rev();
        let stand = constraints.filter(|(index, _)| !self.rejected.contains(index));
        stand.map(|(index, text)| (index, text.to_string())).collect()
    }

    /// Why an answer that is a summary is none of these messages; `behind` are those that stay behind it, which it may name.
    pub(super) fn objection(
        &self,
        summary: &str,
        estimator: Estimator,
        replaced: usize,
        behind: &[Item],
    ) -> Option<String> {
        let tokens = estimator.text(summary);
        let mut unsupported = self.collected.collector.unsupported(summary);
        unsupported.retain(|name| !behind.iter().any(|item| item.body.contains(*name)));
        objection(summary, tokens, replaced, &unsupported)
    }

    /// What to ask an answer for that is a summary and says too little of what must be kept.
    pub(super) fn missing(&self, summary: &str) -> Option<String> {
        let musts = self.musts();
        let missing: Vec<&MustKeep> = musts.iter().filter(|must| !word_for_word(summary, must)).collect();
        if missing.is_empty() || missing.len() * MISSING_PART < musts.len() {
            return None;
        }
        let lines: Vec<&str> = missing.iter().map(|must| must.text()).collect();
        Some(format!(
            "The summary left out what it must repeat character for character: {}",
            lines.join(" | ")
        ))
    }
}

/// How things stand behind the messages that stay.
async fn standing_at_end(
    io: &Io,
    view: &View,
    proposal: &Proposal,
    collected: &Collected,
) -> Result<WorkState> {
    let mut breath = Breath::default();
    let mut state = collected.collector.state();
    for item in view.items().iter().skip(proposal.boundary) {
        let index = item.origin.place().map_or(0, |place| place.index);
        let value = wire::parse(index, &item.body)?;
        let mut message = [view.format.wire().read(index, &value)?];
        messages_without_secrets(view, &mut message);
        message.iter().for_each(|message| state.read(message));
        breath.after(io, item.body.len()).await?;
    }
    Ok(state)
}

/// Tokens of what stands beside a summary of a model, and of what is written beyond its length where there is none.
pub(super) fn budget(numbers: KeepNumbers, replaced: usize) -> usize {
    let share = (replaced as f64 * numbers.share) as usize;
    share.clamp(numbers.least_tokens, numbers.most_tokens.max(numbers.least_tokens)).min(replaced / 4)
}

/// Tokens of a page that no model writes: the sum of what a summary and what stands beside one take, in a small window an
/// eighth of what it replaces, up to a quarter of what a compaction leaves.
fn alone(settings: &Settings, sum: usize, replaced: usize) -> usize {
    let least = settings.leaves.map_or(0, |leaves| (replaced / ALONE_PART).min(leaves / 4).min(ALONE));
    sum.max(least)
}

/// Tokens of what stands in the place of `replaced` tokens, about.
pub(super) fn page_tokens(settings: &Settings, replaced: usize) -> usize {
    let target = settings.target(replaced).1.min(replaced / 2);
    let Some(numbers) = settings.numbers.keep else { return target };
    let must = numbers.must_tokens.max((replaced as f64 * numbers.must_share) as usize).min(replaced / 4);
    let beside = budget(numbers, replaced);
    must + match settings.asks_a_model() {
        true => target + beside.min(BESIDE),
        false => alone(settings, target + beside, replaced),
    }
}

/// A message of the user that is nothing but text.
fn is_said(message: &Message<'_>) -> bool {
    message.role == Role::User
        && !message.parts.is_empty()
        && message
            .parts
            .iter()
            .all(|part| matches!(part, Part::Text(text) if !text.trim().is_empty() && !is_earlier(text)))
}

fn is_summary(item: &Item) -> bool {
    matches!(&item.origin, Origin::Summary { .. })
}

#[cfg(test)]
mod tests {
    use super::budget;
    use crate::policy::KeepNumbers;

    #[test]
    fn f39_what_stands_beside_a_summary_takes_a_quarter_of_what_it_replaces_at_most() {
        let numbers = crate::policy::PRESETS.iter().find_map(|preset| preset.numbers.keep);
        let of = |replaced| {
            numbers.map(|keep| {
                budget(KeepNumbers { share: 0.5, least_tokens: 400, most_tokens: 4_000, ..keep }, replaced)
            })
        };
        assert_eq!(of(400), Some(100));
        assert_eq!(of(4_000), Some(1_000));
        assert_eq!(of(100_000), Some(4_000));
    }
}
