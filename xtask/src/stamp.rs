//! What a step was made from, so that it is not made again.

use crate::Result;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// A step's inputs as one number, kept in a file beside its outputs.
pub(crate) struct Stamp {
    file: PathBuf,
    inputs: DefaultHasher,
    outputs: Vec<PathBuf>,
}

impl Stamp {
    /// A stamp that is kept in `file`. This program is an input of every step.
    pub(crate) fn new(file: PathBuf) -> Result<Self> {
        let mut stamp = Self { file, inputs: DefaultHasher::new(), outputs: Vec::new() };
        stamp.input(&std::env::current_exe()?)?;
        Ok(stamp)
    }

    /// Adds the path and contents of a file, or of every file below a folder. A missing file is an input too.
    pub(crate) fn input(&mut self, path: &Path) -> Result<()> {
        for file in files(path)? {
            file.hash(&mut self.inputs);
            fs::read(&file).ok().hash(&mut self.inputs);
        }
        Ok(())
    }

    /// Adds a file that the step writes: when it is missing, the step is not done.
    pub(crate) fn output(&mut self, path: impl Into<PathBuf>) {
        self.outputs.push(path.into());
    }

    pub(crate) fn is_current(&self) -> bool {
        self.outputs.iter().all(|output| output.exists())
            && fs::read_to_string(&self.file).is_ok_and(|kept| kept == self.value())
    }

    /// To be called when the step has succeeded.
    pub(crate) fn write(&self) -> Result<()> {
        Ok(fs::write(&self.file, self.value())?)
    }

    fn value(&self) -> String {
        format!("{:016x}", self.inputs.finish())
    }
}

/// The file itself, or all files below a folder, in a stable order.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        found.extend(files(&entry)?);
    }
    Ok(found)
}
