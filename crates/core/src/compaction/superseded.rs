//! Which results tell how things stand, and which do not any more (`X3`): what was read or run again since is the first that may
//! leave, the newest state of the files in work the last. A read of a file that was only changed since is neither: with the changes
//! it is how the file stands.

use super::calls::{Answered, facts};
use crate::context::CallFacts;
use crate::policy::{KeepResults, ToolPolicies};
use std::collections::{HashMap, HashSet};

/// What a result is worth beside the others of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultStanding {
    /// A later call tells it anew: what became of it.
    Superseded(&'static str),
    /// A file that was changed since.
    Changed,
    /// Nothing later says the same.
    Stands,
    /// The newest state of a file that was changed here.
    InWork,
}

const CHANGED: &str = "the file was changed since";
const RENEWED: &str = "the file was changed and read again since";
const AGAIN: &str = "the same call was made again since";
const NEWER: &str = "the tool has a newer result";
const DISPOSABLE: &str = "no longer needed";

impl ResultStanding {
    /// What became of it since.
    pub(super) fn since(self) -> Option<&'static str> {
        match self {
            ResultStanding::Superseded(since) => Some(since),
            ResultStanding::Changed => Some(CHANGED),
            ResultStanding::Stands | ResultStanding::InWork => None,
        }
    }
}

/// The standing of each of these results, which are all of a context in their order, with what the app says of their tools.
pub(super) fn standings(results: &[Answered], policies: &ToolPolicies) -> Vec<ResultStanding> {
    let succeeded = results.iter().filter(|result| !result.is_error);
    let files = succeeded.flat_map(|result| &facts(&result.call).files);
    let changed: HashSet<&str> = files.filter(|file| file.changes).map(|file| &*file.path).collect();
    let mut standings = vec![ResultStanding::Stands; results.len()];
    // From the newest on: what later calls said, and what they changed.
    let mut said: HashMap<&str, bool> = HashMap::new();
    let mut read_since: HashSet<&str> = HashSet::new();
    let mut changed_since: HashSet<&str> = HashSet::new();
    let mut renewed: HashSet<&str> = HashSet::new();
    let mut newer: HashSet<&str> = HashSet::new();
    for (result, standing) in results.iter().zip(&mut standings).rev() {
        let CallFacts { source, named, files } = facts(&result.call);
        let reads = !files.is_empty() && files.iter().all(|file| !file.changes);
        // Of calls that nothing names, each may tell something else.
        let source = (!named.is_empty()).then_some(&**source);
        let later = source.and_then(|source| said.get(source));
        let is_newest = newer.insert(&result.call.tool);
        *standing = match later {
            _ if result.is_disposable
                || policies.keep(&result.call.tool) == Some(KeepResults::Disposable) =>
            {
                ResultStanding::Superseded(DISPOSABLE)
            }
            _ if policies.keep(&result.call.tool) == Some(KeepResults::Newest) && !is_newest => {
                ResultStanding::Superseded(NEWER)
            }
            // One that failed later tells nothing in the place of one that did not.
            Some(succeeded) if *succeeded || result.is_error => ResultStanding::Superseded(AGAIN),
            _ if result.is_error || !reads => ResultStanding::Stands,
            _ if files.iter().all(|file| renewed.contains(&*file.path)) => {
                ResultStanding::Superseded(RENEWED)
            }
            _ if files.iter().any(|file| changed_since.contains(&*file.path)) => ResultStanding::Changed,
            _ if files.iter().any(|file| changed.contains(&*file.path)) => ResultStanding::InWork,
            _ => ResultStanding::Stands,
        };
        if let Some(source) = source {
            *said.entry(source).or_default() |= !result.is_error;
        }
        for file in files.iter().filter(|_| !result.is_error) {
            match file.changes {
                false => read_since.insert(&file.path),
                true if read_since.contains(&*file.path) => renewed.insert(&file.path),
                true => changed_since.insert(&file.path),
            };
        }
    }
    standings
}
