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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_current_until_an_input_or_an_output_changes() -> Result<()> {
        let folder = std::env::temp_dir().join(format!("xtask-stamp-{}", std::process::id()));
        fs::create_dir_all(folder.join("in"))?;
        let is_current = |write: bool| -> Result<bool> {
            let mut stamp = Stamp::new(folder.join("stamp"))?;
            stamp.input(&folder.join("in"))?;
            stamp.output(folder.join("out"));
            let current = stamp.is_current();
            if write {
                stamp.write()?;
            }
            Ok(current)
        };
        fs::write(folder.join("in/a"), "1")?;
        fs::write(folder.join("out"), "")?;
        assert!(!is_current(true)?, "nothing was made yet");
        assert!(is_current(false)?, "nothing has changed");
        fs::write(folder.join("in/a"), "2")?;
        assert!(!is_current(true)?, "other contents");
        fs::write(folder.join("in/b"), "")?;
        assert!(!is_current(true)?, "another file");
        fs::rename(folder.join("in/b"), folder.join("in/c"))?;
        assert!(!is_current(true)?, "another name");
        fs::remove_file(folder.join("out"))?;
        assert!(!is_current(false)?, "no output");
        Ok(fs::remove_dir_all(&folder)?)
    }
}
