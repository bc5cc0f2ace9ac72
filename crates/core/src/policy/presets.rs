//! The presets, as data: which rungs, in which order, with which numbers. The numbers are the documents' and stand
//! for a window of 200,000 tokens.

use super::rung::Rung;
use crate::checkpoint::{LEVELS, Levels};
use crate::summary::{self, PromptTemplate};

/// What happens when every attempt at a summary failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The history stays as it is.
    None,
    /// The built-in summariser writes it.
    Extractive,
    /// It does that where a prompt does not fit otherwise (`W22`).
    Needed,
}

/// When a session acts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// At this many tokens (`S1.1`).
    Tokens(usize),
    /// At this share of the window (`S4.1`).
    Fraction(f64),
    /// Above what is left of the window after an answer of at most `output` tokens and `fixed` tokens for the system
    /// prompt and the tools (`S3.2`).
    Left {
        /// The most that is kept free for an answer.
        output: usize,
        /// What the system prompt and the tools may take before they count.
        fixed: usize,
    },
    /// Above a share of what is left of the window after the prompt's budget and the margin (`S5.9`).
    Room,
    /// At a share of the window that is less in a larger one (`W2`).
    Window,
}

/// A preset.
#[derive(Debug, PartialEq)]
pub struct Preset {
    /// Its name in the public API.
    pub name: &'static str,
    /// The rungs, cheapest first.
    pub rungs: &'static [Rung],
    /// When a session acts.
    pub when: When,
    /// What the summariser is asked for.
    pub prompt: &'static PromptTemplate,
    /// Text before a summary in the message that holds it.
    pub summary_marker: &'static str,
    /// A summary is the model's message where the user's follows it and the format lets the model begin (`S4.2`); it is
    /// the user's otherwise, so that roles alternate whatever follows.
    pub assistant_summaries: bool,
    /// The assistant's message that keeps roles alternating.
    pub acknowledgement: &'static str,
    /// Where a user's message would follow the summary an acknowledgement comes between, also in a format whose roles
    /// need not alternate.
    pub acknowledges: bool,
    /// Summaries are checkpoints: earlier ones stay as messages of their own, each of a level that the tokens decide,
    /// made in six stages (`S5.5` to `S5.8`).
    pub checkpoints: bool,
    /// Old results of every tool are cleared, unless an option names some; else those of [`COMPACTABLE_TOOLS`].
    pub clears_every_tool: bool,
    /// The placeholder of a result says how long it was, its hash and how it began; else what the documents say.
    pub stubs: bool,
    /// Its numbers.
    pub numbers: Numbers,
}

/// The numbers of a preset, in tokens unless the name says otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbers {
    /// Messages kept at the end.
    pub preserve_count: usize,
    /// Target length of a summary.
    pub target_tokens: usize,
    /// What is kept beside a summary, when something is.
    pub keep: Option<KeepNumbers>,
    /// No summary when what it could replace is less than this (`S3.3`).
    pub min_savings: usize,
    /// Summarise when offloading freed less than this (`S1.4`).
    pub compact_trigger_threshold: usize,
    /// Steps between two attempts to summarise.
    pub compact_cooldown_steps: u64,
    /// Attempts in total.
    pub retry_count: u32,
    /// Wait between attempts, in ms, times the number of the attempt.
    pub retry_wait_ms: u64,
    /// Offloading (`S1.1`).
    pub offload: OffloadNumbers,
    /// Compressing results (`S2`).
    pub react: ReactNumbers,
    /// Files that are put back after a summary, when they are.
    pub restore: Option<RestoreNumbers>,
    /// Clearing and large outputs (`S3.1`, `S3.8`).
    pub layered: LayeredNumbers,
    /// Checkpoints (`S5`).
    pub checkpoint: CheckpointNumbers,
    /// Share of the window at which the emergency begins, when that is less than the hard limit (`S4.7`).
    pub emergency_share: f64,
    /// Processing by the type of the tool (`S4.5`, `S4.6`).
    pub process: ProcessNumbers,
}

/// The numbers of the keep-layer. Shares are of what a summary replaces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeepNumbers {
    /// Pins, constraints and the user's newest messages stay verbatim in this share,
    pub must_share: f64,
    /// or in this many tokens, whichever is more. Pins and constraints stay where they are more than that.
    pub must_tokens: usize,
    /// The ledger of files, open errors and tasks, and evidence take this share,
    pub share: f64,
    /// no less than this,
    pub least_tokens: usize,
    /// and no more than this.
    pub most_tokens: usize,
}

/// The numbers of offloading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OffloadNumbers {
    /// Share of the messages that is scanned.
    pub scan_ratio: f64,
    /// Only results longer than this many characters.
    pub min_chars: usize,
}

/// The numbers of putting files back (`S3.6`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RestoreNumbers {
    /// Files.
    pub max_files: usize,
    /// Tokens of one.
    pub max_tokens_per_file: usize,
    /// Tokens of all.
    pub max_tokens_total: usize,
}

impl RestoreNumbers {
    /// The document's numbers.
    pub(super) const DEFAULT: RestoreNumbers =
        RestoreNumbers { max_files: 5, max_tokens_per_file: 5_000, max_tokens_total: 50_000 };
}

/// The numbers of compressing results, in characters unless the name says otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReactNumbers {
    /// The first layer is on.
    pub single_enabled: bool,
    /// A larger result is compressed before it is ever sent (`S2.1`).
    pub single_result_threshold: usize,
    /// In chunks of this size.
    pub chunk_size: usize,
    /// To this share, each on its own.
    pub chunk_ratio: f64,
    /// And to this share once more when the joined chunks are still too large (`S2.2`).
    pub second_ratio: f64,
    /// The second layer is on.
    pub global_enabled: bool,
    /// Above this share of the limit every result of some size is compressed (`S2.4`).
    pub global_compression_threshold: f64,
    /// The limit that the app gives in characters; the window, in tokens, where it gives none.
    pub model_context_limit: Option<usize>,
    /// What the system prompt takes of a limit in characters.
    pub system_prompt_length: usize,
    /// What the instructions take of it.
    pub instruction_length: usize,
    /// Only results larger than this.
    pub result_compression_min_size: usize,
    /// To this share.
    pub global_ratio: f64,
    /// Content that is known needs no model, what later turns rely on gets more room, texts that were compressed before
    /// are taken over, and what is asked for follows what is answered (`S2.11`).
    pub strategies: bool,
    /// A result that later turns rely on is compressed to twice its share, up to this one.
    pub reliance_ratio: f64,
}

/// The numbers of the layers that need no model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayeredNumbers {
    /// Old results are cleared at every `prepare`; else when that pays, by the two prices (`S3.1`).
    pub every_turn: bool,
    /// What a token costs that the provider reads from its cache, as a share of the price of input.
    pub cache_read: f64,
    /// What one costs that it writes to it.
    pub cache_write: f64,
    /// The newest results of the compactable tools stay (`S3.1`).
    pub keep_recent: usize,
    /// Only results larger than this are cleared.
    pub clear_min_tokens: usize,
    /// The inputs of the calls that are answered by old results are cleared too, when they are as large.
    pub clear_inputs: bool,
    /// A result larger than this is stored and previewed (`S3.8`).
    pub large_output_tokens: usize,
    /// Characters of a preview.
    pub preview_chars: usize,
}

/// The numbers of checkpoints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckpointNumbers {
    /// Levels and their lengths (`S5.7`).
    pub levels: Levels,
    /// The newest messages of the user that stay verbatim (`S5.6`).
    pub keep_user_messages: usize,
    /// From this many compressions on a checkpoint is at most of level 2 (`S5.8`).
    pub age_moderate: u64,
    /// From this many on, of level 1.
    pub age_compact: u64,
    /// So many of those become one.
    pub merge_count: usize,
    /// Kept free for the answer (`S5.1`).
    pub safety_margin: usize,
    /// What the system prompt may take (`S5.9`).
    pub prompt_budget: usize,
    /// What the system prompt and the checkpoints may take together: the same, and in a larger window more in proportion.
    pub room: usize,
    /// A session acts above this share of what these two leave of the window.
    pub trigger_share: f64,
    /// Snapshots that a session keeps, the newest ones (`S5.2`).
    pub keep_snapshots: usize,
}

/// The numbers of processing results by the type of their tool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProcessNumbers {
    /// A result of fewer tokens is kept as it is.
    pub min_tokens: usize,
    /// So is JSON or YAML of fewer tokens than this.
    pub structured_min_tokens: usize,
    /// Characters of a snippet of a search.
    pub snippet_chars: usize,
    /// A file of more lines becomes its outline.
    pub file_lines: usize,
    /// Lines of an outline.
    pub outline_lines: usize,
    /// An answer of more rows becomes a sample of them.
    pub query_rows: usize,
    /// Rows of a sample.
    pub sample_rows: usize,
    /// Characters that the fields of a response take.
    pub api_chars: usize,
}

/// Tools that search the web, by default (`S4.5`).
pub const SEARCH_TOOLS: [&str; 3] = ["web_search", "search_web", "search"];
/// Tools that ask a database, by default.
pub const QUERY_TOOLS: [&str; 5] = ["query", "sql", "run_query", "execute_sql", "query_database"];
/// Tools that call an API, by default.
pub const API_TOOLS: [&str; 5] = ["fetch", "http_request", "api_request", "call_api", "api"];

/// Tools whose old results are cleared by default (`S3.1`).
pub const COMPACTABLE_TOOLS: [&str; 4] = ["bash", "read_file", "write_file", "edit_file"];

/// Tools that read a file, by default (`S3.6`).
pub const READ_TOOLS: [&str; 1] = ["read_file"];

/// Every preset.
pub static PRESETS: [&Preset; 6] = [&BALANCED, &OFFLOAD, &REACT, &LAYERED, &FACTOR3, &CHECKPOINT];

const ACKNOWLEDGEMENT: &str = "Understood. Continuing with compressed context.";

/// Keeps what the work will need, then saves: results can be had back and leave in batches when that pays, messages become
/// a summary when room is short. The summary is followed by what none may lose, made from the messages each time.
pub static BALANCED: Preset = Preset {
    name: "balanced",
    rungs: &[Rung::Admit, Rung::Clear, Rung::Offload, Rung::Summarise],
    when: When::Window,
    prompt: &summary::BALANCED,
    summary_marker: "[Compressed History]\n\nThis page stands for {messages} of this conversation. It tells what happened and asks for nothing; what came after it follows it.{recall}\n\n",
    assistant_summaries: false,
    acknowledgement: ACKNOWLEDGEMENT,
    acknowledges: false,
    checkpoints: false,
    clears_every_tool: true,
    stubs: true,
    numbers: Numbers {
        target_tokens: 2_000,
        min_savings: 20_000,
        compact_trigger_threshold: 20_000,
        keep: Some(KeepNumbers {
            must_share: 0.01,
            must_tokens: 500,
            share: 0.04,
            least_tokens: 400,
            most_tokens: 4_000,
        }),
        layered: LayeredNumbers {
            every_turn: false,
            keep_recent: 16,
            large_output_tokens: 20_000,
            ..NUMBERS.layered
        },
        offload: OffloadNumbers { min_chars: 1_000, ..NUMBERS.offload },
        checkpoint: CheckpointNumbers { keep_user_messages: 1, ..NUMBERS.checkpoint },
        ..NUMBERS
    },
};

/// "Offload first, then compact" (`S1`).
pub static OFFLOAD: Preset = Preset {
    name: "offload",
    rungs: &[Rung::Offload, Rung::Summarise],
    when: When::Tokens(150_000),
    prompt: &summary::OFFLOAD,
    summary_marker: "[Compressed History]\n\n",
    assistant_summaries: false,
    acknowledgement: ACKNOWLEDGEMENT,
    acknowledges: false,
    checkpoints: false,
    clears_every_tool: false,
    stubs: false,
    numbers: NUMBERS,
};

/// Two layers over a trajectory (`S2`): results are shortened, nothing is ever removed.
pub static REACT: Preset = Preset {
    name: "react",
    rungs: &[Rung::Compress],
    when: When::Fraction(0.8),
    prompt: &summary::OFFLOAD,
    summary_marker: "[Compressed History]\n\n",
    assistant_summaries: false,
    acknowledgement: ACKNOWLEDGEMENT,
    acknowledges: false,
    checkpoints: false,
    clears_every_tool: false,
    stubs: false,
    // Nothing there waits between attempts.
    numbers: Numbers { compact_cooldown_steps: 0, ..NUMBERS },
};

/// Micro, auto, manual (`S3`).
pub static LAYERED: Preset = Preset {
    name: "layered",
    rungs: &[Rung::Admit, Rung::Clear, Rung::Summarise],
    when: When::Left { output: 20_000, fixed: 13_000 },
    prompt: &summary::LAYERED,
    summary_marker: "[Conversation compressed]\n",
    assistant_summaries: false,
    acknowledgement: ACKNOWLEDGEMENT,
    acknowledges: true,
    checkpoints: false,
    clears_every_tool: false,
    stubs: false,
    numbers: Numbers {
        min_savings: 20_000,
        compact_cooldown_steps: 0,
        restore: Some(RestoreNumbers::DEFAULT),
        ..NUMBERS
    },
};

/// Summarise early, protect what matters (`S4`).
pub static FACTOR3: Preset = Preset {
    name: "factor3",
    rungs: &[Rung::Process, Rung::Summarise, Rung::Rollover],
    when: When::Fraction(0.5),
    prompt: &summary::FACTOR3,
    summary_marker: "[SUMMARY]: ",
    assistant_summaries: true,
    acknowledgement: ACKNOWLEDGEMENT,
    acknowledges: false,
    checkpoints: false,
    clears_every_tool: false,
    stubs: false,
    numbers: Numbers {
        preserve_count: 3,
        target_tokens: 4_000,
        compact_cooldown_steps: 0,
        emergency_share: 0.8,
        ..NUMBERS
    },
};

/// Three stores, six stages, ageing (`S5`).
pub static CHECKPOINT: Preset = Preset {
    name: "checkpoint",
    rungs: &[Rung::Summarise, Rung::Age, Rung::Merge, Rung::Rollover],
    when: When::Room,
    prompt: &summary::CHECKPOINT,
    summary_marker: "[Checkpoint {id} @ {time}]\n\n",
    assistant_summaries: false,
    acknowledgement: ACKNOWLEDGEMENT,
    acknowledges: false,
    checkpoints: true,
    clears_every_tool: false,
    stubs: false,
    numbers: Numbers {
        compact_cooldown_steps: 0,
        checkpoint: CheckpointNumbers { keep_user_messages: 10, ..NUMBERS.checkpoint },
        ..NUMBERS
    },
};

/// The numbers of `offload`; a preset that says nothing else has them too.
pub(super) const NUMBERS: Numbers = Numbers {
    preserve_count: 5,
    target_tokens: 8_000,
    keep: None,
    min_savings: 0,
    compact_trigger_threshold: 15_000,
    compact_cooldown_steps: 5,
    retry_count: 3,
    retry_wait_ms: 1_000,
    offload: OffloadNumbers { scan_ratio: 0.5, min_chars: 50 },
    react: ReactNumbers {
        single_enabled: true,
        single_result_threshold: 50_000,
        chunk_size: 50_000,
        chunk_ratio: 0.1,
        second_ratio: 0.1,
        global_enabled: true,
        global_compression_threshold: 0.8,
        model_context_limit: None,
        system_prompt_length: 5_000,
        instruction_length: 3_000,
        result_compression_min_size: 5_000,
        global_ratio: 0.1,
        strategies: true,
        reliance_ratio: 0.3,
    },
    restore: None,
    layered: LayeredNumbers {
        every_turn: true,
        cache_read: 0.1,
        cache_write: 1.25,
        keep_recent: 3,
        clear_min_tokens: 1_000,
        clear_inputs: false,
        large_output_tokens: 40_000,
        preview_chars: 2_000,
    },
    checkpoint: CheckpointNumbers {
        levels: LEVELS,
        keep_user_messages: 0,
        age_moderate: 5,
        age_compact: 10,
        merge_count: 3,
        safety_margin: 1_000,
        prompt_budget: 1_500,
        room: 1_500,
        trigger_share: 0.75,
        keep_snapshots: 5,
    },
    emergency_share: 1.0,
    process: ProcessNumbers {
        min_tokens: 200,
        structured_min_tokens: 500,
        snippet_chars: 300,
        file_lines: 500,
        outline_lines: 200,
        query_rows: 100,
        sample_rows: 10,
        api_chars: 4_000,
    },
};
