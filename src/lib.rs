//! WebAssembly bindings.

use wasm_bindgen::prelude::wasm_bindgen;

/// Version of this package, as in `0.1.0`.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
