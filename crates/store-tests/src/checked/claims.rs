//! What must hold of a session whatever its summariser writes, and whenever: messages that arrive meanwhile, calls that
//! are aborted, references and markers in texts that nobody vouches for.

use super::{Checked, summaries, text};
use crate::conversation::Body;
use crate::host::Host;
use crate::summariser::Refused;
use context_compactor_core::Code;
use context_compactor_core::checkpoint::Goal;
use context_compactor_core::compaction::CompactionResult;
use context_compactor_core::context::{Context, Item, Origin};
use context_compactor_core::session::audit::view_text;
use context_compactor_core::step::Effect;
use context_compactor_core::wire;
use serde_json::Value;
use std::collections::BTreeSet;
use std::rc::Rc;

/// How a reference to an offload begins.
const REFERENCE: &str = "off_";
/// Its characters behind that.
const REFERENCE_CHARS: usize = 26;
/// References of one session that are tried at most.
const MOST_REFERENCES: usize = 200;

impl Checked {
    /// Messages that arrive while a model works, one at each call.
    pub fn arrive(&mut self, bodies: &[Body]) {
        self.arrivals.borrow_mut().waiting.extend(bodies.iter().cloned());
        let (arrivals, session) = (Rc::clone(&self.arrivals), self.session.clone());
        let mut host = Host::new(Rc::clone(&self.memory) as _, &format!("from {}", self.given.len()));
        self.host.meanwhile = Box::new(move |effect| {
            if !matches!(effect, Effect::Summarize { .. }) {
                return;
            }
            let Some(body) = arrivals.borrow_mut().waiting.pop_front() else { return };
            host.run(session.append(vec![Rc::clone(&body)]))
                .expect("a session takes messages while a model works");
            arrivals.borrow_mut().arrived.push(body);
        });
    }

    /// Appends what no call of a model was there for.
    pub fn nothing_more_arrives(&mut self) -> Result<(), String> {
        let left: Vec<Body> = self.arrivals.borrow_mut().waiting.drain(..).collect();
        if left.is_empty() { Ok(()) } else { self.append(&left) }
    }

    /// Takes over what arrived; says how much that was.
    pub(super) fn arrived(&mut self) -> usize {
        let arrived = std::mem::take(&mut self.arrivals.borrow_mut().arrived);
        self.counts.add("messages that arrived meanwhile", arrived.len());
        let count = arrived.len();
        self.given.extend(arrived);
        count
    }

    /// An operation that was aborted: what no model wrote may have changed, and no summary where its only call of the model
    /// was the one that was aborted. `asked` calls were made before it.
    pub(super) fn aborted(&mut self, before: &Context, asked: usize) -> Result<(), String> {
        self.counts.add("calls that were aborted", 1);
        self.changed(before, false)?;
        if self.host.seen.requests.len() == asked + 1 && summaries(before) != summaries(&self.context()?) {
            return Err("a call was aborted, and left a summary".into());
        }
        Ok(())
    }

    /// A summary stands in the context as it was written.
    pub(super) fn says(&self, result: &CompactionResult) -> Result<(), String> {
        let Some(summary) = &result.summary else { return Ok(()) };
        for Item { origin, body, .. } in self.context()?.items() {
            if matches!(origin, Origin::Summary { .. }) {
                let value = wire::parse(0, body).map_err(text)?;
                let message = self.format.wire().read(0, &value).map_err(text)?;
                if message.text().contains(summary.as_str()) {
                    return Ok(());
                }
            }
        }
        Err(format!("no message of the context says the summary as it was written: {summary}"))
    }

    /// Nothing that was refused stands in the context.
    pub fn without(&self, refused: &Refused) -> Result<(), String> {
        let context = self.context()?;
        let bodies: Vec<&str> =
            context.items().iter().filter(|item| is_ours(item)).map(|item| &*item.body).collect();
        let stands = |answer: &str| {
            let json = Value::from(answer).to_string();
            let json = json.trim_matches('"');
            bodies.iter().any(|body| body.contains(json))
        };
        match refused.find(stands) {
            Some(answer) => {
                let start: String = answer.chars().take(200).collect();
                Err(format!("the context holds an answer that was of no use: {start}"))
            }
            None => Ok(()),
        }
    }

    /// No model has written any view.
    pub fn no_model_wrote(&self) -> Result<(), String> {
        for (key, value) in self.host.seen.commits.iter().flat_map(|batch| &batch.puts) {
            if key.to_string().starts_with("views/") {
                let view: Value =
                    serde_json::from_slice(&view_text(value)).map_err(|error| error.to_string())?;
                if view["cause"]["model"].is_string() {
                    return Err(format!("a model wrote {key}, and no answer of it was a summary"));
                }
            }
        }
        Ok(())
    }

    /// What the session works for.
    pub fn goal(&self) -> Result<Option<Goal>, String> {
        self.session.goal().map_err(text)
    }

    /// What looks like a reference, in the log, in the context or among `others`, is one exactly where this session issued
    /// it: put a text into its store under that name.
    pub fn references(&mut self, others: &[&str]) -> Result<(), String> {
        let context = self.context()?;
        let bodies = context.items().iter().map(|item| &*item.body);
        let texts = bodies.chain(self.given.iter().map(|body| &**body)).chain(others.iter().copied());
        let claimed: BTreeSet<String> = texts.flat_map(references).collect();
        let issued: BTreeSet<String> =
            self.memory.rows().iter().flat_map(|(key, _)| references(&key.to_string())).collect();
        for reference in claimed.union(&issued).take(MOST_REFERENCES) {
            match (
                self.host.run(self.session.read(reference.clone(), 0, Some(1))),
                issued.contains(reference),
            ) {
                (Ok(_), true) => self.counts.add("references that were issued", 1),
                (Err(error), false) if error.code == Code::NotFound => {
                    self.counts.add("references that were forged", 1)
                }
                (Ok(_), false) => return Err(format!("{reference} was never issued, and can be read")),
                (Err(error), _) => return Err(format!("{reference}: {}", text(error))),
            }
        }
        Ok(())
    }

    /// Opened by someone else, it is the same session.
    pub fn reopened(&self) -> Result<(), String> {
        let other =
            Checked::over("another host", self.format, Rc::clone(&self.settings), Rc::clone(&self.memory))?;
        if other.context()?.items() != self.context()?.items() {
            return Err("opened again, the context is another one".into());
        }
        Ok(())
    }
}

/// Not a message as the app gave it.
fn is_ours(item: &Item) -> bool {
    !matches!(item.origin, Origin::Message(_))
}

/// What looks like a reference.
fn references(text: &str) -> Vec<String> {
    let is_of_id = |byte: u8| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte);
    let starts = text.match_indices(REFERENCE);
    let found = starts.filter_map(|(at, _)| {
        let end = at + REFERENCE.len() + REFERENCE_CHARS;
        let reference = text.get(at..end)?;
        reference.bytes().skip(REFERENCE.len()).all(is_of_id).then(|| reference.to_owned())
    });
    found.collect()
}
