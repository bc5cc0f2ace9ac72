//! The rungs of the ladder.

/// The rungs from one table, in the order of the ladder. For each: its name in plans and edits, what it does, and whether it
/// asks a model, as `docs/presets.md` says it.
macro_rules! rungs {
    ($($(#[$doc:meta])* $rung:ident = $name:literal, $about:literal, $model:literal;)*) => {
        /// A rung of the ladder.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rung {
            $($(#[$doc])* $rung,)*
        }

        impl Rung {
            /// Every rung, in the order of the ladder.
            pub const ALL: [Rung; [$($name),*].len()] = [$(Rung::$rung),*];

            /// The name in plans and edits.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Rung::$rung => $name,)*
                }
            }

            /// What it does, and whether it asks a model.
            pub fn about(self) -> (&'static str, &'static str) {
                match self {
                    $(Rung::$rung => ($about, $model),)*
                }
            }
        }
    };
}

rungs! {
    /// `S4.5`
    Process = "admit", "digest: new results of search, file, query and API tools become what matters of them (in edits: `admit`)", "no";
    /// `S3.8`
    Admit = "admit", "admit: new results that are too large become a preview and a reference", "no";
    /// `S3.1`
    Clear = "clear", "clear: old results of some tools become a mark", "no";
    /// `S1.1`
    Offload = "offload", "offload: old results become references", "no";
    /// `S2.1`, `S2.4`
    Compress = "compress", "compress: results are shortened one by one", "where structure does not do";
    /// `S1.5` to `S1.9`, `S3.4`, `S4.2`
    Summarise = "summarize", "summarize: the older history becomes a summary", "yes";
    /// `S5.8`
    Age = "age", "age: old checkpoints become shorter ones", "yes";
    /// `S5.8`
    Merge = "merge", "merge: several old, short checkpoints become one", "yes";
    /// `X5`
    Media = "media", "media: old images and documents become a text where the request has more bytes than `limits.requestBytes`", "no";
    /// When nothing else fits (`S5.15`, `S4.7`).
    Rollover = "rollover", "rollover: when nothing else fits, recent messages are summarized too, then a fresh context begins", "yes";
}

impl Rung {
    /// The name in what is stored, which does not change.
    pub(crate) fn stored(self) -> &'static str {
        match self {
            Rung::Summarise => "summarise",
            rung => rung.as_str(),
        }
    }
}
