//! Build tasks, run as `cargo xtask TASK`.
//!
//! `build` makes everything that the npm package holds besides its committed files, and does nothing twice. With `--quick`
//! the modules are compiled for a short wait and not for size: the same behavior, about four times as large.
//! `size` measures what was built and compares it with the committed snapshot. `size --why` says what leads to it.
//! `mutate` writes a copy of sources in which every small mistake waits behind a switch (`npm run mutants -- --generated`).

mod build;
mod glue;
mod mutate;
mod options;
mod overflow;
mod readme;
mod shrink;
mod stages;
mod stamp;
mod tables;
mod vocabulary;
mod why;

use build::Profile;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str =
    "usage: cargo xtask build [--quick] | size [--update | --why [TEXT]] | mutate FROM TO LIST WITHOUT";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = root();
    let done = match arguments.split_first().map(|(task, rest)| (task.as_str(), rest)) {
        Some(("build", [])) => build::build(&root, Profile::Release),
        Some(("build", [quick])) if quick == "--quick" => build::build(&root, Profile::Quick),
        Some(("mutate", [from, to, list, without])) => {
            let [from, to, list, without] = [from, to, list, without].map(Path::new);
            mutate::mutate(from, to, list, without)
        }
        Some(("size", [why, text @ ..])) if why == "--why" && text.len() < 2 => {
            build::linked(&root).and_then(|wasm| why::why(&wasm, text.first().map(String::as_str)))
        }
        Some(("size", rest)) => build::build(&root, Profile::Release)
            .and_then(|()| run(node(&root).arg("bench/size.mjs").args(rest))),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the workspace: the one above this package's.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

fn node(root: &Path) -> Command {
    let mut command = Command::new("node");
    command.current_dir(root);
    command
}

/// Runs a command with this process's output; anything but success is an error that shows the command.
fn run(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| format!("{command:?} did not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}").into()) }
}
