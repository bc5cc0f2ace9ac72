//! The presets, as data: which rungs, in which order, with which numbers. The numbers are the documents' and stand
//! for a window of 200,000 tokens.

/// A rung of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    /// Results out, references in (`S1.1`).
    Offload,
    /// History to a summary (`S1.5` to `S1.9`).
    Summarise,
}

impl Rung {
    /// The name in plans, edits and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Rung::Offload => "offload",
            Rung::Summarise => "summarise",
        }
    }
}

/// What happens when every attempt at a summary failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The history stays as it is.
    None,
    /// The built-in summariser writes it.
    Extractive,
}

/// A preset.
#[derive(Debug, PartialEq)]
pub struct Preset {
    /// Its name in the public API.
    pub name: &'static str,
    /// The rungs, cheapest first.
    pub rungs: &'static [Rung],
    /// What its document says when every attempt at a summary failed.
    pub fallback: Fallback,
    /// Text before a summary in the message that holds it.
    pub summary_marker: &'static str,
    /// The assistant's message that keeps roles alternating where the cut cannot move.
    pub acknowledgement: &'static str,
    /// Its numbers.
    pub numbers: Numbers,
}

/// The numbers of a preset, in tokens unless the name says otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbers {
    /// Offloading starts at this many tokens.
    pub offload_threshold: usize,
    /// Share of the messages that is scanned.
    pub scan_ratio: f64,
    /// Only results longer than this many characters.
    pub min_chars: usize,
    /// Summarise when offloading freed less than this.
    pub compact_trigger_threshold: usize,
    /// Steps between two attempts to summarise.
    pub compact_cooldown_steps: u64,
    /// Messages kept at the end.
    pub preserve_count: usize,
    /// Target length of a summary.
    pub target_tokens: usize,
    /// Attempts in total.
    pub retry_count: u32,
    /// Wait between attempts, in ms, times the number of the attempt.
    pub retry_wait_ms: u64,
}

/// Every preset.
pub static PRESETS: [&Preset; 1] = [&OFFLOAD];

/// "Offload first, then compact" (`S1`).
pub static OFFLOAD: Preset = Preset {
    name: "offload",
    rungs: &[Rung::Offload, Rung::Summarise],
    fallback: Fallback::None,
    summary_marker: "[Compressed History]\n\n",
    acknowledgement: "Understood. Continuing with compressed context.",
    numbers: Numbers {
        offload_threshold: 150_000,
        scan_ratio: 0.5,
        min_chars: 50,
        compact_trigger_threshold: 15_000,
        compact_cooldown_steps: 5,
        preserve_count: 5,
        target_tokens: 8_000,
        retry_count: 3,
        retry_wait_ms: 1_000,
    },
};
