//! A session over a store in memory that is checked after every call: what is kept is the app's to the letter, what is
//! edited is edited nowhere else, every message has its one fate, what was valid stays valid.

mod claims;
mod edits;

use crate::conversation::Body;
use crate::counts::Counts;
use crate::host::summary;
use crate::{Host, MemoryStore};
use context_compactor_core::compaction::CompactionResult;
use context_compactor_core::context::{Context, Fate, Item, LedgerEntry, Origin, conserve};
use context_compactor_core::message::Role;
use context_compactor_core::policy::{Rung, Settings, Trigger};
use context_compactor_core::session::audit::{audit, look};
use context_compactor_core::session::{OutItem, Session};
use context_compactor_core::wire::{self, Format, Unbound};
use context_compactor_core::{Code, Error};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// The summary that the scripted summariser writes when it is not told otherwise.
pub const SUMMARY: &str = "## Current Status\nThe user asked about the parser and the tools answered.";

/// Tokens that the shortest summary may take with its frame.
const LEAST_SUMMARY: usize = 200;

/// The app's name for the session.
const ID: &str = "checked";

/// Options of the public API, read.
///
/// # Panics
///
/// When they are refused.
pub fn settings(options: &Value) -> Rc<Settings> {
    let text = options.to_string();
    let value = serde_json::from_str(&text).expect("options are JSON");
    Rc::new(Settings::read(&value).expect("options are accepted"))
}

/// How many of the provider's rules (not strict) a history breaks.
pub fn problems(format: Format, bodies: &[Body]) -> Result<Vec<wire::Problem>, String> {
    let values =
        bodies.iter().map(|body| wire::parse(0, body)).collect::<Result<Vec<_>, _>>().map_err(text)?;
    Ok(format.rules().validate(&values, false))
}

/// The least that an overflow says there can be.
fn floor_of(error: &Error) -> Option<usize> {
    let (_, rest) = error.message.split_once("cannot go below ")?;
    rest.split(' ').next()?.parse().ok()
}

fn valid(format: Format, bodies: &[Body], what: &str) -> Result<(), String> {
    match problems(format, bodies)?.first() {
        Some(problem) => Err(format!(
            "{what} breaks {} at {}: {}\n{}",
            problem.rule,
            problem.index,
            problem.message,
            bodies.iter().map(|body| format!("  {body}")).collect::<Vec<_>>().join("\n")
        )),
        None => Ok(()),
    }
}

fn text(error: Error) -> String {
    format!("{}: {error}", error.code.as_str())
}

/// A session, and what it was given.
pub struct Checked {
    format: Format,
    settings: Rc<Settings>,
    memory: Rc<MemoryStore>,
    /// Performs what the engine asks for.
    pub host: Host,
    session: Session,
    given: Vec<Body>,
    arrivals: Rc<RefCell<Arrivals>>,
    /// What happened so far.
    pub counts: Counts,
}

/// Messages that are appended while a model works, one at each call.
#[derive(Default)]
struct Arrivals {
    waiting: VecDeque<Body>,
    arrived: Vec<Body>,
}

impl Checked {
    /// A session with nothing in it. The summariser answers [`SUMMARY`].
    pub fn open(format: Format, options: &Value) -> Result<Checked, String> {
        Checked::over("host", format, settings(options), Rc::default())
    }

    /// The session of a store, for a host with a name of its own.
    fn over(
        host: &str,
        format: Format,
        settings: Rc<Settings>,
        memory: Rc<MemoryStore>,
    ) -> Result<Checked, String> {
        let mut host = Host::new(Rc::clone(&memory) as _, host);
        host.summarise = Box::new(|_, _| summary(SUMMARY));
        let opened = host.run(Session::open(Rc::clone(&settings), Some(ID.into()), 10_000));
        let (session, _) = opened.map_err(text)?;
        let (given, arrivals, counts) = (Vec::new(), Rc::default(), Counts::default());
        Ok(Checked { format, settings, memory, host, session, given, arrivals, counts })
    }

    /// Appends messages.
    pub fn append(&mut self, bodies: &[Body]) -> Result<(), String> {
        self.host.run(self.session.append(bodies.to_vec())).map_err(text)?;
        self.given.extend(bodies.iter().cloned());
        Ok(())
    }

    /// Makes the context fit and checks what is to be sent. A context that nothing could make fit is no fault.
    pub fn prepare(&mut self, trigger: Trigger) -> Result<(), String> {
        let before = self.context()?;
        let asked = self.host.seen.requests.len();
        let prepared = self.host.run(self.session.prepare(trigger, Vec::new()));
        self.arrived();
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) if error.code == Code::ContextOverflow => {
                self.changed(&before, false)?;
                return self.overflow(&error, before.totals().tokens);
            }
            Err(error) if error.code == Code::Aborted => return self.aborted(&before, asked),
            // An empty prompt is none; what stands in the context is told as the reason.
            Err(error) if error.code == Code::InvalidMessage => {
                self.changed(&before, true)?;
                self.counts.add("contexts of which nothing can be sent", 1);
                let broken = problems(self.format, &bodies_of(&self.context()?))?;
                return if broken.is_empty() { Err(text(error)) } else { Ok(()) };
            }
            Err(error) => return Err(text(error)),
        };
        self.counts.add("prepares", 1);
        if prepared.usage.used_tokens > self.settings.hard_limit {
            return Err(format!("a prompt of {} tokens was prepared", prepared.usage.used_tokens));
        }
        for edit in &prepared.edits {
            let results = edit.offload.as_ref().map_or(0, |report| report.offloaded_count);
            self.counts.add("results offloaded", results);
            self.counts.add(edit.kind, 1);
        }
        if let Some(result) = &prepared.result {
            self.counts.add(outcome(result), 1);
            self.says(result)?;
        }
        self.changed(&before, true)?;
        let sent = self.bodies(&prepared.items)?;
        if !sent.is_empty() {
            valid(self.format, &sent, "what is sent")?;
        }
        let fates = self.session.explain().map_err(text)?;
        self.fates(&fates, &prepared.items)
    }

    /// Compacts, whatever the size. A failed summary leaves everything as it was.
    pub fn compact(&mut self) -> Result<(), String> {
        let before = self.context()?;
        let was_valid = problems(self.format, &bodies_of(&before))?.is_empty();
        let asked = self.host.seen.requests.len();
        let compacted = self.host.run(self.session.compact(None));
        let quiet = self.arrived() == 0;
        let compacted = match compacted {
            Ok(compacted) => compacted,
            Err(error) if error.code == Code::Aborted => return self.aborted(&before, asked),
            Err(error) => return Err(text(error)),
        };
        let result = &compacted.result;
        self.counts.add(outcome(result), 1);
        self.says(result)?;
        let after = self.context()?;
        if quiet && result.applied_edits.is_empty() && before.items() != after.items() {
            return Err("nothing was done, and the context is another one".into());
        }
        if result.summary.is_some() && result.current_tokens >= result.previous_tokens {
            return Err("a compaction did not make the context smaller".into());
        }
        self.changed(&before, result.summary.is_some())?;
        let out = self.bodies(&compacted.items)?;
        if was_valid && !out.is_empty() {
            valid(self.format, &out, "the compacted context")?;
        }
        self.fates(&result.ledger.entries(), &compacted.items)
    }

    /// What the store holds is what the session holds, and every offload in it is the text of its result (`audit`).
    pub fn stored(&mut self) -> Result<(), String> {
        let stored = audit(ID, &self.memory.rows()).map_err(text)?;
        if !stored.messages.iter().map(String::as_str).eq(self.given.iter().map(|body| &**body)) {
            return Err("the log is not what was appended".into());
        }
        let context = self.context()?;
        let held = context.items().iter().map(|item| (&item.origin, &*item.body));
        if !held.eq(stored.context.iter().map(|(origin, body)| (origin, body.as_str()))) {
            return Err("the context in memory is not the one that is stored".into());
        }
        for entry in self.session.explain().map_err(text)? {
            let Some(reference) = entry.reference else { continue };
            let found = self.host.run(self.session.read(reference, 0, None)).map_err(text)?;
            let value = wire::parse(0, &self.given[entry.index]).map_err(text)?;
            let message = self.format.wire().read(0, &value).map_err(text)?;
            let is_input = || message.calls().any(|call| call.arguments == found);
            let is_text = || message.texts().any(|text| text == found);
            if !message.results().any(|result| result.text == found) && !is_input() && !is_text() {
                return Err(format!("the offload of message {} is no text of it", entry.index));
            }
            return Ok(());
        }
        Ok(())
    }

    /// The context as it is in memory.
    pub fn context(&self) -> Result<Context, String> {
        look(&self.session).map(|seen| seen.context).map_err(text)
    }

    /// An overflow is excused where the session can prove it, where the summary failed, and where the next call gets
    /// further; and where a repair had to add something.
    fn overflow(&mut self, error: &Error, tokens: usize) -> Result<(), String> {
        let plan = self.host.run(self.session.plan()).map_err(text)?;
        let what = if plan.proof.is_some() {
            "overflows that were proven"
        } else if plan.floor + LEAST_SUMMARY > self.settings.hard_limit {
            "overflows by what the shortest summary takes"
        } else if error.message.contains("the summary failed")
            && (!self.settings.rungs.contains(&Rung::Rollover)
                || floor_of(error).is_some_and(|floor| floor + LEAST_SUMMARY > self.settings.hard_limit))
        {
            "overflows after a failed summary"
        } else if !self.settings.rungs.contains(&Rung::Summarise) {
            "overflows of a preset that removes nothing"
        } else if error.message.contains("is mended") {
            "overflows after a repair"
        } else if plan.will_compact && plan.tokens < tokens {
            "overflows with another summary to go"
        } else {
            return Err(format!("it could have been made to fit: {error}"));
        };
        self.counts.add(what, 1);
        Ok(())
    }

    /// The messages that an operation hands out. The app's own are those that it gave.
    fn bodies(&self, items: &[OutItem]) -> Result<Vec<Body>, String> {
        let mut last = None;
        let mut bodies = Vec::with_capacity(items.len());
        for item in items {
            match (item.seq, item.index, &item.body) {
                (Some(seq), Some(index), None) => {
                    let body = self.session.body(seq).map_err(text)?;
                    if body.as_ref() != self.given.get(index) {
                        return Err(format!("message {index} was kept, and is not as it was given"));
                    }
                    // Words of the app may stand behind a summary, where the user must begin.
                    if self.role(index)? != Role::System
                        && last.replace(index).is_some_and(|last| last >= index)
                    {
                        return Err(format!("message {index} is out of order"));
                    }
                    bodies.extend(body);
                }
                (None, None, Some(body)) => bodies.push(Rc::clone(body)),
                other => return Err(format!("neither a message of the app nor one of ours: {other:?}")),
            }
        }
        Ok(bodies)
    }

    fn role(&self, index: usize) -> Result<Role, String> {
        let value = wire::parse(index, &self.given[index]).map_err(text)?;
        self.format.wire().read(index, &value).map(|message| message.role).map_err(text)
    }

    /// Every message has one fate, in order, and what is handed out agrees with it.
    fn fates(&self, fates: &[LedgerEntry], items: &[OutItem]) -> Result<(), String> {
        if !fates.iter().map(|entry| entry.index).eq(0..self.given.len()) {
            return Err("the ledger does not have every message once".into());
        }
        let sent: BTreeSet<usize> = items.iter().filter_map(|item| item.index).collect();
        let ours: Vec<&str> = items.iter().filter_map(|item| item.body.as_deref()).collect();
        // A model that cannot read a reference is told that something is not there, where the preset's texts are its own.
        let is_named = !self.settings.preset.stubs || self.settings.recall == Some(true);
        let stands = |body: &str, reference: &str| match is_named {
            true => body.contains(reference),
            false => ["left out", "that is whole"].iter().any(|told| body.contains(told)),
        };
        for LedgerEntry { index, fate, reference, checkpoint, quoted, .. } in fates {
            let agrees = match fate {
                Fate::Verbatim if *quoted => {
                    // JSON inside of JSON text.
                    let fence = format!("<message index=\\\"{index}\\\" role=");
                    !sent.contains(index) && ours.iter().any(|body| body.contains(&fence))
                }
                Fate::Verbatim => sent.contains(index),
                Fate::Offloaded => {
                    let reference = reference.as_deref().unwrap_or("none");
                    !sent.contains(index) && ours.iter().any(|body| stands(body, reference))
                }
                Fate::Summarised => !sent.contains(index) && checkpoint.is_some(),
                Fate::Reduced | Fate::Dropped => !sent.contains(index),
            };
            if !agrees {
                return Err(format!("message {index} is not {fate:?} in what is handed out"));
            }
        }
        Ok(())
    }

    /// What must hold of a context that was `before` until a call ended.
    fn changed(&mut self, before: &Context, handed_out: bool) -> Result<(), String> {
        let after = self.context()?;
        conserve(&after, self.given.len()).map_err(text)?;
        let mut summarised = BTreeSet::new();
        for Item { origin, body, .. } in after.items() {
            match origin {
                Origin::Message(place) if self.given.get(place.index) != Some(body) => {
                    return Err(format!("message {} is in the context, not as it was given", place.index));
                }
                Origin::Edited { place, offloads, reasoning_removed } => {
                    edits::check(self.format, &self.given[place.index], body, offloads, *reasoning_removed)
                        .map_err(|what| format!("message {} was edited: {what}", place.index))?;
                }
                Origin::Summary { covers, .. } => {
                    summarised.extend(covers.iter().flat_map(|cover| cover.from..cover.to));
                }
                _ => {}
            }
        }
        self.opaque(&summarised)?;
        self.bound(before, &after, handed_out)
    }

    /// What nobody but the provider can read is in no summary: its own compaction.
    fn opaque(&self, summarised: &BTreeSet<usize>) -> Result<(), String> {
        for &index in summarised {
            let value = wire::parse(index, &self.given[index]).map_err(text)?;
            if self.format.wire().read(index, &value).map_err(text)?.has_compaction() {
                return Err(format!("message {index} is the provider's compaction, and was summarised"));
            }
        }
        Ok(())
    }

    /// Behind the first change nothing is left of the reasoning that is bound to what stood before it (`AN8`).
    fn bound(&self, before: &Context, after: &Context, handed_out: bool) -> Result<(), String> {
        let same = |(old, new): &(&Item, &Item)| (&old.origin, &old.body) == (&new.origin, &new.body);
        let first = before.items().iter().zip(after.items()).take_while(same).count();
        if first == before.items().len() {
            return Ok(());
        }
        let old = before.items().get(first).and_then(|item| item.origin.place());
        // What arrived meanwhile is dealt with by the next prepare, when this call handed nothing out.
        let judged = if handed_out { self.given.len() } else { messages_of(before) };
        for (at, item) in after.items().iter().enumerate().skip(first) {
            let Some(place) = item.origin.place().filter(|place| place.index < judged) else { continue };
            // Before the first edited message nothing changed.
            if at == first && old == Some(place) {
                continue;
            }
            let value = wire::parse(place.index, &item.body).map_err(text)?;
            if matches!(self.format.rules().without_bound_reasoning(&value), Unbound::Changed(_)) {
                return Err(format!(
                    "message {} kept reasoning that is bound to what was changed",
                    place.index
                ));
            }
        }
        Ok(())
    }
}

/// Compacts a history that is handed over whole and stores nothing; checked as a session is.
pub fn compact_once(format: Format, options: &Value, bodies: &[Body]) -> Result<Counts, String> {
    let mut host = Host::new(Rc::new(MemoryStore::default()), "host");
    host.summarise = Box::new(|_, _| summary(SUMMARY));
    let compacted = host.run(Session::compact_once(settings(options), bodies.to_vec())).map_err(text)?;
    let result = &compacted.result;
    let mut counts = Counts::default();
    counts.add(outcome(result), 1);
    let own = |item: &OutItem| item.index.and_then(|index| bodies.get(index)).or(item.body.as_ref()).cloned();
    let after: Option<Vec<Body>> = compacted.items.iter().map(own).collect();
    let after = after.ok_or("a message of nobody")?;
    if !result.ledger.entries().iter().map(|entry| entry.index).eq(0..bodies.len()) {
        return Err("the ledger does not have every message once".into());
    }
    if result.applied_edits.is_empty() && after != bodies {
        return Err("nothing was done, and the history is another one".into());
    }
    if result.summary.is_some() && result.current_tokens >= result.previous_tokens {
        return Err("a compaction did not make the history smaller".into());
    }
    if problems(format, bodies)?.is_empty() {
        valid(format, &after, "the compacted history")?;
    }
    Ok(counts)
}

/// What a compaction came to.
fn outcome(result: &CompactionResult) -> &'static str {
    match (result.summary.is_some(), result.error.is_some()) {
        (true, _) => "compactions",
        (false, false) => "with nothing to compact",
        (false, true) => "summaries refused",
    }
}

fn summaries(context: &Context) -> Vec<Item> {
    let is_summary = |item: &&Item| matches!(item.origin, Origin::Summary { .. });
    context.items().iter().filter(is_summary).cloned().collect()
}

/// Messages of the app that a context stands for.
fn messages_of(context: &Context) -> usize {
    let end = |item: &Item| match &item.origin {
        Origin::Summary { covers, .. } => covers.iter().map(|cover| cover.to).max(),
        origin => origin.place().map(|place| place.index + 1),
    };
    context.items().iter().filter_map(end).max().unwrap_or_default()
}

fn bodies_of(context: &Context) -> Vec<Body> {
    context.items().iter().map(|item| Rc::clone(&item.body)).collect()
}
