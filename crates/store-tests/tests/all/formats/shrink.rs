//! Makes a failing history smaller: messages out, then elements and fields, as long as it goes on failing.

use serde_json::Value;

/// Histories that are tried at most.
const TRIES: usize = 3_000;

/// A history that `fails`, and of which no message, element or field can be taken without making it pass.
pub(crate) fn smallest(mut history: Vec<Value>, fails: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let mut left = TRIES;
    let mut fails = |history: &[Value]| {
        left = left.saturating_sub(1);
        left > 0 && fails(history)
    };
    let mut size = history.len();
    while size > 0 {
        let mut at = 0;
        while at < history.len() {
            let mut fewer = history.clone();
            fewer.drain(at..(at + size).min(history.len()));
            if fails(&fewer) {
                history = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    for at in 0..history.len() {
        let mut nth = 0;
        while let Some(less) = without(&history[at], nth) {
            let mut smaller = history.clone();
            smaller[at] = less;
            if fails(&smaller) {
                history = smaller;
            } else {
                nth += 1;
            }
        }
    }
    history
}

/// The value without its `nth` element or field, counted through the tree; a long text is cut instead.
fn without(value: &Value, nth: usize) -> Option<Value> {
    let mut value = value.clone();
    let mut left = nth;
    take(&mut value, &mut left).then_some(value)
}

fn take(value: &mut Value, left: &mut usize) -> bool {
    let here = |left: &mut usize| {
        let found = *left == 0;
        *left = left.saturating_sub(1);
        found
    };
    match value {
        Value::Array(elements) => {
            for at in 0..elements.len() {
                if here(left) {
                    elements.remove(at);
                    return true;
                }
                if take(&mut elements[at], left) {
                    return true;
                }
            }
        }
        Value::Object(fields) => {
            for key in fields.keys().cloned().collect::<Vec<_>>() {
                if here(left) {
                    fields.remove(&key);
                    return true;
                }
                if take(&mut fields[&key], left) {
                    return true;
                }
            }
        }
        Value::String(text) if text.chars().count() > 20 && here(left) => {
            *text = text.chars().take(text.chars().count() / 2).collect();
            return true;
        }
        _ => {}
    }
    false
}
