//! The module's boundary: one buffer that questions are written into as UTF-8, and one that answers are read from.
//!
//! An instance is a [`Host`]: it serves one evaluation. JavaScript (`js/evaluator/module.ts`) is the only caller, and never
//! calls while a call runs.

#![allow(unsafe_code)]

use crate::host::Host;
use std::cell::RefCell;

#[derive(Default)]
struct State {
    host: Host,
    question: Vec<u8>,
    answer: String,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn with<T>(run: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(run)
}

/// Address of a buffer of `length` bytes for the next question.
#[unsafe(no_mangle)]
extern "C" fn buffer(length: usize) -> *const u8 {
    with(|state| {
        state.question = vec![0; length];
        state.question.as_ptr()
    })
}

/// Answers the question in the buffer: the answer's length.
#[unsafe(no_mangle)]
extern "C" fn ask() -> usize {
    with(|state| {
        let question = std::mem::take(&mut state.question);
        // It is UTF-8, as a `TextEncoder` wrote it.
        state.answer = state.host.ask(&String::from_utf8_lossy(&question));
        state.answer.len()
    })
}

/// The answer's address.
#[unsafe(no_mangle)]
extern "C" fn answer() -> *const u8 {
    with(|state| state.answer.as_ptr())
}
