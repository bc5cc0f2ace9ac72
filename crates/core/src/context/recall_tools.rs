//! The names of the tools with which a model recalls: what they ask and are answered only says again what is elsewhere.

/// The tool with which a model reads the text behind a reference.
pub(crate) const RECALL_READ: &str = "recall_read";
/// The tool with which a model searches the transcript.
pub(crate) const RECALL_SEARCH: &str = "recall_search";

/// True for a tool with which a model recalls.
pub(crate) fn is_recall(name: &str) -> bool {
    [RECALL_READ, RECALL_SEARCH].contains(&name)
}
