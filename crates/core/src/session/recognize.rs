//! What of a handed-over history the session has (`E1`). Decided in this order: the same objects as before (the host's),
//! messages of ours and of the log by their keys, ids, the overlap of the given head with the end of the log, a fork.

use crate::context::CoveredRange;
use crate::log::known::{KnownMessage, MessageKey, OwnMessage};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// A message of the session's history.
#[derive(Debug, Clone, Copy)]
pub(super) struct Logged {
    /// Index among the app's messages.
    pub(super) index: usize,
    /// What it is; nothing as long as it is not read.
    pub(super) known: Option<KnownMessage>,
    /// The app may hand over a history without it: it took it out of the context, or was not given it.
    pub(super) is_optional: bool,
    /// What it said is gone.
    pub(super) is_erased: bool,
}

/// A history and what is handed over.
pub(super) struct Handed<'h> {
    /// The session's history.
    pub(super) log: &'h [Logged],
    /// Messages of ours.
    pub(super) own: Rc<HashMap<MessageKey, Vec<OwnMessage>>>,
    /// The first given messages are the first of the history: the host has seen that.
    pub(super) same: usize,
    /// The given messages behind those.
    pub(super) given: &'h [KnownMessage],
    /// Which of them had live facts; empty for none.
    pub(super) lived: &'h [Lived],
}

/// Whether a given message has live facts, which are no part of the history (`X12`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lived {
    /// It has none.
    No,
    /// They are at the end of a message of the app.
    Joined,
    /// It is nothing else.
    Alone,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncDecision {
    /// The history goes on with message `from` of those given.
    Append { from: usize },
    /// Message `from` is another version of the last one of the history.
    Replace { from: usize },
    /// The history ends before its position `at`, and goes on with message `from`.
    Branch { from: usize, at: usize },
    /// It is another conversation's.
    Other,
}

/// A decision, and what of the history the given messages are.
#[derive(Debug)]
pub(super) struct Recognized {
    pub(super) decision: SyncDecision,
    /// Given messages and the positions of the history that they are, word for word.
    pub(super) hits: Vec<(usize, usize)>,
    /// Position of the history where the given messages begin, when that is not its beginning.
    pub(super) aligned: Option<usize>,
}

/// How far the given messages go along with the history.
#[derive(Debug, Default)]
struct CommonRun {
    /// The first given message that does not.
    from: usize,
    /// The position that it should have been.
    at: usize,
    hits: Vec<(usize, usize)>,
    /// Messages that were recognized, but for leading ones of the system.
    count: usize,
}

impl Handed<'_> {
    /// How many were given.
    fn len(&self) -> usize {
        self.same + self.given.len()
    }

    fn given(&self, nth: usize) -> Option<&KnownMessage> {
        self.given.get(nth.checked_sub(self.same)?)
    }

    /// What to do; nothing where that takes what is not read yet. `has_end` says that as many of the last messages are read as
    /// were given, `is_all` that all are.
    pub(super) fn decide(&self, has_end: bool, is_all: bool) -> Option<Recognized> {
        let base = self.run(self.same, self.same);
        let done =
            |decision, walk: CommonRun, aligned| Some(Recognized { decision, hits: walk.hits, aligned });
        let end = self.log.len();
        if base.at == end {
            return done(SyncDecision::Append { from: base.from }, base, None);
        }
        if self.replaces(&base) {
            return done(SyncDecision::Replace { from: base.from }, base, None);
        }
        // What begins with the same objects is no window, and here there is nothing else that it could be.
        if self.same > 0 && base.from == self.len() {
            return done(SyncDecision::Branch { from: base.from, at: base.at }, base, None);
        }
        // Where it is not known that the beginning is another, more of it may be the same.
        let is_sure =
            is_all || (has_end && self.log.get(base.at).is_some_and(|logged| logged.known.is_some()));
        let window = if self.same == 0 && is_sure { self.window() } else { None };
        if let Some((walk, at)) = window {
            let is_longer = walk.count > base.count || (walk.count == base.count && walk.count > 0);
            let replaces = self.replaces(&walk);
            if replaces || (is_longer && walk.at == end) {
                let from = walk.from;
                let decision =
                    if replaces { SyncDecision::Replace { from } } else { SyncDecision::Append { from } };
                return done(decision, walk, Some(at));
            }
            if is_all && walk.count > base.count {
                return done(SyncDecision::Branch { from: walk.from, at: walk.at }, walk, Some(at));
            }
        }
        if !is_all {
            return None;
        }
        let head = (self.same..self.len()).take_while(|&nth| self.is_system(nth)).count();
        if self.same == 0 && base.count == 0 && self.len() - head > 1 && !self.shares(head) {
            return done(SyncDecision::Other, base, None);
        }
        done(SyncDecision::Branch { from: base.from, at: base.at }, base, None)
    }

    fn is_system(&self, nth: usize) -> bool {
        self.given(nth).is_some_and(|given| given.is_system)
    }

    /// Leading messages of the system in the history, as far as it is read.
    fn systems(&self) -> usize {
        self.log.iter().take_while(|logged| logged.known.is_some_and(|known| known.is_system)).count()
    }

    /// What is ours of a message with this key.
    fn ours(&self, given: &KnownMessage) -> &[OwnMessage] {
        self.own.get(&given.key).map_or(&[], Vec::as_slice)
    }

    /// What the summaries that a given message may be stand for, the newest first.
    fn covers(&self, given: &KnownMessage) -> Vec<&[CoveredRange]> {
        let covers = self.ours(given).iter().rev().filter_map(|own| match own {
            OwnMessage::Summary(covers) => Some(covers.as_slice()),
            _ => None,
        });
        covers.collect()
    }

    /// Positions that summaries among the given messages stand for, where several of one text are there the `nth` of them, and
    /// with `lacks` those that the app need not have.
    fn gone(&self, nth: usize, lacks: bool) -> Vec<bool> {
        let mut gone: Vec<bool> = self.log.iter().map(|logged| lacks && logged.is_optional).collect();
        for given in self.given {
            let covers = self.covers(given);
            let Some(covers) = covers.get(nth).or(covers.last()) else { continue };
            for (gone, logged) in gone.iter_mut().zip(self.log) {
                *gone |= covers.iter().any(|cover| (cover.from..cover.to).contains(&logged.index));
            }
        }
        gone
    }

    /// How far the given messages go along with the history from message `from` and position `at` on.
    fn run(&self, from: usize, at: usize) -> CommonRun {
        let alike = self.given.iter().map(|given| self.covers(given).len()).max().unwrap_or(0);
        let lacks: &[bool] =
            if self.log.iter().any(|logged| logged.is_optional) { &[false, true] } else { &[false] };
        let mut best: Option<CommonRun> = None;
        for (nth, lacks) in (0..alike.max(1)).flat_map(|nth| lacks.iter().map(move |lacks| (nth, *lacks))) {
            let run = self.walk(from, at, &self.gone(nth, lacks));
            if run.at == self.log.len() {
                return run;
            }
            if best.as_ref().is_none_or(|best| run.from > best.from) {
                best = Some(run);
            }
        }
        best.unwrap_or_default()
    }

    /// Goes along from given message `from` and position `at` on, as far as they agree. Positions that
    /// are `gone` are passed over.
    fn walk(&self, mut from: usize, mut at: usize, gone: &[bool]) -> CommonRun {
        let mut walk = CommonRun::default();
        // Leading messages of the system are the system prompt, whatever it says by now.
        let mut leads = from == 0 && at == 0;
        // An app may have it elsewhere by now.
        let unsaid = if leads && !self.is_system(0) { self.systems() } else { 0 };
        let is_gone = |at: usize| at < unsaid || gone.get(at) == Some(&true);
        let may_lack = |at: usize| is_gone(at) || self.log.get(at).is_some_and(|logged| logged.is_optional);
        while let Some(given) = self.given(from) {
            let system = |at: usize| {
                self.log.get(at).and_then(|logged| logged.known).is_some_and(|known| known.is_system)
            };
            leads &= given.is_system;
            if leads && system(at) {
                walk.hits.push((from, at));
                (from, at) = (from + 1, at + 1);
                continue;
            }
            // The next position that must be there.
            let mut next = at;
            let found = loop {
                let Some(logged) = self.log.get(next) else { break false };
                let is_it = logged.known.is_some_and(|known| known.key == given.key)
                    || self.ours(given).contains(&OwnMessage::Part(logged.index));
                if is_it && !is_gone(next) {
                    break true;
                }
                if logged.is_erased && !may_lack(next) {
                    // The app may still have what was erased.
                    let behind = self.log.get(next + 1).and_then(|behind| behind.known);
                    if behind.is_none_or(|known| known.key != given.key) {
                        break true;
                    }
                } else if !may_lack(next) {
                    break false;
                }
                next += 1;
            };
            if found {
                let logged = self.log.get(next);
                let nth = from.checked_sub(self.same);
                let is_joined = nth.and_then(|nth| self.lived.get(nth)) == Some(&Lived::Joined);
                let is_whole = logged.is_some_and(|logged| {
                    !is_joined
                        && !logged.is_erased
                        && logged.known.is_some_and(|known| known.key == given.key)
                });
                if is_whole {
                    walk.hits.push((from, next));
                }
                at = next + 1;
            } else if self.ours(given).iter().all(|own| matches!(own, OwnMessage::Part(_))) {
                break;
            }
            walk.count += 1;
            from += 1;
        }
        while may_lack(at) {
            at += 1;
        }
        CommonRun { from, at, ..walk }
    }

    /// True when the next given message is another version of the last one of the history.
    fn replaces(&self, walk: &CommonRun) -> bool {
        let (Some(given), Some(last)) = (self.given(walk.from), self.log.get(walk.at)) else { return false };
        let id = last.known.and_then(|known| known.id);
        walk.at + 1 == self.log.len() && id.is_some() && id == given.id && self.is_unique(id)
    }

    /// True for an id that one given message has, and one of the history at most.
    fn is_unique(&self, id: Option<MessageKey>) -> bool {
        let ids = self.given.iter().filter(|given| given.id == id).count();
        let logged = self.log.iter().filter_map(|logged| logged.known);
        ids == 1 && logged.filter(|known| known.id == id).count() <= 1
    }

    /// The given head in the history, as an app hands it over that keeps the newest messages only: the longest overlap, with
    /// its position. One message alone says that only by its id.
    fn window(&self) -> Option<(CommonRun, usize)> {
        let head = (0..self.len()).take_while(|&nth| self.is_system(nth)).count();
        let given = self.given(head)?;
        let mut best: Option<(CommonRun, usize)> = None;
        for (at, logged) in self.log.iter().enumerate().skip(1) {
            let Some(known) = logged.known else { continue };
            let by_id = given.id.is_some() && known.id == given.id && self.is_unique(given.id);
            if known.key != given.key && !by_id {
                continue;
            }
            let walk = self.run(head, at);
            let counts = walk.count >= 2 || by_id;
            let ends = |walk: &CommonRun| walk.at == self.log.len();
            let is_better =
                best.as_ref().is_none_or(|(best, _)| (ends(&walk), walk.count) > (ends(best), best.count));
            if counts && is_better {
                best = Some((walk, at));
            }
        }
        let (mut walk, at) = best?;
        walk.hits.extend((0..head.min(self.systems())).map(|nth| (nth, nth)));
        Some((walk, at))
    }

    /// True when a given message behind the head is anywhere in the log.
    fn shares(&self, head: usize) -> bool {
        let logged: Vec<KnownMessage> = self.log.iter().filter_map(|logged| logged.known).collect();
        let keys: HashSet<MessageKey> = logged.iter().map(|known| known.key).collect();
        let ids: HashSet<MessageKey> = logged.iter().filter_map(|known| known.id).collect();
        self.given.iter().skip(head).any(|given| {
            keys.contains(&given.key)
                || self.own.contains_key(&given.key)
                || given.id.is_some_and(|id| ids.contains(&id))
        })
    }
}
