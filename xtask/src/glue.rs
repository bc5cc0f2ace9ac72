//! The JavaScript glue: made by wasm-bindgen as a library, and adapted; and modules as code.

use crate::stages::Parts;
use crate::{Result, node};
use data_encoding::BASE64;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use wasm_bindgen_cli_support::Bindgen;

/// Glue and module, as they go into the package.
pub(crate) struct Glue {
    pub(crate) wasm: Vec<u8>,
    pub(crate) js: String,
    pub(crate) types: String,
    /// What the module has in its section `build`: glue of another build must not run it.
    pub(crate) build: String,
}

/// Some hosts hand over a `WebAssembly.Module` of another realm (edge sandboxes), for which `instanceof` is false.
/// Bytes are recognised instead: everything else is taken for a module.
const MODULE_TEST: &str = "!(module instanceof WebAssembly.Module)";
const BYTES_TEST: &str =
    "ArrayBuffer.isView(module) || Object.prototype.toString.call(module) === '[object ArrayBuffer]'";

/// Generates into `folder`, which is only a place to work in. One `web` glue serves every host; it names no
/// file (`omit_default_module_path`), so that a bundler does not copy the module a second time. `finish` is done to the module.
pub(crate) fn generate(
    parts: &Parts,
    folder: &Path,
    finish: impl Fn(&[u8]) -> Result<Vec<u8>>,
) -> Result<Glue> {
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(&parts.core)
        .out_name("core")
        .web(true)?
        .typescript(true)
        .omit_default_module_path(true)
        // Later files find the memory and the table of functions by them.
        .keep_lld_exports(true)
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
    let js = per_instance(&without(&js.replace(MODULE_TEST, BYTES_TEST), &UNUSED)?)?;
    let wasm = finish(&fs::read(folder.join("core_bg.wasm"))?)?;
    let whole = parts
        .later
        .values()
        .fold([js.as_bytes(), &wasm].concat(), |whole, file| [whole, file.clone()].concat());
    let build = base16ct::lower::encode_string(&Sha256::digest(whole)[..8]);
    let wasm = stamped(&wasm, &build)?;
    let mut types = without(&everywhere(&fs::read_to_string(folder.join("core.d.ts"))?)?, &[UNUSED_TYPE])?;
    types.push_str(MAKE);
    Ok(Glue { wasm, js, types, build })
}

/// What loads a module by itself: the package brings them (`js/host/`). Each as what it begins with and what comes after it.
const UNUSED: [(&str, &str); 3] = [
    ("async function __wbg_load(", "function initSync("),
    ("async function __wbg_init(", "export {"),
    (", __wbg_init as default", " }"),
];

/// The same of the declarations.
const UNUSED_TYPE: (&str, &str) = ("export default function __wbg_init", "\n");

/// The declaration of what is made by [`per_instance`]. All others say what that returns.
const MAKE: &str = "\n/** The glue of one instance of the module, with a memory of its own. */\n\
    export function makeGlue(): Omit<typeof import(\"./core.js\"), \"makeGlue\">;\n";

/// Glue that several instances can be started with, each of which is gone with what is made of it: all of it in one function.
fn per_instance(js: &str) -> Result<String> {
    let mut names = vec!["initSync"];
    let mut body = String::with_capacity(js.len());
    for line in js.lines().filter(|line| *line != "export { initSync };") {
        let inner = line.strip_prefix("export ").unwrap_or(line);
        if inner != line {
            let name = inner.strip_prefix("class ").or_else(|| inner.strip_prefix("function "));
            let name = name.and_then(|name| name.split([' ', '(']).next());
            names.push(name.ok_or("the glue exports in another way: adapt xtask/src/glue.rs")?);
        }
        body.push_str(inner);
        body.push('\n');
    }
    Ok(format!("export function makeGlue() {{\n{body}return {{ {} }};\n}}\n", names.join(", ")))
}

/// A text without some of its parts.
fn without(text: &str, parts: &[(&str, &str)]) -> Result<String> {
    let mut text = text.to_owned();
    for (begin, next) in parts {
        let found = text.find(begin).and_then(|at| Some(at..at + text.get(at..)?.find(next)?));
        let range = found.ok_or_else(|| format!("the glue has no `{begin}`: adapt xtask/src/glue.rs"))?;
        text.replace_range(range, "");
    }
    Ok(text)
}

/// A module that says which build it is of.
pub(crate) fn stamped(wasm: &[u8], build: &str) -> Result<Vec<u8>> {
    Ok([wasm, &custom_section("build", build.as_bytes())?].concat())
}

/// A section that engines skip and programs can read: of less than 128 bytes, whose length is one byte.
fn custom_section(name: &str, contents: &[u8]) -> Result<Vec<u8>> {
    let length =
        |of: usize| u8::try_from(of).ok().filter(|length| *length < 128).ok_or("the section is long");
    let mut section = vec![0, length(1 + name.len() + contents.len())?, length(name.len())?];
    section.extend(name.bytes().chain(contents.iter().copied()));
    Ok(section)
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

/// A module that exports a function for the bytes: what every bundler and host loads without being configured. Compressed
/// before it is base64, it costs little more on the wire than the file. The text is an argument: minifiers copy a constant
/// to each of its uses.
pub(crate) fn inline(root: &Path, wasm: &[u8]) -> Result<String> {
    let text = BASE64.encode(&compressed(root, wasm)?);
    Ok(format!("{DECODE}{UNPACK}export const bytes = () => unpack(\"{text}\");\n"))
}

/// By what the host has for it. Else by a loop, of which `Uint8Array.from` with a function takes five times the time.
const DECODE: &str = r#"function decode(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  if (globalThis.Buffer?.from) return globalThis.Buffer.from(text, "base64");
  const units = atob(text);
  const bytes = new Uint8Array(units.length);
  for (let at = 0; at < units.length; at++) bytes[at] = units.charCodeAt(at);
  return bytes;
}
"#;

/// Where Node's library is, it is quicker, and Bun had no such stream for long.
const UNPACK: &str = r#"async function unpack(text) {
  const packed = decode(text);
  const zlib = globalThis.process?.getBuiltinModule?.("zlib");
  if (zlib) return zlib.gunzipSync(packed);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
"#;

/// By gzip, which every host can undo. Node is here, and has it.
fn compressed(root: &Path, bytes: &[u8]) -> Result<Vec<u8>> {
    let program = "process.stdout.write(require('node:zlib').gzipSync(require('node:fs').readFileSync(0), { level: 9 }))";
    let mut child = node(root).args(["-e", program]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().ok_or("node takes no input")?.write_all(bytes)?;
    let output = child.wait_with_output()?;
    if output.status.success() { Ok(output.stdout) } else { Err("node did not compress the module".into()) }
}

/// Types of what [`inline`] writes.
pub(crate) const INLINE_TYPES: &str = "export declare const bytes: () => Promise<Uint8Array<ArrayBuffer>>;\n";
