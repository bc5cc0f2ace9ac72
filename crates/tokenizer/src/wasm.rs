//! The module's boundary: functions over numbers, and one buffer that texts are written into as UTF-8.
//!
//! Written by hand, because a glue that copies every string costs several times what counting it does. An instance has
//! one encoding; JavaScript (`js/tokenizer.ts`) is the only caller, and never calls while a call runs.
//!
//! `unsafe` is here alone: for the names of exports, and for the one state behind them.

#![allow(unsafe_code)]

use crate::{PADDING, Rules, Tail, Tokenizer};
use alloc::vec::Vec;
use core::cell::UnsafeCell;

#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// Panics end the instance; what there is to say of them has no place in a module of this size.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

struct State {
    buffer: Vec<u8>,
    tokenizer: Option<Tokenizer>,
    ids: Vec<u32>,
    text: Vec<u8>,
    tail: Tail,
}

struct Only(UnsafeCell<State>);

// SAFETY: this target has no threads.
unsafe impl Sync for Only {}

static STATE: Only = Only(UnsafeCell::new(State {
    buffer: Vec::new(),
    tokenizer: None,
    ids: Vec::new(),
    text: Vec::new(),
    tail: Tail { tokens: 0, settled: 0, bytes: 0 },
}));

fn with<T>(run: impl FnOnce(&mut State) -> T) -> T {
    // SAFETY: there are no threads, and no export calls another or JavaScript: there is one reference at a time.
    run(unsafe { &mut *STATE.0.get() })
}

/// Address of a buffer with room for `capacity` bytes; good until it is asked for again.
#[unsafe(no_mangle)]
extern "C" fn buffer(capacity: usize) -> *const u8 {
    with(|state| {
        let wanted = capacity + PADDING;
        if state.buffer.len() < wanted {
            state.buffer.resize(wanted, 0);
        }
        state.buffer.as_ptr()
    })
}

/// Makes the encoding of the table in the first `length` bytes of the buffer, and lets go of the buffer.
/// `rules` is 0 for `cl100k_base`, else `o200k_base`. Returns how many tokens it has: 0 when the table is damaged.
#[unsafe(no_mangle)]
extern "C" fn load(rules: u32, length: usize) -> usize {
    let rules = if rules == 0 { Rules::Cl100k } else { Rules::O200k };
    with(|state| {
        let table = core::mem::take(&mut state.buffer);
        state.tokenizer = table.get(..length).and_then(|table| Tokenizer::new(rules, table));
        state.tokenizer.as_ref().map_or(0, Tokenizer::vocabulary_size)
    })
}

/// Tokens of the first `length` bytes.
#[unsafe(no_mangle)]
extern "C" fn count(length: usize) -> usize {
    with(|State { buffer, tokenizer, .. }| match tokenizer {
        Some(tokenizer) => tokenizer.count(buffer, length),
        None => 0,
    })
}

/// Tokens of the first `length` bytes of a text that may go on; [`settled`] and [`settled_bytes`] say what stays.
#[unsafe(no_mangle)]
extern "C" fn count_tail(length: usize) -> usize {
    with(|State { buffer, tokenizer, tail, .. }| {
        *tail = tokenizer.as_mut().map(|tokenizer| tokenizer.count_tail(buffer, length)).unwrap_or_default();
        tail.tokens
    })
}

/// Encodes the first `length` bytes of a text that may go on: how many tokens. [`ids`] is where they are.
#[unsafe(no_mangle)]
extern "C" fn encode(length: usize) -> usize {
    with(|State { buffer, tokenizer, ids, tail, .. }| {
        ids.clear();
        *tail = tokenizer.as_mut().map(|tokenizer| tokenizer.encode(buffer, length, ids)).unwrap_or_default();
        tail.tokens
    })
}

/// Of the tokens counted or encoded last, those that stay whatever is appended.
#[unsafe(no_mangle)]
extern "C" fn settled() -> usize {
    with(|state| state.tail.settled)
}

/// The bytes of these.
#[unsafe(no_mangle)]
extern "C" fn settled_bytes() -> usize {
    with(|state| state.tail.bytes)
}

/// Address of what was encoded last.
#[unsafe(no_mangle)]
extern "C" fn ids() -> *const u32 {
    with(|state| state.ids.as_ptr())
}

/// Decodes `count` ids, four bytes each, of the buffer. Returns the length of the text, which is at [`text`]; or
/// -1 - N when id N is unknown.
#[unsafe(no_mangle)]
extern "C" fn decode(count: usize) -> i32 {
    with(|State { buffer, tokenizer, text, .. }| {
        text.clear();
        let Some(tokenizer) = tokenizer else { return -1 };
        for (nth, id) in buffer.chunks_exact(4).take(count).enumerate() {
            match tokenizer.token(u32::from_le_bytes([id[0], id[1], id[2], id[3]])) {
                Some(bytes) => text.extend_from_slice(bytes),
                None => return -1 - nth as i32,
            }
        }
        text.len() as i32
    })
}

/// Address of what was decoded last.
#[unsafe(no_mangle)]
extern "C" fn text() -> *const u8 {
    with(|state| state.text.as_ptr())
}
