//! A history handed over that goes on otherwise than the session's does. It is behind a seam: most only grow.

use super::super::append::check_all;
use super::super::branch::{branch_at, exchange_start};
use super::super::recognize::{Recognized, SyncDecision};
use crate::error::{Code, Error, Result};
use crate::log::SessionGuard;
use crate::message::{Message, Part};
use crate::step::{CodeStage, Io, Seam, Work};
use crate::wire;
use std::rc::Rc;

/// Where a history that was handed over goes on otherwise.
pub(super) struct Divergence<'a> {
    /// Messages that the host knows to be the session's, at the beginning.
    pub(super) known: usize,
    /// Those behind them.
    pub(super) bodies: &'a [Rc<str>],
    /// The session's history: indices of the log.
    pub(super) history: &'a [usize],
    /// What was recognized.
    pub(super) found: &'a Recognized,
    /// The first of the history that is left behind.
    pub(super) at: usize,
    /// The first given message that is new.
    pub(super) from: usize,
}

/// What was left behind.
pub(super) struct Branched {
    /// The first message of the log that was.
    pub(super) start: usize,
    /// The first given message that is to be appended.
    pub(super) given: usize,
    /// What differs.
    pub(super) reason: String,
}

/// `None` where all of the history is to be handed over for that.
type BranchResult = Result<Option<Branched>>;

/// What is called where a history goes on otherwise.
pub struct Branching {
    /// See [`branch`].
    pub(super) branch: for<'a> fn(&'a Io, &'a SessionGuard, Divergence<'a>) -> Work<'a, BranchResult>,
}

/// Branching.
pub static BRANCHING: Branching =
    Branching { branch: |io, guard, divergence| Box::pin(branch(io, guard, divergence)) };

/// The way to it.
pub static TO_BRANCHING: Seam<Branching> = Seam::new(CodeStage::Rest, &BRANCHING);

/// Leaves behind what the session has from there on.
///
/// Errors: [`Code::Diverged`] where the app refuses it, or what differs is from the session's parent; those of an append, for
/// what cannot be appended leaves nothing behind.
async fn branch(
    io: &Io,
    guard: &SessionGuard,
    Divergence { known, bodies, history, found, at, mut from }: Divergence<'_>,
) -> BranchResult {
    let index = history.get(at).copied().unwrap_or(guard.messages());
    let body = from.checked_sub(known).and_then(|nth| bodies.get(nth));
    let reason = reason(io, guard, body, index).await?;
    if matches!(found.decision, SyncDecision::Branch { .. }) && guard.settings().refuses_diverged {
        return Err(diverged(from, index, &reason));
    }
    let floor = guard.state().row.parent.as_ref().map_or(0, |parent| parent.floor);
    if index < floor {
        let reason = format!("{reason}, in what the session has from its parent");
        return Err(diverged(from, floor, &reason));
    }
    // An exchange stays or goes as a whole.
    let start = exchange_start(io, guard, index).await?;
    if start != index {
        let position = history.iter().position(|index| *index == start).unwrap_or(at);
        let hit = found.hits.iter().filter(|(_, at)| *at >= position).map(|(nth, _)| *nth).min();
        from = if position < known { position } else { hit.unwrap_or(from) };
        if from < known {
            return Ok(None);
        }
    }
    debug_assert!(from >= known, "messages that were handed over");
    check_all(io, guard, bodies.get(from - known..).unwrap_or_default(), from).await?;
    branch_at(io, guard, start).await?;
    Ok(Some(Branched { start, given: from, reason }))
}

/// What differs between a given message and message `index` of the log.
async fn reason(io: &Io, guard: &SessionGuard, given: Option<&Rc<str>>, index: usize) -> Result<String> {
    let Some(given) = given else { return Ok("the history ends before the session's".into()) };
    let log = guard.bodies(io, &[index]).await?;
    let wire = guard.format().wire();
    let (one, other) = (wire::parse(0, given)?, wire::parse(0, log.first().map_or("{}", |body| body))?);
    Ok(match (wire.read(0, &one), wire.read(0, &other)) {
        (Ok(one), Ok(other)) => differs(&one, &other),
        _ => "it is another message".into(),
    })
}

fn differs(one: &Message<'_>, other: &Message<'_>) -> String {
    if one.role != other.role {
        return format!("the role is {}, and was {}", one.role.as_str(), other.role.as_str());
    }
    let pairs = one.parts.iter().zip(&other.parts).enumerate();
    let of_part = pairs.filter(|(_, (one, other))| one != other).map(|(nth, (one, other))| {
        let what = match (one, other) {
            (Part::Text(_), Part::Text(_)) => "text",
            (Part::Reasoning { .. }, Part::Reasoning { .. }) => "reasoning",
            (Part::ToolCall(_), Part::ToolCall(_)) => "call",
            (Part::ToolResult(_), Part::ToolResult(_)) => "result",
            _ => "content",
        };
        format!("part {nth} {what} differs")
    });
    let length = (one.parts.len() != other.parts.len())
        .then(|| format!("it has {} parts, and had {}", one.parts.len(), other.parts.len()));
    of_part.take(1).chain(length).next().unwrap_or_else(|| "a field differs".into())
}

/// The app's history and the session's part at given message `given`; `index` is where the session's goes on.
fn diverged(given: usize, index: usize, reason: &str) -> Error {
    let what = format!(
        "{reason}; nothing was appended: to go on with the history as it is now, call \
         session.snapshots.rewind({index}) and sync again, or open the session with onDiverged: \"branch\""
    );
    let mut error = Error::new(Code::Diverged, what).at(given);
    error.reason = Some(reason.into());
    error
}
