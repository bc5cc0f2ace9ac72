//! The stages of the engine: what only one of them reaches is taken out of the module, into a file of its own.
//!
//! The cuts are in `src/stages.rs`. A file shares the memory of the first and its table of functions, whose places it fills.

use crate::Result;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use wasm_split_cli_support::{Options, transform};

/// The files that the engine consists of.
pub(crate) const FILES: [&str; 4] = ["core", "compact", "rest", "shared"];

/// The stages, each of which has a file of its own.
const STAGES: [&str; 2] = ["compact", "rest"];

/// A module that was taken apart.
pub(crate) struct Parts {
    /// What is always needed; it has no glue yet.
    pub(crate) core: PathBuf,
    /// The other files by name.
    pub(crate) later: BTreeMap<&'static str, Vec<u8>>,
    /// The files that each stage needs.
    pub(crate) stages: BTreeMap<&'static str, Vec<&'static str>>,
}

/// Takes a module apart, in `folder`, which is only a place to work in.
pub(crate) fn split(compiled: &Path, folder: &Path) -> Result<Parts> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    let wasm = fs::read(compiled)?;
    let core = folder.join("core.wasm");
    let mut options = Options::new(&wasm);
    (options.output_dir, options.main_out_path) = (folder, &core);
    let made = transform(options).map_err(|error| format!("{error:#}"))?;
    let mut parts = Parts { core: core.clone(), later: BTreeMap::new(), stages: BTreeMap::new() };
    for stage in STAGES {
        let files = made.prefetch_map.get(stage).ok_or_else(|| format!("stage {stage} is empty"))?;
        let mut names = Vec::new();
        for file in files {
            let name = if *file == format!("split_{stage}") { stage } else { "shared" };
            parts.later.insert(name, bare(&fs::read(folder.join(format!("{file}.wasm")))?)?);
            names.push(name);
        }
        parts.stages.insert(stage, names);
    }
    // One stage more, and what two of three share would be a file more.
    if parts.later.len() != made.split_modules.len() {
        return Err(format!("the module fell into other files than {FILES:?}").into());
    }
    Ok(parts)
}

/// A module without what engines skip: names of functions, and who made it.
pub(crate) fn bare(wasm: &[u8]) -> Result<Vec<u8>> {
    const HEAD: usize = 8;
    let cut_off = "a module is cut off";
    let mut bare = wasm.get(..HEAD).ok_or(cut_off)?.to_vec();
    let mut at = HEAD;
    while at < wasm.len() {
        let (mut length, mut begin) = (0, at + 1);
        for shift in (0..).step_by(7) {
            let byte = *wasm.get(begin).ok_or(cut_off)?;
            begin += 1;
            length |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let section = wasm.get(at..begin + length).ok_or(cut_off)?;
        if section.first() != Some(&0) {
            bare.extend(section);
        }
        at = begin + length;
    }
    Ok(bare)
}
