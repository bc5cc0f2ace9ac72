//! The handle on a session. Methods that take time return an [`Operation`].

use crate::convert::{bodies, settings, to_js};
use crate::error::{Thrown, thrown};
use crate::operation::Operation;
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session as CoreSession;
use context_compactor_core::wire::Format;
use js_sys::{Object, Reflect};
use serde::Serialize;
use wasm_bindgen::prelude::*;

/// A session.
#[wasm_bindgen]
pub struct Session {
    pub(crate) core: CoreSession,
}

impl Session {
    /// What was opened or begun, with a handle on it.
    pub(crate) fn opened<T: Serialize>(core: &CoreSession, opened: &T) -> Thrown<Object> {
        let object = Object::from(to_js(opened)?);
        let handle = JsValue::from(Session { core: core.clone() });
        Reflect::set(&object, &JsValue::from_str("handle"), &handle)?;
        Ok(object)
    }
}

#[wasm_bindgen]
impl Session {
    /// Opens or begins a session: `{ id, format?, messages, handle }`.
    /// `max_batch_ops` is the most that the store takes in one batch.
    pub fn open(given: JsValue, id: Option<String>, max_batch_ops: usize) -> Thrown<Operation> {
        let begin = CoreSession::open(settings(given)?, id, max_batch_ops);
        Ok(Operation::new(begin, |(core, opened)| Ok(Session::opened(core, opened)?.into())))
    }

    /// A handle on messages in a new store, in which what `state` refers to can be read.
    #[wasm_bindgen(js_name = recallCarried)]
    pub fn recall_carried(
        given: JsValue,
        bytes: &[u8],
        ends: &[u32],
        state: Option<String>,
        max_batch_ops: usize,
    ) -> Thrown<Operation> {
        let begin = CoreSession::recall_carried(settings(given)?, bodies(bytes, ends)?, state, max_batch_ops);
        Ok(Operation::new(begin, |core| Ok(JsValue::from(Session { core: core.clone() }))))
    }

    /// `{ places, format? }`.
    pub fn append(&self, bytes: &[u8], ends: &[u32]) -> Thrown<Operation> {
        Ok(Operation::new(self.core.append(bodies(bytes, ends)?), to_js))
    }

    /// `{ appended, recognized, replaced?, branchedAt?, alignedAt?, places, same, format, again? }`.
    pub fn sync(&self, known: usize, bytes: &[u8], ends: &[u32]) -> Thrown<Operation> {
        Ok(Operation::new(self.core.sync(known, bodies(bytes, ends)?), to_js))
    }

    /// `{ nth, kept, items, usage, edits, result?, putOff?, goal? }`; `fixed` are the system prompt and the tools as texts, `since`
    /// is the `nth` of the one whose items the caller has: the first `kept` of them stay.
    pub fn prepare(&self, overflow: bool, fixed: Vec<String>, since: f64) -> Operation {
        let trigger = if overflow { Trigger::Overflow } else { Trigger::Auto };
        Operation::new(self.core.prepare_since(trigger, fixed, since as u64), to_js)
    }

    /// The same beside `summariseLater`; `null` when that must be waited for, or has ended.
    #[wasm_bindgen(js_name = prepareBeside)]
    pub fn prepare_beside(&self, fixed: Vec<String>, since: f64) -> Operation {
        Operation::new(self.core.prepare_beside(fixed, since as u64), to_js)
    }

    /// `{ edits, result? }`: makes the summary that a prepare put off.
    #[wasm_bindgen(js_name = summariseLater)]
    pub fn summarise_later(&self) -> Operation {
        Operation::new(self.core.summarise_later(), to_js)
    }

    /// Nothing: counts the system prompt and the tools for `usage` and `plan`.
    #[wasm_bindgen(js_name = countFixed)]
    pub fn count_fixed(&self, fixed: Vec<String>) -> Operation {
        Operation::new(self.core.count_fixed(fixed), |()| Ok(JsValue::NULL))
    }

    /// `{ items, result }`.
    pub fn compact(&self, instructions: Option<String>) -> Operation {
        Operation::new(self.core.compact(instructions), to_js)
    }

    /// Nothing.
    pub fn rewind(&self, index: usize) -> Operation {
        Operation::new(self.core.rewind(index), |()| Ok(JsValue::NULL))
    }

    /// Nothing.
    pub fn erase(&self, index: usize, reason: String) -> Operation {
        Operation::new(self.core.erase(index, reason), |()| Ok(JsValue::NULL))
    }

    /// Which messages of the log are the history: `{ messages, behind: [[from, to]] }`.
    pub fn branch(&self) -> Thrown<JsValue> {
        to_js(&self.core.branch().map_err(thrown)?)
    }

    /// A session that begins from this one: `{ id, format?, messages, places, handle }`.
    pub fn fork(&self, id: Option<String>) -> Operation {
        Operation::new(self.core.fork(id), |(core, forked)| Ok(Session::opened(core, forked)?.into()))
    }

    /// The sessions that began from this one.
    pub fn children(&self) -> Operation {
        Operation::new(self.core.children(), to_js)
    }

    /// A plan.
    pub fn plan(&self) -> Operation {
        Operation::new(self.core.plan(), to_js)
    }

    /// A text.
    pub fn read(&self, reference: String, offset: usize, limit: Option<usize>) -> Operation {
        Operation::new(self.core.read(reference, offset, limit), to_js)
    }

    /// Nothing: sets the goal, given as JSON text.
    #[wasm_bindgen(js_name = setGoal)]
    pub fn set_goal(&self, json: String) -> Operation {
        Operation::new(self.core.set_goal(json), |()| Ok(JsValue::NULL))
    }

    /// The goal after the markers of a model's output.
    #[wasm_bindgen(js_name = applyMarkers)]
    pub fn apply_markers(&self, output: String) -> Operation {
        Operation::new(self.core.apply_markers(output), to_js)
    }

    /// The goal, or nothing.
    pub fn goal(&self) -> Thrown<JsValue> {
        match self.core.goal().map_err(thrown)? {
            Some(goal) => to_js(&goal),
            None => Ok(JsValue::UNDEFINED),
        }
    }

    /// `{ score, warn }`.
    pub fn reliability(&self) -> Thrown<JsValue> {
        to_js(&self.core.reliability().map_err(thrown)?)
    }

    /// Nothing: pins a message by its index.
    pub fn pin(&self, index: usize) -> Operation {
        Operation::new(self.core.pin(index), |()| Ok(JsValue::NULL))
    }

    /// Nothing: rejects the pin that is proposed for a message.
    #[wasm_bindgen(js_name = rejectPin)]
    pub fn reject_pin(&self, index: usize) -> Operation {
        Operation::new(self.core.reject_pin(index), |()| Ok(JsValue::NULL))
    }

    /// Pins that are proposed and not answered: `[{ index, constraints, tokens }]`.
    #[wasm_bindgen(js_name = pinProposals)]
    pub fn pin_proposals(&self) -> Thrown<JsValue> {
        to_js(&self.core.pin_proposals().map_err(thrown)?)
    }

    /// What every summary saved, as Markdown.
    #[wasm_bindgen(js_name = sessionLog)]
    pub fn session_log(&self) -> Thrown<String> {
        self.core.session_log().map_err(thrown)
    }

    /// `{ valid, tokens, limit, overage?, message?, suggestions? }`.
    pub fn validate(&self) -> Thrown<JsValue> {
        to_js(&self.core.validate().map_err(thrown)?)
    }

    /// The checkpoints of the context.
    pub fn checkpoints(&self) -> Thrown<JsValue> {
        to_js(&self.core.checkpoints().map_err(thrown)?)
    }

    /// The active context: `{ items, recent, tokenCount }`.
    pub fn active(&self) -> Thrown<JsValue> {
        to_js(&self.core.active().map_err(thrown)?)
    }

    /// Tokens that the next messages may take.
    #[wasm_bindgen(js_name = availableTokens)]
    pub fn available_tokens(&self) -> Thrown<f64> {
        Ok(self.core.available_tokens().map_err(thrown)? as f64)
    }

    /// The indices of the messages that left the context.
    #[wasm_bindgen(js_name = removeMessages)]
    pub fn remove_messages(&self, indices: &[u32]) -> Operation {
        let indices = indices.iter().map(|index| *index as usize).collect();
        Operation::new(self.core.remove_messages(indices), to_js)
    }

    /// The id of a snapshot that was taken now.
    pub fn snapshot(&self, purpose: &str) -> Thrown<Operation> {
        let purpose = SnapshotPurpose::named(purpose).map_err(thrown)?;
        Ok(Operation::new(self.core.snapshot(purpose), |id| Ok(JsValue::from_str(id))))
    }

    /// The snapshots, oldest first.
    pub fn snapshots(&self) -> Operation {
        Operation::new(self.core.snapshots(), to_js)
    }

    /// Nothing: goes back to a snapshot.
    pub fn restore(&self, id: String) -> Operation {
        Operation::new(self.core.restore(id), |()| Ok(JsValue::NULL))
    }

    /// `{ ok, problems }`.
    pub fn verify(&self) -> Operation {
        Operation::new(self.core.verify(), to_js)
    }

    /// `[{ ref, seq, snippet }]`, best first.
    pub fn search(&self, query: String, limit: usize) -> Operation {
        Operation::new(self.core.search(query, limit), to_js)
    }

    /// The recall tools: `{ format, definitions }`.
    pub fn tools(&self, format: Option<String>) -> Thrown<JsValue> {
        let format = format.as_deref().map(Format::named).transpose().map_err(thrown)?;
        to_js(&self.core.tools(format).map_err(thrown)?)
    }

    /// JSON text of the message that answers a model's call of a recall tool, which is JSON text too.
    pub fn answer(&self, call: String, format: &str) -> Thrown<Operation> {
        let format = Format::named(format).map_err(thrown)?;
        Ok(Operation::new(self.core.answer(call, format), |message| Ok(JsValue::from_str(message))))
    }

    /// Nothing.
    pub fn delete(&self) -> Operation {
        Operation::new(self.core.delete(), |()| Ok(JsValue::NULL))
    }

    /// Nothing: takes over what others wrote.
    #[wasm_bindgen(js_name = catchUp)]
    pub fn catch_up(&self) -> Operation {
        Operation::new(self.core.catch_up(), |()| Ok(JsValue::NULL))
    }

    /// May it not know of commit `ver` of the session whose rows are `sid`'s?
    #[wasm_bindgen(js_name = isNews)]
    pub fn is_news(&self, sid: &str, ver: f64) -> Thrown<bool> {
        self.core.is_news(sid, ver as u64).map_err(thrown)
    }

    /// Takes over what the provider counted for the last prompt, JSON text; false when that cannot be it.
    #[wasm_bindgen(js_name = recordUsage)]
    pub fn record_usage(&self, usage: &str, model: Option<String>) -> Thrown<bool> {
        self.core.record_usage(usage, model).map_err(thrown)
    }

    /// Nothing: stores what was recorded.
    #[wasm_bindgen(js_name = keepUsage)]
    pub fn keep_usage(&self) -> Operation {
        Operation::new(self.core.keep_usage(), |()| Ok(JsValue::NULL))
    }

    /// How full the context is.
    pub fn usage(&self) -> Thrown<JsValue> {
        to_js(&self.core.usage().map_err(thrown)?)
    }

    /// How full the context is, in characters.
    pub fn stats(&self) -> Thrown<JsValue> {
        to_js(&self.core.stats().map_err(thrown)?)
    }

    /// The context as a trajectory: JSON text, for actions are whatever the app handed over.
    pub fn trajectory(&self) -> Thrown<String> {
        Ok(self.core.trajectory().map_err(thrown)?.json())
    }

    /// The fate of every message.
    pub fn explain(&self) -> Thrown<JsValue> {
        to_js(&self.core.explain().map_err(thrown)?)
    }

    /// JSON text of a message of the app.
    pub fn body(&self, seq: f64) -> Thrown<Option<String>> {
        let body = self.core.body(seq as u64).map_err(thrown)?;
        Ok(body.map(|body| body.to_string()))
    }

    /// The same of all messages of the context that stand there verbatim: `[index, text][]`.
    pub fn bodies(&self) -> Thrown<JsValue> {
        to_js(&self.core.bodies().map_err(thrown)?)
    }

    /// Refuses every later call.
    pub fn close(&self) {
        self.core.close();
    }
}
