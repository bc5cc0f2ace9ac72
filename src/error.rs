//! Errors as plain objects: `{ code, message, index?, field?, cause?, because? }`, where `cause` is the number of the effect
//! that failed, and `because` another error.

use context_compactor_core::{Code, Error};
use serde::Serialize;
use wasm_bindgen::JsValue;

/// A result whose error is thrown to the TypeScript layer.
pub(crate) type Thrown<T> = Result<T, JsValue>;

/// The error as the TypeScript layer expects it.
pub(crate) fn thrown(error: Error) -> JsValue {
    let text = JsValue::from_str(&error.message);
    error.serialize(&serde_wasm_bindgen::Serializer::json_compatible()).unwrap_or(text)
}

/// A value of the caller that could not be converted.
pub(crate) fn unreadable(error: serde_wasm_bindgen::Error) -> JsValue {
    thrown(Error::new(Code::InvalidOption, format!("the options cannot be read: {error}")))
}
