//! Counting a text without copying it twice: the caller writes UTF-8 into a buffer of ours.

use context_compactor_core::tokens::Estimator;
use std::cell::RefCell;
use wasm_bindgen::prelude::*;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Address of a buffer with room for `capacity` bytes; good until it is asked for again.
#[wasm_bindgen(js_name = textBuffer)]
pub fn text_buffer(capacity: usize) -> *const u8 {
    BUFFER.with_borrow_mut(|buffer| {
        if buffer.len() < capacity {
            buffer.resize(capacity, 0);
        }
        buffer.as_ptr()
    })
}

/// Estimated tokens of the first `length` bytes of the buffer.
#[wasm_bindgen(js_name = estimateBuffer)]
pub fn estimate_buffer(length: usize, chars4: bool) -> f64 {
    let estimator = if chars4 { Estimator::Chars4 } else { Estimator::Calibrated };
    BUFFER.with_borrow(|buffer| {
        let bytes = buffer.get(..length).unwrap_or_default();
        estimator.text(&String::from_utf8_lossy(bytes)) as f64
    })
}

/// The module's memory, which holds the buffer.
#[wasm_bindgen(js_name = wasmMemory)]
pub fn wasm_memory() -> JsValue {
    wasm_bindgen::memory()
}
