//! Values of JavaScript to values of the core and back.

use crate::error::{Thrown, thrown, unreadable};
use context_compactor_core::keys::batch::{Key, KeyPart};
use context_compactor_core::policy::Settings;
use context_compactor_core::standalone::Texts;
use context_compactor_core::step::{EffectFailure, Event, ReportedUsage, Stored};
use context_compactor_core::tokens::Family;
use context_compactor_core::wire::provider;
use context_compactor_core::{Code, Error};
use js_sys::{Array, Float64Array, Object, Reflect, Uint8Array, Uint32Array};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json_borrow::Value;
use std::rc::Rc;
use wasm_bindgen::{JsCast, JsValue};

/// A value as plain objects, arrays, numbers and texts.
pub(crate) fn to_js<T: Serialize>(value: &T) -> Thrown<JsValue> {
    value.serialize(&serde_wasm_bindgen::Serializer::json_compatible()).map_err(unreadable)
}

/// An options object as a JSON tree.
pub(crate) fn options(given: JsValue) -> Thrown<Value<'static>> {
    Value::deserialize(serde_wasm_bindgen::Deserializer::from(given)).map_err(unreadable)
}

/// A value that may be absent, of one that was handed out before.
pub(crate) fn optional<T: DeserializeOwned>(given: JsValue) -> Thrown<Option<T>> {
    serde_wasm_bindgen::from_value(given).map_err(unreadable)
}

/// Checked options.
pub(crate) fn settings(given: JsValue) -> Thrown<Rc<Settings>> {
    let settings = Settings::read(&options(given)?).map_err(thrown)?;
    settings.estimator.ready().map_err(thrown)?;
    Ok(Rc::new(settings))
}

/// The family by whose table they say to count, where the engine does not have it.
pub(crate) fn missing_table(given: JsValue) -> Thrown<Option<Family>> {
    let settings = Settings::read(&options(given)?).map_err(thrown)?;
    Ok(settings.estimator.counts_for().filter(|family| !family.is_there()))
}

/// The JSON texts in `bytes`; text `i` ends at `ends[i]`. Where it is given `bytes` for good, nothing holds them a second time
/// while an operation goes on: they may be a message of many megabytes.
pub(crate) fn bodies(bytes: impl AsRef<[u8]>, ends: &[u32]) -> Thrown<Vec<Rc<str>>> {
    let bytes = bytes.as_ref();
    let mut start = 0;
    let mut bodies = Vec::with_capacity(ends.len());
    for (index, end) in ends.iter().enumerate() {
        let end = *end as usize;
        let text = bytes.get(start..end).and_then(|text| std::str::from_utf8(text).ok());
        let text = text.ok_or_else(|| thrown(Error::message(index, "", "not readable as UTF-8")))?;
        bodies.push(Rc::from(text));
        start = end;
    }
    Ok(bodies)
}

/// Texts in one buffer, as [`bodies`] takes them.
pub(crate) fn texts(texts: &Texts) -> JsValue {
    let ends: Vec<u32> = texts.ends.iter().map(|end| u32::try_from(*end).unwrap_or(u32::MAX)).collect();
    let object = Object::new();
    set(&object, "bytes", Uint8Array::from(texts.bytes.as_slice()));
    set(&object, "ends", Uint32Array::from(ends.as_slice()));
    set(&object, "byRule", texts.by_rule as f64);
    object.into()
}

pub(crate) fn set(object: &Object, name: &str, value: impl Into<JsValue>) {
    // Setting a property of a fresh plain object cannot fail.
    let _ = Reflect::set(object, &JsValue::from_str(name), &value.into());
}

fn get(object: &JsValue, name: &str) -> Option<JsValue> {
    Reflect::get(object, &JsValue::from_str(name))
        .ok()
        .filter(|value| !value.is_undefined() && !value.is_null())
}

fn text(object: &JsValue, name: &str) -> Option<String> {
    get(object, name)?.as_string()
}

fn number(object: &JsValue, name: &str) -> Option<f64> {
    get(object, name)?.as_f64()
}

/// The end of an operation.
pub(crate) fn ended(end: Thrown<JsValue>) -> JsValue {
    let object = Object::new();
    match end {
        Ok(done) => set(&object, "done", done),
        Err(error) => set(&object, "error", error),
    }
    object.into()
}

/// An event from `{ type, … }`; what is not one becomes a failure that says so.
pub(crate) fn event(object: &JsValue) -> Event {
    let parsed = match text(object, "type").as_deref() {
        Some("done") => Some(Event::Done),
        Some("number") => number(object, "value").map(Event::Number),
        Some("text") => text(object, "value").map(Event::Text),
        Some("texts") => get(object, "texts").and_then(|texts| texts_of(&texts)).map(Event::Texts),
        Some("watermark") => {
            Some(Event::Watermark { mark: text(object, "mark"), lost: text(object, "lost") })
        }
        Some("summary") => text(object, "text").map(|answer| Event::Summary {
            text: answer,
            usage: text(object, "usage").and_then(|json| usage(&json)),
        }),
        Some("vectors") => {
            get(object, "vectors").and_then(|vectors| vectors_of(&vectors)).map(Event::Vectors)
        }
        Some("response") => response(object),
        Some("values") => get(object, "values").and_then(|values| values_of(&values)).map(Event::Values),
        Some("entries") => {
            get(object, "entries").and_then(|entries| entries_of(&entries)).map(Event::Entries)
        }
        Some("failed") => Some(Event::Failed(EffectFailure {
            code: text(object, "code").as_deref().and_then(Code::parse),
            message: text(object, "message").unwrap_or_default(),
            status: number(object, "status").map(|status| status as u16),
            overflow: get(object, "overflow").is_some_and(|overflow| overflow.is_truthy()),
            effect: 0,
        })),
        _ => None,
    };
    parsed.unwrap_or_else(|| {
        let message = "the host answered with a value of the wrong type".to_owned();
        Event::Failed(EffectFailure { code: None, message, status: None, overflow: false, effect: 0 })
    })
}

fn texts_of(list: &JsValue) -> Option<Vec<String>> {
    list.dyn_ref::<Array>()?.iter().map(|text| text.as_string()).collect()
}

/// The vectors in a list of `Float64Array`.
fn vectors_of(list: &JsValue) -> Option<Vec<Vec<f64>>> {
    let vectors = list.dyn_ref::<Array>()?.iter();
    vectors.map(|vector| Some(vector.dyn_ref::<Float64Array>()?.to_vec())).collect()
}

/// What the app says that a summary cost; nothing where that does not say it.
fn usage(json: &str) -> Option<ReportedUsage> {
    provider::reported(json).ok().map(ReportedUsage::from)
}

fn response(object: &JsValue) -> Option<Event> {
    let headers = get(object, "headers")?.dyn_into::<Array>().ok()?;
    let headers = headers
        .iter()
        .filter_map(|pair| {
            let pair = pair.dyn_into::<Array>().ok()?;
            Some((pair.get(0).as_string()?, pair.get(1).as_string()?))
        })
        .collect();
    let status = number(object, "status")? as u16;
    Some(Event::Response { status, headers, body: text(object, "body")? })
}

/// A value of a store: its bytes, or `{ damaged }`.
fn stored(value: JsValue) -> Option<Stored> {
    match value.dyn_into::<Uint8Array>() {
        Ok(bytes) => Some(Stored::Bytes(bytes.to_vec())),
        Err(value) => text(&value, "damaged").map(Stored::Damaged),
    }
}

fn values_of(values: &JsValue) -> Option<Vec<Option<Stored>>> {
    let values = values.dyn_ref::<Array>()?;
    values
        .iter()
        .map(|value| {
            if value.is_undefined() || value.is_null() {
                return Some(None);
            }
            Some(Some(stored(value)?))
        })
        .collect()
}

fn entries_of(entries: &JsValue) -> Option<Vec<(Key, Stored)>> {
    let entries = entries.dyn_ref::<Array>()?;
    entries
        .iter()
        .map(|entry| {
            let entry = entry.dyn_into::<Array>().ok()?;
            let parts = entry.get(0).dyn_into::<Array>().ok()?;
            let key = parts
                .iter()
                .map(|part| match part.as_f64() {
                    Some(number) => Some(KeyPart::Number(number as u64)),
                    None => part.as_string().map(KeyPart::Text),
                })
                .collect::<Option<Vec<_>>>()?;
            Some((Key(key), stored(entry.get(1))?))
        })
        .collect()
}
