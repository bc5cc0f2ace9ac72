//! Types of tool, by which results become digests.

/// Types of tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Digest {
    /// Searches the web.
    Search,
    /// Reads a file.
    File,
    /// Asks a database.
    Query,
    /// Calls an API.
    Api,
}

impl Digest {
    /// What the digest of such a result is called.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Digest::Search => "search results",
            Digest::File => "outline of the file",
            Digest::Query => "sample of the rows",
            Digest::Api => "key fields of the response",
        }
    }
}
