//! Estimated tokens: a sum of weights over the bytes of a text.
//!
//! A byte weighs what its pair with the byte before weighs, and what the classes of the last four bytes weigh:
//! `tokens(text) = Σ (P[row(previous)][column(byte)] + C[classes]) / 64`, with 80 rows and 72 columns, because bytes
//! that behave alike share one, and 8 classes. In a run of one character, such as a rule of 80 hyphens, a byte weighs what
//! the run does instead: a pair cannot know that 64 equal characters are one token.
//!
//! There is a table for each family of tokenizers, fitted to its exact counts of many scripts and kinds of content and
//! written by `bench/fit` (never by hand): a map of 256 bytes to rows, one to columns, the weights row by row, then those
//! of the classes, a byte each, then those of runs, two bytes each. For counting it is laid out once, with a weight for
//! each of the 65,536 pairs.
//!
//! One pass, no allocation, integers only: the same figure on every platform. Weights are not negative, so an
//! estimate never falls when text is appended, and the estimate of appended text is the sum over its own bytes.
//!
//! A crate of its own because it is compiled for speed, and the engine for size.

use std::sync::OnceLock;

const ROWS: usize = 80;
const COLUMNS: usize = 72;
const CONTEXTS: usize = 1 << 12;
const PAIRS: usize = 1 << 16;
/// Units of a weight in one token, and of a weight of runs.
const SCALE: u64 = 64;
const RUN_SCALE: u64 = 1_024;
/// Weights of runs: of ASCII characters, then of characters of three bytes, which share them.
const RUNS: usize = 256;
/// Bytes that go on with a run before it has weights of its own: seven characters of ASCII, or the last two of three of three
/// bytes and the first of the fourth.
const RUN: u32 = 7;

/// The tables of all families are in the program. In WebAssembly the host brings all but the default one.
const HAS_ALL: bool = cfg!(not(target_family = "wasm"));

type File = [u8; 256 + 256 + ROWS * COLUMNS + CONTEXTS + 2 * RUNS];

/// Models whose tokenizers count alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    /// OpenAI's models since GPT-4o; what is taken for models that are not known.
    #[default]
    O200k,
    /// OpenAI's models before: GPT-4 and GPT-3.5.
    Cl100k,
    /// Claude 3 to 4.6, by a reconstruction of its counts.
    Claude3,
    /// Claude since 4.7, by a reconstruction of its counts.
    Claude47,
    /// Gemini, by the tokenizer of Gemma 3.
    Gemini,
    /// Llama 3.
    Llama3,
    /// Qwen3.
    Qwen3,
}

impl Family {
    /// All of them.
    pub const ALL: [Family; 7] = [
        Family::O200k,
        Family::Cl100k,
        Family::Claude3,
        Family::Claude47,
        Family::Gemini,
        Family::Llama3,
        Family::Qwen3,
    ];

    /// The name of its table.
    pub fn name(self) -> &'static str {
        match self {
            Family::O200k => "o200k",
            Family::Cl100k => "cl100k",
            Family::Claude3 => "claude3",
            Family::Claude47 => "claude47",
            Family::Gemini => "gemini",
            Family::Llama3 => "llama3",
            Family::Qwen3 => "qwen3",
        }
    }

    /// Its table as a file, where the program has it.
    fn file(self) -> Option<&'static File> {
        Some(match self {
            Family::O200k => include_bytes!("../tables/o200k.bin"),
            _ if !HAS_ALL => return None,
            Family::Cl100k => include_bytes!("../tables/cl100k.bin"),
            Family::Claude3 => include_bytes!("../tables/claude3.bin"),
            Family::Claude47 => include_bytes!("../tables/claude47.bin"),
            Family::Gemini => include_bytes!("../tables/gemini.bin"),
            Family::Llama3 => include_bytes!("../tables/llama3.bin"),
            Family::Qwen3 => include_bytes!("../tables/qwen3.bin"),
        })
    }

    /// True where texts can be counted for it: its table is in the program, or the host has brought it.
    pub fn is_there(self) -> bool {
        self.file().is_some() || self.cell().get().is_some()
    }

    /// Its table, laid out when it is first asked for. A table that is not there is a bug of the caller, and a panic: no family is
    /// ever counted with the weights of another.
    #[allow(clippy::panic)]
    pub fn table(self) -> &'static Table {
        self.cell().get_or_init(|| match self.file() {
            Some(file) => Table::new(file),
            None => panic!("the table of {} is not there", self.name()),
        })
    }

    /// Takes the table that the host brings: a weight for each pair of bytes, one for each of the classes of four, and those of
    /// runs. False where it has another length. One that is there stays.
    pub fn bring(self, pairs: &[u8], contexts: &[u8], runs: &[u16]) -> bool {
        if pairs.len() != PAIRS || contexts.len() != CONTEXTS || runs.len() != RUNS {
            return false;
        }
        self.cell().get_or_init(|| {
            let mut table = Table::empty();
            table.pairs.copy_from_slice(pairs);
            table.contexts.copy_from_slice(contexts);
            table.runs.copy_from_slice(runs);
            table
        });
        true
    }

    fn cell(self) -> &'static OnceLock<Box<Table>> {
        static TABLES: [OnceLock<Box<Table>>; 7] = [const { OnceLock::new() }; 7];
        let [o200k, cl100k, claude3, claude47, gemini, llama3, qwen3] = &TABLES;
        match self {
            Family::O200k => o200k,
            Family::Cl100k => cl100k,
            Family::Claude3 => claude3,
            Family::Claude47 => claude47,
            Family::Gemini => gemini,
            Family::Llama3 => llama3,
            Family::Qwen3 => qwen3,
        }
    }

    /// Estimated tokens of a text: 0 for the empty text, at least 1 for any other.
    pub fn text(self, text: &str) -> usize {
        let mut sum = Sum::default();
        sum.add(self.table(), text.as_bytes());
        sum.tokens()
    }
}

/// Bytes of a text that are of characters beyond ASCII.
pub fn beyond_ascii(text: &str) -> usize {
    text.bytes().map(|byte| usize::from(byte >> 7)).sum()
}

/// Weights laid out for counting, in bytes one after the other.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    /// For each pair of bytes, the first of which is the higher.
    pairs: [u8; PAIRS],
    /// For the classes of the last four bytes, three bits each, the last one lowest.
    contexts: [u8; CONTEXTS],
    /// The class of each byte.
    classes: [u8; 256],
    /// Of a character that goes on with a run, in `1 / RUN_SCALE` tokens: see [`run_of`].
    runs: [u16; RUNS],
}

impl Table {
    // No constant: it would be 70 KB of zeros in each module.
    fn empty() -> Box<Self> {
        Box::new(Table { pairs: [0; PAIRS], contexts: [0; CONTEXTS], classes: CLASSES, runs: [0; RUNS] })
    }

    fn new(file: &File) -> Box<Self> {
        let (rows, rest) = file.split_at(256);
        let (columns, rest) = rest.split_at(256);
        let (weights, rest) = rest.split_at(ROWS * COLUMNS);
        let (contexts, runs) = rest.split_at(CONTEXTS);
        let mut table = Table::empty();
        let pairs = rows.iter().flat_map(|row| columns.iter().map(move |column| (*row, *column)));
        for (weight, (row, column)) in table.pairs.iter_mut().zip(pairs) {
            let at = usize::from(row) * COLUMNS + usize::from(column);
            *weight = weights.get(at).copied().unwrap_or_default();
        }
        table.contexts.copy_from_slice(contexts);
        for (weight, bytes) in table.runs.iter_mut().zip(runs.as_chunks().0) {
            *weight = u16::from_le_bytes(*bytes);
        }
        table
    }

    /// Weight of the last byte of `last`, which goes on with a run, in `1 / RUN_SCALE` tokens: a character has its weight at its
    /// end.
    fn run(&self, last: u32) -> u32 {
        let [first, second, byte] = [last >> 16, last >> 8, last].map(|byte| byte & 0xff);
        let at = match byte {
            0..0x80 => byte,
            _ if first < 0xe0 => return 0,
            // Those that rules and bars are made of have one each.
            _ => 0x80 | (13 * first + 118 * second + byte) & 0x7f,
        };
        self.runs.get(at as usize).copied().map_or(0, u32::from)
    }
}

/// Space, line ends and other control characters, digits, small letters, capitals, other ASCII; bytes of characters
/// beyond it: those that go on, and those that begin one.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        // The index is below the length, and this runs in the compiler.
        #[allow(clippy::indexing_slicing)]
        {
            classes[byte] = match byte as u8 {
                b' ' => 0,
                0..b' ' => 1,
                b'0'..=b'9' => 2,
                b'a'..=b'z' => 3,
                b'A'..=b'Z' => 4,
                b'!'..b'0' | b':'..b'A' | b'['..b'a' | b'{'..0x80 => 5,
                0x80..0xc0 => 6,
                0xc0.. => 7,
            };
        }
        byte += 1;
    }
    classes
};

/// The estimate of a text that comes in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum {
    units: u64,
    end: End,
    is_started: bool,
}

/// What the weight of the next byte depends on. Text hardly ever has a NUL: it stands for what is before the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    /// The last four bytes.
    last: u32,
    /// Their classes.
    context: u16,
    /// Bytes at the end that go on with a run, [`RUN`] at most: each is the one before it, or that three before it beyond ASCII.
    run: u8,
}

impl Default for End {
    fn default() -> Self {
        // Four control characters.
        End { last: 0, context: 0o1111, run: 0 }
    }
}

impl Sum {
    /// Adds what comes next. Parts may end anywhere, within a character too.
    pub fn add(&mut self, table: &Table, bytes: &[u8]) {
        let (units, end) = units(table, self.end, bytes);
        self.units += units;
        self.end = end;
        self.is_started |= !bytes.is_empty();
    }

    /// Estimated tokens of what was added: 0 for nothing, at least 1 for anything.
    pub fn tokens(&self) -> usize {
        let tokens = (self.units + RUN_SCALE / 2) / RUN_SCALE;
        usize::try_from(tokens).unwrap_or(usize::MAX).max(usize::from(self.is_started))
    }
}

/// Weight of `bytes` behind `end` in `1 / RUN_SCALE` tokens, and their end. A byte weighs less than 2^13: 2^50 bytes of text
/// cannot overflow.
// Never inlined: it would be compiled for size with its caller.
#[inline(never)]
fn units(table: &Table, end: End, bytes: &[u8]) -> (u64, End) {
    // What is older is shifted out above, and masked where it is used: the loop waits for less. No check is left of `get`,
    // because a masked index is as many bits wide as its table is long.
    let (mut last, mut context, mut run) = (end.last, u32::from(end.context), u32::from(end.run));
    let mut in_runs = 0;
    let mut weight = |byte: u8| {
        // Three bytes back beyond ASCII.
        let goes_on = (last >> (byte >> 7 << 4)) as u8 == byte;
        run = if goes_on { run + 1 } else { 0 };
        last = last << 8 | u32::from(byte);
        let class = table.classes.get(usize::from(byte)).copied().unwrap_or_default();
        context = context << 3 | u32::from(class);
        if run >= RUN {
            run = RUN;
            in_runs += u64::from(table.run(last));
            return 0;
        }
        let pair = table.pairs.get(last as usize & (PAIRS - 1)).copied().unwrap_or_default();
        let context = table.contexts.get(context as usize & (CONTEXTS - 1)).copied().unwrap_or_default();
        u32::from(pair) + u32::from(context)
    };
    let (chunks, rest) = bytes.as_chunks::<16>();
    let mut sum = 0;
    for chunk in chunks {
        sum += u64::from(chunk.iter().map(|byte| weight(*byte)).sum::<u32>());
    }
    sum += u64::from(rest.iter().map(|byte| weight(*byte)).sum::<u32>());
    let end = End { last, context: (context & (CONTEXTS as u32 - 1)) as u16, run: run as u8 };
    (sum * (RUN_SCALE / SCALE) + in_runs, end)
}

#[cfg(test)]
mod tests;
