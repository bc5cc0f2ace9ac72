//! `cargo xtask build`: Rust to WebAssembly, glue, TypeScript.
//!
//! ```text
//! src/, crates/ ─cargo─▶ target/…/context_compactor.wasm ─bindgen─▶ pkg/core.wasm, js/wasm/* ─tsc─▶ pkg/dist/*
//! ```

use crate::stamp::{Stamp, files};
use crate::{Result, glue, node, run};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

/// Builds what is not up to date. Says what it does, and nothing when there is nothing to do.
pub(crate) fn build(root: &Path) -> Result<()> {
    let compiled = compile(root)?;
    bind(root, &compiled)?;
    translate(root)
}

/// The engine as WebAssembly. Cargo knows by itself what is up to date.
fn compile(root: &Path) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let folder = root.join("target");
    let mut command = Command::new(cargo);
    command
        .current_dir(root)
        .args([
            "build",
            "--quiet",
            "--release",
            "--package",
            "context-compactor",
            "--lib",
            "--target",
            TARGET,
        ])
        .arg("--target-dir")
        .arg(&folder)
        .env("CARGO_ENCODED_RUSTFLAGS", flags());
    // Where no standard library for WebAssembly is at hand, only its source is.
    if env::var_os("CC_BUILD_STD").is_some() {
        command.arg("-Zbuild-std=std,panic_abort").env("RUSTC_BOOTSTRAP", "1");
    }
    run(&mut command)?;
    Ok(folder.join(TARGET).join("release/context_compactor.wasm"))
}

/// Messages of panics name source files. Without these flags they would carry the paths of the machine that built,
/// and no two machines would make the same module.
fn flags() -> String {
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    home.map(|home| format!("--remap-path-prefix={}=/cargo", home.display())).unwrap_or_default()
}

/// `pkg/core.wasm` and `js/wasm/`.
fn bind(root: &Path, compiled: &Path) -> Result<()> {
    let folder = root.join("js/wasm");
    let module = root.join("pkg/core.wasm");
    let work = root.join("target/glue");
    fs::create_dir_all(&work)?;
    let mut stamp = Stamp::new(work.join("stamp"))?;
    stamp.input(compiled)?;
    let outputs = ["core.js", "core.d.ts", "inline.js", "inline.d.ts"].map(|name| folder.join(name));
    stamp.output(&module);
    outputs.iter().for_each(|output| stamp.output(output));
    if stamp.is_current() {
        return Ok(());
    }
    println!("build: glue");
    let made = glue::generate(compiled, &work)?;
    let inline = glue::inline(&made.wasm);
    fs::create_dir_all(&folder)?;
    fs::write(&module, &made.wasm)?;
    for (output, text) in outputs.iter().zip([&made.js, &made.types, &inline, glue::INLINE_TYPES]) {
        fs::write(output, text)?;
    }
    stamp.write()
}

/// `pkg/dist/`: the facade and, beside it, the glue.
fn translate(root: &Path) -> Result<()> {
    let source = root.join("js");
    let dist = root.join("pkg/dist");
    let compiler = root.join("node_modules/typescript");
    if !compiler.exists() {
        return Err("typescript is not installed: run `npm run build`, which installs it".into());
    }
    fs::create_dir_all(root.join("target/glue"))?;
    let mut stamp = Stamp::new(root.join("target/glue/dist.stamp"))?;
    for input in [&source, &root.join("tsconfig.json"), &compiler.join("package.json")] {
        stamp.input(input)?;
    }
    stamp.output(dist.join("index.js"));
    if stamp.is_current() {
        return Ok(());
    }
    println!("build: package");
    // A file whose source is gone must go too.
    if dist.exists() {
        fs::remove_dir_all(&dist)?;
    }
    run(node(root).arg(compiler.join("bin/tsc")).args(["--project", "tsconfig.json"]))?;
    fs::create_dir_all(dist.join("wasm"))?;
    for file in files(&source.join("wasm"))? {
        if let Some(name) = file.file_name() {
            fs::copy(&file, dist.join("wasm").join(name))?;
        }
    }
    stamp.write()
}
