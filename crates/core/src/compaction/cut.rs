//! What a summary would replace in the active context.

use super::in_force::InForce;
use super::keeping::page_tokens;
use super::reasoning;
use crate::checkpoint::Level;
use crate::context::{CoveredRange, Item, Keep, Offload, Origin, PinProposal, Place, Splice, split};
use crate::error::Result;
use crate::log::View;
use crate::message::Role;
use crate::order;
use crate::policy::Trigger;
use crate::step::Io;
use crate::wire::Author;
use std::collections::HashSet;

/// What a compaction leaves of a prompt that is asked for whatever its size, in percent.
const FORCED_LEAVES: usize = 40;

/// What a summary is to leave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Aim {
    /// What stays at the end.
    pub(crate) keep: Keep,
    /// Earlier summaries stay as they are.
    stacks: bool,
    /// The user's newest messages that stay word for word.
    users: usize,
    /// A summary alone is summarised again.
    lone: bool,
}

impl Aim {
    /// What the options say; of a prompt that is compacted whatever its size, less than there is.
    pub(crate) fn of(view: &View, trigger: Trigger) -> Self {
        let settings = &view.settings;
        let most = match trigger {
            Trigger::Manual | Trigger::Overflow => view.usage.tokens / 100 * FORCED_LEAVES,
            Trigger::Auto | Trigger::Model | Trigger::None => usize::MAX,
        };
        let keep = settings.leaves.map_or(settings.keep, |leaves| Keep::Tokens(tail(view, leaves.min(most))));
        let wish = if trigger == Trigger::Model { view.context.model_notes(view.format) } else { None };
        Aim {
            keep: wish.map_or(keep, |wish| Keep::Messages(wish.stay)),
            stacks: settings.preset.checkpoints,
            users: settings.numbers.checkpoint.keep_user_messages,
            lone: false,
        }
    }

    /// Recent messages too (`S5.15`).
    pub(crate) const AGGRESSIVE: Aim = Aim { keep: Keep::Messages(1), stacks: false, users: 0, lone: false };

    /// A fresh context: what the user said last, word for word, and a summary of everything else (`S5.15`).
    pub(crate) const ROLLOVER: Aim = Aim { users: 1, lone: true, ..Aim::AGGRESSIVE };
}

/// Tokens of the newest messages that stay, where a compaction leaves a prompt of `leaves` tokens: what the system prompt,
/// the tools and the page leave of it.
fn tail(view: &View, leaves: usize) -> usize {
    let usage = &view.usage;
    let leaves = usage.estimate_of(leaves);
    let fixed = usage.fixed + view.context.totals().system;
    let page = page_tokens(&view.settings, usage.estimate_of(usage.tokens).saturating_sub(leaves));
    leaves.saturating_sub(fixed).saturating_sub(page)
}

/// The part of a context that a summary replaces: items `head .. boundary`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Proposal {
    /// First item behind the leading system messages.
    pub(crate) head: usize,
    /// First item that is preserved.
    pub(crate) boundary: usize,
    /// Items of the part that are summarised.
    pub(crate) compress: Vec<Item>,
    /// Messages of it that the summary's message holds word for word.
    pub(crate) quotes: Vec<Place>,
    /// Messages inside it that stay, in front of the summary: the provider's own compaction, and earlier checkpoints.
    pub(crate) stay: Vec<Item>,
    /// Earlier checkpoints go on quoting the messages from this index on, pinned ones, and instructions in force.
    pub(crate) quotes_from: usize,
    /// Indices of the instructions that are quoted.
    pub(crate) in_force: HashSet<usize>,
    /// How detailed the summary is to be, when that is asked for.
    pub(crate) level: Option<Level>,
    /// Target length of the summary, in tokens.
    pub(crate) target_tokens: usize,
    /// Whose message the summary is.
    pub(crate) author: Author,
    /// The preserved part begins with a user message too: an acknowledgement must stand between.
    pub(crate) acknowledge: bool,
    /// Tokens of `compress`.
    pub(crate) replaced_tokens: usize,
    /// Those that decide the level: without what is quoted.
    pub(crate) counted_tokens: usize,
    /// Those of the messages that are quoted.
    pub(crate) quoted_tokens: usize,
    /// Tokens that stay whatever the summary says: quotes, and the rest with the reasoning of
    /// [`Proposal::unbound_tokens`].
    pub(crate) mandatory_tokens: usize,
    /// Messages behind the boundary.
    pub(crate) preserved: usize,
    /// Pins that were proposed for what is summarised and that nobody answered (`S4.3`); looked for when it is.
    pub(crate) unanswered: Vec<PinProposal>,
}

impl Proposal {
    /// What the summary would stand for.
    pub(crate) fn covers(&self) -> Vec<CoveredRange> {
        covers_of(&self.compress)
    }

    /// The messages of the user that are not answered yet, those that are quoted and those that may be once they are pinned: the
    /// ones that nothing of what is summarised answers, and the last one where what stays goes on with it.
    pub(super) fn waiting(&self, stays: &[Item]) -> Vec<usize> {
        let (mut waiting, mut last): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for item in &self.compress {
            match (&item.origin, item.origin.place()) {
                (Origin::Summary { made: Some(made), .. }, _) => waiting.extend(&made.waiting),
                (_, Some(place)) if item.size.role == Role::User => waiting.push(place.index),
                (_, Some(_)) if item.size.role == Role::Assistant && !waiting.is_empty() => {
                    last = std::mem::take(&mut waiting);
                }
                _ => {}
            }
        }
        let goes_on = stays.first().is_some_and(|item| item.size.role != Role::User);
        if waiting.is_empty() && goes_on { last } else { waiting }
    }

    /// The change that puts `insert` in the place of that part.
    pub(crate) fn splice(&self, insert: Vec<Item>) -> Splice {
        Splice { at: self.head, remove: self.boundary - self.head, insert }
    }

    /// Tokens of the reasoning that the messages behind the part lose with it.
    pub(crate) async fn unbound_tokens(&self, io: &Io, view: &View) -> Result<usize> {
        let (_, freed) = reasoning::unbind(io, view, vec![self.splice(self.stay.clone())]).await?;
        Ok(freed)
    }

    /// References that nothing in the context holds afterwards (`S1.9`).
    pub(crate) fn retired(&self) -> Vec<String> {
        let offloads = self.compress.iter().flat_map(|item| item.origin.offloads());
        offloads.map(|offload| offload.reference.clone()).collect()
    }

    /// Indices of the app's messages that the summary would stand for.
    pub(crate) fn indices(&self) -> Vec<usize> {
        self.covers().iter().flat_map(|cover| cover.from..cover.to).collect()
    }
}

/// What stands for these items stands for.
pub(super) fn covers_of(items: &[Item]) -> Vec<CoveredRange> {
    let mut covers: Vec<CoveredRange> = Vec::new();
    for item in items {
        match &item.origin {
            Origin::Message(place) => join(&mut covers, place.index, place.index + 1, Vec::new()),
            Origin::Edited { place, offloads, .. } => {
                let offloads = offloads.iter().map(|offload| (place.index, offload.retired())).collect();
                join(&mut covers, place.index, place.index + 1, offloads);
            }
            Origin::Summary { covers: earlier, .. } => {
                for cover in earlier.iter() {
                    join(&mut covers, cover.from, cover.to, cover.offloads.clone());
                }
            }
            Origin::Acknowledgement => {}
        }
    }
    covers
}

pub(super) fn join(
    covers: &mut Vec<CoveredRange>,
    from: usize,
    to: usize,
    mut offloads: Vec<(usize, Offload)>,
) {
    match covers.last_mut() {
        Some(last) if last.to == from => {
            last.to = to;
            last.offloads.append(&mut offloads);
        }
        _ => covers.push(CoveredRange { from, to, offloads }),
    }
}

/// What a summary would replace now, or why there is nothing to.
pub(crate) fn propose(view: &View, aim: Aim) -> Result<Result<Proposal, String>> {
    let View { context, settings, format, .. } = view;
    if !format.wire().takes_summary() {
        return Ok(Err(format!("Nothing to compress: a history in {} takes no summary", format.as_str())));
    }
    let items = context.items();
    let head = context.head();
    let history = items.get(head..).unwrap_or_default();
    let messages = history.iter().map(|item| item.bound(*format)).collect::<Result<Vec<_>>>()?;
    let tokens: Vec<usize> = history.iter().map(|item| item.size.tokens).collect();
    let role = |at: usize| history.get(at).map(|item| item.size.role);
    let cut = split::behind(&messages, &tokens, aim.keep, |_| false);
    // The summary is a user message, or the model's in a preset and a format that want that and where a user message
    // follows it (`S4.2`). The cut never moves for the roles: where the user's would follow the user's and the format
    // wants them to alternate, an acknowledgement stands between.
    let may_be_models = settings.preset.assistant_summaries && view.model_may_begin;
    let is_earlier = |at: usize| {
        let item = history.get(at);
        item.is_some_and(|item| matches!(item.origin, Origin::Summary { .. } | Origin::Acknowledgement))
    };
    let stays = |at: usize| cut.pinned.binary_search(&at).is_ok() || (aim.stacks && is_earlier(at));
    let replaces = |at: usize| {
        let replaced = history.iter().take(at).enumerate().filter(|(at, _)| !stays(*at));
        replaced.map(|(_, item)| item.size.tokens).sum::<usize>()
    };
    let boundary = cut.boundary;
    let is_users = role(boundary) == Some(Role::User);
    let author = if may_be_models && is_users { Author::Assistant } else { Author::User };
    let acknowledges = settings.preset.acknowledges || format.wire().alternates();
    let acknowledge = author == Author::User && is_users && acknowledges;
    let before = history.iter().take(boundary).cloned().enumerate();
    let (stay, compress): (Vec<_>, Vec<_>) = before.partition(|(at, _)| stays(*at));
    let of = |items: Vec<(usize, Item)>| items.into_iter().map(|(_, item)| item).collect::<Vec<Item>>();
    let (stay, compress) = (of(stay), of(compress));
    let in_force = InForce::of(view, history, boundary)?;
    let quotes_from = newest_of_user(view, aim.users, &in_force.were_quoted);
    let pinned = |place: &Place| view.is_pinned(place.index) || in_force.quoted.contains(&place.index);
    let is_quoted = |item: &Item| {
        let place = item.origin.place();
        place.is_some_and(|place| {
            pinned(&place) || (item.size.role == Role::User && place.index >= quotes_from)
        })
    };
    let quotes: Vec<Place> = compress
        .iter()
        .flat_map(|item| {
            let earlier = item.origin.quotes().iter().copied();
            let earlier = earlier.filter(|place| {
                let was_said = !in_force.were_quoted.contains(&place.index);
                pinned(place) || (was_said && place.index >= quotes_from)
            });
            earlier.chain(item.origin.place().filter(|_| is_quoted(item)))
        })
        .collect();
    // A lone summary is not worth summarising again: it would only lose more. Nor are quotes.
    let is_new = |item: &Item| item.origin.place().is_some() && !is_quoted(item);
    let is_worth = if aim.lone { !compress.is_empty() } else { compress.iter().any(is_new) };
    if !is_worth {
        let kept = history.iter().filter(|item| item.origin.place().is_some()).count();
        return Ok(Err(format!("Nothing to compress: {kept} messages stay and no others are left")));
    }
    let replaced_tokens = replaces(boundary);
    let quoted: usize = compress.iter().filter(|item| is_quoted(item)).map(|item| item.size.tokens).sum();
    let counted_tokens = replaced_tokens.saturating_sub(quoted);
    let (level, target_tokens) = settings.target(counted_tokens);
    let total = context.totals().tokens;
    Ok(Ok(Proposal {
        head,
        boundary: head + boundary,
        replaced_tokens,
        counted_tokens,
        quoted_tokens: quoted,
        mandatory_tokens: total.saturating_sub(replaced_tokens).saturating_add(quoted),
        preserved: history.len() - boundary,
        unanswered: Vec::new(),
        compress,
        quotes,
        quotes_from,
        in_force: in_force.quoted,
        level,
        target_tokens,
        stay,
        author,
        acknowledge,
    }))
}

/// Index of the oldest of the newest `count` messages of the user that still stand in the context word for word.
fn newest_of_user(view: &View, count: usize, of_system: &HashSet<usize>) -> usize {
    let mut indices = Vec::new();
    for item in view.items() {
        let said = item.origin.place().filter(|_| item.size.role == Role::User);
        indices.extend(said.map(|place| place.index));
        // What is quoted, not pinned and no instruction was said by the user.
        let quoted = item.origin.quotes().iter().map(|place| place.index);
        indices.extend(quoted.filter(|index| !view.is_pinned(*index) && !of_system.contains(index)));
    }
    let indices = order::by_key(indices, |index| *index as u64);
    match (count, indices.len().checked_sub(count)) {
        (0, _) => usize::MAX,
        (_, Some(first)) => indices.get(first).copied().unwrap_or(usize::MAX),
        (_, None) => 0,
    }
}
