//! The rungs of the ladder.

/// A rung of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// New results of some types of tool: what matters of them (`S4.5`).
    Process,
    /// New results that are too large: a preview and a reference (`S3.8`).
    Admit,
    /// Old results of some tools: a mark that they were there (`S3.1`).
    Clear,
    /// Results out, references in (`S1.1`).
    Offload,
    /// Results shortened one by one by a model (`S2.1`, `S2.4`).
    Compress,
    /// History to a summary (`S1.5` to `S1.9`, `S3.4`, `S4.2`).
    Summarise,
    /// Old checkpoints to shorter ones (`S5.8`).
    Age,
    /// Several old, short checkpoints to one (`S5.8`).
    Merge,
    /// When nothing else fits: a harder summary, then a fresh context (`S5.15`, `S4.7`).
    Rollover,
}

impl Rung {
    /// The name in plans and edits.
    pub fn as_str(self) -> &'static str {
        match self {
            Rung::Process | Rung::Admit => "admit",
            Rung::Clear => "clear",
            Rung::Offload => "offload",
            Rung::Compress => "compress",
            Rung::Summarise => "summarize",
            Rung::Age => "age",
            Rung::Merge => "merge",
            Rung::Rollover => "rollover",
        }
    }

    /// The name in what is stored, which does not change.
    pub(crate) fn stored(self) -> &'static str {
        match self {
            Rung::Summarise => "summarise",
            rung => rung.as_str(),
        }
    }
}
