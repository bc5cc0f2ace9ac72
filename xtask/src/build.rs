//! `cargo xtask build`: Rust to WebAssembly, glue, TypeScript.
//!
//! ```text
//! src/, crates/ ─cargo─▶ target/…/context_compactor.wasm ─bindgen─▶ pkg/core.wasm, js/wasm/* ─tsc─▶ pkg/dist/*
//! crates/tokenizer ─cargo─▶ target/…/context_compactor_tokenizer.wasm ─▶ pkg/tokenizer.wasm, js/wasm/tokenizer-inline.js
//! crates/evaluator ─cargo─▶ target/…/context_compactor_evaluator.wasm ─▶ pkg-evaluator/evaluator.wasm, js/wasm/evaluator-inline.js
//! crates/core/src/policy/options.rs ─▶ js/generated/options.ts
//! node_modules/gpt-tokenizer/data ─vocabulary─▶ js/wasm/{o200k_base,cl100k_base}.js
//! js/catalogue.ts, node_modules/ ─esbuild─▶ pkg/dist/catalogue.js
//! js/entry/evaluator-*.ts ─tsc─▶ pkg-evaluator/dist/*
//! pkg*/dist/ ─esbuild─▶ pkg*/cjs/*
//! README.md ─▶ pkg/README.md
//! ```

use crate::stamp::{Stamp, files};
use crate::{Result, commonjs, glue, node, options, readme, run, vocabulary};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

/// A package of npm: its folder, and the projects of TypeScript that it is made of.
pub(crate) struct Package {
    pub(crate) folder: &'static str,
    projects: &'static [&'static str],
    /// Modules as base64, and the files of the package that have them.
    pub(crate) modules: &'static [(&'static str, &'static str)],
    /// Texts of vocabularies.
    pub(crate) texts: &'static [&'static str],
}

const PACKAGES: [Package; 2] = [
    Package {
        folder: "pkg",
        // What runs everywhere, then what needs Node: only that is checked with Node's types.
        projects: &["tsconfig.json", "tsconfig.node.json"],
        modules: &[("inline", "core"), ("tokenizer-inline", "tokenizer")],
        texts: &vocabulary::NAMES,
    },
    Package {
        folder: "pkg-evaluator",
        projects: &["tsconfig.evaluator.json"],
        modules: &[("evaluator-inline", "evaluator")],
        texts: &[],
    },
];

/// What `pkg/dist/catalogue.js` is made of besides its source, with the files of their licences.
const CATALOGUE: [(&str, &str); 3] =
    [("@pydantic/genai-prices", "LICENSE"), ("llm-zoo", "LICENSE"), ("fastest-levenshtein", "LICENSE.md")];

/// How the modules are compiled. The names are those of the profiles in `Cargo.toml`.
#[derive(Clone, Copy)]
pub(crate) enum Profile {
    /// What is shipped.
    Release,
    /// What is tried: incremental, without link-time optimization.
    Quick,
}

/// Builds what is not up to date. Says what it does, and nothing when there is nothing to do.
pub(crate) fn build(root: &Path, profile: Profile) -> Result<()> {
    let compiled = compile(root, profile)?;
    bind(root, &compiled.join("context_compactor.wasm"))?;
    tokenizer(root, &compiled.join("context_compactor_tokenizer.wasm"))?;
    evaluator(root, &compiled.join("context_compactor_evaluator.wasm"))?;
    options::write(root)?;
    translate(root)?;
    readme::write(root)
}

/// The engine, the tokenizer and the evaluator as WebAssembly: the folder that they are in. Cargo knows by itself what is up to date.
fn compile(root: &Path, profile: Profile) -> Result<PathBuf> {
    let profile = match profile {
        Profile::Release => "release",
        Profile::Quick => "quick",
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let folder = root.join("target");
    let mut command = Command::new(cargo);
    command
        .current_dir(root)
        .args([
            "build",
            "--quiet",
            "--profile",
            profile,
            "--package",
            "context-compactor",
            "--package",
            "context-compactor-tokenizer",
            "--package",
            "context-compactor-evaluator",
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
    Ok(folder.join(TARGET).join(profile))
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

/// `pkg/tokenizer.wasm`, and in `js/wasm/` the same as code and the vocabularies. It has no glue: `js/tokenizer.ts`.
fn tokenizer(root: &Path, compiled: &Path) -> Result<()> {
    let folder = root.join("js/wasm");
    let module = root.join("pkg/tokenizer.wasm");
    let source = root.join("node_modules").join(vocabulary::PACKAGE);
    let mut stamp = Stamp::new(root.join("target/glue/tokenizer.stamp"))?;
    stamp.input(compiled)?;
    stamp.input(&source.join("data"))?;
    stamp.output(&module);
    for name in vocabulary::NAMES.into_iter().chain(["tokenizer-inline"]) {
        stamp.output(folder.join(format!("{name}.js")));
    }
    if stamp.is_current() {
        return Ok(());
    }
    println!("build: tokenizer");
    let licence = fs::read_to_string(source.join("LICENSE"))
        .map_err(|_| format!("{} is missing: run `npm run build`, which installs it", source.display()))?;
    let wasm = fs::read(compiled)?;
    fs::write(&module, &wasm)?;
    fs::write(folder.join("tokenizer-inline.js"), glue::inline(&wasm))?;
    fs::write(folder.join("tokenizer-inline.d.ts"), glue::INLINE_TYPES)?;
    for name in vocabulary::NAMES {
        let table = vocabulary::table(&source, name)?;
        let text = format!(
            "/*! {name}, as {} has it:\n{}\n*/\n{}",
            vocabulary::PACKAGE,
            licence.trim(),
            glue::text(&table)
        );
        fs::write(folder.join(format!("{name}.js")), text)?;
        fs::write(folder.join(format!("{name}.d.ts")), glue::TEXT_TYPES)?;
    }
    stamp.write()
}

/// `pkg-evaluator/evaluator.wasm`, and the same as code. It has no glue either: `js/evaluator/module.ts`.
fn evaluator(root: &Path, compiled: &Path) -> Result<()> {
    let module = root.join("pkg-evaluator/evaluator.wasm");
    let inline = root.join("js/wasm/evaluator-inline.js");
    let mut stamp = Stamp::new(root.join("target/glue/evaluator.stamp"))?;
    stamp.input(compiled)?;
    stamp.output(&module);
    stamp.output(&inline);
    if stamp.is_current() {
        return Ok(());
    }
    println!("build: evaluator");
    let wasm = fs::read(compiled)?;
    fs::write(&module, &wasm)?;
    fs::write(inline.with_extension("d.ts"), glue::INLINE_TYPES)?;
    fs::write(&inline, glue::inline(&wasm))?;
    stamp.write()
}

/// `dist/` of every package: its scripts and, beside them, the glue and the modules as code. Then `cjs/`.
fn translate(root: &Path) -> Result<()> {
    let source = root.join("js");
    let modules = root.join("node_modules");
    let compiler = modules.join("typescript");
    let parts = CATALOGUE.map(|(name, _)| modules.join(name).join("package.json"));
    if let Some(missing) =
        [&compiler, &modules.join("esbuild")].into_iter().chain(&parts).find(|path| !path.exists())
    {
        return Err(
            format!("{} is missing: run `npm run build`, which installs it", missing.display()).into()
        );
    }
    fs::create_dir_all(root.join("target/glue"))?;
    let mut stamp = Stamp::new(root.join("target/glue/dist.stamp"))?;
    for input in [&source, &compiler.join("package.json")].into_iter().chain(&parts) {
        stamp.input(input)?;
    }
    for package in &PACKAGES {
        for project in package.projects {
            stamp.input(&root.join(project))?;
        }
        for kind in ["dist", "cjs"] {
            stamp.output(root.join(package.folder).join(kind).join("errors.js"));
        }
    }
    if stamp.is_current() {
        return Ok(());
    }
    println!("build: packages");
    for package in &PACKAGES {
        let dist = root.join(package.folder).join("dist");
        // A file whose source is gone must go too.
        if dist.exists() {
            fs::remove_dir_all(&dist)?;
        }
        for project in package.projects {
            run(node(root).arg(compiler.join("bin/tsc")).args(["--project", project]))?;
        }
        fs::create_dir_all(dist.join("wasm"))?;
        for file in files(&source.join("wasm"))? {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if package.holds(&name) {
                fs::copy(&file, dist.join("wasm").join(&*name))?;
            }
        }
        if package.folder == "pkg" {
            catalogue(root, &dist)?;
        }
        commonjs::write(root, package)?;
    }
    stamp.write()
}

impl Package {
    /// Whether a file of `js/wasm` is one of this package's. The glue is the engine's.
    fn holds(&self, name: &str) -> bool {
        let stem = name.trim_end_matches(".js").trim_end_matches(".d.ts");
        let is_module = self.modules.iter().any(|(module, _)| *module == stem);
        is_module || self.texts.contains(&stem) || (stem == "core" && self.folder == "pkg")
    }
}

/// One file of the catalogues of models, so that the package depends on nothing and bundlers load it apart. Their
/// licences are in front of it.
fn catalogue(root: &Path, dist: &Path) -> Result<()> {
    let mut licences = String::new();
    for (name, file) in CATALOGUE {
        let text = fs::read_to_string(root.join("node_modules").join(name).join(file))?;
        licences.push_str(&format!("{name}\n\n{}\n\n", text.trim()));
    }
    let options = [
        "--bundle",
        "--format=esm",
        "--target=es2022",
        "--minify",
        "--log-level=warning",
        "--allow-overwrite",
    ];
    run(node(root)
        .arg("node_modules/esbuild/bin/esbuild")
        .arg("js/catalogue.ts")
        .args(options)
        .arg(format!("--banner:js=/*!\n{licences}*/"))
        .arg(format!("--outfile={}", dist.join("catalogue.js").display())))
}
