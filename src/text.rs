//! Counting a text without copying it twice: the caller writes UTF-8 into a buffer of ours.

use crate::error::{Thrown, thrown};
use context_compactor_core::tokens::{self, Estimator, Family, Sum, Table};
use std::cell::RefCell;
use wasm_bindgen::prelude::*;

/// Bytes of the buffer. Longer texts come in parts: memory is never given back.
const ROOM: usize = 3 << 15;

struct Counting {
    buffer: Box<[u8]>,
    sum: Sum,
}

thread_local! {
    static COUNTING: RefCell<Counting> = RefCell::new(Counting {
        buffer: vec![0; ROOM].into_boxed_slice(),
        sum: Estimator::default().sum(),
    });
}

/// Address of the buffer, which never moves.
#[wasm_bindgen(js_name = textBuffer)]
pub fn text_buffer() -> *const u8 {
    COUNTING.with_borrow(|counting| counting.buffer.as_ptr())
}

/// Bytes that the buffer takes.
#[wasm_bindgen(js_name = textRoom)]
pub fn text_room() -> usize {
    ROOM
}

/// Number of the family of a model; without a name, of the default one.
#[wasm_bindgen(js_name = familyOf)]
pub fn family_of(model: Option<String>) -> Thrown<usize> {
    let named = model.as_deref().map(tokens::of_known_model).transpose().map_err(thrown)?;
    let family = named.unwrap_or_default();
    Ok(Family::ALL.iter().position(|known| *known == family).unwrap_or_default())
}

/// Address of the weights of a family: of pairs, of contexts, and the classes of bytes.
#[wasm_bindgen(js_name = weightsOf)]
pub fn weights_of(family: usize) -> *const Table {
    Family::ALL.get(family).copied().unwrap_or_default().table()
}

/// Estimated tokens of a text whose next `length` bytes, or first, are in the buffer; by characters without a family.
#[wasm_bindgen(js_name = estimateBuffer)]
pub fn estimate_buffer(length: usize, family: Option<usize>, is_first: bool) -> f64 {
    COUNTING.with_borrow_mut(|counting| {
        if is_first {
            let calibrated =
                |family: usize| Family::ALL.get(family).map(|known| Estimator::Calibrated(*known));
            counting.sum = family.and_then(calibrated).unwrap_or(Estimator::Chars4).sum();
        }
        counting.sum.add(counting.buffer.get(..length).unwrap_or_default());
        counting.sum.tokens() as f64
    })
}

/// The module's memory, which holds the buffer.
#[wasm_bindgen(js_name = wasmMemory)]
pub fn wasm_memory() -> JsValue {
    wasm_bindgen::memory()
}
