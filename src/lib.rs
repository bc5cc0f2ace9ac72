//! WebAssembly bindings: values in, values out, no decisions. The package's TypeScript layer (`js/`) is the only caller.
//!
//! Messages come as one buffer of JSON texts and the offsets at which each ends; options and results are converted by
//! serde-wasm-bindgen; an error is thrown as a plain object that the TypeScript layer makes a `CompactionError` of.

mod convert;
mod dto;
mod error;
mod operation;
mod session;
mod text;
mod transcript;

pub use operation::Operation;
pub use session::Session;
pub use text::{estimate_buffer, family_of, text_buffer, text_room, wasm_memory, weights_of};
pub use transcript::Importer;

use context_compactor_core::session::Session as CoreSession;
use context_compactor_core::standalone;
use context_compactor_core::wire::provider;
use convert::{bodies, options, settings, to_js};
use error::{Thrown, thrown};
use wasm_bindgen::prelude::*;

/// Version of this package, as in `0.1.0`.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Estimated tokens of each message.
#[wasm_bindgen(js_name = estimateMessages)]
pub fn estimate_messages(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<Vec<u32>> {
    let tokens = standalone::estimate(&bodies(bytes, ends)?, &options(given)?).map_err(thrown)?;
    Ok(tokens.into_iter().map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)).collect())
}

/// Estimated tokens of a history: `{ tokens, low, high, byRole, byMessage }`.
#[wasm_bindgen(js_name = estimateDetailed)]
pub fn estimate_detailed(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<JsValue> {
    to_js(&standalone::estimate_detailed(&bodies(bytes, ends)?, &options(given)?).map_err(thrown)?)
}

/// The same of a text.
#[wasm_bindgen(js_name = estimateTextDetailed)]
pub fn estimate_text_detailed(text: &str, given: JsValue) -> Thrown<JsValue> {
    to_js(&standalone::estimate_text_detailed(text, &options(given)?).map_err(thrown)?)
}

/// The texts of a history and the tokens of the rest: `{ bytes, ends, byRule }`.
#[wasm_bindgen(js_name = messageTexts)]
pub fn message_texts(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<JsValue> {
    let texts = standalone::texts(&bodies(bytes, ends)?, &options(given)?).map_err(thrown)?;
    Ok(convert::texts(&texts))
}

/// Where a history may be cut: `{ boundary, requested, pinned }`.
#[wasm_bindgen(js_name = splitMessages)]
pub fn split_messages(bytes: &[u8], ends: &[u32], pinned: &[u32], given: JsValue) -> Thrown<JsValue> {
    let pinned: Vec<usize> = pinned.iter().map(|index| *index as usize).collect();
    let cut = standalone::split(&bodies(bytes, ends)?, &pinned, &options(given)?).map_err(thrown)?;
    to_js(&dto::CutDto::from(cut))
}

/// What to ask a summariser.
#[wasm_bindgen(js_name = buildSummaryPrompt)]
pub fn build_summary_prompt(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<JsValue> {
    to_js(&standalone::summary_prompt(&bodies(bytes, ends)?, &options(given)?).map_err(thrown)?)
}

/// Messages for which a pin is proposed: `[{ index, constraints, tokens }]`.
#[wasm_bindgen(js_name = proposePins)]
pub fn propose_pins(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<JsValue> {
    to_js(&standalone::propose_pins(&bodies(bytes, ends)?, &options(given)?).map_err(thrown)?)
}

/// A summary that no model is needed for.
#[wasm_bindgen(js_name = extractiveSummary)]
pub fn extractive_summary(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<String> {
    standalone::extractive(&bodies(bytes, ends)?, &options(given)?).map_err(thrown)
}

/// The format of a history.
#[wasm_bindgen(js_name = detectFormat)]
pub fn detect_format(bytes: &[u8], ends: &[u32]) -> Thrown<String> {
    let format = standalone::detect(&bodies(bytes, ends)?).map_err(thrown)?;
    Ok(format.as_str().to_owned())
}

/// The rules that a history breaks.
#[wasm_bindgen(js_name = validateHistory)]
pub fn validate_history(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<JsValue> {
    to_js(&standalone::validate(&bodies(bytes, ends)?, &options(given)?).map_err(thrown)?)
}

/// The smallest change that makes a history acceptable: `{ parts: [{ keep } | { body }], changes }`.
#[wasm_bindgen(js_name = repairHistory)]
pub fn repair_history(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<JsValue> {
    let (parts, changes) = standalone::repair(&bodies(bytes, ends)?, &options(given)?).map_err(thrown)?;
    to_js(&dto::RepairDto::new(parts, changes))
}

/// Does an error of a provider say that the prompt was too long? `status` is 0 when unknown; `patterns` are texts of the
/// app's own server.
#[wasm_bindgen(js_name = isContextOverflow)]
pub fn is_context_overflow(status: u16, code: &str, message: &str, patterns: Vec<String>) -> bool {
    provider::is_context_overflow(status, code, message, &patterns)
}

/// True where these options say nothing of which the window follows.
#[wasm_bindgen(js_name = assumesWindow)]
pub fn assumes_window(given: JsValue) -> Thrown<bool> {
    Ok(settings(given)?.is_window_assumed)
}

/// Compacts a history once, storing nothing: `{ items, result }`.
#[wasm_bindgen(js_name = compactOnce)]
pub fn compact_once(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<Operation> {
    Ok(Operation::new(CoreSession::compact_once(settings(given)?, bodies(bytes, ends)?), to_js))
}

/// Compacts a history when that is due, from where `state` left off: `{ items, result, state? }`.
#[wasm_bindgen(js_name = compactCarried)]
pub fn compact_carried(
    bytes: &[u8],
    ends: &[u32],
    given: JsValue,
    state: Option<String>,
) -> Thrown<Operation> {
    let bodies = bodies(bytes, ends)?;
    Ok(Operation::new(CoreSession::compact_carried(settings(given)?, bodies, state), to_js))
}

/// What a session with these messages would do next.
#[wasm_bindgen(js_name = planOnce)]
pub fn plan_once(bytes: &[u8], ends: &[u32], given: JsValue) -> Thrown<Operation> {
    Ok(Operation::new(CoreSession::plan_once(settings(given)?, bodies(bytes, ends)?), to_js))
}

/// The sessions of a store.
#[wasm_bindgen(js_name = listSessions)]
pub fn list_sessions() -> Operation {
    Operation::new(CoreSession::list(), to_js)
}

/// Nothing: removes the session called `id`, which need not open for it.
#[wasm_bindgen(js_name = deleteSession)]
pub fn delete_session(id: String, max_batch_ops: usize) -> Operation {
    Operation::new(CoreSession::delete_named(id, max_batch_ops), |()| Ok(JsValue::NULL))
}

/// The sessions of which a damaged store has anything left: `[{ id, loss? }]`. Writes names where they are missing.
#[wasm_bindgen]
pub fn remains() -> Operation {
    Operation::new(CoreSession::remains(), to_js)
}

/// Puts a session back as it was before it was migrated: the number of its schema.
#[wasm_bindgen(js_name = restoreBackup)]
pub fn restore_backup(id: String) -> Operation {
    Operation::new(CoreSession::restore_backup(id), |schema| Ok(JsValue::from(*schema)))
}
