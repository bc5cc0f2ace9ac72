//! `cargo xtask build`: Rust to WebAssembly, glue, TypeScript.
//!
//! ```text
//! src/, crates/ ─cargo─▶ target/…/context_compactor.wasm ─split, bindgen, wasm-opt─▶ pkg/core.wasm, js/wasm/*, js/generated/build.ts ─tsc─▶ pkg/dist/*
//! crates/tokenizer ─cargo─▶ target/…/context_compactor_tokenizer.wasm ─▶ pkg/tokenizer.wasm, js/wasm/tokenizer-inline.js
//! node_modules/gpt-tokenizer/data ─vocabulary─▶ pkg-vocabularies/dist/*, pkg-vocabularies/cjs/*
//! crates/evaluator ─cargo─▶ target/…/context_compactor_evaluator.wasm ─▶ pkg-evaluator/evaluator.wasm, js/wasm/evaluator-inline.js
//! crates/core/src/policy/options.rs ─▶ js/generated/options.ts
//! crates/wire/src/provider/overflow.rs ─▶ js/generated/overflow.ts
//! crates/estimator/tables/*.bin ─▶ js/generated/tables/*.ts
//! js/catalogue.ts, node_modules/ ─esbuild─▶ pkg/dist/catalogue.js
//! js/entry/evaluator-*.ts ─tsc─▶ pkg-evaluator/dist/*
//! js/entry/ui*.ts ─tsc─▶ pkg-ui/dist/*
//! pkg*/dist/ ─esbuild, rolldown─▶ pkg*/dist/* without comments, pkg/node/*, pkg*/cjs/*
//! README.md ─▶ pkg/README.md
//! ```

use crate::stamp::{Stamp, files};
use crate::{Result, glue, node, options, overflow, readme, run, shrink, stages, tables, vocabulary};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

/// A package of npm: its folder, and the projects of TypeScript that it is made of.
pub(crate) struct Package {
    pub(crate) folder: &'static str,
    projects: &'static [&'static str],
    /// Modules as code, and the files of the package that have them.
    pub(crate) modules: &'static [(&'static str, &'static str)],
}

const PACKAGES: [Package; 3] = [
    Package {
        folder: "pkg",
        // What runs everywhere, then what needs Node: only that is checked with Node's types.
        projects: &["tsconfig.json", "tsconfig.node.json"],
        modules: &[
            ("inline", "core"),
            ("inline-compact", "compact"),
            ("inline-rest", "rest"),
            ("inline-shared", "shared"),
            ("tokenizer-inline", "tokenizer"),
        ],
    },
    Package {
        folder: "pkg-evaluator",
        projects: &["tsconfig.evaluator.json"],
        modules: &[("evaluator-inline", "evaluator")],
    },
    // Its types are of the package before it, as an app has it.
    Package { folder: "pkg-ui", projects: &["tsconfig.ui.json"], modules: &[] },
];

/// What makes `node/` and `cjs/` of `dist/`.
const MORE_FORMS: &str = "scripts/packages.mjs";

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
    bind(root, profile, &compile(root, profile, ENGINE)?)?;
    tokenizer(root, &compile(root, profile, TOKENIZER)?)?;
    vocabulary::write(root)?;
    evaluator(root, &compile(root, profile, "context-compactor-evaluator")?)?;
    options::write(root)?;
    overflow::write(root)?;
    tables::write(root)?;
    translate(root)?;
    readme::write(root)
}

const ENGINE: &str = "context-compactor";
const TOKENIZER: &str = "context-compactor-tokenizer";

/// The engine as it is linked, before its stages are taken out of it.
pub(crate) fn linked(root: &Path) -> Result<Vec<u8>> {
    Ok(fs::read(compile(root, Profile::Release, ENGINE)?)?)
}

/// The engine, the tokenizer or the evaluator as WebAssembly: its file. Cargo knows by itself what is up to date.
fn compile(root: &Path, profile: Profile, name: &str) -> Result<PathBuf> {
    let profile = match profile {
        Profile::Release => "release",
        Profile::Quick => "quick",
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Crates that two of them share are built by the flags of one; each would build them anew for the other, and all behind them.
    let folder = root.join(if name == TOKENIZER { "target/tokenizer" } else { "target" });
    let mut command = Command::new(&cargo);
    command
        .current_dir(root)
        // As one type only: beside an rlib Cargo leaves link-time optimization out, and says nothing.
        .args(["rustc", "--quiet", "--profile", profile, "--package", name, "--lib"])
        .args(["--crate-type", "cdylib", "--target", TARGET])
        .arg("--target-dir")
        .arg(&folder)
        .env("CARGO_ENCODED_RUSTFLAGS", flags(name));
    // Where no standard library for WebAssembly is at hand, only its source is.
    if env::var_os("CC_BUILD_STD").is_some() {
        command.arg("-Zbuild-std=std,panic_abort").env("RUSTC_BOOTSTRAP", "1");
    }
    // What functions and data refer to is how the stages are told apart.
    if name == ENGINE {
        command.args(["--", "-C", "link-arg=--emit-relocs"]);
    }
    run(&mut command)?;
    Ok(folder.join(TARGET).join(profile).join(name.replace('-', "_")).with_extension("wasm"))
}

/// Messages of panics name source files. Without the first of these flags they would carry the paths of the machine that
/// built, and no two machines would make the same module.
///
/// The second keeps the bodies of async functions apart: of those that are called once, one function would be made, whose
/// states are all told apart in one place. The tokenizer has none, and loops that want to be one.
fn flags(name: &str) -> String {
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let paths = home.map(|home| format!("--remap-path-prefix={}=/cargo", home.display()));
    let apart = (name != TOKENIZER).then(|| "-Cllvm-args=-inline-max-stacksize=48".to_owned());
    paths.into_iter().chain(apart).collect::<Vec<_>>().join("\u{1f}")
}

/// The engine's files in `pkg/`, `js/wasm/`, and what the package knows of its build.
fn bind(root: &Path, profile: Profile, compiled: &Path) -> Result<()> {
    let folder = root.join("js/wasm");
    let work = root.join("target/glue");
    fs::create_dir_all(&work)?;
    let mut stamp = Stamp::new(work.join("stamp"))?;
    stamp.input(compiled)?;
    let glue_files = ["core.js", "core.d.ts"].map(|name| folder.join(name));
    let facts = root.join("js/generated/build.ts");
    stamp.output(&facts);
    glue_files.iter().for_each(|output| stamp.output(output));
    for (code, file) in PACKAGES[0].modules.iter().filter(|(_, file)| stages::FILES.contains(file)) {
        stamp.output(root.join(format!("pkg/{file}.wasm")));
        stamp.output(folder.join(format!("{code}.js")));
    }
    if stamp.is_current() {
        return Ok(());
    }
    println!("build: glue");
    let finish = |wasm: &[u8]| match profile {
        Profile::Release => shrink::shrink(root, wasm, &work.join("shrink")),
        Profile::Quick => Ok(wasm.to_vec()),
    };
    let mut parts = stages::split(compiled, &work.join("stages"))?;
    for later in parts.later.values_mut() {
        *later = finish(later)?;
    }
    let made = glue::generate(&parts, &work, finish)?;
    fs::create_dir_all(&folder)?;
    fs::create_dir_all(root.join("js/generated"))?;
    for (code, file) in PACKAGES[0].modules.iter().filter(|(_, file)| stages::FILES.contains(file)) {
        let wasm = match *file {
            "core" => made.wasm.clone(),
            later => glue::stamped(
                parts.later.get(later).ok_or_else(|| format!("no file {later} came of the module"))?,
                &made.build,
            )?,
        };
        fs::write(root.join(format!("pkg/{file}.wasm")), &wasm)?;
        fs::write(folder.join(format!("{code}.js")), glue::inline(root, &wasm)?)?;
        fs::write(folder.join(format!("{code}.d.ts")), glue::INLINE_TYPES)?;
    }
    fs::write(facts, facts_of(&made.build, &parts))?;
    for (output, text) in glue_files.iter().zip([&made.js, &made.types]) {
        fs::write(output, text)?;
    }
    stamp.write()
}

/// `js/generated/build.ts`.
fn facts_of(build: &str, parts: &stages::Parts) -> String {
    let stages = parts.stages.iter().map(|(stage, files)| format!("  {stage}: {files:?},\n"));
    format!(
        "/** Made by the build. */\n\n\
         /** The version of the package. */\nexport const VERSION = \"{}\";\n\n\
         /** What the files of this build have in their section `build`. */\nexport const BUILD = \"{build}\";\n\n\
         /** The files that each stage of the engine needs. */\nexport const STAGES = {{\n{}}} as const;\n",
        env!("CARGO_PKG_VERSION"),
        stages.collect::<String>()
    )
}

/// `pkg/tokenizer.wasm`, and in `js/wasm/` the same as code. It has no glue: `js/tokenizer.ts`.
fn tokenizer(root: &Path, compiled: &Path) -> Result<()> {
    let module = root.join("pkg/tokenizer.wasm");
    let inline = root.join("js/wasm/tokenizer-inline.js");
    let mut stamp = Stamp::new(root.join("target/glue/tokenizer.stamp"))?;
    stamp.input(compiled)?;
    stamp.output(&module);
    stamp.output(&inline);
    if stamp.is_current() {
        return Ok(());
    }
    println!("build: tokenizer");
    let wasm = fs::read(compiled)?;
    fs::write(&module, &wasm)?;
    fs::write(inline.with_extension("d.ts"), glue::INLINE_TYPES)?;
    fs::write(&inline, glue::inline(root, &wasm)?)?;
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
    fs::write(&inline, glue::inline(root, &wasm)?)?;
    stamp.write()
}

/// `dist/` of every package: its scripts and, beside them, the glue and the modules as code. Then `node/` and `cjs/`.
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
    for input in [&source, &compiler.join("package.json"), &root.join(MORE_FORMS)].into_iter().chain(&parts) {
        stamp.input(input)?;
    }
    for package in &PACKAGES {
        for project in package.projects {
            stamp.input(&root.join(project))?;
        }
        for output in ["dist/entry", "cjs/entry/all.js"] {
            stamp.output(root.join(package.folder).join(output));
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
        plain(root, &dist)?;
        run(node(root).arg(MORE_FORMS).arg(package.folder))?;
    }
    stamp.write()
}

/// Takes comments out of the scripts. Lines and names stay, so that they can be read where they are, without maps that would be
/// larger than they: an app's own minifier shortens them. Nobody reads the glue, and not every app has a minifier.
fn plain(root: &Path, dist: &Path) -> Result<()> {
    let scripts: Vec<PathBuf> = files(dist)?
        .into_iter()
        .filter(|file| file.extension().is_some_and(|kind| kind == "js"))
        // What is data, or was made by esbuild.
        .filter(|file| !file.ends_with("catalogue.js") && !file.starts_with(dist.join("wasm")))
        .collect();
    let shorten = |scripts: &[PathBuf], how: &[&str]| {
        run(node(root)
            .arg("node_modules/esbuild/bin/esbuild")
            .args(scripts)
            .args(how)
            .args(["--format=esm", "--target=es2022", "--log-level=warning", "--allow-overwrite"])
            .arg(format!("--outbase={}", dist.display()))
            .arg(format!("--outdir={}", dist.display())))
    };
    // Comments go with the spaces alone, which the second pass puts back.
    shorten(&scripts, &["--minify-whitespace", "--minify-syntax"])?;
    shorten(&scripts, &[])?;
    let glue = dist.join("wasm/core.js");
    if glue.exists() { shorten(&[glue], &["--minify"]) } else { Ok(()) }
}

impl Package {
    /// Whether a file of `js/wasm` is one of this package's. The glue is the engine's.
    fn holds(&self, name: &str) -> bool {
        let stem = name.trim_end_matches(".js").trim_end_matches(".d.ts");
        let is_module = self.modules.iter().any(|(module, _)| *module == stem);
        is_module || (stem == "core" && self.folder == "pkg")
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
        "--format=iife",
        "--global-name=catalogue",
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
        // As a line of its own: what is before it is a script, too.
        .arg("--footer:js=export const { SOURCE, open } = catalogue;")
        .arg(format!("--outfile={}", dist.join("catalogue.js").display())))
}
