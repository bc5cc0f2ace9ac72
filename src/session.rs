//! The handle on a session. Methods that take time return an [`Operation`].

use crate::convert::{bodies, settings, to_js};
use crate::error::{Thrown, thrown};
use crate::operation::{Begun, Operation};
use crate::stages::{self, Compact, Rest};
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

    /// An operation of stage `compact`.
    fn of_compact(&self, begin: impl FnOnce(&Compact, &CoreSession) -> Operation + 'static) -> Begun {
        let core = self.core.clone();
        Operation::of_compact(move |stage| begin(stage, &core))
    }

    /// An operation of stage `rest`.
    pub(crate) fn of_rest(&self, begin: impl FnOnce(&Rest, &CoreSession) -> Operation + 'static) -> Begun {
        let core = self.core.clone();
        Operation::of_rest(move |stage| begin(stage, &core))
    }
}

#[wasm_bindgen]
impl Session {
    /// Opens or begins a session: `{ id, format?, messages, handle }`.
    /// `max_batch_ops` is the most that the store takes in one batch.
    pub fn open(given: JsValue, id: Option<String>, max_batch_ops: usize) -> Thrown<Begun> {
        let begin = CoreSession::open(settings(given)?, id, max_batch_ops);
        Ok(Operation::new(begin, |(core, opened)| Ok(Session::opened(core, opened)?.into())).begin())
    }

    /// A handle on messages in a new store, in which what `state` refers to can be read.
    #[wasm_bindgen(js_name = recallCarried)]
    pub fn recall_carried(
        given: JsValue,
        bytes: Vec<u8>,
        ends: &[u32],
        state: Option<String>,
        max_batch_ops: usize,
    ) -> Thrown<Begun> {
        let (settings, bodies) = (settings(given)?, bodies(bytes, ends)?);
        Ok(Operation::of_rest(move |stage| (stage.recall_carried)(settings, bodies, state, max_batch_ops)))
    }

    /// `{ places, format? }`.
    pub fn append(&self, bytes: Vec<u8>, ends: &[u32]) -> Thrown<Begun> {
        Ok(Operation::new(self.core.append(bodies(bytes, ends)?), to_js).begin())
    }

    /// `{ appended, recognized, replaced?, branchedAt?, alignedAt?, places, same, format, again? }`.
    pub fn sync(&self, known: usize, bytes: Vec<u8>, ends: &[u32]) -> Thrown<Begun> {
        Ok(Operation::new(self.core.sync(known, bodies(bytes, ends)?), to_js).begin())
    }

    /// `{ nth, kept, items, usage, edits, result?, putOff?, goal? }`; `fixed` are the system prompt and the tools as texts, `since`
    /// is the `nth` of the one whose items the caller has: the first `kept` of them stay.
    pub fn prepare(&self, overflow: bool, fixed: Vec<String>, since: f64) -> Begun {
        let trigger = if overflow { Trigger::Overflow } else { Trigger::Auto };
        Operation::new(self.core.prepare_since(trigger, fixed, since as u64), to_js).begin()
    }

    /// `append`, then `prepare` where that did not fail: the effect `appended` is between the two.
    #[wasm_bindgen(js_name = appendAndPrepare)]
    pub fn append_and_prepare(
        &self,
        bytes: Vec<u8>,
        ends: &[u32],
        overflow: bool,
        since: f64,
    ) -> Thrown<Begun> {
        let trigger = if overflow { Trigger::Overflow } else { Trigger::Auto };
        let bodies = bodies(bytes, ends)?;
        Ok(Operation::new(self.core.append_and_prepare(bodies, trigger, since as u64), to_js).begin())
    }

    /// The same beside `summariseLater`; `null` when that must be waited for, or has ended.
    #[wasm_bindgen(js_name = prepareBeside)]
    pub fn prepare_beside(&self, fixed: Vec<String>, since: f64) -> Begun {
        Operation::new(self.core.prepare_beside(fixed, since as u64), to_js).begin()
    }

    /// `{ edits, result? }`: makes the summary that a prepare put off.
    #[wasm_bindgen(js_name = summariseLater)]
    pub fn summarise_later(&self) -> Begun {
        self.of_compact(|stage, core| (stage.summarise_later)(core))
    }

    /// Nothing: counts the system prompt and the tools for `usage` and `plan`.
    #[wasm_bindgen(js_name = countFixed)]
    pub fn count_fixed(&self, fixed: Vec<String>) -> Begun {
        Operation::new(self.core.count_fixed(fixed), |()| Ok(JsValue::NULL)).begin()
    }

    /// `{ items, result }`.
    pub fn compact(&self, instructions: Option<String>) -> Begun {
        self.of_compact(|stage, core| (stage.compact)(core, instructions))
    }

    /// Nothing.
    pub fn rewind(&self, index: usize) -> Begun {
        self.of_rest(move |stage, core| (stage.rewind)(core, index))
    }

    /// Nothing.
    pub fn erase(&self, index: usize, reason: String) -> Begun {
        self.of_rest(move |stage, core| (stage.erase)(core, index, reason))
    }

    /// Which messages of the log are the history: `{ messages, behind: [[from, to]] }`.
    pub fn branch(&self) -> Thrown<JsValue> {
        to_js(&self.core.branch().map_err(thrown)?)
    }

    /// A session that begins from this one: `{ id, format?, messages, places, handle }`.
    pub fn fork(&self, id: Option<String>) -> Begun {
        self.of_rest(|stage, core| (stage.fork)(core, id))
    }

    /// The sessions that began from this one.
    pub fn children(&self) -> Begun {
        self.of_rest(|stage, core| (stage.children)(core))
    }

    /// A plan.
    pub fn plan(&self) -> Begun {
        self.of_compact(|stage, core| (stage.plan)(core))
    }

    /// A text.
    pub fn read(&self, reference: String, offset: usize, limit: Option<usize>) -> Begun {
        self.of_rest(move |stage, core| (stage.read)(core, reference, offset, limit))
    }

    /// Nothing: sets the goal, given as JSON text.
    #[wasm_bindgen(js_name = setGoal)]
    pub fn set_goal(&self, json: String) -> Begun {
        self.of_rest(move |stage, core| (stage.set_goal)(core, json))
    }

    /// The goal after the markers of a model's output.
    #[wasm_bindgen(js_name = applyMarkers)]
    pub fn apply_markers(&self, output: String) -> Begun {
        self.of_rest(move |stage, core| (stage.apply_markers)(core, output))
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
    pub fn pin(&self, index: usize) -> Begun {
        self.of_rest(move |stage, core| (stage.pin)(core, index))
    }

    /// Nothing: rejects the pin that is proposed for a message.
    #[wasm_bindgen(js_name = rejectPin)]
    pub fn reject_pin(&self, index: usize) -> Begun {
        self.of_rest(move |stage, core| (stage.reject_pin)(core, index))
    }

    /// Pins that are proposed and not answered: `[{ index, constraints, tokens }]`; with a position of the log, those of
    /// messages from there on. Stage `compact` is to be loaded.
    #[wasm_bindgen(js_name = pinProposals)]
    pub fn pin_proposals(&self, since: Option<f64>) -> Thrown<JsValue> {
        (stages::compact().pin_proposals)(&self.core, since.map(|seq| seq as u64))
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
    pub fn remove_messages(&self, indices: &[u32]) -> Begun {
        let indices = indices.iter().map(|index| *index as usize).collect();
        self.of_rest(|stage, core| (stage.remove_messages)(core, indices))
    }

    /// The id of a snapshot that was taken now.
    pub fn snapshot(&self, purpose: &str) -> Thrown<Begun> {
        let purpose = SnapshotPurpose::named(purpose).map_err(thrown)?;
        Ok(self.of_rest(move |stage, core| (stage.snapshot)(core, purpose)))
    }

    /// The snapshots, oldest first.
    pub fn snapshots(&self) -> Begun {
        self.of_rest(|stage, core| (stage.snapshots)(core))
    }

    /// Nothing: goes back to a snapshot.
    pub fn restore(&self, id: String) -> Begun {
        self.of_rest(|stage, core| (stage.restore)(core, id))
    }

    /// What `compact` would do now.
    pub fn preview(&self) -> Begun {
        self.of_compact(|stage, core| (stage.preview)(core))
    }

    /// Nothing: takes the last compaction back.
    pub fn undo(&self) -> Begun {
        self.of_rest(|stage, core| (stage.undo)(core))
    }

    /// `{ ok, problems }`.
    pub fn verify(&self) -> Begun {
        self.of_rest(|stage, core| (stage.verify)(core))
    }

    /// `[{ ref, seq, snippet }]`, best first.
    pub fn search(&self, query: String, limit: usize) -> Begun {
        self.of_rest(move |stage, core| (stage.search)(core, query, limit))
    }

    /// What a checkpoint replaces: `[{ kind, … }]`.
    pub fn expand(&self, checkpoint: String) -> Begun {
        self.of_rest(move |stage, core| (stage.expand)(core, checkpoint))
    }

    /// The recall tools: `{ format, definitions }`.
    pub fn tools(&self, format: Option<String>) -> Thrown<JsValue> {
        let format = format.as_deref().map(Format::named).transpose().map_err(thrown)?;
        to_js(&self.core.tools(format).map_err(thrown)?)
    }

    /// JSON text of the message that answers a model's call of a recall tool, which is JSON text too.
    pub fn answer(&self, call: String, format: &str) -> Thrown<Begun> {
        let format = Format::named(format).map_err(thrown)?;
        Ok(self.of_rest(move |stage, core| (stage.answer)(core, call, format)))
    }

    /// Nothing.
    pub fn delete(&self) -> Begun {
        self.of_rest(|stage, core| (stage.delete)(core))
    }

    /// Nothing: takes over what others wrote.
    #[wasm_bindgen(js_name = catchUp)]
    pub fn catch_up(&self) -> Begun {
        Operation::new(self.core.catch_up(), |()| Ok(JsValue::NULL)).begin()
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
    pub fn keep_usage(&self) -> Begun {
        Operation::new(self.core.keep_usage(), |()| Ok(JsValue::NULL)).begin()
    }

    /// How full the context is.
    pub fn usage(&self) -> Thrown<JsValue> {
        to_js(&self.core.usage().map_err(thrown)?)
    }

    /// How full the context is, in characters. Stage `compact` is to be loaded.
    pub fn stats(&self) -> Thrown<JsValue> {
        (stages::compact().stats)(&self.core)
    }

    /// The context as a trajectory: JSON text, for actions are whatever the app handed over. Stage `compact` is to be loaded.
    pub fn trajectory(&self) -> Thrown<String> {
        (stages::compact().trajectory)(&self.core)
    }

    /// The fate of every message. Stage `rest` is to be loaded.
    pub fn explain(&self) -> Thrown<JsValue> {
        (stages::rest().explain)(&self.core)
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

    /// Can a handle that opens it now take its place?
    #[wasm_bindgen(js_name = canPassOn)]
    pub fn can_pass_on(&self) -> Thrown<bool> {
        self.core.can_pass_on().map_err(thrown)
    }

    /// What that one needs besides the store, as JSON text.
    #[wasm_bindgen(js_name = passedOn)]
    pub fn passed_on(&self) -> Thrown<String> {
        self.core.passed_on().map_err(thrown)
    }

    /// Nothing: takes the place of a handle that passed this on.
    #[wasm_bindgen(js_name = takeOver)]
    pub fn take_over(&self, passed: &str) -> Thrown<()> {
        self.core.take_over(passed).map_err(thrown)
    }

    /// Refuses every later call.
    pub fn close(&self) {
        self.core.close();
    }
}
