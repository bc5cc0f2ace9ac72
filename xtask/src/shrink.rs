//! What is done to a file of the engine at the very end, so that it is small where it is loaded: compressed.

use crate::stages::bare;
use crate::{Result, node, run};
use std::fs;
use std::path::Path;

/// Takes out of a module what the compiler, which knows less of WebAssembly, left in it. `folder` is a place to work in.
pub(crate) fn shrink(root: &Path, wasm: &[u8], folder: &Path) -> Result<Vec<u8>> {
    let program = root.join("node_modules/binaryen/bin/wasm-opt");
    if !program.exists() {
        return Err(
            format!("{} is missing: run `npm run build`, which installs it", program.display()).into()
        );
    }
    fs::create_dir_all(folder)?;
    let [from, to] = ["from.wasm", "to.wasm"].map(|name| folder.join(name));
    fs::write(&from, ordered(wasm)?)?;
    run(node(root).arg(program).args(FEATURES).args(PASSES).arg(&from).arg("-o").arg(&to))?;
    bare(&fs::read(&to)?)
}

/// What the compiler uses of WebAssembly: a module does not tell it itself once it was taken apart.
const FEATURES: [&str; 7] = [
    "--enable-bulk-memory",
    "--enable-call-indirect-overlong",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
];

/// For size. Below 1024 is the end of the stack, which nothing computes an address in from beyond the end of the memory: so a
/// constant that is added to an address may become part of the access. What is computed twice is compressed better than what
/// is kept in a variable, and a function of its own better than inside of the one that calls it.
const PASSES: [&str; 4] =
    ["-Oz", "--low-memory-unused", "--skip-pass=local-cse", "--one-caller-inline-max-function-size=0"];

/// The module with its functions by size, as this library writes every module. Functions of one size are often alike, and
/// what is alike and near is compressed to 3 % less.
fn ordered(wasm: &[u8]) -> Result<Vec<u8>> {
    Ok(walrus::Module::from_buffer(wasm).map_err(|error| format!("{error:#}"))?.emit_wasm())
}
