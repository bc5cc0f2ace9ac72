//! WebAssembly bindings: values in, values out, no decisions. The package's TypeScript layer (`js/`) is the only caller.
//!
//! Messages come as one buffer of JSON texts and the offsets at which each ends; an effect goes out as one JSON text; options and
//! results are converted by serde-wasm-bindgen; an error is thrown as a plain object that the TypeScript layer makes a
//! `CompactionError` of.

mod convert;
mod dto;
mod effect;
mod error;
mod memory;
mod operation;
mod session;
mod stages;
mod transcript;

pub use memory::held_bytes;
pub use operation::{Operation, perform_with};
pub use session::Session;
pub use transcript::Importer;

use context_compactor_core::standalone;
use context_compactor_core::tokens::Family;
use convert::{bodies, options, settings};
use error::{Thrown, thrown};
use operation::Begun;
use wasm_bindgen::prelude::*;

/// Version of this package, as in `0.1.0`.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Estimated tokens of a history: `{ tokens, low, high, byRole, byMessage }`. Stage `rest` is to be loaded.
#[wasm_bindgen(js_name = estimateDetailed)]
pub fn estimate_detailed(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<JsValue> {
    (stages::rest().estimate)(&bodies(bytes, ends)?, &options(given)?)
}

/// The same of a text. Stage `rest` is to be loaded.
#[wasm_bindgen(js_name = estimateTextDetailed)]
pub fn estimate_text_detailed(text: &str, given: JsValue) -> Thrown<JsValue> {
    (stages::rest().estimate_text)(text, &options(given)?)
}

/// The texts of a history and the tokens of the rest: `{ bytes, ends, byRule }`. Stage `rest` is to be loaded.
#[wasm_bindgen(js_name = messageTexts)]
pub fn message_texts(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<JsValue> {
    (stages::rest().texts)(&bodies(bytes, ends)?, &options(given)?)
}

/// Where a history may be cut: `{ boundary, requested, pinned }`. Stage `compact` is to be loaded.
#[wasm_bindgen(js_name = splitMessages)]
pub fn split_messages(bytes: &[u8], ends: &[u32], pinned: &[u32], given: JsValue) -> Thrown<JsValue> {
    let pinned: Vec<usize> = pinned.iter().map(|index| *index as usize).collect();
    (stages::compact().split)(&bodies(bytes, ends)?, &pinned, &options(given)?)
}

/// What to ask a summariser. Stage `compact` is to be loaded.
#[wasm_bindgen(js_name = buildSummaryPrompt)]
pub fn build_summary_prompt(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<JsValue> {
    (stages::compact().summary_prompt)(&bodies(bytes, ends)?, &options(given)?)
}

/// Messages for which a pin is proposed: `[{ index, constraints, tokens }]`. Stage `compact` is to be loaded.
#[wasm_bindgen(js_name = proposePins)]
pub fn propose_pins(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<JsValue> {
    (stages::compact().propose_pins)(&bodies(bytes, ends)?, &options(given)?)
}

/// A summary that no model is needed for. Stage `compact` is to be loaded.
#[wasm_bindgen(js_name = extractiveSummary)]
pub fn extractive_summary(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<String> {
    (stages::compact().extractive)(&bodies(bytes, ends)?, &options(given)?)
}

/// The format of a history.
#[wasm_bindgen(js_name = detectFormat)]
pub fn detect_format(bytes: &[u8], ends: &[u32]) -> Thrown<String> {
    let format = standalone::detect(&bodies(bytes, ends)?).map_err(thrown)?;
    Ok(format.as_str().to_owned())
}

/// The rules that a history breaks. Stage `rest` is to be loaded.
#[wasm_bindgen(js_name = validateHistory)]
pub fn validate_history(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<JsValue> {
    (stages::rest().validate)(&bodies(bytes, ends)?, &options(given)?)
}

/// The smallest change that makes a history acceptable: `{ parts: [{ keep } | { body }], changes }`. Stage
/// `rest` is to be loaded.
#[wasm_bindgen(js_name = repairHistory)]
pub fn repair_history(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<JsValue> {
    (stages::rest().repair)(&bodies(bytes, ends)?, &options(given)?)
}

/// The name of the table that these options count by, where the host has to bring it first.
#[wasm_bindgen(js_name = missingTable)]
pub fn missing_table(given: JsValue) -> Thrown<Option<String>> {
    Ok(convert::missing_table(given)?.map(|family| family.name().to_owned()))
}

/// Takes a table that is missing: the weights of pairs of bytes, those of their classes, and those of runs. False for one that
/// is none.
#[wasm_bindgen(js_name = bringTable)]
pub fn bring_table(name: &str, pairs: &[u8], contexts: &[u8], runs: &[u16]) -> bool {
    Family::ALL.iter().any(|family| family.name() == name && family.bring(pairs, contexts, runs))
}

/// True where these options say nothing of which the window follows.
#[wasm_bindgen(js_name = assumesWindow)]
pub fn assumes_window(given: JsValue) -> Thrown<bool> {
    Ok(settings(given)?.is_window_assumed)
}

/// Compacts a history once, storing nothing: `{ items, result }`.
#[wasm_bindgen(js_name = compactOnce)]
pub fn compact_once(bytes: Vec<u8>, ends: &[u32], given: JsValue) -> Thrown<Begun> {
    let (settings, bodies) = (settings(given)?, bodies(bytes, ends)?);
    Ok(Operation::of_compact(move |stage| (stage.once)(settings, bodies)))
}

/// Compacts a history when that is due, from where `state` left off: `{ items, result, state? }`.
#[wasm_bindgen(js_name = compactCarried)]
pub fn compact_carried(bytes: Vec<u8>, ends: &[u32], given: JsValue, state: Option<String>) -> Thrown<Begun> {
    let (settings, bodies) = (settings(given)?, bodies(bytes, ends)?);
    Ok(Operation::of_compact(move |stage| (stage.carried)(settings, bodies, state)))
}

/// What a session with these messages would do next.
#[wasm_bindgen(js_name = planOnce)]
pub fn plan_once(bytes: Vec<u8>, ends: &[u32], given: JsValue) -> Thrown<Begun> {
    let (settings, bodies) = (settings(given)?, bodies(bytes, ends)?);
    Ok(Operation::of_compact(move |stage| (stage.plan_once)(settings, bodies)))
}

/// The sessions of a store.
#[wasm_bindgen(js_name = listSessions)]
pub fn list_sessions() -> Begun {
    Operation::of_rest(|stage| (stage.list)())
}

/// Nothing: removes the session called `id`, which need not open for it.
#[wasm_bindgen(js_name = deleteSession)]
pub fn delete_session(id: String, max_batch_ops: usize) -> Begun {
    Operation::of_rest(move |stage| (stage.delete_named)(id, max_batch_ops))
}

/// The sessions of which a damaged store has anything left: `[{ id, loss? }]`. Writes names where they are missing.
#[wasm_bindgen]
pub fn remains() -> Begun {
    Operation::of_rest(|stage| (stage.remains)())
}

/// Puts a session back as it was before it was migrated: the number of its schema.
#[wasm_bindgen(js_name = restoreBackup)]
pub fn restore_backup(id: String) -> Begun {
    Operation::of_rest(move |stage| (stage.restore_backup)(id))
}

/// The module's memory.
#[wasm_bindgen(js_name = wasmMemory)]
pub fn wasm_memory() -> JsValue {
    wasm_bindgen::memory()
}
