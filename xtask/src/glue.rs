//! The JavaScript glue: made by wasm-bindgen as a library, adapted, and given the module as base64.

use crate::Result;
use data_encoding::BASE64;
use std::fs;
use std::path::Path;
use wasm_bindgen_cli_support::Bindgen;

/// Glue and module, as they go into the package.
pub(crate) struct Glue {
    pub(crate) wasm: Vec<u8>,
    pub(crate) js: String,
    pub(crate) types: String,
}

/// Some hosts hand over a `WebAssembly.Module` of another realm (edge sandboxes), for which `instanceof` is false.
/// Bytes are recognised instead: everything else is taken for a module.
const MODULE_TEST: &str = "!(module instanceof WebAssembly.Module)";
const BYTES_TEST: &str =
    "ArrayBuffer.isView(module) || Object.prototype.toString.call(module) === '[object ArrayBuffer]'";

/// Generates into `folder`, which is only a place to work in. One `web` glue serves every host; it names no
/// file (`omit_default_module_path`), so that a bundler does not copy the module a second time.
pub(crate) fn generate(compiled: &Path, folder: &Path) -> Result<Glue> {
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(compiled)
        .out_name("core")
        .web(true)?
        .typescript(true)
        .omit_default_module_path(true)
        .remove_name_section(true)
        .remove_producers_section(true);
    let mut output = bindgen.generate_output()?;
    output.emit(folder)?;
    let js = fs::read_to_string(folder.join("core.js"))?;
    if js.contains("snippets/") {
        return Err(
            "a dependency brings JavaScript files of its own, which the package does not carry".into()
        );
    }
    if js.matches(MODULE_TEST).count() != 1 {
        return Err(format!("the glue does not hold `{MODULE_TEST}` once: adapt xtask/src/glue.rs").into());
    }
    Ok(Glue {
        wasm: fs::read(folder.join("core_bg.wasm"))?,
        js: js.replace(MODULE_TEST, BYTES_TEST),
        types: everywhere(&fs::read_to_string(folder.join("core.d.ts"))?)?,
    })
}

/// Names of the browser's types, which an app's TypeScript need not have, and what stands for each.
const BROWSER_TYPES: [(&str, &str); 5] = [
    ("RequestInfo | URL", "string | URL"),
    ("BufferSource", "ArrayBuffer | ArrayBufferView<ArrayBuffer>"),
    ("WebAssembly.Module;", "object;"),
    ("WebAssembly.Memory;", "{ readonly buffer: ArrayBuffer };"),
    ("WebAssembly.Table;", "object;"),
];

/// The declarations in types that TypeScript has without the browser's.
fn everywhere(types: &str) -> Result<String> {
    let mut types = types.to_owned();
    for (name, own) in BROWSER_TYPES {
        if !types.contains(name) {
            return Err(format!("the glue's types do not name `{name}`: adapt xtask/src/glue.rs").into());
        }
        types = types.replace(name, own);
    }
    Ok(types)
}

/// A module that exports the bytes. Base64 costs a third more on the wire than the file, but is the one form that
/// every bundler and host loads without being configured.
pub(crate) fn inline(wasm: &[u8]) -> String {
    // The text is an argument: minifiers copy a constant to each of its uses. By what the host has for it. Else by a loop, of which `Uint8Array.from` with a function takes five times the time.
    format!(
        "function decode(text) {{\n  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);\n  if (globalThis.Buffer?.from) return globalThis.Buffer.from(text, \"base64\");\n  const units = atob(text);\n  const bytes = new Uint8Array(units.length);\n  for (let at = 0; at < units.length; at++) bytes[at] = units.charCodeAt(at);\n  return bytes;\n}}\nexport const bytes = decode(\"{}\");\n",
        BASE64.encode(wasm)
    )
}

/// Types of what [`inline`] writes.
pub(crate) const INLINE_TYPES: &str = "export declare const bytes: Uint8Array<ArrayBuffer>;\n";

/// A module that exports a text, of letters, digits and signs that need no escaping.
pub(crate) fn text(text: &str) -> String {
    format!("export const text = \"{text}\";\n")
}

/// Types of what [`text`] writes.
pub(crate) const TEXT_TYPES: &str = "export declare const text: string;\n";
