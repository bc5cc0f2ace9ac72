//! What is done to a session: every operation that writes, each after those before it.

use crate::conversation::{Body, assistant, exchange, user};
use crate::host::{Host, summary};
use crate::store::MemoryStore;
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::policy::{Settings, Trigger};
use context_compactor_core::session::transcript::{Export, Importer, Restore};
use context_compactor_core::session::{Opened, Session};
use context_compactor_core::wire::Format;
use context_compactor_core::{Code, Result};
use std::rc::Rc;

/// The session that faults happen to.
pub(super) const ID: &str = "the session";
/// What is begun from it.
pub(super) const FORKED: &str = "forked";
/// What is restored from an archive.
pub(super) const IMPORTED: &str = "imported";

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Opens the session.
    Open,
    /// Appends exchanges with large results.
    Append,
    /// Makes the context fit: offloads, and what else the preset does.
    Prepare,
    /// Takes a snapshot.
    Snapshot,
    /// Appends plain messages.
    Talk,
    /// Compacts with a summary.
    Compact,
    /// Hands over the whole history with new messages.
    Sync,
    /// Takes the compaction back.
    Undo,
    /// Sets the goal.
    Goal,
    /// Pins a message.
    Pin,
    /// Takes a message out of the context.
    Remove,
    /// Goes back to the snapshot.
    Restore,
    /// Goes back to before the last history was handed over.
    Rewind,
    /// Begins another session from it.
    Fork,
    /// Makes a session of an archive.
    Import,
    /// Deletes the session.
    Delete,
}

/// All of them, in an order in which each has something to do.
pub const STEPS: &[Step] = &[
    Step::Open,
    Step::Append,
    Step::Prepare,
    Step::Snapshot,
    Step::Talk,
    Step::Compact,
    Step::Sync,
    Step::Undo,
    Step::Goal,
    Step::Pin,
    Step::Remove,
    Step::Restore,
    Step::Rewind,
    Step::Fork,
    Step::Import,
    Step::Delete,
];

/// What another tab does meanwhile.
pub(super) const BESIDE: &[Step] = &[Step::Append, Step::Compact];

/// What the summariser writes.
pub(super) fn summary_of(attempt: u32) -> String {
    format!("## Current Status\nThe user asked about the parser and the tools answered. Attempt {attempt}.")
}

/// Runs steps.
#[derive(Clone)]
pub(super) struct Script {
    settings: Rc<Settings>,
    max_batch_ops: usize,
    archive: Rc<[u8]>,
}

fn words(what: &str, times: usize) -> String {
    format!("{what}: {}", "the parser keeps its state, 解析器 👩‍👩‍👧. ".repeat(times)).trim_end().to_string()
}

fn turn(nth: usize, times: usize) -> Vec<Body> {
    let mut bodies = vec![user(&words(&format!("question {nth}"), 2))];
    bodies.extend(exchange(
        Format::OpenaiChat,
        &format!("call_{nth}"),
        &words(&format!("result {nth}"), times),
    ));
    bodies.push(assistant(&words(&format!("answer {nth}"), 2)));
    bodies
}

/// What a step appends.
pub(super) fn said(step: Step) -> Vec<Body> {
    match step {
        Step::Append => (0..3).flat_map(|nth| turn(nth, 40)).collect(),
        Step::Talk => (10..16)
            .flat_map(|nth| {
                [
                    user(&words(&format!("question {nth}"), 12)),
                    assistant(&words(&format!("answer {nth}"), 12)),
                ]
            })
            .collect(),
        Step::Sync => turn(20, 40),
        _ => Vec::new(),
    }
}

/// All that was said when a step has ended, as an app would hand it over.
fn history(step: Step) -> Vec<Body> {
    let steps = [Step::Append, Step::Talk, Step::Sync];
    let until = steps.iter().position(|known| *known == step).unwrap_or(steps.len());
    steps.iter().take(until + 1).flat_map(|step| said(*step)).collect()
}

/// What another tab appends.
pub(super) fn aside() -> Vec<Body> {
    turn(30, 10)
}

/// What is appended when the fault is over.
pub(super) fn later() -> Vec<Body> {
    vec![user("Is all of it still there?"), assistant("It is.")]
}

impl Script {
    pub(super) fn new(settings: Rc<Settings>, max_batch_ops: usize) -> Self {
        let mut script = Script { settings, max_batch_ops, archive: Rc::from([]) };
        script.archive = script.archive().into();
        script
    }

    /// The archive of another session that was compacted.
    fn archive(&self) -> Vec<u8> {
        let mut host = Host::new(Rc::new(MemoryStore::default()), "archive");
        host.summarise = Box::new(|_, attempt| summary(&summary_of(attempt)));
        let (session, _) = self.opened(&mut host, "archived").expect("nothing goes wrong here");
        host.run(session.append((40..46).flat_map(|nth| turn(nth, 30)).collect())).expect("an append");
        host.run(session.prepare(Trigger::Auto, Vec::new())).expect("a prepare");
        host.run(session.compact(None)).expect("a compaction");
        let (mut bytes, mut next) = (Vec::new(), Some(Export::Begin));
        while let Some(at) = next {
            let (page, then) = host.run(session.export(at)).expect("an export");
            bytes.extend(page);
            next = then;
        }
        bytes
    }

    pub(super) fn opened(&self, host: &mut Host, id: &str) -> Result<(Session, Opened)> {
        host.run(Session::open(Rc::clone(&self.settings), Some(id.into()), self.max_batch_ops))
    }

    /// `None` when a fault ended the process.
    pub(super) fn open(&self, host: &mut Host, id: &str) -> Option<Result<Session>> {
        let open = Session::open(Rc::clone(&self.settings), Some(id.into()), self.max_batch_ops);
        host.try_run(open).map(|done| done.map(|(session, _)| session))
    }

    /// Runs a step. `None` when the process died in it, `false` when the step says that it changed nothing.
    pub(super) fn perform(
        &self,
        host: &mut Host,
        slot: &mut Option<Session>,
        step: Step,
    ) -> Option<Result<bool>> {
        if step == Step::Open {
            let opened = self.open(host, ID)?;
            return Some(opened.map(|session| {
                slot.replace(session);
                true
            }));
        }
        let session = slot.clone()?;
        let done = |result: Result<()>| result.map(|()| true);
        Some(match step {
            Step::Append | Step::Talk => host.try_run(session.append(said(step)))?.map(|_| true),
            Step::Prepare => {
                host.try_run(session.prepare(Trigger::Auto, Vec::new()))?.map(|done| !done.edits.is_empty())
            }
            Step::Compact => host.try_run(session.compact(None))?.map(|done| done.result.success),
            Step::Sync => {
                host.try_run(session.sync(0, history(step)))?.map(|done| done.branched_at.is_none())
            }
            // Again, after a crash behind it, there is nothing left.
            Step::Undo => match host.try_run(session.undo())? {
                Err(error) if error.code == Code::NotFound => Ok(false),
                undone => done(undone),
            },
            Step::Goal => {
                done(host.try_run(session.set_goal(r#"{"id":"g","description":"Ship the parser"}"#.into()))?)
            }
            Step::Pin => done(host.try_run(session.pin(0))?),
            Step::Remove => {
                let last = session.explain().map_or(0, |entries| entries.len().saturating_sub(1));
                host.try_run(session.remove_messages(vec![last]))?.map(|gone| !gone.is_empty())
            }
            Step::Snapshot => host.try_run(session.snapshot(SnapshotPurpose::Recovery))?.map(|_| true),
            Step::Restore => match host.try_run(session.snapshots())? {
                Ok(known) => match known.first() {
                    Some(snapshot) => done(host.try_run(session.restore(snapshot.id.clone()))?),
                    None => Ok(false),
                },
                Err(error) => Err(error),
            },
            Step::Rewind => {
                let end = session.explain().map_or(0, |entries| entries.len() - said(Step::Sync).len());
                done(host.try_run(session.rewind(end))?)
            }
            Step::Fork => host.try_run(session.fork(Some(FORKED.into())))?.map(|_| true),
            Step::Import => self.import(host)?,
            Step::Delete => done(host.try_run(session.delete())?),
            Step::Open => Ok(true),
        })
    }

    /// As the package does it: what fails is taken back.
    fn import(&self, host: &mut Host) -> Option<Result<bool>> {
        let open = Importer::open(
            Rc::clone(&self.settings),
            Some(IMPORTED.into()),
            Restore::Context,
            self.max_batch_ops,
        );
        let importer = match host.try_run(open)? {
            Ok(importer) => importer,
            Err(error) => return Some(Err(error)),
        };
        let mut fed = Ok(());
        for bytes in self.archive.chunks(4_000) {
            if fed.is_ok() {
                fed = host.try_run(importer.feed(bytes.to_vec()))?;
            }
        }
        let done = match fed {
            Ok(()) => host.try_run(importer.finish())?.map(|_| true),
            Err(error) => Err(error),
        };
        if done.is_err() {
            // The call throws what went wrong first.
            let _ = host.try_run(importer.abandon())?;
        }
        Some(done)
    }

    /// What another tab does meanwhile.
    pub(super) fn beside(&self, host: &mut Host, step: Step) -> Result<()> {
        let (session, _) = self.opened(host, ID)?;
        match step {
            Step::Append => host.run(session.append(aside())).map(|_| ()),
            _ => host.run(session.compact(None)).map(|_| ()),
        }
    }

    /// The step once more, in a process that opened the session anew. What the fault left of it is no obstacle.
    pub(super) fn again(&self, host: &mut Host, slot: &mut Option<Session>, step: Step) -> Result<()> {
        // An app that does not know whether its messages are there hands over its history.
        let again = match (step, &slot) {
            (Step::Append | Step::Talk, Some(session)) => {
                host.run(session.sync(0, history(step))).map(|done| done.branched_at.is_none())
            }
            _ => self.perform(host, slot, step).unwrap_or(Ok(true)),
        };
        match again {
            Ok(_) => {}
            // It had taken place.
            Err(error) if matches!(error.code, Code::Conflict | Code::InvalidOption | Code::Closed) => {}
            Err(error) => return Err(error),
        }
        let (session, _) = self.opened(host, ID)?;
        if step == Step::Delete {
            return Ok(());
        }
        host.run(session.append(later()))?;
        host.run(session.prepare(Trigger::Auto, Vec::new()))?;
        let compacted = host.run(session.compact(None))?;
        match compacted.result.error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
