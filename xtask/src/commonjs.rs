//! `cjs/`: a package for who cannot `require` ES modules, such as Jest. It is what `dist/` is, file by file; only
//! data is read from the files that the ES modules have, so that it is not in the package twice.

use crate::build::Package;
use crate::stamp::files;
use crate::{Result, node, run};
use std::fs;
use std::path::Path;

/// Writes the folder anew.
pub(crate) fn write(root: &Path, package: &Package) -> Result<()> {
    let [dist, folder] = ["dist", "cjs"].map(|kind| root.join(package.folder).join(kind));
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("wasm"))?;
    fs::write(folder.join("package.json"), "{ \"type\": \"commonjs\" }\n")?;
    let mut scripts = Vec::new();
    for file in files(&dist)? {
        let path = file.strip_prefix(&dist)?.to_owned();
        let name = path.to_string_lossy();
        if runs_elsewhere(&name) {
            continue;
        }
        let target = folder.join(&path);
        if name.ends_with(".d.ts") {
            fs::create_dir_all(target.parent().unwrap_or(&folder))?;
            fs::copy(&file, target)?;
        } else if !is_data(package, &name) {
            scripts.push(file);
        }
    }
    for (name, module) in package.modules {
        fs::write(folder.join(format!("wasm/{name}.js")), bytes(module))?;
    }
    for name in package.texts {
        fs::write(folder.join(format!("wasm/{name}.js")), text(name))?;
    }
    run(node(root)
        .arg("node_modules/esbuild/bin/esbuild")
        .args(scripts)
        // Jest has no `import()`.
        .args(["--format=cjs", "--platform=node", "--target=es2022", "--supported:dynamic-import=false"])
        .args(["--log-level=warning", "--legal-comments=inline"])
        .arg(format!("--outbase={}", dist.display()))
        .arg(format!("--outdir={}", folder.display())))
}

/// Entries of hosts that import a compiled module, and the command line, which nothing requires.
fn runs_elsewhere(name: &str) -> bool {
    let is_of_host =
        name.starts_with("entry/") && ["workerd.", "edge."].iter().any(|host| name.contains(host));
    is_of_host || name.starts_with("cli/")
}

fn is_data(package: &Package, name: &str) -> bool {
    let of = |data: &str| name == format!("wasm/{data}.js");
    package.modules.iter().any(|(data, _)| of(data)) || package.texts.iter().any(|data| of(data))
}

/// What `wasm/….js` exports, from the module's file.
fn bytes(module: &str) -> String {
    format!(
        "const {{ readFileSync }} = require(\"node:fs\");\n\
         exports.bytes = readFileSync(`${{__dirname}}/../../{module}.wasm`);\n"
    )
}

/// What a vocabulary's `wasm/….js` exports: the last string of the ES module, which needs no escaping.
fn text(name: &str) -> String {
    format!(
        "const {{ readFileSync }} = require(\"node:fs\");\n\
         exports.text = readFileSync(`${{__dirname}}/../../dist/wasm/{name}.js`, \"utf8\").split('\"').at(-2);\n"
    )
}
