//! The smallest prompt that a compaction can leave, and the error for one that does not fit.

use super::cut::Proposal;
use super::ladder::rungs;
use super::last;
use super::replace;
use super::replacement::Move;
use super::result::CompactionResult;
use super::rung::RungWork;
use crate::context::{Item, Origin, Place};
use crate::error::{Code, Error, Result};
use crate::log::View;
use crate::order;
use crate::policy::Trigger;
use crate::step::Io;
use crate::wire;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// What the last quote of a checkpoint ends with.
const QUOTE_END: &str = "\n</message>";

/// The smallest prompt that any compaction can leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Floor {
    fixed: usize,
    mandatory: usize,
    /// Their sum.
    pub(super) total: usize,
    /// The same before the last resort.
    pub(super) before: usize,
    /// What that may shorten.
    pub(super) stays: Stays,
}

impl Floor {
    fn of(view: &View, mandatory: usize) -> Floor {
        let total = view.usage.corrected(view.usage.fixed.saturating_add(mandatory));
        // What the provider counts beside is as little to be compacted as the system prompt.
        Floor {
            fixed: total.saturating_sub(mandatory),
            mandatory: mandatory.min(total),
            total,
            before: total,
            stays: Stays::default(),
        }
    }
}

impl std::fmt::Display for Floor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Floor { fixed, mandatory, total, .. } = self;
        write!(
            f,
            "cannot go below {total} tokens: fixed {fixed} (system prompt, tools) + mandatory {mandatory}"
        )
    }
}

/// The floor of a session: what is fixed, and of the context what each rung in turn leaves at the least. Whatever a model
/// writes counts as nothing, because its length is not known before. `failed` says that no model wrote the summary that was
/// asked for.
pub(super) async fn floor(io: &Io, view: &View, trigger: Trigger, failed: bool) -> Result<Floor> {
    let mut least = Least { trigger, failed, proposal: None, ages: false, shortest: HashMap::new() };
    for rung in rungs(&view.settings.rungs) {
        match rung.work {
            RungWork::Moves(_, most) => least.replace(view, most(view)?)?,
            RungWork::Steps { least: leaves, .. } => leaves(view, &mut least)?,
        }
    }
    let bare = least.bare(io, view).await?;
    let Least { proposal, ages, .. } = least;
    let left = left(&bare, proposal.as_ref(), ages)?;
    let (mandatory, stays) = match &proposal {
        Some(proposal) => {
            let unbound = proposal.unbound_tokens(io, &bare).await?;
            (left.saturating_sub(unbound), Stays::beside(proposal))
        }
        None => (left, Stays::default()),
    };
    let before = Floor::of(view, mandatory).total;
    // Only what does not fit comes to the last resort.
    let fits = view.usage.tokens <= last::limit(&view.settings, trigger, view.usage.tokens);
    let frees = if fits { 0 } else { last::frees(&bare, &|index| stays.holds(index))? };
    Ok(Floor { before, stays, ..Floor::of(view, mandatory.saturating_sub(frees)) })
}

/// Tokens of what stays of a context beside the text of a summary: `bare` is the context with shorter results.
fn left(bare: &View, proposal: Option<&Proposal>, ages: bool) -> Result<usize> {
    let part = proposal.map_or(0..0, |proposal| proposal.head..proposal.boundary);
    let stays = |item: &Item| match (proposal, item.origin.place()) {
        (None, _) => true,
        (Some(proposal), Some(place)) => {
            proposal.stay.iter().any(|stays| stays.origin.place() == Some(place))
        }
        (Some(proposal), None) => proposal.stay.iter().any(|stays| stays.origin == item.origin),
    };
    let mut tokens = proposal.map_or(0, |proposal| proposal.quoted_tokens);
    for (at, item) in bare.context.items().iter().enumerate() {
        if part.contains(&at) && !stays(item) {
            continue;
        }
        tokens += match &item.origin {
            Origin::Summary { .. } if item.origin.server().is_none() => {
                of_checkpoint(bare, item, proposal, ages)?
            }
            _ => item.size.tokens,
        };
    }
    Ok(tokens)
}

/// Tokens of a checkpoint that must stay: all of it, but for quotes that a new summary takes from it, and for its own text
/// where it ages.
fn of_checkpoint(view: &View, item: &Item, proposal: Option<&Proposal>, ages: bool) -> Result<usize> {
    let Origin::Summary { prose, made, quotes, .. } = &item.origin else { return Ok(item.size.tokens) };
    let keeps = |place: &Place| {
        proposal.is_none_or(|proposal| {
            place.index >= proposal.quotes_from
                || proposal.in_force.contains(&place.index)
                || view.is_pinned(place.index)
        })
    };
    let all = quotes.iter().all(keeps);
    if all && !ages {
        return Ok(item.size.tokens);
    }
    let value = wire::parse(0, &item.body)?;
    let text = view.format.wire().read(0, &value)?.text();
    let front = made.as_ref().map_or(0, |made| made.front);
    let behind = text.get(prose + front..).unwrap_or_default();
    let end = behind.rfind(QUOTE_END).unwrap_or_default();
    let estimator = view.settings.estimator;
    let own = estimator.text(text.get(..*prose).unwrap_or_default());
    let quoted = estimator.text(behind.get(..end).unwrap_or_default());
    Ok(usize::from(!ages) * own + usize::from(all) * quoted)
}

/// What the rungs of a preset may do at the most, told by each in turn.
pub(super) struct Least {
    /// What sets the climb off.
    pub(super) trigger: Trigger,
    /// No model wrote the summary that was asked for.
    pub(super) failed: bool,
    /// The most that a summary could take the place of.
    pub(super) proposal: Option<Proposal>,
    /// Earlier summaries become shorter.
    pub(super) ages: bool,
    /// The shortest that stands for each result, input and image, by its message and its order in it.
    shortest: HashMap<(usize, u64), (usize, Move)>,
}

impl Least {
    /// The same where these moves are made, too.
    pub(super) fn replace(&mut self, view: &View, moves: Vec<Move>) -> Result<()> {
        for Move { at, item, blobs } in moves {
            for blob in blobs {
                let key = (at, blob.blob.offload.order());
                let tokens = view.settings.estimator.text(&blob.text);
                // The encoding of an image is no text that counts.
                let is_longer = !blob.blob.offload.is_media() && tokens >= blob.stands_for(view, &item)?;
                if is_longer || self.shortest.get(&key).is_some_and(|(least, _)| *least <= tokens) {
                    continue;
                }
                self.shortest.insert(key, (tokens, Move { at, item: item.clone(), blobs: vec![blob] }));
            }
        }
        Ok(())
    }

    /// The same session with each result and input as short as that.
    async fn bare(&mut self, io: &Io, view: &View) -> Result<View> {
        let each = self.shortest.drain().map(|((_, order), (_, planned))| (order, planned));
        let each = order::by_key(each.collect(), |(order, _)| *order);
        let moves = replace::joined(each.into_iter().map(|(_, planned)| planned).collect());
        let (splices, ..) = replace::replaced(io, view, &moves).await?;
        let mut bare = view.clone();
        Rc::make_mut(&mut bare.context).apply(&splices);
        Ok(bare)
    }
}

/// The messages of the app that a summary leaves, or quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stays {
    goes: HashSet<usize>,
}

impl Stays {
    fn beside(proposal: &Proposal) -> Stays {
        let quoted = |index: usize| proposal.quotes.iter().any(|place| place.index == index);
        let summarised = proposal.compress.iter().filter_map(|item| item.origin.place());
        Stays { goes: summarised.map(|place| place.index).filter(|index| !quoted(*index)).collect() }
    }

    /// True for such a message.
    pub(super) fn holds(&self, index: usize) -> bool {
        !self.goes.contains(&index)
    }
}

/// Says of a context that does not fit that this is no success.
pub(crate) async fn settle(io: &Io, view: &View, result: &mut CompactionResult) -> Result<()> {
    if !result.fits {
        result.fail(overflow(io, view, result.trigger, result.error.as_ref()).await?);
    }
    Ok(())
}

/// The error for a context that does not fit; `failed` is why the last summary was none.
pub(super) async fn overflow(
    io: &Io,
    view: &View,
    trigger: Trigger,
    failed: Option<&Error>,
) -> Result<Error> {
    let (tokens, limit) = (view.usage.tokens, view.settings.hard_limit);
    let least = floor(io, view, trigger, failed.is_some()).await?;
    // What `S5.1` says about the append that did not fit; the message is in the transcript all the same.
    let refused = if view.settings.preset.checkpoints {
        format!("Cannot add message: would exceed limit ({tokens} > {limit}): ")
    } else {
        String::new()
    };
    let size = format!("{tokens} tokens do not fit {limit} (the context window less the answer)");
    let largest = view.items().iter().filter_map(Largest::of).max();
    let named = largest.map_or_else(String::new, |Largest { tokens, index }| {
        format!("; the largest message is {} with {tokens} tokens", index.0)
    });
    let pinned = match view.pinned_tokens {
        0 => String::new(),
        pinned => format!("pin less ({pinned} tokens are), "),
    };
    let advice = format!("; {pinned}keep fewer messages, offload results or use a larger window");
    // Nobody wrote: what is wrong with whoever should have is what there is to mend.
    let unwritten = failed.filter(|error| matches!(error.code, Code::SummaryFailed | Code::Timeout));
    let message = match (unwritten, failed) {
        (Some(error), _) => {
            let with_one = floor(io, view, trigger, false).await?;
            let advice = if with_one.total > limit { advice.as_str() } else { "" };
            format!("the summary failed ({error}); {refused}without one {size}: {least}{named}{advice}")
        }
        (None, Some(error)) => {
            format!("{refused}{size}: the summary failed ({error}); {least}{named}{advice}")
        }
        (None, None) => format!("{refused}{size}: {least}{named}{advice}"),
    };
    let mut error = Error::new(Code::ContextOverflow, message);
    error.index = largest.map(|largest| largest.index.0);
    error.cause = failed.and_then(|error| error.cause);
    error.because = failed.cloned();
    Ok(error)
}

/// A message of the app, by what it takes; of two that take as much the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Largest {
    tokens: usize,
    index: Reverse<usize>,
}

impl Largest {
    fn of(item: &Item) -> Option<Largest> {
        let place = item.origin.place()?;
        Some(Largest { tokens: item.size.tokens, index: Reverse(place.index) })
    }
}
