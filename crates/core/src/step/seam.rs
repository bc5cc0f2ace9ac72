//! Where the engine goes on in a file of its own, which a host loads when it is first needed.

use super::Io;
use crate::error::Result;
use serde::Serialize;
#[cfg(target_family = "wasm")]
use std::sync::OnceLock;

/// A part of the engine that is a file of its own in a module of WebAssembly. What is in none is always there: it counts,
/// reads, appends, and prepares a prompt as long as nothing has to be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeStage {
    /// The ladder, and what it needs.
    Compact,
    /// What few conversations call: archives, erasures, snapshots, search.
    Rest,
}

/// A way into a stage: `T` are the functions that others call there. Natively they are part of the program. In a module of
/// WebAssembly nothing leads to them but what its bindings link, so that the stage can be taken out.
pub struct Seam<T: 'static> {
    stage: CodeStage,
    #[cfg(not(target_family = "wasm"))]
    behind: &'static T,
    #[cfg(target_family = "wasm")]
    behind: OnceLock<fn() -> &'static T>,
}

impl<T> Seam<T> {
    #[cfg(not(target_family = "wasm"))]
    pub(crate) const fn new(stage: CodeStage, behind: &'static T) -> Self {
        Seam { stage, behind }
    }

    #[cfg(target_family = "wasm")]
    pub(crate) const fn new(stage: CodeStage, _: &'static T) -> Self {
        Seam { stage, behind: OnceLock::new() }
    }

    /// Says where the functions are once the stage is loaded.
    #[cfg(target_family = "wasm")]
    pub fn link(&self, behind: fn() -> &'static T) {
        let _ = self.behind.set(behind);
    }

    /// The functions behind it, which the host loads if it has to.
    ///
    /// Errors: [`Code::StageUnavailable`](crate::Code::StageUnavailable).
    pub(crate) async fn enter(&self, io: &Io) -> Result<&'static T> {
        io.load(self.stage).await?;
        Ok(self.behind())
    }

    #[cfg(not(target_family = "wasm"))]
    fn behind(&self) -> &'static T {
        self.behind
    }

    #[cfg(target_family = "wasm")]
    fn behind(&self) -> &'static T {
        // Bindings link every seam when the module starts.
        self.behind.get().expect("a seam is linked")()
    }
}
